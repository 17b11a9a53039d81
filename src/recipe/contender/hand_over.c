/* hand_over.c - a session and its holds pass from one process to another: both sides. See
 * clave_async_client_hand_over for what its users see.
 *
 * The process that hands over gives up whatever waits, then waits until nothing of its requests is
 * under way. So no answer is lost, and no create or delete is in doubt. It reads the version of
 * each held node, abandons the connection, which ends all its grants, and gives out the text last:
 *
 *     ASKED ──> DRAINING ──> READING ──> (ended)
 *
 * The process that resumes finds the node by its name. Before it counts on the hold, it writes what
 * the node says, under the version that it was handed over with. That write is done once: if two
 * processes have the same text, the second one finds another version and gives the whole session
 * up, because it belongs to the first. When the answer to the write is lost, the node is read
 * again: a mark in it, made of the ticket of this hand-over and of a UUID, tells whose write it
 * was. Data that is not in clave's form has no room for a mark; there, a lost answer means that the
 * hold counts as the other's.
 *
 *     UNCLAIMED <──> CLAIMING ──> CLAIMED
 *
 * What must stay true: an unclaimed node is never deleted except with its version, and no grant is
 * given for it. */
#include <assert.h>
#include <string.h>

#include "base/deadline.h"
#include "base/err_class.h"
#include "base/hash/fnv.h"
#include "base/path.h"
#include "client/handed_session.h"
#include "recipe/contender/contender.h"
#include "recipe/queue/identity.h"

/* ---- the process that hands over ------------------------------------------------------------- */

enum { PAUSE_MS = 100 }; /* after a read that the server has put off */

enum hand_over_state { HAND_OVER_ASKED, HAND_OVER_DRAINING, HAND_OVER_READING };

struct hand_over {
    struct client_task task; /* its beginning, and its end */
    struct settle_hook settled;
    struct timer limit, pause;
    clave_async_client *client;
    enum hand_over_state state;
    int64_t session_id;
    unsigned reading; /* reads under way */
    bool unread;      /* one of them has failed */
    struct buf text;
    clave_err verdict;
    clave_hand_over_cb *cb;
    void *arg;
};

static void hand_over_run_end(struct client_task *t)
{
    struct hand_over *h = LIST_ENTRY(t, struct hand_over, task);
    clave_async_client *c = h->client;
    bool ok = h->verdict == CLAVE_OK;
    h->cb(c, h->verdict, ok ? (const char *)clave__buf_bytes(&h->text) : NULL, h->arg);
    clave__buf_fini(&h->text);
    clave__mem_free(clave__client_mem(c), h);
    clave__client_unref(c);
}

static struct contender *hand_over_next(clave_async_client *c, const struct contender *after)
{
    const struct list *all = &clave__client_base(c)->contenders;
    struct list *next = after ? after->in_client.next : all->next;
    return next == all ? NULL : LIST_ENTRY(next, struct contender, in_client);
}

static void hand_over_end(struct hand_over *h, clave_err verdict)
{
    list_remove(&h->task.link); /* if it has not begun */
    for (struct contender *p = hand_over_next(h->client, NULL); p; p = hand_over_next(h->client, p))
        p->handing = NULL;
    h->verdict = verdict;
    clave__client_timer_clear(h->client, &h->limit);
    clave__client_timer_clear(h->client, &h->pause);
    clave__client_on_settled(h->client, NULL);
    h->task.run = hand_over_run_end;
    clave__client_later(h->client, &h->task);
}

static void hand_over_on_limit(struct timer *t, int64_t now)
{
    struct hand_over *h = LIST_ENTRY(t, struct hand_over, limit);
    (void)now;
    clave__client_fault(h->client, "the session was not handed over: requests of it were still "
                                   "unanswered when the time was over");
    hand_over_end(h, CLAVE_ETIMEDOUT);
}

/* The versions are read again when the client settles after this. */
static void hand_over_on_pause(struct timer *t, int64_t now)
{
    (void)t;
    (void)now;
}

/* True if everything that is left in the queues is held. */
static bool hand_over_is_drained(clave_async_client *c, unsigned *held)
{
    *held = 0;
    for (struct contender *p = hand_over_next(c, NULL); p; p = hand_over_next(c, p), ++*held)
        if (p->state != CONTENDER_HELD)
            return false;
    return clave__client_is_quiet(c);
}

static void hand_over_on_version(clave_async_client *client, const clave_result *res, void *arg)
{
    struct contender *p = arg;
    struct hand_over *h = p->handing;
    clave__contender_begin(p);
    p->handing = NULL;
    p->handed_version = res->err == CLAVE_OK ? res->stat->version : 0;
    p->handed_mark = res->err == CLAVE_OK ? clave__handed_mark_of(res->data, res->len) : 0;
    if (h)
        h->reading--;
    if (h && res->err != CLAVE_OK)
        h->unread = true;
    if (h && clave_err_classify(res->err) == CLAVE_CLASS_RETRY)
        clave__client_timer_set(client, &h->pause, clave__client_now(client) + PAUSE_MS);
    if (res->err == CLAVE_ENONODE) {
        p->grant.hold.on_missing(&p->grant.hold);
    } else if (h && clave_err_classify(res->err) == CLAVE_CLASS_FINAL) {
        clave__client_fault(client, "%s cannot be read, which its next holder would have to do: %s",
                            p->node.watch.path, clave_strerror(res->err));
        hand_over_end(h, res->err);
    }
    clave__contender_end(p);
    clave__contender_end(p); /* of the request */
}

static void hand_over_read(struct hand_over *h)
{
    h->state = HAND_OVER_READING;
    h->unread = false;
    for (struct contender *p = hand_over_next(h->client, NULL); p;
         p = hand_over_next(h->client, p)) {
        clave_err err =
            clave_async_get(h->client, p->node.watch.path, NULL, hand_over_on_version, p);
        if (err != CLAVE_OK) {
            hand_over_end(h, err);
            return;
        }
        clave__contender_begin(p);
        p->handing = h;
        h->reading++;
    }
}

/* The text, while the session still has its password. */
static clave_err hand_over_write(struct hand_over *h, unsigned held)
{
    clave_async_client *c = h->client;
    const struct clave_mem *mem = clave__client_mem(c);
    struct handed_session s = {.nholds = held};
    char unique[CLAVE_PROTECTED_PREFIX + 1];
    const struct handed_hold *rest = NULL;
    while ((rest = clave__client_next_untaken(c, rest)))
        s.nholds++;
    s.holds = clave__mem_alloc(mem, s.nholds * sizeof *s.holds);
    if (!s.holds)
        return CLAVE_ENOMEM;
    struct handed_hold *to = s.holds;
    for (struct contender *p = hand_over_next(c, NULL); p; p = hand_over_next(c, p))
        *to++ = (struct handed_hold){.path = p->node.watch.path,
                                     .czxid = p->node.token,
                                     .version = p->handed_version,
                                     .mark = p->handed_mark,
                                     .ends = p->grant.end};
    while ((rest = clave__client_next_untaken(c, rest)))
        *to++ = *rest;
    clave__client_hand_over_session(c, &s);
    clave__client_protect(c, unique);
    s.ticket = clave__fnv1a(FNV1A_BASIS, unique, strlen(unique));
    clave_err err = clave__handed_format(&s, &h->text);
    clave__mem_free(mem, s.holds);
    return err;
}

static void hand_over_on_settled(struct settle_hook *hook)
{
    struct hand_over *h = LIST_ENTRY(hook, struct hand_over, settled);
    clave_async_client *c = h->client;
    unsigned held;
    if (h->state == HAND_OVER_ASKED && clave_async_client_state(c) != CLAVE_STATE_CLOSED)
        return;
    if (clave_async_client_session_id(c) != h->session_id) {
        hand_over_end(h, clave_async_client_state(c) == CLAVE_STATE_CLOSED ? CLAVE_ECLOSED
                                                                           : CLAVE_ELOST);
        return;
    }
    if (h->reading > 0 || h->pause.armed || !hand_over_is_drained(c, &held))
        return;
    if (held == 0 && !clave__client_next_untaken(c, NULL)) {
        hand_over_end(h, CLAVE_ENOTHELD);
        return;
    }
    if (h->state == HAND_OVER_DRAINING || h->unread) {
        hand_over_read(h);
        return;
    }
    clave_err err = hand_over_write(h, held);
    hand_over_end(h, err); /* its callback runs after those of the grants that end now */
    if (err == CLAVE_OK)
        clave_async_client_abandon(c, clave__client_now(c));
}

/* What is not held gives up its place. */
static void hand_over_begin(struct client_task *t)
{
    struct hand_over *h = LIST_ENTRY(t, struct hand_over, task);
    clave_async_client *c = h->client;
    struct contender *next;
    h->state = HAND_OVER_DRAINING;
    for (struct contender *p = hand_over_next(c, NULL); p; p = next) {
        clave__contender_begin(p);
        if (p->owner && p->state != CONTENDER_HELD)
            clave__contender_fail(p, CLAVE_ECLOSED);
        next = hand_over_next(c, p); /* its callback may have freed others */
        clave__contender_end(p);
    }
}

/* Why a hold cannot be handed over; NULL: it can. */
static const char *hand_over_fault(const struct contender *p)
{
    if (p->acquire.race)
        return "an unfair election has no place of its own for each candidate";
    if (p->spec->rule->unprotected)
        return "a lock without protected names cannot be found again";
    return p->spec->counted ? "the leases of a semaphore cannot be handed over" : NULL;
}

static clave_err hand_over_check(clave_async_client *c)
{
    bool held = clave__client_next_untaken(c, NULL);
    for (struct contender *p = hand_over_next(c, NULL); p; p = hand_over_next(c, p)) {
        const char *fault = p->state == CONTENDER_HELD ? hand_over_fault(p) : NULL;
        held |= p->state == CONTENDER_HELD;
        if (!fault)
            continue;
        clave__client_fault(c, "the session cannot be handed over while %s is held: %s",
                            p->node.watch.path, fault);
        return CLAVE_EINVAL;
    }
    if (held)
        return CLAVE_OK;
    clave__client_fault(c, "nothing is held, so there is no session to hand over: close it");
    return CLAVE_ENOTHELD;
}

clave_err clave_async_client_hand_over(clave_async_client *c, int64_t deadline,
                                       clave_hand_over_cb *cb, void *arg)
{
    enum { TEXT_MAX = 16 * 1024 * 1024 };
    if (clave_async_client_state(c) == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED;
    if (!cb || clave__client_is_handing_over(c)) {
        clave__client_fault(c, cb ? "the session is already being handed over"
                                  : "a hand-over needs a callback, which gets the session");
        return CLAVE_EINVAL;
    }
    clave_err err = hand_over_check(c);
    struct hand_over *h =
        err == CLAVE_OK ? clave__mem_zalloc(clave__client_mem(c), sizeof *h) : NULL;
    if (!h)
        return err == CLAVE_OK ? CLAVE_ENOMEM : err;
    h->client = c;
    h->session_id = clave_async_client_session_id(c);
    h->cb = cb;
    h->arg = arg;
    h->settled.run = hand_over_on_settled;
    clave__buf_init(&h->text, clave__client_mem(c), TEXT_MAX);
    clave__timer_init(&h->limit, hand_over_on_limit);
    clave__timer_init(&h->pause, hand_over_on_pause);
    if (deadline != CLAVE_NEVER)
        clave__client_timer_set(c, &h->limit, deadline);
    clave__client_ref(c);
    clave__client_on_settled(c, &h->settled);
    h->task.run = hand_over_begin;
    clave__client_later(c, &h->task);
    return CLAVE_OK;
}

/* ---- the process that resumes ---------------------------------------------------------------- */

enum { UUID_AT = 3 /* behind "_c_" */ };

enum claim { UNCLAIMED, CLAIMING, CLAIMED };

struct contender_handed {
    struct queue_place place;
    struct handed_hold *hold;
    enum claim claim;
    bool asked; /* somebody asks for it */
    char *data; /* what the node is to say */
    size_t ndata;
};

clave_err clave__contender_take_handed(struct contender *c)
{
    const struct contender_spec *spec = c->spec;
    c->grant.ends_by = CLAVE_NEVER;
    if (c->place || c->acquire.race || spec->rule->unprotected || spec->counted)
        return CLAVE_OK;
    struct handed_hold *hold = clave__client_take_handed(c->client, spec->stem);
    if (!hold)
        return CLAVE_OK;
    struct contender_handed *h = clave__mem_zalloc(c->mem, sizeof *h);
    if (!h) {
        clave__client_untake_handed(c->client, hold);
        return CLAVE_ENOMEM;
    }
    h->hold = hold;
    h->place = (struct queue_place){.at = clave__path_name(hold->path), .spares = SPARES_FOUND};
    memcpy(h->place.uuid, h->place.at + UUID_AT, CLAVE_UUID_TEXT);
    c->handed = h;
    c->place = &h->place;
    c->grant.ends_by = hold->ends;
    return CLAVE_OK;
}

void clave__contender_drop_handed(struct contender *c)
{
    struct contender_handed *h = c->handed;
    if (!h)
        return;
    if (h->claim != CLAIMED || h->place.spared)
        clave__client_untake_handed(c->client, h->hold);
    clave__mem_free(c->mem, h->data);
    clave__mem_free(c->mem, h);
    c->handed = NULL;
    c->place = NULL;
}

bool clave__contender_handed_is_over(struct contender *c)
{
    if (!c->handed)
        return false;
    clave__client_handed_gone(c->client, c->handed->hold);
    c->handed->claim = CLAIMED; /* nobody else can take it up either */
    clave__contender_drop_handed(c);
    c->grant.ends_by = CLAVE_NEVER;
    return true;
}

static void claim_read(struct contender *c);

/* True if the answer concerns a claim that is still wanted. */
static bool claim_goes_on(const struct contender *c)
{
    return c->owner && c->handed && c->handed->claim == CLAIMING &&
           (c->state == CONTENDER_WAITING || c->state == CONTENDER_CONFIRMING) &&
           clave_async_client_session_id(c->client) == c->node.session_id;
}

/* The claim has had no certain answer. After a lost connection it begins anew with the next one. */
static void claim_failed(struct contender *c, clave_err err)
{
    c->handed->claim = UNCLAIMED;
    if (err == CLAVE_ENONODE)
        c->grant.hold.on_missing(&c->grant.hold);
    else if (clave_err_classify(err) == CLAVE_CLASS_UNKNOWN || err == CLAVE_ENOTSENT)
        return;
    else if (clave__err_passes(err))
        clave__contender_check_later(c);
    else
        clave__contender_fail(c, err);
}

/* The node has our mark, if that has room for one. */
static void claim_note(struct contender *c, int32_t version)
{
    c->handed->hold->claimed = true;
    c->handed->hold->version = version;
    if (c->handed->data)
        c->handed->hold->mark = clave__handed_mark_of(c->handed->data, c->handed->ndata);
}

static void claim_made(struct contender *c, int32_t version)
{
    struct contender_handed *h = c->handed;
    claim_note(c, version);
    h->claim = CLAIMED;
    h->place.spares = SPARES_NOTHING;
    if (h->data) {
        clave__mem_free(c->mem, c->node.data);
        c->node.data = h->data;
        c->node.ndata = h->ndata;
        h->data = NULL;
    }
    c->grant.restored = version;
    c->grant.asked_before = h->asked;
    clave__contender_recount(c);
}

static void claim_on_written(clave_async_client *client, const clave_result *res, void *arg)
{
    struct contender *c = arg;
    (void)client;
    if (claim_goes_on(c)) {
        if (res->err == CLAVE_OK)
            claim_made(c, res->stat->version);
        else if (res->err == CLAVE_EBADVERSION)
            claim_read(c);
        else
            claim_failed(c, res->err);
    } else if (c->handed && res->err == CLAVE_OK) {
        claim_note(c, res->stat->version); /* whoever takes it up next, or gives it back, knows */
    }
    clave__contender_end(c);
}

/* Sets what the node is to say: what this process says, with the mark, if that has room for one;
 * otherwise what it says, or nothing new. ENOMEM. */
static clave_err claim_compose(struct contender *c, const clave_result *res)
{
    struct contender_handed *h = c->handed;
    const clave_identity asked = {.asked = h->asked};
    size_t n;
    const void *own = clave__contender_data(c, &n);
    if (n == 0) {
        own = res->data;
        n = res->len;
    }
    bool form = clave__identity_is_form(own, n);
    clave__mem_free(c->mem, h->data);
    h->data = form ? clave__identity_extend(c->mem, own, n, &asked, &h->ndata)
                   : clave__mem_strndup(c->mem, n ? own : "", n);
    if (!form)
        h->ndata = n;
    if (!h->data || !form)
        return h->data ? CLAVE_OK : CLAVE_ENOMEM;
    size_t cap = h->ndata + sizeof HANDED_MARK_KEY + HANDED_MARK + 3;
    char *more = clave__mem_realloc(c->mem, h->data, cap);
    if (!more)
        return CLAVE_ENOMEM;
    h->data = more;
    h->ndata = clave__identity_put_field(more, h->ndata, cap, HANDED_MARK_KEY,
                                         clave__client_handed_mark(c->client));
    return CLAVE_OK;
}

/* The node may be claimed: writes to it. */
static void claim_write(struct contender *c, const clave_result *res)
{
    struct contender_handed *h = c->handed;
    int32_t version = res->stat->version;
    h->asked |= version != h->hold->version;
    clave_err err = claim_compose(c, res);
    if (err == CLAVE_OK)
        err = clave_async_set(c->client, c->node.watch.path, h->data, h->ndata, version,
                              claim_on_written, c);
    if (err != CLAVE_OK)
        claim_failed(c, err);
    else
        clave__contender_begin(c); /* of the request */
}

static void claim_on_read(clave_async_client *client, const clave_result *res, void *arg)
{
    struct contender *c = arg;
    if (!claim_goes_on(c)) {
        clave__contender_end(c);
        return;
    }
    const struct handed_hold *hold = c->handed->hold;
    enum handed_whose whose =
        res->err == CLAVE_OK ? clave__client_handed_whose(client, hold, res) : HANDED_NOBODYS;
    if (res->err != CLAVE_OK)
        claim_failed(c, res->err);
    else if (whose == HANDED_OURS)
        claim_made(c, res->stat->version);
    else if (whose == HANDED_NOBODYS)
        claim_write(c, res);
    else
        clave__client_handed_lost(client, hold);
    clave__contender_end(c);
}

static void claim_read(struct contender *c)
{
    c->handed->claim = CLAIMING;
    clave_err err = clave_async_get(c->client, c->node.watch.path, NULL, claim_on_read, c);
    if (err != CLAVE_OK)
        claim_failed(c, err);
    else
        clave__contender_begin(c); /* of the request */
}

bool clave__contender_must_claim(struct contender *c)
{
    if (!c->handed || c->handed->claim == CLAIMED)
        return false;
    if (c->handed->claim == UNCLAIMED)
        claim_read(c);
    return true;
}
