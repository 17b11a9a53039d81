/* checker.h - the invariants, on true time. */
#ifndef CLAVE_SIM_CHECKER_H
#define CLAVE_SIM_CHECKER_H

#include "server_host.h"
#include "workload.h"

enum { CHECKED_HOSTS = 8, TAKEN_NODES = 64 };

struct lock_record {
    int64_t last_token;    /* of the newest grant */
    uint64_t acknowledged; /* guarded writes */
    uint64_t unknown;
    /* The token that wrote version i + 1 of the counter, as far as somebody was told. */
    int64_t *writers;
    size_t nwriters;
};

struct taken_node {
    char path[PATH_SIZE];
    int64_t at;
};

struct checker {
    struct world *w;
    struct server_host *server;
    struct workload *loads[CHECKED_HOSTS];
    size_t nloads;
    struct lock_record locks[LOCKS];
    struct taken_node taken[TAKEN_NODES]; /* the newest, in a ring */
    size_t ntaken;
    int64_t grace_us; /* after so long its holder must have heard of it */
    uint64_t looks;
};

void checker_init(struct checker *c, struct world *w, struct server_host *server);
void checker_fini(struct checker *c);

/* After every step: no two valid holds, each with its node, LOST heard in time. */
void checker_look(struct checker *c);

void checker_asked(struct checker *c, struct actor *a);
void checker_queued(struct checker *c, struct actor *a);
void checker_granted(struct checker *c, struct actor *a, const clave_grant *g);
void checker_written(struct checker *c, const struct actor *a, int32_t version);
void checker_unknown(struct checker *c, const struct actor *a);

/* Somebody deletes this node while it is the first of its queue: who holds by it, or is about
 * to learn that it does, is told a while later, and no client can help that. */
void checker_taken(struct checker *c, const char *node);
/* Somebody has deleted nodes of this lock. */
void checker_disturbed(struct checker *c, unsigned lock);

/* At the end: the counters. */
void checker_count(struct checker *c);

#endif
