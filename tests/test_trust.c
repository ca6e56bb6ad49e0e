/* What decides the code that is loaded: variables, folders, the verifier; and what the installer leaves behind. */
#include "c_hurry.h"
#include "claims.h"
#include "command_place.h"
#include "runtime/cuda/nvrtc_library.h"
#include "runtime/verify/verify.h"

#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- variables ---- */

/* Names in capital letters that stand in quotes, as "PATH", "$CUDA_HOME/lib64" or "FPA_CC_": the variables of a file that
 * reads any. The next one from at on; NULL: there is none. */
static const char *next_variable(const char *at, size_t *length)
{
    while ((at = strchr(at, '"'))) {
        at += 1 + (at[1] == '$');
        *length = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
        if (*length >= 4 && (at[*length] == '"' || at[*length] == '/'))
            return at;
    }
    return NULL;
}

/* What is no variable that decides which code is loaded. */
static bool is_other(const char *name)
{
    static const char *const others[] = {
        "LC_ALL", "OMP_NUM_THREADS", "FALSE", "NAME",   "FORM", "FILE", "TYPE",
        "TEXT",   "TARGET",          "DTYPE", "NUMBER", "SIZE"};
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    return false;
}

static void every_variable_that_decides_what_is_loaded_is_told(void **state)
{
    static const char *const patterns[] = {"base/*.c",    "gen/*.c",     "gen/*/*.c",     "head/*.c",
                                           "machine/*.c", "runtime/*.c", "runtime/*/*.c", "command/*.c"};
    char *security = text_read("SECURITY.md", NULL), name[64], quoted[68];
    int seen = 0, missing = 0;
    assert_non_null(security);
    for (unsigned p = 0; p < sizeof patterns / sizeof *patterns; p++) {
        glob_t files;
        if (glob(patterns[p], 0, NULL, &files) != 0)
            continue;
        for (size_t f = 0; f < files.gl_pathc; f++) {
            size_t length;
            char *text = text_read(files.gl_pathv[f], NULL);
            const char *at = strstr(text, "getenv(") ? text : "";
            while ((at = next_variable(at, &length))) {
                snprintf(name, sizeof name, "%.*s", (int)length, at);
                snprintf(quoted, sizeof quoted, name[length - 1] == '_' ? "`%s" : "`%s`", name);
                at += length;
                if (is_other(name))
                    continue;
                seen++;
                if (!strstr(security, quoted)) {
                    print_error("%s: %s is not in SECURITY.md\n", files.gl_pathv[f], name);
                    missing++;
                }
            }
            free(text);
        }
        globfree(&files);
    }
    free(security);
    assert_true(seen >= 15);
    assert_int_equal(missing, 0);
}

/* ---- NVRTC in a cache ---- */

static void expect_untrusted(const char *library, const char *part)
{
    char reason[256] = "";
    assert_false(nvrtc_library_is_private(library, reason, sizeof reason));
    assert_non_null(strstr(reason, part));
}

static void nvrtc_in_a_cache_obeys_the_rules_of_the_cache(void **state)
{
    place here;
    char outer[PATH], inner[PATH], library[PATH], builtins[PATH], link[PATH], through[2 * PATH], reason[256];
    place_begin(&here, tiny_spec);
    place_file(&here, "fpac", outer);
    place_file(&here, "fpac/nvrtc", inner);
    place_file(&here, "fpac/nvrtc/libnvrtc.so.13", library);
    place_file(&here, "fpac/nvrtc/libnvrtc-builtins.so.13.0", builtins);
    place_file(&here, "elsewhere", link);
    assert_int_equal(mkdir(outer, 0700), 0);
    assert_int_equal(mkdir(inner, 0700), 0);
    scratch_write(library, "x", 1);
    scratch_write(builtins, "x", 1);
    const char *const parts[] = {outer, inner, library, builtins};
    for (int i = 0; i < 4; i++)
        assert_int_equal(chmod(parts[i], 0700), 0);
    assert_true(nvrtc_library_is_private(library, reason, sizeof reason));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(chmod(parts[i], 0720), 0);
        expect_untrusted(library, "can be written by others");
        assert_int_equal(chmod(parts[i], 0702), 0);
        expect_untrusted(library, "can be written by others");
        assert_int_equal(chmod(parts[i], 0700), 0);
        if (geteuid() == 0) {
            assert_int_equal(chown(parts[i], 54321, 54321), 0);
            expect_untrusted(library, "belongs to another user");
            assert_int_equal(chown(parts[i], 0, 0), 0);
        }
        assert_int_equal(rename(parts[i], link), 0);
        assert_int_equal(symlink(link, parts[i]), 0);
        expect_untrusted(library, "is a symlink");
        assert_int_equal(unlink(parts[i]), 0);
        assert_int_equal(rename(link, parts[i]), 0);
    }
    assert_true(nvrtc_library_is_private(library, reason, sizeof reason));
    assert_int_equal(symlink(inner, link), 0);
    snprintf(through, sizeof through, "%s/libnvrtc.so.13", link);
    expect_untrusted(through, "is a symlink");
    scratch_remove(here.folder);
}

/* ---- the verifier ---- */

/* A copy of the program in which one digit of the digest of the verifier's text is another. */
static void write_other_verifier(const char *path)
{
    size_t size = 0, length = strlen(verifier_digest);
    const char *named = getenv("FPAC");
    char *program = text_read(named ? named : "build/fpac", &size);
    assert_non_null(program);
    char *at = memmem(program, size, verifier_digest, length);
    assert_non_null(at);
    at[0] = at[0] == '0' ? '1' : '0';
    assert_null(memmem(program, size, verifier_digest, length));
    scratch_write(path, program, size);
    free(program);
    assert_int_equal(chmod(path, 0700), 0);
}

static void another_verifier_asks_again(void **state)
{
    place here;
    char program[PATH], cache[PATH], bundle[PATH];
    assert_int_equal(strlen(verifier_digest), 64);
    place_begin(&here, tiny_spec);
    place_file(&here, "fpac", program);
    place_file(&here, "cache", cache);
    place_file(&here, "bundle", bundle);
    write_other_verifier(program);
    const char *named = getenv("FPA_CACHE_DIR");
    char *before = named ? strdup(named) : NULL;
    setenv("FPA_CACHE_DIR", cache, 1);
    for (int i = 0; i < 2; i++)
        expect(RUN("fpac", "bench", here.spec, "--length", "8", "--repeats", "1"), 0, NULL, NULL);
    assert_int_equal(scratch_count(cache, ".fpa"), 1);
    for (int i = 0; i < 2; i++)
        expect(RUN(program, "bench", here.spec, "--length", "8", "--repeats", "1"), 0, NULL, NULL);
    assert_int_equal(scratch_count(cache, ".fpa"), 2);
    if (before)
        setenv("FPA_CACHE_DIR", before, 1);
    else
        unsetenv("FPA_CACHE_DIR");
    free(before);
    scratch_remove(here.folder);
}

/* ---- the installer ---- */

static void write_program(const place *here, const char *name, const char *text)
{
    char path[PATH];
    place_file(here, name, path);
    text_write(path, text);
    assert_int_equal(chmod(path, 0700), 0);
}

/* tools/install-deps.sh in an environment of its own; head: assignments before it. */
#define INSTALL(here, assignments)                                                                           \
    RUN("/bin/sh", "-c",                                                                                     \
        "cd \"$(pwd)\" && env -i PATH=\"$0/bin:$PATH\" HOME=\"$0\" FPA_FETCH_NVRTC=no " assignments          \
        " bash tools/install-deps.sh",                                                                       \
        (here).folder)

static void proxies_survive_sudo(void **state)
{
    place here;
    char bin[PATH], seen[PATH];
    place_begin(&here, tiny_spec);
    place_file(&here, "bin", bin);
    place_file(&here, "seen", seen);
    assert_int_equal(mkdir(bin, 0700), 0);
    write_program(&here, "bin/id", "#!/bin/sh\necho 1000\n");
    write_program(
        &here, "bin/sudo",
        "#!/bin/bash\n[ \"$1\" = -n ] && shift\nexec env -i PATH=\"$PATH\" HOME=\"$HOME\" \"$@\"\n");
    write_program(
        &here, "bin/apt-get",
        "#!/bin/sh\necho \"$1 $http_proxy $HTTPS_PROXY $no_proxy [$ftp_proxy]\" >>\"$HOME/seen\"\n");
    expect(INSTALL(here, "CC=/nowhere/cc http_proxy='http://a:1' HTTPS_PROXY=b no_proxy='c d'"), 0, NULL,
           NULL);
    char *text = text_read(seen, NULL);
    assert_non_null(text);
    assert_string_equal(text, "install http://a:1 b c d []\n");
    free(text);
    scratch_remove(here.folder);
}

static void a_killed_download_is_swept_and_the_folder_kept_private(void **state)
{
    place here;
    static const char *const names[] = {".cache",
                                        ".cache/fpac",
                                        ".cache/fpac/.nvrtc-aBc123",
                                        ".cache/fpac/.nvrtc-young1",
                                        ".cache/fpac/.nvrtc-note",
                                        ".cache/fpac/nvrtc"};
    char paths[6][PATH], inside[PATH];
    struct stat facts;
    place_begin(&here, tiny_spec);
    for (int i = 0; i < 6; i++) {
        place_file(&here, names[i], paths[i]);
        assert_int_equal(mkdir(paths[i], 0700), 0);
    }
    place_file(&here, ".cache/fpac/.nvrtc-aBc123/wheel.zip", inside);
    scratch_write(inside, "half", 4);
    assert_int_equal(chmod(paths[5], 0775), 0);
    for (int i = 2; i < 5; i += 2)
        expect(RUN("/usr/bin/env", "touch", "-d", "3 days ago", paths[i]), 0, NULL, NULL);
    expect(INSTALL(here, ""), 0, NULL, NULL);
    assert_int_not_equal(access(paths[2], F_OK), 0);
    assert_int_equal(access(paths[3], F_OK), 0);
    assert_int_equal(access(paths[4], F_OK), 0);
    assert_int_equal(stat(paths[5], &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0755);
    scratch_remove(here.folder);
}

static void a_compiler_may_have_options(void **state)
{
    expect(RUN("/usr/bin/env", "CC=gcc -O1", "tools/install-deps.sh", "--check", "gcc", "libc6-dev"), 0, NULL,
           NULL);
    expect(RUN("/usr/bin/env", "CC=nowhere-cc -O1", "tools/install-deps.sh", "--check", "gcc"), 1, NULL,
           "missing: gcc");
}

int main(void)
{
    c_hurry();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_variable_that_decides_what_is_loaded_is_told),
        cmocka_unit_test(nvrtc_in_a_cache_obeys_the_rules_of_the_cache),
        cmocka_unit_test(another_verifier_asks_again),
        cmocka_unit_test(proxies_survive_sudo),
        cmocka_unit_test(a_killed_download_is_swept_and_the_folder_kept_private),
        cmocka_unit_test(a_compiler_may_have_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
