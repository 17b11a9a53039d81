/* creation.h - a create of more than one request: what create.c and identify.c share. */
#ifndef CLAVE_CLIENT_CREATION_H
#define CLAVE_CLIENT_CREATION_H

#include "client/submit.h"

enum creation_state {
    CREATION_CREATING,
    CREATION_SEARCHING,
    CREATION_CHECKING,
    CREATION_REMOVING,
    CREATION_PAUSED,
};

struct creation {
    struct list link; /* in the client's; of those whose outcome is to be certain, in the order
                         in which they were sent */
    clave_async_client *client;
    enum creation_state state;
    unsigned busy; /* requests under way */
    unsigned parent_attempts;
    clave_err parent_err; /* why an ancestor could not be made */
    unsigned flags;
    bool with_names;
    struct timer pause;
    clave_result_cb *cb;
    void *arg;
    struct submit_create what; /* in the block behind it */
    char *name;                /* of what.path, which may still change: see protect.c */
    int64_t sent_in;           /* the session of the newest create, 0: the next one. That of an
                                  older one has gone: a create is only sent again when a search
                                  has proved that no node of it stands */
    char *found;               /* the node's path: as answered, or as found */
    size_t found_cap;
    /* The outcome so far. */
    clave_err err;
    int64_t zxid;
    clave_stat stat;
    /* While it is searched for: the names that begin as ours does and were not looked at yet, each
     * with its NUL, and a NUL behind the last. */
    char *matches;
    const char *next_match;
    bool proven; /* what is read from now on shows all that was committed before the search */
    /* CLAVE_CREATE_CERTAIN: between these lies the node's czxid, if it stands; and while it is
     * looked for: the numbers of the nodes that are still to be looked at, and the best match. */
    int64_t after, before;
    int32_t *numbers;
    size_t nnumbers;
    bool matched;
    int32_t match;
};

/* ---- create.c --------------------------------------------------------------------------- */

void clave__creation_enter(struct creation *k, enum creation_state to);
void clave__creation_create(struct creation *k);
void clave__creation_finish(struct creation *k, clave_err err, const clave_result *listing);
/* And then the search begins anew. */
void clave__creation_pause(struct creation *k);
/* In front of a search: a transaction of the present epoch, which changes nothing. What is read
 * behind it shows the create, if it was or ever will be committed. A sync would not do: a leader
 * that is none any more answers it by itself, and what it had proposed may be committed all the
 * same, by its successor. */
clave_err clave__creation_prove(struct creation *k, clave_result_cb *cb);
/* Is its answer one that passed the leader, or as good as one? */
bool clave__creation_proves(clave_err err);
/* What a step of the search came to, when not to an answer. */
void clave__creation_step_failed(struct creation *k, clave_err err);
/* The parent of the node, NUL-terminated in k->found, which is free until there is one. */
const char *clave__creation_parent(struct creation *k);

/* ---- identify.c ------------------------------------------------------------------------- */

/* It was sent, for the first time or again. */
void clave__creation_sent(struct creation *k);
/* Its answer was lost. */
void clave__creation_identify(struct creation *k);
/* Its node is known: of k->stat. */
void clave__creation_identified(struct creation *k);

#endif
