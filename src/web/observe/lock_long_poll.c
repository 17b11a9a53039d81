/* lock_long_poll.c - see lock_long_poll.h. The endpoints enter, observe.c wakes. Invariant: a poll
 * is in one list and its timer is armed, until it is called off or its exchange is handled again.
 */
#include "web/observe/lock_long_poll.h"

#include <assert.h>
#include <string.h>

#include "web/http/route.h"

enum { HANDLED_A_TURN = 100 };

struct lock_long_poll_path {
    struct map_node node;
    struct list polls;
    char path[];
};

static bool poll_is_at(const struct map_node *node, const void *path)
{
    const char *at = (const char *)node - offsetof(struct lock_long_poll_path, node);
    return strcmp(((const struct lock_long_poll_path *)(const void *)at)->path, path) == 0;
}

static struct lock_long_poll_path *poll_find(struct observe *o, const char *path, uint32_t hash)
{
    struct map_node *node = clave__map_find(&o->polls, hash, poll_is_at, path);
    return node ? MAP_ENTRY(node, struct lock_long_poll_path, node) : NULL;
}

/* NULL: no memory. */
static struct lock_long_poll_path *poll_path(struct observe *o, const char *path)
{
    size_t n = strlen(path);
    uint32_t hash = clave__map_hash_bytes(&o->polls, path, n);
    struct lock_long_poll_path *at = poll_find(o, path, hash);
    if (at)
        return at;
    at = clave__mem_zalloc(&o->web->mem, sizeof *at + n + 1);
    if (!at)
        return NULL;
    memcpy(at->path, path, n);
    list_init(&at->polls);
    clave__map_insert(&o->polls, &at->node, hash);
    return at;
}

/* It is in no list of a path any more. */
static void poll_part(struct observe *o, struct lock_long_poll *p)
{
    struct lock_long_poll_path *at = p->at;
    list_remove(&p->link);
    p->at = NULL;
    if (!at || !list_empty(&at->polls))
        return;
    clave__map_remove(&o->polls, &at->node);
    clave__mem_free(&o->web->mem, at);
}

static void poll_cancel(struct web_exchange *x)
{
    struct lock_long_poll *p = x->pending;
    poll_part(x->web->observe, p);
    clave__web_timer_clear(x->web, &p->timer);
}

static void poll_handle(struct lock_long_poll *p)
{
    struct web_exchange *x = p->x;
    assert(!x->answered && x->pending == p);
    poll_cancel(x);
    x->cancel = NULL;
    x->route->handle(x);
}

static void poll_on_time(struct timer *t, int64_t now)
{
    (void)now;
    poll_handle(LIST_ENTRY(t, struct lock_long_poll, timer));
}

bool clave__lock_long_poll_enter(struct lock_long_poll *p, struct web_exchange *x, const char *path,
                                 int64_t until)
{
    assert(!x->answered && !x->cancel);
    *p = (struct lock_long_poll){.x = x, .at = poll_path(x->web->observe, path)};
    if (!p->at)
        return false;
    list_push_back(&p->at->polls, &p->link);
    clave__timer_init(&p->timer, poll_on_time);
    clave__web_timer_set(x->web, &p->timer, until);
    x->pending = p;
    x->cancel = poll_cancel;
    return true;
}

/* ---- waking ---------------------------------------------------------------------------------- */

static void poll_wake_all(struct observe *o, struct lock_long_poll_path *at)
{
    assert(!list_empty(&at->polls));
    while (!list_empty(&at->polls)) {
        struct lock_long_poll *p = LIST_ENTRY(at->polls.next, struct lock_long_poll, link);
        bool last = at->polls.next == at->polls.prev;
        poll_part(o, p); /* the last one takes `at` along */
        list_push_back(&o->woken, &p->link);
        if (last)
            break;
    }
    if (!o->poll_turn.armed)
        clave__web_timer_set(o->web, &o->poll_turn, o->web->now);
}

void clave__lock_long_poll_changed(struct observe *o, const char *path)
{
    struct lock_long_poll_path *at =
        poll_find(o, path, clave__map_hash_bytes(&o->polls, path, strlen(path)));
    if (at)
        poll_wake_all(o, at);
}

void clave__lock_long_poll_all_changed(struct observe *o)
{
    for (struct map_node *node; (node = clave__map_next(&o->polls, NULL));)
        poll_wake_all(o, MAP_ENTRY(node, struct lock_long_poll_path, node));
}

void clave__lock_long_poll_turn(struct timer *t, int64_t now)
{
    struct observe *o = LIST_ENTRY(t, struct observe, poll_turn);
    for (int left = HANDLED_A_TURN; left > 0 && !list_empty(&o->woken); left--)
        poll_handle(LIST_ENTRY(o->woken.next, struct lock_long_poll, link));
    if (!list_empty(&o->woken))
        clave__web_timer_set(o->web, t, now + 1); /* not in this turn */
}
