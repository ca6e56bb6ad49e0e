/* Values that are computed from a plan for CUDA templates; fields that are copied are described in gen/plan/cuda. */
#include "abi/cuda_kernels.h"
#include "gen/embedded.h"
#include "table.h"

static void push_factor_rows(lua_State *L, const fpa_cuda_rows *rows)
{
    lua_createtable(L, rows->factors, 0);
    for (int l = 0; l < rows->factors; l++) {
        push_integers(L, rows->factor_row + l * rows->features, rows->features);
        lua_rawseti(L, -2, l + 1);
    }
    lua_setfield(L, -2, "factor_rows");
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

/* plan.geometry: the ints of the struct, in order. templates/cuda/geometry.cu.in finds their names in the text of
 * cuda_call.h. */
static void push_geometry(lua_State *L, const struct fpa_cuda_geometry *geometry)
{
    push_integers(L, (const int *)geometry, sizeof *geometry / sizeof(int));
    lua_setfield(L, -2, "geometry");
}

static void push_made_weights(lua_State *L, const fpa_row_head *made)
{
    const int count = made->weighs ? made->coordinate_count : 0;
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushnumber(L, made->weights[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "weights");
}

/* plan.made: rows that are computed before the other kernels of gradients run, or false. */
static void push_made(lua_State *L, const fpa_plan *plan)
{
    const fpa_row_head *made = &plan->made;
    bool per_head = false;
    if (!made->width) {
        set_boolean(L, "made", false);
        return;
    }
    lua_createtable(L, 0, 6);
    set_boolean(L, "lifted", made->lifted != NULL);
    push_integers(L, made->coordinates, made->coordinate_count);
    lua_setfield(L, -2, "coordinates");
    push_made_weights(L, made);
    lua_createtable(L, made->projection_count, 0);
    for (int i = 0; i < made->projection_count; i++) {
        push_projection(L, plan->head, &made->projections[i], NULL);
        lua_rawseti(L, -2, i + 1);
        per_head = per_head || plan->head->matrices[made->projections[i].matrix].per_head;
    }
    lua_setfield(L, -2, "projections");
    set_boolean(L, "per_head", per_head);
    lua_pushnumber(L, made->scale);
    lua_setfield(L, -2, "scale");
    lua_setfield(L, -2, "made");
}

void push_cuda(lua_State *L, const fpa_plan *plan)
{
    push_factor_rows(L, plan->cuda.rows);
    push_projections(L, plan, plan->cuda.rows->row);
    push_made(L, plan);
    push_monomials(L, plan);
    push_trainable(L, plan->written);
    set_boolean(L, "clusters", plan->target->clusters);
    set_boolean(L, "bf16_product", plan->target->bf16_product);
    set_string(L, "arithmetic", dtype_name(plan->facts.arithmetic));
    set_string(L, "products", products_name(plan->head->products));
    push_geometry(L, &plan->cuda.geometry);
    push_kernel_names(L);
    set_string(L, "call_text", fpa_embedded_cuda_call_h);
}
