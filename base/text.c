#include "text.h"

#include <stdbool.h>
#include <stdlib.h>

char *text_finish(FILE *stream, char **text)
{
    const bool written = !ferror(stream);
    if (fclose(stream) == 0 && written)
        return *text;
    free(*text);
    return *text = NULL;
}
