/* lock_replay.h - reconstructs what happened to the locks of a tree before the gate began to watch,
 * from the tree's transactions in order. A driver with access to a server's logs makes one, on any
 * thread, feeds it the tree as it was and then each transaction, and hands the result to
 * clave__web_take_replay.
 *
 * A log knows more than the tree shows: which transaction granted or ended a place, when it
 * happened by the server's clock, and why. */
#ifndef CLAVE_OBSERVE_LOCK_REPLAY_H
#define CLAVE_OBSERVE_LOCK_REPLAY_H

#include "observe/election_terms.h"
#include "observe/lock_history.h"
#include "observe/lock_model.h"

struct lock_replay_txn {
    int64_t zxid;
    int64_t time;    /* wall clock */
    int64_t session; /* the session that made it */
};

struct lock_replay {
    struct clave_mem mem;
    struct lock_model model;
    struct history history;
    struct election_model elections;
    struct lock_replay_txn txn; /* the transaction being replayed */
    enum lock_cause ends;       /* why places end in this transaction: because of their session;
                                   LOCK_UNKNOWN: by a deletion */
    int64_t slot; /* the token of the last slot that went, and its entry in the history: */
    uint64_t slot_entry;
};

/* ENOMEM. */
clave_err clave__lock_replay_new(struct lock_replay **out, const struct clave_mem *mem,
                                 uint64_t seed);
/* NULL is ignored. */
void clave__lock_replay_free(struct lock_replay *r);

/* Adds a node of the tree as it was before the first transaction, in any order; call _loaded after
 * the last one. */
void clave__lock_replay_node(struct lock_replay *r, const char *path, const clave_stat *stat,
                             const void *data, size_t len);
void clave__lock_replay_loaded(struct lock_replay *r);

/* Begins a transaction, to which all following calls belong. */
void clave__lock_replay_txn(struct lock_replay *r, const struct lock_replay_txn *txn);
void clave__lock_replay_created(struct lock_replay *r, const char *path, bool ephemeral,
                                const void *data, size_t len);
void clave__lock_replay_written(struct lock_replay *r, const char *path, int32_t version,
                                const void *data, size_t len);
void clave__lock_replay_deleted(struct lock_replay *r, const char *path);
/* The session has ended, and everything it owned is gone. `expired`: the server ended it. */
void clave__lock_replay_closed(struct lock_replay *r, bool expired);

/* Corrects the dates of the holders that the model found when it was loaded, since the log says
 * when they were granted. */
void clave__lock_replay_date(const struct lock_replay *r, struct lock_model *m);

/* False if there was no room for all places, so the result may be wrong. */
bool clave__lock_replay_is_complete(const struct lock_replay *r);

#endif
