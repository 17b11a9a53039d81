/* http_session.h - one HTTP session: one ZooKeeper session, held for a client that only sends
 * requests now and then. The folder:
 *
 *   http_session.c    a session: made, attached to, proved, silent, ended; and its secret
 *   claim.c           what a session holds or waits for: the state machine of one claim
 *   claim_kinds.c     the recipe that each kind of claim stands on: a table
 *   session_claims.c  all claims of a session, also those that another gate made or gave back
 *
 * Three times matter, in this order: the client's deadline, which the client counts from when it
 * sent its newest request (see "validity" below); the time at which the gate ends the session of a
 * silent client, which comes later than that deadline; and the time at which the servers expire the
 * session if the gate is gone as well. A gate does not keep a session for a client that stays
 * silent, so it is no worse than a ZooKeeper client that dies.
 *
 *     OPENING ──> LIVE ──> CLOSING
 *        └─────────┴──────────┴────> ENDED
 *
 * An HTTP session ends with its ZooKeeper session and never goes on with another one. An ENDED
 * session is kept for one more timeout, so that a client with the secret can learn the cause; no
 * more ended sessions are kept than sessions may be alive. A session counts towards the share of
 * its sender while it has a connection to the servers.
 *
 * Another gate may have attached to the session meanwhile. So a connection that was lost is made
 * again only while a request of the session's client is here, and after a pause: another request
 * may be at the other gate, and if both gates took the session back at once, neither would have it
 * for as long as a proof takes. If no request was here and something was under way on that
 * connection, this gate does not attach again, because the client may hold at the other gate what
 * this gate would make or delete. It forgets the session instead, as if it had been killed. A
 * silent session is ended by deleting its nodes, which the servers refuse if the session has moved,
 * and never by closeSession.
 *
 * The rules of struct web apply: one thread calls, and `web->now` is the time. A session to which
 * something may still refer is never freed inside a callback, only by its timer. */
#ifndef CLAVE_WEB_SESSION_HTTP_SESSION_H
#define CLAVE_WEB_SESSION_HTTP_SESSION_H

#include <stdint.h>

#include "base/hash/sha1.h"
#include "base/list.h"
#include "base/map.h"
#include "base/rand.h"
#include "client/timer.h"
#include "web/web_internal.h"

/* ==== its secret ============================================================================== */

/* What proves a session: the ZooKeeper session's id, password and timeout, and the identities that
 * its client gave, as a text that only gates with the same key can make or read. Any of these gates
 * can therefore attach to the session, and none has to store anything.
 *
 * It is a deterministic authenticated encryption (as SIV, RFC 5297: a MAC of the plain text is the
 * tag and starts the key stream) with HMAC-SHA-1 as the pseudo-random function: one session has one
 * secret on every gate. Nobody can learn the password from the text, and a changed text is
 * rejected. */

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
void clave__seal(const struct hmac_key *key, const struct sealed_session *s,
                 char out[SEAL_TEXT + 1]);
/* Returns false if no gate with this key has made the text. */
bool clave__unseal(const struct hmac_key *key, const char *text, struct sealed_session *out);

/* Replaces a random UUID by another one, which only a holder of the key can derive from it. */
void clave__seal_uuid(const struct hmac_key *key, char uuid[CLAVE_UUID_TEXT + 1]);

/* ==== a session =============================================================================== */

struct http_session;
struct sender;

struct http_sessions {
    struct web *web;
    struct map by_id; /* those with a ZooKeeper session */
    struct map marks; /* of all sessions, by the id of the claim */
    struct list all;
    struct list ended; /* kept so that their clients can learn the cause; oldest first */
    size_t nended;
    struct hmac_key key;
    /* Called with all nodes of a session, as listed after a commit on its present connection, or
     * with an error if the servers cannot list them. Takes up the nodes of claims that this gate
     * has not made (session_claims.c). */
    void (*listed)(struct http_session *s, const clave_result *res);
};

enum http_session_state {
    HTTP_SESSION_OPENING,
    HTTP_SESSION_LIVE,
    HTTP_SESSION_CLOSING, /* its client has asked to end it */
    HTTP_SESSION_ENDED,
};

/* Something that belongs to the session: a claim. It ends with the session at the latest, and is
 * freed with it. */
struct session_part {
    struct list link;
    struct http_session *s;
    int64_t token;    /* 0: it holds nothing */
    const char *node; /* the node that it holds; valid while token is not 0 */
    /* The further nodes that it needs in order to hold; NULL after the last of them. `more` is NULL
     * if there are none. */
    const char *(*more)(const struct session_part *p, size_t i);
    /* The session has ended, or its client is silent: releases what can be released. */
    void (*ended)(struct session_part *p, clave_err why);
    /* A proof found the node gone. */
    void (*missing)(struct session_part *p);
    /* Another gate may have attached to the session. */
    void (*elsewhere)(struct session_part *p);
    /* Its node is being made or deleted, and the outcome is not known. */
    bool (*is_open)(struct session_part *p);
    void (*free)(struct session_part *p);
};

/* A node that a proof checks. */
struct session_check {
    int64_t token; /* token of the part; 0: there is no part, and the root is checked */
    size_t nth;    /* which of the part's nodes */
};

/* Somebody who waits for the session: `done` runs at most once, perhaps at once. */
struct session_wait {
    struct list link;
    bool ends;         /* it waits for the end of the session */
    unsigned attempts; /* how many proofs have failed while it waited */
    void (*done)(struct session_wait *w, clave_err err);
};

struct http_session {
    struct http_sessions *all;
    struct list link, in_ended;
    struct sender *sender; /* whose share it counts towards while it has a client */
    struct map_node by_id;
    enum http_session_state state;
    bool in_map;
    int64_t id;
    uint8_t passwd[16];
    int32_t ttl_ms; /* as asked for; once attached, as the server has granted it */
    char *name;
    char *auths; /* its identities, as in struct sealed_session; NULL: none */
    size_t nauths;
    clave_async_client *client; /* NULL: gone */
    bool known;             /* its client has the secret: it may rely on the session, and go on at
                             * another gate */
    bool resumed;           /* made by another gate, or by this one before it was restarted */
    bool attached;          /* connected, as far as we know */
    bool elsewhere;         /* another gate may have attached to it, so its nodes are looked for */
    unsigned present;       /* requests of its client that are here now */
    struct timer pause;     /* before this gate attaches to it again */
    unsigned interruptions; /* connections lost one after the other, each before a proof succeeded
                             * on it */
    int64_t proof_ms;       /* how long the newest successful proof took */
    int64_t heard;          /* when the newest request of its client arrived or ended */
    int64_t made;
    struct timer timer; /* OPENING: gives up. LIVE: silence. ENDED: forgets it */
    struct list waits;
    struct session_proof *proof;   /* the proof under way, for those in `proving`; NULL: none */
    struct session_check refused;  /* the next transaction of that proof begins after this check */
    struct list proving, unproven; /* of session_wait: those who wait for this proof; for the next
                                    * one */
    struct list knowing;           /* of session_wait: proven, but claims of other gates are still
                                    * being taken up */
    uint64_t asked;  /* how many proofs were begun, which is the number of the newest */
    uint64_t proven; /* the number of the newest proof that succeeded on the present connection; 0:
                      * none */
    struct list parts;
    /* Of session_claims.c. */
    uint64_t listed_on; /* the connection on which all its nodes were listed; 0: none */
    struct list polls;  /* of claim_poll: those who wait for news of any claim */
    bool blind;         /* the servers are older than 3.6 and cannot list the nodes of a session */
    bool left_behind;   /* a node was left to another gate, because its sender may not lock there */
    unsigned taking;   /* how many look-ups about claims are under way: of nodes, and of the ends of
                        * limited holds */
    struct list marks; /* of claims that were released, oldest first */
    size_t nmarks;
    clave_err why;   /* why it has ENDED. OK: closed by its client */
    char fault[256]; /* the message of the ZooKeeper client about that */
};

/* Makes w->sessions; `key` as session_key of struct web_options. ENOMEM. */
clave_err clave__http_sessions_new(struct web *w, const uint8_t *key);
/* The gate stops. Abandons the sessions on which a client may rely: to the servers it is as if the
 * gate had died. Closes all others at the servers, as far as these can be reached. */
void clave__http_sessions_close(struct http_sessions *ss);
/* True if no session has a ZooKeeper client any more. */
bool clave__http_sessions_are_closed(struct http_sessions *ss);
/* Frees all sessions without a message to the servers. No request is present any more. Does nothing
 * if there is no w->sessions. */
void clave__http_sessions_free(struct web *w);

/* Clocks of clients may be slower than ours by less than 1 in SESSION_CLOCKS. */
enum { SESSION_CLOCKS = 8 };

struct session_terms {
    const char *name; /* may be NULL */
    int32_t ttl_ms;
    const char *const *auths; /* "digest:user:password" */
    size_t nauths;
    struct sender *sender; /* who makes it, and whose share has room for it */
};
/* Makes a session, whose client is present until _leave. EINVAL: an identity is not of that form,
 * or there are more than 16; ETOOBIG: together, each with its NUL, they are longer than SEAL_AUTHS.
 * Other errors as clave_async_client_new. */
clave_err clave__http_session_open(struct http_sessions *ss, const struct session_terms *t,
                                   struct http_session **out);
/* Finds the session whose secret was unsealed. If it is not here, attaches to it, which counts
 * towards the share of `of` (NULL: ENOMEM). Its client is present until _leave. Errors as
 * clave_async_client_new. */
clave_err clave__http_session_find(struct http_sessions *ss, const struct sealed_session *sealed,
                                   struct sender *of, struct http_session **out);
/* The session of this gate that has this public id. NULL: there is none. */
struct http_session *clave__http_session_by_id(const struct http_sessions *ss, int64_t id);

/* Calls `done` when the session is no longer OPENING: with OK if it is LIVE, otherwise with the
 * reason why it has ended. */
void clave__http_session_await(struct http_session *s, struct session_wait *w);
/* Proves that after this call the session was alive and everything that it holds existed, by a
 * transaction that changes nothing and passes the leader. A part whose node is found gone ends.
 * `done` gets OK if that is proven, and then the hold deadline has moved on; otherwise why the
 * session has ended; EOPTIMEOUT: it cannot be proven at present; ETOOBIG: it does not fit into one
 * transaction; ENOMEM. */
void clave__http_session_prove(struct http_session *s, struct session_wait *w);
/* The same for a moment after `since` proofs had been begun: a proof that is under way may be
 * enough. */
void clave__http_session_prove_since(struct http_session *s, struct session_wait *w,
                                     uint64_t since);
/* True if another gate may have made or ended claims of the session since this gate listed them
 * last. The next proof lists them, and its `done` comes when they are known. */
bool clave__http_session_must_list(const struct http_session *s);
/* Ends the session and, in the same transaction, all that it has. `done` (`w` may be NULL) gets OK
 * when a server has said that the session is over; ETIMEDOUT: no server has said so within the
 * session's timeout, and another gate may go on with it. */
void clave__http_session_close(struct http_session *s, struct session_wait *w);
/* Ends the wait. Harmless if `w` does not wait. */
void clave__session_wait_cancel(struct session_wait *w);

/* Writes the secret that proves the session, for its client. */
void clave__http_session_secret(struct http_session *s, char out[SEAL_TEXT + 1]);

/* Until when a session is kept whose client stays silent: for its timeout after the client was last
 * heard, which is the most that the client was promised, and a part of that longer in case the
 * client's clock is slower than ours. */
int64_t clave__http_session_silent_at(const struct http_session *s);

static inline bool clave__http_session_is_live(const struct http_session *s)
{
    return s->state == HTTP_SESSION_LIVE;
}

/* Another gate may attach to the session and release what it holds, so that what is remembered here
 * proves nothing. */
static inline bool clave__http_session_is_shared(const struct http_session *s)
{
    return s->known && s->all->web->o.key_is_shared;
}

/* What is remembered here was true at a moment after `since` proofs had been begun: it was proved
 * since then, or no other gate can have the session. */
static inline bool clave__http_session_is_proven(const struct http_session *s, uint64_t since)
{
    return !clave__http_session_is_shared(s) || s->proven > since;
}

/* Sends the requests that were made on its client outside of the client's callbacks. */
static inline void clave__http_session_flush(struct http_session *s)
{
    if (s->client)
        clave__web_flush(s->all->web, s->client);
}

/* _enter: a request of its client has arrived. _leave: that was answered, or its client hung up. */
void clave__http_session_enter(struct http_session *s);
void clave__http_session_leave(struct http_session *s);

/* The only way to ENDED. `client_too`: drops the ZooKeeper client as well. */
void clave__http_session_end(struct http_session *s, clave_err why, bool client_too);
/* One of the look-ups that s->taking counts has its answer. After the last of them all claims that
 * another gate made are known: calls those who waited for that. */
void clave__http_session_taken(struct http_session *s);

/* ==== marks of claims that were given back ==================================================== */

/* A mark is an ephemeral node of the session, made before the node of a claim is deleted. While the
 * mark is there, an older request for that claim, which may reach a gate late, cannot make it anew.
 * Marks are kept for MARK_MS at least, which is longer than anybody waits for an answer; when there
 * are many, the oldest are deleted. */

#define SESSION_MARKS "/clave-gate" /* the directory, which the gate's own client makes */

/* A request to create the directory had this result. */
void clave__marks_directory_answered(struct web *w, clave_err err);
/* A node of the session in that directory. */
struct session_note {
    const void *data;
    size_t len;
    clave_result_cb *done;
    void *arg;
};
/* Creates the node at `path`, and before it the directory, unless that is there. Results as of
 * clave_async_create. */
clave_err clave__http_session_note(struct http_session *s, const char *path,
                                   const struct session_note *n);
/* For use in `done`: the directory was missing, and another attempt is worth while. */
bool clave__http_session_note_is_homeless(const struct http_session *s, clave_err err);

/* True if the path is that of a mark; *id is then the claim's id. */
bool clave__http_session_is_mark(const char *path, const char **id);
/* True if this gate knows that the claim of this id was released. */
bool clave__http_session_has_mark(const struct http_session *s, const char *id);
/* True if, besides, no gate can make the claim anew: the mark is at the servers, or no other gate
 * can have the session. */
bool clave__http_session_mark_is_certain(const struct http_session *s, const char *id);
/* Notes that the servers have the mark, if there is one here. */
void clave__http_session_mark_stands(struct http_session *s, const char *id);
/* The claim is being released. _mark notes that here (ENOMEM); _send_mark notes it at the servers,
 * for other gates, with the results of clave_async_create: ENODEEXISTS if it was marked before. */
clave_err clave__http_session_mark(struct http_session *s, const char *id);
clave_err clave__http_session_send_mark(struct http_session *s, const char *id, clave_result_cb *cb,
                                        void *arg);
void clave__http_session_trim_marks(struct http_session *s);

/* ==== validity ================================================================================ */

/* For how long a client may rely on what it holds, reckoned so that no answer ever promises too
 * much. The client counts this time from the moment when it sent its request, on its own clock.
 * That moment is before the arrival of the request, whatever the delay, so the client's deadline is
 * never late. Only the rates of the clocks differ. After the request has arrived at the servers,
 * the margin of the hold deadline covers that difference; for the time before, which is long if the
 * request waited for its turn, a part of that time is subtracted.
 *
 * `arrived` must be read from the clock after the request has been received. */

/* Clocks that are compared differ in rate by less than 1 in VALIDITY_RATE. */
enum { VALIDITY_RATE = 64 };

struct validity {
    int64_t arrived;       /* when the request that is answered arrived */
    int64_t granted;       /* when the client's claim became held */
    int64_t hold_deadline; /* until when nobody else can own it; INT64_MIN: nothing is known */
    int64_t ttl_ms;        /* how long the gate keeps the session of a silent client */
    int64_t now;
};

/* Returns the time in ms, counted from when the request was sent; 0: nothing is certain any
 * more. */
int64_t clave__validity_ms(const struct validity *v);

#endif
