/* heartbeat.c - signs of life, driven by clave_async_client_tick, and the list of holds that need
 * them. A session that holds nothing pings after a third of its timeout without sending anything,
 * as every ZooKeeper client does. A session with holds sends a heartbeat every quarter of its
 * timeout, which keeps the hold deadline ahead (hold_deadline.h); client_connection.c reports LOST
 * at that deadline.
 *
 * On a standalone server a ping is enough. In an ensemble the heartbeat must pass the leader, so it
 * is a multi that checks held nodes, which also proves that they still exist. On every connection
 * the client asks which of the two the server is. Until it knows, and if it cannot find out, it
 * assumes an ensemble, which is safe. */
#include <assert.h>

#include "base/deadline.h"
#include "client/client_internal.h"
#include "client/request/client_request.h"

/* ---- whether the server is standalone -------------------------------------------------------- */

static bool heartbeat_is_standalone(const clave_async_client *c)
{
    return c->hold_deadline.relay_ms == 0;
}

/* The answer: /zookeeper/config is empty on a standalone server and lists the members in an
 * ensemble. In an ensemble, a session that was re-attached with holds keeps its previous deadline
 * until something is committed. */
static void standalone_server_on_config(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)arg;
    if (res->err == CLAVE_OK && res->len == 0)
        clave__hold_deadline_set_relay(&c->hold_deadline, 0);
    else if (c->hold_deadline.proven < c->hold_deadline.attached)
        clave__heartbeat_catch_up(c);
    clave__session_hold_moved(c);
}

/* If there is no memory for the request, the server is assumed to be a member of an ensemble, which
 * is safe. */
void clave__standalone_server_ask(clave_async_client *c)
{
    struct request *r;
    struct request_spec spec = {.again = AGAIN_NEVER,
                                .op = OP_GET_DATA,
                                .path = "/zookeeper/config",
                                .cb = standalone_server_on_config,
                                .quiet = true,
                                .raw = true};
    union wire_body body = {.read = {.path = clave__jbytes(spec.path)}};
    if (clave__request_new(c, &spec, &body, &r) == CLAVE_OK)
        clave__pipeline_submit(c, r);
}

static int64_t heartbeat_interval(const clave_async_client *c)
{
    int64_t quarter = c->session.timeout_ms / 4;
    /* A heartbeat sent less than a relay interval after the last one proves nothing new. */
    return c->hold_deadline.relay_ms > quarter ? c->hold_deadline.relay_ms : quarter;
}

/* How long a confirmed heartbeat may take. After that the member, which has probably lost its
 * leader, is left for another one while there is time. */
static int64_t heartbeat_confirm_timeout(const clave_async_client *c)
{
    return c->session.timeout_ms / 6;
}

/* ---- pings ----------------------------------------------------------------------------------- */

static void heartbeat_ping(clave_async_client *c)
{
    assert(!c->heartbeat.ping_out);
    struct wire_request q = {.xid = XID_PING, .op = OP_PING};
    if (clave__unqueued_request_put(c, &q) != CLAVE_OK) {
        clave__link_report(c, VERDICT_DROP, CLAVE_ENOMEM, NULL);
        return;
    }
    c->heartbeat.ping_out = true;
    c->heartbeat.ping_sent = c->base.now;
}

/* ---- confirmed heartbeats -------------------------------------------------------------------- */

static void heartbeat_confirm(clave_async_client *c);

/* True if the error confirms nothing, but another member might. That excludes the client's own
 * errors, and those that every member would give for these nodes or out of overload, since a new
 * connection would not help. */
static bool heartbeat_is_this_members(const clave_result *res)
{
    return res->nops == 0 && res->err != CLAVE_ECONNLOSS && res->err > CLAVE_ENOMEM &&
           !clave__pipeline_was_committed(res->err) && res->err != CLAVE_ENOAUTH &&
           res->err != CLAVE_ETHROTTLED && res->err != CLAVE_EEXPIRED;
}

static void heartbeat_on_confirmed(clave_async_client *c, const clave_result *res, void *arg)
{
    struct heartbeat *b = &c->heartbeat;
    struct hold *missing = NULL;
    (void)arg;
    for (size_t i = 0; i < res->nops && i < HEARTBEAT_HOLDS; i++)
        if (res->ops[i].err == CLAVE_ENONODE)
            missing = b->checked[i];
    b->confirming = false;
    b->before = b->confirmed;
    b->answered = b->confirmed = c->base.now;
    if (clave__pipeline_was_committed(res->err)) {
        b->took = b->answered - b->asked;
        clave__link_has_served(c);
    }
    if (clave__link_is_open(&c->link) && heartbeat_is_this_members(res))
        clave__link_report(c, VERDICT_REFUSED, res->err, "a heartbeat");
    else if (b->wanted)
        heartbeat_confirm(c); /* if it is sent only now, it proves more */
    if (missing)
        missing->on_missing(missing);
}

/* Chooses the holds to check, and moves them to the end of the list so that each gets its turn. */
static size_t heartbeat_choose(clave_async_client *c, clave_op *ops)
{
    struct heartbeat *b = &c->heartbeat;
    size_t n = 0;
    struct list chosen;
    list_init(&chosen);
    while (n < HEARTBEAT_HOLDS && !list_empty(&c->holds)) {
        struct list *l = c->holds.next;
        list_remove(l);
        list_push_back(&chosen, l);
        b->checked[n] = LIST_ENTRY(l, struct hold, link);
        ops[n] = (clave_op){.kind = CLAVE_OP_CHECK, .path = b->checked[n]->path, .version = -1};
        n++;
    }
    list_splice(&c->holds, &chosen);
    return n;
}

static void heartbeat_confirm(clave_async_client *c)
{
    assert(!c->heartbeat.confirming);
    struct heartbeat *b = &c->heartbeat;
    clave_op ops[HEARTBEAT_HOLDS] = {{.kind = CLAVE_OP_CHECK, .path = "/", .version = -1}};
    size_t n = heartbeat_choose(c, ops);
    if (n == 0)
        b->checked[n++] = NULL; /* the root always exists */
    struct request_spec spec = {.ops = ops, .nops = n, .cb = heartbeat_on_confirmed, .quiet = true};
    union wire_body body;
    struct request *r;
    b->asked = b->answered = c->base.now;
    b->wanted = false;
    b->confirming = clave__encode_multi(c, &spec, &body) == CLAVE_OK &&
                    clave__request_new(c, &spec, &body, &r) == CLAVE_OK;
    if (b->confirming)
        clave__pipeline_submit(c, r);
}

static void heartbeat_beat(clave_async_client *c)
{
    struct heartbeat *b = &c->heartbeat;
    bool out = heartbeat_is_standalone(c) ? b->ping_out : b->confirming;
    b->wanted = out; /* send another one once this one is answered */
    if (out)
        return;
    if (heartbeat_is_standalone(c))
        heartbeat_ping(c);
    else
        heartbeat_confirm(c);
}

/* ---- when ------------------------------------------------------------------------------------ */

static void heartbeat_settle_holds(clave_async_client *c)
{
    struct list round;
    struct list *l;
    list_init(&round);
    list_splice(&round, &c->holds);
    while ((l = list_pop_front(&round))) {
        struct hold *h = LIST_ENTRY(l, struct hold, link);
        list_push_back(&c->holds, l);
        if (h->settled || c->base.now < h->since + heartbeat_interval(c))
            continue;
        clave__client_settle_hold(h);
    }
}

/* When the next heartbeat of a session with holds is due: every interval; sooner if the deadline is
 * close; but never less than a sixteenth of the timeout after the last answer, because answers
 * closer together than a relay interval prove nothing. */
static int64_t heartbeat_next_in_time(const clave_async_client *c)
{
    const struct heartbeat *b = &c->heartbeat;
    int64_t timeout = c->session.timeout_ms;
    int64_t deadline = clave__hold_deadline_get(&c->hold_deadline);
    int64_t soon = deadline == INT64_MIN ? CLAVE_NEVER : deadline - timeout / 4;
    int64_t at = deadline_earlier(b->answered + heartbeat_interval(c), soon);
    int64_t least = b->answered + timeout / 16;
    return at > least ? at : least;
}

/* The same in an ensemble that answers slowly. A heartbeat counts for T - T/8, where T is the
 * session timeout. Within that time two more heartbeats must be sent, each an interval I after the
 * previous answer, and answered. If an answer takes L, that leaves T - T/8 - 3 L - 2 I until the
 * deadline. A command under the hold is ended when T/4 is left, so an L of T/24 would already be
 * too much. Therefore twice as many heartbeats are sent, each at the time at which it proves the
 * last but one, which leaves T - T/8 - L - 1.5 (L + I). */
static int64_t heartbeat_next_when_slow(const clave_async_client *c)
{
    const struct heartbeat *b = &c->heartbeat;
    int64_t interval = heartbeat_interval(c), least = c->session.timeout_ms / 32;
    int64_t half = (interval - b->took) / 2;
    int64_t even = b->answered + (half > least ? half : least), proves = b->before + interval;
    return even > proves ? even : proves;
}

static int64_t heartbeat_next_beat(const clave_async_client *c)
{
    bool slow = !heartbeat_is_standalone(c) && c->heartbeat.took > c->session.timeout_ms / 32;
    return slow ? heartbeat_next_when_slow(c) : heartbeat_next_in_time(c);
}

int64_t clave__heartbeat_deadline(const clave_async_client *c)
{
    const struct heartbeat *b = &c->heartbeat;
    if (!clave__link_is_open(&c->link) || c->pipeline.close_sent)
        return CLAVE_NEVER;
    if (b->confirming)
        return b->asked + heartbeat_confirm_timeout(c);
    if (b->ping_out)
        return CLAVE_NEVER; /* client_connection.c deals with silent servers */
    return list_empty(&c->holds) ? c->link.wrote + c->session.timeout_ms / 3
                                 : heartbeat_next_beat(c);
}

void clave__heartbeat_tick(clave_async_client *c)
{
    if (c->base.now < clave__heartbeat_deadline(c))
        return;
    if (c->heartbeat.confirming) {
        clave__client_fault(c, "%s does not pass a heartbeat to its leader",
                            clave__hosts_current(&c->hosts)->name);
        clave__link_report(c, VERDICT_DROP, CLAVE_ETIMEDOUT, NULL);
    } else if (!list_empty(&c->holds)) {
        heartbeat_beat(c);
        heartbeat_settle_holds(c);
    } else {
        heartbeat_ping(c);
    }
}

/* An error is not a sign of life: the session has ended or moved, or the server did not check it. A
 * server that throttles us keeps its connection, though. */
void clave__heartbeat_ping_answered(clave_async_client *c, clave_err err)
{
    struct heartbeat *b = &c->heartbeat;
    if (!b->ping_out)
        return;
    if (err != CLAVE_OK && err != CLAVE_ETHROTTLED) {
        clave__link_report(c, VERDICT_REFUSED, err, "a ping");
        return;
    }
    b->ping_out = false;
    b->answered = c->base.now;
    if (err == CLAVE_OK) {
        clave__hold_deadline_answered(&c->hold_deadline, b->ping_sent, c->base.now);
        clave__link_has_served(c);
    }
    clave__session_hold_moved(c);
    if (b->wanted)
        heartbeat_beat(c);
}

/* Commits something. Once that is answered, the member has caught up with everything the session
 * has seen. Otherwise the session could be on a member that lags behind: before ZooKeeper 3.9, the
 * event that granted a lock carries no zxid that would prevent this, and a write whose answer was
 * lost may have been done. */
void clave__heartbeat_catch_up(clave_async_client *c)
{
    struct list others;
    if (list_empty(&c->holds) || c->heartbeat.confirming || c->session.closing)
        return;
    list_init(&others);
    list_splice(&others, &c->pipeline.unsent);
    heartbeat_confirm(c);
    list_splice(&c->pipeline.unsent, &others);
}

void clave__heartbeat_detached(clave_async_client *c)
{
    c->heartbeat.ping_out = false;
    c->heartbeat.wanted = false;
    c->heartbeat.took = 0;
    /* `confirming` is reset by its request, which fails now. */
}

/* ---- for recipes ----------------------------------------------------------------------------- */

void clave__client_confirm(clave_async_client *c)
{
    if (clave__link_is_open(&c->link) && !c->pipeline.close_sent)
        heartbeat_beat(c);
}

void clave__client_await_confirm(clave_async_client *c, struct confirm_waiter *w)
{
    list_push_back(&c->confirms, &w->link);
}

/* ---- holds ----------------------------------------------------------------------------------- */

void clave__client_hold(clave_async_client *c, struct hold *h)
{
    if (list_empty(&c->holds))
        c->heartbeat.answered = c->base.now; /* the first interval begins */
    h->since = c->base.now;
    h->settled = false;
    list_push_back(&c->holds, &h->link);
    clave__session_hold_moved(c);
}

void clave__client_unhold(clave_async_client *c, struct hold *h)
{
    assert(!list_empty(&h->link));
    list_remove(&h->link);
    for (size_t i = 0; i < HEARTBEAT_HOLDS; i++)
        if (c->heartbeat.checked[i] == h)
            c->heartbeat.checked[i] = NULL;
    clave__session_hold_moved(c);
}

void clave__client_settle_hold(struct hold *h)
{
    h->settled = true;
    h->on_settled(h);
}
