/* fault_injector.h - a filter of the channels of a test server: it recognises every message by its
 * kind, counts it, and applies the injected faults. Belongs to the server's thread.
 *
 * Map of src/runtime/testing: testserver is include/clave/testserver.h, a server on its own thread
 * for tests of programs that use clave; fault_injector drops, delays and cuts its messages. */
#ifndef CLAVE_RUNTIME_TESTING_FAULT_INJECTOR_H
#define CLAVE_RUNTIME_TESTING_FAULT_INJECTOR_H

#include "base/buf.h"
#include "base/list.h"
#include "clave/testserver.h"
#include "runtime/channel.h"
#include "server/server.h"

/* Of one test server; outlives the server's restarts. */
struct fault_injectors {
    struct clave_mem mem;
    struct list injectors; /* of struct fault_injector */
    struct list faults;    /* in the order of their injection */
    uint64_t seen[CLAVE_TEST_KINDS];
    uint64_t strikes;
    void (*on_strike)(struct fault_injectors *all);
};

/* Of one connection. */
struct fault_injector {
    struct filter filter;
    struct fault_injectors *of;
    struct list link;
    struct server_conn *engine;
    int64_t session;        /* 0: not known yet */
    struct buf asked;       /* kinds of the requests without a reply, one byte each */
    struct list held;       /* messages that have not left yet */
    size_t left;            /* bytes of the first one that have left */
    bool offered;           /* the first one waits for the socket, not for its time */
    unsigned char head[12]; /* of the request that is coming in */
    size_t nhead;
    size_t body;  /* bytes of it still to come */
    bool greeted; /* the first request has come: its header differs */
    bool opaque;  /* not frames but a four-letter word: everything passes */
    bool ending;  /* closed after what is held */
};

void clave__fault_injectors_init(struct fault_injectors *all);
void clave__fault_injectors_fini(struct fault_injectors *all);
/* ENOMEM. */
clave_err clave__fault_injectors_inject(struct fault_injectors *all, const clave_test_fault *f);
/* What is held may leave now; the caller then serves the connections. */
void clave__fault_injectors_heal(struct fault_injectors *all);
/* When the next delayed message may leave; INT64_MAX: none. */
int64_t clave__fault_injectors_deadline(const struct fault_injectors *all);

/* Adds one to a channel, which frees it, with the engine above it. ENOMEM. */
clave_err clave__fault_injector_add(struct fault_injectors *all, struct channel *ch,
                                    struct server_conn *engine);

#endif
