#include "runner.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/deadline.h"
#include "checker.h"
#include "inspector.h"
#include "operator.h"

enum { LATE_US = 200, SWEEP_MS = 5 };
/* When a machine wakes, all that was on it runs at once, what should have ended too: until the
 * guardian has looked, and, for what was being born meanwhile, has looked again. The same when the
 * first of two that were stopped goes on. */
enum { REACTION_US = 15000 };

static struct world *world_of(const struct runner *w)
{
    return w->load->host->w;
}

/* ---- the guardian --------------------------------------------------------------------- */

/* Something has happened that it has to see. */
static void poke(struct runner *w)
{
    struct rand_state *before = world_use_rng(world_of(w), &w->rng);
    if (!w->guardian_dead && !w->command.asleep)
        world_set_earlier(world_of(w), &w->guardian,
                          world_of(w)->now + world_between(world_of(w), 0, LATE_US));
    world_use_rng(world_of(w), before);
}

/* Nobody is left who would look at it: it is put away when this moment is over. */
static void retire(struct runner *w)
{
    w->over = true;
    world_set(world_of(w), &w->guardian, world_of(w)->now);
}

static void stop_device(struct runner *w)
{
    world_clear(world_of(w), &w->device);
    w->watchdog.phase = WATCHDOG_OFF;
    w->device_left = 0;
}

static void put_away(struct runner *w)
{
    struct runner **at = &w->load->runners;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    world_clear(world_of(w), &w->guardian);
    stop_device(w);
    fence_fini(w);
    command_fini(&w->command);
    work_fini(&w->work);
    voice_fini(&w->voice);
    free(w);
}

static bool is_last_of_session(const struct runner *w)
{
    for (const struct runner *o = w->load->runners; o; o = o->next)
        if (o != w && o->hold.session == w->hold.session && command_is_alive(&o->command))
            return false;
    return true;
}

/* The supervisor is dead, its session is not: the lock goes on to the next at once. */
static void close_session(const struct runner *w)
{
    struct server_host *s = w->load->checker->server;
    bool reached = s->server && !s->paused && inspector_has_session(s, w->hold.session);
    if (!reached || !is_last_of_session(w) || world_chance(world_of(w), 300))
        return;
    world_log(world_of(w), w->name, "closes the session of its dead supervisor");
    operator_end_session(s, w->hold.session);
}

/* ---- the watchdog of the machine ------------------------------------------------------ */

static void feed(struct runner *w)
{
    w->feeds_late = false;
    world_set(world_of(w), &w->device, world_of(w)->now + w->watchdog.timeout_ms * MS);
}

/* A command that signals can end is dead before it fires, if the guardian runs. */
static void check_reset(const struct runner *w)
{
    bool guarded = !w->guardian_dead && !w->guardian_was_stopped && !w->device_slept;
    if (guarded && !w->command.stuck && w->watchdog.timeout_ms >= 100)
        world_break(world_of(w), "the watchdog does not fire while the hold is healthy",
                    "%s lets it reset the machine", w->name);
}

static void on_device(struct alarm *a)
{
    struct runner *w = LIST_ENTRY(a, struct runner, device);
    struct workload *l = w->load;
    check_reset(w);
    world_log(world_of(w), w->name, "is not there in time: the machine is reset");
    l->stats.resets++;
    runners_lose_power(l);
    workload_reset(l);
}

/* One that is stopped right before it feeds does so when it goes on. */
static void tend(struct runner *w, bool nothing_left, int64_t now)
{
    const struct watchdog_sight sight = {
        .deadline = w->page,
        .worthless = w->command.stuck && w->kill_policy.phase == KILL_POLICY_KILLING &&
                     w->kill_policy.cause == CAUSE_UNHEALTHY,
        .nothing_left = nothing_left,
    };
    unsigned todo = clave__watchdog_policy_step(&w->watchdog, &sight, now);
    if (todo & WATCHDOG_DISARM)
        stop_device(w);
    if (!(todo & WATCHDOG_FEED))
        return;
    w->feeds_late = !w->load->day_is_over && world_chance(world_of(w), 5);
    w->fed_late |= w->feeds_late;
    if (w->feeds_late)
        runner_stop_guardian(w, world_between(world_of(w), 0, 2 * w->watchdog.timeout_ms * MS));
    else
        feed(w);
}

/* Before the command starts. false: too late for that. */
static bool arm_device(struct runner *w, int64_t now)
{
    int64_t timeout = clave_async_client_session_timeout(w->load->host->client);
    if (!w->has_device)
        return true;
    if (!clave__watchdog_policy_begin(&w->watchdog, timeout,
                                      clave__watchdog_policy_longest(timeout), w->page, now))
        return false;
    w->kill_policy.terms.grace_lost_ms = clave__watchdog_policy_grace_lost(w->watchdog.timeout_ms);
    clave__holder_policy_watch(&w->hold_policy);
    feed(w);
    return true;
}

/* ---- the command ---------------------------------------------------------------------- */

static void report_end(struct runner *w)
{
    w->reported = true;
    if (w->actor)
        host_wake(w->load->host);
}

/* The maximum hold is the command's in full: it is asked to end at the end of it. */
static void check_max_hold(const struct runner *w)
{
    int64_t early = w->terms.until - host_clock(w->load->host);
    if (w->kill_policy.cause == CAUSE_MAX_HOLD && early > 0)
        world_break(world_of(w), "a maximum hold is not cut short",
                    "%s ends the command %lld ms before its end", w->name, (long long)early);
}

static void carry_out(struct runner *w, unsigned todo)
{
    if (todo & KILL_POLICY_TELL)
        check_max_hold(w);
    if (todo & KILL_POLICY_TELL)
        world_log(world_of(w), w->name, "ends the command, cause %d", (int)w->kill_policy.cause);
    w->load->stats.ended += (todo & KILL_POLICY_TELL) && w->kill_policy.cause != CAUSE_NONE;
    if (todo & KILL_POLICY_TERM)
        command_terminate(&w->command, 2 * (w->terms.grace_ms + 1) * MS);
    if (todo & KILL_POLICY_KILL)
        command_kill(&w->command);
    if (todo & KILL_POLICY_TELL_END)
        report_end(w);
}

static void run(struct runner *w, int64_t now)
{
    if (w->switched_off || !clave__kill_policy_run(&w->kill_policy, &w->terms, w->page, now) ||
        !arm_device(w, now)) {
        w->kill_policy.phase = KILL_POLICY_ENDED;
        world_log(world_of(w), w->name, "does not start the command: too late");
        report_end(w);
        return;
    }
    const struct workload_options *o = w->load->o;
    if (w->fence.delay)
        checker_command_starts(w->load->checker, &w->hold);
    bool long_ = world_chance(world_of(w), 150);
    command_start(&w->command, long_ ? o->sleep_us / 4 : 4 * o->hold_us);
    w->load->stats.commands++;
    if (w->has_device && !w->load->day_is_over && world_chance(world_of(w), 300))
        command_stick(&w->command, 3 * o->sleep_us);
}

static void look(struct runner *w)
{
    int64_t now = host_clock(w->load->host);
    if (w->fence.preparing && w->actor)
        return;
    if (w->kill_policy.phase == KILL_POLICY_IDLE && w->actor)
        run(w, now);
    const struct kill_policy_sight sight = {
        .deadline = w->page,
        .told_to_stop = w->told_to_stop,
        .unhealthy = w->unhealthy,
        .alone = !w->actor,
        .reaped = !w->command.runs,
        .nothing_left = !command_is_alive(&w->command),
    };
    unsigned todo = clave__kill_policy_step(&w->kill_policy, &sight, now);
    tend(w, w->kill_policy.phase == KILL_POLICY_ENDED, now);
    carry_out(w, todo);
    int64_t at = clave__kill_policy_wake_at(&w->kill_policy, w->page, now);
    at = deadline_earlier(at, clave__watchdog_policy_wake_at(&w->watchdog));
    if (at != CLAVE_NEVER)
        world_set_earlier(world_of(w), &w->guardian,
                          clock_when(&w->load->host->clock, at) +
                              world_between(world_of(w), 0, LATE_US));
    if (w->kill_policy.phase == KILL_POLICY_ENDED && !w->actor) {
        close_session(w);
        retire(w);
    }
}

static void on_guardian(struct alarm *a)
{
    struct runner *w = LIST_ENTRY(a, struct runner, guardian);
    struct world *world = world_of(w);
    if (w->over) {
        put_away(w);
    } else if (w->guardian_stopped_to > world->now) {
        world_set(world, a, w->guardian_stopped_to);
    } else {
        struct rand_state *before = world_use_rng(world, &w->rng);
        if (w->feeds_late)
            feed(w);
        look(w);
        world_use_rng(world, before);
    }
}

/* Its parent hears of it: the guardian, or, when that is dead, the supervisor. */
static void on_command_changed(void *owner)
{
    struct runner *w = owner;
    if (!w->guardian_dead)
        poke(w);
    else if (w->actor)
        host_wake(w->load->host);
    else if (!command_is_alive(&w->command))
        retire(w);
}

/* The supervisor hears of it: it has started the check, and has the socket. */
static void wake_supervisor(void *owner)
{
    struct runner *w = owner;
    if (w->actor)
        host_wake(w->load->host);
}

static void end_guardian(struct runner *w)
{
    if (w->guardian_dead)
        return;
    w->guardian_dead = true;
    world_clear(world_of(w), &w->guardian);
    command_parent_died(&w->command);
    if (w->actor)
        host_wake(w->load->host);
    else if (!command_is_alive(&w->command))
        retire(w);
}

/* ---- the supervisor ------------------------------------------------------------------- */

static void conclude(struct runner *w)
{
    struct actor *a = w->actor;
    if (command_is_alive(&w->command))
        world_break(world_of(w), "nothing of a command is left when it has ended",
                    "%s reports its end", w->name);
    world_log(world_of(w), a->name, "its command has ended%s",
              clave__holder_policy_was_cut_short(&w->hold_policy, w->kill_policy.cause)
                  ? " before its time"
                  : "");
    fence_end(w);
    a->runner = NULL;
    put_away(w);
    a->state = ACTOR_HOLDING;
    a->writes_left = 0;
    actor_decide(a);
}

/* We are a sub-reaper too: without the guardian what is left of the command is ours. */
static void sweep(struct runner *w)
{
    struct actor *a = w->actor;
    end_guardian(w);
    w->load->stats.swept += !w->swept;
    w->swept = true;
    command_kill(&w->command);
    if (command_is_alive(&w->command))
        world_set(world_of(w), &a->alarm, world_of(w)->now + SWEEP_MS * MS);
    else
        conclude(w);
}

static void publish(struct runner *w)
{
    struct grant_facts g;
    struct actor *a = w->actor;
    if (!w->hold_policy.lost && a->recipe->held(a, 0, &g)) {
        (void)clave__holder_policy_extend(&w->hold_policy, g.deadline);
        w->page = g.deadline;
    }
    int64_t at = clave__holder_policy_limit(&w->hold_policy);
    if (at != CLAVE_NEVER)
        world_set(world_of(w), &a->alarm,
                  clock_when(&a->host->clock, at) + world_between(world_of(w), 0, LATE_US));
}

/* As from when the command may start. */
static void begin_work(struct runner *w)
{
    const struct host *h = w->load->host;
    int64_t session_ms = clave_async_client_session_timeout(h->client);
    w->work_from = world_of(w)->now;
    w->voice_from = host_clock(h);
    w->work_begun = true;
    if (world_chance(world_of(w), 500))
        work_begin(&w->work, world_of(w), &w->rng, session_ms, host_clock(h));
    if (world_chance(world_of(w), 500))
        voice_begin(&w->voice, h, &w->rng, session_ms);
}

static void give_up(struct runner *w, const char *why)
{
    struct actor *a = w->actor;
    world_log(world_of(w), a->name, "%s: ends the command", why);
    w->load->stats.unhealthy++;
    w->unhealthy = true;
    clave__holder_policy_end(&w->hold_policy, host_clock(a->host));
    runner_stop(a);
}

static void look_at_voice(struct runner *w)
{
    struct actor *a = w->actor;
    if (!w->voice.host || w->unhealthy || w->hold_policy.lost)
        return;
    voice_look(&w->voice);
    int64_t at = clave__notify_policy_wake_at(&w->voice.policy);
    if (at != CLAVE_NEVER)
        world_set_earlier(world_of(w), &a->alarm, clock_when(&a->host->clock, at));
    if (w->voice.policy.phase == NOTIFY_OVER)
        give_up(w, "it breaks its word");
}

/* Its health is looked after besides, and ended as by `clave lock`. */
static void look_at_work(struct runner *w)
{
    struct actor *a = w->actor;
    const struct health_policy *p = &w->work.policy;
    int64_t now = host_clock(a->host);
    if (!w->work.w || w->unhealthy || w->hold_policy.lost)
        return;
    work_look(&w->work, now);
    int64_t at = clave__health_policy_wake_at(p);
    if (at != CLAVE_NEVER)
        world_set_earlier(world_of(w), &a->alarm, clock_when(&a->host->clock, at));
    if (p->phase == HEALTH_OVER)
        give_up(w, "its work is ill");
}

void runner_look(struct actor *a)
{
    struct runner *w = a->runner;
    a->due = false;
    if (w->reported) {
        conclude(w);
        return;
    }
    if (w->fence.preparing && !fence_look(w)) {
        conclude(w);
        return;
    }
    if (!w->fence.preparing && !w->work_begun) {
        begin_work(w);
        poke(w);
    }
    if (w->guardian_dead)
        clave__holder_policy_bereave(&w->hold_policy);
    if (w->hold_policy.phase == HOLD_POLICY_WATCHING) {
        publish(w);
        look_at_work(w);
        look_at_voice(w);
    }
    if (clave__holder_policy_is_overdue(&w->hold_policy, host_clock(a->host)))
        world_log(world_of(w), a->name, "the guardian does not answer: ends the command");
    if (w->hold_policy.phase == HOLD_POLICY_SWEEPING)
        sweep(w);
}

void runner_stop(struct actor *a)
{
    a->runner->told_to_stop = true;
    poke(a->runner);
    host_wake(a->host);
}

void runner_lose(struct actor *a)
{
    struct runner *w = a->runner;
    clave__holder_policy_lose(&w->hold_policy, host_clock(a->host));
    w->page = KILL_POLICY_NO_DEADLINE;
    runner_stop(a);
}

void runner_orphan(struct actor *a)
{
    struct runner *w = a->runner;
    a->runner = NULL;
    w->actor = NULL;
    fence_fini(w);
    if (w->guardian_dead && !command_is_alive(&w->command))
        retire(w);
    else
        poke(w);
}

/* A machine has one. */
static bool may_have_device(const struct runner *w)
{
    bool taken = false;
    for (const struct runner *o = w->next; o; o = o->next)
        taken = taken || o->has_device;
    return w->load->o->watchdogs && !taken;
}

static struct kill_policy_terms draw_terms(const struct actor *a, bool watched)
{
    int64_t timeout = clave_async_client_session_timeout(a->host->client);
    int64_t longest = a->load->o->max_hold_ms;
    return (struct kill_policy_terms){
        .on_lost = world_chance(a->host->w, 800) ? ON_LOST_TERM : ON_LOST_KILL,
        .grace_ms =
            watched ? clave__watchdog_policy_grace(timeout) : clave__kill_policy_grace(timeout, -1),
        .lead_ms =
            watched ? clave__watchdog_policy_lead(timeout) : clave__kill_policy_lead(timeout),
        /* What the lock itself allows lasts longer, so that both of them come. */
        .until = longest > 0 ? a->holds[0].granted_ms + longest / 2 : CLAVE_NEVER,
    };
}

/* A reader excludes nobody, and leases are many. */
static bool fences(const struct runner *w)
{
    const struct lock_layout *s = workload_layout(w->load, w->hold.lock);
    return w->load->o->fences && s->kind != LOCK_SEMAPHORE && !w->hold.shared;
}

void runner_begin(struct actor *a)
{
    struct workload *l = a->load;
    struct runner *w = world_alloc(sizeof *w);
    *w = (struct runner){.next = l->runners, .load = l, .actor = a, .hold = a->holds[0]};
    l->runners = w;
    a->runner = w;
    a->state = ACTOR_SUPERVISING;
    a->stubborn = false;
    snprintf(w->name, sizeof w->name, "guardian%u.%u", l->host->index % 100,
             (unsigned)a->owner % 100);
    clave__rand_seed(&w->rng, world_u64(world_of(w)));
    w->guardian.fire = on_guardian;
    w->has_device = may_have_device(w);
    w->device.fire = on_device;
    w->terms = draw_terms(a, w->has_device);
    w->command.changed = on_command_changed;
    w->command.owner = w;
    command_init(&w->command, world_of(w), &w->rng);
    clave__holder_policy_begin(&w->hold_policy, &w->terms);
    w->work.changed = w->voice.changed = wake_supervisor;
    w->work.owner = w->voice.owner = w;
    if (!fences(w))
        begin_work(w);
    else if (!fence_begin(w))
        w->fence.failed = true;
    world_log(world_of(w), a->name, "runs a command");
    publish(w);
    poke(w);
    host_wake(l->host);
}

/* ---- what happens to it --------------------------------------------------------------- */

struct runner *runner_any(struct workload *l)
{
    struct runner *w = l->runners;
    while (w && (w->guardian_dead || w->over || w->guardian_stopped_to > world_of(w)->now))
        w = w->next;
    return w;
}

void runner_stop_guardian(struct runner *w, int64_t us)
{
    world_log(world_of(w), w->name, "is stopped for %lld ms", (long long)(us / MS));
    w->guardian_stopped_to = world_of(w)->now + us;
    w->guardian_was_stopped = true;
}

void runner_kill_guardian(struct runner *w)
{
    world_log(world_of(w), w->name, "is killed");
    end_guardian(w);
}

void runner_switch_off(struct runner *w)
{
    world_log(world_of(w), w->name, "its machine is switched off");
    w->switched_off = true;
    stop_device(w);
    command_switch_off(&w->command);
}

void runners_sleep(struct workload *l)
{
    for (struct runner *w = l->runners; w; w = w->next) {
        if (!w->over)
            world_clear(world_of(w), &w->guardian);
        fence_sleep(w);
        command_sleep(&w->command);
        w->device_slept |= w->has_device;
        if (alarm_is_set(&w->device))
            w->device_left = w->device.at - world_of(w)->now + 1;
        world_clear(world_of(w), &w->device);
    }
}

void runners_wake(struct workload *l)
{
    for (struct runner *w = l->runners; w; w = w->next) {
        if (!w->command.asleep)
            continue;
        command_wake(&w->command);
        if (w->device_left > 0)
            world_set(world_of(w), &w->device, world_of(w)->now + w->device_left);
        w->device_left = 0;
        fence_wake(w);
        poke(w);
    }
}

void runners_lose_power(struct workload *l)
{
    struct runner *next;
    for (struct runner *w = l->runners; w; w = next) {
        next = w->next;
        if (w->actor)
            w->actor->runner = NULL;
        put_away(w);
    }
}

void runners_recover(struct workload *l)
{
    for (struct runner *w = l->runners; w; w = w->next) {
        w->command.stuck = false;
        if (w->guardian_stopped_to > world_of(w)->now) {
            w->guardian_stopped_to = 0;
            poke(w);
        }
    }
}

void runners_fini(struct workload *l)
{
    runners_lose_power(l);
}

bool runner_is_accountable(struct runner *w)
{
    int64_t now = world_of(w)->now;
    bool guarded = !w->guardian_dead && now >= w->guardian_stopped_to;
    bool supervised = w->actor && !w->load->host->paused;
    bool awake = command_is_awake(&w->command);
    bool in_hands = awake && !w->command.stuck && (guarded || supervised);
    if (awake && !in_hands && !w->out_of_hands) {
        w->out_of_hands = true;
        w->load->stats.out_of_hands++;
    }
    if (in_hands && !w->in_hands)
        w->in_hands_at = now;
    w->in_hands = in_hands;
    return in_hands && now > w->in_hands_at + REACTION_US;
}

bool runner_is_neglectful(struct runner *w)
{
    bool away = !w->actor || w->load->host->paused || w->command.asleep;
    int64_t kill_ms = w->terms.grace_ms + w->terms.lead_ms;
    if (!away && w->was_away) {
        w->work_from = world_of(w)->now;
        w->voice_from = host_clock(w->load->host);
    }
    w->was_away = away;
    w->work.was_late |= away;
    w->voice.was_late |= away;
    if (away)
        return false;
    return work_is_neglected(&w->work, w->work_from + w->work.policy.terms.grace_ms * MS,
                             kill_ms) ||
           voice_is_neglected(&w->voice, w->voice_from, kill_ms);
}

bool runner_is_watched(const struct runner *w)
{
    return w->has_device && !w->device_slept && command_is_awake(&w->command);
}

bool runner_is_overdue(const struct runner *w)
{
    int64_t max = w->terms.until, end = w->hold_policy.deadline;
    if (max != CLAVE_NEVER && max + w->terms.grace_ms + w->terms.lead_ms < end)
        end = max + w->terms.grace_ms + w->terms.lead_ms;
    return host_clock(w->load->host) > end;
}
