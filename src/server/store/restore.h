/* restore.h - turns the state of a backup into the initial state of a server that continues from
 * it. `clave data restore` and the simulated world call it after recovery and before they write the
 * only snapshot of the new directory.
 *
 * What must stay true: no fencing token (the czxid of a lock's node) is ever handed out twice,
 * whichever backup is restored and however often; and nothing is granted while a client from before
 * the restore may still believe that it holds something. */
#ifndef CLAVE_SERVER_STORE_RESTORE_H
#define CLAVE_SERVER_STORE_RESTORE_H

#include "server/server.h"

/* The zxid at which a restored server begins to count: the wall clock, as a zxid. Its high half,
 * the epoch, counts units of ten minutes since 2020; its low half begins with the milliseconds
 * within the unit, times 4096. So any server restored earlier, from whatever backup, is behind this
 * one unless it made four million transactions a second. The epoch stays below 2^21 until 2059,
 * which keeps tokens below 2^53, as JSON readers need.
 *
 * If the backup's last zxid or `epoch`, the newest epoch that its ensemble knew (0: none), is ahead
 * of the clock, the result is the epoch after both. Another restore of the same backup then gets
 * the same epoch, so only an epoch given by the operator (--epoch) is safe in that case, and also
 * while the clock is before 2020. */
int64_t clave__restore_zxid(int64_t last_zxid, int64_t epoch, int64_t wall);
/* True if the clock can be right, that is, later than 2020. */
bool clave__restore_knows_time(int64_t wall);

struct restored {
    size_t sessions;   /* how many were ended */
    size_t ephemerals; /* how many were removed */
};
struct restore {
    int64_t zxid;     /* where to continue */
    int64_t wall;     /* ms since 1970: new sessions get greater ids than earlier ones */
    int32_t quiet_ms; /* how long clients from before may still believe that they hold something */
};
/* Ends all sessions, removes their ephemeral nodes, and continues as `r` says. After each start, no
 * ephemeral node is created until quiet_ms have passed, or the server's longest session timeout if
 * that is more. The server must have loaded its files and not been started. ENOMEM: it can only be
 * freed. */
clave_err clave__server_restore(struct server *s, const struct restore *r, struct restored *out);

/* The longest timeout, in ms, of any session that a client has or may get from this server, which
 * is what a later restore has to wait for. Call it after recovery. */
int32_t clave__restore_longest_session(const struct server *s);
/* Called when any server starts: begins the quiet time if the directory was restored. */
void clave__restore_start(struct server *s);

#endif
