/* client_internal.h - what recipes may use of a clave_async_client beyond the public calls. */
#ifndef CLAVE_CLIENT_CLIENT_INTERNAL_H
#define CLAVE_CLIENT_CLIENT_INTERNAL_H

#include "base/list.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/rand.h"
#include "clave/async/client.h"
#include "client/timer.h"

/* An object of the API that is made on a client, from the end of its _new to the end of its _free:
 * it may be freed behind its client, which is CLOSED then and keeps only its memory. On a client
 * that is gone for its user, _unref delivers first what the _free has left to be told. */
void clave__client_ref(clave_async_client *c);
void clave__client_unref(clave_async_client *c);

/* The time of the newest call into the client. */
int64_t clave__client_now(const clave_async_client *c);
const struct clave_mem *clave__client_mem(const clave_async_client *c);
/* clave__options_take of the struct of that name, and clave_async_client_errmsg tells why they are
 * refused. */
clave_err clave__client_take_options(clave_async_client *c, void *dst, size_t dst_size,
                                     const void *src, const char *name);
/* As given in the options. */
struct clave_tls *clave__client_tls(const clave_async_client *c);
const struct log *clave__client_log(const clave_async_client *c);
/* The prefix of protected names, "_c_<uuid>-": another one each time, and another than any that a
 * client with the same seed makes in a session of its own. */
enum { CLAVE_PROTECTED_PREFIX = 3 + CLAVE_UUID_TEXT + 1 };
void clave__client_protect(clave_async_client *c, char out[CLAVE_PROTECTED_PREFIX + 1]);

/* As clave_async_delete_guaranteed; with a czxid, of no other node: not of one that somebody else
 * made under that name while the answer to the delete was lost. */
clave_err clave__client_delete_node(clave_async_client *c, const char *path, int64_t czxid,
                                    clave_result_cb *cb, void *arg);

/* State changes, in order, before the user's own callback. A listener may unlisten
 * itself or others inside the call. */
struct listener {
    struct list link;
    void (*on_state)(struct listener *l, clave_state state, clave_err why);
};
void clave__client_listen(clave_async_client *c, struct listener *l);
void clave__client_unlisten(struct listener *l);

/* Timers fire inside _tick; see client/timer.h. */
void clave__client_timer_set(clave_async_client *c, struct timer *t, int64_t at);
void clave__client_timer_clear(clave_async_client *c, struct timer *t);

/* How far ahead the hold deadline is at best, ms: by a proof that has just come. */
int64_t clave__client_best_hold(const clave_async_client *c);

/* A call that is due, but not inside the one that causes it: it is made when the entry into
 * the client that is under way ends, or with the next; a closed client's at last in _free. */
struct client_task {
    struct list link; /* list_remove: it is due no more */
    void (*run)(struct client_task *e);
};
void clave__client_later(clave_async_client *c, struct client_task *e);

/* A grant that depends on the session. While there is one, heartbeats are confirmed ones
 * (they pass the leader: a multi with a check of a held `path`; a plain ping on a
 * standalone server), and the session is LOST at the hold deadline, connected or not. */
struct hold {
    struct list link;
    const char *path; /* of the node, chroot-relative; owned by the holder */
    /* A heartbeat's check found the node gone. */
    void (*on_missing)(struct hold *h);
    /* Once: a whole heartbeat interval has passed since the hold began, which makes it worth
     * a watch on its node. */
    void (*on_settled)(struct hold *h);
    bool settled;
    int64_t since; /* set by _hold */
};
void clave__client_hold(clave_async_client *c, struct hold *h);
void clave__client_unhold(clave_async_client *c, struct hold *h);

/* Asks for one confirmed heartbeat now, or behind the one that is under way. */
void clave__client_confirm(clave_async_client *c);
/* Called whenever clave_async_client_hold_deadline has moved on; it leaves the list by itself. */
struct confirm_waiter {
    struct list link;
    void (*on_confirmed)(struct confirm_waiter *w);
};
void clave__client_await_confirm(clave_async_client *c, struct confirm_waiter *w);

/* Sets the text of clave_async_client_errmsg. */
__attribute__((format(printf, 2, 3))) void clave__client_fault(clave_async_client *c,
                                                               const char *fmt, ...);
/* The dial that is about to end with _disconnected was refused, and would be again, by one of so
 * many addresses of the host. */
void clave__client_refused(clave_async_client *c, unsigned addresses);
/* Nothing can be reached until somebody mends it: see clave__hosts_all_refuse. */
bool clave__client_all_refuse(const clave_async_client *c);

#endif
