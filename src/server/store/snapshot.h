/* snapshot.h - snapshots in Apache's format. In a file are, in this order: header, sessions, the
 * map of access lists, nodes, and up to three parts that each end in a seal (a checksum of
 * everything before).
 *
 * One is saved in pieces, a little in each turn of the loop, while clients go on writing. The file
 * shows the tree as it was when the snapshot began: a session, an access list or a node that is
 * about to change or to go is written first, unless it was already.
 *
 *   IDLE ──▶ SESSIONS ──▶ LISTS ──▶ NODES ──▶ END ──▶ IDLE
 *                                              (waits until the log is durable up to the zxid)
 *
 * A reader is shown what is in a file, in its order: the loader makes a tree of it; the history of
 * locks takes from it what it needs, without a tree. That a file is whole is known at its end only,
 * so what a visitor was shown before may be wrong. */
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

/* ---- reading (snapshot_load.c) --------------------------------------------------------------- */

struct snapshot_node {
    struct jbytes path; /* "" is the root */
    struct jbytes data;
    int64_t acl_key;
    struct node_stat stat; /* without num_children, which no file has */
};

/* Any other result than CLAVE_OK ends the reading. `arg` is that of the reader. */
struct snapshot_visitor {
    /* timeout_ms 0: no session, but the id that the next one gets. NULL: none is wanted. */
    clave_err (*session)(void *arg, int64_t id, int32_t timeout_ms);
    /* Before the first list: so many follow. NULL, and list too: none is wanted. */
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

/* Reads all of a file. ECORRUPT: `fault` says what is wrong and at which offset. */
clave_err clave__snapshot_read(struct snapshot_reader *in, const void *p, size_t n);

#endif
