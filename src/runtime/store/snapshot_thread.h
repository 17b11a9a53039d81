/* snapshot_thread.h - the thread that writes snapshots, a piece at a time, removes the files that a
 * new one makes superfluous, and measures the room on the disk and the process. The log never waits
 * for it.
 *
 * A snapshot is written under another name, and renamed when it is on the disk: a power cut leaves
 * either all of it or nothing. */
#ifndef CLAVE_RUNTIME_STORE_SNAPSHOT_THREAD_H
#define CLAVE_RUNTIME_STORE_SNAPSHOT_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/store/disk_thread.h"
#include "runtime/store/file_names.h"

/* ---- what it measures ------------------------------------------------------------------------ */

/* Below 0: not known. */
struct process_files {
    int64_t open_files;
    int64_t max_files;
    int64_t resident_bytes;
};
/* On any thread. */
struct process_files clave__process_measure(void);

struct disk_space {
    int64_t free_bytes; /* that this user may write; below 0: not known */
    int64_t total_bytes;
};
/* Of the file system that an open file or directory is on. The thread of the snapshots measures,
 * since a network file system may not answer. */
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
    int64_t zxid; /* names the file */
    /* After SNAPSHOT_LAST: which old files were removed, and the errno of it. */
    struct purged purged;
    int purge_fault;
    struct disk_space space;    /* when DONE */
    struct process_files files; /* after SNAPSHOT_MEASURE */
};

/* ENOMEM, ETHREAD: as clave__disk_thread_start. */
clave_err clave__snapshot_thread_start(struct snapshot_thread *t, int dir,
                                       const struct clave_mem *mem, struct notifier *done);
/* Abandons the snapshot being written. */
void clave__snapshot_thread_stop(struct snapshot_thread *t);

#endif
