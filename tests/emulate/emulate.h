/* emulate: blocks of CUDA threads on the CPU, one fiber a thread; included before an emitted file (C++17).
 *
 * A block's fibers take turns on one core, each until it has to wait; blocks follow each other, those of a
 * cluster take turns. Nothing depends on time, and the order of warps is drawn from the same numbers each
 * time (launch.h): the same launch is the same run. What is asynchronous on the GPU happens either at once
 * or, when it is to be late, not before somebody waits for it, so that a wait that is missing shows. Where no
 * fiber can go on, the launch ends with a message that says where each warp is. */
#ifndef FPAC_TESTS_EMULATE_H
#define FPAC_TESTS_EMULATE_H

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "fibers.h"

#define __device__
#define __global__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __cluster_dims__(x, y, z) __attribute__((section("clusters_of_" #x))) /* launch.h looks there */
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static __attribute__((section("block_shared"))) /* a block's: see enter() */

/* What all emitted files share is compiled once (runtime.cpp), with optimisation: they find it when they are linked. What is
 * RUNTIME they know by its declaration alone (declarations.h). */
#define RUNTIME __attribute__((visibility("hidden")))
#ifdef EMULATE_RUNTIME
#define STATE __attribute__((visibility("hidden")))
#else
#define STATE extern __attribute__((visibility("hidden")))
#endif

struct uint3 {
    unsigned x, y, z;
};
struct float2 {
    float x, y;
};
struct __align__(8) uint2
{
    unsigned x, y;
};
struct __align__(16) float4
{
    float x, y, z, w;
};
struct __align__(16) uint4
{
    unsigned x, y, z, w;
};

struct fpa_cuda_call;

STATE uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulate
{

typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

enum {
    WARP = 32,
    WARPGROUP = 128,
    MOST_THREADS = 1024,
    MOST_BLOCKS = 8, /* of a cluster */
    NAMED_BARRIERS = 16,
    STACK = (1024 << 10) +
            17 * 64, /* bytes of a fiber's; odd lines: else all stacks fight for the same lines of a cache */
    SHARED = 227 << 10,
    BASE = 1024, /* address of the first byte of shared memory */
};

/* ---- shared memory ---- */

STATE unsigned char *memory; /* the block's; so are all pointers below that enter() sets */
STATE u32 memory_bytes;      /* of this launch */

/* Who wrote each 16 bytes last as threads do, and how many fences that thread had passed then: until the next
 * one, matrix instructions and bulk copies need not see it. */
struct written {
    int thread; /* -1: nobody */
    unsigned fences;
};
STATE written *writer;

/* Who came first goes first, of few; empty, it has taken no memory, as a std::deque has. */
template <typename item> struct queue : std::vector<item> {
    void pop_front(void)
    {
        this->erase(this->begin());
    }
};

/* ---- what threads wait for ---- */

/* Threads that do something together: a warp, a warpgroup, those of a named barrier. */
struct group {
    int size, arrived;
    unsigned generation; /* how often all came */
    const char *what;    /* that those who came are at */
    std::vector<void *> argument;
};

/* An mbarrier. */
struct barrier {
    bool used;
    int count, pending; /* arrivals of a phase, and those that are still to come */
    long long bytes;    /* that are still to come */
    u32 phase;
    bool awaited, split; /* somebody waits for it; a phase ended amid a warp's arrival before anyone did */
};
STATE barrier *barriers; /* by address / 8 */

/* Bytes on their way. */
struct copy {
    void *to;
    const void *from;           /* NULL: zeros */
    u32 bytes, barrier, shared; /* barrier: 0 none; shared: address of the source there */
    bool more;                  /* the next one belongs to it */
    std::vector<char> read;     /* what somebody waited to be read, and is not written yet */
    u32 arrives;                /* barrier at which it arrives, behind all that belongs to it; 0: none */
    int who;                    /* number of its thread in the cluster, and one; 0: it tells nobody */
    u64 when;                   /* that thread's moment (races.h) */
};

struct thread {
    fiber here;
    bool done;
    const group *meets; /* waits there; NULL: for the barrier; both NULL: can go on */
    unsigned generation;
    const barrier *waits;
    u32 parity, address;
    bool arrived; /* at the cluster's barrier, in cluster_generation */
    bool met;     /* waited there once: the others have begun */
    unsigned cluster_generation;
    unsigned fences;
    int registers; /* that it may use: at first, its share of what blocks of its size have */
    bool patient;  /* waits for late copies until no other thread can go on */
    unsigned sent; /* generation of the warp's lanes when the first of `out` was */
    enum { NOTHING, HEARD, SEEN } beside; /* of what a kernel that runs beside this one has written */
    std::vector<copy> open, open_out;     /* not committed yet */
    queue<std::vector<copy>> copies, out; /* committed */
};

/* One matrix instruction, as a warp has it. */
struct product {
    u32 a[WARP][4];
    u64 a_place, b_place; /* a_place 0: a is in registers */
    float *c[WARP];
    int columns;
    bool half, add, a_rows, b_columns; /* 16 bytes of the operand run along its rows, its columns */
    std::vector<float> before;         /* late: the sums that it finds; empty: those of one before it */
};

/* Lanes of a warp that have arrived at a barrier: in a phase of that parity, and in the one before. */
struct arrival {
    u32 parity, lanes, before;
};

struct warp {
    group lanes;
    std::map<u32, arrival> arrivals; /* by barrier */
    std::vector<product> open;
    queue<std::vector<product>> products;
    bool fenced; /* since the last commit */
    u64 issued;  /* digest of what was: equal in a warpgroup */
};

STATE thread *threads;
STATE warp *warps;
STATE group *warpgroups, *named;
STATE bool late_products, late_copies;
STATE int resident;     /* blocks that share the registers of a multiprocessor */
STATE bool overlapping; /* the kernel runs beside the one before it */
STATE bool waited;      /* some thread for that one's end */
/* sums of gates, of a kernel that was through before the one beside this one began; else none */
STATE const void *gates, *gates_end;
/* What the kernel before is leaving: a thread that has not waited for it finds what is no number instead. */
STATE struct awaited {
    unsigned char *at;
    std::vector<unsigned char> left;
    bool shown;
} unfinished;
STATE unsigned char *stacks;
STATE int current, count; /* number of the thread that runs; threads of the block */
STATE fiber scheduler;
STATE char message[2048];

/* ---- the launch ---- */

STATE void *kernel;
STATE const struct fpa_cuda_call *parameters;
STATE const void *maps, *weights; /* NULL: the kernel takes none */

/* A thread's fiber: the kernel, as the emitted file has it (kernel_thread.h). */
__attribute__((visibility("hidden"))) void run_thread(void);

/* ---- blocks ---- */

struct block {
    alignas(1024) unsigned char memory[SHARED];
    written writer[SHARED / 16];
    barrier barriers[SHARED / 8];
    thread threads[MOST_THREADS];
    warp warps[MOST_THREADS / WARP];
    group warpgroups[MOST_THREADS / WARPGROUP], named[NAMED_BARRIERS];
    std::deque<copy> on_their_way; /* copies into its shared memory */
    std::vector<char> own;         /* __shared__ variables while another block runs */
    uint3 place;                   /* blockIdx */
};
STATE block *blocks; /* [MOST_BLOCKS] of the cluster, of which so many were constructed: */
STATE int constructed;
STATE int rank, ranks; /* number of the block that runs; blocks of the cluster */
STATE group cluster;   /* its barrier, at which threads arrive before they wait */

/* Where the linker put __shared__ variables; NULL: there are none. */
extern "C" __attribute__((weak, visibility("hidden"))) char __start_block_shared[], __stop_block_shared[];

/* Another block runs: its memory and threads are those that all that follows means. */
RUNTIME void enter(int next)
{
    const size_t size = __stop_block_shared - __start_block_shared;
    if (size > 0 && next != rank) {
        blocks[rank].own.assign(__start_block_shared, __stop_block_shared);
        blocks[next].own.resize(size);
        memcpy(__start_block_shared, blocks[next].own.data(), size);
    }
    rank = next;
    block &b = blocks[rank];
    memory = b.memory;
    writer = b.writer;
    barriers = b.barriers;
    threads = b.threads;
    warps = b.warps;
    warpgroups = b.warpgroups;
    named = b.named;
    blockIdx = b.place;
}

/* ---- fibers ---- */

/* Back to the scheduler, for good. */
[[noreturn]] RUNTIME void stop(const char *format, ...)
{
    char where[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    snprintf(where, sizeof where, " (block %u, thread %d)", blockIdx.x, current);
    strncat(message, where, sizeof message - strlen(message) - 1);
    change_fiber(&threads[current].here, &scheduler);
    __builtin_unreachable();
}

RUNTIME void show_unfinished(bool shown)
{
    if (shown == unfinished.shown)
        return;
    unfinished.shown = shown;
    if (shown)
        memcpy(unfinished.at, unfinished.left.data(), unfinished.left.size());
    else
        memset(unfinished.at, 0xff, unfinished.left.size());
}

RUNTIME bool is_ready(thread &t)
{
    if (t.patient || (t.meets && t.meets->generation == t.generation) ||
        (t.waits && t.waits->phase == t.parity))
        return false;
    t.meets = NULL;
    t.waits = NULL;
    return true;
}

} // namespace emulate

#include "races.h"

namespace emulate
{

/* Thread `next` is the one that runs. */
RUNTIME void enter_thread(int next)
{
    show_unfinished(unfinished.left.empty() || threads[next].beside == thread::SEEN);
    current = next;
    threadIdx.x = next;
}

/* It runs, and those of its warp behind it, until none of them can go on: `current` is the last. */
RUNTIME void resume(int next)
{
    begin_acting();
    enter_thread(next);
    change_fiber(&scheduler, &threads[next].here);
}

/* The next lane that can go on has its turn, without the scheduler; behind the last one, the scheduler. */
__attribute__((noinline)) RUNTIME void leave(void)
{
    thread &left = threads[current];
    const int end = std::min((current / WARP + 1) * WARP, count);
    for (int next = current + 1; next < end; next++)
        if (!threads[next].done && is_ready(threads[next])) {
            enter_thread(next);
            return change_fiber(&left.here, &threads[next].here);
        }
    change_fiber(&left.here, &scheduler);
}

/* The last of a group does act() for all; what each brought lies in argument[]. */
template <typename action> static void meet(group &g, const char *what, int place, void *mine, action act)
{
    if (g.arrived == 0)
        g.what = what;
    else if (g.what != what && strcmp(g.what, what) != 0)
        stop("threads that belong together are at %s and at %s", g.what, what);
    if ((int)g.argument.size() < g.size)
        g.argument.resize(g.size);
    g.argument[place] = mine;
    if (++g.arrived == g.size) {
        if (&g == &warps[current / WARP].lanes)
            warp_has_met(current / WARP);
        act();
        g.arrived = 0;
        g.generation++;
        return;
    }
    threads[current].meets = &g;
    threads[current].generation = g.generation;
    leave();
}

RUNTIME warp &own_warp(void)
{
    return warps[current / WARP];
}

RUNTIME void meet_warp(const char *what)
{
    meet(own_warp().lanes, what, current % WARP, NULL, [] {});
}

/* ---- places ---- */

RUNTIME unsigned char *at(u32 address, u32 bytes)
{
    if (address < BASE || address - BASE + bytes > memory_bytes || address % bytes)
        stop("%u bytes at address %u of shared memory, of which there are %u from %u on", bytes, address,
             memory_bytes, BASE);
    return memory + (address - BASE);
}

/* same: what was there before. */
RUNTIME void note_write(u32 address, u32 bytes, bool same)
{
    for (u32 i = (address - BASE) / 16; i <= (address - BASE + bytes - 1) / 16; i++)
        writer[i] = {current, threads[current].fences};
    note_store(address, bytes, "writes", same);
}

/* The copy engine does, some time. */
RUNTIME void note_copy(u32 address, copy &c)
{
    for (u32 i = 0; i < c.bytes; i += 16)
        writer[(address - BASE + i) / 16].thread = -1;
    note_store(address, c.bytes, "copies to", false);
    c.who = self() + 1;
    c.when = moment_of(self());
}

/* What matrix instructions and bulk copies read. */
RUNTIME void check_fence(u32 address)
{
    const written &w = writer[(address - BASE) / 16];
    if (w.thread >= 0 && threads[w.thread].fences == w.fences)
        stop("address %u is read by a matrix instruction or a bulk copy, but thread %d, who wrote it, has "
             "passed no fence since",
             address, w.thread);
}

RUNTIME barrier &barrier_at(u32 address)
{
    at(address, 8);
    barrier &b = barriers[(address - BASE) / 8];
    if (!b.used)
        stop("there is no barrier at address %u", address);
    return b;
}

RUNTIME void stop_amid_arrival(const barrier &b, u32 address)
{
    stop("a phase of barrier %u, of %d threads, ends amid a warp's arrival", address, b.count);
}

/* The lanes of a warp that arrive together are counted at once: a phase may not end between them. Where nobody ever waits, warpgroups
 * may be phases apart; warps fit into a phase then, and here their lanes may come in any order. */
RUNTIME void arrive_with_warp(barrier &b, u32 address)
{
    arrival &a = own_warp().arrivals[address];
    if (a.parity != b.phase)
        a = {b.phase, 0, a.lanes};
    a.lanes |= 1u << current % WARP;
    if (!(a.lanes & ~a.before && a.before))
        return;
    b.split = true;
    if (b.awaited || b.count % WARP != 0)
        stop_amid_arrival(b, address);
}

RUNTIME barrier &awaited_barrier(u32 address)
{
    barrier &b = barrier_at(address);
    b.awaited = true;
    if (b.split)
        stop_amid_arrival(b, address);
    return b;
}

RUNTIME void finish_phase(barrier &b)
{
    if (b.pending > 0 || b.bytes != 0)
        return;
    b.pending = b.count;
    b.phase ^= 1;
    end_told(BASE + (u32)(&b - barriers) * 8);
}

/* ---- copies ---- */

RUNTIME void perform(const copy &c)
{
    if (c.arrives) {
        barrier_at(c.arrives).pending--;
        finish_phase(barrier_at(c.arrives));
    } else if (!c.read.empty())
        memcpy(c.to, c.read.data(), c.bytes);
    else if (c.from)
        memcpy(c.to, c.from, c.bytes);
    else
        memset(c.to, 0, c.bytes);
    if (!c.barrier)
        return;
    if (c.who)
        tell_copied(c.barrier, c.who - 1, c.when);
    barrier &b = barrier_at(c.barrier);
    b.bytes -= c.bytes;
    finish_phase(b);
}

RUNTIME void perform_until(queue<std::vector<copy>> &groups, size_t pending)
{
    for (; groups.size() > pending; groups.pop_front())
        for (const copy &c : groups.front())
            perform(c);
}

/* Copies out of shared memory are written later than they are read. */
RUNTIME void read_until(queue<std::vector<copy>> &groups, size_t pending)
{
    for (size_t i = 0; i + pending < groups.size(); i++)
        for (copy &c : groups[i])
            if (c.read.empty())
                c.read.assign((const char *)c.from, (const char *)c.from + c.bytes);
}

} // namespace emulate

#include "cuda.h"

#endif
