/* disk.h - a data directory: what is written is in the page cache, what is synced stays.
 * As the driver's disk thread it appends one batch at a time and reports it when it is
 * durable, and writes one snapshot at a time after the batches posted before it. */
#ifndef CLAVE_SIM_DISK_H
#define CLAVE_SIM_DISK_H

#include "base/buf.h"
#include "world.h"

enum { DISK_FILES = 64, DISK_SNAPSHOTS_KEPT = 3 };

struct disk_file {
    bool is_log;
    int64_t zxid; /* in its name */
    struct buf bytes;
    size_t synced;
};

struct disk_stats {
    uint64_t syncs;
    uint64_t snapshots;
    uint64_t torn_bytes; /* lost in crashes */
    uint64_t torn_logs;
};

/* Of the next append. */
enum disk_fault {
    DISK_WORKS,
    DISK_FULL,       /* a part of it is written */
    DISK_SYNC_FAILS, /* nobody knows what of it is */
};

struct disk {
    struct world *w;
    clave_mem mem;
    struct disk_file *files[DISK_FILES]; /* in the order they were begun */
    size_t nfiles;
    struct disk_file *backup[DISK_FILES]; /* a copy of them */
    size_t nbackup;
    int64_t sync_us;  /* an fsync takes about so long */
    int64_t stall_to; /* and none ends before then */
    enum disk_fault fails;

    struct alarm append_done;
    struct alarm snapshot_done;
    int64_t append_zxid;      /* the newest in the batch under way */
    struct disk_file *target; /* of the batch under way */
    struct disk_file *fresh;  /* the snapshot under way: not in the directory yet */
    unsigned watch_in;        /* the so many-th append from now on is told of; 0: none */
    void (*watcher)(void *arg, int64_t ends);
    void *watcher_arg;
    void (*durable)(void *owner, int64_t zxid);
    void (*failed)(void *owner);
    void (*saved)(void *owner, int64_t zxid);
    void *owner;
    struct disk_stats stats;
};

void disk_init(struct disk *d, struct world *w);
void disk_fini(struct disk *d);

bool disk_is_appending(const struct disk *d);
bool disk_is_saving(const struct disk *d);

struct disk_batch {
    const void *p;
    size_t n;
    int64_t first_zxid;
    int64_t last_zxid;
    bool new_file;
};
void disk_append(struct disk *d, const struct disk_batch *b);
/* A whole snapshot; it is there when `saved` runs. */
void disk_save(struct disk *d, int64_t zxid, const void *p, size_t n);

/* The process is gone, nothing under way will be reported. Power lost: what was not synced
 * is partly gone too: from any byte on, or any of its blocks. */
void disk_stop(struct disk *d, bool power_lost);

/* The newest snapshot older than `below`; NULL: none. */
const struct disk_file *disk_newest_snapshot(const struct disk *d, int64_t below);
/* Log number i in ascending order; NULL: no more. */
struct disk_file *disk_log(struct disk *d, size_t i);
/* Copies all files as they are, in place of an earlier backup. */
void disk_backup(struct disk *d);
static inline bool disk_has_backup(const struct disk *d)
{
    return d->nbackup > 0;
}
/* Nothing is on the disk but the files of the backup, which stays; or but this snapshot. */
void disk_put_backup(struct disk *d);
void disk_put_snapshot(struct disk *d, int64_t zxid, const void *p, size_t n);
/* Recovery cuts a torn end off. */
void disk_truncate(struct disk_file *f, size_t n);

#endif
