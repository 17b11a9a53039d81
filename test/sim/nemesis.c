#include "nemesis.h"

#include <stdlib.h>
#include <string.h>

#include "fault.h"

static const struct {
    const char *name;
    bool (*strike)(struct nemesis *n);
} faults[FAULTS] = {
    [FAULT_CUT] = {"connection cut", fault_cut},
    [FAULT_CUT_LATER] = {"connection cut after a byte", fault_cut_later},
    [FAULT_MESSAGE] = {"message or reply lost", fault_message},
    [FAULT_HALF_OPEN] = {"half-open connection", fault_half_open},
    [FAULT_REFUSE] = {"dials refused", fault_refuse},
    [FAULT_DIAL_TIMEOUT] = {"dials unanswered", fault_dial_timeout},
    [FAULT_STALL] = {"late bytes", fault_stall},
    [FAULT_PAUSE] = {"client paused", fault_pause},
    [FAULT_PAUSE_STEP] = {"client paused in its loop", fault_pause_in_loop},
    [FAULT_KILL] = {"client killed", fault_kill},
    [FAULT_KILL_STEP] = {"client killed in its loop", fault_kill_in_loop},
    [FAULT_MACHINE_LOST] = {"client machine lost", fault_machine_lost},
    [FAULT_NO_MEMORY] = {"allocation refused", fault_no_memory},
    [FAULT_STOP_SERVER] = {"server stopped", fault_stop_server},
    [FAULT_KILL_SERVER] = {"server killed", fault_kill_server},
    [FAULT_POWER_SERVER] = {"server lost power", fault_power_server},
    [FAULT_POWER_AT_SYNC] = {"power lost under an fsync", fault_power_at_sync},
    [FAULT_DISK_FULL] = {"disk full", fault_disk_full},
    [FAULT_SYNC_FAILS] = {"fsync failed", fault_sync_fails},
    [FAULT_PAUSE_SERVER] = {"server paused", fault_pause_server},
    [FAULT_SLOW_DISK] = {"disk slow", fault_slow_disk},
    [FAULT_STALL_DISK] = {"fsync stalled", fault_stall_disk},
    [FAULT_SWAP_SESSION] = {"another session handed out", fault_swap_session},
    [FAULT_REFUSE_WATCHES] = {"setWatches refused", fault_refuse_watches},
    [FAULT_CUT_MEMBER] = {"member cut off from its leader", fault_cut_member},
    [FAULT_LATE_THEN_CUT] = {"requests late, then the member cut off", fault_late_then_cut},
    [FAULT_KILL_MEMBER] = {"member killed", fault_kill_member},
    [FAULT_LAG_MEMBER] = {"member lags", fault_lag_member},
    [FAULT_CUT_LEADER] = {"leader deposed", fault_cut_leader},
    [FAULT_PAUSE_LEADER] = {"leader deposed in a pause", fault_pause_leader},
    [FAULT_KILL_LEADER] = {"leader killed", fault_kill_leader},
    [FAULT_END_SESSION] = {"session closed by an operator", fault_end_session},
    [FAULT_REMOVE_NODE] = {"lock node deleted by an operator", fault_remove_node},
    [FAULT_WRITE_NODE] = {"lock node or limit written by an operator", fault_write_node},
    [FAULT_FOREIGN_NODE] = {"foreign node in the queue", fault_foreign_node},
    [FAULT_EXHAUST_COUNTER] = {"sequence counter near its end", fault_exhaust_counter},
    [FAULT_WALL_CLOCK] = {"wall clock set", fault_wall_clock},
    [FAULT_STOP_GUARDIAN] = {"guardian stopped", fault_stop_guardian},
    [FAULT_KILL_GUARDIAN] = {"guardian killed", fault_kill_guardian},
    [FAULT_SLEEP] = {"machine asleep", fault_sleep},
    [FAULT_RESTORE] = {"directory backed up or restored", fault_restore},
    [FAULT_INTRUDE] = {"session asked for without an identity", fault_intrude},
};

const char *fault_name(enum fault f)
{
    return faults[f].name;
}

/* ---- the plan ------------------------------------------------------------------------ */

static bool is_of_ensemble(int kind)
{
    return kind >= FAULT_CUT_MEMBER && kind <= FAULT_KILL_LEADER;
}

/* Only some seeds can have it, so they mostly do. */
static bool is_special(int kind)
{
    return is_of_ensemble(kind) || kind >= FAULT_STOP_GUARDIAN;
}

/* They are counted when it comes. */
static bool waits_for_its_moment(enum fault kind)
{
    return kind == FAULT_MESSAGE || kind == FAULT_REFUSE_WATCHES || kind == FAULT_NO_MEMORY ||
           kind == FAULT_LATE_THEN_CUT;
}

/* An ensemble's servers have faults of their own. */
static bool is_possible(const struct nemesis *n, int kind)
{
    if (is_of_ensemble(kind))
        return n->ensemble != NULL;
    return !n->ensemble || kind < FAULT_STOP_SERVER || kind > FAULT_PAUSE_SERVER;
}

/* With random numbers of their own: seeds without a restore are as they would be. What is written
 * is not what it was before, so nothing else may meddle with the data of such a seed, nor with the
 * clock of the machine: a backup that is restored after it was set back may repeat tokens. */
static void draw_restores(struct nemesis *n)
{
    static const enum fault without[] = {FAULT_WRITE_NODE, FAULT_FOREIGN_NODE,
                                         FAULT_EXHAUST_COUNTER, FAULT_WALL_CLOCK};
    const struct workload_options *o = n->checker->loads[0]->o;
    struct rand_state rng;
    bool limited = o->unguarded > 0;
    for (unsigned i = 0; i < LOCKS; i++)
        limited = limited || o->layouts[i].limit_path;
    clave__rand_seed(&rng, n->w->seed ^ 0x7265);
    struct rand_state *before = world_use_rng(n->w, &rng);
    if (world_chance(n->w, 150) && !n->ensemble && !limited) {
        n->mean_us[FAULT_RESTORE] = world_between(n->w, n->timeout_us / 4, n->timeout_us * 3);
        for (size_t i = 0; i < sizeof without / sizeof *without; i++)
            n->mean_us[without[i]] = 0;
    }
    world_use_rng(n->w, before);
}

void nemesis_draw(struct nemesis *n)
{
    /* Few kinds at a time reach further than all of them at once. */
    unsigned likely = (unsigned)world_between(n->w, 50, 450);
    int end = n->runs_commands ? FAULT_RESTORE : FAULT_STOP_GUARDIAN; /* others roll for none */
    for (int i = 0; i < end; i++) {
        bool rare = i >= FAULT_STOP_SERVER && i <= FAULT_SYNC_FAILS;
        int64_t scale = rare ? 4 : 1;
        if (world_chance(n->w, is_special(i) ? 500 : likely) && is_possible(n, i))
            n->mean_us[i] = scale * world_between(n->w, n->timeout_us / 4, n->timeout_us * 4);
    }
    clave__rand_seed(&n->rng, world_u64(n->w));
    draw_restores(n);
}

static void add_strike(struct nemesis *n, enum fault kind, int64_t at)
{
    if (n->nplanned == n->planned_cap) {
        n->planned_cap = n->planned_cap ? 2 * n->planned_cap : 64;
        n->planned = world_grow(n->planned, n->planned_cap * sizeof *n->planned);
    }
    n->planned[n->nplanned++] =
        (struct planned_fault){.at = at, .kind = kind, .seed = world_u64(n->w)};
}

static int compare(const void *a, const void *b)
{
    const struct planned_fault *s = a, *t = b;
    if (s->at != t->at)
        return s->at < t->at ? -1 : 1;
    return (s->kind > t->kind) - (s->kind < t->kind);
}

/* All of the day. Each has random numbers of its own: one that is left out changes no other. */
static void make_plan(struct nemesis *n, int64_t day_us)
{
    struct rand_state *before = world_use_rng(n->w, &n->rng);
    int64_t end = n->w->now + day_us;
    for (int i = 0; i < FAULTS; i++)
        for (int64_t at = n->w->now;
             n->mean_us[i] > 0 && (at += world_wait(n->w, n->mean_us[i])) < end;)
            add_strike(n, (enum fault)i, at);
    if (n->nplanned > 0)
        qsort(n->planned, n->nplanned, sizeof *n->planned, compare);
    for (size_t i = 0; i < n->nplanned; i++)
        n->planned[i].number = (unsigned)i;
    world_use_rng(n->w, before);
}

/* Leaves those that were chosen. */
static void choose(struct nemesis *n, const struct fault_list *l)
{
    size_t left = 0, next = 0;
    for (size_t i = 0; i < n->nplanned && next < l->n; i++)
        if (n->planned[i].number == l->numbers[next]) {
            n->planned[left++] = n->planned[i];
            next++;
        }
    n->nplanned = left;
}

static void arm(struct nemesis *n)
{
    if (n->next < n->nplanned)
        world_set(n->w, &n->alarm, n->planned[n->next].at);
}

static void list(struct fault_list *l, const struct planned_fault *s)
{
    if (l->n < SUBSET_FAULTS)
        l->numbers[l->n++] = (uint16_t)s->number;
}

static void on_strike(struct alarm *a)
{
    struct nemesis *n = LIST_ENTRY(a, struct nemesis, alarm);
    struct planned_fault *s = &n->planned[n->next++];
    size_t listed = n->happened->n;
    struct rand_state rng;
    clave__rand_seed(&rng, s->seed);
    struct rand_state *before = world_use_rng(n->w, &rng);
    list(n->happened, s);
    s->happened = faults[s->kind].strike(n);
    if (!s->happened)
        n->happened->n = listed;
    world_use_rng(n->w, before);
    n->count[s->kind] += s->happened && !waits_for_its_moment(s->kind);
    arm(n);
}

/* ---- life ---------------------------------------------------------------------------- */

void nemesis_begin(struct nemesis *n, int64_t day_us)
{
    make_plan(n, day_us);
    if (n->subset->chosen)
        choose(n, &n->subset->faults);
    arm(n);
}

void nemesis_end(struct nemesis *n)
{
    world_log(n->w, "nemesis", "no more faults");
    world_clear(n->w, &n->alarm);
    fault_ensemble_end(n);
    fault_operator_end(n);
    fault_server_end(n);
    fault_clients_end(n);
    fault_runners_end(n);
}

void nemesis_init(struct nemesis *n, struct server_host *server, struct host *hosts, size_t nhosts)
{
    memset(n, 0, sizeof *n);
    n->w = server->w;
    n->net = server->net;
    n->server = server;
    n->hosts = hosts;
    n->nhosts = nhosts;
    n->alarm.fire = on_strike;
    for (size_t i = 0; i < nhosts; i++)
        n->host_back[i].of = n;
    fault_clients_init(n);
    fault_runners_init(n);
    fault_server_init(n);
    fault_ensemble_init(n);
    fault_operator_init(n);
}

void nemesis_fini(struct nemesis *n)
{
    free(n->planned);
}
