/* arena: memory that is freed at once. A head, a simplified head and a plan
 * each live in one arena, so nothing in them is freed piece by piece. */
#ifndef FPAC_BASE_ARENA_H
#define FPAC_BASE_ARENA_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct arena_block arena_block;
typedef struct arena {
    arena_block *blocks;   /* newest first */
    bool failed;           /* memory was out, at some time */
    jmp_buf *failure;      /* where an allocation goes on then, and does not return; NULL: it returns NULL */
    struct arena *scratch; /* the newest one, which is freed with this one */
    struct arena *older;   /* of a scratch the one before */
} arena;

/* size zeroed bytes aligned for any type, or NULL when memory is out.
 * arena_array also refuses a product that overflows. size 0 gives a valid pointer. */
void *arena_alloc(arena *a, size_t size);
void *arena_array(arena *a, size_t count, size_t size);
void *arena_copy(arena *a, const void *bytes, size_t size);
char *arena_string(arena *a, const char *text);
char *arena_format(arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One for what is needed for a while, of which the other one frees what arena_free has not; it fails as that one does. */
arena *arena_scratch(arena *a);

/* Free everything; the arena is empty and usable again. {0} is an empty arena. */
void arena_free(arena *a);

#endif
