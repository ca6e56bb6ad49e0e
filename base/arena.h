/* arena: memory that is freed as a whole. A head, a simplified head and a plan each have one arena that owns all
 * of their memory. */
#ifndef FPAC_BASE_ARENA_H
#define FPAC_BASE_ARENA_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct arena_block arena_block;
typedef struct arena {
    arena_block *blocks; /* newest first */
    bool failed;         /* an allocation has failed */
    jmp_buf *failure;    /* an allocation that fails jumps here and does not return; NULL: it returns NULL */
    struct arena *scratch; /* the newest scratch arena of this one (arena_scratch), freed with it */
    struct arena *older;   /* of a scratch arena: the one that was made before it */
} arena;

/* `size` bytes, zeroed and aligned for any type; a valid pointer if size is 0. NULL: out of memory, or in
 * arena_array count * size overflows; if a->failure is set, the call jumps there instead. The arena owns the
 * result. */
void *arena_alloc(arena *a, size_t size);
void *arena_array(arena *a, size_t count, size_t size);
void *arena_copy(arena *a, const void *bytes, size_t size);
char *arena_string(arena *a, const char *text);
char *arena_format(arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A new arena for temporary data. It fails as `a` does, and is freed by arena_free(a) if the caller has not freed
 * it before. */
arena *arena_scratch(arena *a);

/* Free everything, scratch arenas included; the arena is empty and can be used again. {0} is an empty arena. */
void arena_free(arena *a);

#endif
