/* lock_record.h - a node beside a lock that outlives its holders, and that only the holder writes:
 * each write is one transaction with a check of the lock node. When it was made is its ctime, by
 * the servers' clock. One request at a time; a request whose answer was lost is repeated where that
 * does no harm. */
#ifndef CLAVE_RECIPE_LOCK_LOCK_RECORD_H
#define CLAVE_RECIPE_LOCK_LOCK_RECORD_H

#include "clave/async/mutex.h"
#include "recipe/contender/contender_config.h"

enum lock_record_act {
    LOCK_RECORD_READ,    /* the entry. ENONODE: there is none */
    LOCK_RECORD_CREATE,  /* ours, and parents that are missing; the outcome may be unknown, as of
                       REPLACE: a READ tells (clave__lock_record_is_own) */
    LOCK_RECORD_REPLACE, /* ours in the place of the one read: made anew. EBADVERSION, ENONODE */
    LOCK_RECORD_UPDATE,  /* ours, over the one that we have made */
    LOCK_RECORD_TOUCH,   /* the one read, as it is: its new mtime is the servers' present.
                       EBADVERSION,   ENONODE */
    LOCK_RECORD_REMOVE,  /* ours; that there is none is success */
};

/* What was read. The identity of one of our own is left out. */
struct lock_record_entry {
    char state[16]; /* "": of another's making */
    char id[CLAVE_UUID_TEXT + 1];
    int64_t token;
    int64_t took_ms;
    clave_identity identity;
    clave_stat stat;
};

/* The answer to an act. ELOST: the lock node is gone, or its session, and nothing was done. */
typedef void lock_record_done(void *owner, enum lock_record_act act, clave_err err,
                              const clave_stat *stat);

struct lock_record_spec {
    lock_record_done *done;
    void *owner;              /* for `done` */
    const clave_grant *grant; /* of the lock */
    const char *path;
    const clave_acl *acls; /* of the entry; NULL: open */
    size_t nacls;
    const clave_identity *identity; /* of the client that writes; may be NULL */
};

struct lock_record {
    clave_async_client *client;
    struct contender_config config; /* the ACLs; as data, what every entry of ours ends with */
    lock_record_done *done;
    void *owner; /* NULL: freed, and waits for the answer that is under way */
    bool busy;
    enum lock_record_act act;
    int tries;
    int rounds;                   /* reads after an answer that left it in doubt */
    clave_err doubt;              /* of an attempt whose answer was lost; CLAVE_OK: of none */
    char id[CLAVE_UUID_TEXT + 1]; /* of our entries */
    int64_t token;
    char *node, *path;
    char *text; /* of the entry being written, `len` bytes of `cap` */
    size_t len, cap;
    char *found; /* the entry read: `nfound` bytes as they are, then a copy taken apart */
    size_t nfound;
    struct lock_record_entry entry;
};

/* `what` is the recipe's word for the path in the client's fault. EPATH, ENOMEM. */
clave_err clave__lock_record_new(struct lock_record **out, clave_async_client *c,
                                 const struct lock_record_spec *spec, const char *what);
/* No answer after this. NULL is ignored. */
void clave__lock_record_free(struct lock_record *l);

/* What the next CREATE, REPLACE or UPDATE writes. */
void clave__lock_record_compose(struct lock_record *l, const char *state, int64_t took_ms);
/* None may be under way. As clave_async_multi. */
clave_err clave__lock_record_do(struct lock_record *l, enum lock_record_act act);
/* After an act with this error, reads what is there; `err` when that does not help: the error
 * leaves no doubt, or has come too often. */
clave_err clave__lock_record_look_again(struct lock_record *l, clave_err err);
/* The entry read is one that this lock_record wrote. */
bool clave__lock_record_is_own(const struct lock_record *l);

#endif
