/* plain_locale: numbers in texts are spelled in C's locale, whatever the one of the program that we are in is. */
#ifndef FPAC_BASE_PLAIN_LOCALE_H
#define FPAC_BASE_PLAIN_LOCALE_H

#include <locale.h>

/* Put this thread into C's locale; what to give locale_restore before the caller goes on. Neither can fail,
 * allocates, or touches other threads; the two nest. */
locale_t locale_plain(void);
void locale_restore(locale_t before);

#endif
