/* objects: a call with a binding's arrays, which their own language describes, like the call before. */
#include "fpa.h"

#include <stdbool.h>

/* Everything but the address is the same. The stride of an axis of one element says nothing. */
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

/* The tensors' addresses become those of the objects; not unless all of them lie as before. */
static bool point(const fpa_object_call *call, void *const objects[5])
{
    const fpa_tensors *tensors = call->tensors;
    /* fpa_tensors promises that calls do not write to inputs' DLTensors, whose owner asks for it here */
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
