#include "register_tile.h"

#include "base/round.h"
#include "machine/cpu_cost.h"

/* Whether the registers suffice for the sums, the vectors of a step's columns, the factor of a row, and `spare`
 * other registers. */
static bool sets_fit(const fpa_cpu *cpu, fpa_register_tile tile, int sets, int spare)
{
    return sets * tile.rows * tile.vectors + tile.vectors + 1 + spare <= cpu->registers;
}

/* Registers needed in addition to those. A fused multiply-add needs none; without it a product takes one, and so
 * does the row's factor for a single last column, which is not a vector. */
static int spare_registers(const fpa_cpu *cpu, int columns, int lanes)
{
    return cpu->product_instructions > 1 || columns % lanes == 1;
}

/* Cycles of one step of the inner index of a tile. */
static double tile_cycles(const fpa_cpu *cpu, fpa_register_tile tile)
{
    const fpa_cpu_loop step = {.runs = 1,
                               .steps = 1,
                               .step.multiply_adds = (double)tile.rows * tile.vectors,
                               .step.loads = tile.vectors,
                               .step.broadcasts = tile.rows,
                               .chain = 1};
    return cpu_loop_cycles(cpu, &step);
}

/* The vectors of `width` columns, as in templates/c/helpers.c.in: product_panels. *shared: the last vector
 * overlaps the one before it. */
static int vectors_of(int width, int lanes, bool *shared)
{
    while (lanes > width)
        lanes /= 2;
    const int rest = width % lanes;
    *shared = rest != 0 && (rest & (rest - 1)) != 0;
    return width / lanes + (rest != 0);
}

int tile_vectors(int width, int lanes)
{
    bool shared;
    return vectors_of(width, lanes, &shared);
}

int tile_panel_rows(fpa_register_tile tile, int vectors)
{
    return vectors < tile.vectors && tile.fewer ? tile.fewer : tile.rows;
}

/* Cycles per row and step of a panel's register tile, with loads as a tie-breaker. Sums are loaded and stored once
 * in some steps, few for a chunk's own keys: counted as waiting for the last products once in 16 steps. */
static double panel_cost(const fpa_cpu *cpu, fpa_register_tile tile)
{
    const double few = 16;
    return (tile_cycles(cpu, tile) + cpu->latency / few + 0.01 * (tile.rows + tile.vectors)) / tile.rows;
}

/* The same for a row of a whole product, over all of its panels of columns. */
static double row_cost(const fpa_cpu *cpu, fpa_register_tile tile, int vectors)
{
    double cost = 0;
    const int panels = divide_up(vectors, tile.vectors);
    for (int i = 0; i < panels; i++) {
        const int here = vectors * (i + 1) / panels - vectors * i / panels;
        cost += panel_cost(cpu, (fpa_register_tile){.rows = tile_panel_rows(tile, here), .vectors = here});
    }
    return cost;
}

/* The number of rows with the fewest cycles for a panel of so many vectors. */
static int choose_rows(const fpa_cpu *cpu, int tokens, int vectors, int spare)
{
    fpa_register_tile best = {.rows = 1, .vectors = vectors};
    for (int r = 2; r <= cpu->registers && r <= TILE_MOST_ROWS; r++) {
        const fpa_register_tile tile = {.rows = r, .vectors = vectors};
        if (tokens % r == 0 && sets_fit(cpu, tile, 1, spare) && panel_cost(cpu, tile) < panel_cost(cpu, best))
            best = tile;
    }
    return best.rows;
}

static fpa_register_tile choose(const fpa_cpu *cpu, int lanes, int columns, int tokens, bool pairs, bool even)
{
    bool shared;
    const int vectors = vectors_of(columns, lanes, &shared), spare = spare_registers(cpu, columns, lanes);
    const int least = shared || (pairs && columns % lanes) ? 2 : 1;
    fpa_register_tile best = {.rows = 1, .vectors = least};
    for (int v = least; v <= vectors && v < cpu->registers; v++) {
        const bool deals = even && vectors % divide_up(vectors, v) != 0;
        const int fewer = deals ? choose_rows(cpu, tokens, v - 1, spare) : 0;
        for (int r = 1; r <= cpu->registers && r <= TILE_MOST_ROWS; r++) {
            const fpa_register_tile tile = {r, v, fewer};
            if (tokens % r == 0 && sets_fit(cpu, tile, 1, spare) &&
                row_cost(cpu, tile, vectors) < row_cost(cpu, best, vectors))
                best = tile;
        }
    }
    return best;
}

fpa_register_tile tile_choose(const fpa_cpu *cpu, int lanes, int columns, int tokens, bool pairs)
{
    return choose(cpu, lanes, columns, tokens, pairs, false);
}

fpa_register_tile tile_choose_even(const fpa_cpu *cpu, int lanes, int columns, int tokens, bool pairs)
{
    return choose(cpu, lanes, columns, tokens, pairs, true);
}

fpa_register_tile tile_choose_sets(const fpa_cpu *cpu, int lanes, int tokens, int sets)
{
    enum { SPARE = 1 }; /* for the number that is computed from the sums before they are stored */
    fpa_register_tile best = {0};
    double least = 0;
    for (int v = 1; v * lanes <= tokens; v++)
        for (int r = 2; r <= tokens && r <= TILE_MOST_ROWS; r += 2) {
            const fpa_register_tile tile = {.rows = r, .vectors = v};
            const double cycles = tile_cycles(cpu, tile) / (r * v) + 0.01 * (r + v) / (r * v);
            if (tokens % r || tokens % (v * lanes) || r * v <= cpu->latency * cpu->multiply_adds ||
                !sets_fit(cpu, tile, sets, SPARE) || (best.rows && cycles >= least))
                continue;
            best = tile;
            least = cycles;
        }
    return best;
}
