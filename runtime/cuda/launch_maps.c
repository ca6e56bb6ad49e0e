#include "launch_maps.h"

#include "grid.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    RANK = 4,          /* numbers, heads, tokens, batch */
    SEQUENCE_RANK = 5, /* numbers, heads, tokens of a sequence, its end, what undoes both */
    BOX = 64,          /* numbers, and tokens, that a copy fetches */
    ROWS = 16,         /* tokens that one stores: a warp's */
    ALIGN = 16,        /* bytes, of addresses and strides */
};

static const long long longest_stride = 1ll << 40; /* bytes, exclusive */

/* One of q, k, v, o: 16-bit numbers. */
typedef struct tensor {
    const void *base;
    const long long *stride; /* batch, token, head; elements */
    long long width, heads, tokens, batch;
    /* numbers of a token that a copy fetches; 0: BOX. What lies behind them in a row of 128 bytes stays as it is */
    unsigned box;
    bool dense; /* a row in shared memory is no longer than the box's, of 16 or 32 numbers */
} tensor;

/* A dimension of one has no stride that matters: the caller's may be anything. */
static long long stride_bytes(long long count, long long stride)
{
    return count > 1 ? 2 * stride : ALIGN;
}

static bool find_strides(const tensor *t, unsigned long long strides[RANK - 1])
{
    const long long bytes[RANK - 1] = {stride_bytes(t->heads, t->stride[2]),
                                       stride_bytes(t->tokens, t->stride[1]),
                                       stride_bytes(t->batch, t->stride[0])};
    for (int i = 0; i < RANK - 1; i++) {
        if (bytes[i] <= 0 || bytes[i] % ALIGN || bytes[i] >= longest_stride)
            return false;
        strides[i] = (unsigned long long)bytes[i];
    }
    return true;
}

static bool can_describe(const tensor *t, unsigned long long strides[RANK - 1])
{
    return t->base && (uintptr_t)t->base % ALIGN == 0 && t->tokens > 0 && t->heads <= INT_MAX &&
           t->batch <= INT_MAX && find_strides(t, strides);
}

bool cuda_can_describe(const void *base, const long long *stride, long long heads, long long tokens,
                       long long batch)
{
    const tensor t = {base, stride, 0, heads, tokens, batch, 0, false};
    unsigned long long strides[RANK - 1];
    return can_describe(&t, strides);
}

static int swizzle_of(const tensor *t)
{
    if (!t->dense)
        return CU_TENSOR_MAP_SWIZZLE_128B;
    return t->box == 16 ? CU_TENSOR_MAP_SWIZZLE_32B : CU_TENSOR_MAP_SWIZZLE_64B;
}

static fpa_status encode(const struct fpa_cuda_module *cuda, const tensor *t, unsigned rank,
                         const unsigned long long *sizes, const unsigned long long *strides, unsigned tokens,
                         struct fpa_tensor_map *map, fpa_error *error)
{
    const unsigned box[SEQUENCE_RANK] = {t->box ? t->box : BOX, 1, tokens, 1, 1};
    static const unsigned steps[SEQUENCE_RANK] = {1, 1, 1, 1, 1};
    CUresult result = cuda->driver->cuTensorMapEncodeTiled(
        map, CU_TENSOR_MAP_DATA_TYPE_UINT16, rank, (void *)(uintptr_t)t->base, sizes, strides, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(t), CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result ? driver_fail(cuda->driver, result, cuda->name, "an operand cannot be described", error)
                  : FPA_OK;
}

/* tokens: of a box. *there: whether the tensor can be described. */
static fpa_status fill_map(const struct fpa_cuda_module *cuda, const tensor *t, unsigned tokens,
                           struct fpa_tensor_map *map, bool *there, fpa_error *error)
{
    const unsigned long long sizes[RANK] = {(unsigned long long)t->width, (unsigned long long)t->heads,
                                            (unsigned long long)t->tokens, (unsigned long long)t->batch};
    unsigned long long strides[RANK - 1];
    *there = can_describe(t, strides);
    return *there ? encode(cuda, t, RANK, sizes, strides, tokens, map, error) : FPA_OK;
}

/* A map in which a box ends where a sequence does, wherever that is. With F = 2^30 tokens of s bytes, token t of a sequence that has n
 * and ends before token e of all is token F - n + t, so that its last one is the dimension's last. Two dimensions more, of s and 2^35 - s bytes,
 * of which it has e and F, bring the address back:
 *
 *     (F - n + t) s + e s + F (2^35 - s) = (e - n + t) s + 2^65,
 *
 * and addresses are modulo 2^64. Triton's descriptors of ragged tensors do the same. */
static fpa_status fill_sequence_map(const struct fpa_cuda_module *cuda, const tensor *t, unsigned tokens,
                                    struct fpa_tensor_map *map, bool *there, fpa_error *error)
{
    enum { FAR = 1 << 30, MOST = 0x7fff0000 };
    const unsigned long long wrap = 1ull << 35;
    const unsigned long long sizes[SEQUENCE_RANK] = {(unsigned long long)t->width,
                                                     (unsigned long long)t->heads, FAR, MOST, MOST};
    unsigned long long strides[SEQUENCE_RANK - 1];
    *there = can_describe(t, strides) && strides[1] < wrap;
    if (!*there)
        return FPA_OK;
    strides[2] = strides[1];
    strides[3] = wrap - strides[1];
    return encode(cuda, t, SEQUENCE_RANK, sizes, strides, tokens, map, error);
}

typedef fpa_status (*map_filler)(const struct fpa_cuda_module *cuda, const tensor *t, unsigned tokens,
                                 struct fpa_tensor_map *map, bool *there, fpa_error *error);

/* ---- rows of all heads as one ----
 *
 * Heads that begin amid 16 bytes, and whose tokens are whole pieces apart: the map has one head, as wide as all, and a kernel that
 * knows of it (geometry.fused_unpadded 2; value_room, of values alone) begins its boxes at pieces. */

static bool join_heads(const tensor *t, tensor *joined)
{
    const long long stride = t->stride[2], most = INT_MAX;
    unsigned long long strides[RANK - 1];
    *joined = *t;
    if (t->heads < 2 || t->heads > most || stride <= 0 || stride >= most || 2 * stride % ALIGN == 0)
        return false;
    joined->width = (t->heads - 1) * stride + t->width;
    joined->heads = 1;
    return joined->width <= most && can_describe(joined, strides);
}

/* Both: a kernel has queries begin as far behind a piece as keys do. */
static void join_vectors(tensor *queries, tensor *keys)
{
    tensor joined[2];
    if (queries->heads != keys->heads || 2 * (queries->stride[2] - keys->stride[2]) % ALIGN ||
        !join_heads(queries, &joined[0]) || !join_heads(keys, &joined[1]))
        return;
    *queries = joined[0];
    *keys = joined[1];
}

bool cuda_can_join(const void *base, const long long *stride, int width, long long heads, long long tokens,
                   long long batch)
{
    const tensor t = {base, stride, width, heads, tokens, batch, 0, false};
    tensor joined;
    return join_heads(&t, &joined);
}

static void join_values(tensor *values)
{
    tensor joined;
    if (join_heads(values, &joined))
        *values = joined;
}

/* Whose heads are described as one where they can be as nothing else. */
typedef enum joining { JOINS_NOTHING, JOINS_VALUES, JOINS_ALL } joining;

/* Queries and keys are `vector` numbers wide, of which a box has `vector_box`; values `value` and `value_box`. 0: as many as a box can. Of keys and values a
 * box has so many tokens. */
static fpa_status fill_operands(const struct fpa_cuda_module *cuda, const struct fpa_cuda_call *call,
                                map_filler fill, int vector, int vector_box, bool dense, int value,
                                int value_box, unsigned box, joining joins, struct fpa_cuda_maps *maps,
                                fpa_error *error)
{
    tensor queries = {call->q,     call->q_stride,       vector, call->query_heads, call->length,
                      call->batch, (unsigned)vector_box, dense};
    const long long tokens = call->length + call->recent;
    tensor keys = {call->k,     call->k_stride,       vector, call->heads, tokens,
                   call->batch, (unsigned)vector_box, dense};
    tensor values = {call->v,     call->v_stride,      value, call->heads, tokens,
                     call->batch, (unsigned)value_box, false};
    bool there[3];
    if (joins == JOINS_ALL)
        join_vectors(&queries, &keys);
    if (joins != JOINS_NOTHING)
        join_values(&values);
    memset(maps, 0, sizeof *maps);
    if (!cuda->driver->cuTensorMapEncodeTiled)
        return FPA_OK;
    fpa_status status = fill(cuda, &queries, BOX, &maps->query, &there[0], error);
    if (!status)
        status = fill(cuda, &keys, box, &maps->key, &there[1], error);
    if (!status)
        status = fill(cuda, &values, box, &maps->value, &there[2], error);
    if (status)
        return status;
    maps->queries = there[0];
    maps->keys_alone = there[1];
    maps->values_alone = there[2];
    maps->keys = there[1] && there[2];
    return FPA_OK;
}

/* The tokens that there are, of whole tiles that are taken from the last one on. */
static struct fpa_cuda_call with_tokens(const struct fpa_cuda_call *call)
{
    struct fpa_cuda_call with = *call;
    with.length = call->reversed ? call->reversed : call->length;
    return with;
}

/* Coordinates of q or k as they are given, from number given_first on. */
static tensor given_rows(const struct fpa_cuda_geometry *g, const void *x, const long long *stride,
                         long long heads, long long tokens, long long batch)
{
    const void *first = x ? (const uint16_t *)x + g->given_first : NULL; /* walks have no queries */
    return (tensor){first, stride, g->given_rows, heads, tokens, batch, 0, false};
}

/* Those that lie behind packed vectors in shared memory. */
static fpa_status fill_given(const struct fpa_cuda_module *cuda, const struct fpa_cuda_call *call,
                             struct fpa_cuda_maps *maps, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const tensor queries =
        given_rows(g, call->given_q, call->given_q_stride, call->query_heads, call->length, call->batch);
    const tensor keys = given_rows(g, call->given_k, call->given_k_stride, call->heads,
                                   call->length + call->recent, call->batch);
    bool there[2];
    fpa_status status = fill_map(cuda, &queries, BOX, &maps->given_query, &there[0], error);
    if (!status)
        status = fill_map(cuda, &keys, BOX, &maps->given_key, &there[1], error);
    if (status)
        return status;
    maps->queries &= there[0];
    maps->keys &= there[1];
    maps->keys_alone &= there[1];
    return FPA_OK;
}

fpa_status cuda_fill_maps(const struct fpa_cuda_module *cuda, const struct fpa_cuda_call *call,
                          struct fpa_cuda_maps *maps, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const struct fpa_cuda_call with = with_tokens(call);
    const fpa_status status =
        fill_operands(cuda, &with, fill_map, g->vector_rows, g->vector_box, false, g->value_width,
                      g->value_box, BOX, g->value_room ? JOINS_VALUES : JOINS_NOTHING, maps, error);
    return !status && g->given_rows && cuda->driver->cuTensorMapEncodeTiled
               ? fill_given(cuda, &with, maps, error)
               : status;
}

fpa_status cuda_fill_contraction_maps(const struct fpa_cuda_module *cuda, const struct fpa_cuda_call *call,
                                      struct fpa_cuda_maps *maps, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const struct fpa_cuda_call with = with_tokens(call);
    const tensor rows = {
        with.dot_rows, with.dot_stride, g->value_width, with.heads, with.length, with.batch, 0, false};
    bool there = false;
    fpa_status status = fill_operands(cuda, &with, fill_map, g->vector_rows, 0, false, g->value_width, 0,
                                      (unsigned)g->contraction_keys, JOINS_NOTHING, maps, error);
    if (!status && cuda->driver->cuTensorMapEncodeTiled)
        status = fill_map(cuda, &rows, BOX, &maps->output, &there, error);
    maps->outputs = there;
    return status;
}

static fpa_status fill_fused(const struct fpa_cuda_module *cuda, const struct fpa_cuda_call *call,
                             map_filler fill, bool joins, struct fpa_cuda_maps *maps, fpa_error *error)
{
    const struct fpa_cuda_geometry *g = &cuda->geometry;
    const tensor output = {
        call->o, call->o_stride, g->fused_value, call->query_heads, call->length, call->batch, 0, false};
    bool there;
    fpa_status status =
        fill_operands(cuda, call, fill, g->fused_vector, g->fused_vector_box, g->fused_vector_box > 0,
                      g->fused_value, 0, BOX, joins ? JOINS_ALL : JOINS_NOTHING, maps, error);
    if (status || !cuda->driver->cuTensorMapEncodeTiled)
        return status;
    status = fill(cuda, &output, ROWS, &maps->output, &there, error);
    if (!status)
        maps->outputs = there;
    return status;
}

fpa_status cuda_fill_fused_maps(const struct fpa_cuda_module *cuda, const struct fpa_cuda_call *call,
                                bool joins, struct fpa_cuda_maps *maps, fpa_error *error)
{
    return fill_fused(cuda, call, fill_map, joins && cuda->geometry.fused_unpadded > 1, maps, error);
}

/* So many numbers of 16 bits before it. NULL: nothing can be there. */
static const void *far_before(const void *base, long long numbers)
{
    const uintptr_t at = (uintptr_t)base, before = 2 * (uintptr_t)numbers;
    return numbers >= 0 && before < at ? (const void *)(at - before) : NULL;
}

/* Entry e of the maps' batch are as many tokens as the longest sequence has, up to token e of all: a sequence that ends there has the last of them. Boxes of
 * it end where it does, and begin where it does or later, so that what lies before a tensor is in no box. */
fpa_status cuda_fill_ended_maps(const struct fpa_cuda_module *cuda, const struct fpa_cuda_call *call,
                                struct fpa_cuda_maps *maps, fpa_error *error)
{
    struct fpa_cuda_call ended = *call;
    ended.q = far_before(call->q, call->longest * call->q_stride[1]);
    ended.k = far_before(call->k, call->longest * call->k_stride[1]);
    ended.v = far_before(call->v, call->longest * call->v_stride[1]);
    ended.o = (void *)(uintptr_t)far_before(call->o, call->longest * call->o_stride[1]);
    ended.length = call->longest;
    ended.batch = call->length + 1;
    return cuda_fill_fused_maps(cuda, &ended, true, maps, error);
}

fpa_status cuda_fill_sequence_maps(const struct fpa_cuda_module *cuda, const struct fpa_cuda_call *call,
                                   struct fpa_cuda_maps *maps, fpa_error *error)
{
    return fill_fused(cuda, call, fill_sequence_map, false, maps, error);
}

bool cuda_describes(const struct fpa_launch *launch)
{
    struct fpa_cuda_call call;
    cuda_fill_call(launch, &call);
    return cuda_can_describe(call.q, call.q_stride, call.query_heads, call.length, call.batch) &&
           cuda_can_describe(call.k, call.k_stride, call.heads, call.length, call.batch) &&
           cuda_can_describe(call.v, call.v_stride, call.heads, call.length, call.batch) &&
           cuda_can_describe(call.o, call.o_stride, call.query_heads, call.length, call.batch);
}
