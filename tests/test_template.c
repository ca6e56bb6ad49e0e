/* template: line templates -> text. */
#include "gen/emit/template.h"
#include "gen/fault.h"
#include "claims.h"

#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lualib.h>

static const char *const files[][2] = {
    {"plain", "int a;\n\n    return \"a\\n\";\n"},
    {"values", "x = ${1 + 2}, ${\"text\"};\n${\"all\"}\n"},
    {"braces", "${#{1, 2, {3}}}\n"},
    {"under", "always\n${1 + 1} $if 1 < 2\nnever $if false\n    line ${i} $for i = 1, 2\nlast\n"},
    {"loop", "$-- a comment\n$ for i = 1, 3 do\nline ${i}\n$ end\n"},
    {"outer", "before\n$ include(\"loop\")\nafter\n"},
    {"unknown", "fine\nfine\n${missing.field}\n"},
    {"in_loop", "$ for i = 1, 2 do\nok\n$   error(\"stop\")\n$ end\n"},
    {"syntax", "ok\n$ for for\n"},
    {"unclosed", "ok\nok\n${1 + \n"},
    {"boolean", "${true}\n"},
    {"missing", "$ include(\"nowhere\")\n"},
    {"last", "no newline at the end"},
    {"dollar", "costs 5$ or $\n"},
    {"points",
     "a\n    b;  $@ one\n$ local x = 1 $@ two\n${x} $@ three\nlast $@ three\n$ include(\"plain\") $@ four\n"},
    {"nameless", "ok\nok\na $@\n"},
    {"misnamed", "ok\nok\na $@ Two words\n"},
};

static const char *find(const char *name)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!strcmp(files[i][0], name))
            return files[i][1];
    return NULL;
}

static fpa_status run_faulty(const char *name, const fpa_fault *fault, char **text, fpa_error *error)
{
    lua_State *L = luaL_newstate();
    assert_non_null(L);
    luaL_openlibs(L);
    *text = NULL;
    fpa_status status = template_run(L, find, name, fault, text, error);
    lua_close(L);
    return status;
}

static fpa_status run(const char *name, char **text, fpa_error *error)
{
    return run_faulty(name, NULL, text, error);
}

static void text_and_values_are_printed(void **state)
{
    static const char *const expected[][2] = {
        {"plain", "int a;\n\n    return \"a\\n\";\n"},
        {"values", "x = 3, text;\nall\n"},
        {"braces", "3\n"},
        {"loop", "line 1\nline 2\nline 3\n"},
        {"under", "always\n2\n    line 1\n    line 2\nlast\n"},
        {"outer", "before\nline 1\nline 2\nline 3\nafter\n"},
        {"last", "no newline at the end\n"},
        {"dollar", "costs 5$ or $\n"},
        {"points", "a\n    b;\n1\nlast\nint a;\n\n    return \"a\\n\";\n"},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char *text;
        fpa_error error = {0};
        assert_int_equal(run(expected[i][0], &text, &error), FPA_OK);
        assert_string_equal(text, expected[i][1]);
        free(text);
    }
}

static void every_message_names_the_template_and_its_line(void **state)
{
    static const char *const expected[][2] = {
        {"unknown", "unknown:3:"},   {"in_loop", "in_loop:3:"},   {"syntax", "syntax:2:"},
        {"unclosed", "unclosed:3:"}, {"boolean", "boolean:1:"},   {"missing", "no template 'nowhere'"},
        {"nameless", "nameless:3:"}, {"misnamed", "misnamed:3:"},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char *text;
        fpa_error error = {0};
        assert_int_not_equal(run(expected[i][0], &text, &error), FPA_OK);
        if (!strstr(error.message, expected[i][1]))
            fail_msg("%s: '%s' does not name %s", expected[i][0], error.message, expected[i][1]);
        assert_null(text);
    }
}

static void a_fault_stands_in_the_lines_of_its_point(void **state)
{
    static const struct {
        fpa_fault fault;
        const char *text;
    } faults[] = {
        {{.point = "one", .wrong = NULL}, "a\n1\nlast\n"},
        {{.point = "one", .wrong = "c;\n${1 + 1};"}, "a\nc;\n2;\n1\nlast\n"},
        {{.point = "two", .wrong = "$ local x = 5"}, "a\n    b;\n5\nlast\n"},
        {{.point = "three", .wrong = "${x}, once"}, "a\n    b;\n1, once\n"},
        {{.point = "on", .wrong = NULL}, "a\n    b;\n1\nlast\n"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        char *text;
        fpa_error error = {0};
        assert_int_equal(run_faulty("points", &faults[i].fault, &text, &error), FPA_OK);
        assert_memory_equal(text, faults[i].text, strlen(faults[i].text));
        assert_string_equal(text + strlen(faults[i].text), find("plain"));
        free(text);
    }
}

static void points_are_found_in_order(void **state)
{
    static const char *const names[] = {"one", "two", "three", "three", "four"};
    const char *text = find("points"), *name;
    size_t size, count = 0;
    for (; (name = template_next_point(&text, &size)); count++) {
        assert_true(count < sizeof names / sizeof *names);
        assert_int_equal(size, strlen(names[count]));
        assert_memory_equal(name, names[count], size);
    }
    assert_int_equal(count, sizeof names / sizeof *names);
}

static void each_template_line_becomes_one_lua_line(void **state)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        int bad_line = 0, lines = 0, lua_lines = 0;
        char *lua = template_translate(files[i][1], NULL, &bad_line);
        if (!lua) {
            assert_int_equal(bad_line, 3);
            continue;
        }
        for (const char *c = files[i][1]; *c; c++)
            lines += *c == '\n' || !c[1];
        for (const char *c = lua; *c; c++)
            lua_lines += *c == '\n';
        assert_int_equal(lines, lua_lines);
        free(lua);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_values_are_printed),
        cmocka_unit_test(every_message_names_the_template_and_its_line),
        cmocka_unit_test(a_fault_stands_in_the_lines_of_its_point),
        cmocka_unit_test(points_are_found_in_order),
        cmocka_unit_test(each_template_line_becomes_one_lua_line),
    };
    return cmocka_run_group_tests_name("template", tests, NULL, NULL);
}
