/* async/once.h - a job that several processes start and one of them runs: once in a period, or once
 * for all.
 *
 * Who holds a lock asks with clave_async_once_begin whether the job is still to be done, runs it,
 * and says with clave_async_once_end how it went, before it lets go of the lock. What is remembered
 * is a node of its own, the record: it stays when the runner, its session and the lock are gone.
 *
 * A period begins when a run begins, and is measured by the servers' clock: the record's ctime
 * against the mtime of a write made now. The clocks of the machines do not matter. What looks as
 * if it had begun more than a period in the future is out of date as well (the clock of the
 * servers has been set back).
 *
 * Each write of the record is one transaction with a check of the lock node, so a runner that has
 * lost its lock cannot say anything about the job any more. What counts:
 *
 *     done       a run that succeeded
 *     failed     no; the next who asks runs the job
 *     started    no: its runner has died, or lost the lock, and nobody knows how far it came
 *
 * So the job is done at least once; `at_most_once` makes the other choice: every run that began
 * counts. A record that is not of clave's making (an operator's) counts as done; without a record
 * the job has never run.
 *
 * On the client's thread, under its callback rules. Blocking: clave/once.h. */
#ifndef CLAVE_ASYNC_ONCE_H
#define CLAVE_ASYNC_ONCE_H

#include "clave/async/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_async_once clave_async_once; /* opaque */

typedef enum clave_once_state {
    CLAVE_ONCE_NONE,    /* there is no record */
    CLAVE_ONCE_STARTED, /* and no word of how it went */
    CLAVE_ONCE_DONE,
    CLAVE_ONCE_FAILED,
} clave_once_state;

/* A run, as its record has it. */
typedef struct clave_once_record {
    clave_once_state state;
    int64_t began;           /* milliseconds since 1970, by the servers' clock */
    int64_t age_ms;          /* since then, by the same clock; -1: nothing depended on it */
    int64_t took_ms;         /* DONE, FAILED: by the clock of who ran it */
    int64_t token;           /* of the lock it ran under; 0: unknown */
    clave_identity identity; /* of who ran it */
} clave_once_record;

typedef struct clave_once_options {
    size_t size;           /* CLAVE_ONCE_OPTIONS_INIT sets it: clave/options.h */
    const char *path;      /* the record's node: the same for all who run this job, not below
                              the path of the lock; missing parents are made; copied */
    int64_t period_ms;     /* 0: once for all */
    bool at_most_once;     /* a run that has begun counts, however it ended */
    const clave_acl *acls; /* of the record; NULL: open; copied */
    size_t nacls;
    const clave_identity *identity; /* of this runner, for others to see; copied; may be NULL */
} clave_once_options;
#define CLAVE_ONCE_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_once_options)

/* `former`: the run before, as far as it is known; valid until clave_async_once_end or _free. */
typedef void clave_async_once_cb(clave_async_once *o, clave_err err,
                                 const clave_once_record *former, void *arg);

/* May the job be run? `grant`: of the mutex, the write side of a read-write lock or the latch that
 * is held (copied; a semaphore's leases exclude nobody).
 * cb runs once: CLAVE_OK: yes, and that it has started is on record; EDONE: no, `former` has done
 * it; ELOST: the lock is gone; ENOAUTH, EINVALIDACL, ETOOBIG, ENOMEM; ECONNLOSS and others of its
 * class: given up after 16 attempts; ECLOSED.
 * At once: EPATH, EINVAL, ENOMEM, ECLOSED. */
CLAVE_EXPORT clave_err clave_async_once_begin(clave_async_once **out, clave_async_client *c,
                                              const clave_grant *grant, const clave_once_options *o,
                                              clave_async_once_cb *cb, void *arg);
/* How it went, after CLAVE_OK. `cb` may be NULL; else it runs once: CLAVE_OK: on record; ELOST:
 * the lock is gone, and the run stays on record as started; ENONODE: somebody has removed the
 * record meanwhile; ECONNLOSS and others of its class: an answer was lost, and how it went may be
 * on record or not; others as above.
 * At once: EINVAL: nothing has begun, or its end was told; ENOMEM; ECLOSED. */
CLAVE_EXPORT clave_err clave_async_once_end(clave_async_once *o, bool succeeded,
                                            clave_async_once_cb *cb, void *arg);
/* No callback after this; a write that is under way may still be done. NULL is ignored. */
CLAVE_EXPORT void clave_async_once_free(clave_async_once *o);

#ifdef __cplusplus
}
#endif
#endif
