#include "view.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

static const struct {
    uint8_t code, bits;
} types[FPA_DTYPES] = {
    [FPA_F32] = {kDLFloat, 32},
    [FPA_BF16] = {kDLBfloat, 16},
    [FPA_F16] = {kDLFloat, 16},
};

enum { DLPACK_BOOL = 6 }; /* kDLBool, since DLPack 0.8 */

size_t view_item(const fpa_view *view)
{
    return view->is_mask ? 1 : view->is_index ? view->tensor->dtype.bits / 8 : dtype_size(view->dtype);
}

/* "the CPU", "CUDA device 1". */
static void describe_device(DLDevice device, char text[40])
{
    if (device.device_type == kDLCPU)
        snprintf(text, 40, "the CPU");
    else if (device.device_type == kDLCUDA)
        snprintf(text, 40, "CUDA device %d", (int)device.device_id);
    else if (device.device_type == kDLCUDAManaged)
        snprintf(text, 40, "CUDA device %d (managed)", (int)device.device_id);
    else
        snprintf(text, 40, "device %d of DLPack's type %d", (int)device.device_id, (int)device.device_type);
}

/* Whether a tensor's device is the wanted one. All numbers of kDLCPU are the same device; managed memory counts as
 * the GPU's own. */
static bool is_there(DLDevice device, DLDevice wanted)
{
    bool managed = wanted.device_type == kDLCUDA && device.device_type == kDLCUDAManaged;
    return (device.device_type == wanted.device_type || managed) &&
           (wanted.device_type == kDLCPU || device.device_id == wanted.device_id);
}

void checks_fail(fpa_checks *c, fpa_status code, const char *where, const char *format, ...)
{
    va_list arguments;
    if (c->status)
        return;
    va_start(arguments, format);
    c->status = fail_list(c->error, code, where, format, arguments);
    va_end(arguments);
}

static void check_device(fpa_checks *c, const fpa_view *view)
{
    char its[40], wanted[40];
    if (c->status || is_there(view->tensor->device, view->device))
        return;
    describe_device(view->tensor->device, its);
    describe_device(view->device, wanted);
    checks_fail(c, FPA_INVALID, view->name, "lies on %s, but this kernel computes on %s", its, wanted);
}

static void check_index_type(fpa_checks *c, const fpa_view *view)
{
    const DLDataType type = view->tensor->dtype;
    if (type.code != kDLInt || type.lanes != 1 ||
        (type.bits != 32 && !(type.bits == 64 && view->may_be_wide)))
        checks_fail(
            c, FPA_INVALID, view->name,
            "has the DLPack type (code %d, %d bits, %d lanes), but int32%s (code %d, 32 bits%s, 1 lane) "
            "is needed",
            type.code, type.bits, type.lanes, view->may_be_wide ? " or int64" : "", kDLInt,
            view->may_be_wide ? " or 64" : "");
}

static void check_type(fpa_checks *c, const fpa_view *view)
{
    const DLDataType type = view->tensor->dtype;
    const bool is_byte = type.bits == 8 && type.lanes == 1;
    if (view->is_index)
        check_index_type(c, view);
    else if (view->is_mask && !(is_byte && (type.code == DLPACK_BOOL || type.code == kDLUInt)))
        checks_fail(c, FPA_INVALID, view->name,
                    "has the DLPack type (code %d, %d bits, %d lanes), but bool (code %d, 8 bits, 1 lane) or "
                    "uint8 (code %d, 8 bits, 1 lane) is needed",
                    type.code, type.bits, type.lanes, DLPACK_BOOL, kDLUInt);
    else if (!view->is_mask && (type.code != types[view->dtype].code ||
                                type.bits != types[view->dtype].bits || type.lanes != 1))
        checks_fail(
            c, FPA_INVALID, view->name,
            "has the DLPack type (code %d, %d bits, %d lanes), but %s (code %d, %d bits, 1 lane) is needed",
            type.code, type.bits, type.lanes, dtype_name(view->dtype), types[view->dtype].code,
            types[view->dtype].bits);
}

static void check_kind(fpa_checks *c, const fpa_view *view)
{
    const DLTensor *t = view->tensor;
    if (!t)
        checks_fail(c, FPA_INVALID, view->name, "is NULL, but it is needed");
    if (!t || c->status)
        return;
    check_type(c, view);
    if (t->ndim != view->axes)
        checks_fail(c, FPA_INVALID, view->name, "has %d axes, but %d are needed", t->ndim, view->axes);
    if (!t->shape)
        checks_fail(c, FPA_INVALID, view->name, "has no shape (NULL)");
}

/* Copies lengths and strides; the stride of an axis with at most one element does not matter. */
static void copy_axes(fpa_checks *c, fpa_view *view)
{
    const DLTensor *t = view->tensor;
    int64_t step = 1; /* stride in C order */
    for (int a = view->axes - 1; a >= 0 && !c->status; a--) {
        view->shape[a] = t->shape[a];
        if (t->shape[a] < 0)
            checks_fail(c, FPA_INVALID, view->name, "axis %d has the negative length %lld", a,
                        (long long)t->shape[a]);
        view->stride[a] = t->strides ? t->strides[a] : step;
        if (__builtin_mul_overflow(step, t->shape[a] ? t->shape[a] : 1, &step))
            checks_fail(c, FPA_INVALID, view->name, "has more than 2^63 elements");
        if (t->shape[a] <= 1)
            view->stride[a] = 0;
    }
}

static bool is_empty(const fpa_view *view)
{
    for (int a = 0; a < view->axes; a++)
        if (view->shape[a] == 0)
            return true;
    return false;
}

/* Computes the range of bytes that the elements occupy, relative to data. */
static void measure(fpa_checks *c, fpa_view *view)
{
    int64_t low = 0, high = 1;
    bool over = false;
    view->low = view->high = 0;
    if (c->status || is_empty(view))
        return;
    const int64_t item = (int64_t)view_item(view);
    for (int a = 0; a < view->axes; a++) {
        int64_t reach;
        over |= __builtin_mul_overflow(view->shape[a] - 1, view->stride[a], &reach);
        int64_t *end = reach < 0 ? &low : &high;
        over |= __builtin_add_overflow(*end, reach, end);
    }
    over |= __builtin_mul_overflow(low, item, &view->low);
    over |= __builtin_mul_overflow(high, item, &view->high);
    if (over)
        checks_fail(c, FPA_INVALID, view->name, "reaches over more than 2^63 bytes");
}

static void check_address(fpa_checks *c, fpa_view *view)
{
    const DLTensor *t = view->tensor;
    if (c->status)
        return;
    view->data = t->data ? (char *)t->data + t->byte_offset : NULL;
    if (!view->with_data || view->low == view->high)
        return;
    if (!t->data)
        checks_fail(c, FPA_INVALID, view->name, "has elements, but no memory (data is NULL)");
    if ((uintptr_t)view->data % view_item(view))
        checks_fail(c, FPA_INVALID, view->name, "starts at an address that is no multiple of %zu bytes",
                    view_item(view));
}

void view_check(fpa_checks *c, fpa_view *view)
{
    check_kind(c, view);
    check_device(c, view);
    copy_axes(c, view);
    measure(c, view);
    check_address(c, view);
}

void *view_address(const fpa_view *view)
{
    return view->data ? view->data : (void *)(uintptr_t)view->tensor;
}

void view_axis(fpa_checks *c, const fpa_view *view, int axis, int64_t wanted, const char *of, const char *why)
{
    if (view->shape[axis] != wanted)
        checks_fail(c, FPA_INVALID, view->name, "axis %d has %lld %s, but %s %lld", axis,
                    (long long)view->shape[axis], of, why, (long long)wanted);
}

void view_contiguous(fpa_checks *c, const fpa_view *view, int first)
{
    int64_t step = 1;
    for (int a = view->axes - 1; a >= first && !c->status; a--) {
        if (view->shape[a] > 1 && view->stride[a] != step)
            checks_fail(c, FPA_INVALID, view->name,
                        "axis %d has the stride %lld, but only %lld (contiguous) is supported", a,
                        (long long)view->stride[a], (long long)step);
        step *= view->shape[a];
    }
}

static int64_t distance(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

/* Checks that no two elements share memory, by a sufficient condition that holds for every layout that permutes,
 * slices or pads axes: from the innermost axis outwards, each stride is at least the range of all inner axes. */
void view_distinct(fpa_checks *c, const fpa_view *view)
{
    int order[VIEW_MAX_AXES];
    int64_t reach = 1;
    if (c->status || view->low == view->high)
        return;
    for (int a = 0; a < view->axes; a++) {
        int at = a;
        for (; at > 0 && distance(view->stride[order[at - 1]]) > distance(view->stride[a]); at--)
            order[at] = order[at - 1];
        order[at] = a;
    }
    for (int i = 0; i < view->axes; i++) {
        int a = order[i];
        if (view->shape[a] <= 1)
            continue;
        if (distance(view->stride[a]) < reach)
            checks_fail(c, FPA_INVALID, view->name,
                        "is written, but its elements overlap: axis %d has the stride %lld", a,
                        (long long)view->stride[a]);
        reach += (view->shape[a] - 1) * distance(view->stride[a]);
    }
}

/* The bytes of an array's elements modulo a period, as an interval on a circle; false: it is longer than that. */
static bool residues(const fpa_view *view, int64_t period, int64_t *first, int64_t *length)
{
    const int64_t item = (int64_t)view_item(view);
    int64_t low = 0, high = view->axes ? item : view->high;
    for (int a = 0; a < view->axes; a++) {
        const int64_t step = view->stride[a] * item, reach = (view->shape[a] - 1) * step;
        if (step % period)
            *(reach < 0 ? &low : &high) += reach;
    }
    *first = (int64_t)(((uintptr_t)view->data + (uintptr_t)low) % (uintptr_t)period);
    *length = high - low;
    return *length <= period;
}

static bool apart_modulo(const fpa_view *a, const fpa_view *b, int64_t period)
{
    int64_t first_a, first_b, length_a, length_b;
    if (!residues(a, period, &first_a, &length_a) || !residues(b, period, &first_b, &length_b))
        return false;
    const int64_t between = first_b - first_a + (first_b < first_a ? period : 0);
    return between >= length_a && between + length_b <= period;
}

/* Whether two arrays are interleaved without overlap in a larger array, as q, k and v of each token are if one
 * product computes them: modulo the stride of one of their axes, each has bytes of its own. */
static bool interleave(const fpa_view *a, const fpa_view *b)
{
    for (int i = 0; i < a->axes; i++) {
        const int64_t period = distance(a->stride[i]) * (int64_t)view_item(a);
        if (period && apart_modulo(a, b, period))
            return true;
    }
    return false;
}

void view_apart(fpa_checks *c, const fpa_view *output, const fpa_view *other)
{
    uintptr_t a = (uintptr_t)output->data, b = (uintptr_t)other->data;
    if (output->low == output->high || other->low == other->high)
        return;
    if (a + (uintptr_t)output->high > b + (uintptr_t)other->low &&
        b + (uintptr_t)other->high > a + (uintptr_t)output->low && !interleave(output, other) &&
        !interleave(other, output))
        checks_fail(c, FPA_INVALID, output->name, "is written, but its memory overlaps that of %s",
                    other->name);
}

fpa_view view_workspace(fpa_checks *c, void *workspace, size_t size, size_t needed, bool on_device,
                        const char *query)
{
    const size_t alignment = on_device ? 256 : 64; /* the alignment of allocated device memory */
    if (size < needed || (needed && !workspace))
        checks_fail(c, FPA_INVALID, "workspace", "has %zu bytes, but this call needs %zu (%s)",
                    workspace ? size : 0, needed, query);
    if (needed && (uintptr_t)workspace % alignment)
        checks_fail(c, FPA_INVALID, "workspace", "is not aligned to %zu bytes", alignment);
    return (fpa_view){.name = "workspace", .data = workspace, .high = (int64_t)needed};
}
