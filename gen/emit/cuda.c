#include <stdlib.h>

#include "gen/embedded.h"
#include "table.h"

static void push_features(lua_State *L, const fpa_cuda_plan *cuda)
{
    lua_createtable(L, cuda->factors, 0);
    for (int l = 0; l < cuda->factors; l++) {
        push_integers(L, cuda->factor_row + l * cuda->features, cuda->features);
        lua_rawseti(L, -2, l + 1);
    }
    lua_setfield(L, -2, "factor_rows");
    lua_createtable(L, cuda->features, 0);
    for (int f = 0; f < cuda->features; f++) {
        lua_pushnumber(L, cuda->weight[f]);
        lua_rawseti(L, -2, f + 1);
    }
    lua_setfield(L, -2, "feature_weights");
    set_integers(L, "shared", cuda->shared, cuda->factors);
    set_integer(L, "factors", cuda->factors);
    set_integer(L, "units", cuda->units);
}

static void push_dots(lua_State *L, const fpa_plan *plan)
{
    const fpa_cuda_plan *cuda = &plan->cuda;
    const int count = plan->score->dot_count;
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_createtable(L, 0, 4);
        set_integer(L, "base", cuda->dot_base[i]);
        set_integer(L, "first", cuda->dot_first[i]);
        set_integer(L, "steps", cuda->dot_first[i + 1] - cuda->dot_first[i]);
        set_integer(L, "rows", plan->dots[i].row_count);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "dots");
    set_integers(L, "dot_rows", cuda->dot_rows, 16 * cuda->dot_first[count]);
    push_monomials(L, plan);
}

static void push_memory(lua_State *L, const char *field, const fpa_cuda_memory *memory)
{
    lua_createtable(L, 0, 8);
    set_integer(L, "queries", memory->queries);
    set_integer(L, "keys", memory->keys);
    set_integer(L, "raw", memory->raw);
    set_integer(L, "values", memory->values);
    set_integer(L, "tiles", memory->tiles);
    set_integer(L, "gates", memory->gates);
    set_integer(L, "output", memory->output);
    lua_setfield(L, -2, field);
}

static void push_blocks(lua_State *L, const fpa_cuda_plan *cuda)
{
    set_integer(L, "element", cuda->element);
    set_integer(L, "rows", cuda->row_count);
    set_integer(L, "zero", cuda->zero_row);
    set_integer(L, "ones", cuda->ones_row);
    set_integer(L, "column_blocks", cuda->column_blocks);
    set_integer(L, "column_tiles", cuda->column_tiles);
    set_integer(L, "all_tiles", cuda->all_tiles);
    set_integer(L, "query_tiles", cuda->query_tiles);
    set_integer(L, "score_tiles", cuda->score_tiles);
    set_integer(L, "panel", cuda->panel);
    set_integer(L, "warp_units", cuda->warp_units);
    set_integer(L, "slices", cuda->slices);
    set_integer(L, "stages", CUDA_STATE_STAGES);
    set_integer(L, "query_pitch", cuda->query_pitch);
    set_integer(L, "key_pitch", cuda->key_pitch);
    set_integer(L, "raw_pitch", cuda->raw_pitch);
    set_integer(L, "value_pitch", cuda->value_pitch);
    set_integer(L, "tile_pitch", cuda->tile_pitch);
    set_integer(L, "output_pitch", cuda->output_pitch);
    set_integer(L, "state_bytes", cuda->state.size);
    set_integer(L, "attend_bytes", cuda->attend.size);
    set_integer(L, "step_threads", CUDA_STEP_THREADS);
    set_integer(L, "step_features", cuda->step_features);
    set_integer(L, "step_bytes", cuda->step_bytes);
    set_integer(L, "step_room", CUDA_STEP_ROOM);
    set_integer(L, "step_barriers", CUDA_STEP_BARRIERS);
    set_integer(L, "token_bytes", cuda->token_bytes);
    set_integer(L, "token_most", CUDA_TOKEN_MOST);
    set_integer(L, "token_least", cuda->token_least);
    set_integer(L, "step_stages", cuda->step_stages);
    set_integer(L, "step_blocks", cuda->step_blocks);
    set_integer(L, "gather_threads", CUDA_GATHER_THREADS);
    push_memory(L, "state_memory", &cuda->state);
    push_memory(L, "attend_memory", &cuda->attend);
    push_memory(L, "flow_memory", &cuda->flow);
    set_integer(L, "state_blocks", cuda->state_blocks);
    set_integer(L, "attend_blocks", cuda->attend_blocks);
    set_integer(L, "flow_blocks", cuda->flow_blocks);
    set_boolean(L, "natural", cuda->natural);
    set_boolean(L, "flow", cuda->flows);
    set_boolean(L, "flow_hopper", cuda->flow_hopper);
    set_integer(L, "flow_stages", cuda->flow_stages);
    set_integer(L, "flow_copies", cuda->flow_copies);
    set_integer(L, "flow_bytes", cuda->flows ? cuda->flow.size : 0);
}

static int count_weights(const fpa_head *head)
{
    int count = 0;
    for (int i = 0; i < head->matrix_count; i++)
        count += head->matrices[i].kind != FPA_MATRIX_CONSTANT;
    return count;
}

void push_cuda(lua_State *L, const fpa_plan *plan)
{
    push_blocks(L, &plan->cuda);
    set_integer(L, "query_tokens",
                plan->hopper.used ? plan->warpgroups.query_tokens : plan->cuda.query_tokens);
    push_features(L, &plan->cuda);
    push_dots(L, plan);
    push_projections(L, plan, plan->cuda.row);
    push_hopper(L, plan);
    push_flow(L, plan);
    push_relay(L, &plan->relay);
    set_integer(L, "padded_features", plan->cuda.features);
    set_integer(L, "copy_rows", plan->hopper.used ? plan->hopper.copy_rows : plan->cuda.features);
    set_integer(L, "chunk", plan->chunk);
    set_integer(L, "step_cluster", plan->target->capability >= 90 ? CUDA_STEP_CLUSTER : 1);
    set_integer(L, "capability", plan->target->capability);
    set_integer(L, "state_elements", plan->facts.state_elements);
    set_integer(L, "weights", count_weights(plan->head));
    set_string(L, "arithmetic", dtype_name(plan->facts.arithmetic));
    set_string(L, "products", products_name(plan->head->products));
    set_string(L, "call_text", fpa_embedded_cuda_call_h);
}
