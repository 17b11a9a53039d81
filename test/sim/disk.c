#include "disk.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/memory.h"
#include "server/server.h"

/* What a disk writes as one. */
enum { BLOCK = 512 };

static void free_file(struct disk_file *f)
{
    if (!f)
        return;
    clave__buf_fini(&f->bytes);
    free(f);
}

static struct disk_file *new_file(struct disk *d, bool is_log, int64_t zxid)
{
    struct disk_file *f = world_alloc(sizeof *f);
    f->is_log = is_log;
    f->zxid = zxid;
    clave__buf_init(&f->bytes, &d->mem, SIZE_MAX / 4);
    return f;
}

static void write_to(struct disk_file *f, const void *p, size_t n)
{
    world_must(clave__buf_append(&f->bytes, p, n) == CLAVE_OK);
}

static void remove_at(struct disk *d, size_t i)
{
    free_file(d->files[i]);
    d->nfiles--;
    memmove(&d->files[i], &d->files[i + 1], (d->nfiles - i) * sizeof *d->files);
}

/* One of the same name is replaced: it had no record yet. */
static void add_file(struct disk *d, struct disk_file *f)
{
    for (size_t i = d->nfiles; i-- > 0;)
        if (d->files[i]->is_log == f->is_log && d->files[i]->zxid == f->zxid)
            remove_at(d, i);
    world_must(d->nfiles < DISK_FILES);
    d->files[d->nfiles++] = f;
}

/* ---- crashes ------------------------------------------------------------------------- */

/* Blocks of a batch reach the disk in any order; what has not is zeros. */
static void lose_blocks(struct disk *d, struct disk_file *f, size_t len)
{
    uint8_t *p = clave__buf_bytes(&f->bytes);
    for (size_t at = f->synced; at < len;) {
        size_t end = (at / BLOCK + 1) * BLOCK;
        end = end < len ? end : len;
        if (world_chance(d->w, 500)) {
            memset(p + at, 0, end - at);
            d->stats.torn_bytes += end - at;
        }
        at = end;
    }
}

/* The length of a file may have reached the disk before its bytes: then they are zeros. */
static void tear(struct disk *d, struct disk_file *f)
{
    size_t len = clave__buf_len(&f->bytes);
    if (f->synced >= len)
        return;
    size_t kept = (size_t)world_between(d->w, (int64_t)f->synced, (int64_t)len);
    d->stats.torn_logs++;
    if (world_chance(d->w, 300)) {
        lose_blocks(d, f, len);
        return;
    }
    d->stats.torn_bytes += len - kept;
    if (world_chance(d->w, 300)) {
        memset(clave__buf_bytes(&f->bytes) + kept, 0, len - kept);
        return;
    }
    f->bytes.tail = f->bytes.head + kept;
}

/* ---- the log ------------------------------------------------------------------------- */

static int64_t sync_ends(struct disk *d)
{
    int64_t at = d->w->now + world_wait(d->w, d->sync_us);
    return at > d->stall_to ? at : d->stall_to;
}

/* The name of a log is durable before its records are, and its header before its name
 * (clave__txn_log_file_create). */
static struct disk_file *begin_log(struct disk *d, int64_t first_zxid)
{
    uint8_t header[SERVER_LOG_HEADER];
    struct disk_file *f = new_file(d, true, first_zxid);
    clave__server_log_header(header);
    write_to(f, header, sizeof header);
    f->synced = sizeof header;
    add_file(d, f);
    return f;
}

static struct disk_file *newest_log(const struct disk *d)
{
    struct disk_file *found = NULL;
    for (size_t i = 0; i < d->nfiles; i++)
        if (d->files[i]->is_log && (!found || d->files[i]->zxid > found->zxid))
            found = d->files[i];
    return found;
}

bool disk_is_appending(const struct disk *d)
{
    return alarm_is_set(&d->append_done);
}

void disk_append(struct disk *d, const struct disk_batch *b)
{
    world_must(!disk_is_appending(d));
    d->target = b->new_file ? begin_log(d, b->first_zxid) : newest_log(d);
    size_t n = d->fails == DISK_FULL ? (size_t)world_between(d->w, 0, (int64_t)b->n) : b->n;
    write_to(d->target, b->p, n);
    d->append_zxid = b->last_zxid;
    world_set(d->w, &d->append_done, sync_ends(d));
    if (d->watch_in > 0 && --d->watch_in == 0)
        d->watcher(d->watcher_arg, d->append_done.at);
}

/* Pages whose fsync has failed are not dirty any more: the next one would succeed. */
static void fail_append(struct disk *d)
{
    if (d->fails == DISK_SYNC_FAILS)
        tear(d, d->target);
    d->fails = DISK_WORKS;
    d->failed(d->owner);
}

static void on_appended(struct alarm *a)
{
    struct disk *d = LIST_ENTRY(a, struct disk, append_done);
    if (d->fails != DISK_WORKS) {
        fail_append(d);
        return;
    }
    d->target->synced = clave__buf_len(&d->target->bytes);
    d->stats.syncs++;
    d->durable(d->owner, d->append_zxid);
}

/* ---- snapshots ----------------------------------------------------------------------- */

static void purge(struct disk *d)
{
    const struct disk_file *oldest = NULL;
    int64_t below = INT64_MAX;
    for (int i = 0; i < DISK_SNAPSHOTS_KEPT; i++) {
        oldest = disk_newest_snapshot(d, below);
        if (!oldest)
            return;
        below = oldest->zxid;
    }
    for (size_t i = d->nfiles; i-- > 0;)
        if (!d->files[i]->is_log && d->files[i]->zxid < below)
            remove_at(d, i);
    struct disk_file *second;
    while ((second = disk_log(d, 1)) && second->zxid <= below) {
        const struct disk_file *first = disk_log(d, 0);
        for (size_t i = 0; i < d->nfiles; i++)
            if (d->files[i] == first) {
                remove_at(d, i);
                break;
            }
    }
}

bool disk_is_saving(const struct disk *d)
{
    return d->fresh != NULL;
}

void disk_save(struct disk *d, int64_t zxid, const void *p, size_t n)
{
    world_must(!disk_is_saving(d));
    d->fresh = new_file(d, false, zxid);
    write_to(d->fresh, p, n);
    world_set(d->w, &d->snapshot_done, sync_ends(d) + world_between(d->w, 0, 40 * MS));
}

static void on_saved(struct alarm *a)
{
    struct disk *d = LIST_ENTRY(a, struct disk, snapshot_done);
    struct disk_file *f = d->fresh;
    d->fresh = NULL;
    f->synced = clave__buf_len(&f->bytes);
    add_file(d, f);
    purge(d);
    d->stats.snapshots++;
    d->saved(d->owner, f->zxid);
}

const struct disk_file *disk_newest_snapshot(const struct disk *d, int64_t below)
{
    const struct disk_file *found = NULL;
    for (size_t i = 0; i < d->nfiles; i++) {
        const struct disk_file *f = d->files[i];
        if (!f->is_log && f->zxid < below && (!found || f->zxid > found->zxid))
            found = f;
    }
    return found;
}

struct disk_file *disk_log(struct disk *d, size_t i)
{
    int64_t below = INT64_MIN;
    struct disk_file *found = NULL;
    for (size_t skip = 0; skip <= i; skip++) {
        found = NULL;
        for (size_t k = 0; k < d->nfiles; k++) {
            struct disk_file *f = d->files[k];
            if (f->is_log && f->zxid > below && (!found || f->zxid < found->zxid))
                found = f;
        }
        if (!found)
            return NULL;
        below = found->zxid;
    }
    return found;
}

void disk_stop(struct disk *d, bool power_lost)
{
    world_clear(d->w, &d->append_done);
    world_clear(d->w, &d->snapshot_done);
    free_file(d->fresh);
    d->fresh = NULL;
    for (size_t i = 0; i < d->nfiles; i++) {
        if (power_lost)
            tear(d, d->files[i]);
        d->files[i]->synced = clave__buf_len(&d->files[i]->bytes);
    }
}

void disk_truncate(struct disk_file *f, size_t n)
{
    f->bytes.tail = f->bytes.head + n;
    f->synced = n;
}

/* ---- backups ------------------------------------------------------------------------- */

static void free_files(struct disk_file **files, size_t *n)
{
    while (*n > 0)
        free_file(files[--*n]);
}

static void copy_files(struct disk *d, struct disk_file **to, size_t *nto,
                       struct disk_file *const *from, size_t n)
{
    free_files(to, nto);
    for (; *nto < n; ++*nto) {
        const struct disk_file *f = from[*nto];
        struct disk_file *copy = new_file(d, f->is_log, f->zxid);
        write_to(copy, clave__buf_bytes(&f->bytes), clave__buf_len(&f->bytes));
        copy->synced = clave__buf_len(&f->bytes);
        to[*nto] = copy;
    }
}

void disk_backup(struct disk *d)
{
    copy_files(d, d->backup, &d->nbackup, d->files, d->nfiles);
}

void disk_put_backup(struct disk *d)
{
    copy_files(d, d->files, &d->nfiles, d->backup, d->nbackup);
}

void disk_put_snapshot(struct disk *d, int64_t zxid, const void *p, size_t n)
{
    free_files(d->files, &d->nfiles);
    struct disk_file *f = new_file(d, false, zxid);
    write_to(f, p, n);
    f->synced = n;
    add_file(d, f);
}

/* ---- life ---------------------------------------------------------------------------- */

void disk_init(struct disk *d, struct world *w)
{
    memset(d, 0, sizeof *d);
    d->w = w;
    d->mem = clave__mem_or_default(NULL);
    d->append_done.fire = on_appended;
    d->snapshot_done.fire = on_saved;
    d->sync_us = 200;
}

void disk_fini(struct disk *d)
{
    world_clear(d->w, &d->append_done);
    world_clear(d->w, &d->snapshot_done);
    free_file(d->fresh);
    free_files(d->files, &d->nfiles);
    free_files(d->backup, &d->nbackup);
}
