/* fault_ensemble.c - what goes wrong with the servers of an ensemble. */
#include "fault.h"

/* Some of its clients find no other servers than those of its side. */
static void cut_clients(struct nemesis *n, unsigned side, int64_t us)
{
    for (size_t i = 0; i < n->nhosts; i++) {
        struct host *h = &n->hosts[i];
        bool connected = h->socket && (side >> h->server & 1);
        if (world_chance(n->w, connected ? 500 : 800))
            continue;
        world_log(n->w, h->name, "is on its side");
        h->reach = side;
        h->reach_to = n->w->now + us;
    }
}

static struct ensemble_member *any_member(struct nemesis *n)
{
    return &n->ensemble->members[nemesis_any_victim(n)->server];
}

/* A follower, and there is a quorum without it. */
static bool may_cut(const struct nemesis *n, const struct ensemble_member *m)
{
    return m->mode == MEMBER_FOLLOWS && m->index != n->ensemble->leading &&
           ensemble_can_spare(n->ensemble, 1);
}

bool fault_cut_member(struct nemesis *n)
{
    struct ensemble_member *m = any_member(n);
    if (!may_cut(n, m))
        return false;
    int64_t us = world_between(n->w, n->timeout_us / 4, 3 * n->timeout_us);
    member_cut(m, us, world_chance(n->w, 300));
    cut_clients(n, 1u << m->index, us);
    return true;
}

/* What the member is told late it reports later still: no report of it reaches the leader
 * when the cut comes between. */
bool fault_late_then_cut(struct nemesis *n)
{
    struct host *h = nemesis_any_victim(n);
    if (alarm_is_set(&n->cut) || h->message_fault.kind != MESSAGE_NONE)
        return false;
    int64_t half_tick = n->ensemble->tick_ms * MS / 2;
    int64_t us = world_between(n->w, half_tick, 2 * half_tick);
    h->message_fault = (struct message_fault){.kind = MESSAGE_LATE_UP,
                                              .op = OPCODE_ANY,
                                              .us = us,
                                              .then = &n->cut,
                                              .then_us = us + world_between(n->w, 0, half_tick)};
    n->cut_host = h;
    return true;
}

static void on_cut(struct alarm *a)
{
    struct nemesis *n = LIST_ENTRY(a, struct nemesis, cut);
    struct host *h = n->cut_host;
    struct ensemble_member *m = &n->ensemble->members[h->server];
    if (!may_cut(n, m))
        return;
    int64_t us = world_between(n->w, n->timeout_us / 2, 2 * n->timeout_us);
    n->count[FAULT_LATE_THEN_CUT]++;
    member_cut(m, us, false);
    world_log(n->w, h->name, "is on its side");
    h->reach = 1u << m->index;
    h->reach_to = n->w->now + us;
}

bool fault_kill_member(struct nemesis *n)
{
    struct ensemble_member *m = any_member(n);
    if (!may_cut(n, m))
        return false;
    member_kill(m, nemesis_while(n));
    return true;
}

bool fault_lag_member(struct nemesis *n)
{
    struct ensemble_member *m = any_member(n);
    if (m->mode != MEMBER_FOLLOWS)
        return false;
    member_lag(m, nemesis_while(n));
    return true;
}

/* The others may know at once: their connections to it are reset. */
static bool depose(struct nemesis *n, enum leader_fault how)
{
    struct ensemble *e = n->ensemble;
    struct ensemble_member *with = e->n > 3 && world_chance(n->w, 500) ? any_member(n) : NULL;
    unsigned side = 1u << e->leading;
    if (!ensemble_can_spare(e, with ? 2 : 1))
        return false;
    if (with && with->mode != MEMBER_FOLLOWS)
        with = NULL;
    side |= with && how == LEADER_CUT ? 1u << with->index : 0;
    int64_t us = how == LEADER_CUT ? world_between(n->w, n->timeout_us / 4, 3 * n->timeout_us)
                                   : nemesis_while(n);
    int64_t notice = world_chance(n->w, 600) ? 20 * MS : n->timeout_us;
    ensemble_depose(e, how, us, how == LEADER_CUT ? with : NULL, notice);
    if (how != LEADER_KILLED)
        cut_clients(n, side, us);
    return true;
}

bool fault_cut_leader(struct nemesis *n)
{
    return depose(n, LEADER_CUT);
}

bool fault_pause_leader(struct nemesis *n)
{
    return depose(n, LEADER_PAUSED);
}

bool fault_kill_leader(struct nemesis *n)
{
    return depose(n, LEADER_KILLED);
}

void fault_ensemble_end(struct nemesis *n)
{
    world_clear(n->w, &n->cut);
    if (n->ensemble)
        ensemble_heal(n->ensemble);
}

void fault_ensemble_init(struct nemesis *n)
{
    n->cut.fire = on_cut;
}
