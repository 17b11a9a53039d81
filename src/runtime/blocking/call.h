/* call.h - what the API for threads (include/clave) is made of: a client as its threads share it,
 * the recipes that are made on it, and one blocking call.
 *
 * A clave_client, and every recipe on it, wraps an asynchronous object that belongs to the thread
 * of a loop. Any other thread has that thread do something, in one of three ways:
 *
 *   - a call (clave__call) begins an operation there and waits for its answer;
 *   - a visit (clave__visit) does there what takes no time, and waits until it has been done;
 *   - what is asked often is answered from a copy, which the loop's thread publishes under the
 *     loop's mutex. A thread that waits for such a copy to change is inside clave__wait_enter.
 *
 * Each passes its arguments in a struct args on the caller's stack. The first two find out what all
 * calls have to: that the process was forked, the client has ended, or the caller is the loop's
 * thread, which cannot wait for itself.
 *
 *   loop        the loop's thread; how other threads get work done on it
 *   client      clave_client: opening, state, closing; the life of what is made on it
 *   call        one blocking call and its answer
 *   request     clave_create, clave_get, ...
 *   thread_grant   clave_grant: what is held, and writes under it; every holder gives it
 *   mutex       clave_mutex, read-write locks (thread_mutex.h); multilock: several of them
 *   semaphore, slots, latch, once, cache   the blocking form of each recipe
 *   selector    a leader selector: runs the user's function while leading
 *   queries     participants and deadlocks, each copied into one block
 *   metrics     clave/metrics.h, over all loops of the process */
#ifndef CLAVE_RUNTIME_BLOCKING_CALL_H
#define CLAVE_RUNTIME_BLOCKING_CALL_H

#include "clave/uv.h"
#include "client/errmsg.h"
#include "runtime/blocking/loop.h"

struct args;
typedef clave_err loop_visit(clave_async_client *c, const struct args *a);

/* A recipe made on the client for threads: the first member of a clave_mutex, a clave_latch ... */
struct child {
    struct list link; /* in clave_client.children. The loop's thread only */
    clave_client *client;
    const struct child_kind *kind;
};

struct child_kind {
    /* Runs at the end of every pass of the loop. May be NULL. */
    void (*settled)(struct child *c);
    /* Runs once, on the loop's thread or when that does nothing more: frees what the child has of
     * the asynchronous client, which is closed when the client has ended before the child. No user
     * code runs in here. */
    void (*ended)(struct child *c);
};

/* Its memory stays until the last of its children is freed, in whatever order the
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
    struct list children; /* The loop's thread only */
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

/* ---- children: any thread -------------------------------------------------------------------- */

/* Makes a child: `make`, on the loop's thread, makes the asynchronous object. Then the child keeps
 * a reference to the client, and its kind is told of what happens. The errors of `make`; ECLOSED.
 */
clave_err clave__child_open(struct child *c, clave_client *client, const struct child_kind *kind,
                            loop_visit *make, const struct args *a);
/* The same for one that is made on the loop's thread. */
void clave__child_adopt(struct child *c, clave_client *client, const struct child_kind *kind);
/* Ends it, unless its client has, and gives its reference back; its memory is the caller's. false:
 * the process is a fork, in which nothing of it may be touched. */
bool clave__child_close(struct child *c);

/* References that keep the client's memory. */
void clave__session_ref(clave_client *c);
void clave__session_unref(clave_client *c);

/* As clave__options_take for the struct of that name; clave_client_errmsg tells why options are
 * refused. */
clave_err clave__session_take_options(clave_client *c, void *dst, size_t dst_size, const void *src,
                                      const char *name);

/* ---- waits and visits: any thread ------------------------------------------------------------ */

/* Before a wait for what the loop's thread publishes: the mutex is held then, and the client stays
 * until clave__wait_leave. ECLOSED, ELOOPTHREAD: neither. */
clave_err clave__wait_enter(clave_client *c);
void clave__wait_leave(clave_client *c);

/* As clave_client_run, with the function's error; on the loop's thread itself, just the call.
 * ECLOSED: that thread does not exist in this process, or the client has ended: then nothing else
 * touches its children any more when this returns, except on the loop's thread. */
clave_err clave__visit(clave_client *c, loop_visit *fn, const struct args *a);

/* Its latest fault, of which clave_client_errmsg is the text. */
void clave__blocking_fault(clave_client *c, struct client_fault *out);

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

struct call;
typedef clave_err call_begin(struct call *c, const struct args *a);

/* Of a call or a visit; each uses what it needs. */
struct args {
    void *of; /* the recipe's object, or more than fits in here */
    const char *path;
    const void *data;
    size_t len;
    int32_t version;
    const void *options; /* completed */
    const clave_op *ops;
    size_t nops;
    const clave_acl *acls;
    size_t nacls;
    const char *text;
    uint64_t owner;
    int64_t deadline;
    char *buf; /* room for an answer */
    size_t cap;
};

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
    call_begin *begin;
    const struct args *args; /* on the caller's stack */
    bool answered;
};

/* Begins the call on the loop's thread and waits for its answer. `out` may be NULL. */
clave_err clave__call(clave_client *c, call_begin *begin, const struct args *a, int64_t timeout_ms,
                      clave_reply **out);
/* A create of a->path, whose reply has the path of the node. */
clave_err clave__call_create(clave_client *c, call_begin *begin, const struct args *a,
                             int64_t timeout_ms, clave_reply **out);
/* A call whose answer is one block, which clave__call_answer_block gave it: it is the caller's. */
clave_err clave__call_block(clave_client *c, call_begin *begin, const struct args *a,
                            int64_t timeout_ms, void **out);

/* On the loop's thread: the answer. It may come when the caller has given up; what it is written
 * to, the reply, exists as long as the call. */
void clave__call_finish(struct call *c, clave_err err);
/* NULL with CLAVE_OK: there was no memory for the block. */
void clave__call_answer_block(struct call *c, clave_err err, void *block);
/* The clave_result_cb of every request; arg is the call. */
void clave__call_on_result(clave_async_client *c, const clave_result *res, void *arg);

/* ---- replies --------------------------------------------------------------------------------- */

/* Makes a reply with room for a path of path_cap bytes (0: none) and for nops op errors. */
clave_reply *clave__reply_new(size_t path_cap, size_t nops);
/* Copies the result. ENOMEM only for data that a read returned. */
clave_err clave__reply_fill(clave_reply *r, size_t path_cap, const clave_result *res);

#endif
