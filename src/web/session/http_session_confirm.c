/* http_session_confirm.c - proves that a session lives: a transaction that changes nothing passes
 * the leader. Called by the endpoints of sessions and claims, and for what was granted after a
 * wait. Requests share proofs: one is under way, and all that ask meanwhile wait for the next one.
 * So a session costs the servers one commit a round trip, whatever the rate of requests. Invariant:
 * what is proven was committed after the proof was asked for. */
#include <assert.h>
#include <string.h>

#include "client/client_for_gate.h"
#include "web/session/http_session.h"

enum { PROOF_ATTEMPTS = 8 };

struct session_proof {
    struct http_session *s;
    unsigned pending; /* answers */
    bool answered, goes_on;
    bool looks, looked; /* it lists the session's nodes, too */
    uint64_t on;        /* the connection of its answer */
    size_t n;
    struct session_check checks[];
};

static struct session_part *confirm_find(const struct http_session *s, int64_t token)
{
    const struct list *parts = &s->parts;
    for (struct list *l = parts->next; token != 0 && l != parts; l = l->next) {
        struct session_part *part = LIST_ENTRY(l, struct session_part, link);
        if (part->token == token)
            return part;
    }
    return NULL;
}

static void confirm_tell(struct list *round, clave_err err)
{
    for (struct list *l; (l = list_pop_front(round));) {
        struct session_wait *w = LIST_ENTRY(l, struct session_wait, link);
        w->done(w, err);
    }
}

/* Whether the servers have answered for good: a check that is refused for want of permission proves
 * the session and that its node exists, and the hold deadline says how much that is worth. */
static bool confirm_is_answer(clave_err err)
{
    return err == CLAVE_OK || clave_err_classify(err) == CLAVE_CLASS_FINAL;
}

/* Each part that was found gone ends; it may have ended meanwhile. false: there was none, so that
 * all were checked. */
static bool confirm_end_missing(const struct session_proof *p, const clave_result *res)
{
    bool missing = false;
    for (size_t i = 0; i < res->nops && i < p->n; i++) {
        bool gone = res->ops[i].err == CLAVE_ENONODE && p->checks[i].token != 0;
        struct session_part *part = gone ? confirm_find(p->s, p->checks[i].token) : NULL;
        if (part)
            part->missing(part);
        missing |= gone;
    }
    return missing;
}

/* A transaction ends with the check that is refused: those after it were not made. */
static bool confirm_is_cut_short(const struct session_proof *p, const clave_result *res)
{
    struct http_session *s = p->s;
    s->refused = (struct session_check){0};
    for (size_t i = 0; i < res->nops && i + 1 < p->n; i++)
        if (res->ops[i].err == CLAVE_ENOAUTH)
            s->refused = p->checks[i];
    return s->refused.token != 0;
}

/* Those for whom it was not answered wait for the next one, but for those who have waited for too
 * many. */
static void confirm_again(struct http_session *s, struct list *unanswered, struct list *tired)
{
    struct list again, *l;
    list_init(&again);
    list_splice(&again, unanswered);
    while ((l = list_pop_front(&again))) {
        struct session_wait *w = LIST_ENTRY(l, struct session_wait, link);
        list_push_back(++w->attempts < PROOF_ATTEMPTS ? &s->unproven : tired, l);
    }
}

static void confirm_next(struct http_session *s);
static clave_err confirm_submit(struct http_session *s);

/* All that was asked for is answered. */
static void confirm_finish(struct session_proof *p)
{
    struct http_session *s = p->s;
    assert(s->proof == p && p->pending == 0);
    struct list told;
    list_init(&told);
    s->proof = NULL;
    bool goes_on = p->goes_on && s->state == HTTP_SESSION_LIVE;
    bool proven = p->answered && !goes_on && (!p->looks || p->looked);
    clave__mem_free(&s->all->web->mem, p);
    if (goes_on && confirm_submit(s) == CLAVE_OK)
        return;
    s->refused = (struct session_check){0};
    if (!proven)
        confirm_again(s, &s->proving, &told);
    else if (s->taking > 0)
        list_splice(&s->knowing, &s->proving);
    else
        list_splice(&told, &s->proving);
    confirm_next(s);
    confirm_tell(&told, proven ? CLAVE_OK : CLAVE_EOPTIMEOUT);
}

static void confirm_on_proven(clave_async_client *c, const clave_result *res, void *arg)
{
    struct session_proof *p = arg;
    p->answered = !confirm_end_missing(p, res) && confirm_is_answer(res->err);
    p->goes_on = p->answered && confirm_is_cut_short(p, res);
    p->on = clave_async_client_connection(c);
    if (--p->pending == 0)
        confirm_finish(p);
}

/* What is listed behind a commit, on the same connection, is all that there is. */
static void confirm_on_listed(clave_async_client *c, const clave_result *res, void *arg)
{
    struct session_proof *p = arg;
    struct http_session *s = p->s;
    bool same = p->answered && p->on == clave_async_client_connection(c);
    s->blind = res->err == CLAVE_EUNIMPLEMENTED;
    p->looked = same && (res->err == CLAVE_OK || s->blind);
    if (p->looked)
        s->looked_on = p->on;
    if (p->looked && res->err == CLAVE_OK && s->state == HTTP_SESSION_LIVE)
        s->all->listed(s, res);
    if (--p->pending == 0)
        confirm_finish(p);
}

bool clave__http_session_must_look(const struct http_session *s)
{
    if (!s->client || s->state != HTTP_SESSION_LIVE)
        return false;
    if (!clave__http_session_is_shared(s))
        return s->resumed && s->looked_on == 0; /* what there was before the gate's restart */
    return !s->attached || s->looked_on != clave_async_client_connection(s->client);
}

void clave__http_session_known(struct http_session *s)
{
    struct list told;
    bool known = !clave__http_session_must_look(s);
    assert(s->taking == 0);
    list_init(&told);
    if (known) {
        list_splice(&told, &s->knowing);
    } else { /* an answer was lost */
        confirm_again(s, &s->knowing, &told);
        confirm_next(s);
    }
    confirm_tell(&told, known ? CLAVE_OK : CLAVE_EOPTIMEOUT);
}

static size_t confirm_nodes(const struct session_part *part)
{
    size_t n = part->token != 0;
    while (n > 0 && part->more && part->more(part, n - 1))
        n++;
    return n;
}

/* After the refused check, if there was one whose part is still there. */
static void confirm_put_checks(struct session_proof *p, clave_op *ops)
{
    struct http_session *s = p->s;
    bool skips = confirm_find(s, s->refused.token) != NULL;
    for (struct list *l = s->parts.next; l != &s->parts; l = l->next) {
        const struct session_part *part = LIST_ENTRY(l, struct session_part, link);
        size_t n = confirm_nodes(part), first = 0;
        if (skips && part->token != s->refused.token)
            continue;
        if (skips)
            first = s->refused.nth + 1;
        skips = false;
        for (size_t i = first; i < n; i++) {
            const char *node = i == 0 ? part->node : part->more(part, i - 1);
            p->checks[p->n] = (struct session_check){part->token, i};
            ops[p->n++] = (clave_op){.kind = CLAVE_OP_CHECK, .path = node, .version = -1};
        }
    }
    if (p->n == 0)
        ops[p->n++] = (clave_op){.kind = CLAVE_OP_CHECK, .path = "/", .version = -1};
}

/* All that it holds by now. */
static clave_err confirm_submit(struct http_session *s)
{
    const struct clave_mem *mem = &s->all->web->mem;
    assert(!s->proof && s->client);
    struct list *parts = &s->parts;
    size_t room = 1;
    for (struct list *l = parts->next; l != parts; l = l->next)
        room += confirm_nodes(LIST_ENTRY(l, struct session_part, link));
    struct session_proof *p = clave__mem_zalloc(mem, sizeof *p + room * sizeof *p->checks);
    clave_op *ops = clave__mem_zalloc(mem, room * sizeof *ops);
    clave_err err = p && ops ? CLAVE_OK : CLAVE_ENOMEM;
    if (err == CLAVE_OK) {
        p->s = s;
        confirm_put_checks(p, ops);
        assert(p->n <= room);
        err = clave_async_multi(s->client, ops, p->n, confirm_on_proven, p);
    }
    clave__mem_free(mem, ops);
    if (err != CLAVE_OK) {
        clave__mem_free(mem, p);
        return err;
    }
    s->proof = p;
    p->pending = 1;
    p->looks = clave__http_session_must_look(s);
    if (p->looks && clave__client_list_own(s->client, confirm_on_listed, p) == CLAVE_OK)
        p->pending++;
    return CLAVE_OK;
}

/* The end of a session that is no longer LIVE is told to those who wait. */
static void confirm_next(struct http_session *s)
{
    struct list round;
    if (s->proof || s->state != HTTP_SESSION_LIVE || list_empty(&s->unproven))
        return;
    clave_err err = confirm_submit(s);
    list_init(&round);
    list_splice(err == CLAVE_OK ? &s->proving : &round, &s->unproven);
    confirm_tell(&round, err);
}

void clave__http_session_prove(struct http_session *s, struct session_wait *w)
{
    assert(w->done);
    list_init(&w->link);
    w->ends = false;
    w->attempts = 0;
    if (s->state != HTTP_SESSION_LIVE) {
        w->done(w, s->why ? s->why : CLAVE_ECLOSED);
        return;
    }
    list_push_back(&s->unproven, &w->link);
    confirm_next(s);
    clave__http_session_flush(s);
}
