/* quota.h - quotas: /zookeeper/quota<path>/zookeeper_limits limits the nodes and bytes at and below
 * a path, zookeeper_stats next to it has the present figures. Only the nearest quota at or above a
 * node counts. The server writes the figures by itself: they are not logged, and the node's version
 * does not change. */
#ifndef CLAVE_SERVER_REQUEST_QUOTA_H
#define CLAVE_SERVER_REQUEST_QUOTA_H

#include "server/server_internal.h"

/* Counts all quotas anew, after recovery. */
void clave__quota_recount(struct server *s);
/* Updates the figures for the changes of s->txn. */
void clave__quota_note(struct server *s);
/* Whether this many more nodes are allowed at or below this path, and data of the length `to` where
 * `from` was; -1: null. What grows nothing is allowed beyond a limit, too. EQUOTA: not allowed. */
clave_err clave__quota_check(struct server *s, struct jbytes path, int64_t nodes, int32_t from,
                             int32_t to);

#endif
