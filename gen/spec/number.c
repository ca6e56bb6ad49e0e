/* Exact numbers of a spec: rationals and their square roots. sqrt2 enters a head as the kernel weight 2, never as
 * 1.41421356. */
#include "value.h"

#include <math.h>
#include <stdlib.h>

#include "script.h"

static const char numbers_key; /* its address is the registry's key */

arena *spec_numbers(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &numbers_key);
    arena *memory = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return memory;
}

/* Raises an error if the number has no value. Long numbers count as instructions, according to the time that they
 * take. */
fpa_number spec_checked(lua_State *L, fpa_number number)
{
    fpa_error error = {0};
    size_t words = number_bytes(number) / sizeof(uint64_t);
    if (number_check(number, "", &error) != FPA_OK)
        script_raise(L, error.code, 0, "%s", error.message);
    if (words)
        script_charge(L, (int64_t)(words * words));
    return number;
}

static int push_exact(lua_State *L, spec_exact number)
{
    spec_checked(L, number.value);
    spec_exact *value = lua_newuserdatauv(L, sizeof *value + number_bytes(number.value), 0);
    *value = number;
    value->value = number_place(value + 1, number.value);
    luaL_setmetatable(L, SPEC_EXACT);
    return 1;
}

static spec_exact rational(fpa_number value)
{
    return (spec_exact){.value = value};
}

/* The square root: of 4/9 the rational 2/3; of 2 it remains a root. */
static spec_exact root_of(lua_State *L, fpa_number square, bool negative)
{
    arena *memory = spec_numbers(L);
    fpa_number root;
    if (number_root(memory, spec_checked(L, square), &root))
        return rational(negative ? number_sub(memory, number_int(0), root) : root);
    return (spec_exact){.root = true, .negative = negative, .value = square};
}

static bool is_negative(spec_exact number)
{
    return number.root ? number.negative : number_sign(number.value) < 0;
}

fpa_number spec_exact_square(lua_State *L, spec_exact number)
{
    return spec_checked(L,
                        number.root ? number.value : number_mul(spec_numbers(L), number.value, number.value));
}

bool spec_to_exact(lua_State *L, int index, spec_exact *number)
{
    if (lua_isinteger(L, index) && lua_tointeger(L, index) != LUA_MININTEGER) {
        *number = rational(number_int(lua_tointeger(L, index)));
        return true;
    }
    if (lua_type(L, index) == LUA_TNUMBER) {
        if (!isfinite(lua_tonumber(L, index)))
            return false;
        *number = rational(spec_checked(L, number_double(spec_numbers(L), lua_tonumber(L, index))));
        return true;
    }
    const spec_exact *value = luaL_testudata(L, index, SPEC_EXACT);
    if (value)
        *number = *value;
    return value != NULL;
}

bool spec_to_double(lua_State *L, int index, double *number)
{
    const spec_exact *value = luaL_testudata(L, index, SPEC_EXACT);
    if (value && value->root)
        *number = (value->negative ? -1 : 1) * sqrt(value->value.value);
    else if (value)
        *number = value->value.value;
    else if (lua_type(L, index) == LUA_TNUMBER)
        *number = lua_tonumber(L, index);
    else
        return false;
    return isfinite(*number);
}

bool spec_to_whole(lua_State *L, int index, int64_t *whole)
{
    const spec_exact *value = luaL_testudata(L, index, SPEC_EXACT);
    int converted = 0;
    if (value)
        return !value->root && number_to_int(value->value, whole);
    if (lua_type(L, index) == LUA_TNUMBER)
        *whole = lua_tointegerx(L, index, &converted);
    return converted;
}

static spec_exact check_exact(lua_State *L, int index, const char *what)
{
    spec_exact number = {0};
    if (!spec_to_exact(L, index, &number))
        script_refuse(L, 0, "%s takes finite numbers, not %s", what, spec_describe(L, index));
    return number;
}

/* ---- constructors ---- */

static int make_root(lua_State *L, const char *what)
{
    arena_free(spec_numbers(L));
    spec_exact number = check_exact(L, 1, what);
    if (number.root || is_negative(number))
        return script_refuse(L, 0, "%s(%s): the argument is a rational number >= 0", what,
                             spec_describe(L, 1));
    return push_exact(L, root_of(L, number.value, false));
}

static int make_sqrt(lua_State *L)
{
    return make_root(L, "sqrt");
}

static int make_gram(lua_State *L)
{
    return make_root(L, "gram");
}

static int make_ratio(lua_State *L)
{
    arena_free(spec_numbers(L));
    spec_exact p = check_exact(L, 1, "ratio"), q = check_exact(L, 2, "ratio");
    if (p.root || q.root || number_is_zero(q.value))
        return script_refuse(L, 0, "ratio(p, q) takes two rational numbers, q not 0");
    return push_exact(L, rational(number_div(spec_numbers(L), p.value, q.value)));
}

/* tonumber(x): the nearest double of an exact number; else Lua's own tonumber. */
static int make_number(lua_State *L)
{
    double number;
    if (luaL_testudata(L, 1, SPEC_EXACT) && spec_to_double(L, 1, &number)) {
        lua_pushnumber(L, number);
        return 1;
    }
    lua_getglobal(L, "tonumber"); /* Lua's own function, which is not in the sandbox's vocabulary */
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return 1;
}

static int make_range(lua_State *L)
{
    int64_t first, last;
    if (!spec_to_whole(L, 1, &first) || !spec_to_whole(L, 2, &last))
        return script_refuse(L, 0, "range(first, last) takes two integers");
    if (first < 1 || last > HEAD_MAX_WIDTH || last < first - 1)
        return script_refuse(L, 0,
                             "range(%I, %I): indices run from 1 to d, at most %d, and last >= first - 1",
                             (lua_Integer)first, (lua_Integer)last, HEAD_MAX_WIDTH);
    spec_range *range = lua_newuserdatauv(L, sizeof *range, 0);
    *range = (spec_range){(int)first, (int)last};
    luaL_setmetatable(L, SPEC_RANGE);
    return 1;
}

static int range_length(lua_State *L)
{
    const spec_range *range = luaL_checkudata(L, 1, SPEC_RANGE);
    lua_pushinteger(L, range->last - range->first + 1);
    return 1;
}

/* ---- arithmetic ---- */

static void check_both(lua_State *L, spec_exact *a, spec_exact *b)
{
    arena_free(spec_numbers(L));
    *a = check_exact(L, 1, "arithmetic with exact numbers");
    *b = check_exact(L, 2, "arithmetic with exact numbers");
}

static spec_exact product(lua_State *L, spec_exact a, spec_exact b)
{
    arena *memory = spec_numbers(L);
    if (!a.root && !b.root)
        return rational(spec_checked(L, number_mul(memory, a.value, b.value)));
    fpa_number square = number_mul(memory, spec_exact_square(L, a), spec_exact_square(L, b));
    return root_of(L, square, is_negative(a) != is_negative(b));
}

static spec_exact reciprocal(lua_State *L, spec_exact a)
{
    if (number_is_zero(a.value))
        script_refuse(L, 0, "division by zero");
    fpa_number inverse = number_div(spec_numbers(L), number_int(1), a.value);
    return a.root ? root_of(L, inverse, a.negative) : rational(inverse);
}

static int multiply(lua_State *L)
{
    spec_exact a, b;
    check_both(L, &a, &b);
    return push_exact(L, product(L, a, b));
}

static int divide(lua_State *L)
{
    spec_exact a, b;
    check_both(L, &a, &b);
    return push_exact(L, product(L, a, reciprocal(L, b)));
}

static int negate(lua_State *L)
{
    arena_free(spec_numbers(L));
    return push_exact(L, product(L, check_exact(L, 1, "-"), rational(number_int(-1))));
}

/* Raises an error unless a and b are rational: sums of roots are not represented. */
static void check_rationals(lua_State *L, spec_exact *a, spec_exact *b)
{
    check_both(L, a, b);
    if (a->root || b->root)
        script_refuse(L, 0,
                      "a sum with a root in it is not kept exact; gram(x) is the number whose square is x");
}

static int add(lua_State *L)
{
    spec_exact a, b;
    check_rationals(L, &a, &b);
    return push_exact(L, rational(number_add(spec_numbers(L), a.value, b.value)));
}

static int subtract(lua_State *L)
{
    spec_exact a, b;
    check_rationals(L, &a, &b);
    return push_exact(L, rational(number_sub(spec_numbers(L), a.value, b.value)));
}

static int raise_power(lua_State *L)
{
    arena_free(spec_numbers(L));
    spec_exact base = check_exact(L, 1, "^"), result = rational(number_int(1));
    int64_t exponent;
    if (!spec_to_whole(L, 2, &exponent) || exponent < -64 || exponent > 64)
        return script_refuse(L, 0, "the exponent of an exact number is an integer of -64..64, not %s",
                             spec_describe(L, 2));
    for (int64_t i = 0; i < llabs(exponent); i++)
        result = product(L, result, base);
    return push_exact(L, exponent < 0 ? reciprocal(L, result) : result);
}

/* Returns -1, 0 or 1; roots are compared by their squares. */
static int compare(lua_State *L)
{
    spec_exact a, b;
    check_both(L, &a, &b);
    if (is_negative(a) != is_negative(b))
        return is_negative(a) ? -1 : 1;
    bool roots = a.root || b.root;
    arena *memory = spec_numbers(L);
    fpa_number left = roots ? spec_exact_square(L, a) : a.value;
    fpa_number right = roots ? spec_exact_square(L, b) : b.value;
    int order = number_compare(memory, left, right);
    if (memory->failed)
        script_no_memory(L);
    return roots && is_negative(a) ? -order : order;
}

static int equals(lua_State *L)
{
    lua_pushboolean(L, compare(L) == 0);
    return 1;
}

static int is_less(lua_State *L)
{
    lua_pushboolean(L, compare(L) < 0);
    return 1;
}

static int is_not_greater(lua_State *L)
{
    lua_pushboolean(L, compare(L) <= 0);
    return 1;
}

/* text .. number: the number as in messages. */
static int concatenate(lua_State *L)
{
    lua_settop(L, 2);
    for (int i = 1; i <= 2; i++)
        if (luaL_testudata(L, i, SPEC_EXACT))
            spec_describe(L, i);
        else if (lua_type(L, i) == LUA_TSTRING || lua_type(L, i) == LUA_TNUMBER)
            lua_pushvalue(L, i);
        else
            return script_refuse(L, 0, "%s cannot be joined by ..: it takes texts and numbers",
                                 spec_describe(L, i));
    lua_concat(L, 2);
    return 1;
}

const luaL_Reg spec_number_functions[] = {{"sqrt", make_sqrt},       {"gram", make_gram},
                                          {"ratio", make_ratio},     {"range", make_range},
                                          {"tonumber", make_number}, {NULL, NULL}};

static int free_numbers(lua_State *L)
{
    arena_free(lua_touserdata(L, 1));
    return 0;
}

/* The arena of numbers is a Lua value, so that an error frees it. */
static void open_numbers(lua_State *L)
{
    arena *memory = lua_newuserdatauv(L, sizeof *memory, 0);
    *memory = (arena){0};
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, free_numbers);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &numbers_key);
}

void spec_number_open(lua_State *L)
{
    static const luaL_Reg arithmetic[] = {
        {"__mul", multiply},      {"__div", divide},         {"__unm", negate}, {"__add", add},
        {"__sub", subtract},      {"__pow", raise_power},    {"__eq", equals},  {"__lt", is_less},
        {"__le", is_not_greater}, {"__concat", concatenate}, {NULL, NULL}};
    open_numbers(L);
    luaL_newmetatable(L, SPEC_EXACT);
    luaL_setfuncs(L, arithmetic, 0);
    luaL_newmetatable(L, SPEC_RANGE);
    lua_pushcfunction(L, range_length);
    lua_setfield(L, -2, "__len");
    lua_pop(L, 2);
}
