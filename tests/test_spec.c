/* The spec language: what its vocabulary means, and what is said of every likely mistake. */
#include "gen/spec/spec.h"
#include "gen/gen.h"
#include "claims.h"
#include "scratch.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static fpa_status load_text(const char *text, fpa_head_list *list, fpa_error *error)
{
    *error = (fpa_error){0};
    return spec_load_text("mine.lua", NULL, text, strlen(text), list, error);
}

/* Load text that must be right; shows the message when it is not. */
static void load_good(const char *text, fpa_head_list *list)
{
    fpa_error error;
    if (load_text(text, list, &error) != FPA_OK)
        fail_msg("%s: %s\n%s", error.where, error.message, text);
}

/* k(q, k) of a head of constants, by the definition in head.h; exact for small integers. */
static double evaluate(const fpa_head *head, const double *q, const double *k)
{
    double sum = 0;
    for (int t = 0; t < head->term_count; t++) {
        double product = head->terms[t].weight.value;
        for (int l = 0; l < head->terms[t].branch_count; l++) {
            const fpa_branch *branch = &head->terms[t].branches[l];
            double dot = 0;
            for (int w = 0; w < branch->width; w++) {
                double left = 0, right = 0, gram = branch->gram ? branch->gram[w].value : 1;
                for (int i = 0; i < head->d; i++) {
                    double entry = branch->source == FPA_INPUT
                                       ? i == branch->row[w]
                                       : head->matrices[branch->source].data[branch->row[w] * head->d + i];
                    left += entry * q[i];
                    right += entry * k[i];
                }
                dot += gram * left * right;
            }
            product *= dot;
        }
        sum += product;
    }
    return sum;
}

enum { SEED = 20250802 };

/* Small integers, the same every time. */
static void random_vector(unsigned *seed, double *x, int d)
{
    for (int i = 0; i < d; i++)
        x[i] = (double)((*seed = *seed * 1664525u + 1013904223u) >> 16 & 7) - 3;
}

/* ---- families ---- */

static void tspow_has_the_features_of_the_design_in_both_constructions(void **state)
{
    static const struct {
        int d, degree, block;
        double features;
    } cases[] = {
        {64, 2, 1, 2080},  {64, 2, 2, 2112},  {64, 2, 4, 2176},  {64, 2, 8, 2304},
        {64, 2, 16, 2560}, {64, 2, 64, 4096}, {64, 3, 8, 61440}, {64, 3, 16, 81920},
        {64, 3, 1, 45760}, {60, 2, 8, 2032},  {64, 1, 8, 64},    {7, 3, 3, 142},
        {8, 4, 1, 330},    {5, 5, 5, 3125},   {1, 16, 1, 1},     {16, 3, 4, 1280},
    };
    char text[512];
    fpa_head_list list;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text,
                 "local d, p, b = %d, %d, %d\n"
                 "return head { name = 'merged', d = d, terms = tspow { d = d, degree = p, block = b } },\n"
                 "       head { name = 'full', d = d,\n"
                 "              terms = tspow { d = d, degree = p, block = b, construction = 'full' } }",
                 cases[i].d, cases[i].degree, cases[i].block);
        load_good(text, &list);
        assert_true(head_features(list.heads[0]) == cases[i].features);
        assert_true(head_features(list.heads[0]) == head_features(list.heads[1]));
        assert_int_equal(list.heads[0]->block, cases[i].block);
        head_list_free(&list);
    }
}

static void every_construction_of_a_power_is_the_same_kernel(void **state)
{
    static const char *const sums[] = {
        "power { degree = p }",
        "spow { d = d, degree = p }",
        "tspow { d = d, degree = p, block = 2 }",
        "tspow { d = d, degree = p, block = 2, construction = 'full' }",
        "tspow { d = d, degree = p, block = 5 }",
        "tspow { d = d, degree = p, block = 7 }",
        "scaled(ratio(1, 3), tspow { d = d, degree = p, block = 3, weight = 3 })",
        "inhomogeneous { degree = p, constant = 0 }",
    };
    char text[512];
    fpa_head_list list;
    unsigned seed = SEED;

    for (int p = 1; p <= 5; p++)
        for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
            double q[7], k[7], dot = 0;
            snprintf(text, sizeof text, "local d, p = 7, %d return head { name = 'a', d = d, terms = %s }", p,
                     sums[i]);
            load_good(text, &list);
            random_vector(&seed, q, 7);
            random_vector(&seed, k, 7);
            for (int j = 0; j < 7; j++)
                dot += q[j] * k[j];
            assert_true(evaluate(list.heads[0], q, k) == pow(dot, p));
            head_list_free(&list);
        }
}

static void sums_have_their_formulas(void **state)
{
    static const struct {
        const char *terms;
        double at_two; /* k(q, k) where q.k = 2 */
    } cases[] = {
        {"linear {}", 2},
        {"linear()", 2},
        {"linear { weight = -3 }", -6},
        {"taylor {}", 1 + 2 + 2},
        {"taylor { degree = 4, weight = 3 }", 3 * (1 + 2 + 2 + 8 / 6. + 16 / 24.)},
        {"inhomogeneous { degree = 2, constant = 3 }", 25},
        {"inhomogeneous { degree = 3, constant = ratio(1, 2) }", 15.625},
        {"inhomogeneous { degree = 2, constant = -0.5 }", 2.25},
        {"{ linear {}, { power { degree = 2 }, { term { weight = 7 } } } }", 2 + 4 + 7},
        {"scaled(2, { linear {}, term {} })", 6},
        {"term { diagonal { 2, 1 } }", 8},
        {"term { diagonal { [range(1, 2)] = sqrt2 } }", 4},
        {"term { diagonal { [1] = 3 * sqrt2 / 2 } }", 9},
        {"term { diagonal { [1] = -sqrt(ratio(9, 4)) } }", 4.5},
        {"term { diagonal { [1] = gram(5), [2] = 0 } }", 10},
        {"{ linear {}, term { diagonal { [1] = 0 } }, term { identity(), diagonal { 0, 0 } } }", 2},
        {"term { select { 2, 1 }, select(range(1, 1)) }", 4},
        {"term { dense { { 1, 1 }, { 1, -1 } } }", 4},
        {"term { dense(rows({ { 9, 9 }, { 1, 0 }, { 0, 1 } }, 2, 3)) }", 2},
        {"term { identity(), weight = sqrt2 * sqrt2 }", 4},
        {"term { identity(), weight = 2^-1 + ratio(1, 2)^2 - 0.25 }", 1},
    };
    const double q[2] = {1, 0}, k[2] = {2, 5};
    char text[256];
    fpa_head_list list;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "return head { name = 'a', d = 2, terms = %s }", cases[i].terms);
        load_good(text, &list);
        assert_true(fabs(evaluate(list.heads[0], q, k) - cases[i].at_two) < 1e-14);
        head_list_free(&list);
    }
}

/* Lua does not tell { a, b } from { [1] = a, [2] = b }, so both name two of the coordinates. */
static void a_diagonal_names_the_coordinates_that_it_is_given(void **state)
{
    static const struct {
        const char *entries;
        int width;
    } cases[] = {{"{ [1] = 1, [2] = 1, [4] = 1, [9] = 1 }", 4},
                 {"{ [1] = 2, [2] = 1 }", 2},
                 {"{ [1] = 1, [9] = 2 }", 2},
                 {"{ 1, 2, 3, 4, 5, 6, 7, 8, 9 }", 9}};
    char text[256];
    fpa_head_list list;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "return head { name = 'a', d = 9, terms = term { diagonal %s } }",
                 cases[i].entries);
        load_good(text, &list);
        assert_int_equal(list.heads[0]->terms[0].branches[0].width, cases[i].width);
        head_list_free(&list);
    }
}

static void kernel_weights_stay_exact(void **state)
{
    static const struct {
        const char *entry;
        int64_t num, den;
    } cases[] = {{"sqrt2", 2, 1},       {"3 * sqrt2", 18, 1},    {"-sqrt2", 2, 1},
                 {"sqrt2 / 2", 1, 2},   {"1 / sqrt(3)", 1, 3},   {"gram(ratio(2, 7))", 2, 7},
                 {"ratio(2, 3)", 4, 9}, {"0.5 * sqrt(6)", 3, 2}, {"sqrt2 ^ 3", 8, 1},
                 {"math.sqrt(5)", 5, 1}};
    char text[256];
    fpa_head_list list;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text,
                 "return head { name = 'a', d = 2, terms = term { diagonal { [2] = %s } } }", cases[i].entry);
        load_good(text, &list);
        const fpa_number *gram = list.heads[0]->terms[0].branches[0].gram;
        assert_int_equal(gram[0].num, cases[i].num);
        assert_int_equal(gram[0].den, cases[i].den);
        head_list_free(&list);
    }
}

static void numbers_of_any_size_stay_exact(void **state)
{
    fpa_head_list list;

    load_good(
        "local tenth = ratio(1, 10)\n"
        "local tiny = tenth ^ 40\n"
        "assert(1 + tiny - 1 == tiny and 1 + tiny > 1 and tiny > 0 and tiny < 1e-39)\n"
        "assert(sqrt(tiny) == tenth ^ 20 and sqrt(tiny) * sqrt(10) > sqrt(tiny))\n"
        "assert((sqrt2 * tenth ^ 30) ^ 2 == 2 * tenth ^ 60 and -tiny < tiny)\n"
        "assert(ratio(0.1, 1) ~= tenth and ratio(1e-30, 1) ~= tenth ^ 30 and tiny / tiny == 1 * tenth ^ 0)\n"
        "assert(ratio(math.tointeger(-2^63), 1) + 1 == -9223372036854775807 * (tenth ^ 0))\n"
        "local one = term { diagonal { [range(1, 2)] = tenth ^ 20, [3] = 0.1 }, weight = tiny }\n"
        "return head { name = 'a', d = 4, terms = {\n"
        "  one, scaled(ratio(1e40, 3), one), scaled(1e-9, { term { weight = 1e-9 } }) } }",
        &list);
    char *text = head_print(list.heads[0]);
    head_list_free(&list);
    /* squares of the doubles 0.1 and 1e-9 to their last digit; the double 1e40 is not 10^40 */
    static const char *const parts[] = {
        "\nterm 1/10000000000000000000000000000000000000000 branches 1\n",
        "\nterm 9094947017729282655442173952/27284841053187847137451171875 branches 1\n",
        "\nterm 23384026197294449604047689839289/23384026197294446691258957323460528314494920687616 branches "
        "0\n",
        "\nbranch diagonal input 1-3 gram 1/10000000000000000000000000000000000000000*2,"
        "12980742146337070512478121581609/1298074214633706907132624082305024*1\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(text, parts[i]))
            fail_msg("%s is missing in\n%s", parts[i], text);
    free(text);
}

static void fields_of_a_head_arrive(void **state)
{
    fpa_head_list list;

    load_good(
        "local d = 16\n"
        "local W = trainable { name = 'W', rows = 3, shared = true }\n"
        "return {\n"
        "  head { name = 'plain', d = d, terms = linear {} },\n"
        "  head { name = 'full', d = d, dv = 8, chunk = 32, block = 4, scale = 1 / sqrt(d), gate = true,\n"
        "         normalize = { 'sum', eps = 0.5 }, dtype = 'bf16', state_dtype = 'f16',\n"
        "         terms = term { W, W, trainable { name = 'g', diagonal = true } } },\n"
        "  head { name = 'all', d = d, causal = false, normalize = 'max', eps = 2, products = 'tf32x3',\n"
        "         terms = { tspow { d = d, degree = 2, block = 2 }, spow { d = d, degree = 2 } } } }",
        &list);
    const fpa_head *plain = list.heads[0], *full = list.heads[1], *all = list.heads[2];
    assert_int_equal(list.count, 3);
    assert_string_equal(plain->origin, "mine.lua:4");
    assert_int_equal(plain->dv, 16);
    assert_true(plain->causal && !plain->gate && plain->scale == 1 && plain->eps == 1e-6 && !plain->chunk);
    assert_int_equal(full->dv, 8);
    assert_int_equal(full->chunk, 32);
    assert_int_equal(full->block, 4);
    assert_true(full->gate && full->scale == 0.25 && full->eps == 0.5);
    assert_int_equal(full->normalize, FPA_NORMALIZE_SUM);
    assert_int_equal(full->dtype, FPA_BF16);
    assert_int_equal(full->state_dtype, FPA_F16);
    assert_int_equal(full->matrix_count, 2);
    assert_false(full->matrices[0].per_head);
    assert_true(full->matrices[1].per_head);
    assert_int_equal(full->matrices[1].kind, FPA_MATRIX_TRAINABLE_DIAGONAL);
    assert_int_equal(full->terms[0].branches[1].source, 0);
    assert_true(!all->causal && all->eps == 2);
    assert_int_equal(plain->products, FPA_PRODUCTS_PLAIN);
    assert_int_equal(all->products, FPA_PRODUCTS_TF32X3);
    assert_int_equal(all->block, 0); /* lists of different blocks */
    head_list_free(&list);
}

static void equal_matrices_are_one_matrix(void **state)
{
    fpa_head_list list;
    load_good("local W = dense { { 1, 2 } }\n"
              "return head { name = 'a', d = 2, terms = { term { W, W }, term { dense { { 1, 2 } } },\n"
              "  term { dense { { 1, 3 } } } } }",
              &list);
    assert_int_equal(list.heads[0]->matrix_count, 2);
    head_list_free(&list);
}

static void an_orthogonal_matrix_is_orthonormal_and_the_same_everywhere(void **state)
{
    fpa_head_list list;

    load_good("return head { name = 'a', d = 24, terms = term { dense(orthogonal { d = 24, rows = 20, seed = "
              "7 }) } }",
              &list);
    const fpa_matrix *matrix = &list.heads[0]->matrices[0];
    for (int r = 0; r < 20; r++)
        for (int s = 0; s <= r; s++) {
            double dot = 0;
            for (int c = 0; c < 24; c++)
                dot += matrix->data[r * 24 + c] * matrix->data[s * 24 + c];
            assert_true(fabs(dot - (r == s)) < 1e-14);
        }
    /* from an independent program: splitmix64, twelve uniforms, Gram-Schmidt twice */
    assert_true(matrix->data[0] == -0x1.9c03e73807ef9p-3);
    assert_true(matrix->data[20 * 24 - 1] == -0x1.33a8e346eaeb8p-3);
    head_list_free(&list);
}

/* ---- files ---- */

static void a_matrix_is_read_from_the_specs_own_folder(void **state)
{
    static const unsigned char npy[] =
        "\x93NUMPY\1\0\x46\0"
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }          \n";
    const double data[6] = {1, 2, 3, 4, 5, 6};
    char folder[64], path[128];
    fpa_head_list list;
    fpa_error error;

    scratch_make(folder);
    snprintf(path, sizeof path, "%s/w.npy", folder);
    FILE *file = fopen(path, "wb");
    fwrite(npy, 1, sizeof npy - 1, file);
    fwrite(data, 1, sizeof data, file);
    fclose(file);
    snprintf(path, sizeof path, "%s/mine.lua", folder);
    file = fopen(path, "wb");
    fputs("\xef\xbb\xbflocal M = npy 'w.npy'\n"
          "return head { name = 'a', d = 3, terms = { term { dense 'w.npy' }, term { dense { M[2] } } } }",
          file);
    fclose(file);
    assert_int_equal(spec_load(path, &list, &error), FPA_OK);
    assert_int_equal(list.heads[0]->matrix_count, 2);
    assert_memory_equal(list.heads[0]->matrices[0].data, data, sizeof data);
    assert_memory_equal(list.heads[0]->matrices[1].data, data + 3, 3 * sizeof *data);
    head_list_free(&list);
    scratch_remove(folder);
}

static void a_file_that_is_not_there_is_refused(void **state)
{
    fpa_head_list list;
    fpa_error error;

    assert_int_equal(spec_load("specs/no_such.lua", &list, &error), FPA_IO);
    assert_string_equal(error.where, "specs/no_such.lua");
    assert_string_equal(error.message, "cannot be opened: No such file or directory");
    assert_int_equal(spec_load("specs", &list, &error), FPA_IO);
    assert_string_equal(error.message,
                        "is a folder, but a spec is a Lua file; the folder of a bundle has manifest.fpa");
}

static int ends_in_lua(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 4 && strcmp(entry->d_name + length - 4, ".lua") == 0;
}

static void check_shipped(const char *folder, const char *file, char names[256][HEAD_MAX_NAME + 1],
                          int *count)
{
    char path[300];
    fpa_head_list first, second;
    fpa_error error;

    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (spec_load(path, &first, &error) != FPA_OK)
        fail_msg("%s: %s", error.where, error.message);
    assert_int_equal(spec_load(path, &second, &error), FPA_OK);
    assert_int_equal(first.count, second.count);
    for (int h = 0; h < first.count; h++) {
        char *text = head_print(first.heads[h]), *again = head_print(second.heads[h]);
        assert_string_equal(text, again);
        free(text);
        free(again);
        for (int n = 0; n < *count; n++)
            assert_string_not_equal(names[n], first.heads[h]->name);
        strcpy(names[(*count)++], first.heads[h]->name);
    }
    head_list_free(&first);
    head_list_free(&second);
}

static void every_shipped_spec_loads_the_same_twice_under_names_of_its_own(void **state)
{
    static const char *const folders[] = {"specs", "specs/models"};
    static char names[256][HEAD_MAX_NAME + 1];
    int heads = 0;

    for (int f = 0; f < 2; f++) {
        struct dirent **files;
        const int count = scandir(folders[f], &files, ends_in_lua, alphasort);
        assert_true(count > 0);
        for (int i = 0; i < count; i++) {
            check_shipped(folders[f], files[i]->d_name, names, &heads);
            free(files[i]);
        }
        free(files);
    }
    assert_true(heads >= 40);
}

/* It asks for nothing. */
static void an_eps_of_0_is_accepted_whatever_the_normaliser(void **state)
{
    static const char *const fields[] = {"eps = 0", "normalize = { 'one_plus_sum', eps = 0 }",
                                         "normalize = { 'sum', eps = 0 }"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        char text[160];
        fpa_head_list list;
        snprintf(text, sizeof text, "return head { name = 'a', d = 4, terms = linear {}, %s }", fields[i]);
        load_good(text, &list);
        assert_true(list.heads[0]->eps == 0);
        head_list_free(&list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tspow_has_the_features_of_the_design_in_both_constructions),
        cmocka_unit_test(every_construction_of_a_power_is_the_same_kernel),
        cmocka_unit_test(sums_have_their_formulas),
        cmocka_unit_test(a_diagonal_names_the_coordinates_that_it_is_given),
        cmocka_unit_test(kernel_weights_stay_exact),
        cmocka_unit_test(numbers_of_any_size_stay_exact),
        cmocka_unit_test(fields_of_a_head_arrive),
        cmocka_unit_test(an_eps_of_0_is_accepted_whatever_the_normaliser),
        cmocka_unit_test(equal_matrices_are_one_matrix),
        cmocka_unit_test(an_orthogonal_matrix_is_orthonormal_and_the_same_everywhere),
        cmocka_unit_test(a_matrix_is_read_from_the_specs_own_folder),
        cmocka_unit_test(a_file_that_is_not_there_is_refused),
        cmocka_unit_test(every_shipped_spec_loads_the_same_twice_under_names_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
