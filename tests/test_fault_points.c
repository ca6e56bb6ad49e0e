/* Points of templates, where tests make faults: each is one place, each is used, and what cannot be made is
 * no fault. */
#include "gen/embedded.h"
#include "gen/emit/template.h"
#include "emulate/faults.h"
#include "emulate/faults_backward.h"
#include "emulate/faults_passes.h"
#include "claims.h"
#include "faults_backward.h"
#include "faults_c.h"
#include "faults_cuda.h"

#include <stdlib.h>
#include <string.h>

/* A table of faults: alone, or within the struct that says which head has them. */
struct table {
    const void *first;
    size_t size, at, count; /* of an item, of the fault in it; items */
};

#define FAULTS_OF(table)                                                                                     \
    {                                                                                                        \
        table, sizeof *table, 0, sizeof table / sizeof *table                                                \
    }
#define HEADS_OF(table)                                                                                      \
    {                                                                                                        \
        table, sizeof *table, offsetof(__typeof__(*table), fault), sizeof table / sizeof *table              \
    }

static const struct table tables[] = {
    FAULTS_OF(c_faults),
    FAULTS_OF(abreast_faults),
    FAULTS_OF(window_faults),
    FAULTS_OF(pair_faults),
    FAULTS_OF(word_faults),
    FAULTS_OF(even_word_faults),
    FAULTS_OF(half_faults),
    FAULTS_OF(value_faults),
    FAULTS_OF(open_pair_faults),
    FAULTS_OF(open_faults),
    FAULTS_OF(lift_faults),
    FAULTS_OF(cuda_faults),
    FAULTS_OF(backward_faults),
    FAULTS_OF(backward_matrix_faults),
    FAULTS_OF(backward_wave_faults),
    FAULTS_OF(backward_everywhere_faults),
    FAULTS_OF(backward_random_faults),
    FAULTS_OF(backward_sketch_faults),
    HEADS_OF(split_faults),
    HEADS_OF(fused_faults),
    HEADS_OF(rows_faults),
    HEADS_OF(cluster_scan_faults),
    HEADS_OF(decode_faults),
    HEADS_OF(lift_faults_of_cuda),
    HEADS_OF(window_faults_of_cuda),
    HEADS_OF(cuda_backward_faults),
    HEADS_OF(cuda_pass_faults),
    HEADS_OF(cuda_value_pass_faults),
    HEADS_OF(cuda_reversed_faults),
    HEADS_OF(cuda_row_pass_faults),
};

/* Of all tables; NULL: there are no more. */
static const struct fault *fault_at(size_t i)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; i -= tables[t++].count)
        if (i < tables[t].count)
            return (const struct fault *)((const char *)tables[t].first + i * tables[t].size + tables[t].at);
    return NULL;
}

/* A line that is a point. */
struct point {
    const char *file, *name, *line; /* line: of the template's text, behind it */
    size_t size;
};

static bool same_name(const struct point *a, const struct point *b)
{
    return a->size == b->size && !strncmp(a->name, b->name, a->size);
}

/* All of the templates, in order; returns how many. */
static int find_points(struct point *points, int most)
{
    int count = 0;
    for (const struct fpa_embedded_file *file = fpa_embedded_templates; file->name; file++) {
        struct point next = {.file = file->name, .line = file->text};
        while ((next.name = template_next_point(&next.line, &next.size))) {
            assert_true(count < most);
            points[count++] = next;
        }
    }
    return count;
}

enum { MOST_POINTS = 1000 };
static struct point points[MOST_POINTS];

static void every_point_is_used_by_a_fault(void **state)
{
    const int count = find_points(points, MOST_POINTS);
    int unused = 0;
    for (int i = 0; i < count; i++) {
        bool used = false;
        for (size_t f = 0; fault_at(f) && !used; f++)
            used = strlen(fault_at(f)->point) == points[i].size &&
                   !strncmp(fault_at(f)->point, points[i].name, points[i].size);
        if (!used)
            print_message("%s: no fault is made at '%.*s'\n", points[i].file, (int)points[i].size,
                          points[i].name);
        unused += !used;
    }
    print_message("%d lines of templates\n", count);
    assert_true(count > 0);
    assert_int_equal(unused, 0);
}

static void every_fault_is_made_at_a_point(void **state)
{
    const int count = find_points(points, MOST_POINTS);
    for (size_t f = 0; fault_at(f); f++) {
        bool found = false;
        for (int i = 0; i < count && !found; i++)
            found = strlen(fault_at(f)->point) == points[i].size &&
                    !strncmp(fault_at(f)->point, points[i].name, points[i].size);
        if (!found)
            fail_msg("'%s': no line of the templates is the point %s", fault_at(f)->what, fault_at(f)->point);
    }
}

/* Lines of one name follow each other: between them is no other line. */
static bool follows(const struct point *before, const struct point *point)
{
    return before->file == point->file && strchrnul(before->line, '\n') == point->name + point->size;
}

static void a_point_is_one_line_or_some_in_a_row(void **state)
{
    const int count = find_points(points, MOST_POINTS);
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++)
            if (same_name(&points[i], &points[j]) &&
                !(same_name(&points[j - 1], &points[j]) && follows(&points[j - 1], &points[j])))
                fail_msg("%s and %s have points of the name '%.*s'", points[i].file, points[j].file,
                         (int)points[i].size, points[i].name);
}

static void every_fault_has_words_of_its_own_that_it_is_refused_with(void **state)
{
    for (size_t i = 0; fault_at(i); i++) {
        assert_true(strlen(fault_at(i)->says) > 0);
        for (size_t j = 0; j < i; j++)
            if (!strcmp(fault_at(i)->point, fault_at(j)->point) && fault_at(i)->wrong && fault_at(j)->wrong &&
                !strcmp(fault_at(i)->wrong, fault_at(j)->wrong))
                fail_msg("'%s' and '%s' are the same fault", fault_at(i)->what, fault_at(j)->what);
    }
}

/* ---- what cannot be made ---- */

static const char spec[] = "return head { name = 'small', d = 16, dv = 16, terms = linear {} }\n";

static void refuse(const char *point, const char *wrong, const char *target, const char *words)
{
    const fpa_fault fault = {.point = point, .wrong = wrong};
    fpa_head_list list;
    fpa_source source;
    fpa_error error = {0};
    assert_int_equal(spec_load_text("points.lua", NULL, spec, sizeof spec - 1, &list, &error), FPA_OK);
    assert_int_equal(source_generate_faulty(list.heads[0], target, &fault, &source, &error), FPA_INVALID);
    assert_null(source.code);
    if (!strstr(error.message, words))
        fail_msg("'%s' does not say '%s'", error.message, words);
    head_list_free(&list);
}

static void a_fault_at_an_unknown_point_is_none(void **state)
{
    refuse("nowhere", NULL, "c:sse2", "no line of the templates");
}

static void a_fault_that_changes_nothing_is_none(void **state)
{
    refuse("key_head", "    u.h = u.query_head / group_of(a);", "c:sse2", "changes nothing");
    refuse("tile_suffix", NULL, "c:sse2", "changes nothing"); /* a point of CUDA kernels */
    refuse("token_decay", NULL, "c:sse2", "changes nothing"); /* of gates, which the head has not */
}

static void a_fault_that_cannot_be_translated_is_none(void **state)
{
    refuse("key_head", "u.h = ${;", "c:sse2", "parallel.c.in:");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_point_is_used_by_a_fault),
        cmocka_unit_test(every_fault_is_made_at_a_point),
        cmocka_unit_test(a_point_is_one_line_or_some_in_a_row),
        cmocka_unit_test(every_fault_has_words_of_its_own_that_it_is_refused_with),
        cmocka_unit_test(a_fault_at_an_unknown_point_is_none),
        cmocka_unit_test(a_fault_that_changes_nothing_is_none),
        cmocka_unit_test(a_fault_that_cannot_be_translated_is_none),
    };
    return cmocka_run_group_tests_name("fault points", tests, NULL, NULL);
}
