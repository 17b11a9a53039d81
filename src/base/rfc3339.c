/* rfc3339.c - see rfc3339.h. Called by the HTTP gate, which may not ask the system for the date.
 * Invariant: what _format writes, _parse reads as the same moment. */
#include "base/rfc3339.h"

#include <inttypes.h>
#include <stdio.h>

#define DAY_MS INT64_C(86400000)
#define FIRST_MS (INT64_C(-719162) * DAY_MS) /* 0001-01-01 */
#define LAST_MS (INT64_C(2932897) * DAY_MS - 1)

/* Days since 1970-01-01 in the Gregorian calendar. A year begins in March here, so that the leap
 * day is its last; and 400 years always have 146097 days. */
static int64_t rfc3339_days_of_date(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = year / 400, in_era = year % 400;
    int in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

static void rfc3339_date_of_days(int64_t days, int *year, int *month, int *day)
{
    days += 719468;
    int64_t era = days / 146097, in_era = days % 146097;
    int64_t y = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int in_year = (int)(in_era - (365 * y + y / 4 - y / 100));
    int m = (5 * in_year + 2) / 153;
    *day = in_year - (153 * m + 2) / 5 + 1;
    *month = m < 10 ? m + 3 : m - 9;
    *year = (int)(y + era * 400) + (*month <= 2);
}

const char *clave__rfc3339_format(int64_t ms, char out[RFC3339_CAP])
{
    int year, month, day;
    ms = ms < FIRST_MS ? FIRST_MS : ms > LAST_MS ? LAST_MS : ms;
    int64_t days = (ms - FIRST_MS) / DAY_MS;
    int in_day = (int)((ms - FIRST_MS) % DAY_MS);
    rfc3339_date_of_days(days + FIRST_MS / DAY_MS, &year, &month, &day);
    /* The remainders change nothing: they tell the compiler how many digits there are. */
    snprintf(out, RFC3339_CAP, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", (unsigned)year % 10000u,
             (unsigned)month % 100u, (unsigned)day % 100u, (unsigned)in_day / 3600000u % 24u,
             (unsigned)in_day / 60000u % 60u, (unsigned)in_day / 1000u % 60u,
             (unsigned)in_day % 1000u);
    return out;
}

/* Reads n digits; -1: they are not. */
static int rfc3339_digits_at(const char **at, int n)
{
    int value = 0;
    for (; n > 0; n--, (*at)++) {
        if (**at < '0' || **at > '9')
            return -1;
        value = value * 10 + (**at - '0');
    }
    return value;
}

bool clave__rfc3339_parse(const char *text, int64_t *ms)
{
    static const struct {
        int digits, most;
        char after;
    } form[] = {{4, 9999, '-'}, {2, 12, '-'}, {2, 31, 'T'}, {2, 23, ':'}, {2, 59, ':'}, {2, 59, 0}};
    int value[6], fraction = 0;
    for (int i = 0; i < 6; i++) {
        value[i] = rfc3339_digits_at(&text, form[i].digits);
        if (value[i] < 0 || value[i] > form[i].most || (i < 3 && value[i] == 0))
            return false;
        if (form[i].after && *text++ != form[i].after)
            return false;
    }
    if (*text == '.') {
        text++;
        fraction = rfc3339_digits_at(&text, 3);
    }
    if (fraction < 0 || text[0] != 'Z' || text[1] != '\0')
        return false;
    int64_t seconds = (value[3] * 60 + value[4]) * 60 + value[5];
    *ms = rfc3339_days_of_date(value[0], value[1], value[2]) * DAY_MS + seconds * 1000 + fraction;
    return true;
}
