/* claim.h - what a session holds or waits for: one place in one queue, on a recipe of clave/async.
 * A claim lives from the request that makes it to the one that gives it back, whether a request
 * waits for it or not: its place is kept.
 *
 *     WANTED ──> QUEUED ──> DELAYED ──> DOUBTED ──> HELD ──> SPENT ──> LEAVING ──> SOUGHT ──> OVER
 *        └──────────┴──────────┴───────────┴─────────^                 from each state: SOUGHT
 *
 * Any state before HELD, and SPENT, may be left out. What moves a claim are the recipe (queued,
 * granted, lost, left), proofs of its session (proven, missing), its client (released) and time;
 * the table of moves is in claim.c, and claim_move makes each of them.
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
    CLAIM_LEAVING, /* given back, and its node is being deleted */
    CLAIM_SOUGHT,  /* over for its client, but the recipe still looks for its node, to delete it */
    CLAIM_OVER,    /* nothing of it is under way */
    CLAIM_STATES
};

struct claim;
struct claim_kind;
struct claim_terms {
    const char *session; /* its id, as the request has it; NULL: not said */
    const char *path;
    const struct claim_kind *kind;
    uint32_t limit, permits; /* of a semaphore; 0: not said */
    int64_t lock_delay_ms;
    int64_t max_hold_ms; /* 0: no limit */
    int64_t depend_ms;   /* longest silence of its work; 0: it depends on none */
    bool revocable;
    bool trying; /* not to wait: over with EBUSY if it is not free */
    /* What its node says; each may be NULL. Of an election `text` alone. */
    const char *name, *command, *host, *traceparent, *text;
    /* The UUID of the node's name, in canonical text: that of an earlier claim of this session is
     * found again. NULL: a new one. */
    const char *id;
    /* Its node, which another gate made, and what that says. NULL: it has none yet. */
    struct {
        const char *node;
        const void *data;
        size_t len;
    } found;
};

/* A recipe as claims use it (claim_kinds.c), with a state of its own around struct claim. It
 * tells by clave__claim_moved, _granted, _failed, _lost and _asked, never inside `begin`. */
struct claim_kind {
    const char *name;
    size_t size;           /* of its state, which struct claim begins */
    enum queue_kind queue; /* of its nodes */
    bool plain;            /* its node says `text` alone */
    /* What of the terms does not fit; NULL: they fit. */
    const char *(*misfit)(const struct claim_terms *t);
    clave_err (*begin)(struct claim *c);
    /* From memory; false: not held. */
    bool (*grant)(const struct claim *c, struct grant_facts *out);
    /* Of a session_part; NULL: it holds one node. */
    const char *(*more)(const struct session_part *p, size_t i);
    /* The token of each node but the claim's own, whether it is still held or was lost; 0: there
     * are no more. NULL: it holds one node. */
    int64_t (*more_token)(const struct claim *c, size_t i);
    /* Gives back what is held; clave__claim_left when its node is gone. An error: at once. */
    clave_err (*release)(struct claim *c);
    /* Frees the recipe's objects, with what they have; harmless when there are none. */
    void (*drop)(struct claim *c);
    /* Who has what is claimed there: the first of the list holds it. */
    clave_err (*holders)(clave_async_client *client, const char *path,
                         clave_async_participants_cb *cb, void *arg);
    /* Its nodes say this from now on: as clave__mutex_describe. */
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
    uint64_t sign;       /* of clave__claim_alive: the answer to that, too; 0: none was given */
    bool watches;        /* every change is, and `done` runs at each; it does not cancel then */
    /* At most once, but for `watches`; not after _cancel. What there is to say is in the claim. */
    void (*done)(struct claim_poll *p);
};

/* What the streams of its session are told, in this order. */
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
    bool fits;                      /* it is of the same kind */
    int number;                     /* of its node */
};

/* When a hold with a limit ends. Times are by our clock. */
struct claim_limit {
    int64_t ends_at;     /* by max_hold_ms; CLAVE_NEVER: not known yet, or there is none */
    int64_t silent_at;   /* the same by depend_ms */
    int64_t gone_at;     /* the node must not be deleted for that reason before this time */
    uint64_t known_on;   /* the connection on which they were learnt; 0: they were not */
    int32_t version;     /* of the node that says it */
    int64_t asked_at;    /* when the newest request was sent that tells how long it was held */
    int64_t signed_at;   /* by the servers' clock: the newest sign of life, as it was read */
    clave_err why;       /* which limit ended the hold */
    bool asks;           /* a request is under way, */
    bool learns;         /* for which proofs of the session wait */
    bool made_directory; /* of that node */
    struct timer due;    /* at the earlier end; at gone_at while SPENT */
    /* Counts of signs of life: received, covered by the newest write, answered. */
    uint64_t signs, sent, answered;
    int64_t came_at, sent_at; /* the newest of these requests; of those with the newest write */
    clave_err answer;
};

struct claim {
    struct session_part part; /* its session; token and node while DOUBTED or HELD */
    enum claim_state state;
    const struct claim_kind *kind;
    struct queue_place place; /* its UUID is the claim's id */
    struct claim_other other; /* over with ENODEEXISTS: what the session has there already */
    char *path;
    char *at;    /* the name of the node that another gate made; NULL: it is this gate's */
    bool there;  /* of session_claims.c, while it looks: the session has a node of it */
    bool noted;  /* CLAIM_TERMS_NOTE may be there */
    bool leased; /* likewise, while it waits: a lease, which another gate may have been granted */
    bool left_there; /* likewise, when it was over: a node that it deletes, or that is not its own
                      */
    bool cut;        /* its connection was lost: another gate may have found its node */
    bool strays;     /* given back without a connection, or that was lost since: the delete of its
                      * node may come after a create that is asked for now */
    bool marked;     /* over with ENODEEXISTS: it was given back, so that it is not made anew */
    uint32_t limit, permits;
    int64_t lock_delay_ms, max_hold_ms, depend_ms;
    bool limited; /* its limits are kept here; else its recipe keeps max_hold_ms */
    bool revocable, trying;
    char *data; /* of its node */
    size_t len;
    clave_async_delay *delay; /* NULL: there is none */
    struct grant_facts grant; /* while HELD; its node is in `node` */
    char *node;
    int64_t granted_at;
    bool waited; /* for others or for the delay, or the connection was lost: not granted at once */
    struct session_wait proof; /* while DOUBTED */
    bool placed;               /* it was QUEUED once: `ahead` is known */
    size_t ahead;              /* how many are before it */
    char *left_over; /* the node just before it, when no session owns that; NULL: not so */
    bool asked;      /* somebody asks for it back */
    clave_err why;   /* over. OK: given back */
    struct claim_sender *sender; /* of "roles", as all up to `forbidden`; NULL: the request
                                  * that waits is judged in its place */
    int64_t told_until;          /* the end of the longest valid_ms that was told */
    struct timer gives_back;     /* while `forbidden` */
    struct claim_limit longest;
    bool overheld;  /* it is SPENT, or has been */
    bool forbidden; /* its sender may not hold it any more */
    enum claim_event told;
    bool told_left_over;
    int64_t told_token; /* of the hold whose end will be told */
    struct list polls;
    unsigned owed;  /* callbacks of the recipe that will come, even after its objects are freed */
    bool forgotten; /* freed with the last of them */
};

/* The most claims a session may have, and the most ended ones that are kept. Keeping the newest
 * lets a late or repeated request learn how its claim ended instead of making another. */
enum { SESSION_CLAIMS = 1000, SESSION_ENDED_CLAIMS = 16 };

/* It was given back, was lost, or never came to be: SOUGHT or OVER. */
static inline bool clave__claim_is_over(const struct claim *c)
{
    return c->state >= CLAIM_SOUGHT;
}

/* So it is for its client: over, or spent, though its node may stay for a while. */
static inline bool clave__claim_has_ended(const struct claim *c)
{
    return clave__claim_is_over(c) || c->overheld;
}

/* It waits in the queue, or to be there. */
static inline bool clave__claim_waits(const struct claim *c)
{
    return c->state == CLAIM_WANTED || c->state == CLAIM_QUEUED;
}

static inline struct claim *clave__claim_of(struct session_part *p)
{
    return LIST_ENTRY(p, struct claim, part);
}

/* The claim of the session after `c`, the oldest first; NULL: the first, or there is none. */
static inline struct claim *clave__claim_after(const struct http_session *s, const struct claim *c)
{
    struct list *l = c ? c->part.link.next : s->parts.next;
    return l == &s->parts ? NULL : clave__claim_of(LIST_ENTRY(l, struct session_part, link));
}

/* For how long the client may rely on it, told to a request that arrived then; 0 when it is not
 * HELD, or nothing is certain. */
int64_t clave__claim_valid_ms(const struct claim *c, int64_t arrived);

/* The claim's state was learnt on the session's present connection. Otherwise another gate may have
 * had the session since, and may have reported the claim as held. */
bool clave__claim_is_fresh(const struct claim *c);
/* `done` runs at news: HELD, over, its position if that is wanted, or the time; perhaps at once.
 */
void clave__claim_await(struct claim *c, struct claim_poll *p, int64_t until);
void clave__claim_poll_cancel(struct claim_poll *p);

/* The same for all claims of a session: `done` runs when one of them is HELD or over, when
 * another gate may have the session, or at the time. Never at once. */
void clave__claims_await(struct http_session *s, struct claim_poll *p, int64_t until);
/* Which claims wait and which are held, as a number that each gate makes of the same ones. */
uint64_t clave__claims_tag(const struct http_session *s);

/* A sign of life from the work of a claim that has depend_ms, in a request that has arrived then.
 * `done` runs when it is answered, when the claim has ended, or after a ttl. false: it is not HELD
 * on the present connection, as far as is known now. */
bool clave__claim_alive(struct claim *c, struct claim_poll *p, int64_t arrived);
/* For `done`. OK: the hold goes on by this sign, and its nodes were there. EOPTIMEOUT and errors of
 * class UNKNOWN: perhaps it does; the sign may be given again, at any gate. */
clave_err clave__claim_alive_answer(const struct claim *c, const struct claim_poll *p);

/* Gives it back, or gives up waiting. It is over, now or later. */
void clave__claim_release(struct claim *c);

/* ==== the claims of a session ================================================================ */

/* Takes a place; the session is LIVE, and the terms fit their kind. EQUOTA: the session has too
 * many. EINUSE: an earlier claim of this id is being given back. EPATH, ENOMEM,
 * ECLOSED: as of the recipe. */
clave_err clave__claim_new(struct http_session *s, const struct claim_terms *t, struct claim **out);
/* The newest. NULL: the session has none of this id here, or it was not to wait and not granted:
 * then a repeated request tries again. */
struct claim *clave__claim_find(const struct http_session *s, const char *id);
/* Two claims of a session exclude each other on a path unless their ids name different owners: the
 * last twelve digits of a UUID of version 8 do. Any gate sees that by the name of a node. NULL: it
 * names none. */
bool clave__claim_is_same_owner(const char *id, const char *other);
/* The session's claim on this path, of the owner that this id names (NULL: of none), that has not
 * ended; NULL: there is none. */
struct claim *clave__claim_on_path(const struct http_session *s, const char *path, const char *id);
/* An earlier claim of the same owner on this path was given up, but its node may still be there: it
 * is looked for by its id, and deleted. That counts while a new one could come before its delete,
 * because its create may be under way, or the connection was lost; of a claim of this id (may be
 * NULL) in any case. */
bool clave__claim_is_being_left(const struct http_session *s, const char *path, const char *id);
/* A claim of this id was tried, what came of it is not known, and its node is being looked for. */
bool clave__claim_is_sought(const struct http_session *s, const char *id);
/* It is being given back, but the servers have answered neither the mark of that nor the delete of
 * its node: both may be lost, and then it is held at another gate. */
bool clave__claim_is_half_left(const struct claim *c);
/* It has the form of a claim's id. */
bool clave__claim_is_id(const char *text);
/* Writes the id that belongs to an Idempotency-Key of this session. */
void clave__claim_id_of_key(const struct http_session *s, const char *key,
                            char out[CLAVE_UUID_TEXT + 1]);

/* All nodes of the session, as listed on its present connection behind a commit; or an error: the
 * servers list none. */
void clave__claims_look(struct http_session *s, const clave_result *res);

/* ---- from the kinds -------------------------------------------------------------------------- */

/* `left_over`: as of clave_mutex_event. */
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
/* A call returned `err`: when that is OK its callback is owed. */
clave_err clave__claim_owe(struct claim *c, clave_err err);
/* It came. false: the claim is gone, and whoever calls forgets it. */
bool clave__claim_repaid(struct claim *c);

/* ---- from session_claims.c ------------------------------------------------------------------- */

/* It is over, for this reason: the only way to SOUGHT. Harmless when it was over before. */
void clave__claim_end(struct claim *c, clave_err why);
/* Forgets it, and frees it when no callback can come back to it: part.free. */
void clave__claim_free(struct session_part *p);
/* place.unused. */
void clave__claim_place_unused(struct queue_place *p);
/* The end of c->proof. */
void clave__claim_on_proven(struct session_wait *w, clave_err err);
/* The connection is lost. A claim of the same id may be made at another gate, and whoever waits
 * here for its turn would take the session back from there: such a request is answered, and its
 * client asks again. */
void clave__claim_went_elsewhere(struct claim *c);

/* ==== what gates note of a claim ============================================================== */

/* Nodes of the session beside its marks, whose names go on with the claim's id: of a hold with a
 * limit, as claim.c says; of an election, whose place names the candidate alone, what that would
 * say otherwise. */
#define CLAIM_HOLD_NOTE SESSION_MARKS "/hold-"
#define CLAIM_TERMS_NOTE SESSION_MARKS "/terms-"

void clave__claim_limit_init(struct claim *c);
/* The session has a new connection: finds out again when a hold with a limit ends. Until that is
 * known, no proof of the session is reported. */
void clave__claim_on_connection(struct claim *c);

/* ==== roles =================================================================================== */

/* Whom a claim was admitted for, and until when its client was told that it holds.
 * When roles change, each claim is judged again: one that waits ends; a hold is extended no more,
 * and its node goes when the last valid_ms that was told is over, not before. */

/* A request was about the claim, from a sender who may lock there, as its transport and its header
 * Authorization (or NULL) tell: the claim is judged by that from now on. ENOMEM: as before. */
clave_err clave__claim_admit(struct claim *c, const struct web_peer *peer,
                             const char *authorization);
/* clave__claim_valid_ms for an answer: the claim's node stays for so long. */
int64_t clave__claim_tell_valid(struct claim *c, int64_t arrived);
/* Another access holds from now on. */
void clave__claims_judge(struct http_sessions *ss);

/* ==== kinds =================================================================================== */

#define CLAIM_KIND_NAMES "lock, read, write, semaphore, election"

extern const struct claim_kind *const clave__claim_kinds[]; /* ends with NULL */

#endif
