/* record_node.h - a node next to a lock that outlives the lock's holders and that only the holder
 * writes: each write is one transaction that also checks the lock's node. The node's ctime, by the
 * servers' clock, is when it was created. There is one request at a time; a request whose answer
 * was lost is repeated where that does no harm. */
#ifndef CLAVE_RECIPE_LOCK_RECORD_NODE_H
#define CLAVE_RECIPE_LOCK_RECORD_NODE_H

#include "clave/async/mutex.h"
#include "recipe/contender/contender_config.h"

enum record_node_act {
    LOCK_RECORD_READ,   /* reads the entry. ENONODE: there is none */
    LOCK_RECORD_CREATE, /* creates our entry, and missing parents. Like that of REPLACE, the outcome
                           may be unknown; then a READ tells (clave__record_node_is_own) */
    LOCK_RECORD_REPLACE, /* deletes the entry that was read and creates ours. EBADVERSION, ENONODE
                          */
    LOCK_RECORD_UPDATE,  /* overwrites the entry that we have created */
    LOCK_RECORD_TOUCH,   /* writes the entry that was read once more, unchanged, so that its mtime
                            becomes the servers' time. EBADVERSION, ENONODE */
    LOCK_RECORD_REMOVE,  /* deletes our entry; success if it is missing */
};

/* An entry as it was read. The identity is left out if the entry is our own. */
struct record_node_entry {
    char state[16]; /* "": another program wrote it */
    char id[CLAVE_UUID_TEXT + 1];
    int64_t token;
    int64_t took_ms;
    clave_identity identity;
    clave_stat stat;
};

/* The answer to a request. ELOST: the lock's node or its session is gone, and nothing was done. */
typedef void record_node_done(void *owner, enum record_node_act act, clave_err err,
                              const clave_stat *stat);

struct record_node_spec {
    record_node_done *done;
    void *owner;                    /* passed to `done` */
    const clave_async_grant *grant; /* of the lock */
    const char *path;
    const clave_acl *acls; /* for the entry; NULL: open */
    size_t nacls;
    const clave_identity *identity; /* of the client that writes; may be NULL */
};

struct record_node {
    clave_async_client *client;
    /* For the ACLs, and for the data that ends each of our entries. */
    struct contender_config config;
    record_node_done *done;
    void *owner; /* NULL: freed, and waiting for the pending answer */
    bool busy;
    enum record_node_act act;
    int tries;
    int rounds;      /* reads after an answer that left it in doubt */
    clave_err doubt; /* the error of an attempt whose answer was lost; CLAVE_OK: there was none */
    char id[CLAVE_UUID_TEXT + 1]; /* of our entries */
    int64_t token;
    char *node, *path;
    char *text; /* the entry being written: `len` bytes of `cap` */
    size_t len, cap;
    char *found; /* the entry that was read: `nfound` bytes unchanged, then a copy that is parsed in
                    place */
    size_t nfound;
    struct record_node_entry entry;
};

/* `what` is what error messages call the path. EPATH, ENOMEM. */
clave_err clave__record_node_new(struct record_node **out, clave_async_client *c,
                                 const struct record_node_spec *spec, const char *what);
/* No answer comes after this. NULL is ignored. */
void clave__record_node_free(struct record_node *l);

/* Composes what the next CREATE, REPLACE or UPDATE will write. */
void clave__record_node_compose(struct record_node *l, const char *state, int64_t took_ms);
/* The same for an entry in the state "held" on behalf of another holder. ENOMEM. */
clave_err clave__record_node_compose_for(struct record_node *l, const char *id, int64_t token,
                                         const clave_identity *who);
/* Starts a request. No other may be under way. Errors as clave_async_multi. */
clave_err clave__record_node_do(struct record_node *l, enum record_node_act act);
/* Call it after a request that ended with `err`: reads what is there, if that can help. Otherwise
 * returns `err`: it leaves no doubt, or has occurred too often. */
clave_err clave__record_node_look_again(struct record_node *l, clave_err err);
/* True if the entry that was read was written by this record_node. */
bool clave__record_node_is_own(const struct record_node *l);

#endif
