/* comma_locale: a locale whose decimal point is a comma, for tests: one that is installed, or one that localedef
 * makes in a folder of the test. */
#ifndef FPAC_TESTS_COMMA_LOCALE_H
#define FPAC_TESTS_COMMA_LOCALE_H

#include <stdbool.h>

/* Make this program use it (LC_ALL; LC_ALL and LOCPATH are set for its children too). False: none can be had here. */
bool comma_locale_enter(const char *folder);
/* Back to C's. */
void comma_locale_leave(void);
/* Whether this thread prints a half as "0,5". */
bool comma_locale_rules(void);

#endif
