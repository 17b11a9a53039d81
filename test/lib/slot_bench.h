/* slot_bench.h - one process at the slots of /s in a memnet, and what its callbacks reported. */
#ifndef CLAVE_TEST_SLOT_BENCH_H
#define CLAVE_TEST_SLOT_BENCH_H

#include "clave/async/slots.h"
#include "lib/mutex_owner.h"

struct slot_bench {
    struct memnet *p;
    size_t client;
    clave_async_slots *s;
    clave_async_grant *grant; /* of the newest slot; NULL: none */
    /* Callbacks: how often, and the last. */
    unsigned answers, queued, given, set;
    size_t ahead;
    clave_err err, set_err;
    bool taken, gave;
    int64_t token, since;
    char by[32];
    /* A list. */
    int64_t limit;
    size_t n;
    char ids[8][32];
    int64_t tokens[8];
    char broken[64]; /* "id by reason" */
};

void slot_bench_open(struct slot_bench *u, struct memnet *p, size_t client, uint32_t limit);
void slot_bench_close(struct slot_bench *u);

/* `within_ms` as of owner_acquire; _begin_take lets nothing happen. */
clave_err slot_bench_begin_take(struct slot_bench *u, uint64_t request, const char *id,
                                int64_t within_ms);
void slot_bench_take(struct slot_bench *u, const char *id, int64_t within_ms);
void slot_bench_give(struct slot_bench *u, const char *id, int64_t token);
void slot_bench_break(struct slot_bench *u, const char *id, const char *reason);
void slot_bench_set_limit(struct slot_bench *u, uint32_t limit);
void slot_bench_list(struct slot_bench *u);
/* A write of /data under the newest grant. */
clave_err slot_bench_write(struct slot_bench *u);

#endif
