/* txn.h - one transaction: a record of the log, and the changes it makes to the tree.
 *
 * Changes are made at once, one after another, each seeing those before it; until _end
 * they can all be undone. Requests and recovery make them with the same function. */
#ifndef CLAVE_SERVER_STORE_TXN_H
#define CLAVE_SERVER_STORE_TXN_H

#include "server/tree/tree.h"

struct txn_head {
    int64_t client;
    int32_t cxid;
    int64_t zxid;
    int64_t time;
    int32_t type;
};

enum change_state { CHANGE_NONE, CHANGE_DONE, CHANGE_UNDONE };

/* One change, and one record on the disk. The caller fills the first part. */
struct change {
    int32_t type;       /* as on the disk: OP_CREATE, ... OP_ERROR */
    int32_t err;        /* OP_ERROR */
    int32_t version;    /* create: the parent's stored cversion; -1: one more than it was;
                           setData, setACL: the resulting one */
    int64_t owner;      /* create */
    struct jbytes path; /* as on the disk: with its sequence number */
    struct jbytes data;
    struct acl *acl;     /* create, setACL: the change's own reference */
    struct node *parent; /* create */
    struct node *node;   /* the others; set by create */

    /* For undoing. */
    enum change_state state;
    struct node_stat before; /* create, delete: the parent's; else the node's own */
    uint8_t *other_data;     /* setData: the old data; once undone, the new */
    int32_t other_len;
    struct acl *other_acl; /* setACL: likewise */
};

struct txn {
    struct tree *tree;
    struct txn_head head;
    int32_t timeout_ms; /* createSession */
    int32_t err;        /* OP_ERROR: of the whole request */
    struct change *changes;
    size_t count;
    size_t cap;
    struct change one; /* room for the single change of most transactions */
};

void clave__txn_init(struct txn *t, struct tree *tree);
void clave__txn_fini(struct txn *t);

void clave__txn_begin(struct txn *t, const struct txn_head *head);
/* Makes room for so many changes in all. false: no memory. */
bool clave__txn_reserve(struct txn *t, size_t cap);
/* The next change, zeroed but for its type and path. Pointers to earlier changes are no longer
 * valid. NULL: no memory. */
struct change *clave__txn_add(struct txn *t, int32_t type, struct jbytes path);
/* Makes the newest change. ENOMEM: it is not made. */
clave_err clave__txn_make(struct txn *t);
/* Undoes the changes that were made. The list of changes stays, for the results. */
void clave__txn_undo(struct txn *t);
/* Ends the transaction and frees what is no longer needed. */
void clave__txn_end(struct txn *t);

#endif
