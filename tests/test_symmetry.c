/* The rotations that leave a kernel as it is: what is claimed holds in double on the head as written, what is not
 * claimed changes it, and the dimension is that of the linear equations. */
#include "c_hurry.h"
#include "claims.h"
#include "base/splitmix.h"
#include "command_place.h"
#include "dear.h"
#include "gen/simplify/symmetry.h"
#include "gen/spec/spec.h"
#include "heads.h"
#include "random_head.h"

#include <glob.h>
#include <stdio.h>

enum { MOST_WIDTH = 128 };

/* ---- elements of the group ---- */

/* rows[n][n] a random orthogonal matrix. */
static void random_orthogonal(uint64_t *random, int n, double *rows)
{
    for (int r = 0; r < n; r++) {
        double *own = rows + r * n, square = 0;
        for (int c = 0; c < n; c++)
            own[c] = splitmix_normal(random);
        for (int pass = 0; pass < 2; pass++)
            for (int before = 0; before < r; before++) {
                double dot = 0;
                for (int c = 0; c < n; c++)
                    dot += own[c] * rows[before * n + c];
                for (int c = 0; c < n; c++)
                    own[c] -= dot * rows[before * n + c];
            }
        for (int c = 0; c < n; c++)
            square += own[c] * own[c];
        for (int c = 0; c < n; c++)
            own[c] /= sqrt(square);
    }
}

/* basis[d][d]: a row for each coordinate of each part, in the order of the parts. */
static void basis_of(const fpa_symmetry *symmetry, double *basis)
{
    const size_t d = (size_t)symmetry->d;
    memset(basis, 0, d * d * sizeof *basis);
    if (symmetry->basis)
        memcpy(basis, symmetry->basis, d * d * sizeof *basis);
    double *row = basis;
    for (int i = 0; i < symmetry->part_count && !symmetry->basis; i++)
        for (int c = 0; c < symmetry->parts[i].width; c++, row += d)
            row[symmetry->parts[i].coordinate[c]] = 1;
}

/* x, by the basis' rows first .. first + n, becomes U of them. */
static void turn(const double *basis, int d, int first, int n, const double *U, double *x)
{
    double before[MOST_WIDTH] = {0};
    for (int r = 0; r < n; r++)
        for (int c = 0; c < d; c++)
            before[r] += basis[(first + r) * d + c] * x[c];
    for (int r = 0; r < n; r++) {
        double after = 0;
        for (int i = 0; i < n; i++)
            after += U[r * n + i] * before[i];
        for (int c = 0; c < d; c++)
            x[c] += (after - before[r]) * basis[(first + r) * d + c];
    }
}

static void random_pair(uint64_t *random, int d, double *q, double *k)
{
    for (int c = 0; c < d; c++) {
        q[c] = splitmix_normal(random);
        k[c] = splitmix_normal(random);
    }
}

/* A random element of O(n) on each part that is all of it; else the sign. */
static void turn_parts(const fpa_symmetry *symmetry, const double *basis, uint64_t *random, double *q,
                       double *k)
{
    static double U[MOST_WIDTH * MOST_WIDTH];
    for (int i = 0, first = 0; i < symmetry->part_count; first += symmetry->parts[i++].width) {
        const fpa_symmetry_part *part = &symmetry->parts[i];
        const int n = part->width;
        memset(U, 0, sizeof U);
        if (part->order == n)
            random_orthogonal(random, n, U);
        for (int r = 0; r < n && part->order != n; r++)
            U[r * n + r] = -1;
        turn(basis, symmetry->d, first, n, U, q);
        turn(basis, symmetry->d, first, n, U, k);
    }
}

static void exchange_parts(const fpa_symmetry *symmetry, double *x)
{
    for (int i = 0; i < symmetry->part_count; i++) {
        const fpa_symmetry_part *part = &symmetry->parts[i];
        if (part->exchange < 0 || part->exchange == i)
            continue;
        const fpa_symmetry_part *other = &symmetry->parts[part->exchange];
        for (int c = 0; c < part->width; c++) {
            const double value = x[part->coordinate[c]];
            x[part->coordinate[c]] = x[other->coordinate[c]];
            x[other->coordinate[c]] = value;
        }
    }
}

/* |k(a) - k(b)| of the size that k has without cancellation. */
static double change(const fpa_head *head, const double *q, const double *k, const double *uq,
                     const double *uk)
{
    const sum_value before = kernel_value(head, q, k), after = kernel_value(head, uq, uk);
    return fabs(before.value - after.value) / fmax(before.magnitude, 1e-300);
}

/* The largest change by random elements of the claimed group, exchanges too. */
static double change_inside(const fpa_head *head, const fpa_symmetry *symmetry, const double *basis)
{
    uint64_t random = 7;
    double most = 0, q[MOST_WIDTH], k[MOST_WIDTH], uq[MOST_WIDTH], uk[MOST_WIDTH];
    for (int trial = 0; trial < 3; trial++) {
        random_pair(&random, head->d, q, k);
        memcpy(uq, q, sizeof q);
        memcpy(uk, k, sizeof k);
        turn_parts(symmetry, basis, &random, uq, uk);
        exchange_parts(symmetry, uq);
        exchange_parts(symmetry, uk);
        most = fmax(most, change(head, q, k, uq, uk));
    }
    return most;
}

/* The change by a turn of 0.3 in the plane of the first rows of two parts. */
static double change_between(const fpa_head *head, const double *basis, int a, int b)
{
    const int d = head->d;
    const double U[] = {cos(0.3), -sin(0.3), sin(0.3), cos(0.3)};
    uint64_t random = 11;
    double most = 0, plane[2 * MOST_WIDTH], q[MOST_WIDTH], k[MOST_WIDTH], uq[MOST_WIDTH], uk[MOST_WIDTH];
    memcpy(plane, basis + a * d, (size_t)d * sizeof *plane);
    memcpy(plane + d, basis + b * d, (size_t)d * sizeof *plane);
    for (int trial = 0; trial < 3; trial++) {
        random_pair(&random, d, q, k);
        memcpy(uq, q, sizeof q);
        memcpy(uk, k, sizeof k);
        turn(plane, d, 0, 2, U, uq);
        turn(plane, d, 0, 2, U, uk);
        most = fmax(most, change(head, q, k, uq, uk));
    }
    return most;
}

/* ---- the dimension, by linear equations ---- */

/* k after a turn by the angle in the plane of coordinates i and j. */
static double turned_value(const fpa_head *head, const double *q, const double *k, int i, int j, double angle)
{
    double uq[MOST_WIDTH], uk[MOST_WIDTH];
    memcpy(uq, q, sizeof uq);
    memcpy(uk, k, sizeof uk);
    uq[i] = cos(angle) * q[i] + sin(angle) * q[j];
    uq[j] = cos(angle) * q[j] - sin(angle) * q[i];
    uk[i] = cos(angle) * k[i] + sin(angle) * k[j];
    uk[j] = cos(angle) * k[j] - sin(angle) * k[i];
    return kernel_value(head, uq, uk).value;
}

/* dk along that turn, of k's size, by differences of the fourth order. */
static double derivative(const fpa_head *head, const double *q, const double *k, int i, int j)
{
    const double step = 1e-3,
                 near = turned_value(head, q, k, i, j, step) - turned_value(head, q, k, i, j, -step);
    const double far = turned_value(head, q, k, i, j, 2 * step) - turned_value(head, q, k, i, j, -2 * step);
    return (8 * near - far) / (12 * step * fmax(kernel_value(head, q, k).magnitude, 1e-300));
}

/* Rank by elimination with the largest pivot. */
static int rank_of(double *rows, int count, int columns)
{
    for (int rank = 0;; rank++) {
        int at = rank * columns;
        for (int i = at; rank < count && i < count * columns; i++)
            at = fabs(rows[i]) > fabs(rows[at]) ? i : at;
        if (rank == count || rank == columns || fabs(rows[at]) <= 1e-8)
            return rank;
        for (int c = 0; c < columns; c++) {
            const double value = rows[at / columns * columns + c];
            rows[at / columns * columns + c] = rows[rank * columns + c];
            rows[rank * columns + c] = value;
        }
        for (int r = rank + 1; r < count; r++) {
            const double amount = rows[r * columns + at % columns] / rows[rank * columns + at % columns];
            for (int c = 0; c < columns; c++)
                rows[r * columns + c] -= amount * rows[rank * columns + c];
        }
    }
}

/* Of all U near 1 that leave k alone: what no derivative at random pairs excludes. */
static int true_dimension(const fpa_head *head)
{
    const int d = head->d, unknowns = d * (d - 1) / 2, pairs = unknowns + 8;
    double *rows = calloc((size_t)(pairs * unknowns) + 1, sizeof *rows);
    uint64_t random = 5;
    assert_non_null(rows);
    for (int pair = 0; pair < pairs; pair++) {
        double q[MOST_WIDTH], k[MOST_WIDTH], *row = rows + pair * unknowns;
        random_pair(&random, d, q, k);
        for (int i = 0; i < d; i++)
            for (int j = 0; j < i; j++)
                *row++ = derivative(head, q, k, i, j);
    }
    const int rank = rank_of(rows, pairs, unknowns);
    free(rows);
    return unknowns - rank;
}

/* ---- claims ---- */

static fpa_symmetry symmetry_of(const fpa_head *head)
{
    fpa_simplified simple;
    fpa_symmetry symmetry;
    fpa_error error = {0};
    assert_ok(simplify(head, &simple, &error) || symmetry_find(head, &simple, &symmetry, &error), &error);
    simplified_free(&simple);
    return symmetry;
}

/* Everything that is claimed of a head that is known before run time. */
static void check_head(const fpa_head *head, double slack)
{
    static double basis[MOST_WIDTH * MOST_WIDTH];
    fpa_symmetry symmetry = symmetry_of(head);
    if (symmetry.part_count && head->d <= MOST_WIDTH) {
        basis_of(&symmetry, basis);
        const double inside = change_inside(head, &symmetry, basis);
        if (!(inside <= slack))
            fail_msg("%s: an element of the group changes k by %g", head->name, inside);
        for (int i = 1, b = symmetry.parts[0].width; i < symmetry.part_count; b += symmetry.parts[i++].width)
            if (symmetry.kind == SYMMETRY_EXACT && change_between(head, basis, 0, b) <= 10 * slack)
                fail_msg("%s: parts 1 and %d are apart, and a turn between them changes nothing", head->name,
                         i + 1);
        const int claimed = symmetry_dimension(&symmetry),
                  counted = head->d <= 16 ? true_dimension(head) : claimed;
        if (symmetry.kind == SYMMETRY_EXACT ? claimed != counted : claimed > counted)
            fail_msg("%s: dimension %d claimed, %d counted", head->name, claimed, counted);
    }
    symmetry_free(&symmetry);
}

static void shipped_heads_keep_what_is_claimed(void **state)
{
    glob_t specs;
    int heads = 0;
    assert_int_equal(glob("specs/*.lua", 0, NULL, &specs), 0);
    for (size_t i = 0; i < specs.gl_pathc; i++) {
        fpa_head_list list = {0};
        fpa_error error;
        assert_int_equal(spec_load(specs.gl_pathv[i], &list, &error), FPA_OK);
        for (int h = 0; h < list.count; h++, heads++)
            check_head(list.heads[h], 1e-9);
        head_list_free(&list);
    }
    globfree(&specs);
    assert_true(heads > 30);
}

static void random_heads_keep_what_is_claimed(void **state)
{
    random_limits limits = random_plain;
    int dense = 0;
    limits.dense = true;
    const uint64_t seeds = dear_tests() ? 120 : 60;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        fpa_head *head = random_head(seed, &limits);
        fpa_simplified simple;
        fpa_error error;
        assert_non_null(head);
        if (simplify(head, &simple, &error) == FPA_OK) { /* some cancel to nothing */
            fpa_symmetry symmetry = symmetry_of(head);
            dense += symmetry.basis != NULL;
            symmetry_free(&symmetry);
            simplified_free(&simple);
            check_head(head, 1e-7);
        }
        head_free(head);
    }
    assert_true(dense > (int)seeds / 6);
}

/* What a reader would say of a head, and what is found. */
static const struct known {
    const char *terms, *group, *spaces;
    fpa_symmetry_kind kind;
    int dimension;
} known[] = {
    {"power { degree = 3 }", "O(16)", "1-16", SYMMETRY_EXACT, 120},
    {"tspow { d = 16, degree = 2, block = 4 }", "O(16)", "1-16", SYMMETRY_EXACT, 120},
    {"inhomogeneous { degree = 2, constant = 1 }", "O(16)", "1-16", SYMMETRY_EXACT, 120},
    {"{ term { weight = 2 } }", "O(16)", "1-16 (k does not depend on them)", SYMMETRY_EXACT, 120},
    {"{ term { select(range(1, 4)), select(range(1, 4)) }, term { select(range(5, 8)), select(range(5, 8)) },"
     "  term { select(range(9, 12)), select(range(9, 12)) } }",
     "O(4)^4, permutations of 3 spaces of dimension 4",
     "1-4 | 5-8 | 9-12 | 13-16 (k does not depend on them)", SYMMETRY_EXACT, 24},
    {"{ term { select(range(1, 8)), select(range(9, 16)) } }",
     "O(8)^2, permutations of 2 spaces of dimension 8", "1-8 | 9-16", SYMMETRY_EXACT, 56},
    {"{ term { select(range(1, 8)), select(range(9, 16)), identity() }, term { select(range(1, 8)) } }",
     "O(8)^2", "1-8 | 9-16", SYMMETRY_EXACT, 56},
    {"{ term { diagonal { [range(1, 4)] = 1, [range(5, 16)] = 2 } } }", "O(12) x O(4)", "1-4 | 5-16",
     SYMMETRY_EXACT, 72},
    {"{ term { diagonal { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } } }", "O(1)^16",
     "signs of 1-16", SYMMETRY_EXACT, 0},
    {"{ term { select { 1, 2 }, select { 2, 3 } } }", "O(13) x O(1)^3, permutations of 2 coordinates",
     "signs of 1-3 | 4-16 (k does not depend on them)", SYMMETRY_EXACT, 78},
    {"{ term { dense(orthogonal { d = 16, rows = 6, seed = 1 }), identity() } }", "O(10) x O(6)",
     "a space of 10 | a space of 6", SYMMETRY_EXACT, 60},
    /* two planes in general position: four spaces of the principal vectors' pairs and what neither sees */
    {"{ term { dense(orthogonal { d = 16, rows = 4, seed = 1 }), dense(orthogonal { d = 16, rows = 4, seed = "
     "2 }) } }",
     "O(8) x O(1)^4", "a space of 8 (k does not depend on it) | 4 spaces of 2", SYMMETRY_EXACT, 28},
    {"{ term { dense(orthogonal { d = 16, rows = 6, seed = 1 }) }, "
     "  term { dense(orthogonal { d = 16, rows = 5, seed = 2 }), select(range(1, 3)) },"
     "  term { dense { { 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } }, select { 1 } } }",
     NULL, NULL, SYMMETRY_AT_LEAST, -1},
    /* 2 x 2 matrices that do not commute, times 1 of width 3: U is O(3) on all copies alike */
    {"(function() local function copies(W) local R = {} for r = 1, 2 do for i = 1, 3 do local row = {} "
     "for c = 1, 16 do row[c] = 0 end row[i], row[3 + i] = W[r][1], W[r][2] R[#R + 1] = row end end return R "
     "end "
     "return { term { dense(copies { { 1, 2 }, { 0, 1 } }), dense(copies { { 3, 0 }, { 1, 1 } }) } } end)()",
     "O(10) x G (dim G = 3)", "7-16 (k does not depend on them) | 1-6", SYMMETRY_EXACT, 48},
    {"{ term { trainable { diagonal = true, name = 'w' }, select(range(1, 4)) } }", "O(1)^16",
     "signs of 1-16", SYMMETRY_AT_LEAST, 0},
    {"{ term { coordinates { identity(), map = elu_plus_one } } }", "", "", SYMMETRY_BEHIND_MAPS, 0},
    {"{ term { trainable { rows = 4, name = 'W' }, identity() } }", "", "", SYMMETRY_AT_RUN_TIME, 0},
};

static fpa_head_list load(const char *terms)
{
    char text[2048];
    fpa_head_list list = {0};
    fpa_error error = {0};
    snprintf(text, sizeof text, "return head { name = 'h', d = 16, dv = 16, terms = %s }", terms);
    if (spec_load_text("test", NULL, text, strlen(text), &list, &error))
        fail_msg("%s: %s\n%s", error.where, error.message, text);
    return list;
}

static void known_groups_are_found(void **state)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char text[SYMMETRY_TEXT];
        fpa_head_list list = load(known[i].terms);
        fpa_symmetry symmetry = symmetry_of(list.heads[0]);
        assert_string_equal(symmetry_kind_name(symmetry.kind), symmetry_kind_name(known[i].kind));
        symmetry_group_text(text, &symmetry);
        if (known[i].group)
            assert_string_equal(text, known[i].group);
        symmetry_space_text(text, &symmetry);
        if (known[i].spaces)
            assert_string_equal(text, known[i].spaces);
        if (known[i].dimension >= 0)
            assert_int_equal(symmetry_dimension(&symmetry), known[i].dimension);
        check_head(list.heads[0], 1e-9);
        symmetry_free(&symmetry);
        head_list_free(&list);
    }
}

static void explain_tells_it_in_words_and_as_json(void **state)
{
    place here;
    place_begin(
        &here,
        "return head { name = 'a', d = 8, dv = 8, terms = { term { select(range(1, 4)), select(range(5, 8)) "
        "} } },"
        "  head { name = 'b', d = 8, dv = 8, terms = { term { trainable { rows = 2, name = 'W' } } } }");
    expect(RUN("fpac", "explain", here.spec), 0,
           "O(4)^2, permutations of 2 spaces of dimension 4; dimension 12 of 28", NULL);
    expect(RUN("fpac", "explain", here.spec), 0, "not known before run time: weights W", NULL);
    expect(
        RUN("fpac", "explain", here.spec, "--json"), 0,
        "\"kind\": \"exact\",\n      \"group\": \"O(4)^2, permutations of 2 spaces of dimension 4\",\n      "
        "\"dimension\": 12,",
        NULL);
    expect(RUN("fpac", "explain", here.spec, "--json"), 0, "\"kind\": \"at run time\"\n", NULL);
    scratch_remove(here.folder);
}

int main(void)
{
    c_hurry();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shipped_heads_keep_what_is_claimed),
        cmocka_unit_test(random_heads_keep_what_is_claimed),
        cmocka_unit_test(known_groups_are_found),
        cmocka_unit_test(explain_tells_it_in_words_and_as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
