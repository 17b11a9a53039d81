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

const char *age_format(int64_t ms, char out[AGE_CAP])
{
    long long s = ms > 0 ? ms / 1000 : 0;
    if (s == 0)
        snprintf(out, AGE_CAP, "%dms", ms > 0 ? (int)ms : 0);
    else if (s < 60)
        snprintf(out, AGE_CAP, "%llds", s);
    else if (s < 3600)
        snprintf(out, AGE_CAP, "%lldm%02llds", s / 60, s % 60);
    else if (s < 86400)
        snprintf(out, AGE_CAP, "%lldh%02lldm", s / 3600, s / 60 % 60);
    else
        snprintf(out, AGE_CAP, "%lldd%02lldh", s / 86400, s / 3600 % 24);
    return out;
}
