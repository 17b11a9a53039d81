/* client.h - the blocking client: any thread may call anything here.
 *
 * One thread (the loop's) owns all sessions of a clave_loop; a call posts its work there
 * and waits. A blocking call made on that thread (from a callback) returns ELOOPTHREAD at
 * once; what has no error to return, clave_client_close, clave_loop_free and
 * clave_selector_free, ends the program there, with a line on stderr. Timeouts are
 * milliseconds from now; negative: for ever. ETIMEDOUT means what the class UNKNOWN says: the
 * operation may still be done.
 *
 * A process that was forked has no such thread: of what it has inherited nothing is held there
 * (_valid_for is false), every call returns ECLOSED at once, _close and _free do nothing, and all
 * of it stays the parent's. It may open sessions of its own. */
#ifndef CLAVE_CLIENT_H
#define CLAVE_CLIENT_H

#include "clave/async/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_loop clave_loop;     /* opaque: one thread for any number of sessions */
typedef struct clave_client clave_client; /* opaque */

/* Starts the thread. ENOMEM, EIO. */
CLAVE_EXPORT clave_err clave_loop_new(clave_loop **out);
/* Every session on it must have been closed. Joins the thread. */
CLAVE_EXPORT void clave_loop_free(clave_loop *l);

/* `connect`: a host list with optional chroot ("tls:" before it: with TLS), "unix:/path", or
 * "local:" (the server of this user on this machine, started when it is not running, which excludes
 * no other user and no other machine; CLAVE_LOCAL=never in the environment: ELOCAL); NULL: the
 * environment's CLAVE_CONNECT, else "local:". `loop` NULL: a loop of its own. `o` may be NULL;
 * its hosts, seed and the two callbacks' threads are: ignored, drawn when 0, the loop's.
 * Returns at once; requests wait for the connection. EHOST, EINVAL, ENOMEM, EIO; ETLS:
 * clave_tls_new tells why. */
CLAVE_EXPORT clave_err clave_client_open(clave_client **out, clave_loop *loop, const char *connect,
                                         const clave_client_options *o);
/* Waits until connected. EUNREACHABLE: not within the timeout (clave_client_errmsg tells
 * of the last attempt). At once, when every host refuses for a reason that stays until somebody
 * mends it: ETLS, certificates that do not fit; ELOCAL, a directory or a disk that the local server
 * cannot use, or no program to start. The session goes on trying all the same. EAUTHFAILED,
 * EHOST. */
CLAVE_EXPORT clave_err clave_client_wait(clave_client *s, int64_t timeout_ms);
/* As clave_async_client_set_hosts; does not wait. */
CLAVE_EXPORT clave_err clave_client_set_hosts(clave_client *s, const char *connect);
/* Ends the session at the server (waits at most timeout_ms for it) and frees. Locks, locksets,
 * permits, candidates, selectors and jobs that were made on it may be freed before or after it, on
 * any thread: after it they hold nothing, each call on them says ECLOSED, each wait in them has
 * ended so, and their _free frees. What was made on its clave_async_client is used on the loop's
 * thread only while the session is there; see clave_async_client_free. A clave_loop of yours may be
 * freed before them, too. */
CLAVE_EXPORT void clave_client_close(clave_client *s, int64_t timeout_ms);

CLAVE_EXPORT clave_state clave_client_state(clave_client *s);
CLAVE_EXPORT int64_t clave_client_id(clave_client *s);
/* Copies the newest fault's text into buf (cut to cap) and returns buf. */
CLAVE_EXPORT const char *clave_client_errmsg(clave_client *s, char *buf, size_t cap);

/* What a request brought, owned by the caller: clave_reply_free() it. */
typedef struct clave_reply {
    clave_err err;
    char *path;
    void *data;
    size_t len;
    bool has_stat;
    clave_stat stat;
    char **names;
    size_t nnames;
    clave_err *op_errs; /* multi: one for each op */
    size_t nops;
} clave_reply;
CLAVE_EXPORT void clave_reply_free(clave_reply *r); /* NULL is ignored */

/* Each: the request's error; `out` (may be NULL) is filled on CLAVE_OK and on a failed
 * multi. The parameters are those of the calls in client_internal.h. */
CLAVE_EXPORT clave_err clave_create(clave_client *s, const char *path, const void *data, size_t len,
                                    const clave_create_options *o, int64_t timeout_ms,
                                    clave_reply **out);
CLAVE_EXPORT clave_err clave_delete(clave_client *s, const char *path, int32_t version,
                                    int64_t timeout_ms);
CLAVE_EXPORT clave_err clave_exists(clave_client *s, const char *path, int64_t timeout_ms,
                                    clave_reply **out);
CLAVE_EXPORT clave_err clave_get(clave_client *s, const char *path, int64_t timeout_ms,
                                 clave_reply **out);
CLAVE_EXPORT clave_err clave_set(clave_client *s, const char *path, const void *data, size_t len,
                                 int32_t version, int64_t timeout_ms, clave_reply **out);
CLAVE_EXPORT clave_err clave_children(clave_client *s, const char *path, int64_t timeout_ms,
                                      clave_reply **out);
CLAVE_EXPORT clave_err clave_multi(clave_client *s, const clave_op *ops, size_t nops,
                                   int64_t timeout_ms, clave_reply **out);
CLAVE_EXPORT clave_err clave_sync(clave_client *s, const char *path, int64_t timeout_ms);
CLAVE_EXPORT clave_err clave_add_auth(clave_client *s, const char *scheme, const void *auth,
                                      size_t len, int64_t timeout_ms);

/* Runs fn(client, arg) on the loop's thread, between callbacks, where every asynchronous
 * call is legal. _run waits until it has returned; _post does not wait, and fn is not called when
 * the session has been closed before its turn came. */
typedef void clave_loop_fn(clave_async_client *c, void *arg);
CLAVE_EXPORT clave_err clave_client_run(clave_client *s, clave_loop_fn *fn, void *arg);
CLAVE_EXPORT clave_err clave_client_post(clave_client *s, clave_loop_fn *fn, void *arg);

#ifdef __cplusplus
}
#endif
#endif
