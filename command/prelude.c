/* prelude: prints the vocabulary of specs, as readable Lua. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "options.h"

int command_prelude(int count, char **arguments)
{
    const fpa_option table[] = {OPTION_VERBOSE};
    const fpa_syntax syntax = {
        "prelude [--verbose]",
        "Print the Lua source that runs before every spec. It defines linear, power, tspow and the other\n"
        "families as ordinary functions, as examples for your own.",
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
