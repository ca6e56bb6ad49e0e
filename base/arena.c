#include "arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arena_block {
    arena_block *next;
    size_t used, size;
    _Alignas(max_align_t) unsigned char bytes[];
};

enum { BLOCK_SIZE = 16 * 1024 };

static void *out_of_memory(arena *a)
{
    a->failed = true;
    if (a->failure)
        longjmp(*a->failure, 1);
    return NULL;
}

static arena_block *block_new(arena *a, size_t size)
{
    size_t capacity = size > BLOCK_SIZE ? size : BLOCK_SIZE;
    arena_block *block = capacity > SIZE_MAX - sizeof *block ? NULL : calloc(1, sizeof *block + capacity);
    if (!block)
        return out_of_memory(a);
    block->size = capacity;
    block->next = a->blocks;
    a->blocks = block;
    return block;
}

void *arena_alloc(arena *a, size_t size)
{
    const size_t align = _Alignof(max_align_t);
    if (size > SIZE_MAX / 2)
        return out_of_memory(a);
    size = (size + align - 1) / align * align;
    arena_block *block = a->blocks;
    if (!block || block->size - block->used < size)
        block = block_new(a, size);
    if (!block)
        return NULL;
    void *bytes = block->bytes + block->used;
    block->used += size;
    return bytes;
}

void *arena_array(arena *a, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        return out_of_memory(a);
    return arena_alloc(a, count * size);
}

void *arena_copy(arena *a, const void *bytes, size_t size)
{
    void *copy = arena_alloc(a, size);
    if (copy && size)
        memcpy(copy, bytes, size);
    return copy;
}

char *arena_string(arena *a, const char *text)
{
    return arena_copy(a, text, strlen(text) + 1);
}

char *arena_format(arena *a, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = length < 0 ? NULL : arena_alloc(a, (size_t)length + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
    return text;
}

arena *arena_scratch(arena *a)
{
    arena *scratch = arena_alloc(a, sizeof *scratch);
    if (scratch)
        *scratch = (arena){.failure = a->failure, .older = a->scratch}, a->scratch = scratch;
    return scratch;
}

static void free_blocks(arena *a)
{
    for (arena_block *block = a->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    a->blocks = NULL;
}

void arena_free(arena *a)
{
    for (arena *scratch = a->scratch; scratch; scratch = scratch->older)
        free_blocks(scratch);
    free_blocks(a);
    a->scratch = NULL, a->failed = false;
}
