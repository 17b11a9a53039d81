/* purge.h - removing old files. */
#ifndef CLAVE_RUNTIME_STORE_PURGE_H
#define CLAVE_RUNTIME_STORE_PURGE_H

#include <stdint.h>

/* Bytes of the removed files. */
struct purged {
    int64_t snapshots;
    int64_t logs;
};

/* Removes all snapshots but the newest three, and the logs that none of these needs (Apache's
 * PurgeTxnLog): those with zxids below the oldest of them, except the newest such log. Returns 0 or
 * an errno; *out is set in any case. */
int clave__purge(int dir, struct purged *out);

#endif
