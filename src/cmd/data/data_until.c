/* data_until.c - `--until` of `clave data restore`: a zxid, or a time to be found in the logs
 * (data_until.h). A snapshot tells no times, so a time before the first record is not known. */
#include "cmd/data/data_until.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd/cli/diag.h"
#include "cmd/cli/format.h"
#include "cmd/cli/time_text.h"
#include "server/store/txn_log.h"

/* ---- the text -------------------------------------------------------------------------------- */

static bool until_is_zxid(const char *text, int64_t *zxid)
{
    char *end;
    if (strncmp(text, "0x", 2) != 0 || strspn(text + 2, "0123456789abcdefABCDEF") == 0)
        return false;
    unsigned long long v = strtoull(text, &end, 16);
    *zxid = (int64_t)v;
    return *end == '\0' && v < INT64_MAX;
}

/* "Z", "+02:00", "-0530". */
static bool until_take_offset(const char *at, int64_t *seconds)
{
    int hours, minutes, n = 0;
    char sign;
    *seconds = 0;
    if (strcmp(at, "Z") == 0)
        return true;
    if (*at == '\0' || strspn(at + 1, "0123456789:") != strlen(at + 1))
        return false; /* %2d would take a sign */
    if (sscanf(at, "%c%2d:%2d%n", &sign, &hours, &minutes, &n) != 3 || at[n] != '\0') {
        n = 0;
        if (sscanf(at, "%c%2d%2d%n", &sign, &hours, &minutes, &n) != 3 || at[n] != '\0')
            return false;
    }
    *seconds = (sign == '-' ? -60 : 60) * (int64_t)(60 * hours + minutes);
    return (sign == '+' || sign == '-') && hours < 24 && minutes < 60;
}

/* RFC 3339; ms since 1970. */
static bool until_is_time(const char *text, int64_t *ms)
{
    struct tm tm = {0};
    int64_t offset, milli = 0;
    const char *at = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    if (!at)
        at = strptime(text, "%Y-%m-%d %H:%M:%S", &tm);
    if (at && *at == '.') {
        at += strspn(at + 1, "0123456789") > 0;
        for (int64_t unit = 100; *at >= '0' && *at <= '9'; at++, unit /= 10)
            milli += unit * (*at - '0');
    }
    if (!at || !until_take_offset(at, &offset))
        return false;
    int day = tm.tm_mday;
    *ms = ((int64_t)timegm(&tm) - offset) * 1000 + milli;
    return tm.tm_mday == day; /* it has made another day of a 31st of February */
}

/* ---- the logs -------------------------------------------------------------------------------- */

struct until_search {
    struct data_files *f;
    int64_t time;
    int64_t first_time; /* of the first record; -1: none yet */
    int64_t zxid;       /* of the last record that is not later */
    bool found;         /* a later one */
};

static bool until_search_log(struct until_search *u, int64_t zxid)
{
    char name[FILE_NAME_SIZE];
    struct file_content bytes;
    struct log_walk w;
    struct txn_log_entry e;
    clave__file_name(name, FILE_LOG, zxid);
    if (!data_files_read(u->f, name, &bytes))
        return false;
    if (clave__txn_log_walk(&w, bytes.p ? bytes.p : "", bytes.n))
        while (!u->found && clave__txn_log_next_entry(&w, &e) == LOG_STEP_RECORD) {
            u->first_time = u->first_time < 0 ? e.txn.head.time : u->first_time;
            u->found = e.txn.head.time > u->time;
            u->zxid = u->found ? u->zxid : w.last_zxid;
        }
    clave__file_free(&bytes);
    return true;
}

static int until_find(struct until_search *u, const char *text, int64_t *zxid)
{
    char first[TIME_TEXT_CAP];
    const struct data_files *f = u->f;
    for (size_t i = 0; i < f->logs.n && !u->found; i++)
        if (!until_search_log(u, f->logs.zxid[i]))
            return EXIT_IO;
    *zxid = u->found ? u->zxid : INT64_MAX;
    if (u->first_time >= 0 && u->first_time <= u->time)
        return EXIT_OK;
    if (u->first_time < 0)
        return diag_end(f->o, NULL, EXIT_REFUSED,
                        "%s has no record of a transaction, so no times: give --until a zxid",
                        f->dir.path);
    return diag_end(f->o, NULL, EXIT_REFUSED,
                    "--until %s is before the logs in %s, which begin at %s: use an older backup",
                    text, f->dir.path, time_text(u->first_time, first));
}

int data_until(struct data_files *f, const char *text, int64_t *zxid)
{
    struct until_search u = {.f = f, .first_time = -1};
    if (!until_is_zxid(text, zxid)) {
        if (until_is_time(text, &u.time))
            return until_find(&u, text, zxid);
        return diag_end(f->o, NULL, EXIT_USAGE,
                        "--until '%s' is neither a zxid (0x1f) nor a time (2026-11-23T05:55:00Z)",
                        text);
    }
    if (f->snapshots.n > 0 && *zxid >= f->snapshots.zxid[0])
        return EXIT_OK;
    return diag_end(f->o, NULL, EXIT_REFUSED,
                    "--until %s is before the oldest snapshot in %s: use an older backup", text,
                    f->dir.path);
}
