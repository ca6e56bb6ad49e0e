#include "claims.h"
#include "hand_module.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* hand_module behind addresses of its own. */
static fpa_module computing;
static const fpa_head *device_head;

/* An address of the device is one of this process far out of its range. */
static const uintptr_t far_away = (uintptr_t)1 << 62;
enum { MANY_ALLOCATIONS = 2048 };
static struct {
    unsigned char *bytes;
    size_t size;
} allocations[MANY_ALLOCATIONS];
struct hand_device hand_device;
/* One thread has the device at a time, from enter to leave: modules here are written for one. */
static pthread_mutex_t device_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static fpa_status call_device(fpa_error *error)
{
    hand_device.calls++;
    return hand_device.calls == hand_device.failing ? (fail)(error, FPA_DEVICE, "device", "was told to fail")
                                                    : FPA_OK;
}

static fpa_status give_up_as(fpa_status status)
{
    pthread_mutex_unlock(&device_lock);
    return status;
}

static fpa_status give_up(void)
{
    return give_up_as(FPA_DEVICE);
}

/* The bytes behind an address of the device, of which size have to be there. */
static void *bytes_at(const void *address, size_t size)
{
    uintptr_t at = (uintptr_t)address - far_away;
    if (!address)
        return NULL;
    for (int i = 0; i < MANY_ALLOCATIONS; i++) {
        uintptr_t first = (uintptr_t)allocations[i].bytes;
        if (first && at >= first && at - first <= allocations[i].size &&
            size <= allocations[i].size - (at - first))
            return (void *)at;
    }
    fail_msg("%p (%zu bytes) is no address of the device", address, size);
    return NULL;
}

static fpa_status allocate(const fpa_module *module, size_t size, void **address, fpa_error *error)
{
    int i = 0;
    pthread_mutex_lock(&device_lock);
    if (call_device(error) != FPA_OK)
        return give_up();
    if (++hand_device.asked == hand_device.lacking)
        return give_up_as((fail)(error, FPA_NO_MEMORY, "device", "was told to have no memory"));
    while (i < MANY_ALLOCATIONS - 1 && allocations[i].bytes)
        i++;
    assert_null(allocations[i].bytes);
    allocations[i].size = size;
    allocations[i].bytes = aligned_alloc(256, (size + 256) / 256 * 256);
    assert_non_null(allocations[i].bytes);
    memset(allocations[i].bytes, 0x5a, size);
    hand_device.allocations++;
    *address = (void *)((uintptr_t)allocations[i].bytes + far_away);
    pthread_mutex_unlock(&device_lock);
    return FPA_OK;
}

static void release(const fpa_module *module, void *address)
{
    pthread_mutex_lock(&device_lock);
    unsigned char *bytes = bytes_at(address, 0);
    for (int i = 0; i < MANY_ALLOCATIONS && bytes; i++)
        if (allocations[i].bytes == bytes) {
            free(bytes);
            allocations[i].bytes = NULL;
            hand_device.allocations--;
        }
    pthread_mutex_unlock(&device_lock);
}

static fpa_status upload(const fpa_module *module, void *to, const void *from, size_t size, fpa_error *error)
{
    pthread_mutex_lock(&device_lock);
    if (call_device(error) != FPA_OK)
        return give_up();
    memcpy(bytes_at(to, size), from, size);
    pthread_mutex_unlock(&device_lock);
    return FPA_OK;
}

static fpa_status fill(const fpa_module *module, void *to, uint16_t unit, size_t size, fpa_error *error)
{
    pthread_mutex_lock(&device_lock);
    if (call_device(error) != FPA_OK)
        return give_up();
    unsigned char *bytes = bytes_at(to, size);
    for (size_t i = 0; i + sizeof unit <= size; i += sizeof unit)
        memcpy(bytes + i, &unit, sizeof unit);
    pthread_mutex_unlock(&device_lock);
    return FPA_OK;
}

static fpa_status download(const fpa_module *module, void *to, const void *from, size_t size,
                           fpa_error *error)
{
    pthread_mutex_lock(&device_lock);
    if (call_device(error) != FPA_OK)
        return give_up();
    memcpy(to, bytes_at(from, size), size);
    pthread_mutex_unlock(&device_lock);
    return FPA_OK;
}

static fpa_status enter(const fpa_module *module, fpa_error *error)
{
    pthread_mutex_lock(&device_lock);
    if (call_device(error) != FPA_OK)
        return give_up();
    hand_device.entered++;
    return FPA_OK;
}

static void leave(const fpa_module *module)
{
    hand_device.entered--;
    pthread_mutex_unlock(&device_lock);
}

static fpa_status finish(const fpa_module *module, fpa_error *error)
{
    pthread_mutex_lock(&device_lock);
    const fpa_status status = call_device(error);
    pthread_mutex_unlock(&device_lock);
    return status;
}

static fpa_status run_device_module(const fpa_module *module, int form, const struct fpa_launch *a,
                                    const fpa_candidate *candidate, void *stream, fpa_error *error)
{
    struct fpa_launch launch = *a;
    int slots = 0;
    const float *weights[device_head->matrix_count + 1];
    assert_int_equal(hand_device.entered, 1);
    if (call_device(error) != FPA_OK)
        return FPA_DEVICE;
    for (int m = 0; m < device_head->matrix_count; m++)
        if (device_head->matrices[m].kind != FPA_MATRIX_CONSTANT) {
            weights[slots] = bytes_at(a->weights[slots], 0);
            slots++;
        }
    launch.q = bytes_at(a->q, 0);
    launch.k = bytes_at(a->k, 0);
    launch.v = bytes_at(a->v, 0);
    launch.o = bytes_at(a->o, 0);
    launch.log_gate = bytes_at(a->log_gate, 0);
    launch.positions = bytes_at(a->positions, 0);
    launch.key_mask = bytes_at(a->key_mask, 0);
    launch.state_in = bytes_at(a->state_in, 0);
    launch.state_out = bytes_at(a->state_out, 0);
    assert_int_equal((uintptr_t)a->workspace % 256, 0);
    launch.workspace = bytes_at(a->workspace, a->workspace_size);
    launch.weights = weights;
    return computing.forward(module, form, &launch, candidate, stream, error);
}

static void unload(fpa_module *module)
{
    computing.backend->unload(module);
}

static const fpa_memory device_memory = {
    .allocate = allocate,
    .release = release,
    .fill = fill,
    .upload = upload,
    .download = download,
    .enter = enter,
    .leave = leave,
    .finish = finish,
};
static const fpa_backend device_backend = {
    .name = "test device", .device_type = kDLCUDA, .memory = &device_memory, .unload = unload};

fpa_module hand_device_module(const fpa_head *head, fault kind)
{
    fpa_module module = computing = hand_module(head, kind);
    device_head = head;
    hand_device = (struct hand_device){0};
    module.backend = &device_backend;
    module.device = HAND_DEVICE;
    module.forward = run_device_module;
    return module;
}

fpa_status hand_device_verify(const fpa_head *head, fault kind, fpa_verdict *verdict, fpa_error *error)
{
    fpa_module module = hand_device_module(head, kind);
    fpa_facts facts = hand_facts(head);
    return verify_module(head, &facts, &module, verdict, error);
}
