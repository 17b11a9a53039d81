#include "registrant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checker.h"
#include "clave/async/instances.h"
#include "clave/async/persistent_node.h"
#include "inspector.h"
#include "server/server_internal.h"

#define SERVICE_PATH "/services/web"

enum { TEXT_SIZE = 256, UNREADABLE = 150 /* permille of the changes */, ANY_SESSION = -1 };

/* An instance as the events of the followed ones have told it. */
struct sighting {
    bool known;
    int64_t czxid;
    int32_t version;
};

struct registrant_user {
    struct workload *load;
    clave_async_persistent_node *node; /* NULL: not registered */
    char path[48];
    char text[TEXT_SIZE]; /* what the node should say */
    bool closing;
    bool frees; /* also without a close */
    unsigned changes;
    unsigned calls_out;
    bool deletes; /* a delete that it has asked for is not answered yet: of this one */
    unsigned deletes_of;
    struct alarm alarm;
    bool due;

    clave_async_instances *followed; /* NULL: memory ran out */
    struct sighting seen[REGISTRANTS];
    bool stale, initialized;
};

static struct registration_past *past_of(const struct registrant_user *u, unsigned index)
{
    return &u->load->checker->registrations.of[index];
}

static void registrant_shakes(const struct registrant_user *u, unsigned index)
{
    past_of(u, index)->shaky_until = u->load->host->w->now + u->load->checker->grace_us;
}

static const struct node *registration_find(const struct checker *c, unsigned index)
{
    char path[48];
    snprintf(path, sizeof path, SERVICE_PATH "/%.20s", c->loads[index]->host->name);
    return clave__tree_find(&c->server->server->tree, clave__jbytes(path));
}

/* ---- following ------------------------------------------------------------------------------- */

static int registrant_index(const struct checker *c, const char *path)
{
    for (size_t i = 0; i < c->nloads; i++)
        if (strcmp(strrchr(path, '/') + 1, c->loads[i]->host->name) == 0)
            return (int)i;
    return -1;
}

static void registrant_see(struct registrant_user *u, const clave_instances_event *ev)
{
    const clave_instances_entry *e = ev->now ? ev->now : ev->was;
    struct host *h = u->load->host;
    int index = registrant_index(u->load->checker, e->path);
    if (index < 0) {
        world_break(h->w, "instances are those of the service", "%s sees %s", h->name, e->path);
        return;
    }
    struct sighting *s = &u->seen[index];
    bool was_as_told =
        s->known == !!ev->was &&
        (!ev->was || (ev->was->stat.czxid == s->czxid && ev->was->stat.version == s->version));
    if (!was_as_told || !e->instance != !!e->fault)
        world_break(h->w, "each change of an instance is told once and in order",
                    "%s: %s of %s does not follow from what was told", h->name,
                    ev->type == CLAVE_INSTANCES_DOWN ? "the end" : "news", e->path);
    if (ev->type == CLAVE_INSTANCES_DOWN && past_of(u, (unsigned)index)->missed < s->czxid &&
        h->allocator.refused == 0)
        world_break(h->w, "a registration that is renewed is never missing",
                    "%s is told that %s of 0x%llx is gone", h->name, e->path,
                    (unsigned long long)s->czxid);
    *s = (struct sighting){.known = ev->now != NULL};
    if (ev->now) {
        s->czxid = ev->now->stat.czxid;
        s->version = ev->now->stat.version;
    }
}

static void registrant_on_instances(clave_async_instances *d, const clave_instances_event *ev,
                                    void *arg)
{
    static const char *const what[] = {
        [CLAVE_INSTANCES_UP] = "finds",
        [CLAVE_INSTANCES_CHANGED] = "sees a change of",
        [CLAVE_INSTANCES_DOWN] = "misses",
        [CLAVE_INSTANCES_INITIALIZED] = "knows all of",
        [CLAVE_INSTANCES_STALE] = "may be late about",
        [CLAVE_INSTANCES_RESYNCED] = "has caught up with",
        [CLAVE_INSTANCES_ENDED] = "follows no more",
    };
    struct registrant_user *u = arg;
    struct host *h = u->load->host;
    const clave_instances_entry *e = ev->now ? ev->now : ev->was;
    bool fine = true;
    world_log(h->w, h->name, "%s %s%s", what[ev->type], e ? e->path : "the instances",
              e && e->fault ? ", unreadable" : "");
    if (e)
        registrant_see(u, ev);
    else if (ev->type == CLAVE_INSTANCES_STALE)
        fine = !u->stale;
    else if (ev->type == CLAVE_INSTANCES_RESYNCED)
        fine = u->stale && clave_async_instances_is_current(d);
    else if (ev->type == CLAVE_INSTANCES_INITIALIZED)
        fine = !u->initialized;
    if (ev->type == CLAVE_INSTANCES_STALE || ev->type == CLAVE_INSTANCES_RESYNCED)
        u->stale = ev->type == CLAVE_INSTANCES_STALE;
    u->initialized = u->initialized || ev->type == CLAVE_INSTANCES_INITIALIZED;
    if (!fine)
        world_break(h->w, "each change of an instance is told once and in order", "%s: %s", h->name,
                    what[ev->type]);
    if (ev->type != CLAVE_INSTANCES_ENDED)
        return;
    if (ev->err != CLAVE_ECLOSED && !(ev->err == CLAVE_ENOMEM && h->allocator.refused > 0))
        world_break(h->w, "instances are followed as long as the client lives", "%s: %s", h->name,
                    clave_err_name(ev->err));
    clave_async_instances_free(d);
    u->followed = NULL;
}

static void registrant_follow(struct registrant_user *u)
{
    const clave_instances_options o = {.size = sizeof o, .service = "web"};
    memset(u->seen, 0, sizeof u->seen);
    u->stale = u->initialized = false;
    (void)clave_async_instances_new(&u->followed, u->load->host->client, &o,
                                    registrant_on_instances, u);
}

static void registrant_pick(struct registrant_user *u)
{
    struct host *h = u->load->host;
    clave_instances_entry e;
    clave_pick how = (clave_pick)world_between(h->w, CLAVE_PICK_ROUND_ROBIN, CLAVE_PICK_STICKY);
    if (!u->followed || clave_async_instances_pick(u->followed, how, &e) != CLAVE_OK)
        return;
    int index = registrant_index(u->load->checker, e.path);
    if (index < 0 || !u->seen[index].known || !e.instance || e.instance->disabled)
        world_break(h->w, "what is picked is up", "%s picks %s", h->name, e.path);
}

/* ---- registering ----------------------------------------------------------------------------- */

static void registrant_on_node(clave_async_persistent_node *n,
                               const clave_persistent_node_event *ev, void *arg)
{
    struct registrant_user *u = arg;
    struct host *h = u->load->host;
    (void)n;
    world_log(h->w, h->name, "its registration: event %d of %s, %lld", (int)ev->type, ev->path,
              (long long)ev->czxid);
}

/* What the node is to say from now on. */
static void registrant_write(struct registrant_user *u)
{
    struct host *h = u->load->host;
    const clave_instance i = {.name = "web",
                              .id = h->name,
                              .address = "host",
                              .port = (int32_t)(++u->changes % UINT16_MAX) + 1,
                              .disabled = world_chance(h->w, 300)};
    size_t n = clave_instance_format(&i, u->text, sizeof u->text);
    if (world_chance(h->w, UNREADABLE)) /* as of a newer version, or by somebody's mistake */
        u->text[n - 2] = '\0';
}

static void registrant_register(struct registrant_user *u)
{
    struct host *h = u->load->host;
    registrant_write(u);
    const clave_persistent_node_options o = {.size = sizeof o,
                                             .replace =
                                                 true, /* that of a process that was killed */
                                             .data = u->text,
                                             .len = strlen(u->text),
                                             .event_cb = registrant_on_node,
                                             .event_arg = u};
    clave_err err = clave_async_persistent_node_new(&u->node, h->client, u->path, &o);
    world_log(h->w, h->name, "registers %s: %s", u->text, clave_err_name(err));
}

static void registrant_on_set(clave_async_persistent_node *n, clave_err err, void *arg)
{
    struct registrant_user *u = arg;
    (void)n;
    past_of(u, u->load->host->index)->late_write |= err != CLAVE_OK;
    u->calls_out--;
}

static void registrant_free_node(struct registrant_user *u)
{
    clave_async_persistent_node_free(u->node);
    u->node = NULL;
    past_of(u, u->load->host->index)->late_write |= u->calls_out > 0;
    u->calls_out = 0; /* no callback follows */
    u->closing = false;
    registrant_shakes(u, u->load->host->index);
}

/* Without a close: nobody hears when its node is deleted. */
static void registrant_drop_node(struct registrant_user *u)
{
    int64_t session = clave_async_client_session_id(u->load->host->client);
    past_of(u, u->load->host->index)->freed_in = session != 0 ? session : ANY_SESSION;
    registrant_free_node(u);
}

static void registrant_on_closed(clave_async_persistent_node *n, clave_err err, void *arg)
{
    struct registrant_user *u = arg;
    (void)n;
    world_log(u->load->host->w, u->load->host->name, "has left: %s", clave_err_name(err));
    if (err == CLAVE_OK)
        registrant_free_node(u);
    else
        registrant_drop_node(u);
}

static void registrant_change(struct registrant_user *u)
{
    registrant_write(u);
    u->calls_out++;
    if (clave_async_persistent_node_set(u->node, u->text, strlen(u->text), registrant_on_set, u) ==
        CLAVE_OK)
        return;
    u->calls_out--;
    registrant_drop_node(u); /* for want of memory; what it should say is not known now */
}

static void registrant_leave(struct registrant_user *u)
{
    u->closing = true;
    if (clave_async_persistent_node_close(u->node, registrant_on_closed, u) != CLAVE_OK)
        registrant_drop_node(u);
}

static void registrant_on_deleted(clave_async_client *c, const clave_result *res, void *arg)
{
    struct registrant_user *u = arg;
    (void)c;
    (void)res;
    u->deletes = false;
}

static void registrant_delete_anothers(struct registrant_user *u)
{
    struct checker *c = u->load->checker;
    struct host *h = u->load->host;
    unsigned index = (unsigned)world_between(h->w, 0, (int64_t)c->nloads - 1);
    char path[48];
    if (u->deletes)
        return;
    snprintf(path, sizeof path, SERVICE_PATH "/%.20s", c->loads[index]->host->name);
    if (clave_async_delete(h->client, path, -1, registrant_on_deleted, u) != CLAVE_OK)
        return;
    world_log(h->w, h->name, "deletes %s", path);
    u->deletes = true;
    u->deletes_of = index;
    registrant_shakes(u, index);
}

static void registrant_decide(struct registrant_user *u)
{
    struct world *w = u->load->host->w;
    int64_t rng = world_between(w, 0, 99);
    registrant_pick(u);
    if (u->load->day_is_over || u->closing)
        return;
    if (!u->node)
        registrant_register(u);
    else if (rng < 50 && u->calls_out < 3)
        registrant_change(u);
    else if (u->load->o->register_stays)
        return;
    else if (rng < 58)
        registrant_delete_anothers(u);
    else if (rng < 64 && u->frees)
        registrant_drop_node(u);
    else if (rng < 72)
        registrant_leave(u);
}

static void registrant_on_alarm(struct alarm *a)
{
    struct registrant_user *u = LIST_ENTRY(a, struct registrant_user, alarm);
    u->due = true;
    host_wake(u->load->host);
}

static void registrant_later(struct registrant_user *u)
{
    struct world *w = u->load->host->w;
    u->due = false;
    world_set(w, &u->alarm, w->now + world_wait(w, u->load->o->register_rest_us));
}

void registrant_act(struct workload *l)
{
    struct registrant_user *u = l->registrant;
    if (!u || !u->due || l->host->closing)
        return;
    registrant_later(u);
    if (!u->followed)
        registrant_follow(u);
    registrant_decide(u);
}

/* ---- what must hold -------------------------------------------------------------------------- */

/* A delete waits for a connection, and may so be done much later. */
static bool registration_is_being_deleted(const struct checker *c, unsigned index)
{
    for (unsigned i = 0; i < c->nloads; i++) {
        const struct registrant_user *u = c->loads[i]->registrant;
        if (u && u->deletes && u->deletes_of == index)
            return true;
    }
    return false;
}

/* The node is missing, or it has changed hands so that it may have been. */
static void registration_look(struct checker *c, unsigned index)
{
    struct registration_past *p = &c->registrations.of[index];
    const struct registrant_user *u = c->loads[index]->registrant;
    const struct node *n = registration_find(c, index);
    int64_t czxid = n ? n->stat.czxid : 0;
    bool ended = czxid != p->czxid && p->czxid != 0 && !inspector_has_session(c->server, p->owner);
    if ((u && u->closing) || registration_is_being_deleted(c, index))
        p->shaky_until = c->w->now + c->grace_us;
    bool freed = p->freed_in != 0 && (p->freed_in == p->owner || p->freed_in == ANY_SESSION);
    bool shaky = c->w->now <= p->shaky_until || freed;
    if (!n && p->czxid != 0 && !ended && !shaky)
        world_break(c->w, "a registration that is renewed is never missing",
                    "that of %s is gone, and the session of 0x%llx is not",
                    c->loads[index]->host->name, (unsigned long long)p->czxid);
    if (!n || ended || shaky)
        p->missed = inspector_zxid(c->server);
    if (!n && p->czxid != 0 && p->freed_in != 0) {
        p->was_freed_in = p->freed_in;
        p->freed_in = 0;
    }
    p->czxid = czxid;
    p->owner = n ? n->stat.owner : 0;
}

/* A crash undoes what was not on the disk, and a new leader what was not with most members: also a
 * delete, which is then made once more, for its answer was lost. */
static void registrations_go_back(struct registration_world *r)
{
    for (unsigned i = 0; i < REGISTRANTS; i++) {
        const struct registration_past *p = &r->of[i];
        r->of[i] =
            (struct registration_past){.missed = r->zxid,
                                       .shaky_until = p->shaky_until,
                                       .freed_in = p->freed_in ? p->freed_in : p->was_freed_in,
                                       .late_write = p->late_write};
    }
}

void registration_world_look(struct checker *c)
{
    struct registration_world *r = &c->registrations;
    if (!c->server->server) {
        r->away = true;
        return;
    }
    if (r->away || inspector_zxid(c->server) < r->zxid)
        registrations_go_back(r);
    r->away = false;
    r->zxid = inspector_zxid(c->server);
    for (unsigned i = 0; i < c->nloads; i++)
        registration_look(c, i);
}

struct registrant_sight {
    const struct registrant_user *user;
    size_t n;
    char *out;
    size_t cap;
};

/* Is it what the server has? */
static bool registrant_compare(const clave_instances_entry *e, void *arg)
{
    struct registrant_sight *s = arg;
    const struct checker *c = s->user->load->checker;
    const struct node *n = clave__tree_find(&c->server->server->tree, clave__jbytes(e->path));
    char text[TEXT_SIZE] = "";
    s->n++;
    if (!n || n->stat.czxid != e->stat.czxid || n->stat.version != e->stat.version) {
        snprintf(s->out, s->cap, "%s sees %s, %s", s->user->load->host->name, e->path,
                 n ? "another than there is" : "which is not there");
        return false;
    }
    struct jbytes data = clave__node_data(n);
    if (e->instance)
        clave_instance_format(e->instance, text, sizeof text);
    if (e->instance &&
        ((size_t)data.n != strlen(text) || memcmp(data.p, text, (size_t)data.n) != 0))
        snprintf(s->out, s->cap, "%s reads %s as %.100s", s->user->load->host->name, e->path, text);
    return s->out[0] == '\0';
}

static size_t registrations_of_server(const struct checker *c)
{
    size_t n = 0;
    for (unsigned i = 0; i < c->nloads; i++)
        n += registration_find(c, i) != NULL;
    return n;
}

static void registrant_tell_node(const struct registrant_user *u, char *out, size_t cap)
{
    const struct host *h = u->load->host;
    const struct node *n = registration_find(u->load->checker, h->index);
    int64_t session = clave_async_client_session_id(h->client);
    struct jbytes data = n ? clave__node_data(n) : clave__jbytes("");
    bool same = (size_t)data.n == strlen(u->text) && memcmp(data.p, u->text, strlen(u->text)) == 0;
    if (u->closing)
        snprintf(out, cap, "%s is still leaving", h->name);
    else if (u->node &&
             (!n || n->stat.owner != session || (!same && !past_of(u, h->index)->late_write)))
        snprintf(out, cap, "%s is registered, and %s is %s", h->name, u->path,
                 n ? "another" : "not there");
    else if (!u->node && n)
        snprintf(out, cap, "%s is not registered, and %s is there", h->name, u->path);
}

void registrant_tell(const struct workload *l, char *out, size_t cap)
{
    const struct registrant_user *u = l->registrant;
    out[0] = '\0';
    if (!u)
        return;
    registrant_tell_node(u, out, cap);
    if (out[0])
        return;
    struct registrant_sight s = {.user = u, .out = out, .cap = cap};
    if (!u->followed || !clave_async_instances_is_current(u->followed)) {
        snprintf(out, cap, "%s does not follow the instances", l->host->name);
        return;
    }
    clave_async_instances_walk(u->followed, registrant_compare, &s);
    if (!out[0] && s.n != registrations_of_server(l->checker))
        snprintf(out, cap, "%s sees %zu instances, and there are %zu", l->host->name, s.n,
                 registrations_of_server(l->checker));
}

/* ---- life ------------------------------------------------------------------------------------ */

void registrant_begin(struct workload *l)
{
    if (l->o->register_rest_us == 0)
        return;
    struct registrant_user *u = world_alloc(sizeof *u);
    *u = (struct registrant_user){.load = l};
    u->alarm.fire = registrant_on_alarm;
    u->frees = world_chance(l->host->w, 300);
    snprintf(u->path, sizeof u->path, SERVICE_PATH "/%.20s", l->host->name);
    l->registrant = u;
    registrant_follow(u);
    registrant_later(u);
}

void registrant_put_away(struct workload *l)
{
    struct registrant_user *u = l->registrant;
    if (!u)
        return;
    world_clear(l->host->w, &u->alarm);
    u->due = false;
    clave_async_instances_free(u->followed);
    u->followed = NULL;
    if (u->node)
        registrant_drop_node(u);
}

void registrant_ended(struct workload *l)
{
    struct registrant_user *u = l->registrant;
    if (!u)
        return;
    if (u->deletes)
        world_break(l->host->w, "each request completes exactly once",
                    "%s is freed, and a delete has no answer", l->host->name);
    l->registrant = NULL;
    free(u);
}
