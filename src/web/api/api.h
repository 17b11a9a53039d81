/* api.h - the endpoints: the handler of each, which the table in routes.c names, and what one file
 * of endpoints offers to others. The folder has a file for each family of endpoints:
 *
 *   session_request a request that names its session, and with which client a request is made:
 *                   that of its session, or the engine's own
 *   sessions        /v1/sessions
 *   claims          /v1/claims: places in queues, which belong to a session
 *   hold            /v1/hold: a claim that lives as long as its connection
 *   slots           /v1/slots, claims of kind "slot", FleetLock: places that belong to an owner
 *   locks           what is read from the gate's copy of the tree: /v1/locks, /v1/elections,
 *                   /v1/deadlocks, /v1/history, /v1/events, /metrics
 *   leads           whether a candidate leads (?leads=, /v1/leader, /v1/replica), for balancers
 *   services        /v1/services: instances, from the same copy, and registering them
 *   members         /v1/members: who is in a group, and being in it with a session
 *   counters        /v1/counters: numbers, each change once
 *   lock_token      whether a token holds (?token=), and the header Clave-Guard
 *   lock_actions    revoke, break, transfer, the value of a leader
 *   znodes          reading /v1/znodes;  znodes_write: changing them, /v1/multi
 *   contrib         /znodes/v1 and /sessions/v1, as Apache's contrib REST gateway has them
 *   server          /healthz, /readyz, /v1/server, /v1/whoami, /v1/openapi.json, the page at /ui/
 *   openapi.json    the contract, against which tests hold every answer */
#ifndef CLAVE_WEB_API_API_H
#define CLAVE_WEB_API_API_H

#include "web/http/exchange.h"
#include "web/http/sender.h"
#include "web/session/claim.h"

/* ==== handlers ================================================================================ */

/* server.c */
web_handler clave__web_get_healthz, clave__web_get_readyz, clave__web_get_server,
    clave__web_get_whoami, clave__web_get_openapi, clave__web_get_page, clave__web_get_to_page;
/* sessions.c */
web_handler clave__web_post_session, clave__web_list_sessions, clave__web_get_session,
    clave__web_renew_session, clave__web_delete_session;
/* claims.c */
web_handler clave__web_post_claim, clave__web_get_claim, clave__web_patch_claim,
    clave__web_delete_claim, clave__web_claim_alive;
/* hold.c */
web_handler clave__web_post_hold;
/* slots.c. The *_slot_claim handlers are those of /v1/claims for a claim of kind "slot". */
web_handler clave__web_get_slots, clave__web_put_slots_limit, clave__web_break_slot;
web_handler clave__web_post_slot_claim, clave__web_get_slot_claim, clave__web_patch_slot_claim,
    clave__web_delete_slot_claim;
web_handler clave__web_fleetlock_take, clave__web_fleetlock_give;
/* locks.c */
web_handler clave__web_get_locks, clave__web_get_lock, clave__web_get_elections,
    clave__web_get_election, clave__web_get_deadlocks, clave__web_get_history,
    clave__web_get_events, clave__web_get_metrics;
/* leads.c; the first does what clave__web_get_election does, unless the request asks whether a
 * candidate leads. */
web_handler clave__web_get_election_or_leads, clave__web_get_leader, clave__web_get_replica;
/* services.c */
web_handler clave__web_get_services, clave__web_put_service, clave__web_delete_service;
/* members.c */
web_handler clave__web_get_members, clave__web_put_member, clave__web_delete_member;
/* counters.c */
web_handler clave__web_get_counter, clave__web_post_counter;
/* lock_token.c: does what clave__web_get_lock does, unless the request asks about a token. */
web_handler clave__web_get_lock_or_token;
/* lock_actions.c */
web_handler clave__web_post_revoke, clave__web_post_break, clave__web_post_transfer,
    clave__web_put_value;
/* znodes.c, znodes_write.c */
web_handler clave__web_get_znode, clave__web_put_znode, clave__web_post_znode,
    clave__web_delete_znode, clave__web_post_multi;
/* contrib.c */
web_handler clave__web_rest_get, clave__web_rest_put, clave__web_rest_post, clave__web_rest_delete,
    clave__web_rest_post_session, clave__web_rest_put_session, clave__web_rest_delete_session;

/* ==== session_request.c ======================================================================= */

/* A request that names its session. It is the owner of the exchange (x->owned). The session's
 * client counts as present from the arrival of the request until the request is answered or its
 * sender hangs up; then the request leaves the session. Invariant: after that nothing of the
 * session is touched for this request. What it may wait for:
 *
 *     live      this gate has the session (clave__session_request)
 *     listed    its nodes were listed on this connection, and a claim is here for each place that
 *               another gate made (_listed, _lists_once)
 *     proved    it was alive, and what it holds was there, at a commit since (_prove)
 *     settled   the queue of each claim was listed on this connection (_settle)
 *     news      a claim is held, is over, or has a position (_poll) */
struct session_request;
typedef void session_step(struct session_request *k);
enum answer_check { ANSWER_UNCHECKED, ANSWER_PROVED, ANSWER_LISTED };
struct session_request {
    struct web_exchange *x;
    struct http_session *s; /* NULL: the request has left it */
    session_step *handle;   /* what the request is for: it begins when the session is ready, and
                             * begins again with _lists_once */
    session_step *next;     /* the one way in which the request goes on, when what it waits for has
                             * come: by `wait` of the session, or by `poll` of its claims */
    struct session_wait wait;
    struct claim_poll poll;
    struct claim *claim; /* valid while `poll` waits; NULL: none */
    void *arg;           /* belongs to the handler */
    uint64_t since;      /* how many proofs of the session were begun before the request arrived */
    uint64_t made_on;    /* the connection on which the request made `claim`; 0: it has made none */
    uint64_t tried_on;   /* the connection on which it asked who holds what its try did not get */
    int64_t settles_by;  /* until when it waits for the state of every claim */
    unsigned listings;   /* how often the claims of the session were listed for this request */
    bool waited;         /* it has waited for news of its session's claims, and is answered now */
    enum answer_check checked; /* of claims.c: what was done before the answer */
    const char *tried; /* the id of a claim that was not granted, while the request asks who holds
                        * its path */
};

/* Finds the session of the header Clave-Session, attaches to it, and calls `handle`, now or later.
 * Otherwise answers: 401 without the header, 403 if the header proves nothing or another session
 * than `id` (NULL: any), 410 if the session has ended, or 503. */
void clave__session_request(struct web_exchange *x, const char *id, session_step *handle);
/* The same, but `handle` is called when the claims of the session are listed. */
void clave__session_request_listed(struct web_exchange *x, const char *id, session_step *handle);
/* To be called before an answer that something of the session does not exist. What this gate
 * remembers does not prove that, because another gate may have taken the session over and made the
 * thing. Returns true if the servers are being asked, and `handle` will run once more;
 * false if they have been asked already for this request, or if no other gate can have the
 * session. */
bool clave__session_request_lists_once(struct session_request *k);
/* The part of the ttl after which an answer reports a claim of unknown state as suspended; and in
 * which a request that needs the claim to be held finds out. */
enum { REPORT_SETTLES = 8, DEED_SETTLES = 2 };
/* Calls `next` when the state of every claim is known, or when 1/part of the ttl has passed
 * since the request arrived. A claim that was granted at another gate is held here only when its
 * deadline is confirmed, which takes a relay interval. */
void clave__session_request_settle(struct session_request *k, int part, session_step *next);
/* Makes the owner of a request whose session `s` is being made, and was entered. `leave` in `o`
 * calls clave__session_request_leave. Returns NULL if it has answered. */
struct session_request *clave__session_request_new(struct web_exchange *x, struct http_session *s,
                                                   const struct exchange_owner *o);
/* The `leave` of owners that are requests of a session. */
void clave__session_request_leave(struct web_exchange *x);
/* Answers that the session has ended or was never there. */
void clave__session_request_gone(struct session_request *k, clave_err why);
/* Prepares k->wait, to be handed to a function of session/http_session.h: then `next` is called, or
 * the request is answered because the session has ended (clave__session_request_gone). The wait is
 * called off when the request leaves its session. */
struct session_wait *clave__session_request_await(struct session_request *k, session_step *next);
/* Prepares k->poll likewise, to be handed to a function of session/claim.h: `next` is called at
 * news of a claim. If the request waits for its session as well, with the same `next`, the first of
 * the two to come calls off the other. */
struct claim_poll *clave__session_request_poll(struct session_request *k, session_step *next);
/* Calls `next` when the session is no longer being made or attached to (clave__http_session_await).
 */
void clave__session_request_when_live(struct session_request *k, session_step *next);
/* Calls `next` when the session was proved (clave__http_session_prove). */
void clave__session_request_prove(struct session_request *k, session_step *next);

/* Makes requests of the client, each followed by clave__web_expect(x), or answers. */
typedef void request_client(struct web_exchange *x, clave_async_client *c);

/* Calls `go` with the client, now or when the gate is attached to the session; otherwise the
 * request is answered. A request that changes something is made only on a connected client, because
 * it could otherwise be done long after its sender has given up. If the engine's own client is not
 * connected, the request is answered 503; if the client of a session is not, the request waits. */
void clave__request_client(struct web_exchange *x, request_client *go);

/* A request was submitted to the client with the result `err`. If that is OK, its callback is
 * expected; otherwise the exchange is answered with the client's own words ("cannot WHAT PATH:
 * ..."). */
void clave__request_client_sent(struct web_exchange *x, clave_async_client *c, clave_err err,
                                const char *what, const char *path);
/* Answers as that does after an error. */
void clave__request_client_refused(struct web_exchange *x, clave_async_client *c, clave_err err,
                                   const char *what, const char *path);

/* A create makes missing parents, but none where its sender may make nothing, that is, above the
 * prefix of a role: such parents must be there already. This looks for the nodes above `path` on
 * which the sender lacks the role of the route, and calls `go`, at once or later, if all of them
 * exist or there are none. Otherwise it answers: 403 that names the missing node, or what has
 * failed. `path` and `x` outlive it. */
void clave__web_check_parents(struct web_exchange *x, clave_async_client *c, const char *path,
                              request_client *go);
/* Calls `go` with the client of the request, as clave__request_client, once
 * clave__web_check_parents has found the parents of `path`. */
void clave__request_client_to_create(struct web_exchange *x, const char *path, request_client *go);

/* ==== claims.c ================================================================================ */

/* What a request for a claim asks for: k->arg of POST /v1/claims and /v1/hold. */
struct claim_request {
    struct claim_terms terms; /* `id` points to `own` if there is one */
    int64_t ttl_ms;           /* of /v1/hold; 0: not given */
    bool keyed;               /* the request has an Idempotency-Key; `own` is the id of its claim */
    char own[CLAVE_UUID_TEXT + 1];
    bool proved;    /* it was proved which claims the session has */
    bool again;     /* it was started a second time: see try_found_own */
    const char *at; /* the node that the servers are asked about */
};

/* Reads and judges the body. NULL: it has answered. */
struct claim_request *clave__claim_request_read(struct web_exchange *x);
/* Calls `next` if the servers have nothing against the claim: no parent is missing that the sender
 * may not make, and the leases of a semaphore say the same limit. Otherwise answers. */
void clave__claim_request_check(struct session_request *k, session_step *next);
/* Answers that the claim could not be made. */
void clave__claim_request_refuse(struct session_request *k, clave_err err, const char *path);
/* Answers with what k->claim is: `held` (200 or 201) if it is held, 202 if it waits, or why it was
 * not granted. If another gate may have had the session, the state is checked before, and k->next
 * then calls this once more. */
void clave__claim_answer(struct session_request *k, unsigned held);

/* Writes a claim as JSON. `proven`: since the request arrived it was proved that the claim is held,
 * or no other gate can have released it; otherwise the claim is not reported as held. */
void clave__web_put_claim(struct web_exchange *x, struct claim *c, bool proven);
/* From now on the claim is judged by the roles of this request's sender (clave__claim_admit). */
clave_err clave__web_admit_claim(const struct web_exchange *x, struct claim *c);

/* ==== slots.c ================================================================================= */

/* The ids of claims of kind "slot" begin with this. */
#define SLOT_CLAIM_ID "slot."
/* Roles have changed. Takes that nobody polls are given up, since no sender has shown that it may
 * still wait. */
void clave__slot_places_judge(struct web *w);
/* The engine's session has ended, and with it the places in queues. */
void clave__slot_places_lost(struct web *w);

/* ==== locks.c ================================================================================= */

/* The gate's copy of the tree, once it is loaded and, with ?fresh, as new as what the servers have.
 * Returns NULL if the request waits for that and is then handled again, or if it has answered. */
struct observe *clave__observe_for(struct web_exchange *x);
/* The same for lists of nodes, from which a node that is just being replaced must not be
 * missing. */
struct observe *clave__observe_settled_for(struct web_exchange *x);
/* Says how old the copy may be: with the members source, current and age_ms (`x` is the exchange);
 * and with the headers Age and Clave-Source. */
void clave__observe_copy_json(struct json *j, const void *x);
void clave__observe_copy_set_headers(struct web_exchange *x);
/* For a list of the children of `path`, or of their children; `digest` is different for every state
 * of the list. Sets ETag and the headers above. Returns false if the sender knows the list already:
 * then the request has been answered 304, or waits for a change and is handled again. */
bool clave__observe_list_is_news(struct web_exchange *x, bool grandchildren, const char *path,
                                 uint64_t digest);
/* False if the gate may not read a node on the way to `path`, so that the copy has nothing below
 * it: answers 403, "so WHAT PATH is not known". Also false, having answered, if there is no
 * memory. */
bool clave__observe_copy_covers(struct web_exchange *x, const char *path, const char *what);
/* Answers 503: "WHAT PATH is not known". */
void clave__observe_copy_answer_old(struct web_exchange *x, const char *path, const char *what);
/* True if the sender may read what concerns this path (NULL: what concerns no path). */
bool clave__observe_may_see(const struct web_exchange *x, const char *path);

/* ==== members.c =============================================================================== */

/* Nodes of the copy below `path`, sorted: its children, or their children. */
enum { MOST_LISTED = 20000 };
struct node_list {
    struct web_exchange *x;
    const char *path;
    struct observe *o;
    uint64_t copy;   /* the number of the copy from which the list is */
    uint64_t digest; /* different after every change of a node; the same at all gates */
    const char **paths;
    size_t n, at;
    const char *unreadable; /* the node of a service that the gate may not read; NULL: none */
    bool no_memory;
};
/* Fills the list from x and path. Returns false if the request waits, for the copy or for a change,
 * and is then handled again; or if it has answered, for example 503 "WHAT PATH is not known". */
bool clave__node_list_read(struct node_list *l, bool grandchildren, const char *what);
/* The next node of the list that is still there. NULL: there are no more. */
struct clave_cache_node;
const char *clave__node_list_next(struct node_list *l, struct clave_cache_node *node);

/* Sees to it that the request's session has this ephemeral node, with these data. Answers 201, or
 * 200 if the session had the node already. Texts and data are valid as long as the exchange. */
struct own_node {
    const char *path;
    const void *data; /* never NULL */
    size_t len;
    bool replace;     /* if another session has the node, that node is replaced */
    int64_t replaces; /* the only session whose node is replaced; 0: any */
    /* True if the session's node needs no change; NULL: the data are compared. */
    bool (*same)(struct web_exchange *x, const struct own_node *n, const clave_result *res);
};
/* Sets n->replaces if ?replace is the id of a session. false: it has answered 400. */
bool clave__own_node_read_replace(struct web_exchange *x, struct own_node *n);
void clave__web_put_own_node(struct web_exchange *x, const struct own_node *n);
/* Deletes that node of the session. Answers 204, or 404 if the session had none. */
void clave__web_delete_own_node(struct web_exchange *x, const char *path);

/* ==== lock_token.c ============================================================================ */

/* Finds the place at a lock's path whose fencing token is given, and whether it holds, by a listing
 * of the servers and not by the gate's copy.
 *
 * A node that holds by any listing held at that time, and holds until it is gone. So the first
 * listing may be an old one, and the caller proves the answer by a check of the node in a
 * transaction. The answer that a place does not hold is given only after a listing that follows a
 * commit, so that neither a member that lags nor a leader that was deposed can hide a grant. */

enum place_found {
    PLACE_HOLDS, /* it holds; or, if any place was asked for, it exists */
    PLACE_WAITS, /* it exists, but does not hold */
    PLACE_GONE,
};
/* `node` is its path, valid as long as the exchange; NULL if it is gone. */
typedef void place_found_cb(struct web_exchange *x, clave_async_client *c, void *arg,
                            enum place_found found, const char *node);

struct place_question {
    const char *path; /* valid as long as the exchange */
    int64_t token;
    bool any; /* the place need not hold */
    place_found_cb *done;
    void *arg;
};

/* Calls `done` later; or answers, now or later, and then nothing was changed. */
void clave__place_search(struct web_exchange *x, clave_async_client *c,
                         const struct place_question *q);

/* Clave-Guard: PATH;token=T. A write is done only while the lock at PATH is held
 * with the fencing token T: the node whose creation the token is must hold, and be there in the
 * same transaction. The header may name several locks, separated by commas or in several lines; all
 * of them must be held. */

enum { MOST_GUARDS = 16 };

struct guard {
    const char *path;
    int64_t token;
    const char *node; /* checked in the transaction, once it was found */
};

struct guards {
    struct guard list[MOST_GUARDS];
    size_t n;
    void (*found)(struct web_exchange *x, clave_async_client *c);
    size_t at; /* that is looked for */
};

/* false: it has answered 400, 401 or 403. */
bool clave__guards_read(struct web_exchange *x, struct guards *out);

/* Looks for the node of each, and calls `found` when all hold; or answers 410, or 409 for a place
 * that waits. It is kept in x->state's memory: `g` lasts as long as the exchange. */
void clave__guards_find(struct web_exchange *x, clave_async_client *c, struct guards *g,
                        void (*found)(struct web_exchange *x, clave_async_client *c));
/* The operations that a transaction begins with: g->n of them. */
void clave__guards_put_checks(const struct guards *g, clave_op *ops);
/* True if the transaction failed because of a guard; then it has answered 410 or 403. */
bool clave__guards_failed(struct web_exchange *x, const struct guards *g, const clave_result *res);

/* ==== znodes.c ================================================================================ */

/* NULL: null. */
void clave__web_json_stat(struct json *j, const char *key, const clave_stat *st);

/* Reads the array of access entries {perms, scheme, id}; texts belong to the exchange. false: it
 * has answered. `list` NULL: *acls is NULL. */
bool clave__web_read_acls(struct web_exchange *x, const json_t *list, const clave_acl **acls,
                          size_t *n);

/* Requests that wait until a znode changes: makes w->znode_polls. ENOMEM. */
clave_err clave__znode_polls_new(struct web *w);
/* After the engine's own client is freed. */
void clave__znode_polls_free(struct web *w);

/* The entity tag of an answer: of the data and its version, of a list of children, or of an access
 * list. `st` NULL: the node is not there. */
enum znode_tag { ZNODE_TAG_DATA, ZNODE_TAG_CHILDREN, ZNODE_TAG_ACL };
enum { ZNODE_TAG_CAP = 48 };
void clave__znode_tag(char out[ZNODE_TAG_CAP], enum znode_tag kind, const clave_stat *st);

/* ==== contrib.c =============================================================================== */

/* Forgets the sessions of the contrib gateway, which end with the engine's sessions. */
void clave__rest_sessions_free(struct web *w);

/* ==== server.c ================================================================================ */

/* How the server and the gate have been doing in the last hour. The gate's own figures are taken
 * here, the server's come from the driver (web.h), if the server is in the same process. A sample
 * every SAMPLE_MS, the newest SAMPLES of them. */
struct server_trend;
/* Makes w->figures. ENOMEM. */
clave_err clave__server_trend_new(struct web *w);
void clave__server_trend_free(struct web *w);
void clave__server_trend_take(struct server_trend *f, const int64_t figures[WEB_FIGURES]);

/* The files of the page, src/page, compressed, for struct web_options. Made by
 * cmake/page_assets.cmake. */
extern const struct web_asset clave__page_assets[];
extern const size_t clave__page_nassets;

#endif
