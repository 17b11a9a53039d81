/* fault_server.c - what goes wrong with a server that stands alone, and with its disk. */
#include "fault.h"

/* ---- its process --------------------------------------------------------------------- */

static bool end_server(struct nemesis *n, enum server_end how)
{
    if (!n->server->server)
        return false;
    server_host_end(n->server, how);
    world_clear(n->w, &n->server_resume);
    world_set(n->w, &n->server_back, n->w->now + nemesis_while(n) / 2);
    return true;
}

bool fault_stop_server(struct nemesis *n)
{
    return end_server(n, SERVER_STOPPED);
}

bool fault_kill_server(struct nemesis *n)
{
    return end_server(n, SERVER_KILLED);
}

bool fault_power_server(struct nemesis *n)
{
    return end_server(n, SERVER_POWER_LOST);
}

bool fault_power_at_sync(struct nemesis *n)
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
    server_host_start(LIST_ENTRY(a, struct nemesis, server_back)->server);
}

bool fault_pause_server(struct nemesis *n)
{
    if (!n->server->server || n->server->paused)
        return false;
    server_host_pause(n->server, true);
    world_set(n->w, &n->server_resume, n->w->now + nemesis_while(n));
    return true;
}

static void on_server_resume(struct alarm *a)
{
    server_host_pause(LIST_ENTRY(a, struct nemesis, server_resume)->server, false);
}

/* ---- the disk ------------------------------------------------------------------------ */

bool fault_slow_disk(struct nemesis *n)
{
    struct disk *d = &n->server->disk;
    if (alarm_is_set(&n->disk_better))
        return false;
    n->disk_sync_us = d->sync_us;
    d->sync_us = world_between(n->w, 5 * MS, n->timeout_us / 6);
    world_log(n->w, "disk", "an fsync takes %lld ms", (long long)(d->sync_us / MS));
    world_set(n->w, &n->disk_better, n->w->now + 2 * nemesis_while(n));
    return true;
}

static void on_disk_better(struct alarm *a)
{
    struct nemesis *n = LIST_ENTRY(a, struct nemesis, disk_better);
    n->server->disk.sync_us = n->disk_sync_us;
}

bool fault_stall_disk(struct nemesis *n)
{
    int64_t us = nemesis_while(n);
    world_log(n->w, "disk", "no fsync ends for %lld ms", (long long)(us / MS));
    n->server->disk.stall_to = n->w->now + us;
    return true;
}

/* The next append fails: of a disk that is full a part of it is written, and of an fsync that
 * fails nobody knows what is. The server ends either way, and is started again when there is
 * room or another disk. */
static bool fail_disk(struct nemesis *n, enum disk_fault how)
{
    if (!n->server->server || n->server->disk.fails != DISK_WORKS)
        return false;
    n->server->disk.fails = how;
    return true;
}

bool fault_disk_full(struct nemesis *n)
{
    return fail_disk(n, DISK_FULL);
}

bool fault_sync_fails(struct nemesis *n)
{
    return fail_disk(n, DISK_SYNC_FAILS);
}

static void on_disk_failed(void *arg)
{
    (void)end_server(arg, SERVER_KILLED);
}

/* The same backup is now and then restored again. */
bool fault_restore(struct nemesis *n)
{
    struct server_host *h = n->server;
    if (!h->server)
        return false;
    if (!disk_has_backup(&h->disk) || world_chance(n->w, 300)) {
        world_log(n->w, "operator", "backs up the server's directory");
        disk_backup(&h->disk);
        return true;
    }
    (void)end_server(n, world_chance(n->w, 500) ? SERVER_STOPPED : SERVER_KILLED);
    server_host_restore(h);
    checker_restored(n->checker);
    return true;
}

/* ---- the protocol -------------------------------------------------------------------- */

/* Some servers answer a client that comes back with another session than it asked for. */
bool fault_swap_session(struct nemesis *n)
{
    if (!n->server->server || n->server->swaps_next)
        return false;
    n->server->swaps_next = true;
    return true;
}

/* ---- life ---------------------------------------------------------------------------- */

void fault_server_end(struct nemesis *n)
{
    struct server_host *h = n->server;
    if (alarm_is_set(&n->disk_better))
        h->disk.sync_us = n->disk_sync_us;
    world_clear(n->w, &n->disk_better);
    world_clear(n->w, &n->server_back);
    world_clear(n->w, &n->server_resume);
    world_clear(n->w, &n->power);
    h->disk.stall_to = 0;
    h->disk.watch_in = 0;
    h->disk.fails = DISK_WORKS;
    h->swaps_next = false;
    if (!n->ensemble && !h->server)
        server_host_start(h);
    server_host_pause(h, false);
}

void fault_server_init(struct nemesis *n)
{
    n->server->disk.watcher = on_append;
    n->server->disk.watcher_arg = n;
    n->server->disk_failed = on_disk_failed;
    n->server->disk_failed_arg = n;
    n->server_resume.fire = on_server_resume;
    n->server_back.fire = on_back;
    n->disk_better.fire = on_disk_better;
    n->power.fire = on_power;
}
