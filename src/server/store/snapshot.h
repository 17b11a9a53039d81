/* snapshot.h - snapshots in Apache's format. A file consists of a header, sessions, the map of
 * access lists, the nodes, and up to three parts that each end in a seal, a checksum of everything
 * before it.
 *
 * A snapshot is saved in pieces, a little in each turn of the loop, while clients go on writing.
 * The file shows the tree as it was when the snapshot began: a session, access list or node that is
 * about to change or disappear is written first, unless it has been written already.
 *
 *   IDLE ──▶ SESSIONS ──▶ LISTS ──▶ NODES ──▶ END ──▶ IDLE
 *                                              (waits until the log is durable up to the zxid)
 *
 * Reading calls a visitor for each thing in the file, in order. The loader builds a tree from it;
 * the history of locks picks out what it needs, without a tree. Whether a file is intact is known
 * only at its end, so what a visitor is shown before that may be wrong. */
#ifndef CLAVE_SERVER_STORE_SNAPSHOT_H
#define CLAVE_SERVER_STORE_SNAPSHOT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/list.h"
#include "clave/err.h"
#include "server/tree/tree.h"
#include "wire/jute.h"

/* ---- saving (snapshot_save.c) ---------------------------------------------------------------- */

enum save_phase { SAVE_IDLE, SAVE_SESSIONS, SAVE_LISTS, SAVE_NODES, SAVE_END };

struct node;
struct server;

struct snapshot_save {
    enum save_phase phase;
    clave_err
        err; /* ENOMEM: the rest is only walked through, so that every node ends up marked again */
    int64_t zxid;
    uint64_t digest;
    struct list sessions; /* sessions still to be written; those written, and new ones, are in
                             sessions.all */
    struct list
        lists; /* in the same way, access lists still to be written; the others are in acls.all */
    struct node *next;          /* the next one in depth-first order; NULL: all are written */
    struct buf ahead[SAVE_END]; /* for each phase, what had to be written before its turn */
    uint32_t sum;               /* the checksum of the file so far */
};

void clave__snapshot_save_init(struct server *s);
void clave__snapshot_save_fini(struct server *s);

/* ---- reading (snapshot_load.c) --------------------------------------------------------------- */

struct snapshot_node {
    struct jbytes path; /* "" is the root */
    struct jbytes data;
    int64_t acl_key;
    struct node_stat stat; /* num_children is not set, since files do not have it */
};

/* Receives the content of a file; `arg` is the reader's. Any result other than CLAVE_OK stops the
 * reading. */
struct snapshot_visitor {
    /* A timeout_ms of 0 means that this is not a session but the id to give to the next one. May be
     * NULL. */
    clave_err (*session)(void *arg, int64_t id, int32_t timeout_ms);
    /* Called before the first access list with their number. May be NULL, as may `list`. */
    clave_err (*lists)(void *arg, size_t n);
    clave_err (*list)(void *arg, int64_t key, struct jvec entries);
    clave_err (*node)(void *arg, const struct snapshot_node *n);
};

struct snapshot_reader {
    const struct snapshot_visitor *visitor;
    void *arg;
    const uint8_t *begin;
    struct jreader r;
    char *fault; /* cap bytes */
    size_t cap;
    /* After the reading: */
    int64_t newest; /* zxid of anything in the file */
    bool has_digest;
    int64_t digest_zxid;
    uint64_t digest;
};

/* Reads a whole file. ECORRUPT: `fault` says what is wrong and at which offset. */
clave_err clave__snapshot_read(struct snapshot_reader *in, const void *p, size_t n);

#endif
