/* launch_contraction: launches of NAME_chunk_contraction and NAME_state_product. */
#include "launch_contraction.h"

#include "base/round.h"
#include "head/form.h"
#include "launch.h"
#include "launch_maps.h"

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

void cuda_contract(cuda_queue *behind, const fpa_module *module, int form, const struct fpa_launch *launch,
                   const cuda_contraction *c, const void **states)
{
    const struct fpa_cuda_module *cuda = module->handle;
    const int64_t all =
        launch->batch * launch->heads * divide_up(launch->length, cuda->geometry.contraction_tokens);
    const int64_t room = cuda_room_for(cuda, CUDA_CHUNK_CONTRACTION);
    cuda_queue q = cuda_behind(behind, module, launch);
    cuda_sizes s;
    cuda_check_blocks(&q, CUDA_CHUNK_CONTRACTION, all); /* the kernel counts all of them */
    cuda_walk_states(&q, form, c->walked, c->reversed, &s);
    behind->status = q.status;
    if (q.status)
        return;
    *states = s.call.states;
    s.call.dot_rows = c->rows;
    s.call.dots = c->dots;
    s.call.sums = c->sums;
    s.call.sum_columns = c->columns;
    for (int i = 0; i < 3; i++) {
        s.call.dot_stride[i] = c->stride[i];
        s.call.sum_stride[i] = c->sum_stride[i];
    }
    cuda_fill_contraction_maps(&q, &s.call, &s.maps);
    if (!q.status && !(s.maps.queries && s.maps.keys && s.maps.outputs))
        q.status = fail(q.error, FPA_INVALID, cuda->name,
                        "the copy engine (TMA) cannot fetch the operands of this call");
    cuda_launch(&q, CUDA_CHUNK_CONTRACTION, all < room ? all : room, &s.maps, &s.call);
    behind->status = q.status;
}

void cuda_state_products(cuda_queue *behind, const fpa_module *module, int64_t sequences, int64_t chunks,
                         const cuda_met_states *met, double *products)
{
    const struct fpa_launch none = {0};
    cuda_queue q = cuda_behind(behind, module, &none);
    const struct fpa_cuda_call call = {.chunks = chunks,
                                       .heads = met->heads,
                                       .v_stride = {0, 0, met->value_stride},
                                       .states = (void *)(uintptr_t)met->states,
                                       .reversed_states = met->reversed_states,
                                       .column_weights = met->column_weights,
                                       .adds = met->adds,
                                       .products = products};
    cuda_launch(&q, CUDA_STATE_PRODUCT, sequences * (chunks - 1), NULL, &call);
    behind->status = q.status;
}
