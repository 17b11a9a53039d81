#include "nemesis.h"

#include <stdio.h>
#include <string.h>

#include "insider.h"
#include "inspector.h"
#include "wire/proto.h"

static const char *const names[FAULTS] = {
    [FAULT_CUT] = "connection cut",
    [FAULT_CUT_LATER] = "cut behind a byte",
    [FAULT_AMBUSH] = "message or reply lost",
    [FAULT_HALF_OPEN] = "half-open connection",
    [FAULT_REFUSE] = "dials refused",
    [FAULT_SWALLOW] = "dials unanswered",
    [FAULT_STALL] = "late bytes",
    [FAULT_PAUSE] = "client paused",
    [FAULT_PAUSE_STEP] = "client paused in its loop",
    [FAULT_KILL] = "client killed",
    [FAULT_KILL_STEP] = "client killed in its loop",
    [FAULT_POWER] = "client machine lost",
    [FAULT_NO_MEMORY] = "allocation refused",
    [FAULT_STOP_SERVER] = "server stopped",
    [FAULT_KILL_SERVER] = "server killed",
    [FAULT_POWER_SERVER] = "server lost power",
    [FAULT_POWER_AT_SYNC] = "power lost under an fsync",
    [FAULT_PAUSE_SERVER] = "server paused",
    [FAULT_SLOW_DISK] = "disk slow",
    [FAULT_STALL_DISK] = "fsync stalled",
    [FAULT_CUT_MEMBER] = "member cut off from its leader",
    [FAULT_END_SESSION] = "session closed by an operator",
    [FAULT_REMOVE_NODE] = "lock node deleted by an operator",
    [FAULT_SCRIBBLE] = "lock node written by an operator",
    [FAULT_STRANGER] = "foreign node in the queue",
};

const char *fault_name(enum fault f)
{
    return names[f];
}

/* ---- whom, how long ------------------------------------------------------------------ */

static struct host *any_host(struct nemesis *n)
{
    return &n->hosts[world_between(n->w, 0, (int64_t)n->nhosts - 1)];
}

/* One that has a connection; NULL when the one drawn has none. */
static struct host *any_connected(struct nemesis *n)
{
    struct host *h = any_host(n);
    return h->socket && h->socket->state == NET_OPEN ? h : NULL;
}

/* Somebody who holds, when there is one: there it hurts. */
static struct host *any_victim(struct nemesis *n)
{
    size_t first = (size_t)world_between(n->w, 0, (int64_t)n->nhosts - 1);
    for (size_t i = 0; world_chance(n->w, 700) && i < n->nhosts; i++) {
        struct host *h = &n->hosts[(first + i) % n->nhosts];
        const struct workload *l = h->user;
        for (unsigned k = 0; h->client && k < l->o->actors; k++)
            if (l->actors[k].believes)
                return h;
    }
    return &n->hosts[first];
}

/* Often about a session's length, where it matters most. */
static int64_t a_while(struct nemesis *n)
{
    int64_t t = n->timeout_us;
    return world_chance(n->w, 400)   ? world_between(n->w, 1 * MS, t / 8)
           : world_chance(n->w, 700) ? world_between(n->w, t / 2, t * 3 / 2)
                                     : world_between(n->w, t / 8, 2 * t);
}

/* ---- the network --------------------------------------------------------------------- */

static bool cut(struct nemesis *n)
{
    struct host *h = any_connected(n);
    if (!h)
        return false;
    world_tell(n->w, h->name, "its connection is cut");
    net_reset(h->socket);
    return true;
}

static bool cut_later(struct nemesis *n)
{
    struct host *h = any_connected(n);
    if (!h)
        return false;
    size_t bytes = (size_t)world_between(n->w, 1, 400);
    bool up = world_chance(n->w, 500);
    world_tell(n->w, h->name, "its connection will be cut %zu bytes %s", bytes, up ? "up" : "down");
    if (up)
        net_cut_after(h->socket, bytes);
    else
        net_lose_answer(h->socket, bytes);
    return true;
}

/* Mostly the very messages that the hold deadline is counted from. */
static void make_late(struct nemesis *n, struct host *h)
{
    h->ambush.us = world_between(n->w, n->timeout_us / 10, n->timeout_us / 3);
    if (world_chance(n->w, 300))
        return;
    h->ambush.op = world_chance(n->w, 500) ? OP_PING : TAP_HANDSHAKE;
    if (h->ambush.op == TAP_HANDSHAKE && h->socket)
        net_reset(h->socket);
}

static bool ambush(struct nemesis *n)
{
    static const int32_t ops[] = {
        TAP_HANDSHAKE,     TAP_ANY,   OP_CREATE2,       OP_DELETE,  OP_GET_DATA,
        OP_MULTI,          OP_PING,   OP_GET_CHILDREN2, OP_CREATE2, OP_SET_WATCHES,
        OP_REMOVE_WATCHES, OP_DELETE, OP_SYNC,          OP_EXISTS,  OP_CREATE_CONTAINER,
        OP_CLOSE_SESSION,
    };
    static const enum ambush_kind kinds[] = {
        AMBUSH_LOSE_REPLY, AMBUSH_LOSE_REPLY, AMBUSH_LOSE_REQUEST, AMBUSH_FORGET,
        AMBUSH_PAUSE,      AMBUSH_KILL,       AMBUSH_LATE,
    };
    struct host *h = any_victim(n);
    int64_t op = world_between(n->w, 0, (int64_t)(sizeof ops / sizeof *ops) - 1);
    int64_t kind = world_between(n->w, 0, (int64_t)(sizeof kinds / sizeof *kinds) - 1);
    h->ambush = (struct ambush){kinds[kind], ops[op], a_while(n)};
    if (kinds[kind] == AMBUSH_LATE)
        make_late(n, h);
    return true;
}

static bool half_open(struct nemesis *n)
{
    struct host *h = any_connected(n);
    if (!h)
        return false;
    world_tell(n->w, h->name, "its connection goes nowhere from now on");
    net_forget(h->socket);
    return true;
}

static bool refuse(struct nemesis *n, bool swallow)
{
    struct host *h = any_host(n);
    int64_t us = a_while(n);
    world_tell(n->w, h->name, "its dials are %s for %lld ms", swallow ? "not answered" : "refused",
               (long long)(us / MS));
    *(swallow ? &h->road.swallow_to : &h->road.refuse_to) = n->w->now + us;
    if (h->socket && h->socket->state == NET_OPEN)
        net_reset(h->socket);
    return true;
}

static bool stall(struct nemesis *n)
{
    struct host *h = any_host(n);
    int64_t us = a_while(n);
    int64_t ways = world_between(n->w, 1, 3);
    world_tell(n->w, h->name, "nothing arrives %s for %lld ms",
               ways == 1   ? "from it"
               : ways == 2 ? "at it"
                           : "from it or at it",
               (long long)(us / MS));
    if (ways & 1)
        h->road.stall_to[NET_UP] = n->w->now + us;
    if (ways & 2)
        h->road.stall_to[NET_DOWN] = n->w->now + us;
    return true;
}

/* ---- processes ----------------------------------------------------------------------- */

static bool pause_host(struct nemesis *n, bool in_loop)
{
    struct host *h = any_victim(n);
    if (!h->client || h->paused)
        return false;
    if (in_loop)
        host_pause_at(h, (unsigned)world_between(n->w, 1, 30), a_while(n));
    else
        host_pause(h, a_while(n));
    return true;
}

static void come_back(struct nemesis *n, const struct host *h)
{
    world_set(n->w, &n->host_back[h->index].alarm, n->w->now + a_while(n));
}

static void on_killed(void *arg, struct host *h)
{
    come_back(arg, h);
}

static bool kill_in_loop(struct nemesis *n)
{
    struct host *h = any_victim(n);
    if (!h->client || h->paused)
        return false;
    host_pause_at(h, (unsigned)world_between(n->w, 1, 60), 0);
    return true;
}

static bool kill_host(struct nemesis *n, bool machine)
{
    struct host *h = any_victim(n);
    if (!h->client)
        return false;
    host_kill(h, machine);
    come_back(n, h);
    return true;
}

static bool refuse_memory(struct nemesis *n)
{
    struct host *h = any_host(n);
    if (!h->client)
        return false;
    h->purse.fail_in = (unsigned)world_between(n->w, 1, 30);
    return true;
}

static bool end_server(struct nemesis *n, enum server_end how)
{
    if (!n->server->server)
        return false;
    server_host_end(n->server, how);
    world_clear(n->w, &n->server_resume);
    world_set(n->w, &n->server_back.alarm, n->w->now + a_while(n) / 2);
    return true;
}

static bool end_power_at_sync(struct nemesis *n)
{
    if (!n->server->server)
        return false;
    n->server->disk.watch_in = (unsigned)world_between(n->w, 1, 12);
    return true;
}

/* An append has begun that ends then. */
static void on_append(void *arg, int64_t ends)
{
    struct nemesis *n = arg;
    world_set(n->w, &n->power, world_between(n->w, n->w->now, ends));
}

static void on_power(struct alarm *a)
{
    (void)end_server(LIST_ENTRY(a, struct nemesis, power), SERVER_POWER_LOST);
}

static void on_back(struct alarm *a)
{
    struct nemesis_return *r = LIST_ENTRY(a, struct nemesis_return, alarm);
    if (r->host)
        host_start(r->host);
    else
        server_host_start(r->of->server);
}

static bool pause_server(struct nemesis *n)
{
    if (!n->server->server || n->server->paused)
        return false;
    server_host_pause(n->server, true);
    world_set(n->w, &n->server_resume, n->w->now + a_while(n));
    return true;
}

static void on_server_resume(struct alarm *a)
{
    server_host_pause(LIST_ENTRY(a, struct nemesis, server_resume)->server, false);
}

/* ---- the disk ------------------------------------------------------------------------ */

static bool slow_disk(struct nemesis *n)
{
    struct disk *d = &n->server->disk;
    if (alarm_is_set(&n->disk_better))
        return false;
    n->disk_sync_us = d->sync_us;
    d->sync_us = world_between(n->w, 5 * MS, n->timeout_us / 6);
    world_tell(n->w, "disk", "an fsync takes %lld ms", (long long)(d->sync_us / MS));
    world_set(n->w, &n->disk_better, n->w->now + 2 * a_while(n));
    return true;
}

static void on_disk_better(struct alarm *a)
{
    struct nemesis *n = LIST_ENTRY(a, struct nemesis, disk_better);
    n->server->disk.sync_us = n->disk_sync_us;
}

static bool stall_disk(struct nemesis *n)
{
    int64_t us = a_while(n);
    world_tell(n->w, "disk", "no fsync ends for %lld ms", (long long)(us / MS));
    n->server->disk.stall_to = n->w->now + us;
    return true;
}

/* ---- the ensemble -------------------------------------------------------------------- */

/* Some of its clients are on its side of the cut: they find no other member. */
static bool cut_member(struct nemesis *n)
{
    struct member *m = &n->ensemble->members[any_victim(n)->server];
    if (m->cut)
        return false;
    int64_t us = world_between(n->w, n->timeout_us / 4, 3 * n->timeout_us);
    member_cut(m, us);
    for (size_t i = 0; i < n->nhosts; i++) {
        struct host *h = &n->hosts[i];
        if (!h->socket || h->server != m->index || world_chance(n->w, 500))
            continue;
        world_tell(n->w, h->name, "is on its side");
        h->road.swallow_to = n->w->now + us;
    }
    return true;
}

/* ---- operators and strangers --------------------------------------------------------- */

static bool end_session(struct nemesis *n)
{
    struct host *h = any_victim(n);
    int64_t session = h->client ? clave_client_session_id(h->client) : 0;
    if (!n->server->server || n->server->paused || session == 0 ||
        !inspector_has_session(n->server, session))
        return false;
    const struct workload *l = h->user;
    world_tell(n->w, "operator", "closes the session of %s", h->name);
    for (unsigned lock = 0; lock < l->o->locks; lock++) {
        char first[PATH_SIZE];
        if (inspector_first_child(n->server, workload_lock_path(lock), first, sizeof first) ==
            session)
            checker_taken(n->checker, first);
    }
    insider_end_session(n->server, session);
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
        if (h->client && h->socket && clave_client_session_id(h->client) == session)
            net_break(h->socket);
    }
}

static bool remove_node(struct nemesis *n)
{
    char node[PATH_SIZE], first[PATH_SIZE];
    unsigned lock = any_lock(n);
    const char *path = workload_lock_path(lock);
    size_t nth = (size_t)world_between(n->w, 0, 2);
    if (!n->server->server || n->server->paused)
        return false;
    int64_t owner = inspector_first_child(n->server, path, first, sizeof first);
    if (!insider_remove_child(n->server, path, nth, node, sizeof node))
        return false;
    world_tell(n->w, "operator", "has deleted %s", node);
    if (strcmp(node, first) == 0) {
        checker_taken(n->checker, node);
        cut_owner(n, owner);
    }
    checker_disturbed(n->checker, lock);
    return true;
}

static bool scribble(struct nemesis *n)
{
    char node[PATH_SIZE];
    size_t nth = (size_t)world_between(n->w, 0, 2);
    if (!n->server->server || n->server->paused ||
        !insider_write_child(n->server, workload_lock_path(any_lock(n)), nth, node, sizeof node))
        return false;
    world_tell(n->w, "operator", "has written to %s", node);
    return true;
}

static bool stranger(struct nemesis *n)
{
    unsigned lock = any_lock(n);
    if (!n->server->server || n->server->paused ||
        !insider_queue_up(n->server, workload_lock_path(lock), a_while(n)))
        return false;
    world_tell(n->w, "stranger", "stands in the queue of %s", workload_lock_path(lock));
    return true;
}

/* ---- when ---------------------------------------------------------------------------- */

static bool strike(struct nemesis *n, enum fault kind)
{
    switch (kind) {
    case FAULT_CUT:
        return cut(n);
    case FAULT_CUT_LATER:
        return cut_later(n);
    case FAULT_AMBUSH:
        return ambush(n);
    case FAULT_HALF_OPEN:
        return half_open(n);
    case FAULT_REFUSE:
        return refuse(n, false);
    case FAULT_SWALLOW:
        return refuse(n, true);
    case FAULT_STALL:
        return stall(n);
    case FAULT_PAUSE:
        return pause_host(n, false);
    case FAULT_PAUSE_STEP:
        return pause_host(n, true);
    case FAULT_KILL:
        return kill_host(n, false);
    case FAULT_KILL_STEP:
        return kill_in_loop(n);
    case FAULT_POWER:
        return kill_host(n, true);
    case FAULT_NO_MEMORY:
        return refuse_memory(n);
    case FAULT_STOP_SERVER:
        return end_server(n, SERVER_STOPPED);
    case FAULT_KILL_SERVER:
        return end_server(n, SERVER_KILLED);
    case FAULT_POWER_SERVER:
        return end_server(n, SERVER_POWER_LOST);
    case FAULT_POWER_AT_SYNC:
        return end_power_at_sync(n);
    case FAULT_PAUSE_SERVER:
        return pause_server(n);
    case FAULT_SLOW_DISK:
        return slow_disk(n);
    case FAULT_STALL_DISK:
        return stall_disk(n);
    case FAULT_CUT_MEMBER:
        return cut_member(n);
    case FAULT_END_SESSION:
        return end_session(n);
    case FAULT_REMOVE_NODE:
        return remove_node(n);
    case FAULT_SCRIBBLE:
        return scribble(n);
    case FAULT_STRANGER:
        return stranger(n);
    case FAULTS:
        break;
    }
    return false;
}

static void on_fault(struct alarm *a)
{
    struct nemesis_fault *f = LIST_ENTRY(a, struct nemesis_fault, alarm);
    struct nemesis *n = f->of;
    f->count += strike(n, f->kind) ? 1 : 0;
    world_set(n->w, a, n->w->now + world_wait(n->w, f->mean_us));
}

/* The model of an ensemble has a leader that never fails. */
static bool is_possible(const struct nemesis *n, enum fault kind)
{
    if (kind == FAULT_CUT_MEMBER)
        return n->ensemble != NULL;
    return !n->ensemble || kind < FAULT_STOP_SERVER || kind > FAULT_PAUSE_SERVER;
}

void nemesis_draw(struct nemesis *n)
{
    /* Few kinds at a time reach further than all of them at once. */
    unsigned likely = (unsigned)world_between(n->w, 50, 450);
    for (int i = 0; i < FAULTS; i++) {
        bool rare = i >= FAULT_STOP_SERVER && i <= FAULT_POWER_AT_SYNC;
        int64_t scale = rare ? 4 : 1;
        if (world_chance(n->w, i == FAULT_CUT_MEMBER ? 800 : likely) &&
            is_possible(n, (enum fault)i))
            n->faults[i].mean_us =
                scale * world_between(n->w, n->timeout_us / 4, n->timeout_us * 4);
    }
}

void nemesis_begin(struct nemesis *n)
{
    for (int i = 0; i < FAULTS; i++)
        if (n->faults[i].mean_us > 0)
            world_set(n->w, &n->faults[i].alarm,
                      n->w->now + world_wait(n->w, n->faults[i].mean_us));
}

static void let_host_recover(struct nemesis *n, struct host *h)
{
    h->ambush.kind = AMBUSH_NONE;
    h->stop_in = 0;
    h->stop_us = 1;
    h->purse.fail_in = 0;
    h->road.refuse_to = h->road.swallow_to = 0;
    h->road.stall_to[NET_UP] = h->road.stall_to[NET_DOWN] = 0;
    world_clear(n->w, &n->host_back[h->index].alarm);
    if (!h->client)
        host_start(h);
    host_resume(h);
}

void nemesis_end(struct nemesis *n)
{
    world_tell(n->w, "nemesis", "no more faults");
    for (int i = 0; i < FAULTS; i++)
        world_clear(n->w, &n->faults[i].alarm);
    if (alarm_is_set(&n->disk_better))
        n->server->disk.sync_us = n->disk_sync_us;
    world_clear(n->w, &n->disk_better);
    n->server->disk.stall_to = 0;
    world_clear(n->w, &n->server_back.alarm);
    world_clear(n->w, &n->server_resume);
    world_clear(n->w, &n->power);
    n->server->disk.watch_in = 0;
    if (!n->server->server)
        server_host_start(n->server);
    server_host_pause(n->server, false);
    for (size_t i = 0; i < n->nhosts; i++)
        let_host_recover(n, &n->hosts[i]);
    if (n->ensemble)
        ensemble_heal(n->ensemble);
    net_heal(n->net);
}

void nemesis_init(struct nemesis *n, struct server_host *server, struct host *hosts, size_t nhosts)
{
    memset(n, 0, sizeof *n);
    n->w = server->w;
    n->net = server->net;
    n->hosts = hosts;
    n->nhosts = nhosts;
    n->server_resume.ring = on_server_resume;
    n->disk_better.ring = on_disk_better;
    n->power.ring = on_power;
    n->server = server;
    server->disk.watcher = on_append;
    server->disk.watcher_arg = n;
    n->server_back = (struct nemesis_return){.of = n};
    n->server_back.alarm.ring = on_back;
    for (size_t i = 0; i < nhosts; i++) {
        n->host_back[i] = (struct nemesis_return){.of = n, .host = &hosts[i]};
        n->host_back[i].alarm.ring = on_back;
        hosts[i].on_killed = on_killed;
        hosts[i].killed_arg = n;
    }
    for (int i = 0; i < FAULTS; i++) {
        n->faults[i] = (struct nemesis_fault){.of = n, .kind = (enum fault)i};
        n->faults[i].alarm.ring = on_fault;
    }
}
