/* call.h - a client as its threads share it, and one blocking call on it.
 *
 * Map of src/runtime/blocking, the API for threads (include/clave):
 *   loop            the loop's thread; how other threads get work done on it
 *   client          clave_client: opening, state, closing
 *   call, reply     one blocking call and its answer; arena: its texts; request: create, get, ...
 *   thread_grant    clave_grant: what is held, and writes under it; every holder gives it
 *   mutex           clave_mutex (rwlock too); thread_hold: how threads release it
 *   semaphore, slots, multilock, latch, once, cache    the blocking form of each recipe
 *   selector        a leader selector: runs the user's function while leading
 *   participants, deadlock    queries, each copied into one block
 *   metrics         clave/metrics.h; loops: all loops of the process */
#ifndef CLAVE_RUNTIME_BLOCKING_CALL_H
#define CLAVE_RUNTIME_BLOCKING_CALL_H

#include "clave/uv.h"
#include "client/errmsg.h"
#include "runtime/blocking/loop.h"

/* A child of the client: a recipe made on it for threads (a mutex, a latch, a once ...). Lives on
 * the loop's thread. */
struct observer {
    struct list link; /* in clave_client.children */
    /* Runs at the end of every pass of the loop. May be NULL. */
    void (*settled)(struct observer *o);
    /* Runs once, when the client is closed before the child is freed; the child is no longer in the
     * list. The asynchronous client is CLOSED and about to be freed: the child frees what it has of
     * it. No user code runs in here. */
    void (*ended)(struct observer *o);
};

/* Its memory stays until the last of its children (struct observer) is freed, in whatever order the
 * user closes and frees. What the children have of the engine ends with the client:
 *
 *     open ──▶ ended                    ──▶ stopped
 *              on the loop's thread         the asynchronous client is gone; nothing
 *              children are notified        touches the children any more */
struct clave_client {
    clave_loop *loop;
    unsigned refs; /* atomic: references of the user, the children, and visits under way */
    bool own_loop;
    clave_async_client *async; /* the loop's thread only, as uv */
    clave_uv *uv;
    clave_state_cb *state_cb; /* the user's */
    void *state_arg;
    struct list children; /* observers. The loop's thread only */
    struct list in_loop;  /* likewise: from its start until it has stopped */
    struct task flush;    /* likewise: sends what this pass requested */
    /* Under the loop's mutex. */
    clave_state state;
    clave_err why; /* of the state */
    bool was_connected;
    clave_err refusal; /* of every host: see clave__uv_refusal */
    int64_t id;
    bool ended; /* set by the loop's thread, which may read it without the mutex */
    bool stopped;
    unsigned inside;     /* other threads inside calls: the client stays until they have left */
    struct list waiters; /* for the state */
};

/* A thread that waits for the client's state. */
struct waiter {
    struct list link;
    struct cell cell;
};
/* With the mutex held, which is released while waiting; false: the deadline has passed. */
bool clave__blocking_await_locked(clave_client *c, int64_t deadline);

/* Any thread. */

/* On the loop's thread: adds a new child, which keeps a reference until its _free. */
void clave__session_adopt(clave_client *c, struct observer *o);
/* With these a child keeps the client's memory, from its _new to its _free. Any thread. */
void clave__session_ref(clave_client *c);
void clave__session_unref(clave_client *c);

/* Any thread: every call on a child returns ECLOSED. */
bool clave__session_has_ended(clave_client *c);

/* Called around every call that waits on the client, with the mutex held. */
void clave__blocking_enter_locked(clave_client *c);
void clave__blocking_leave_locked(clave_client *c);

/* As clave_client_run; on the loop's thread itself, just the call. Does nothing if that thread does
 * not exist in this process, or the client has ended: then nothing else touches its children any
 * more when this returns, except on the loop's thread. */
void clave__blocking_do(clave_client *c, clave_loop_fn *fn, void *arg);

/* Its latest fault, of which clave_client_errmsg is the text. */
void clave__blocking_fault(clave_client *c, struct client_fault *out);

/* As clave__options_take for the struct of that name; clave_client_errmsg tells why options are
 * refused. */
clave_err clave__session_take_options(clave_client *c, void *dst, size_t dst_size, const void *src,
                                      const char *name);

/* On the loop's thread: what its tasks have requested of the client is sent in one write when all
 * of them have run. */
void clave__blocking_flush_later(clave_client *c);

/* A request of another thread. It lives on the heap: one that is given up after its timeout
 * (`abandoned`) is freed by its late answer.
 *
 *   QUEUED ──▶ BEGINNING ──▶ PENDING ──▶ DONE
 *                  └───────────────────────▲    (refused)
 *
 * While BEGINNING, the loop's thread reads `args`, so the caller does not return then. */
enum call_state { CALL_QUEUED, CALL_BEGINNING, CALL_PENDING, CALL_DONE };

struct call {
    struct task task;
    clave_client *client;
    enum call_state state; /* under the mutex, as is everything below */
    bool abandoned;
    bool out_of_time; /* only waits for the end of BEGINNING */
    clave_err err;
    struct cell cell;
    clave_reply *reply; /* allocated beforehand, so that an answer to a write cannot fail */
    size_t path_cap;
    /* CLAVE_OK: an answer will come, unless the function has set `answered`. */
    clave_err (*begin)(struct call *c, void *args);
    void *args; /* on the caller's stack */
    bool answered;
};

struct call_spec {
    clave_err (*begin)(struct call *c, void *args);
    void *args;
    const char *path; /* create: the requested path. Otherwise NULL */
    size_t nops;
};

/* Submits the call and waits. `out` may be NULL. */
clave_err clave__call(clave_client *c, const struct call_spec *spec, int64_t timeout_ms,
                      clave_reply **out);
/* The clave_result_cb of every request; arg is the call. */
void clave__call_on_result(clave_async_client *c, const clave_result *res, void *arg);
/* For other callbacks. */
void clave__call_finish(struct call *c, clave_err err);

/* ---- replies (reply.c) ---------------------------------------------------------------------- */

/* Makes a reply with room for a path of path_cap bytes (0: none) and for nops op errors. */
clave_reply *clave__reply_new(size_t path_cap, size_t nops);
/* Copies the result. ENOMEM only for data that a read returned. */
clave_err clave__reply_fill(clave_reply *r, size_t path_cap, const clave_result *res);

#endif
