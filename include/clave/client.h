/* client.h - the blocking client, a ZooKeeper session for threads: CuratorFramework. The
 * asynchronous form is clave/async/client.h.
 *
 * Threads  any thread may call anything here. One thread, the loop's, owns all sessions of a
 *          clave_loop; a call posts its work there and waits. A blocking call made on that thread
 *          (from a callback) returns ELOOPTHREAD at once. The calls that have no error to return,
 *          clave_client_close, clave_loop_free and clave_selector_free, end the program there, with
 *          a line on stderr.
 * Times    timeout_ms is in milliseconds from now; negative: no limit. ETIMEDOUT means what its
 *          class UNKNOWN says: the operation may still be done.
 * Fork     a forked process does not have the loop's thread. In it nothing that was inherited is
 *          held (clave_grant_valid_for is false), every call returns ECLOSED at once, and _close
 *          and _free do nothing: everything remains the parent's. It may open sessions of its
 *          own. */
#ifndef CLAVE_CLIENT_H
#define CLAVE_CLIENT_H

#include "clave/async/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_loop clave_loop;     /* opaque: one thread for any number of sessions */
typedef struct clave_client clave_client; /* opaque: one session */

/* Starts a loop's thread. On CLAVE_OK *out belongs to the caller, who frees it with
 * clave_loop_free; on an error it is NULL. ENOMEM. ETHREAD, EFILES: the system has no thread, or no
 * file descriptor, for it. */
CLAVE_METHOD clave_err clave_loop_new(clave_loop **out);
/* Ends and joins the thread. Every session on it must have been closed; what was made on the
 * sessions may be freed later. NULL is ignored. */
CLAVE_EXPORT void clave_loop_free(clave_loop *l);

/* Opens a session and returns at once: requests wait for the connection. On CLAVE_OK *out belongs
 * to the caller, who frees it with clave_client_close; on an error it is NULL.
 *
 * `connect`  a host list with an optional chroot at its end, with TLS when it begins with "tls:";
 *            "unix:/path"; or "local:", the server of this user on this machine, which is started
 *            when it is not running and excludes neither other users nor other machines
 *            ("local = never" in a configuration file, or CLAVE_LOCAL=never: ELOCAL from
 *            clave_client_wait). NULL: what the program `clave` would take, see below.
 * `loop`     NULL: the session starts a loop of its own.
 * `o`        may be NULL. Its hosts are ignored, and a seed of 0 is replaced by a random one. Its
 *            callbacks run on the loop's thread.
 *
 * With `connect` NULL the servers are those of CLAVE_CONNECT, else of the user's configuration
 * ($CLAVE_CONFIG, else $XDG_CONFIG_HOME/clave/config or ~/.config/clave/config), else of the
 * machine's (/etc/clave/config), else "local:". Session timeout, identities (auths) and TLS that
 * `o` leaves at 0 or NULL come from there as well, key by key: clave(1), ENVIRONMENT and FILES. The
 * first grant on a "local:" that nothing named writes a warning to the log. A program that runs
 * with another user's rights than its caller's (set-user-ID) reads the machine's file alone, and
 * uses no "local:".
 *
 * EHOST: the host list is not valid. EINVAL: an option is out of range, or a configuration file is
 * wrong or cannot be read. ETLS, EIO: the TLS files cannot be used. ENOMEM, ETHREAD, EFILES: as
 * clave_loop_new. clave_client_errmsg(NULL, ...) says why, with the file and line. */
CLAVE_METHOD clave_err clave_client_open(clave_client **out, clave_loop *loop, const char *connect,
                                         const clave_client_options *o);
/* Waits until the session is connected.
 * EUNREACHABLE: not connected in time; clave_client_errmsg describes the last attempt. EAUTHFAILED:
 * the servers refused the authentication. ECLOSED: the session was closed.
 * Returned at once if every host fails for a reason that lasts until somebody corrects it: ETLS:
 * the certificates do not match. ELOCAL: the local server's directory or disk cannot be used, or
 * there is no program to start. ETHREAD: a host has a name, which is looked up in a thread, and the
 * system forbids threads. The session keeps trying nevertheless. */
CLAVE_METHOD clave_err clave_client_wait(clave_client *client, int64_t timeout_ms);
/* Replaces the host list, as clave_async_client_set_hosts; does not wait. EHOST: the list is not
 * valid. EINVAL: another chroot, or TLS where there was none. clave_client_errmsg says more.
 * ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_client_set_hosts(clave_client *client, const char *connect);
/* Ends the session at the server, waiting at most timeout_ms for that, and frees the client.
 *
 * Mutexes, multilocks, semaphores, latches, selectors and onces made on it may be freed before or
 * after it, on any thread. After it they hold nothing, every call on them returns ECLOSED, every
 * wait in them has ended with ECLOSED, and their _free frees them. Anything made on its
 * clave_async_client may be used only on the loop's thread and only while the session exists: see
 * clave_async_client_free. Your own clave_loop may be freed before them, too. NULL is ignored. */
CLAVE_EXPORT void clave_client_close(clave_client *client, int64_t timeout_ms);

/* Hands the session over to another process through a file, with what is held. For a program that
 * is replaced while it runs, by an upgrade for instance, and is to keep its holds; the other
 * process passes the file's name in clave_client_options.resume_file. clave_async_client_hand_over
 * says what is handed over and what is not.
 *
 * When it returns CLAVE_OK, the file exists, this process counts on nothing any more
 * (clave_grant_valid_for is false), and the client, which can do nothing more, is to be freed with
 * clave_client_close. The file has mode 0600, belongs to this user, and replaces an older one. It
 * is written to FILE.tmp first, so that it is never seen in part.
 *
 * clave_client_open refuses the file if others may read it or if it is not this user's (EINVAL,
 * and clave_client_errmsg says why), and removes it before the session is used, so that no second
 * process can resume it. If nobody does, the session expires, and the file that is left is of no
 * use: it names a session that has ended, and the process that tries it begins a new one and queues
 * anew, which clave_grant_is_resumed tells.
 *
 * EIO: the file cannot be written; nothing was handed over, and the client goes on. If that happens
 * at the very end, after the client was abandoned, clave_client_state is CLOSED, and the session
 * expires. ETIMEDOUT, ENOTHELD, EINVAL, ENOAUTH, ELOST, ENOMEM, ECLOSED, ELOOPTHREAD. */
CLAVE_METHOD clave_err clave_client_hand_over(clave_client *client, const char *file,
                                              int64_t timeout_ms);

/* The state of the connection, from memory. */
CLAVE_METHOD clave_state clave_client_state(clave_client *client);
/* The session's id, from memory; 0: there is none yet. */
CLAVE_METHOD int64_t clave_client_id(clave_client *client);
/* Copies the text of the latest fault (what was tried, on which path or host, what to do) into buf,
 * cut to cap bytes, and returns buf. `client` NULL: why the latest clave_client_open of this thread
 * failed. */
CLAVE_EXPORT const char *clave_client_errmsg(clave_client *client, char *buf, size_t cap);

/* ---- requests --------------------------------------------------------------------------------
 * Each returns the request's error. `out` may be NULL; else *out is set on CLAVE_OK and on a failed
 * multi and belongs to the caller (clave_reply_free), and is NULL otherwise. Each can return EPATH
 * (the path is not valid), ETOOBIG (more than a frame holds), ENOMEM, ECLOSED, ETIMEDOUT,
 * ELOOPTHREAD; ECONNLOSS (the answer was lost: it may have been done) and ENOTSENT (the session
 * ended before it was sent); and ENOAUTH. */

/* The answer to a request. */
typedef struct clave_reply {
    clave_err err;
    char *path;
    void *data;
    size_t len;
    bool has_stat;
    clave_stat stat;
    char **names;
    size_t nnames;
    clave_err *op_errs; /* for a multi: one for each operation */
    size_t nops;
    clave_acl *acls; /* for get_acl */
    size_t nacls;
} clave_reply;
/* Frees a reply and everything in it. NULL is ignored. */
CLAVE_EXPORT void clave_reply_free(clave_reply *r);

/* Creates a node; the reply has its final path. `data` may be NULL, and so may `o`: persistent,
 * open ACL. ENONODE: the parent is missing. ENODEEXISTS. EINVALIDACL. ENOCHILDREN: the parent is
 * ephemeral. EINVAL: the options. */
CLAVE_METHOD clave_err clave_create(clave_client *client, const char *path, const void *data,
                                    size_t len, const clave_create_options *o, int64_t timeout_ms,
                                    clave_reply **out);
/* Deletes a node; version -1: any. ENONODE. EBADVERSION. ENOTEMPTY: it has children. */
CLAVE_METHOD clave_err clave_delete(clave_client *client, const char *path, int32_t version,
                                    int64_t timeout_ms);
/* Reads a node's stat. ENONODE: there is no such node. */
CLAVE_METHOD clave_err clave_exists(clave_client *client, const char *path, int64_t timeout_ms,
                                    clave_reply **out);
/* Reads a node's data and stat. ENONODE. */
CLAVE_METHOD clave_err clave_get(clave_client *client, const char *path, int64_t timeout_ms,
                                 clave_reply **out);
/* Writes a node's data; version -1: any. The reply has the new stat. ENONODE. EBADVERSION. */
CLAVE_METHOD clave_err clave_set(clave_client *client, const char *path, const void *data,
                                 size_t len, int32_t version, int64_t timeout_ms,
                                 clave_reply **out);
/* Lists the names of a node's children, in no order, and reads its stat. ENONODE. */
CLAVE_METHOD clave_err clave_children(clave_client *client, const char *path, int64_t timeout_ms,
                                      clave_reply **out);
/* Reads a node's ACL and stat. ENONODE. The secrets in it are masked unless this client may change
 * the ACL. */
CLAVE_METHOD clave_err clave_get_acl(clave_client *client, const char *path, int64_t timeout_ms,
                                     clave_reply **out);
/* Sets a node's ACL; `version` is that of the ACL (stat.aversion), -1: any. The reply has the new
 * stat. ENONODE. EBADVERSION. EINVALIDACL. */
CLAVE_METHOD clave_err clave_set_acl(clave_client *client, const char *path, const clave_acl *acls,
                                     size_t nacls, int32_t version, int64_t timeout_ms,
                                     clave_reply **out);
/* Does all operations in one transaction, or none. Returns the error of the first operation that
 * failed; the reply's op_errs has each. */
CLAVE_METHOD clave_err clave_multi(clave_client *client, const clave_op *ops, size_t nops,
                                   int64_t timeout_ms, clave_reply **out);
/* Returns after the server has caught up with everything that the leader had committed before. */
CLAVE_METHOD clave_err clave_sync(clave_client *client, const char *path, int64_t timeout_ms);
/* Adds credentials to this and every later connection: `scheme` "digest", `auth` "user:password".
 * EAUTHFAILED: refused. A server with --require-auth wants them before anything else: put them into
 * clave_client_options.auths. */
CLAVE_METHOD clave_err clave_add_auth(clave_client *client, const char *scheme, const void *auth,
                                      size_t len, int64_t timeout_ms);

/* ---- the asynchronous client underneath ------------------------------------------------------ */

/* Runs on the loop's thread, between callbacks, where every asynchronous call on `c` is legal. */
typedef void clave_loop_fn(clave_async_client *c, void *arg);
/* Runs fn on the loop's thread and waits until it has returned. ECLOSED: the session has ended, and
 * fn was not called. ELOOPTHREAD. */
CLAVE_METHOD clave_err clave_client_run(clave_client *client, clave_loop_fn *fn, void *arg);
/* Makes the loop's thread run fn and does not wait for it; may be called on any thread, the loop's
 * included. fn is not called if the session is closed before its turn. ENOMEM. ECLOSED: a forked
 * process. */
CLAVE_METHOD clave_err clave_client_post(clave_client *client, clave_loop_fn *fn, void *arg);

#ifdef __cplusplus
}
#endif
#endif
