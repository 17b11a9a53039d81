/* claim.h - what a session holds or waits for: one place in one queue, on a recipe of clave/async.
 * A claim lives from the request that makes it to the one that releases it. Its place is kept
 * whether a request waits for it or not.
 *
 *     WANTED ──> QUEUED ──> DELAYED ──> DOUBTED ──> HELD ──> SPENT ──> LEAVING ──> SOUGHT ──> OVER
 *        └──────────┴──────────┴───────────┴─────────^                 from each state: SOUGHT
 *
 * Any state before HELD may be left out, and so may SPENT. A claim is moved by the recipe (queued,
 * granted, lost, left), by proofs of its session (proven, missing), by its client (released) and by
 * time. The table of moves is in claim.c, and claim_move makes each of them.
 *
 * Invariant: events may report that a hold has ended, never how long it will last. Only answers say
 * that, counted from the request that is answered ("validity" in http_session.h). */
#ifndef CLAVE_WEB_SESSION_CLAIM_H
#define CLAVE_WEB_SESSION_CLAIM_H

#include "clave/async/lock_delay.h"
#include "recipe/grant_held.h"
#include "recipe/queue/queue_kind.h"
#include "recipe/reattach.h"
#include "web/session/http_session.h"

enum claim_state {

    CLAIM_WANTED,  /* asked for: its node is in no listing yet and may still be on its way */
    CLAIM_QUEUED,  /* its place is known */
    CLAIM_DELAYED, /* granted, after a holder that was lost: see clave/async/lock_delay.h */
    CLAIM_DOUBTED, /* granted after a wait, during which another gate may have released it. Leaves
                    * this state when a proof of the session finds the node and, for a limited hold,
                    * the end is known */
    CLAIM_HELD,
    CLAIM_SPENT, /* its max_hold_ms is over, or its work was silent for its depend_ms: over for the
                  * client. The node stays until every validity that any gate has reported has run
                  * out (see claim.c) */
    CLAIM_LEAVING, /* released, and its node is being deleted */
    CLAIM_SOUGHT,  /* over for its client, but the recipe still looks for its node, to delete it */
    CLAIM_OVER,    /* nothing of it is under way */
    CLAIM_STATES
};

struct claim;
struct claim_kind;
struct claim_terms {
    const char *session; /* its id, as the request gives it; NULL: not given */
    const char *path;
    const struct claim_kind *kind;
    uint32_t limit, permits; /* of a semaphore; 0: not given */
    int64_t lock_delay_ms;
    int64_t max_hold_ms; /* 0: no limit */
    int64_t depend_ms;   /* longest silence of its work; 0: it depends on none */
    bool revocable;
    bool trying; /* it must not wait: it is over with EBUSY if the place is not free at once */
    /* What its node says; each may be NULL. The node of an election says `text` alone. */
    const char *name, *command, *host, *traceparent, *text;
    /* The UUID in the node's name, in canonical text. With the UUID of an earlier claim of this
     * session, the node of that claim is found again. NULL: a new UUID. */
    const char *id;
    /* Its node, if another gate made it, and what that node says. `node` is NULL if it has none
     * yet. */
    struct {
        const char *node;
        const void *data;
        size_t len;
    } found;
};

/* A recipe as claims use it (claim_kinds.c), with a state of its own around struct claim. It
 * reports by clave__claim_moved, _granted, _failed, _lost and _asked, never inside `begin`. */
struct claim_kind {
    const char *name;
    size_t size;           /* of its state, which struct claim begins */
    enum queue_kind queue; /* of its nodes */
    bool plain;            /* its node says `text` alone */
    /* What is wrong with these terms for this kind; NULL: nothing. */
    const char *(*misfit)(const struct claim_terms *t);
    clave_err (*begin)(struct claim *c);
    /* The facts of the grant, from memory. Returns false if it is not held. */
    bool (*grant)(const struct claim *c, struct grant_facts *out);
    /* As in struct session_part; NULL: it holds one node. */
    const char *(*more)(const struct session_part *p, size_t i);
    /* The token of each node other than the claim's own, whether that node is still held or was
     * lost; 0: there are no more. NULL: it holds one node. */
    int64_t (*more_token)(const struct claim *c, size_t i);
    /* Releases what is held, and reports clave__claim_left when its node is gone. An error is
     * returned at once, and then nothing is reported. */
    clave_err (*release)(struct claim *c);
    /* Frees the recipe's objects, with what they have; harmless when there are none. */
    void (*drop)(struct claim *c);
    /* Lists who holds or waits for what is claimed there: the first of the list holds it. */
    clave_err (*holders)(clave_async_client *client, const char *path,
                         clave_async_participants_cb *cb, void *arg);
    /* Changes what its nodes say, as clave__mutex_describe. */
    clave_err (*describe)(struct claim *c, const clave_identity *said, queue_described *done,
                          void *arg, size_t *n);
    /* Writes the value of what is held, as clave_async_latch_publish; NULL: it has none. */
    clave_err (*publish)(struct claim *c, const void *value, size_t len, clave_result_cb *cb,
                         void *arg);
};

/* Somebody who waits for news of a claim, at most until `until`. */
struct claim_poll {
    struct list link;
    struct timer limit;
    struct web *web;
    bool wants_position; /* its place in the queue is news enough */
    bool wants_end;      /* only the end is news */
    bool wants_gone;     /* only the end is news; of a released claim, only that its node is gone */
    uint64_t sign;       /* number of the sign of life of clave__claim_alive, whose answer is news
                          * too; 0: none was given */
    bool watches;        /* every change is news, and `done` runs at each of them without ending the
                          * wait */
    /* Runs at most once unless `watches`, and not after _cancel. The news itself is in the
     * claim. */
    void (*done)(struct claim_poll *p);
};

/* The events that streams are sent about a claim, in this order. */
enum claim_event {
    CLAIM_EVENT_NONE,
    CLAIM_EVENT_QUEUED,
    CLAIM_EVENT_NEXT, /* only the holder is before it */
    CLAIM_EVENT_HELD,
    CLAIM_EVENT_ASKED,
    CLAIM_EVENT_LOST,
};

/* A place of the session that another gate has made. */
struct claim_other {
    char uuid[CLAVE_UUID_TEXT + 1]; /* "": none was found */
    bool fits;                      /* that place is of the same kind */
    int number;                     /* of its node */
};

/* When a hold with a limit ends. Times are by our clock. */
struct claim_limit {
    int64_t ends_at;   /* by max_hold_ms; CLAVE_NEVER: not known yet, or there is none */
    int64_t silent_at; /* likewise by depend_ms */
    int64_t gone_at;   /* the node must not be deleted for that reason before this time */
    uint64_t known_on; /* the connection on which these times were learnt; 0: they were not yet */
    int32_t version;   /* version of the node that records the hold */
    int64_t asked_at;  /* when we sent the newest request that tells how long it was held */
    int64_t signed_at; /* the newest sign of life by the servers' clock, as the node said it */
    clave_err why;     /* which limit ended the hold */
    bool asks;         /* a request about these times is under way */
    bool learns;       /* and proofs of the session wait for it */
    struct timer due;  /* at the earlier end; at gone_at while SPENT */
    /* Counts of signs of life: received, covered by the newest write, answered. */
    uint64_t signs, sent, answered;
    int64_t came_at, sent_at; /* when the newest sign of life arrived; the newest that the newest
                               * write covers */
    clave_err answer;
};

struct claim {
    struct session_part part; /* its session; it has a token and a node while DOUBTED or HELD */
    enum claim_state state;
    const struct claim_kind *kind;
    struct queue_place place; /* its UUID is the claim's id */
    struct claim_other other; /* if over with ENODEEXISTS: what the session has there */
    char *path;
    char *at;    /* the name of its node, if another gate made the claim; NULL: this gate made it */
    bool there;  /* of session_claims.c, while it reads a listing: the session has a node of this
                  * claim */
    bool noted;  /* CLAIM_TERMS_NOTE may be there */
    bool leased; /* likewise, while it waits: it has a lease, which may have been granted at another
                  * gate */
    bool left_there; /* after the claim has ended, a node with this name still exists: either this
                      * claim is deleting it, or it belongs to another claim */
    bool cut;        /* its connection was lost: another gate may have found its node */
    bool strays;     /* released without a connection, or the connection was lost since: the delete
                      * of its node may come after a create that is requested now */
    bool marked;     /* if it is over with ENODEEXISTS: its mark showed that it was released, so it
                      * is not made anew */
    uint32_t limit, permits;
    int64_t lock_delay_ms, max_hold_ms, depend_ms;
    bool limited; /* its limits are enforced here; otherwise its recipe enforces max_hold_ms */
    bool revocable, trying;
    char *data; /* of its node */
    size_t len;
    clave_async_delay *delay; /* NULL: there is none */
    struct grant_facts grant; /* while HELD; its node is in `node` */
    char *node;
    int64_t granted_at;
    bool waited; /* it was not granted at once: it waited for others or for the delay, or the
                  * connection was lost */
    struct session_wait proof; /* while DOUBTED */
    bool placed;               /* it was QUEUED once: `ahead` is known */
    size_t ahead;              /* how many are before it */
    char *left_over; /* the node just before it, if no session owns that node; otherwise NULL */
    bool asked;      /* somebody has asked for it back */
    clave_err why;   /* why it is over. OK: released */
    struct claim_sender *sender; /* belongs to "roles" below, as do the members up to `forbidden`;
                                  * NULL: the waiting request is judged in its place */
    int64_t reported_until;      /* when the last valid_ms that was reported runs out */
    struct timer gives_back;     /* runs while `forbidden` */
    struct claim_limit longest;
    bool overheld;         /* it is SPENT, or has been */
    bool forbidden;        /* its sender may not hold it any more */
    bool end_reported;     /* its end was, so a later move to OVER is news of its own */
    enum claim_event sent; /* the newest that streams were sent */
    bool sent_left_over;
    int64_t held_token; /* token of the hold whose end will be reported */
    struct list polls;
    unsigned owed;  /* callbacks of the recipe that will come, even after its objects are freed */
    bool forgotten; /* it is freed when the last of these has come */
};

/* The most claims a session may have, and the most ended ones that are kept. Keeping the newest
 * lets a late or repeated request learn how its claim ended instead of making another. */
enum { SESSION_CLAIMS = 1000, SESSION_ENDED_CLAIMS = 16 };

/* It was released, was lost, or never came to be: SOUGHT or OVER. */
static inline bool clave__claim_is_over(const struct claim *c)
{
    return c->state >= CLAIM_SOUGHT;
}

/* It has ended for its client: it is over, or was SPENT, though its node may stay for a while. */
static inline bool clave__claim_has_ended(const struct claim *c)
{
    return clave__claim_is_over(c) || c->overheld;
}

/* It is over because its client, here or at another gate, has released it. */
static inline bool clave__claim_was_released(const struct claim *c)
{
    return clave__claim_is_over(c) && (c->why == CLAVE_OK || c->why == CLAVE_ECANCELED);
}

/* It waits in the queue, or to get into the queue. */
static inline bool clave__claim_waits(const struct claim *c)
{
    return c->state == CLAIM_WANTED || c->state == CLAIM_QUEUED;
}

static inline struct claim *clave__claim_of(struct session_part *p)
{
    return LIST_ENTRY(p, struct claim, part);
}

/* The claim of the session that follows `c`, oldest first, or the first one if `c` is NULL. Returns
 * NULL after the last. */
static inline struct claim *clave__claim_after(const struct http_session *s, const struct claim *c)
{
    struct list *l = c ? c->part.link.next : s->parts.next;
    return l == &s->parts ? NULL : clave__claim_of(LIST_ENTRY(l, struct session_part, link));
}

/* For how many ms the client may rely on the claim, in the answer to a request that arrived at
 * `arrived`; 0 if it is not HELD, or nothing is certain. */
int64_t clave__claim_valid_ms(const struct claim *c, int64_t arrived);

/* The claim's state was learnt on the session's present connection. Otherwise another gate may have
 * had the session since, and may have reported the claim as held. */
bool clave__claim_is_fresh(const struct claim *c);
/* Calls `done` at news (the claim is HELD or has ended, or its position is known, if that is
 * wanted), or at `until`; perhaps at once. */
void clave__claim_await(struct claim *c, struct claim_poll *p, int64_t until);
void clave__claim_poll_cancel(struct claim_poll *p);

/* The same for all claims of a session: `done` is called when one of them is HELD or has ended,
 * when another gate may have the session, or at `until`. Never at once. */
void clave__claims_await(struct http_session *s, struct claim_poll *p, int64_t until);
/* A number for which claims wait and which are held, the same at every gate for the same claims. */
uint64_t clave__claims_tag(const struct http_session *s);

/* Gives a sign of life from the work of a claim that has depend_ms, in a request that arrived at
 * `arrived`. `done` is called when the servers have answered the sign, when the claim has ended, or
 * after a ttl. Returns false if the claim, as far as is known now, is not HELD on the present
 * connection. */
bool clave__claim_alive(struct claim *c, struct claim_poll *p, int64_t arrived);
/* For use in that `done`. OK: the sign prolongs the hold, and its nodes were there. EOPTIMEOUT and
 * errors of class UNKNOWN: perhaps it does; the sign may be given again, at any gate. */
clave_err clave__claim_alive_answer(const struct claim *c, const struct claim_poll *p);

/* Releases the claim, or gives up waiting. It is over then, now or later. */
void clave__claim_release(struct claim *c);

/* ==== the claims of a session ================================================================ */

/* Makes a claim, which takes a place. The session is LIVE, and the terms fit their kind. EQUOTA:
 * the session has too many claims. EINUSE: an earlier one is in the way
 * (clave__claim_is_being_left). EPATH, ENOMEM, ECLOSED: as the recipe returns them. */
clave_err clave__claim_new(struct http_session *s, const struct claim_terms *t, struct claim **out);
/* Returns true if the claim was made on other terms than these. Says of the first term that differs
 * how the claim was made and how it is asked for, as in `with "depend_ms": 5000`. */
struct claim_difference {
    char made[160], asked[160];
};
bool clave__claim_differs(const struct claim *c, const struct claim_terms *t,
                          struct claim_difference *out);
/* The newest claim of this id. NULL: the session has none here, or that was a try which was not
 * granted: then a repeated request tries again. */
struct claim *clave__claim_find(const struct http_session *s, const char *id);
/* Two claims of a session exclude each other on a path unless their ids name different owners. The
 * last twelve digits of a UUID of version 8 name the owner, so any gate can see it in the name of a
 * node. NULL names no owner. */
bool clave__claim_is_same_owner(const char *id, const char *other);
/* The session's claim on this path, of the owner that this id names (NULL: of no owner), that is
 * not over. Returns NULL if there is none. */
struct claim *clave__claim_on_path(const struct http_session *s, const char *path, const char *id);
/* An earlier claim of the same owner on this path was given up, but its node may still be there:
 * the node is being looked for by its id, and deleted. An earlier claim of another id counts only
 * while a new node could be made before that delete, because the earlier create may be under way,
 * or because the connection was lost. An earlier claim of this id (which may be NULL) counts in any
 * case. */
bool clave__claim_is_being_left(const struct http_session *s, const char *path, const char *id);
/* A claim of this id was tried, the outcome is not known, and its node is being looked for. */
bool clave__claim_is_sought(const struct http_session *s, const char *id);
/* The claim is being released, but the servers have answered neither its mark nor the delete of its
 * node. Both may be lost, and then the claim is still held at another gate. */
bool clave__claim_is_half_left(const struct claim *c);
/* The text has the form of a claim's id. */
bool clave__claim_is_id(const char *text);
/* Writes the id that belongs to an Idempotency-Key of this session. */
void clave__claim_id_of_key(const struct http_session *s, const char *key,
                            char out[CLAVE_UUID_TEXT + 1]);

/* Takes in all nodes of the session, as listed after a commit on its present connection, or an
 * error if the servers cannot list them. */
void clave__claims_listed(struct http_session *s, const clave_result *res);

/* ---- from the kinds -------------------------------------------------------------------------- */

/* `left_over`: as in clave_mutex_event. */
void clave__claim_moved(struct claim *c, size_t ahead, const char *left_over);
void clave__claim_granted(struct claim *c);
void clave__claim_failed(struct claim *c, clave_err err);
void clave__claim_lost(struct claim *c, clave_err why);
void clave__claim_asked(struct claim *c);
void clave__claim_left(struct claim *c, clave_err err);
static inline int64_t clave__claim_deadline(const struct claim *c)
{
    return c->trying ? CLAVE_TRY : CLAVE_NEVER;
}
/* A call of the recipe returned `err`, which this returns, too. If that is OK, the callback of the
 * call is owed. */
clave_err clave__claim_owe(struct claim *c, clave_err err);
/* That callback has come. Returns false if the claim was forgotten: the caller must not touch it
 * any more. */
bool clave__claim_repaid(struct claim *c);

/* ---- from session_claims.c ------------------------------------------------------------------- */

/* Ends the claim for this reason: the only way to SOUGHT. Harmless if it is over already. */
void clave__claim_end(struct claim *c, clave_err why);
/* part.free: forgets the claim, and frees it as soon as no callback can come back to it. */
void clave__claim_free(struct session_part *p);
/* place.unused: no contender of the place is left. */
void clave__claim_place_unused(struct queue_place *p);
/* `done` of c->proof. */
void clave__claim_on_proven(struct session_wait *w, clave_err err);
/* The connection is lost. A claim of the same id may be made at another gate, and a request that
 * waits here for its turn would take the session back from that gate. Such a request is answered,
 * and its client asks again. */
void clave__claim_went_elsewhere(struct claim *c);

/* ==== what gates note of a claim ============================================================== */

/* Nodes of the session beside its marks. The claim's id follows in their names. A hold note records
 * a hold with a limit, as claim.c explains. A terms note has the terms of a claim on an election,
 * because the place in an election can name nothing but the candidate. */
#define CLAIM_HOLD_NOTE SESSION_MARKS "/hold-"
#define CLAIM_TERMS_NOTE SESSION_MARKS "/terms-"

void clave__claim_limit_init(struct claim *c);
/* The session has a new connection: finds out again when a hold with a limit ends. Until that is
 * known, no proof of the session is reported. */
void clave__claim_on_connection(struct claim *c);

/* ==== roles =================================================================================== */

/* For whom a claim was admitted, and until when its client was told that it holds. When roles
 * change, each claim is judged again: a claim that waits ends; a hold is not extended any more, and
 * its node is deleted when the last valid_ms that was reported has run out, not before. */

/* A request about the claim came from a sender who may lock there, known by its transport and its
 * header Authorization (or NULL). From now on the claim is judged by the roles of that sender.
 * ENOMEM: it keeps the previous sender. */
clave_err clave__claim_admit(struct claim *c, const struct web_peer *peer,
                             const char *authorization);
/* clave__claim_valid_ms for an answer: the claim's node stays for at least that time. */
int64_t clave__claim_report_valid_ms(struct claim *c, int64_t arrived);
/* Roles have changed: judges all claims of all sessions again. */
void clave__claims_judge(struct http_sessions *ss);

/* ==== kinds =================================================================================== */

#define CLAIM_KIND_NAMES "lock, read, write, semaphore, election"

extern const struct claim_kind *const clave__claim_kinds[]; /* ends with NULL */

#endif
