/* fpac bench --breakdown: who puts a kernel into a stream tells its name, and what lies between two events is its time. */
#include "command/breakdown.h"
#include "claims.h"
#include "fake_driver.h"
#include "runtime/cuda/grid.h"

#include <math.h>
#include <string.h>

/* Work of two kernels, the second one twice. */
typedef struct toy_work {
    const fpa_module *module;
    int last_launches; /* of the second kernel */
} toy_work;

static fpa_status launch_toy(void *user, int64_t number, CUstream stream, fpa_error *error)
{
    const toy_work *toy = user;
    const struct fpa_launch launch = {0};
    const struct fpa_cuda_call call = {0};
    const cuda_grid last = {.kernel = CUDA_CHUNK_OUTPUT, .blocks = 8, .next = true};
    cuda_queue queue = {toy->module->handle, &launch, stream, error, FPA_OK};
    cuda_launch(&queue, CUDA_CHUNK_STATE, 4, NULL, &call);
    for (int i = 0; i < toy->last_launches; i++)
        cuda_launch_grid(&queue, &last, &call);
    return queue.status;
}

static int each_kernel_has_its_time(void)
{
    fpa_error error = {0};
    fpa_module module;
    fpa_device device;
    fpa_breakdown breakdown;
    struct fake_state *f = fake_with_geometry();
    HOLDS(load(0, &module, &error) == FPA_OK && device_open(0, &device, &error) == FPA_OK);
    toy_work toy = {&module, 2};
    const fpa_work work = {launch_toy, &toy};
    HOLDS(breakdown_measure(&device, &work, &breakdown, &error) == FPA_OK);
    HOLDS(breakdown.count == 2);
    HOLDS(!strcmp(breakdown.part[0].kernel, "chunk_state") && breakdown.part[0].launches == 1);
    HOLDS(!strcmp(breakdown.part[1].kernel, "chunk_output") && breakdown.part[1].launches == 2);
    HOLDS(fabs(breakdown.part[0].seconds - 0.25e-3) < 1e-9 &&
          fabs(breakdown.part[1].seconds - 0.5e-3) < 1e-9);
    f->calls = 0; /* nobody is told afterwards */
    HOLDS(launch_toy(&toy, 0, NULL, &error) == FPA_OK && f->calls == 3);
    toy.last_launches = BREAKDOWN_LAUNCHES;
    HOLDS(breakdown_measure(&device, &work, &breakdown, &error) == FPA_UNSUPPORTED);
    HOLDS(strstr(error.message, "more than 256 kernels"));
    device_close(&device);
    backend_cuda.unload(&module);
    HOLDS(nothing_is_held(f));
    return 0;
}

static void a_breakdown_has_each_kernel_its_launches_and_its_time(void **state)
{
    in_child(fake_path, each_kernel_has_its_time);
}

static int every_failure_is_told(void)
{
    fpa_error error = {0};
    fpa_module module;
    fpa_device device;
    fpa_breakdown breakdown;
    struct fake_state *f = fake_with_geometry();
    HOLDS(load(0, &module, &error) == FPA_OK && device_open(0, &device, &error) == FPA_OK);
    toy_work toy = {&module, 1};
    const fpa_work work = {launch_toy, &toy};
    int failures = 0;
    for (bool done = false; !done; failures += !done) {
        f->calls = 0;
        f->fail_at = failures + 1;
        done = breakdown_measure(&device, &work, &breakdown, &error) == FPA_OK && f->calls <= failures;
        HOLDS(done || f->calls > failures);
        HOLDS(failures < 1000);
    }
    HOLDS(failures > 20);
    f->fail_at = 0;
    device_close(&device);
    backend_cuda.unload(&module);
    HOLDS(nothing_is_held(f));
    return 0;
}

static void when_any_call_of_the_driver_fails_the_measurement_does(void **state)
{
    in_child(fake_path, every_failure_is_told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_breakdown_has_each_kernel_its_launches_and_its_time),
        cmocka_unit_test(when_any_call_of_the_driver_fails_the_measurement_does),
    };
    return cmocka_run_group_tests_name("breakdown", tests, compile_fake, remove_fake);
}
