/* txn.h - a transaction: one record of the log, and the changes that it makes to the tree.
 *
 * Changes are made at once, one after another, and each sees the ones before it. Until _end, all of
 * them can be undone. Requests and recovery make changes with the same functions. */
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

/* A change, which is also one record on the disk. The caller fills in the first part. */
struct change {
    int32_t type;    /* as on the disk: OP_CREATE, ... OP_ERROR */
    int32_t err;     /* for OP_ERROR */
    int32_t version; /* for a create: the parent's stored cversion, -1 meaning one more than it has;
                        for setData and setACL: the resulting version */
    int64_t owner;   /* for a create */
    struct jbytes path; /* as on the disk, with its sequence number */
    struct jbytes data;
    struct acl *acl;     /* for create and setACL: a reference that the change owns */
    struct node *parent; /* for a create */
    struct node *node;   /* for the others; a create sets it */

    /* The rest is for undoing. */
    enum change_state state;
    struct node_stat before; /* for create and delete: the parent's; otherwise the node's own */
    uint8_t *other_data;     /* for setData: the old data or, once undone, the new data */
    int32_t other_len;
    struct acl *other_acl; /* for setACL: likewise the old or new list */
};

struct txn {
    struct tree *tree;
    struct txn_head head;
    int32_t timeout_ms; /* for createSession */
    int32_t err;        /* for OP_ERROR: of the request as a whole */
    struct change *changes;
    size_t count;
    size_t cap;
    struct change one; /* the only change of most transactions */
};

void clave__txn_init(struct txn *t, struct tree *tree);
void clave__txn_fini(struct txn *t);

void clave__txn_begin(struct txn *t, const struct txn_head *head);
/* Makes room for a total of `cap` changes. false: no memory. */
bool clave__txn_reserve(struct txn *t, size_t cap);
/* Appends a change, zeroed except for its type and path. Invalidates pointers to earlier changes.
 * NULL: no memory. */
struct change *clave__txn_add(struct txn *t, int32_t type, struct jbytes path);
/* Makes the newest change. ENOMEM: it was not made. */
clave_err clave__txn_make(struct txn *t);
/* Undoes the changes that were made. Their list stays, for the results of the request. */
void clave__txn_undo(struct txn *t);
/* Ends the transaction and frees what is no longer needed. */
void clave__txn_end(struct txn *t);

#endif
