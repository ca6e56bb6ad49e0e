/* choose: finds what an operand or option names: heads of a spec, a target, a form. */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "bundle_heads.h"
#include "command.h"
#include "head/layer.h"

static int find_index(const fpa_head_list *list, const fpa_head *head)
{
    for (int i = 0; i < list->count; i++) {
        if (list->heads[i] == head)
            return i;
    }
    return 0;
}

static void store_heads_as(fpa_dtype dtype, fpa_head_list *list)
{
    for (int i = 0; i < list->count; i++) {
        list->heads[i]->dtype = dtype;
        if (dtype != FPA_F32)
            list->heads[i]->products = FPA_PRODUCTS_PLAIN; /* tf32x3 is for float32 only */
    }
}

static fpa_status find_range(const fpa_head_list *list, const char *name, const char *spec, int *first,
                             int *end, fpa_error *error)
{
    const fpa_head *head;
    *first = 0;
    *end = list->count;
    if (!name)
        return FPA_OK;
    fpa_status status = head_list_find(list, name, spec, &head, error);
    if (status)
        return status;
    *first = find_index(list, head);
    *end = *first + 1;
    return FPA_OK;
}

static fpa_status select_range(const char *spec, const char *name, bool layers, const char *dtype,
                               fpa_head_list *list, int *first, int *end, fpa_error *error)
{
    fpa_dtype stored = FPA_F32;
    fpa_status status = dtype ? select_dtype(dtype, &stored, error) : FPA_OK;
    if (!status)
        status = load_heads(spec, name, list, error);
    if (status)
        return status;
    if (dtype)
        store_heads_as(stored, list);
    if (layers && name && layer_find(list, name))
        *first = *end = 0;
    else
        status = find_range(list, name, spec, first, end, error);
    if (status)
        head_list_free(list);
    return status;
}

fpa_status select_heads(const char *spec, const char *name, const char *dtype, fpa_head_list *list,
                        int *first, int *end, fpa_error *error)
{
    return select_range(spec, name, false, dtype, list, first, end, error);
}

fpa_status select_with_layers(const char *spec, const char *name, const char *dtype, fpa_head_list *list,
                              int *first, int *end, fpa_error *error)
{
    return select_range(spec, name, true, dtype, list, first, end, error);
}

const char target_help[] = "c[:ISA] or cuda[:sm_NN] (fpac list); c, cuda: the best here";
const char dtype_help[] = "of q, k, v, o: f32, bf16 or f16 (the head's)";
const char device_help[] = "which GPU, of a CUDA target (0)";

static fpa_status unknown_target(const char *name, fpa_error *error)
{
    char names[256] = "";
    for (int i = 0; i < target_count(); i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, ", %s", target_at(i)->name);
    }
    return fail(error, FPA_INVALID, "--target",
                "%s is no target; there are c (the best for this machine), cuda (the best for its GPU)%s",
                name, names);
}

/* The back end of a target's name, which may be short; NULL: there is no such target. */
static const fpa_backend *find_backend(const char *name)
{
    const fpa_target *known = target_find(name);
    bool general = !strcmp(name, "c") || !strcmp(name, "cuda");
    return general ? backend_find(name) : known ? backend_find(known->name) : NULL;
}

/* Finds the target of the GPU here, for "cuda". */
static fpa_status ask_device(const fpa_target **target, fpa_error *error)
{
    const fpa_options options = {.target = "cuda"};
    const fpa_backend *backend = backend_find("cuda");
    fpa_error reason;
    fpa_status status = backend->choose(&options, "cuda", target, &reason);
    if (status)
        return fail(error, status, "cuda",
                    "names no architecture, and there is no GPU to ask (%s: %s); name one: sm_90",
                    reason.where, reason.message);
    return FPA_OK;
}

fpa_status select_target(const char *name, const fpa_target **target, fpa_error *error)
{
    if (!name || !strcmp(name, "c"))
        *target = target_best();
    else if (!strcmp(name, "cuda"))
        return ask_device(target, error);
    else
        *target = target_find(name);
    return *target ? FPA_OK : unknown_target(name ? name : "c", error);
}

fpa_status select_gpu(const char *name, const fpa_target *target, const fpa_gpu **gpu, fpa_error *error)
{
    enum { MOST = 32 };
    const char *names[MOST + 1] = {NULL};
    *gpu = NULL;
    if (!name)
        return FPA_OK;
    if (target->backend != BACKEND_CUDA)
        return fail(error, FPA_INVALID, "--gpu", "names a GPU, but target %s runs on the CPU", target->name);
    *gpu = gpu_find(name);
    for (int i = 0; i < MOST && i < gpu_count(); i++)
        names[i] = gpu_at(i)->name;
    return *gpu ? FPA_OK : fail_unknown(error, "--gpu", name, "GPU of the table", names);
}

fpa_status select_backend(const char *name, const fpa_backend **backend, fpa_error *error)
{
    *backend = find_backend(name ? name : "c");
    return *backend ? FPA_OK : unknown_target(name, error);
}

fpa_status select_running(const fpa_options *options, const fpa_backend **backend, const fpa_target **target,
                          fpa_error *error)
{
    const char *name = options->target ? options->target : "c";
    const fpa_backend *found = find_backend(name);
    *backend = found;
    if (!found)
        return unknown_target(name, error);
    if (options->device && !found->memory)
        return fail(error, FPA_INVALID, "--device", "chooses a GPU, but target %s runs on the CPU", name);
    return found->choose(options, name, target, error);
}

fpa_status select_dtype(const char *name, fpa_dtype *dtype, fpa_error *error)
{
    const char *names[FPA_DTYPES + 1] = {NULL};
    for (int i = 0; i < FPA_DTYPES; i++) {
        names[i] = dtype_name((fpa_dtype)i);
        if (!strcmp(name, names[i])) {
            *dtype = (fpa_dtype)i;
            return FPA_OK;
        }
    }
    return fail_unknown(error, "--dtype", name, "dtype", names);
}

fpa_status select_form(const char *name, int *form, fpa_error *error)
{
    const char *names[FORMS + 2] = {"auto"};
    *form = -1;
    if (!strcmp(name, "auto"))
        return FPA_OK;
    for (int i = 0; i < FORMS; i++) {
        names[1 + i] = form_name(i);
        if (!strcmp(name, form_name(i))) {
            *form = i;
            return FPA_OK;
        }
    }
    return fail_unknown(error, "--form", name, "form", names);
}
