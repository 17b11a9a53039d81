/* datadir.h - a data directory: who may use it, and the state that it contains.
 *
 * Map of src/runtime/store, which makes the system calls for src/server/store and knows nothing of
 * a running server:
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

/* The name of version-2 while it is being copied. Without a version-2 beside it, no server starts
 * there. */
#define DATADIR_COPY "unfinished.copy"

struct datadir {
    char path[PATH_MAX];
    int lock; /* clave.lock, which is locked while the directory is open */
    bool read_only;
    int dir; /* version-2 */
    struct log log;
};

/* Opens the directory, creating it if it is missing, and locks it. EINUSE: the fault names the
 * process that has it. ECORRUPT: the directory contains something else. EIO, EFULL. */
clave_err clave__datadir_open(struct datadir *d, const char *path, const struct log *log,
                              const struct fault *f);
/* The same for a copy of another directory (see below), which does not create version-2 yet.
 * ECORRUPT: the directory already contains something. Otherwise as _open. */
clave_err clave__datadir_open_empty(struct datadir *d, const char *path, const struct log *log,
                                    const struct fault *f);
/* Opens the directory for inspection: without the lock, and without changing anything, even during
 * recovery. Also accepts version-2 itself. EIO. */
clave_err clave__datadir_look(struct datadir *d, const char *path, const struct log *log,
                              const struct fault *f);
/* Brings the server to the state on the disk, whatever a power cut left behind: the newest intact
 * snapshot, then the logs. A torn tail of the newest log was never acknowledged and is cut off.
 * Anything else that does not fit is ECORRUPT, and nothing is changed. A directory without any
 * state gets snapshot.0, because Apache refuses logs without a snapshot. */
clave_err clave__datadir_recover(struct datadir *d, struct server *s, const struct fault *f);
/* For `clave data check`: the same, but from the oldest snapshot that the logs reach back to, whose
 * zxid is *from. The directory must have been opened by _look. Nothing is logged, since _recover
 * has already logged it. The logs may end before the newest snapshot. */
clave_err clave__datadir_recover_oldest(struct datadir *d, struct server *s, int64_t *from,
                                        const struct fault *f);
/* For a restore: the state at this zxid; INT64_MAX: the latest. The directory must have been opened
 * by _look. */
clave_err clave__datadir_recover_until(struct datadir *d, struct server *s, int64_t zxid,
                                       const struct fault *f);
/* For a backup: the state of a directory that was opened by _look and that a server may be using,
 * together with the bytes that lead to that state. `take` receives each file that was loaded, up to
 * the end of what is whole in it. It returns CLAVE_OK, or the error with which the recovery should
 * end, with a message in the fault. */
struct datadir_taker {
    clave_err (*take)(void *arg, const char *name, const void *p, size_t n);
    void *arg;
    bool history; /* begin with the oldest snapshot that the logs reach back to, instead of the
                     newest one */
};
clave_err clave__datadir_recover_each(struct datadir *d, struct server *s,
                                      const struct datadir_taker *taker, const struct fault *f);
/* Sets the figures of the directory: the sizes of its snapshots and logs, and the newest snapshot
 * (-1: there is none). */
void clave__datadir_measure(const struct datadir *d, struct driver_stats *stats);
/* Notes the longest timeout, in ms, that a session of the directory's server may have. A restore
 * lets that much time pass before anything is granted, because a session may begin after the backup
 * was made. The server notes it before it serves; if the same note is already there, nothing is
 * written. A note that is damaged or cannot be read is replaced, with a message in the log, since
 * the server knows what it should say. EIO, EFULL. */
clave_err clave__datadir_note_longest_session(const struct datadir *d, int32_t ms,
                                              const struct fault *f);
/* Reads that note. 0: there is none. ECORRUPT: it is damaged; no default may be used instead,
 * because a session may have been longer. EIO. */
clave_err clave__datadir_longest_session(const struct datadir *d, int32_t *ms,
                                         const struct fault *f);
/* Releases the lock. Harmless on a directory that was not opened. */
void clave__datadir_close(struct datadir *d);

/* ---- a copy of a directory (copy_dir.c) ------------------------------------------------------ */

/* Makes a new data directory from the bytes of another one: a backup, or what is restored from a
 * backup. The files are written in a directory of another name, which is renamed to version-2 when
 * all of them are on the disk, so neither clave nor Apache ever takes half a copy for a whole
 * one. */

struct copy_dir {
    struct datadir to; /* locked; to.dir is the directory that becomes version-2 */
    int top;           /* -1: the copy was not begun */
    size_t files;
    int64_t bytes;
};

/* Faults name the path and say what to do. After any of these call _end, which removes what was
 * written unless _finish has succeeded. EINUSE: a server or another copy has the directory.
 * ECORRUPT: it is not empty. EIO, EFULL. */
clave_err clave__copy_dir_begin(struct copy_dir *c, const char *path, const struct log *log,
                                const struct fault *f);
clave_err clave__copy_dir_put(struct copy_dir *c, const char *name, const void *p, size_t n,
                              const struct fault *f);
/* Starts over: removes what was written. */
clave_err clave__copy_dir_clear(struct copy_dir *c, const struct fault *f);
clave_err clave__copy_dir_finish(struct copy_dir *c, const struct fault *f);
void clave__copy_dir_end(struct copy_dir *c);

#endif
