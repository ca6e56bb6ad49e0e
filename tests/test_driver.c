#include "../runtime/backend.h"
#include "../runtime/image_cuda.h"
#include "../runtime/module_cuda.h"
#include "driver/fake_libcuda.h"
#include "program.h"

#include <dlfcn.h>
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h> /* last: its macro fail() would hide error.h's */

/* A process finds its driver once. So each claim is a function that a child runs, with FPA_LIBCUDA as the
 * claim wants it; it ends with 0, or at the line that does not hold. */
#define HOLDS(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

static char folder[64], fake_path[128];

static void in_child(const char *library, int (*claim)(void))
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("FPA_LIBCUDA", library, 1);
        _exit(claim());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static struct fake_state *fake(void)
{
    void *library = dlopen(fake_path, RTLD_NOW);
    return library ? dlsym(library, "fake_state") : NULL;
}

static int compile_fake(void **state)
{
    (void)state;
    scratch_make(folder);
    snprintf(fake_path, sizeof fake_path, "%s/libcuda.so.1", folder);
    program_result result =
        RUN("/usr/bin/env", "cc", "-shared", "-fPIC", "-o", fake_path, "tests/driver/fake_libcuda.c");
    if (result.code)
        print_error("%s", result.err);
    int code = result.code;
    program_free(&result);
    return code;
}

static int remove_fake(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

/* The least that looks like a cubin. */
typedef struct image {
    Elf64_Ehdr header;
    Elf64_Shdr sections[2];
    char text[16];
} image;

static image make_image(void)
{
    image i = {.text = "code"};
    memcpy(i.header.e_ident, ELFMAG, SELFMAG);
    i.header.e_ident[EI_CLASS] = ELFCLASS64;
    i.header.e_machine = 190;
    i.header.e_shoff = offsetof(image, sections);
    i.header.e_shentsize = sizeof(Elf64_Shdr);
    i.header.e_shnum = 2;
    i.header.e_shstrndx = 1;
    i.sections[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = offsetof(image, text), .sh_size = 16};
    return i;
}

static struct fake_state *fake_with_geometry(void)
{
    struct fake_state *f = fake();
    f->geometry = (struct fpa_cuda_geometry){
        .version = FPA_CUDA_VERSION,
        .features = 64,
        .state_threads = 256,
        .state_bytes = 100 * 1024,
        .attend_threads = 128,
        .attend_bytes = 200 * 1024,
        .flow_threads = 128,
        .flow_bytes = 90 * 1024,
        .step_threads = 64,
    };
    f->geometry_size = sizeof f->geometry;
    return f;
}

static bool nothing_is_held(const struct fake_state *f)
{
    return f->contexts == 0 && f->depth == 0 && f->modules == 0 && f->allocations == 0;
}

static fpa_status load(int device, fpa_module *module, fpa_error *error)
{
    image i = make_image();
    const fpa_object object = {(unsigned char *)&i, sizeof i};
    const fpa_options options = {.device = device};
    return backend_cuda.load(&options, &object, "toy", module, error);
}

static int everything_says_there_is_no_driver(void)
{
    fpa_error error = {0};
    const fpa_driver *driver;
    const fpa_target *target;
    fpa_module module;
    char *device;
    HOLDS(driver_find(&driver, &error) == FPA_DEVICE && !driver);
    HOLDS(strstr(error.message, "no NVIDIA driver") && strstr(error.message, "C targets work without"));
    HOLDS(strstr(error.message, "/nowhere/libcuda.so.1") && strstr(error.message, "FPA_LIBCUDA"));
    HOLDS(!strchr(error.message, '\n'));
    HOLDS(backend_cuda.choose(NULL, "cuda", &target, &error) == FPA_DEVICE && !target);
    HOLDS(backend_cuda.choose(NULL, "cuda:sm_90", &target, &error) == FPA_DEVICE);
    HOLDS(backend_cuda.choose(NULL, "c:avx2", &target, &error) == FPA_UNSUPPORTED);
    HOLDS(backend_cuda.device(NULL, &device, &error) == FPA_DEVICE && !device);
    HOLDS(load(0, &module, &error) == FPA_DEVICE && !module.handle);
    return 0;
}

static void without_a_driver_the_message_says_what_works(void **state)
{
    (void)state;
    in_child("/nowhere/libcuda.so.1", everything_says_there_is_no_driver);
}

static int it_has_no_cuInit(void)
{
    fpa_error error = {0};
    const fpa_driver *driver;
    HOLDS(driver_find(&driver, &error) == FPA_DEVICE);
    HOLDS(strcmp(error.where, "libm.so.6") == 0 && strstr(error.message, "has no cuInit"));
    return 0;
}

static void a_library_that_is_no_driver_is_refused(void **state)
{
    (void)state;
    in_child("libm.so.6", it_has_no_cuInit);
}

static int it_has_no_gpu(void)
{
    fpa_error error = {0};
    const fpa_driver *driver;
    fake()->devices = 0;
    HOLDS(driver_find(&driver, &error) == FPA_DEVICE);
    HOLDS(strstr(error.message, "no GPU"));
    HOLDS(driver_find(&driver, NULL) == FPA_DEVICE);
    return 0;
}

static void a_driver_without_a_gpu_is_told_from_none(void **state)
{
    (void)state;
    in_child(fake_path, it_has_no_gpu);
}

static int it_does_not_start(void)
{
    fpa_error error = {0};
    const fpa_driver *driver;
    fake()->fail_at = 1;
    HOLDS(driver_find(&driver, &error) == FPA_DEVICE);
    HOLDS(strstr(error.message, "CUDA_ERROR_FAKE (as the test wanted)"));
    return 0;
}

static void the_drivers_own_words_are_passed_on(void **state)
{
    (void)state;
    in_child(fake_path, it_does_not_start);
}

/* What "cuda" and one target stand for on a device; "" for UNSUPPORTED. */
static const struct {
    int capability;
    const char *name, *target, *says;
} choices[] = {
    {90, "cuda", "cuda:sm_90a", NULL},
    {90, "sm_90a", "cuda:sm_90a", NULL},
    {90, "cuda:sm_90", "cuda:sm_90", NULL},
    {90, "sm_90", "cuda:sm_90", NULL},
    {90, "cuda:sm_80", "", "GPU 1 (Fake GPU), which has compute capability 9.0: cuda:sm_90a does"},
    {91, "sm_90a", "", "compute capability 9.1: cuda:sm_90 does"},
    {89, "cuda", "cuda:sm_89", NULL},
    {89, "cuda:sm_86", "cuda:sm_86", NULL},
    {86, "cuda:sm_89", "", "compute capability 8.6"},
    {87, "cuda", "cuda:sm_86", NULL},
    {103, "sm_100", "cuda:sm_100", NULL},
    {75, "cuda", "", "compute capability 7.5"},
    {90, "cuda:sm_91", "", "is no target"},
};

static int each_choice_is_as_listed(void)
{
    const fpa_options options = {.device = 1};
    struct fake_state *f = fake();
    f->devices = 2;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        fpa_error error = {0};
        const fpa_target *target;
        f->capability = choices[i].capability;
        fpa_status status = backend_cuda.choose(&options, choices[i].name, &target, &error);
        if (*choices[i].target)
            HOLDS(status == FPA_OK && strcmp(target->name, choices[i].target) == 0);
        else
            HOLDS(status == FPA_UNSUPPORTED && !target && strstr(error.message, choices[i].says));
    }
    return 0;
}

static void a_target_is_chosen_by_what_the_device_runs(void **state)
{
    (void)state;
    in_child(fake_path, each_choice_is_as_listed);
}

static int the_number_is_checked(void)
{
    fpa_error error = {0};
    const fpa_target *target;
    fpa_module module;
    char *device;
    const fpa_options past = {.device = 2}, negative = {.device = -1};
    fake_with_geometry()->devices = 2;
    HOLDS(backend_cuda.choose(&past, "cuda", &target, &error) == FPA_INVALID);
    HOLDS(strcmp(error.where, "options.device") == 0 && strstr(error.message, "is 2, but there are 2 GPUs"));
    HOLDS(backend_cuda.choose(&negative, "cuda", &target, &error) == FPA_INVALID);
    HOLDS(backend_cuda.device(&past, &device, &error) == FPA_INVALID);
    HOLDS(load(2, &module, &error) == FPA_INVALID && nothing_is_held(fake()));
    HOLDS(load(1, &module, &error) == FPA_OK);
    backend_cuda.unload(&module);
    return 0;
}

static void a_device_that_is_not_there_is_refused_with_the_number_there_is(void **state)
{
    (void)state;
    in_child(fake_path, the_number_is_checked);
}

static int names_and_numbers_are_in_it(void)
{
    fpa_error error = {0};
    char *device;
    HOLDS(backend_cuda.device(NULL, &device, &error) == FPA_OK);
    HOLDS(strcmp(device, "gpu Fake GPU\ncapability 9.0\nmultiprocessors 132\ndriver 12.4\n") == 0);
    free(device);
    return 0;
}

static void the_device_is_its_name_capability_and_driver(void **state)
{
    (void)state;
    in_child(fake_path, names_and_numbers_are_in_it);
}

static int the_names_lead_to_the_gpu(void)
{
    fpa_error error = {0};
    const fpa_backend *backend;
    const fpa_target *target;
    HOLDS(backend_find("cuda") == &backend_cuda && backend_find("cuda:sm_80") == &backend_cuda);
    HOLDS(backend_find("sm_80") == &backend_cuda && backend_find("c") == &backend_c);
    HOLDS(!backend_find("sm_81") && !backend_find("cud"));
    HOLDS(backend_target("cuda", &backend, &target, &error) == FPA_OK);
    HOLDS(backend == &backend_cuda && strcmp(target->name, "cuda:sm_90a") == 0);
    HOLDS(backend_target("sm_120", &backend, &target, &error) == FPA_OK);
    HOLDS(backend == &backend_cuda && strcmp(target->name, "cuda:sm_120") == 0);
    HOLDS(backend_target("cuda:sm_81", &backend, &target, &error) == FPA_UNSUPPORTED);
    HOLDS(strstr(error.message, "cuda:sm_80") && strstr(error.message, "c:avx2"));
    return 0;
}

static int only_generations_have_names(void)
{
    fpa_error error = {0};
    const fpa_backend *backend;
    const fpa_target *target;
    HOLDS(backend_target("cuda", &backend, &target, &error) == FPA_DEVICE);
    HOLDS(strstr(error.message, "no NVIDIA driver") && strstr(error.message, "cuda:sm_80, "));
    HOLDS(backend_target("cuda:sm_80", &backend, &target, &error) == FPA_OK);
    HOLDS(backend == &backend_cuda && target->capability == 80);
    return 0;
}

static void cuda_names_a_target_where_there_is_a_gpu(void **state)
{
    (void)state;
    in_child(fake_path, the_names_lead_to_the_gpu);
    in_child("/nowhere/libcuda.so.1", only_generations_have_names);
}

static int it_is_loaded_and_given_back(void)
{
    fpa_error error = {0};
    fpa_module module;
    struct fake_state *f = fake_with_geometry();
    HOLDS(load(0, &module, &error) == FPA_OK);
    const struct fpa_cuda_module *cuda = module.handle;
    HOLDS(module.backend == &backend_cuda && module.workspace && module.forward);
    HOLDS(f->contexts == 1 && f->modules == 1 && f->depth == 0);
    HOLDS(memcmp(&cuda->geometry, &f->geometry, sizeof f->geometry) == 0);
    HOLDS(!cuda->gates && cuda->state && cuda->carry && cuda->attend && cuda->flow && cuda->step &&
          cuda->gather);
    HOLDS(cuda->multiprocessors == 132 && cuda->shared_memory == 227 * 1024);
    HOLDS(cuda->state_resident == 2 && cuda->attend_resident == 2 && cuda->flow_resident == 2 &&
          cuda->step_resident == 2);
    HOLDS(strcmp(cuda->name, "toy") == 0 && cuda->device == 0);
    backend_cuda.unload(&module);
    HOLDS(nothing_is_held(f) && !module.handle);
    return 0;
}

static void a_module_holds_its_context_until_it_is_unloaded(void **state)
{
    (void)state;
    in_child(fake_path, it_is_loaded_and_given_back);
}

static int refused(fpa_status wanted, const char *says)
{
    fpa_error error = {0};
    fpa_module module;
    HOLDS(load(0, &module, &error) == wanted);
    HOLDS(error.code == wanted && strstr(error.message, says) && !module.handle);
    HOLDS(nothing_is_held(fake()));
    return 0;
}

static int none_of_these_is_loaded(void)
{
    struct fake_state *f = fake_with_geometry();
    const struct fake_state good = *f;
    f->missing = "toy_geometry";
    HOLDS(refused(FPA_LOAD, "does not export toy_geometry") == 0);
    f->missing = "toy_attend";
    HOLDS(refused(FPA_LOAD, "no kernel toy_attend") == 0);
    *f = good;
    f->geometry.version++;
    HOLDS(refused(FPA_LOAD, "another version of fpac") == 0);
    *f = good;
    f->geometry_size -= 4;
    HOLDS(refused(FPA_LOAD, "another version of fpac") == 0);
    f->geometry_size = 2;
    HOLDS(refused(FPA_LOAD, "has 2 bytes only") == 0);
    *f = good;
    f->geometry.attend_threads = 2048;
    HOLDS(refused(FPA_LOAD, "attend kernel wants 2048 threads") == 0);
    *f = good;
    f->shared_memory = 163 * 1024;
    HOLDS(refused(FPA_UNSUPPORTED, "needs 204800 bytes of shared memory a block, and this GPU has 166912") ==
          0);
    *f = good;
    f->resident = 0;
    HOLDS(refused(FPA_UNSUPPORTED, "does not fit on this GPU") == 0);
    *f = good;
    f->refuse_image = 1;
    HOLDS(refused(FPA_LOAD, "which serves CUDA 12.4, refuses the module") == 0);
    return 0;
}

static void a_module_of_another_head_version_or_gpu_is_refused(void **state)
{
    (void)state;
    in_child(fake_path, none_of_these_is_loaded);
}

static int every_failure_is_told_and_leaves_nothing(void)
{
    int failures = 0;
    const fpa_driver *driver;
    struct fake_state *f = fake_with_geometry();
    HOLDS(driver_find(&driver, NULL) == FPA_OK);
    for (int n = 1;; n++) {
        fpa_error error = {0};
        fpa_module module;
        f->calls = 0;
        f->fail_at = n;
        fpa_status status = load(0, &module, &error);
        f->fail_at = 0;
        if (status == FPA_OK) {
            HOLDS(failures > 0 && failures == f->calls);
            backend_cuda.unload(&module);
            HOLDS(nothing_is_held(f));
            break;
        }
        failures++;
        HOLDS(error.code != FPA_OK && *error.message && !module.handle && nothing_is_held(f));
    }
    return 0;
}

static void when_any_call_of_a_load_fails_nothing_stays_held(void **state)
{
    (void)state;
    in_child(fake_path, every_failure_is_told_and_leaves_nothing);
}

static int whole_only(void)
{
    fpa_error error = {0};
    fpa_module module;
    struct fake_state *f = fake_with_geometry();
    image i = make_image();
    for (size_t size = 0; size < sizeof i; size++) {
        unsigned char *cut = malloc(size + !size); /* of its size: the sanitizer sees a read past it */
        memcpy(cut, &i, size);
        const fpa_object object = {cut, size};
        HOLDS(backend_cuda.load(NULL, &object, "toy", &module, &error) == FPA_LOAD && !module.handle);
        free(cut);
    }
    i.header.e_machine = 62; /* a shared object, of a C kernel say */
    const fpa_object object = {(unsigned char *)&i, sizeof i};
    HOLDS(backend_cuda.load(NULL, &object, "toy", &module, &error) == FPA_LOAD);
    HOLDS(strstr(error.message, "no whole cubin") && f->modules == 0 && f->calls == 0);
    return 0;
}

static void bytes_that_are_no_whole_cubin_never_reach_the_driver(void **state)
{
    (void)state;
    in_child(fake_path, whole_only);
}

/* As kernels that were compiled in parts are kept. */
static int each_image_is_a_module(void)
{
    fpa_error error = {0};
    fpa_module module;
    fpa_object joined, images[FPA_CUDA_PARTS];
    struct fake_state *f = fake_with_geometry();
    image one = make_image();
    const fpa_object several[] = {{(unsigned char *)&one, sizeof one}, {(unsigned char *)&one, sizeof one}};
    HOLDS(image_join(several, 2, &joined, &error) == FPA_OK);
    HOLDS(image_split(&joined, images, FPA_CUDA_PARTS) == 2 && images[1].size == sizeof one);
    HOLDS(memcmp(images[1].bytes, &one, sizeof one) == 0);
    HOLDS(backend_cuda.load(NULL, &joined, "toy", &module, &error) == FPA_OK && f->modules == 2);
    backend_cuda.unload(&module);
    HOLDS(nothing_is_held(f));
    joined.size--; /* of the second */
    f->calls = 0;
    HOLDS(backend_cuda.load(NULL, &joined, "toy", &module, &error) == FPA_LOAD && f->calls == 0);
    joined.size++;
    HOLDS(image_split(&joined, images, 1) == 0); /* more than there may be */
    free(joined.bytes);
    one.header.e_machine = 62;
    HOLDS(image_join(several, 2, &joined, &error) == FPA_COMPILE && !joined.bytes);
    return 0;
}

static void a_module_of_several_images_is_loaded_and_unloaded_whole(void **state)
{
    (void)state;
    in_child(fake_path, each_image_is_a_module);
}

static int memory_is_copied_there_and_back(void)
{
    fpa_error error = {0};
    fpa_module module;
    void *address, *empty;
    char back[6] = "";
    const fpa_memory *memory = backend_cuda.memory;
    struct fake_state *f = fake_with_geometry();
    HOLDS(load(0, &module, &error) == FPA_OK);
    HOLDS(memory->allocate(&module, 6, &address, &error) == FPA_OK);
    HOLDS(memory->upload(&module, address, "hello", 6, &error) == FPA_OK);
    HOLDS(memory->download(&module, back, address, 6, &error) == FPA_OK && strcmp(back, "hello") == 0);
    HOLDS(memory->finish(&module, &error) == FPA_OK);
    HOLDS(memory->allocate(&module, 0, &empty, &error) == FPA_OK && empty);
    HOLDS(memory->upload(&module, empty, "", 0, &error) == FPA_OK && f->depth == 0);
    HOLDS(memory->enter(&module, &error) == FPA_OK && f->depth == 1);
    memory->leave(&module);
    HOLDS(f->depth == 0);
    for (int call = 1; call <= 3; call++) { /* enter, wait, copy */
        f->calls = 0;
        f->fail_at = call;
        HOLDS(memory->download(&module, back, address, 6, &error) == FPA_DEVICE && f->depth == 0);
    }
    f->fail_at = 0;
    memory->release(&module, address);
    memory->release(&module, empty);
    memory->release(&module, NULL);
    HOLDS(memory->allocate(&module, (size_t)1 << 40, &address, &error) == FPA_NO_MEMORY && !address);
    HOLDS(strstr(error.message, "1099511627776 bytes"));
    backend_cuda.unload(&module);
    HOLDS(nothing_is_held(f));
    return 0;
}

static void device_memory_is_copied_to_and_from_in_the_modules_context(void **state)
{
    (void)state;
    in_child(fake_path, memory_is_copied_there_and_back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_driver_the_message_says_what_works),
        cmocka_unit_test(a_library_that_is_no_driver_is_refused),
        cmocka_unit_test(a_driver_without_a_gpu_is_told_from_none),
        cmocka_unit_test(the_drivers_own_words_are_passed_on),
        cmocka_unit_test(a_target_is_chosen_by_what_the_device_runs),
        cmocka_unit_test(a_device_that_is_not_there_is_refused_with_the_number_there_is),
        cmocka_unit_test(the_device_is_its_name_capability_and_driver),
        cmocka_unit_test(cuda_names_a_target_where_there_is_a_gpu),
        cmocka_unit_test(a_module_holds_its_context_until_it_is_unloaded),
        cmocka_unit_test(a_module_of_another_head_version_or_gpu_is_refused),
        cmocka_unit_test(when_any_call_of_a_load_fails_nothing_stays_held),
        cmocka_unit_test(bytes_that_are_no_whole_cubin_never_reach_the_driver),
        cmocka_unit_test(a_module_of_several_images_is_loaded_and_unloaded_whole),
        cmocka_unit_test(device_memory_is_copied_to_and_from_in_the_modules_context),
    };
    return cmocka_run_group_tests(tests, compile_fake, remove_fake);
}
