/* lock_replay.h - what happened to the locks of a tree before the gate looked, from the tree's
 * transactions in their order. A driver that has the logs of a server makes one, on any thread:
 * first the tree as it was, then each transaction. The result is given to clave__web_take_replay.
 *
 * A log knows more than the tree shows: with which transaction a place was granted or ended, at
 * which time of the server, and why. */
#ifndef CLAVE_OBSERVE_LOCK_REPLAY_H
#define CLAVE_OBSERVE_LOCK_REPLAY_H

#include "observe/election_terms.h"
#include "observe/lock_history.h"
#include "observe/lock_model.h"

struct lock_replay_txn {
    int64_t zxid;
    int64_t time;    /* wall clock */
    int64_t session; /* that did it */
};

struct lock_replay {
    struct clave_mem mem;
    struct lock_model model;
    struct history history;
    struct election_model elections;
    struct lock_replay_txn txn; /* the one that is told */
    enum lock_cause ends;       /* by it: the session; LOCK_UNKNOWN: it is a deletion */
    int64_t slot;               /* the token of the last slot that is gone, and its entry: */
    uint64_t slot_entry;
};

/* ENOMEM. */
clave_err clave__lock_replay_new(struct lock_replay **out, const struct clave_mem *mem,
                                 uint64_t seed);
/* NULL is ignored. */
void clave__lock_replay_free(struct lock_replay *r);

/* The tree before the first transaction: any node may be told, in any order; then _loaded. */
void clave__lock_replay_node(struct lock_replay *r, const char *path, const clave_stat *stat,
                             const void *data, size_t len);
void clave__lock_replay_loaded(struct lock_replay *r);

/* What follows is of this transaction. */
void clave__lock_replay_txn(struct lock_replay *r, const struct lock_replay_txn *txn);
void clave__lock_replay_created(struct lock_replay *r, const char *path, bool ephemeral,
                                const void *data, size_t len);
void clave__lock_replay_written(struct lock_replay *r, const char *path, int32_t version,
                                const void *data, size_t len);
void clave__lock_replay_deleted(struct lock_replay *r, const char *path);
/* The session has ended, and everything of it with it. `expired`: by the server. */
void clave__lock_replay_closed(struct lock_replay *r, bool expired);

/* Dates the holders that were there at the model's first load: the log says when they were granted.
 */
void clave__lock_replay_date(const struct lock_replay *r, struct lock_model *m);

/* False if there was no room for all places, so that the result may be wrong. */
bool clave__lock_replay_is_complete(const struct lock_replay *r);

#endif
