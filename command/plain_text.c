#include "plain_text.h"

#include <stdint.h>
#include <string.h>

/* The bytes of the UTF-8 character that begins here, and its code point; 0: it is not valid UTF-8. */
static size_t decode(const unsigned char *at, size_t left, uint32_t *number)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000}; /* overlong forms are not valid UTF-8 */
    size_t size = *at < 0x80 ? 1 : *at >> 5 == 6 ? 2 : *at >> 4 == 14 ? 3 : *at >> 3 == 30 ? 4 : 0;
    if (size == 0 || size > left)
        return 0;
    *number = size == 1 ? *at : *at & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if (at[i] >> 6 != 2)
            return 0;
        *number = *number << 6 | (at[i] & 0x3fu);
    }
    return *number < least[size] ? 0 : size;
}

static bool is_allowed(uint32_t number)
{
    bool control = number < 0x20 || (number >= 0x7f && number < 0xa0);
    bool surrogate = number >= 0xd800 && number < 0xe000;
    return !control && !surrogate && number != 0xfffe && number != 0xffff && number <= 0x10ffff;
}

bool text_is_plain(const char *text, size_t size)
{
    uint32_t number = 0;
    for (size_t at = 0, step; at < size; at += step) {
        step = decode((const unsigned char *)text + at, size - at, &number);
        if (step == 0 || !is_allowed(number))
            return false;
    }
    return true;
}

size_t plain_size(const char *text)
{
    uint32_t number = 0;
    size_t size = decode((const unsigned char *)text, strlen(text), &number);
    return size > 0 && is_allowed(number) ? size : 0;
}

void print_escaped(FILE *out, const char *text)
{
    while (*text) {
        size_t size = plain_size(text);
        if (size > 0)
            fwrite(text, 1, size, out);
        else if (*text == '\n')
            fputs("\\n", out);
        else
            fprintf(out, "\\x%02x", (unsigned char)*text);
        text += size > 0 ? size : 1;
    }
}
