/* gate_replay.c - see gate_replay.h. The server may be writing and removing files meanwhile: a file
 * that cannot be read, or does not follow the one before it, is left out together with everything
 * older. What must stay true: until the thread is joined, everything but `ending` belongs to it. */
#include "runtime/gate/gate_replay.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "clave/uv.h"
#include "observe/lock_replay.h"
#include "runtime/store/datadir.h"
#include "runtime/store/disk_thread.h"
#include "runtime/store/file_io.h"
#include "runtime/store/file_names.h"
#include "server/store/snapshot.h"
#include "server/store/txn_log.h"
#include "wire/proto.h"

#define MOST_BYTES ((int64_t)128 << 20)

struct gate_replay {
    struct disk_thread thread; /* for its only job; joined when that is over */
    const struct clave_mem *mem;
    struct log log;
    uv_async_t *done;
    char *path;
    int64_t until; /* zxid */
    atomic_bool ending;
    struct datadir dir;
    struct file_list snapshots, logs;
    struct lock_replay *replay; /* of one attempt */
    struct buf text;            /* path of a node */
    int64_t last;               /* zxid of the last record replayed */
    int64_t from;               /* zxid of the snapshot that it began with; -1: none was intact */
};

/* ---- which files ----------------------------------------------------------------------------- */

static int64_t replay_file_size(const struct gate_replay *r, enum file_kind kind, int64_t zxid)
{
    char name[FILE_NAME_SIZE];
    struct stat st;
    clave__file_name(name, kind, zxid);
    return fstatat(r->dir.dir, name, &st, 0) == 0 ? st.st_size : 0;
}

/* True if the snapshot contains the whole log, which is the case if the next log begins right after
 * the snapshot or earlier. */
static bool replay_is_past(const struct gate_replay *r, size_t log, int64_t snapshot)
{
    return log + 1 < r->logs.n && r->logs.zxid[log + 1] <= snapshot + 1;
}

static int64_t replay_size_from(const struct gate_replay *r, int64_t snapshot)
{
    int64_t bytes = replay_file_size(r, FILE_SNAPSHOT, snapshot);
    for (size_t i = 0; i < r->logs.n; i++)
        if (!replay_is_past(r, i, snapshot))
            bytes += replay_file_size(r, FILE_LOG, r->logs.zxid[i]);
    return bytes;
}

static bool replay_read(const struct gate_replay *r, enum file_kind kind, int64_t zxid,
                        struct file_content *out)
{
    char name[FILE_NAME_SIZE];
    clave__file_name(name, kind, zxid);
    return clave__file_read(r->dir.dir, name, out) == 0;
}

/* ---- the tree as it was ---------------------------------------------------------------------- */

static const char *replay_path(struct gate_replay *r, struct jbytes path)
{
    clave__buf_clear(&r->text);
    bool fits = clave__buf_append(&r->text, path.p, path.n > 0 ? (size_t)path.n : 0) == CLAVE_OK &&
                clave__buf_append(&r->text, "", 1) == CLAVE_OK;
    return fits ? clave__buf_text(&r->text) : "/";
}

static size_t replay_len(struct jbytes data)
{
    return data.n > 0 ? (size_t)data.n : 0;
}

/* Adds a node. A snapshot that Apache saved while writes continued already has nodes that the log
 * creates. */
static clave_err replay_node(void *arg, const struct snapshot_node *n)
{
    struct gate_replay *r = arg;
    const struct node_stat *st = &n->stat;
    bool ephemeral = clave__owner_kind(st->owner) == NODE_EPHEMERAL;
    const clave_stat stat = {.czxid = st->czxid,
                             .ctime = st->ctime,
                             .version = st->version,
                             .ephemeral_owner = ephemeral ? st->owner : 0};
    if (n->path.n > 0 && st->czxid <= r->last)
        clave__lock_replay_node(r->replay, replay_path(r, n->path), &stat, n->data.p,
                                replay_len(n->data));
    return r->ending ? CLAVE_ECLOSED : CLAVE_OK;
}

/* Returns false if the snapshot is damaged; what was read from it is then worthless. */
static bool replay_load(struct gate_replay *r, int64_t zxid)
{
    static const struct snapshot_visitor visitor = {.node = replay_node};
    char fault[300];
    struct snapshot_reader in = {
        .visitor = &visitor, .arg = r, .fault = fault, .cap = sizeof fault};
    struct file_content bytes;
    if (!replay_read(r, FILE_SNAPSHOT, zxid, &bytes))
        return false;
    r->last = r->from = zxid;
    clave_err err = clave__snapshot_read(&in, bytes.p ? bytes.p : "", bytes.n);
    clave__file_free(&bytes);
    clave__lock_replay_loaded(r->replay);
    return err == CLAVE_OK;
}

/* ---- the logs -------------------------------------------------------------------------------- */

static void replay_change(struct gate_replay *r, const struct change_record *c)
{
    switch (c->kind->type) {
    case OP_CREATE:
    case OP_CREATE2:
    case OP_CREATE_CONTAINER:
    case OP_CREATE_TTL:
        clave__lock_replay_created(r->replay, replay_path(r, c->path), c->ephemeral, c->data.p,
                                   replay_len(c->data));
        break;
    case OP_DELETE:
    case OP_DELETE_CONTAINER:
        clave__lock_replay_deleted(r->replay, replay_path(r, c->path));
        break;
    case OP_SET_DATA: /* this may be a request to release */
        clave__lock_replay_written(r->replay, replay_path(r, c->path), c->version, c->data.p,
                                   replay_len(c->data));
        break;
    default:
        break;
    }
}

static void replay_txn(struct gate_replay *r, const struct txn_record *t)
{
    const struct lock_replay_txn txn = {t->head.zxid, t->head.time, t->head.client};
    struct jreader at = t->body;
    struct change_record c;
    r->last = t->head.zxid;
    clave__lock_replay_txn(r->replay, &txn);
    if (t->head.type == OP_CLOSE_SESSION)
        clave__lock_replay_closed(r->replay, t->head.cxid == 0); /* no client requested it */
    else
        while (!t->failed && clave__txn_record_next(t, &at, &c))
            replay_change(r, &c);
}

/* Returns false if this log does not follow. How it ends does not matter: the next log tells
 * whether it was complete, and the newest one has everything that was ever shown. */
static bool replay_log(struct gate_replay *r, int64_t zxid)
{
    struct file_content bytes;
    struct log_walk w;
    struct txn_log_entry e;
    bool follows = true, first = true;
    if (!replay_read(r, FILE_LOG, zxid, &bytes))
        return false;
    if (clave__txn_log_walk(&w, bytes.p ? bytes.p : "", bytes.n))
        while (follows && !r->ending && r->last < r->until &&
               clave__txn_log_next_entry(&w, &e) == LOG_STEP_RECORD) {
            if (e.txn.head.zxid <= r->last)
                continue; /* the snapshot already has it */
            follows = !first || clave__txn_log_follows(r->last, e.txn.head.zxid);
            first = false;
            if (follows && e.txn.head.zxid <= r->until)
                replay_txn(r, &e.txn);
        }
    clave__file_free(&bytes);
    return follows;
}

static bool replay_from(struct gate_replay *r, int64_t snapshot)
{
    assert(!r->replay);
    if (clave__lock_replay_new(&r->replay, r->mem, clave_random_seed()) != CLAVE_OK)
        return false;
    bool done = replay_load(r, snapshot);
    for (size_t i = 0; i < r->logs.n && done && !r->ending; i++)
        if (!replay_is_past(r, i, snapshot))
            done = replay_log(r, r->logs.zxid[i]);
    if (done && clave__lock_replay_is_complete(r->replay))
        return true;
    clave__lock_replay_free(r->replay);
    r->replay = NULL;
    r->from = -1;
    return false;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void replay_try_all(struct gate_replay *r)
{
    if (clave__file_list_read(r->dir.dir, FILE_SNAPSHOT, &r->snapshots) != 0 ||
        clave__file_list_read(r->dir.dir, FILE_LOG, &r->logs) != 0)
        return;
    for (size_t i = 0; i < r->snapshots.n && !r->ending; i++)
        if (r->snapshots.zxid[i] <= r->until &&
            replay_size_from(r, r->snapshots.zxid[i]) <= MOST_BYTES &&
            replay_from(r, r->snapshots.zxid[i]))
            return;
}

static int replay_job(struct disk_thread *thread)
{
    struct gate_replay *r = (struct gate_replay *)(void *)thread; /* its first member */
    const struct fault no_fault = {NULL, 0};
    const struct log no_log = {0};
    if (clave__datadir_look(&r->dir, r->path, &no_log, &no_fault) == CLAVE_OK)
        replay_try_all(r);
    clave__datadir_close(&r->dir);
    return 0;
}

static void replay_on_done(struct disk_thread *thread)
{
    struct gate_replay *r = (struct gate_replay *)(void *)thread;
    uv_async_send(r->done);
}

clave_err gate_replay_new(struct gate_replay **out, const char *dir, const struct clave_mem *mem,
                          const struct log *log, uv_async_t *done)
{
    struct gate_replay *r = *out = clave__mem_zalloc(mem, sizeof *r);
    if (!r)
        return CLAVE_ENOMEM;
    r->mem = mem;
    r->log = *log;
    r->done = done;
    r->from = -1;
    r->dir = (struct datadir){.lock = -1, .dir = -1};
    clave__buf_init(&r->text, mem, SIZE_MAX / 2);
    r->path = clave__mem_strdup(mem, dir);
    r->thread.on_done = replay_on_done;
    clave_err err = CLAVE_ENOMEM;
    if (r->path)
        err = clave__disk_thread_start(&r->thread, "clave-replay", replay_job, mem, NULL);
    if (err == CLAVE_OK)
        return err;
    gate_replay_free(r);
    *out = NULL;
    return err;
}

void gate_replay_start(struct gate_replay *r, int64_t zxid)
{
    r->until = zxid;
    clave__disk_thread_post(&r->thread);
}

struct lock_replay *gate_replay_take(struct gate_replay *r)
{
    assert(clave__disk_thread_state(&r->thread) == JOB_DONE);
    clave__disk_thread_stop(&r->thread);
    struct lock_replay *replay = r->replay;
    r->replay = NULL;
    if (replay)
        clave__log(&r->log, CLAVE_LOG_INFO, "history goes back to zxid 0x%" PRIx64,
                   (uint64_t)r->from);
    else
        clave__log_about(
            &r->log, CLAVE_LOG_WARN, &(struct log_about){.path = r->path},
            "history begins now: no snapshot in %s is whole together with the logs after "
            "it, in at most %" PRId64 " MiB",
            r->path, MOST_BYTES >> 20);
    return replay;
}

void gate_replay_free(struct gate_replay *r)
{
    if (!r)
        return;
    r->ending = true;
    clave__disk_thread_stop(&r->thread);
    clave__lock_replay_free(r->replay);
    clave__file_list_free(&r->snapshots);
    clave__file_list_free(&r->logs);
    clave__buf_fini(&r->text);
    clave__mem_free(r->mem, r->path);
    clave__mem_free(r->mem, r);
}
