/* objects: calls with arrays of a language binding, which are read by functions of that language, and usually look
 * like those of the previous call. */
#include "fpa.h"

#include <stdbool.h>

/* Whether two tensors are equal except for the address. The stride of an axis of one element does not matter. */
static bool lies_as(const DLTensor *now, const DLTensor *before)
{
    if (now->ndim != before->ndim || now->device.device_type != before->device.device_type ||
        now->device.device_id != before->device.device_id || now->dtype.code != before->dtype.code ||
        now->dtype.bits != before->dtype.bits || now->dtype.lanes != before->dtype.lanes || !now->strides)
        return false;
    for (int axis = 0; axis < now->ndim; axis++)
        if (now->shape[axis] != before->shape[axis] ||
            (now->shape[axis] > 1 && now->strides[axis] != before->strides[axis]))
            return false;
    return true;
}

/* Sets the tensors' addresses to those of the objects, if all of them look as before; else changes nothing. */
static bool point(const fpa_object_call *call, void *const objects[5])
{
    const fpa_tensors *tensors = call->tensors;
    /* fpa_tensors has const pointers, since calls do not write to inputs' DLTensors; here their owner asks for it */
    DLTensor *const before[] = {(DLTensor *)tensors->q, (DLTensor *)tensors->k, (DLTensor *)tensors->v,
                                (DLTensor *)tensors->state_in, tensors->o};
    enum { COUNT = sizeof before / sizeof *before };
    DLTensor now[COUNT];
    for (int i = 0; i < COUNT; i++)
        if (before[i] && (call->read(objects[i], &now[i]) || !lies_as(&now[i], before[i])))
            return false;
    for (int i = 0; i < COUNT; i++)
        if (before[i]) {
            before[i]->data = now[i].data;
            before[i]->byte_offset = now[i].byte_offset;
        }
    return true;
}

int fpa_forward_objects(const fpa_object_call *call, void *q, void *k, void *v, void *state, void *o,
                        void *workspace)
{
    void *const objects[] = {q, k, v, state, o};
    const DLDevice device = call->tensors->k->device;
    if (!point(call, objects))
        return FPA_OBJECTS_CHANGED;
    if (device.device_type != kDLCPU &&
        call->stream(device.device_type, device.device_id, &call->tensors->stream))
        return FPA_OBJECTS_CHANGED;
    void *lock = call->release();
    const fpa_status status =
        fpa_forward(call->kernel, call->form, call->tensors, workspace, call->workspace_size, call->error);
    call->acquire(lock);
    return (int)status;
}
