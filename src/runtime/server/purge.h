/* purge.h - removing old files. */
#ifndef CLAVE_RUNTIME_SERVER_PURGE_H
#define CLAVE_RUNTIME_SERVER_PURGE_H

/* Removes all snapshots but the newest three, and the logs that none of these needs (Apache's
 * PurgeTxnLog): those with zxids below the oldest of them, except the newest such log. Returns 0 or
 * an errno. */
int clave__purge(int dir);

#endif
