/* datadir.h - a data directory: whose it is, and what state it holds. */
#ifndef CLAVE_RUNTIME_SERVER_DATADIR_H
#define CLAVE_RUNTIME_SERVER_DATADIR_H

#include <limits.h>

#include "base/log.h"
#include "runtime/start_error.h"
#include "server/server.h"

struct datadir {
    char path[PATH_MAX];
    int lock; /* clave.lock, locked while it is open */
    bool read_only;
    int dir; /* version-2 */
    struct log log;
};

/* Creates it when missing and locks it. EINUSE: the fault names the process that has it.
 * ECORRUPT: something else is in there. EIO, EFULL. */
clave_err clave__datadir_open(struct datadir *d, const char *path, const struct log *log,
                              const struct fault *f);
/* To look at alone: not locked, and nothing is changed, by recovery neither. Also for version-2
 * itself. EIO. */
clave_err clave__datadir_look(struct datadir *d, const char *path, const struct log *log,
                              const struct fault *f);
/* Brings the server to the state on the disk, whatever a power cut left: the newest snapshot
 * that is whole, then the logs. A torn tail of the newest log was never acknowledged and is
 * cut off. Anything else that does not fit is ECORRUPT, and nothing is changed. A directory
 * without any state gets snapshot.0: Apache refuses logs without a snapshot. */
clave_err clave__datadir_recover(struct datadir *d, struct server *s, const struct fault *f);
/* Bytes of its snapshots and of its logs, as they are now. */
void clave__datadir_sizes(const struct datadir *d, uint64_t *snapshots, uint64_t *logs);
/* The zxid of the newest one and when it was written, in seconds; -1: there is none. */
void clave__datadir_last_snapshot(const struct datadir *d, int64_t *zxid, int64_t *seconds);
/* Gives the lock up. Harmless on one that was not opened. */
void clave__datadir_close(struct datadir *d);

#endif
