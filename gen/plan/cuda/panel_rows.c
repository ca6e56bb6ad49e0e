#include "panel_rows.h"

#include "parts.h"

/* ---- what a packed row is ---- */

typedef enum row_kind { ROW_ZERO, ROW_ONES, ROW_COORDINATE, ROW_DENSE, ROW_DIAGONAL } row_kind;

typedef struct row_source {
    row_kind kind;
    int index;     /* coordinate, or row of the matrix among those of its kind */
    int diagonal;  /* of a row by a diagonal: 1 and its number among all of these; else 0 */
    double weight; /* of keys; queries have none */
} row_source;

static bool same_source(const row_source *a, const row_source *b)
{
    return a->kind == b->kind && a->index == b->index && a->diagonal == b->diagonal && a->weight == b->weight;
}

static row_source source_of_projected(const fpa_plan *plan, int row)
{
    int dense = 0, diagonal = 0;
    for (int i = 0; i < plan->projection_count; i++) {
        const fpa_projection *p = &plan->projections[i];
        const fpa_matrix *matrix = &plan->head->matrices[p->matrix];
        const bool is_diagonal = matrix->kind == FPA_MATRIX_TRAINABLE_DIAGONAL;
        const int r = row - p->first_row;
        if (r >= 0 && r < matrix->rows)
            return is_diagonal ? (row_source){ROW_DIAGONAL, r, 1 + diagonal + r, 1}
                               : (row_source){ROW_DENSE, dense + r, 0, 1};
        *(is_diagonal ? &diagonal : &dense) += matrix->rows;
    }
    return (row_source){ROW_ZERO, 0, 0, 1};
}

/* Of a row as the plan numbers them. */
static row_source source_of(const fpa_plan *plan, int row, bool keys)
{
    if (row == plan->ones_row)
        return (row_source){ROW_ONES, 0, 0, 1};
    if (row < plan->head->d)
        return (row_source){ROW_COORDINATE, row, 0, 1};
    for (int i = 0; i < plan->weighted_count; i++)
        if (plan->weighted[i].row == row) {
            row_source from = source_of(plan, plan->weighted[i].from, keys);
            from.weight *= keys ? plan->weighted[i].gram : 1;
            return from;
        }
    return source_of_projected(plan, row);
}

/* ---- rows of a tile ---- */

/* Sources by cuda row, and the rows of a tile that are used. */
typedef struct tile_rows {
    const fpa_plan *plan;
    const fpa_cuda_rows *rows;
    arena *memory;
    row_source *source; /* [row_count] of each packed row */
    int *place;         /* [row_count] in the tile; PANEL_NOWHERE */
    bool *used;         /* [row_count] */
} tile_rows;

static tile_rows start(const fpa_plan *plan, const fpa_cuda_rows *rows, arena *memory, bool keys)
{
    tile_rows tile = {.plan = plan, .rows = rows, .memory = memory};
    tile.source = arena_array(memory, rows->row_count, sizeof *tile.source);
    tile.place = arena_array(memory, rows->row_count, sizeof *tile.place);
    tile.used = arena_array(memory, rows->row_count, sizeof *tile.used);
    for (int i = 0; i < rows->row_count; i++)
        tile.place[i] = PANEL_NOWHERE;
    for (int row = 0; row < plan->row_count; row++)
        tile.source[rows->row[row]] = source_of(plan, row, keys);
    for (int i = 0; i < rows->factors * rows->features; i++)
        tile.used[rows->factor_row[i]] = true;
    for (int i = 0; i < 16 * rows->dot_steps; i++)
        tile.used[rows->dot_rows[i]] = true;
    return tile;
}

/* One with the same source that has a place already. */
static int find_place(const tile_rows *tile, int row)
{
    for (int i = 0; i < row; i++)
        if (tile->used[i] && same_source(&tile->source[i], &tile->source[row]))
            return tile->place[i];
    return PANEL_NOWHERE;
}

/* Rows of one kind follow those that have places. */
static void place_kind(tile_rows *tile, row_kind kind, int *count)
{
    for (int row = 0; row < tile->rows->row_count; row++)
        if (tile->used[row] && tile->source[row].kind == kind) {
            tile->place[row] = find_place(tile, row);
            if (tile->place[row] == PANEL_NOWHERE)
                tile->place[row] = (*count)++;
        }
}

static int place_all(tile_rows *tile)
{
    static const row_kind order[] = {ROW_DENSE, ROW_COORDINATE, ROW_ONES, ROW_DIAGONAL, ROW_ZERO};
    int count = 0;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        place_kind(tile, order[i], &count);
    return count;
}

/* ---- what the kernel makes ---- */

static int *array_of(arena *memory, int count, int value)
{
    int *array = arena_array(memory, count, sizeof *array);
    for (int i = 0; i < count; i++)
        array[i] = value;
    return array;
}

/* Number of a dense row with a weight, made on first use. */
static int dense_number(fpa_panel_rows *panels, int *count, const row_source *source)
{
    for (int i = 0; i < *count; i++)
        if (panels->dense_row[i] == source->index && panels->dense_weight[i] == source->weight)
            return i;
    panels->dense_row[*count] = source->index;
    panels->dense_weight[*count] = source->weight;
    return (*count)++;
}

static void list_dense(const tile_rows *tile, int side, int *count, fpa_panel_rows *panels)
{
    for (int row = 0; row < tile->rows->row_count; row++)
        if (tile->place[row] != PANEL_NOWHERE && tile->source[row].kind == ROW_DENSE)
            panels->dense_place[side][dense_number(panels, count, &tile->source[row])] = tile->place[row];
}

/* A coordinate may be several rows, with other weights: each has a level, the first that is free for it. */
static void add_coordinate(fpa_panel_rows *panels, int side, const row_source *source, int place)
{
    for (int level = 0; level < panels->levels; level++) {
        const int at = level * panels->columns + source->index;
        if (panels->place[side][at] == place)
            return;
        if (panels->place[side][at] != PANEL_NOWHERE)
            continue;
        panels->place[side][at] = place;
        panels->weight[side][at] = source->weight;
        panels->diagonal[side][at] = source->diagonal;
        return;
    }
}

static bool is_coordinate(const row_source *source)
{
    return source->kind == ROW_COORDINATE || source->kind == ROW_DIAGONAL;
}

static void list_coordinates(const tile_rows *tile, int side, fpa_panel_rows *panels)
{
    for (int row = 0; row < tile->rows->row_count; row++) {
        const row_source *source = &tile->source[row];
        if (tile->place[row] == PANEL_NOWHERE)
            continue;
        if (is_coordinate(source))
            add_coordinate(panels, side, source, tile->place[row]);
        else if (source->kind == ROW_ONES)
            panels->ones[side] = tile->place[row];
        else if (source->kind == ROW_ZERO)
            panels->zeros[side] = tile->place[row];
    }
}

/* Rows of a coordinate, at most. */
static int count_levels(const tile_rows *tile)
{
    int most = 1;
    for (int row = 0; row < tile->rows->row_count; row++) {
        int same = 0;
        for (int i = 0; i < tile->rows->row_count; i++)
            same += tile->place[i] != PANEL_NOWHERE && is_coordinate(&tile->source[i]) &&
                    is_coordinate(&tile->source[row]) && tile->source[i].index == tile->source[row].index;
        most = largest(most, same);
    }
    return most;
}

static void list_rows(const tile_rows *tiles, fpa_panel_rows *panels)
{
    arena *memory = tiles->memory;
    const int room = round_up(tiles[0].rows->row_count * 2, 16), d = tiles->plan->head->d;
    int dense = 0;
    panels->dense_row = array_of(memory, room, PANEL_NOWHERE);
    panels->dense_weight = arena_array(memory, room, sizeof *panels->dense_weight);
    panels->columns = round_up(d, 8);
    panels->levels = largest(count_levels(&tiles[0]), count_levels(&tiles[1]));
    for (int side = 0; side < 2; side++) {
        const int count = panels->levels * panels->columns;
        panels->dense_place[side] = array_of(memory, room, PANEL_NOWHERE);
        panels->place[side] = array_of(memory, count, PANEL_NOWHERE);
        panels->weight[side] = arena_array(memory, count, sizeof(double));
        panels->diagonal[side] = array_of(memory, count, 0);
        panels->ones[side] = panels->zeros[side] = PANEL_NOWHERE;
        list_dense(&tiles[side], side, &dense, panels);
        list_coordinates(&tiles[side], side, panels);
    }
    panels->dense_tiles = divide_up(dense, 16);
    panels->dense_rows = 16 * panels->dense_tiles;
    panels->copies = panels->levels * panels->columns;
    panels->pack_bytes = panels->dense_tiles * divide_up(d, 16) * 2 * 512;
}

/* ---- what blocks fetch ---- */

/* Rows that a block fetches, and where each row of a tile is among them; -1: nowhere. */
typedef struct fetched_rows {
    int *row, count;
    int *place; /* [PANEL_NOWHERE + 1] */
} fetched_rows;

static fetched_rows start_fetched(arena *memory, int room, int *place)
{
    return (fetched_rows){array_of(memory, room, PANEL_NOWHERE), 0, place};
}

static void forget_places(const fetched_rows *rows)
{
    for (int i = 0; i < rows->count; i++)
        rows->place[rows->row[i]] = -1;
}

static int fetched_place(fetched_rows *rows, int row)
{
    if (rows->place[row] < 0) {
        rows->place[row] = rows->count;
        rows->row[rows->count++] = row;
    }
    return rows->place[row];
}

/* Rows of the features of one slice. */
static fetched_rows list_slice(const tile_rows *keys, int slice, int *place, int *features)
{
    const fpa_cuda_rows *all = keys->rows;
    const int own = all->features / all->slices;
    fetched_rows rows = start_fetched(keys->memory, all->row_count + 1, place);
    for (int l = 0; l < all->factors; l++)
        for (int f = slice * own; f < (slice + 1) * own; f++) {
            const int at = l * all->features + f;
            features[at] = fetched_place(&rows, keys->place[all->factor_row[at]]);
        }
    forget_places(&rows);
    return rows;
}

static void list_state(const tile_rows *keys, int *place, fpa_panel_rows *panels)
{
    const fpa_cuda_rows *all = keys->rows;
    fetched_rows *slices = arena_array(keys->memory, all->slices, sizeof *slices);
    panels->slices = all->slices;
    panels->state_feature = array_of(keys->memory, all->factors * all->features, 0);
    for (int s = 0; s < all->slices; s++) {
        slices[s] = list_slice(keys, s, place, panels->state_feature);
        panels->state_count = largest(panels->state_count, slices[s].count);
    }
    panels->state_rows = panels->slices * panels->state_count;
    panels->state_row = array_of(keys->memory, panels->state_rows, 0);
    for (int s = 0; s < all->slices; s++)
        for (int i = 0; i < slices[s].count; i++)
            panels->state_row[s * panels->state_count + i] = slices[s].row[i];
}

/* Dots' rows, one behind the other; a row may be there several times. */
static fetched_rows list_dots(const tile_rows *tile, int more, int *place)
{
    const fpa_cuda_rows *all = tile->rows;
    fetched_rows rows = start_fetched(tile->memory, 16 * all->dot_steps + more, place);
    for (int i = 0; i < 16 * all->dot_steps; i++) {
        const int row = tile->place[all->dot_rows[i]];
        rows.place[row] = rows.count;
        rows.row[rows.count++] = row;
    }
    return rows;
}

static void list_output(const tile_rows *keys, const tile_rows *queries, int *place, fpa_panel_rows *panels)
{
    const fpa_cuda_rows *all = keys->rows;
    const fetched_rows own = list_dots(keys, 0, place);
    forget_places(&own);
    fetched_rows of_queries = list_dots(queries, all->row_count + 1, place);
    panels->key_count = own.count;
    panels->key_row = own.row;
    panels->query_feature = array_of(keys->memory, panels->feature_count, 0);
    for (int i = 0; i < panels->feature_count; i++)
        panels->query_feature[i] = fetched_place(&of_queries, queries->place[all->factor_row[i]]);
    panels->query_count = of_queries.count;
    panels->query_row = of_queries.row;
}

/* ---- all of it ---- */

static bool has_matrices_of_heads(const fpa_plan *plan)
{
    bool found = false;
    for (int i = 0; i < plan->projection_count; i++)
        found = found || plan->head->matrices[plan->projections[i].matrix].per_head;
    return found;
}

void plan_panel_rows(const fpa_plan *plan, arena *memory, fpa_cuda_rows *rows)
{
    fpa_panel_rows *panels = &rows->panels;
    panels->raw_pitch = cuda_odd_pitch(round_up(plan->head->d, 16) * 2);
    panels->bytes = PANEL_TILE * panels->raw_pitch;
    panels->possible =
        rows->element == 2 && !plan->written->window && panels->bytes <= plan->target->shared_memory;
    if (!panels->possible)
        return;
    tile_rows tiles[2] = {start(plan, rows, memory, true), start(plan, rows, memory, false)};
    panels->tile = PANEL_TILE;
    panels->keys = place_all(&tiles[0]);
    panels->queries = place_all(&tiles[1]);
    panels->per_head = has_matrices_of_heads(plan);
    panels->feature_count = rows->factors * rows->features;
    list_rows(tiles, panels);
    int *place = array_of(memory, PANEL_NOWHERE + 1, -1);
    list_state(&tiles[0], place, panels);
    list_output(&tiles[0], &tiles[1], place, panels);
}

void geometry_panel_rows(const fpa_panel_rows *panels, struct fpa_cuda_geometry *g)
{
    g->kernel[CUDA_PACK_ROWS] = (struct fpa_cuda_block){CUDA_THREADS, panels->bytes, 0};
    g->panel_keys = panels->keys;
    g->panel_queries = panels->queries;
    g->pack_tokens = panels->tile;
    g->pack_operand = panels->pack_bytes;
    g->pack_chunks = panels->dense_tiles;
    g->pack_per_head = panels->per_head;
}

#define PANEL(member) FIELD(fpa_panel_rows, member)
#define LIST(name, member, counter) FIELD_ARRAY(fpa_panel_rows, name, member, counter, 1, 0)
const fpa_field panel_rows_fields[] = {PANEL(tile),
                                       PANEL(keys),
                                       PANEL(queries),
                                       PANEL(dense_tiles),
                                       PANEL(levels),
                                       PANEL(columns),
                                       PANEL(raw_pitch),
                                       LIST("dense_row", dense_row, dense_rows),
                                       LIST("dense_weight", dense_weight, dense_rows),
                                       LIST("key_dense", dense_place[0], dense_rows),
                                       LIST("query_dense", dense_place[1], dense_rows),
                                       LIST("key_place", place[0], copies),
                                       LIST("query_place", place[1], copies),
                                       LIST("key_weight", weight[0], copies),
                                       LIST("query_weight", weight[1], copies),
                                       LIST("key_diagonal", diagonal[0], copies),
                                       LIST("query_diagonal", diagonal[1], copies),
                                       FIELD_AS(fpa_panel_rows, "key_ones", ones[0]),
                                       FIELD_AS(fpa_panel_rows, "query_ones", ones[1]),
                                       FIELD_AS(fpa_panel_rows, "key_zeros", zeros[0]),
                                       FIELD_AS(fpa_panel_rows, "query_zeros", zeros[1]),
                                       PANEL(state_count),
                                       LIST("state_row", state_row, state_rows),
                                       LIST("state_feature", state_feature, feature_count),
                                       PANEL(key_count),
                                       LIST("key_row", key_row, key_count),
                                       PANEL(query_count),
                                       LIST("query_row", query_row, query_count),
                                       LIST("query_feature", query_feature, feature_count),
                                       FIELDS_END};
