/* Finding the driver, its devices, and the target that suits one. */
#include "runtime/cuda/module.h"
#include "claims.h"
#include "fake_driver.h"
#include "program.h"

#include <stdlib.h>

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
    in_child(fake_path, the_names_lead_to_the_gpu);
    in_child("/nowhere/libcuda.so.1", only_generations_have_names);
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
    };
    return cmocka_run_group_tests(tests, compile_fake, remove_fake);
}
