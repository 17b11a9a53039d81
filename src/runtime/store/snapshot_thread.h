/* snapshot_thread.h - the thread that writes snapshots piece by piece, removes the files that a new
 * snapshot makes superfluous, and measures the space on the disk and the process. The log never
 * waits for it.
 *
 * A snapshot is written under another name and renamed once it is on the disk, so a power cut
 * leaves either all of it or nothing. */
#ifndef CLAVE_RUNTIME_STORE_SNAPSHOT_THREAD_H
#define CLAVE_RUNTIME_STORE_SNAPSHOT_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/store/disk_thread.h"
#include "runtime/store/file_names.h"

/* ---- what it measures ------------------------------------------------------------------------ */

/* Negative: unknown. */
struct process_files {
    int64_t open_files;
    int64_t max_files;
    int64_t resident_bytes;
};
/* Any thread. */
struct process_files clave__process_measure(void);

struct disk_space {
    int64_t free_bytes; /* what this user may write; negative: unknown */
    int64_t total_bytes;
};
/* Measures the file system of an open file or directory. The snapshot thread does this, because a
 * network file system may not answer. */
struct disk_space clave__disk_space_measure(int fd);

struct snapshot_file {
    int dir;
    int fd; /* -1: none */
    int64_t end;
};

/* ---- the thread ------------------------------------------------------------------------------ */

/*   a piece, another, ... ─▶ SNAPSHOT_LAST: the file gets its name, old ones are removed
 *                         └▶ SNAPSHOT_ABANDON: the file is removed
 *   now and then ─▶ SNAPSHOT_MEASURE: the room is measured, as it is after every job, and the
 *                   open files of the process                                                  */
enum snapshot_job { SNAPSHOT_PIECE, SNAPSHOT_LAST, SNAPSHOT_ABANDON, SNAPSHOT_MEASURE };

struct snapshot_thread {
    struct disk_thread thread;
    int dir;
    struct snapshot_file file;
    enum snapshot_job job;
    int64_t zxid; /* in the name of the file */
    /* After SNAPSHOT_LAST: which old files were removed, and the errno of that. */
    struct purged purged;
    int purge_fault;
    struct disk_space space;    /* valid when DONE */
    struct process_files files; /* valid after SNAPSHOT_MEASURE */
};

/* ENOMEM, ETHREAD: as clave__disk_thread_start. */
clave_err clave__snapshot_thread_start(struct snapshot_thread *t, int dir,
                                       const struct clave_mem *mem, struct notifier *done);
/* Abandons the snapshot that is being written, and ends the thread. */
void clave__snapshot_thread_stop(struct snapshot_thread *t);

#endif
