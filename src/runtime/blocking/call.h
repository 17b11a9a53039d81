/* call.h - the building blocks of the API for threads (include/clave): a client shared by its
 * threads, the recipes made on it, and a blocking call.
 *
 * A clave_client, and every recipe on it, wraps an asynchronous object that belongs to the thread
 * of a loop. Other threads use it in one of three ways:
 *
 *   - a call (clave__call) begins an operation there and waits for its answer;
 *   - a visit (clave__visit) does there what takes no time, and waits until it has been done;
 *   - what is asked often is answered from a copy, which the loop's thread publishes under the
 *     loop's mutex. A thread that waits for such a copy to change is inside clave__wait_enter.
 *
 * Calls and visits pass their arguments in a struct args on the caller's stack. They also make the
 * checks that all calls need: whether the process was forked, whether the client has ended, and
 * whether the caller is the loop's thread, which cannot wait for itself.
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

#include <string.h>

#include "clave/uv.h"
#include "client/errmsg.h"
#include "runtime/blocking/loop.h"

struct args;
typedef clave_err loop_visit(clave_async_client *c, const struct args *a);

/* A recipe made on the client for threads: the first member of a clave_mutex, a clave_latch ... */
struct child {
    struct list link; /* in clave_client.children; used by the loop's thread only */
    clave_client *client;
    const struct child_kind *kind;
};

struct child_kind {
    /* Called at the end of every pass of the loop; may be NULL. */
    void (*settled)(struct child *c);
    /* Called once, on the loop's thread or after that thread has stopped touching the child. Frees
     * the child's asynchronous objects. If the client has ended before the child, the asynchronous
     * client is closed by then. No user code runs in here. */
    void (*ended)(struct child *c);
};

/* A clave_client stays allocated until the last of its children is freed, whatever the order in
 * which the user closes and frees them. The children's asynchronous objects end with the client:
 *
 *     open ──▶ ended                    ──▶ stopped
 *              on the loop's thread         the asynchronous client is gone; nothing
 *              children are notified        touches the children any more */
struct clave_client {
    clave_loop *loop;
    unsigned refs; /* atomic: references of the user, the children, and visits under way */
    bool own_loop;
    clave_async_client *async; /* used by the loop's thread only, as is uv */
    clave_uv *uv;
    clave_state_cb *state_cb; /* the user's */
    void *state_arg;
    struct list children; /* used by the loop's thread only */
    struct list in_loop;  /* from its start until it has stopped; used by the loop's thread only */
    struct task flush;    /* sends what this pass requested; used by the loop's thread only */
    /* From here on under the loop's mutex. */
    clave_state state;
    clave_err why; /* why it has this state */
    bool was_connected;
    clave_err refusal; /* why every host refuses: see clave__uv_refusal */
    int64_t id;
    bool ended; /* written by the loop's thread, which may read it without the mutex */
    bool stopped;
    /* How many other threads are inside calls; the client stays until they have left. */
    unsigned inside;
    struct list waiters; /* threads waiting for the state */
};

/* A thread that waits for the client's state. */
struct waiter {
    struct list link;
    struct cell cell;
};
/* Call it with the mutex held, which it releases while waiting. Returns false if the deadline has
 * passed. */
bool clave__blocking_await_locked(clave_client *c, int64_t deadline);

/* ---- children: any thread -------------------------------------------------------------------- */

/* Makes a child. `make` runs on the loop's thread and makes the asynchronous object. From then on
 * the child keeps a reference to the client, and is notified through its kind. Returns the errors
 * of `make`; ECLOSED. */
clave_err clave__child_open(struct child *c, clave_client *client, const struct child_kind *kind,
                            loop_visit *make, const struct args *a);
/* The same for a child that is made on the loop's thread. */
void clave__child_adopt(struct child *c, clave_client *client, const struct child_kind *kind);
/* On the loop's thread: publishes now what the client's children otherwise publish at the end of
 * every pass. */
void clave__blocking_publish(clave_client *c);
/* Ends the child, unless its client has ended it, and gives its reference back; its memory is the
 * caller's. Returns false if the process is a fork, in which nothing of the child may be
 * touched. */
bool clave__child_close(struct child *c);

/* References that keep the client's memory. */
static inline void clave__blocking_client_ref(clave_client *c)
{
    (void)__atomic_add_fetch(&c->refs, 1, __ATOMIC_RELAXED);
}
void clave__blocking_client_unref(clave_client *c);

/* As clave__options_take for the struct called `name`. If the options are refused,
 * clave_client_errmsg says why. */
clave_err clave__blocking_take_options(clave_client *c, void *dst, size_t dst_size, const void *src,
                                       const char *name);

/* ---- waits and visits: any thread ------------------------------------------------------------ */

/* Begins a wait for something that the loop's thread publishes: afterwards the mutex is held, and
 * the client stays until clave__wait_leave. After ECLOSED or ELOOPTHREAD neither is the case. */
clave_err clave__wait_enter(clave_client *c);
void clave__wait_leave(clave_client *c);

/* Like clave_client_run, but returns the function's error; on the loop's thread itself, just calls
 * it. ECLOSED: that thread does not exist in this process, or the client has ended; when this
 * returns, nothing else touches the client's children any more except on the loop's thread. */
clave_err clave__visit(clave_client *c, loop_visit *fn, const struct args *a);

/* The latest fault, whose text clave_client_errmsg returns. */
void clave__blocking_fault(clave_client *c, struct client_fault *out);

/* Sets the text of the latest fault. */
void clave__blocking_tell(clave_client *c, const char *text);

/* On the loop's thread: when all tasks of this pass have run, sends what they have requested in one
 * write. */
void clave__blocking_flush_later(clave_client *c);

/* A request of another thread. It is allocated on the heap: if it is given up after its timeout
 * (`abandoned`), its late answer frees it.
 *
 *   QUEUED ──▶ BEGINNING ──▶ PENDING ──▶ DONE
 *                  └───────────────────────▲    (refused)
 *
 * While BEGINNING, the loop's thread reads `args`, so the caller does not return then. */
enum call_state { CALL_QUEUED, CALL_BEGINNING, CALL_PENDING, CALL_DONE };

struct call;
typedef clave_err call_begin(struct call *c, const struct args *a);

/* The arguments of a call or a visit; each uses the ones that it needs. */
struct args {
    void *of; /* the recipe's object, or a struct with arguments that do not fit in here */
    const char *path;
    const void *data;
    size_t len;
    int32_t version;
    const void *options; /* completed options */
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
    bool out_of_time; /* it is waiting only for BEGINNING to end */
    clave_err err;
    struct cell cell;
    clave_reply *reply; /* allocated beforehand, so that answering a write cannot fail */
    size_t path_cap;
    /* Returning CLAVE_OK means that an answer will come, unless the function has set `answered`. */
    call_begin *begin;
    const struct args *args; /* on the caller's stack */
    bool answered;
};

/* Begins the call on the loop's thread and waits for its answer, whose path has at most path_cap
 * bytes. `out` may be NULL. */
clave_err clave__call_with_path(clave_client *c, call_begin *begin, const struct args *a,
                                size_t path_cap, int64_t timeout_ms, clave_reply **out);

/* A call whose answer has no path. */
static inline clave_err clave__call(clave_client *c, call_begin *begin, const struct args *a,
                                    int64_t timeout_ms, clave_reply **out)
{
    return clave__call_with_path(c, begin, a, 0, timeout_ms, out);
}

/* Room for what a create adds to its path: ten digits, and the prefix of a protected name. */
enum { PATH_GROWTH = 64 };

/* A call that creates a->path; its reply has the path of the node. */
static inline clave_err clave__call_create(clave_client *c, call_begin *begin, const struct args *a,
                                           int64_t timeout_ms, clave_reply **out)
{
    return clave__call_with_path(c, begin, a, strlen(a->path) + PATH_GROWTH, timeout_ms, out);
}

/* A call whose answer is one block, passed to clave__call_answer_block; the block becomes the
 * caller's. */
clave_err clave__call_block(clave_client *c, call_begin *begin, const struct args *a,
                            int64_t timeout_ms, void **out);

/* On the loop's thread: answers the call. The caller may have given up by then; the reply, into
 * which the answer is written, exists as long as the call does. */
void clave__call_finish(struct call *c, clave_err err);
/* A NULL block with CLAVE_OK means that there was no memory for it. */
void clave__call_answer_block(struct call *c, clave_err err, void *block);
/* The clave_result_cb of every request; arg is the call. */
void clave__call_on_result(clave_async_client *c, const clave_result *res, void *arg);

/* ---- replies --------------------------------------------------------------------------------- */

/* Makes a reply with room for a path of path_cap bytes (0: none) and for nops op errors. */
clave_reply *clave__reply_new(size_t path_cap, size_t nops);
/* Copies the result into the reply. ENOMEM is possible only for data that a read returned. */
clave_err clave__reply_fill(clave_reply *r, size_t path_cap, const clave_result *res);

#endif
