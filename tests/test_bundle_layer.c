/* Layers of bundles: named in the manifest, opened without a spec and without a compiler. */
#include "layer_fixture.h"

#include "command/bundle.h"
#include "runtime/store/manifest.h"

enum { MOST_TEXT = 16384 };

static const char spec[] =
    "local power2 = head { name = 'power2', d = 8, dv = 5, normalize = 'sum', terms = power { degree = 2 } "
    "}\n"
    "local gated = head { name = 'gated', d = 8, dv = 5, gate = true, terms = linear {} }\n"
    "local learned = head { name = 'learned', d = 8, dv = 5, terms = { term { trainable { name = 'w', rows = "
    "3 } } } "
    "}\n"
    "return layer { name = 'mixed', heads = { { head = power2, count = 3 }, { head = gated, count = 2 },\n"
    "  { head = learned, count = 1 } } }\n";

static char ready[64]; /* a bundle of all heads and of `mixed`, written once */

typedef struct folder {
    layer_fixture *f;
    char scratch[64], bundle[96];
    fpa_head_list heads; /* power2, gated, learned */
} folder;

static const fpa_bundle_layer mixed = {"mixed", 3, {{"power2", 3}, {"gated", 2}, {"learned", 1}}};

static int make(void **state)
{
    folder *here = calloc(1, sizeof *here);
    fpa_error error;
    void *f;
    assert_int_equal(layer_make(&f), 0);
    here->f = f;
    layer_open(here->f, spec, NULL);
    scratch_make(here->scratch);
    snprintf(here->bundle, sizeof here->bundle, "%s/bundle", here->scratch);
    assert_int_equal(spec_load_text("layer.lua", NULL, spec, sizeof spec - 1, &here->heads, &error), FPA_OK);
    *state = here;
    return 0;
}

static int drop(void **state)
{
    folder *here = *state;
    void *f = here->f;
    layer_remove(&f);
    head_list_free(&here->heads);
    scratch_remove(here->scratch);
    free(here);
    return 0;
}

/* The first heads of the spec, and these layers. */
static fpa_status write(folder *here, int heads, const char *target, const fpa_bundle_layer *layers,
                        int count, fpa_error *error)
{
    const bundle_parts parts = {.objects = true, .layers = layers, .layer_count = count};
    return bundle_write(here->heads.heads, heads, here->bundle, &target, 1, parts, &here->f->options, error);
}

/* Sources and a manifest: nothing is compiled. */
static fpa_status text_only(folder *here, int heads, const fpa_bundle_layer *layers, int count,
                            fpa_error *error)
{
    static const char *const best[] = {"c"};
    const bundle_parts parts = {.layers = layers, .layer_count = count};
    return bundle_write(here->heads.heads, heads, here->bundle, best, 1, parts, &here->f->options, error);
}

/* The bundle that is ready, the test's own. */
static void write_mixed(folder *here)
{
    char command[256];
    snprintf(command, sizeof command, "cp -r %s %s", ready, here->bundle);
    assert_int_equal(system(command), 0);
}

static int make_ready(void **state)
{
    void *its;
    fpa_error error = {0};
    assert_int_equal(layer_group(state), 0);
    assert_int_equal(make(&its), 0);
    folder *here = its;
    scratch_make(ready);
    snprintf(here->bundle, sizeof here->bundle, "%s", ready);
    assert_ok(write(here, 3, "c", &mixed, 1, &error), &error);
    return drop(&its);
}

static int drop_ready(void **state)
{
    scratch_remove(ready);
    return layer_ungroup(state);
}

static fpa_layer *open(folder *here, const char *name)
{
    fpa_error error = {0};
    fpa_layer *layer = NULL;
    assert_ok(fpa_open_bundle_layer(here->bundle, name, &here->f->options, &layer, &error), &error);
    return layer;
}

static void refused(folder *here, const char *name, fpa_status code, const char *where, const char *message)
{
    fpa_error error = {0};
    fpa_layer *layer = (fpa_layer *)here; /* a failure has to overwrite it */
    const fpa_status status = fpa_open_bundle_layer(here->bundle, name, &here->f->options, &layer, &error);
    if (status != code || layer || !strstr(error.where, where) || !strstr(error.message, message))
        fail_msg("status %d: %s: %s", (int)status, error.where, error.message);
}

static void manifest_path(const folder *here, char path[160])
{
    snprintf(path, 160, "%s/%s", here->bundle, MANIFEST_NAME);
}

static char *read_text(const folder *here)
{
    char path[160];
    fpa_file file;
    fpa_error error;
    manifest_path(here, path);
    assert_int_equal(file_read(path, &file, &error), FPA_OK);
    return (char *)file.bytes;
}

/* The manifest with one text instead of another, signed anew. */
static void change(const folder *here, const char *text, const char *from, const char *to)
{
    char path[160], other[MOST_TEXT], digest[DIGEST_TEXT];
    const char *at = strstr(text, from);
    assert_non_null(at);
    const int length =
        snprintf(other, sizeof other, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    assert_true(length < MOST_TEXT);
    char *last = strstr(other, "\nsha256 ");
    assert_non_null(last);
    manifest_digest(other, (size_t)(last + 1 - other), digest);
    memcpy(last + strlen("\nsha256 "), digest, DIGEST_TEXT - 1);
    manifest_path(here, path);
    scratch_write(path, other, strlen(other));
}

static bool lists(const folder *here, const char *line)
{
    char *text = read_text(here);
    const bool found = strstr(text, line) != NULL;
    free(text);
    return found;
}

static void a_bundles_layer_has_the_bits_of_the_specs(void **state)
{
    folder *here = *state;
    layer_fixture *f = here->f;
    write_mixed(here);
    layer_operands(f, (layer_sizes){.batch = 2, .length = 21, .group = 2, .state_in = true});
    layer_forward(f, FPA_FORM_AUTO);
    layer_results wanted = layer_keep(f);
    fpa_close_layer(f->layer);
    f->options.compiler = "/nowhere/cc";
    f->layer = open(here, NULL);
    const fpa_layer_description *about = fpa_describe_layer(f->layer);
    assert_string_equal(about->name, "mixed");
    assert_int_equal(about->heads, 6);
    assert_int_equal(about->part_count, 3);
    assert_string_equal(about->weight_names[0], "learned.w");
    layer_forget(f);
    layer_forward(f, FPA_FORM_AUTO);
    layer_check(f, &wanted);
    layer_drop(&wanted);
}

static void a_head_of_two_parts_is_opened_once(void **state)
{
    static const fpa_bundle_layer twice = {"twice", 3, {{"power2", 1}, {"gated", 2}, {"power2", 3}}};
    folder *here = *state;
    fpa_error error;
    assert_int_equal(write(here, 2, "c", &twice, 1, &error), FPA_OK);
    fpa_layer *layer = open(here, "twice");
    const fpa_layer_description *about = fpa_describe_layer(layer);
    assert_int_equal(about->heads, 6);
    assert_ptr_equal(about->parts[0].head, about->parts[2].head);
    fpa_close_layer(layer);
}

static void names_are_told(void **state)
{
    folder *here = *state;
    fpa_kernel *kernel;
    fpa_error error;
    fpa_layer *layer;
    write_mixed(here);
    refused(here, "other", FPA_INVALID, "bundle", "there is no layer 'other' in this bundle, but: mixed");
    assert_int_equal(fpa_open_bundle(here->bundle, "mixed", &here->f->options, &kernel, &error), FPA_INVALID);
    assert_non_null(strstr(error.message, "is a layer of heads: open it with fpa_open_bundle_layer"));
    assert_int_equal(fpa_open_bundle_layer(NULL, NULL, NULL, &layer, &error), FPA_INVALID);
    assert_int_equal(fpa_open_bundle_layer(here->bundle, NULL, NULL, NULL, &error), FPA_INVALID);
    char *text = read_text(here);
    change(here, text, "layers 1\n", "layers 2\nlayer more 1\npart gated 7\nend\n");
    refused(here, NULL, FPA_INVALID, "bundle", "several layers, so name one of: more, mixed");
    layer = open(here, "more");
    assert_int_equal(fpa_describe_layer(layer)->heads, 7);
    fpa_close_layer(layer);
    free(text);
    scratch_remove(here->bundle);
    assert_int_equal(text_only(here, 1, NULL, 0, &error), FPA_OK);
    refused(here, NULL, FPA_INVALID, "bundle", "there is no layer in this bundle");
}

static void every_mistake_in_a_layer_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"layers 1\n", "layers 2\n", "expected 'layer NAME PARTS'"},
        {"layers 1\n", "layers 0\n", "expected 'sha256 SHA256'"},
        {"layers 1\n", "layers 01\n", "expected 'layers 1'"},
        {"layers 1\n", "layers 99999\n", "expected 'layers NUMBER'"},
        {"layers 1\n", "", "expected 'layers NUMBER'"},
        {"layer mixed 3\n", "layer mixed 0\n", "expected 'layer NAME PARTS'"},
        {"layer mixed 3\n", "layer mixed 65\n", "expected 'layer NAME PARTS'"},
        {"layer mixed 3\n", "layer mixed 2\n", "expected 'end'"},
        {"layer mixed 3\n", "layer mixed 4\n", "expected 'part HEAD HEADS'"},
        {"layer mixed 3\n", "layer ../mixed 3\n", "expected 'layer NAME PARTS'"},
        {"layer mixed 3\n", "layer gated 3\n", "a name that nothing else has"},
        {"layers 1\n", "layers 2\nlayer mixed 1\npart gated 1\nend\n", "a name that nothing else has"},
        {"part gated 2\n", "part gatec 2\n", "part with a head of the entries"},
        {"part gated 2\n", "part gated 0\n", "expected 'part HEAD HEADS'"},
        {"part gated 2\n", "part gated 65537\n", "expected 'part HEAD HEADS'"},
        {"part gated 2\n", "part gated +2\n", "expected 'part HEAD HEADS'"},
        {"part gated 2\n", "part gated\n", "expected 'part HEAD HEADS'"},
        {"part learned 1\nend\n", "part learned 1\n", "expected 'end'"},
    };
    folder *here = *state;
    write_mixed(here);
    char *text = read_text(here);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        change(here, text, cases[i].from, cases[i].to);
        refused(here, NULL, FPA_INVALID, "manifest.fpa:", cases[i].message);
    }
    free(text);
}

/* Nothing of it may be changed unsigned; and heads that are no layer together are refused when it is opened. */
static void a_changed_layer_is_noticed(void **state)
{
    folder *here = *state;
    char path[160];
    write_mixed(here);
    char *text = read_text(here), *number = strstr(text, "part gated 2");
    manifest_path(here, path);
    number[strlen("part gated ")] = '5';
    scratch_write(path, text, strlen(text));
    refused(here, NULL, FPA_INVALID, "manifest.fpa", "changed after it was written");
    free(text);
}

static void gen_keeps_layers_whose_heads_stay(void **state)
{
    static const fpa_bundle_layer alone = {"alone", 1, {{"gated", 4}}};
    folder *here = *state;
    fpa_error error;
    assert_int_equal(text_only(here, 3, &mixed, 1, &error), FPA_OK);
    assert_int_equal(text_only(here, 2, &alone, 1, &error), FPA_OK); /* the same heads again */
    assert_true(lists(here, "layers 2\nlayer alone 1\npart gated 4\nend\nlayer mixed 3\n"));
    here->heads.heads[0]->eps *= 2; /* another power2 */
    assert_int_equal(text_only(here, 1, NULL, 0, &error), FPA_OK);
    assert_true(lists(here, "layers 1\nlayer alone 1\n"));
}

static void a_layer_without_one_of_its_heads_is_not_listed(void **state)
{
    static const fpa_bundle_layer named_as_head = {"gated", 1, {{"power2", 1}}};
    const fpa_bundle_layer twice[] = {mixed, mixed};
    folder *here = *state;
    fpa_error error;
    scratch_log log = {0};
    here->f->options.log = scratch_record;
    here->f->options.log_user = &log;
    assert_int_equal(text_only(here, 2, &mixed, 1, &error), FPA_OK);
    assert_true(lists(here, "layers 0\n"));
    assert_non_null(strstr(log.text, "mixed: warning: the layer is not listed, for its head learned"));
    assert_int_equal(text_only(here, 2, &named_as_head, 1, &error), FPA_INVALID);
    assert_non_null(strstr(error.message, "a head and a layer are named gated"));
    assert_int_equal(text_only(here, 3, twice, 2, &error), FPA_INVALID);
    assert_non_null(strstr(error.message, "two layers"));
    here->f->options.log = NULL;
}

/* One target of all heads: what one of them lacks is no target of the layer. */
static void a_target_that_a_head_lacks_is_not_taken(void **state)
{
    folder *here = *state;
    fpa_error error;
    const char *const both[] = {"c:sse2", target_best()->name};
    if (strcmp(both[1], both[0]) == 0)
        return;
    assert_int_equal(write(here, 3, both[0], &mixed, 1, &error), FPA_OK);
    assert_int_equal(bundle_write(here->heads.heads, 2, here->bundle, both, 2,
                                  (bundle_parts){.objects = true}, &here->f->options, &error),
                     FPA_OK);
    fpa_layer *layer = open(here, NULL);
    assert_string_equal(fpa_describe_layer(layer)->target, "c:sse2");
    fpa_close_layer(layer);
    here->f->options.target = target_best()->name;
    refused(here, NULL, FPA_UNSUPPORTED, "bundle",
            "learned has: c:sse2; write them with fpac gen --head mixed --object");
    here->f->options.target = NULL;
    here->f->options.backward = 1;
    refused(here, NULL, FPA_UNSUPPORTED, "bundle", "--object --backward --target");
    here->f->options.backward = 0;
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make, drop)

int main(void)
{
    toy_hurry();
    const struct CMUnitTest tests[] = {
        CLAIM(a_bundles_layer_has_the_bits_of_the_specs),
        CLAIM(a_head_of_two_parts_is_opened_once),
        CLAIM(names_are_told),
        CLAIM(every_mistake_in_a_layer_is_refused_with_its_line),
        CLAIM(a_changed_layer_is_noticed),
        CLAIM(gen_keeps_layers_whose_heads_stay),
        CLAIM(a_layer_without_one_of_its_heads_is_not_listed),
        CLAIM(a_target_that_a_head_lacks_is_not_taken),
    };
    return cmocka_run_group_tests(tests, make_ready, drop_ready);
}
