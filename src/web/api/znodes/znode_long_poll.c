/* znode_long_poll.c - see znode_long_poll.h. Called by znodes_api.c. Invariant: while polls are at
 * a watch, it is armed, or a question that arms it is under way; so a change after the answer that
 * they were compared with has an event. */
#include "web/api/znodes/znode_long_poll.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "client/client_for_recipes.h"
#include "web/http/conditional.h"
#include "web/http/problem.h"
#include "web/http/route.h"

struct znode_polls {
    struct map watches;
};

struct znode_watch {
    struct map_node node; /* in znode_polls.watches, while there are polls */
    struct web *web;
    clave_async_watch *watch;
    struct list polls;
    enum znode_tag kind;
    bool asking;             /* its answer is to come */
    bool telling;            /* the polls */
    bool missing;            /* the node: only `exists` leaves a watch then */
    char tag[ZNODE_TAG_CAP]; /* of the newest answer */
    char path[];
};

struct znode_watch_key {
    const char *path;
    enum znode_tag kind;
};

void clave__znode_tag(char out[ZNODE_TAG_CAP], enum znode_tag kind, const clave_stat *st)
{
    if (!st)
        snprintf(out, ZNODE_TAG_CAP, ZNODE_TAG_NONE);
    else if (kind == ZNODE_TAG_CHILDREN)
        snprintf(out, ZNODE_TAG_CAP, "\"c%d-%" PRId64 "\"", (int)st->cversion, st->czxid);
    else
        snprintf(out, ZNODE_TAG_CAP, "\"%d-%" PRId64 "\"",
                 (int)(kind == ZNODE_TAG_ACL ? st->aversion : st->version), st->czxid);
}

clave_err clave__znode_polls_new(struct web *w)
{
    w->znode_polls = clave__mem_zalloc(&w->mem, sizeof *w->znode_polls);
    return w->znode_polls
               ? clave__map_init(&w->znode_polls->watches, &w->mem, clave__rand_u64(&w->rand))
               : CLAVE_ENOMEM;
}

void clave__znode_polls_free(struct web *w)
{
    if (w->znode_polls)
        clave__map_fini(&w->znode_polls->watches);
    clave__mem_free(&w->mem, w->znode_polls);
    w->znode_polls = NULL;
}

/* ---- a poll ---------------------------------------------------------------------------------- */

/* Without polls nobody needs the watch; an answer that is under way frees it when it comes. */
static void poll_drop(struct znode_watch *k)
{
    struct web *w = k->web;
    if (k->telling || !list_empty(&k->polls))
        return;
    if (k->watch) {
        clave__map_remove(&w->znode_polls->watches, &k->node);
        clave_async_watch_free(k->watch);
        k->watch = NULL;
    }
    if (!k->asking)
        clave__mem_free(&w->mem, k);
}

static void poll_leave(struct znode_long_poll *p)
{
    list_remove(&p->link);
    clave__web_timer_clear(p->x->web, &p->timer);
    poll_drop(p->at);
}

static void poll_cancel(struct web_exchange *x)
{
    poll_leave(x->pending);
}

static struct web_exchange *poll_end(struct znode_long_poll *p)
{
    struct web_exchange *x = p->x;
    x->cancel = NULL;
    poll_leave(p);
    return x;
}

static void poll_on_time(struct timer *t, int64_t now)
{
    struct web_exchange *x = poll_end(LIST_ENTRY(t, struct znode_long_poll, timer));
    (void)now;
    x->route->handle(x);
}

/* ---- a watch --------------------------------------------------------------------------------- */

static void poll_ask(struct znode_watch *k);

/* Each poll is handled once, though handling it may bring it back. */
static void poll_tell(struct znode_watch *k, clave_err err)
{
    struct list polls;
    k->telling = true;
    list_init(&polls);
    list_splice(&polls, &k->polls);
    for (struct list *at; (at = list_pop_front(&polls));) {
        struct znode_long_poll *p = LIST_ENTRY(at, struct znode_long_poll, link);
        list_push_back(&k->polls, &p->link);
        if (err == CLAVE_OK && clave__condition_knows(p->x, k->tag, ZNODE_TAG_NONE))
            continue;
        struct web_exchange *x = poll_end(p);
        if (err == CLAVE_OK)
            x->route->handle(x);
        else
            clave__web_problem_err(x, err, "wait for a change of", k->path);
    }
    k->telling = false;
    if (list_empty(&k->polls))
        poll_drop(k);
    else if (!k->asking && !clave_async_watch_is_armed(k->watch))
        poll_ask(k);
}

static void poll_on_watch_answer(clave_async_client *c, const clave_result *res, void *arg)
{
    struct znode_watch *k = arg;
    assert(k->asking);
    struct web *w = k->web;
    int64_t now = clave__client_now(c);
    w->now = now > w->now ? now : w->now;
    k->asking = false;
    if (!k->watch) { /* nobody waits any more */
        clave__mem_free(&w->mem, k);
        return;
    }
    bool known = res->err == CLAVE_OK || res->err == CLAVE_ENONODE;
    clave__znode_tag(k->tag, k->kind, res->err == CLAVE_OK ? res->stat : NULL);
    if (k->missing && res->err == CLAVE_OK && k->kind == ZNODE_TAG_CHILDREN)
        clave_async_watch_disarm(k->watch); /* it is not for children */
    k->missing = res->err == CLAVE_ENONODE;
    poll_tell(k, known ? CLAVE_OK : res->err);
}

static void poll_ask(struct znode_watch *k)
{
    assert(k->watch && !k->asking);
    clave_async_client *own = k->web->own;
    clave_async_watch *watch = clave_async_watch_is_armed(k->watch) ? NULL : k->watch;
    clave_err err = k->kind == ZNODE_TAG_CHILDREN && !k->missing
                        ? clave_async_children(own, k->path, watch, poll_on_watch_answer, k)
                        : clave_async_exists(own, k->path, watch, poll_on_watch_answer, k);
    k->asking = err == CLAVE_OK;
    if (err == CLAVE_OK)
        clave__web_flush(k->web, own);
    else
        poll_tell(k, err);
}

static void poll_on_watch_event(clave_async_client *c, clave_async_watch *watch,
                                const clave_event *ev, void *arg)
{
    struct znode_watch *k = arg;
    (void)c;
    (void)watch;
    (void)ev;
    if (!k->asking)
        poll_ask(k);
}

static bool poll_is(const struct map_node *node, const void *key)
{
    const char *at = (const char *)node - offsetof(struct znode_watch, node);
    const struct znode_watch *k = (const void *)at;
    const struct znode_watch_key *wanted = key;
    return k->kind == wanted->kind && strcmp(k->path, wanted->path) == 0;
}

/* NULL: no memory. */
static struct znode_watch *poll_get(struct web *w, const struct znode_watch_key *key)
{
    struct map *m = &w->znode_polls->watches;
    size_t n = strlen(key->path);
    uint32_t hash = clave__map_hash_bytes(m, key->path, n);
    struct map_node *found = clave__map_find(m, hash, poll_is, key);
    if (found)
        return MAP_ENTRY(found, struct znode_watch, node);
    struct znode_watch *k = clave__mem_zalloc(&w->mem, sizeof *k + n + 1);
    if (!k || clave_async_watch_new(&k->watch, w->own, poll_on_watch_event, k) != CLAVE_OK) {
        clave__mem_free(&w->mem, k);
        return NULL;
    }
    memcpy(k->path, key->path, n);
    k->web = w;
    k->kind = key->kind;
    list_init(&k->polls);
    clave__map_insert(m, &k->node, hash);
    return k;
}

/* ---- waiting --------------------------------------------------------------------------------- */

void clave__znode_long_poll_enter(struct znode_long_poll *p, struct web_exchange *x,
                                  enum znode_tag kind, int64_t until)
{
    assert(!x->answered && !x->cancel);
    struct web *w = x->web;
    struct znode_watch *k = poll_get(w, &(struct znode_watch_key){x->params[0], kind});
    if (!k) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "wait for a change of", x->params[0]);
        return;
    }
    *p = (struct znode_long_poll){.at = k, .x = x};
    list_push_back(&k->polls, &p->link);
    clave__web_timer_clear(w, &x->timer); /* of the answer that there was */
    clave__timer_init(&p->timer, poll_on_time);
    clave__web_timer_set(w, &p->timer, until);
    x->pending = p;
    x->cancel = poll_cancel;
    if (!k->asking) /* the newest answer may be older than what the request has seen */
        poll_ask(k);
}
