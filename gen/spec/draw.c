/* Matrices and hashes that are drawn from a seed, with the same bits on every machine, and the spectrum of count
 * sketches. */
#include "value.h"

#include <math.h>

#include "base/splitmix.h"
#include "script.h"
#include "steady.h"

enum { PRODUCTS = 256 /* products that count as an instruction */, MAX_SIZE = HEAD_MAX_COORDINATES };

static uint64_t read_seed(lua_State *L, const char *what)
{
    return (uint64_t)spec_field_whole(L, 1, what, "seed", 0, INT64_MAX, SPEC_REQUIRED);
}

/* Pushes a Lua value with room for rows x columns doubles. */
static double *push_room(lua_State *L, int64_t rows, int64_t columns)
{
    const int64_t bytes = rows * columns * (int64_t)sizeof(double);
    if (bytes > script_room(L))
        script_refuse(L, 0, "%I x %I numbers are more than there is memory for", (lua_Integer)rows,
                      (lua_Integer)columns);
    script_charge(L, rows * columns);
    return lua_newuserdatauv(L, (size_t)bytes, 0);
}

/* ---- gaussian, signs ---- */

/* A standard normal number by Marsaglia's polar method: the first coordinate of a random point of the unit disc,
 * scaled. */
static double draw_normal(uint64_t *state)
{
    for (;;) {
        const double u = (double)(splitmix_bits(state) >> 11) * 0x1p-52 - 1;
        const double v = (double)(splitmix_bits(state) >> 11) * 0x1p-52 - 1;
        const double s = steady_product(u, u) + steady_product(v, v);
        if (s > 0 && s < 1)
            return steady_product(u, sqrt(-2 * steady_log(s) / s));
    }
}

static double draw_length(uint64_t *state, int d)
{
    double sum = 0;
    for (int i = 0; i < d; i++) {
        const double x = draw_normal(state);
        sum += steady_product(x, x);
    }
    return sqrt(sum);
}

/* Makes each group of d rows orthogonal. Each row then has the length of an independent random vector, so that by
 * itself it is distributed as a row of independent numbers. */
static void make_right_angles(lua_State *L, double *values, int rows, int d, uint64_t *state)
{
    for (int first = 0; first < rows; first += d) {
        const int count = rows - first < d ? rows - first : d;
        double *block = values + (size_t)first * (size_t)d;
        script_charge(L, (int64_t)count * d * (count + 12) / PRODUCTS);
        spec_orthogonalize(block, count, d);
        for (int r = 0; r < count; r++) {
            const double length = draw_length(state, d);
            for (int i = 0; i < d; i++)
                block[r * d + i] = steady_product(block[r * d + i], length);
        }
    }
}

/* gaussian { rows =, d =, seed =, orthogonal = false } */
static int make_gaussian(lua_State *L)
{
    static const char *const names[] = {"rows", "d", "seed", "orthogonal", NULL};
    spec_fields(L, 1, "gaussian", names, false);
    const int rows = (int)spec_field_whole(L, 1, "gaussian", "rows", 1, MAX_SIZE, SPEC_REQUIRED);
    const int d = (int)spec_field_whole(L, 1, "gaussian", "d", 1, HEAD_MAX_WIDTH + 1, SPEC_REQUIRED);
    uint64_t state = read_seed(L, "gaussian");
    double *values = push_room(L, rows, d);
    for (int i = 0; i < rows * d; i++)
        values[i] = draw_normal(&state);
    if (spec_field_flag(L, 1, "gaussian", "orthogonal", false))
        make_right_angles(L, values, rows, d, &state);
    spec_push_rows(L, values, rows, d);
    return 1;
}

/* signs { rows =, d =, seed = } */
static int make_signs(lua_State *L)
{
    static const char *const names[] = {"rows", "d", "seed", NULL};
    spec_fields(L, 1, "signs", names, false);
    const int rows = (int)spec_field_whole(L, 1, "signs", "rows", 1, 1 << 20, SPEC_REQUIRED);
    const int d = (int)spec_field_whole(L, 1, "signs", "d", 1, HEAD_MAX_WIDTH + 1, SPEC_REQUIRED);
    uint64_t state = read_seed(L, "signs");
    double *values = push_room(L, rows, d);
    for (int64_t i = 0; i < (int64_t)rows * d; i++)
        values[i] = splitmix_bits(&state) >> 63 ? -1 : 1;
    spec_push_rows(L, values, rows, d);
    return 1;
}

/* ---- hashes ---- */

/* Polynomials of degree k - 1 with random coefficients modulo the prime 2^31 - 1 are k-wise independent (Wegman
 * and Carter). Since the prime is no multiple of the sizes, sizes and signs are uneven by at most 2^-17. */
static const uint64_t prime = (UINT64_C(1) << 31) - 1;
enum { MOST_INDEPENDENT = 4 };

typedef struct hash {
    int count;
    uint64_t coefficient[MOST_INDEPENDENT];
} hash;

static hash draw_hash(uint64_t *state, int independence)
{
    hash drawn = {.count = independence};
    for (int i = 0; i < independence; i++)
        do
            drawn.coefficient[i] = splitmix_bits(state) >> 33;
        while (drawn.coefficient[i] == prime);
    return drawn;
}

static uint64_t hash_of(const hash *h, uint64_t x)
{
    uint64_t value = 0;
    for (int i = 0; i < h->count; i++)
        value = (value * x + h->coefficient[i]) % prime;
    return value;
}

/* hashes { d =, size =, count =, seed =, independence = 2 } -> indices, signs: count rows of d; indices are 0 .. size - 1,
 * 2-wise or 4-wise independent, signs 1 and -1, 4-wise. */
static int make_hashes(lua_State *L)
{
    static const char *const names[] = {"d", "size", "count", "seed", "independence", NULL};
    spec_fields(L, 1, "hashes", names, false);
    const int d = (int)spec_field_whole(L, 1, "hashes", "d", 1, HEAD_MAX_WIDTH + 1, SPEC_REQUIRED);
    const uint64_t size = (uint64_t)spec_field_whole(L, 1, "hashes", "size", 1, MAX_SIZE, SPEC_REQUIRED);
    const int count = (int)spec_field_whole(L, 1, "hashes", "count", 1, 1 << 16, 1);
    const int independence = (int)spec_field_whole(L, 1, "hashes", "independence", 2, MOST_INDEPENDENT, 2);
    uint64_t state = read_seed(L, "hashes");
    if (independence == 3)
        return script_refuse(L, 0, "independence of hashes is 3, but 2 and 4 are allowed");
    double *indices = push_room(L, count, d), *signs = push_room(L, count, d);
    for (int row = 0; row < count; row++) {
        const hash index = draw_hash(&state, independence), sign = draw_hash(&state, MOST_INDEPENDENT);
        for (int x = 0; x < d; x++) {
            indices[row * d + x] = (double)(hash_of(&index, (uint64_t)x) % size);
            signs[row * d + x] = hash_of(&sign, (uint64_t)x) % 2 ? -1 : 1;
        }
    }
    spec_push_rows(L, indices, count, d);
    spec_push_rows(L, signs, count, d);
    return 2;
}

/* ---- the spectrum of a count sketch ---- */

/* Pushes the list of numbers in a field of the table at index 1 as a Lua value with the doubles; *count: how many. */
static const double *push_list(lua_State *L, const char *name, int most, int *count)
{
    lua_getfield(L, 1, name);
    const int list = lua_gettop(L);
    const lua_Unsigned length = lua_istable(L, list) ? lua_rawlen(L, list) : 0;
    if (length < 1 || length > (lua_Unsigned)most)
        script_refuse(L, 0, "%s of spectrum is %s, but a list of 1 to %d numbers is needed", name,
                      length ? "longer" : spec_describe(L, list), most);
    double *values = push_room(L, 1, (int64_t)length);
    for (int i = 0; i < (int)length; i++) {
        lua_rawgeti(L, list, i + 1);
        if (!spec_to_double(L, -1, &values[i]))
            script_refuse(L, 0, "entry %d of %s of spectrum is %s, but a finite number is needed", i + 1,
                          name, spec_describe(L, -1));
        lua_pop(L, 1);
    }
    *count = (int)length;
    return values;
}

static void check_whole(lua_State *L, const char *name, const double *values, int count, int size)
{
    for (int i = 0; i < count; i++)
        if (!(values[i] >= 0 && values[i] < size) || values[i] != floor(values[i]))
            script_refuse(L, 0, "entry %d of %s is %f, but an integer of 0..%d is needed", i + 1, name,
                          values[i], size - 1);
}

/* spectrum { size = D, index = { h ... }, weights = { s ... }, frequencies = { w ... } } -> real, imaginary:
 * rows w, columns s_j exp(-2 pi i w h_j / D): the discrete Fourier transform of the count sketch. */
static int make_spectrum(lua_State *L)
{
    static const char *const names[] = {"size", "index", "weights", "frequencies", NULL};
    int rows, columns, weighted;
    spec_fields(L, 1, "spectrum", names, false);
    const int size = (int)spec_field_whole(L, 1, "spectrum", "size", 1, MAX_SIZE, SPEC_REQUIRED);
    const double *frequencies = push_list(L, "frequencies", MAX_SIZE, &rows);
    const double *index = push_list(L, "index", HEAD_MAX_WIDTH + 1, &columns);
    const double *weights = push_list(L, "weights", HEAD_MAX_WIDTH + 1, &weighted);
    check_whole(L, "frequencies", frequencies, rows, size);
    check_whole(L, "index", index, columns, size);
    if (weighted != columns)
        return script_refuse(L, 0, "spectrum has %d weights, but %d indices", weighted, columns);
    double *re = push_room(L, rows, columns), *im = push_room(L, rows, columns);
    for (int i = 0; i < rows * columns; i++) {
        double cosine, sine;
        steady_turn((int64_t)frequencies[i / columns] * (int64_t)index[i % columns], size, &cosine, &sine);
        re[i] = 0 + steady_product(weights[i % columns], cosine); /* adding 0 makes -0 to 0 */
        im[i] = 0 - steady_product(weights[i % columns], sine);
    }
    spec_push_rows(L, re, rows, columns);
    spec_push_rows(L, im, rows, columns);
    return 2;
}

const luaL_Reg spec_draw_functions[] = {{"gaussian", make_gaussian},
                                        {"signs", make_signs},
                                        {"hashes", make_hashes},
                                        {"spectrum", make_spectrum},
                                        {NULL, NULL}};
