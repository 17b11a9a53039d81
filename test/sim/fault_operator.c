/* fault_operator.c - what others do to the server: operators, and clients of other kinds. */
#include "fault.h"
#include "inspector.h"
#include "operator.h"
#include "wire/proto.h"

/* What this session holds is about to go. */
static void take_turns(struct nemesis *n, const struct lock_layout *s, const char *queue,
                       int64_t session)
{
    char node[PATH_SIZE];
    int64_t owner;
    for (size_t i = 0; (owner = layout_child(n->server, queue, i, node, sizeof node)) >= 0; i++)
        if (owner == session && layout_has_turn(n->server, s, node))
            checker_taken(n->checker, node);
}

bool fault_end_session(struct nemesis *n)
{
    struct host *h = nemesis_any_victim(n);
    int64_t session = h->client ? clave_async_client_session_id(h->client) : 0;
    if (!n->server->server || n->server->paused || session == 0 ||
        !inspector_has_session(n->server, session))
        return false;
    if (!n->ensemble && session % 2 != 0) { /* nothing is taken: what it holds, it may use up */
        world_log(n->w, "operator", "ends the session of %s when its time is over", h->name);
        operator_bar_session(n->server, session);
        return true;
    }
    world_log(n->w, "operator", "closes the session of %s", h->name);
    for (unsigned lock = 0; lock < n->checker->loads[0]->o->locks; lock++) {
        const struct lock_layout *s = workload_layout(n->checker->loads[0], lock);
        take_turns(n, s, s->queue, session);
        if (s->gate)
            take_turns(n, s, s->gate, session);
    }
    operator_end_session(n->server, session);
    return true;
}

/* It changes nothing: what the session holds goes on being held. */
bool fault_intrude(struct nemesis *n)
{
    static const int32_t ops[] = {OP_CLOSE_SESSION, OP_PING, OP_SYNC};
    struct host *h = nemesis_any_victim(n);
    int64_t session = h->client ? clave_async_client_session_id(h->client) : 0;
    int32_t op = ops[world_between(n->w, 0, 2)];
    int32_t timeout_ms = (int32_t)world_between(n->w, 0, n->timeout_us / MS);
    if (!n->server->server || n->server->paused || session == 0 ||
        !inspector_has_session(n->server, session))
        return false;
    world_log(n->w, "intruder", "asks for the session of %s", h->name);
    operator_intrude(n->server, session, timeout_ms, op);
    return true;
}

static unsigned any_lock(struct nemesis *n)
{
    return (unsigned)world_between(n->w, 0, (int64_t)n->checker->loads[0]->o->locks - 1);
}

/* Now and then while its owner is not connected, who has to be told later then. */
static void cut_owner(struct nemesis *n, int64_t session)
{
    for (size_t i = 0; i < n->nhosts && world_chance(n->w, 500); i++) {
        const struct host *h = &n->hosts[i];
        if (h->client && h->socket && clave_async_client_session_id(h->client) == session)
            net_break(h->socket);
    }
}

/* One of the directories in which the nodes of this lock stand. */
static const char *any_queue(struct nemesis *n, const struct lock_layout *s)
{
    return s->gate && world_chance(n->w, 400) ? s->gate : s->queue;
}

bool fault_remove_node(struct nemesis *n)
{
    char node[PATH_SIZE];
    unsigned lock = any_lock(n);
    const struct lock_layout *s = workload_layout(n->checker->loads[0], lock);
    const char *path = any_queue(n, s);
    size_t nth = (size_t)world_between(n->w, 0, 2);
    if (!n->server->server || n->server->paused)
        return false;
    int64_t owner = layout_child(n->server, path, nth, node, sizeof node);
    if (owner < 0)
        return false;
    bool had_turn = layout_has_turn(n->server, s, node);
    operator_remove_child(n->server, path, nth, node, sizeof node);
    world_log(n->w, "operator", "has deleted %s", node);
    if (had_turn) {
        checker_taken(n->checker, node);
        cut_owner(n, owner);
    }
    checker_disturbed(n->checker, lock);
    return true;
}

/* To nothing now and then, for a while. */
static void on_change(struct alarm *a)
{
    struct nemesis *n = LIST_ENTRY(a, struct nemesis, change);
    if (!n->server->server || n->server->paused) {
        world_set(n->w, a, n->w->now + 10 * MS);
        return;
    }
    n->closed = !n->closed && world_chance(n->w, 500);
    int64_t limit = n->closed ? 0 : world_between(n->w, 1, (int64_t)n->change_at->limit);
    const uint8_t data[] = {0, 0, 0, (uint8_t)limit};
    operator_write(n->server, n->change_at->limit_path, clave__jbytes_n(data, sizeof data));
    world_log(n->w, "operator", "has changed the limit to %d", (int)limit);
    if (n->closed)
        world_set(n->w, a, n->w->now + world_between(n->w, 1 * MS, n->timeout_us / 4));
}

/* Whoever comes back reads it under a watch that it has: there it is changed under its eyes. */
static bool change_limit(struct nemesis *n, const struct lock_layout *s)
{
    struct host *h = nemesis_any_host(n);
    if (!h->socket || h->socket->state != NET_OPEN || h->message_fault.kind != MESSAGE_NONE ||
        n->closed)
        return false;
    net_reset(h->socket);
    h->message_fault =
        (struct message_fault){.kind = MESSAGE_BESIDE,
                               .op = OP_GET_DATA,
                               .then = &n->change,
                               .then_us = world_between(n->w, 0, 2 * h->route.delay_us)};
    n->change_at = s;
    return true;
}

bool fault_write_node(struct nemesis *n)
{
    char node[PATH_SIZE];
    size_t nth = (size_t)world_between(n->w, 0, 2);
    const struct lock_layout *s = workload_layout(n->checker->loads[0], any_lock(n));
    if (s->limit_path && world_chance(n->w, 600))
        return change_limit(n, s);
    if (!n->server->server || n->server->paused ||
        !operator_write_child(n->server, any_queue(n, s), nth, node, sizeof node))
        return false;
    world_log(n->w, "operator", "has written to %s", node);
    return true;
}

bool fault_foreign_node(struct nemesis *n)
{
    const struct lock_layout *s = workload_layout(n->checker->loads[0], any_lock(n));
    const char *path = any_queue(n, s);
    unsigned way = (unsigned)world_between(n->w, 0, FOREIGN_NAMES - 1);
    if (!n->server->server || n->server->paused ||
        !operator_enqueue(n->server, path, layout_foreign_name(s, path, way), nemesis_while(n)))
        return false;
    world_log(n->w, "foreign", "has a node in the queue of %s", path);
    return true;
}

/* As if two milliards had queued there before. Replicas would not hear of it. */
bool fault_exhaust_counter(struct nemesis *n)
{
    const struct lock_layout *s = workload_layout(n->checker->loads[0], any_lock(n));
    const char *path = any_queue(n, s);
    int32_t left = (int32_t)world_between(n->w, 0, 1200);
    if (n->ensemble || !n->server->server || n->server->paused || !world_chance(n->w, 10) ||
        !operator_exhaust_counter(n->server, path, left))
        return false;
    world_log(n->w, "operator", "leaves %d numbers to %s", (int)left, path);
    n->checker->used_up = true;
    return true;
}

/* It says when nodes were written, and no lock asks that. */
bool fault_wall_clock(struct nemesis *n)
{
    int64_t ms = world_between(n->w, -3600 * 1000, 3600 * 1000);
    world_log(n->w, "server", "its wall clock is set by %lld ms", (long long)ms);
    n->server->wall_shift_ms = ms;
    return true;
}

void fault_operator_init(struct nemesis *n)
{
    n->change.fire = on_change;
}

void fault_operator_end(struct nemesis *n)
{
    /* What was written last may have been lost with the server's power. */
    n->closed = true;
    if (n->change_at)
        world_set(n->w, &n->change, n->w->now);
}
