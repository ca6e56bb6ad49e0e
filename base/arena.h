/* arena: memory that is freed at once. A head, a simplified head and a plan
 * each live in one arena, so nothing in them is freed piece by piece. */
#ifndef FPAC_BASE_ARENA_H
#define FPAC_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct arena_block arena_block;
typedef struct arena {
    arena_block *blocks; /* newest first */
    bool failed;         /* memory was out, at some time */
} arena;

/* size zeroed bytes aligned for any type, or NULL when memory is out.
 * arena_array also refuses a product that overflows. size 0 gives a valid pointer. */
void *arena_alloc(arena *a, size_t size);
void *arena_array(arena *a, size_t count, size_t size);
void *arena_copy(arena *a, const void *bytes, size_t size);
char *arena_string(arena *a, const char *text);
char *arena_format(arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Free everything; the arena is empty and usable again. {0} is an empty arena. */
void arena_free(arena *a);

#endif
