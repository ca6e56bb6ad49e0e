#include <inttypes.h>
#include <stdio.h>

#include "gen/plan/facts.h"

/* Units whose factors have one fragment in common load it once. */
static void print_factors(FILE *out, const fpa_cuda_plan *cuda)
{
    fprintf(out, "factors      %d of a feature;", cuda->factors);
    for (int l = 0; l < cuda->factors; l++)
        fprintf(out, " %s%d", l ? "then " : "fragments loaded for units by ", cuda->shared[l]);
    fputc('\n', out);
}

/* The portable kernels' blocks. */
static void print_blocks(FILE *out, const fpa_plan *plan)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    fprintf(out,
            "features     %" PRId64 ", in %d units of %d: a loop over units, driven by a table of rows\n",
            plan->features, cuda->units, CUDA_UNIT);
    print_factors(out, cuda);
    fprintf(out,
            "chunk_state  %d blocks a head, each warp %d units; %d keys a panel; %.1f KiB of shared memory\n",
            cuda->slices * cuda->column_blocks, cuda->warp_units, cuda->panel, cuda->state.size / 1024.0);
    fprintf(out, "chunk_output %d a block, %d a warp; %.1f KiB of shared memory\n", cuda->query_tokens,
            16 * cuda->query_tiles, cuda->chunk_output.size / 1024.0);
}

/* The blocks of the kernels for warpgroups. */
static void print_warpgroups(FILE *out, const fpa_plan *plan)
{
    const fpa_outer_plan *outer = &plan->outer;
    const fpa_split_plan *groups = &plan->warpgroups;
    fprintf(
        out,
        "features     %" PRId64
        ", in %d tiles of %d: %d groups with 8 prefixes of %d factor%s each (%.0f %% of slots are used)\n",
        plan->features, outer->tiles, OUTER_TILE, outer->groups, outer->prefix_factors,
        outer->prefix_factors == 1 ? "" : "s", 100.0 * (double)plan->features / (outer->tiles * OUTER_TILE));
    if (outer->folded)
        fprintf(
            out,
            "folded       %d of the tiles, of a block's rows times themselves: copies have %d rows of each\n",
            outer->folded, OUTER_FOLDED);
    fprintf(out, "vectors      %d blocks of 8 rows a token, %s\n", outer->row_blocks,
            outer->coordinates ? "read as they lie" : "packed by a kernel of its own");
    fprintf(out, "strips       %d, of up to %d tiles of a group\n", outer->strips, outer->strip_length);
    for (int i = 0; i < groups->kernels; i++) {
        const fpa_chunk_state_kernel *kernel = &groups->state[i];
        fprintf(
            out,
            "chunk_state  %d blocks a head of %d warpgroups x %d tiles, %d stages of 64 keys; %.1f KiB of "
            "shared memory%s\n",
            kernel->slices * plan->cuda.column_blocks, kernel->groups, kernel->strips * outer->strip_length,
            kernel->stages, kernel->bytes / 1024.0, i ? " (few heads)" : "");
    }
    fprintf(out,
            "chunk_output %d a block of %d warpgroups, persistent blocks; stages: %d of queries, %d of "
            "tiles, %d of "
            "keys; %.1f KiB of shared memory\n",
            groups->query_tokens, groups->chunk_output_groups, groups->query_stages, groups->tile_stages,
            groups->key_stages, groups->chunk_output_bytes / 1024.0);
    const fpa_chunk_state_kernel *walk = &groups->state[0];
    fprintf(out,
            "overlap      chunk_output runs beside chunk_state, on multiprocessors of its own: about %d "
            "clocks for "
            "16 keys "
            "of a head, %d for 16 queries (few heads: segments, queries afterwards)\n",
            walk->slices * plan->cuda.column_blocks * walk->clocks,
            plan->cuda.column_blocks * groups->chunk_output_clocks);
}

static void print_path(FILE *out, const fpa_plan *plan)
{
    if (plan->outer.used)
        fprintf(out, "path         warpgroups: wgmma, one more warpgroup fetches\n");
    else if (plan->target->warpgroups)
        fprintf(out, "path         portable: %s\n", plan->outer.why);
}

/* What the four warpgroups of a block do, with queries and for totals of segments. */
static void print_fused_packed(FILE *out, const fpa_fused_packed_plan *fused)
{
    const int adders = fused->key_groups * fused->total_parts;
    fprintf(
        out,
        "fused_chunk  chunked: 1 warpgroup packs, %d hold%s %d tiles of 64 features each, %d read%s them; "
        "totals of segments: %d pack%s, %d add%s up keys; stages: %d of 64 tokens, %d of values, %d of raw "
        "vectors; %.1f KiB of shared memory\n",
        fused->key_groups, fused->key_groups == 1 ? "s" : "", fused->key_tiles, fused->query_groups,
        fused->query_groups == 1 ? "s" : "", fused->total_packers, fused->total_packers == 1 ? "s" : "",
        adders, adders == 1 ? "s" : "", fused->panels, fused->values, fused->raw_stages,
        fused->bytes / 1024.0);
}

/* Whether the chunked form of sm_90a is one pass. */
static void print_fused(FILE *out, const fpa_plan *plan)
{
    const fpa_fused_packed_plan *fused = &plan->fused_packed;
    if (fused->used)
        print_fused_packed(out, fused);
    else if (plan->cuda.fused_coordinates)
        fprintf(out,
                "fused_chunk  chunked: blocks of one warpgroup, %d panels of 64 tokens on their way; %.1f "
                "KiB of shared memory\n",
                plan->cuda.fused_stages, plan->cuda.fused.size / 1024.0);
    else if (plan->target->warpgroups)
        fprintf(out, "fused_chunk  no: %s\n", fused->why);
}

/* Of heads whose chunked form is one pass on the coordinates. */
static void print_cluster_scan(FILE *out, const fpa_plan *plan)
{
    const fpa_cluster_scan_plan *cluster_scan = &plan->cluster_scan;
    if (cluster_scan->used)
        fprintf(
            out,
            "cluster_scan chunked, where sequences are few: blocks take %d tokens in turn and hand the state "
            "on, %d places for them; %.1f KiB of shared memory\n",
            CLUSTER_SCAN_SPAN, cluster_scan->spans, cluster_scan->bytes / 1024.0);
    else if (plan->cuda.fused_coordinates && !plan->fused_packed.used)
        fprintf(out, "cluster_scan no: %s\n", cluster_scan->why);
}

void plan_print_cuda(FILE *out, const fpa_plan *plan)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    const fpa_head *head = plan->head;
    const char *type = dtype_name(plan->facts.arithmetic);
    fprintf(out, "target       %s: products in %s%s, sums in fp32\n", plan->target->name, type,
            cuda->element == 2                      ? " on tensor cores"
            : head->products == FPA_PRODUCTS_TF32X3 ? " on tensor cores, as three of tf32"
                                                    : ", plainly");
    print_path(out, plan);
    if (!plan->outer.used || !plan->outer.coordinates)
        fprintf(out, "rows         %d a token in shared memory: %d coordinates, %d projected, %d weighted\n",
                cuda->row_count, head->d, plan->row_count - head->d - 1 - plan->weighted_count,
                plan->weighted_count);
    fprintf(out, "columns      %d block%s of %d tiles of 8%s\n", cuda->column_blocks,
            cuda->column_blocks == 1 ? "" : "s", cuda->column_tiles,
            head->normalize ? " and one of the normaliser" : "");
    if (plan->outer.used)
        print_warpgroups(out, plan);
    else
        print_blocks(out, plan);
    print_fused(out, plan);
    print_cluster_scan(out, plan);
    fprintf(out, "chunk        %d tokens%s\n", plan->chunk,
            !head->chunk                 ? ""
            : head->chunk == plan->chunk ? " (as the spec says)"
                                         : " (as the spec says, rounded up to whole blocks)");
    plan_print_costs(out, plan);
    plan_print_score(out, plan);
}
