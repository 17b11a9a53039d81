/* znode_history.h - is what clients saw of single znodes linearizable, and are the zxids in order?
 *
 * A history is the calls that clients made of a few znodes, each with its answer and the times of
 * both. It is linearizable if each call took effect at one moment between call and answer, such
 * that one znode behind all of them explains every answer. A write of unknown outcome took effect
 * at one moment after its call, or never. That is found by a search (znode_history.c), by values
 * and versions only. What the zxids say is a second witness, held against real time, the order of
 * each session and each other (znode_order.c).
 *
 * Knows neither clave nor the world: test/unit/sim_znode_history_test.c. */
#ifndef CLAVE_SIM_ZNODE_HISTORY_H
#define CLAVE_SIM_ZNODE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum znode_op { ZNODE_CREATE, ZNODE_SET, ZNODE_DELETE, ZNODE_GET, ZNODE_EXISTS };

enum znode_answer {
    ZNODE_DONE,
    ZNODE_NO_NODE,
    ZNODE_NODE_EXISTS,
    ZNODE_BAD_VERSION,
    ZNODE_UNKNOWN,  /* of a write: it may be done at any time after the call, or never */
    ZNODE_NOT_DONE, /* for certain */
};

struct znode_call {
    unsigned znode;
    enum znode_op op;
    enum znode_answer answer;
    int64_t value;    /* written or read: each write has one of its own, from 1 */
    int32_t expected; /* the version that set and delete ask for; -1: any */
    int32_t version;  /* of create, set, get and exists that are done: as the stat shows it */
    int64_t called;
    int64_t answered; /* INT64_MAX: it never was */
    /* For the order of zxids. */
    int64_t session; /* 0: of none that is known */
    int64_t zxid;    /* of a write that is done: the reply's */
    int64_t czxid;   /* of what has a version: the stat's */
    int64_t mzxid;
};

struct znode_history {
    struct znode_call *calls; /* of one session in the order in which it made them */
    size_t n;
    size_t cap;
};

/* The index of what was added: an answer may be filled in later. */
size_t znode_history_add(struct znode_history *h, const struct znode_call *call);
void znode_history_fini(struct znode_history *h);

enum znode_verdict {
    ZNODE_FINE,
    ZNODE_BROKEN,
    ZNODE_UNDECIDED, /* after so many steps of the search */
};

/* `at`: of a history that is broken, the call in front of which the longest attempt ended. */
enum znode_verdict znode_history_check(const struct znode_history *h, unsigned znode,
                                       size_t max_steps, size_t *at);

/* What is wrong with the zxids; NULL: nothing. `at`: the call that shows it. */
const char *znode_order_check(const struct znode_history *h, size_t *at);

#endif
