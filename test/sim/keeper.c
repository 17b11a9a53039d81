#include "keeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checker.h"
#include "clave/async/persistent_node.h"
#include "inspector.h"
#include "server/server_internal.h"

#define KEPT_SHARED "/kept/shared"

enum { OWN, SHARED, KEPT, DATA_SIZE = 32 };

/* One node that a process keeps, and what it was told of it. */
struct kept {
    struct keeper_user *user;
    clave_async_persistent_node *node; /* NULL: not now */
    char path[48];
    char data[DATA_SIZE]; /* that it should have */
    unsigned calls_out;
    bool closing;
    bool lingers;       /* one before it was freed, and deletes its node whenever it can */
    int64_t changed_at; /* true time at which the process most recently did something to it */
};

struct keeper_user {
    struct workload *load;
    struct kept kept[KEPT];
    struct alarm alarm;
    bool due;
    bool frees; /* also without a close */
    unsigned writes;
    unsigned deletes_out;
    int64_t apart_at;       /* when it most recently had no connection */
    int64_t session;        /* of its client */
    int64_t session_since;  /* true time */
    int64_t left_shared_at; /* it stopped keeping the shared node */
};

static struct world *keeper_of_world(const struct keeper_user *u)
{
    return u->load->host->w;
}

static const struct node *keeper_find(const struct checker *c, const char *path)
{
    return c->server->server ? clave__tree_find(&c->server->server->tree, clave__jbytes(path))
                             : NULL;
}

static void keeper_later(struct keeper_user *u)
{
    struct world *w = keeper_of_world(u);
    u->due = false;
    world_set(w, &u->alarm, w->now + world_wait(w, u->load->o->keeper_rest_us));
}

static void keeper_on_alarm(struct alarm *a)
{
    struct keeper_user *u = LIST_ENTRY(a, struct keeper_user, alarm);
    u->due = true;
    host_wake(u->load->host);
}

/* ---- what is told ------------------------------------------------------------------------------
 */

static void kept_on_event(clave_async_persistent_node *n, const clave_persistent_node_event *ev,
                          void *arg)
{
    static const char *const what[] = {
        [CLAVE_PERSISTENT_NODE_PRESENT] = "has",
        [CLAVE_PERSISTENT_NODE_ABSENT] = "misses",
        [CLAVE_PERSISTENT_NODE_CONFLICT] = "finds another's",
        [CLAVE_PERSISTENT_NODE_FAILED] = "is refused",
    };
    struct kept *k = arg;
    struct host *h = k->user->load->host;
    int64_t session = clave_async_client_session_id(h->client);
    (void)n;
    world_log(h->w, h->name, "%s %s, %lld", what[ev->type], ev->path, (long long)ev->czxid);
    const struct node *there = keeper_find(k->user->load->checker, ev->path);
    if (ev->type == CLAVE_PERSISTENT_NODE_PRESENT && there && there->stat.czxid == ev->czxid &&
        there->stat.owner != session)
        world_break(h->w, "a node that is kept belongs to its owner's session",
                    "%s is told of %s, which belongs to 0x%llx", h->name, ev->path,
                    (unsigned long long)there->stat.owner);
    if (ev->type == CLAVE_PERSISTENT_NODE_CONFLICT && ev->owner == session)
        world_break(h->w, "nobody is in conflict with itself", "%s at %s", h->name, ev->path);
    if (ev->type == CLAVE_PERSISTENT_NODE_FAILED &&
        !(ev->err == CLAVE_ENOMEM && h->allocator.refused > 0))
        world_break(h->w, "each call ends as its header says", "%s: keeping %s gives %s", h->name,
                    ev->path, clave_err_name(ev->err));
}

static void kept_answered(struct kept *k, const char *what, clave_err err)
{
    struct host *h = k->user->load->host;
    world_log(h->w, h->name, "%s of %s: %s", what, k->path, clave_err_name(err));
    if (k->calls_out == 0)
        world_break(h->w, "each request completes exactly once", "%s: %s again", h->name, what);
    else
        k->calls_out--;
}

static void kept_on_set(clave_async_persistent_node *n, clave_err err, void *arg)
{
    (void)n;
    kept_answered(arg, "a new text", err);
}

static void kept_free(struct kept *k)
{
    struct keeper_user *u = k->user;
    k->lingers = k->lingers || !k->closing || k->calls_out > 0;
    clave_async_persistent_node_free(k->node);
    k->node = NULL;
    k->calls_out = 0; /* no callback follows */
    k->closing = false;
    k->changed_at = keeper_of_world(u)->now;
    if (k == &u->kept[SHARED])
        u->left_shared_at = k->changed_at;
}

static void kept_on_closed(clave_async_persistent_node *n, clave_err err, void *arg)
{
    struct kept *k = arg;
    struct host *h = k->user->load->host;
    const struct checker *c = k->user->load->checker;
    int64_t session = clave_async_client_session_id(h->client);
    (void)n;
    kept_answered(k, "the end", err);
    if (err == CLAVE_OK && !k->lingers && c->server->server && !c->restored && session != 0 &&
        inspector_has_node(c->server, k->path, session))
        world_break(h->w, "a node that was closed is gone", "%s still has %s", h->name, k->path);
    kept_free(k);
}

/* ---- what is done ------------------------------------------------------------------------------
 */

static void kept_write(struct kept *k)
{
    struct keeper_user *u = k->user;
    snprintf(k->data, sizeof k->data, "%s-%u", u->load->host->name, ++u->writes);
    k->changed_at = keeper_of_world(u)->now;
}

static void kept_keep(struct kept *k)
{
    struct keeper_user *u = k->user;
    struct host *h = u->load->host;
    kept_write(k);
    const clave_persistent_node_options o = {.size = sizeof o,
                                             .data = k->data,
                                             .len = strlen(k->data),
                                             .event_cb = kept_on_event,
                                             .event_arg = k};
    clave_err err = clave_async_persistent_node_new(&k->node, h->client, k->path, &o);
    world_log(h->w, h->name, "keeps %s: %s", k->path, clave_err_name(err));
}

static void kept_set(struct kept *k)
{
    kept_write(k);
    k->calls_out++;
    if (clave_async_persistent_node_set(k->node, k->data, strlen(k->data), kept_on_set, k) ==
        CLAVE_OK)
        return;
    k->calls_out--;
    kept_free(k); /* for want of memory; what it should have is not known now */
}

static void kept_close(struct kept *k)
{
    k->closing = true;
    k->changed_at = keeper_of_world(k->user)->now;
    if (k == &k->user->kept[SHARED])
        k->user->left_shared_at = k->changed_at;
    k->calls_out++;
    if (clave_async_persistent_node_close(k->node, kept_on_closed, k) != CLAVE_OK)
        kept_free(k);
}

static void keeper_on_deleted(clave_async_client *c, const clave_result *res, void *arg)
{
    struct keeper_user *u = arg;
    (void)c;
    (void)res;
    u->deletes_out--;
}

/* Somebody's own one, at any version. */
static void keeper_delete(struct keeper_user *u)
{
    const struct checker *c = u->load->checker;
    struct host *h = u->load->host;
    struct workload *victim = c->loads[world_between(h->w, 0, (int64_t)c->nloads - 1)];
    if (u->deletes_out > 0 || !victim->keeper)
        return;
    const char *path = victim->keeper->kept[OWN].path;
    world_log(h->w, h->name, "deletes %s", path);
    if (clave_async_delete(h->client, path, -1, keeper_on_deleted, u) == CLAVE_OK)
        u->deletes_out++;
}

static void keeper_decide(struct keeper_user *u)
{
    struct world *w = keeper_of_world(u);
    int64_t rng = world_between(w, 0, 99);
    struct kept *k = &u->kept[world_between(w, OWN, SHARED)];
    bool calm = u->load->checker->calm_from > 0;
    if (u->load->day_is_over || k->closing)
        return;
    if (!k->node)
        kept_keep(k);
    else if (rng < 40 && k->calls_out < 3)
        kept_set(k);
    else if (rng < 65 && !calm)
        keeper_delete(u);
    else if (rng < 75 && !calm && u->frees)
        kept_free(k);
    else if (rng < 85 && !calm)
        kept_close(k);
}

void keeper_act(struct workload *l)
{
    struct keeper_user *u = l->keeper;
    if (!u || !u->due || l->host->closing)
        return;
    keeper_later(u);
    keeper_decide(u);
}

/* ---- what must hold ----------------------------------------------------------------------------
 */

/* Each text begins with the name of the process that wrote it. */
static bool kept_wrote(const struct host *h, struct jbytes data)
{
    size_t n = strlen(h->name);
    return (size_t)data.n > n && memcmp(data.p, h->name, n) == 0 && data.p[n] == '-';
}

static void kept_look(const struct kept *k, int64_t most)
{
    const struct keeper_user *u = k->user;
    const struct host *h = u->load->host;
    const struct node *n = keeper_find(u->load->checker, k->path);
    int64_t session = clave_async_client_session_id(h->client);
    if (h->w->now - k->changed_at < most || k->closing)
        return;
    if (!k->node) {
        if (n && n->stat.owner == session && h->allocator.refused == 0)
            world_break(h->w, "no node of an owner that is gone", "%s has %s", h->name, k->path);
        return;
    }
    if (!n || (k == &u->kept[OWN] && n->stat.owner != session)) {
        world_break(h->w, "each living owner has its node", "%s: %s %s", h->name, k->path,
                    n ? "is another's" : "is not there");
        return;
    }
    struct jbytes data = clave__node_data(n);
    bool same = (size_t)data.n == strlen(k->data) && memcmp(data.p, k->data, strlen(k->data)) == 0;
    if (k == &u->kept[SHARED] && !kept_wrote(h, data))
        return; /* another's write was under way when the node changed hands, at one version */
    if (n->stat.owner == session && !same)
        world_break(h->w, "a node has the newest data of its owner", "%s: %s is %.*s, not %s",
                    h->name, k->path, data.n > 0 ? (int)data.n : 0, data.n > 0 ? data.p : "",
                    k->data);
}

void keeper_look(struct workload *l)
{
    struct keeper_user *u = l->keeper;
    const struct host *h = l->host;
    if (!u || !l->checker->server->server || !h->client || h->closing)
        return;
    int64_t calm = h->w->now - l->checker->calm_from;
    int64_t most = l->checker->grace_us / 2 + SECOND;
    if (calm < most || h->w->now - u->apart_at < most)
        return;
    for (int i = 0; i < KEPT; i++)
        kept_look(&u->kept[i], most);
}

/* The process whose client has, or had, the session. */
static struct keeper_user *keeper_of_session(struct checker *c, int64_t session)
{
    for (size_t i = 0; i < c->nloads; i++)
        if (c->loads[i]->keeper && c->loads[i]->keeper->session == session)
            return c->loads[i]->keeper;
    return NULL;
}

static void keeper_note_session(struct keeper_user *u)
{
    const struct host *h = u->load->host;
    int64_t id = h->client ? clave_async_client_session_id(h->client) : 0;
    if (u->session != id)
        u->session_since = h->w->now;
    u->session = id;
    if (h->state != CLAVE_STATE_CONNECTED && h->state != CLAVE_STATE_RECONNECTED)
        u->apart_at = h->w->now;
}

/* Requests name a path and at most a version, and versions of different nodes are alike. So another
 * node may be deleted when one's own is deleted again, since the answer was lost; and when that of
 * a former session is replaced just as that session ends. */
static bool keeper_may_miss(const struct keeper_user *u)
{
    int64_t recent = keeper_of_world(u)->now - 2 * u->load->checker->grace_us;
    return u->session_since > recent ||
           (u->apart_at > recent && (u->kept[SHARED].closing || u->left_shared_at > recent));
}

void keeper_world_look(struct checker *c)
{
    struct keeper_world *was = &c->kept;
    bool excused = c->restored;
    for (size_t i = 0; i < c->nloads; i++) {
        struct keeper_user *u = c->loads[i]->keeper;
        if (u) {
            keeper_note_session(u);
            excused = excused || keeper_may_miss(u);
        }
    }
    if (!c->server->server)
        return;
    const struct node *n = keeper_find(c, KEPT_SHARED);
    int64_t czxid = n ? n->stat.czxid : 0;
    if (czxid == was->czxid)
        return;
    const struct keeper_user *owner = keeper_of_session(c, was->session);
    bool left = !owner || owner->left_shared_at >= 0 || !owner->kept[SHARED].node ||
                owner->kept[SHARED].lingers;
    if (was->session != 0 && !left && !excused && inspector_has_session(c->server, was->session))
        world_break(c->w, "nobody takes away what is another's", "the node of 0x%llx is gone",
                    (unsigned long long)was->session);
    *was = (struct keeper_world){.czxid = czxid, .session = n ? n->stat.owner : 0};
    struct keeper_user *now = keeper_of_session(c, was->session);
    if (now && now->kept[SHARED].node && !now->kept[SHARED].closing)
        now->left_shared_at = -1;
}

/* ---- life --------------------------------------------------------------------------------------
 */

void keeper_begin(struct workload *l)
{
    if (l->o->keeper_rest_us == 0)
        return;
    struct keeper_user *u = world_alloc(sizeof *u);
    *u = (struct keeper_user){.load = l, .left_shared_at = -1, .apart_at = l->host->w->now};
    u->alarm.fire = keeper_on_alarm;
    u->frees = world_chance(l->host->w, 300);
    for (int i = 0; i < KEPT; i++)
        u->kept[i].user = u;
    snprintf(u->kept[OWN].path, sizeof u->kept[OWN].path, "/kept/%.20s", l->host->name);
    snprintf(u->kept[SHARED].path, sizeof u->kept[SHARED].path, KEPT_SHARED);
    l->keeper = u;
    keeper_later(u);
}

void keeper_put_away(struct workload *l)
{
    struct keeper_user *u = l->keeper;
    if (!u)
        return;
    world_clear(l->host->w, &u->alarm);
    for (int i = 0; i < KEPT; i++)
        if (u->kept[i].node)
            kept_free(&u->kept[i]);
}

void keeper_ended(struct workload *l)
{
    struct keeper_user *u = l->keeper;
    if (!u)
        return;
    if (u->deletes_out > 0)
        world_break(l->host->w, "each request completes exactly once",
                    "%s is freed, and a delete has no answer", l->host->name);
    l->keeper = NULL;
    free(u);
}
