/* prelude: the vocabulary of specs, as readable Lua. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "options.h"

int command_prelude(int count, char **arguments)
{
    const fpa_option table[] = {OPTION_VERBOSE};
    const fpa_syntax syntax = {
        "prelude [--verbose]",
        "Print the Lua source that every spec starts with: linear, power, tspow and the\n"
        "rest are ordinary functions there, to read and to imitate.",
        OPTION_TABLE(table),
        0,
        0,
        NULL};
    fpa_texts operands;
    int code;
    if (!options_parse(&syntax, count, arguments, &operands, &code))
        return code;
    for (const char *const *text = spec_preludes(); *text; text++) {
        detail("a part of %zu bytes, which this program carries", strlen(*text));
        printf(*text == *spec_preludes() ? "%s" : "\n%s", *text);
    }
    return finish_output(EXIT_OK);
}
