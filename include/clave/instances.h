/* instances.h - the instances of a service, kept up to date, for threads: Curator's ServiceCache
 * and ServiceProvider. The asynchronous form, which says what an instance is and describes the
 * options and the events, is clave/async/instances.h.
 *
 *     clave_instances *web;
 *     clave_instances_options o = CLAVE_INSTANCES_OPTIONS_INIT;
 *     o.service = "web";
 *     err = clave_instances_new(&web, client, &o, NULL, NULL);
 *     if (err == CLAVE_OK)
 *         err = clave_instances_wait(web, 10000);
 *     if (err == CLAVE_OK)
 *         err = clave_instances_pick(web, CLAVE_PICK_ROUND_ROBIN,
 *                                    connect_to_it, NULL);
 *
 * Threads  any thread may call anything here; on the loop's thread (in a callback) the call that
 *          waits, clave_instances_wait, returns ELOOPTHREAD.
 * Queries  are answered on the loop's thread from memory: they never wait for the network, only for
 *          callbacks that run there. They also answer before INITIALIZED, and while STALE, with
 *          what is known. After the session's end they say ECLOSED.
 * Times    timeout_ms is in milliseconds from now; negative: no limit. */
#ifndef CLAVE_INSTANCES_H
#define CLAVE_INSTANCES_H

#include "clave/async/instances.h"
#include "clave/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_instances clave_instances; /* opaque */

/* Starts to follow the instances; does not wait. `o` and `cb` may be NULL, and are as for
 * clave_async_instances_new. `cb` runs on the loop's thread and gets the asynchronous form, which
 * it may query but not free; it may free this one. On CLAVE_OK *out belongs to the caller, who
 * frees it with clave_instances_free; on an error it is NULL. They may outlive the session: see
 * clave_client_close. EPATH: the base or the service is not valid in a path. EINVAL: the options.
 * ENOMEM. ECLOSED: the session has ended. */
CLAVE_MAKING clave_err clave_instances_new(clave_instances **out, clave_client *client,
                                           const clave_instances_options *o,
                                           clave_async_instances_cb *cb, void *arg);
/* Stops following and frees; no event follows. No thread may be in a call on it. NULL is ignored.
 */
CLAVE_EXPORT void clave_instances_free(clave_instances *d);

/* Waits until they are current: INITIALIZED, or RESYNCED if they were STALE. It may return before
 * the callback of that event has. ETIMEDOUT: not in time. EUNREACHABLE: the same, and the session
 * was never connected. ENOAUTH: the path may not be read. ENOMEM: memory ran out, and nothing is
 * followed any more. ECLOSED: the session has ended. */
CLAVE_METHOD clave_err clave_instances_wait(clave_instances *d, int64_t timeout_ms);
/* Visits all instances, sorted by path, on the loop's thread, so that they are as of one moment.
 * ENOMEM, ECLOSED. */
CLAVE_METHOD clave_err clave_instances_walk(clave_instances *d, clave_instances_visit_cb *visit,
                                            void *arg);
/* Picks an instance, as clave_async_instances_pick, and visits it on the loop's thread; what the
 * visit returns does not matter. ENONODE: none can be picked; nothing was visited. EINVAL: no
 * service was named, or `how`. ENOMEM, ECLOSED. */
CLAVE_METHOD clave_err clave_instances_pick(clave_instances *d, clave_pick how,
                                            clave_instances_visit_cb *visit, void *arg);
/* The instance at this path did not work: counts towards down_errors. ENONODE: it is gone. ENOMEM,
 * ECLOSED. */
CLAVE_METHOD clave_err clave_instances_note_error(clave_instances *d, const char *path);

#ifdef __cplusplus
}
#endif
#endif
