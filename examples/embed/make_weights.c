/* make_weights: a file of weights for the head trainable_dense of 2 heads, in place of a trained model's.
 *
 *   ./make_weights model.fpaw */
#include <stdio.h>
#include <stdlib.h>

#include "model_file.h"

enum { COUNT = 2, HEADS = 2, D = 48 };

static int64_t aligned(int64_t offset)
{
    return (offset + MODEL_ALIGNMENT - 1) / MODEL_ALIGNMENT * MODEL_ALIGNMENT;
}

static int write_numbers(FILE *out, const model_entry *entry, unsigned seed)
{
    if (fseek(out, (long)entry->offset, SEEK_SET))
        return -1;
    for (int64_t i = 0; i < model_numbers(entry); i++) {
        seed = seed * 1664525u + 1013904223u;
        const float number = (float)(seed >> 8) / (float)(1 << 24) - 0.5f;
        if (fwrite(&number, sizeof number, 1, out) != 1)
            return -1;
    }
    return 0;
}

int main(int count, char **arguments)
{
    const model_header header = {"fpaw 1", COUNT};
    model_entry entries[COUNT] = {{"W1", 3, {HEADS, 8, D}, 0}, {"W2", 3, {HEADS, 12, D}, 0}};
    int64_t end = (int64_t)(sizeof header + sizeof entries);
    if (count != 2)
        return fprintf(stderr, "usage: make_weights FILE\n"), 2;
    for (int i = 0; i < COUNT; i++) {
        entries[i].offset = aligned(end);
        end = entries[i].offset + 4 * model_numbers(&entries[i]);
    }
    FILE *out = fopen(arguments[1], "wb");
    int failed =
        !out || fwrite(&header, sizeof header, 1, out) != 1 || fwrite(entries, sizeof entries, 1, out) != 1;
    for (int i = 0; i < COUNT && !failed; i++)
        failed = write_numbers(out, &entries[i], (unsigned)i + 1);
    if (out && fclose(out))
        failed = 1;
    if (failed)
        perror(arguments[1]);
    return failed ? 1 : 0;
}
