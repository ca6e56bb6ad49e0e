/* The sandbox: what a script may use, how it ends, and where its errors point. */
#include "gen/spec/script.h"
#include "claims.h"

#include <stdio.h>
#include <string.h>

static const char prelude[] = "function twice(x) return x + x end\n"
                              "function refuse(x) error('refused ' .. x) end\n"
                              "answer = 42\n";

static int give_seven(lua_State *L)
{
    lua_pushinteger(L, 7);
    return 1;
}

static const luaL_Reg functions[] = {{"seven", give_seven}, {NULL, NULL}};

typedef struct run {
    const char *text;
    lua_Integer result; /* what the text returns, when that is an integer */
} run;

static int run_body(lua_State *L)
{
    run *request = lua_touserdata(L, 1);
    script_vocabulary(L, functions, (const char *const[]){prelude, NULL});
    if (script_run(L, request->text, strlen(request->text)) > 0)
        request->result = lua_tointeger(L, -1);
    return 0;
}

static fpa_status run_text(const char *text, lua_Integer *result, fpa_error *error)
{
    fpa_script *script;
    run request = {.text = text};
    *error = (fpa_error){0};
    assert_int_equal(script_new("dir/mine.lua", &script, error), FPA_OK);
    fpa_status status = script_protect(script, run_body, &request, error);
    script_free(script);
    if (result)
        *result = request.result;
    return status;
}

static void a_script_may_use_the_vocabulary_and_the_prelude(void **state)
{
    static const struct {
        const char *text;
        lua_Integer result;
    } cases[] = {
        {"return seven()", 7},
        {"return twice(seven()) + answer", 56},
        {"local n = 0; for _, x in ipairs { 1, 2, 3 } do n = n + x end; return n", 6},
        {"return select('#', 1, 2, 3)", 3},
        {"return math.floor(3.7) + math.max(1, 2) + math.tointeger(4.0)", 9},
        {"return tonumber('12')", 12},
        {"return type(1) == 'number' and 1 or 0", 1},
        {"mine = 5; return mine", 5},
        {"assert(true); return (assert(3, 'no'))", 3},
        {"answer = 1; return answer + twice(1)", 3},
    };
    fpa_error error;
    lua_Integer result;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run_text(cases[i].text, &result, &error), FPA_OK);
        assert_int_equal(result, cases[i].result);
    }
}

static void nothing_outside_the_allow_list_can_be_reached(void **state)
{
    static const char *const names[] = {
        "io",       "os",       "debug",          "load",         "loadfile", "dofile",    "loadstring",
        "require",  "package",  "pcall",          "xpcall",       "pairs",    "next",      "print",
        "string",   "tostring", "table",          "setmetatable", "_G",       "coroutine", "getmetatable",
        "rawset",   "rawget",   "collectgarbage", "warn",         "utf8",     "_VERSION",  "rawequal",
        "math.exp", "math.log", "math.random",
    };
    char text[80], quoted[40];
    fpa_error error;
    lua_Integer result;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strncmp(names[i], "math.", 5) == 0) {
            snprintf(text, sizeof text, "return %s == nil and 1 or 0", names[i]);
            assert_int_equal(run_text(text, &result, &error), FPA_OK);
            assert_int_equal(result, 1);
            continue;
        }
        snprintf(text, sizeof text, "\nreturn %s", names[i]);
        snprintf(quoted, sizeof quoted, "'%s' is not ", names[i]);
        assert_int_equal(run_text(text, NULL, &error), FPA_INVALID);
        assert_string_equal(error.where, "dir/mine.lua:2");
        assert_ptr_equal(strstr(error.message, quoted), error.message);
    }
}

static void strings_have_no_methods(void **state)
{
    fpa_error error;
    assert_int_equal(run_text("local s = ('x'):rep(9)", NULL, &error), FPA_INVALID);
    assert_string_equal(error.message, "a string has no fields and no methods");
}

static void an_error_names_the_users_line_and_stays_on_one(void **state)
{
    static const struct {
        const char *text, *where, *message;
    } cases[] = {
        {"\n\nlocal x = 1 +", "dir/mine.lua:3", "unexpected symbol near <eof>"},
        {"\nlocal x = {} .. 'a'", "dir/mine.lua:2",
         "a table cannot be joined by ..: it takes texts and numbers"},
        {"\n\n\nerror('my own')", "dir/mine.lua:4", "my own"},
        {"\nassert(false, 'not so')", "dir/mine.lua:2", "not so"},
        {"\nassert(nil)", "dir/mine.lua:2", "assertion failed!"},
        {"error({})", "dir/mine.lua:1", "error(message): the message must be a string, not a table"},
        {"error('two\\nlines')", "dir/mine.lua:1", "two lines"},
        {"\nrefuse('this')", "dir/mine.lua:2", "refused this"},
        {"\n\nreturn refuse('a tail call')", "dir/mine.lua:3", "refused a tail call"},
        {"\nlocal x = twice({})", "dir/mine.lua:2",
         "x is a table, and cannot be used in arithmetic, which needs numbers"},
        {"local t = {}\nlocal x = t.y.z", "dir/mine.lua:2", "y is nil, and has no fields and no methods"},
        {"local t = {}\nlocal x = t.y()", "dir/mine.lua:2",
         "y is nil, and cannot be called: it is no function"},
        {"local n = 1.5\nlocal x = #n", "dir/mine.lua:2", "n is a number, and has no length"},
        {"local x = {} < 1", "dir/mine.lua:1",
         "table with number cannot be compared: < and > take two numbers"},
        {"\nlocal x = twise(2)", "dir/mine.lua:2", "'twise' is not defined; did you mean 'twice'?"},
        {"local x = nothing_like_it", "dir/mine.lua:1",
         "'nothing_like_it' is not defined (`fpac prelude` shows the vocabulary)"},
        {"local function f(x) return 1 + f(x) end\nf(1)", "dir/mine.lua:1", "stack overflow"},
    };
    fpa_error error;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run_text(cases[i].text, NULL, &error), FPA_INVALID);
        assert_string_equal(error.where, cases[i].where);
        assert_ptr_equal(strstr(error.message, cases[i].message), error.message);
        assert_null(strchr(error.message, '\n'));
    }
}

static void an_endless_loop_ends_with_its_line(void **state)
{
    fpa_error error;
    assert_int_equal(run_text("local n = 0\nwhile true do\n  n = n + 1\nend", NULL, &error), FPA_INVALID);
    assert_string_equal(error.message, "still running after 100 million instructions: an endless loop?");
    assert_true(strcmp(error.where, "dir/mine.lua:2") == 0 || strcmp(error.where, "dir/mine.lua:3") == 0);
}

static void memory_beyond_the_limit_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *text, *where;
    } cases[] = {
        {"local s = 'xxxxxxxxxxxxxxxx'\n\nfor i = 1, 27 do s = s .. s end", "dir/mine.lua:3"},
        {"local list = {}\nfor i = 1, 1000000000 do list[i] = 'x' end", "dir/mine.lua:2"},
        {"local list = {}\nfor i = 1, 1000000000 do\n list[#list + 1] = { {}, {}, {}, {} } end",
         "dir/mine.lua:3"},
    };
    fpa_error error;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run_text(cases[i].text, NULL, &error), FPA_INVALID);
        assert_string_equal(error.message, "needs more than 256 MiB of memory, the limit for a spec");
        assert_string_equal(error.where, cases[i].where);
    }
}

static int run_bytecode(lua_State *L)
{
    script_vocabulary(L, functions, (const char *const[]){prelude, NULL});
    script_run(L, LUA_SIGNATURE "S", sizeof LUA_SIGNATURE);
    return 0;
}

static void bytecode_is_refused(void **state)
{
    fpa_script *script;
    fpa_error error;
    assert_int_equal(script_new("mine.lua", &script, &error), FPA_OK);
    assert_int_equal(script_protect(script, run_bytecode, NULL, &error), FPA_INVALID);
    assert_non_null(strstr(error.message, "attempt to load a binary chunk"));
    script_free(script);
}

static void the_line_of_a_file_with_a_long_path_is_kept(void **state)
{
    char path[600];
    fpa_script *script;
    fpa_error error;
    run request = {.text = "\nerror('x')"};
    memset(path, 'a', sizeof path - 1);
    strcpy(path + sizeof path - 10, "/mine.lua");
    assert_int_equal(script_new(path, &script, &error), FPA_OK);
    assert_int_equal(script_protect(script, run_body, &request, &error), FPA_INVALID);
    assert_string_equal(error.where + strlen(error.where) - 11, "/mine.lua:2");
    script_free(script);
}

static void a_script_can_be_freed_before_it_ran(void **state)
{
    fpa_script *script;
    fpa_error error;
    assert_int_equal(script_new("mine.lua", &script, &error), FPA_OK);
    script_free(script);
    script_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_script_may_use_the_vocabulary_and_the_prelude),
        cmocka_unit_test(nothing_outside_the_allow_list_can_be_reached),
        cmocka_unit_test(strings_have_no_methods),
        cmocka_unit_test(an_error_names_the_users_line_and_stays_on_one),
        cmocka_unit_test(an_endless_loop_ends_with_its_line),
        cmocka_unit_test(memory_beyond_the_limit_is_refused_with_its_line),
        cmocka_unit_test(bytecode_is_refused),
        cmocka_unit_test(the_line_of_a_file_with_a_long_path_is_kept),
        cmocka_unit_test(a_script_can_be_freed_before_it_ran),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
