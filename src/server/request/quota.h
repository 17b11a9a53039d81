/* quota.h - quotas: /zookeeper/quota<path>/zookeeper_limits says how much may stand at and below a
 * path, zookeeper_stats beside it how much does. The nearest quota above a node is the one that
 * counts. The figures are the server's own: they are in no log, and no version of the node changes.
 */
#ifndef CLAVE_SERVER_REQUEST_QUOTA_H
#define CLAVE_SERVER_REQUEST_QUOTA_H

#include "server/server_internal.h"

/* Counts all quotas anew: after recovery. */
void clave__quota_recount(struct server *s);
/* Counts what s->txn has changed. */
void clave__quota_note(struct server *s);
/* Whether so many more nodes and bytes may stand at or below this path. EQUOTA. */
clave_err clave__quota_check(struct server *s, struct jbytes path, int64_t nodes, int64_t bytes);

#endif
