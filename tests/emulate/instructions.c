#include "instructions.h"

#include <lauxlib.h>
#include <lualib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/embedded.h"
#include "gen/emit/template.h"
#include "base/file.h"
#include "base/dtype.h"
#include "../claims.h"
#include "../random_head.h"

#define TEMPLATE "tests/emulate/instructions.cu.in"

enum { SEED = 20261123 };

const int product_columns[PRODUCTS] = {8,   16,  24,  32,  40,  48,  56,  64,  72,  80,  88,
                                       96,  104, 112, 120, 128, 136, 144, 152, 160, 168, 176,
                                       184, 192, 200, 208, 216, 224, 232, 240, 248, 256};

/* ---- kernels ---- */

static const instruction instructions[] = {
    {"convert_element", ANY, FLOAT_BITS, 1},
    {"convert_float", ANY, BITS, 1},
    {"convert_floats", ANY, BITS, 1},
    {"convert_copied", ANY, BITS, 1},
    {"multiply_pairs", PAIRS, BITS, 1},
    {"larger_pair", PAIRS, BITS, 1},
    {"larger_magnitudes", PAIRS, BITS, 1},
    {"multiply_and_add", PAIRS, BITS, 1},
    {"multiply_by_zero", ANY, BITS, 1},
    {"multiply_copied", BF16_PAIRS, BITS, 1},
    {"power", POWERS, TWO_ULP, 1},
    {"convert_tf32", FLOATS, BITS, 1},
    {"logarithm", ONE_TO_TWO, NEAR, 1},
    {"inverse", ONE_TO_TWO, TWO_ULP, 1},
    {"cosine", ANGLES, NEAR, 1},
    {"sine", ANGLES, NEAR, 1},
    {"add", ANY, BITS, 1},
    {"move", FLOATS, BITS, 1},
    {"move_halves", ANY, BITS, 1},
    {"move_parts", ANY, BITS, 1},
    {"permute", ANY, BITS, 1},
    {"from_lane", ANY, BITS, 1},
    {"shuffle", ANY, BITS, 1},
    {"word", ANY, BITS, 1},
    {"element", ANY, BITS, 1},
    {"floats", FLOATS, BITS, 1},
    {"words", ANY, BITS, 1},
    {"four_floats", FLOATS, FLOAT_BITS, 1},
    {"store_words", ANY, BITS, 1},
    {"store_staying", FLOATS, BITS, 1},
    {"load_matrices", ANY, BITS, 1},
    {"load_matrices2", ANY, BITS, 1},
    {"load_row", ANY, BITS, 1},
    {"load_transposed", ANY, BITS, 1},
    {"load_transposed2", ANY, BITS, 1},
    {"store_matrices", ANY, BITS, 1},
    {"store_matrices2", ANY, BITS, 1},
    {"store_transposed", ANY, BITS, 1},
    {"store_transposed2", ANY, BITS, 1},
    {"multiply_warp", INTEGERS, BITS, 1},
    {"multiply_tf32", INTEGERS, BITS, 1},
    {"copy_by_threads", ANY, BITS, 1},
    {"copy_numbers", ANY, BITS, 1},
    {"copy_and_arrive", ANY, BITS, 1},
    {"arrive_and_wait", ANY, BITS, 1},
    {"wait_for_warpgroup", ANY, BITS, 1},
    {"copy_and_expect", ANY, BITS, 1},
    {"copy_and_await", ANY, BITS, 1},
    {"copy_out_of_shared", ANY, BITS, 1},
    {"copy_box_in", ANY, BITS, 1},
    {"copy_box_out", ANY, BITS, 1},
    {"copy_sequence_box_in", ANY, BITS, 1},
    {"copy_sequence_box_out", ANY, BITS, 1},
    {"counters", ANY, BITS, 1},
    {"send_to_block", FLOATS, BITS, 4},
    {"send_box_to_blocks", ANY, BITS, 4},
};

enum { LISTED = sizeof instructions / sizeof *instructions };
const int instruction_count = LISTED + PRODUCTS;

/* Behind those listed come products of a warpgroup. */
instruction instruction_at(int i, char name[INSTRUCTION_NAME])
{
    if (i < LISTED) {
        snprintf(name, INSTRUCTION_NAME, "run_%s", instructions[i].kernel);
        return instructions[i];
    }
    snprintf(name, INSTRUCTION_NAME, "run_multiply_warpgroup%d", product_columns[i - LISTED]);
    return (instruction){NULL, INTEGERS, BITS, 1};
}

/* ---- the kernels' text ---- */

static const char *own_text; /* of TEMPLATE, while the text of kernels is made */

static const char *find_template(const char *name)
{
    if (!strcmp(name, TEMPLATE))
        return own_text;
    for (const struct fpa_embedded_file *file = fpa_embedded_templates; file->name; file++)
        if (!strcmp(file->name, name))
            return file->text;
    return NULL;
}

char *instructions_code(const char *arithmetic, int first, int step)
{
    lua_State *L = luaL_newstate();
    char *code = NULL;
    fpa_file file;
    fpa_error error;
    assert_non_null(L);
    assert_ok(file_read(TEMPLATE, &file, &error), &error);
    own_text = (const char *)file.bytes;
    luaL_openlibs(L);
    lua_newtable(L);
    lua_pushstring(L, arithmetic);
    lua_setfield(L, -2, "arithmetic");
    lua_setglobal(L, "plan");
    lua_newtable(L);
    for (int i = first, n = 1; i < PRODUCTS; i += step, n++) {
        lua_pushinteger(L, product_columns[i]);
        lua_rawseti(L, -2, n);
    }
    lua_setglobal(L, "columns_of_products");
    lua_pushstring(L, fpa_embedded_cuda_call_h);
    lua_setglobal(L, "call_text");
    assert_ok(template_run(L, find_template, TEMPLATE, NULL, &code, &error), &error);
    lua_close(L);
    free(file.bytes);
    return code;
}

/* ---- words ---- */

static uint32_t bits_of(float a)
{
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}

/* A number of 16 bits: a small integer, or of every size whose square has room. */
static uint32_t half_word(random_source *random, bool f16, bool integer)
{
    const double a = integer ? floor(9 * random_unit(random)) - 4
                             : ldexp(2 * random_unit(random) - 1, (int)(random_unit(random) * 35) - 20);
    return f16 ? f16_from_float((float)a) : bf16_from_float((float)a);
}

static uint32_t some_word(random_source *random, enum words words, bool f16)
{
    static const float special[] = {0,      -0.0f, 1,          -1,    INFINITY,   -INFINITY, NAN,
                                    1e-40f, 65504, 65519.996f, 65520, 3.3895e38f, 0x1p-24f,  0x1p-25f};
    static const float ends[] = {0,   -0.0f, 1e-40f, -1e-40f, INFINITY, -INFINITY,
                                 NAN, 127,   128,    -125.5f, -150,     -1e30f};
    const double draw = random_unit(random);
    const size_t pick = (size_t)(random_unit(random) * 1000);
    switch (words) {
    case POWERS:
        return bits_of(draw < 0.1 ? ends[pick % (sizeof ends / sizeof *ends)]
                                  : (float)(280 * random_unit(random) - 150));
    case PAIRS:
    case BF16_PAIRS:
    case INTEGERS:
        f16 = f16 && words != BF16_PAIRS;
        return half_word(random, f16, words == INTEGERS) | half_word(random, f16, words == INTEGERS) << 16;
    case ANGLES:
        return bits_of((float)((2 * random_unit(random) - 1) * 3.15));
    case ONE_TO_TWO:
        return bits_of((float)(1 + random_unit(random)));
    case ANY:
        if (draw < 0.1)
            return bits_of(special[pick % (sizeof special / sizeof *special)]);
        if (draw < 0.5)
            return (uint32_t)(random_unit(random) * 4294967296.0);
        break;
    case FLOATS:
        break;
    }
    return bits_of((float)ldexp(2 * random_unit(random) - 1, (int)(random_unit(random) * 40) - 20));
}

void instruction_words(const instruction *kernel, bool f16, uint32_t words[INSTRUCTION_WORDS])
{
    random_source random = {SEED};
    for (int i = 0; i < INSTRUCTION_WORDS; i++)
        words[i] = some_word(&random, kernel->words, f16);
}
