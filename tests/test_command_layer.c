/* The command line and layers of unlike heads. */
#include "c_hurry.h"
#include "command_place.h"
#include "read_array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { B = 2, L = 9, H = 3, D = 4 };

static const char spec[] =
    "local square = head { name = 'square', d = 4, terms = power { degree = 2 } }\n"
    "local learned = head { name = 'learned', d = 4, terms = term { trainable { name = 'w', rows = 2 } } }\n"
    "return layer { name = 'both', heads = { { head = square, count = 2 }, { head = learned, count = 1 } } "
    "}\n";

typedef struct files {
    place here;
    char q[PATH], k[PATH], v[PATH], w[PATH], o[PATH], state[PATH], weight[2 * PATH];
} files;

/* Numbers that are small and different, of the heads first .. first + heads - 1 of three. */
static void write_heads(const char *path, int seed, int64_t first, int64_t heads)
{
    fpa_array array = {.axes = 4, .shape = {B, L, heads, D}, .count = B * L * heads * D};
    fpa_error error = {0};
    array.data = malloc((size_t)array.count * sizeof *array.data);
    for (int64_t i = 0; i < array.count; i++) {
        const int64_t whole = (i / (heads * D) * H + first + i / D % heads) * D + i % D;
        array.data[i] = (float)((whole * 37 + seed) % 101) / 101 - 0.4f;
    }
    assert_ok(npy_write(path, &array, &error), &error);
    npy_free(&array);
}

static void write_inputs(const files *f, int64_t first, int64_t heads)
{
    write_heads(f->q, 11, first, heads);
    write_heads(f->k, 12, first, heads);
    write_heads(f->v, 13, first, heads);
}

static void begin(files *f)
{
    place_begin(&f->here, spec);
    place_file(&f->here, "q.npy", f->q);
    place_file(&f->here, "k.npy", f->k);
    place_file(&f->here, "v.npy", f->v);
    place_file(&f->here, "w.npy", f->w);
    place_file(&f->here, "o.npy", f->o);
    place_file(&f->here, "state.npy", f->state);
    write_inputs(f, 0, H);
    write_numbers(f->w, 3, (int64_t[]){1, 2, D}, small_number, 0);
    snprintf(f->weight, sizeof f->weight, "learned.w=%s", f->w);
}

#define APPLY(f, head, ...)                                                                                  \
    RUN("fpac", "run", (f).here.spec, "--head", head, "--q", (f).q, "--k", (f).k, "--v", (f).v, "-o",        \
        (f).o __VA_OPT__(, ) __VA_ARGS__)

/* The heads from `first` on, as the layer gave them, are those of the head's own run. */
static void check_head(const fpa_array *all, const files *f, int64_t first, int64_t heads)
{
    fpa_array own = read_array(f->o);
    assert_int_equal(own.count, B * L * heads * D);
    for (int64_t i = 0; i < B * L; i++)
        assert_memory_equal(&all->data[(i * H + first) * D], &own.data[i * heads * D],
                            (size_t)(heads * D) * sizeof(float));
    npy_free(&own);
}

static void run_gives_what_it_gives_of_the_heads(void **state)
{
    files f;
    char weight[2 * PATH];
    begin(&f);
    expect(APPLY(f, "both", "--weights", f.weight, "--state-out", f.state), 0, NULL, NULL);
    fpa_array o = read_array(f.o), states = read_array(f.state);
    assert_int_equal(o.count, B * L * H * D);
    assert_int_equal(states.axes, 2);
    assert_int_equal(states.shape[0], B);
    write_inputs(&f, 0, 2);
    expect(APPLY(f, "square"), 0, NULL, NULL);
    check_head(&o, &f, 0, 2);
    write_inputs(&f, 2, 1);
    snprintf(weight, sizeof weight, "w=%s", f.w);
    expect(APPLY(f, "learned", "--weights", weight), 0, NULL, NULL);
    check_head(&o, &f, 2, 1);
    npy_free(&o);
    npy_free(&states);
    scratch_remove(f.here.folder);
}

static void run_goes_on_from_a_layers_state(void **state)
{
    files f;
    begin(&f);
    expect(APPLY(f, "both", "--weights", f.weight, "--state-out", f.state), 0, NULL, NULL);
    fpa_array once = read_array(f.o);
    expect(APPLY(f, "both", "--weights", f.weight, "--state-in", f.state), 0, NULL, NULL);
    fpa_array again = read_array(f.o);
    assert_memory_not_equal(once.data, again.data, (size_t)once.count * sizeof *once.data);
    npy_free(&once);
    npy_free(&again);
    expect(APPLY(f, "both"), 2, NULL, "learned.w is missing: give --weights learned.w=FILE.npy");
    expect(APPLY(f, "both", "--weights", f.weight, "--state-in", f.q), 1, NULL, "(state_in)");
    char wrong[PATH + 16];
    snprintf(wrong, sizeof wrong, "learned.w=%s", f.q);
    expect(APPLY(f, "both", "--weights", wrong), 1, NULL, "q.npy (--weights learned.w=");
    expect(APPLY(f, "nothing"), 1, NULL, "there is no head \"nothing\"");
    scratch_remove(f.here.folder);
}

static void commands_tell_of_layers(void **state)
{
    files f;
    char out[PATH];
    begin(&f);
    expect(RUN("fpac", "list", f.here.spec), 0, "layer both: 3 heads, d 4, dv 4: square x 2, learned x 1",
           NULL);
    expect(RUN("fpac", "list", f.here.spec, "--json"), 0, "\"layer\": \"both\"", NULL);
    expect(RUN("fpac", "explain", f.here.spec, "--head", "both"), 0, "layer both: 3 heads", NULL);
    expect(RUN("fpac", "explain", f.here.spec, "--json"), 0, "\"layer\": \"both\"", NULL);
    expect(RUN("fpac", "verify", f.here.spec, "--head", "both"), 0,
           "layer both: 9 calls have the bits of its heads' own, parallel chunked recurrent: verified", NULL);
    expect(RUN("fpac", "bench", f.here.spec, "--head", "both", "--length", "32", "--repeats", "2"), 0,
           "sum of the parts", NULL);
    expect(RUN("fpac", "bench", f.here.spec, "--head", "both", "--length", "32", "--json"), 0, "\"gain\"",
           NULL);
    expect(RUN("fpac", "bench", f.here.spec, "--head", "both", "--backward"), 2, NULL, "both is a layer");
    place_file(&f.here, "out", out);
    expect(RUN("fpac", "gen", f.here.spec, "--head", "both", "-o", out), 0, NULL,
           "layer both: its heads are written, and the manifest names it");
    assert_int_equal(scratch_count(out, ".c"), 2);
    expect(RUN("fpac", "report", f.here.spec, "--head", "both", "-o", f.o), 1, NULL,
           "both is a layer of heads, and no head");
    scratch_remove(f.here.folder);
}

/* What gen writes is a place to run from: no compiler is asked for. */
static void a_bundle_has_its_layers(void **state)
{
    files f;
    char out[PATH];
    begin(&f);
    place_file(&f.here, "out", out);
    expect(APPLY(f, "both", "--weights", f.weight), 0, NULL, NULL);
    fpa_array wanted = read_array(f.o);
    expect(RUN("fpac", "gen", f.here.spec, "--head", "both", "-o", out, "--object"), 0, NULL, NULL);
    snprintf(f.here.spec, sizeof f.here.spec, "%s", out);
    expect(RUN("fpac", "list", out), 0, "layer both: 3 heads, d 4, dv 4: square x 2, learned x 1", NULL);
    expect(RUN("fpac", "explain", out, "--head", "both"), 0, "layer both: 3 heads", NULL);
    setenv("FPA_CC", "/nowhere/cc", 1);
    expect(APPLY(f, "both", "--weights", f.weight), 0, NULL, NULL);
    fpa_array again = read_array(f.o);
    assert_int_equal(wanted.count, again.count);
    assert_memory_equal(wanted.data, again.data, (size_t)wanted.count * sizeof *wanted.data);
    npy_free(&wanted);
    npy_free(&again);
    write_inputs(&f, 0, 2);
    expect(APPLY(f, "square"), 0, NULL, NULL);
    expect(APPLY(f, "other"), 1, NULL, "there is no head \"other\"");
    expect(APPLY(f, "square", "--dtype", "bf16"), 2, NULL, "is that of a bundle's kernels");
    unsetenv("FPA_CC");
    scratch_remove(f.here.folder);
}

int main(void)
{
    c_hurry();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_gives_what_it_gives_of_the_heads),
        cmocka_unit_test(run_goes_on_from_a_layers_state),
        cmocka_unit_test(commands_tell_of_layers),
        cmocka_unit_test(a_bundle_has_its_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
