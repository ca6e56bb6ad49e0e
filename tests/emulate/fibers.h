/* fibers: where a fiber goes on, and going there; a part of emulate.h.
 *
 * Fibers change millions of times: on x86-64 by exchanging the stack and the registers that a call keeps, as
 * swapcontext() does, which also asks the kernel for the signal mask each time. */
#ifndef FPAC_TESTS_EMULATE_FIBERS_H
#define FPAC_TESTS_EMULATE_FIBERS_H

#include <cstddef>
#include <ucontext.h>

namespace emulate
{

#ifdef __x86_64__

typedef void **fiber; /* top of its stack, where its registers lie; below them the address to go on at */

/* Leaves *from, which is set, and goes on at `to`. The return address is the same in all fibers that wait at
 * one place: the processor foresees it. */
__attribute__((naked, noinline)) static void change_fiber(fiber * /* from */, const fiber * /* to */)
{
    asm("pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
        "movq %rsp, (%rdi)\n movq (%rsi), %rsp\n"
        "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n ret");
}

/* A fiber that will call run(), which never returns. */
static void make_fiber(fiber *f, unsigned char *stack, size_t size, void (*run)(void))
{
    enum { KEPT = 6 }; /* registers */
    void **top = (void **)(stack + size);
    *--top = NULL; /* where run() would return to; a function begins 8 bytes off a multiple of 16 */
    *--top = (void *)run;
    for (int i = 0; i < KEPT; i++)
        *--top = NULL;
    *f = top;
}

#else

typedef ucontext_t fiber;

static void change_fiber(fiber *from, const fiber *to)
{
    swapcontext(from, to);
}

static void make_fiber(fiber *f, unsigned char *stack, size_t size, void (*run)(void))
{
    getcontext(f);
    f->uc_stack.ss_sp = stack;
    f->uc_stack.ss_size = size;
    makecontext(f, run, 0);
}

#endif

} // namespace emulate

#endif
