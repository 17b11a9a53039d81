/* selector.h - leadership as a function call, for threads: as Curator's LeaderSelector, and in
 * one queue with it (its nodes are those of clave/mutex.h). Whoever is elected has its function
 * called, and leads until it returns.
 *
 * Any thread may call anything here, but _free from the function itself. */
#ifndef CLAVE_SELECTOR_H
#define CLAVE_SELECTOR_H

#include "clave/async/latch.h"
#include "clave/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_selector clave_selector; /* opaque */

/* Leads until it returns; never runs twice at a time for one selector. It should ask often
 * whether it is interrupted, or wait in clave_selector_pause: nothing else ends it. */
typedef void clave_take_leadership_fn(clave_selector *s, void *arg);
/* An executor of the caller's: has run(run_arg) called once, soon, by a thread that may block for
 * as long as the queue and the leadership last. false: it will not. */
typedef bool clave_execute_fn(void (*run)(void *run_arg), void *run_arg, void *arg);

typedef struct clave_selector_options {
    size_t size;    /* CLAVE_SELECTOR_OPTIONS_INIT sets it: clave/options.h */
    const char *id; /* what participants see; NULL: host and process, as of clave_mutex; copied */
    const clave_acl *acls; /* of the nodes; NULL: open; copied */
    size_t nacls;
    clave_latch_policy policy; /* what interrupts a leader: SUSPENDED too, or only LOST */
    bool auto_requeue;         /* stand again whenever the function has returned */
    bool revocable;            /* one that is asked to release is interrupted */
    clave_take_leadership_fn *take;
    void *take_arg;
    clave_execute_fn *execute; /* NULL: a thread of its own */
    void *execute_arg;
} clave_selector_options;
#define CLAVE_SELECTOR_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_selector_options)

/* EINVAL (no `take`), EPATH, ENOMEM. */
CLAVE_EXPORT clave_err clave_selector_new(clave_selector **out, clave_client *s, const char *path,
                                          const clave_selector_options *o);
/* Closes it, and waits until the function has returned. It may outlive the session (see
 * clave_client_close), whose end interrupts the function and closes it. Not from the function.
 * NULL is ignored. */
CLAVE_EXPORT void clave_selector_free(clave_selector *s);

/* Stands for the first time. EINVAL: started before. EIO: no thread, or the executor refused. */
CLAVE_EXPORT clave_err clave_selector_start(clave_selector *s);
/* Stands again. EBUSY: it does, or leads. It succeeds from the moment leadership was seen to be
 * over. ECLOSED; EINVAL not started; EIO. */
CLAVE_EXPORT clave_err clave_selector_requeue(clave_selector *s);
/* Asks the function to return. ENOTHELD: it does not lead. */
CLAVE_EXPORT clave_err clave_selector_interrupt(clave_selector *s);
/* Leaves the queue, interrupts a leader, and does not wait for it. */
CLAVE_EXPORT void clave_selector_close(clave_selector *s);

/* ---- for the function, and for who looks on ----------------------------------------------- */

/* _interrupt or _close was called, or leadership is in doubt by the policy. Stays true until the
 * next leadership. */
CLAVE_EXPORT bool clave_selector_is_interrupted(clave_selector *s);
/* Waits for `ms`; false, at once, when it is interrupted. */
CLAVE_EXPORT bool clave_selector_pause(clave_selector *s, int64_t ms);
/* Leads, and surely will for `ms` more: from memory, by the hold deadline. */
CLAVE_EXPORT bool clave_selector_valid_for(clave_selector *s, int64_t ms);
CLAVE_EXPORT bool clave_selector_has_leadership(clave_selector *s);
/* Until when it surely leads (clave_now()); INT64_MIN: does not. */
CLAVE_EXPORT int64_t clave_selector_deadline(clave_selector *s);
CLAVE_EXPORT int64_t clave_selector_token(clave_selector *s);        /* 0: does not lead */
CLAVE_EXPORT const char *clave_selector_id(const clave_selector *s); /* NULL: none was given */
/* Why it stands no more, when it is neither queued nor closed: ENOAUTH, ESEQUENCE ...; EIO: the
 * executor has refused. */
CLAVE_EXPORT clave_err clave_selector_error(clave_selector *s);
/* A guarded write of the leader, from the function, as clave_mutex_multi. */
CLAVE_EXPORT clave_err clave_selector_multi(clave_selector *s, const clave_op *ops, size_t nops,
                                            int64_t timeout_ms, clave_reply **out);

#ifdef __cplusplus
}
#endif
#endif
