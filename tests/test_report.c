/* fpac report: pages that are well-formed, self-contained, escaped, the same for the same input, and true. */
#include "claims.h"
#include "command_place.h"
#include "program.h"
#include "xml.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Everything that a page draws: all branch kinds, gates and normalisers, a head that sees everything. */
static const char many_heads_spec[] =
    "return {\n"
    "  head { name = 'square', d = 16, dv = 8, scale = 1 / 4, normalize = 'sum', gate = true,\n"
    "         terms = tspow { d = 16, degree = 2, block = 4 } },\n"
    "  head { name = 'mixed', d = 16, dv = 8, terms = { term { select { 1, 2, 5 }, identity(), weight = "
    "ratio(1, 3) },\n"
    "         term { dense(orthogonal { d = 16, rows = 5, seed = 1 }), select(range(1, 4)) }, term {} } },\n"
    "  head { name = 'learned', d = 16, dv = 8, normalize = 'max', terms = { term { trainable { name = 'w', "
    "rows = 4 },\n"
    "         trainable { name = 'g', diagonal = true } } } },\n"
    "  head { name = 'seen', d = 8, dv = 8, causal = false, normalize = 'one_plus_sum', terms = taylor { "
    "degree = 2 } },\n"
    "  head { name = 'cube', d = 8, dv = 8, dtype = 'bf16', terms = power { degree = 3 } },\n"
    "  head { name = 'late', d = 40, dv = 8, terms = linear { weight = -2 } },\n"
    "}\n";

static const char *const many_names[] = {"square", "mixed", "learned", "seen", "cube", "late"};
enum { MANY = sizeof many_names / sizeof *many_names };

/* The page of one head of a spec; malloc'ed. */
static char *page_of(const char *spec, const char *head, const char *target)
{
    char folder[64], path[PATH];
    scratch_make(folder);
    snprintf(path, sizeof path, "%s/page.html", folder);
    expect(RUN("fpac", "report", spec, "--head", head, "--target", target, "-o", path), 0, NULL, NULL);
    char *page = text_read(path, NULL);
    assert_non_null(page);
    scratch_remove(folder);
    return page;
}

static void expect_page(const char *page)
{
    static const char first[] = "<!DOCTYPE html>\n";
    assert_int_equal(strncmp(page, first, strlen(first)), 0);
    char *text = strdup(page + strlen(first));
    const size_t size = strlen(text);
    if (size && text[size - 1] == '\n')
        text[size - 1] = '\0';
    expect_xml(text);
    free(text);
}

/* Every src, href and url() of the page leads nowhere else, and nothing runs. */
static void expect_self_contained(const char *page)
{
    static const char *const forbidden[] = {
        "<script", "javascript:", " src=", "url(", "@import", "http-equiv=\"refresh",
        "<iframe", "<object",     "<base"};
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
        if (strstr(page, forbidden[i]))
            fail_msg("a page has %s", forbidden[i]);
    }
    for (const char *at = page; (at = strstr(at, "href=\"")); at++) {
        const char *leads = at + strlen("href=\"");
        if (strncmp(leads, "data:,", 6) != 0 && strcspn(leads, ":/\"") != strcspn(leads, "\""))
            fail_msg("a page leads to %.60s", leads);
    }
    for (const char *at = page; (at = strstr(at, " on")); at++) { /* no handler of an event */
        if (at[3 + strspn(at + 3, "abcdefghijklmnopqrstuvwxyz")] == '=')
            fail_msg("a page has a handler: %.40s", at);
    }
}

/* The value of <data class="name" value="...">. */
static double number_of(const char *page, const char *name)
{
    char element[96];
    double value;
    snprintf(element, sizeof element, "<data class=\"%s\" value=\"", name);
    const char *at = strstr(page, element);
    if (!at || sscanf(at + strlen(element), "%lf", &value) != 1)
        fail_msg("the page has no number %s", name);
    return value;
}

/* That of "name": in JSON, behind the first place that has `after`. */
static double json_number_of(const char *json, const char *after, const char *name)
{
    char key[64];
    double value;
    const char *from = strstr(json, after);
    snprintf(key, sizeof key, "\"%s\": ", name);
    const char *at = from ? strstr(from, key) : NULL;
    if (!at || sscanf(at + strlen(key), "%lf", &value) != 1)
        fail_msg("explain says no %s", name);
    return value;
}

/* ---- pages ---- */

static void every_page_is_well_formed_and_self_contained(void **state)
{
    place here;
    place_begin(&here, many_heads_spec);
    for (int i = 0; i < MANY; i++) {
        char *page = page_of(here.spec, many_names[i], "c:avx2");
        expect_page(page);
        expect_self_contained(page);
        free(page);
    }
    scratch_remove(here.folder);
}

static void a_page_has_all_its_sections(void **state)
{
    static const char *const ids[] = {"formula", "terms", "features", "state",
                                      "visible", "cost",  "kernels",  "verdict"};
    place here;
    place_begin(&here, many_heads_spec);
    char *page = page_of(here.spec, "square", "c:avx2");
    const char *at = page;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        char section[48];
        snprintf(section, sizeof section, "<section id=\"%s\"", ids[i]);
        at = strstr(at, section);
        if (!at)
            fail_msg("%s is missing, or not in its place", ids[i]);
    }
    assert_non_null(strstr(page, "Not verified for this page"));
    assert_non_null(strstr(page, "cuda:sm_90a"));
    assert_non_null(strstr(page, "prefers-color-scheme: dark"));
    free(page);
    scratch_remove(here.folder);
}

static void a_non_causal_head_says_that_every_query_sees_every_key(void **state)
{
    place here;
    place_begin(&here, many_heads_spec);
    char *page = page_of(here.spec, "seen", "c:avx2");
    assert_non_null(strstr(page, "Every query sees every key"));
    free(page);
    scratch_remove(here.folder);
}

/* A file's name is whoever's made it. */
static void what_the_page_is_told_stays_text(void **state)
{
    static const char name[] = "<img src=x onerror=alert(1)>&\"'\n\x01\xff.lua";
    place here;
    char spec[PATH];
    place_begin(&here, tiny_spec);
    place_file(&here, name, spec);
    text_write(spec, tiny_spec);
    char *page = page_of(spec, "tiny", "c:avx2");
    expect_page(page);
    assert_null(strstr(page, "<img"));
    assert_non_null(strstr(
        page, "&lt;img src=x onerror=alert(1)&gt;&amp;&quot;'\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd.lua"));
    free(page);

    char out[PATH], index[PATH + 16];
    place_file(&here, "pages", out);
    expect(RUN("fpac", "report", spec, "-o", out), 0, NULL, NULL);
    snprintf(index, sizeof index, "%s/index.html", out);
    page = text_read(index, NULL);
    assert_null(strstr(page, "<img"));
    expect_page(page);
    free(page);
    scratch_remove(here.folder);
}

static void the_same_head_gives_the_same_bytes(void **state)
{
    place here;
    place_begin(&here, many_heads_spec);
    for (int i = 0; i < MANY; i++) {
        char *one = page_of(here.spec, many_names[i], "c"), *again = page_of(here.spec, many_names[i], "c");
        assert_string_equal(one, again);
        free(one);
        free(again);
    }
    scratch_remove(here.folder);
}

static void numbers_of_a_page_are_those_of_explain(void **state)
{
    static const struct {
        const char *page, *json;
    } numbers[] = {{"features", "features"},
                   {"features_kept", "features"},
                   {"features_written", "features_written"},
                   {"features_minimum", "features_minimum"},
                   {"features_tpow", "features_tpow"},
                   {"state_elements", "state_elements"},
                   {"state_bytes", "state_bytes"},
                   {"terms", "terms"},
                   {"crossover", "crossover"},
                   {"chunk_cpu", "chunk"},
                   {"flop_parallel", "parallel"},
                   {"flop_chunked", "chunked"}};
    place here;
    place_begin(&here, many_heads_spec);
    char *page = page_of(here.spec, "square", "c:avx2");
    program_result told =
        RUN("fpac", "explain", here.spec, "--head", "square", "--target", "c:avx2", "--json");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_true(number_of(page, numbers[i].page) == json_number_of(told.out, "", numbers[i].json));
    program_free(&told);
    free(page);
    scratch_remove(here.folder);
}

/* The fastest candidate's seconds, of one form. */
static double fastest_of(const char *json)
{
    double least = HUGE_VAL, value;
    for (const char *at = json; (at = strstr(at, "\"seconds\": ")); at++) {
        if (sscanf(at, "\"seconds\": %lf", &value) == 1 && value < least)
            least = value;
        if (strstr(at, "\"not_chosen\"") == NULL)
            break;
    }
    return least;
}

static void seconds_of_a_page_are_those_of_explain(void **state)
{
    place here;
    place_begin(&here, many_heads_spec);
    char *page = page_of(here.spec, "cube", "c:avx2");
    program_result c = RUN("fpac", "explain", here.spec, "--head", "cube", "--target", "c:avx2", "--length",
                           "4096", "--form", "chunked", "--json");
    program_result cuda =
        RUN("fpac", "explain", here.spec, "--head", "cube", "--target", "cuda:sm_90a", "--length", "4096",
            "--batch", "16", "--heads", "16", "--form", "chunked", "--json");
    const char *gpu = strstr(page, "id=\"kernels-GPU\"");
    assert_non_null(gpu);
    assert_true(number_of(page, "seconds_chunked_4096") == fastest_of(c.out));
    assert_true(number_of(gpu, "seconds_chunked_4096") == fastest_of(cuda.out));
    program_free(&c);
    program_free(&cuda);
    free(page);
    scratch_remove(here.folder);
}

/* ---- verdicts and measurements ---- */

static void a_verified_head_has_its_margins(void **state)
{
    place here;
    char path[PATH];
    place_begin(&here, tiny_spec);
    place_file(&here, "page.html", path);
    expect(RUN("fpac", "report", here.spec, "--verify", "--measure", "-o", path), 0, NULL, NULL);
    char *page = text_read(path, NULL);
    expect_page(page);
    assert_non_null(strstr(page, "CPU, recurrent"));
    assert_non_null(strstr(page, ": verified. "));
    assert_non_null(strstr(page, "chunked, 1024 tokens, measured: "));
    free(page);
    scratch_remove(here.folder);
}

/* A compiler that takes another function for exp makes a gated head wrong: the page says so, and the exit code too. */
static void a_refused_head_has_a_page_that_says_so(void **state)
{
    place here;
    char path[PATH];
    place_begin(&here, "return head { name = 'gated', d = 4, dv = 4, gate = true, terms = linear {} }\n");
    place_file(&here, "page.html", path);
    char *kept = getenv("FPA_CFLAGS") ? strdup(getenv("FPA_CFLAGS")) : NULL;
    setenv("FPA_CFLAGS", "-Dexp=cos", 1);
    expect(RUN("fpac", "report", here.spec, "--verify", "-o", path), 3, NULL, NULL);
    if (kept)
        setenv("FPA_CFLAGS", kept, 1);
    else
        unsetenv("FPA_CFLAGS");
    free(kept);
    char *page = text_read(path, NULL);
    expect_page(page);
    assert_non_null(strstr(page, ": refused. "));
    assert_null(strstr(page, ": verified. "));
    free(page);
    scratch_remove(here.folder);
}

static void a_page_goes_where_it_is_sent(void **state)
{
    place here;
    place_begin(&here, tiny_spec);
    expect(RUN("fpac", "report", here.spec, "-o", "/dev/stdout"), 0, "<!DOCTYPE html>", NULL);
    scratch_remove(here.folder);
}

static void measured_lines_of_the_head_and_size_are_drawn(void **state)
{
    place here;
    char lines[PATH], path[PATH];
    place_begin(&here, tiny_spec);
    place_file(&here, "lines.tsv", lines);
    place_file(&here, "page.html", path);
    text_write(lines, "fpac\t0.1\ttiny bf16 chunked\t4096\t16\t16\t1.25\t1\n"
                      "fpac\t0.1\ttiny bf16 parallel\t1024\t64\t16\t1.5\t1\n"
                      "fpac\t0.1\ttiny bf16 chunked\t4096\t1\t16\t1.75\t1\n" /* of another size */
                      "fpac\t0.1\tother bf16 chunked\t4096\t16\t16\t2\t1\n"
                      "torch\t2\ttiny bf16 chunked\t4096\t16\t16\t3\t1\n");
    expect(RUN("fpac", "report", here.spec, "--measured-gpu", lines, "-o", path), 0, NULL, NULL);
    char *page = text_read(path, NULL);
    expect_page(page);
    assert_non_null(strstr(page, "chunked, 4096 tokens, measured: 1.25 ns"));
    assert_non_null(strstr(page, "parallel, 1024 tokens, measured: 1.5 ns"));
    assert_null(strstr(page, "1.75 ns"));
    assert_null(strstr(page, "measured: 2 ns"));
    assert_null(strstr(page, "measured: 3 ns"));
    assert_non_null(strstr(page, "1 measurement of another size is left out"));
    free(page);
    scratch_remove(here.folder);
}

/* ---- folders ---- */

static void a_folder_has_a_page_a_head_and_an_index_of_them(void **state)
{
    place here;
    char out[PATH], path[PATH + 64];
    place_begin(&here, many_heads_spec);
    place_file(&here, "pages", out);
    expect(RUN("fpac", "report", here.spec, "-o", out), 0, NULL, NULL);
    assert_int_equal(scratch_count(out, NULL), MANY + 1);
    snprintf(path, sizeof path, "%s/index.html", out);
    char *index = text_read(path, NULL);
    expect_page(index);
    expect_self_contained(index);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "href=\"%s.html\"", many_names[i]);
        assert_non_null(strstr(index, path));
    }
    free(index);
    scratch_remove(here.folder);
}

/* The last of 2080 products, too: those side by side are one area there. */
static void a_small_picture_shows_every_product(void **state)
{
    place here;
    char out[PATH], path[PATH + 64];
    place_begin(&here,
                "return head { name = 'spow2', d = 64, dv = 4, terms = spow { d = 64, degree = 2 } },\n"
                "       head { name = 'plain', d = 4, dv = 4, terms = linear {} }\n");
    place_file(&here, "pages", out);
    expect(RUN("fpac", "report", here.spec, "-o", out), 0, NULL, NULL);
    snprintf(path, sizeof path, "%s/index.html", out);
    char *index = text_read(path, NULL);
    assert_non_null(strstr(index, "x=\"275.62\" y=\"293.62\"")); /* row 64 with row 64 */
    free(index);
    scratch_remove(here.folder);
}

/* make gallery's line. */
static void every_shipped_head_has_a_page(void **state)
{
    place here;
    char out[PATH], line[3 * PATH];
    place_begin(&here, tiny_spec);
    place_file(&here, "pages", out);
    snprintf(line, sizeof line, "\"$FPAC\" report specs/*.lua specs/models/*.lua -o %s", out);
    expect(RUN("/bin/sh", "-c", line), 0, NULL, NULL);
    program_result told = RUN("/bin/sh", "-c",
                              "\"$FPAC\" list specs/*.lua; for spec in specs/models/*.lua; do "
                              "\"$FPAC\" list $spec; done");
    int heads = 0;
    for (const char *line_of = told.out; *line_of; line_of = strchr(line_of, '\n') + 1)
        heads +=
            strncmp(line_of, "layer ", strlen("layer ")) != 0; /* a layer's heads have lines of their own */
    assert_true(heads > 40);
    assert_int_equal(scratch_count(out, ".html"), heads + 1);
    program_free(&told);
    scratch_remove(here.folder);
}

static void mistakes_are_told_with_a_remedy(void **state)
{
    place here;
    char path[PATH], folder[PATH], again[PATH];
    place_begin(&here, many_heads_spec);
    place_file(&here, "page.html", path);
    place_file(&here, "pages", folder);
    place_file(&here, "again.lua", again);
    text_write(again, many_heads_spec);
    expect(RUN("fpac", "report", here.spec), 2, NULL, "-o: is needed");
    expect(RUN("fpac", "report", here.spec, "-o", path), 1, NULL, "choose one by --head, or name a folder");
    expect(RUN("fpac", "report", here.spec, "--head", "none", "-o", path), 1, NULL, "none");
    expect(RUN("fpac", "report", here.spec, "--head", "cube", "--target", "cuda:sm_90", "-o", path), 2, NULL,
           "--target: names the kernels for the CPU");
    expect(RUN("fpac", "report", here.spec, "-o", here.spec), 1, NULL, "is also read");
    expect(RUN("fpac", "report", here.spec, again, "-o", folder), 1, NULL, "has a head square, and so has ");
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_not_equal(access(folder, F_OK), 0);
    scratch_remove(here.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_page_is_well_formed_and_self_contained),
        cmocka_unit_test(a_page_has_all_its_sections),
        cmocka_unit_test(a_non_causal_head_says_that_every_query_sees_every_key),
        cmocka_unit_test(what_the_page_is_told_stays_text),
        cmocka_unit_test(the_same_head_gives_the_same_bytes),
        cmocka_unit_test(numbers_of_a_page_are_those_of_explain),
        cmocka_unit_test(seconds_of_a_page_are_those_of_explain),
        cmocka_unit_test(a_verified_head_has_its_margins),
        cmocka_unit_test(a_refused_head_has_a_page_that_says_so),
        cmocka_unit_test(a_page_goes_where_it_is_sent),
        cmocka_unit_test(measured_lines_of_the_head_and_size_are_drawn),
        cmocka_unit_test(a_folder_has_a_page_a_head_and_an_index_of_them),
        cmocka_unit_test(a_small_picture_shows_every_product),
        cmocka_unit_test(every_shipped_head_has_a_page),
        cmocka_unit_test(mistakes_are_told_with_a_remedy),
    };
    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
