/* web_internal.h - struct web: what all parts of the engine share. Parts stand on it and on each
 * other, never on web.c, which stands on all of them. */
#ifndef CLAVE_WEB_WEB_INTERNAL_H
#define CLAVE_WEB_WEB_INTERNAL_H

#include "base/list.h"
#include "base/memory.h"
#include "base/rand.h"
#include "client/timer.h"
#include "web/web.h"

struct http_metrics;
struct observe;
struct senders;
struct znode_polls;
struct route_table;
struct server_trend;

/* Whether the directory SESSION_MARKS (session/http_session.h) is there, as far as is known: a
 * create of it was refused (DENIED), or a create in it has found it missing since (back to
 * UNKNOWN). */
enum marks_directory { MARKS_UNKNOWN, MARKS_THERE, MARKS_DENIED };

struct web {
    struct clave_mem mem;
    struct web_options o; /* `hosts` is a copy */
    struct rand_state rand;
    struct timers timers;
    int64_t now; /* the time of the newest call into the engine, or callback of a client */
    struct list exchanges; /* including ended ones that still expect a callback */
    size_t given_up;       /* how many of them have ended and still expect a callback */
    bool closing;
    clave_async_client *own; /* see own_client.c */
    enum marks_directory marks;
    struct timer away;                 /* of own_client.c: no server answers */
    bool is_away;                      /* and that was logged */
    int64_t asked_at;                  /* of own_client.c: the time is being measured; 0: not */
    int64_t latency_ms;                /* of own_client.c: as it was measured last; -1: not */
    struct list rest_sessions;         /* see api/contrib.c */
    struct http_sessions *sessions;    /* see session/http_session.h */
    struct observe *observe;           /* see observe/observe.h */
    struct http_metrics *http_metrics; /* see http/http_metrics.c */
    struct senders *senders;           /* see http/sender.h */
    struct server_trend *figures;      /* see api/server.c */
    struct znode_polls *znode_polls;   /* see api/znodes.c */
    struct list slot_places;           /* see api/slots.c */
    const struct route_table *routes;  /* of all endpoints */
};

static inline void clave__web_timer_set(struct web *w, struct timer *t, int64_t at)
{
    clave__timers_set(&w->timers, t, at);
}

static inline void clave__web_timer_clear(struct web *w, struct timer *t)
{
    clave__timers_clear(&w->timers, t);
}

static inline size_t clave__web_max_body(const struct web *w)
{
    return w->o.max_body ? w->o.max_body : WEB_MAX_BODY;
}

/* Requests were made on this client outside its callbacks. */
static inline void clave__web_flush(struct web *w, clave_async_client *c)
{
    w->o.env->client_flush(w->o.env->arg, c);
}

/* ---- own_client.c: the engine's own ZooKeeper session, for requests that name none. It reads,
 * watches and writes, and never holds anything. One warning says that no server answers, and one
 * that a server answers again. ---- */

clave_err clave__own_client_open(struct web *w);
/* Ends the session; see _is_closed. */
void clave__own_client_close(struct web *w, int64_t now);
/* Sends the servers a small request; latency_ms is how long they took to answer, or -1 while they
 * do not. */
void clave__own_client_measure(struct web *w);
bool clave__own_client_is_closed(const struct web *w);
void clave__own_client_free(struct web *w);

#endif
