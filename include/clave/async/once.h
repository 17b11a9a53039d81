/* async/once.h - a job that several processes want to run and only one of them runs: once in a
 * period, or once and for all.
 *
 * The holder of a lock asks with clave_async_once_begin whether the job is still to be done, runs
 * it, and reports with clave_async_once_end how it ended, before it releases the lock. What
 * happened is remembered in a node of its own, the record, which remains when the runner, its
 * session and the lock are gone.
 *
 * A period begins when a run begins, and is measured by the servers' clock: the record's ctime
 * against the mtime of a write made now. The clients' clocks do not matter. A record whose run
 * seems to begin more than a period in the future is out of date as well: the servers' clock was
 * set back.
 *
 * Each write of the record is a transaction that also checks the lock's node, so a runner that has
 * lost its lock cannot record anything about the job any more. Whether a run counts:
 *
 *     done       yes: it succeeded
 *     failed     no: the next process that asks runs the job
 *     started    no: its runner died or lost the lock, and nobody knows how far it came
 *
 * So the job is done at least once. `at_most_once` makes the opposite choice: every run that began
 * counts. A record that clave did not write (an operator did) counts as done; if there is no
 * record, the job has never run.
 *
 * Asynchronous, on a clave_async_client and under its thread and callback rules. The blocking form
 * is clave/once.h. */
#ifndef CLAVE_ASYNC_ONCE_H
#define CLAVE_ASYNC_ONCE_H

#include "clave/async/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_async_once clave_async_once; /* opaque */

typedef enum clave_once_state {
    CLAVE_ONCE_NONE,    /* there is no record */
    CLAVE_ONCE_STARTED, /* its end was not recorded */
    CLAVE_ONCE_DONE,
    CLAVE_ONCE_FAILED,
} clave_once_state;

/* A run, as it was recorded. */
typedef struct clave_once_record {
    clave_once_state state;
    int64_t began;   /* milliseconds since 1970, by the servers' clock */
    int64_t age_ms;  /* time since then, by the same clock; -1: not measured, since nothing depended
                        on it */
    int64_t took_ms; /* for DONE and FAILED: by the runner's clock */
    int64_t token;   /* of the lock it ran under; 0: unknown */
    clave_identity identity; /* of the runner */
} clave_once_record;

typedef struct clave_once_options {
    size_t size;           /* CLAVE_ONCE_OPTIONS_INIT sets it: clave/options.h */
    const char *path;      /* the record's node: the same for all runners of this job, not below
                              the path of the lock; missing parents are created; copied */
    int64_t period_ms;     /* 0: only once, forever */
    bool at_most_once;     /* a run that has begun counts, however it ended */
    const clave_acl *acls; /* of the record; NULL: open; copied */
    size_t nacls;
    const clave_identity *identity; /* of this runner, for others to see; copied; may be NULL */
} clave_once_options;
#define CLAVE_ONCE_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_once_options)

/* `former` is the previous run, as far as it is known; valid until clave_async_once_end or
 * _free. */
typedef void clave_async_once_cb(clave_async_once *o, clave_err err,
                                 const clave_once_record *former, void *arg);

/* Asks whether the job has to be run now. `grant` is that of the mutex, the write side of a
 * read-write lock or the latch that is held; a semaphore's leases exclude nobody. It is not needed
 * after this call. On CLAVE_OK *out belongs to the caller, who frees it with clave_async_once_free;
 * on an error it is NULL. cb runs once, later: CLAVE_OK: yes, and it is recorded as started. EDONE:
 * no, `former` has done it. ELOST: the lock is gone (at once, if that is known). ENOAUTH,
 * EINVALIDACL, ETOOBIG: the server refused the record. ECONNLOSS and others of its class: it gave
 * up after 16 attempts. ENOMEM. ECLOSED. At once: EPATH: the record's path is not valid. EINVAL:
 * the options. ENOMEM. ECLOSED. */
CLAVE_MAKING clave_err clave_async_once_begin(clave_async_once **out,
                                              const clave_async_grant *grant,
                                              const clave_once_options *o, clave_async_once_cb *cb,
                                              void *arg);
/* Records how the run ended, after CLAVE_OK. cb (may be NULL) runs once, later: CLAVE_OK: recorded.
 * ELOST: the lock is gone, and the run stays recorded as started. ENONODE: somebody has removed the
 * record. ECONNLOSS and others of its class: an answer was lost, so the end may or may not be
 * recorded. Others as above. At once: EINVAL: no run has begun, or its end was already recorded.
 * ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_async_once_end(clave_async_once *o, bool succeeded,
                                            clave_async_once_cb *cb, void *arg);
/* Frees it; no callback follows, and a write that was sent may still be done. NULL is ignored. */
CLAVE_EXPORT void clave_async_once_free(clave_async_once *o);

#ifdef __cplusplus
}
#endif
#endif
