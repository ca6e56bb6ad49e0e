#include "tensors_fixture.h"

static void all_to(fixture *f, DLDevice device)
{
    operand *all[] = {&f->q,        &f->k,         &f->v,          &f->o,         &f->gate,
                      &f->state_in, &f->state_out, &f->weights[0], &f->weights[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        all[i]->tensor.device = device;
}

static void every_tensor_elsewhere_is_refused_with_both_devices(void **state)
{
    static const struct {
        size_t operand; /* offset in fixture */
        const char *where;
    } cases[] = {
        {offsetof(fixture, q), "q"},
        {offsetof(fixture, k), "k"},
        {offsetof(fixture, v), "v"},
        {offsetof(fixture, o), "o"},
        {offsetof(fixture, gate), "log_gate"},
        {offsetof(fixture, state_in), "state_in"},
        {offsetof(fixture, state_out), "state_out"},
        {offsetof(fixture, weights[0]), "weights[0] (W1)"},
        {offsetof(fixture, weights[1]), "weights[1] (W2)"},
    };
    static const struct {
        DLDevice kernel, tensor;
        const char *message;
    } devices[] = {
        {{kDLCPU, 0}, {kDLCUDA, 1}, "lies on CUDA device 1, but this kernel computes on the CPU"},
        {{kDLCUDA, 1}, {kDLCPU, 0}, "lies on the CPU, but this kernel computes on CUDA device 1"},
        {{kDLCUDA, 1}, {kDLCUDA, 0}, "lies on CUDA device 0, but this kernel computes on CUDA device 1"},
        {{kDLCUDA, 1}, {kDLCUDAManaged, 0}, "lies on CUDA device 0 (managed), but this"},
        {{kDLCUDA, 1}, {kDLCUDAHost, 0}, "lies on device 0 of DLPack's type 3, but this"},
        {{kDLCPU, 0}, {kDLROCM, 2}, "lies on device 2 of DLPack's type 10, but this"},
    };
    fixture *f = *state;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            f->device = devices[d].kernel;
            all_to(f, f->device);
            ((operand *)((char *)f + cases[i].operand))->tensor.device = devices[d].tensor;
            expect_refused(f, cases[i].where, devices[d].message);
        }
}

static void managed_memory_is_the_gpus_and_there_is_one_cpu(void **state)
{
    fixture *f = *state;
    f->k.tensor.device.device_id = 7;
    expect_fine(f);
    f->device = (DLDevice){kDLCUDA, 2};
    all_to(f, f->device);
    f->k.tensor.device.device_type = kDLCUDAManaged;
    expect_fine(f);
}

static void a_stream_is_for_a_gpu(void **state)
{
    fixture *f = *state;
    f->tensors.stream = f;
    expect_refused(f, "stream", "kernels for the CPU have no streams");
    f->device = (DLDevice){kDLCUDA, 0};
    all_to(f, f->device);
    expect_fine(f);
}

#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make_fixture, drop_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(every_tensor_elsewhere_is_refused_with_both_devices),
        CLAIM(managed_memory_is_the_gpus_and_there_is_one_cpu),
        CLAIM(a_stream_is_for_a_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
