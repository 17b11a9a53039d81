/* datadir.h - a data directory: who may use it, and what state it holds.
 *
 * Map of src/runtime/store, the system calls for src/server/store. It knows no server:
 *   datadir          the directory: its lock, its size, the longest session
 *   file_names       the names of its files, and lists of them
 *   file_io          the bytes of a file; files and directories made durable
 *   recovery_load    loads the files into a server; server/store/recovery_plan.h says which
 *   txn_log_file     writes and syncs a log; txn_log_thread: its batches, while the loop runs
 *   snapshot_file    writes a snapshot; snapshot_thread: a piece at a time, beside the loop
 *   disk_thread      a thread for one job at a time
 *   purge            removes old snapshots and logs
 *   disk_space       the room on the disk
 *   copy_dir         a directory made as a copy of another: backup and restore */
#ifndef CLAVE_RUNTIME_STORE_DATADIR_H
#define CLAVE_RUNTIME_STORE_DATADIR_H

#include <limits.h>

#include "base/log_line.h"
#include "runtime/start_error.h"
#include "server/server.h"

/* Version-2 while it is being copied. Without version-2 beside it no server starts there. */
#define DATADIR_COPY "unfinished.copy"

struct datadir {
    char path[PATH_MAX];
    int lock; /* clave.lock, locked while it is open */
    bool read_only;
    int dir; /* version-2 */
    struct log log;
};

/* Creates it if missing and locks it. EINUSE: the fault names the process that has it. ECORRUPT:
 * the directory contains something else. EIO, EFULL. */
clave_err clave__datadir_open(struct datadir *d, const char *path, const struct log *log,
                              const struct fault *f);
/* Creates it if missing and locks it, for a copy of another directory (datadir.h): version-2 is
 * not there yet. ECORRUPT: it contains something already. Else as _open. */
clave_err clave__datadir_open_empty(struct datadir *d, const char *path, const struct log *log,
                                    const struct fault *f);
/* Opens it for inspection: without the lock, and nothing is changed, recovery included. Accepts
 * version-2 itself too. EIO. */
clave_err clave__datadir_look(struct datadir *d, const char *path, const struct log *log,
                              const struct fault *f);
/* Brings the server to the state on disk, whatever a power cut left: the newest intact snapshot,
 * then the logs. A torn tail of the newest log was never acknowledged and is cut off. Anything else
 * that does not fit is ECORRUPT, and nothing is changed. A directory without any state gets
 * snapshot.0: Apache refuses logs without a snapshot. */
clave_err clave__datadir_recover(struct datadir *d, struct server *s, const struct fault *f);
/* For `clave data check`: the same from the oldest snapshot that the logs reach back to, whose zxid
 * is *from. The directory was opened by _look, and nothing is logged, since _recover has told it.
 * The logs may end before the newest snapshot. */
clave_err clave__datadir_recover_oldest(struct datadir *d, struct server *s, int64_t *from,
                                        const struct fault *f);
/* For a restore: the state at this zxid, INT64_MAX: the last. The directory was opened by _look. */
clave_err clave__datadir_recover_until(struct datadir *d, struct server *s, int64_t zxid,
                                       const struct fault *f);
/* For a backup: the state of a directory that was opened by _look and that a server may be using,
 * and the bytes that lead to it: `take` gets each file that was loaded, up to the end of what is
 * whole in it. It returns CLAVE_OK, or what the recovery ends with, with a text in the fault. */
struct datadir_taker {
    clave_err (*take)(void *arg, const char *name, const void *p, size_t n);
    void *arg;
    bool history; /* from the oldest snapshot on that the logs reach back to, not from the newest */
};
clave_err clave__datadir_recover_each(struct datadir *d, struct server *s,
                                      const struct datadir_taker *taker, const struct fault *f);
/* Sets the figures of the directory: the bytes of its snapshots and of its logs, and the newest
 * snapshot (-1: there is none). */
void clave__datadir_measure(const struct datadir *d, struct driver_stats *stats);
/* How long a session of the directory's server may be, in ms: a restore lets that time pass before
 * anything is granted, and a session may begin after the backup. The server notes it before it
 * serves; nothing is written where it stands already. A note that is damaged or cannot be read
 * is replaced, and logged: the server knows what it has to say. EIO, EFULL. */
clave_err clave__datadir_note_longest_session(const struct datadir *d, int32_t ms,
                                              const struct fault *f);
/* 0: there is no note. ECORRUPT: it is damaged, and no default may stand for it, since a session
 * may have been longer. EIO. */
clave_err clave__datadir_longest_session(const struct datadir *d, int32_t *ms,
                                         const struct fault *f);
/* Releases the lock. Harmless on a directory that was not opened. */
void clave__datadir_close(struct datadir *d);

/* ---- a copy of a directory (copy_dir.c) ------------------------------------------------------ */

/* A new data directory, made of the bytes of another: a backup, or what is restored from one. The
 * files are written in a directory of another name, which becomes version-2 when all of them are on
 * the disk: half a copy is never taken for one, by clave nor by Apache. */

struct copy_dir {
    struct datadir to; /* locked; to.dir is the directory that becomes version-2 */
    int top;           /* -1: it was not begun */
    size_t files;
    int64_t bytes;
};

/* The faults name the path and what to do. After any of these, _end; before _finish it removes what
 * was written. EINUSE: a server or another copy has the directory. ECORRUPT: it is not empty. EIO,
 * EFULL. */
clave_err clave__copy_dir_begin(struct copy_dir *c, const char *path, const struct log *log,
                                const struct fault *f);
clave_err clave__copy_dir_put(struct copy_dir *c, const char *name, const void *p, size_t n,
                              const struct fault *f);
/* Starts anew: removes what was put. */
clave_err clave__copy_dir_clear(struct copy_dir *c, const struct fault *f);
clave_err clave__copy_dir_finish(struct copy_dir *c, const struct fault *f);
void clave__copy_dir_end(struct copy_dir *c);

#endif
