/* tensors_apart: checks that a call writes no memory that another part of it reads. */
#include "tensors.h"
#include "view.h"

/* Checks written memory against the tensors that a call reads, which have been checked by themselves. */
static void keep_from(fpa_checks *c, const fpa_head *head, const fpa_view *written,
                      const fpa_tensors *tensors)
{
    const fpa_dtype dtype = head->dtype, state = head->state_dtype;
    const struct {
        const char *name;
        const DLTensor *tensor;
        fpa_dtype dtype;
        bool is_mask;
    } all[] = {
        {"q", tensors->q, dtype, false},
        {"k", tensors->k, dtype, false},
        {"v", tensors->v, dtype, false},
        {"o", tensors->o, dtype, false},
        {"log_gate", tensors->log_gate, FPA_F32, false},
        {"positions", tensors->positions, FPA_F32, false},
        {"key_mask", tensors->key_mask, FPA_F32, true},
        {"state_in", tensors->state_in, state, false},
        {"state_out", tensors->state_out, state, false},
        {"den", tensors->den, FPA_F32, false},
        {"cu_seqlens", tensors->cu_seqlens, FPA_F32, false},
        {"state_index", tensors->state_index, FPA_F32, false},
        {"state_out_index", tensors->state_out_index, FPA_F32, false},
    };
    const size_t count = sizeof all / sizeof *all, weights = (size_t)head_run_time_matrices(head);
    for (size_t i = 0; i < count + weights; i++) {
        const DLTensor *tensor = i < count ? all[i].tensor : tensors->weights[i - count];
        fpa_view view = {.name = i < count ? all[i].name : "weights", .with_data = true};
        if (!tensor)
            continue;
        view.tensor = tensor;
        view.device = tensor->device;
        view.dtype = i < count ? all[i].dtype : FPA_F32;
        view.is_mask = i < count && all[i].is_mask;
        view.is_index = view.may_be_wide = i < count && tensor->dtype.code == kDLInt;
        view.axes = tensor->ndim;
        view_check(c, &view);
        view_apart(c, written, &view);
    }
}

fpa_status tensors_workspace(const fpa_head *head, const fpa_tensors *tensors, void *workspace, size_t size,
                             fpa_error *error)
{
    const fpa_view written = {.name = "workspace", .data = workspace, .high = (int64_t)size};
    fpa_checks c = {error, FPA_OK};
    keep_from(&c, head, &written, tensors);
    return c.status;
}

fpa_status tensors_apart(const fpa_head *head, const fpa_tensors *tensors, const fpa_tensors *others,
                         fpa_error *error)
{
    const struct {
        const char *name;
        const DLTensor *tensor;
        fpa_dtype dtype;
    } outputs[] = {{"o", tensors->o, head->dtype},
                   {"den", tensors->den, FPA_F32},
                   {"state_out", tensors->state_out, head->state_dtype}};
    fpa_checks c = {error, FPA_OK};
    for (int i = 0; i < 3; i++) {
        fpa_view view = {.name = outputs[i].name,
                         .tensor = outputs[i].tensor,
                         .dtype = outputs[i].dtype,
                         .with_data = true};
        if (!view.tensor)
            continue;
        view.device = view.tensor->device;
        view.axes = view.tensor->ndim;
        view_check(&c, &view);
        keep_from(&c, head, &view, others);
    }
    return c.status;
}
