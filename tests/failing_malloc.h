/* failing_malloc: malloc and its kin for a test program, of which the n-th call fails. A header, since what is linked
 * into every test must not replace malloc. */
#ifndef FPAC_TESTS_FAILING_MALLOC_H
#define FPAC_TESTS_FAILING_MALLOC_H

#include <stdlib.h> /* says which C library it is */

#if defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

/* A sanitizer, or a C library other than glibc, keeps its own malloc. */
#if defined SANITIZED || defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || !defined __GLIBC__
#define MALLOC_IS_FOREIGN
#else

#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANGES = 64, MOST_CALLS = 1 << 17 };

static struct {
    atomic_bool armed;
    bool lasting;                 /* all later ones fail too */
    long at;                      /* which one fails, from 1; 0: none, they are only counted */
    atomic_long calls;            /* that count, since it was armed */
    atomic_long blocks;           /* that live, of whoever */
    const void *site[MOST_CALLS]; /* of call i + 1, of the last run: where malloc was called */
    int loader;                   /* the range that is the dynamic loader's */
    bool spares_loader;           /* its calls do not fail: they are counted only */
    int ranges;                   /* code whose calls count: the program and what it was linked with */
    struct {
        uintptr_t low, high;
    } range[MOST_RANGES];
} fault;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

static bool strikes(const void *caller)
{
    if (!fault.armed)
        return false;
    const uintptr_t address = (uintptr_t)caller;
    for (int i = 0; i < fault.ranges; i++)
        if (address >= fault.range[i].low && address < fault.range[i].high) {
            const long call = atomic_fetch_add(&fault.calls, 1) + 1;
            if (call <= MOST_CALLS)
                fault.site[call - 1] = caller;
            const bool turn = fault.at > 0 && (fault.lasting ? call >= fault.at : call == fault.at);
            const bool fails = turn && !(fault.spares_loader && i == fault.loader);
            if (fails)
                errno = ENOMEM;
            return fails;
        }
    return false;
}

/* libc calls them too. */
#define SHOWN __attribute__((visibility("default")))

static void *counted(void *block)
{
    fault.blocks += block != NULL;
    return block;
}

SHOWN void *malloc(size_t size)
{
    return strikes(__builtin_return_address(0)) ? NULL : counted(__libc_malloc(size));
}

SHOWN void *calloc(size_t count, size_t size)
{
    return strikes(__builtin_return_address(0)) ? NULL : counted(__libc_calloc(count, size));
}

SHOWN void *realloc(void *old, size_t size)
{
    if (strikes(__builtin_return_address(0)))
        return NULL;
    void *block = __libc_realloc(old, size);
    fault.blocks += (block != NULL) - (old != NULL && (block || !size));
    return block;
}

SHOWN void *memalign(size_t alignment, size_t size)
{
    return strikes(__builtin_return_address(0)) ? NULL : counted(__libc_memalign(alignment, size));
}

SHOWN void *aligned_alloc(size_t alignment, size_t size)
{
    return strikes(__builtin_return_address(0)) ? NULL : counted(__libc_memalign(alignment, size));
}

SHOWN int posix_memalign(void **block, size_t alignment, size_t size)
{
    *block = strikes(__builtin_return_address(0)) ? NULL : counted(__libc_memalign(alignment, size));
    return *block ? 0 : ENOMEM;
}

SHOWN void free(void *block)
{
    fault.blocks -= block != NULL;
    __libc_free(block);
}

static int note_range(struct dl_phdr_info *object, size_t size, void *user)
{
    (void)size, (void)user;
    if (strstr(object->dlpi_name, "libgomp"))
        return 0;
    for (int i = 0; i < object->dlpi_phnum && fault.ranges < MOST_RANGES; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
            continue;
        const uintptr_t low = object->dlpi_addr + segment->p_vaddr;
        if (strstr(object->dlpi_name, "/ld-"))
            fault.loader = fault.ranges;
        fault.range[fault.ranges].low = low;
        fault.range[fault.ranges++].high = low + segment->p_memsz;
    }
    return 0;
}

/* Whether calls from there were asked about before; it is noted, as far as there is room. */
static inline bool site_is_known(const void *site)
{
    static const void *known[4096];
    size_t i = 0;
    for (; i < sizeof known / sizeof *known && known[i]; i++)
        if (known[i] == site)
            return true;
    if (i < sizeof known / sizeof *known)
        known[i] = site;
    return false;
}

#endif
#endif
