/* http_session_proof.c - proves that a session lives: "renew". Called by the endpoints of sessions
 * and claims. Invariant: what is proven was committed after the proof was asked for. */
#include <string.h>

#include "web/session/http_session.h"

enum { PROOF_ATTEMPTS = 8 };

struct session_proof {
    struct http_session *s;
    struct session_wait *w; /* NULL: nobody waits any more */
    unsigned attempts;
    size_t room;      /* for the checks of the transaction under way */
    int64_t tokens[]; /* and what they are for */
};

static void proof_end(struct session_proof *p, clave_err err)
{
    struct session_wait *w = p->w;
    clave__mem_free(&p->s->all->web->mem, p);
    if (!w)
        return;
    w->proof = NULL;
    list_remove(&w->link);
    w->done(w, err);
}

void clave__session_proof_forget(struct session_wait *w)
{
    if (w->proof)
        w->proof->w = NULL;
    w->proof = NULL;
}

static struct session_part *proof_find(const struct session_proof *p, int64_t token)
{
    struct list *parts = &p->s->parts;
    for (struct list *l = parts->next; l != parts; l = l->next) {
        struct session_part *part = LIST_ENTRY(l, struct session_part, link);
        if (part->token == token)
            return part;
    }
    return NULL;
}

static clave_err proof_submit(struct session_proof *p);

/* Whether the servers have answered for good: one that refuses the check for want of permission
 * knows the session as well, and the hold deadline says how much that proves. */
static bool proof_is_answer(clave_err err)
{
    return err == CLAVE_OK || clave_err_classify(err) == CLAVE_CLASS_FINAL;
}

static void on_proven(clave_async_client *c, const clave_result *res, void *arg)
{
    struct session_proof *p = arg;
    bool missing = false;
    (void)c;
    for (size_t i = 0; p->w && i < res->nops && i < p->room; i++) {
        struct session_part *part = res->ops[i].err == CLAVE_ENONODE && p->tokens[i] != 0
                                        ? proof_find(p, p->tokens[i])
                                        : NULL;
        if (part)
            part->missing(part);
        missing |= part != NULL;
    }
    if (!p->w)
        proof_end(p, CLAVE_OK);
    else if (proof_is_answer(res->err) && !missing)
        proof_end(p, CLAVE_OK);
    else if (!p->s->client)
        proof_end(p, CLAVE_ECLOSED);
    else if (++p->attempts >= PROOF_ATTEMPTS || proof_submit(p) != CLAVE_OK)
        proof_end(p, CLAVE_EOPTIMEOUT);
}

/* What it holds by now; of what came since the proof was asked for, as much as there is room. */
static clave_err proof_submit(struct session_proof *p)
{
    const struct clave_mem *mem = &p->s->all->web->mem;
    struct list *parts = &p->s->parts;
    size_t n = 0;
    clave_op *ops = clave__mem_zalloc(mem, p->room * sizeof *ops);
    if (!ops)
        return CLAVE_ENOMEM;
    ops[0] = (clave_op){.kind = CLAVE_OP_CHECK, .path = "/", .version = -1};
    for (struct list *l = parts->next; l != parts && n < p->room; l = l->next) {
        const struct session_part *part = LIST_ENTRY(l, struct session_part, link);
        if (part->token == 0)
            continue;
        p->tokens[n] = part->token;
        ops[n++] = (clave_op){.kind = CLAVE_OP_CHECK, .path = part->node, .version = -1};
    }
    if (n == 0)
        p->tokens[n++] = 0;
    clave_err err = clave_async_multi(p->s->client, ops, n, on_proven, p);
    clave__mem_free(mem, ops);
    return err;
}

void clave__http_session_prove(struct http_session *s, struct session_wait *w)
{
    const struct clave_mem *mem = &s->all->web->mem;
    size_t room = 1;
    list_init(&w->link);
    w->ends = false;
    w->proof = NULL;
    if (s->state != HTTP_SESSION_LIVE) {
        w->done(w, s->why ? s->why : CLAVE_ECLOSED);
        return;
    }
    for (struct list *l = s->parts.next; l != &s->parts; l = l->next)
        room += LIST_ENTRY(l, struct session_part, link)->token != 0;
    struct session_proof *p = clave__mem_zalloc(mem, sizeof *p + room * sizeof *p->tokens);
    if (p)
        *p = (struct session_proof){.s = s, .w = w, .room = room};
    clave_err err = p ? proof_submit(p) : CLAVE_ENOMEM;
    if (err != CLAVE_OK) {
        clave__mem_free(mem, p);
        w->done(w, err);
        return;
    }
    w->proof = p;
    list_push_back(&s->waits, &w->link);
    clave__http_session_flush(s);
}
