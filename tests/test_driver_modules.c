/* Modules that the driver loads, and device memory. */
#include "runtime/cuda/image.h"
#include "runtime/cuda/module.h"
#include "claims.h"
#include "fake_driver.h"

#include <stdlib.h>
#include <string.h>

static int it_is_loaded_and_given_back(void)
{
    fpa_error error = {0};
    fpa_module module;
    struct fake_state *f = fake_with_geometry();
    HOLDS(load(0, &module, &error) == FPA_OK);
    const struct fpa_cuda_module *cuda = module.handle;
    HOLDS(module.backend == &backend_cuda && module.workspace && module.forward && module.candidates);
    HOLDS(f->contexts == 1 && f->modules == 1 && f->depth == 0);
    HOLDS(memcmp(&cuda->geometry, &f->geometry, sizeof f->geometry) == 0);
    HOLDS(!cuda->kernel[CUDA_GATE_SCAN] && cuda->kernel[CUDA_CHUNK_STATE] &&
          cuda->kernel[CUDA_SEGMENT_SCAN] && cuda->kernel[CUDA_CHUNK_OUTPUT] &&
          cuda->kernel[CUDA_FUSED_CHUNK] && cuda->kernel[CUDA_DECODE] && cuda->kernel[CUDA_SPLIT_REDUCTION]);
    HOLDS(cuda->room.multiprocessors == 132 && cuda->room.shared_memory == 227 * 1024);
    HOLDS(cuda->room.occupancy[CUDA_CHUNK_STATE] == 2 && cuda->room.occupancy[CUDA_CHUNK_OUTPUT] == 2 &&
          cuda->room.occupancy[CUDA_FUSED_CHUNK] == 2 && cuda->room.occupancy[CUDA_DECODE] == 2);
    HOLDS(strcmp(cuda->name, "toy") == 0 && cuda->device == 0);
    backend_cuda.unload(&module);
    HOLDS(nothing_is_held(f) && !module.handle);
    return 0;
}

static void a_module_holds_its_context_until_it_is_unloaded(void **state)
{
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
    f->missing = "toy_chunk_output";
    HOLDS(refused(FPA_LOAD, "no kernel toy_chunk_output") == 0);
    *f = good;
    f->geometry.version++;
    HOLDS(refused(FPA_LOAD, "another version of fpac") == 0);
    *f = good;
    f->geometry_size -= 4;
    HOLDS(refused(FPA_LOAD, "another version of fpac") == 0);
    f->geometry_size = 2;
    HOLDS(refused(FPA_LOAD, "has 2 bytes only") == 0);
    *f = good;
    f->geometry.kernel[CUDA_CHUNK_OUTPUT].threads = 2048;
    HOLDS(refused(FPA_LOAD, "chunk_output kernel has invalid sizes (2048 threads") == 0);
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
    HOLDS(strstr(error.message, "not a complete cubin") && f->modules == 0 && f->calls == 0);
    return 0;
}

static void bytes_that_are_no_whole_cubin_never_reach_the_driver(void **state)
{
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
    in_child(fake_path, memory_is_copied_there_and_back);
}

/* Without a stream of their own they come as small ones do. */
static int large_copies_come_piece_by_piece(void)
{
    enum { SIZE = (5 << 19) + 3 };
    static unsigned char there[SIZE], back[SIZE];
    fpa_error error = {0};
    fpa_module module;
    void *address;
    const fpa_memory *memory = backend_cuda.memory;
    struct fake_state *f = fake_with_geometry();
    for (int i = 0; i < SIZE; i++)
        there[i] = (unsigned char)(i * 31 + i / 65536);
    HOLDS(load(0, &module, &error) == FPA_OK);
    HOLDS(memory->allocate(&module, SIZE, &address, &error) == FPA_OK);
    HOLDS(memory->upload(&module, address, there, SIZE, &error) == FPA_OK);
    for (int turn = 0; turn < 3; turn++) {
        memset(back, 0, SIZE);
        f->calls = 0;
        f->fail_at = turn == 0 ? 3 : 0; /* enter, wait, make a stream */
        HOLDS(memory->download(&module, back, address, SIZE, &error) == FPA_OK && f->depth == 0);
        HOLDS(memcmp(there, back, SIZE) == 0 && f->streams == (turn > 0));
    }
    for (int call = 3; call <= 5; call++) {
        f->calls = 0;
        f->fail_at = call;
        HOLDS(memory->download(&module, back, address, SIZE, &error) == FPA_DEVICE && f->depth == 0);
    }
    f->fail_at = 0;
    memory->release(&module, address);
    backend_cuda.unload(&module);
    HOLDS(nothing_is_held(f) && f->streams == 0);
    return 0;
}

static void large_copies_from_a_device_come_by_pages_of_their_own(void **state)
{
    in_child(fake_path, large_copies_come_piece_by_piece);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_module_holds_its_context_until_it_is_unloaded),
        cmocka_unit_test(a_module_of_another_head_version_or_gpu_is_refused),
        cmocka_unit_test(when_any_call_of_a_load_fails_nothing_stays_held),
        cmocka_unit_test(bytes_that_are_no_whole_cubin_never_reach_the_driver),
        cmocka_unit_test(a_module_of_several_images_is_loaded_and_unloaded_whole),
        cmocka_unit_test(device_memory_is_copied_to_and_from_in_the_modules_context),
        cmocka_unit_test(large_copies_from_a_device_come_by_pages_of_their_own),
    };
    return cmocka_run_group_tests(tests, compile_fake, remove_fake);
}
