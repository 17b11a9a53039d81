/* client_for_recipes.h - what recipes may use of a clave_async_client beyond the public calls:
 * state listeners, timers, deferred tasks, and the holds that keep heartbeats confirmed. */
#ifndef CLAVE_CLIENT_CLIENT_FOR_RECIPES_H
#define CLAVE_CLIENT_CLIENT_FOR_RECIPES_H

#include "base/list.h"
#include "base/log_line.h"
#include "base/memory.h"
#include "base/rand.h"
#include "clave/async/client.h"
#include "client/client_for_gate.h"
#include "client/errmsg.h"
#include "client/timer.h"

/* Each object of the API made on a client holds a reference from the end of its _new to the end of
 * its _free. So it may be freed after its client: the client is CLOSED then and only its memory
 * remains. On a client that its user has freed, _unref first runs the callbacks that the object's
 * _free left pending. */
void clave__client_ref(clave_async_client *c);
void clave__client_unref(clave_async_client *c);

/* The error of an acquire that has not succeeded in time. EBUSY says that another was before us, so
 * it needs an answer that showed one on the connection there is now: `seen_on` is the connection of
 * the newest such answer (clave_async_client_connection; 0: there was none). Without it nobody
 * knows who holds it: EUNREACHABLE, whether there is no connection, it is a new one on which the
 * place has not been looked at again, or the server (a read-only one perhaps) has not answered. */
clave_err clave__client_not_in_time(const clave_async_client *c, uint64_t seen_on);
const struct clave_mem *clave__client_mem(const clave_async_client *c);
/* The seed for a map of bytes that others choose (base/map.h). */
uint64_t clave__client_hash_seed(const clave_async_client *c);
/* clave__options_take for the struct called `name`; when the options are refused,
 * clave_async_client_errmsg says why. */
clave_err clave__client_take_options(clave_async_client *c, void *dst, size_t dst_size,
                                     const void *src, const char *name);
/* The TLS context and the log, as given in the client's options. */
struct clave_tls *clave__client_tls(const clave_async_client *c);
const struct log *clave__client_log(const clave_async_client *c);
/* The prefix of protected names, "_c_<uuid>-". It is new each time, and differs from any that a
 * client with the same seed makes in its own session. */
enum { CLAVE_PROTECTED_PREFIX = 3 + CLAVE_UUID_TEXT + 1 };
void clave__client_protect(clave_async_client *c, char out[CLAVE_PROTECTED_PREFIX + 1]);

/* As clave_async_delete_guaranteed. With a czxid, only the node of that czxid is deleted: not one
 * that somebody else created under the same name while the answer to the delete was lost. */
clave_err clave__client_delete_node(clave_async_client *c, const char *path, int64_t czxid,
                                    clave_result_cb *cb, void *arg);

/* What a caller and its create tell each other while it is under way. */
struct create_stake {
    bool unwanted; /* by the caller: what is proven not to exist is not created any more: ENONODE */
    bool sent;     /* by the create: the node may be its own. Else it was found */
};

/* As clave_async_create of a protected node whose UUID the caller may choose. */
struct client_named_create {
    const char *path;
    const void *data;
    size_t len;
    const clave_create_options *o;
    const char *uuid; /* in canonical text, lower case; NULL: the client draws it */
    /* A node of the current session that has the UUID may exist, made by another process that had
     * the session: it is looked for first, and then is the result, without names. */
    bool search;
    bool only_found; /* with `search`: ENONODE when there is none, and none is made */
    const char *at;  /* the name of that node, which is known: as `search` with `only_found`, but
                        only that name is asked for. NULL: it is not known */
    /* Each search also looks at the other ephemeral nodes of the current session whose paths begin
     * with `below`. One that `excludes` names excludes this node, which is not made then:
     * ENODEEXISTS. So the session has one of them, whichever of its processes makes it. `below` and
     * `arg` live until the result. NULL: none excludes it; nor on a server before 3.6, which lists
     * no ephemeral nodes. */
    const char *below;
    bool (*excludes)(void *arg, const char *path);
    void *excludes_arg;
    /* A server that answers with an operation timeout is not asked again once it is proven that it
     * made no node: EOPTIMEOUT. */
    bool once;
    struct create_stake *stake; /* lives until the result; NULL: nobody asks */
};
clave_err clave__client_create_named(clave_async_client *c, const struct client_named_create *n,
                                     clave_result_cb *cb, void *arg);

/* exists, getData or getChildren2 (`op`), for a reader that begins anew after every reconnect: a
 * lost answer is ECONNLOSS at once, and no error is put into clave_async_client_errmsg. `watch` may
 * be NULL. Errors as of clave_async_get. */
clave_err clave__client_read_once(clave_async_client *c, int32_t op, const char *path,
                                  clave_async_watch *watch, clave_result_cb *cb, void *arg);

/* getData of several nodes in one multiRead (3.6), otherwise as clave__client_read_once: _begin, an
 * _add each, _submit of n. Each has an error of its own: while res.err is OK, they are taken out of
 * `r`, at first clave__client_gets_reader(res), into *out and *stat. ETOOBIG: the request or the
 * reply is larger than a frame may be. */
void clave__client_gets_begin(clave_async_client *c);
clave_err clave__client_gets_add(clave_async_client *c, const char *path);
clave_err clave__client_gets_submit(clave_async_client *c, size_t n, clave_result_cb *cb,
                                    void *arg);
struct jreader clave__client_gets_reader(const clave_result *res);
void clave__client_gets_take(struct jreader *r, clave_result *out, clave_stat *stat);

/* Copies an ACL to `to`, the texts after the list; returns the end of the copy. */
size_t clave__acls_size(const clave_acl *acls, size_t n);
char *clave__acls_copy(clave_acl *to, const clave_acl *acls, size_t n);

/* Listeners are called on state changes, in order, before the user's own callback. A listener may
 * unlisten itself or others inside the call. */
struct listener {
    struct list link;
    void (*on_state)(struct listener *l, clave_state state, clave_err why);
};
void clave__client_listen(clave_async_client *c, struct listener *l);
void clave__client_unlisten(struct listener *l);

/* Timers fire inside _tick; see client/timer.h. */
void clave__client_timer_set(clave_async_client *c, struct timer *t, int64_t at);
void clave__client_timer_clear(clave_async_client *c, struct timer *t);

/* How far ahead the hold deadline can be at best, in ms: right after a proof has arrived. */
int64_t clave__client_best_hold(const clave_async_client *c);

/* A call that must not run inside the call that causes it: it runs when the current entry into
 * the client ends, or with the next entry; on a closed client in _free at the latest. */
struct client_task {
    struct list link; /* list_remove cancels it */
    void (*run)(struct client_task *e);
};
void clave__client_later(clave_async_client *c, struct client_task *e);

/* A grant that depends on the session. While there is one, heartbeats are confirmed
 * (they pass the leader: a multi with a check of a held `path`; on a standalone server a
 * plain ping), and the session is LOST at the hold deadline, connected or not. */
struct hold {
    struct list link;
    const char *path; /* of the node, chroot-relative; owned by the holder */
    /* A heartbeat's check found the node gone. */
    void (*on_missing)(struct hold *h);
    /* Called once, when a whole heartbeat interval has passed since the hold began: only then is
     * it worth a watch on its node. _settle_hold calls it as well. */
    void (*on_settled)(struct hold *h);
    bool settled;  /* heartbeat.c writes it */
    int64_t since; /* likewise */
};
void clave__client_hold(clave_async_client *c, struct hold *h);
/* The hold is worth the watch at once. */
void clave__client_settle_hold(struct hold *h);
void clave__client_unhold(clave_async_client *c, struct hold *h);

/* Asks for one confirmed heartbeat now, or right after the one under way. */
void clave__client_confirm(clave_async_client *c);
/* Called whenever clave_async_client_hold_deadline has moved on. The waiter removes itself from the
 * list when it no longer waits. */
struct confirm_waiter {
    struct list link;
    void (*on_confirmed)(struct confirm_waiter *w);
};
void clave__client_await_confirm(clave_async_client *c, struct confirm_waiter *w);

/* The dial that is about to end with _disconnected was refused for good (a retry would be refused
 * too) by one of the host's `addresses` addresses. */
void clave__client_refused(clave_async_client *c, unsigned addresses);
/* No server can be reached until somebody fixes the cause: see clave__hosts_all_refuse. */
bool clave__client_all_refuse(const clave_async_client *c);

#endif
