/* call.h - a session as its threads share it, and one blocking call on it. */
#ifndef CLAVE_RUNTIME_BLOCKING_CALL_H
#define CLAVE_RUNTIME_BLOCKING_CALL_H

#include "clave/uv.h"
#include "runtime/blocking/loop.h"

/* A child of the session: what was made on it for threads (a lock, a candidate, a job ...). On the
 * loop's thread. */
struct observer {
    struct list link; /* in clave_client.children */
    /* At the end of every pass of the loop. May be NULL. */
    void (*settled)(struct observer *o);
    /* Once, when the session ends before the child is freed; it is in the list no more. The client
     * is CLOSED and about to go: the child frees what it has of it. No user's code runs in here. */
    void (*ended)(struct observer *o);
};

/* Its memory stays until the last of its children (struct observer) is freed, whatever the order
 * in which the user closes and frees. What the children have of the engine ends with the session:
 *
 *     open ──▶ ended                 ──▶ stopped
 *              on the loop's thread      the client is gone; nothing touches the children any more
 *              children are told                                                             */
struct clave_client {
    clave_loop *loop;
    unsigned refs; /* atomic: the user, children, visits under way */
    bool own_loop;
    clave_async_client *client; /* the loop's thread only, as uv */
    clave_uv *uv;
    clave_state_cb *state_cb; /* the user's */
    void *state_arg;
    struct list children; /* observers. The loop's thread only */
    struct task flush;    /* likewise: sends what this pass asked for */
    /* Under the loop's mutex: */
    clave_state state;
    clave_err why; /* of the state */
    bool was_connected;
    clave_err refusal; /* of every host: clave__uv_refusal */
    int64_t id;
    bool ended; /* the loop's thread sets it, and may read it without the mutex */
    bool stopped;
    unsigned inside;     /* other threads, in calls: the session stays until they have left */
    struct list waiters; /* for the state */
};

/* A thread that waits for the session's state. */
struct waiter {
    struct list link;
    struct cell cell;
};
/* With the mutex, which is given up while waiting; false: the deadline has passed. */
bool clave__blocking_await_locked(clave_client *s, int64_t deadline);

/* Any thread. */
bool clave__blocking_never_connected(clave_client *s);

/* On the loop's thread: a new child, which keeps a reference until its _free. */
void clave__session_adopt(clave_client *s, struct observer *o);
/* With them a child keeps the session's memory: from its _new to its _free. Any thread. */
void clave__session_ref(clave_client *s);
void clave__session_unref(clave_client *s);

/* Any thread: every call on a child says ECLOSED. */
bool clave__session_has_ended(clave_client *s);

/* Around every call that waits on the session, with the mutex. */
void clave__blocking_enter_locked(clave_client *s);
void clave__blocking_leave_locked(clave_client *s);

/* clave_client_run, and on the loop's thread itself just the call. Nothing, when that thread is
 * not here, or the session has ended: then nobody else touches the session's children when this
 * returns, but on the loop's thread. */
void clave__blocking_do(clave_client *s, clave_loop_fn *fn, void *arg);

/* clave__options_take of the struct of that name, and clave_client_errmsg tells why they are
 * refused. */
clave_err clave__session_take_options(clave_client *s, void *dst, size_t dst_size, const void *src,
                                      const char *name);

/* On the loop's thread: what its tasks have asked of the client is sent when all of them have
 * run, in one write. */
void clave__blocking_flush_later(clave_client *s);

/* A request of another thread. It lives on the heap: one that is given up after its time
 * (`abandoned`) is freed by its late answer.
 *
 *   QUEUED ──▶ BEGINNING ──▶ PENDING ──▶ DONE
 *                  └───────────────────────▲    (refused)
 *
 * While BEGINNING, the loop's thread reads `args`, so the caller does not return then. */
enum call_state { CALL_QUEUED, CALL_BEGINNING, CALL_PENDING, CALL_DONE };

struct call {
    struct task task;
    clave_client *session;
    enum call_state state; /* under the mutex, as all that follows */
    bool abandoned;
    bool out_of_time; /* waits only for the end of BEGINNING */
    clave_err err;
    struct cell cell;
    clave_reply *reply; /* prepared, so that an answer to a write cannot fail */
    size_t path_cap;
    /* CLAVE_OK: an answer will come, unless it has set `answered`. */
    clave_err (*begin)(struct call *c, void *args);
    void *args; /* on the caller's stack */
    bool answered;
};

struct call_spec {
    clave_err (*begin)(struct call *c, void *args);
    void *args;
    const char *path; /* create: what was asked for. Else NULL */
    size_t nops;
};

/* Does it and waits. `out` may be NULL. */
clave_err clave__call(clave_client *s, const struct call_spec *spec, int64_t timeout_ms,
                      clave_reply **out);
/* The clave_result_cb of every request; arg is the call. */
void clave__call_on_result(clave_async_client *c, const clave_result *res, void *arg);
/* For other callbacks. */
void clave__call_finish(struct call *c, clave_err err);

/* ---- replies (reply.c) ---------------------------------------------------------------- */

/* With room for a path of path_cap bytes (0: none) and for nops op errors. */
clave_reply *clave__reply_new(size_t path_cap, size_t nops);
/* Copies the result. ENOMEM only for what a read brought. */
clave_err clave__reply_fill(clave_reply *r, size_t path_cap, const clave_result *res);

#endif
