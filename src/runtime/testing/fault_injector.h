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

/* The faults of a test server; they outlive its restarts. */
struct fault_injectors {
    struct clave_mem mem;
    struct list injectors; /* of struct fault_injector */
    struct list faults;    /* in the order in which they were injected */
    uint64_t seen[CLAVE_TEST_KINDS];
    uint64_t strikes;
    void (*on_strike)(struct fault_injectors *all);
};

/* The filter of one connection. */
struct fault_injector {
    struct filter filter;
    struct fault_injectors *of;
    struct list link;
    struct server_conn *engine;
    int64_t session;        /* 0: unknown so far */
    struct buf asked;       /* the kinds of the requests that have no reply yet, one byte each */
    struct list held;       /* messages that have not left yet */
    size_t left;            /* how many bytes of the first one have left */
    bool offered;           /* the first one is waiting for the socket, not for its time */
    unsigned char head[12]; /* of the request that is arriving */
    size_t nhead;
    size_t body;  /* how many of its bytes are still to come */
    bool greeted; /* the first request, whose header is different, has arrived */
    bool opaque;  /* a four-letter word instead of frames: everything passes */
    bool ending;  /* closes after what is held */
};

void clave__fault_injectors_init(struct fault_injectors *all);
void clave__fault_injectors_fini(struct fault_injectors *all);
/* ENOMEM. */
clave_err clave__fault_injectors_inject(struct fault_injectors *all, const clave_test_fault *f);
/* Lets everything that is held leave; the caller must then serve the connections. */
void clave__fault_injectors_heal(struct fault_injectors *all);
/* When the next delayed message may leave; INT64_MAX: there is none. */
int64_t clave__fault_injectors_deadline(const struct fault_injectors *all);

/* Adds a filter to a channel, which frees it, with the engine above. ENOMEM. */
clave_err clave__fault_injector_add(struct fault_injectors *all, struct channel *ch,
                                    struct server_conn *engine);

#endif
