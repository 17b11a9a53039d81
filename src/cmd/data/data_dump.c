/* data_dump.c - `clave data dump`: prints every node of a snapshot and every transaction of a log,
 * one per line. data.c calls it. Nothing is changed. */
#include "cmd/data/data_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log_line.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/format.h"
#include "cmd/cli/json.h"
#include "server/store/recovery_plan.h"
#include "server/store/txn_log.h"
#include "server/tree/tree.h"

struct dumping {
    struct data_files *f;
    const char *file; /* name of the current file */
};

static void dump_show_jbytes(struct jbytes b)
{
    if (b.n < 0)
        fputs("null", stdout);
    else
        format_bytes(stdout, b.p, (size_t)b.n);
}

static void dump_show_size(struct jbytes data)
{
    if (data.n < 0)
        printf(", no data");
    else
        printf(", %d byte%s", (int)data.n, clave__plural((uint64_t)data.n));
}

static void dump_show_acl(struct jvec acl)
{
    struct jreader r = clave__jvec_reader(acl);
    fputs(", acl", stdout);
    for (int32_t i = 0; i < acl.count; i++) {
        struct wire_acl a = clave__wire_get_acl(&r);
        putchar(' ');
        dump_show_jbytes(a.scheme);
        putchar(':');
        dump_show_jbytes(a.id);
        printf(":%d", (int)a.perms);
    }
}

static void dump_json_acl(struct json *j, struct jvec acl)
{
    struct jreader r = clave__jvec_reader(acl);
    clave__json_open(j, "acl", '[');
    for (int32_t i = 0; i < acl.count; i++) {
        struct wire_acl a = clave__wire_get_acl(&r);
        clave__json_open(j, NULL, '{');
        json_bytes(j, "scheme", a.scheme.p, a.scheme.n > 0 ? (size_t)a.scheme.n : 0);
        json_bytes(j, "id", a.id.p, a.id.n > 0 ? (size_t)a.id.n : 0);
        clave__json_int(j, "perms", a.perms);
        clave__json_close(j, '}');
    }
    clave__json_close(j, ']');
}

static void dump_json_jbytes(struct json *j, const char *key, struct jbytes b)
{
    const char *bytes = b.p ? b.p : "";
    json_bytes(j, key, b.n < 0 ? NULL : bytes, b.n > 0 ? (size_t)b.n : 0);
}

/* ---- changes --------------------------------------------------------------------------------- */

static void dump_show_change(const struct change_record *c, bool refused)
{
    unsigned has = c->kind->fields;
    const bool is_error = has & TXN_ERR;
    printf("    %s%s ", refused && !is_error ? "not done: " : "", c->kind->name);
    if (is_error)
        printf("%d", (int)c->err);
    if (has & TXN_PATH)
        dump_show_jbytes(c->path);
    if (has & TXN_DATA)
        dump_show_size(c->data);
    if (c->ephemeral)
        fputs(", ephemeral", stdout);
    if (has & TXN_TTL)
        printf(", ttl %" PRId64 " ms", c->ttl_ms);
    if (has & TXN_PARENT_CVERSION)
        printf(", parent cversion %d", (int)c->version);
    if (has & TXN_VERSION)
        printf(", version %d", (int)c->version);
    if (has & TXN_ACL)
        dump_show_acl(c->acl);
    putchar('\n');
}

static void dump_json_change(struct json *j, const struct change_record *c)
{
    unsigned has = c->kind->fields;
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "type", c->kind->name);
    if (has & TXN_ERR)
        clave__json_int(j, "error", c->err);
    if (has & TXN_PATH)
        dump_json_jbytes(j, "path", c->path);
    if (has & TXN_DATA)
        dump_json_jbytes(j, "data", c->data);
    if (has & TXN_PARENT_CVERSION) /* every create has it, of an ephemeral node or not */
        clave__json_bool(j, "ephemeral", c->ephemeral);
    if (has & TXN_TTL)
        clave__json_int(j, "ttl_ms", c->ttl_ms);
    if (has & TXN_PARENT_CVERSION)
        clave__json_int(j, "parent_cversion", c->version);
    if (has & TXN_VERSION)
        clave__json_int(j, "version", c->version);
    if (has & TXN_ACL)
        dump_json_acl(j, c->acl);
    clave__json_close(j, '}');
}

/* ---- a log ----------------------------------------------------------------------------------- */

static void dump_show_entry(const struct dumping *d, const struct txn_log_entry *e)
{
    const struct txn_record *t = &e->txn;
    struct jreader at = t->body;
    char when[TIME_TEXT_CAP];
    struct change_record c;
    printf("%s offset %zu: zxid 0x%" PRIx64 " %s session 0x%" PRIx64 " cxid 0x%x %s", d->file,
           e->offset, (uint64_t)t->head.zxid, time_text(t->head.time, when),
           (uint64_t)t->head.client, (unsigned)t->head.cxid, t->kind->name);
    if (t->head.type == OP_CREATE_SESSION)
        printf(", timeout %d ms", (int)t->timeout_ms);
    if (t->head.type == OP_ERROR)
        printf(" %d", (int)t->err);
    if (t->failed)
        fputs(", refused", stdout);
    if (t->has_digest)
        printf(", digest %" PRIu64, t->digest);
    putchar('\n');
    while (clave__txn_record_next(t, &at, &c))
        dump_show_change(&c, t->failed);
}

static void dump_json_entry(const struct dumping *d, const struct txn_log_entry *e)
{
    const struct txn_record *t = &e->txn;
    struct jreader at = t->body;
    char when[TIME_TEXT_CAP];
    struct change_record c;
    struct json j;
    json_begin(&j, stdout);
    clave__json_string(&j, "file", d->file);
    clave__json_int(&j, "offset", (int64_t)e->offset);
    json_hex(&j, "zxid", t->head.zxid);
    clave__json_string(&j, "time", time_text(t->head.time, when));
    json_hex(&j, "session", t->head.client);
    clave__json_int(&j, "cxid", t->head.cxid);
    clave__json_string(&j, "type", t->kind->name);
    if (t->head.type == OP_CREATE_SESSION)
        clave__json_int(&j, "timeout_ms", t->timeout_ms);
    if (t->head.type == OP_ERROR)
        clave__json_int(&j, "error", t->err);
    if (t->head.type == OP_MULTI)
        clave__json_bool(&j, "refused", t->failed);
    if (t->has_digest)
        data_files_json_digest(&j, t->digest);
    clave__json_open(&j, "changes", '[');
    while (clave__txn_record_next(t, &at, &c))
        dump_json_change(&j, &c);
    clave__json_close(&j, ']');
    json_end(&j);
}

static int dump_log(struct dumping *d, const void *p, size_t n)
{
    struct log_walk w;
    struct txn_log_entry e;
    enum log_step step = LOG_STEP_DAMAGED;
    if (clave__txn_log_walk(&w, p, n))
        while ((step = clave__txn_log_next_entry(&w, &e)) == LOG_STEP_RECORD) {
            if (d->f->o->json)
                dump_json_entry(d, &e);
            else
                dump_show_entry(d, &e);
        }
    if (step == LOG_STEP_TORN)
        diag(d->f->o, "%s: a record at offset %zu that was never finished", d->file, w.at);
    if (w.fault[0] != '\0')
        diag(d->f->o, "%s is damaged: %s", d->file, w.fault);
    return w.fault[0] != '\0' ? EXIT_IO : EXIT_OK;
}

/* ---- a snapshot ------------------------------------------------------------------------------ */

static void dump_session(void *arg, int64_t id, int32_t timeout_ms)
{
    const struct dumping *d = arg;
    struct json j;
    if (!d->f->o->json) {
        printf("%s session 0x%" PRIx64 ", timeout %d ms\n", d->file, (uint64_t)id, (int)timeout_ms);
        return;
    }
    json_begin(&j, stdout);
    clave__json_string(&j, "file", d->file);
    json_hex(&j, "session", id);
    clave__json_int(&j, "timeout_ms", timeout_ms);
    json_end(&j);
}

static const char *data_dump_kind_of(const struct node_view *n)
{
    static const char *const kinds[] = {
        [NODE_PLAIN] = "persistent",
        [NODE_EPHEMERAL] = "ephemeral",
        [NODE_CONTAINER] = "container",
        [NODE_TTL] = "ttl",
    };
    return kinds[clave__owner_kind(n->stored_owner)];
}

static void data_dump_show_node(const struct dumping *d, const struct node_view *n)
{
    const struct wire_stat *st = &n->stat;
    printf("%s node ", d->file);
    dump_show_jbytes(n->path.n == 0 ? clave__jbytes("/") : n->path);
    dump_show_size(n->data);
    printf(", %s", data_dump_kind_of(n));
    if (n->stored_owner != 0)
        printf(" 0x%" PRIx64, (uint64_t)n->stored_owner);
    printf(", czxid 0x%" PRIx64 ", mzxid 0x%" PRIx64 ", pzxid 0x%" PRIx64, (uint64_t)st->czxid,
           (uint64_t)st->mzxid, (uint64_t)st->pzxid);
    printf(", version %d, stored cversion %d, aversion %d", (int)st->version,
           (int)n->stored_cversion, (int)st->aversion);
    dump_show_acl(n->acl);
    putchar('\n');
}

static void dump_json_node(const struct dumping *d, const struct node_view *n)
{
    struct json j;
    json_begin(&j, stdout);
    clave__json_string(&j, "file", d->file);
    dump_json_jbytes(&j, "path", n->path.n == 0 ? clave__jbytes("/") : n->path);
    dump_json_jbytes(&j, "data", n->data);
    clave__json_string(&j, "kind", data_dump_kind_of(n));
    json_hex(&j, "owner", n->stored_owner);
    json_hex(&j, "czxid", n->stat.czxid);
    json_hex(&j, "mzxid", n->stat.mzxid);
    json_hex(&j, "pzxid", n->stat.pzxid);
    clave__json_int(&j, "ctime", n->stat.ctime);
    clave__json_int(&j, "mtime", n->stat.mtime);
    clave__json_int(&j, "version", n->stat.version);
    clave__json_int(&j, "stored_cversion", n->stored_cversion);
    clave__json_int(&j, "aversion", n->stat.aversion);
    dump_json_acl(&j, n->acl);
    json_end(&j);
}

static void dump_node(void *arg, const struct node_view *n)
{
    const struct dumping *d = arg;
    if (d->f->o->json)
        dump_json_node(d, n);
    else
        data_dump_show_node(d, n);
}

static int dump_snapshot(struct dumping *d, const void *p, size_t n)
{
    char fault[300] = "";
    struct server *s = data_files_server(d->f);
    if (!s)
        return EXIT_IO;
    clave_err err = clave__server_load_snapshot(s, p, n, fault, sizeof fault);
    if (err == CLAVE_OK) {
        clave__server_each_session(s, dump_session, d);
        clave__server_each_node(s, dump_node, d);
    } else {
        diag(d->f->o, "%s is damaged: %s", d->file,
             err == CLAVE_ECORRUPT ? fault : clave_strerror(err));
    }
    clave__server_free(s);
    return err == CLAVE_OK ? EXIT_OK : EXIT_IO;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int dump_file(struct dumping *d, enum file_kind kind, int64_t zxid)
{
    char name[FILE_NAME_SIZE];
    struct file_content bytes;
    clave__file_name(name, kind, zxid);
    d->file = name;
    if (!data_files_read(d->f, name, &bytes))
        return EXIT_IO;
    const void *p = bytes.p ? bytes.p : "";
    int code = kind == FILE_LOG ? dump_log(d, p, bytes.n) : dump_snapshot(d, p, bytes.n);
    clave__file_free(&bytes);
    return code;
}

/* Prints the files in the order of their zxids, each snapshot before the logs that follow it. */
static int dump_all(struct dumping *d)
{
    const struct file_list *snapshots = &d->f->snapshots, *logs = &d->f->logs;
    int code = EXIT_OK;
    for (size_t i = 0, k = 0; i < snapshots->n || k < logs->n;) {
        bool is_log = i == snapshots->n || (k < logs->n && logs->zxid[k] <= snapshots->zxid[i]);
        int one = is_log ? dump_file(d, FILE_LOG, logs->zxid[k++])
                         : dump_file(d, FILE_SNAPSHOT, snapshots->zxid[i++]);
        code = code == EXIT_OK ? one : code;
    }
    return code;
}

int data_dump(struct data_files *f, const char *only)
{
    struct dumping d = {.f = f};
    int64_t zxid;
    if (!only)
        return dump_all(&d);
    enum file_kind kind = clave__file_kind(only, &zxid);
    if (kind == FILE_LOG || kind == FILE_SNAPSHOT)
        return dump_file(&d, kind, zxid);
    return diag_end(f->o, NULL, EXIT_USAGE, "'%s': expected log.ZXID or snapshot.ZXID", only);
}
