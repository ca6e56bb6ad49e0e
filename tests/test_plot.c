/* fpac plot, and the lines that fpac bench --tsv adds for it. Drives the program itself. */
#include "c_hurry.h"
#include "claims.h"
#include "program.h"
#include "xml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH = 256 };

static const char good[] = "# measured on a day\n"
                           "\n"
                           "fpac\t0.1\tpower chunked\t1024\t64\t16\t1.5\t1.57\t0.608\t0.08\n"
                           "fpac\t0.1\tpower chunked\t65536\t1\t16\t2.684\t2.81\t0.34\t-\n"
                           "torch\t2.11\tsoftmax\t1024\t64\t16\t0.3\t0.31\n"
                           "torch\t2.11\tsoftmax\t65536\t1\t16\t17\t17.8\n"
                           "skipped\tvidrial\tnot installed\n"
                           "fpac\t0.1\tpower recurrent\t1\t8\t16\t300\t0.0384\t-\t0.85\n"
                           "fpac\t0.1\tpower recurrent\t1\t128\t16\t250\t0.512\t-\t0.9\n";

typedef struct place {
    char folder[64], in[PATH], out[PATH];
} place;

static void place_make(place *here, const char *lines)
{
    scratch_make(here->folder);
    snprintf(here->in, PATH, "%s/in.tsv", here->folder);
    snprintf(here->out, PATH, "%s/out.svg", here->folder);
    text_write(here->in, lines);
}

static void expect(program_result result, int code, const char *err)
{
    if (result.code != code)
        fail_msg("exit code %d, but %d is expected; stderr: %s", result.code, code, result.err);
    if (err && !strstr(result.err, err))
        fail_msg("stderr lacks '%s': %s", err, result.err);
    program_free(&result);
}

/* The picture of some lines; malloc'ed. */
static char *draw(const char *lines, const char *kind, const char *title)
{
    place here;
    place_make(&here, lines);
    expect(RUN("fpac", "plot", here.in, "-o", here.out, "--kind", kind, "--title", title), 0, NULL);
    char *svg = text_read(here.out, NULL);
    assert_non_null(svg);
    scratch_remove(here.folder);
    return svg;
}

static void expect_well_formed(const char *svg)
{
    static const char head[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    assert_int_equal(strncmp(svg, head, strlen(head)), 0);
    assert_int_equal(
        strncmp(svg + strlen(head), "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\"", 53), 0);
    expect_xml(svg + strlen(head));
}

static int occurrences(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

/* The content of <text> elements with this text. */
static void expect_text(const char *svg, const char *text)
{
    char element[PATH];
    snprintf(element, sizeof element, ">%s</text>", text);
    if (!strstr(svg, element))
        fail_msg("no text element says '%s': %s", text, svg);
}

/* ---- pictures ---- */

static void each_kind_is_well_formed_and_says_its_units(void **state)
{
    static const struct {
        const char *kind, *y_label;
        int series, points;
    } kinds[] = {{"time", "ns per token and head", 2, 4},
                 {"share", "% of a matrix product's or a copy's rate, the larger", 1, 2},
                 {"decode", "tokens a second", 1, 2}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char *svg = draw(good, kinds[i].kind, "A title");
        expect_well_formed(svg);
        expect_text(svg, "A title");
        expect_text(svg, kinds[i].y_label);
        assert_int_equal(occurrences(svg, "<polyline"), kinds[i].series);
        assert_int_equal(occurrences(svg, "<circle"), kinds[i].points);
        assert_non_null(strstr(svg, "fill=\"#ffffff\"")); /* white: dark viewers */
        free(svg);
    }
}

static void labels_name_the_package_and_the_work_and_ticks_the_lengths(void **state)
{
    char *svg = draw(good, "time", "t");
    expect_text(svg, "fpac power chunked");
    expect_text(svg, "torch softmax");
    expect_text(svg, "1,024");
    expect_text(svg, "65,536");
    free(svg);
}

static void labels_and_title_are_escaped(void **state)
{
    char *svg = draw("a<b\t1\tc & \"d\" > </svg>\t16\t1\t1\t1\t1\n", "time", "<i> & \"co\" \xc3\xa9");
    expect_well_formed(svg);
    expect_text(svg, "a&lt;b c &amp; &quot;d&quot; &gt; &lt;/svg&gt;");
    expect_text(svg, "&lt;i&gt; &amp; &quot;co&quot; \xc3\xa9");
    free(svg);
}

static void the_same_lines_give_the_same_bytes(void **state)
{
    char *one = draw(good, "time", "t"), *again = draw(good, "time", "t");
    assert_string_equal(one, again);
    free(one);
    free(again);
}

/* y of the only curve's points, in pixels that grow downwards. */
static int read_points(const char *svg, double y[4])
{
    const char *at = strstr(svg, "points=\"");
    int count = 0, used;
    double x;
    assert_non_null(at);
    for (at += 8; count < 4 && sscanf(at, "%lf,%lf%n", &x, &y[count], &used) == 2; at += used)
        count++;
    return count;
}

static void points_stand_in_order_of_length_on_a_logarithmic_axis(void **state)
{
    double y[4];
    char *svg = draw("a\t1\tb\t4096\t1\t1\t100\t1\na\t1\tb\t256\t1\t1\t1\t1\na\t1\tb\t1024\t1\t1\t10\t1\n",
                     "time", "t");
    assert_int_equal(read_points(svg, y), 3);
    assert_true(y[0] > y[1] && y[1] > y[2]);
    assert_true(y[0] - y[1] > y[1] - y[2] - 0.21 && y[0] - y[1] < y[1] - y[2] + 0.21); /* one decade each */
    free(svg);
}

static void the_later_of_two_lines_counts(void **state)
{
    char *both =
        draw("a\t1\tb\t256\t1\t1\t90\t1\na\t1\tb\t512\t1\t1\t2\t1\na\t1\tb\t256\t1\t1\t1\t1\n", "time", "t");
    char *last = draw("a\t1\tb\t512\t1\t1\t2\t1\na\t1\tb\t256\t1\t1\t1\t1\n", "time", "t");
    assert_string_equal(both, last);
    free(both);
    free(last);
}

static void numbers_of_heads_make_different_series(void **state)
{
    char *svg = draw("a\t1\tb\t256\t1\t1\t1\t1\na\t1\tb\t256\t1\t16\t2\t1\n", "time", "t");
    expect_text(svg, "a b, 1 head");
    expect_text(svg, "a b, 16 heads");
    free(svg);
}

static double label_y(const char *svg, int index)
{
    char label[32];
    double x, y;
    snprintf(label, sizeof label, ">a work%02d<", index);
    const char *at = strstr(svg, label);
    assert_non_null(at);
    while (at > svg && strncmp(at, "<text", 5))
        at--;
    assert_int_equal(sscanf(at, "<text x=\"%lf\" y=\"%lf\"", &x, &y), 2);
    return y;
}

/* Series that end at one point: no label covers another, and none leaves the picture. */
static void many_labels_keep_apart(void **state)
{
    enum { SERIES = 40 };
    char lines[SERIES * 48] = "";
    double height;
    for (int i = 0; i < SERIES; i++)
        snprintf(lines + strlen(lines), 48, "a\t1\twork%02d\t256\t1\t1\t1\t1\n", i);
    char *svg = draw(lines, "time", "t");
    assert_int_equal(sscanf(strstr(svg, " height=\""), " height=\"%lf", &height), 1);
    for (int i = 0; i < SERIES; i++) {
        assert_true(label_y(svg, i) > 0 && label_y(svg, i) < height);
        for (int j = 0; j < i; j++)
            assert_true(label_y(svg, i) - label_y(svg, j) > 12 || label_y(svg, j) - label_y(svg, i) > 12);
    }
    free(svg);
}

/* ---- mistakes ---- */

static void bad_lines_are_told_with_their_place(void **state)
{
    static const struct {
        const char *line, *message;
    } lines[] = {
        {"fpac\t0.1\twork\t1024\n", "in.tsv:2: a line of measurements has fields"},
        {"a\t1\tb\t256\t1\t1\t1\t1\t-\n", "in.tsv:2: a line of measurements has fields"},
        {"a\t1\tb\t256\t1\t1\t1\t1\t-\t-\t-\n", "in.tsv:2: a line of measurements has fields"},
        {"a\t1\t\t256\t1\t1\t1\t1\n", "in.tsv:2: field 3 (what)"},
        {"a\t1\t\x01\t256\t1\t1\t1\t1\n", "in.tsv:2: field 3 (what)"},
        {"a\t1\t\xff\t256\t1\t1\t1\t1\n", "in.tsv:2: field 3 (what)"},
        {"a\t1\t\xc0\xaf\t256\t1\t1\t1\t1\n", "in.tsv:2: field 3 (what)"},
        {"a\t1\tb\t0\t1\t1\t1\t1\n", "in.tsv:2: field 4 (length)"},
        {"a\t1\tb\t256\t-1\t1\t1\t1\n", "in.tsv:2: field 5 (batch)"},
        {"a\t1\tb\t256\t1\t1.5\t1\t1\n", "in.tsv:2: field 6 (heads)"},
        {"a\t1\tb\t256\t1\t1\tnan\t1\n", "in.tsv:2: field 7 (ns)"},
        {"a\t1\tb\t256\t1\t1\tinf\t1\n", "in.tsv:2: field 7 (ns)"},
        {"a\t1\tb\t256\t1\t1\t1\t0\n", "in.tsv:2: field 8 (ms)"},
        {"a\t1\tb\t256\t1\t1\t1\t1\t85%\t-\n", "in.tsv:2: field 9 (of product)"},
        {"a\t1\tb\t256\t1\t1\t1\t1\t-\t-1\n", "in.tsv:2: field 10 (of copy)"},
        {"a\t1\tb\t256\t1\t1\t1\t1", "in.tsv:2: the last line has no end"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        place here;
        char text[PATH];
        snprintf(text, sizeof text, "# first\n%s", lines[i].line);
        place_make(&here, text);
        expect(RUN("fpac", "plot", here.in, "-o", here.out), 1, lines[i].message);
        assert_int_not_equal(access(here.out, F_OK), 0);
        scratch_remove(here.folder);
    }
}

static void input_without_measurements_is_refused(void **state)
{
    place here;
    place_make(&here, "");
    expect(RUN("fpac", "plot", here.in, "-o", here.out), 1, "in.tsv: has no measurements");
    text_write(here.in, "# a note\nskipped\tvidrial\tnot installed\n");
    expect(RUN("fpac", "plot", here.in, "-o", here.out), 1, "in.tsv: has no measurements");
    text_write(here.in, "a\t1\tb\t1\t1\t1\t1\t1\n");
    expect(RUN("fpac", "plot", here.in, "-o", here.out), 1, "--kind time shows lines with a length above 1");
    expect(RUN("fpac", "plot", "no/such.tsv", "-o", here.out), 1, "fpac: no/such.tsv: ");
    assert_int_not_equal(access(here.out, F_OK), 0);
    scratch_remove(here.folder);
}

static void a_wrong_command_line_is_told(void **state)
{
    place here;
    place_make(&here, good);
    expect(RUN("fpac", "plot", "--help"), 0, NULL);
    expect(RUN("fpac", "plot"), 2, "plot: too few operands");
    expect(RUN("fpac", "plot", here.in), 2, "-o: is needed");
    expect(RUN("fpac", "plot", here.in, "-o", here.out, "--kind", "pie"), 2, "--kind: pie is not a kind");
    expect(RUN("fpac", "plot", here.in, "-o", here.out, "--title", "\xff"), 2, "--title: ");
    expect(RUN("fpac", "plot", here.in, "-o", "/no/such/folder/x.svg"), 1, "/no/such/folder");
    scratch_remove(here.folder);
}

static void files_of_several_runs_make_one_picture(void **state)
{
    place here;
    char more[PATH];
    place_make(&here, good);
    snprintf(more, sizeof more, "%s/more.tsv", here.folder);
    text_write(more, "fla\t0.6\tlinear\t1024\t64\t16\t0.5\t0.52\n");
    expect(RUN("fpac", "plot", here.in, more, "-o", here.out), 0, NULL);
    char *svg = text_read(here.out, NULL);
    assert_int_equal(occurrences(svg, "<polyline"), 3);
    free(svg);
    scratch_remove(here.folder);
}

/* ---- fpac bench --tsv ---- */

static void bench_adds_lines_that_plot_draws(void **state)
{
    static const char spec[] = "return head { name = 'tiny', d = 4, dv = 4, terms = linear {} }\n";
    place here;
    char lines[PATH];
    place_make(&here, spec);
    snprintf(lines, sizeof lines, "%s/lines.tsv", here.folder);
    expect(RUN("fpac", "bench", here.in, "--length", "32", "--form", "chunked", "--repeats", "1", "--tsv",
               lines),
           0, NULL);
    expect(RUN("fpac", "bench", here.in, "--length", "64", "--batch", "2", "--heads", "3", "--form",
               "chunked", "--repeats", "1", "--tsv", lines),
           0, NULL);
    char *text = text_read(lines, NULL);
    assert_int_equal(occurrences(text, "\n"), 2);
    assert_non_null(strstr(text, "\ttiny f32 chunked\t32\t1\t1\t"));
    assert_non_null(strstr(text, "\ttiny f32 chunked\t64\t2\t3\t"));
    free(text);
    expect(RUN("fpac", "plot", lines, "-o", here.out), 0, NULL);
    char *svg = text_read(here.out, NULL);
    expect_well_formed(svg);
    expect_text(svg, "fpac tiny f32 chunked, 3 heads");
    free(svg);
    scratch_remove(here.folder);
}

static void bench_adds_lines_to_nothing_else(void **state)
{
    static const char spec[] = "return head { name = 'tiny', d = 4, dv = 4, terms = linear {} }\n";
    place here;
    place_make(&here, spec);
    expect(RUN("fpac", "bench", here.in, "--tsv", here.in), 1, "in.tsv:1: a line of measurements has fields");
    char *text = text_read(here.in, NULL);
    assert_string_equal(text, spec);
    free(text);
    expect(RUN("fpac", "bench", here.in, "--tsv", here.folder), 1, "is not a regular file");
    expect(RUN("fpac", "bench", here.in, "--tsv", "/no/such/folder/x.tsv"), 1, "cannot be written");
    scratch_remove(here.folder);
}

int main(void)
{
    c_hurry();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_is_well_formed_and_says_its_units),
        cmocka_unit_test(labels_name_the_package_and_the_work_and_ticks_the_lengths),
        cmocka_unit_test(labels_and_title_are_escaped),
        cmocka_unit_test(the_same_lines_give_the_same_bytes),
        cmocka_unit_test(points_stand_in_order_of_length_on_a_logarithmic_axis),
        cmocka_unit_test(the_later_of_two_lines_counts),
        cmocka_unit_test(numbers_of_heads_make_different_series),
        cmocka_unit_test(many_labels_keep_apart),
        cmocka_unit_test(bad_lines_are_told_with_their_place),
        cmocka_unit_test(input_without_measurements_is_refused),
        cmocka_unit_test(a_wrong_command_line_is_told),
        cmocka_unit_test(files_of_several_runs_make_one_picture),
        cmocka_unit_test(bench_adds_lines_that_plot_draws),
        cmocka_unit_test(bench_adds_lines_to_nothing_else),
    };
    return cmocka_run_group_tests_name("plot", tests, NULL, NULL);
}
