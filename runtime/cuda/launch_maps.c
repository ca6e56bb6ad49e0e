/* launch_maps: tensor maps of a call's operands, for boxes of 64 numbers and 64 tokens. */
#include "launch_maps.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    RANK = 4, /* numbers, heads, tokens, batch */
    SEQUENCE_RANK =
        5,      /* numbers, heads, tokens of a sequence, its end, and the dimension that wraps the address */
    BOX = 64,   /* numbers, and tokens, of a box */
    ROWS = 16,  /* tokens of a box that is stored: a warp's */
    ALIGN = 16, /* bytes, of addresses and strides */
};

static const long long longest_stride = 1ll << 40; /* bytes, exclusive */

/* One of q, k, v, o: 16-bit numbers. */
typedef struct tensor {
    const void *base;
    const long long *stride; /* batch, token, head; elements */
    long long width, heads, tokens, batch;
    /* numbers of a token in a box; 0: BOX. The rest of a row of 128 bytes is unchanged */
    unsigned box;
    bool dense; /* rows in shared memory are as long as the box's, 16 or 32 numbers */
} tensor;

/* The stride of a dimension of size one does not matter: the caller's may be anything. */
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

static void encode(cuda_queue *q, const tensor *t, unsigned rank, const unsigned long long *sizes,
                   const unsigned long long *strides, unsigned tokens, struct fpa_tensor_map *map)
{
    const unsigned box[SEQUENCE_RANK] = {t->box ? t->box : BOX, 1, tokens, 1, 1};
    static const unsigned steps[SEQUENCE_RANK] = {1, 1, 1, 1, 1};
    CUresult result = q->cuda->driver->cuTensorMapEncodeTiled(
        map, CU_TENSOR_MAP_DATA_TYPE_UINT16, rank, (void *)(uintptr_t)t->base, sizes, strides, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(t), CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    cuda_check_result(q, result, "a tensor map (TMA) of an operand cannot be made");
}

/* tokens: of a box. False: the tensor cannot be described. */
static bool fill_map(cuda_queue *q, const tensor *t, unsigned tokens, struct fpa_tensor_map *map)
{
    const unsigned long long sizes[RANK] = {(unsigned long long)t->width, (unsigned long long)t->heads,
                                            (unsigned long long)t->tokens, (unsigned long long)t->batch};
    unsigned long long strides[RANK - 1];
    const bool there = can_describe(t, strides);
    if (there)
        encode(q, t, RANK, sizes, strides, tokens, map);
    return there;
}

/* A map whose boxes end with a sequence, wherever that is. With F = 2^30 tokens of s bytes, token t of a sequence of n tokens that ends
 * before token e of the batch is token F - n + t, so that the sequence's last token is the dimension's last. Two more dimensions, with
 * strides of s and 2^35 - s bytes, at coordinates e and F, bring the address back:
 *
 *      (F - n + t) s + e s + F (2^35 - s) = (e - n + t) s + 2^65,
 *
 * and addresses are modulo 2^64. Triton's descriptors of ragged tensors do the same. */
static bool fill_sequence_map(cuda_queue *q, const tensor *t, unsigned tokens, struct fpa_tensor_map *map)
{
    enum { FAR = 1 << 30, MOST = 0x7fff0000 };
    const unsigned long long wrap = 1ull << 35;
    const unsigned long long sizes[SEQUENCE_RANK] = {(unsigned long long)t->width,
                                                     (unsigned long long)t->heads, FAR, MOST, MOST};
    unsigned long long strides[SEQUENCE_RANK - 1];
    if (!can_describe(t, strides) || strides[1] >= wrap)
        return false;
    strides[2] = strides[1];
    strides[3] = wrap - strides[1];
    encode(q, t, SEQUENCE_RANK, sizes, strides, tokens, map);
    return true;
}

typedef bool (*map_filler)(cuda_queue *q, const tensor *t, unsigned tokens, struct fpa_tensor_map *map);

/* ---- rows of all heads as one ----
 *
 * For heads that do not begin at multiples of 16 bytes while tokens do: the map has one head, as wide as all, and kernels that support
 * this (geometry.fused_unpadded 2; value_room, for values alone) begin their boxes at multiples of 16 bytes. */

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

/* Both or neither: kernels assume that queries begin at the same offset from a multiple of 16 bytes as keys. */
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

/* The operands whose heads may be described as one, if they cannot be described otherwise. */
typedef enum joining { JOINS_NOTHING, JOINS_VALUES, JOINS_ALL } joining;

/* The boxes that a kernel fetches of a call's operands. */
typedef struct boxes {
    map_filler fill;
    int vector, vector_box; /* numbers of queries and keys; numbers of their boxes, 0: BOX */
    bool dense;             /* of these */
    int value, value_box;
    unsigned tokens; /* of keys and values in a box */
    joining joins;
} boxes;

/* False: the driver cannot describe tensors. */
static bool fill_operands(cuda_queue *q, const struct fpa_cuda_call *call, const boxes *b,
                          struct fpa_cuda_maps *maps)
{
    const long long tokens = call->length + call->recent;
    tensor queries = {call->q,     call->q_stride,          b->vector, call->query_heads, call->length,
                      call->batch, (unsigned)b->vector_box, b->dense};
    tensor keys = {call->k,     call->k_stride,          b->vector, call->heads, tokens,
                   call->batch, (unsigned)b->vector_box, b->dense};
    tensor values = {call->v,     call->v_stride,         b->value, call->heads, tokens,
                     call->batch, (unsigned)b->value_box, false};
    if (b->joins == JOINS_ALL)
        join_vectors(&queries, &keys);
    if (b->joins != JOINS_NOTHING)
        join_values(&values);
    memset(maps, 0, sizeof *maps);
    if (!q->cuda->driver->cuTensorMapEncodeTiled)
        return false;
    maps->queries = b->fill(q, &queries, BOX, &maps->query);
    maps->keys_alone = b->fill(q, &keys, b->tokens, &maps->key);
    maps->values_alone = b->fill(q, &values, b->tokens, &maps->value);
    maps->keys = maps->keys_alone && maps->values_alone;
    return true;
}

/* The call with the actual number of tokens, if whole tiles are processed from the last one on. */
static struct fpa_cuda_call with_tokens(const struct fpa_cuda_call *call)
{
    struct fpa_cuda_call with = *call;
    with.length = call->reversed ? call->reversed : call->length;
    return with;
}

/* Coordinates of q or k as given, from number given_first on. */
static tensor given_rows(const struct fpa_cuda_geometry *g, const void *x, const long long *stride,
                         long long heads, long long tokens, long long batch)
{
    const void *first = x ? (const uint16_t *)x + g->given_first : NULL; /* chunk_state has no queries */
    return (tensor){first, stride, g->given_rows, heads, tokens, batch, 0, false};
}

/* Maps of the coordinates that follow packed vectors in shared memory. */
static void fill_given(cuda_queue *q, const struct fpa_cuda_call *call, struct fpa_cuda_maps *maps)
{
    const struct fpa_cuda_geometry *g = &q->cuda->geometry;
    const tensor queries =
        given_rows(g, call->given_q, call->given_q_stride, call->query_heads, call->length, call->batch);
    const tensor keys = given_rows(g, call->given_k, call->given_k_stride, call->heads,
                                   call->length + call->recent, call->batch);
    const bool of_keys = fill_map(q, &keys, BOX, &maps->given_key);
    maps->queries &= fill_map(q, &queries, BOX, &maps->given_query);
    maps->keys &= of_keys;
    maps->keys_alone &= of_keys;
}

void cuda_fill_maps(cuda_queue *q, const struct fpa_cuda_call *call, struct fpa_cuda_maps *maps)
{
    const struct fpa_cuda_geometry *g = &q->cuda->geometry;
    const struct fpa_cuda_call with = with_tokens(call);
    const boxes b = {.fill = fill_map,
                     .vector = g->vector_rows,
                     .vector_box = g->vector_box,
                     .value = g->value_width,
                     .value_box = g->value_box,
                     .tokens = BOX,
                     .joins = g->value_room ? JOINS_VALUES : JOINS_NOTHING};
    if (fill_operands(q, &with, &b, maps) && g->given_rows)
        fill_given(q, &with, maps);
}

void cuda_fill_contraction_maps(cuda_queue *q, const struct fpa_cuda_call *call, struct fpa_cuda_maps *maps)
{
    const struct fpa_cuda_geometry *g = &q->cuda->geometry;
    const struct fpa_cuda_call with = with_tokens(call);
    const tensor rows = {
        with.dot_rows, with.dot_stride, g->value_width, with.heads, with.length, with.batch, 0, false};
    const boxes b = {.fill = fill_map,
                     .vector = g->vector_rows,
                     .value = g->value_width,
                     .tokens = (unsigned)g->contraction_keys};
    if (fill_operands(q, &with, &b, maps))
        maps->outputs = fill_map(q, &rows, BOX, &maps->output);
}

static void fill_fused(cuda_queue *q, const struct fpa_cuda_call *call, map_filler fill, bool joins,
                       struct fpa_cuda_maps *maps)
{
    const struct fpa_cuda_geometry *g = &q->cuda->geometry;
    const tensor output = {
        call->o, call->o_stride, g->fused_value, call->query_heads, call->length, call->batch, 0, false};
    const boxes b = {.fill = fill,
                     .vector = g->fused_vector,
                     .vector_box = g->fused_vector_box,
                     .dense = g->fused_vector_box > 0,
                     .value = g->fused_value,
                     .tokens = BOX,
                     .joins = joins ? JOINS_ALL : JOINS_NOTHING};
    if (fill_operands(q, call, &b, maps))
        maps->outputs = fill(q, &output, ROWS, &maps->output);
}

void cuda_fill_fused_maps(cuda_queue *q, const struct fpa_cuda_call *call, bool joins,
                          struct fpa_cuda_maps *maps)
{
    fill_fused(q, call, fill_map, joins && q->cuda->geometry.fused_unpadded > 1, maps);
}

/* The address `numbers` numbers of 16 bits before base. NULL: that would be no address. */
static const void *far_before(const void *base, long long numbers)
{
    const uintptr_t at = (uintptr_t)base, before = 2 * (uintptr_t)numbers;
    return numbers >= 0 && before < at ? (const void *)(at - before) : NULL;
}

/* Entry e of the maps' batch is the `longest` tokens before token e of all, so that a sequence that ends there has the last of them. Its
 * boxes end where it does and begin at its begin or later, so that no box reads what is before a tensor. */
void cuda_fill_ended_maps(cuda_queue *q, const struct fpa_cuda_call *call, struct fpa_cuda_maps *maps)
{
    struct fpa_cuda_call ended = *call;
    ended.q = far_before(call->q, call->longest * call->q_stride[1]);
    ended.k = far_before(call->k, call->longest * call->k_stride[1]);
    ended.v = far_before(call->v, call->longest * call->v_stride[1]);
    ended.o = (void *)(uintptr_t)far_before(call->o, call->longest * call->o_stride[1]);
    ended.length = call->longest;
    ended.batch = call->length + 1;
    cuda_fill_fused_maps(q, &ended, true, maps);
}

void cuda_fill_sequence_maps(cuda_queue *q, const struct fpa_cuda_call *call, struct fpa_cuda_maps *maps)
{
    fill_fused(q, call, fill_sequence_map, false, maps);
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
