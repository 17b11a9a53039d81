/* data_restore.c - `clave data restore`: loads a backup, or any data directory, and writes one
 * snapshot from which a server continues without repeating a fencing token. server/store/restore.h
 * decides what that takes. data.c calls it.
 *
 * With --until it goes back to a zxid, or to a time that is looked up in the logs. Snapshots
 * contain no times, so a time before the first record cannot be looked up. The restored data
 * contains the slots that were owned when the backup was made; these are listed, since some may
 * have been given back since. */
#include "cmd/data/data_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log_line.h"
#include "base/memory.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/format.h"
#include "recipe/slots/slot_node.h"
#include "runtime/store/datadir.h"
#include "server/store/recovery_plan.h"
#include "server/store/restore.h"
#include "server/store/txn_log.h"

/* ---- --until: the text ---------------------------------------------------------------------- */

static bool until_is_zxid(const char *text, int64_t *zxid)
{
    char *end;
    if (strncmp(text, "0x", 2) != 0 || strspn(text + 2, "0123456789abcdefABCDEF") == 0)
        return false;
    unsigned long long v = strtoull(text, &end, 16);
    *zxid = (int64_t)v;
    return *end == '\0' && v < INT64_MAX;
}

/* Parses "Z", "+02:00" or "-0530". */
static bool until_take_offset(const char *at, int64_t *seconds)
{
    int hours, minutes, n = 0;
    char sign;
    *seconds = 0;
    if (strcmp(at, "Z") == 0)
        return true;
    if (*at == '\0' || strspn(at + 1, "0123456789:") != strlen(at + 1))
        return false; /* %2d would accept a sign */
    if (sscanf(at, "%c%2d:%2d%n", &sign, &hours, &minutes, &n) != 3 || at[n] != '\0') {
        n = 0;
        if (sscanf(at, "%c%2d%2d%n", &sign, &hours, &minutes, &n) != 3 || at[n] != '\0')
            return false;
    }
    *seconds = (sign == '-' ? -60 : 60) * (int64_t)(60 * hours + minutes);
    return (sign == '+' || sign == '-') && hours < 24 && minutes < 60;
}

/* Parses a time as in RFC 3339; *ms counts from 1970. */
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
    return tm.tm_mday == day; /* timegm has changed, for example, February 31st to another day */
}

/* ---- --until: the logs ---------------------------------------------------------------------- */

struct until_search {
    struct data_files *f;
    int64_t time;
    int64_t first_time; /* time of the first record; -1: no record yet */
    int64_t zxid;       /* zxid of the last record that is not later */
    bool found;         /* a later record was found */
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

/* Finds the zxid that --until means: "0x1f" is that zxid; "2026-11-23T05:55:00Z", or with an
 * offset, is the last transaction before the first one that the logs have for a later time. Returns
 * EXIT_OK, or an exit code after a message. */
static int until_parse(struct data_files *f, const char *text, int64_t *zxid)
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

/* ---- restoring ------------------------------------------------------------------------------ */

/* The shortest wait after a restore: twenty ticks of two seconds, which is the longest session
 * timeout of a server with default settings. Whatever that server's setting was when the backup was
 * made, it may have been this one later. */
enum { RESTORE_QUIET_MS = 40000 };

struct restoring {
    struct data_files *f;
    const struct restore_options *o;
    const char *to;
    struct server *s;
    int64_t from_zxid;
    int64_t epoch; /* newest epoch that the backup's ensemble knew; 0: it was not an ensemble */
    bool has_epoch[DATA_EPOCHS];
    struct restore begin; /* where the restored server begins */
    int32_t noted_ms;     /* longest session timeout as noted by the server; 0: not noted */
    struct restored gone;
    struct server_stats st;
    char text[1024];
};

/* ---- the backup ------------------------------------------------------------------------------ */

static void restore_look_at_session(void *arg, int64_t id, int32_t timeout_ms)
{
    struct restoring *r = arg;
    (void)id;
    r->begin.quiet_ms = timeout_ms > r->begin.quiet_ms ? timeout_ms : r->begin.quiet_ms;
}

static int restore_read_epoch(struct restoring *r, size_t i)
{
    const struct fault fault = {r->text, sizeof r->text};
    struct file_content c;
    char text[32] = "";
    int number = data_files_beside(r->f, data_files_epochs[i], &c, &fault);
    if (number == ENOENT)
        return EXIT_OK;
    if (number != 0)
        return diag_end(r->f->o, NULL, EXIT_IO, "%s", r->text);
    snprintf(text, sizeof text, "%.*s", (int)(c.n < 20 ? c.n : 20), c.p ? (const char *)c.p : "");
    clave__file_free(&c);
    int64_t epoch = strtoll(text, NULL, 10);
    r->has_epoch[i] = true;
    r->epoch = epoch > r->epoch ? epoch : r->epoch;
    return EXIT_OK;
}

static int restore_load(struct restoring *r)
{
    const struct fault fault = {r->text, sizeof r->text};
    int64_t until = INT64_MAX;
    int code = r->o->until ? until_parse(r->f, r->o->until, &until) : EXIT_OK;
    if (code != EXIT_OK)
        return code;
    r->s = data_files_server(r->f);
    clave_err err =
        r->s ? clave__datadir_recover_until(&r->f->dir, r->s, until, &fault) : CLAVE_ENOMEM;
    if (err != CLAVE_OK)
        return diag_end(r->f->o, NULL, data_files_exit(err), "%s",
                        r->text[0] ? r->text : clave_strerror(err));
    clave__server_stats(r->s, &r->st);
    r->from_zxid = r->st.last_zxid;
    if (until == INT64_MAX || r->from_zxid == until)
        return EXIT_OK;
    return diag_end(r->f->o, NULL, EXIT_REFUSED,
                    "--until %s: the data in %s ends with zxid 0x%" PRIx64, r->o->until,
                    r->f->dir.path, (uint64_t)r->from_zxid);
}

/* ---- where the new server begins ------------------------------------------------------------- */

static int restore_choose_zxid(struct restoring *r)
{
    struct timespec now;
    int64_t newest = r->from_zxid >> 32;
    newest = r->epoch > newest ? r->epoch : newest;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t wall = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    r->begin.wall = wall;
    if (newest >= INT32_MAX - 1)
        return diag_end(r->f->o, NULL, EXIT_REFUSED,
                        "the data has epoch %" PRId64 ", after which there is none", newest);
    if (r->o->epoch > 0 && r->o->epoch <= newest)
        return diag_end(r->f->o, NULL, EXIT_USAGE,
                        "--epoch %" PRId64 " is not above that of the data, %" PRId64, r->o->epoch,
                        newest);
    if (r->o->epoch == 0 && !clave__restore_knows_time(wall))
        return diag_end(
            r->f->o, NULL, EXIT_REFUSED,
            "the clock of this machine is before 2020, so it cannot tell what a server "
            "that was restored earlier has handed out: set it, or give an --epoch above "
            "every earlier one");
    r->begin.zxid =
        r->o->epoch > 0 ? r->o->epoch << 32 : clave__restore_zxid(r->from_zxid, r->epoch, wall);
    return EXIT_OK;
}

/* A note that cannot be read must not be treated like a missing one: sessions may have been longer
 * than the default. */
static int restore_read_note(struct restoring *r)
{
    const struct fault fault = {r->text, sizeof r->text};
    clave_err err = clave__datadir_longest_session(&r->f->dir, &r->noted_ms, &fault);
    if (err == CLAVE_OK)
        return EXIT_OK;
    if (r->o->longest_session > 0) {
        diag(r->f->o, "%s; --longest-session counts instead", r->text);
        r->text[0] = '\0';
        return EXIT_OK;
    }
    return diag_end(
        r->f->o, NULL, data_files_exit(err),
        "%s; so it is not known how long sessions of its server could be: give --longest-session",
        r->text);
}

static int restore_choose_quiet(struct restoring *r)
{
    int code = restore_read_note(r);
    if (code != EXIT_OK)
        return code;
    r->begin.quiet_ms = r->noted_ms > RESTORE_QUIET_MS ? r->noted_ms : RESTORE_QUIET_MS;
    if (r->o->longest_session > 0)
        r->begin.quiet_ms = (int32_t)r->o->longest_session;
    clave__server_each_session(r->s, restore_look_at_session, r);
    return EXIT_OK;
}

/* ---- the new directory ----------------------------------------------------------------------- */

static clave_err restore_write_snapshot(struct restoring *r, struct copy_dir *copy,
                                        const struct fault *fault)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    char name[FILE_NAME_SIZE];
    struct buf image;
    int64_t zxid;
    clave__buf_init(&image, &mem, SIZE_MAX / 2);
    clave_err err = clave__server_save_snapshot(r->s, &image, &zxid);
    clave__file_name(name, FILE_SNAPSHOT, zxid);
    if (err == CLAVE_OK)
        err = clave__copy_dir_put(copy, name, clave__buf_bytes(&image), clave__buf_len(&image),
                                  fault);
    clave__buf_fini(&image);
    return err;
}

static clave_err restore_write(struct restoring *r, struct copy_dir *copy,
                               const struct fault *fault)
{
    char text[32];
    clave_err err = clave__server_restore(r->s, &r->begin, &r->gone);
    int n = snprintf(text, sizeof text, "%" PRId64, r->begin.zxid >> 32);
    clave__server_stats(r->s, &r->st);
    if (err == CLAVE_OK)
        err = restore_write_snapshot(r, copy, fault);
    for (size_t i = 0; i < DATA_EPOCHS && err == CLAVE_OK; i++)
        if (r->has_epoch[i])
            err = clave__copy_dir_put(copy, data_files_epochs[i], text, (size_t)n, fault);
    return err == CLAVE_OK ? clave__copy_dir_finish(copy, fault) : err;
}

static int restore_make(struct restoring *r)
{
    const struct fault fault = {r->text, sizeof r->text};
    struct copy_dir copy;
    clave_err err = clave__copy_dir_begin(&copy, r->to, &r->f->dir.log, &fault);
    if (err == CLAVE_OK)
        err = restore_write(r, &copy, &fault);
    clave__copy_dir_end(&copy);
    if (err == CLAVE_OK)
        return EXIT_OK;
    return diag_end(r->f->o, NULL, data_files_exit(err), "%s",
                    r->text[0] ? r->text : clave_strerror(err));
}

/* ---- the slots in the data ------------------------------------------------------------------- */

/* A slot is a node with the name of a slot whose parent is named "owners". */
enum { SLOT_PATH_CAP = 4096 };

/* A slot being visited: the path of its slots, its id, and what its node says. */
struct data_slot {
    char path[SLOT_PATH_CAP];
    char id[CLAVE_SLOT_ID_MAX + 1];
    int64_t since;
    int64_t token;
};

struct data_slots {
    void (*show)(struct data_slots *d, const struct data_slot *slot);
    struct json *json;
    size_t n;
};

static bool data_slots_parse(const struct node_view *n, struct data_slot *out)
{
    static const char owners[] = "/owners";
    if (n->path.n <= 0 || (size_t)n->path.n >= sizeof out->path || n->stored_owner != 0)
        return false;
    memcpy(out->path, n->path.p, (size_t)n->path.n);
    out->path[n->path.n] = '\0';
    char *name = strrchr(out->path, '/');
    if (!name || !clave__slot_name_parse(name + 1, out->id))
        return false;
    *name = '\0';
    size_t len = strlen(out->path);
    if (len <= sizeof owners - 1 || strcmp(name - (sizeof owners - 1), owners) != 0)
        return false;
    name[-(ptrdiff_t)(sizeof owners - 1)] = '\0';
    out->since = n->stat.ctime;
    out->token = n->stat.czxid;
    return true;
}

static void data_slots_visit(void *arg, const struct node_view *n)
{
    struct data_slots *d = arg;
    struct data_slot slot;
    if (data_slots_parse(n, &slot)) {
        d->show(d, &slot);
        d->n++;
    }
}

static void data_slots_print(struct data_slots *d, const struct data_slot *slot)
{
    char since[TIME_TEXT_CAP];
    if (d->n == 0)
        printf("Slots that are owned again, whatever was given back since the copy was made:\n");
    printf("  %s %s since %s\n", slot->path, slot->id, time_text(slot->since, since));
}

/* Prints the slots that are owned, one per line after a heading; nothing if there is none. */
static void data_slots_show(const struct server *s)
{
    clave__server_each_node(s, data_slots_visit, &(struct data_slots){.show = data_slots_print});
}

static void data_slots_put(struct data_slots *d, const struct data_slot *slot)
{
    char since[TIME_TEXT_CAP];
    clave__json_open(d->json, NULL, '{');
    clave__json_string(d->json, "path", slot->path);
    clave__json_string(d->json, "id", slot->id);
    clave__json_string(d->json, "since", time_text(slot->since, since));
    clave__json_int(d->json, "token", slot->token);
    clave__json_close(d->json, '}');
}

/* Adds the slots as an array to the object. */
static void data_slots_json(struct json *j, const struct server *s)
{
    clave__json_open(j, "slots", '[');
    clave__server_each_node(s, data_slots_visit,
                            &(struct data_slots){.show = data_slots_put, .json = j});
    clave__json_close(j, ']');
}

/* ---- output ---------------------------------------------------------------------------------- */

/* How long a server with the default longest session timeout will wait. */
static int32_t restore_wait_ms(const struct restoring *r)
{
    return r->begin.quiet_ms > RESTORE_QUIET_MS ? r->begin.quiet_ms : RESTORE_QUIET_MS;
}

static void restore_tell_wait(const struct restoring *r)
{
    char wait[DURATION_CAP], least[DURATION_CAP];
    clave__duration_format(restore_wait_ms(r), wait);
    clave__duration_format(r->begin.quiet_ms, least);
    printf("No ephemeral node is created, and so no lock granted, for %s after a start,\n"
           "or for as long as the server's --max-session-timeout if that is longer.\n",
           wait);
    if (r->begin.quiet_ms < restore_wait_ms(r))
        printf("If it is shorter, the wait is as short, but at least %s.\n", least);
}

static void restore_tell(const struct restoring *r)
{
    struct json j;
    if (!r->f->o->json) {
        printf("%s: the %zu node%s of %s at zxid 0x%" PRIx64 "; its sessions (%zu) and their "
               "nodes (%zu) are left out\n"
               "A server continues from zxid 0x%" PRIx64 ".\n",
               r->to, r->st.nodes, clave__plural(r->st.nodes), r->f->dir.path,
               (uint64_t)r->from_zxid, r->gone.sessions, r->gone.ephemerals,
               (uint64_t)r->st.last_zxid);
        restore_tell_wait(r);
        if (r->noted_ms == 0 && r->o->longest_session == 0)
            printf("Nothing in %s tells how long sessions of its server could be. If they could be "
                   "longer than\nthat, restore again with --longest-session.\n",
                   r->f->dir.path);
        data_slots_show(r->s);
        return;
    }
    json_begin(&j, stdout);
    clave__json_string(&j, "to", r->to);
    json_hex(&j, "from_zxid", r->from_zxid);
    json_hex(&j, "zxid", r->st.last_zxid);
    clave__json_int(&j, "epoch", r->begin.zxid >> 32);
    data_files_json_digest(&j, r->st.digest);
    clave__json_int(&j, "nodes", (int64_t)r->st.nodes);
    clave__json_int(&j, "sessions_ended", (int64_t)r->gone.sessions);
    clave__json_int(&j, "ephemerals_removed", (int64_t)r->gone.ephemerals);
    clave__json_int(&j, "quiet_ms", restore_wait_ms(r));
    clave__json_int(&j, "least_quiet_ms", r->begin.quiet_ms);
    clave__json_bool(&j, "knows_longest_session", r->noted_ms > 0 || r->o->longest_session > 0);
    data_slots_json(&j, r->s);
    json_end(&j);
}

int data_restore(struct data_files *f, const char *to, const struct restore_options *o)
{
    struct restoring r = {.f = f, .o = o, .to = to};
    int code = restore_load(&r);
    for (size_t i = 0; i < DATA_EPOCHS && code == EXIT_OK; i++)
        code = restore_read_epoch(&r, i);
    if (code == EXIT_OK)
        code = restore_choose_zxid(&r);
    if (code == EXIT_OK)
        code = restore_choose_quiet(&r);
    if (code == EXIT_OK)
        code = restore_make(&r);
    if (code == EXIT_OK)
        restore_tell(&r);
    clave__server_free(r.s);
    return code == EXIT_OK ? finish_stdout(f->o) : code;
}
