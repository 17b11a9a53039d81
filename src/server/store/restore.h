/* restore.h - turns the state of a backup into the first state of a server that goes on from
 * it: `clave data restore` and the simulated world call it, between recovery and the only snapshot
 * of the new directory.
 *
 * What must hold: no fencing token (the czxid of a lock's node) is handed out twice, whichever
 * backup is restored how often; and nothing is granted while a holder of before may still believe.
 */
#ifndef CLAVE_SERVER_STORE_RESTORE_H
#define CLAVE_SERVER_STORE_RESTORE_H

#include "server/server.h"

/* Where a restored server begins to count. The wall clock as a zxid: the high half, the epoch,
 * counts units of ten minutes since 2020; the low half begins with the milliseconds in the unit,
 * times 4096. So a server that was restored earlier, from whatever backup, is behind unless it
 * made four million transactions a second. The epoch stays below 2^21, and with it a token below
 * 2^53, which JSON readers keep, until 2059.
 * If the backup's last zxid or `epoch`, the newest that its ensemble knew (0: none), is ahead of
 * the clock, it is the next epoch after these. Another restore of the same backup gets that epoch
 * too, so only an epoch of the operator's (--epoch) is certain then; likewise before 2020. */
int64_t clave__restore_zxid(int64_t last_zxid, int64_t epoch, int64_t wall);
/* Whether the clock may be right: it is later than 2020. */
bool clave__restore_knows_time(int64_t wall);

struct restored {
    size_t sessions;   /* ended */
    size_t ephemerals; /* removed */
};
struct restore {
    int64_t zxid;     /* to go on from */
    int64_t wall;     /* ms since 1970: new sessions have later ids than those of before */
    int32_t quiet_ms; /* how long a holder of before may believe */
};
/* Ends all sessions, removes their nodes, and goes on as `r` says. No ephemeral node is created
 * until quiet_ms, or the server's longest session timeout if that is more, have passed after a
 * start. The server has loaded its files and was not started. ENOMEM: it may only be freed. */
clave_err clave__server_restore(struct server *s, const struct restore *r, struct restored *out);

/* How long a session may be that a client has, or gets, from this server, in ms: what a later
 * restore has to wait. After the recovery. */
int32_t clave__restore_longest_session(const struct server *s);
/* At the start of any server. */
void clave__restore_start(struct server *s);

#endif
