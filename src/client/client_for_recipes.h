/* client_for_recipes.h - what recipes may use of a clave_async_client beyond the public calls:
 * deferred tasks, and the holds that keep heartbeats confirmed. What recipes only read, and
 * listeners and timers, are in client_base.h. */
#ifndef CLAVE_CLIENT_CLIENT_FOR_RECIPES_H
#define CLAVE_CLIENT_CLIENT_FOR_RECIPES_H

#include "base/memory.h"
#include "base/rand.h"
#include "client/client_for_gate.h"
#include "client/errmsg.h"

/* Each object of the API that is made on a client holds a reference from the end of its _new to the
 * end of its _free. So it may outlive its client, of which only the memory then remains, in state
 * CLOSED. On a client that its user has freed, _unref first runs the callbacks that the object's
 * _free has left pending. */
void clave__client_ref(clave_async_client *c);
void clave__client_unref(clave_async_client *c);

/* The error for an acquire that has not succeeded in time. EBUSY claims that somebody was before
 * us, so it needs an answer, on the present connection, that showed somebody: `seen_on` is the
 * connection of the newest such answer (clave_async_client_connection; 0: there was none).
 * Otherwise nobody knows who holds the lock, and the error is EUNREACHABLE: there is no connection,
 * or it is a new one on which the place has not been looked at again, or the server (perhaps a
 * read-only one) has not answered. */
clave_err clave__client_not_in_time(const clave_async_client *c, uint64_t seen_on);
/* As clave__options_take, for the struct called `name`. If the options are refused,
 * clave_async_client_errmsg says why. */
clave_err clave__client_take_options(clave_async_client *c, void *dst, size_t dst_size,
                                     const void *src, const char *name);
/* Writes the prefix of a protected name, "_c_<uuid>-". It is new each time, and different from
 * those that a client with the same seed makes in its own session. */
enum { CLAVE_PROTECTED_PREFIX = 3 + CLAVE_UUID_TEXT + 1 };
void clave__client_protect(clave_async_client *c, char out[CLAVE_PROTECTED_PREFIX + 1]);

/* As clave_async_delete_guaranteed, but with a czxid only the node with that czxid is deleted, not
 * one that somebody else created under the same name while the answer to the delete was lost. */
clave_err clave__client_delete_node(clave_async_client *c, const char *path, int64_t czxid,
                                    clave_result_cb *cb, void *arg);

/* What a caller and its create tell each other while the create is under way. */
struct create_stake {
    bool unwanted; /* set by the caller: if it is proven that there is no node, do not create one:
                      ENONODE */
    bool sent; /* set by the create: it was sent, so the node may be its own; otherwise the node was
                  found */
};

/* As clave_async_create of a protected node, but the caller may choose the UUID. */
struct client_named_create {
    const char *path;
    const void *data;
    size_t len;
    const clave_create_options *o;
    const char *uuid; /* in canonical lower-case text; NULL: the client draws it */
    /* Another process that had the current session may already have made a node with this UUID, so
     * look for that first. If it exists it is the result, without names. */
    bool search;
    bool only_found; /* with `search`: never create the node; ENONODE if there is none */
    const char *at;  /* the name of that node, if it is known: as `search` with `only_found`, but
                        only this name is looked up. NULL: it is unknown */
    /* Each search also looks at the other ephemeral nodes of the current session whose paths begin
     * with `below`. If `excludes` returns true for one of them, our node is not created:
     * ENODEEXISTS. So a session never has more than one of them, whichever of its processes creates
     * it. `below` and `arg` must live until the result. NULL: nothing is excluded; the same goes
     * for servers before 3.6, which cannot list ephemeral nodes. */
    const char *below;
    bool (*excludes)(void *arg, const char *path);
    void *excludes_arg;
    /* If the server answers with an operation timeout, do not ask it again once it is proven that
     * it created no node: EOPTIMEOUT. */
    bool once;
    struct create_stake *stake; /* must live until the result; may be NULL */
};
clave_err clave__client_create_named(clave_async_client *c, const struct client_named_create *n,
                                     clave_result_cb *cb, void *arg);

/* exists, getData or getChildren2 (`op`), for a reader that starts over after every reconnect: a
 * lost answer is ECONNLOSS at once, and errors do not set clave_async_client_errmsg. `watch` may be
 * NULL. Errors as clave_async_get. */
clave_err clave__client_read_once(clave_async_client *c, int32_t op, const char *path,
                                  clave_async_watch *watch, clave_result_cb *cb, void *arg);

/* getData of several nodes in a single multiRead (3.6), otherwise like clave__client_read_once:
 * call _begin, then _add for each node, then _submit with their number n. While res.err is OK, take
 * the n results, each of which has its own error, with _take out of the reader that _reader
 * returned into *out and *stat. ETOOBIG: the request or the reply is larger than a frame may be. */
void clave__client_gets_begin(clave_async_client *c);
clave_err clave__client_gets_add(clave_async_client *c, const char *path);
clave_err clave__client_gets_submit(clave_async_client *c, size_t n, clave_result_cb *cb,
                                    void *arg);
struct jreader clave__client_gets_reader(const clave_result *res);
void clave__client_gets_take(struct jreader *r, clave_result *out, clave_stat *stat);

/* Copies an ACL to `to`, with its texts after the list; returns the end of the copy. */
size_t clave__acls_size(const clave_acl *acls, size_t n);
char *clave__acls_copy(clave_acl *to, const clave_acl *acls, size_t n);

/* How far ahead the hold deadline is at best, in ms: right after a proof has arrived. */
int64_t clave__client_best_hold(const clave_async_client *c);
/* How long before the end of its session a hold ends, in ms. */
int64_t clave__client_hold_margin(const clave_async_client *c);

/* True if connected, and no request, create or guaranteed delete is under way. */
bool clave__client_is_quiet(const clave_async_client *c);

/* A call that must not run inside the call that causes it. It runs when the current entry into the
 * client ends, or with the next entry; on a closed client, in _free at the latest. */
struct client_task {
    struct list link; /* to cancel it, use list_remove */
    void (*run)(struct client_task *e);
};
void clave__client_later(clave_async_client *c, struct client_task *e);

/* A grant that depends on the session. While there is one, heartbeats are confirmed (they pass the
 * leader: a multi that checks a held `path`, or a plain ping on a standalone server), and the
 * session is LOST at the hold deadline, connected or not. */
struct hold {
    struct list link;
    const char *path; /* of the node, relative to the chroot; belongs to the holder */
    /* Called when the check in a heartbeat found the node gone. */
    void (*on_missing)(struct hold *h);
    /* Called once, when the hold has lasted for a whole heartbeat interval, since only then is a
     * watch on its node worth while. Also called by _settle_hold. */
    void (*on_settled)(struct hold *h);
    bool settled;  /* written by heartbeat.c */
    int64_t since; /* written by heartbeat.c */
};
void clave__client_hold(clave_async_client *c, struct hold *h);
/* Makes the hold worth a watch at once. */
void clave__client_settle_hold(struct hold *h);
void clave__client_unhold(clave_async_client *c, struct hold *h);

/* Asks for a confirmed heartbeat, now or right after the one under way. */
void clave__client_confirm(clave_async_client *c);
/* Called whenever clave_async_client_hold_deadline has moved. The waiter removes itself from the
 * list when it is done waiting. */
struct confirm_waiter {
    struct list link;
    void (*on_confirmed)(struct confirm_waiter *w);
};
void clave__client_await_confirm(clave_async_client *c, struct confirm_waiter *w);

/* The dial that is about to end with _disconnected was refused for good by one of the host's
 * `addresses` addresses: a retry would be refused too. */
void clave__client_refused(clave_async_client *c, unsigned addresses);
/* True if no server can be reached until somebody removes the cause: see
 * clave__hosts_all_refuse. */
bool clave__client_all_refuse(const clave_async_client *c);

#endif
