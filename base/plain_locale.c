#include "plain_locale.h"

/* newlocale of "C" returns a static object of the C library: nothing is copied, and nothing has to be freed. */
locale_t locale_plain(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

void locale_restore(locale_t before)
{
    uselocale(before);
}
