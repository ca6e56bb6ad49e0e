#include <stdlib.h>

#include <ctype.h>
#include <string.h>

#include "abi/cuda_kernels.h"
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
    set_integer(L, "chunk_output_bytes", cuda->chunk_output.size);
    set_integer(L, "decode_threads", CUDA_DECODE_THREADS);
    set_integer(L, "decode_features", cuda->decode_features);
    set_integer(L, "decode_bytes", cuda->decode_bytes);
    set_integer(L, "decode_room", CUDA_DECODE_ROOM);
    set_integer(L, "decode_barriers", CUDA_DECODE_BARRIERS);
    set_integer(L, "decode_resident_bytes", cuda->decode_resident_bytes);
    set_integer(L, "decode_resident_most", CUDA_DECODE_RESIDENT_MOST);
    set_integer(L, "decode_resident_least", cuda->decode_resident_least);
    set_integer(L, "decode_stages", cuda->decode_stages);
    set_integer(L, "decode_blocks", cuda->decode_blocks);
    set_integer(L, "split_reduction_threads", CUDA_SPLIT_REDUCTION_THREADS);
    push_memory(L, "chunk_state_memory", &cuda->state);
    push_memory(L, "chunk_output_memory", &cuda->chunk_output);
    push_memory(L, "fused_memory", &cuda->fused);
    set_integer(L, "chunk_state_blocks", cuda->chunk_state_blocks);
    set_integer(L, "chunk_output_blocks", cuda->chunk_output_blocks);
    set_integer(L, "fused_blocks", cuda->fused_blocks);
    set_boolean(L, "coordinates", cuda->coordinates);
    set_boolean(L, "fused", cuda->is_fused);
    set_boolean(L, "fused_coordinates", cuda->fused_coordinates);
    set_integer(L, "fused_stages", cuda->fused_stages);
    set_integer(L, "fused_copies", cuda->fused_copies);
    set_integer(L, "fused_bytes", cuda->is_fused ? cuda->fused.size : 0);
}

/* Names of the fields of struct fpa_cuda_geometry, in order, from its text: a word before a semicolon, or
 * before the brackets of an array. The template prints each by its name. */
static void push_geometry_fields(lua_State *L)
{
    static const char begin[] = "struct fpa_cuda_geometry {\n";
    const char *at = strstr(fpa_embedded_cuda_call_h, begin) + sizeof begin - 1;
    const char *end = strstr(at, "\n};");
    int count = 0;
    lua_newtable(L);
    while (at < end) {
        const char *semicolon = strchr(at, ';');
        const char *array = memchr(at, '[', (size_t)(semicolon - at));
        const char *last = array ? array : semicolon;
        const char *first = last;
        while (isalnum((unsigned char)first[-1]) || first[-1] == '_')
            first--;
        lua_pushlstring(L, first, (size_t)(last - first));
        lua_rawseti(L, -2, ++count);
        at = semicolon + 1 + strspn(semicolon + 1, " \n");
        while (strncmp(at, "/*", 2) == 0) /* what the field is */
            at = strstr(at, "*/") + 2, at += strspn(at, " \n");
    }
    lua_setfield(L, -2, "geometry_fields");
}

static void push_kernel_names(lua_State *L)
{
    lua_createtable(L, FPA_CUDA_KERNELS, 0);
    for (int i = 0; i < FPA_CUDA_KERNELS; i++) {
        lua_pushstring(L, cuda_kernel_names[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "kernel_names");
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
                plan->outer.used ? plan->warpgroups.query_tokens : plan->cuda.query_tokens);
    push_features(L, &plan->cuda);
    push_dots(L, plan);
    push_projections(L, plan, plan->cuda.row);
    push_split(L, plan);
    push_fused_packed(L, plan);
    push_cluster_scan(L, &plan->cluster_scan);
    set_integer(L, "padded_features", plan->cuda.features);
    set_integer(L, "copy_rows", plan->outer.used ? plan->outer.copy_rows : plan->cuda.features);
    set_integer(L, "chunk", plan->chunk);
    set_integer(L, "decode_cluster", plan->target->capability >= 90 ? CUDA_DECODE_CLUSTER : 1);
    set_integer(L, "capability", plan->target->capability);
    set_integer(L, "state_elements", plan->facts.state_elements);
    set_integer(L, "weights", count_weights(plan->head));
    set_string(L, "arithmetic", dtype_name(plan->facts.arithmetic));
    set_string(L, "products", products_name(plan->head->products));
    push_geometry_fields(L);
    push_kernel_names(L);
    set_string(L, "call_text", fpa_embedded_cuda_call_h);
}
