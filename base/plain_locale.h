/* plain_locale: numbers in texts are formatted in the C locale, whatever locale the program has set. */
#ifndef FPAC_BASE_PLAIN_LOCALE_H
#define FPAC_BASE_PLAIN_LOCALE_H

#include <locale.h>

/* Switch this thread to the C locale, and return the previous one for locale_restore. Neither call can fail,
 * allocates, or affects other threads; pairs of calls nest. */
locale_t locale_plain(void);
void locale_restore(locale_t before);

#endif
