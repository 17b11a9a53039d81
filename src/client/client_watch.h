/* client_watch.h - the client's registry of watches, by path.
 *
 *   IDLE ──▶ ASKED (a request carries it) ──▶ ARMED ──▶ IDLE (its event, or the end of
 *     ▲_________│ (the request failed)                       the session)
 *
 * A persistent watch stays ARMED after an event. For each event, recursive watches are looked up at
 * its path and at all its ancestors. */
#ifndef CLAVE_CLIENT_CLIENT_WATCH_H
#define CLAVE_CLIENT_CLIENT_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "base/map.h"
#include "clave/async/client.h"
#include "wire/record.h"

struct request;

enum watch_phase { WATCH_IDLE, WATCH_ASKED, WATCH_ARMED };
/* The server has one table for the first two kinds, but setWatches lists them separately. The order
 * is that of the lists in setWatches2. */
enum watch_kind { WATCH_DATA, WATCH_EXIST, WATCH_CHILD, WATCH_PERSISTENT, WATCH_RECURSIVE };
enum { WATCH_KINDS = WATCH_RECURSIVE + 1 };

struct clave_async_watch {
    struct map_node node; /* by path; for ASKED and ARMED */
    struct list
        link; /* ARMED: in armed or owed; while its event is pending: in a list of pending ones */
    clave_async_client *client;
    clave_watch_cb *cb;
    void *arg;
    enum watch_phase phase;
    enum watch_kind kind;
    struct request *request; /* for ASKED */
    char *path;              /* as the caller gave it */
    size_t path_cap;
};

struct watches {
    struct map by_path;
    struct list armed;              /* known to the server of this connection */
    struct list owed;               /* still to be sent to it with setWatches */
    struct list owed_persistent;    /* and then with setWatches2, which not every server knows */
    struct list firing;             /* the watches that the present event is for */
    int64_t owed_since;             /* a zxid: the server reports what happened after it */
    unsigned unanswered;            /* how many setWatches of this connection have no answer yet */
    unsigned unanswered_persistent; /* how many of these, the last ones, are setWatches2 */
    size_t recursive;               /* how many recursive watches are not IDLE */
    uint64_t events;                /* received so far */
};

clave_err clave__client_watches_init(struct watches *w, const struct clave_mem *mem, uint64_t seed);
void clave__client_watches_fini(struct watches *w);

/* Call it before a request that sets the watch; makes room for the path. EINVAL: the watch is not
 * idle, or its event is pending. ENOMEM. */
clave_err clave__client_watch_prepare(clave_async_watch *w, const char *path, enum watch_kind kind);
void clave__client_watch_asked(clave_async_watch *w, struct request *r);
/* The request was answered: the watch is now armed, or idle again. Returns true if that has added a
 * request behind the unsent ones, which clave__pipeline_fill has to send. */
bool clave__client_watch_answered(struct request *r, clave_err err);
/* Makes the watch idle. Returns true in the same case. */
bool clave__client_watch_disarm(clave_async_watch *w);
/* Handles an event from the server. ENOMEM: no callback has run. */
clave_err clave__client_watch_event(clave_async_client *c, const struct wire_event *ev);

/* There is a new connection: every armed watch is owed again. */
void clave__client_watches_attached(clave_async_client *c);
/* Appends a setWatches or setWatches2 to the link's output. Also returns CLAVE_OK if nothing is
 * owed. */
clave_err clave__client_watches_fill(clave_async_client *c);
/* A setWatches or setWatches2 was answered; *persistent tells whether it was a setWatches2. Returns
 * false if none was outstanding. */
bool clave__client_watches_answered(clave_async_client *c, bool *persistent);
/* The session has ended: every watch becomes idle and will get its CLAVE_EVENT_LOST.
 * `persistent_only`: the server does not support persistent watches, so the same happens to those
 * only. */
void clave__client_watches_lose(clave_async_client *c, bool persistent_only);
/* Runs the callback of one watch that waits for CLAVE_EVENT_LOST. Returns false if there is
 * none. */
bool clave__client_watches_deliver_lost(clave_async_client *c);

#endif
