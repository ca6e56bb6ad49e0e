#include "nearest.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { COMPARED = 64 };

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* table[i][j], the distance between the first i letters of a and the first j of b (optimal string alignment). */
static int cell(const char *a, const char *b, int i, int j, int table[COMPARED + 1][COMPARED + 1])
{
    int change = table[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
    int best = smaller(change, 1 + smaller(table[i - 1][j], table[i][j - 1]));
    bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
    return swapped ? smaller(best, 1 + table[i - 2][j - 2]) : best;
}

int nearest_distance(const char *a, const char *b)
{
    int table[COMPARED + 1][COMPARED + 1];
    int rows = (int)strnlen(a, COMPARED), columns = (int)strnlen(b, COMPARED);
    for (int i = 0; i <= rows; i++)
        table[i][0] = i;
    for (int j = 0; j <= columns; j++)
        table[0][j] = j;
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= columns; j++)
            table[i][j] = cell(a, b, i, j, table);
    return table[rows][columns];
}

bool nearest_plausible(const char *word, const char *name)
{
    int length = (int)strnlen(name, COMPARED);
    return nearest_distance(word, name) <= (length + 2) / 3;
}

const char *nearest_name(const char *word, const char *const *candidates)
{
    const char *nearest = NULL;
    for (; *candidates; candidates++)
        if (nearest_plausible(word, *candidates) &&
            (!nearest || nearest_distance(word, *candidates) < nearest_distance(word, nearest)))
            nearest = *candidates;
    return nearest;
}

fpa_status fail_unknown(fpa_error *error, const char *where, const char *word, const char *kind,
                        const char *const *candidates)
{
    const char *nearest = nearest_name(word, candidates);
    char names[256] = "";
    for (int i = 0; candidates[i]; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", candidates[i]);
    }
    return nearest ? fail(error, FPA_INVALID, where, "%s is no %s; did you mean %s? (there are %s)", word,
                          kind, nearest, names)
                   : fail(error, FPA_INVALID, where, "%s is no %s; there are %s", word, kind, names);
}
