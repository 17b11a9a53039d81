/* lock_actions.c - acting on other clients' places in a queue, and what only a leader may do: POST
 * /v1/locks/PATH/revoke and /break, POST /v1/elections/PATH/transfer, PUT /v1/elections/PATH/value.
 *
 * Invariants: revoke and break touch nothing but a place in a queue: a node that has the name of a
 * place and, for a revoke, is ephemeral. So the role "lock" on a path does not become a right to
 * write below that path. The value of a leader is written only in one transaction with a check of
 * the leader's node. */
#include "web/api/api.h"

#include <assert.h>
#include <string.h>

#include "base/path.h"
#include "clave/async/leader.h"
#include "clave/async/mutex.h"
#include "recipe/queue/identity.h"
#include "recipe/queue/queue_kind.h"
#include "recipe/queue/queue_nodes.h"
#include "web/observe/observe.h"

/* ==== revoke, break =========================================================================== */

struct revoke {
    const char *node; /* the name of the node; NULL: the node with the token */
    int64_t token;    /* 0: any, until the node is found */
    bool breaks, force;
    size_t place;     /* index in `places` */
    const char *path; /* of the node */
};

/* Where the nodes of a lock can be, relative to its path: directly below it; for a semaphore, in
 * "leases" and "locks"; places that wait for slots, in "queue". */
static const char *const places[] = {NULL, "leases", "locks", "queue"};

static const char *revoke_verb(const struct revoke *r)
{
    return r->breaks ? "break" : "revoke";
}

/* ---- the change ----------------------------------------------------------------------------- */

/* Writes true if the node says that its owner responds to requests to release. The owner is asked
 * in any case, unless its node says that it does not respond. */
static void revoke_put_revocable(struct web_exchange *x, const clave_result *res)
{
    clave_identity id = {.revocable = 0};
    char *text = clave__web_alloc(x, res->len + 1);
    if (text && res->data) {
        memcpy(text, res->data, res->len);
        text[res->len] = '\0';
        clave__identity_parse(text, res->len, &id);
    }
    if (id.revocable)
        clave__json_bool(&x->json, "revocable", true);
    else
        clave__json_string(&x->json, "revocable", NULL);
}

static void on_revoke_done(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    if (!clave__web_expected(x))
        return;
    const struct revoke *r = x->state;
    if (!r->breaks && res->err == CLAVE_EINVAL) {
        clave__web_refuse(x, 409, CLAVE_EINVAL, x->params[0], "%s: end it, or break the lock",
                          clave_async_client_errmsg(c));
        return;
    }
    if (res->err != CLAVE_OK &&
        res->err != CLAVE_ENONODE) { /* the node is gone: it was released a moment ago */
        clave__web_problem_err(x, res->err, revoke_verb(r), r->path);
        return;
    }
    /* Only a break that was carried out is recorded; if its answer is lost, the cause stays
     * unknown. */
    if (r->breaks && res->err == CLAVE_OK)
        clave__observe_cause(x->web->observe, r->token, LOCK_BROKEN);
    if (res->err == CLAVE_OK)
        clave__observe_deed(x, r->token, r->breaks ? LOCK_ENDED : LOCK_ASKED);
    clave__json_open(&x->json, NULL, '{');
    clave__json_string(&x->json, "path", x->params[0]);
    clave__json_string(&x->json, "node", clave__path_name(r->path));
    if (!r->breaks && res->err == CLAVE_OK)
        revoke_put_revocable(x, res);
    clave__web_answer_object(x, 200);
}

/* Acts on the path, although the token was checked before, because ZooKeeper can make a delete
 * depend on a version of the data but not on a czxid. That is safe since names do not recur: their
 * numbers grow for as long as the parent exists, and the names of clave, Curator and kazoo contain
 * a UUID as well. The exception is a kazoo lease, whose name is only the UUID of its object: if the
 * same object releases and takes a lease again within one round trip, the new lease is deleted. */
static void revoke_change(struct web_exchange *x, clave_async_client *c)
{
    const struct revoke *r = x->state;
    x->only_reads = false;
    clave_err err = r->breaks ? clave_async_delete(c, r->path, -1, on_revoke_done, x)
                              : clave_async_revoke(c, r->path, on_revoke_done, x);
    clave__request_client_sent(x, c, err, revoke_verb(r), r->path);
}

/* ---- the node ------------------------------------------------------------------------------- */

/* Every child of "leases" is a lease. */
static bool revoke_is_place(const struct revoke *r)
{
    return r->place == 1 || clave__queue_kind_of(clave__path_name(r->path)) != QUEUE_OTHER;
}

static const char *revoke_fault(const struct revoke *r, const clave_stat *st)
{
    if (!revoke_is_place(r))
        return "it is no place in a queue";
    bool owned = !clave__queue_node_is_left_over(st);
    if (r->breaks && owned && !r->force)
        return "the session that owns it is alive: revoke it, end its owner, or say \"force\"";
    if (!r->breaks && !owned)
        return "no session owns it, so that nobody can be asked";
    return NULL;
}

static void revoke_look(struct web_exchange *x, clave_async_client *c);

static void on_revoke_stat(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    if (!clave__web_expected(x))
        return;
    struct revoke *r = x->state;
    if (res->err == CLAVE_ENONODE && r->node && ++r->place < sizeof places / sizeof *places) {
        revoke_look(x, c);
        return;
    }
    bool other = res->err == CLAVE_OK && r->token && res->stat->czxid != r->token;
    const char *fault = res->err == CLAVE_OK && !other ? revoke_fault(r, res->stat) : NULL;
    if (res->err == CLAVE_ENONODE || other)
        clave__web_refuse(x, 404, CLAVE_ENONODE, x->params[0],
                          "no place of %s has this node and token", x->params[0]);
    else if (res->err != CLAVE_OK)
        clave__web_problem_err(x, res->err, revoke_verb(r), r->path);
    else if (fault)
        clave__web_refuse(x, 409, CLAVE_EINVAL, x->params[0], "cannot %s %s: %s", revoke_verb(r),
                          r->path, fault);
    else {
        r->token = res->stat->czxid;
        revoke_change(x, c);
    }
}

static void revoke_ask_stat(struct web_exchange *x, clave_async_client *c)
{
    const struct revoke *r = x->state;
    x->deed.path = r->path;
    x->only_reads = true;
    clave_err err =
        r->path ? clave_async_exists(c, r->path, NULL, on_revoke_stat, x) : CLAVE_ENOMEM;
    clave__request_client_sent(x, c, err, revoke_verb(r), x->params[0]);
}

static void revoke_look(struct web_exchange *x, clave_async_client *c)
{
    struct revoke *r = x->state;
    assert(r->node && r->place < sizeof places / sizeof *places);
    const char *dir = x->params[0];
    if (places[r->place])
        dir = clave__web_child(x, dir, places[r->place]);
    r->path = dir ? clave__web_child(x, dir, r->node) : NULL;
    revoke_ask_stat(x, c);
}

static void revoke_found(struct web_exchange *x, clave_async_client *c, void *arg,
                         enum place_found found, const char *node)
{
    struct revoke *r = arg;
    r->path = node;
    if (found == PLACE_GONE)
        clave__web_refuse(x, 410, CLAVE_ELOST, x->params[0],
                          "no place of %s has the token %lld any more", x->params[0],
                          (long long)r->token);
    else
        revoke_ask_stat(x, c);
}

static void revoke_go(struct web_exchange *x, clave_async_client *c)
{
    struct revoke *r = x->state;
    const struct place_question q = {x->params[0], r->token, true, revoke_found, r};
    if (r->node)
        revoke_look(x, c);
    else
        clave__place_search(x, c, &q);
}

/* ---- the request ---------------------------------------------------------------------------- */

static void revoke_begin(struct web_exchange *x, bool breaks)
{
    struct revoke *r = clave__web_must_alloc(x, sizeof *r);
    if (!r)
        return;
    r->breaks = breaks;
    const struct body_member members[] = {
        {"node", .text = &r->node},
        {"token", .number = &r->token, .least = 1, .most = INT64_MAX},
        {"reason", .text = &x->deed.reason},
        {"force", .flag = &r->force},
    };
    if (!clave__web_read_body(x, BODY_MEMBERS(members)))
        return;
    x->state = r;
    if ((!r->node && !r->token) || (r->node && strchr(r->node, '/')))
        clave__web_bad_request(x, "which place? \"node\", its name, or \"token\"");
    else
        clave__request_client(x, revoke_go);
}

void clave__web_post_revoke(struct web_exchange *x)
{
    revoke_begin(x, false);
}

void clave__web_post_break(struct web_exchange *x)
{
    revoke_begin(x, true);
}

/* ==== transfer ================================================================================ */

struct transfer {
    const char *node; /* of the candidate */
    int64_t leader;   /* the token of the leader who is asked; 0: not known */
};

static void transfer_on_done(clave_async_client *c, clave_err err, void *arg)
{
    struct web_exchange *x = arg;
    (void)c;
    if (!clave__web_expected(x))
        return;
    const struct transfer *t = x->state;
    if (err != CLAVE_OK) {
        clave__web_problem_err(x, err, "transfer the leadership of", x->params[0]);
        return;
    }
    if (t->leader)
        clave__observe_deed(x, t->leader, LOCK_ASKED);
    clave__json_open(&x->json, NULL, '{');
    clave__json_string(&x->json, "path", x->params[0]);
    clave__json_string(&x->json, "node", t->node);
    clave__web_answer_object(x, 200);
}

/* The leader according to the gate's copy of the tree. */
static int64_t transfer_leader(const struct web_exchange *x)
{
    const struct lock_queue *q =
        clave__lock_model_get(&x->web->observe->model, x->params[0], false);
    const struct lock_node *leader = q ? clave__lock_holder_after(q, NULL) : NULL;
    return leader ? leader->token : 0;
}

static void transfer_go(struct web_exchange *x, clave_async_client *c)
{
    struct transfer *t = x->state;
    t->leader = transfer_leader(x);
    clave_err err = clave_async_leader_transfer(c, x->params[0], t->node, transfer_on_done, x);
    clave__request_client_sent(x, c, err, "transfer the leadership of", x->params[0]);
}

void clave__web_post_transfer(struct web_exchange *x)
{
    struct transfer *t = clave__web_must_alloc(x, sizeof *t);
    if (!t)
        return;
    const struct body_member members[] = {{"to", .text = &t->node},
                                          {"reason", .text = &x->deed.reason}};
    if (!clave__web_read_body(x, BODY_MEMBERS(members)))
        return;
    if (!t->node || strchr(t->node, '/')) {
        clave__web_bad_request(x, "\"to\" must be the node of a candidate");
        return;
    }
    x->state = t;
    x->deed.path = clave__web_child(x, x->params[0], t->node);
    clave__request_client(x, transfer_go);
}

/* ==== the value of a leader =================================================================== */

static void value_lost(struct web_exchange *x)
{
    clave__web_refuse(x, 410, CLAVE_ELOST, x->params[0], "this session does not lead %s",
                      x->params[0]);
}

static void on_value_published(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    (void)c;
    if (!clave__web_expected(x))
        return;
    if (res->err == CLAVE_OK)
        clave__web_answer_empty(x, 204);
    else if (res->err == CLAVE_ELOST || res->err == CLAVE_ENOTHELD)
        value_lost(x);
    else
        clave__web_problem_err(x, res->err, "publish the value of", x->params[0]);
}

static struct claim *value_claim(struct http_session *s, const char *path)
{
    for (struct claim *c = NULL; (c = clave__claim_after(s, c));) {
        if (c->state == CLAIM_HELD && c->kind->publish && strcmp(c->path, path) == 0)
            return c;
    }
    return NULL;
}

static void value_publish(struct session_request *k)
{
    struct web_exchange *x = k->x;
    struct claim *c = value_claim(k->s, x->params[0]);
    if (!c && clave__session_request_lists_once(k))
        return;
    clave_err err = c ? c->kind->publish(c, clave__web_body_bytes(x), clave__web_body_len(x),
                                         on_value_published, x)
                      : CLAVE_ENOTHELD;
    if (err == CLAVE_OK) {
        clave__web_expect(x);
        clave__http_session_flush(k->s);
        return;
    }
    if (err == CLAVE_ENOTHELD)
        value_lost(x);
    else
        clave__web_problem_err(x, err, "publish the value of", x->params[0]);
}

/* The session may have been granted the leadership at another gate, so that is settled first. */
static void value_put(struct session_request *k)
{
    clave__session_request_settle(k, DEED_SETTLES, value_publish);
}

/* The value is stored in a node beside the election's. */
void clave__web_put_value(struct web_exchange *x)
{
    if (!clave__param_path(x))
        return;
    char *node = clave__web_sprintf(x, "%s-value", x->params[0]);
    if (!node)
        clave__web_problem_err(x, CLAVE_ENOMEM, "publish the value of", x->params[0]);
    x->deed.path = node;
    if (node && clave__web_must(x, WEB_LOCK, node))
        clave__session_request_listed(x, NULL, value_put);
}
