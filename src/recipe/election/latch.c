/* latch.c - a candidate of an election: clave/async/latch.h.
 *
 * How it works. A candidate takes one place in a queue after another. A place is a contender, which
 * does the work with the server and whose events change the state (drawn in latch_internal.h). The
 * first in the queue leads, unless a priority says otherwise. Leadership ends
 * when the place is lost, when the user gives it up or, by the standard policy, with the
 * connection; the candidate then queues again at the end, automatically.
 *
 * What must stay true. Only latch_enter changes the state. LEADER and NOT_LEADER alternate;
 * a loss that a call of the user's causes is reported later, but before anything else. No two terms
 * have the same token, so each place leads at most once. What a term leaves at the server, its
 * value and its node, is given up before the next place is requested, since requests on one
 * connection are executed in order. Callbacks of awaits and closes run exactly once, never inside
 * the call that caused them, and keep the latch alive until then. */
#include <assert.h>
#include <string.h>

#include "base/deadline.h"
#include "base/hash/fnv.h"
#include "base/list.h"
#include "base/path.h"
#include "client/client_for_recipes.h"
#include "recipe/contender/contender_grant.h"
#include "recipe/contender/guarded_write.h"
#include "recipe/election/latch_internal.h"
#include "recipe/queue/priority_tag.h"

enum { RETRY_MS = 1000 };

#define TO(state) (1u << LATCH_##state)
static const unsigned moves[] = {
    [LATCH_LATENT] = TO(QUEUED) | TO(CLOSED),
    [LATCH_OUT] = TO(OUT) | TO(FAILED) | TO(QUEUED) | TO(CLOSED),
    [LATCH_FAILED] = TO(OUT) | TO(CLOSED),
    [LATCH_QUEUED] = TO(OUT) | TO(CLAIMED) | TO(FIRST) | TO(CLOSED),
    [LATCH_CLAIMED] = TO(OUT) | TO(QUEUED) | TO(FIRST) | TO(CLOSED),
    [LATCH_FIRST] = TO(OUT) | TO(LEADING) | TO(CLOSED),
    [LATCH_LEADING] = TO(OUT) | TO(ASKED) | TO(SPENT) | TO(CLOSED),
    [LATCH_ASKED] = TO(OUT) | TO(SPENT) | TO(CLOSED),
    [LATCH_SPENT] = TO(OUT) | TO(CLOSED),
    [LATCH_CLOSED] = 0,
};
#undef TO

/* Changes the state; nothing else does. Entering a state without a place lets go of the place. */
static void latch_enter(clave_async_latch *l, enum latch_state to)
{
    bool allowed = moves[l->state] & (1u << to);
    bool has_place = to >= LATCH_QUEUED && to <= LATCH_SPENT;
    assert(allowed);
    (void)allowed;
    if (clave__latch_leads(l) && to != LATCH_ASKED)
        clave__contender_end_hold(l->place);
    l->state = to;
    if (!has_place)
        l->place = NULL;
    assert(!l->place == !has_place);
}

/* ---- reporting ------------------------------------------------------------------------------- */

void clave__latch_hold(clave_async_latch *l)
{
    l->refs++;
}

void clave__latch_drop(clave_async_latch *l)
{
    assert(l->refs > 0);
    if (--l->refs > 0)
        return;
    list_remove(&l->loss.link);
    clave__client_timer_clear(l->client, &l->retry);
    clave__client_timer_clear(l->client, &l->regain);
    clave__client_timer_clear(l->client, &l->promised);
    clave__client_unlisten(&l->listener);
    clave__contender_config_fini(&l->config);
    clave__mem_free(l->mem, l->ranked_stem);
    clave__mem_free(l->mem, l->id);
    clave__mem_free(l->mem, l);
}

static void latch_emit(clave_async_latch *l, const clave_latch_event *ev)
{
    if (l->event_cb)
        l->event_cb(l, ev, l->event_arg);
}

static void latch_tell_loss(struct client_task *loss)
{
    clave_async_latch *l = LIST_ENTRY(loss, struct clave_async_latch, loss);
    list_remove(&loss->link);
    clave__latch_hold(l);
    latch_emit(l, &(clave_latch_event){.kind = CLAVE_LATCH_NOT_LEADER, .why = CLAVE_OK});
    clave__latch_drop(l);
}

/* Reports NOT_LEADER if that is still owed after a call of the user's. */
static void latch_tell_owed_loss(clave_async_latch *l)
{
    if (!list_empty(&l->loss.link))
        latch_tell_loss(&l->loss);
}

static void latch_tell(clave_async_latch *l, clave_latch_event ev)
{
    latch_tell_owed_loss(l);
    latch_emit(l, &ev);
}

/* Tries again, after a pause, what failed for want of memory or for a reason that may pass. */
static void latch_try_later(clave_async_latch *l)
{
    clave__client_timer_set(l->client, &l->retry, clave__client_now(l->client) + RETRY_MS);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

/* An await, which waits for leadership until its deadline, or the callback of a close. It keeps the
 * latch alive. */
struct latch_callback {
    struct client_task due;
    struct list link;   /* for an await: in the latch's list until it has run */
    struct timer limit; /* for an await: its deadline */
    int64_t deadline;
    clave_async_latch *l;
    clave_async_latch_cb *cb;
    void *arg;
    clave_err verdict; /* CLAVE_OK: it leads, or the close has ended */
};

/* Frees the callback, then runs it, so that it finds everything consistent. */
static void callback_run(struct latch_callback *k, clave_err verdict)
{
    clave_async_latch *l = k->l;
    clave_async_latch_cb *cb = k->cb;
    void *arg = k->arg;
    clave__client_timer_clear(l->client, &k->limit);
    list_remove(&k->due.link);
    list_remove(&k->link);
    clave__mem_free(l->mem, k);
    cb(l, verdict, arg);
    clave__latch_drop(l);
}

static void callback_on_limit(struct timer *t, int64_t now)
{
    (void)now;
    struct latch_callback *k = LIST_ENTRY(t, struct latch_callback, limit);
    const clave_async_latch *l = k->l;
    callback_run(k, l->place ? clave__contender_not_in_time(l->place)
                             : clave__client_not_in_time(l->client, 0));
}

static void callback_wait(struct latch_callback *k)
{
    if (k->deadline != CLAVE_NEVER)
        clave__client_timer_set(k->l->client, &k->limit, k->deadline);
}

static void callback_on_due(struct client_task *t)
{
    struct latch_callback *k = LIST_ENTRY(t, struct latch_callback, due);
    latch_tell_owed_loss(k->l);
    bool awaits = !list_empty(&k->link);
    if (awaits && k->verdict == CLAVE_OK && !clave__latch_leads(k->l))
        callback_wait(k); /* NOT_LEADER has been reported since */
    else
        callback_run(k, k->verdict);
}

static clave_err callback_new(struct latch_callback **out, clave_async_latch *l,
                              clave_async_latch_cb *cb, void *arg)
{
    struct latch_callback *k = clave__mem_zalloc(l->mem, sizeof *k);
    *out = k;
    if (!k)
        return CLAVE_ENOMEM;
    list_init(&k->link);
    list_init(&k->due.link);
    k->due.run = callback_on_due;
    clave__timer_init(&k->limit, callback_on_limit);
    k->l = l;
    k->cb = cb;
    k->arg = arg;
    clave__latch_hold(l);
    return CLAVE_OK;
}

/* Runs the callback later. */
static void callback_post(struct latch_callback *k, clave_err verdict)
{
    clave__client_timer_clear(k->l->client, &k->limit);
    k->verdict = verdict;
    if (list_empty(&k->due.link))
        clave__client_later(k->l->client, &k->due);
}

/* Runs all awaits. With an error, this includes those whose callback was about to report that it
 * leads. */
static void latch_post_awaits(clave_async_latch *l, clave_err verdict)
{
    for (struct list *e = l->awaits.next; e != &l->awaits; e = e->next) {
        struct latch_callback *k = LIST_ENTRY(e, struct latch_callback, link);
        if (k->verdict == CLAVE_OK)
            callback_post(k, verdict);
    }
}

/* ---- the leader's value ------------------------------------------------------------------------
 *
 * The value's node may already exist. If it is our own, it is written to; if it is a former
 * leader's, it would vanish with that leader's session, so it is replaced. The server's answer
 * shows which it is. A value is written only in a transaction that checks the leader's node. */

bool clave__latch_lead(const clave_async_latch *l, struct latch_lead *out)
{
    if (!clave__latch_leads(l))
        return false;
    *out = (struct latch_lead){l->client, l->config.path, l->place->node.watch.path,
                               l->place->node.token};
    return true;
}

/* Only an operator can make the node come and go between tries. */
enum { TRIES = 8 };
enum step { STEP_CREATE, STEP_REPLACE, STEP_SET };

struct publication {
    clave_async_latch *l;
    const struct clave_mem *mem;
    clave_result_cb *cb;
    void *arg;
    int64_t token;
    enum step step;
    int tries;
    char *path;
    char *node;
    char *data; /* the name of the leader's node, a newline, the value */
    size_t len;
};

char *clave__value_path(const struct clave_mem *mem, const char *path)
{
    static const char suffix[] = "-value";
    size_t n = strlen(path);
    char *out = clave__mem_alloc(mem, n + sizeof suffix);
    if (!out)
        return NULL;
    memcpy(out, path, n);
    memcpy(out + n, suffix, sizeof suffix);
    return out;
}

static void leader_value_free(struct publication *p)
{
    clave__mem_free(p->mem, p->path);
    clave__mem_free(p->mem, p->node);
    clave__mem_free(p->mem, p->data);
    clave__mem_free(p->mem, p);
}

static void leader_value_finish(clave_async_client *c, struct publication *p, clave_err err)
{
    clave_async_latch *l = p->l;
    /* if the outcome is unknown, the value may exist and will have to be withdrawn */
    if (err == CLAVE_OK || clave_err_classify(err) == CLAVE_CLASS_UNKNOWN)
        l->published_token = p->token;
    if (p->cb)
        p->cb(c, &(clave_result){.err = err, .path = p->path}, p->arg);
    leader_value_free(p);
    clave__latch_drop(l);
}

static void leader_value_on_done(clave_async_client *c, const clave_result *res, void *arg);

static clave_err leader_value_submit(clave_async_client *c, struct publication *p)
{
    assert(p->tries < TRIES);
    clave_op remove = {.kind = CLAVE_OP_DELETE, .path = p->path, .version = -1};
    clave_op create = {.kind = CLAVE_OP_CREATE,
                       .path = p->path,
                       .data = p->data,
                       .len = p->len,
                       .mode = CLAVE_EPHEMERAL};
    clave_op set = {
        .kind = CLAVE_OP_SET, .path = p->path, .data = p->data, .len = p->len, .version = -1};
    clave_op ops[2] = {remove, create};
    if (p->step == STEP_SET)
        ops[0] = set;
    else if (p->step == STEP_CREATE)
        ops[0] = create;
    p->tries++;
    struct write_guard leader = {.nodes = (const char *const[]){p->node}, .n = 1};
    return clave__guarded_write_multi(c, leader, ops, p->step == STEP_REPLACE ? 2 : 1,
                                      leader_value_on_done, p);
}

static void leader_value_on_done(clave_async_client *c, const clave_result *res, void *arg)
{
    struct publication *p = arg;
    clave_err err = res->err;
    bool there = p->step == STEP_CREATE && err == CLAVE_ENODEEXISTS;
    bool missing = p->step != STEP_CREATE && err == CLAVE_ENONODE;
    if ((there || missing) && p->tries < TRIES) {
        p->step = there ? STEP_REPLACE : STEP_CREATE;
        err = leader_value_submit(c, p);
        if (err == CLAVE_OK)
            return;
    }
    leader_value_finish(c, p, err);
}

static clave_err leader_value_fill(struct publication *p, const struct latch_lead *lead,
                                   const void *data, size_t len)
{
    const char *name = clave__path_name(lead->node);
    size_t nname = strlen(name);
    p->path = clave__value_path(p->mem, lead->path);
    p->node = clave__mem_strdup(p->mem, lead->node);
    p->data = len < SIZE_MAX - nname - 1 ? clave__mem_alloc(p->mem, nname + 1 + len) : NULL;
    if (!p->path || !p->node || !p->data)
        return CLAVE_ENOMEM;
    memcpy(p->data, name, nname);
    p->data[nname] = '\n';
    if (len)
        memcpy(p->data + nname + 1, data, len);
    p->len = nname + 1 + len;
    return CLAVE_OK;
}

clave_err clave_async_latch_publish(clave_async_latch *l, const void *data, size_t len,
                                    clave_result_cb *cb, void *arg)
{
    struct latch_lead lead;
    if (!clave__latch_lead(l, &lead))
        return CLAVE_ENOTHELD;
    /* A value says whose it is by the name of the leader's node, which in a race is always the
     * same. */
    if (strcmp(lead.path, "/") == 0 || l->config.spec.rule->race)
        return CLAVE_EINVAL;
    const struct clave_mem *mem = clave__client_mem(lead.client);
    struct publication *p = clave__mem_zalloc(mem, sizeof *p);
    if (!p)
        return CLAVE_ENOMEM;
    *p = (struct publication){.l = l, .mem = mem, .cb = cb, .arg = arg, .token = lead.token};
    p->step = l->published_token == lead.token ? STEP_SET : STEP_CREATE;
    clave_err err = leader_value_fill(p, &lead, data, len);
    if (err == CLAVE_OK)
        err = leader_value_submit(lead.client, p);
    if (err != CLAVE_OK)
        leader_value_free(p);
    else
        clave__latch_hold(l);
    return err;
}

/* Deletes the value while the leader's node still exists. If there is no memory, the value stays
 * until the session ends, but is not shown. */
static void value_withdraw(const struct latch_lead *lead)
{
    const struct clave_mem *mem = clave__client_mem(lead->client);
    char *path = clave__value_path(mem, lead->path);
    if (!path)
        return;
    clave_op op = {.kind = CLAVE_OP_DELETE, .path = path, .version = -1};
    struct write_guard leader = {.nodes = (const char *const[]){lead->node}, .n = 1};
    (void)clave__guarded_write_one(lead->client, leader, &op, NULL, NULL);
    clave__mem_free(mem, path);
}

/* ---- the place ------------------------------------------------------------------------------- */

/* A call of the user's ends leadership, so NOT_LEADER is reported later. The caller has to leave
 * the place. */
static void latch_give_up(clave_async_latch *l, enum latch_state to)
{
    if (clave__latch_leads(l))
        clave__client_later(l->client, &l->loss);
    latch_enter(l, to);
}

static const struct contender_events events;

/* The state is OUT, and entering the queue has failed for good. */
static void latch_fail(clave_async_latch *l, clave_err err)
{
    if (err == CLAVE_ECLOSED) {
        latch_enter(l, LATCH_CLOSED);
    } else {
        latch_enter(l, LATCH_FAILED);
        l->failed = err;
        latch_tell(l, (clave_latch_event){.kind = CLAVE_LATCH_FAILED, .why = err});
    }
    /* unless the callback has resigned, which enters the queue again */
    if (!l->place)
        latch_post_awaits(l, err);
}

static clave_err latch_new_place(clave_async_latch *l, bool let_others, struct contender **out)
{
    bool ranked = l->priority > 0 && !let_others;
    return clave__contender_new(out, l->client, ranked ? &l->ranked : &l->config.spec, &events, l);
}

static clave_err latch_join(clave_async_latch *l, struct contender *place, bool let_others)
{
    if (let_others)
        clave__contender_race_delay(place);
    clave_err err = clave__contender_join(place, CLAVE_NEVER);
    if (err != CLAVE_OK)
        return err;
    l->place = place;
    latch_enter(l, LATCH_QUEUED);
    return CLAVE_OK;
}

static clave_err latch_stand(clave_async_latch *l, bool let_others)
{
    struct contender *place;
    clave_err err = latch_new_place(l, let_others, &place);
    return err == CLAVE_OK ? latch_join(l, place, let_others) : err;
}

/* Stays OUT after it could not enter the queue. */
static void latch_stay_out(clave_async_latch *l, clave_err err)
{
    if (err == CLAVE_ENOMEM)
        latch_try_later(l);
    else
        latch_fail(l, err);
}

static void latch_on_left(void *arg, clave_err err)
{
    callback_post(arg, err); /* this may run inside the close */
}

/* From here on the place reports nothing; `left` (may be NULL) runs when its node is gone. */
static void latch_leave(clave_async_latch *l, struct contender *place, struct latch_callback *left)
{
    if (place && place->state == CONTENDER_HELD && place->node.token == l->published_token)
        value_withdraw(&(struct latch_lead){l->client, l->config.path, place->node.watch.path,
                                            place->node.token});
    if (place)
        clave__contender_leave(place, left ? latch_on_left : NULL, left);
    else if (left)
        callback_post(left, CLAVE_OK);
}

/* The place is gone, or the candidate gives `place` up: it queues again, at the end. This happens
 * before NOT_LEADER is reported, so that a close in that callback waits for whatever is still to be
 * deleted. */
static void latch_fall(clave_async_latch *l, struct contender *place, clave_err why,
                       bool let_others)
{
    bool led = clave__latch_leads(l);
    latch_enter(l, LATCH_OUT);
    latch_leave(l, place, NULL);
    clave_err err = latch_stand(l, let_others);
    if (led)
        latch_tell(l, (clave_latch_event){.kind = CLAVE_LATCH_NOT_LEADER, .why = why});
    if (err != CLAVE_OK && l->state == LATCH_OUT) /* the callback has neither resigned nor closed */
        latch_stay_out(l, err);
}

/* The leader's work gave no sign of life. A candidate must not stand again with work that hangs, so
 * it stays out until a resign shows that the work goes on. */
static void latch_fall_silent(clave_async_latch *l)
{
    latch_enter(l, LATCH_OUT);
    latch_tell(l, (clave_latch_event){.kind = CLAVE_LATCH_NOT_LEADER, .why = CLAVE_ESILENT});
    if (l->state == LATCH_OUT) /* the callback has neither resigned nor closed */
        latch_stay_out(l, CLAVE_ESILENT);
}

/* Its client was closed. */
static void latch_end(clave_async_latch *l)
{
    bool led = clave__latch_leads(l);
    latch_enter(l, LATCH_CLOSED);
    if (led)
        latch_tell(l, (clave_latch_event){.kind = CLAVE_LATCH_NOT_LEADER, .why = CLAVE_ECLOSED});
    latch_post_awaits(l, CLAVE_ECLOSED);
}

/* The delete is sent before the create, so the new place is behind everybody else's. */
clave_err clave__latch_rejoin(clave_async_latch *l, bool let_others)
{
    struct contender *old = l->place, *next;
    clave_err err = latch_new_place(l, let_others, &next);
    if (err != CLAVE_OK)
        return err;
    latch_give_up(l, LATCH_OUT);
    latch_leave(l, old, NULL);
    if (latch_join(l, next, let_others) != CLAVE_OK)
        latch_try_later(l);
    return CLAVE_OK;
}

/* ---- priorities --------------------------------------------------------------------------------
 *
 * When the turn of a candidate with a priority comes, it lists the other candidates and hands over
 * to one with a higher priority. While it waits, it may ask a leader with a lower priority to
 * resign. The rules are in docs/guide/elections.md; recipe/queue/priority_tag.h has the priorities
 * in the nodes' names. A candidate with a priority never leads until a listing has shown nobody
 * with a higher one, or the server has refused the hand-over. */

/* In FIRST: it leads from now on. */
static void latch_gain(clave_async_latch *l)
{
    if (l->state != LATCH_FIRST)
        return;
    latch_enter(l, LATCH_LEADING);
    latch_tell(l, (clave_latch_event){.kind = CLAVE_LATCH_LEADER});
    if (clave__latch_leads(l))
        latch_post_awaits(l, CLAVE_OK);
}

int32_t clave__latch_priority_spread(const char *path, const char *id)
{
    /* With the NUL of the path, so that "a" "bc" differs from "ab" "c". */
    uint64_t h = clave__fnv1a(FNV1A_BASIS, path, strlen(path) + 1);
    h = clave__fnv1a(h, id, strlen(id) + 1);
    /* The last bytes hardly change FNV's high bits; the finalizer of MurmurHash3 corrects that. */
    h = (h ^ (h >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    h = (h ^ (h >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    h = (h ^ (h >> 33)) & INT32_MAX;
    return h ? (int32_t)h : 1;
}

/* Returns false if the answer is for a place that was given up. */
static bool latch_priority_end_yield(clave_async_latch *l)
{
    int64_t token = l->yield_token;
    l->yield_token = 0;
    if (l->state != LATCH_FIRST)
        return false;
    if (l->place->node.token == token)
        return true;
    latch_try_later(l); /* this place had to wait for that answer */
    return false;
}

static void latch_priority_on_yielded(clave_async_client *c, clave_err err, void *arg)
{
    clave_async_latch *l = arg;
    (void)c;
    if (!latch_priority_end_yield(l))
        return;
    clave_err_class class = clave_err_classify(err);
    /* The listing shows another candidate first, or none at all; an event of its own node will show
     * which. */
    bool unsure = err == CLAVE_ELOST || err == CLAVE_ENONODE;
    if (class == CLAVE_CLASS_RETRY || unsure)
        latch_try_later(l);
    else if (class != CLAVE_CLASS_UNKNOWN) /* if it is UNKNOWN, RECONNECTED or LOST will follow */
        latch_gain(l); /* nobody is higher, or the server refused the hand-over */
}

/* The first candidate leads. If it has a priority, it leads only if nobody has a higher one, or if
 * it goes on with a term that another process has handed over. Does nothing in other states than
 * FIRST. */
static void latch_rise(clave_async_latch *l)
{
    if (l->state != LATCH_FIRST)
        return;
    if (l->priority == 0 || clave__contender_was_handed(l->place)) {
        latch_gain(l);
        return;
    }
    if (l->yield_token != 0)
        return;
    if (clave__transfer_yield(l, latch_priority_on_yielded) == CLAVE_OK)
        l->yield_token = l->place->node.token;
    else
        latch_try_later(l);
}

static void latch_priority_on_claimed(clave_async_client *c, clave_err err, void *arg)
{
    clave_async_latch *l = arg;
    (void)c;
    clave_err_class class = clave_err_classify(err);
    bool made = class != CLAVE_CLASS_RETRY && class != CLAVE_CLASS_UNKNOWN;
    if (made || l->state != LATCH_CLAIMED)
        return;
    latch_enter(l, LATCH_QUEUED);
    latch_try_later(l);
}

/* Asks a leader with a lower priority to resign, once per place. A candidate that arrives later
 * with a higher priority will claim for itself. */
static void latch_claim(clave_async_latch *l)
{
    if (!l->preempt || l->state != LATCH_QUEUED || l->place->state != CONTENDER_WAITING)
        return;
    if (clave__transfer_claim(l, latch_priority_on_claimed) == CLAVE_OK)
        latch_enter(l, LATCH_CLAIMED);
    else
        latch_try_later(l);
}

/* The candidate has resigned: it will queue with its priority again after a session timeout. */
static void latch_regain_later(clave_async_latch *l)
{
    assert(l->priority != 0);
    int64_t pause = clave_async_client_session_timeout(l->client);
    clave__client_timer_set(l->client, &l->regain, clave__client_now(l->client) + pause);
}

/* Since it resigned, it has been in the queue without its priority. If it had its priority back at
 * once, the next leader would hand over to it; so it waits for one session timeout. */
static void latch_priority_on_regain(struct timer *t, int64_t now)
{
    (void)now;
    clave_async_latch *l = LIST_ENTRY(t, struct clave_async_latch, regain);
    bool waits = l->state == LATCH_QUEUED || l->state == LATCH_CLAIMED;
    if (waits && l->place->spec != &l->ranked && clave__latch_rejoin(l, false) != CLAVE_OK)
        latch_regain_later(l);
}

static clave_err latch_set_priority(clave_async_latch *l, const clave_latch_options *o)
{
    char tag[CLAVE_PRIORITY_TAG];
    l->priority = o->spread ? clave__latch_priority_spread(l->config.path, l->id) : o->priority;
    l->preempt = o->preempt;
    if (l->priority == 0)
        return CLAVE_OK;
    clave__priority_tag(l->priority, tag);
    l->ranked_stem = clave__contender_config_stem(&l->config, tag);
    l->ranked = l->config.spec;
    l->ranked.stem = l->ranked_stem;
    return l->ranked_stem ? CLAVE_OK : CLAVE_ENOMEM;
}

/* ---- events of the place and the connection -------------------------------------------------- */

static void latch_on_retry(struct timer *t, int64_t now)
{
    (void)now;
    clave_async_latch *l = LIST_ENTRY(t, struct clave_async_latch, retry);
    clave__latch_hold(l);
    clave_err err = l->state == LATCH_OUT ? latch_stand(l, false) : CLAVE_OK;
    if (err != CLAVE_OK)
        latch_stay_out(l, err);
    if (clave_async_client_is_connected(l->client)) {
        latch_rise(l);
        latch_claim(l);
    }
    clave__latch_drop(l);
}

static void latch_on_moved(void *owner)
{
    clave_async_latch *l = owner;
    const struct contender *place = l->place;
    clave_latch_event ev = {.kind = CLAVE_LATCH_QUEUED,
                            .ahead = clave__contender_ahead(place),
                            .predecessor = clave__contender_predecessor(place),
                            .left_over = clave__contender_left_over(place)};
    clave__latch_hold(l);
    latch_tell(l, ev);
    /* The callback may have given the place up. */
    if (l->place == place && clave__contender_ahead(place) == 1) {
        ev.kind = CLAVE_LATCH_NEXT;
        latch_tell(l, ev);
    }
    latch_claim(l);
    clave__latch_drop(l);
}

static void latch_on_held(void *owner)
{
    clave_async_latch *l = owner;
    clave__latch_hold(l);
    latch_enter(l, LATCH_FIRST);
    latch_rise(l);
    clave__latch_drop(l);
}

static void latch_on_ended(void *owner, clave_err err)
{
    clave_async_latch *l = owner;
    clave__latch_hold(l);
    latch_enter(l, LATCH_OUT);
    latch_stay_out(l, err);
    clave__latch_drop(l);
}

static void latch_on_lost(void *owner, clave_err why)
{
    clave_async_latch *l = owner;
    clave__latch_hold(l);
    if (why == CLAVE_ECLOSED)
        latch_end(l);
    else if (why == CLAVE_ESILENT && clave__latch_leads(l))
        latch_fall_silent(l);
    else /* otherwise, in a race, the candidate whose term has just ended would win the next one too
          */
        latch_fall(l, NULL, why, why == CLAVE_EMAXHOLD && l->config.spec.rule->race);
    clave__latch_drop(l);
}

static void latch_on_asked(void *owner)
{
    clave_async_latch *l = owner;
    if (l->state != LATCH_LEADING)
        return;
    clave__latch_hold(l);
    latch_enter(l, LATCH_ASKED);
    latch_tell(l, (clave_latch_event){.kind = CLAVE_LATCH_ASKED});
    clave__latch_drop(l);
}

static const struct contender_events events = {
    .moved = latch_on_moved,
    .held = latch_on_held,
    .ended = latch_on_ended,
    .lost = latch_on_lost,
    .asked = latch_on_asked,
};

/* The standard policy ends a term with the connection. Work of this term may still be under way, so
 * the next term must have another token even if the same candidate leads it; therefore its node is
 * replaced, which Curator would keep. But the work may rely on the deadline that it was given,
 * until which nobody else may lead. So the node is deleted only after that deadline, or when the
 * user resigns. */
static void latch_end_term(clave_async_latch *l, clave_err why)
{
    int64_t promised = clave__contender_deadline_if_alive(l->place); /* a silence ends the place */
    clave__client_timer_set(l->client, &l->promised, promised);
    latch_enter(l, LATCH_SPENT);
    latch_tell(l, (clave_latch_event){.kind = CLAVE_LATCH_NOT_LEADER, .why = why});
}

static void latch_on_promised(struct timer *t, int64_t now)
{
    (void)now;
    clave_async_latch *l = LIST_ENTRY(t, struct clave_async_latch, promised);
    if (l->state != LATCH_SPENT)
        return;
    clave__latch_hold(l);
    latch_fall(l, l->place, CLAVE_OK, l->config.spec.rule->race);
    clave__latch_drop(l);
}

static void latch_on_state(struct listener *listener, clave_state state, clave_err why)
{
    clave_async_latch *l = LIST_ENTRY(listener, struct clave_async_latch, listener);
    clave__latch_hold(l);
    switch (state) {
    case CLAVE_STATE_SUSPENDED:
        if (l->policy == CLAVE_POLICY_STANDARD && clave__latch_leads(l))
            latch_end_term(l, why == CLAVE_OK ? CLAVE_ECONNLOSS : why);
        break;
    case CLAVE_STATE_CONNECTED:
    case CLAVE_STATE_RECONNECTED:
        latch_rise(l);
        break;
    case CLAVE_STATE_CLOSED:
        /* if there is a place, it reports this itself */
        if (!l->place && clave__latch_is_started(l))
            latch_enter(l, LATCH_CLOSED);
        if (!l->place)
            latch_post_awaits(l, CLAVE_ECLOSED);
        break;
    case CLAVE_STATE_LOST:
    case CLAVE_STATE_READ_ONLY:
    case CLAVE_STATE_LATENT:
        break;
    }
    clave__latch_drop(l);
}

/* ---- options --------------------------------------------------------------------------------- */

/* The layout of the candidates' nodes: Curator's, or that of programs written by hand. */
struct layout {
    const struct queue_order_rule *rule;
    struct queue_order_rule own; /* if it is not Curator's */
    const char *path;            /* the path of the parent */
    char *parent;                /* memory to be freed; NULL: the caller's */
};

static clave_err layout_unfair(struct layout *l, clave_async_client *c, const char *node)
{
    size_t len = strlen(node);
    const char *fault = len == 1 ? "is the root" : clave__path_fault(node, len, false);
    if (fault) {
        clave__client_fault(c, "the election's node \"%s\" %s", node, fault);
        return CLAVE_EPATH;
    }
    l->own = (struct queue_order_rule){
        .base = clave__path_name(node), .unprotected = true, .race = true};
    l->parent = clave__mem_strndup(clave__client_mem(c), node, clave__path_parent_len(node, len));
    l->path = l->parent;
    return l->parent ? CLAVE_OK : CLAVE_ENOMEM;
}

static clave_err layout_init(struct layout *l, clave_async_client *c, const char *path,
                             const clave_latch_options *o)
{
    bool ranks = o->priority > 0 || o->spread; /* then the node's name must contain the priority */
    *l = (struct layout){.rule = &clave__queue_order_latch, .path = path};
    if (o->layout == CLAVE_LATCH_CURATOR)
        return o->prefix ? CLAVE_EINVAL : CLAVE_OK;
    if (ranks)
        return CLAVE_EINVAL;
    l->rule = &l->own;
    if (o->layout == CLAVE_LATCH_FAIR)
        return o->prefix ? clave__queue_order_unprotected(&l->own, o->prefix) : CLAVE_EINVAL;
    return o->layout == CLAVE_LATCH_UNFAIR ? layout_unfair(l, c, path) : CLAVE_EINVAL;
}

static clave_err latch_check_options(const clave_latch_options *o)
{
    bool policy = o->policy == CLAVE_POLICY_STANDARD || o->policy == CLAVE_POLICY_SESSION;
    bool fine = policy && o->max_term_ms >= 0 && o->min_valid_ms >= 0 && (!o->acls || o->nacls > 0);
    bool ranks = o->priority > 0 || o->spread;
    bool named = o->id && o->id[0]; /* something that differs between candidates */
    fine = fine && o->priority >= 0 && (!o->preempt || ranks);
    fine = fine && (!o->spread || (o->priority == 0 && named));
    return fine ? CLAVE_OK : CLAVE_EINVAL;
}

static clave_err latch_copy_options(clave_async_latch *l, const clave_latch_options *o)
{
    const char *id = o->id ? o->id : "";
    l->policy = o->policy;
    l->event_cb = o->event_cb;
    l->event_arg = o->event_arg;
    l->config.spec.max_hold_ms = o->max_term_ms;
    l->config.spec.min_valid_ms = o->min_valid_ms;
    l->config.spec.strict = o->strict;
    l->config.spec.elects = true;
    l->config.spec.revocable = o->revocable;
    l->id = clave__mem_strdup(l->mem, id);
    if (!l->id)
        return CLAVE_ENOMEM;
    clave_err err = clave__contender_config_set_data(&l->config, id, strlen(id));
    if (err == CLAVE_OK)
        err = clave__contender_config_set_acls(&l->config, o->acls, o->nacls);
    return err == CLAVE_OK ? latch_set_priority(l, o) : err;
}

static clave_err latch_make(clave_async_latch **out, clave_async_client *c,
                            const clave_latch_options *o, const struct layout *at)
{
    const struct clave_mem *mem = clave__client_mem(c);
    clave_async_latch *l = clave__mem_zalloc(mem, sizeof *l);
    if (!l)
        return CLAVE_ENOMEM;
    l->client = c;
    l->mem = mem;
    l->refs = 1;
    list_init(&l->awaits);
    list_init(&l->loss.link);
    l->loss.run = latch_tell_loss;
    list_init(&l->listener.link);
    l->listener.on_state = latch_on_state;
    clave__timer_init(&l->retry, latch_on_retry);
    clave__timer_init(&l->promised, latch_on_promised);
    clave__timer_init(&l->regain, latch_priority_on_regain);
    clave_err err =
        clave__contender_config_init(&l->config, c, at->path, at->rule, "the election's path");
    if (err == CLAVE_OK)
        err = latch_copy_options(l, o);
    if (err != CLAVE_OK) {
        clave__latch_drop(l);
        return err;
    }
    clave__client_listen(c, &l->listener);
    clave__client_ref(c);
    *out = l;
    return CLAVE_OK;
}

clave_err clave_async_latch_new(clave_async_latch **out, clave_async_client *c, const char *path,
                                const clave_latch_options *given)
{
    clave_latch_options o;
    struct layout at;
    *out = NULL;
    clave_err err = clave__client_take_options(c, &o, sizeof o, given, "clave_latch_options");
    if (err == CLAVE_OK)
        err = latch_check_options(&o);
    if (err != CLAVE_OK)
        return err;
    err = layout_init(&at, c, path, &o);
    if (err == CLAVE_OK)
        err = latch_make(out, c, &o, &at);
    clave__mem_free(clave__client_mem(c), at.parent);
    return err;
}

/* ---- the public calls ------------------------------------------------------------------------ */

clave_err clave_async_latch_start(clave_async_latch *l)
{
    if (l->state != LATCH_LATENT)
        return CLAVE_EINVAL;
    if (clave_async_client_state(l->client) == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED;
    return latch_stand(l, false);
}

void clave__latch_set_place(clave_async_latch *l, struct queue_place *place)
{
    l->config.spec.place = place;
}

clave_err clave_async_latch_resign(clave_async_latch *l)
{
    if (!clave__latch_is_started(l))
        return CLAVE_EINVAL;
    clave_err err = clave__latch_rejoin(l, true);
    if (err == CLAVE_OK && l->priority > 0)
        latch_regain_later(l);
    return err;
}
clave_err clave_async_latch_await(clave_async_latch *l, int64_t deadline, clave_async_latch_cb *cb,
                                  void *arg)
{
    struct latch_callback *k;
    if (!cb)
        return CLAVE_EINVAL;
    if (l->state == LATCH_CLOSED || clave_async_client_state(l->client) == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED;
    if (callback_new(&k, l, cb, arg) != CLAVE_OK)
        return CLAVE_ENOMEM;
    k->deadline = deadline;
    list_push_back(&l->awaits, &k->link);
    if (clave__latch_leads(l))
        callback_post(k, CLAVE_OK);
    else if (l->state == LATCH_FAILED)
        callback_post(k, l->failed);
    else
        callback_wait(k);
    return CLAVE_OK;
}

clave_err clave_async_latch_cancel(clave_async_latch *l, clave_async_latch_cb *cb, void *arg)
{
    clave_err err = CLAVE_ENOTHELD;
    for (struct list *e = l->awaits.next; e != &l->awaits; e = e->next) {
        struct latch_callback *k = LIST_ENTRY(e, struct latch_callback, link);
        if (k->verdict != CLAVE_OK || k->cb != cb || k->arg != arg)
            continue;
        callback_post(k, CLAVE_ECANCELED);
        err = CLAVE_OK;
    }
    return err;
}
static void latch_close(clave_async_latch *l, struct latch_callback *left)
{
    struct contender *place = l->place;
    clave__client_timer_clear(l->client, &l->retry);
    latch_give_up(l, LATCH_CLOSED);
    latch_post_awaits(l, CLAVE_ECLOSED);
    latch_leave(l, place, left);
}

clave_err clave_async_latch_close(clave_async_latch *l, clave_latch_close_mode mode,
                                  clave_async_latch_cb *cb, void *arg)
{
    struct latch_callback *left = NULL;
    if (!clave__latch_is_started(l))
        return CLAVE_EINVAL;
    if (cb && callback_new(&left, l, cb, arg) != CLAVE_OK)
        return CLAVE_ENOMEM;
    if (mode == CLAVE_CLOSE_SILENT)
        l->event_cb = NULL;
    latch_close(l, left);
    return CLAVE_OK;
}

void clave_async_latch_free(clave_async_latch *l)
{
    if (!l)
        return;
    l->event_cb = NULL;
    if (l->state != LATCH_CLOSED)
        latch_close(l, NULL);
    clave_async_client *c = l->client;
    clave__latch_drop(l);
    clave__client_unref(c);
}

/* ---- queries --------------------------------------------------------------------------------- */

bool clave__latch_held(const clave_async_latch *l, struct grant_facts *out)
{
    if (!clave__latch_leads(l))
        return false;
    *out = clave__contender_facts(l->place);
    return true;
}

clave_err clave_async_latch_grant(const clave_async_latch *l, clave_async_grant **out)
{
    struct grant_facts f;
    *out = NULL;
    return clave__latch_held(l, &f) ? clave__grant_new(out, &f) : CLAVE_ENOTHELD;
}

bool clave_async_latch_has_leadership(const clave_async_latch *l, int64_t now)
{
    return clave__latch_leads(l) && deadline_lasts(clave__contender_deadline(l->place), now, 0);
}

clave_latch_state clave_async_latch_state_of(const clave_async_latch *l)
{
    if (clave__latch_is_started(l))
        return CLAVE_LATCH_STARTED;
    return l->state == LATCH_LATENT ? CLAVE_LATCH_LATENT : CLAVE_LATCH_CLOSED;
}

const char *clave_async_latch_own_path(const clave_async_latch *l)
{
    const struct contender *p = l->place;
    bool stands = p && p->state >= CONTENDER_WAITING && p->state <= CONTENDER_HELD;
    return stands ? p->node.watch.path : NULL;
}

clave_err clave__latch_describe(clave_async_latch *l, const clave_identity *said,
                                queue_described *done, void *arg, size_t *n)
{
    *n = 0;
    if (!l->place)
        return CLAVE_OK;
    clave_err err = clave__contender_describe(l->place, said, done, arg);
    *n = err == CLAVE_OK;
    return err == CLAVE_ENOTHELD ? CLAVE_OK : err;
}
