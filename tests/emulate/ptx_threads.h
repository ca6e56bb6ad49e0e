/* ptx_threads: named barriers, fences, and how many registers threads may use; a part of ptx.h. */
#ifndef FPAC_TESTS_PTX_THREADS_H
#define FPAC_TESTS_PTX_THREADS_H

RUNTIME void ptx_bar_sync(int name, int size)
{
    using namespace emulate;
    group &g = named[name];
    if (g.arrived == 0)
        g.size = size;
    tell(name);
    meet(g, "bar.sync", g.arrived, NULL, [name] { end_told(name); });
    hear(name);
}

RUNTIME void ptx_fence_proxy_async_shared__cta(void)
{
    emulate::threads[emulate::current].fences++;
}

/* A GPU ends a kernel that raises a number to a lower one, or lowers it to a higher one, as an illegal instruction. */
static inline void set_registers(const char *how, int registers, bool possible)
{
    emulate::meet_warp("setmaxnreg");
    if (!possible || registers % 8 || registers < 24 || registers > 256)
        emulate::stop("setmaxnreg.%s to %d from %d registers", how, registers,
                      emulate::threads[emulate::current].registers);
    emulate::threads[emulate::current].registers = registers;
}

RUNTIME void ptx_setmaxnreg_inc_sync_aligned_u32(int registers)
{
    set_registers("inc", registers, registers >= emulate::threads[emulate::current].registers);
}

RUNTIME void ptx_setmaxnreg_dec_sync_aligned_u32(int registers)
{
    set_registers("dec", registers, registers <= emulate::threads[emulate::current].registers);
}

RUNTIME void ptx_fence_mbarrier_init_release_cluster(void)
{
}

#endif
