/* duration.c - durations such as "4s", to and from milliseconds; see duration.h. */
#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"

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
