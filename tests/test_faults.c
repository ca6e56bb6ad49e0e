/* Linked with --wrap for the calls below: the first, second, third ... of them fails, until an
 * opening succeeds without a fault. Every run before that ends in a clean error, or in a kernel
 * that works; it leaves whole files only and no descriptor open. `make asan` adds: no leak. */
#include "command/bundle.h"
#include "claims.h"
#include "dear.h"
#include "gen/gen.h"
#include "gen/simplify/simplify.h"
#include "head/number.h"
#include "runtime/store/cache.h"
#include "runtime/store/manifest.h"
#include "scratch.h"
#include "toy.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

typedef enum fault_kind { FAULT_MEMORY, FAULT_WRITE, FAULT_FSYNC, FAULT_RENAME, FAULT_KINDS } fault_kind;

static struct {
    bool armed;
    bool lasting; /* all later ones fail too */
    fault_kind kind;
    long at;           /* which one fails, from 1; 0: none, they are only counted */
    atomic_long calls; /* of the kind, since it was armed; several threads make them */
} fault;

static bool strikes(fault_kind kind)
{
    if (!fault.armed || fault.kind != kind)
        return false;
    long call = atomic_fetch_add(&fault.calls, 1) + 1;
    return fault.at > 0 && (fault.lasting ? call >= fault.at : call == fault.at);
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
ssize_t __real_write(int fd, const void *bytes, size_t size);
int __real_fsync(int fd);
int __real_rename(const char *from, const char *to);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
int __wrap_fsync(int fd);
int __wrap_rename(const char *from, const char *to);

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

void *__wrap_malloc(size_t size)
{
    return strikes(FAULT_MEMORY) ? no_memory() : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return strikes(FAULT_MEMORY) ? no_memory() : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return strikes(FAULT_MEMORY) ? no_memory() : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
    return strikes(FAULT_MEMORY) ? no_memory() : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t size)
{
    return strikes(FAULT_MEMORY) ? no_memory() : __real_strndup(text, size);
}

/* Half of the bytes still get through: a disk fills up in the middle of a file. */
ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
    if (!strikes(FAULT_WRITE))
        return __real_write(fd, bytes, size);
    if (size > 1 && __real_write(fd, bytes, size / 2) < 0)
        return -1;
    errno = ENOSPC;
    return -1;
}

int __wrap_fsync(int fd)
{
    if (!strikes(FAULT_FSYNC))
        return __real_fsync(fd);
    errno = EIO;
    return -1;
}

int __wrap_rename(const char *from, const char *to)
{
    if (!strikes(FAULT_RENAME))
        return __real_rename(from, to);
    errno = EIO;
    return -1;
}

typedef struct fixture {
    char folder[64], temporary[96], cache[96], bundle[96], compiler[96], spec[96];
    fpa_options options;
    scratch_log log;
} fixture;

static int make_fixture(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    scratch_make(f->folder);
    snprintf(f->temporary, sizeof f->temporary, "%s/tmp", f->folder);
    snprintf(f->cache, sizeof f->cache, "%s/cache", f->folder);
    snprintf(f->bundle, sizeof f->bundle, "%s/bundle", f->folder);
    snprintf(f->compiler, sizeof f->compiler, "%s/cc", f->folder);
    snprintf(f->spec, sizeof f->spec, "%s/toy.lua", f->folder);
    toy_compiler(f->compiler);
    scratch_write(f->spec, TOY_SPEC, strlen(TOY_SPEC));
    setenv("TMPDIR", f->temporary, 1);
    f->options = (fpa_options){
        .cache_dir = f->cache, .compiler = f->compiler, .log = scratch_record, .log_user = &f->log};
    *state = f;
    return mkdir(f->temporary, 0700);
}

static int drop_fixture(void **state)
{
    fixture *f = *state;
    scratch_remove(f->folder);
    free(f);
    return 0;
}

typedef fpa_status opener(fixture *f, fpa_kernel **kernel, fpa_error *error);

static fpa_status open_spec(fixture *f, fpa_kernel **kernel, fpa_error *error)
{
    return fpa_open(f->spec, NULL, &f->options, kernel, error);
}

static fpa_status open_bundle(fixture *f, fpa_kernel **kernel, fpa_error *error)
{
    return fpa_open_bundle(f->bundle, NULL, &f->options, kernel, error);
}

/* Rewrites the bundle, with gradients where the options ask for them; there is no kernel to look at. */
static fpa_status write_bundle(fixture *f, fpa_kernel **kernel, fpa_error *error)
{
    static const char *const best[] = {"c"};
    const bundle_parts parts = {.objects = true, .backward = f->options.backward};
    fpa_head_list list = {.count = 0};
    *kernel = NULL;
    fpa_status status = spec_load(f->spec, &list, error);
    if (!status)
        status = bundle_write(list.heads, list.count, f->bundle, best, 1, parts, &f->options, error);
    head_list_free(&list);
    return status;
}

static void arm(fault_kind kind, long at, bool lasting)
{
    fault.kind = kind;
    fault.at = at;
    fault.lasting = lasting;
    fault.calls = 0;
    fault.armed = true;
}

static void disarm(void)
{
    fault.armed = false;
}

/* Every file is a whole entry: each loads under its own name. */
static void expect_whole_entries(fixture *f)
{
    fpa_error error;
    fpa_cache cache;
    DIR *list = opendir(f->cache);
    if (!list)
        return;
    assert_int_equal(cache_open(&f->options, &cache, &error), FPA_OK);
    for (struct dirent *item = readdir(list); item; item = readdir(list)) {
        char key[KEY_TEXT];
        bool found;
        fpa_object object;
        char *verdict;
        if (item->d_name[0] == '.' && strlen(item->d_name) <= 2)
            continue;
        snprintf(key, sizeof key, "%.64s", item->d_name);
        assert_int_equal(cache_load(&cache, &f->options, key, &found, &object, &verdict, &error), FPA_OK);
        if (!found)
            fail_msg("%s is no whole entry", item->d_name);
        free(object.bytes);
        free(verdict);
    }
    closedir(list);
    cache_close(&cache);
}

static void expect_clean_error(fault_kind kind, long at, fpa_status status, const fpa_kernel *kernel,
                               const fpa_error *error)
{
    bool expected =
        kind == FAULT_MEMORY ? status == FPA_NO_MEMORY : status == FPA_IO || status == FPA_COMPILE;
    if (!expected || kernel || error->code != status || !error->message[0])
        fail_msg("fault %ld of kind %d: status %d, code %d, %s: %s", at, (int)kind, (int)status,
                 (int)error->code, error->where, error->message);
}

/* One opening with a fault. Returns the number of calls of the kind that it made. */
static long try_once(fixture *f, opener *open, fault_kind kind, long at, bool lasting)
{
    fpa_error error = {0};
    fpa_kernel *kernel = NULL;
    int descriptors = scratch_count("/proc/self/fd", NULL);
    f->log = (scratch_log){0};
    arm(kind, at, lasting);
    fpa_status status = open(f, &kernel, &error);
    disarm();
    if (status)
        expect_clean_error(kind, at, status, kernel, &error);
    else if (kernel && at % 16 == 0)
        assert_true(toy_works(kernel));
    fpa_close(kernel);
    assert_int_equal(scratch_count("/proc/self/fd", NULL), descriptors);
    assert_int_equal(scratch_count(f->temporary, NULL), 0);
    expect_whole_entries(f);
    return fault.calls;
}

/* An opening may be made from scratch each time, or find what the one before left. */
typedef enum preparation { FROM_SCRATCH, AS_LEFT } preparation;

static void prepare(fixture *f, preparation how)
{
    if (how == FROM_SCRATCH)
        scratch_remove(f->cache);
}

/* The last calls one by one, where the runtime is at work; among the thousands that Lua makes
 * before, one in `stride`. make test: the first ones and the last ones, of those between fewer. */
static void try_all(fixture *f, opener *open, preparation how, fault_kind kind, bool lasting)
{
    enum { FIRST = 30, LAST = 90, SAMPLES = 60, FEW = 3 };
    const long share = dear_tests() || kind != FAULT_MEMORY ? 1 : FEW;
    try_once(f, open, kind, 0, false);
    prepare(f, how);
    long total = try_once(f, open, kind, 0, false);
    long stride = 1 + share * total / SAMPLES, first = FIRST / share, tail = total - LAST / share;
    for (long at = 1; at <= total + 1; at += at < first || at >= tail ? 1 : stride) {
        prepare(f, how);
        long calls = try_once(f, open, kind, at, lasting);
        assert_true(at > total || calls >= at); /* the fault did strike */
    }
    prepare(f, how);
    try_once(f, open, kind, 0, false);
}

static void opening_from_the_cache_survives_every_failed_allocation(void **state)
{
    try_all(*state, open_spec, AS_LEFT, FAULT_MEMORY, false);
}

static void opening_afresh_survives_every_failed_allocation(void **state)
{
    try_all(*state, open_spec, FROM_SCRATCH, FAULT_MEMORY, false);
}

static void opening_survives_memory_that_stays_out(void **state)
{
    try_all(*state, open_spec, FROM_SCRATCH, FAULT_MEMORY, true);
}

static void opening_survives_every_failed_write_fsync_and_rename(void **state)
{
    for (fault_kind kind = FAULT_WRITE; kind < FAULT_KINDS; kind++)
        for (int lasting = 0; lasting < 2; lasting++)
            try_all(*state, open_spec, FROM_SCRATCH, kind, lasting);
}

/* Only the store in the cache writes then: the kernel is opened all the same. */
static void a_full_disk_under_the_cache_costs_a_warning_only(void **state)
{
    fixture *f = *state;
    fpa_error error;
    fpa_kernel *kernel;
    try_once(f, open_spec, FAULT_RENAME, 0, false);
    prepare(f, FROM_SCRATCH);
    f->log = (scratch_log){0};
    arm(FAULT_RENAME, 2, true); /* the first rename is the source's, for the compiler */
    fpa_status status = open_spec(f, &kernel, &error);
    disarm();
    assert_int_equal(status, FPA_OK);
    assert_non_null(strstr(f->log.text, "cannot be written"));
    assert_true(toy_works(kernel));
    fpa_close(kernel);
    assert_int_equal(scratch_count(f->cache, NULL), 0);
}

static void opening_a_bundle_survives_every_fault(void **state)
{
    fixture *f = *state;
    fpa_kernel *none;
    fpa_error error;
    assert_int_equal(write_bundle(f, &none, &error), FPA_OK);
    for (fault_kind kind = FAULT_MEMORY; kind < FAULT_KINDS; kind++)
        for (int lasting = 0; lasting < 2; lasting++) {
            try_all(f, open_bundle, FROM_SCRATCH, kind, lasting);
            try_all(f, open_bundle, AS_LEFT, kind, lasting);
        }
}

static void opening_gradients_of_a_bundle_survives_every_fault(void **state)
{
    fixture *f = *state;
    fpa_kernel *none;
    fpa_error error;
    f->options.backward = 1;
    f->options.compiler = NULL; /* two sources */
    assert_int_equal(write_bundle(f, &none, &error), FPA_OK);
    for (fault_kind kind = FAULT_MEMORY; kind < FAULT_KINDS; kind++) {
        try_all(f, open_bundle, FROM_SCRATCH, kind, kind == FAULT_MEMORY);
        try_all(f, open_bundle, AS_LEFT, kind, false);
    }
}

/* The bundle of before stays as it was, or the new one is there; both have the same bytes here. */
static void writing_a_bundle_survives_every_fault(void **state)
{
    fixture *f = *state;
    fpa_kernel *kernel;
    fpa_error error;
    for (fault_kind kind = FAULT_MEMORY; kind < FAULT_KINDS; kind++) {
        try_all(f, write_bundle, AS_LEFT, kind, false);
        assert_int_equal(open_bundle(f, &kernel, &error), FPA_OK);
        fpa_close(kernel);
        assert_int_equal(scratch_count(f->bundle, NULL), 5);
    }
}

/* make test: of the thousands of allocations of numbers, which few places make, every seventh. */
static long every(void)
{
    return dear_tests() ? 1 : 7;
}

/* Everything that number.h does with numbers beyond 64 bits. */
static fpa_number compute_numbers(arena *memory)
{
    fpa_number tenth = number_double(memory, 0.1), third = number_double(memory, 1.0 / 3), root;
    fpa_number a = number_pow(memory, tenth, 7), b = number_div(memory, a, number_pow(memory, third, 5));
    fpa_number c = number_add(memory, number_mul(memory, a, b), number_sub(memory, b, number_int(1)));
    if (number_root(memory, number_mul(memory, c, c), &root))
        c = number_mul(memory, c, root);
    if (number_compare(memory, c, number_add(memory, c, number_double(memory, 1e-300))) < 0)
        c = number_copy(memory, c);
    return number_add(memory, c, number_parse(memory, "1/100000000000000000000000000003", 32));
}

static void numbers_survive_every_failed_allocation(void **state)
{
    arena right = {0};
    const fpa_number expected = compute_numbers(&right);
    assert_int_equal(number_status(expected), FPA_OK);
    assert_non_null(expected.wide);
    for (int lasting = 0; lasting < 2; lasting++)
        for (long at = 1, failed = 1; failed; at += every()) {
            arena memory = {0};
            arm(FAULT_MEMORY, at, lasting);
            const fpa_number number = compute_numbers(&memory);
            disarm();
            failed = fault.calls >= at;
            assert_int_equal(memory.failed, failed);
            /* the comparison has no number to give the failure on to */
            assert_true(number_status(number) == FPA_NO_MEMORY || number_equal(number, expected));
            assert_true(!failed || at > 20 || number_status(number) == FPA_NO_MEMORY);
            assert_true(failed || at > 100);
            arena_free(&memory);
        }
    arena_free(&right);
}

/* From a spec to its canonical text and back, and simplified: with weights beyond 64 bits. */
static fpa_status carry_numbers(fpa_error *error)
{
    static const char spec[] = "local g = ratio(1, 10) ^ 20\n"
                               "return head { name = 'n', d = 4, terms = {\n"
                               "  spow { d = 4, degree = 2, weight = g }, linear { weight = 1e-9 },\n"
                               "  term { diagonal { 0.1, 0.2, sqrt(0.3), g * sqrt2 }, weight = 0.7 * g } } }";
    fpa_head_list list = {.count = 0};
    fpa_head *again = NULL;
    fpa_simplified simple = {0};
    fpa_status status = spec_load_text("n.lua", NULL, spec, strlen(spec), &list, error);
    char *text = status ? NULL : head_print(list.heads[0]);
    if (!status)
        status = text ? head_parse(text, strlen(text), &again, error) : fail_memory(error);
    if (!status)
        status = simplify(again, &simple, error);
    simplified_free(&simple);
    head_free(again);
    free(text);
    head_list_free(&list);
    return status;
}

static void heads_of_long_weights_survive_every_failed_allocation(void **state)
{
    fpa_error error = {0};
    arm(FAULT_MEMORY, 0, false);
    assert_int_equal(carry_numbers(&error), FPA_OK);
    disarm();
    for (int lasting = 0; lasting < 2; lasting++)
        for (long at = 1, total = fault.calls; at <= total; at += every()) {
            error = (fpa_error){0};
            arm(FAULT_MEMORY, at, lasting);
            fpa_status status = carry_numbers(&error);
            disarm();
            if (status && (status != FPA_NO_MEMORY || error.code != status))
                fail_msg("fault %ld: status %d, %s: %s", at, (int)status, error.where, error.message);
        }
}

static void a_forward_pass_allocates_and_writes_nothing(void **state)
{
    fixture *f = *state;
    fpa_kernel *kernel;
    fpa_error error;
    toy_call call;
    size_t size;
    toy_fill(&call);
    assert_int_equal(open_spec(f, &kernel, &error), FPA_OK);
    for (fpa_form form = FPA_FORM_AUTO; form <= FPA_FORM_RECURRENT; form++)
        for (fault_kind kind = FAULT_MEMORY; kind < FAULT_KINDS; kind++) {
            assert_int_equal(fpa_workspace_size(kernel, form, &call.operands, &size, &error), FPA_OK);
            void *workspace = aligned_alloc(64, (size + 64) / 64 * 64);
            arm(kind, 0, false);
            fpa_status status = fpa_forward(kernel, form, &call.operands, workspace, size, &error);
            disarm();
            free(workspace);
            assert_int_equal(status, FPA_OK);
            assert_int_equal(fault.calls, 0);
            assert_true(toy_is_right(&call));
        }
    fpa_close(kernel);
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make_fixture, drop_fixture)

int main(void)
{
    toy_hurry();
    const struct CMUnitTest tests[] = {
        CLAIM(opening_from_the_cache_survives_every_failed_allocation),
        CLAIM(opening_afresh_survives_every_failed_allocation),
        CLAIM(opening_survives_memory_that_stays_out),
        CLAIM(opening_survives_every_failed_write_fsync_and_rename),
        CLAIM(a_full_disk_under_the_cache_costs_a_warning_only),
        CLAIM(opening_a_bundle_survives_every_fault),
        CLAIM(opening_gradients_of_a_bundle_survives_every_fault),
        CLAIM(writing_a_bundle_survives_every_fault),
        cmocka_unit_test(numbers_survive_every_failed_allocation),
        cmocka_unit_test(heads_of_long_weights_survive_every_failed_allocation),
        CLAIM(a_forward_pass_allocates_and_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
