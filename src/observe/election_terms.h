/* election_terms.h - the elections of a tree over time: their terms, with who led and why it ended,
 * the gaps between them, and the value that the leader publishes. Who leads and stands now is in
 * the model of locks. An election without candidates is kept, for its terms, while there are fewer
 * than MOST_ELECTIONS; so are the last MOST_TERMS of each. Times are wall clock. */
#ifndef CLAVE_OBSERVE_ELECTION_TERMS_H
#define CLAVE_OBSERVE_ELECTION_TERMS_H

#include "base/json_writer.h"
#include "observe/lock_history.h"

struct election_term {
    struct list link;
    int64_t token;
    int64_t from, to; /* to -1: it has not ended */
    enum lock_cause cause;
    char who[];
};

struct election {
    struct ordered_node node; /* in election_model.elections, by path */
    struct list in_changed;
    struct list terms; /* the oldest first */
    size_t nterms;
    uint64_t terms_total;
    int64_t vacant_since; /* -1: somebody leads, or nobody ever did */
    int64_t vacant_ms;    /* so far, without the vacancy of now */
    int64_t told_leader;  /* that an event has told, by clave__election_leader_id */
    bool told_over;       /* the same */
    bool value_changed;   /* since then */
    bool over;            /* the node of its path is gone: nobody is to lead */
    char *value;          /* data of the value's node: a node's name, a newline, the value */
    size_t nvalue;
    bool cut; /* there is more of it */
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

/* Those who lead when the model of locks has loaded. */
void clave__election_begin(struct election_model *m, const struct lock_model *locks);
/* Something has happened to a lock: a candidate leads, or the leader's node is gone. _set_cause
 * says later why. Without memory a term is not recorded. */
void clave__election_note(struct election_model *m, enum lock_change what, int64_t at,
                          const struct lock_node *p);
void clave__election_set_cause(struct election_model *m, const char *path, int64_t token,
                               enum lock_cause cause);
/* Takes the terms of another model, all of which are older. A leader there who does not lead now
 * led until `at` at the latest. */
void clave__election_take_before(struct election_model *m, struct election_model *from, int64_t at);
/* Any node may be told. Those of values are beside the election, with "-value" at the end of the
 * name, and say which leader's they are. */
void clave__election_node(struct election_model *m, const char *path, const void *data, size_t len);
void clave__election_node_gone(struct election_model *m, const char *path);
/* The length of the path of the election whose value the node of this name may have; 0: none. */
size_t clave__election_value_of(const char *path);
/* The node of this path, if it is that of an election, is gone, or there again. */
void clave__election_set_over(struct election_model *m, const char *path, bool over);

/* An election that may have changed, once; NULL: no more. */
struct election *clave__election_take_changed(struct election_model *m);
/* Frees the election if nothing about it is worth keeping. `exists`: it has candidates. */
void clave__election_settle(struct election_model *m, struct election *e, bool exists);

/* NULL: none. */
struct election *clave__election_find(const struct election_model *m, const char *path);
struct election *clave__election_after(const struct election_model *m, const char *path);
/* It has or had a leader, or one of its candidates is left over; otherwise only a value is known of
 * it. */
bool clave__election_is_shown(const struct election *e, const struct lock_model *locks);
/* Which one it is: by its token, or, where that may not be read, by the number in its name. NULL,
 * nobody leads: 0. */
int64_t clave__election_leader_id(const struct lock_node *leader);
int64_t clave__election_vacant_ms(const struct election *e, int64_t now);

struct election_view {
    const struct lock_model *locks;
    size_t most_candidates;
    void (*members)(struct json *j, const void *arg); /* writes further ones; NULL: none */
    const void *arg;
};
void clave__election_json(struct json *j, const char *key, const struct election *e,
                          const struct election_view *v);

/* As clave__lock_etag, of an election. `q`: its candidates; NULL: none. */
uint64_t clave__election_digest(const struct election *e, const struct lock_queue *q);

#endif
