#include "launch_contraction.h"

#include "base/round.h"
#include "grid.h"
#include "head/form.h"
#include "launch.h"
#include "launch_maps.h"
#include "sizes.h"

bool cuda_contracts(const fpa_module *module)
{
    const struct fpa_cuda_module *cuda = module ? module->handle : NULL;
    return cuda && cuda->geometry.contraction_tokens && cuda->driver->cuTensorMapEncodeTiled;
}

bool cuda_contracts_values(const fpa_module *module, int form)
{
    const struct fpa_cuda_module *cuda = module->handle;
    return form == FORM_PARALLEL && cuda->geometry.contraction_values;
}

fpa_status cuda_contract(const fpa_module *module, int form, const struct fpa_launch *launch,
                         const cuda_contraction *c, const void **states, void *stream, fpa_error *error)
{
    const struct fpa_cuda_module *cuda = module->handle;
    const int64_t room = (int64_t)cuda->room.multiprocessors * cuda->room.occupancy[CUDA_CHUNK_CONTRACTION];
    cuda_sizes s;
    fpa_cuda_grid grid = {CUDA_CHUNK_CONTRACTION,
                          launch->batch * launch->heads *
                              divide_up(launch->length, cuda->geometry.contraction_tokens),
                          &s.maps, 0};
    fpa_status status = cuda_check_grid(cuda, &grid, error); /* the kernel counts all of them */
    if (!status)
        status = cuda_walk_states(module, form, launch, c->walked, c->reversed, &s, stream, error);
    if (status)
        return status;
    *states = s.call.states;
    s.call.dot_rows = c->rows;
    s.call.dots = c->dots;
    s.call.sums = c->sums;
    s.call.sum_columns = c->columns;
    for (int i = 0; i < 3; i++) {
        s.call.dot_stride[i] = c->stride[i];
        s.call.sum_stride[i] = c->sum_stride[i];
    }
    status = cuda_fill_contraction_maps(cuda, &s.call, &s.maps, error);
    if (!status && !(s.maps.queries && s.maps.keys && s.maps.outputs))
        return fail(error, FPA_INVALID, cuda->name, "the copy engine cannot fetch the operands");
    if (grid.blocks > room)
        grid.blocks = room;
    return status || !grid.blocks ? status : cuda_launch(cuda, &grid, launch, &s.call, stream, error);
}

fpa_status cuda_state_products(const fpa_module *module, int64_t sequences, int64_t chunks,
                               const cuda_met_states *met, double *products, void *stream, fpa_error *error)
{
    const fpa_cuda_grid grid = {CUDA_STATE_PRODUCT, sequences * (chunks - 1), NULL, 0};
    const struct fpa_cuda_call call = {.chunks = chunks,
                                       .heads = met->heads,
                                       .v_stride = {0, 0, met->value_stride},
                                       .states = (void *)(uintptr_t)met->states,
                                       .reversed_states = met->reversed_states,
                                       .column_weights = met->column_weights,
                                       .adds = met->adds,
                                       .products = products};
    const struct fpa_launch none = {0};
    return grid.blocks > 0 ? cuda_launch(module->handle, &grid, &none, &call, stream, error) : FPA_OK;
}
