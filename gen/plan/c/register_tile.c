#include "register_tile.h"

#include <math.h>

/* Cores of the last ten years: two pipes of multiply-adds and two loads a cycle (Skylake and later; Zen 2 and
 * later with AVX2; Zen 4 halves both with AVX-512, which changes no ratio). Without a fused multiply-add a
 * product takes a register of its own. */
fpa_core core_of(const fpa_target *target)
{
    return (fpa_core){.registers = target->registers, .spare = 1, .fmas = 2, .loads = 2, .latency = 4};
}

static bool tile_fits(const fpa_core *core, fpa_register_tile tile)
{
    return tile.rows * tile.vectors + tile.vectors + 1 + core->spare <= core->registers;
}

double tile_cycles(const fpa_core *core, fpa_register_tile tile)
{
    const double sums = (double)tile.rows * tile.vectors;
    return fmax(fmax(sums / core->fmas, (double)(tile.rows + tile.vectors) / core->loads), core->latency);
}

/* Vectors that `width` columns take (templates/c/helpers.c.in: product_panels); *shared: the last one begins
 * before its neighbour ends. */
static int vectors_of(int width, int lanes, bool *shared)
{
    while (lanes > width)
        lanes /= 2;
    const int rest = width % lanes;
    *shared = rest != 0 && (rest & (rest - 1)) != 0;
    return width / lanes + (rest != 0);
}

/* Cycles of a row of the product through all of its panels, and loads as a tie-breaker. */
static double row_cost(const fpa_core *core, fpa_register_tile tile, int vectors)
{
    double cycles = 0, loads = 0;
    const int panels = (vectors + tile.vectors - 1) / tile.vectors;
    for (int i = 0; i < panels; i++) {
        const fpa_register_tile here = {tile.rows, vectors * (i + 1) / panels - vectors * i / panels};
        cycles += tile_cycles(core, here);
        loads += here.rows + here.vectors;
    }
    return (cycles + 0.01 * loads) / tile.rows;
}

fpa_register_tile tile_choose(const fpa_target *target, int columns, int tokens)
{
    const fpa_core core = core_of(target);
    bool shared;
    const int vectors = vectors_of(columns, target->vector, &shared), least = shared ? 2 : 1;
    fpa_register_tile best = {1, least};
    for (int v = least; v <= vectors && v < core.registers; v++)
        for (int r = 1; r <= core.registers; r++) {
            const fpa_register_tile tile = {r, v};
            if (tokens % r == 0 && tile_fits(&core, tile) &&
                row_cost(&core, tile, vectors) < row_cost(&core, best, vectors))
                best = tile;
        }
    return best;
}
