/* snapshot_thread.h - the thread that writes snapshots, a piece at a time, removes the files that a
 * new one makes superfluous, and measures the room on the disk and the process. The log never waits
 * for it. */
#ifndef CLAVE_RUNTIME_STORE_SNAPSHOT_THREAD_H
#define CLAVE_RUNTIME_STORE_SNAPSHOT_THREAD_H

#include <stdbool.h>

#include "runtime/process_usage.h"
#include "runtime/store/disk_space.h"
#include "runtime/store/disk_thread.h"
#include "runtime/store/purge.h"
#include "runtime/store/snapshot_file.h"

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
