#include "ensemble.h"

#include <string.h>

#include "insider.h"
#include "inspector.h"
#include "server/state.h"

struct server_options ensemble_options(struct server_options o)
{
    o.min_session_ms = ENGINE_TIMEOUT_MS;
    o.max_session_ms = ENGINE_TIMEOUT_MS;
    return o;
}

int32_t ensemble_negotiate(const struct ensemble *e, int32_t asked_ms)
{
    int32_t least = 2 * e->tick_ms, most = 20 * e->tick_ms;
    return asked_ms < least ? least : asked_ms > most ? most : asked_ms;
}

/* ---- the leader's sessions ----------------------------------------------------------- */

static struct tracked_session *find(struct ensemble *e, int64_t id)
{
    for (size_t i = 0; i < TRACKED_SESSIONS; i++)
        if (e->sessions[i].id == id)
            return &e->sessions[i];
    return NULL;
}

static void arm(struct ensemble *e)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < TRACKED_SESSIONS; i++)
        if (e->sessions[i].id != 0 && e->sessions[i].expires < next)
            next = e->sessions[i].expires;
    if (next == INT64_MAX)
        world_clear(e->w, &e->expiry);
    else
        world_set(e->w, &e->expiry, clock_when(&e->leader->clock, next));
}

void ensemble_touch(struct ensemble *e, int64_t session, int32_t timeout_ms, int64_t at)
{
    struct tracked_session *s = session ? find(e, session) : NULL;
    if (!s && timeout_ms == 0)
        return; /* it has expired, or is to be made */
    if (!s)
        s = find(e, 0);
    world_must(s != NULL);
    if (!s)
        return;
    s->id = session;
    s->timeout_ms = timeout_ms ? timeout_ms : s->timeout_ms;
    /* Not rounded up to a tick as Apache does: a leader that is stricter than any. */
    int64_t expires = clock_ms(&e->leader->clock, at) + s->timeout_ms;
    s->expires = expires > s->expires ? expires : s->expires;
    arm(e);
}

static void on_expiry(struct alarm *a)
{
    struct ensemble *e = LIST_ENTRY(a, struct ensemble, expiry);
    int64_t now = clock_ms(&e->leader->clock, e->w->now);
    for (size_t i = 0; i < TRACKED_SESSIONS; i++) {
        struct tracked_session *s = &e->sessions[i];
        if (s->id == 0 || s->expires > now)
            continue;
        if (inspector_has_session(e->leader, s->id)) {
            world_tell(e->w, "leader", "session 0x%llx has expired", (unsigned long long)s->id);
            insider_end_session(e->leader, s->id);
        }
        *s = (struct tracked_session){0};
    }
    arm(e);
}

/* Made for a client that was gone before the answer: the leader counts all the same. */
static void on_survey(struct alarm *a)
{
    struct ensemble *e = LIST_ENTRY(a, struct ensemble, survey);
    const struct map *table = &e->leader->server->sessions.table;
    for (struct map_node *n = NULL; (n = clave__map_next(table, n));) {
        int64_t id = MAP_ENTRY(n, struct session, in_table)->id;
        if (!find(e, id))
            ensemble_touch(e, id, e->timeout_ms, e->w->now);
    }
    world_set(e->w, a, e->w->now + e->tick_ms * MS);
}

/* ---- life ---------------------------------------------------------------------------- */

/* A standalone server's is empty, and clients go by that. */
static void write_config(struct server_host *h)
{
    static const char text[] = "server.1=m0:2888:3888:participant\nversion=0";
    struct tree *t = &h->server->tree;
    struct node *n = clave__tree_find(t, clave__jbytes("/zookeeper/config"));
    uint8_t *data;
    int32_t len = sizeof text - 1;
    world_must(n && clave__tree_copy_data(t, clave__jbytes(text), &data) == CLAVE_OK);
    clave__tree_swap_data(t, n, &data, &len);
    clave__tree_free_data(t, n, data);
    clave__tree_changed(t, n);
}

void ensemble_start(struct ensemble *e)
{
    write_config(e->leader);
    world_set(e->w, &e->survey, e->w->now + e->tick_ms * MS);
    for (unsigned i = 0; i < MEMBERS; i++)
        member_join(&e->members[i]);
}

void ensemble_heal(struct ensemble *e)
{
    for (unsigned i = 0; i < MEMBERS; i++)
        member_join(&e->members[i]);
}

void ensemble_init(struct ensemble *e, struct server_host *leader)
{
    memset(e, 0, sizeof *e);
    e->w = leader->w;
    e->net = leader->net;
    e->leader = leader;
    e->tick_ms = leader->options.tick_ms;
    e->expiry.ring = on_expiry;
    e->survey.ring = on_survey;
    for (unsigned i = 0; i < MEMBERS; i++)
        member_init(&e->members[i], e, i);
}

void ensemble_fini(struct ensemble *e)
{
    world_clear(e->w, &e->expiry);
    world_clear(e->w, &e->survey);
    for (unsigned i = 0; i < MEMBERS; i++)
        member_fini(&e->members[i]);
}
