/* lock_metrics.c - see lock_metrics.h. Called by api/locks.c. Invariant: all samples of a
 * family are written in one step, which may take several pieces; locks may come and go between
 * them. */
#include "web/observe/lock_metrics.h"

#include <assert.h>
#include <string.h>

#include "observe/lock_who.h"

enum { PIECE_LOCKS = 300, MAX_PATHS = 1000 };

void clave__lock_metrics_init(struct metrics_page *p, const struct observe *o,
                              const struct metrics_labels *labels, enum prometheus_format format)
{
    *p = (struct metrics_page){.o = o, .labels = *labels};
    if (p->labels.max_paths == 0)
        p->labels.max_paths = MAX_PATHS;
    p->p = clave__prometheus_to(NULL, format);
    clave__buf_init(&p->at, &o->web->mem, SIZE_MAX);
}

void clave__lock_metrics_fini(struct metrics_page *p)
{
    clave__buf_fini(&p->at);
}

/* ---- walking --------------------------------------------------------------------------------- */

static void metrics_remember(struct metrics_page *p, const char *path)
{
    clave_err err = clave__buf_set_text(&p->at, path);
    if (p->p.err == CLAVE_OK)
        p->p.err = err;
}

static bool metrics_put_path_labels(struct metrics_page *p, const char *path)
{
    for (size_t i = 0; i < p->labels.nprefixes && p->nlabelled < p->labels.max_paths; i++)
        if (clave__observe_is_below(path, p->labels.prefixes[i])) {
            p->nlabelled++;
            return true;
        }
    return false;
}

/* The first family of a walk adds up the others too: without labels that is all there is. */
static bool metrics_walks(const struct metrics_page *p, bool first)
{
    return first || p->labels.nprefixes > 0;
}

static void metrics_put(struct metrics_page *p, const char *path, const char *kind, int64_t value)
{
    struct prometheus_label labels[] = {{"path", path}, {kind ? "kind" : NULL, kind}, {0}};
    clave__prometheus_put(&p->p, labels, value);
}

/* ---- locks ----------------------------------------------------------------------------------- */

enum lock_gauge {
    GAUGE_HOLDERS,
    GAUGE_UNHEALTHY,
    GAUGE_WAITERS,
    GAUGE_LEFT_OVER,
    GAUGE_OLDEST_WAIT,
    GAUGE_HELD_SINCE,
    LOCK_GAUGES
};

static const struct prometheus_family lock_gauges[LOCK_GAUGES] = {
    {"clave_lock_holders", PROMETHEUS_GAUGE, 0, "Those who hold it."},
    {"clave_lock_unhealthy", PROMETHEUS_GAUGE, 0, "Those of them whose work is not healthy."},
    {"clave_lock_waiters", PROMETHEUS_GAUGE, 0, "Those who wait for it."},
    {"clave_lock_left_over", PROMETHEUS_GAUGE, 0,
     "Nodes in its queue that no session owns: they never end by themselves."},
    {"clave_lock_oldest_wait_seconds", PROMETHEUS_GAUGE, 3,
     "How long the first of them has waited."},
    {"clave_lock_held_since_timestamp_seconds", PROMETHEUS_GAUGE, 3,
     "Since when the first holder holds it."},
};

/* false: there is none. */
static bool metrics_gauge_value(const struct metrics_page *p, const struct metrics_others *of,
                                enum lock_gauge gauge, int64_t *out)
{
    int64_t now = clave__observe_now(p->o);
    switch (gauge) {
    case GAUGE_HOLDERS:
        *out = (int64_t)of->holders;
        return true;
    case GAUGE_UNHEALTHY:
        *out = (int64_t)of->unhealthy;
        return true;
    case GAUGE_WAITERS:
        *out = (int64_t)of->waiters;
        return true;
    case GAUGE_LEFT_OVER:
        *out = (int64_t)of->left_over;
        return true;
    case GAUGE_OLDEST_WAIT:
        *out = now > of->queued ? now - of->queued : 0;
        return of->queued != INT64_MAX;
    case GAUGE_HELD_SINCE:
        *out = of->held;
        return of->held != INT64_MAX;
    case LOCK_GAUGES:
        break;
    }
    return false;
}

/* The unhealthy ones, whom only a walk finds, are counted if that gauge needs them. */
static struct metrics_others metrics_gauges_of(const struct lock_queue *q, enum lock_gauge gauge)
{
    const struct lock_node *holder = clave__lock_holder_after(q, NULL);
    const struct lock_node *waiter = clave__lock_waiter_after(q, NULL);
    size_t unhealthy = 0;
    for (const struct lock_node *p = gauge <= GAUGE_UNHEALTHY ? holder : NULL; p;
         p = clave__lock_holder_after(q, p))
        unhealthy += p->unhealthy;
    enum lock_since how;
    int64_t held = holder ? clave__lock_held_since(holder, &how) : -1;
    return (struct metrics_others){.n = 1,
                                   .holders = q->nholders,
                                   .unhealthy = unhealthy,
                                   .waiters = clave__lock_nwaiters(q),
                                   .left_over = clave__lock_nleft_over(q),
                                   .queued = waiter ? waiter->queued : INT64_MAX,
                                   .held = held >= 0 ? held : INT64_MAX};
}

static void metrics_others_add(struct metrics_others *to, const struct metrics_others *more)
{
    to->queued = to->n > 0 && to->queued < more->queued ? to->queued : more->queued;
    to->held = to->n > 0 && to->held < more->held ? to->held : more->held;
    to->n += more->n;
    to->holders += more->holders;
    to->unhealthy += more->unhealthy;
    to->waiters += more->waiters;
    to->left_over += more->left_over;
}

static void metrics_put_lock(struct metrics_page *p, const char *path, enum lock_queue_kind kind,
                             const struct metrics_others *of, enum lock_gauge gauge)
{
    int64_t value;
    if (metrics_gauge_value(p, of, gauge, &value))
        metrics_put(p, path, clave__lock_kind_name(kind), value);
}

/* The others are added up in the first of these steps, whose family is holders. */
static bool metrics_step_locks(struct metrics_page *p, int which)
{
    enum lock_gauge gauge = (enum lock_gauge)which;
    if (!p->within)
        clave__prometheus_family(&p->p, &lock_gauges[gauge]);
    for (int i = 0; i < PIECE_LOCKS; i++) {
        const struct lock_queue *q =
            metrics_walks(p, gauge == GAUGE_HOLDERS)
                ? clave__lock_model_after(&p->o->model, clave__buf_text(&p->at), p->at_leases)
                : NULL;
        if (!q) {
            for (int kind = 0; kind < LOCK_KINDS; kind++)
                if (p->others[kind].n > 0)
                    metrics_put_lock(p, "other", (enum lock_queue_kind)kind, &p->others[kind],
                                     gauge);
            return true;
        }
        metrics_remember(p, q->path);
        p->at_leases = q->leases;
        struct metrics_others of = metrics_gauges_of(q, gauge);
        enum lock_queue_kind kind = clave__lock_kind(q);
        if (metrics_put_path_labels(p, q->path))
            metrics_put_lock(p, q->path, kind, &of, gauge);
        else if (gauge == GAUGE_HOLDERS)
            metrics_others_add(&p->others[kind], &of);
    }
    return false;
}

/* ---- what happened to locks ------------------------------------------------------------------ */

static void metrics_put_durations(struct metrics_page *p, const struct histogram *of,
                                  const char *outcome)
{
    for (int kind = 0; kind < LOCK_KINDS; kind++) {
        const char *name = clave__lock_kind_name((enum lock_queue_kind)kind);
        struct prometheus_label labels[] = {
            {"kind", name}, {outcome ? "outcome" : NULL, outcome}, {0}};
        if (clave__histogram_count(&of[kind]) > 0)
            clave__prometheus_histogram(&p->p, labels, &of[kind]);
    }
}

static bool metrics_step_durations(struct metrics_page *p, int which)
{
    static const struct prometheus_family wait = {"clave_lock_wait_seconds", PROMETHEUS_HISTOGRAM,
                                                  3,
                                                  "From queueing until granted, or until it left."};
    static const struct prometheus_family hold = {"clave_lock_hold_seconds", PROMETHEUS_HISTOGRAM,
                                                  3, "From granted until the node was gone."};
    const struct lock_counters *m = &p->o->metrics;
    (void)which;
    clave__prometheus_family(&p->p, &wait);
    metrics_put_durations(p, m->waited, "granted");
    metrics_put_durations(p, m->left, "left");
    clave__prometheus_family(&p->p, &hold);
    metrics_put_durations(p, m->held, NULL);
    return true;
}

static bool metrics_step_ends(struct metrics_page *p, int which)
{
    static const struct prometheus_family grants = {"clave_lock_grants", PROMETHEUS_COUNTER, 0,
                                                    "Locks that were granted."};
    static const struct prometheus_family ends = {"clave_lock_ends", PROMETHEUS_COUNTER, 0,
                                                  "Holds that ended, by cause."};
    const struct lock_counters *m = &p->o->metrics;
    (void)which;
    clave__prometheus_family(&p->p, &grants);
    for (int kind = 0; kind < LOCK_KINDS; kind++) {
        const char *name = clave__lock_kind_name((enum lock_queue_kind)kind);
        clave__prometheus_put(&p->p, (struct prometheus_label[]){{"kind", name}, {0}},
                              (int64_t)clave__histogram_count(&m->waited[kind]));
    }
    clave__prometheus_family(&p->p, &ends);
    for (int cause = 0; cause < LOCK_CAUSES; cause++) {
        const char *name = clave__lock_cause_name((enum lock_cause)cause);
        uint64_t n = 0;
        for (int kind = 0; kind < LOCK_KINDS; kind++)
            n += m->ends[kind][cause];
        clave__prometheus_put(&p->p, (struct prometheus_label[]){{"cause", name}, {0}}, (int64_t)n);
    }
    return true;
}

/* ---- elections ------------------------------------------------------------------------------- */

enum election_gauge {
    GAUGE_HAS_LEADER,
    GAUGE_CANDIDATES,
    COUNT_TERMS,
    COUNT_VACANCY,
    INFO_LEADER,
    ELECTION_GAUGES
};

static const struct prometheus_family election_gauges[ELECTION_GAUGES] = {
    {"clave_election_has_leader", PROMETHEUS_GAUGE, 0,
     "1 while somebody leads; of the others, while each has a leader."},
    {"clave_election_candidates", PROMETHEUS_GAUGE, 0, "Those who stand, the leader not counted."},
    {"clave_election_terms", PROMETHEUS_COUNTER, 0, "Leaderships since the gate has started."},
    {"clave_election_vacancy_seconds", PROMETHEUS_COUNTER, 3, "Time without a leader."},
    {"clave_election_leader_info", PROMETHEUS_GAUGE, 0, "Who leads."},
};

static struct metrics_others metrics_election_values(const struct metrics_page *p,
                                                     const struct election *e)
{
    const struct lock_queue *q = clave__lock_model_get(&p->o->model, e->path, false);
    return (struct metrics_others){.n = 1,
                                   .holders = q ? q->nholders : 0,
                                   .waiters = q ? clave__lock_nwaiters(q) : 0,
                                   .terms = (int64_t)e->terms_total,
                                   .vacant_ms =
                                       clave__election_vacant_ms(e, clave__observe_now(p->o))};
}

static void metrics_put_election(struct metrics_page *p, const char *path,
                                 const struct metrics_others *of, enum election_gauge gauge)
{
    const int64_t values[INFO_LEADER] = {[GAUGE_HAS_LEADER] = of->holders >= of->n,
                                         [GAUGE_CANDIDATES] = (int64_t)of->waiters,
                                         [COUNT_TERMS] = of->terms,
                                         [COUNT_VACANCY] = of->vacant_ms};
    if (gauge < INFO_LEADER)
        metrics_put(p, path, NULL, values[gauge]);
}

static void metrics_put_leader(struct metrics_page *p, const struct election *e)
{
    const struct lock_queue *q = clave__lock_model_get(&p->o->model, e->path, false);
    const struct lock_node *leader = q ? clave__lock_holder_after(q, NULL) : NULL;
    char who[LOCK_WHO_CAP];
    if (!leader)
        return;
    struct prometheus_label labels[] = {
        {"path", e->path}, {"leader", clave__lock_who(leader, who)}, {0}};
    clave__prometheus_put(&p->p, labels, 1);
}

static bool metrics_step_elections(struct metrics_page *p, int which)
{
    enum election_gauge gauge = (enum election_gauge)which;
    struct metrics_others *others = &p->others[LOCK_KIND_ELECTION];
    if (!p->within) {
        clave__prometheus_family(&p->p, &election_gauges[gauge]);
        if (gauge == GAUGE_HAS_LEADER)
            *others = (struct metrics_others){0};
    }
    for (int i = 0; i < PIECE_LOCKS; i++) {
        const struct election *e =
            metrics_walks(p, gauge == GAUGE_HAS_LEADER)
                ? clave__election_after(&p->o->elections, clave__buf_text(&p->at))
                : NULL;
        if (!e) {
            if (others->n > 0)
                metrics_put_election(p, "other", others, gauge);
            return true;
        }
        metrics_remember(p, e->path);
        if (!clave__election_is_shown(e, &p->o->model) || e->over)
            continue;
        struct metrics_others of = metrics_election_values(p, e);
        if (metrics_put_path_labels(p, e->path)) {
            metrics_put_election(p, e->path, &of, gauge);
            if (gauge == INFO_LEADER)
                metrics_put_leader(p, e);
        } else if (gauge == GAUGE_HAS_LEADER) {
            metrics_others_add(others, &of);
            others->terms += of.terms;
            others->vacant_ms += of.vacant_ms;
        }
    }
    return false;
}

/* ---- the model itself ------------------------------------------------------------------------ */

static bool metrics_step_model(struct metrics_page *p, int which)
{
    const struct observe *o = p->o;
    const struct {
        struct prometheus_family family;
        int64_t value;
    } table[] = {
        {{"clave_deadlocks", PROMETHEUS_GAUGE, 0,
          "Deadlocks among all locks of the tree, of owners that certainly wait."},
         (int64_t)o->waits.ncertain},
        {{"clave_deadlocks_found", PROMETHEUS_COUNTER, 0, "Those that there ever were."},
         (int64_t)o->waits.total},
        {{"clave_deadlocks_possible", PROMETHEUS_GAUGE, 0,
          "Cycles that are deadlocks unless a session in them has several owners."},
         (int64_t)(o->waits.nfound - o->waits.ncertain)},
        {{"clave_observe_current", PROMETHEUS_GAUGE, 0,
          "1 while changes of the tree are seen as they happen; otherwise all locks here are old."},
         clave__observe_is_current(o)},
        {{"clave_observe_complete", PROMETHEUS_GAUGE, 0,
          "1 while there is memory for all of the tree; otherwise locks are missing here."},
         clave__observe_is_complete(o)},
        {{"clave_observe_places", PROMETHEUS_GAUGE, 0, "Nodes in queues."},
         (int64_t)o->model.nplaces},
        {{"clave_observe_left_out", PROMETHEUS_COUNTER, 0,
          "Nodes that there was no room for: what is shown may be wrong."},
         (int64_t)o->model.left_out},
        {{"clave_observe_bytes", PROMETHEUS_GAUGE, 0, "Memory of the model of all locks."},
         (int64_t)o->model.bytes},
    };
    (void)which;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        clave__prometheus_family(&p->p, &table[i].family);
        clave__prometheus_put(&p->p, NULL, table[i].value);
    }
    return true;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static const struct {
    bool (*run)(struct metrics_page *p, int which); /* true: the step is done */
    int which;                                      /* of the gauges */
} page_steps[] = {
    {metrics_step_model, 0},
    {metrics_step_locks, GAUGE_HOLDERS},
    {metrics_step_locks, GAUGE_UNHEALTHY},
    {metrics_step_locks, GAUGE_WAITERS},
    {metrics_step_locks, GAUGE_LEFT_OVER},
    {metrics_step_locks, GAUGE_OLDEST_WAIT},
    {metrics_step_locks, GAUGE_HELD_SINCE},
    {metrics_step_durations, 0},
    {metrics_step_ends, 0},
    {metrics_step_elections, GAUGE_HAS_LEADER},
    {metrics_step_elections, GAUGE_CANDIDATES},
    {metrics_step_elections, COUNT_TERMS},
    {metrics_step_elections, COUNT_VACANCY},
    {metrics_step_elections, INFO_LEADER},
};

clave_err clave__lock_metrics_piece(struct metrics_page *p, struct buf *out, bool *done)
{
    assert(p->step < sizeof page_steps / sizeof *page_steps);
    p->p.out = out;
    bool over = page_steps[p->step].run(p, page_steps[p->step].which);
    p->within = !over;
    if (over) {
        p->step++;
        p->nlabelled = 0;
        p->at_leases = false;
        clave__buf_clear(&p->at);
    }
    *done = p->step == sizeof page_steps / sizeof *page_steps;
    return p->p.err;
}
