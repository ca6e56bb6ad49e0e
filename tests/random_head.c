#include "random_head.h"

#include <math.h>

#include "head/lift.h"
#include "random_lift.h"

const random_limits random_all = {
    .d = 13,
    .dv = 9,
    .degree = 3,
    .terms = 4,
    .features = 600,
    .trainable = true,
    .dense = true,
    .gate = true,
    .normalize = true,
    .noncausal = true,
};

const random_limits random_plain = {.d = 9, .dv = 5, .degree = 3, .terms = 4, .features = 400, .dense = true};

/* SplitMix64. */
uint64_t random_bits(random_source *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int random_between(random_source *random, int low, int high)
{
    return low + (int)(random_bits(random) % (uint64_t)(high - low + 1));
}

double random_unit(random_source *random)
{
    return ((double)(random_bits(random) >> 11) + 0.5) * 0x1p-53;
}

bool random_chance(random_source *random, double probability)
{
    return random_unit(random) < probability;
}

double random_normal(random_source *random)
{
    double radius = sqrt(-2 * log(random_unit(random)));
    return radius * cos(6.283185307179586 * random_unit(random));
}

static fpa_number random_ratio(random_source *random)
{
    static const int nums[] = {1, 2, 3, 4, 6, 9}, dens[] = {1, 1, 1, 2, 4, 3};
    return number_ratio(nums[random_between(random, 0, 5)], dens[random_between(random, 0, 5)]);
}

/* A value of few bits, so that sums of products of them stay exact. */
static double random_entry(random_source *random)
{
    return random_chance(random, 0.2) ? 0 : random_between(random, -16, 16) / 8.0;
}

static bool add_matrix(random_source *random, fpa_head *head, fpa_matrix_kind kind, int *index)
{
    fpa_matrix *matrix = &head->matrices[head->matrix_count];
    int rows = kind == FPA_MATRIX_TRAINABLE_DIAGONAL ? head->d : random_between(random, 1, head->d + 2);
    *matrix = (fpa_matrix){.kind = kind, .rows = rows, .cols = head->d};
    *index = head->matrix_count++;
    if (kind != FPA_MATRIX_CONSTANT) {
        matrix->per_head = random_chance(random, 0.5);
        matrix->name = arena_format(&head->memory, "w%d", *index + 1);
        return matrix->name;
    }
    matrix->data = arena_array(&head->memory, (size_t)rows * (size_t)head->d, sizeof *matrix->data);
    for (int i = 0; matrix->data && i < rows * head->d; i++)
        matrix->data[i] = random_entry(random);
    if (matrix->data)
        for (int r = 0; r < rows; r++) /* no row of zeros */
            matrix->data[r * head->d + r % head->d] = 1 + r % 3;
    return matrix->data;
}

/* A random choice of width rows, mostly in order. */
static bool choose_rows(random_source *random, fpa_head *head, fpa_branch *branch, int rows)
{
    branch->row = arena_array(&head->memory, (size_t)rows, sizeof *branch->row);
    if (!branch->row)
        return false;
    for (int r = 0, kept = 0; kept < branch->width; r++)
        if (random_between(random, 1, rows - r) <= branch->width - kept)
            branch->row[kept++] = r;
    if (branch->width > 1 && random_chance(random, 0.2)) {
        int last = branch->row[branch->width - 1];
        branch->row[branch->width - 1] = branch->row[0];
        branch->row[0] = last;
    }
    return true;
}

static bool choose_gram(random_source *random, fpa_head *head, fpa_branch *branch)
{
    branch->gram = arena_array(&head->memory, (size_t)branch->width, sizeof *branch->gram);
    for (int w = 0; branch->gram && w < branch->width; w++)
        branch->gram[w] = w && random_chance(random, 0.1) ? number_int(0) : random_ratio(random);
    return branch->gram;
}

/* Branches of a lift take its coordinates, and no matrices. */
static fpa_branch_kind choose_kind(random_source *random, const random_limits *limits, const fpa_head *head)
{
    for (;;) {
        fpa_branch_kind kind = (fpa_branch_kind)random_between(
            random, 0, head->lift ? FPA_BRANCH_DIAGONAL : FPA_BRANCH_TRAINABLE_DIAGONAL);
        if (kind <= FPA_BRANCH_DIAGONAL || (kind == FPA_BRANCH_DENSE ? limits->dense : limits->trainable))
            return kind;
    }
}

static bool find_source(random_source *random, fpa_head *head, fpa_branch *branch)
{
    static const fpa_matrix_kind kinds[FPA_BRANCH_KINDS] = {
        [FPA_BRANCH_DENSE] = FPA_MATRIX_CONSTANT,
        [FPA_BRANCH_TRAINABLE] = FPA_MATRIX_TRAINABLE,
        [FPA_BRANCH_TRAINABLE_DIAGONAL] = FPA_MATRIX_TRAINABLE_DIAGONAL,
    };

    branch->source = FPA_INPUT;
    if (branch->kind <= FPA_BRANCH_DIAGONAL)
        return true;
    for (int m = 0; m < head->matrix_count; m++)
        if (head->matrices[m].kind == kinds[branch->kind] && random_chance(random, 0.5)) {
            branch->source = m;
            return true;
        }
    return add_matrix(random, head, kinds[branch->kind], &branch->source);
}

/* room: the width that the limit on features leaves. */
static bool fill_branch(random_source *random, const random_limits *limits, fpa_head *head,
                        fpa_branch *branch, int room)
{
    int rows;
    branch->kind = choose_kind(random, limits, head);
    if (!find_source(random, head, branch))
        return false;
    rows = branch->source == FPA_INPUT ? head->d : head->matrices[branch->source].rows;
    if (branch->kind == FPA_BRANCH_IDENTITY && rows > room)
        branch->kind = FPA_BRANCH_SELECT;
    branch->width = rows;
    if (rows > room || branch->kind == FPA_BRANCH_SELECT || random_chance(random, 0.2))
        branch->width = random_between(random, 1, rows < room ? rows : room);
    if (branch->kind == FPA_BRANCH_IDENTITY)
        branch->width = rows;
    if (!choose_rows(random, head, branch, rows))
        return false;
    if (head->lift && branch->kind == FPA_BRANCH_IDENTITY)
        branch->kind = FPA_BRANCH_COORDINATES;
    return branch->kind != FPA_BRANCH_DIAGONAL || choose_gram(random, head, branch);
}

static bool fill_term(random_source *random, const random_limits *limits, fpa_head *head, fpa_term *term)
{
    double room = limits->features / limits->terms;
    term->weight = random_ratio(random);
    if (random_chance(random, 0.25))
        term->weight = number_sub(&head->memory, number_int(0), term->weight);
    if (random_chance(random, 0.1))
        term->weight = number_double(&head->memory, random_normal(random));
    term->branch_count = random_between(random, random_chance(random, 0.9), limits->degree);
    if (head->lift && head->lift->key_mask && !term->branch_count)
        term->branch_count = 1; /* nothing of a constant term could be masked */
    term->branches = arena_array(&head->memory, (size_t)term->branch_count, sizeof *term->branches);
    for (int l = 0; term->branches && l < term->branch_count; l++) {
        if (!fill_branch(random, limits, head, &term->branches[l], room < 1 ? 1 : (int)room))
            return false;
        room /= term->branches[l].width;
    }
    return term->branches;
}

static void choose_fields(random_source *random, const random_limits *limits, fpa_head *head)
{
    head->d = random_between(random, 1, limits->d);
    head->dv = random_between(random, 1, limits->dv);
    head->chunk = random_chance(random, 0.3) ? 0 : random_between(random, 1, 48);
    head->block = random_chance(random, 0.5) ? 0 : 1 << random_between(random, 0, 3);
    head->scale = random_chance(random, 0.5) ? 1 : 0.25 + random_unit(random);
    if (limits->normalize && random_chance(random, 0.5))
        head->normalize = (fpa_normalize)random_between(random, 0, FPA_NORMALIZE_KINDS - 1);
    head->eps = random_chance(random, 0.5) ? 1e-6 : 1e-3;
    head->causal = !limits->noncausal || random_chance(random, 0.8);
    head->gate = limits->gate && head->causal && random_chance(random, 0.4);
    if (limits->half) {
        head->dtype = (fpa_dtype)random_between(random, 0, FPA_DTYPES - 1);
        head->state_dtype = (fpa_dtype)random_between(random, 0, FPA_DTYPES - 1);
    }
}

fpa_head *random_head(uint64_t seed, const random_limits *limits)
{
    random_source random = {seed};
    fpa_head *head = head_new();
    bool filled;
    if (!head)
        return NULL;
    limits = limits ? limits : &random_all;
    choose_fields(&random, limits, head);
    head->name = arena_format(&head->memory, "random_%llu", (unsigned long long)seed);
    head->term_count = random_between(&random, 1, limits->terms);
    head->terms = arena_array(&head->memory, (size_t)head->term_count, sizeof *head->terms);
    head->matrices = arena_array(&head->memory, (size_t)limits->terms * (size_t)limits->degree + 1,
                                 sizeof *head->matrices);
    filled = head->name && head->terms && head->matrices;
    if (filled && limits->lift && random_chance(&random, 0.5))
        filled = random_lift(&random, head);
    for (int t = 0; filled && t < head->term_count; t++)
        filled = fill_term(&random, limits, head, &head->terms[t]);
    if (!filled) {
        head_free(head);
        return NULL;
    }
    return head;
}
