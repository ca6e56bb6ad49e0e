/* Exact numbers of a spec: rationals and square roots of them. sqrt2 enters a head as the
 * kernel weight 2 and never as 1.41421356 (DESIGN 3). */
#include "value.h"

#include <math.h>
#include <stdlib.h>

#include "script.h"

static int push_exact(lua_State *L, spec_exact number)
{
    spec_exact *value = lua_newuserdatauv(L, sizeof *value, 0);
    *value = number;
    luaL_setmetatable(L, SPEC_EXACT);
    return 1;
}

static spec_exact rational(fpa_number value)
{
    return (spec_exact){.value = value};
}

static int64_t integer_root(int64_t square)
{
    int64_t root = (int64_t)sqrt((double)square);
    while (root > 0 && root > square / root)
        root--;
    while (root + 1 <= square / (root + 1))
        root++;
    return root;
}

/* The root of a square: 4/9 gives the rational 2/3, 2 stays a root. */
static spec_exact root_of(fpa_number square, bool negative)
{
    if (number_exact(square)) {
        int64_t num = integer_root(square.num), den = integer_root(square.den);
        if (num * num == square.num && den * den == square.den)
            return rational(number_ratio(negative ? -num : num, den));
    }
    return (spec_exact){.root = true, .negative = negative, .value = square};
}

static bool is_negative(spec_exact number)
{
    return number.root ? number.negative : number.value.value < 0;
}

fpa_number spec_exact_square(spec_exact number)
{
    return number.root ? number.value : number_mul(number.value, number.value);
}

double spec_exact_double(spec_exact number)
{
    if (!number.root)
        return number.value.value;
    return number.negative ? -sqrt(number.value.value) : sqrt(number.value.value);
}

bool spec_to_exact(lua_State *L, int index, spec_exact *number)
{
    if (lua_isinteger(L, index)) {
        *number = rational(number_int(lua_tointeger(L, index)));
        return true;
    }
    if (lua_type(L, index) == LUA_TNUMBER) {
        *number = rational(number_double(lua_tonumber(L, index)));
        return isfinite(number->value.value);
    }
    const spec_exact *value = luaL_testudata(L, index, SPEC_EXACT);
    if (value)
        *number = *value;
    return value != NULL;
}

bool spec_to_whole(lua_State *L, int index, int64_t *whole)
{
    spec_exact number;
    if (!spec_to_exact(L, index, &number) || number.root || !number_is_integer(number.value))
        return false;
    *whole = number.value.num;
    return true;
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
    spec_exact number = check_exact(L, 1, what);
    if (number.root || number.value.value < 0)
        return script_refuse(L, 0, "%s(%s): the argument is a rational number >= 0", what,
                             spec_describe(L, 1));
    return push_exact(L, root_of(number.value, false));
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
    spec_exact p = check_exact(L, 1, "ratio"), q = check_exact(L, 2, "ratio");
    if (p.root || q.root || number_is_zero(q.value))
        return script_refuse(L, 0, "ratio(p, q) takes two rational numbers, q not 0");
    return push_exact(L, rational(number_div(p.value, q.value)));
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
    *a = check_exact(L, 1, "arithmetic with exact numbers");
    *b = check_exact(L, 2, "arithmetic with exact numbers");
}

static spec_exact product(spec_exact a, spec_exact b)
{
    if (!a.root && !b.root)
        return rational(number_mul(a.value, b.value));
    return root_of(number_mul(spec_exact_square(a), spec_exact_square(b)), is_negative(a) != is_negative(b));
}

static spec_exact reciprocal(lua_State *L, spec_exact a)
{
    if (number_is_zero(a.value))
        script_refuse(L, 0, "division by zero");
    if (!a.root)
        return rational(number_div(number_int(1), a.value));
    return root_of(number_div(number_int(1), a.value), a.negative);
}

static int multiply(lua_State *L)
{
    spec_exact a, b;
    check_both(L, &a, &b);
    return push_exact(L, product(a, b));
}

static int divide(lua_State *L)
{
    spec_exact a, b;
    check_both(L, &a, &b);
    return push_exact(L, product(a, reciprocal(L, b)));
}

static int negate(lua_State *L)
{
    return push_exact(L, product(check_exact(L, 1, "-"), rational(number_int(-1))));
}

/* Sums of roots leave the numbers that are kept exact. */
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
    return push_exact(L, rational(number_add(a.value, b.value)));
}

static int subtract(lua_State *L)
{
    spec_exact a, b;
    check_rationals(L, &a, &b);
    return push_exact(L, rational(number_sub(a.value, b.value)));
}

static int raise_power(lua_State *L)
{
    spec_exact base = check_exact(L, 1, "^"), result = rational(number_int(1));
    int64_t exponent;
    if (!spec_to_whole(L, 2, &exponent) || exponent < -64 || exponent > 64)
        return script_refuse(L, 0, "the exponent of an exact number is an integer of -64..64, not %s",
                             spec_describe(L, 2));
    for (int64_t i = 0; i < llabs(exponent); i++)
        result = product(result, base);
    return push_exact(L, exponent < 0 ? reciprocal(L, result) : result);
}

/* -1, 0 or 1; roots by their squares. */
static int compare(lua_State *L)
{
    spec_exact a, b;
    check_both(L, &a, &b);
    if (!a.root && !b.root)
        return number_compare(a.value, b.value);
    if (is_negative(a) != is_negative(b))
        return is_negative(a) ? -1 : 1;
    int order = number_compare(spec_exact_square(a), spec_exact_square(b));
    return is_negative(a) ? -order : order;
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

const luaL_Reg spec_number_functions[] = {
    {"sqrt", make_sqrt}, {"gram", make_gram}, {"ratio", make_ratio}, {"range", make_range}, {NULL, NULL}};

void spec_number_open(lua_State *L)
{
    static const luaL_Reg arithmetic[] = {{"__mul", multiply}, {"__div", divide},   {"__unm", negate},
                                          {"__add", add},      {"__sub", subtract}, {"__pow", raise_power},
                                          {"__eq", equals},    {"__lt", is_less},   {"__le", is_not_greater},
                                          {NULL, NULL}};
    luaL_newmetatable(L, SPEC_EXACT);
    luaL_setfuncs(L, arithmetic, 0);
    luaL_newmetatable(L, SPEC_RANGE);
    lua_pushcfunction(L, range_length);
    lua_setfield(L, -2, "__len");
    lua_pop(L, 2);
}
