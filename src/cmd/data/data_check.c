/* data_check.c - `clave data check`: checks every file by itself, then loads all of them as a
 * server would. It does that twice: from the newest snapshot, and from the oldest one that the logs
 * still reach back to, so that as many digests as possible are compared. data.c calls it. Nothing
 * is changed. */
#include "cmd/data/data_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log_line.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "server/store/recovery_plan.h"
#include "server/store/txn_log.h"

struct checking {
    struct data_files *f;
    struct json j;
    unsigned faults;
    int64_t records;
    int64_t digests;
    int64_t last_zxid; /* of the logs checked so far; 0: none yet */
};

/* What was found out about one file. */
struct verdict {
    char name[FILE_NAME_SIZE];
    size_t bytes;
    int64_t records;
    int64_t first_zxid;
    int64_t last_zxid;
    size_t nodes;
    size_t sessions;
    bool whole;      /* a snapshot that can be loaded */
    char fault[400]; /* what is wrong with it; "": nothing */
    char note[300];  /* what is unusual about it; "": nothing */
};

/* ---- output ---------------------------------------------------------------------------------- */

static void data_check_say_json(struct json *j, const struct verdict *v, bool is_log)
{
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "name", v->name);
    clave__json_int(j, "bytes", (int64_t)v->bytes);
    if (is_log)
        clave__json_int(j, "records", v->records);
    if (is_log && v->records > 0)
        json_hex(j, "first_zxid", v->first_zxid);
    if (!is_log || v->records > 0)
        json_hex(j, "last_zxid", v->last_zxid);
    if (!is_log && v->whole) {
        clave__json_int(j, "nodes", (int64_t)v->nodes);
        clave__json_int(j, "sessions", (int64_t)v->sessions);
    }
    clave__json_string(j, "fault", v->fault[0] ? v->fault : NULL);
    clave__json_string(j, "note", v->note[0] ? v->note : NULL);
    clave__json_close(j, '}');
}

static void data_check_say(struct checking *c, const struct verdict *v, bool is_log)
{
    if (v->fault[0])
        c->faults++;
    if (c->f->o->json) {
        data_check_say_json(&c->j, v, is_log);
        return;
    }
    printf("%s: %zu byte%s", v->name, v->bytes, clave__plural(v->bytes));
    if (is_log)
        printf(", %" PRId64 " record%s", v->records, clave__plural((uint64_t)v->records));
    if (is_log && v->records > 0)
        printf(", zxid 0x%" PRIx64 " to 0x%" PRIx64, (uint64_t)v->first_zxid,
               (uint64_t)v->last_zxid);
    if (!is_log && v->whole)
        printf(", zxid 0x%" PRIx64 ", %zu node%s, %zu session%s", (uint64_t)v->last_zxid, v->nodes,
               clave__plural(v->nodes), v->sessions, clave__plural(v->sessions));
    if (v->note[0])
        printf(", %s", v->note);
    if (v->fault[0])
        printf(", DAMAGED: %s", v->fault);
    putchar('\n');
}

/* ---- one file -------------------------------------------------------------------------------- */

/* Whether the snapshot was never finished. Apache leaves one behind if it is killed while it
 * writes, and later skips it, as clave does. */
static bool data_check_is_unfinished(const struct file_content *b)
{
    static const char mark[] = {0, 0, 0, 1, '/'}; /* the path that ends the list of nodes */
    return b->n < sizeof mark ||
           memcmp((const char *)b->p + b->n - sizeof mark, mark, sizeof mark) != 0;
}

static bool check_snapshot(struct checking *c, int64_t zxid)
{
    struct verdict v = {.last_zxid = zxid};
    struct server_stats st;
    struct file_content bytes;
    struct server *s = data_files_server(c->f);
    clave__file_name(v.name, FILE_SNAPSHOT, zxid);
    if (!s || !data_files_read(c->f, v.name, &bytes)) {
        clave__server_free(s);
        return false;
    }
    v.bytes = bytes.n;
    bool unfinished = data_check_is_unfinished(&bytes);
    clave__server_snapshot_named(s, zxid);
    clave_err err =
        clave__server_load_snapshot(s, bytes.p ? bytes.p : "", bytes.n, v.fault, sizeof v.fault);
    clave__file_free(&bytes);
    v.whole = err == CLAVE_OK;
    if (err != CLAVE_OK && err != CLAVE_ECORRUPT)
        snprintf(v.fault, sizeof v.fault, "%s", clave_strerror(err));
    if (!v.whole && unfinished) {
        snprintf(v.note, sizeof v.note, "never finished, skipped: %.200s", v.fault);
        v.fault[0] = '\0';
    }
    clave__server_stats(s, &st);
    v.nodes = st.nodes;
    v.sessions = st.sessions;
    if (v.whole && st.digest_mismatches > 0)
        snprintf(v.fault, sizeof v.fault, "%s", c->f->noted);
    clave__server_free(s);
    data_check_say(c, &v, false);
    return true;
}

/* `next` is the zxid in the name of the log that follows; 0: this is the last log. */
static void data_check_walk(struct checking *c, struct log_walk *w, struct verdict *v, int64_t next)
{
    struct txn_log_entry e;
    enum log_step step;
    while ((step = clave__txn_log_next_entry(w, &e)) == LOG_STEP_RECORD) {
        v->first_zxid = v->records++ == 0 ? w->last_zxid : v->first_zxid;
        v->last_zxid = w->last_zxid;
        c->digests += e.txn.has_digest;
    }
    if (w->gap != 0)
        snprintf(v->note, sizeof v->note,
                 "no record of zxid 0x%" PRIx64 " (ZooKeeper 3.9.4 and later refuse such a log)",
                 (uint64_t)w->gap);
    if (step == LOG_STEP_TORN)
        snprintf(v->note, sizeof v->note, "a record at offset %zu that was never finished", w->at);
    if (step == LOG_STEP_LOST && v->records > 0 &&
        clave__recovery_plan_continues(v->last_zxid, next))
        snprintf(v->note, sizeof v->note, "%s; the next log continues before it", w->fault);
    else
        snprintf(v->fault, sizeof v->fault, "%s", w->fault);
}

static bool check_log(struct checking *c, size_t i)
{
    struct verdict v = {.records = 0};
    int64_t zxid = c->f->logs.zxid[i], next = i + 1 < c->f->logs.n ? c->f->logs.zxid[i + 1] : 0;
    struct log_walk w;
    struct file_content bytes;
    clave__file_name(v.name, FILE_LOG, zxid);
    if (!data_files_read(c->f, v.name, &bytes))
        return false;
    v.bytes = bytes.n;
    if (clave__txn_log_walk(&w, bytes.p ? bytes.p : "", bytes.n))
        data_check_walk(c, &w, &v, next);
    else
        snprintf(v.fault, sizeof v.fault, "%s", w.fault);
    clave__file_free(&bytes);
    if (v.records > 0 && v.fault[0] == '\0' && c->last_zxid != 0 &&
        !clave__txn_log_follows(c->last_zxid, v.first_zxid))
        snprintf(v.fault, sizeof v.fault,
                 "it begins with zxid 0x%" PRIx64 ", but the log before it ends with 0x%" PRIx64,
                 (uint64_t)v.first_zxid, (uint64_t)c->last_zxid);
    if (v.records > 0)
        c->last_zxid = v.last_zxid;
    c->records += v.records;
    data_check_say(c, &v, true);
    return true;
}

/* Checks the file that notes how long sessions may be. Prints nothing if it is valid or does not
 * exist. */
static void check_note(struct checking *c)
{
    char text[1024] = "";
    int32_t ms;
    const struct fault fault = {text, sizeof text};
    if (clave__datadir_longest_session(&c->f->dir, &ms, &fault) == CLAVE_OK)
        return;
    c->faults++;
    if (!c->f->o->json) {
        printf("DAMAGED: %s; a server writes it again when it starts or gets SIGHUP, and a restore "
               "needs --longest-session\n",
               text);
        return;
    }
    clave__json_open(&c->j, NULL, '{');
    clave__json_string(&c->j, "name", FILE_LONGEST_SESSION);
    clave__json_string(&c->j, "fault", text);
    clave__json_string(&c->j, "note", NULL);
    clave__json_close(&c->j, '}');
}

/* ---- all files together ---------------------------------------------------------------------- */

/* Loads the tree: from the oldest usable snapshot, whose zxid is stored in *from, or, if `from` is
 * NULL, as a server does when it starts. false: `text` says why it failed. */
static bool data_check_recover(struct checking *c, int64_t *from, struct server_stats *st,
                               char *text, size_t cap)
{
    const struct fault fault = {text, cap};
    struct server *s = data_files_server(c->f);
    clave_err err = s ? CLAVE_OK : CLAVE_ENOMEM;
    if (err == CLAVE_OK && from)
        err = clave__datadir_recover_oldest(&c->f->dir, s, from, &fault);
    else if (err == CLAVE_OK)
        err = clave__datadir_recover(&c->f->dir, s, &fault);
    if (s)
        clave__server_stats(s, st);
    clave__server_free(s);
    if (err == CLAVE_OK && st->digest_mismatches > 0)
        snprintf(text, cap, "%s", c->f->noted);
    return err == CLAVE_OK && st->digest_mismatches == 0;
}

static bool check_all(struct checking *c, struct server_stats *now, char *fault, size_t cap)
{
    struct server_stats old = {0};
    int64_t from;
    if (!data_check_recover(c, NULL, now, fault, cap) ||
        !data_check_recover(c, &from, &old, fault, cap))
        return false;
    if (old.last_zxid != now->last_zxid)
        snprintf(fault, cap,
                 "the logs end with zxid 0x%" PRIx64 ", but the newest snapshot was made at "
                 "0x%" PRIx64,
                 (uint64_t)old.last_zxid, (uint64_t)now->last_zxid);
    else if (old.digest != now->digest)
        snprintf(fault, cap,
                 "snapshot.%" PRIx64 " and the newest one lead to different trees: digest "
                 "%" PRIu64 " and %" PRIu64,
                 (uint64_t)from, old.digest, now->digest);
    return old.last_zxid == now->last_zxid && old.digest == now->digest;
}

static void data_check_say_end(struct checking *c, bool readable, const struct server_stats *st,
                               const char *fault)
{
    struct json *j = &c->j;
    bool whole = readable && c->faults == 0;
    if (c->f->o->json) {
        clave__json_close(j, ']');
        clave__json_bool(j, "ok", whole);
        clave__json_string(j, "fault", fault[0] ? fault : NULL);
        if (whole) {
            json_hex(j, "zxid", st->last_zxid);
            data_files_json_digest(j, st->digest);
            clave__json_int(j, "nodes", (int64_t)st->nodes);
            clave__json_int(j, "sessions", (int64_t)st->sessions);
        }
        clave__json_int(j, "records", c->records);
        clave__json_int(j, "digests", c->digests);
        json_end(j);
        return;
    }
    if (fault[0])
        printf("DAMAGED: %s\n", fault);
    if (whole)
        printf("ok: zxid 0x%" PRIx64 ", digest %" PRIu64 ", %zu node%s, %zu session%s; %" PRId64
               " record%s with %" PRId64 " digest%s\n",
               (uint64_t)st->last_zxid, st->digest, st->nodes, clave__plural(st->nodes),
               st->sessions, clave__plural(st->sessions), c->records,
               clave__plural((uint64_t)c->records), c->digests,
               clave__plural((uint64_t)c->digests));
}

int data_check(struct data_files *f)
{
    struct checking c = {.f = f};
    struct server_stats st = {0};
    char fault[600] = "";
    bool readable = true;
    if (f->o->json) {
        json_begin(&c.j, stdout);
        clave__json_open(&c.j, "files", '[');
    }
    for (size_t i = 0; i < f->snapshots.n && readable; i++)
        readable = check_snapshot(&c, f->snapshots.zxid[i]);
    for (size_t i = 0; i < f->logs.n && readable; i++)
        readable = check_log(&c, i);
    if (readable)
        check_note(&c);
    if (readable && !check_all(&c, &st, fault, sizeof fault))
        c.faults++;
    data_check_say_end(&c, readable, &st, fault);
    return readable && c.faults == 0 ? EXIT_OK : EXIT_IO;
}

int data_digest(struct data_files *f)
{
    struct checking c = {.f = f};
    struct server_stats st = {0};
    char fault[600] = "";
    if (!data_check_recover(&c, NULL, &st, fault, sizeof fault))
        return diag_end(f->o, NULL, EXIT_IO, "%s", fault[0] ? fault : "out of memory");
    if (f->o->json) {
        json_begin(&c.j, stdout);
        json_hex(&c.j, "zxid", st.last_zxid);
        data_files_json_digest(&c.j, st.digest);
        clave__json_int(&c.j, "nodes", (int64_t)st.nodes);
        clave__json_int(&c.j, "sessions", (int64_t)st.sessions);
        json_end(&c.j);
    } else {
        printf("zxid 0x%" PRIx64 ", digest %" PRIu64 ", %zu node%s, %zu session%s\n",
               (uint64_t)st.last_zxid, st.digest, st.nodes, clave__plural(st.nodes), st.sessions,
               clave__plural(st.sessions));
    }
    return EXIT_OK;
}
