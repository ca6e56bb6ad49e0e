/* cuda_division: a call's chunks, their division into segments, and the order of queries. */
#include "cuda_division.h"

#include <math.h>

#include "base/round.h"
#include "cuda_chunk.h"
#include "cuda_estimate.h"
#include "cuda_shares.h"
#include "head/form.h"

/* Whether keys before a window are added to a state without queries. */
static bool enters_alone(const struct fpa_cuda_geometry *g, const fpa_call_size *size)
{
    return g->window && size->length == 0 && size->recent >= g->window;
}

static bool is_walked(const cuda_task *task)
{
    return task->chunks > (task->summed ? 0 : 1) || task->size->state_in || task->size->state_out;
}

cuda_task cuda_task_of(const struct fpa_cuda_geometry *g, const fpa_gpu_room *room, const fpa_call_size *size)
{
    cuda_task task = {
        .geometry = g,
        .room = room,
        .size = size,
        .chunk = size->form == FORM_CHUNKED ? g->chunk : round_up(size->length, g->query_tokens),
        .sequences = size->batch * size->heads,
        .queries = size->batch * size->query_heads,
    };
    if (enters_alone(g, size)) { /* one chunk without queries */
        task.chunk = g->chunk;
        task.chunks = 1;
    } else {
        task.chunks = task.chunk ? divide_up(size->length, task.chunk) : 0;
    }
    task.summed = g->unmasked && size->form == FORM_CHUNKED;
    task.walked = is_walked(&task);
    return task;
}

void cuda_take_chunk(cuda_task *task, int64_t chunk)
{
    task->chunk = chunk;
    task->chunks = divide_up(task->size->length, chunk);
    task->walked = is_walked(task);
}

void cuda_take_tail(cuda_task *task)
{
    const struct fpa_cuda_geometry *g = task->geometry;
    if (!g->persistent || g->gate || g->unmasked || task->size->form != FORM_CHUNKED || !task->chunk)
        return;
    task->tail = cuda_tail_tokens(task->room->gpu, g, task->chunk);
    if (cuda_lengths_differ(task->size) && !task->size->state_in && !task->size->state_out)
        task->whole = cuda_whole_tokens(task->room->gpu, g, task->chunk);
    const int64_t last = task->size->length - (task->chunks - 1) * task->chunk;
    if (task->chunks > 1 && last <= task->tail && !task->size->sequences)
        task->chunks--;
    task->walked = is_walked(task);
}

cuda_division cuda_divide(int64_t chunks, int64_t segments)
{
    if (chunks == 0)
        return (cuda_division){1, 1, 1};
    const int64_t run = divide_up(chunks, segments);
    return (cuda_division){divide_up(chunks, run), run, run};
}

cuda_division cuda_divide_fused(const cuda_task *task, int64_t segments)
{
    const int64_t chunks = task->chunks;
    if (!task->geometry->fused_total || chunks == 0)
        return cuda_divide(chunks, segments);
    const int64_t longer = (int64_t)(cuda_first_share(task, segments) * (double)chunks + 0.5);
    const int64_t equal = divide_up(chunks, segments), first = longer > equal ? longer : equal;
    const int64_t rest = chunks - first, run = segments > 1 && rest ? divide_up(rest, segments - 1) : 1;
    return (cuda_division){1 + divide_up(rest, run), run, first};
}

cuda_division cuda_divide_ahead(const cuda_task *task, int64_t segments)
{
    const double later = (double)(segments - 1),
                 run = (double)task->chunks / (later + cuda_total_ratio(task));
    cuda_division division = {segments, (int64_t)ceil(run), 0};
    if ((segments - 1) * division.segment_chunks >=
        task->chunks) /* at least one chunk remains for the first segment */
        division.segment_chunks = (task->chunks - 1) / (segments - 1);
    division.first_chunks = task->chunks - (segments - 1) * division.segment_chunks;
    return division;
}

/* Blocks for the queries of `tokens` tokens of a head. */
static int64_t count_blocks(const cuda_task *task, int64_t tokens)
{
    const int64_t blocks = divide_up(tokens, task->geometry->query_tokens) * task->geometry->column_blocks;
    return blocks > 0 ? blocks : 1;
}

int64_t cuda_heads_beside(const cuda_task *task)
{
    enum { TIMES = 2 };
    const int64_t places = task->room->multiprocessors;
    const int64_t heads = task->chunks > 1
                              ? places / count_blocks(task, task->chunk)
                              : divide_up(TIMES * places, count_blocks(task, task->size->length));
    const int64_t most = task->chunks > 1 ? task->size->query_heads : task->queries;
    return heads < 1 ? 1 : heads < most ? heads : most;
}
