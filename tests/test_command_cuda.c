/* The command line with CUDA targets, with a GPU and without. */
#include "claims.h"
#include "command_place.h"
#include "nvrtc_hurry.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- CUDA targets, without a GPU ---- */

/* The command on a machine without a driver, whatever this one has. */
#define RUN_WITHOUT_GPU(...)                                                                                 \
    RUN("/usr/bin/env", "FPA_LIBCUDA=/no/such/libcuda.so", getenv("FPAC") ? getenv("FPAC") : "build/fpac",   \
        __VA_ARGS__)

static void expect_file(const place *here, const char *name, const char *begin)
{
    char path[PATH];
    size_t size;
    place_file(here, name, path);
    char *text = text_read(path, &size);
    if (!text)
        fail_msg("%s was not written", path);
    if (size < strlen(begin) || memcmp(text, begin, strlen(begin)))
        fail_msg("%s does not begin with '%s'", path, begin);
    free(text);
}

static void list_tells_what_cuda_targets_need(void **state)
{
    expect(RUN_WITHOUT_GPU("list"), 0, "cuda:sm_90", NULL);
    expect(RUN_WITHOUT_GPU("list"), 0, "no GPU here", NULL);
    expect(RUN_WITHOUT_GPU("list"), 0, "GPU: no NVIDIA driver", NULL);
    expect(RUN_WITHOUT_GPU("list", "--json"), 0, "\"shared_memory\": ", NULL);
    expect(RUN("/usr/bin/env", "FPA_LIBNVRTC=/no/such/libnvrtc.so",
               getenv("FPAC") ? getenv("FPAC") : "build/fpac", "list"),
           0, "no NVRTC here", NULL);
}

static void explain_plans_for_a_gpu_that_is_not_here(void **state)
{
    static const char *const names[] = {"sm_90", "cuda:sm_90"};
    static const char *const stages[] = {"plan", "source"};
    place here;
    place_begin(&here, tiny_spec);
    for (int i = 0; i < 2; i++) {
        expect(RUN_WITHOUT_GPU("explain", here.spec, "--target", names[i]), 0, "on cuda:sm_90", NULL);
        program_result first = RUN("fpac", "explain", here.spec, "--target", names[0], "--dump", stages[i]);
        program_result second = RUN("fpac", "explain", here.spec, "--target", names[1], "--dump", stages[i]);
        assert_string_equal(first.out, second.out);
        program_free(&second);
        expect(first, 0, i ? "tiny_chunk_output" : "cuda:sm_90", NULL);
    }
    scratch_remove(here.folder);
}

static void gen_writes_cubins_without_a_gpu(void **state)
{
    place here;
    if (!nvrtc_is_here())
        skip();
    place_begin(&here, tiny_spec);
    expect(RUN_WITHOUT_GPU("gen", here.spec, "-o", here.folder, "--target", "sm_90"), 0, NULL, NULL);
    expect_file(&here, "tiny.cu", "/");
    expect_file(&here, "tiny.sm_90.cubin", "\177ELF");
    expect_file(&here, "manifest.fpa", "");
    expect(
        RUN_WITHOUT_GPU("gen", here.spec, "-o", here.folder, "--target", "c:sse2,sm_80,cuda:sm_90", "--ptx"),
        0, NULL, NULL);
    expect_file(&here, "tiny.sse2.c", "/");
    expect_file(&here, "tiny.sm_80.cu", "/");
    expect_file(&here, "tiny.sm_80.cubin", "\177ELF");
    expect_file(&here, "tiny.sm_90.cubin", "\177ELF");
    expect_file(&here, "tiny.sm_90.ptx", "//");
    scratch_remove(here.folder);
}

static void gen_for_a_gpu_says_what_is_missing(void **state)
{
    place here;
    place_begin(&here, tiny_spec);
    expect(RUN("/usr/bin/env", "FPA_LIBNVRTC=/no/such/libnvrtc.so",
               getenv("FPAC") ? getenv("FPAC") : "build/fpac", "gen", here.spec, "-o", here.folder,
               "--target", "sm_90"),
           1, NULL, "NVRTC");
    expect(RUN_WITHOUT_GPU("gen", here.spec, "-o", here.folder, "--target", "cuda"), 1, NULL,
           "names no architecture");
    expect(RUN_WITHOUT_GPU("explain", here.spec, "--target", "cuda"), 1, NULL, "name one: sm_90");
    expect(RUN("fpac", "gen", here.spec, "-o", here.folder, "--target", "sm_91"), 2, NULL, "cuda:sm_90");
    expect(RUN("fpac", "gen", here.spec, "-o", here.folder, "--target", "c:sse2", "--ptx"), 2, NULL, "--ptx");
    scratch_remove(here.folder);
}

static void what_needs_a_gpu_says_so_before_it_reads_a_file(void **state)
{
    static const char *const targets[] = {"cuda", "cuda:sm_90", "sm_90"};
    place here;
    char output[PATH];
    place_begin(&here, tiny_spec);
    place_file(&here, "o.npy", output);
    for (int i = 0; i < 3; i++) {
        expect(RUN_WITHOUT_GPU("verify", here.spec, "--target", targets[i]), 1, NULL, "no NVIDIA driver");
        expect(RUN_WITHOUT_GPU("bench", here.spec, "--target", targets[i]), 1, NULL, "no NVIDIA driver");
        expect(RUN_WITHOUT_GPU("run", here.spec, "--target", targets[i], "--q", "no.npy", "--k", "no.npy",
                               "--v", "no.npy", "-o", output),
               1, NULL, "no NVIDIA driver");
    }
    scratch_remove(here.folder);
}

static void options_that_the_target_cannot_have_are_refused(void **state)
{
    place here;
    place_begin(&here, tiny_spec);
    expect(RUN("fpac", "bench", here.spec, "--target", "cuda", "--threads", "2"), 2, NULL, "--threads");
    expect(RUN("fpac", "bench", here.spec, "--graph"), 2, NULL, "--graph");
    expect(RUN("fpac", "bench", here.spec, "--layers", "2"), 2, NULL, "--layers");
    expect(RUN("fpac", "bench", here.spec, "--breakdown"), 2, NULL,
           "times each kernel of a call by GPU events");
    expect(RUN("fpac", "bench", here.spec, "--target", "cuda", "--breakdown", "--backward"), 2, NULL,
           "--breakdown");
    expect(RUN("fpac", "bench", here.spec, "--device", "1"), 2, NULL, "--device");
    expect(RUN("fpac", "verify", here.spec, "--device", "1"), 2, NULL, "--device");
    expect(RUN("fpac", "bench", here.spec, "--dtype", "f64"), 2, NULL, "f64 is no dtype");
    expect(RUN("fpac", "bench", here.spec, "--length", "8", "--dtype", "bf16", "--json"), 0,
           "\"dtype\": \"bf16\"", NULL);
    scratch_remove(here.folder);
}

int main(void)
{
    nvrtc_hurry();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_tells_what_cuda_targets_need),
        cmocka_unit_test(explain_plans_for_a_gpu_that_is_not_here),
        cmocka_unit_test(gen_writes_cubins_without_a_gpu),
        cmocka_unit_test(gen_for_a_gpu_says_what_is_missing),
        cmocka_unit_test(what_needs_a_gpu_says_so_before_it_reads_a_file),
        cmocka_unit_test(options_that_the_target_cannot_have_are_refused),
    };
    return cmocka_run_group_tests_name("command, CUDA targets", tests, NULL, NULL);
}
