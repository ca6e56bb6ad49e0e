/* split_outer's lines of --dump=plan, its geometry for the launcher, and its fields for templates. */
#include <inttypes.h>

#include "split_outer.h"
#include "work.h"

static int count_parted(const fpa_outer_plan *outer)
{
    int count = 0;
    for (int g = 0; g < outer->groups; g++)
        count += outer->group_parts[g] > 1;
    return count;
}

static void print_tiles(FILE *out, const fpa_plan *plan, const fpa_outer_plan *outer)
{
    if (outer->rows)
        fprintf(out, "features     %" PRId64 ", each a packed row, in %d tiles of %d\n", plan->features,
                outer->tiles, OUTER_TILE);
    else
        fprintf(out,
                "features     %" PRId64 ", in %d tiles of %d: %d groups with 8 prefixes of %d factor%s each "
                "(%.0f %% of slots are used)\n",
                plan->features, outer->tiles, OUTER_TILE, outer->groups, outer->prefix_factors,
                outer->prefix_factors == 1 ? "" : "s",
                100.0 * (double)plan->features / (outer->tiles * OUTER_TILE));
    if (outer->folded)
        fprintf(out,
                "folded       %d tiles are products of a block of rows with itself; copies of the state keep "
                "%d rows of each\n",
                outer->folded, OUTER_FOLDED);
    if (outer->parted)
        fprintf(out, "parted       %d groups with few prefixes: their tiles have two or four suffix blocks\n",
                count_parted(outer));
    fprintf(out, "vectors      %d blocks of 8 rows a token, %s\n", outer->row_blocks,
            outer->given_rows                ? "packed by pack_rows, except for coordinates:"
            : !outer->coordinates            ? "packed by pack_rows"
            : outer->vector_box < OUTER_TILE ? "read as stored in memory, followed by ones"
                                             : "read as stored in memory");
    if (outer->given_rows)
        fprintf(out,
                "given        %d of the rows, coordinates from number %d on, are read from q and k as stored "
                "in memory\n",
                outer->given_rows, outer->given_first + 1);
    fprintf(out, "strips       %d, of up to %d tiles of a group\n", outer->strips, outer->strip_length);
}

void print_split_outer(FILE *out, const fpa_plan *plan)
{
    const fpa_split_outer *split = plan->cuda.split_outer;
    print_tiles(out, plan, &split->outer);
    if (split->product_factors)
        fprintf(out,
                "products     %d rows of a vector are products of up to %d rows; score: %d dot%s of %d rows "
                "with padding%s\n",
                split->product_count, split->product_factors, split->dots, split->dots == 1 ? "" : "s",
                OUTER_STEP * split->dot_steps, split->dots_in_turn ? ", two at a time" : "");
    for (int i = 0; i < split->kernels; i++) {
        const fpa_chunk_state_kernel *kernel = &split->state[i];
        fprintf(
            out,
            "chunk_state  %d blocks a head of %d warpgroups x %d tiles, %d stages of 64 keys; %.1f KiB of "
            "shared memory%s\n",
            kernel->slices * split->columns.blocks, kernel->groups,
            kernel->strips * split->outer.strip_length, kernel->stages, kernel->bytes / 1024.0,
            i ? " (few heads)" : "");
    }
    fprintf(out,
            "chunk_output %d queries a block of %d warpgroups, persistent blocks; stages: %d of queries, %d "
            "of tiles, %d of keys",
            split->query_tokens, split->output_groups, split->query_stages, split->tile_stages,
            split->most_key_stages);
    if (split->most_key_stages > split->key_stages)
        fprintf(out, " (%d among tiles)", split->most_key_stages - split->key_stages);
    fprintf(out, "; %.1f KiB of shared memory\n", split->output_bytes / 1024.0);
    const fpa_parallel_output *p = &split->parallel;
    if (p->tiles)
        fprintf(out,
                "parallel_output %d queries a block of %d warpgroup%s for scores and %d for values, "
                "persistent blocks; stages: %d of queries, %d of keys, %d of values, %d of scores; %.1f KiB "
                "of shared memory\n",
                64 * p->tiles, p->score_groups, p->score_groups > 1 ? "s" : "", p->value_groups,
                p->query_stages, p->key_stages, p->value_stages, p->score_stages, p->bytes / 1024.0);
    if (split->contraction.groups)
        fprintf(
            out,
            "contraction  %d queries a block, persistent blocks; stages: %d of queries, %d of tiles, %d of "
            "keys; %.1f KiB of shared memory\n",
            64 * split->contraction.groups, split->contraction.own_stages, split->contraction.tile_stages,
            split->contraction.key_stages, split->contraction.bytes / 1024.0);
}

void geometry_split_outer(const fpa_plan *plan, struct fpa_cuda_geometry *g)
{
    const fpa_split_outer *split = plan->cuda.split_outer;
    const fpa_chunk_state_kernel *large = &split->state[0], *small = &split->state[1];
    g->kernel[CUDA_CHUNK_STATE] = (struct fpa_cuda_block){large->threads, large->bytes, 1};
    if (split->kernels > 1)
        g->kernel[CUDA_CHUNK_STATE_SMALL] = (struct fpa_cuda_block){small->threads, small->bytes, 1};
    g->kernel[CUDA_CHUNK_OUTPUT] =
        (struct fpa_cuda_block){WARPGROUP_THREADS * (split->output_groups + 1), split->output_bytes, 1};
    if (split->parallel.tiles) {
        const int groups = split->parallel.score_groups + split->parallel.value_groups;
        g->kernel[CUDA_PARALLEL_OUTPUT] =
            (struct fpa_cuda_block){WARPGROUP_THREADS * (groups + 1), split->parallel.bytes, 1};
        g->parallel_tokens = 64 * split->parallel.tiles;
    }
    if (!split->outer.coordinates) {
        g->kernel[CUDA_PACK_ROWS] = (struct fpa_cuda_block){split->pack.threads, split->pack.bytes, 1};
        g->pack_tokens = split->pack.groups * pack_tile(&split->pack);
    }
    if (split->leaves_dots)
        g->kernel[CUDA_STATE_PRODUCT] = (struct fpa_cuda_block){PRODUCT_THREADS, 0, 0};
    if (split->contraction.groups) {
        g->kernel[CUDA_CHUNK_CONTRACTION] = (struct fpa_cuda_block){
            WARPGROUP_THREADS * (split->contraction.groups + 1), split->contraction.bytes, 1};
        g->contraction_tokens = 64 * split->contraction.groups;
        g->contraction_keys = split->contraction.keys;
        g->contraction_dots = split->contraction.set_count > 1 ? split->contraction.set_count : 1;
        g->contraction_values = split->contraction.values;
        g->contraction_turns = split->contraction.turns;
    }
    g->decays = plan->head->gate;
    g->value_width = plan->head->dv;
    g->value_box = split->value_box;
    g->value_room = split->value_room;
    g->vector_rows = split->outer.vector_rows;
    g->vector_box = split->outer.vector_box;
    g->given_first = split->outer.given_first;
    g->given_rows = split->outer.given_rows;
    if (!split->outer.coordinates && split->pack.chunks && !split->pack.kept) {
        g->pack_chunks = split->pack.chunks;
        g->pack_operand = split->pack.chunks * split->pack.chunk_bytes;
        g->pack_per_head = split->pack.per_head;
    }
    g->chunk_state_slices = large->slices;
    g->small_state_slices = split->kernels > 1 ? small->slices : 0;
    g->persistent = 1;
    work_split_outer(split->seen ? split->seen : plan, split, g);
}

#define PACK(member) FIELD_AS(fpa_split_outer, "pack_" #member, pack.member)
#define KERNEL(member) FIELD(fpa_chunk_state_kernel, member)
static const fpa_field kernel_fields[] = {
    KERNEL(groups),
    KERNEL(strips),
    KERNEL(slices),
    KERNEL(slabs),
    FIELD_ARRAY(fpa_chunk_state_kernel, "slab_mask", slab_mask, slices, 1, 0),
    KERNEL(stages),
    KERNEL(bytes),
    KERNEL(places),
    KERNEL(ahead),
    KERNEL(early),
    KERNEL(shares),
    KERNEL(layers),
    KERNEL(leaving),
    KERNEL(prefix_blocks),
    KERNEL(own),
    KERNEL(portion),
    KERNEL(threads),
    KERNEL(registers),
    KERNEL(producer_registers),
    FIELDS_END};

#define PAIR(member) FIELD(fpa_contracted_pair, member)
static const fpa_field pair_fields[] = {PAIR(first),     PAIR(blocks),  PAIR(other_first), PAIR(other_blocks),
                                        PAIR(weight),    PAIR(place),   PAIR(other_place), PAIR(sum),
                                        PAIR(other_sum), PAIR(swapped), FIELDS_END};
#define SET(member) FIELD(fpa_contracted_set, member)
static const fpa_field set_fields[] = {SET(pair),          SET(end_pair), SET(group), SET(end_group),
                                       SET(blocks),        SET(steps),    SET(slabs), SET(holds_values),
                                       SET(holds_queries), SET(written),  FIELDS_END};

#define SPLIT(member) FIELD(fpa_split_outer, member)
#define CONTRACTION(member) FIELD_AS(fpa_split_outer, "contraction_" #member, contraction.member)
#define PARALLEL(member) FIELD_AS(fpa_split_outer, "parallel_" #member, parallel.member)
#define OUTER(member) FIELD_AS(fpa_split_outer, #member, outer.member)
#define TABLE(name, member, counter, times, more)                                                            \
    FIELD_ARRAY(fpa_split_outer, name, member, counter, times, more)
const fpa_field split_outer_fields[] = {
    OUTER(used), OUTER(rows),
    /* strips and groups */
    FIELD_AS(fpa_split_outer, "strip", outer.strip_length), OUTER(strips), OUTER(own_strips),
    TABLE("strip_tile", strip_tile, strip_tiles, 1, 0),
    TABLE("strip_group", outer.strip_group, outer.strips, 1, 0), OUTER(groups), OUTER(prefix_factors),
    TABLE("group_first", outer.group_first, outer.groups, 1, 1),
    TABLE("prefix", outer.prefix, prefixes, 1, 0),
    TABLE("prefix_kind", prefix_kind, outer.prefix_factors, 1, 0),
    /* tiles */
    OUTER(tiles), OUTER(folded), OUTER(copy_rows), TABLE("tile_suffix", outer.tile_suffix, outer.tiles, 1, 0),
    TABLE("tile_quarter", outer.tile_quarter, outer.tiles, OUTER_QUARTERS, 0),
    TABLE("group_parts", outer.group_parts, outer.groups, 1, 0), OUTER(parted), OUTER(cut),
    TABLE("feature", outer.feature, outer.tiles, OUTER_TILE, 0),
    TABLE("state_weight", outer.weight, outer.tiles, OUTER_TILE, 0),
    TABLE("copy_weight", outer.copied, outer.tiles, OUTER_TILE, 0), OUTER(weighted), OUTER(powers),
    OUTER(padded),
    /* vectors and dots */
    OUTER(row_blocks), OUTER(vector_rows), OUTER(given_rows), OUTER(given_first), OUTER(given_slab),
    OUTER(vector_box), OUTER(coordinates), TABLE("source", source, outer.row_blocks, OUTER_BLOCK, 0),
    TABLE("product_row", product_row, product_entries, 1, 0), SPLIT(product_factors),
    SPLIT(products_weighted), TABLE("product_weight", product_weight, product_weights, 1, 0),
    SPLIT(queries_weighted), TABLE("query_weight", query_weight, product_weights, 1, 0),
    TABLE("dot_degree", dot_degree, dots, 1, 0), TABLE("monomial_weight", monomial_weight, monomials, 1, 0),
    TABLE("monomial_power", monomial_power, powers, 1, 0), TABLE("dot_first", outer.dot_first, dots, 1, 1),
    TABLE("dot_step", outer.dot_step, dot_steps, 1, 0),
    /* kernels */
    FIELD_PARTS(fpa_split_outer, "state", state, kernels, kernel_fields, false), SPLIT(query_stages),
    SPLIT(dots_in_turn), SPLIT(turn_keys), SPLIT(score_places), SPLIT(tile_stages), SPLIT(key_stages),
    SPLIT(most_key_stages), SPLIT(leaves_dots), SPLIT(partial_slabs), SPLIT(ones_behind), SPLIT(value_room),
    FIELD_AS(fpa_split_outer, "chunk_output_groups", output_groups),
    FIELD_AS(fpa_split_outer, "chunk_output_registers", output_registers),
    FIELD_AS(fpa_split_outer, "chunk_output_producer_registers", output_producer_registers), PARALLEL(tiles),
    PARALLEL(score_groups), PARALLEL(value_groups), PARALLEL(together), PARALLEL(query_stages),
    PARALLEL(key_stages), PARALLEL(value_stages), PARALLEL(score_stages), PARALLEL(score_registers),
    PARALLEL(value_registers), PARALLEL(producer_registers),
    FIELD_AS(fpa_split_outer, "turns", contraction.turns), CONTRACTION(groups), CONTRACTION(states),
    CONTRACTION(held), CONTRACTION(values), CONTRACTION(ones), CONTRACTION(own_stages),
    CONTRACTION(key_stages), CONTRACTION(tile_stages), CONTRACTION(registers),
    CONTRACTION(producer_registers), CONTRACTION(two_tiles), CONTRACTION(keys), CONTRACTION(lone_key_stages),
    FIELD_PARTS(fpa_split_outer, "contraction_pairs", contraction.pairs, contraction.pair_count, pair_fields,
                true),
    FIELD_PARTS(fpa_split_outer, "contraction_sets", contraction.sets, contraction.set_count, set_fields,
                true),
    PACK(groups), PACK(warps), PACK(stages), PACK(raw_pitch), PACK(pitch), PACK(chunks), PACK(chunk_rows),
    PACK(chunk_places), PACK(kept), PACK(parts), PACK(narrows), PACK(given),
    TABLE("pack_place", pack.place, pack.places, 1, 0),
    TABLE("pack_block", pack.block, pack.blocks_of_vector, 1, 0),
    FIELD_AS(fpa_split_outer, "pack_formed", pack.first_formed), FIELDS_END};
