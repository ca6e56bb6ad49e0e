/* ptx_clusters: launches that follow each other, and blocks that are a cluster; part of ptx.h. */
#ifndef FPAC_TESTS_PTX_CLUSTERS_H
#define FPAC_TESTS_PTX_CLUSTERS_H

RUNTIME void ptx_griddepcontrol_launch_dependents(void)
{
}
RUNTIME void ptx_griddepcontrol_wait(void)
{
    emulate::waited = true;
    emulate::threads[emulate::current].beside = emulate::thread::SEEN;
    emulate::show_unfinished(true);
}

/* ---- words in device memory by which kernels beside each other speak ---- */

/* What the warp has sent before it met is there. */
RUNTIME void ptx_red_release_gpu_global_add_u32(unsigned *to, int a)
{
    using namespace emulate;
    for (int i = current / WARP * WARP; i < current / WARP * WARP + WARP; i++)
        if (!threads[i].out.empty() && threads[i].sent != own_warp().lanes.generation)
            stop("a thread tells of copies that are not written yet");
    *to += a;
}

RUNTIME void ptx_ld_acquire_gpu_global_u32(emulate::u32 &d, const unsigned *from)
{
    d = *from;
    emulate::threads[emulate::current].beside = emulate::thread::HEARD;
}

/* Kernels run one after the other here: what is not there yet will never be. */
RUNTIME void ptx_nanosleep_u32(int)
{
    emulate::stop("a thread waits for a kernel that is through");
}

RUNTIME void ptx_fence_proxy_async_global(void)
{
    emulate::thread &t = emulate::threads[emulate::current];
    if (t.beside == emulate::thread::HEARD)
        t.beside = emulate::thread::SEEN;
}

/* Work is taken: of it nothing has been heard. */
RUNTIME void ptx_atom_relaxed_gpu_global_add_u32(emulate::u32 &d, unsigned *at, int a)
{
    d = *at;
    *at += a;
    emulate::threads[emulate::current].beside = emulate::thread::NOTHING;
}

RUNTIME void ptx_cp_async_bulk_prefetch_L2_global(const void *, int)
{
}
RUNTIME void ptx_prefetch_global_L2(const void *)
{
}

/* What a cache keeps changes no result; that policies are made is seen. */
static const unsigned long long POLICY = 1;

RUNTIME void ptx_createpolicy_fractional_L2__evict_last_b64(unsigned long long &policy, float fraction)
{
    if (!(fraction > 0 && fraction <= 1))
        emulate::stop("a policy of the part %g", fraction);
    policy = POLICY;
}

static void expect_policy(unsigned long long policy)
{
    if (policy != POLICY)
        emulate::stop("a policy that nobody made");
}

RUNTIME void ptx_cp_async_bulk_prefetch_L2_global_L2__cache_hint(const void *, int, unsigned long long policy)
{
    expect_policy(policy);
}

RUNTIME void ptx_ld_global_L2__cache_hint_f32(float &a, const float *from, unsigned long long policy)
{
    expect_policy(policy);
    a = *from;
}

RUNTIME void ptx_ld_global_L2__cache_hint_b16(unsigned short &a, const unsigned short *from,
                                              unsigned long long policy)
{
    expect_policy(policy);
    a = *from;
}

RUNTIME void ptx_st_global_L2__cache_hint_f32(float *to, float a, unsigned long long policy)
{
    expect_policy(policy);
    *to = a;
}

RUNTIME void ptx_st_global_L2__cache_hint_b16(unsigned short *to, unsigned short a, unsigned long long policy)
{
    expect_policy(policy);
    *to = a;
}

RUNTIME void ptx_barrier_cluster_arrive_relaxed_aligned(void)
{
    using namespace emulate;
    thread &t = threads[current];
    if (t.arrived)
        stop("a thread arrives at the cluster's barrier twice");
    t.arrived = true;
    t.cluster_generation = cluster.generation;
    if (++cluster.arrived < cluster.size)
        return;
    cluster.arrived = 0;
    cluster.generation++;
    end_cluster_told();
}

RUNTIME void ptx_barrier_cluster_arrive_release_aligned(void)
{
    emulate::tell_cluster();
    ptx_barrier_cluster_arrive_relaxed_aligned();
}

RUNTIME void ptx_barrier_cluster_wait_acquire_aligned(void)
{
    using namespace emulate;
    thread &t = threads[current];
    if (!t.arrived)
        stop("a thread waits at the cluster's barrier where it has not arrived");
    t.arrived = false;
    t.met = true;
    if (cluster.generation == t.cluster_generation) {
        t.meets = &cluster;
        t.generation = t.cluster_generation;
        leave();
    }
    hear_cluster();
}

namespace emulate
{
enum { IN_CLUSTER = 1 << 30, RANK = 1 << 20 }; /* an address in the cluster's window */
}

RUNTIME void ptx_mapa_shared__cluster_u32(emulate::u32 &address, emulate::u32 own, int rank)
{
    emulate::at(own, 4);
    if (rank < 0 || rank >= emulate::ranks)
        emulate::stop("an address of block %d of a cluster of %d", rank, emulate::ranks);
    address = emulate::IN_CLUSTER | own | rank * emulate::RANK;
}

namespace emulate
{
/* Another block of the cluster, which has begun and has not ended, becomes the one that runs. */
RUNTIME void visit(int other, const char *what)
{
    const int mine = rank;
    if (!threads[current].met)
        stop("%s: a block of the cluster that may not have begun", what);
    enter(other);
    int left = 0;
    while (left < count && threads[left].done)
        left++;
    if (left < count)
        return;
    enter(mine);
    stop("%s: block %d of the cluster, which has ended", what, other);
}

/* To another block of the cluster, whose barrier hears of it. */
RUNTIME void send(u32 to, const float *a, u32 bytes, u32 barrier)
{
    const int mine = rank, other = (to & ~IN_CLUSTER) / RANK;
    if (!(to & IN_CLUSTER) || !(barrier & IN_CLUSTER) || (barrier & ~IN_CLUSTER) / RANK != (u32)other)
        stop("numbers are sent to address %u, their barrier is at %u", to, barrier);
    visit(other, "numbers are sent");
    copy c = {at(to % RANK, bytes), NULL, bytes, barrier % RANK, 0, false, {}, 0, 0, 0};
    note_store(to % RANK, bytes, "sends numbers to", false);
    tell_news(barrier % RANK); /* numbers come behind all that their thread has done */
    c.read.assign((const char *)a, (const char *)a + bytes);
    barrier_at(c.barrier);
    if (late_copies)
        blocks[other].on_their_way.push_back(c);
    else
        perform(c);
    enter(mine);
}
} // namespace emulate

RUNTIME void ptx_st_async_shared__cluster_mbarrier__complete_tx__bytes_f32(emulate::u32 to, float a,
                                                                           emulate::u32 barrier)
{
    emulate::send(to, &a, 4, barrier);
}

RUNTIME void ptx_st_async_shared__cluster_mbarrier__complete_tx__bytes_v4_f32(
    emulate::u32 to, emulate::array<const float *, 4> a, emulate::u32 barrier)
{
    const float four[4] = {*a[0], *a[1], *a[2], *a[3]};
    emulate::send(to, four, 16, barrier);
}

RUNTIME void ptx_mbarrier_arrive_shared__cluster_b64(emulate::nothing, emulate::u32 address)
{
    using namespace emulate;
    const int mine = rank;
    if (!(address & IN_CLUSTER))
        stop("address %u is in no block of the cluster", address);
    visit((int)((address & ~IN_CLUSTER) / RANK), "a thread arrives");
    barrier &b = barrier_at(address % RANK);
    const bool full = b.pending == 0;
    tell(address % RANK);
    b.pending--;
    finish_phase(b);
    enter(mine);
    if (full)
        stop("more than %d threads arrive at barrier %u in one phase", b.count, address % RANK);
}

/* A box to all blocks of a mask. */
template <typename coordinate>
static void
ptx_cp_async_bulk_tensor_4d_shared__cluster_global_tile_mbarrier__complete_tx__bytes_multicast__cluster(
    emulate::u32 to, const void *map, const emulate::array<coordinate *, 4> &place, emulate::u32 barrier,
    unsigned short blocks)
{
    using namespace emulate;
    const int mine = rank;
    for (int other = 0; other < ranks; other++)
        if (blocks >> other & 1) {
            visit(other, "a box is copied");
            fetch_box(to, map, place.item, barrier);
            enter(mine);
        }
}

#endif
