/* plan_mechanisms: which rows of the table a plan is made of: the split, what goes beside it, and by what order. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "fused_packed.h"
#include "fused_rows.h"
#include "parts.h"
#include "split_outer.h"
#include "split_panel.h"

enum { NONE = -1 };

static bool has_role(int mechanism, fpa_role role)
{
    return mechanism != NONE && cuda_mechanisms[mechanism].role == role;
}

/* Coordinates as they lie take less than packed rows for warpgroups, and these less than portable kernels. Passes have the
 * columns of the split: rows as they lie those of warpgroups, where these suit, packed rows either's. A split that is forced has the
 * chunked form. */
static bool goes_with(const fpa_cuda_plan *cuda, int fused, fpa_cuda_mechanism split)
{
    if (fused == FUSED_ROWS)
        return split == (cuda->suited[SPLIT_OUTER].plan ? SPLIT_OUTER : SPLIT_PANEL);
    return fused == FUSED_PACKED || split == SPLIT_PANEL;
}

static int choose_fused(const fpa_cuda_plan *cuda, fpa_cuda_mechanism split, int forced)
{
    static const int best[] = {FUSED_COORDINATES, FUSED_ROWS, FUSED_PACKED, FUSED_PANEL};
    if (has_role(forced, ROLE_FUSED))
        return forced;
    for (int i = 0; i < 4 && !has_role(forced, ROLE_SPLIT); i++)
        if (cuda->suited[best[i]].plan && goes_with(cuda, best[i], split))
            return best[i];
    return NONE;
}

/* Beside a pass on coordinates, unless another mechanism shall have the chunked form alone. */
static bool takes_clusters(const fpa_cuda_plan *cuda, int forced)
{
    return cuda->suited[CLUSTER_SCAN].plan && !has_role(forced, ROLE_SPLIT) && !has_role(forced, ROLE_FUSED);
}

/* ---- plans ---- */

static void plan_rows(const fpa_cuda_inputs *in, int first, int end, fpa_suited *suited)
{
    for (int m = first; m < end; m++) {
        void *own = arena_alloc(in->memory, cuda_mechanisms[m].size);
        const char *why = cuda_mechanisms[m].plan(in, own);
        suited[m] = (fpa_suited){.plan = why ? NULL : own};
        snprintf(suited[m].why, WHY, "%s", why ? why : "");
    }
}

/* What goes with a split: rows that have its columns, and of fused ones the best, or none where `alone`. */
static void plan_beside(const fpa_cuda_inputs *in, fpa_cuda_mechanism split, int forced, bool alone,
                        fpa_cuda_plan *cuda)
{
    const fpa_split_panel *panel = cuda->suited[SPLIT_PANEL].plan;
    const fpa_split_outer *outer = cuda->suited[SPLIT_OUTER].plan;
    fpa_cuda_inputs own = *in;
    own.columns = split == SPLIT_OUTER ? &outer->columns : &panel->columns;
    own.suited = cuda->suited;
    plan_rows(&own, FUSED_PACKED, CUDA_MECHANISMS, cuda->suited);
    const int fused = alone ? NONE : choose_fused(cuda, split, forced);
    cuda->chosen[split] = true;
    if (fused != NONE)
        cuda->chosen[fused] = true;
    cuda->chosen[CLUSTER_SCAN] = !alone && split == SPLIT_PANEL && takes_clusters(cuda, forced);
    cuda->chosen[DECODE] = cuda->suited[DECODE].plan;
}

static bool is_possible(const fpa_cuda_plan *cuda, fpa_cuda_mechanism split, int forced)
{
    if (has_role(forced, ROLE_SPLIT))
        return split == (fpa_cuda_mechanism)forced && cuda->suited[split].plan;
    return cuda->suited[split].plan && (!has_role(forced, ROLE_FUSED) || goes_with(cuda, forced, split));
}

/* Of the split's blocks of columns: its own width; as many columns as the pass of packed rows, or that of rows as they lie, has sums for, where that is less, and
 * more than portable kernels have; or, where that is less than all, as many as a product has. */
typedef enum column_width { OWN_COLUMNS, NARROW_COLUMNS, ROWS_COLUMNS, WIDE_COLUMNS } column_width;

/* The order that measurements gave; what comes later has to be faster by more than the model errs by. */
typedef struct combination {
    fpa_cuda_mechanism split;
    bool alone; /* no pass of another mechanism, even if one suits */
    bool lifts; /* the pass on coordinates makes them itself */
    column_width width;
    bool features; /* rows of vectors are the features, for a pass on rows as they lie */
} combination;

enum { COMBINATIONS = 9 };
static const double clearly = 0.85; /* twice the median error of its predictions: docs/performance.md */
/* A split of the few tiles that linear heads have takes up to 1.5 times its prediction: linear heads of d = 160, dv = 64,
 * 0.64 and 0.74 ns at 4,096 and 65,536 tokens for 0.42 and 0.47 (docs/decisions/0028-operands-of-any-width.md). */
static const double clearly_of_few = 0.6;
/* Passes on rows as they lie after those on coordinates, and clusters: the median error of their predictions (docs/decisions/0099-ones-of-their-own.md). */
static const double clearly_of_rows = 0.95;
/* Gates and normalisers cost them less than is counted: d = 64, dv = 128 with a gate takes 0.89 and 0.93 of its prediction, where clusters that stay are
 * predicted to take 0.97 of that (docs/decisions/0109-pieces-of-linear-heads.md). */
static const double clearly_of_gated_rows = 1.05;
/* Where values have several blocks of columns passes of packed rows take 1.1 to 1.4 times their prediction, splits with product rows 1.3 times, features as rows once to 1.25 times theirs
 * (docs/decisions/0105-features-as-rows.md). */
static const double clearly_of_features = 1.2;

/* Blocks of all columns take 1.02 to 1.17 times as much of their prediction as narrower ones, whose blocks have more queries: the second-level cache is not
 * counted for them (docs/decisions/0106-all-columns-in-one-block.md). */
static const double clearly_of_wide = 0.92;

/* A split with product rows takes 1.3 to 1.5 times its prediction where it has few tiles (docs/decisions/0046-product-rows.md):
 * a combination after it has to be faster, without a margin. */
static bool has_product_rows(const fpa_cuda_plan *cuda, const combination *best)
{
    const fpa_split_outer *outer = cuda->suited[SPLIT_OUTER].plan;
    return best->split == SPLIT_OUTER && outer->product_count > 0;
}

static bool is_lone_split(const fpa_cuda_plan *best)
{
    bool passes = false;
    for (int m = 0; m < CUDA_MECHANISMS; m++)
        passes = passes || (best->chosen[m] && has_role(m, ROLE_FUSED));
    return best->chosen[SPLIT_OUTER] && !passes;
}

/* Of what is tried after the best one so far. */
static double margin(const fpa_plan *plan, const fpa_cuda_plan *best, const combination *first,
                     const fpa_cuda_plan *cuda, const combination *tried)
{
    if (tried->features && (best->chosen[FUSED_PACKED] || has_product_rows(best, first)))
        return cuda_columns(plan->head, SPLIT_MOST_COLUMNS).blocks > 1 ? clearly_of_features : 1;
    if (tried->lifts) /* against a kernel before it and the same products */
        return 1;
    if (tried->width == WIDE_COLUMNS && is_lone_split(best))
        return clearly_of_wide;
    if (has_product_rows(best, first) ||
        (tried->width == NARROW_COLUMNS && best->chosen[FUSED_PACKED])) /* the same pass with more columns */
        return 1;
    if (tried->split != SPLIT_OUTER || !best->suited[FUSED_COORDINATES].plan)
        return clearly;
    if (!cuda->chosen[FUSED_ROWS])
        return clearly_of_few;
    return plan->head->gate || plan->head->normalize != FPA_NORMALIZE_NONE ? clearly_of_gated_rows
                                                                           : clearly_of_rows;
}

static void order_combinations(const fpa_cuda_plan *cuda, combination list[COMBINATIONS])
{
    const bool outer = !cuda->suited[FUSED_PANEL].plan && !cuda->suited[FUSED_COORDINATES].plan;
    const fpa_cuda_mechanism first = outer ? SPLIT_OUTER : SPLIT_PANEL,
                             other = outer ? SPLIT_PANEL : SPLIT_OUTER;
    const combination order[COMBINATIONS] = {{.split = first},
                                             {.split = first, .alone = true},
                                             {.split = other},
                                             {.split = other, .alone = true},
                                             {.split = SPLIT_OUTER, .width = NARROW_COLUMNS},
                                             {.split = SPLIT_OUTER, .width = ROWS_COLUMNS},
                                             {.split = SPLIT_OUTER, .alone = true, .width = WIDE_COLUMNS},
                                             {.split = SPLIT_PANEL, .lifts = true},
                                             {.split = SPLIT_OUTER, .features = true}};
    memcpy(list, order, sizeof order);
}

/* Tiles of a block's columns, or 0: no other than the split's own. */
static int most_columns(const fpa_cuda_inputs *in, const fpa_cuda_plan *cuda, column_width width)
{
    const fpa_split_outer *own = cuda->suited[SPLIT_OUTER].plan;
    const fpa_split_panel *panel = cuda->suited[SPLIT_PANEL].plan;
    if (!own)
        return 0;
    const int fused =
        width == ROWS_COLUMNS ? fused_rows_columns(in->plan) : fused_packed_columns(in->plan, in->rows);
    if (width == WIDE_COLUMNS)
        return own->columns.blocks > 1 ? SPLIT_WIDE_COLUMNS - (own->columns.all - own->columns.tiles) : 0;
    return fused < own->columns.tiles && fused > panel->columns.tiles ? fused : 0;
}

/* The split of warpgroups in blocks of another width, or none. */
static void plan_width(const fpa_cuda_inputs *in, column_width width, fpa_cuda_plan *cuda)
{
    fpa_cuda_inputs own = *in;
    own.suited = cuda->suited;
    own.most_columns = most_columns(in, cuda, width);
    if (own.most_columns)
        plan_rows(&own, SPLIT_OUTER, SPLIT_OUTER + 1, cuda->suited);
    else
        cuda->suited[SPLIT_OUTER].plan = NULL;
}

/* The split of vectors whose rows are the features, or none. What reads its states for gradients has the head's own. */
static void plan_feature_rows_split(const fpa_cuda_inputs *in, fpa_cuda_plan *cuda)
{
    const fpa_split_outer *own_rows = cuda->suited[SPLIT_OUTER].plan;
    fpa_cuda_inputs own = *in;
    own.suited = cuda->suited;
    own.feature_rows = true;
    if (in->plan->target->warpgroups && !(own_rows && own_rows->contraction.groups))
        plan_rows(&own, SPLIT_OUTER, SPLIT_OUTER + 1, cuda->suited);
    else
        cuda->suited[SPLIT_OUTER].plan = NULL;
}

/* The pass on coordinates that makes them itself, or none. */
static void plan_lifting(const fpa_cuda_inputs *in, fpa_cuda_plan *cuda)
{
    fpa_cuda_inputs own = *in;
    own.suited = cuda->suited;
    own.lifts = true;
    plan_rows(&own, FUSED_COORDINATES, FUSED_COORDINATES + 1, cuda->suited);
    if (!cuda->suited[FUSED_COORDINATES].plan)
        cuda->suited[SPLIT_PANEL].plan = NULL;
}

/* Seconds of calls as trainers have them, by a plan that is put together for this alone; INFINITY: impossible. */
static double try_combination(const fpa_plan *plan, const fpa_cuda_inputs *in, const combination *tried,
                              int forced, fpa_cuda_plan *cuda)
{
    fpa_plan other = *plan;
    *cuda = plan->cuda;
    if (tried->width != OWN_COLUMNS)
        plan_width(in, tried->width, &other.cuda);
    else if (tried->lifts)
        plan_lifting(in, &other.cuda);
    else if (tried->features)
        plan_feature_rows_split(in, &other.cuda);
    if (!is_possible(&other.cuda, tried->split, forced))
        return INFINITY;
    plan_beside(in, tried->split, forced, tried->alone, &other.cuda);
    *cuda = other.cuda;
    if (forced != NONE && !cuda->suited[forced].plan) /* which says why, unless it suits the next one */
        return DBL_MAX;
    if (!plan->target->warpgroups || forced != NONE) /* nothing to choose: the first that is possible */
        return 0;
    if (tried->features && !cuda->chosen[FUSED_ROWS])
        return INFINITY;
    cuda_compose(&other);
    /* blocks of columns are chosen by what chunks take, too: it makes them no narrower */
    other.cuda.geometry.kernel[CUDA_PARALLEL_OUTPUT].threads = 0;
    return cuda_typical_seconds(&other);
}

static void choose_combination(fpa_plan *plan, const fpa_cuda_inputs *in, int forced)
{
    combination order[COMBINATIONS];
    fpa_cuda_plan best = plan->cuda;
    const combination *first = NULL; /* so far */
    double least = INFINITY;
    order_combinations(&plan->cuda, order);
    for (int i = 0; i < COMBINATIONS && least > 0; i++) {
        fpa_cuda_plan cuda;
        const double seconds = try_combination(plan, in, &order[i], forced, &cuda);
        if (seconds < (first ? margin(plan, &best, first, &cuda, &order[i]) : 1) * least) {
            least = seconds;
            first = &order[i];
            best = cuda;
        }
    }
    plan->cuda = best;
}

/* Passes on rows as they lie alone, where these are wanted and suit. */
static bool choose_turning(fpa_plan *plan, const fpa_cuda_inputs *in)
{
    const fpa_cuda_plan before = plan->cuda;
    if (!cuda_turns_anywhere(plan) || plan->score->dot_count != 1)
        return false;
    choose_combination(plan, in, FUSED_ROWS);
    const fpa_fused_rows *rows = plan->cuda.suited[FUSED_ROWS].plan;
    if (rows && plan->cuda.chosen[FUSED_ROWS] && !rows->packed)
        return true;
    plan->cuda = before;
    return false;
}

fpa_status plan_mechanisms(fpa_plan *plan, int forced, fpa_error *error)
{
    fpa_cuda_plan *cuda = &plan->cuda;
    const fpa_head *head = plan->head;
    fpa_cuda_inputs in = {.plan = plan, .rows = cuda->rows, .suited = cuda->suited, .memory = &plan->memory};
    plan_rows(&in, 0, FUSED_PACKED, cuda->suited);
    if (!cuda->suited[SPLIT_PANEL].plan) /* the last resort */
        return fail(error, FPA_UNSUPPORTED, head->origin, "head '%s' %s", head->name,
                    cuda->suited[SPLIT_PANEL].why);
    const bool turns = forced == NONE && choose_turning(plan, &in);
    if (!turns && (forced == NONE || forced >= FUSED_PACKED || cuda->suited[forced].plan))
        choose_combination(plan, &in, forced);
    if (forced != NONE && !cuda->suited[forced].plan)
        return fail(error, FPA_UNSUPPORTED, head->origin, "%s does not suit head '%s': %s",
                    cuda_mechanisms[forced].name, head->name, cuda->suited[forced].why);
    return FPA_OK;
}
