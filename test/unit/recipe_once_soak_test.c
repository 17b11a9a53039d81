/* Jobs under random faults: whatever is cut, lost, frozen or restarted, a run that is known to have
 * succeeded is not repeated in its period, no begin follows the loss of a holder without the delay,
 * and in peace the job is done. A failure names its seed. */
#include "base/rand.h"
#include "clave/async/lock_delay.h"
#include "clave/async/once.h"
#include "lib/async_grants.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { CLIENTS = 4, SEEDS = 150, STEPS = 500, TIMEOUT = 6000, PERIOD = 8000, DELAY = 3000 };

enum task { OUTSIDE, QUEUEING, DELAYED, ASKING, RUNNING, REPORTING };

struct soak;
struct runner {
    struct soak *soak;
    struct mutex_owner owner;
    enum task task;
    clave_async_delay *delay;
    clave_async_once *once;
    int64_t asked_at; /* the once */
    int64_t until;    /* RUNNING */
    bool succeeds;
    bool over; /* what was waited for has been answered, with: */
    clave_err err;
};

struct soak {
    struct memnet *p;
    struct rand_state rng;
    uint64_t seed;
    bool at_most_once;
    struct runner all[CLIENTS];
    int64_t counted_at; /* when the newest run that counts was asked for */
    int marked;         /* who began last and has not ended; -1: none */
    int64_t valid_at;   /* when that one was seen to hold */
    bool killed;        /* its session was ended, which it may not know yet */
    unsigned runs, refusals, lost;
};

static uint64_t roll(struct soak *k, uint64_t n)
{
    return clave__rand_below(&k->rng, n);
}

static void check(const struct soak *k, bool fine, const char *what)
{
    if (!fine)
        fail_msg("seed %llu at %lld ms: %s", (unsigned long long)k->seed, (long long)k->p->now,
                 what);
}

/* ---- a runner's life ------------------------------------------------------------------------- */

static void answer(struct runner *r, clave_err err)
{
    check(r->soak, !r->over, "a callback came twice");
    r->over = true;
    r->err = err;
}

static void on_delay(clave_async_delay *d, clave_err err, void *arg)
{
    (void)d;
    answer(arg, err);
}

static void on_once(clave_async_once *o, clave_err err, const clave_once_record *former, void *arg)
{
    (void)o;
    (void)former;
    answer(arg, err);
}

/* Out of it: the lock goes, orderly or because it is gone. */
static void leave(struct runner *r)
{
    clave_async_once_free(r->once);
    clave_async_delay_free(r->delay);
    r->once = NULL;
    r->delay = NULL;
    r->task = OUTSIDE;
    (void)clave_async_mutex_cancel(r->owner.m, 0);
    (void)clave_async_mutex_release(r->owner.m, 0, NULL, NULL);
}

static bool enter(struct runner *r, enum task task, clave_err err)
{
    r->task = task;
    r->over = false;
    check(r->soak, err == CLAVE_OK, "a call that has to be accepted");
    return true;
}

static void begin_delay(struct runner *r)
{
    const clave_delay_options o = {.size = sizeof o, .path = "/job-held", .delay_ms = DELAY};
    enter(r, DELAYED,
          delay_begin_held(&r->delay, of_mutex(r->owner.m, r->owner.owner), &o, on_delay, r));
}

static void begin_once(struct runner *r)
{
    const clave_once_options o = {.size = sizeof o,
                                  .path = "/job-once/k",
                                  .period_ms = PERIOD,
                                  .at_most_once = r->soak->at_most_once};
    r->asked_at = r->soak->p->now;
    enter(r, ASKING,
          once_begin_held(&r->once, of_mutex(r->owner.m, r->owner.owner), &o, on_once, r));
}

/* The mark stands from here on. */
static void delayed(struct runner *r)
{
    struct soak *k = r->soak;
    int self = (int)(r - k->all);
    if (k->marked >= 0 && k->marked != self) {
        k->lost++;
        check(k, k->p->now - k->valid_at >= DELAY, "a begin without the delay");
    }
    k->marked = self;
    k->valid_at = k->p->now;
    k->killed = false;
    begin_once(r);
}

static void asked(struct runner *r)
{
    struct soak *k = r->soak;
    if (r->err == CLAVE_EDONE) {
        k->refusals++;
        (void)clave_async_delay_end(r->delay, NULL, NULL);
        k->marked = -1;
        leave(r);
        return;
    }
    check(k, k->p->now - k->counted_at >= PERIOD, "run again within the period");
    if (k->at_most_once)
        k->counted_at = r->asked_at;
    k->runs++;
    r->succeeds = roll(k, 3) > 0;
    r->until = k->p->now + (int64_t)roll(k, 4000);
    r->task = RUNNING;
}

static void reported(struct runner *r)
{
    struct soak *k = r->soak;
    if (r->err == CLAVE_OK && r->succeeds)
        k->counted_at = r->asked_at;
    (void)clave_async_delay_end(r->delay, NULL, NULL);
    k->marked = -1;
    leave(r);
}

static void report(struct runner *r)
{
    if (r->soak->p->now >= r->until)
        enter(r, REPORTING, clave_async_once_end(r->once, r->succeeds, on_once, r));
}

/* An error: of these only what faults lead to. */
static void fail_over(struct runner *r)
{
    check(r->soak, r->err == CLAVE_ELOST || clave_err_classify(r->err) == CLAVE_CLASS_UNKNOWN,
          clave_err_name(r->err));
    leave(r);
}

static void step(struct runner *r)
{
    bool answered = r->over && (r->err == CLAVE_OK || r->err == CLAVE_EDONE);
    if (r->soak->p->clients[r->owner.client].frozen)
        return;
    if (r->task != OUTSIDE && r->task != QUEUEING && r->over && !answered)
        fail_over(r);
    else if (r->task == OUTSIDE && owner_begin_acquire(&r->owner, OWNER_FOREVER) == CLAVE_OK)
        r->task = QUEUEING;
    else if (r->task == QUEUEING && owner_holds(&r->owner))
        begin_delay(r);
    else if (r->task == RUNNING)
        owner_holds(&r->owner) ? report(r) : leave(r);
    else if (r->over && r->task == DELAYED)
        owner_holds(&r->owner) ? delayed(r) : leave(r);
    else if (r->over && r->task == ASKING)
        asked(r);
    else if (r->over && r->task == REPORTING)
        reported(r);
}

static void look_around(struct soak *k)
{
    for (int i = 0; i < CLIENTS; i++) {
        step(&k->all[i]);
        if (k->marked == i && !k->killed && mutex_valid_for(k->all[i].owner.m, 0, k->p->now, 0))
            k->valid_at = k->p->now;
    }
}

/* ---- the soak -------------------------------------------------------------------------------- */

static void do_harm(struct soak *k)
{
    static const int ops[] = {OP_GET_DATA, OP_MULTI, OP_MULTI, OP_MULTI, OP_CREATE2};
    struct memnet *p = k->p;
    size_t c = roll(k, CLIENTS);
    switch (roll(k, 7)) {
    case 0:
        memnet_cut(p, c);
        break;
    case 1:
        memnet_refuse(p, c, roll(k, 2) == 0);
        break;
    case 2:
        memnet_freeze(p, c, roll(k, 2) == 0);
        break;
    case 3:
        c = k->marked >= 0 ? (size_t)k->marked : c;
        k->killed |= k->marked >= 0;
        memnet_kill_session(p, c);
        break;
    case 4:
        memnet_stop_server(p);
        memnet_advance(p, (int64_t)roll(k, 500));
        memnet_start_server(p);
        break;
    default:
        if (p->nrules == MEMNET_RULES)
            memnet_clear(p);
        memnet_rule(p, (struct memnet_rule){c, roll(k, 2) ? MEMNET_REQUEST : MEMNET_REPLY,
                                            ops[roll(k, sizeof ops / sizeof *ops)],
                                            roll(k, 2) ? MEMNET_LOSE : MEMNET_PASS_CUT,
                                            (unsigned)roll(k, 3)});
    }
}

static void begin(struct soak *k, uint64_t seed)
{
    *k = (struct soak){.seed = seed, .at_most_once = seed % 2, .marked = -1};
    k->counted_at = -PERIOD;
    clave__rand_seed(&k->rng, seed);
    k->p = memnet_new(&(struct memnet_options){
        .clients = CLIENTS, .timeout_ms = TIMEOUT, .ensemble = seed % 3 == 0});
    for (size_t i = 0; i < CLIENTS; i++) {
        k->all[i].soak = k;
        assert_int_equal(owner_open(&k->all[i].owner, k->p, i, "/job", NULL), CLAVE_OK);
    }
}

/* Peace: the job goes on to be done. */
static void end(struct soak *k)
{
    CLOSED_BY(memnet_freed) struct memnet *p = k->p;
    memnet_clear(p);
    for (size_t c = 0; c < CLIENTS; c++) {
        memnet_refuse(p, c, false);
        memnet_freeze(p, c, false);
    }
    unsigned before = k->runs;
    for (int i = 0; i < 400; i++) {
        memnet_advance(p, 100);
        look_around(k);
    }
    check(k, k->runs >= before + 2, "the job is not done any more");
    for (size_t i = 0; i < CLIENTS; i++) {
        leave(&k->all[i]);
        owner_close(&k->all[i].owner);
    }
}

TEST(random_faults_break_nothing)
{
    unsigned runs = 0, refusals = 0, lost = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct soak k;
        begin(&k, seed);
        for (int i = 0; i < STEPS; i++) {
            if (roll(&k, 15) == 0)
                do_harm(&k);
            look_around(&k);
            memnet_advance(k.p, (int64_t)roll(&k, 400));
        }
        end(&k);
        runs += k.runs;
        refusals += k.refusals;
        lost += k.lost;
    }
    assert_true(runs > 5 * SEEDS && refusals > SEEDS && lost > SEEDS);
}
