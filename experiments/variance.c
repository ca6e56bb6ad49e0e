/* variance: how far sketches and random features lie off, against D.
 *
 *   variance FOLDER [SEEDS]
 *
 * Each family is drawn from SEEDS (256) seeds in each size. Its kernel is evaluated, by the library's reference on the
 * head that the spec language made, on fixed pairs of unit vectors, half of them with q.k = 1/2 and half with q = k. The
 * table has the mean, the error and the variance beside the family's bound, and exact heads. All are in units of what the
 * bound is relative to: (|q| |k|)^p of powers, which is 1 here, and the kernel of exp. Writes FOLDER/variance.tsv and
 * FOLDER/variance.svg. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/splitmix.h"
#include "gen/simplify/simplify.h"
#include "gen/spec/spec.h"
#include "output.h"
#include "runtime/reference/reference.h"

enum { WIDTH = 16, PAIRS = 8, KINDS = 2, SIZES = 7, USUAL_SEEDS = 256 };
static const int sizes[SIZES] = {16, 32, 64, 128, 256, 512, 1024};

/* ---- what is estimated, and with which variance at most ---- */

typedef struct family {
    const char *name;
    const char *terms; /* with room for the size and the seed */
    int degree;        /* of (q.k)^p; 0: exp(gamma q.k) */
} family;

/* Indices are 4-wise independent: with 2-wise ones the variance is the same and comes from few seeds, in which many
 * coordinates meet at once, so that more seeds would be needed to see it.
 * The mean square of exp's features is that of a log-normal number, whose mean over few draws falls short where the
 * exponent is large: 1/2 of q.k can be told from 256 seeds. */
static const double gamma_of_exp = 0.5;

/* clang-format off */
static const family families[] = {
    {"tensorsketch_1", "tensorsketch { d = 16, degree = 1, size = %d, seed = %d, independence = 4 }", 1},
    {"tensorsketch_2", "tensorsketch { d = 16, degree = 2, size = %d, seed = %d, independence = 4 }", 2},
    {"tensorsketch_3", "tensorsketch { d = 16, degree = 3, size = %d, seed = %d, independence = 4 }", 3},
    {"favor", "favor { d = 16, size = %d, seed = %d, gamma = 1 / 2 }", 0},
    {"favor_independent", "favor { d = 16, size = %d, seed = %d, gamma = 1 / 2, orthogonal = false }", 0},
};
/* clang-format on */
enum { FAMILIES = sizeof families / sizeof *families, MOST_DEGREE = 3 };

static double exact_kernel(const family *f, double qk)
{
    return f->degree ? pow(qk, f->degree) : exp(gamma_of_exp * qk);
}

static double unit_of(const family *f, double qk)
{
    return f->degree ? 1 : exp(gamma_of_exp * qk);
}

/* (3^p - 1) / D, 2 / D for p = 1; of exp, relative to its square, (exp(gamma |q + k|^2) - 1) / D with independent rows. */
static double variance_bound(const family *f, int size, double qk)
{
    return (f->degree ? pow(3, f->degree) - 1 : exp(gamma_of_exp * (2 + 2 * qk)) - 1) / size;
}

/* ---- pairs ---- */

static const double products[KINDS] = {0.5, 1}; /* q.k of each kind */

typedef struct pair_set {
    double q[KINDS][PAIRS][WIDTH], k[KINDS][PAIRS][WIDTH]; /* of length 1 */
} pair_set;

/* A random direction, at right angles to `from` where one is given. */
static void draw_direction(uint64_t *seed, const double *from, double *x)
{
    double along = 0, square = 0;
    for (int c = 0; c < WIDTH; c++) {
        x[c] = splitmix_normal(seed);
        along += from ? x[c] * from[c] : 0;
    }
    for (int c = 0; c < WIDTH; c++) {
        x[c] -= from ? along * from[c] : 0;
        square += x[c] * x[c];
    }
    for (int c = 0; c < WIDTH; c++)
        x[c] /= sqrt(square);
}

static void draw_pairs(pair_set *set)
{
    uint64_t seed = 1;
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < PAIRS; i++) {
            double across[WIDTH], *q = set->q[kind][i], *k = set->k[kind][i];
            draw_direction(&seed, NULL, q);
            draw_direction(&seed, q, across);
            for (int c = 0; c < WIDTH; c++)
                k[c] = products[kind] * q[c] + sqrt(1 - products[kind] * products[kind]) * across[c];
        }
}

/* k(q, k) of all pairs: each is a sequence of one token with v = 1. */
static fpa_status evaluate(const fpa_head *head, const pair_set *set, double values[KINDS][PAIRS],
                           fpa_error *error)
{
    double ones[KINDS * PAIRS];
    for (int i = 0; i < KINDS * PAIRS; i++)
        ones[i] = 1;
    const fpa_problem problem = {.head = head,
                                 .batch = KINDS * PAIRS,
                                 .length = 1,
                                 .query_heads = 1,
                                 .heads = 1,
                                 .q = set->q[0][0],
                                 .k = set->k[0][0],
                                 .v = ones};
    return reference_forward(&problem, values[0], NULL, error);
}

static fpa_status load(const char *name, const char *terms, fpa_head_list *list, fpa_error *error)
{
    char text[512];
    const int size =
        snprintf(text, sizeof text, "return head { name = 'h', d = %d, dv = 1, terms = %s }", WIDTH, terms);
    return spec_load_text(name, NULL, text, (size_t)size, list, error);
}

static fpa_status draw_values(const family *f, int size, int seed, const pair_set *set,
                              double values[KINDS][PAIRS], fpa_error *error)
{
    char terms[256];
    fpa_head_list list = {0};
    snprintf(terms, sizeof terms, f->terms, size, seed);
    fpa_status status = load(f->name, terms, &list, error);
    if (!status)
        status = evaluate(list.heads[0], set, values, error);
    head_list_free(&list);
    return status;
}

/* ---- over seeds ---- */

typedef struct result {
    const family *family; /* or NULL of an exact head, */
    int degree;           /* of that degree */
    double size;          /* D */
    struct {
        double exact, mean,
            deviation; /* of one seed's mean over pairs: its error is deviation / sqrt(seeds) */
        double error, variance, bound; /* error: the root of the mean square */
    } of[KINDS];
} result;

/* Sums over seeds, of values in units. */
typedef struct sums {
    double value[PAIRS], square[PAIRS], error; /* error: squared, over pairs too */
    double mean, mean_square;                  /* of the mean over pairs */
} sums;

static void add_values(sums *s, const double values[PAIRS], double exact, double unit)
{
    double mean = 0;
    for (int i = 0; i < PAIRS; i++) {
        const double value = values[i] / unit, off = value - exact;
        s->value[i] += value;
        s->square[i] += value * value;
        s->error += off * off / PAIRS;
        mean += value / PAIRS;
    }
    s->mean += mean;
    s->mean_square += mean * mean;
}

static double sample_variance(double sum, double square, int count)
{
    return fmax(square - sum * sum / count, 0) / (count - 1);
}

static void conclude(const sums *s, int seeds, result *r, int kind)
{
    r->of[kind].mean = s->mean / seeds;
    r->of[kind].deviation = sqrt(sample_variance(s->mean, s->mean_square, seeds));
    r->of[kind].error = sqrt(s->error / seeds);
    for (int i = 0; i < PAIRS; i++)
        r->of[kind].variance += sample_variance(s->value[i], s->square[i], seeds) / PAIRS;
}

static fpa_status measure(const family *f, int size, int seeds, const pair_set *set, result *r,
                          fpa_error *error)
{
    sums all[KINDS] = {0};
    *r = (result){.family = f, .degree = f->degree, .size = size};
    for (int seed = 1; seed <= seeds; seed++) {
        double values[KINDS][PAIRS];
        const fpa_status status = draw_values(f, size, seed, set, values, error);
        if (status)
            return status;
        for (int kind = 0; kind < KINDS; kind++) {
            const double unit = unit_of(f, products[kind]);
            add_values(&all[kind], values[kind], exact_kernel(f, products[kind]) / unit, unit);
        }
    }
    for (int kind = 0; kind < KINDS; kind++) {
        r->of[kind].exact = exact_kernel(f, products[kind]) / unit_of(f, products[kind]);
        r->of[kind].bound = variance_bound(f, size, products[kind]);
        conclude(&all[kind], seeds, r, kind);
    }
    return FPA_OK;
}

/* (q.k)^p itself: one head, whose D is what the compiler makes of it. */
static fpa_status measure_exact(int degree, const pair_set *set, result *r, fpa_error *error)
{
    char terms[64];
    double values[KINDS][PAIRS];
    fpa_head_list list = {0};
    fpa_simplified simple;
    const family power = {.degree = degree};
    *r = (result){.degree = degree};
    snprintf(terms, sizeof terms, "power { degree = %d }", degree);
    fpa_status status = load("exact", terms, &list, error);
    if (!status)
        status = evaluate(list.heads[0], set, values, error);
    if (!status)
        status = simplify(list.heads[0], &simple, error);
    if (!status) {
        r->size = head_features(simple.head);
        simplified_free(&simple);
        for (int kind = 0; kind < KINDS; kind++) {
            sums once = {0};
            r->of[kind].exact = exact_kernel(&power, products[kind]);
            add_values(&once, values[kind], r->of[kind].exact, 1);
            r->of[kind].mean = once.mean;
            r->of[kind].error = sqrt(once.error);
        }
    }
    head_list_free(&list);
    return status;
}

/* ---- the table and the picture ---- */

static const char *name_of(const result *r)
{
    return r->family ? r->family->name : "exact";
}

static bool write_table(const char *folder, const result *results, int count, int seeds)
{
    FILE *file = output_open(folder, "variance.tsv");
    if (!file)
        return false;
    fprintf(file,
            "# estimates of (q.k)^p, and (p = 0) of exp(q.k / 2) in units of itself, |q| = |k| = 1, d = %d; "
            "%d seeds, "
            "%d pairs of each q.k; make experiments\n"
            "# off: the mean less the exact value, in standard errors; error: the root of the mean square; a "
            "favor_independent's\n"
            "# bound is its variance; exact: the head itself, D as compiled\n"
            "family\tp\tD\tqk\texact\tmean\toff\terror\tvariance\tbound\n",
            WIDTH, seeds, PAIRS);
    for (int i = 0; i < count; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            const result *r = &results[i];
            const double off = r->of[kind].mean - r->of[kind].exact,
                         standard = r->of[kind].deviation / sqrt(seeds);
            fprintf(file, "%s\t%d\t%.0f\t%g\t%.4g\t%.4g\t%.2f\t%.3g\t%.3g\t%.3g\n", name_of(r), r->degree,
                    r->size, products[kind], r->of[kind].exact, r->of[kind].mean,
                    standard > 0 ? off / standard : 0, r->of[kind].error, r->of[kind].variance,
                    r->of[kind].bound);
        }
    return output_close(file, "variance.tsv");
}

/* The error at q = k, and the root of its bound; rows that are not at right angles are in the table alone, where they meet
 * favor's bound. */
static bool add_points(fpa_chart *chart, const result *r)
{
    char label[CHART_LABEL], bound[CHART_LABEL + 16];
    if (!r->family)
        return chart_add(chart, "exact heads", true, r->size, r->of[1].error);
    if (strcmp(r->family->name, "favor_independent") == 0)
        return true;
    snprintf(label, sizeof label, "%s", r->family->name);
    for (char *c = label; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    snprintf(bound, sizeof bound, "%s, bound", label);
    return chart_add(chart, label, true, r->size, r->of[1].error) &&
           chart_add(chart, bound, false, r->size, sqrt(r->of[1].bound));
}

static bool write_chart(const char *folder, const result *results, int count)
{
    fpa_chart chart = {.title = "Error of estimates against exact heads, q = k of length 1, d = 16",
                       .x_label = "D, features of the state",
                       .y_label = "error (root of the mean square)",
                       .y_linear = true};
    bool done = true;
    for (int i = 0; i < count && done; i++)
        done = add_points(&chart, &results[i]);
    done = done && output_chart(folder, "variance.svg", &chart);
    chart_drop(&chart);
    return done;
}

static void print_result(const result *r)
{
    printf("%-20s D %5.0f  error %.3g, variance %.3g of %.3g\n", name_of(r), r->size, r->of[1].error,
           r->of[1].variance, r->of[1].bound);
    fflush(stdout);
}

static int run(const char *folder, int seeds, fpa_error *error)
{
    result results[FAMILIES * SIZES + MOST_DEGREE];
    pair_set set;
    int count = 0;
    if (!output_folder(folder))
        return 1;
    draw_pairs(&set);
    for (int degree = 1; degree <= MOST_DEGREE; degree++, count++) {
        if (measure_exact(degree, &set, &results[count], error))
            return 1;
        print_result(&results[count]);
    }
    for (int f = 0; f < FAMILIES; f++)
        for (int i = 0; i < SIZES; i++, count++) {
            if (measure(&families[f], sizes[i], seeds, &set, &results[count], error))
                return 1;
            print_result(&results[count]);
        }
    return !write_table(folder, results, count, seeds) || !write_chart(folder, results, count);
}

int main(int count, char **arguments)
{
    fpa_error error = {0};
    const int seeds = count > 2 ? atoi(arguments[2]) : USUAL_SEEDS;
    if (count < 2 || count > 3 || seeds < 2) {
        fputs("usage: variance FOLDER [SEEDS]\n", stderr);
        return 2;
    }
    const int code = run(arguments[1], seeds, &error);
    if (code && error.code)
        fprintf(stderr, "%s: %s\n", error.where, error.message);
    return code;
}
