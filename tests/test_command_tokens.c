/* fpac run with positions and a mask of keys, and what the other commands say of heads that take them. */
#include "c_hurry.h"
#include "claims.h"
#include "command_place.h"
#include "mask_file.h"
#include "read_array.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char spec[] =
    "return {\n"
    "  head { name = 'turned', d = 4, dv = 4, positions = 1, key_mask = true, normalize = 'sum',\n"
    "    terms = fourier { map = softplus, a = dense { {1}, {2}, {3}, {0.5} }, b = false, c = false } },\n"
    "  head { name = 'plain', d = 4, dv = 4, terms = linear {} },\n"
    "  head { name = 'two', d = 4, dv = 4,\n"
    "    terms = term { dense { heads = { { {1, 0, 0, 0} }, { {0, 1, 0, 0} } } } } },\n"
    "}\n";

enum { B = 2, L = 9, TOKENS = B * L };

/* q, k, v of 2 sequences, 9 tokens, 2 heads, width 4; a position and a byte of the mask for each token. */
typedef struct files {
    place here;
    char q[PATH], k[PATH], v[PATH], positions[PATH], mask[PATH], o[PATH];
} files;

static float count_from_minus_3(int64_t i, int seed)
{
    return (float)(i % L - 3);
}

/* int32 of the same numbers, but for the one at `at`. */
static void write_integers(const char *path, int at, int32_t other)
{
    char header[119];
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    snprintf(header, sizeof header, "{'descr': '<i4', 'fortran_order': False, 'shape': (%d, %d), }", B, L);
    fwrite("\x93NUMPY\1\0\x76\0", 1, 10, out);
    fprintf(out, "%-117s\n", header);
    for (int i = 0; i < TOKENS; i++) {
        const int32_t number = i == at ? other : i % L - 3;
        fwrite(&number, sizeof number, 1, out);
    }
    assert_int_equal(fclose(out), 0);
}

/* The first two tokens of the first sequence are masked, and one of the second. */
static void write_mask(const char *path)
{
    float masked[TOKENS] = {[0] = 1, [1] = 1, [L + 4] = 1};
    const fpa_array array = {.axes = 2, .shape = {B, L}, .count = TOKENS, .data = masked};
    write_kept(path, &array);
}

static void files_make(files *f)
{
    static const int64_t vectors[4] = {B, L, 2, 4};
    place_begin(&f->here, spec);
    place_file(&f->here, "q.npy", f->q);
    place_file(&f->here, "k.npy", f->k);
    place_file(&f->here, "v.npy", f->v);
    place_file(&f->here, "positions.npy", f->positions);
    place_file(&f->here, "mask.npy", f->mask);
    place_file(&f->here, "o.npy", f->o);
    write_numbers(f->q, 4, vectors, small_number, 11);
    write_numbers(f->k, 4, vectors, small_number, 11);
    write_numbers(f->v, 4, vectors, small_number, 11);
    write_numbers(f->positions, 2, vectors, count_from_minus_3, 0);
    write_mask(f->mask);
}

#define APPLY(f, head, ...)                                                                                  \
    RUN("fpac", "run", (f).here.spec, "--head", head, "--q", (f).q, "--k", (f).k, "--v", (f).v, "-o",        \
        (f).o __VA_OPT__(, ) __VA_ARGS__)

static void integers_and_floats_give_the_same_bits(void **state)
{
    files f;
    char counted[PATH];
    files_make(&f);
    place_file(&f.here, "counted.npy", counted);
    write_integers(counted, -1, 0);
    expect(APPLY(f, "turned", "--positions", f.positions, "--key-mask", f.mask), 0, NULL, NULL);
    fpa_array once = read_array(f.o);
    for (int i = 0; i < 2 * 2 * 4; i++)
        assert_true(once.data[i] == 0); /* no key so far */
    assert_true(once.data[2 * 2 * 4] != 0);
    expect(APPLY(f, "turned", "--positions", counted, "--key-mask", f.mask), 0, NULL, NULL);
    fpa_array again = read_array(f.o);
    assert_memory_equal(once.data, again.data, (size_t)once.count * sizeof *once.data);
    npy_free(&once);
    npy_free(&again);
    write_integers(counted, 5, (1 << 24) + 1);
    expect(APPLY(f, "turned", "--positions", counted, "--key-mask", f.mask), 1, NULL,
           "the integer 16777217, number 6 of the array, which float32 cannot hold exactly");
    scratch_remove(f.here.folder);
}

static void what_does_not_fit_is_refused_by_its_option_or_file(void **state)
{
    static const int64_t narrow[2] = {B, L - 1};
    files f;
    char wrong[PATH];
    files_make(&f);
    place_file(&f.here, "narrow.npy", wrong);
    write_numbers(wrong, 2, narrow, small_number, 11);
    expect(APPLY(f, "turned", "--key-mask", f.mask), 2, NULL,
           "--positions: is needed: turned needs positions of 1 number");
    expect(APPLY(f, "turned", "--positions", f.positions), 2, NULL,
           "--key-mask: is needed: turned needs a mask of keys");
    expect(APPLY(f, "plain", "--positions", f.positions), 2, NULL,
           "--positions: is given, but plain has no positions");
    expect(APPLY(f, "plain", "--key-mask", f.mask), 2, NULL,
           "--key-mask: is given, but plain has no mask of keys");
    expect(APPLY(f, "turned", "--positions", wrong, "--key-mask", f.mask), 1, NULL,
           "narrow.npy (positions): axis 1 has 8 tokens, but q has 9");
    expect(APPLY(f, "turned", "--positions", f.positions, "--key-mask", f.positions), 1, NULL,
           "positions.npy: has elements of type '<f4', but '|b1' or '|u1' (bool or uint8) is needed");
    expect(RUN("fpac", "run", f.here.spec, "--head", "turned", "--q", f.q, "--k", f.k, "--v", f.v,
               "--positions", f.positions, "--key-mask", f.mask, "-o", f.mask),
           1, NULL, "is also key_mask: -o would overwrite it");
    assert_int_not_equal(access(f.o, F_OK), 0);
    scratch_remove(f.here.folder);
}

static void constants_for_two_heads_want_two_heads(void **state)
{
    static const int64_t single[4] = {B, L, 1, 4};
    files f;
    files_make(&f);
    expect(APPLY(f, "two"), 0, NULL, NULL);
    write_numbers(f.q, 4, single, small_number, 11);
    write_numbers(f.k, 4, single, small_number, 11);
    write_numbers(f.v, 4, single, small_number, 11);
    expect(APPLY(f, "two"), 1, NULL, "k.npy (k): axis 2 has 1 heads, but the constants of two are for 2");
    expect(RUN("fpac", "bench", f.here.spec, "--head", "two", "--length", "64"), 1, NULL,
           "has constants of 2 key/value heads: give --heads 2");
    expect(RUN("fpac", "bench", f.here.spec, "--head", "two", "--length", "64", "--heads", "2"), 0, "two",
           NULL);
    scratch_remove(f.here.folder);
}

static void commands_tell_what_calls_give(void **state)
{
    files f;
    files_make(&f);
    expect(RUN("fpac", "list", f.here.spec), 0, "normaliser sum  positions  key mask", NULL);
    expect(RUN("fpac", "list", f.here.spec, "--json"), 0, "\"positions\": 1", NULL);
    expect(RUN("fpac", "explain", f.here.spec, "--head", "turned"), 0, "d = 4, dv = 4", NULL);
    expect(RUN("fpac", "explain", f.here.spec, "--head", "turned", "--json"), 0, "\"key_mask\": true", NULL);
    expect(RUN("fpac", "verify", f.here.spec), 0, "verified", NULL);
    expect(RUN("fpac", "bench", f.here.spec, "--head", "turned", "--length", "64"), 0, "turned", NULL);
    scratch_remove(f.here.folder);
}

int main(void)
{
    c_hurry();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_and_floats_give_the_same_bits),
        cmocka_unit_test(what_does_not_fit_is_refused_by_its_option_or_file),
        cmocka_unit_test(constants_for_two_heads_want_two_heads),
        cmocka_unit_test(commands_tell_what_calls_give),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
