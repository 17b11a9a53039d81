/* time_format.c - see time_format.h. Nothing here depends on the locale or on the time zone. */
#include "base/time_format.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- durations ------------------------------------------------------------------------------- */

static const struct unit {
    const char *name; /* as clave__duration_format writes it */
    int64_t ms;
    const char *others; /* names in words */
} units[] = {
    {"ms", 1, "msec msecs millis millisecond milliseconds"},
    {"s", 1000, "sec secs second seconds"},
    {"m", 60 * 1000, "min mins minute minutes"},
    {"h", 3600 * 1000, "hr hrs hour hours"},
    {"d", 24 * 3600 * 1000, "day days"},
};
enum { NUNITS = sizeof units / sizeof *units };
#define DURATION_MAX_MS (INT64_MAX / 16)

static const char form[] =
    "a duration is a number of seconds, or numbers with units: 500ms, 0.5s, 10, 3m, 1h30m, 2d";
static const char endless[] = "too long";

static bool duration_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool duration_is_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool unit_is_named(const struct unit *u, const char *word, size_t n)
{
    if (strlen(u->name) == n && strncmp(u->name, word, n) == 0)
        return true;
    for (const char *p = u->others; *p;) {
        size_t len = strcspn(p, " ");
        if (len == n && strncmp(p, word, n) == 0)
            return true;
        p += len + (p[len] == ' ');
    }
    return false;
}

/* Reads the name of a unit; NULL: there is none of that name. */
static const struct unit *unit_read(const char **at)
{
    const char *word = *at;
    size_t n = 0;
    while (duration_is_letter(word[n]))
        n++;
    for (size_t i = 0; n > 0 && i < NUNITS; i++)
        if (unit_is_named(&units[i], word, n)) {
            *at = word + n;
            return &units[i];
        }
    return NULL;
}

/* A decimal number as an integer and billionths. */
struct number {
    int64_t whole, billionths;
};

static const char *number_read(const char **at, struct number *out)
{
    const char *p = *at;
    *out = (struct number){0, 0};
    for (; duration_is_digit(*p); p++) {
        if (out->whole > INT64_MAX / 10 - 1)
            return endless;
        out->whole = out->whole * 10 + (*p - '0');
    }
    bool digits = p > *at;
    if (*p == '.') {
        digits = duration_is_digit(*++p);
        for (int64_t place = 100000000; duration_is_digit(*p); p++, place /= 10)
            out->billionths += place * (*p - '0');
    }
    *at = p;
    return digits ? NULL : form;
}

/* Adds it, rounded up: what is not zero is a millisecond at least. */
static const char *duration_add(int64_t *ms, const struct number *n, int64_t unit)
{
    enum { BILLION = 1000000000 };
    int64_t part = (n->billionths * unit + BILLION - 1) / BILLION;
    if (n->whole > (DURATION_MAX_MS - part - *ms) / unit)
        return endless;
    *ms += n->whole * unit + part;
    return NULL;
}

/* Each unit of a compound is smaller than the one before it; only a number by itself has none. */
bool clave__duration_parse(const char *text, int64_t *ms, const char **fault)
{
    const char *p = text;
    int64_t sum = 0, before = INT64_MAX;
    *fault = NULL;
    do {
        struct number n;
        *fault = number_read(&p, &n);
        while (*p == ' ')
            p++;
        bool bare = before == INT64_MAX && *p == '\0';
        const struct unit *u = bare ? &units[1] : unit_read(&p);
        if (!*fault)
            *fault = !u || u->ms >= before ? form : duration_add(&sum, &n, u->ms);
        before = u ? u->ms : before;
        while (*p == ' ')
            p++;
    } while (!*fault && *p);
    if (!*fault)
        *ms = sum;
    return !*fault;
}

const char *clave__duration_format(int64_t ms, char out[DURATION_CAP])
{
    size_t i = NUNITS - 1;
    while (i > 0 && (ms < units[i].ms || ms % units[i].ms != 0))
        i--;
    snprintf(out, DURATION_CAP, "%" PRId64 "%s", ms / units[i].ms, units[i].name);
    return out;
}

const char *clave__duration_within(const char *text, const int64_t bounds[2], int64_t *ms,
                                   char out[DURATION_FAULT_CAP])
{
    assert(bounds[0] <= bounds[1]);
    char least[DURATION_CAP], most[DURATION_CAP];
    const char *fault;
    if (!clave__duration_parse(text, ms, &fault))
        return fault;
    if (*ms >= bounds[0] && *ms <= bounds[1])
        return NULL;
    bool bare = text[strspn(text, "0123456789.")] == '\0';
    snprintf(out, DURATION_FAULT_CAP, "not between %s and %s%s",
             clave__duration_format(bounds[0], least), clave__duration_format(bounds[1], most),
             bare ? "; a number without a unit is in seconds" : "");
    return out;
}

/* ---- moments --------------------------------------------------------------------------------- */

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

/* Writes n digits and the character after them. Returns where the next one goes. */
static char *rfc3339_put(char *to, int v, int n, char then)
{
    for (int i = n; i-- > 0; v /= 10)
        to[i] = (char)('0' + v % 10);
    to[n] = then;
    return to + n + 1;
}

const char *clave__rfc3339_format(int64_t ms, char out[RFC3339_CAP])
{
    int year, month, day;
    if (ms < FIRST_MS)
        ms = FIRST_MS;
    if (ms > LAST_MS)
        ms = LAST_MS;
    int64_t days = (ms - FIRST_MS) / DAY_MS;
    int in_day = (int)((ms - FIRST_MS) % DAY_MS);
    rfc3339_date_of_days(days + FIRST_MS / DAY_MS, &year, &month, &day);
    char *at = rfc3339_put(out, year, 4, '-');
    at = rfc3339_put(rfc3339_put(at, month, 2, '-'), day, 2, 'T');
    at = rfc3339_put(at, in_day / 3600000, 2, ':');
    at = rfc3339_put(at, in_day / 60000 % 60, 2, ':');
    at = rfc3339_put(at, in_day / 1000 % 60, 2, '.');
    at = rfc3339_put(at, in_day % 1000, 3, 'Z');
    *at = '\0';
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
    } parts[] = {{4, 9999, '-'}, {2, 12, '-'}, {2, 31, 'T'},
                 {2, 23, ':'},   {2, 59, ':'}, {2, 59, 0}};
    int value[6], fraction = 0;
    for (int i = 0; i < 6; i++) {
        value[i] = rfc3339_digits_at(&text, parts[i].digits);
        if (value[i] < 0 || value[i] > parts[i].most || (i < 3 && value[i] == 0))
            return false;
        if (parts[i].after && *text++ != parts[i].after)
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
