/* time_text.c - see time_text.h. */
#include "cmd/cli/time_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

const char *time_text(int64_t ms, char buf[TIME_TEXT_CAP])
{
    char day[32];
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    if (ms < 0 || !gmtime_r(&s, &tm) || strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        snprintf(buf, TIME_TEXT_CAP, "%" PRId64 "ms", ms);
    else
        snprintf(buf, TIME_TEXT_CAP, "%s.%03dZ", day, (int)(ms % 1000));
    return buf;
}
