#include "comma_locale.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};

enum { NAMES = sizeof names / sizeof *names };

bool comma_locale_rules(void)
{
    char text[16];
    snprintf(text, sizeof text, "%.1f", 0.5);
    return strcmp(text, "0,5") == 0;
}

static bool enter(const char *name)
{
    if (!setlocale(LC_ALL, name) || !comma_locale_rules())
        return false;
    setenv("LC_ALL", name, 1);
    return true;
}

/* Once for a program, since it takes seconds. */
static bool make_locale(const char *folder)
{
    static char made_in[256];
    char command[512];
    if (strcmp(made_in, folder) == 0)
        return true;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %.200s/de_DE.UTF-8 >/dev/null 2>&1",
             folder);
    if (system(command) != 0)
        return false;
    snprintf(made_in, sizeof made_in, "%s", folder);
    return true;
}

bool comma_locale_enter(const char *folder)
{
    for (int i = 0; i < NAMES; i++)
        if (enter(names[i]))
            return true;
    if (make_locale(folder)) {
        setenv("LOCPATH", folder, 1);
        if (enter(names[0]))
            return true;
        unsetenv("LOCPATH");
    }
    comma_locale_leave();
    return false;
}

void comma_locale_leave(void)
{
    setlocale(LC_ALL, "C");
    unsetenv("LC_ALL");
    unsetenv("LOCPATH");
}
