#include "plain_locale.h"

/* C libraries keep C's locale ready: this makes no copy, and nothing is to be freed. */
locale_t locale_plain(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

void locale_restore(locale_t before)
{
    uselocale(before);
}
