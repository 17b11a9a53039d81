/* snapshot_save.h - writes a snapshot in pieces, a little in each turn of the loop, while clients
 * go on writing. The file shows the tree as it was when the snapshot began: a session, an access
 * list or a node that is about to change or to go is written first, unless it was already.
 *
 *   IDLE ──▶ SESSIONS ──▶ LISTS ──▶ NODES ──▶ END ──▶ IDLE
 *                                              (waits until the log is durable up to the zxid) */
#ifndef CLAVE_SERVER_STORE_SNAPSHOT_SAVE_H
#define CLAVE_SERVER_STORE_SNAPSHOT_SAVE_H

#include "base/buf.h"
#include "base/list.h"
#include "clave/err.h"

enum save_phase { SAVE_IDLE, SAVE_SESSIONS, SAVE_LISTS, SAVE_NODES, SAVE_END };

struct node;
struct server;

struct snapshot_save {
    enum save_phase phase;
    clave_err err; /* ENOMEM: the rest is only gone through, so that every node is marked again */
    int64_t zxid;
    uint64_t digest;
    struct list sessions; /* those not written yet; written and new ones are in sessions.all */
    struct list lists;    /* likewise, and acls.all */
    struct node *next;    /* in depth-first order; NULL: all are written */
    struct buf ahead[SAVE_END]; /* by phase: what had to be written before its turn */
    uint32_t sum;               /* of the file so far */
};

void clave__snapshot_save_init(struct server *s);
void clave__snapshot_save_fini(struct server *s);

#endif
