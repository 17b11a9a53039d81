/* events.c - the callbacks that come at any time: each becomes a note in the channel of its source,
 * which is their `arg`. */
#include <stdlib.h>

#include "bridge.h"

struct bridge_source *bridge_source_new(bridge_channel *channel, uint64_t id, uint64_t kinds)
{
    struct bridge_source *s = malloc(sizeof *s);
    if (s)
        *s = (struct bridge_source){.channel = channel, .id = id, .kinds = kinds};
    return s;
}

void bridge_source_free(struct bridge_source *s)
{
    free(s);
}

/* NULL: it is not wanted, or there is no memory. The grant is judged anew at each check, so an
 * event that is missing makes a holder late, never wrong. */
static struct bridge_note *event_begin(const struct bridge_source *s, unsigned kind)
{
    struct bridge_note *n = s->kinds >> kind & 1 ? bridge_note_new() : NULL;
    if (!n)
        return NULL;
    n->id = s->id;
    bridge__put_int(n, kind);
    return n;
}

static void event_end(const struct bridge_source *s, struct bridge_note *n)
{
    bridge__channel_push(s->channel, n);
}

void bridge_on_mutex_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    (void)m;
    struct bridge_note *n = event_begin(arg, ev->kind);
    if (!n)
        return;
    bridge__put_int(n, (int64_t)ev->owner);
    bridge__put_int(n, (int64_t)ev->ahead);
    bridge__put_text(n, ev->predecessor);
    bridge__put_int(n, ev->why);
    event_end(arg, n);
}

void bridge_on_multilock_event(clave_async_multilock *ml, const clave_multilock_event *ev,
                               void *arg)
{
    (void)ml;
    struct bridge_note *n = event_begin(arg, CLAVE_MUTEX_LOST);
    if (!n)
        return;
    bridge__put_int(n, (int64_t)ev->owner);
    bridge__put_text(n, ev->path);
    bridge__put_int(n, ev->why);
    event_end(arg, n);
}

void bridge_on_lease_event(clave_async_semaphore *s, const clave_lease_event *ev, void *arg)
{
    (void)s;
    struct bridge_note *n = event_begin(arg, ev->kind);
    if (!n)
        return;
    bridge__put_int(n, (intptr_t)ev->lease);
    bridge__put_int(n, (int64_t)ev->request);
    bridge__put_int(n, (int64_t)ev->ahead);
    bridge__put_int(n, ev->why);
    event_end(arg, n);
}

void bridge_on_slots_event(clave_async_slots *s, const clave_slots_event *ev, void *arg)
{
    (void)s;
    struct bridge_note *n = event_begin(arg, 0);
    if (!n)
        return;
    bridge__put_int(n, (int64_t)ev->request);
    bridge__put_int(n, (int64_t)ev->ahead);
    event_end(arg, n);
}

void bridge_on_latch_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    (void)l;
    struct bridge_note *n = event_begin(arg, ev->kind);
    if (!n)
        return;
    bridge__put_int(n, (int64_t)ev->ahead);
    bridge__put_text(n, ev->predecessor);
    bridge__put_int(n, ev->why);
    event_end(arg, n);
}

void bridge_on_leader_news(clave_async_leader_watch *w, const clave_leader_news *news, void *arg)
{
    (void)w;
    struct bridge_note *n = event_begin(arg, 0);
    if (!n)
        return;
    bridge__put_int(n, news->err);
    bridge__put_participants(n, news->leader, news->leader ? 1 : 0);
    bridge__put_bytes(n, news->value, news->len);
    event_end(arg, n);
}

void bridge_on_delay_event(clave_async_delay *d, const clave_identity *who, int64_t delay_ms,
                           void *arg)
{
    (void)d;
    struct bridge_note *n = event_begin(arg, 0);
    if (!n)
        return;
    bridge__put_identity(n, who);
    bridge__put_int(n, delay_ms);
    event_end(arg, n);
}

void bridge_on_state(clave_async_client *c, clave_state state, clave_err why, void *arg)
{
    (void)c;
    struct bridge_note *n = event_begin(arg, state);
    if (!n)
        return;
    bridge__put_int(n, why);
    event_end(arg, n);
}

void bridge_on_log(void *arg, int level, const char *msg)
{
    struct bridge_note *n = event_begin(arg, (unsigned)level);
    if (!n)
        return;
    bridge__put_text(n, msg);
    event_end(arg, n);
}

void bridge_on_persistent_watcher(clave_async_persistent_watcher *w,
                                  const clave_persistent_watcher_event *ev, void *arg)
{
    (void)w;
    struct bridge_note *n = event_begin(arg, ev->type);
    if (!n)
        return;
    bridge__put_text(n, ev->path);
    bridge__put_int(n, ev->err);
    event_end(arg, n);
}

void bridge_on_persistent_node_event(clave_async_persistent_node *node,
                                     const clave_persistent_node_event *ev, void *arg)
{
    (void)node;
    struct bridge_note *n = event_begin(arg, ev->type);
    if (!n)
        return;
    bridge__put_text(n, ev->path);
    bridge__put_int(n, ev->type == CLAVE_PERSISTENT_NODE_CONFLICT ? ev->owner : ev->czxid);
    bridge__put_int(n, ev->err);
    event_end(arg, n);
}
