/* fault_client.c - what goes wrong with clients: their processes, and the network between them
 * and the servers. */
#include "fault.h"
#include "runner.h"
#include "wire/proto.h"

/* ---- whom, how long ------------------------------------------------------------------ */

struct host *nemesis_any_host(struct nemesis *n)
{
    return &n->hosts[world_between(n->w, 0, (int64_t)n->nhosts - 1)];
}

/* One that has a connection; NULL when the one drawn has none. */
static struct host *any_connected(struct nemesis *n)
{
    struct host *h = nemesis_any_host(n);
    return h->socket && h->socket->state == NET_OPEN ? h : NULL;
}

/* Somebody who holds, when there is one: there it hurts. */
struct host *nemesis_any_victim(struct nemesis *n)
{
    size_t first = (size_t)world_between(n->w, 0, (int64_t)n->nhosts - 1);
    for (size_t i = 0; world_chance(n->w, 700) && i < n->nhosts; i++) {
        struct host *h = &n->hosts[(first + i) % n->nhosts];
        const struct workload *l = h->user;
        for (unsigned k = 0; h->client && k < l->o->actors; k++)
            if (actor_believes(&l->actors[k]))
                return h;
    }
    return &n->hosts[first];
}

/* Often about a session's length, where it matters most. */
int64_t nemesis_while(struct nemesis *n)
{
    int64_t t = n->timeout_us;
    return world_chance(n->w, 400)   ? world_between(n->w, 1 * MS, t / 8)
           : world_chance(n->w, 700) ? world_between(n->w, t / 2, t * 3 / 2)
                                     : world_between(n->w, t / 8, 2 * t);
}

/* ---- the network --------------------------------------------------------------------- */

bool fault_cut(struct nemesis *n)
{
    struct host *h = any_connected(n);
    if (!h)
        return false;
    world_log(n->w, h->name, "its connection is cut");
    net_reset(h->socket);
    return true;
}

bool fault_cut_later(struct nemesis *n)
{
    struct host *h = any_connected(n);
    if (!h)
        return false;
    size_t bytes = (size_t)world_between(n->w, 1, 400);
    bool up = world_chance(n->w, 500);
    world_log(n->w, h->name, "its connection will be cut %zu bytes %s", bytes, up ? "up" : "down");
    if (up)
        net_cut_after(h->socket, bytes);
    else
        net_lose_answer(h->socket, bytes);
    return true;
}

/* Mostly the very messages that the hold deadline is counted from. */
static void make_late(struct nemesis *n, struct host *h)
{
    h->message_fault.us = world_between(n->w, n->timeout_us / 10, n->timeout_us / 3);
    if (world_chance(n->w, 300))
        return;
    h->message_fault.op = world_chance(n->w, 500) ? OP_PING : OPCODE_HANDSHAKE;
    if (h->message_fault.op == OPCODE_HANDSHAKE && h->socket)
        net_reset(h->socket);
}

bool fault_message(struct nemesis *n)
{
    static const int32_t ops[] = {
        OPCODE_HANDSHAKE,  OPCODE_ANY, OP_CREATE2,       OP_DELETE,  OP_GET_DATA,
        OP_MULTI,          OP_PING,    OP_GET_CHILDREN2, OP_CREATE2, OP_SET_WATCHES,
        OP_REMOVE_WATCHES, OP_DELETE,  OP_SYNC,          OP_EXISTS,  OP_CREATE_CONTAINER,
        OP_CLOSE_SESSION,
    };
    static const enum message_fault_kind kinds[] = {
        MESSAGE_LOSE_REPLY, MESSAGE_LOSE_REPLY, MESSAGE_LOSE_REQUEST, MESSAGE_FORGET,
        MESSAGE_PAUSE,      MESSAGE_KILL,       MESSAGE_LATE,
    };
    struct host *h = nemesis_any_victim(n);
    int64_t op = world_between(n->w, 0, (int64_t)(sizeof ops / sizeof *ops) - 1);
    int64_t kind = world_between(n->w, 0, (int64_t)(sizeof kinds / sizeof *kinds) - 1);
    h->message_fault =
        (struct message_fault){.kind = kinds[kind], .op = ops[op], .us = nemesis_while(n)};
    if (kinds[kind] == MESSAGE_LATE)
        make_late(n, h);
    return true;
}

/* Of one that comes back: so it has to go first. */
bool fault_refuse_watches(struct nemesis *n)
{
    struct host *h = any_connected(n);
    if (!h || h->message_fault.kind != MESSAGE_NONE)
        return false;
    h->message_fault = (struct message_fault){
        .kind = MESSAGE_REFUSE, .op = OP_SET_WATCHES, .again = (unsigned)world_between(n->w, 0, 2)};
    world_log(n->w, h->name, "its connection is cut, and its watches will be refused");
    net_reset(h->socket);
    return true;
}

bool fault_half_open(struct nemesis *n)
{
    struct host *h = any_connected(n);
    if (!h)
        return false;
    world_log(n->w, h->name, "nothing arrives on its connection any more");
    net_forget(h->socket);
    return true;
}

static bool refuse_dials(struct nemesis *n, bool swallow)
{
    struct host *h = nemesis_any_host(n);
    int64_t us = nemesis_while(n);
    world_log(n->w, h->name, "its dials are %s for %lld ms", swallow ? "not answered" : "refused",
              (long long)(us / MS));
    *(swallow ? &h->route.unanswered_to : &h->route.refuse_to) = n->w->now + us;
    if (h->socket && h->socket->state == NET_OPEN)
        net_reset(h->socket);
    return true;
}

bool fault_refuse(struct nemesis *n)
{
    return refuse_dials(n, false);
}

bool fault_dial_timeout(struct nemesis *n)
{
    return refuse_dials(n, true);
}

bool fault_stall(struct nemesis *n)
{
    struct host *h = nemesis_any_host(n);
    int64_t us = nemesis_while(n);
    int64_t ways = world_between(n->w, 1, 3);
    world_log(n->w, h->name, "nothing arrives %s for %lld ms",
              ways == 1   ? "from it"
              : ways == 2 ? "at it"
                          : "from it or at it",
              (long long)(us / MS));
    if (ways & 1)
        h->route.stall_to[NET_UP] = n->w->now + us;
    if (ways & 2)
        h->route.stall_to[NET_DOWN] = n->w->now + us;
    return true;
}

/* ---- processes ----------------------------------------------------------------------- */

bool fault_pause(struct nemesis *n)
{
    struct host *h = nemesis_any_victim(n);
    if (!h->client || h->paused)
        return false;
    host_pause(h, nemesis_while(n));
    return true;
}

bool fault_pause_in_loop(struct nemesis *n)
{
    struct host *h = nemesis_any_victim(n);
    if (!h->client || h->paused)
        return false;
    host_pause_at(h, (unsigned)world_between(n->w, 1, 30), nemesis_while(n));
    return true;
}

static void come_back(struct nemesis *n, const struct host *h)
{
    world_set(n->w, &n->host_back[h->index].alarm, n->w->now + nemesis_while(n));
}

static void on_killed(void *arg, struct host *h)
{
    come_back(arg, h);
}

bool fault_kill_in_loop(struct nemesis *n)
{
    struct host *h = nemesis_any_victim(n);
    if (!h->client || h->paused)
        return false;
    host_pause_at(h, (unsigned)world_between(n->w, 1, 60), 0);
    return true;
}

static bool end_host(struct nemesis *n, bool machine)
{
    struct host *h = nemesis_any_victim(n);
    if (!h->client)
        return false;
    if (machine)
        runners_lose_power(h->user);
    host_kill(h, machine);
    come_back(n, h);
    return true;
}

bool fault_kill(struct nemesis *n)
{
    return end_host(n, false);
}

bool fault_machine_lost(struct nemesis *n)
{
    return end_host(n, true);
}

bool fault_no_memory(struct nemesis *n)
{
    struct host *h = nemesis_any_host(n);
    if (!h->client)
        return false;
    h->allocator.fail_in = (unsigned)world_between(n->w, 1, 30);
    return true;
}

static void on_back(struct alarm *a)
{
    const struct nemesis_return *r = LIST_ENTRY(a, struct nemesis_return, alarm);
    const struct alarm *sleep = &r->of->machine_back[r->host->index].alarm;
    if (alarm_is_set(sleep))
        world_set(r->of->w, a, sleep->at + 1);
    else if (!r->host->client) /* otherwise a reset by its watchdog has started it already */
        host_start(r->host);
}

static void let_recover(struct nemesis *n, struct host *h)
{
    h->message_fault.kind = MESSAGE_NONE;
    h->stop_in = 0;
    h->stop_us = 1;
    h->allocator.fail_in = 0;
    h->route.refuse_to = h->route.unanswered_to = h->reach_to = 0;
    h->route.stall_to[NET_UP] = h->route.stall_to[NET_DOWN] = 0;
    world_clear(n->w, &n->host_back[h->index].alarm);
    if (!h->client)
        host_start(h);
    host_resume(h);
}

void fault_clients_end(struct nemesis *n)
{
    for (size_t i = 0; i < n->nhosts; i++)
        let_recover(n, &n->hosts[i]);
    net_heal(n->net);
}

void fault_clients_init(struct nemesis *n)
{
    for (size_t i = 0; i < n->nhosts; i++) {
        n->host_back[i].host = &n->hosts[i];
        n->host_back[i].alarm.fire = on_back;
        n->hosts[i].on_killed = on_killed;
        n->hosts[i].killed_arg = n;
    }
}
