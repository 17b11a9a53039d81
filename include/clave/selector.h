/* selector.h - leadership as a function call, blocking, for threads: Curator's LeaderSelector, and
 * in one queue with it (its nodes are those of clave/mutex.h). The function of the candidate that
 * is elected is called, and that candidate leads until the function returns.
 *
 * There is no asynchronous form: a function that may block needs a thread. On a loop use
 * clave/async/latch.h.
 *
 * Threads  any thread may call anything here; only the function itself may not call
 *          clave_selector_free.
 * Times    in milliseconds. */
#ifndef CLAVE_SELECTOR_H
#define CLAVE_SELECTOR_H

#include "clave/async/latch.h"
#include "clave/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_selector clave_selector; /* opaque */

/* The function that leads: leadership lasts until it returns. It never runs twice at the same time
 * for one selector. It should check often whether it was interrupted, or wait in
 * clave_selector_pause, since nothing else ends it. */
typedef void clave_take_leadership_fn(clave_selector *s, void *arg);
/* An executor of the caller's: makes a thread call run(run_arg) once, soon. That thread may be
 * blocked for as long as the wait in the queue and the leadership last. Returns false if it will
 * not. */
typedef bool clave_execute_fn(void (*run)(void *run_arg), void *run_arg, void *arg);

typedef struct clave_selector_options {
    size_t size;    /* CLAVE_SELECTOR_OPTIONS_INIT sets it: clave/options.h */
    const char *id; /* what participants see; NULL: host and process, as for clave_mutex; copied */
    const clave_acl *acls; /* of the nodes; NULL: open; copied */
    size_t nacls;
    clave_latch_policy policy; /* what interrupts a leader: only LOST, or SUSPENDED too */
    bool auto_requeue;         /* enter the queue again whenever the function has returned */
    bool revocable; /* interrupt a leader that is asked to release (clave_async_revoke) */
    clave_take_leadership_fn *take;
    void *take_arg;
    clave_execute_fn *execute; /* NULL: a thread of its own */
    void *execute_arg;
} clave_selector_options;
#define CLAVE_SELECTOR_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_selector_options)

/* Makes a selector, which is not started yet; does not contact the server. On CLAVE_OK *out belongs
 * to the caller, who frees it with clave_selector_free; on an error it is NULL. The selector may
 * outlive the session (see clave_client_close), whose end interrupts the function and closes the
 * selector. EINVAL: no `take`, or an option out of range. EPATH: the path is not valid. ENOMEM.
 * ECLOSED: the session has ended. */
CLAVE_MAKING clave_err clave_selector_new(clave_selector **out, clave_client *client,
                                          const char *path, const clave_selector_options *o);
/* Closes it, waits until the function has returned, and frees it. Not from the function, nor on the
 * loop's thread. NULL is ignored. */
CLAVE_EXPORT void clave_selector_free(clave_selector *s);

/* Enters the election for the first time; does not wait. EINVAL: it was started before. ETHREAD:
 * the system has no thread for it. EIO: the executor refused. ECLOSED. */
CLAVE_METHOD clave_err clave_selector_start(clave_selector *s);
/* Enters the election again; does not wait. It succeeds as soon as leadership is known to be over,
 * even before the function has returned. EBUSY: it is still in the queue, or leads. EINVAL: it was
 * never started. ETHREAD, EIO: as above. ECLOSED. */
CLAVE_METHOD clave_err clave_selector_requeue(clave_selector *s);
/* Asks the function to return; does not wait. ENOTHELD: it does not lead. ECLOSED. */
CLAVE_METHOD clave_err clave_selector_interrupt(clave_selector *s);
/* Leaves the queue for good and interrupts a leader; does not wait for the function. */
CLAVE_METHOD void clave_selector_close(clave_selector *s);

/* ---- for the function, and for observers ---------------------------------------------------- */

/* True if _interrupt or _close was called, or if leadership is in doubt according to the policy.
 * Stays true until the next leadership. Answered from memory. */
CLAVE_METHOD bool clave_selector_is_interrupted(clave_selector *s);
/* Waits for `ms` milliseconds (negative: no limit). Returns false at once if it is interrupted. */
CLAVE_METHOD bool clave_selector_pause(clave_selector *s, int64_t ms);
/* True while it certainly leads, according to the hold deadline. Answered from memory. */
CLAVE_METHOD bool clave_selector_has_leadership(clave_selector *s);
/* The grant of the leadership, as clave_mutex_grant but for any thread. ENOTHELD: it does not lead.
 * ECLOSED. */
CLAVE_METHOD clave_err clave_selector_grant(clave_selector *s, clave_grant **out);
/* Why it left the election without being closed: ENOAUTH, ESEQUENCE or another answer of the
 * server; EIO: the executor refused. CLAVE_OK: it has not left. ECLOSED: this is a forked
 * process. */
CLAVE_METHOD clave_err clave_selector_error(clave_selector *s);

#ifdef __cplusplus
}
#endif
#endif
