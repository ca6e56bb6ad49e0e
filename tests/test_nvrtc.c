#include "cubin.h"
#include "nvrtc_fixture.h"

#include <elf.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char plain[] = "extern \"C\" __global__ void toy_plain(float *y)\n"
                            "{\n"
                            "    y[threadIdx.x] += 1.0f;\n"
                            "}\n";

/* 1,024 threads leave a thread 64 registers: that many values at once do not fit. */
static const char spilling[] =
    "extern \"C\" __global__ void __launch_bounds__(1024, 1) toy_spill(const float *x, float *y)\n"
    "{\n"
    "    float a[160];\n"
    "    _Pragma(\"unroll\") for (int i = 0; i < 160; i++) a[i] = x[i * 1024 + threadIdx.x];\n"
    "    _Pragma(\"unroll\") for (int i = 0; i < 160; i++) a[i] = a[i] * a[(i * 7 + 5) % 160] + a[159 - i];\n"
    "    _Pragma(\"unroll\") for (int i = 0; i < 160; i++) y[i * 1024 + threadIdx.x] = a[i] + a[159 - i];\n"
    "}\n";

static fpa_status compile(const fixture *f, const char *code, const char *target, bool ptx,
                          fpa_object *object, nvrtc_report *report, fpa_error *error)
{
    fpa_source source = {.code = strdup(code)};
    strcpy(source.facts.name, "toy");
    strcpy(source.facts.target, target);
    fpa_status status = cuda_compile(&f->options, &source, ptx, object, report, error);
    free(source.code);
    return status;
}

static fpa_object compiled(const fixture *f, const char *code, const char *target, bool ptx,
                           nvrtc_report *report)
{
    fpa_object object;
    fpa_error error = {0};
    assert_ok(compile(f, code, target, ptx, &object, report, &error), &error);
    return object;
}

static void every_target_gives_a_cubin_and_ptx(void **state)
{
    need_nvrtc();
    int compiled_for = 0;
    for (int i = 0; i < target_count(); i++) {
        char named[32];
        fpa_object object;
        nvrtc_report report;
        fpa_error error = {0};
        const fpa_target *target = target_at(i);
        if (target->backend != BACKEND_CUDA)
            continue;
        fpa_status status = compile(*state, plain, target->name, false, &object, &report, &error);
        if (status == FPA_UNSUPPORTED && strstr(error.message, "does not support")) {
            assert_non_null(strstr(error.message, target->march)); /* an NVRTC older than the GPU */
            continue;
        }
        assert_int_equal(status, FPA_OK);
        assert_memory_equal(object.bytes, ELFMAG, SELFMAG);
        assert_true(report.registers > 0 && report.seconds > 0);
        free(object.bytes);
        nvrtc_report_free(&report);
        object = compiled(*state, plain, target->name, true, &report);
        snprintf(named, sizeof named, ".target %s", target->march);
        assert_non_null(strstr((char *)object.bytes, named));
        assert_non_null(strstr((char *)object.bytes, ".entry toy_plain"));
        assert_int_equal(object.bytes[object.size], 0);
        free(object.bytes);
        nvrtc_report_free(&report);
        compiled_for++;
    }
    assert_true(compiled_for >= 4); /* sm_80, 86, 89, 90: any NVRTC from 11.8 on */
}

static void a_target_of_another_kind_is_refused(void **state)
{
    fpa_object object;
    nvrtc_report report;
    fpa_error error = {0};
    char *identity;
    assert_int_equal(compile(*state, plain, "c:avx2", false, &object, &report, &error), FPA_UNSUPPORTED);
    assert_string_equal(error.where, "c:avx2");
    assert_null(object.bytes);
    assert_int_equal(builder_cuda.identity(NULL, "c:avx2", &identity, &error), FPA_UNSUPPORTED);
    assert_null(identity);
}

static void a_mistake_in_the_source_is_told_with_its_line(void **state)
{
    need_nvrtc();
    fixture *f = *state;
    fpa_object object;
    nvrtc_report report;
    fpa_error error = {0};
    static const char wrong[] = "extern \"C\" __global__ void toy(int *y)\n"
                                "{\n"
                                "    *y = nobody_knows_this;\n"
                                "}\n";
    assert_int_equal(compile(f, wrong, "cuda:sm_80", false, &object, &report, &error), FPA_COMPILE);
    assert_string_equal(error.where, "toy.cu");
    assert_non_null(strstr(error.message, "toy.cu(3): error: "));
    assert_non_null(strstr(error.message, "nobody_knows_this"));
    assert_null(strchr(error.message, '\n'));
    assert_null(object.bytes);
    assert_int_equal(f->log.lines, 0);
    nvrtc_report_free(&report);
}

/* ptxas refuses what the language allows, without a word. */
static void more_shared_memory_than_there_can_be_is_refused(void **state)
{
    need_nvrtc();
    fpa_object object;
    nvrtc_report report;
    fpa_error error = {0};
    static const char wrong[] = "extern \"C\" __global__ void toy(int *y)\n"
                                "{\n"
                                "    __shared__ int large[1 << 20];\n"
                                "    large[threadIdx.x] = *y;\n"
                                "    __syncthreads();\n"
                                "    *y = large[threadIdx.x ^ 1];\n"
                                "}\n";
    assert_int_equal(compile(*state, wrong, "cuda:sm_80", false, &object, &report, &error), FPA_COMPILE);
    assert_non_null(strstr(error.message, "4194304 bytes smem"));
    assert_null(object.bytes);
    nvrtc_report_free(&report);
}

/* The most registers of a kernel, as the cubin itself says: attribute 0x2f of .nv.info is (symbol, count). */
static int registers_in(const fpa_object *object)
{
    int most = 0;
    Elf64_Ehdr header;
    memcpy(&header, object->bytes, sizeof header);
    for (int i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, object->bytes + header.e_shoff + (size_t)i * sizeof section, sizeof section);
        if (section.sh_type != SHT_LOPROC)
            continue;
        for (size_t at = section.sh_offset; at + 12 <= section.sh_offset + section.sh_size; at += 4) {
            static const unsigned char start[4] = {4, 0x2f, 8, 0};
            int count;
            memcpy(&count, object->bytes + at + 8, sizeof count);
            if (memcmp(object->bytes + at, start, sizeof start) == 0 && count > most)
                most = count;
        }
    }
    return most;
}

static void registers_and_spills_are_those_of_the_cubin(void **state)
{
    need_nvrtc();
    fixture *f = *state;
    char both[2048], fresh[512];
    nvrtc_report report;
    /* NVRTC may keep what it has compiled, and tells nothing of it then: a program that nobody had before */
    snprintf(fresh, sizeof fresh,
             "extern \"C\" __global__ void toy_plain(float *y) { y[threadIdx.x] += %lld.%d; }\n",
             (long long)time(NULL), (int)getpid());
    fpa_object object = compiled(f, fresh, "cuda:sm_90", false, &report);
    assert_int_equal(report.registers, registers_in(&object));
    assert_int_equal(report.spill_bytes, 0);
    assert_int_equal(f->log.lines, 1);
    assert_non_null(strstr(f->log.text, "toy: NVRTC "));
    assert_non_null(strstr(f->log.text, " for sm_90: "));
    assert_non_null(strstr(f->log.text, " registers, 0 bytes of spills\n"));
    free(object.bytes);
    nvrtc_report_free(&report);

    snprintf(both, sizeof both, "%s%s", fresh, spilling);
    object = compiled(f, both, "cuda:sm_90", false, &report);
    assert_int_equal(report.registers, 64);
    assert_int_equal(report.registers, registers_in(&object));
    assert_true(report.spill_bytes > 0);
    assert_int_equal(f->log.lines, 3);
    assert_non_null(strstr(f->log.text, "toy: warning: toy_spill spills "));
    assert_null(strstr(f->log.text, "toy_plain spills"));
    free(object.bytes);
    nvrtc_report_free(&report);
}

static void a_warning_is_logged(void **state)
{
    need_nvrtc();
    fixture *f = *state;
    nvrtc_report report;
    fpa_object object = compiled(f, "extern \"C\" __global__ void toy(void) { int nobody_reads_this = 1; }\n",
                                 "cuda:sm_80", false, &report);
    assert_int_equal(f->log.lines, 2);
    assert_non_null(strstr(f->log.text, "toy: warning: toy.cu(1): warning "));
    assert_non_null(strstr(f->log.text, "nobody_reads_this"));
    free(object.bytes);
    nvrtc_report_free(&report);
}

/* Products whose sums are touched between them, but for what stands around that. */
#define TOUCHING(before, behind)                                                                             \
    "extern \"C\" __global__ void toy(float *y, unsigned long long a, int n)\n"                              \
    "{\n"                                                                                                    \
    "    float c[4] = {};\n"                                                                                 \
    "    for (int i = 0; i < n; i++) {\n"                                                                    \
    "        asm volatile(\"wgmma.fence.sync.aligned;\");\n"                                                 \
    "        asm volatile(\"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 \"\n"                        \
    "                     \"{%0,%1,%2,%3}, %4, %4, 1, 1, 1, 0, 0;\"\n"                                       \
    "                     : \"+f\"(c[0]), \"+f\"(c[1]), \"+f\"(c[2]), \"+f\"(c[3]) : \"l\"(a + i));\n"       \
    "        asm volatile(\"wgmma.commit_group.sync.aligned;\");\n" before                                   \
    "        if (y[i] > 0) c[1] = y[i];\n" behind                                                            \
    "        asm volatile(\"wgmma.wait_group.sync.aligned 1;\");\n"                                          \
    "    }\n"                                                                                                \
    "    asm volatile(\"wgmma.wait_group.sync.aligned 0;\");\n"                                              \
    "    y[threadIdx.x] = c[0] + c[1];\n"                                                                    \
    "}\n"

/* Where warps may be those that only fetch, spills are a note; sums that are touched before their products
 * are through, which are then carried out one after the other, are a warning. */
static void products_that_wait_are_a_warning_and_spills_a_note(void **state)
{
    fixture *f = *state;
    nvrtc_report report;
    need_nvrtc();
    fpa_object object = compiled(f, spilling, "cuda:sm_90a", false, &report);
    assert_non_null(strstr(f->log.text, "toy: note: toy_spill spills "));
    free(object.bytes);
    nvrtc_report_free(&report);

    object = compiled(f, TOUCHING("", ""), "cuda:sm_90a", false, &report);
    assert_int_equal(f->log.lines, 4);
    assert_non_null(strstr(f->log.text, "toy: warning: "));
    assert_non_null(strstr(f->log.text, "wgmma.mma_async instructions are serialized due to "));
    free(object.bytes);
    nvrtc_report_free(&report);
}

/* Text that has a way around it, behind a macro, is compiled once more; one of no avail is left as it was. */
static void products_that_would_wait_are_compiled_the_other_way(void **state)
{
    fixture *f = *state;
    nvrtc_report report;
    need_nvrtc();
    const int before = f->log.lines;
    fpa_object object =
        compiled(f, TOUCHING("#ifndef FPA_CUDA_SERIALIZED\n", "#endif\n"), "cuda:sm_90a", false, &report);
    assert_int_equal(f->log.lines, before + 1); /* what it took */
    assert_memory_equal(object.bytes, ELFMAG, SELFMAG);
    free(object.bytes);
    nvrtc_report_free(&report);

    object = compiled(f, TOUCHING("", "#ifdef FPA_CUDA_SERIALIZED\n#endif\n"), "cuda:sm_90a", false, &report);
    assert_int_equal(f->log.lines, before + 3);
    assert_non_null(strstr(report.log, "wgmma.mma_async instructions are serialized"));
    free(object.bytes);
    nvrtc_report_free(&report);
}

typedef struct job {
    const fixture *f;
    pthread_t thread;
    fpa_status status;
    fpa_object object;
} job;

static void *compile_job(void *user)
{
    job *j = user;
    nvrtc_report report;
    const fixture quiet = {0};
    j->status = compile(&quiet, plain, "cuda:sm_90", false, &j->object, &report, NULL);
    nvrtc_report_free(&report);
    return NULL;
}

static void the_bytes_depend_on_neither_folder_nor_thread(void **state)
{
    need_nvrtc();
    job jobs[4];
    nvrtc_report report;
    char here[4096];
    fpa_object first = compiled(*state, plain, "cuda:sm_90", false, &report);
    nvrtc_report_free(&report);
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir("/"), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&jobs[i].thread, NULL, compile_job, &jobs[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(jobs[i].thread, NULL);
    assert_int_equal(chdir(here), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(jobs[i].status, FPA_OK);
        assert_int_equal(jobs[i].object.size, first.size);
        assert_memory_equal(jobs[i].object.bytes, first.bytes, first.size);
        free(jobs[i].object.bytes);
    }
    free(first.bytes);
}

static void the_identity_is_the_version_and_the_options(void **state)
{
    need_nvrtc();
    char *first, *again, *other;
    char wanted[64];
    const char *version;
    fpa_error error;
    assert_int_equal(nvrtc_find(&version, &error), FPA_OK);
    assert_int_equal(builder_cuda.identity(NULL, "cuda:sm_80", &first, &error), FPA_OK);
    assert_int_equal(builder_cuda.identity(NULL, "sm_80", &again, &error), FPA_OK);
    assert_int_equal(builder_cuda.identity(NULL, "cuda:sm_90", &other, &error), FPA_OK);
    assert_string_equal(first, again);
    assert_string_not_equal(first, other);
    snprintf(wanted, sizeof wanted, "nvrtc %s\n", version);
    assert_memory_equal(first, wanted, strlen(wanted));
    assert_non_null(strstr(first, "option --gpu-architecture=sm_80\noption --std=c++17\n"));
    free(first);
    free(again);
    free(other);
}

static void flags_of_the_environment_are_added_and_part_of_the_identity(void **state)
{
    static const char wanting[] = "#ifndef KNOWN\n#error nobody told\n#endif\n"
                                  "extern \"C\" __global__ void toy(int *y) { *y = KNOWN; }\n";
    char many[200] = "";
    char *without, *with;
    fpa_object object;
    nvrtc_report report;
    fpa_error error = {0};
    need_nvrtc();
    assert_int_equal(builder_cuda.identity(NULL, "cuda:sm_80", &without, &error), FPA_OK);
    assert_int_equal(compile(*state, wanting, "cuda:sm_80", false, &object, &report, &error), FPA_COMPILE);
    nvrtc_report_free(&report);
    setenv("FPA_NVRTC_FLAGS", " --define-macro=KNOWN=1  --no-source-include ", 1);
    assert_int_equal(builder_cuda.identity(NULL, "cuda:sm_80", &with, &error), FPA_OK);
    assert_string_not_equal(without, with);
    object = compiled(*state, wanting, "cuda:sm_80", false, &report);
    free(object.bytes);
    nvrtc_report_free(&report);
    setenv("FPA_NVRTC_FLAGS", "--nobody-knows-this", 1);
    assert_int_equal(compile(*state, plain, "cuda:sm_80", false, &object, &report, &error), FPA_COMPILE);
    assert_non_null(strstr(error.message, "nobody-knows-this"));
    nvrtc_report_free(&report);
    for (int i = 0; i < 17; i++)
        strcat(many, " -lineinfo");
    setenv("FPA_NVRTC_FLAGS", many, 1);
    assert_int_equal(compile(*state, plain, "cuda:sm_80", false, &object, &report, &error), FPA_INVALID);
    assert_string_equal(error.where, "FPA_NVRTC_FLAGS");
    unsetenv("FPA_NVRTC_FLAGS");
    free(without);
    free(with);
}

/* The driver is not told how long the bytes are: what was cut must not get that far. */
static void a_cubin_that_was_cut_is_refused_before_the_driver_sees_it(void **state)
{
    need_nvrtc();
    nvrtc_report report;
    fpa_module module;
    fpa_error error;
    fpa_object object = compiled(*state, plain, "cuda:sm_80", false, &report);
    for (size_t size = 0; size < object.size; size++) {
        const fpa_object cut = {object.bytes, size};
        assert_int_equal(backend_cuda.load(NULL, &cut, "toy", &module, &error), FPA_LOAD);
        assert_null(module.handle);
    }
    free(object.bytes);
    nvrtc_report_free(&report);
}

/* A process finds its NVRTC once: a child looks again. */
static char *message_with(const char *library)
{
    int ends[2], status;
    char *message = calloc(1, 2048);
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const char *version;
        fpa_error error = {0};
        setenv("FPA_LIBNVRTC", library, 1);
        fpa_status found = nvrtc_find(&version, &error);
        dprintf(ends[1], "%s: %s", error.where, error.message);
        _exit(found == FPA_COMPILE && !version ? 0 : 1);
    }
    close(ends[1]);
    for (size_t used = 0, got = 1; got > 0; used += got) {
        ssize_t bytes = read(ends[0], message + used, 2047 - used);
        got = bytes > 0 ? (size_t)bytes : 0;
    }
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return message;
}

static void a_named_library_has_to_be_an_nvrtc(void **state)
{
    char *missing = message_with("/nowhere/libnvrtc.so"), *other = message_with("libm.so.6");
    assert_memory_equal(missing, "FPA_LIBNVRTC: cannot be used: ", 30);
    assert_non_null(strstr(missing, "/nowhere/libnvrtc.so"));
    assert_non_null(strstr(other, "libm.so.6: no NVRTC"));
    free(missing);
    free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(a_named_library_has_to_be_an_nvrtc), /* first: before this process has found one */
        CLAIM(every_target_gives_a_cubin_and_ptx),
        CLAIM(a_target_of_another_kind_is_refused),
        CLAIM(a_mistake_in_the_source_is_told_with_its_line),
        CLAIM(more_shared_memory_than_there_can_be_is_refused),
        CLAIM(registers_and_spills_are_those_of_the_cubin),
        CLAIM(products_that_wait_are_a_warning_and_spills_a_note),
        CLAIM(products_that_would_wait_are_compiled_the_other_way),
        CLAIM(a_warning_is_logged),
        CLAIM(the_bytes_depend_on_neither_folder_nor_thread),
        CLAIM(the_identity_is_the_version_and_the_options),
        CLAIM(flags_of_the_environment_are_added_and_part_of_the_identity),
        CLAIM(a_cubin_that_was_cut_is_refused_before_the_driver_sees_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
