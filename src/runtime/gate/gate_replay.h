/* gate_replay.h - finds out what happened to the locks of a server before its gate started, by
 * reading the server's own snapshots and logs while the server is running. A thread of its own does
 * that and then ends, so neither the server nor the gate waits for it. See observe/lock_replay.h.
 *
 * It reads at most MOST_BYTES of files: the newest snapshots, with the logs after them. */
#ifndef CLAVE_RUNTIME_GATE_GATE_REPLAY_H
#define CLAVE_RUNTIME_GATE_GATE_REPLAY_H

#include <uv.h>

#include "base/log_line.h"
#include "base/memory.h"
#include "clave/err.h"

struct gate_replay; /* opaque */
struct lock_replay;

/* `dir` is the data directory; copied. `done` is woken when the replay is over; it must outlive
 * _free, as must `mem` and `log`. ENOMEM, ETHREAD. */
clave_err gate_replay_new(struct gate_replay **out, const char *dir, const struct clave_mem *mem,
                          const struct log *log, uv_async_t *done);
/* Starts reading, up to this zxid. */
void gate_replay_start(struct gate_replay *r, int64_t zxid);
/* Returns the result, which belongs to the caller; NULL: there is none. Call it once, after `done`;
 * logs how far back it reaches. */
struct lock_replay *gate_replay_take(struct gate_replay *r);
/* Ends the thread. NULL is ignored. */
void gate_replay_free(struct gate_replay *r);

#endif
