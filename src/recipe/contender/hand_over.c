/* hand_over.c - a session and its holds pass from one process to another: both sides. See
 * clave_async_client_hand_over for what its users see.
 *
 * The process that hands over gives up whatever waits, then waits until nothing of its requests is
 * under way. So no answer is lost, and no create or delete is in doubt. It reads the version of
 * each held node, abandons the connection, which ends all its grants, and gives out the text last:
 *
 *     ASKED ──> DRAINING ──> READING ──> (ended)
 *
 * The process that resumes has claimed the session before its recipes are heard
 * (client/handed_session.h). It finds the node by its name. Before it counts on the hold, it writes
 * what the node is to say now, with the mark of the claim, if it has anything to say. When the
 * answer to that write is lost, the node is read again.
 *
 *     FOUND <──> WRITING ──> WRITTEN
 *
 * What must stay true: no grant is given for a node that may still say what the old process said,
 * and a place that is given up before is left to the next acquire, or to be given back. */
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

/* Returns false if there is nothing to wait for, since no recipe holds anything. */
static bool hand_over_read(struct hand_over *h)
{
    h->state = HAND_OVER_READING;
    h->unread = false;
    for (struct contender *p = hand_over_next(h->client, NULL); p;
         p = hand_over_next(h->client, p)) {
        clave_err err =
            clave_async_get(h->client, p->node.watch.path, NULL, hand_over_on_version, p);
        if (err != CLAVE_OK) {
            hand_over_end(h, err);
            return true;
        }
        clave__contender_begin(p);
        p->handing = h;
        h->reading++;
    }
    return h->reading > 0;
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
    if ((h->state == HAND_OVER_DRAINING || h->unread) && hand_over_read(h))
        return;
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

enum handed_data { FOUND, WRITING, WRITTEN };

struct contender_handed {
    struct queue_place place;
    struct handed_hold *hold;
    enum handed_data state;
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
    if (h->state != WRITTEN || h->place.spared)
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
    c->handed->state = WRITTEN; /* nobody else can take it up either */
    clave__contender_drop_handed(c);
    c->grant.ends_by = CLAVE_NEVER;
    return true;
}

static void handed_data_write(struct contender *c);

/* True if the answer concerns a hold that is still wanted. */
static bool handed_data_goes_on(const struct contender *c)
{
    return c->owner && c->handed && c->handed->state == WRITING &&
           (c->state == CONTENDER_WAITING || c->state == CONTENDER_CONFIRMING) &&
           clave_async_client_session_id(c->client) == c->node.session_id;
}

/* There was no certain answer. After a lost connection it begins anew with the next one. */
static void handed_data_failed(struct contender *c, clave_err err)
{
    c->handed->state = FOUND;
    if (err == CLAVE_ENONODE)
        c->grant.hold.on_missing(&c->grant.hold);
    else if (clave_err_classify(err) == CLAVE_CLASS_UNKNOWN || err == CLAVE_ENOTSENT)
        return;
    else if (clave__err_passes(err))
        clave__contender_check_later(c);
    else
        clave__contender_fail(c, err);
}

/* The node was written to. */
static void handed_data_note(struct contender_handed *h, int32_t version)
{
    h->hold->version = version;
    if (h->data)
        h->hold->mark = clave__handed_mark_of(h->data, h->ndata);
}

/* The node says what it is to say. */
static void handed_data_written(struct contender *c, int32_t version)
{
    struct contender_handed *h = c->handed;
    handed_data_note(h, version);
    h->state = WRITTEN;
    h->place.spares = SPARES_NOTHING;
    if (h->data) {
        clave__mem_free(c->mem, c->node.data);
        c->node.data = h->data;
        c->node.ndata = h->ndata;
        h->data = NULL;
    }
    c->grant.restored = version;
    c->grant.asked_before = h->hold->asked;
}

static void handed_data_on_read(clave_async_client *client, const clave_result *res, void *arg)
{
    struct contender *c = arg;
    (void)client;
    if (!handed_data_goes_on(c)) {
        clave__contender_end(c);
        return;
    }
    struct contender_handed *h = c->handed;
    bool done =
        res->err == CLAVE_OK && res->len == h->ndata && memcmp(res->data, h->data, h->ndata) == 0;
    if (res->err != CLAVE_OK) {
        handed_data_failed(c, res->err);
    } else {
        h->hold->asked |= res->stat->version > h->hold->version + done;
        h->hold->version = res->stat->version;
        if (done)
            handed_data_written(c, res->stat->version);
        else
            handed_data_write(c);
    }
    if (c->handed && c->handed->state == WRITTEN)
        clave__contender_recount(c);
    clave__contender_end(c);
}

/* The write may have been done, or somebody else has written to the node: to ask for it. */
static void handed_data_read(struct contender *c)
{
    clave_err err = clave_async_get(c->client, c->node.watch.path, NULL, handed_data_on_read, c);
    c->handed->state = WRITING;
    if (err != CLAVE_OK)
        handed_data_failed(c, err);
    else
        clave__contender_begin(c); /* of the request */
}

static void handed_data_on_written(clave_async_client *client, const clave_result *res, void *arg)
{
    struct contender *c = arg;
    (void)client;
    if (!handed_data_goes_on(c)) {
        if (c->handed && res->err == CLAVE_OK)
            handed_data_note(c->handed, res->stat->version); /* for whoever takes it up next */
    } else if (res->err == CLAVE_OK) {
        handed_data_written(c, res->stat->version);
        clave__contender_recount(c);
    } else if (res->err == CLAVE_EBADVERSION) {
        handed_data_read(c);
    } else {
        handed_data_failed(c, res->err);
    }
    clave__contender_end(c);
}

/* What this process says, with the mark, if that has room for one. ENOMEM. */
static clave_err handed_data_compose(struct contender *c)
{
    struct contender_handed *h = c->handed;
    const clave_identity asked = {.asked = h->hold->asked};
    size_t n;
    const void *own = clave__contender_data(c, &n);
    char *more = NULL;
    if (clave__identity_is_form(own, n)) {
        own = more = clave__identity_extend(c->mem, own, n, &asked, &n);
        if (!more)
            return CLAVE_ENOMEM;
    }
    clave__mem_free(c->mem, h->data);
    h->data = clave__client_handed_put_mark(c->client, own, n, &h->ndata);
    clave__mem_free(c->mem, more);
    return h->data ? CLAVE_OK : CLAVE_ENOMEM;
}

static void handed_data_write(struct contender *c)
{
    struct contender_handed *h = c->handed;
    h->state = WRITING;
    clave_err err = handed_data_compose(c);
    if (err == CLAVE_OK)
        err = clave_async_set(c->client, c->node.watch.path, h->data, h->ndata, h->hold->version,
                              handed_data_on_written, c);
    if (err != CLAVE_OK)
        handed_data_failed(c, err);
    else
        clave__contender_begin(c); /* of the request */
}

bool clave__contender_must_write_handed(struct contender *c)
{
    struct contender_handed *h = c->handed;
    size_t n;
    if (!h || h->state == WRITTEN)
        return false;
    (void)clave__contender_data(c, &n);
    if (n == 0) { /* the node goes on saying what it did */
        handed_data_written(c, h->hold->version);
        return false;
    }
    if (h->state == FOUND && h->data)
        handed_data_read(c);
    else if (h->state == FOUND)
        handed_data_write(c);
    return true;
}
