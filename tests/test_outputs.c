/* Where fpac writes: links, devices, FIFOs and modes are left as they are, and no file is lost to another. */
#include "c_hurry.h"
#include "claims.h"
#include "command_place.h"
#include "read_array.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

typedef struct fixture {
    place here;
    char q[PATH], k[PATH], v[PATH], o[PATH], other[PATH];
} fixture;

static const char *fpac_path(void)
{
    const char *named = getenv("FPAC");
    return named ? named : "build/fpac";
}

static float one(int64_t i, int seed)
{
    return 1;
}

static void write_ones(const char *path)
{
    write_numbers(path, 4, (int64_t[]){1, 2, 1, 4}, one, 0);
}

static int begin(void **state)
{
    fixture *f = *state = calloc(1, sizeof *f);
    place_begin(&f->here, tiny_spec);
    place_file(&f->here, "q.npy", f->q);
    place_file(&f->here, "k.npy", f->k);
    place_file(&f->here, "v.npy", f->v);
    place_file(&f->here, "o.npy", f->o);
    place_file(&f->here, "other.npy", f->other);
    write_ones(f->q);
    write_ones(f->k);
    write_ones(f->v);
    return 0;
}

static int end(void **state)
{
    fixture *f = *state;
    scratch_remove(f->here.folder);
    free(f);
    return 0;
}

#define APPLY(f, out, ...)                                                                                   \
    RUN("fpac", "run", (f)->here.spec, "--q", (f)->q, "--k", (f)->k, "--v", (f)->v, "-o",                    \
        out __VA_OPT__(, ) __VA_ARGS__)

static mode_t mode_of(const char *path)
{
    struct stat facts;
    assert_int_equal(lstat(path, &facts), 0);
    return facts.st_mode;
}

static void links_are_followed(void **state)
{
    fixture *f = *state;
    char deep[PATH], missing[PATH];
    place_file(&f->here, "link.npy", deep);
    place_file(&f->here, "missing.npy", missing);
    scratch_write(f->other, "old", 3);
    assert_int_equal(symlink("other.npy", deep), 0); /* relative to its folder */
    assert_int_equal(symlink(f->o, missing), 0);     /* to nothing yet */
    expect(APPLY(f, deep), 0, NULL, NULL);
    expect(APPLY(f, missing), 0, NULL, NULL);
    assert_true(S_ISLNK(mode_of(deep)));
    assert_true(S_ISLNK(mode_of(missing)));
    fpa_array through = read_array(f->other), made = read_array(f->o);
    assert_int_equal(through.count, 8);
    assert_int_equal(made.count, 8);
    npy_free(&through);
    npy_free(&made);
    assert_int_equal(unlink(f->o), 0);
    assert_int_equal(symlink("o.npy", f->o), 0); /* a circle */
    expect(APPLY(f, f->o), 1, NULL, "symbolic links");
    assert_true(S_ISLNK(mode_of(f->o)));
}

/* A device of our own, lest a mistake removes the machine's; who may not make one cannot remove that either. */
static void make_device(const fixture *f, const char *name, int minor, char path[PATH])
{
    place_file(&f->here, name, path);
    if (mknod(path, S_IFCHR | 0666, makedev(1, (unsigned)minor)) != 0)
        snprintf(path, PATH, "/dev/%s", name);
}

static void a_device_stays_a_device(void **state)
{
    fixture *f = *state;
    char null[PATH], full[PATH];
    make_device(f, "null", 3, null);
    make_device(f, "full", 7, full);
    expect(APPLY(f, null), 0, NULL, NULL);
    assert_true(S_ISCHR(mode_of(null)));
    expect(APPLY(f, null, "--state-out", null), 0, NULL, NULL);
    assert_true(S_ISCHR(mode_of(null)));
    expect(APPLY(f, full), 1, NULL, "/full: cannot be written: No space left on device");
}

static void a_fifo_gets_the_bytes(void **state)
{
    fixture *f = *state;
    char fifo[PATH], got[PATH], command[4 * PATH];
    place_file(&f->here, "fifo", fifo);
    place_file(&f->here, "got.npy", got);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    snprintf(command, sizeof command, "timeout 60 cat %s > %s & \"$@\"; wait", fifo, got);
    expect(RUN("/bin/sh", "-c", command, "sh", fpac_path(), "run", f->here.spec, "--q", f->q, "--k", f->k,
               "--v", f->v, "-o", fifo),
           0, NULL, NULL);
    assert_true(S_ISFIFO(mode_of(fifo)));
    fpa_array through = read_array(got);
    assert_int_equal(through.count, 8);
    npy_free(&through);
}

static void standard_output_is_what_the_shell_made_it(void **state)
{
    fixture *f = *state;
    char line[2 * PATH];
    scratch_write(f->other, "first ", 6);
    snprintf(line, sizeof line, "exec \"$@\" >> %s", f->other);
    expect(RUN("/bin/sh", "-c", line, "sh", fpac_path(), "run", f->here.spec, "--q", f->q, "--k", f->k, "--v",
               f->v, "-o", "/proc/self/fd/1"),
           0, NULL, NULL);
    size_t size = 0;
    char *text = text_read(f->other, &size);
    assert_true(size > 64);
    assert_memory_equal(text, "first \x93NUMPY", 12);
    free(text);
}

static void modes_are_kept_and_new_files_follow_the_umask(void **state)
{
    fixture *f = *state;
    mode_t before = umask(027);
    scratch_write(f->other, "old", 3);
    assert_int_equal(chmod(f->other, 0600), 0);
    expect(APPLY(f, f->other), 0, NULL, NULL);
    expect(APPLY(f, f->o), 0, NULL, NULL);
    umask(before);
    assert_int_equal(mode_of(f->other) & 0777, 0600);
    assert_int_equal(mode_of(f->o) & 0777, 0640);
    assert_int_equal(chmod(f->o, 0666), 0);
    expect(APPLY(f, f->o), 0, NULL, NULL);
    assert_int_equal(mode_of(f->o) & 0777, 0666);
}

static void equal_paths_are_refused(void **state)
{
    fixture *f = *state;
    char spelled[PATH + 8], link[PATH];
    snprintf(spelled, sizeof spelled, "%s/./q.npy", f->here.folder);
    place_file(&f->here, "link.npy", link);
    assert_int_equal(symlink(f->k, link), 0);
    const char *const lost[] = {f->q, f->k, f->v, spelled, link, f->here.spec};
    for (unsigned i = 0; i < sizeof lost / sizeof *lost; i++) {
        expect(APPLY(f, lost[i]), 1, NULL, "-o would overwrite it");
        expect(APPLY(f, f->o, "--state-out", lost[i]), 1, NULL, "--state-out would overwrite it");
    }
    snprintf(spelled, sizeof spelled, "%s/./o.npy", f->here.folder);
    expect(APPLY(f, f->o, "--state-out", f->o), 1, NULL, "one would overwrite the other");
    expect(APPLY(f, f->o, "--state-out", spelled), 1, NULL, "one would overwrite the other");
    assert_int_not_equal(access(f->o, F_OK), 0);
    fpa_array q = read_array(f->q);
    assert_int_equal(q.count, 8);
    npy_free(&q);
}

/* Step by step decoding: the state that came in is replaced by the one that goes out. */
static void a_state_may_be_replaced(void **state)
{
    fixture *f = *state;
    expect(APPLY(f, f->o, "--state-out", f->other), 0, NULL, NULL);
    expect(APPLY(f, f->o, "--state-in", f->other, "--state-out", f->other), 0, NULL, NULL);
}

static void a_folder_is_refused(void **state)
{
    fixture *f = *state;
    expect(APPLY(f, f->here.folder), 1, NULL, "it is a folder");
    assert_true(S_ISDIR(mode_of(f->here.folder)));
}

static void a_closed_standard_output_is_told(void **state)
{
    fixture *f = *state;
    const char *fpac = fpac_path();
    static const char *const commands[] = {"bench", "explain", "list", "verify"};
    for (unsigned i = 0; i < sizeof commands / sizeof *commands; i++)
        expect(RUN("/bin/sh", "-c", "exec \"$@\" >&-", "sh", fpac, commands[i], f->here.spec), 1, NULL,
               "standard output: ");
    expect(RUN("/bin/sh", "-c", "exec \"$@\" >&- 2>&- <&-", "sh", fpac, "bench", f->here.spec), 1, NULL,
           NULL);
}

/* ---- gen ---- */

static char *manifest_of(const fixture *f)
{
    char path[PATH];
    place_file(&f->here, "out/manifest.fpa", path);
    char *text = text_read(path, NULL);
    assert_non_null(text);
    return text;
}

static void expect_listed(const fixture *f, const char *const *entries, int count)
{
    char line[32], *text = manifest_of(f);
    snprintf(line, sizeof line, "\nentries %d\n", count);
    assert_non_null(strstr(text, line));
    for (int i = 0; i < count; i++)
        assert_non_null(strstr(text, entries[i]));
    free(text);
}

static void gen_keeps_the_other_heads_of_a_folder(void **state)
{
    fixture *f = *state;
    static const char *const all[] = {"entry one c:sse2\n", "entry two c:sse2\n", "entry two c:avx2\n"};
    char out[PATH], two[PATH];
    place_file(&f->here, "out", out);
    place_file(&f->here, "two.lua", two);
    text_write(two, two_heads_spec);
    expect(RUN("fpac", "gen", two, "-o", out, "--head", "one", "--target", "c:sse2"), 0, NULL, NULL);
    expect(RUN("fpac", "gen", two, "-o", out, "--head", "two", "--target", "c:sse2,c:avx2"), 0, NULL, NULL);
    expect_listed(f, all, 3);
    char *first = manifest_of(f);
    expect(RUN("fpac", "gen", two, "-o", out, "--head", "two", "--target", "c:sse2,c:avx2"), 0, NULL, NULL);
    char *again = manifest_of(f);
    assert_string_equal(first, again);
    free(first);
    free(again);
    expect(RUN("fpac", "gen", two, "-o", out, "--head", "two", "--target", "c:avx2", "--dtype", "bf16"), 0,
           NULL, NULL);
    expect_listed(f, (const char *const[]){all[0], all[2]}, 2); /* two.head is another: c:sse2's is gone */
    char manifest[PATH];
    place_file(&f->here, "out/manifest.fpa", manifest);
    text_write(manifest, "fpac-bundle 2\n");
    expect(RUN("fpac", "gen", two, "-o", out, "--head", "one", "--target", "c:sse2"), 0, NULL,
           "are not kept: expected 'fpac-bundle");
    expect_listed(f, all, 1);
}

static const char small_and_large[] =
    "return head { name = 'small', d = 4, dv = 4, terms = linear {} },\n"
    "       head { name = 'large', d = 64, dv = 4, terms = power { degree = 2 } }\n";

/* What the folder has, and lists: small's files, or those of a refused large are there too. */
static void expect_only_small(const fixture *f)
{
    char out[PATH];
    place_file(&f->here, "out", out);
    expect_listed(f, (const char *const[]){"entry small c:sse2\n"}, 1);
    assert_int_equal(scratch_count(out, ".c"), 1);
    assert_int_equal(scratch_count(out, ".head"), 1);
    expect(RUN("fpac", "list", out), 0, "small", NULL);
}

/* Of a disk that is full, by a limit between the two: no source without a line of the manifest, and what was there before
 * stays. */
static void what_gen_cannot_finish_it_removes(void **state)
{
    fixture *f = *state;
    char out[PATH];
    place_file(&f->here, "out", out);
    text_write(f->here.spec, small_and_large);
#define GEN_LIMITED(shell)                                                                                   \
    RUN("/bin/bash", "-c", shell "; \"$@\"", "bash", fpac_path(), "gen", f->here.spec, "-o", out,            \
        "--target", "c:sse2")
    expect(GEN_LIMITED("ulimit -f 100"), 1, NULL, "/large.c: cannot be written: File too large");
    expect_only_small(f);
    expect(GEN_LIMITED("true"), 0, NULL, NULL);
    expect(GEN_LIMITED("ulimit -f 100"), 1, NULL, "/large.c: cannot be written: File too large");
    expect_listed(f, (const char *const[]){"entry small c:sse2\n", "entry large c:sse2\n"}, 2);
}

/* The compiler of the second head ends its caller, as Ctrl-C does. */
static void what_gen_finished_is_a_bundle_when_it_is_ended(void **state)
{
    fixture *f = *state;
    char out[PATH], compiler[PATH];
    place_file(&f->here, "out", out);
    place_file(&f->here, "cc", compiler);
    text_write(f->here.spec, small_and_large);
    text_write(compiler, "#!/bin/sh\ncase \"$*\" in *--version*) exec cc \"$@\";; esac\n"
                         "[ -e \"${0}ed\" ] && kill -INT $PPID && sleep 9\n: >\"${0}ed\"\nexec cc \"$@\"\n");
    assert_int_equal(chmod(compiler, 0755), 0);
    setenv("FPA_CC", compiler, 1);
    expect(RUN("fpac", "gen", f->here.spec, "-o", out, "--target", "c:sse2", "--object"), 128 + SIGINT, NULL,
           NULL);
    unsetenv("FPA_CC");
    expect_only_small(f);
}

/* The compiler of the first waits until the second has written its head. */
static void two_that_write_into_a_folder_list_each_others_heads(void **state)
{
    fixture *f = *state;
    static const char *const both[] = {"entry one c:sse2\n", "entry two c:sse2\n"};
    char out[PATH], compiler[PATH], line[9 * PATH];
    place_file(&f->here, "out", out);
    place_file(&f->here, "cc", compiler);
    text_write(f->here.spec, two_heads_spec);
    text_write(compiler,
               "#!/bin/sh\ncase \"$*\" in *--version*) exec cc \"$@\";; esac\n"
               ": >\"$0.began\"\nfor i in $(seq 1000); do [ -e \"$0.go\" ] && exec cc \"$@\"; sleep 0.01; "
               "done\n");
    assert_int_equal(chmod(compiler, 0755), 0);
    snprintf(line, sizeof line,
             "FPA_CC=%s '%s' gen %s --head one -o %s --target c:sse2 --object & "
             "for i in $(seq 1000); do [ -e %s.began ] && break; sleep 0.01; done; "
             "'%s' gen %s --head two -o %s --target c:sse2; : >%s.go; wait $!",
             compiler, fpac_path(), f->here.spec, out, compiler, fpac_path(), f->here.spec, out, compiler);
    expect(RUN("/bin/sh", "-c", line), 0, NULL, NULL);
    expect_listed(f, both, 2);
}

/* ---- temporaries ---- */

static void what_a_killed_writer_left_is_swept_a_day_later(void **state)
{
    fixture *f = *state;
    static const char *const names[] = {".fpac-0123456789abcdef", ".fpac-fedcba9876543210",
                                        ".fpac-0123456789abcdeg", ".fpac-notes"};
    char paths[4][PATH], inside[PATH];
    for (int i = 0; i < 4; i++)
        place_file(&f->here, names[i], paths[i]);
    const char *const old[] = {paths[0], paths[2], paths[3]};
    for (int i = 0; i < 3; i++)
        scratch_write(old[i], "half", 4);
    assert_int_equal(mkdir(paths[1], 0700), 0);
    place_file(&f->here, ".fpac-fedcba9876543210/head.c", inside);
    scratch_write(inside, "x", 1);
    expect(APPLY(f, f->o), 0, NULL, NULL); /* they may be somebody's at work */
    for (int i = 0; i < 4; i++)
        assert_int_equal(access(paths[i], F_OK), 0);
    for (int i = 0; i < 4; i++)
        expect(RUN("/usr/bin/env", "touch", "-d", "2 days ago", paths[i]), 0, NULL, NULL);
    expect(APPLY(f, f->o), 0, NULL, NULL);
    assert_int_not_equal(access(paths[0], F_OK), 0);
    assert_int_not_equal(access(paths[1], F_OK), 0);
    assert_int_equal(access(paths[2], F_OK), 0); /* no name of ours */
    assert_int_equal(access(paths[3], F_OK), 0);
}

/* `ulimit -f` counts blocks of 512 or 1024 bytes; tiny.c is longer than eight of either. */
static void beyond_the_limit_of_a_file_nothing_is_left(void **state)
{
    fixture *f = *state;
    char folder[PATH];
    place_file(&f->here, "written", folder);
    expect(RUN("/bin/sh", "-c", "ulimit -f 8; \"$@\"", "sh", fpac_path(), "gen", f->here.spec, "-o", folder),
           1, NULL, "/tiny.c: cannot be written: File too large");
    assert_int_equal(scratch_count(folder, NULL), -1);
    place_file(&f->here, "empty", folder);
    expect(RUN("/bin/sh", "-c", "ulimit -f 0; \"$@\"", "sh", fpac_path(), "gen", f->here.spec, "-o", folder),
           1, NULL, NULL); /* standard error is a file here, too */
    assert_int_equal(scratch_count(folder, NULL), -1);
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    c_hurry();
    const struct CMUnitTest tests[] = {
        CLAIM(links_are_followed),
        CLAIM(a_device_stays_a_device),
        CLAIM(a_fifo_gets_the_bytes),
        CLAIM(standard_output_is_what_the_shell_made_it),
        CLAIM(modes_are_kept_and_new_files_follow_the_umask),
        CLAIM(equal_paths_are_refused),
        CLAIM(a_state_may_be_replaced),
        CLAIM(beyond_the_limit_of_a_file_nothing_is_left),
        CLAIM(a_folder_is_refused),
        CLAIM(a_closed_standard_output_is_told),
        CLAIM(gen_keeps_the_other_heads_of_a_folder),
        CLAIM(what_gen_cannot_finish_it_removes),
        CLAIM(two_that_write_into_a_folder_list_each_others_heads),
        CLAIM(what_gen_finished_is_a_bundle_when_it_is_ended),
        CLAIM(what_a_killed_writer_left_is_swept_a_day_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
