/* fpac design: what it predicts of recall and features is what is; what it ranks, writes and refuses. */
#include "command/capacity.h"
#include "claims.h"
#include "command_place.h"
#include "dear.h"
#include "gen/gen.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- recall ---- */

/* The only head of a text, with its moments. */
static int measure(const char *text, kernel_moments *moments)
{
    fpa_head_list list = {0};
    fpa_simplified simple;
    fpa_error error = {0};
    if (spec_load_text("test", NULL, text, strlen(text), &list, &error) ||
        simplify(list.heads[0], &simple, &error))
        fail_msg("%s: %s\n%s", error.where, error.message, text);
    const int dv = list.heads[0]->dv;
    assert_ok(kernel_measure(&simple, 1 / sqrt((double)list.heads[0]->d), moments, &error), &error);
    simplified_free(&simple);
    head_list_free(&list);
    return dv;
}

/* What `build/examples/recall /usr/share/common-licenses/GPL-3` counted: of 998 pairs. */
static void predicted_recall_is_that_of_the_example(void **state)
{
    static const struct {
        const char *spec;
        int recalled;
    } heads[] = {
        {"return head { name = 'h', d = 16, dv = 64, terms = linear {} }", 13},
        {"return head { name = 'h', d = 32, dv = 64, terms = linear {} }", 33},
        {"return head { name = 'h', d = 64, dv = 64, terms = linear {} }", 100},
        {"return head { name = 'h', d = 16, dv = 64, terms = tspow { d = 16, degree = 2, block = 4 } }", 165},
        {"return head { name = 'h', d = 32, dv = 64, terms = tspow { d = 32, degree = 2, block = 8 } }", 865},
        {"return head { name = 'h', d = 64, dv = 64, terms = tspow { d = 64, degree = 2, block = 8 } }", 998},
        {"return head { name = 'h', d = 16, dv = 64, terms = tspow { d = 16, degree = 3, block = 4 } }", 873},
    };
    for (unsigned i = 0; i < sizeof heads / sizeof *heads; i++) {
        kernel_moments moments;
        const int dv = measure(heads[i].spec, &moments);
        const double share = capacity_share(&moments, dv, 998), counted = heads[i].recalled / 998.0;
        if (fabs(share - counted) > 0.04)
            fail_msg("%s: %.3f predicted, %.3f counted", heads[i].spec, share, counted);
    }
}

static double next_uniform(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) * 0x1p-53 - 0.5;
}

/* [count][width], each of length 1. */
static double *directions(uint64_t seed, int count, int width)
{
    double *out = calloc((size_t)count * (size_t)width, sizeof *out);
    assert_non_null(out);
    for (int r = 0; r < count; r++) {
        double square = 0, *row = out + (size_t)r * (size_t)width;
        for (int c = 0; c < width; c++) {
            for (int i = 0; i < 12; i++) /* a sum of twelve uniform numbers is nearly normal */
                row[c] += next_uniform(&seed);
            square += row[c] * row[c];
        }
        for (int c = 0; c < width; c++)
            row[c] /= sqrt(square);
    }
    return out;
}

static double dot(const double *a, const double *b, int width)
{
    double sum = 0;
    for (int i = 0; i < width; i++)
        sum += a[i] * b[i];
    return sum;
}

/* (rows 1..16 of q . k) (q . k), d = dv = 32: a head that is no polynomial of q.k. */
static double block_kernel(const double *a, const double *b)
{
    return dot(a, b, 16) * dot(a, b, 32);
}

/* Pairs are stored and asked for, one by one, in double. */
static double count_recalled(int pairs)
{
    enum { WIDTH = 32 };
    double *keys = directions(3, pairs, WIDTH), *codes = directions(4, pairs, WIDTH), o[WIDTH];
    int recalled = 0;
    for (int q = 0; q < pairs; q++) {
        int best = 0;
        memset(o, 0, sizeof o);
        for (int j = 0; j < pairs; j++) {
            const double k = block_kernel(keys + (size_t)q * WIDTH, keys + (size_t)j * WIDTH);
            for (int c = 0; c < WIDTH; c++)
                o[c] += k * codes[(size_t)j * WIDTH + (size_t)c];
        }
        for (int j = 1; j < pairs; j++)
            if (dot(o, codes + (size_t)j * WIDTH, WIDTH) > dot(o, codes + (size_t)best * WIDTH, WIDTH))
                best = j;
        recalled += best == q;
    }
    free(keys);
    free(codes);
    return (double)recalled / pairs;
}

static void predicted_recall_is_counted_for_products_too(void **state)
{
    kernel_moments moments;
    const int dv = measure("return head { name = 'h', d = 32, dv = 32, "
                           "terms = { term { select(range(1, 16)), identity() } } }",
                           &moments);
    for (int pairs = 100; pairs <= 400; pairs *= 2) {
        const double share = capacity_share(&moments, dv, pairs), counted = count_recalled(pairs);
        if (fabs(share - counted) > 0.06)
            fail_msg("%d pairs: %.3f predicted, %.3f counted", pairs, share, counted);
    }
}

static void a_power_is_worth_its_moment(void **state)
{
    kernel_moments moments;
    measure("return head { name = 'h', d = 64, dv = 8, terms = linear {} }", &moments);
    assert_true(fabs(capacity_features(&moments) - 64) < 1e-9);
    assert_true(moments.is_negative);
    measure("return head { name = 'h', d = 64, dv = 8, terms = power { degree = 2 } }", &moments);
    assert_true(fabs(capacity_features(&moments) - 64 * 66 / 3.0) < 1e-9);
    assert_false(moments.is_negative);
    measure("return head { name = 'h', d = 16, dv = 8, terms = spow { d = 16, degree = 3 } }", &moments);
    assert_true(fabs(capacity_features(&moments) - 16 * 18 * 20 / 15.0) < 1e-9);
}

static void more_pairs_come_back_of_fewer(void **state)
{
    kernel_moments moments;
    const int dv =
        measure("return head { name = 'h', d = 16, dv = 32, terms = spow { d = 16, degree = 2 } }", &moments);
    for (int pairs = 2; pairs < 4096; pairs *= 2)
        assert_true(capacity_share(&moments, dv, pairs) >= capacity_share(&moments, dv, 2 * pairs));
    assert_true(capacity_pairs(&moments, dv, 0.9) < capacity_pairs(&moments, dv, 0.5));
    const double most = capacity_pairs(&moments, dv, 0.5);
    assert_true(capacity_share(&moments, dv, most) >= 0.5 &&
                capacity_share(&moments, dv, 1.01 * most + 2) < 0.5);
}

static void a_kernel_that_is_nothing_recalls_nothing(void **state)
{
    fpa_head_list list = {0};
    fpa_simplified simple;
    kernel_moments moments;
    fpa_error error;
    static const char text[] =
        "return head { name = 'h', d = 4, dv = 4, terms = { term { identity(), weight = -1 } } }";
    assert_int_equal(spec_load_text("test", NULL, text, strlen(text), &list, &error), FPA_OK);
    assert_int_equal(simplify(list.heads[0], &simple, &error), FPA_OK);
    assert_int_equal(kernel_measure(&simple, 1, &moments, &error), FPA_UNSUPPORTED);
    assert_non_null(strstr(error.message, "no value can be recalled"));
    simplified_free(&simple);
    head_list_free(&list);
}

/* ---- the command ---- */

#define DESIGN(...) RUN("fpac", "design", "--target", "c:avx2", __VA_ARGS__)

/* The numbers behind `"name": ` in a JSON text, in their order; how many there are. */
static int numbers_of(const char *text, const char *name, double *numbers, int most)
{
    char mark[64];
    int count = 0;
    snprintf(mark, sizeof mark, "\"%s\": ", name);
    for (const char *at = text; (at = strstr(at, mark)) && count < most; count++)
        numbers[count] = strtod(at += strlen(mark), NULL);
    return count;
}

static void rows_fit_and_begin_with_the_front_by_falling_recall(void **state)
{
    enum { MOST = 512 };
    double bytes[MOST], pairs[MOST], front[MOST], prefill[MOST];
    program_result result = DESIGN("--d", "16", "--dv", "64", "--state", "320KiB", "--json");
    const int count = numbers_of(result.out, "state_bytes", bytes, MOST);
    assert_true(count > 20);
    assert_int_equal(numbers_of(result.out, "recall_pairs", pairs, MOST), count);
    assert_int_equal(numbers_of(result.out, "front", front, MOST), count);
    assert_int_equal(numbers_of(result.out, "prefill_ns", prefill, MOST), count);
    assert_true(front[0] == 1);
    for (int i = 0; i < count; i++) {
        assert_true(bytes[i] <= 320 * 1024 && prefill[i] > 0);
        for (int j = 0; j < count && front[i] == 1; j++)
            assert_false(pairs[j] > pairs[i] && prefill[j] < prefill[i]);
        if (i > 0 && front[i] == front[i - 1])
            assert_true(pairs[i] <= pairs[i - 1]);
        else if (i > 0)
            assert_true(front[i] == front[i - 1] + 1);
    }
    expect(result, 0, "\"label\": \"linear\"", NULL);
}

/* power { degree = 3 } at d = 16 has 960 features, spow 816, and TSPOW by blocks of 4 1280. */
static void blocks_of_one_function_are_compared(void **state)
{
    program_result result = DESIGN("--d", "16", "--dv", "64", "--state", "512KiB", "--rows", "100");
    assert_non_null(strstr(result.out, "    960   240.0 KiB"));
    assert_non_null(strstr(result.out, "   1280   320.0 KiB"));
    assert_non_null(strstr(result.out, "(q.k)^3 is one function by every block: D = 816 by spow 3"));
    assert_non_null(strstr(result.out, "; D = 960 by power 3"));
    assert_non_null(strstr(result.out, "; D = 1280 by tspow 3, block 4"));
    expect(result, 0, "    816   204.0 KiB", NULL);
    expect(DESIGN("--d", "64", "--state", "64KiB", "--normalize", "sum"), 0, "may divide by almost 0", NULL);
}

/* What is written opens, and has the features that were predicted. make test: every fourth row. */
static void every_row_can_be_written_and_explains_as_predicted(void **state)
{
    place here;
    char path[PATH], number[16], features[64];
    double predicted[512];
    place_begin(&here, tiny_spec);
    place_file(&here, "mine.lua", path);
    program_result result = DESIGN("--d", "16", "--state", "24KiB", "--json", "--gate", "--normalize", "max");
    const int count = numbers_of(result.out, "features", predicted, 512);
    program_free(&result);
    assert_true(count > 15);
    for (int i = 0; i < count; i += dear_tests() ? 1 : 4) {
        snprintf(number, sizeof number, "%d", i + 1);
        snprintf(features, sizeof features, "\"features\": %.0f,", predicted[i]);
        expect(DESIGN("--d", "16", "--state", "24KiB", "--gate", "--normalize", "max", "-o", path, "--choose",
                      number),
               0, NULL, NULL);
        expect(RUN("fpac", "explain", path, "--target", "c:avx2", "--json"), 0, features, NULL);
    }
    expect(RUN("fpac", "explain", path), 0, "head mine ", NULL);
    expect(DESIGN("--d", "16", "--state", "24KiB", "-o", path, "--choose", "9999"), 2, NULL, "rows only");
    scratch_remove(here.folder);
}

/* The least of the fastest candidates' ns in `explain --length --json`. */
static double least_of_fastest(const char *text)
{
    static const char mark[] = "\"ns_per_token_and_head\": ";
    double least = INFINITY, last = INFINITY;
    for (const char *at = text; *at; at++) {
        if (!strncmp(at, mark, strlen(mark)))
            last = strtod(at + strlen(mark), NULL);
        if (!strncmp(at, "\"fastest\": true", strlen("\"fastest\": true")))
            least = fmin(least, last);
    }
    return least;
}

static void what_is_predicted_is_what_explain_says(void **state)
{
    static const char *const targets[] = {"c:avx2", "cuda:sm_90a"};
    place here;
    char path[PATH];
    place_begin(&here, tiny_spec);
    place_file(&here, "mine.lua", path);
    for (int i = 0; i < 2; i++) {
#define CALL "--target", targets[i], "--dtype", "bf16", "--length", "4096", "--heads", "16"
        double prefill = 0, decode = 0;
        program_result rows =
            RUN("fpac", "design", "--d", "32", "--state", "80KiB", CALL, "-o", path, "--json");
        assert_int_equal(numbers_of(rows.out, "prefill_ns", &prefill, 1), 1);
        assert_int_equal(numbers_of(rows.out, "decode_ns", &decode, 1), 1);
        program_result call = RUN("fpac", "explain", path, CALL, "--json");
        assert_true(fabs(least_of_fastest(call.out) / prefill - 1) < 1e-9);
        program_free(&call);
        call = RUN("fpac", "explain", path, "--target", targets[i], "--length", "1", "--heads", "16",
                   "--form", "recurrent", "--json");
        assert_true(fabs(least_of_fastest(call.out) / decode - 1) < 1e-9);
        program_free(&call);
        expect(rows, 0, NULL, NULL);
    }
    scratch_remove(here.folder);
}

static void with_a_normaliser_kernels_that_change_their_sign_come_last(void **state)
{
    program_result result = DESIGN("--d", "16", "--state", "24KiB", "--json", "--normalize", "sum");
    const char *last = NULL;
    for (const char *at = result.out; (at = strstr(at, "\"is_negative\": false")); at++)
        last = at;
    const char *first = strstr(result.out, "\"is_negative\": true");
    assert_true(last && first && last < first);
    expect(result, 0, NULL, NULL);
}

static void a_picture_shows_the_front(void **state)
{
    place here;
    char path[PATH];
    place_begin(&here, tiny_spec);
    place_file(&here, "front.svg", path);
    expect(DESIGN("--d", "16", "--state", "64KiB", "--plot", path), 0, NULL, NULL);
    char *text = text_read(path, NULL);
    assert_non_null(text);
    assert_non_null(strstr(text, "none recalls more in less time"));
    assert_non_null(strstr(text, "pairs recalled"));
    free(text);
    scratch_remove(here.folder);
}

static void rows_are_compiled_verified_and_timed(void **state)
{
    double measured[4];
    program_result result =
        RUN("fpac", "design", "--d", "8", "--state", "1KiB", "--length", "64", "--measure", "2", "--json");
    assert_int_equal(numbers_of(result.out, "measured_prefill_ns", measured, 4), 2);
    assert_true(measured[0] > 0 && measured[1] > 0);
    expect(result, 0, NULL, NULL);
}

static void a_wrong_request_is_told_with_its_remedy(void **state)
{
    expect(DESIGN("--d", "64", "--state", "100"), 2, NULL,
           "100 B is too small for any head of d = 64, dv = 64: the ");
    expect(RUN("fpac", "design", "--d", "8", "--state", "1KiB", "--target", "sm_90", "--gpu", "h10"), 2, NULL,
           "h10 is no GPU of the table; did you mean a10? (there are a100, a10");
    expect(RUN("fpac", "design", "--d", "8", "--state", "1KiB", "--target", "c:avx2", "--gpu", "h100"), 2,
           NULL, "--gpu: names a GPU, but target c:avx2 runs on the CPU");
    expect(RUN("fpac", "design", "--d", "8", "--state", "1KiB", "--target", "sm_90", "--gpu", "h100"), 0,
           "; cuda:sm_90 on h100, ", NULL);
    expect(RUN("fpac", "design", "--d", "264", "--state", "300KiB", "--target", "sm_90"), 1, NULL,
           "cuda:sm_90: supports none of the heads of d = 264, dv = 264: its kernels take d up to 256 and dv "
           "up to 512");
    expect(DESIGN("--d", "64", "--state", "10 parsecs"), 2, NULL, "write 512KiB");
    expect(DESIGN("--d", "64", "--state", "-1KiB"), 2, NULL, "write 512KiB");
    expect(DESIGN("--d", "64", "--state", "1MiB", "--normalize", "some"), 2, NULL, "max, one_plus_sum");
    expect(DESIGN("--d", "64", "--state", "1MiB", "--dtype", "f8"), 2, NULL, "f32, bf16, f16");
    expect(DESIGN("--state", "1MiB"), 2, NULL, "--d: is needed");
    expect(DESIGN("--d", "64"), 2, NULL, "--state: is needed");
    expect(DESIGN("--d", "2048", "--state", "1MiB"), 2, NULL, "--d: needs a whole number");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predicted_recall_is_that_of_the_example),
        cmocka_unit_test(predicted_recall_is_counted_for_products_too),
        cmocka_unit_test(a_power_is_worth_its_moment),
        cmocka_unit_test(more_pairs_come_back_of_fewer),
        cmocka_unit_test(a_kernel_that_is_nothing_recalls_nothing),
        cmocka_unit_test(rows_fit_and_begin_with_the_front_by_falling_recall),
        cmocka_unit_test(blocks_of_one_function_are_compared),
        cmocka_unit_test(every_row_can_be_written_and_explains_as_predicted),
        cmocka_unit_test(what_is_predicted_is_what_explain_says),
        cmocka_unit_test(with_a_normaliser_kernels_that_change_their_sign_come_last),
        cmocka_unit_test(a_picture_shows_the_front),
        cmocka_unit_test(rows_are_compiled_verified_and_timed),
        cmocka_unit_test(a_wrong_request_is_told_with_its_remedy),
    };
    return cmocka_run_group_tests_name("design", tests, NULL, NULL);
}
