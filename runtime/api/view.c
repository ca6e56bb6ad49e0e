#include "view.h"

#include <stdbool.h>
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

/* There is one CPU, whatever its number; managed memory is as good as the GPU's own. */
static bool is_there(DLDevice device, DLDevice wanted)
{
    bool managed = wanted.device_type == kDLCUDA && device.device_type == kDLCUDAManaged;
    return (device.device_type == wanted.device_type || managed) &&
           (wanted.device_type == kDLCPU || device.device_id == wanted.device_id);
}

static fpa_status check_device(const fpa_view *view, fpa_error *error)
{
    char its[40], wanted[40];
    if (is_there(view->tensor->device, view->device))
        return FPA_OK;
    describe_device(view->tensor->device, its);
    describe_device(view->device, wanted);
    return fail(error, FPA_INVALID, view->name, "lies on %s, but this kernel computes on %s", its, wanted);
}

static fpa_status check_index_type(const fpa_view *view, fpa_error *error)
{
    const DLDataType type = view->tensor->dtype;
    if (type.code == kDLInt && type.lanes == 1 && (type.bits == 32 || (type.bits == 64 && view->may_be_wide)))
        return FPA_OK;
    return fail(error, FPA_INVALID, view->name,
                "has the DLPack type (code %d, %d bits, %d lanes), but int32%s (code %d, 32 bits%s, 1 lane) "
                "is needed",
                type.code, type.bits, type.lanes, view->may_be_wide ? " or int64" : "", kDLInt,
                view->may_be_wide ? " or 64" : "");
}

static fpa_status check_type(const fpa_view *view, fpa_error *error)
{
    const DLTensor *t = view->tensor;
    const bool is_byte = t->dtype.bits == 8 && t->dtype.lanes == 1;
    if (view->is_index)
        return check_index_type(view, error);
    if (view->is_mask && is_byte && (t->dtype.code == DLPACK_BOOL || t->dtype.code == kDLUInt))
        return FPA_OK;
    if (view->is_mask)
        return fail(error, FPA_INVALID, view->name,
                    "has the DLPack type (code %d, %d bits, %d lanes), but bool (code %d, 8 bits, 1 lane) or "
                    "uint8 (code %d, 8 bits, 1 lane) is needed",
                    t->dtype.code, t->dtype.bits, t->dtype.lanes, DLPACK_BOOL, kDLUInt);
    if (t->dtype.code != types[view->dtype].code || t->dtype.bits != types[view->dtype].bits ||
        t->dtype.lanes != 1)
        return fail(
            error, FPA_INVALID, view->name,
            "has the DLPack type (code %d, %d bits, %d lanes), but %s (code %d, %d bits, 1 lane) is needed",
            t->dtype.code, t->dtype.bits, t->dtype.lanes, dtype_name(view->dtype), types[view->dtype].code,
            types[view->dtype].bits);
    return FPA_OK;
}

static fpa_status check_kind(const fpa_view *view, fpa_error *error)
{
    const DLTensor *t = view->tensor;
    if (!t)
        return fail(error, FPA_INVALID, view->name, "is NULL, but it is needed");
    fpa_status status = check_type(view, error);
    if (status)
        return status;
    if (t->ndim != view->axes)
        return fail(error, FPA_INVALID, view->name, "has %d axes, but %d are needed", t->ndim, view->axes);
    if (!t->shape)
        return fail(error, FPA_INVALID, view->name, "has no shape (NULL)");
    return FPA_OK;
}

/* Lengths and strides; an axis of at most one element has no stride that matters. */
static fpa_status copy_axes(fpa_view *view, fpa_error *error)
{
    const DLTensor *t = view->tensor;
    int64_t step = 1; /* of C order */
    for (int a = view->axes - 1; a >= 0; a--) {
        view->shape[a] = t->shape[a];
        if (t->shape[a] < 0)
            return fail(error, FPA_INVALID, view->name, "axis %d has the negative length %lld", a,
                        (long long)t->shape[a]);
        view->stride[a] = t->strides ? t->strides[a] : step;
        if (__builtin_mul_overflow(step, t->shape[a] ? t->shape[a] : 1, &step))
            return fail(error, FPA_INVALID, view->name, "has more than 2^63 elements");
        if (t->shape[a] <= 1)
            view->stride[a] = 0;
    }
    return FPA_OK;
}

static bool is_empty(const fpa_view *view)
{
    for (int a = 0; a < view->axes; a++)
        if (view->shape[a] == 0)
            return true;
    return false;
}

/* Bytes that the elements reach over, below and above data. */
static fpa_status measure(fpa_view *view, fpa_error *error)
{
    int64_t low = 0, high = 1, item = (int64_t)view_item(view);
    bool over = false;
    view->low = view->high = 0;
    if (is_empty(view))
        return FPA_OK;
    for (int a = 0; a < view->axes; a++) {
        int64_t reach;
        over |= __builtin_mul_overflow(view->shape[a] - 1, view->stride[a], &reach);
        int64_t *end = reach < 0 ? &low : &high;
        over |= __builtin_add_overflow(*end, reach, end);
    }
    over |= __builtin_mul_overflow(low, item, &view->low);
    over |= __builtin_mul_overflow(high, item, &view->high);
    if (over)
        return fail(error, FPA_INVALID, view->name, "reaches over more than 2^63 bytes");
    return FPA_OK;
}

static fpa_status check_address(fpa_view *view, fpa_error *error)
{
    const DLTensor *t = view->tensor;
    size_t item = view_item(view);
    view->data = t->data ? (char *)t->data + t->byte_offset : NULL;
    if (!view->with_data || view->low == view->high)
        return FPA_OK;
    if (!t->data)
        return fail(error, FPA_INVALID, view->name, "has elements, but no memory (data is NULL)");
    if ((uintptr_t)view->data % item)
        return fail(error, FPA_INVALID, view->name, "starts at an address that is no multiple of %zu bytes",
                    item);
    return FPA_OK;
}

fpa_status view_check(fpa_view *view, fpa_error *error)
{
    fpa_status status = check_kind(view, error);
    if (!status)
        status = check_device(view, error);
    if (!status)
        status = copy_axes(view, error);
    if (!status)
        status = measure(view, error);
    return status ? status : check_address(view, error);
}

fpa_status view_axis(const fpa_view *view, int axis, int64_t wanted, const char *of, const char *why,
                     fpa_error *error)
{
    if (view->shape[axis] == wanted)
        return FPA_OK;
    return fail(error, FPA_INVALID, view->name, "axis %d has %lld %s, but %s %lld", axis,
                (long long)view->shape[axis], of, why, (long long)wanted);
}

fpa_status view_contiguous(const fpa_view *view, int first, fpa_error *error)
{
    int64_t step = 1;
    for (int a = view->axes - 1; a >= first; a--) {
        if (view->shape[a] > 1 && view->stride[a] != step)
            return fail(error, FPA_INVALID, view->name,
                        "axis %d has the stride %lld, but only %lld (contiguous) is supported", a,
                        (long long)view->stride[a], (long long)step);
        step *= view->shape[a];
    }
    return FPA_OK;
}

static int64_t distance(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

/* Sufficient, and true for every layout that permutes, slices or pads axes: from the innermost
 * axis outwards, each step jumps over all that the axes inside of it reach. */
fpa_status view_distinct(const fpa_view *view, fpa_error *error)
{
    int order[VIEW_MAX_AXES];
    int64_t reach = 1;
    if (view->low == view->high)
        return FPA_OK;
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
            return fail(error, FPA_INVALID, view->name,
                        "is written, but its elements overlap: axis %d has the stride %lld", a,
                        (long long)view->stride[a]);
        reach += (view->shape[a] - 1) * distance(view->stride[a]);
    }
    return FPA_OK;
}

fpa_status view_apart(const fpa_view *output, const fpa_view *other, fpa_error *error)
{
    uintptr_t a = (uintptr_t)output->data, b = (uintptr_t)other->data;
    if (output->low == output->high || other->low == other->high)
        return FPA_OK;
    if (a + (uintptr_t)output->high <= b + (uintptr_t)other->low ||
        b + (uintptr_t)other->high <= a + (uintptr_t)output->low)
        return FPA_OK;
    return fail(error, FPA_INVALID, output->name, "is written, but its memory overlaps that of %s",
                other->name);
}
