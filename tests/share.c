#include "share.h"

#include "claims.h"

#include <stdio.h>
#include <stdlib.h>

/* false: there are no shares. */
static bool read_share(int *index, int *shares)
{
    const char *text = getenv("FPA_TEST_SHARE");
    int end = 0;
    if (!text || !*text)
        return false;
    if (sscanf(text, "%d/%d%n", index, shares, &end) != 2 || text[end] || *index < 1 || *index > *shares)
        fail_msg("FPA_TEST_SHARE=%s is no I/N with I from 1 to N", text);
    return true;
}

bool share_is_part(void)
{
    int index, shares;
    return read_share(&index, &shares) && shares > 1;
}

bool share_take(share *taken, int number)
{
    int index, shares;
    if (read_share(&index, &shares) && number % shares != index - 1)
        return false;
    taken->count++;
    taken->sum += number + 1;
    return true;
}

void share_report(const share *taken, const char *what, int all)
{
    int index, shares;
    if (read_share(&index, &shares))
        print_message("share %d of %d: %d of %d %s, numbers that sum up to %lld\n", index, shares,
                      taken->count, all, what, taken->sum);
}
