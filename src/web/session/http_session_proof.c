/* http_session_proof.c - proves that a session lives: a transaction that changes nothing passes the
 * leader. Called by the endpoints of sessions and claims, and for what was granted after a wait.
 * Requests share proofs: one is under way, and all that ask meanwhile wait for the next one. So a
 * session costs the servers one commit a round trip, whatever the rate of requests. Invariant: what
 * is proven was committed after the proof was asked for. */
#include <string.h>

#include "web/session/http_session.h"

enum { PROOF_ATTEMPTS = 8 };

struct session_proof {
    struct http_session *s;
    size_t n;
    int64_t tokens[]; /* of what is checked, in the order of the checks; 0: of the root */
};

static struct session_part *proof_find(const struct session_proof *p, int64_t token)
{
    struct list *parts = &p->s->parts;
    for (struct list *l = parts->next; token != 0 && l != parts; l = l->next) {
        struct session_part *part = LIST_ENTRY(l, struct session_part, link);
        if (part->token == token)
            return part;
    }
    return NULL;
}

static void proof_tell(struct list *round, clave_err err)
{
    for (struct list *l; (l = list_pop_front(round));) {
        struct session_wait *w = LIST_ENTRY(l, struct session_wait, link);
        w->done(w, err);
    }
}

/* Whether the servers have answered for good: one that refuses the check for want of permission
 * knows the session as well, and the hold deadline says how much that proves. */
static bool proof_is_answer(clave_err err)
{
    return err == CLAVE_OK || clave_err_classify(err) == CLAVE_CLASS_FINAL;
}

/* Each part that was found gone ends; it may have ended meanwhile. false: there was none, so that
 * all were checked. */
static bool proof_end_missing(const struct session_proof *p, const clave_result *res)
{
    bool missing = false;
    for (size_t i = 0; i < res->nops && i < p->n; i++) {
        bool gone = res->ops[i].err == CLAVE_ENONODE && p->tokens[i] != 0;
        struct session_part *part = gone ? proof_find(p, p->tokens[i]) : NULL;
        if (part)
            part->missing(part);
        missing |= gone;
    }
    return missing;
}

/* Those for whom it was not answered wait for the next one, but for those who have waited for too
 * many. */
static void proof_again(struct http_session *s, struct list *tired)
{
    struct list again, *l;
    list_init(&again);
    list_splice(&again, &s->proving);
    while ((l = list_pop_front(&again))) {
        struct session_wait *w = LIST_ENTRY(l, struct session_wait, link);
        list_push_back(++w->attempts < PROOF_ATTEMPTS ? &s->unproven : tired, l);
    }
}

static void proof_next(struct http_session *s);

static void on_proven(clave_async_client *c, const clave_result *res, void *arg)
{
    struct session_proof *p = arg;
    struct http_session *s = p->s;
    struct list told;
    (void)c;
    list_init(&told);
    s->proof = NULL;
    bool proven = !proof_end_missing(p, res) && proof_is_answer(res->err);
    clave__mem_free(&s->all->web->mem, p);
    if (proven)
        list_splice(&told, &s->proving);
    else
        proof_again(s, &told);
    proof_next(s);
    proof_tell(&told, proven ? CLAVE_OK : CLAVE_EOPTIMEOUT);
}

static size_t proof_nodes(const struct session_part *part)
{
    size_t n = part->token != 0;
    while (n > 0 && part->more && part->more(part, n - 1))
        n++;
    return n;
}

/* All that it holds by now. */
static clave_err proof_submit(struct http_session *s)
{
    const struct clave_mem *mem = &s->all->web->mem;
    struct list *parts = &s->parts;
    size_t room = 1;
    for (struct list *l = parts->next; l != parts; l = l->next)
        room += proof_nodes(LIST_ENTRY(l, struct session_part, link));
    struct session_proof *p = clave__mem_zalloc(mem, sizeof *p + room * sizeof *p->tokens);
    clave_op *ops = clave__mem_zalloc(mem, room * sizeof *ops);
    clave_err err = p && ops ? CLAVE_OK : CLAVE_ENOMEM;
    if (err == CLAVE_OK) {
        p->s = s;
        for (struct list *l = parts->next; l != parts; l = l->next) {
            const struct session_part *part = LIST_ENTRY(l, struct session_part, link);
            size_t n = proof_nodes(part);
            for (size_t i = 0; i < n; i++) {
                const char *node = i == 0 ? part->node : part->more(part, i - 1);
                p->tokens[p->n] = part->token;
                ops[p->n++] = (clave_op){.kind = CLAVE_OP_CHECK, .path = node, .version = -1};
            }
        }
        if (p->n == 0)
            ops[p->n++] = (clave_op){.kind = CLAVE_OP_CHECK, .path = "/", .version = -1};
        err = clave_async_multi(s->client, ops, p->n, on_proven, p);
    }
    clave__mem_free(mem, ops);
    if (err == CLAVE_OK)
        s->proof = p;
    else
        clave__mem_free(mem, p);
    return err;
}

/* The end of a session that is no longer LIVE is told to those who wait. */
static void proof_next(struct http_session *s)
{
    struct list round;
    if (s->proof || s->state != HTTP_SESSION_LIVE || list_empty(&s->unproven))
        return;
    clave_err err = proof_submit(s);
    list_init(&round);
    list_splice(err == CLAVE_OK ? &s->proving : &round, &s->unproven);
    proof_tell(&round, err);
}

void clave__http_session_prove(struct http_session *s, struct session_wait *w)
{
    list_init(&w->link);
    w->ends = false;
    w->attempts = 0;
    if (s->state != HTTP_SESSION_LIVE) {
        w->done(w, s->why ? s->why : CLAVE_ECLOSED);
        return;
    }
    list_push_back(&s->unproven, &w->link);
    proof_next(s);
    clave__http_session_flush(s);
}
