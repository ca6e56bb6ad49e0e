#include "text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Make room for `size` more bytes and the terminating 0. */
static bool grow(text_buffer *text, size_t size)
{
    size_t room = text->room ? text->room : sizeof text->pending;
    if (size >= SIZE_MAX / 4 - text->used)
        return false;
    while (room <= text->used + size)
        room *= 2;
    if (room == text->room)
        return true;
    char *moved = realloc(text->bytes, room);
    if (!moved)
        return false;
    text->bytes = moved;
    text->room = room;
    return true;
}

static ssize_t append(void *cookie, const char *bytes, size_t size)
{
    text_buffer *text = cookie;
    if (text->lost || !grow(text, size)) {
        text->lost = true;
        return 0;
    }
    memcpy(text->bytes + text->used, bytes, size);
    text->used += size;
    text->bytes[text->used] = '\0';
    return (ssize_t)size;
}

FILE *text_open(text_buffer *text)
{
    *text = (text_buffer){0};
    text->stream = fopencookie(text, "w", (cookie_io_functions_t){.write = append});
    if (text->stream)
        setvbuf(text->stream, text->pending, _IOFBF,
                sizeof text->pending); /* stdio's own buffer would have to be allocated, which may fail */
    return text->stream;
}

char *text_finish(text_buffer *text)
{
    append(text, "", 0); /* so that an empty text is allocated, too */
    const bool failed = ferror(text->stream);
    if (fclose(text->stream) == 0 && !failed && !text->lost)
        return text->bytes;
    free(text->bytes);
    return NULL;
}

void text_rows(FILE *out, const int *row, int count)
{
    for (int w = 0, next; w < count; w = next) {
        next = w + 1;
        while (next < count && row[next] == row[next - 1] + 1)
            next++;
        fprintf(out, "%s%d", w ? "," : "", row[w] + 1);
        if (next > w + 1)
            fprintf(out, "-%d", row[next - 1] + 1);
    }
}
