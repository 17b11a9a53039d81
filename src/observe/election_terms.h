/* election_terms.h - the elections of a tree over time: their terms (who led, and why that ended),
 * the gaps in between, and the value that the leader publishes. Who leads and who stands at the
 * moment is in the model of locks.
 *
 * An election without candidates is kept for the sake of its terms, as long as there are fewer than
 * MOST_ELECTIONS. Of each election the last MOST_TERMS are kept. Times are wall clock. */
#ifndef CLAVE_OBSERVE_ELECTION_TERMS_H
#define CLAVE_OBSERVE_ELECTION_TERMS_H

#include "base/json_writer.h"
#include "observe/lock_history.h"

struct election_term {
    struct list link;
    int64_t token;
    int64_t from, to; /* -1: from: the term began before anybody looked; to: it lasts */
    enum lock_cause cause;
    char who[];
};

struct election {
    struct ordered_node node; /* in election_model.elections, by path */
    struct list in_changed;
    struct list terms; /* oldest first */
    size_t nterms;
    uint64_t terms_total;
    int64_t vacant_since; /* -1: somebody leads, or nobody ever did */
    int64_t vacant_ms;    /* the sum of all vacancies so far, without the present one */
    int64_t told_leader;  /* the leader according to the last event, by clave__election_leader_id */
    bool told_over;       /* `over` according to the last event */
    bool value_changed;   /* since the last event */
    /* Used by web/observe: the leader, identified like told_leader, and since when the engine has
     * seen it lead, by the engine's own clock and not by wall clock. */
    int64_t seen_leader, seen_from;
    bool over;   /* the node of its path is gone: there is nothing left to lead */
    char *value; /* data of the value's node: the name of the leader's node, a newline, the value */
    size_t nvalue;
    bool cut; /* the value is longer than what is kept */
    char path[];
};

struct election_model {
    const struct clave_mem *mem; /* borrowed */
    struct ordered elections;
    struct list changed; /* elections whose leader or value may have changed */
};

void clave__election_model_init(struct election_model *m, const struct clave_mem *mem,
                                uint64_t seed);
void clave__election_model_fini(struct election_model *m);

/* Notes who leads when the model of locks has been loaded, for the first time or anew. A leader
 * that led before still does; one that does not lead now led at most until `at`. */
void clave__election_begin(struct election_model *m, const struct lock_model *locks, int64_t at);
/* All nodes will be passed in again before _begin. The terms are kept. */
void clave__election_clear(struct election_model *m);
/* Notes a change of a lock: a candidate leads, or the leader's node is gone; _set_cause tells the
 * reason later. If there is no memory, the term is not recorded. */
void clave__election_note(struct election_model *m, enum lock_change what, int64_t at,
                          const struct lock_node *p);
void clave__election_set_cause(struct election_model *m, const char *path, int64_t token,
                               enum lock_cause cause);
/* Takes over the terms of another model, all of which are older. A leader there that does not lead
 * now led at most until `at`. */
void clave__election_take_before(struct election_model *m, struct election_model *from, int64_t at);
/* Any node may be passed in. The nodes of values are named after their election with "-value"
 * appended, and say which leader's value they have. */
void clave__election_node(struct election_model *m, const char *path, const void *data, size_t len);
void clave__election_node_gone(struct election_model *m, const char *path);
/* The length of the path of the election whose value a node of this name may have; 0: no election
 * has such a name. */
size_t clave__election_value_of(const char *path);
/* The node at this path is gone (`over`), or is back; ignored unless it is the node of an
 * election. */
void clave__election_set_over(struct election_model *m, const char *path, bool over);

/* Returns each election that may have changed, once; NULL: there are no more. */
struct election *clave__election_take_changed(struct election_model *m);
/* Frees the election if nothing about it is worth keeping. `exists`: it has candidates. */
void clave__election_settle(struct election_model *m, struct election *e, bool exists);

/* NULL: none. */
struct election *clave__election_find(const struct election_model *m, const char *path);
struct election *clave__election_after(const struct election_model *m, const char *path);
/* True if the election has or had a leader, or has a candidate that is left over; otherwise only a
 * value is known. */
bool clave__election_is_shown(const struct election *e, const struct lock_model *locks);
/* Identifies a leader: by its token or, where that may not be read, by the number in its name. 0 if
 * nobody leads (NULL). */
int64_t clave__election_leader_id(const struct lock_node *leader);
int64_t clave__election_vacant_ms(const struct election *e, int64_t now);

struct election_view {
    const struct lock_model *locks;
    size_t most_candidates;
    void (*members)(struct json *j, const void *arg); /* writes additional members; may be NULL */
    const void *arg;
};
void clave__election_json(struct json *j, const char *key, const struct election *e,
                          const struct election_view *v);

/* Like clave__lock_etag, but for an election. `q` has its candidates; NULL: there are none. */
uint64_t clave__election_digest(const struct election *e, const struct lock_queue *q);

#endif
