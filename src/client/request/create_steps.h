/* create_steps.h - a create that may take more than one request (protected, with parents, or with a
 * certain outcome): what create_steps.c offers to the searches for its node and to create.c. */
#ifndef CLAVE_CLIENT_REQUEST_CREATE_STEPS_H
#define CLAVE_CLIENT_REQUEST_CREATE_STEPS_H

#include "client/request/submit.h"

enum creation_state {
    CREATION_CREATING,
    CREATION_SEARCHING,
    CREATION_CHECKING,
    CREATION_REMOVING,
    CREATION_PAUSED,
};

/* The missing ancestors of its path; create_parents.c makes them. */
struct creation_ancestors {
    unsigned attempts;
    clave_err err; /* why one could not be made */
    size_t len;    /* of its path on the server */
};

/* The search for the node of a lost answer by its name; see lost_create_by_name.c. */
struct creation_lost {
    bool named;      /* its UUID is the caller's: another process may create the same, whenever it
                        has the session. So what a search has proved holds for its connection */
    bool only_found; /* these as of client_named_create */
    const char *below;
    bool (*excludes)(void *arg, const char *path);
    void *excludes_arg;
    /* The names that begin as ours does and have not been checked yet, each with its NUL, and a NUL
     * after the last. */
    char *matches;
    const char *next_match;
    bool proven;        /* reads from now on show everything committed before the search */
    uint64_t proven_on; /* the connection on which that was so */
};

/* CLAVE_CREATE_CERTAIN: the node's czxid, if it exists, lies between `after` and `before`; during
 * the search also the numbers of the nodes still to be checked, and the best match so far. See
 * lost_create_by_czxid.c. */
struct creation_certain {
    int64_t after, before;
    int32_t *numbers;
    size_t nnumbers;
    bool matched;
    int32_t match;
};

struct creation {
    struct list link; /* in the client's list; those with CLAVE_CREATE_CERTAIN are in the order in
                         which they were sent */
    clave_async_client *client;
    enum creation_state state;
    unsigned busy; /* requests under way */
    unsigned cuts; /* in a row: the server closed the connection, some of it had left */
    bool rested;   /* it has paused since the newest of many cuts */
    unsigned flags;
    bool with_names;
    bool once;
    struct create_stake *stake;
    struct timer pause;
    void (*search)(struct creation *k); /* for the node of a lost answer; NULL: none */
    clave_result_cb *cb;
    void *arg;
    struct submit_create what; /* its texts are in the same block, after the struct */
    char *name;                /* of what.path, which may still change: see protected_name.c */
    int64_t sent_in;           /* the session of the newest create; 0: the next session. No node
                                  of an older create is left: a create is only sent again after a
                                  search has proved that it left no node */
    char *found;               /* the node's path, as answered or as found */
    size_t found_cap;
    /* The outcome so far. */
    clave_err err;
    int64_t zxid;
    clave_stat stat;

    struct creation_ancestors ancestors;
    struct creation_lost lost;
    struct creation_certain certain;
};

/* ---- create_steps.c -------------------------------------------------------------------------- */

void clave__creation_init(struct creation *k);
/* Submits the create, and the listing right after it. */
clave_err clave__creation_submit(struct creation *k);
/* The caller does not want the node any more: see create_stake. */
bool clave__creation_is_unwanted(const struct creation *k);
void clave__creation_enter(struct creation *k, enum creation_state to);
void clave__creation_create(struct creation *k);
void clave__creation_finish(struct creation *k, clave_err err, const clave_result *listing);
/* Waits a little; then the search begins anew. */
void clave__creation_pause(struct creation *k);
/* Before a search: commits a transaction of the present epoch that changes nothing. What is read
 * after it shows the create, if the create was or ever will be committed. A sync would not do: a
 * deposed leader answers it by itself, and its successor may still commit what it had proposed. */
clave_err clave__creation_prove(struct creation *k, clave_result_cb *cb);
/* Whether `err` is an answer that passed the leader, or is as good as one. */
bool clave__creation_proves(clave_err err);
/* A step of the search failed without an answer. */
void clave__creation_step_failed(struct creation *k, clave_err err);
/* The path of the node's parent, NUL-terminated in k->found, which is free until the node is
 * found. */
const char *clave__creation_parent(struct creation *k);

/* ---- create_parents.c ------------------------------------------------------------------------ */

/* Sends the creates of all ancestors, including those in the chroot; the caller sends the create
 * right behind them. `cb` gets each answer, for _parent_answered. ENOMEM: none is sent. */
clave_err clave__creation_send_parents(struct creation *k, clave_result_cb *cb);
void clave__creation_parent_answered(struct creation *k, const clave_result *res);
/* Whether the ancestors are worth another attempt: they existed and are gone again, or their
 * creates were lost with a connection while the create itself went out on the next. */
bool clave__creation_may_retry_parents(const struct creation *k);
/* Sets clave_async_client_errmsg: which ancestor could not be made. */
void clave__creation_tell_parent(struct creation *k);

/* ---- the searches: lost_create_by_name.c, lost_create_by_czxid.c ----------------------------- */

void clave__creation_search(struct creation *k);
void clave__creation_identify(struct creation *k);

#endif
