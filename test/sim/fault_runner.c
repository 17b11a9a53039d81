/* fault_runner.c - what happens to a runner of a command under a lock: to the guardian beside its
 * supervisor, and to the machine with all three. */
#include "fault.h"
#include "runner.h"

static struct runner *any_wrapper(struct nemesis *n)
{
    size_t first = (size_t)world_between(n->w, 0, (int64_t)n->nhosts - 1);
    for (size_t i = 0; i < n->nhosts; i++) {
        struct runner *w = runner_any(n->hosts[(first + i) % n->nhosts].user);
        if (w)
            return w;
    }
    return NULL;
}

bool fault_stop_guardian(struct nemesis *n)
{
    struct runner *w = any_wrapper(n);
    if (w)
        runner_stop_guardian(w, nemesis_while(n));
    return w != NULL;
}

bool fault_kill_guardian(struct nemesis *n)
{
    struct runner *w = any_wrapper(n);
    if (w)
        runner_kill_guardian(w);
    return w != NULL;
}

static void on_woken(struct alarm *a)
{
    struct nemesis_return *r = LIST_ENTRY(a, struct nemesis_return, alarm);
    runners_wake(r->host->user);
}

/* The supervisor goes on first: what it cannot do because it sleeps is nobody's fault. */
bool fault_sleep(struct nemesis *n)
{
    struct host *h = nemesis_any_victim(n);
    struct nemesis_return *r = &n->machine_back[h->index];
    int64_t us = nemesis_while(n);
    const struct workload *l = h->user;
    if ((!h->client && !l->runners) || h->paused || alarm_is_set(&r->alarm))
        return false;
    world_log(n->w, h->name, "its machine sleeps");
    runners_sleep(h->user);
    host_pause(h, us);
    world_set(n->w, &r->alarm, n->w->now + us + 1);
    return true;
}

void fault_runners_end(struct nemesis *n)
{
    for (size_t i = 0; i < n->nhosts; i++) {
        world_clear(n->w, &n->machine_back[i].alarm);
        runners_wake(n->hosts[i].user);
        runners_recover(n->hosts[i].user);
    }
}

void fault_runners_init(struct nemesis *n)
{
    for (size_t i = 0; i < n->nhosts; i++) {
        n->machine_back[i].host = &n->hosts[i];
        n->machine_back[i].alarm.fire = on_woken;
    }
}
