/* launch: a grid of an emitted kernel, block after block or cluster after cluster; a part of runtime.cpp. */
#ifndef FPAC_TESTS_EMULATE_LAUNCH_H
#define FPAC_TESTS_EMULATE_LAUNCH_H

#include "emulate.h"

namespace emulate
{

static void clear(group &g, int size)
{
    g.size = size;
    g.arrived = 0;
}

/* Shared memory is poison: every 16 or 32 bits are not a number. */
static void start_block(unsigned number)
{
    block &b = blocks[rank];
    blockIdx = b.place = {number % gridDim.x, number / gridDim.x, 0};
    memset(memory, 0xff, memory_bytes);
    memset(writer, 0xff, (memory_bytes + 15) / 16 * sizeof *writer);
    memset(barriers, 0, (memory_bytes + 7) / 8 * sizeof *barriers);
    b.on_their_way.clear();
    b.own.assign(__stop_block_shared - __start_block_shared, (char)0xff);
    if (rank == 0)
        memset(__start_block_shared, 0xff, b.own.size());
    for (int i = 0; i < NAMED_BARRIERS; i++)
        clear(named[i], count);
    for (int i = 0; i < count; i++) {
        thread &t = threads[i];
        t.done = false;
        t.meets = NULL;
        t.waits = NULL;
        t.fences = 0;
        t.registers = 65536 / (count * resident) / 8 * 8;
        t.patient = false;
        t.beside = thread::NOTHING;
        t.arrived = t.met = false;
        t.open.clear(), t.copies.clear(), t.open_out.clear(), t.out.clear();
        make_fiber(&t.here, stacks + ((size_t)rank * MOST_THREADS + i) * STACK, STACK, run_thread);
        clear(warpgroups[i / WARPGROUP], WARPGROUP);
        warp &w = warps[i / WARP];
        clear(w.lanes, WARP);
        w.arrivals.clear(), w.open.clear(), w.products.clear();
        w.fenced = false;
        w.issued = 0;
    }
}

/* What a thread has sent is written, though nobody waits for it, if it was read while there was shared memory. */
static void finish_sends(thread &t)
{
    for (const std::vector<copy> &group : t.out)
        for (const copy &c : group) {
            if (c.bytes && c.read.empty())
                snprintf(message, sizeof message, "block %u ends before what it sends is read", blockIdx.x);
            else
                perform(c);
        }
}

/* What a block must not leave behind. */
static void finish_block(void)
{
    for (int i = 0; i < count; i++)
        finish_sends(threads[i]);
    if (!blocks[rank].on_their_way.empty())
        snprintf(message, sizeof message, "block %u ends before copies into its shared memory come",
                 blockIdx.x);
    for (int w = 0; w < count / WARP && !*message; w++) {
        if (late_products && !(warps[w].open.empty() && warps[w].products.empty()))
            snprintf(message, sizeof message,
                     "warp %d of block %u waits for its last matrix instructions never", w, blockIdx.x);
        if (warps[w].issued != warps[w / 4 * 4].issued)
            snprintf(message, sizeof message, "warps %d and %d of block %u had other matrix instructions",
                     w / 4 * 4, w, blockIdx.x);
    }
}

/* Threads of a warp in turn, each until it waits. Returns whether one could go on. */
static bool run_warp(int warp, bool *unfinished)
{
    bool moved = false;
    for (int i = warp * WARP; i < (warp + 1) * WARP && i < count && !*message; i++) {
        if (threads[i].done)
            continue;
        *unfinished = true;
        if (!is_ready(threads[i]))
            continue;
        moved = true;
        resume(i);
        i = current;
    }
    return moved;
}

/* The same numbers in every launch. */
STATE unsigned drawn;

static unsigned draw(void)
{
    return (drawn = drawn * 1664525 + 1013904223) >> 16;
}

/* Beside late copies warps in turn. Else they begin at either end, and each goes one step, or until it has to
 * wait for another one: who reads what others leave may come first, so that a wait that is missing shows. */
RUNTIME bool run_threads(bool *unfinished)
{
    const int warps = (count + WARP - 1) / WARP;
    const bool down = !late_copies && draw() % 2;
    bool moved = false;
    for (int i = 0; i < warps; i++) {
        const bool far = !late_copies && draw() % 2;
        while (run_warp(down ? warps - 1 - i : i, unfinished)) {
            moved = true;
            if (!far)
                break;
        }
    }
    return moved;
}

/* Late copies of a block come when nobody can do anything else. */
static bool bring_copy(void)
{
    std::deque<copy> &copies = blocks[rank].on_their_way;
    if (copies.empty())
        return false;
    for (bool more = true; more; copies.pop_front()) {
        more = copies.front().more;
        perform(copies.front());
    }
    return true;
}

/* So do those that a thread has sent itself and waits for. */
static bool end_patience(void)
{
    bool patient = false;
    for (int i = 0; i < count; i++) {
        patient = patient || threads[i].patient;
        threads[i].patient = false;
    }
    return patient;
}

/* ---- deadlocks ---- */

RUNTIME void describe(const thread &t, char *text, size_t size)
{
    if (t.done)
        snprintf(text, size, "done");
    else if (t.meets)
        snprintf(text, size, "%s, %d of %d came", t.meets->what, t.meets->arrived, t.meets->size);
    else
        snprintf(text, size, "barrier %u, phase %u, lacks %d arrivals and %lld bytes", t.address, t.parity,
                 t.waits->pending, t.waits->bytes);
}

RUNTIME void tell_deadlock(void)
{
    std::string text = "no thread of block " + std::to_string(blockIdx.x) + " can go on:";
    for (int w = 0; w < count / WARP; w++) {
        char first[160] = "", other[160];
        for (int i = 0; i < WARP; i++) {
            describe(threads[w * WARP + i], other, sizeof other);
            if (strcmp(first, other) != 0)
                text += (i ? "; lane " + std::to_string(i) : "\n  warp " + std::to_string(w)) + ": " + other;
            strcpy(first, other);
        }
    }
    snprintf(message, sizeof message, "%s", text.c_str());
}

/* ---- clusters ---- */

/* Blocks of a cluster in turn; beside late copies from the last one on. */
static void run_cluster(void)
{
    for (;;) {
        bool moved = false, brought = false, unfinished = false;
        for (int i = 0; i < ranks && !*message; i++) {
            enter(late_copies ? ranks - 1 - i : i);
            moved = run_threads(&unfinished) || moved;
        }
        if (*message || !unfinished)
            return;
        for (int i = 0; i < ranks && !moved && !brought; i++) {
            enter(i);
            brought = bring_copy() || end_patience();
        }
        if (!moved && !brought)
            return tell_deadlock();
    }
}

static void launch_cluster(unsigned first)
{
    clear(cluster, ranks * count);
    cluster.what = "the cluster's barrier";
    start_races();
    for (int i = 0; i < ranks; i++) {
        enter(i);
        start_block(first + i);
    }
    enter(0);
    run_cluster();
    for (int i = 0; i < ranks && !*message; i++) {
        enter(i);
        finish_block();
    }
}

/* When the library is unloaded. */
__attribute__((destructor)) static void give_back(void)
{
    for (int i = 0; i < constructed; i++)
        blocks[i].~block();
    if (blocks && blocks != MAP_FAILED)
        munmap(blocks, MOST_BLOCKS * sizeof *blocks);
    if (stacks && stacks != MAP_FAILED)
        munmap(stacks, (size_t)MOST_BLOCKS * MOST_THREADS * STACK);
}

/* Zeros that take no memory before somebody writes there. */
static void *reserve(size_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* A few megabytes each: those that a launch needs. */
static bool construct_blocks(int wanted)
{
    if (!blocks)
        blocks = (block *)reserve(MOST_BLOCKS * sizeof *blocks);
    if (blocks == MAP_FAILED)
        return false;
    for (; constructed < wanted; constructed++)
        new (&blocks[constructed]) block;
    return true;
}

/* Kernels whose blocks are clusters of two in any launch; NULL: there are none. */
extern "C" __attribute__((weak, visibility("hidden"))) char __start_clusters_of_2[], __stop_clusters_of_2[];

static unsigned own_neighbours(const void *kernel)
{
    return (const char *)kernel >= __start_clusters_of_2 && (const char *)kernel < __stop_clusters_of_2 ? 2
                                                                                                        : 1;
}

/* Queries beside a walk, which may leave the last state: who comes behind waits for them alone. */
static void check_waited(void)
{
    if (overlapping && parameters->awaited && !waited && !*message)
        snprintf(message, sizeof message, "no thread waits for the end of the walk beside the queries");
}

} // namespace emulate

/* NULL, or what went wrong. So many neighbours along x are a cluster, or as many as the kernel itself says; resident: blocks that share a
 * multiprocessor's registers, as __launch_bounds__ says, 0: one. maps, weights (pointers to the head's):
 * NULL where the kernel takes none. late: matrix instructions (bit 0), copies (bit 1) are not done before
 * somebody waits for them. overlaps: the kernel has to find out by itself what the one before it has written;
 * that is NAME_gate_scan (behind_gates), or so many bytes of it are totals. */
extern "C" __attribute__((visibility("default"))) const char *
emulate_launch(void *kernel, unsigned grid_x, unsigned grid_y, unsigned block, unsigned bytes,
               unsigned neighbours, unsigned resident, const struct fpa_cuda_call *call, const void *maps,
               const void *weights, int late, int overlaps, bool behind_gates, size_t totals)
{
    using namespace emulate;
    neighbours = neighbours > 1 ? neighbours : own_neighbours(kernel);
    if (!stacks)
        stacks = (unsigned char *)reserve((size_t)MOST_BLOCKS * MOST_THREADS * STACK);
    if (stacks == MAP_FAILED || block > MOST_THREADS || block % WARP || bytes > SHARED ||
        neighbours > MOST_BLOCKS || grid_x % neighbours || !construct_blocks(neighbours))
        return "a launch that cannot be emulated";
    emulate::kernel = kernel;
    emulate::maps = maps;
    emulate::weights = weights;
    late_products = late & 1;
    late_copies = late & 2;
    emulate::resident = resident > 1 ? (int)resident : 1;
    drawn = 0;
    overlapping = overlaps;
    waited = false;
    gates = call->gates;
    gates_end =
        call->gates + (call->gates && !behind_gates ? call->batch * call->heads * call->gate_row * 2 : 0);
    parameters = call;
    count = block;
    memory_bytes = bytes;
    gridDim = {grid_x, grid_y, 1};
    blockDim = {block, 1, 1};
    *message = 0;
    ranks = neighbours;
    unfinished.at = (unsigned char *)call->totals;
    unfinished.left.assign(unfinished.at, unfinished.at + (overlaps ? totals : 0));
    unfinished.shown = true;
    for (unsigned i = 0; i < grid_x * grid_y && !*message; i += neighbours)
        launch_cluster(i);
    show_unfinished(true);
    check_waited();
    return *message ? message : NULL;
}

#endif
