/* recall: what a state remembers against its size, over the widths of the projections.
 *
 *   recall SPEC FOLDER
 *
 * For each head of the spec, N keys in random directions (of length sqrt(d)) are stored with as many codes of width
 * dv; each code is asked for by its key, and the answer is the code nearest to o. The pairs of a head are the N of
 * which half come back: predicted from the kernel's moments (command/capacity.h), and counted with its compiled
 * kernel. Writes FOLDER/recall.tsv and FOLDER/recall.svg; a family is what heads' names have before the last '_'. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/splitmix.h"
#include "call.h"
#include "command/capacity.h"
#include "heads.h"
#include "output.h"

static const double half = 0.5;
enum { MOST_PAIRS = 1 << 15, LEAST_ASKED = 4000 }; /* few pairs are drawn anew until so many were asked for */

typedef struct result {
    const char *head;
    char family[CHART_LABEL];
    double features, state_bytes, predicted, counted; /* predicted 0: it is not */
    bool is_front;                                    /* no head of as few features remembers more */
} result;

/* Pairs in random directions, of which those from `first` on are stored, and what the kernel says of them. */
typedef struct memory {
    const fpa_kernel *kernel;
    const fpa_description *about;
    float *keys, *codes, *zeros, *state, *answers, *products;
    int first;
} memory;

/* ---- storing and asking ---- */

static void draw_directions(uint64_t seed, int width, double length, float *rows)
{
    for (int i = 0; i < MOST_PAIRS; i++) {
        double own[1024], square = 0;
        for (int c = 0; c < width; c++) {
            own[c] = splitmix_normal(&seed);
            square += own[c] * own[c];
        }
        for (int c = 0; c < width; c++)
            rows[i * width + c] = (float)(length * own[c] / sqrt(square));
    }
}

static float *numbers(size_t count)
{
    return calloc(count, sizeof(float));
}

static bool make_memory(const fpa_kernel *kernel, memory *m)
{
    const fpa_description *about = fpa_describe(kernel);
    const size_t pairs = MOST_PAIRS, d = (size_t)about->d, dv = (size_t)about->dv;
    *m = (memory){.kernel = kernel, .about = about};
    m->keys = numbers(pairs * d);
    m->codes = numbers(pairs * dv);
    m->zeros = numbers(pairs * dv);
    m->answers = numbers(pairs * dv);
    m->products = numbers(pairs);
    m->state = numbers((size_t)about->state_elements);
    if (!m->keys || !m->codes || !m->zeros || !m->answers || !m->products || !m->state)
        return false;
    draw_directions(1, about->d, sqrt(about->d), m->keys);
    draw_directions(2, about->dv, 1, m->codes);
    return true;
}

static void free_memory(memory *m)
{
    free(m->keys);
    free(m->codes);
    free(m->zeros);
    free(m->answers);
    free(m->products);
    free(m->state);
}

/* Keys and codes into the state; then keys as queries, with values of 0, so that nothing more is stored. */
static fpa_status store_and_ask(const memory *m, int pairs, fpa_error *error)
{
    int64_t keys[] = {1, pairs, 1, m->about->d}, values[] = {1, pairs, 1, m->about->dv};
    int64_t states[] = {1, 1, m->about->state_elements};
    DLTensor q = call_tensor(m->keys + m->first * m->about->d, 4, keys),
             o = call_tensor(m->answers, 4, values);
    DLTensor v = call_tensor(m->codes + m->first * m->about->dv, 4, values);
    DLTensor zeros = call_tensor(m->zeros, 4, values), state = call_tensor(m->state, 3, states);
    fpa_tensors tensors = {.k = &q, .v = &v, .state_out = &state};
    fpa_status status = call_forward(m->kernel, &tensors, error);
    if (status)
        return status;
    tensors = (fpa_tensors){.q = &q, .k = &q, .v = &zeros, .o = &o, .state_in = &state};
    return call_forward(m->kernel, &tensors, error);
}

/* Of the stored pairs, from 0. */
static int nearest_code(const memory *m, int pairs, const float *answer)
{
    const int dv = m->about->dv;
    const float *codes = m->codes + m->first * dv;
    int best = 0;
    for (int i = 0; i < pairs; i++) {
        m->products[i] = 0;
        for (int e = 0; e < dv; e++)
            m->products[i] += codes[i * dv + e] * answer[e];
        if (m->products[i] > m->products[best])
            best = i;
    }
    return best;
}

static fpa_status count_share(memory *m, int pairs, double *share, fpa_error *error)
{
    int recalled = 0, asked = 0;
    fpa_status status = FPA_OK;
    for (m->first = 0; asked < LEAST_ASKED && m->first + pairs <= MOST_PAIRS && !status; m->first += pairs) {
        status = store_and_ask(m, pairs, error);
        for (int i = 0; i < pairs && !status; i++)
            recalled += nearest_code(m, pairs, m->answers + i * m->about->dv) == i;
        asked += pairs;
    }
    *share = (double)recalled / asked;
    return status;
}

/* ---- the pairs of which half come back ---- */

/* By thirds up or down from a first guess, then between the two that have half between them, as the share falls with
 * log N. The most that is tried stands where more would come back. */
static fpa_status count_pairs(memory *m, double guess, double *pairs, fpa_error *error)
{
    double at = fmin(fmax(guess, 2), MOST_PAIRS), share, before = at, before_share = -1;
    for (;;) {
        const int tried = (int)round(at);
        const fpa_status status = count_share(m, tried, &share, error);
        if (status)
            return status;
        const bool crossed = before_share >= 0 && (share >= half) != (before_share >= half);
        if (crossed || (share >= half && tried == MOST_PAIRS) || (share < half && tried <= 2))
            break;
        before = tried;
        before_share = share;
        at = share >= half ? fmin(fmax(at * 4 / 3, at + 1), MOST_PAIRS) : fmax(fmin(at * 3 / 4, at - 1), 2);
    }
    const double weight =
        before_share < 0 || share == before_share ? 1 : (half - before_share) / (share - before_share);
    *pairs = before * pow(round(at) / before, fmin(fmax(weight, 0), 1));
    return FPA_OK;
}

static fpa_status predict(const fpa_head *head, result *r, fpa_error *error)
{
    fpa_simplified simple;
    kernel_moments moments;
    if (head->lift) /* the moments are those of branches that take keys as they are */
        return FPA_OK;
    fpa_status status = simplify(head, &simple, error);
    if (status)
        return status;
    status = kernel_measure(&simple, simple.head->scale, &moments, error);
    if (!status)
        r->predicted = capacity_pairs(&moments, head->dv, half);
    simplified_free(&simple);
    return status == FPA_UNSUPPORTED ? FPA_OK : status;
}

static fpa_status measure(const char *spec, const fpa_head *head, void *found, fpa_error *error)
{
    result *r = found;
    fpa_kernel *kernel = NULL;
    memory m = {0};
    r->head = head->name;
    name_family(r->head, r->family);
    fpa_status status = predict(head, r, error);
    if (!status)
        status = fpa_open(spec, head->name, NULL, &kernel, error);
    if (status)
        return status;
    if (make_memory(kernel, &m)) {
        r->features = (double)m.about->features;
        r->state_bytes = (double)m.about->state_elements * sizeof(float);
        status = count_pairs(&m, r->predicted > 0 ? r->predicted : r->features, &r->counted, error);
    } else {
        status = fail_memory(error);
    }
    free_memory(&m);
    fpa_close(kernel);
    return status;
}

/* ---- the table and the picture ---- */

static void mark_front(result *results, int count)
{
    for (int i = 0; i < count; i++) {
        results[i].is_front = true;
        for (int j = 0; j < count; j++)
            if (results[j].features <= results[i].features && results[j].counted > results[i].counted)
                results[i].is_front = false;
    }
}

static void prediction_text(const result *r, char *text, size_t size)
{
    if (r->predicted > 0)
        snprintf(text, size, "%.0f", r->predicted);
    else
        snprintf(text, size, "-");
}

static bool write_table(const char *folder, const result *results, int count)
{
    FILE *file = output_open(folder, "recall.tsv");
    if (!file)
        return false;
    fputs("# pairs of which half come back, against the state's size; make experiments\n"
          "# predicted -: there is no prediction of heads with coordinates; front: no head of as few "
          "features remembers more\n"
          "head\tfamily\tD\tstate_bytes\tpairs_predicted\tpairs_counted\tfront\n",
          file);
    for (int i = 0; i < count; i++) {
        char predicted[32];
        prediction_text(&results[i], predicted, sizeof predicted);
        fprintf(file, "%s\t%s\t%.0f\t%.0f\t%s\t%.0f\t%s\n", results[i].head, results[i].family,
                results[i].features, results[i].state_bytes, predicted, results[i].counted,
                results[i].is_front ? "yes" : "no");
    }
    return output_close(file, "recall.tsv");
}

static bool write_chart(const char *folder, const result *results, int count)
{
    fpa_chart chart = {.title = "Recall against the size of the state",
                       .x_label = "D, features of the state",
                       .y_label = "pairs of which half come back"};
    bool done = true;
    for (int i = 0; i < count && done; i++)
        done = chart_add(&chart, results[i].family, false, results[i].features, results[i].counted);
    done = done && output_chart(folder, "recall.svg", &chart);
    chart_drop(&chart);
    return done;
}

static void tell(const void *found)
{
    const result *r = found;
    char predicted[32];
    prediction_text(r, predicted, sizeof predicted);
    printf("%-24s D %6.0f  %8s pairs predicted, %8.0f counted\n", r->head, r->features, predicted,
           r->counted);
}

static bool write_all(const char *folder, void *found, int count)
{
    mark_front(found, count);
    return write_table(folder, found, count) && write_chart(folder, found, count);
}

int main(int count, char **arguments)
{
    static const head_experiment experiment = {sizeof(result), measure, tell, write_all};
    if (count != 3) {
        fputs("usage: recall SPEC FOLDER\n", stderr);
        return 2;
    }
    return measure_heads(&experiment, arguments[1], arguments[2]);
}
