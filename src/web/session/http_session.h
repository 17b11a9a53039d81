/* http_session.h - one HTTP session: one ZooKeeper session, held for a client that only sends
 * requests now and then. The folder:
 *
 *   http_session.c          made, attached to, silent
 *   http_session_secret.c   the secret that proves it
 *   http_session_confirm.c  a heartbeat that was confirmed, for all that ask
 *   http_session_end.c      ended, and remembered
 *   validity.h              what its client may rely on
 *   claim.c                 what it holds or waits for; kinds/: on which recipe
 *   claim_table.c           all of a session's claims
 *   claim_nodes.c           their nodes, and the marks of those that were given back
 *   claim_elsewhere.c       those that another gate has made or given back
 *   claim_events.c          told to its streams
 *
 * Three times, in this order: the client's deadline (it counts from when it sent its newest
 * request; see validity.h); the gate's end of a session that it hears nothing of, SILENCE later at
 * the earliest; the server's expiry when the gate is gone as well. A gate never keeps a session for
 * a client that is silent, so it is no worse than a ZooKeeper client that dies.
 *
 *     OPENING ──> LIVE ──> CLOSING
 *        └─────────┴──────────┴────> ENDED
 *
 * The ZooKeeper session's end is this one's: it never goes on with another. ENDED is kept for one
 * more timeout, so that its client hears the cause, if it has the secret; at most so many as may be
 * alive. It counts for its sender while it has a connection to the servers.
 *
 * Another gate may have attached to it meanwhile. So a connection that was lost is made again only
 * while a request of its client is here. If none was, and something was under way on that
 * connection, it is not tried again: what this gate would make or delete may be held by its client
 * at the other one. It forgets the session then, as a gate that was killed. What ends a silent
 * session is refused by the servers if the session has moved (deletes of its nodes), and never
 * closeSession.
 *
 * Calls are those of struct web: one thread, `web->now` is the time. What must not be freed yet is
 * never freed inside a callback, only by the timer. */
#ifndef CLAVE_WEB_SESSION_HTTP_SESSION_H
#define CLAVE_WEB_SESSION_HTTP_SESSION_H

#include "base/list.h"
#include "base/map.h"
#include "client/timer.h"
#include "web/session/http_session_secret.h"
#include "web/web_internal.h"

struct http_session;
struct sender;

struct http_sessions {
    struct web *web;
    struct map by_id; /* those with a ZooKeeper session */
    struct list all;
    struct list ended; /* those that are kept for their clients to hear the cause, oldest first */
    size_t nended;
    uint8_t key[SEAL_KEY];
    /* All nodes of a session, as of a commit on its present connection: takes up those of claims
     * that this gate has not made (claim_elsewhere.c). */
    void (*listed)(struct http_session *s, const clave_result *res);
};

enum http_session_state {
    HTTP_SESSION_OPENING,
    HTTP_SESSION_LIVE,
    HTTP_SESSION_CLOSING, /* its client has asked for it */
    HTTP_SESSION_ENDED,
};

/* Something of the session, a claim: ends with it at the latest, and is freed with it. */
struct session_part {
    struct list link;
    struct http_session *s;
    int64_t token;    /* 0: it holds nothing */
    const char *node; /* that it holds; valid while token is not 0 */
    /* Further nodes, without which it does not hold; NULL after the last of them. `more` NULL:
     * there are none. */
    const char *(*more)(const struct session_part *p, size_t i);
    /* The session has ended, or its client is silent: gives back what can be given back. */
    void (*ended)(struct session_part *p, clave_err why);
    /* A proof found the node gone. */
    void (*missing)(struct session_part *p);
    /* The session may have been attached to elsewhere. */
    void (*elsewhere)(struct session_part *p);
    /* Its node is being made or deleted, and nobody knows whether that was done. */
    bool (*is_open)(struct session_part *p);
    void (*free)(struct session_part *p);
};

/* A node that a proof checks. */
struct session_check {
    int64_t token; /* of its part; 0: there is none, and the root is checked */
    size_t nth;    /* of the part's nodes */
};

/* Somebody who waits for the session: `done` runs at most once, perhaps at once. */
struct session_wait {
    struct list link;
    bool ends;         /* it waits for the end */
    unsigned attempts; /* proofs of http_session_confirm.c that it has seen fail */
    void (*done)(struct session_wait *w, clave_err err);
};

struct http_session {
    struct http_sessions *all;
    struct list link, in_ended;
    struct sender *sender; /* that it counts for while it has a client */
    struct map_node by_id;
    enum http_session_state state;
    bool in_map;
    int64_t id;
    uint8_t passwd[16];
    int32_t ttl_ms; /* asked for; then as the server grants it */
    char *name;
    char *auths; /* its identities, as in struct sealed_session; NULL: none */
    size_t nauths;
    clave_async_client *client; /* NULL: gone */
    bool known;       /* its client has the secret: it may rely on it, and go on elsewhere */
    bool resumed;     /* made by another gate, or by this one before it was restarted */
    bool attached;    /* connected, as far as we know */
    bool elsewhere;   /* may have been attached to elsewhere: its nodes are looked for */
    unsigned present; /* requests of its client that are here now */
    int64_t heard;    /* when the newest of them arrived or ended */
    int64_t made;
    struct timer timer; /* OPENING: gives up. LIVE: silence. ENDED: forgets it */
    struct list waits;
    struct session_proof *proof;   /* under way, for those of `proving`; NULL: none is */
    struct session_check refused;  /* the next transaction of that proof begins after this check */
    struct list proving, unproven; /* session_wait; unproven: those who wait for the next one */
    struct list knowing;           /* proven, while claims of other gates are taken up */
    struct list parts;
    struct list polls; /* claim_poll: they wait for news of any claim */
    /* Of claim_elsewhere.c. */
    uint64_t looked_on; /* the connection on which all its nodes were listed; 0: none */
    bool blind;         /* the servers are older than 3.6, and list none */
    unsigned taking;    /* nodes that are being read */
    struct list marks;  /* claims that were given back, the oldest first */
    size_t nmarks;
    clave_err why;   /* ENDED. OK: closed by its client */
    char fault[256]; /* and what the ZooKeeper client said of it */
};

/* Makes w->sessions; `key` as session_key of struct web_options. ENOMEM. */
clave_err clave__http_sessions_new(struct web *w, const uint8_t *key);
/* The gate stops. Lets go of those on which a client may rely: to the servers it is as if the gate
 * had died. Ends all others there, as far as they can be reached. */
void clave__http_sessions_close(struct http_sessions *ss);
/* Every one has ended. */
bool clave__http_sessions_are_closed(struct http_sessions *ss);
/* Without a message to the servers. No request is present any more. NULL is ignored. */
void clave__http_sessions_free(struct web *w);

/* Clocks of clients may be slower than ours by less than 1 in so many. */
enum { SESSION_CLOCKS = 8 };

struct session_terms {
    const char *name; /* may be NULL */
    int32_t ttl_ms;
    const char *const *auths; /* "digest:user:password" */
    size_t nauths;
    struct sender *sender; /* who makes it, and has room for it */
};
/* Makes one; its client is present until _leave. EINVAL: an identity is not of that form, or there
 * are more than 16; ETOOBIG: they are longer than SEAL_AUTHS together, each with one byte more.
 * Others as clave_async_client_new. */
clave_err clave__http_session_open(struct http_sessions *ss, const struct session_terms *t,
                                   struct http_session **out);
/* The session that a secret proves, attached to if it is not here, for `of` (NULL: no memory for
 * that); its client is present until _leave. EAUTHFAILED: no secret of this key. Others as
 * clave_async_client_new. */
clave_err clave__http_session_find(struct http_sessions *ss, const char *secret, struct sender *of,
                                   struct http_session **out);
/* It need not be attached to. */
bool clave__http_session_is_here(const struct http_sessions *ss, const char *secret);
/* Of a session that is or was LIVE here, by its public id. NULL: there is none. */
struct http_session *clave__http_session_by_id(const struct http_sessions *ss, int64_t id);

/* `done` when it is no longer OPENING: OK: LIVE. Otherwise why it has ended. */
void clave__http_session_await(struct http_session *s, struct session_wait *w);
/* Proves that the session lived, and that all that it holds existed, after this call: a transaction
 * that changes nothing passes the leader. What is found gone ends. OK: proven; the hold deadline
 * has moved on. Else why the session has ended; EOPTIMEOUT: it cannot be proven at present;
 * ETOOBIG: not in one transaction; ENOMEM. */
void clave__http_session_prove(struct http_session *s, struct session_wait *w);
/* There may be claims of the session that another gate has made or ended since this one has last
 * listed them: the next proof does that, and its `done` comes when they are known. */
bool clave__http_session_must_look(const struct http_session *s);
/* Ends it, with all it has in one transaction. `done` (`w` may be NULL) gets OK when the server has
 * done so, or must have expired it. */
void clave__http_session_close(struct http_session *s, struct session_wait *w);
/* It no longer waits. Harmless when it does not. */
void clave__session_wait_cancel(struct session_wait *w);

/* What proves it, for its client. */
void clave__http_session_secret(struct http_session *s, char out[SEAL_TEXT + 1]);

/* So long a session is kept after its client was heard: its timeout, which is what the client was
 * promised at most, and a part of it more for a clock that is slower than ours. */
int64_t clave__http_session_silent_at(const struct http_session *s);

static inline bool clave__http_session_is_live(const struct http_session *s)
{
    return s->state == HTTP_SESSION_LIVE;
}

/* Another gate may attach to it, and give back what it holds: what is remembered here is no proof
 * then. */
static inline bool clave__http_session_is_shared(const struct http_session *s)
{
    return s->known && s->all->web->o.key_is_shared;
}

/* Requests were made on its client outside of the client's callbacks. */
static inline void clave__http_session_flush(struct http_session *s)
{
    if (s->client)
        clave__web_flush(s->all->web, s->client);
}

/* A request of its client has arrived; was answered, or its client hung up. */
void clave__http_session_enter(struct http_session *s);
void clave__http_session_leave(struct http_session *s);

/* ---- http_session_end.c, for http_session.c -------------------------------------------------- */

/* The only way to ENDED. `client_too`: lets go of the ZooKeeper client as well. */
void clave__http_session_end(struct http_session *s, clave_err why, bool client_too);
/* The ZooKeeper session is left as it is. */
void clave__http_session_let_go(struct http_session *s);
/* All that another gate has made is taken up: what waited for that is told. */
void clave__http_session_known(struct http_session *s);
/* What waits for it, or for a proof, is told. */
void clave__http_session_tell(struct http_session *s, clave_err err);
/* ENDED, after each change: when is it forgotten? */
void clave__http_session_keep_ended(struct http_session *s);
/* That is due: frees it, once the servers have been told. */
void clave__http_session_forget(struct http_session *s, int64_t now);
void clave__http_session_free(struct http_session *s);

#endif
