/* http_session.h - one HTTP session: one ZooKeeper session, held for a client that only sends
 * requests now and then. The folder:
 *
 *   http_session.c    a session: made, attached to, proved, silent, ended; and its secret
 *   claim.c           what a session holds or waits for: the state machine of one claim
 *   claim_kinds.c     the recipe that each kind of claim stands on: a table
 *   session_claims.c  all claims of a session, also those that another gate made or gave back
 *
 * Three times matter, in this order: the client's deadline (the client counts it from when it sent
 * its newest request; see "validity" below); the gate's end of a session that it hears nothing of,
 * which comes later than that deadline; the server's expiry when the gate is gone as well. A gate
 * never keeps a session for a client that is silent, so it is no worse than a ZooKeeper client that
 * dies.
 *
 *     OPENING ──> LIVE ──> CLOSING
 *        └─────────┴──────────┴────> ENDED
 *
 * The end of the ZooKeeper session is the end of this one, which never goes on with another. ENDED
 * is kept for one more timeout, so that a client with the secret hears the cause; at most as many
 * as may be alive. A session counts for its sender while it has a connection to the servers.
 *
 * Another gate may have attached to the session meanwhile. So a connection that was lost is made
 * again only while a request of the session's client is here, and after a pause: another request
 * may be at the other gate, and if both gates took the session back at once, neither would have it
 * for as long as a proof takes. If no request was here, and something was under way on that
 * connection, it is not tried again: the client may hold at the other gate what this gate would
 * make or delete. This gate forgets the session then, as a gate that was killed would. What ends a
 * silent session are deletes of its nodes, which the servers refuse if the session has moved, and
 * never closeSession.
 *
 * Calls are those of struct web: one thread, `web->now` is the time. What must not be freed yet is
 * never freed inside a callback, only by the timer. */
#ifndef CLAVE_WEB_SESSION_HTTP_SESSION_H
#define CLAVE_WEB_SESSION_HTTP_SESSION_H

#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/rand.h"
#include "client/timer.h"
#include "web/web_internal.h"

/* ==== its secret ============================================================================== */

/* What proves a session: the ZooKeeper session's id, password and timeout, and the identities that
 * its client gave, as a text that only gates with the same key can make or read. So any of them can
 * attach to the session, and none has to store anything.
 *
 * It is a deterministic authenticated encryption (as SIV, RFC 5297: a MAC of the plain text is the
 * tag and starts the key stream) with HMAC-SHA-1 as the pseudo-random function: one session has one
 * secret on every gate. Nobody learns the password from it, and a changed text is no secret. */

enum {
    SEAL_KEY = 32,
    SEAL_TAG = 16,
    SEAL_AUTHS = 1024, /* most bytes of identities */
    SEAL_PLAIN = 28,   /* without any */
    SEAL_MOST = SEAL_TAG + SEAL_PLAIN + SEAL_AUTHS,
    SEAL_TEXT = (SEAL_MOST * 8 + 5) / 6, /* most characters, without the NUL */
};

struct sealed_session {
    int64_t id;
    uint8_t passwd[16];
    int32_t ttl_ms;
    size_t nauths;          /* bytes of `auths` */
    char auths[SEAL_AUTHS]; /* "digest:user:password", each with its NUL */
};

/* A session without identities has a text of 59 characters. */
void clave__seal(const uint8_t key[SEAL_KEY], const struct sealed_session *s,
                 char out[SEAL_TEXT + 1]);
/* false: no gate with this key has made it. */
bool clave__unseal(const uint8_t key[SEAL_KEY], const char *text, struct sealed_session *out);

/* Makes of a UUID that was drawn another one, which only who has the key can tell from it. */
void clave__seal_uuid(const uint8_t key[SEAL_KEY], char uuid[CLAVE_UUID_TEXT + 1]);

/* ==== a session =============================================================================== */

struct http_session;
struct sender;

struct http_sessions {
    struct web *web;
    struct map by_id; /* those with a ZooKeeper session */
    struct list all;
    struct list ended; /* those that are kept for their clients to hear the cause, oldest first */
    size_t nended;
    uint8_t key[SEAL_KEY];
    /* All nodes of a session, as of a commit on its present connection, or an error if the servers
     * list none: takes up those of claims that this gate has not made (session_claims.c). */
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
    unsigned attempts; /* proofs that it has seen fail */
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
    bool known;             /* its client has the secret: it may rely on it, and go on elsewhere */
    bool resumed;           /* made by another gate, or by this one before it was restarted */
    bool attached;          /* connected, as far as we know */
    bool elsewhere;         /* may have been attached to elsewhere: its nodes are looked for */
    unsigned present;       /* requests of its client that are here now */
    struct timer pause;     /* before it is attached to again */
    unsigned interruptions; /* connections lost before the proof that was asked for on them */
    int64_t proof_ms;       /* how long the newest proof took */
    int64_t heard;          /* when the newest of them arrived or ended */
    int64_t made;
    struct timer timer; /* OPENING: gives up. LIVE: silence. ENDED: forgets it */
    struct list waits;
    struct session_proof *proof;   /* under way, for those of `proving`; NULL: none is */
    struct session_check refused;  /* the next transaction of that proof begins after this check */
    struct list proving, unproven; /* session_wait; unproven: those who wait for the next one */
    struct list knowing;           /* proven, while claims of other gates are taken up */
    uint64_t asked;                /* how many proofs were begun: the number of the newest */
    uint64_t proven; /* that of the newest which succeeded on the present connection; 0: none */
    struct list parts;
    /* Of session_claims.c. */
    uint64_t looked_on; /* the connection on which all its nodes were listed; 0: none */
    struct list polls;  /* claim_poll: they wait for news of any claim */
    bool blind;         /* the servers are older than 3.6, and list none */
    bool left_behind;   /* a node was left to another gate, since its sender may not lock there */
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

/* Clocks of clients may be slower than ours by less than 1 in SESSION_CLOCKS. */
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
/* The session that a secret has proved, attached to if it is not here, for `of` (NULL: no memory
 * for that); its client is present until _leave. Errors as clave_async_client_new. */
clave_err clave__http_session_find(struct http_sessions *ss, const struct sealed_session *sealed,
                                   struct sender *of, struct http_session **out);
/* Of a session that is or was LIVE here, by its public id. NULL: there is none. */
struct http_session *clave__http_session_by_id(const struct http_sessions *ss, int64_t id);

/* `done` when it is no longer OPENING: OK: LIVE. Otherwise why it has ended. */
void clave__http_session_await(struct http_session *s, struct session_wait *w);
/* Proves that the session lived, and that all that it holds existed, after this call: a transaction
 * that changes nothing passes the leader. What is found gone ends. OK: proven; the hold deadline
 * has moved on. Else why the session has ended; EOPTIMEOUT: it cannot be proven at present;
 * ETOOBIG: not in one transaction; ENOMEM. */
void clave__http_session_prove(struct http_session *s, struct session_wait *w);
/* The same of a moment after `since`, a number of proofs: one that is under way may be enough. */
void clave__http_session_prove_since(struct http_session *s, struct session_wait *w,
                                     uint64_t since);
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

/* What is remembered here is as of a moment after `since`, a number of proofs that were begun: no
 * other gate can have known better by then. */
static inline bool clave__http_session_is_proven(const struct http_session *s, uint64_t since)
{
    return !clave__http_session_is_shared(s) || s->proven > since;
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

/* The only way to ENDED. `client_too`: lets go of the ZooKeeper client as well. */
void clave__http_session_end(struct http_session *s, clave_err why, bool client_too);
/* All nodes that another gate made have been taken up: tells those who waited for that. */
void clave__http_session_known(struct http_session *s);

/* ==== marks of claims that were given back ==================================================== */

/* A mark is an ephemeral node of the session, made before the node of a claim is deleted. While the
 * mark is there, no older request makes that claim anew, as one could that reaches a gate late.
 * Marks are kept for MARK_MS at least, which is longer than anybody waits for an answer, and the
 * oldest go when there are many. */

#define SESSION_MARKS "/clave-gate" /* the directory, which the gate's own client makes */

/* The path is that of a mark; *id: of which claim. */
bool clave__http_session_is_mark(const char *path, const char **id);
/* The claim of this id was given back: as far as this gate knows. */
bool clave__http_session_has_mark(const struct http_session *s, const char *id);
/* And no gate makes it anew: the mark is at the servers, or no other gate can have the session. */
bool clave__http_session_mark_is_certain(const struct http_session *s, const char *id);
/* The servers have the mark, if there is one here. */
void clave__http_session_mark_stands(struct http_session *s, const char *id);
/* It is given back. Notes it here: ENOMEM; and at the servers, for other gates, as of
 * clave_async_create: ENODEEXISTS when it was marked before. */
clave_err clave__http_session_mark(struct http_session *s, const char *id);
clave_err clave__http_session_send_mark(struct http_session *s, const char *id, clave_result_cb *cb,
                                        void *arg);
void clave__http_session_trim_marks(struct http_session *s);

/* ==== validity ================================================================================ */

/* For how long a client may rely on what it holds, told so that it can never be told
 * too much. The client counts it from the moment when it sent its request, on its own clock: that
 * is before the request's arrival, whatever the delay, so its deadline is never late. Only the
 * rates of the clocks differ. For what comes after the arrival of the request at the servers, the
 * margin of the hold deadline covers that; for the time before, which is long when the request
 * waited for its turn, a part of it is taken off.
 *
 * `arrived` must be read from the clock after the request has been received. */

/* Clocks that are compared differ in rate by less than 1 in VALIDITY_RATE. */
enum { VALIDITY_RATE = 64 };

struct validity {
    int64_t arrived;       /* the request that is answered */
    int64_t granted;       /* when the client's claim became held */
    int64_t hold_deadline; /* until when nobody else can own it; INT64_MIN: nothing is known */
    int64_t ttl_ms;        /* so long the gate keeps a session that it hears nothing of */
    int64_t now;
};

/* In ms after the request was sent; 0: nothing is certain any more. */
int64_t clave__validity_ms(const struct validity *v);

#endif
