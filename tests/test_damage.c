/* Cubins with a changed byte: a bundle is refused by its digest, an entry of the cache is built again, and no driver
 * ever sees them. The driver is a fake one, so that no GPU is needed; NVRTC is. */
#include "fake_driver.h"
#include "runtime/builder.h"
#include "runtime/cuda/image.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/store/cache.h"
#include "runtime/verify/verify.h"
#include "cubin.h"
#include "dear.h"
#include "nvrtc_hurry.h"

#include <fcntl.h>

#include "bundle_fixture.h"

#define TARGET "cuda:sm_90"
/* Without tokens' order there are few kernels: about 70 KiB. */
#define SMALL_HEAD "return head { name = 'small', d = 2, dv = 1, causal = false, terms = linear {} }"
#define TRAINED_HEAD "return head { name = 'trained', d = 2, dv = 1, terms = linear {} }" /* with gradients */

/* What a child's claim works with; made by its parent. */
static fixture *here;
static const char *damaged; /* the cubin of the bundle that is */
static char object_path[256];

static int make_head(void **state, const char *text)
{
    fixture *f = calloc(1, sizeof *f);
    fpa_error error;
    scratch_make(f->folder);
    snprintf(f->bundle, sizeof f->bundle, "%s/bundle", f->folder);
    snprintf(f->cache, sizeof f->cache, "%s/cache", f->folder);
    f->options =
        (fpa_options){.target = TARGET, .cache_dir = f->cache, .log = scratch_record, .log_user = &f->log};
    *state = here = f;
    return spec_load_text("small.lua", NULL, text, strlen(text), &f->heads, &error);
}

static int make_small(void **state)
{
    return make_head(state, SMALL_HEAD);
}

static int make_trained(void **state)
{
    return make_head(state, TRAINED_HEAD);
}

static void need_nvrtc(void)
{
    const char *version;
    fpa_error error;
    if (nvrtc_find(&version, &error))
        skip();
}

/* A byte of a file becomes another one, and the same again. */
static void damage(const char *path, size_t at)
{
    unsigned char byte;
    int file = open(path, O_RDWR);
    if (file < 0 || pread(file, &byte, 1, (off_t)at) != 1)
        abort();
    byte ^= (unsigned char)(1 << at % 8);
    if (pwrite(file, &byte, 1, (off_t)at) != 1 || close(file))
        abort();
}

enum { PLACES = 96 };

/* Bytes between two that are damaged: so many in a file of so many bytes, `make test-all` 64 times as many, at all places within
 * words and lines. Not each of a cubin's 300,000: for each the whole file is read and its digest made. */
static size_t damage_step(size_t size, size_t places)
{
    return (size / (dear_tests() ? 64 * places : places) + 1) | 1;
}

/* The status, with what is wrong on stderr where it is another one than wanted. */
static bool ends(fpa_status status, fpa_status wanted, const fpa_error *error)
{
    if (status != wanted)
        fprintf(stderr, "status %d, not %d: %s: %s\n", (int)status, (int)wanted, error->where,
                error->message);
    return status == wanted;
}

/* The fake driver, which answers for modules of these bytes. */
static struct fake_state *driver_for(const fpa_object *bytes)
{
    struct fake_state *driver = fake();
    fpa_object images[FPA_CUDA_PARTS];
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s_geometry", here->heads.heads[0]->name);
    if (!driver || image_split(bytes, images, FPA_CUDA_PARTS) < 1 ||
        !cubin_variable(images[0].bytes, images[0].size, symbol, &driver->geometry, sizeof driver->geometry))
        abort();
    driver->geometry_size = sizeof driver->geometry;
    driver->object = bytes->bytes;
    driver->object_size = bytes->size;
    return driver;
}

/* ---- bundles ---- */

static bool is_refused(struct fake_state *driver)
{
    fpa_error error = {0};
    fpa_kernel *kernel = (fpa_kernel *)here; /* a failure has to overwrite it */
    driver->loads = 0;
    const fpa_status status = fpa_open_bundle(here->bundle, NULL, &here->options, &kernel, &error);
    const bool fine = status == FPA_LOAD && !kernel && strcmp(error.where, damaged) == 0 &&
                      strstr(error.message, "SHA-256 differs") && driver->loads == 0;
    if (!fine)
        fprintf(stderr, "status %d, %d loads: %s: %s\n", (int)status, driver->loads, error.where,
                error.message);
    return fine;
}

static void take_object(const char *name)
{
    damaged = name;
    snprintf(object_path, sizeof object_path, "%s/%s", here->bundle, name);
}

static int every_changed_byte_is_refused(struct fake_state *driver, size_t places)
{
    fpa_error error = {0};
    fpa_file file;
    HOLDS(file_read(object_path, &file, &error) == FPA_OK);
    for (size_t at = 0; at < file.size; at += damage_step(file.size, places)) {
        damage(object_path, at);
        HOLDS(is_refused(driver));
        damage(object_path, at);
    }
    for (size_t size = 0; size < file.size; size += file.size / 7 + 1) { /* and every end that is missing */
        scratch_write(object_path, file.bytes, size);
        HOLDS(is_refused(driver));
    }
    scratch_write(object_path, file.bytes, file.size);
    free(file.bytes);
    return 0;
}

/* Whole, a forward pass goes to the driver, whose kernels compute nothing: the verification refuses it. */
static int is_whole(struct fake_state **driver)
{
    static fpa_file file; /* the driver looks at it */
    fpa_error error = {0};
    fpa_kernel *kernel;
    HOLDS(file_read(object_path, &file, &error) == FPA_OK);
    *driver = driver_for(&(fpa_object){file.bytes, file.size});
    HOLDS(ends(fpa_open_bundle(here->bundle, NULL, &here->options, &kernel, &error), FPA_REFUSED, &error));
    HOLDS((*driver)->loads > 0 && (*driver)->strangers == 0 && nothing_is_held(*driver));
    return 0;
}

static int every_changed_byte_of_a_bundle_is_refused(void)
{
    struct fake_state *driver;
    take_object("small.sm_90.cubin");
    HOLDS(is_whole(&driver) == 0);
    return every_changed_byte_is_refused(driver, PLACES);
}

/* Where gradients are wanted neither module is loaded before both are known to be whole. */
static int every_changed_byte_of_gradients_is_refused(void)
{
    struct fake_state *driver;
    here->options.backward = 1;
    take_object("trained.sm_90.cubin");
    HOLDS(is_whole(&driver) == 0);
    take_object("trained.sm_90.backward.cubin");
    return every_changed_byte_is_refused(driver, PLACES / 8); /* both files are read each time */
}

/* Where there is no driver a bundle is written unverified. */
static int write_it(void)
{
    static const char *const targets[] = {TARGET};
    const fpa_head *head = here->heads.heads[0];
    const bundle_parts parts = {.backward = head->causal};
    fpa_error error = {0};
    HOLDS(ends(bundle_write(here->heads.heads, 1, here->bundle, targets, 1, parts, &here->options, &error),
               FPA_OK, &error));
    return 0;
}

static void a_damaged_cubin_of_a_bundle_never_reaches_the_driver(void **state)
{
    need_nvrtc();
    in_child("/nowhere/libcuda.so.1", write_it);
    in_child(fake_path, every_changed_byte_of_a_bundle_is_refused);
}

static void a_damaged_cubin_of_gradients_never_reaches_the_driver(void **state)
{
    need_nvrtc();
    in_child("/nowhere/libcuda.so.1", write_it);
    in_child(fake_path, every_changed_byte_of_gradients_is_refused);
}

/* ---- entries of the cache ---- */

/* As open names the entry of this head; the claim that it opens from there fails when that changes. */
static fpa_status entry_key(char key[KEY_TEXT], fpa_error *error)
{
    char digest[DIGEST_TEXT], *identity = NULL, *device = NULL;
    fpa_status status = head_digest(here->heads.heads[0], digest, error);
    if (!status)
        status = builder_cuda.identity(&here->options, TARGET, &identity, error);
    if (!status)
        status = backend_cuda.device(&here->options, &device, error);
    if (!status) {
        const char *const fields[] = {"fpac module 2 of " FPA_VERSION,
                                      digest,
                                      TARGET,
                                      generator_digest,
                                      identity,
                                      device,
                                      verifier_digest};
        cache_key(fields, sizeof fields / sizeof *fields, key);
    }
    free(identity);
    free(device);
    return status;
}

/* Compile the head, and store it as if it had been verified. */
static fpa_status store_entry(fpa_cache *cache, const char *key, fpa_object *object, fpa_error *error)
{
    fpa_source source;
    char *facts = NULL, kept[4096] = "";
    fpa_status status = source_generate(here->heads.heads[0], TARGET, &source, error);
    if (!status)
        status = builder_cuda.compile(&here->options, &source, object, error);
    if (!status && (facts = facts_print(&source.facts)))
        snprintf(kept, sizeof kept, "%sverified elsewhere", facts);
    if (!status)
        status = cache_store(cache, key, object, kept, error);
    free(facts);
    source_free(&source);
    return status;
}

static int every_changed_byte_of_an_entry_is_noticed(const fpa_cache *cache, const char *key,
                                                     const char *path)
{
    fpa_error error;
    fpa_file file;
    HOLDS(file_read(path, &file, &error) == FPA_OK);
    for (size_t at = 0; at < file.size; at += damage_step(file.size, PLACES)) {
        fpa_object object = {NULL, 0};
        char *verdict = NULL;
        bool found = true;
        here->log = (scratch_log){0};
        damage(path, at);
        HOLDS(cache_load(cache, &here->options, key, &found, &object, &verdict, &error) == FPA_OK);
        HOLDS(!found && !object.bytes && !verdict && here->log.lines == 1);
        HOLDS(strstr(here->log.text, "is damaged; it is removed and built again") && access(path, F_OK) != 0);
        scratch_write(path, file.bytes, file.size);
    }
    free(file.bytes);
    return 0;
}

static fpa_status open_small(fpa_kernel **kernel, fpa_error *error)
{
    return fpa_open_text("small.lua", SMALL_HEAD, NULL, &here->options, kernel, error);
}

/* Whole, it is what the driver gets; damaged, the driver gets what is compiled again. */
static int a_damaged_entry_is_compiled_again(struct fake_state *driver, const char *path)
{
    fpa_error error = {0};
    fpa_kernel *kernel;
    fpa_file file;
    HOLDS(ends(open_small(&kernel, &error), FPA_OK, &error));
    HOLDS(fpa_describe(kernel)->from_cache && driver->loads > 0 && driver->strangers == 0);
    HOLDS(strcmp(fpa_describe(kernel)->verdict, "verified elsewhere") == 0);
    fpa_close(kernel);
    HOLDS(file_read(path, &file, &error) == FPA_OK);
    for (int part = 1; part <= 3; part++) { /* of the object, which is all but the first KiB or two */
        scratch_write(path, file.bytes, file.size);
        damage(path, file.size * (size_t)part / 4);
        here->log = (scratch_log){0};
        driver->loads = 0;
        HOLDS(ends(open_small(&kernel, &error), FPA_REFUSED, &error));
        HOLDS(strstr(here->log.text, "is damaged") && strstr(here->log.text, "small: compiled for " TARGET));
        HOLDS(driver->loads > 0 && driver->strangers == 0 && access(path, F_OK) != 0);
    }
    free(file.bytes);
    return 0;
}

static int damaged_entries_are_built_again(void)
{
    fpa_error error = {0};
    fpa_cache cache;
    fpa_object object = {NULL, 0};
    char key[KEY_TEXT], path[256];
    HOLDS(cache_open(&here->options, &cache, &error) == FPA_OK && cache.folder);
    HOLDS(ends(entry_key(key, &error), FPA_OK, &error));
    HOLDS(ends(store_entry(&cache, key, &object, &error), FPA_OK, &error));
    snprintf(path, sizeof path, "%s/%s.fpa", here->cache, key);
    struct fake_state *driver = driver_for(&object);
    HOLDS(every_changed_byte_of_an_entry_is_noticed(&cache, key, path) == 0);
    HOLDS(driver->loads == 0);
    HOLDS(a_damaged_entry_is_compiled_again(driver, path) == 0);
    free(object.bytes);
    cache_close(&cache);
    return 0;
}

static void a_damaged_cubin_of_the_cache_never_reaches_the_driver(void **state)
{
    need_nvrtc();
    in_child(fake_path, damaged_entries_are_built_again);
}

#define CLAIM(name, make) cmocka_unit_test_setup_teardown(name, make, drop_fixture)

int main(void)
{
    nvrtc_hurry();
    const struct CMUnitTest tests[] = {
        CLAIM(a_damaged_cubin_of_a_bundle_never_reaches_the_driver, make_small),
        CLAIM(a_damaged_cubin_of_gradients_never_reaches_the_driver, make_trained),
        CLAIM(a_damaged_cubin_of_the_cache_never_reaches_the_driver, make_small),
    };
    return cmocka_run_group_tests(tests, compile_fake, remove_fake);
}
