/* Every allocation fails in turn that fpac, Lua and the C library make on fpac's behalf while it explains, writes,
 * opens, verifies and applies a head: the result is NO_MEMORY, or the bytes that come without a fault.
 *
 * malloc and its kin are this program's own, so that the calls inside libc count too (test_faults wraps what is
 * linked into it only). Those of libgomp, NVRTC, drivers and compiled heads are left alone. make test takes a part
 * of the calls from each place of the code, make test-all each one but for Lua's allocator, whose calls are too many. Sanitizers bring their own malloc: nothing is tried under them. */
#include "command/command.h"
#include "c_hurry.h"
#include "claims.h"
#include "dear.h"
#include "runtime/store/manifest.h"
#include "scratch.h"
#include "toy.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failing_malloc.h"

#ifdef MALLOC_IS_FOREIGN

static void every_allocation_fails_in_turn(void **state)
{
    print_message("skipped: a sanitizer, or a C library other than glibc, keeps its own malloc\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_fails_in_turn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

/* ---- what is tried ---- */

typedef struct fixture {
    char folder[64], temporary[96], cache[96], bundle[96], out[96], compiler[96], spec[96];
    char result[128]; /* the file that run writes */
    char input[3][128];
    int stream[2]; /* what stands for standard output and error */
    fpa_options options;
} fixture;

/* It needs most of what the generator can do: exact weights beyond 64 bits, a dense branch, a normaliser. */
static const char spec[] =
    "return head { name = 'mixed', d = 4, dv = 4, chunk = 4, scale = 0.3, normalize = 'sum',\n"
    "  terms = { linear { weight = 1 / 3 }, spow { d = 4, degree = 2 },\n"
    "    term { dense {{ 0.1, 0.2, 0.5, 1.5 }}, weight = 2.5 } } }\n";

/* [1, 3, 1, 4] float32, as NumPy writes it. */
static void write_array(const char *path, int first)
{
    char bytes[128 + 12 * sizeof(float)] = "\x93NUMPY\x01\x00\x76";
    float numbers[12];
    memset(bytes + 10, ' ', 118);
    memcpy(bytes + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 1, 4), }", 65);
    bytes[127] = '\n';
    for (int i = 0; i < 12; i++)
        numbers[i] = (float)((first + i * 5) % 8) / 8;
    memcpy(bytes + 128, numbers, sizeof numbers);
    scratch_write(path, bytes, sizeof bytes);
}

static int make_fixture(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    scratch_make(f->folder);
    snprintf(f->temporary, sizeof f->temporary, "%s/tmp", f->folder);
    snprintf(f->cache, sizeof f->cache, "%s/cache", f->folder);
    snprintf(f->bundle, sizeof f->bundle, "%s/bundle", f->folder);
    snprintf(f->out, sizeof f->out, "%s/out", f->folder);
    snprintf(f->result, sizeof f->result, "%s/o.npy", f->out);
    snprintf(f->compiler, sizeof f->compiler, "%s/cc", f->folder);
    snprintf(f->spec, sizeof f->spec, "%s/mixed.lua", f->folder);
    toy_compiler(f->compiler);
    scratch_write(f->spec, spec, strlen(spec));
    for (int i = 0; i < 3; i++) {
        snprintf(f->input[i], sizeof f->input[i], "%s/%d.npy", f->folder, i);
        write_array(f->input[i], i);
    }
    for (int i = 0; i < 2; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/stream%d", f->folder, i);
        f->stream[i] = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
    setenv("TMPDIR", f->temporary, 1);
    setenv("FPA_CACHE_DIR", f->cache, 1);
    setenv("FPA_CC", f->compiler, 1);
    f->options = (fpa_options){.cache_dir = f->cache, .compiler = f->compiler};
    *state = f;
    return mkdir(f->temporary, 0700) || mkdir(f->out, 0700);
}

static int drop_fixture(void **state)
{
    fixture *f = *state;
    close(f->stream[0]);
    close(f->stream[1]);
    scratch_remove(f->folder);
    free(f);
    return 0;
}

/* A stream's text, cut; the file is empty afterwards. */
static void take_stream(int fd, char *text, size_t size)
{
    const ssize_t got = pread(fd, text, size - 1, 0);
    text[got > 0 ? got : 0] = 0;
    assert_int_equal(ftruncate(fd, 0), 0);
}

/* What one try gave. */
typedef struct outcome {
    fpa_status status;
    long calls;      /* to malloc that count */
    int descriptors; /* that it left open */
    fpa_error error;
    char result[DIGEST_TEXT]; /* of what it printed and wrote */
    char text[1 << 16];       /* what it printed */
    char words[1024];         /* its messages */
} outcome;

typedef void operation(fixture *f, outcome *all);

/* A subcommand with its streams in files, as its process would be. */
static void run_command(fixture *f, int (*command)(int, char **), int count, const char **arguments,
                        outcome *all)
{
    int before[2];
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        before[i] = dup(i + 1);
        dup2(f->stream[i], i + 1);
    }
    fault.armed = true;
    const int code = command(count, (char **)(uintptr_t)arguments);
    fault.armed = false;
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        dup2(before[i], i + 1);
        close(before[i]);
    }
    take_stream(f->stream[0], all->text, sizeof all->text);
    take_stream(f->stream[1], all->words, sizeof all->words);
    all->status = code == EXIT_OK                                        ? FPA_OK
                  : code == EXIT_FAILED && strstr(all->words, " memory") ? FPA_NO_MEMORY
                                                                         : FPA_REFUSED;
}

#define COMMAND(f, all, command, ...)                                                                        \
    run_command(f, command, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *),                          \
                (const char *[]){__VA_ARGS__, NULL}, all)

static void explain(fixture *f, outcome *all)
{
    COMMAND(f, all, command_explain, "explain", f->spec);
}

static void explain_source(fixture *f, outcome *all)
{
    COMMAND(f, all, command_explain, "explain", f->spec, "--dump=source", "--target", "c:avx2");
}

static void explain_cuda(fixture *f, outcome *all)
{
    COMMAND(f, all, command_explain, "explain", f->spec, "--dump=source", "--target", "cuda:sm_80");
}

static void explain_plan(fixture *f, outcome *all)
{
    COMMAND(f, all, command_explain, "explain", f->spec, "--dump=plan", "--target", "cuda:sm_90");
}

static void generate(fixture *f, outcome *all)
{
    COMMAND(f, all, command_gen, "gen", f->spec, "-o", f->out, "--object");
}

static void verify(fixture *f, outcome *all)
{
    COMMAND(f, all, command_verify, "verify", f->spec);
}

static void apply(fixture *f, outcome *all)
{
    COMMAND(f, all, command_run, "run", f->spec, "--q", f->input[0], "--k", f->input[1], "--v", f->input[2],
            "-o", f->result);
}

/* A kernel that was opened computes: what it gives is the result. */
static void use(fpa_kernel *kernel, outcome *all)
{
    toy_call call;
    fpa_error error;
    if (all->status)
        return;
    toy_fill(&call);
    assert_ok(toy_forward(kernel, FPA_FORM_CHUNKED, &call.operands, &error), &error);
    manifest_digest(call.o, sizeof call.o, all->result);
    fpa_close(kernel);
}

static void open_spec(fixture *f, outcome *all)
{
    fpa_kernel *kernel = NULL;
    fault.armed = true;
    all->status = fpa_open(f->spec, NULL, &f->options, &kernel, &all->error);
    fault.armed = false;
    use(kernel, all);
}

static void open_afresh(fixture *f, outcome *all)
{
    scratch_remove(f->cache);
    open_spec(f, all);
}

static void open_text(fixture *f, outcome *all)
{
    fpa_kernel *kernel = NULL;
    fault.armed = true;
    all->status = fpa_open_text("mixed.lua", spec, NULL, &f->options, &kernel, &all->error);
    fault.armed = false;
    use(kernel, all);
}

static void open_bundle(fixture *f, outcome *all)
{
    fpa_kernel *kernel = NULL;
    fault.armed = true;
    all->status = fpa_open_bundle(f->bundle, NULL, &f->options, &kernel, &all->error);
    fault.armed = false;
    use(kernel, all);
}

static void open_bundle_afresh(fixture *f, outcome *all)
{
    scratch_remove(f->cache);
    open_bundle(f, all);
}

/* ---- trying ---- */

/* Files that lie in the folder of results, names and bytes, behind what was printed: as one digest. */
static void digest_results(const fixture *f, outcome *all)
{
    struct dirent **items;
    char digests[16 * (DIGEST_TEXT + 64)] = "";
    if (all->result[0])
        return;
    const int count = scandir(f->out, &items, NULL, alphasort);
    manifest_digest(all->text, strlen(all->text), digests);
    for (int i = 0; i < count; i++) {
        fpa_file file;
        char path[512];
        const size_t used = strlen(digests);
        snprintf(path, sizeof path, "%s/%s", f->out, items[i]->d_name);
        if (file_read(path, &file, NULL) == FPA_OK) {
            snprintf(digests + used, 64, " %.60s ", items[i]->d_name);
            manifest_digest(file.bytes, file.size, digests + strlen(digests));
            free(file.bytes);
        }
        free(items[i]);
    }
    free(items);
    manifest_digest(digests, strlen(digests), all->result);
}

static void empty_folder(const char *folder)
{
    scratch_remove(folder);
    assert_int_equal(mkdir(folder, 0700), 0);
}

static void run_once(fixture *f, operation *run, long at, bool lasting, outcome *all)
{
    const int descriptors = scratch_count("/proc/self/fd", NULL);
    fault.at = at;
    fault.lasting = lasting;
    fault.calls = 0;
    run(f, all);
    all->calls = fault.calls;
    all->descriptors = scratch_count("/proc/self/fd", NULL) - descriptors;
    if (all->status == FPA_OK)
        digest_results(f, all);
}

/* In a child: a dlopen of glibc that runs out of memory may leave marks on libgomp, and no later one finds it; a
 * dlclose may keep the loader's lock, and other threads wait for ever. */
enum { CHILD_SECONDS = 300 }; /* a hang lasts for ever; a compiler on a busy machine does not */

static void run_in_child(fixture *f, operation *run, long at, bool lasting, outcome *all)
{
    int status;
    outcome *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        fault.spares_loader = false;
        run_once(f, run, at, lasting, shared);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    *all = *shared;
    munmap(shared, sizeof *shared);
    if (status)
        fail_msg("allocation %ld: the program ended with %d", at, status);
}

/* One operation whose at-th allocation fails. Numbers of calls change a little from run to run: the loader's fail in a
 * child only, whichever they are. */
static void try_once(fixture *f, operation *run, long at, bool lasting, bool apart, outcome *all)
{
    *all = (outcome){0};
    empty_folder(f->out);
    fault.spares_loader = true;
    (apart ? run_in_child : run_once)(f, run, at, lasting, all);
    if (all->descriptors)
        fail_msg("allocation %ld: %d descriptors are left open", at, all->descriptors);
    if (scratch_count(f->temporary, NULL) != 0)
        fail_msg("allocation %ld: a temporary folder is left", at);
}

/* How much of an operation is tried. In make test of each place that calls malloc its first call and, unless an operation before
 * had it, its last and so many between; in make test-all all but of Lua's allocator, of which every so-maniest. */
typedef struct effort {
    int between;
    long lua_step;
} effort;

/* Which calls are to fail, by what called malloc in a run without faults. */
typedef struct choice {
    long total;
    bool chosen[MOST_CALLS];
    bool loader[MOST_CALLS]; /* the dynamic loader's call */
} choice;

/* A place with so many calls is Lua's. */
enum { MANY = 2000 };

static void choose_of_site(choice *these, const void **sites, long first, const effort *how)
{
    const void *const site = sites[first];
    const uintptr_t address = (uintptr_t)site, low = fault.range[fault.loader].low;
    const bool loader = address >= low && address < fault.range[fault.loader].high;
    long all = 0, before = 0;
    for (long i = first; i < these->total; i++)
        all += sites[i] == site;
    const bool known = !dear_tests() && site_is_known(site);
    const long step = !dear_tests() ? all / (how->between + 1) + 1 : all > MANY ? how->lua_step : 1;
    for (long i = first; i < these->total; i++)
        if (sites[i] == site) {
            these->chosen[i] = known ? before == 0 : before % step == 0 || before == all - 1;
            these->loader[i] = loader;
            before++;
            sites[i] = NULL;
        }
}

static void choose(choice *these, long total, const effort *how)
{
    static const void *sites[MOST_CALLS];
    assert_true(total <= MOST_CALLS);
    memcpy(sites, fault.site, (size_t)total * sizeof *sites);
    these->total = total;
    for (long i = 0; i < total; i++)
        if (sites[i])
            choose_of_site(these, sites, i, how);
}

/* The chosen calls fail, each in a run of its own: alone, or every fifth of them with all later ones. */
static void try_chosen(fixture *f, const char *name, operation *run, const char *right, const choice *these,
                       bool lasting)
{
    long clean = 0, tried = 0, seen = 0;
    static outcome all;
    for (long at = 1; at <= these->total; at++) {
        if (!these->chosen[at - 1] || (lasting && seen++ % 5 != 0))
            continue;
        tried++;
        try_once(f, run, at, lasting, lasting || these->loader[at - 1], &all);
        if (all.status == FPA_NO_MEMORY)
            clean++;
        else if (all.status)
            fail_msg("%s, allocation %ld%s: status %d, %s: %s %s", name, at, lasting ? " and all later" : "",
                     (int)all.status, all.error.where, all.error.message, all.words);
        else if (strcmp(all.result, right) != 0)
            fail_msg("%s, allocation %ld%s: another result without an error", name, at,
                     lasting ? " and all later" : "");
    }
    assert_true(clean > 0);
    print_message("%-14s %6ld of %6ld failed%s: %ld times no memory\n", name, tried, these->total,
                  lasting ? " with all later ones" : "", clean);
}

static void try_all(fixture *f, const char *name, operation *run, effort how)
{
    static outcome right, all;
    static choice these;
    try_once(f, run, 0, false, false, &all); /* libgomp and stdio get what they keep */
    try_once(f, run, 0, false, false, &right);
    choose(&these, right.calls, &how);
    assert_int_equal(right.status, FPA_OK);
    try_once(f, run, 0, false, false, &all);
    assert_string_equal(all.result, right.result);
    const long before = fault.blocks;
    try_chosen(f, name, run, right.result, &these, false);
    try_chosen(f, name, run, right.result, &these, true);
    try_once(f, run, 0, false, false, &all);
    assert_string_equal(all.result, right.result);
    if (fault.blocks - before > 64)
        fail_msg("%s: %ld blocks are left", name, fault.blocks - before);
}

static void explaining_gives_its_text_or_no_memory(void **state)
{
    try_all(*state, "explain", explain, (effort){6, 1});
    try_all(*state, "explain plan", explain_plan, (effort){0, 1});
    try_all(*state, "explain source", explain_source, (effort){8, 5});
    try_all(*state, "explain cuda", explain_cuda, (effort){0, 200});
}

static void writing_gives_its_files_or_no_memory(void **state)
{
    try_all(*state, "gen", generate, (effort){0, 100});
}

static void verifying_and_applying_give_their_results_or_no_memory(void **state)
{
    try_all(*state, "verify", verify, (effort){0, 100});
    try_all(*state, "run", apply, (effort){2, 1});
}

static void opening_gives_the_kernel_or_no_memory(void **state)
{
    try_all(*state, "open afresh", open_afresh, (effort){0, 20});
    try_all(*state, "open", open_spec, (effort){4, 1});
    try_all(*state, "open text", open_text, (effort){0, 1});
}

static void opening_a_bundle_gives_the_kernel_or_no_memory(void **state)
{
    fixture *f = *state;
    static outcome all;
    setenv("FPA_CC", "cc", 1); /* of two sources: with gradients */
    COMMAND(f, &all, command_gen, "gen", f->spec, "-o", f->bundle, "--object", "--backward");
    f->options.backward = 1;
    assert_int_equal(all.status, FPA_OK);
    try_all(f, "bundle afresh", open_bundle_afresh, (effort){0, 1});
    try_all(f, "bundle", open_bundle, (effort){10, 1});
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make_fixture, drop_fixture)

int main(void)
{
    c_hurry_a_little(); /* by gcc (cc_once.sh): where clang's OpenMP has no memory the loader ends the program */
    setenv("OMP_NUM_THREADS", "1", 1); /* a thread that libgomp cannot have ends the program */
    dl_iterate_phdr(note_range, NULL);
    const struct CMUnitTest tests[] = {
        CLAIM(explaining_gives_its_text_or_no_memory),
        CLAIM(writing_gives_its_files_or_no_memory),
        CLAIM(verifying_and_applying_give_their_results_or_no_memory),
        CLAIM(opening_gives_the_kernel_or_no_memory),
        CLAIM(opening_a_bundle_gives_the_kernel_or_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
