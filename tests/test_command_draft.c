/* fpac run --draft: several tokens of which some are accepted, as forwards would answer and remember them. */
#include "command_place.h"
#include "read_array.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { B = 2, L = 4, H = 2, D = 4 };

static const char spec[] =
    "local square = head { name = 'square', d = 4, normalize = 'one_plus_sum', terms = power { degree = 2 } "
    "}\n"
    "return square, layer { name = 'both', heads = { { head = square, count = 2 } } }\n";

typedef struct files {
    place here;
    char q[PATH], k[PATH], v[PATH], o[PATH], before[PATH], after[PATH], counts[PATH];
} files;

static void write_tokens(const files *f, int64_t tokens)
{
    const int64_t shape[] = {B, tokens, H, D};
    write_numbers(f->q, 4, shape, small_number, 11);
    write_numbers(f->k, 4, shape, small_number, 12);
    write_numbers(f->v, 4, shape, small_number, 13);
}

static void write_counts(const files *f, float first, float second)
{
    fpa_array counts = {.axes = 1, .shape = {B}, .count = B, .data = (float[]){first, second}};
    fpa_error error;
    assert_ok(npy_write(f->counts, &counts, &error), &error);
}

#define APPLY(f, ...)                                                                                        \
    RUN("fpac", "run", (f).here.spec, "--head", "square", "--q", (f).q, "--k", (f).k, "--v", (f).v, "-o",    \
        (f).o __VA_OPT__(, ) __VA_ARGS__)

static void begin(files *f)
{
    place_begin(&f->here, spec);
    place_file(&f->here, "q.npy", f->q);
    place_file(&f->here, "k.npy", f->k);
    place_file(&f->here, "v.npy", f->v);
    place_file(&f->here, "o.npy", f->o);
    place_file(&f->here, "before.npy", f->before);
    place_file(&f->here, "after.npy", f->after);
    place_file(&f->here, "counts.npy", f->counts);
    write_tokens(f, 7);
    expect(APPLY(*f, "--state-out", f->before), 0, NULL, NULL);
    write_tokens(f, L);
}

static void near(const float *a, const float *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(a[i] - b[i]) < 1e-5f))
            fail_msg("number %d is %g, not %g", (int)i, (double)a[i], (double)b[i]);
}

static void all_are_answered_and_some_remembered(void **state)
{
    files f;
    begin(&f);
    write_counts(&f, L, 0);
    expect(APPLY(f, "--state-in", f.before, "--draft", f.counts, "--state-out", f.after), 0, NULL, NULL);
    fpa_array o = read_array(f.o), after = read_array(f.after), before = read_array(f.before);
    const int64_t half = after.count / B;
    assert_memory_equal(after.data + half, before.data + half, (size_t)half * sizeof(float));
    expect(APPLY(f, "--state-in", f.before, "--state-out", f.after), 0, NULL, NULL);
    fpa_array plain = read_array(f.o), whole = read_array(f.after);
    assert_int_equal(o.count, B * L * H * D);
    near(o.data, plain.data, o.count);
    near(after.data, whole.data, half);
    npy_free(&o), npy_free(&after), npy_free(&before), npy_free(&plain), npy_free(&whole);
    scratch_remove(f.here.folder);
}

static void what_cannot_be_is_told(void **state)
{
    files f;
    begin(&f);
    write_counts(&f, 1, L + 1);
    expect(APPLY(f, "--draft", f.counts), 2, NULL, "--state-out, which is not given");
    expect(APPLY(f, "--draft", f.counts, "--state-out", f.after, "--form", "chunked"), 2, NULL,
           "--form: is for forwards");
    expect(APPLY(f, "--draft", f.counts, "--state-out", f.after), 1, NULL, "counts.npy (accepted.count)");
    expect(RUN("fpac", "run", f.here.spec, "--head", "both", "--q", f.q, "--k", f.k, "--v", f.v, "-o", f.o,
               "--draft", f.counts, "--state-out", f.after),
           1, NULL, "--draft: is for heads only, and both is a layer");
    scratch_remove(f.here.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_answered_and_some_remembered),
        cmocka_unit_test(what_cannot_be_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
