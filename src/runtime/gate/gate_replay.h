/* gate_replay.h - what happened to the locks of a server before the gate in it began, of the
 * server's own snapshots and logs, which it reads beside the running server, on a thread of its
 * own that ends when it is over: neither the server nor the gate waits for it. See
 * observe/lock_replay.h.
 *
 * At most MOST_BYTES of files are read, the newest snapshots with the logs after them. */
#ifndef CLAVE_RUNTIME_GATE_GATE_REPLAY_H
#define CLAVE_RUNTIME_GATE_GATE_REPLAY_H

#include <uv.h>

#include "base/log_line.h"
#include "base/memory.h"
#include "clave/err.h"

struct gate_replay; /* opaque */
struct lock_replay;

/* `dir` is the data directory; copied. `done` is woken when it is over; it outlives _free, as `mem`
 * and `log` do. ENOMEM, ETHREAD. */
clave_err gate_replay_new(struct gate_replay **out, const char *dir, const struct clave_mem *mem,
                          const struct log *log, uv_async_t *done);
/* Reads up to this zxid. */
void gate_replay_start(struct gate_replay *r, int64_t zxid);
/* What was found out, the caller's from now on; NULL: nothing. Once, after `done`; logs how far
 * back it reaches. */
struct lock_replay *gate_replay_take(struct gate_replay *r);
/* Ends the thread. NULL is ignored. */
void gate_replay_free(struct gate_replay *r);

#endif
