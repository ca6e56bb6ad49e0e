#include "passes.h"

#include "base/round.h"
#include "machine/cuda_passes.h"
#include "passes_contracted.h"
#include "passes_parts.h"

enum {
    PIECE = 8,        /* elements of 2 bytes in 16 bytes */
    MOST_WIDTH = 520, /* elements of a row, if not divided into parts, that kernels of warpgroups can read */
};

/* The most multiplications of a pass of rows, relative to the forward pass. With two passes of rows and one of
 * values, gradients then take about 6 forward passes; kernels of gradients with contraction in registers took 12
 * to 20 on an H200 (docs/decisions/0032). */
static const double most_work = 2.5;

/* The same for f16 heads with bf16 passes, which copy all operands and are less exact: on an H200 a line (work
 * 1.0) took 3.6 ns by passes and 5.1 without, a cube (2.4) 28.3 and 26.7 (docs/decisions/0113). */
static const double most_widened = 1.5;

static bool is_whole(const fpa_branch *dot, int d)
{
    if (dot->source != FPA_INPUT || dot->width != d)
        return false;
    for (int w = 0; w < d; w++)
        if (dot->row[w] != w || (dot->gram && !number_is_one(dot->gram[w])))
            return false;
    return true;
}

/* Whether a dot consists of coordinates, each at most once, possibly with weights. */
static bool is_weighed(const fpa_branch *dot, int d)
{
    for (int w = 0; w < dot->width; w++)
        for (int other = 0; other < w; other++)
            if (dot->row[w] == dot->row[other])
                return false;
    return dot->source == FPA_INPUT && dot->width <= d;
}

static int power_of(const fpa_score *score, int m)
{
    return score->monomials[m].power[0];
}

static bool has_slope(const fpa_score *score)
{
    for (int m = 0; m < score->monomial_count; m++)
        if (power_of(score, m) > 1)
            return true;
    return false;
}

/* The number of features of f'. */
static double row_monomials(const fpa_simplified *simple)
{
    double monomials = 0;
    for (int m = 0; m < simple->score.monomial_count; m++) {
        const int power = power_of(&simple->score, m);
        monomials += power ? monomial_count(simple->head->d, power - 1) : 0;
    }
    return monomials;
}

/* Multiplications of a pass of rows relative to the forward pass: features of f' (g.v + h) times d columns, over
 * features of f times dv columns. With fewer than LEAST columns, forming features takes the time. */
static double work(const fpa_simplified *simple)
{
    enum { LEAST = 32 };
    const fpa_head *head = simple->head;
    const int values = head->dv + (head->normalize != FPA_NORMALIZE_NONE);
    return row_monomials(simple) * values * (head->d < LEAST ? LEAST : head->d) /
           (head_features(head) * (head->dv < LEAST ? LEAST : head->dv));
}

/* Whether passes in the parallel form are faster than the other kernels of gradients up to sequences of some
 * thousands of tokens, and a pair of tokens costs not much more in a pass of rows than in the head itself. */
static bool parallel_suits(const fpa_simplified *simple)
{
    enum { LEAST_LENGTH = 3072 };
    const fpa_head *head = simple->head;
    return cuda_pass_feature_clocks((double)head_features(head)) >=
               LEAST_LENGTH * passes_pair_clocks(head, &simple->score) &&
           2.0 * head->d + head->dv <= most_work * (head->d + head->dv);
}

static bool is_line(const fpa_score *score)
{
    return score->dot_count == 1 && score->monomial_count == 1 && power_of(score, 0) == 1;
}

/* Whether the kernel is one dot of some of the coordinates, or with weights, which is treated as the dot of all
 * coordinates with weights, some of which may be 0. */
static bool is_weighted(const fpa_simplified *simple)
{
    return simple->score.dot_count == 1 && !is_whole(&simple->score.dots[0], simple->head->d);
}

/* Weights of coordinates are applied to keys when they are gathered, or to the outputs of the pass of rows: with a
 * gate and without a normaliser, where fused_rows computes that pass. In the latter case q and k are read as
 * given, so that all dot products use the same numbers. A normalised head cannot do so, since its pass of values
 * is a head without weights. */
static bool weighs_outputs(const fpa_simplified *simple)
{
    return is_weighted(simple) && simple->head->gate && simple->head->normalize == FPA_NORMALIZE_NONE;
}

static bool weighs_keys(const fpa_simplified *simple)
{
    return is_weighted(simple) && !weighs_outputs(simple);
}

/* A normalised line has 1 / n and h beside its tokens (call.numbers) where rows [g, h] would need several parts
 * (passes_parts_are_full); and in f16 heads of whole pieces, where rows would have to be gathered as bf16: states are
 * scaled by powers of two to stay in the range of f16 (docs/decisions/0141). */
static bool has_numbers(const fpa_simplified *simple)
{
    const fpa_head *head = simple->head;
    return is_line(&simple->score) && !is_weighted(simple) && head->normalize != FPA_NORMALIZE_NONE &&
           (head->dtype == FPA_F16 ? passes_parts_have_columns(head->d, head->dv)
                                   : passes_parts_are_full(head->dv));
}

/* In f16, h is also in columns after queries and keys: f16 products are exact enough to subtract what keys
 * contribute to gates' gradients from what queries contribute, although each is computed separately. */
static bool has_columns(const fpa_simplified *simple)
{
    return has_numbers(simple) && simple->head->dtype == FPA_F16;
}

/* Whether passes of an f16 head are bf16: d_o / n may be out of f16's range, and kernels store dots of f16 outputs
 * only if the kernel is a line. */
static bool widens(const fpa_simplified *simple)
{
    const fpa_head *head = simple->head;
    return head->dtype == FPA_F16 && ((head->normalize != FPA_NORMALIZE_NONE && !has_numbers(simple)) ||
                                      (head->gate && !is_line(&simple->score)));
}

static bool is_quadratic(const fpa_score *score)
{
    return passes_degree(score) == 2;
}

/* Whether gradients are contractions of pairs in the parallel form, which has no state: the degree is above 2. */
static bool contracts_pairs(const fpa_simplified *simple)
{
    return passes_degree(&simple->score) > 2 && contraction_pairs_fit(simple->head->d);
}

/* Whether passes of rows take too many multiplications in the chunked form. */
static bool is_parallel(const fpa_simplified *simple)
{
    return work(simple) > (contracts_pairs(simple) && widens(simple) ? most_widened : most_work);
}

/* Whether the kernel is a sum of products of two dots (pairs.h), whose rows have been made and arranged for that. */
static bool is_pairs(const fpa_simplified *simple)
{
    return simple->made && pairs_suit(simple) && pairs_lie_apart(&simple->score, simple->head->d);
}

/* Whether the kernel has several dots, so that operands of passes consist of product rows (pairs.h). */
static bool is_formed(const fpa_simplified *simple)
{
    return !is_pairs(simple) && halves_suit(simple);
}

/* Whether gradients of q and k can be contractions; for a kernel of degree 2, without regard to a gate, with which
 * the pass of values is a separate head anyway. */
static bool is_contracted(const fpa_simplified *simple)
{
    const fpa_head *head = simple->head;
    const bool normalized = head->normalize != FPA_NORMALIZE_NONE;
    return is_pairs(simple) || is_formed(simple) || contracts_pairs(simple) ||
           (is_quadratic(&simple->score) &&
            contraction_sums_fit(head->d, round_up(head->dv + normalized, PIECE), false));
}

/* Whether the kernel is a sum of several powers, for which a contraction processes more tiles than the forward
 * pass has. */
static bool is_sum(const fpa_simplified *simple)
{
    return simple->score.dot_count == 1 && simple->score.monomial_count > 1;
}

static bool is_gated_line(const fpa_head *head)
{
    return head->gate && head->term_count == 1 && head->terms[0].branch_count == 1;
}

bool passes_by_rows(const fpa_head *head, fpa_pass pass)
{
    return head->numbers || head->adds || (pass == PASS_ROWS && is_gated_line(head));
}

bool passes_leaves_dots(const fpa_head *head, fpa_pass pass)
{
    return head->gate && !is_gated_line(head) && pass == PASS_VALUES;
}

/* Whether the chunked form uses passes of rows, and the parallel form contractions. */
static bool has_both(const fpa_simplified *simple, int values)
{
    return contracts_pairs(simple) ? !is_parallel(simple)
                                   : is_contracted(simple) && contraction_of_few(simple->score.monomial_count,
                                                                                 values, simple->head->gate);
}

fpa_pass_rows passes_rows(const fpa_simplified *simple)
{
    const fpa_head *head = simple->head;
    const int first = is_formed(simple) ? halves_width(simple) : round_up(head->d, PIECE);
    const bool last = head->normalize != FPA_NORMALIZE_NONE && !has_numbers(simple);
    const int values = round_up(head->dv + last, PIECE);
    const fpa_pass_parts parts = passes_parts(values, is_line(&simple->score));
    const bool whole = (head->gate && !is_line(&simple->score)) || is_contracted(simple);
    const bool power = !is_pairs(simple) && !is_formed(simple);
    return (fpa_pass_rows){.values = first,
                           .width = first + (parts.count > 1 ? parts.count * parts.width : values),
                           .parts = parts.count,
                           .part = parts.width,
                           .columns = whole ? values : head->dv,
                           .input = has_slope(&simple->score) ? 0 : first,
                           .line = is_line(&simple->score),
                           .weighted = weighs_keys(simple),
                           .numbers = has_numbers(simple),
                           .beside = has_columns(simple),
                           .formed = is_formed(simple),
                           .both = power && has_both(simple, values),
                           .slopes = power ? row_monomials(simple) : 0,
                           .parallel = power && is_parallel(simple),
                           .weighs = weighs_outputs(simple),
                           .widened = widens(simple)};
}

void passes_weigh(const fpa_score *score, int d, double *weight)
{
    const fpa_branch *dot = &score->dots[0];
    for (int i = 0; i < d; i++)
        weight[i] = 0;
    for (int w = 0; w < dot->width; w++)
        weight[dot->row[w]] = score->monomials[0].weight.value * (dot->gram ? dot->gram[w].value : 1);
}

bool coordinates_fit(const fpa_head *head)
{
    enum { STEP = 16, MOST = 128 };
    return head->d % STEP == 0 && head->dv % STEP == 0 && head->d <= MOST && head->dv <= MOST;
}

/* Whether every operand of passes would be a copy: linear attention with a gate or a normaliser, for which there
 * are kernels that read q, k, v and d_o as given. */
static bool copies_all(const fpa_simplified *simple)
{
    const fpa_head *head = simple->head;
    const fpa_score *score = &simple->score;
    return (head->gate || head->normalize != FPA_NORMALIZE_NONE) && head->dtype == FPA_BF16 &&
           is_line(score) && number_is_one(score->monomials[0].weight) && !is_weighted(simple) &&
           coordinates_fit(head);
}

/* Whether target, type, mask, lift and window allow passes. */
static bool may_pass(const fpa_head *head, const fpa_head *written, const fpa_target *target)
{
    return target->warpgroups && dtype_size(head->dtype) == 2 && head->causal && !written->lift &&
           !written->window;
}

bool passes_suit_lines(const fpa_head *head, const fpa_head *written, const fpa_target *target)
{
    return may_pass(head, written, target) &&
           (head->dtype == FPA_BF16 || head->normalize == FPA_NORMALIZE_NONE);
}

/* Whether an f16 head would need bf16 passes that take too long, and no contraction can replace the passes of
 * rows. */
static bool widens_in_vain(const fpa_simplified *simple)
{
    const fpa_head *head = simple->head;
    const int values = round_up(head->dv + (head->normalize != FPA_NORMALIZE_NONE), PIECE);
    const bool contracted = is_contracted(simple) || (is_quadratic(&simple->score) &&
                                                      contraction_sums_fit(head->d, values, head->gate));
    return widens(simple) && !contracted && work(simple) > most_widened;
}

bool passes_suit(const fpa_simplified *simple, const fpa_head *written, const fpa_target *target)
{
    const fpa_head *head = simple->head;
    const fpa_score *score = &simple->score;
    if (!may_pass(head, written, target))
        return false;
    if (is_pairs(simple) || is_formed(simple))
        return true;
    if (score->dot_count != 1 ||
        !(is_whole(&score->dots[0], head->d) || (is_line(score) && is_weighed(&score->dots[0], head->d))))
        return false;
    if (copies_all(simple))
        return false;
    if (widens_in_vain(simple))
        return false;
    const fpa_pass_rows rows = passes_rows(simple);
    return (rows.parts > 1 || rows.width - rows.input <= MOST_WIDTH) && work(simple) > 0 &&
           (!rows.parallel || parallel_suits(simple));
}

/* ---- the heads ---- */

static void set_branch(fpa_head *head, fpa_branch *branch, int first, int width)
{
    branch->kind = first == 0 && width == head->d ? FPA_BRANCH_IDENTITY : FPA_BRANCH_SELECT;
    branch->source = FPA_INPUT;
    branch->width = width;
    branch->row = arena_array(&head->memory, (size_t)width, sizeof *branch->row);
    for (int w = 0; w < width; w++)
        branch->row[w] = first + w;
}

/* Adds the term weight * s^power, times the dot of `width` rows from `first` on; width 0: without that dot. */
static void add_term(fpa_head *head, fpa_number weight, int power, int d, int first, int width)
{
    const int count = power + (width > 0);
    fpa_branch *branches = arena_array(&head->memory, (size_t)count, sizeof *branches);
    for (int b = 0; b < power; b++)
        set_branch(head, &branches[b], 0, d);
    if (width)
        set_branch(head, &branches[power], first, width);
    head->terms[head->term_count++] = (fpa_term){weight, count, branches};
}

/* Whether a bf16 pass stores results as f16, the type of the head: for a gated line, which NAME_fused_chunk
 * computes. */
static bool narrows(const fpa_simplified *simple)
{
    return widens(simple) && simple->head->gate && is_line(&simple->score) && passes_rows(simple).parts == 1;
}

/* Sets the properties that both passes have in common, and allocates terms. names: of a head that its text
 * describes completely; of one with numbers beside tokens; of one that stores f16 from bf16. */
static void start(fpa_head *head, const fpa_simplified *simple, const fpa_head *written,
                  const char *const names[3])
{
    const fpa_head *from = simple->head;
    head->name = arena_string(&head->memory, names[has_numbers(simple) ? 1 : narrows(simple) ? 2 : 0]);
    head->numbers = has_numbers(simple);
    head->narrows = narrows(simple);
    head->origin = arena_string(&head->memory, written->origin ? written->origin : written->name);
    head->terms = arena_array(&head->memory, (size_t)simple->score.monomial_count, sizeof *head->terms);
    head->scale = from->scale;
    /* only kernels with a gate read numbers beside tokens: a head without one gets log-gates of zero */
    head->gate = from->gate || has_numbers(simple);
    head->chunk = written->chunk;
    head->dtype = widens(simple) ? FPA_BF16 : from->dtype;
}

/* Whether rows are d_o and v as given, with nothing after them: f' is constant and there is no normaliser. */
static bool rows_are_given(const fpa_simplified *simple)
{
    return !widens(simple) && !has_slope(&simple->score) &&
           (!simple->head->gate || is_line(&simple->score)) &&
           (simple->head->normalize == FPA_NORMALIZE_NONE || has_numbers(simple)) && !weighs_keys(simple);
}

/* The weight of a monomial; 1 if it is included in the weights of keys or outputs. */
static fpa_number weight_of(arena *memory, const fpa_simplified *simple, int monomial)
{
    return is_weighted(simple) ? number_int(1)
                               : number_copy(memory, simple->score.monomials[monomial].weight);
}

/* The head of passes of rows: the kernel is f'(s) (g.v + h), and its values are k for d_q, or q for d_k. */
static void make_rows(fpa_head *head, const fpa_simplified *simple, const fpa_head *written)
{
    const fpa_score *score = &simple->score;
    const fpa_head *from = simple->head;
    const fpa_pass_rows rows = passes_rows(simple);
    const int values = rows.parts > 1           ? rows.part
                       : rows_are_given(simple) ? from->dv
                                                : rows.width - rows.values;
    static const char *const names[][3] = {
        {"gradients_of_rows", "gradients_of_numbered_rows", "gradients_of_narrowed_rows"},
        {"gradients_of_parts_of_rows", "gradients_of_parts_of_numbered_rows", NULL}};
    start(head, simple, written, names[rows.parts > 1]);
    head->adds = rows.parts > 1;
    head->beside = has_columns(simple);
    head->d = rows.values - rows.input + values;
    head->dv = from->d;
    for (int m = 0; m < score->monomial_count; m++) {
        const int power = power_of(score, m);
        const fpa_number weight =
            number_mul(&head->memory, number_int(power), weight_of(&head->memory, simple, m));
        if (power)
            add_term(head, number_copy(&head->memory, weight), power - 1, from->d, rows.values - rows.input,
                     values);
    }
}

/* Whether passes of rows are forward passes of the head itself: f' is constant, and q and k can be its values. */
static bool rows_are_own(const fpa_simplified *simple)
{
    const fpa_score *score = &simple->score;
    return rows_are_given(simple) && !simple->head->gate && !has_numbers(simple) &&
           simple->head->d == simple->head->dv && score->monomial_count == 1 &&
           number_is_one(score->monomials[0].weight);
}

/* Adds weight * the product of a monomial's two dots, or of the halves of product `index`, zeros up to the last
 * block included. */
static void add_pair(fpa_head *head, const fpa_simplified *simple, int index)
{
    const fpa_score *score = &simple->score;
    const fpa_halves halves = is_formed(simple) ? halves_of(simple, index) : (fpa_halves){.monomial = index};
    fpa_term *term = &head->terms[head->term_count++];
    term->weight = number_copy(&head->memory, score->monomials[halves.monomial].weight);
    term->branch_count = 2;
    term->branches = arena_array(&head->memory, 2, sizeof *term->branches);
    for (int b = 0; b < 2; b++) {
        if (is_formed(simple)) {
            set_branch(head, &term->branches[b], halves.position[b], pair_rows(halves.rows[b]));
        } else {
            const fpa_branch *dot = pair_dot(score, index, b);
            set_branch(head, &term->branches[b], dot->row[0], pair_rows(dot->width));
        }
    }
}

/* The head of passes of values: the kernel is f(s), without a normaliser, and the values are the first rows.columns
 * columns of [g, h]: all of them, or those of g alone. */
static void make_values(fpa_head *head, const fpa_simplified *simple, const fpa_head *written)
{
    const fpa_pass_rows rows = passes_rows(simple);
    const fpa_score *score = &simple->score;
    const bool pairs = is_pairs(simple) || is_formed(simple);
    const char *const names[] = {pairs ? "gradients_of_paired_values" : "gradients_of_values",
                                 "gradients_of_divided_values", "gradients_of_narrowed_values"};
    start(head, simple, written, names);
    head->zeros = pairs;
    head->d = is_formed(simple) ? rows.values : simple->head->d;
    head->dv = rows.columns;
    head->block = written->block;
    const int count = is_formed(simple) ? halves_count(simple) : score->monomial_count;
    for (int m = 0; m < count; m++) {
        if (pairs)
            add_pair(head, simple, m);
        else
            add_term(head, weight_of(&head->memory, simple, m), power_of(score, m), head->d, 0, 0);
    }
}

void passes_free(fpa_passes *passes)
{
    for (int i = 0; i < PASSES; i++)
        head_free(passes->head[i]);
    *passes = (fpa_passes){0};
}

/* Whether the pass of values is a forward pass of the head itself: without normaliser, weights and conversions,
 * not needed for dots of gates' gradients; if contracted, of whole pieces and one power. */
static bool values_are_own(const fpa_simplified *simple)
{
    return !widens(simple) && (!simple->head->gate || is_line(&simple->score)) && !weighs_keys(simple) &&
           !is_formed(simple) && !contracts_pairs(simple) && simple->head->normalize == FPA_NORMALIZE_NONE &&
           (!is_contracted(simple) || (simple->head->dv % PIECE == 0 && !is_sum(simple)));
}

/* Whether there are no passes of rows, since all gradients of q and k are contractions. */
static bool has_no_rows(const fpa_simplified *simple)
{
    return is_pairs(simple) || is_formed(simple) || (contracts_pairs(simple) && is_parallel(simple));
}

typedef void make_pass(fpa_head *head, const fpa_simplified *simple, const fpa_head *written);

static fpa_status add_pass(make_pass *make, const fpa_simplified *simple, const fpa_head *written,
                           fpa_head **head, fpa_error *error)
{
    jmp_buf failure;
    *head = head_new();
    if (!*head || setjmp(failure))
        return fail_memory(error);
    (*head)->memory.failure = &failure;
    make(*head, simple, written);
    (*head)->memory.failure = NULL;
    return head_validate(*head, error);
}

fpa_status passes_make(const fpa_simplified *simple, const fpa_head *written, bool of_rows,
                       fpa_passes *passes, fpa_error *error)
{
    make_pass *const make[PASSES] = {make_rows, make_values};
    fpa_status status = FPA_OK;
    *passes = (fpa_passes){.own = {!of_rows && rows_are_own(simple), !of_rows && values_are_own(simple)}};
    for (int i = 0; i < PASSES && !status; i++)
        if (!passes->own[i] && (i != PASS_ROWS || !has_no_rows(simple)))
            status = add_pass(make[i], simple, written, &passes->head[i], error);
    if (status)
        passes_free(passes);
    return status;
}
