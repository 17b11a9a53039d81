#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checker.h"
#include "inspector.h"

static void decide(struct actor *a);

const char *workload_lock_path(unsigned lock)
{
    static const char *const paths[LOCKS] = {"/locks/a", "/b"};
    return paths[lock];
}

const char *workload_counter_path(unsigned lock)
{
    static const char *const paths[LOCKS] = {"/counter-a", "/counters/b"};
    return paths[lock];
}

static struct world *world_of(const struct actor *a)
{
    return a->host->w;
}

bool actor_is_valid(const struct actor *a)
{
    return a->believes && clave_mutex_valid_for(a->mutex, a->owner, host_clock(a->host), 1);
}

/* ---- what an actor does next, and when --------------------------------------------------- */

static void later(struct actor *a, int64_t mean)
{
    a->due = false;
    world_set(world_of(a), &a->alarm, world_of(a)->now + world_wait(world_of(a), mean));
}

static void on_alarm(struct alarm *alarm)
{
    struct actor *a = LIST_ENTRY(alarm, struct actor, alarm);
    a->due = true;
    host_wake(a->host);
}

static void rest(struct actor *a)
{
    a->state = a->load->ending ? ACTOR_DONE : ACTOR_RESTING;
    if (!a->load->ending)
        later(a, a->load->o->rest_us);
}

/* Now, in the callback, or in a while: both are what users do. */
static void go_on(struct actor *a, int64_t mean)
{
    if (a->load->ending)
        rest(a);
    else if (world_chance(world_of(a), 250))
        decide(a);
    else
        later(a, mean);
}

static void answered(struct actor *a, const char *what)
{
    if (a->calling)
        world_break(world_of(a), "no callback inside the call that started it", "%s: %s", a->name,
                    what);
    if (a->calls_out == 0)
        world_break(world_of(a), "each request completes exactly once", "%s: %s again", a->name,
                    what);
    else
        a->calls_out--;
}

/* A call into the library has returned; true when a callback will come. */
static bool is_started(struct actor *a, clave_err err, const char *what)
{
    a->calling = false;
    if (err == CLAVE_OK) {
        a->calls_out++;
        return true;
    }
    world_tell(world_of(a), a->name, "%s: %s", what, clave_err_name(err));
    return false;
}

static void unexpected(struct actor *a, const char *what, clave_err err)
{
    world_break(world_of(a), "each call ends as its header says", "%s: %s gives %s", a->name, what,
                clave_err_name(err));
}

/* ---- giving back ------------------------------------------------------------------------------
 */

static void on_released(clave_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct actor *a = arg;
    (void)m;
    (void)owner;
    answered(a, "release");
    if (err != CLAVE_OK && err != CLAVE_ECLOSED)
        unexpected(a, "release", err);
    bool sure = err == CLAVE_OK && clave_client_is_connected(a->host->client) &&
                clave_client_session_id(a->host->client) == a->session;
    const struct server_host *server = a->load->checker->server;
    if (sure && server->server && inspector_has_node(server, a->node, a->session))
        world_break(world_of(a), "a confirmed release has removed the node", "%s: %s stands",
                    a->name, a->node);
    rest(a);
}

static void release_lost(struct actor *a)
{
    a->lost = false;
    clave_err err = clave_mutex_release(a->mutex, a->owner, on_released, a);
    if (err != CLAVE_ELOST && err != CLAVE_EMAXHOLD)
        unexpected(a, "release of what was lost", err);
    rest(a);
}

static void release(struct actor *a)
{
    if (a->lost) {
        release_lost(a);
        return;
    }
    bool sure = world_chance(world_of(a), 400);
    world_tell(world_of(a), a->name, "releases%s", sure ? " and waits for it" : "");
    a->believes = false;
    a->calling = true;
    clave_err err =
        clave_mutex_release(a->mutex, a->owner, sure ? on_released : NULL, sure ? a : NULL);
    a->calling = false;
    if (err != CLAVE_OK)
        unexpected(a, "release", err);
    if (err == CLAVE_OK && sure) {
        a->calls_out++;
        a->state = ACTOR_LEAVING;
        return;
    }
    rest(a);
}

/* ---- guarded writes
 * ------------------------------------------------------------------------------ */

/* A request of the hold has been answered. */
static void hold_on(struct actor *a)
{
    bool given_up = a->state == ACTOR_LEAVING; /* the mutex was freed meanwhile */
    a->state = ACTOR_HOLDING;
    if (given_up || a->load->ending)
        rest(a);
    else
        go_on(a, a->load->o->hold_us / 4);
}

static void on_written(clave_client *c, const clave_result *res, void *arg)
{
    struct actor *a = arg;
    struct workload_stats *st = &a->load->stats;
    clave_err_class class_ = clave_err_classify(res->err);
    (void)c;
    answered(a, "write");
    if (res->err == CLAVE_OK) {
        world_must(res->stat != NULL);
        st->writes++;
        checker_written(a->load->checker, a, res->stat->version);
    } else if (res->err == CLAVE_ELOST) {
        st->refused++;
    } else if (class_ == CLAVE_CLASS_UNKNOWN || res->err == CLAVE_ECLOSED) {
        st->unknown++;
        checker_unknown(a->load->checker, a);
    } else if (res->err != CLAVE_EEXPIRED) {
        unexpected(a, "guarded write", res->err);
    }
    world_tell(world_of(a), a->name, "its write of %lld: %s", (long long)a->value + 1,
               clave_err_name(res->err));
    hold_on(a);
}

/* One that must fail as a whole: behind the write, a check of what is not there. */
static void on_futile(clave_client *c, const clave_result *res, void *arg)
{
    struct actor *a = arg;
    clave_err_class class_ = clave_err_classify(res->err);
    (void)c;
    answered(a, "futile write");
    if (res->err != CLAVE_ENONODE && res->err != CLAVE_ELOST && res->err != CLAVE_ECLOSED &&
        res->err != CLAVE_EEXPIRED && class_ != CLAVE_CLASS_UNKNOWN)
        unexpected(a, "futile write", res->err);
    hold_on(a);
}

static clave_err submit_futile(struct actor *a, const char *text, size_t n)
{
    const clave_op ops[] = {
        {.kind = CLAVE_OP_SET,
         .path = workload_counter_path(a->lock),
         .data = text,
         .len = n,
         .version = -1},
        {.kind = CLAVE_OP_CHECK, .path = "/nowhere", .version = -1},
    };
    return clave_mutex_multi(a->mutex, a->owner, ops, 2, on_futile, a);
}

static void write_next(struct actor *a)
{
    char text[32];
    a->has_value = false;
    a->writes_left--;
    int n = snprintf(text, sizeof text, "%lld", (long long)a->value + 1);
    a->calling = true;
    clave_err err = world_chance(world_of(a), 50)
                        ? submit_futile(a, text, (size_t)n)
                        : clave_mutex_set(a->mutex, a->owner, workload_counter_path(a->lock), text,
                                          (size_t)n, -1, on_written, a);
    if (is_started(a, err, "guarded write")) {
        a->state = ACTOR_WRITING;
        return;
    }
    if (err != CLAVE_ECLOSED && !(err == CLAVE_ELOST && a->lost))
        unexpected(a, "guarded write", err);
    a->state = ACTOR_HOLDING;
    go_on(a, a->load->o->hold_us / 4);
}

static void on_founded(clave_client *c, const clave_result *res, void *arg)
{
    struct actor *a = arg;
    (void)c;
    (void)res; /* whatever it was: the next reading tells */
    answered(a, "create");
    hold_on(a);
}

static void on_read(clave_client *c, const clave_result *res, void *arg)
{
    static const clave_create_options o = {.size = sizeof o, .flags = CLAVE_CREATE_PARENTS};
    struct actor *a = arg;
    answered(a, "read");
    if (a->state != ACTOR_READING || a->load->ending) {
        hold_on(a);
    } else if (res->err == CLAVE_ENONODE) {
        a->calling = true;
        clave_err err = clave_create(c, workload_counter_path(a->lock), "0", 1, &o, on_founded, a);
        if (!is_started(a, err, "create"))
            hold_on(a);
    } else if (res->err == CLAVE_OK) {
        char text[32];
        snprintf(text, sizeof text, "%.*s", (int)res->len, (const char *)res->data);
        a->value = atoll(text);
        a->has_value = true;
        hold_on(a);
    } else {
        hold_on(a);
    }
}

static void read_counter(struct actor *a)
{
    a->calling = true;
    clave_err err = clave_get(a->host->client, workload_counter_path(a->lock), NULL, on_read, a);
    if (is_started(a, err, "read"))
        a->state = ACTOR_READING;
    else
        release(a);
}

/* ---- holding
 * ---------------------------------------------------------------------------------------- */

/* Reentrant: once more, and that one given back at once. */
static void on_nested(clave_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct actor *a = arg;
    answered(a, "nested acquire");
    if (err != CLAVE_OK && err != CLAVE_ECLOSED && err != CLAVE_ECANCELED)
        unexpected(a, "nested acquire", err);
    if (a->state != ACTOR_LEAVING && !a->load->ending)
        (void)clave_mutex_release(m, owner, NULL, NULL);
    hold_on(a);
}

static void nest(struct actor *a)
{
    a->calling = true;
    clave_err err = clave_mutex_acquire(a->mutex, a->owner, CLAVE_TRY, on_nested, a);
    if (is_started(a, err, "nested acquire"))
        a->state = ACTOR_READING;
    else
        release(a);
}

static void act_as_holder(struct actor *a)
{
    if (a->lost)
        release(a);
    else if (a->has_value)
        write_next(a);
    else if (a->writes_left > 0)
        read_counter(a);
    else if (world_chance(world_of(a), 30))
        nest(a);
    else
        release(a);
}

static void granted(struct actor *a, clave_mutex *m)
{
    clave_grant g;
    if (!clave_mutex_grant(m, a->owner, &g)) {
        unexpected(a, "grant after acquire", CLAVE_ENOTHELD);
        return;
    }
    a->load->stats.grants++;
    a->state = ACTOR_HOLDING;
    a->believes = true;
    a->lost = a->has_value = false;
    a->token = g.token;
    a->granted_ms = host_clock(a->host);
    a->session = g.session_id;
    snprintf(a->node, sizeof a->node, "%s", g.node);
    a->writes_left = (unsigned)world_between(world_of(a), 0, a->load->o->writes);
    world_tell(world_of(a), a->name, "holds %s, token %lld, for %lld ms",
               workload_lock_path(a->lock), (long long)g.token,
               (long long)(g.deadline - host_clock(a->host)));
    checker_granted(a->load->checker, a, &g);
    if (world_chance(world_of(a), a->load->o->sleepy))
        later(a, a->load->o->sleep_us);
    else
        go_on(a, a->load->o->hold_us);
}

/* ---- acquiring
 * ---------------------------------------------------------------------------------------- */

static void on_acquired(clave_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct actor *a = arg;
    (void)owner;
    answered(a, "acquire");
    if (err == CLAVE_OK) {
        granted(a, m);
        return;
    }
    world_tell(world_of(a), a->name, "acquire: %s", clave_err_name(err));
    bool early = a->deadline != CLAVE_TRY && host_clock(a->host) < a->deadline;
    if (err == CLAVE_EBUSY && early)
        unexpected(a, "acquire before its deadline", err);
    else if (err == CLAVE_ECANCELED && !a->canceled)
        unexpected(a, "acquire that was not cancelled", err);
    else if (err != CLAVE_EBUSY && err != CLAVE_ECANCELED && err != CLAVE_ECLOSED)
        unexpected(a, "acquire", err);
    a->load->stats.busy += err == CLAVE_EBUSY;
    a->load->stats.canceled += err == CLAVE_ECANCELED;
    rest(a);
}

static void on_event(clave_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct workload *l = arg;
    struct actor *a = &l->actors[ev->owner];
    (void)m;
    switch (ev->kind) {
    case CLAVE_MUTEX_QUEUED:
        world_tell(world_of(a), a->name, "%zu before it", ev->ahead);
        checker_queued(l->checker, a);
        break;
    case CLAVE_MUTEX_NEXT:
    case CLAVE_MUTEX_HELD:
        break;
    case CLAVE_MUTEX_LOST:
        world_tell(world_of(a), a->name, "LOST %s by %s", workload_lock_path(a->lock),
                   clave_err_name(ev->why));
        if (!a->believes)
            world_break(world_of(a), "LOST comes once for a hold", "%s holds nothing", a->name);
        l->stats.losses++;
        a->believes = false;
        a->lost = true;
        if (a->state == ACTOR_HOLDING)
            go_on(a, l->o->rest_us / 4);
        break;
    }
}

static clave_mutex *mutex_for(struct actor *a)
{
    struct workload *l = a->load;
    clave_mutex_options o = {
        .size = sizeof o,
        .data = a->name,
        .len = strlen(a->name),
        .max_hold_ms = l->o->max_hold_ms,
        .strict = l->o->strict,
        .event_cb = on_event,
        .event_arg = l,
    };
    if (!l->mutexes[a->lock])
        world_must(clave_mutex_new(&l->mutexes[a->lock], l->host->client,
                                   workload_lock_path(a->lock), &o) == CLAVE_OK);
    return l->mutexes[a->lock];
}

static int64_t draw_deadline(struct actor *a)
{
    const struct workload_options *o = a->load->o;
    struct world *w = world_of(a);
    int64_t dice = world_between(w, 0, 999);
    if (dice < o->forever)
        return CLAVE_NEVER;
    if (dice < o->forever + o->timed)
        return host_clock(a->host) + 1 + world_wait(w, o->patience_ms);
    return CLAVE_TRY;
}

static void ask(struct actor *a)
{
    struct workload *l = a->load;
    a->lock = (unsigned)world_between(world_of(a), 0, (int64_t)l->o->locks - 1);
    a->mutex = mutex_for(a);
    a->deadline = draw_deadline(a);
    a->canceled = false;
    l->stats.acquires++;
    checker_asked(l->checker, a);
    world_tell(world_of(a), a->name, "asks for %s%s", workload_lock_path(a->lock),
               a->deadline == CLAVE_NEVER ? ""
               : a->deadline == CLAVE_TRY ? ", if free"
                                          : ", in time");
    a->calling = true;
    clave_err err = clave_mutex_acquire(a->mutex, a->owner, a->deadline, on_acquired, a);
    if (!is_started(a, err, "acquire")) {
        if (err != CLAVE_ECLOSED)
            unexpected(a, "acquire", err);
        rest(a);
        return;
    }
    a->state = ACTOR_WAITING;
    if (world_chance(world_of(a), l->o->impatient))
        later(a, l->o->patience_ms * MS);
}

static void cancel(struct actor *a)
{
    a->canceled = true;
    a->calling = true;
    world_tell(world_of(a), a->name, "cancels");
    clave_err err = clave_mutex_cancel(a->mutex, a->owner);
    a->calling = false;
    if (err != CLAVE_OK)
        unexpected(a, "cancel", err);
}

/* ---- others look on
 * -------------------------------------------------------------------------------------- */

static void on_participants(clave_client *c, clave_err err, const clave_participant *list, size_t n,
                            void *arg)
{
    struct workload *l = arg;
    (void)c;
    l->listings_out--;
    for (size_t i = 1; err == CLAVE_OK && i < n; i++)
        if (list[i - 1].stat.czxid >= list[i].stat.czxid)
            world_break(l->host->w, "the queue is in order", "%s stands before %s",
                        list[i - 1].node, list[i].node);
}

static void list_queue(struct actor *a)
{
    struct workload *l = a->load;
    if (clave_participants(l->host->client, workload_lock_path(a->lock), on_participants, l) ==
        CLAVE_OK)
        l->listings_out++;
}

/* Frees the mutex, with whoever waits or holds. */
static void free_mutex(struct workload *l, unsigned lock)
{
    for (unsigned i = 0; i < l->o->actors; i++) {
        struct actor *a = &l->actors[i];
        if (a->mutex != l->mutexes[lock] || a->state == ACTOR_RESTING || a->state == ACTOR_DONE)
            continue;
        a->canceled = true;
        a->believes = a->lost = false;
        if (a->state == ACTOR_WAITING || a->state == ACTOR_LEAVING)
            continue;
        if (a->calls_out > 0)
            a->state = ACTOR_LEAVING;
        else
            rest(a);
    }
    clave_mutex *m = l->mutexes[lock];
    l->mutexes[lock] = NULL;
    clave_mutex_free(m);
}

/* ---- the loop of the user's code
 * ----------------------------------------------------------------------------- */

static void act_when_rested(struct actor *a)
{
    struct workload *l = a->load;
    if (l->day_is_over) {
        a->state = ACTOR_DONE;
        return;
    }
    if (l->mutexes[a->lock] && world_chance(world_of(a), l->o->restless)) {
        world_tell(world_of(a), a->name, "frees the mutex of %s", workload_lock_path(a->lock));
        free_mutex(l, a->lock);
    }
    if (world_chance(world_of(a), 20))
        list_queue(a);
    ask(a);
}

static void decide(struct actor *a)
{
    world_clear(world_of(a), &a->alarm);
    a->due = false;
    switch (a->state) {
    case ACTOR_RESTING:
        act_when_rested(a);
        break;
    case ACTOR_WAITING:
        if (!a->canceled)
            cancel(a);
        break;
    case ACTOR_HOLDING:
        act_as_holder(a);
        break;
    case ACTOR_DONE:
    case ACTOR_READING:
    case ACTOR_WRITING:
    case ACTOR_LEAVING:
        break;
    }
}

static void on_act(struct host *h)
{
    struct workload *l = h->user;
    for (unsigned i = 0; i < l->o->actors; i++)
        if (l->actors[i].due && !h->closing)
            decide(&l->actors[i]);
}

static void on_start(struct host *h)
{
    struct workload *l = h->user;
    l->ending = false;
    for (unsigned i = 0; i < l->o->actors; i++)
        rest(&l->actors[i]);
}

/* The states follow one another as Curator's do. */
static void on_state(struct host *h, clave_state state, clave_err why)
{
    clave_state before = h->state;
    bool fine = true;
    (void)why;
    switch (state) {
    case CLAVE_STATE_CONNECTED:
        fine = before == CLAVE_STATE_LATENT;
        break;
    case CLAVE_STATE_SUSPENDED:
        fine = before == CLAVE_STATE_CONNECTED || before == CLAVE_STATE_RECONNECTED;
        break;
    case CLAVE_STATE_RECONNECTED:
        fine = before == CLAVE_STATE_SUSPENDED || before == CLAVE_STATE_LOST;
        break;
    case CLAVE_STATE_LOST:
        fine = before == CLAVE_STATE_CONNECTED || before == CLAVE_STATE_RECONNECTED ||
               before == CLAVE_STATE_SUSPENDED;
        break;
    case CLAVE_STATE_CLOSED:
        fine = before != CLAVE_STATE_CLOSED;
        break;
    case CLAVE_STATE_LATENT:
    case CLAVE_STATE_READ_ONLY:
        fine = false;
        break;
    }
    if (!fine)
        world_break(h->w, "states follow one another", "%s: %s behind %s", h->name,
                    clave_state_name(state), clave_state_name(before));
}

static void on_end(struct host *h)
{
    struct workload *l = h->user;
    l->ending = true;
    for (unsigned i = 0; i < l->o->actors; i++)
        world_clear(h->w, &l->actors[i].alarm);
    for (unsigned i = 0; i < LOCKS; i++)
        if (l->mutexes[i])
            free_mutex(l, i);
}

static void on_ended(struct host *h)
{
    struct workload *l = h->user;
    for (unsigned i = 0; i < l->o->actors; i++) {
        struct actor *a = &l->actors[i];
        if (a->calls_out > 0)
            world_break(h->w, "each request completes exactly once",
                        "%s is freed, and %u of its callbacks have not run", a->name, a->calls_out);
        a->state = ACTOR_DONE;
        a->believes = false;
        a->mutex = NULL;
    }
    if (l->listings_out > 0)
        world_break(h->w, "each request completes exactly once", "%s: a listing has no end",
                    h->name);
}

/* ---- life
 * --------------------------------------------------------------------------------------------------------
 */

void workload_init(struct workload *l, struct host *h, struct checker *c,
                   const struct workload_options *o)
{
    memset(l, 0, sizeof *l);
    l->host = h;
    l->checker = c;
    l->o = o;
    h->user = l;
    h->on_start = on_start;
    h->on_act = on_act;
    h->on_state = on_state;
    h->on_end = on_end;
    h->on_ended = on_ended;
    for (unsigned i = 0; i < o->actors; i++) {
        struct actor *a = &l->actors[i];
        a->host = h;
        a->load = l;
        a->owner = i;
        a->alarm.ring = on_alarm;
        snprintf(a->name, sizeof a->name, "client%u.%u", h->index % 100, i % 100);
    }
}

void workload_finish(struct workload *l)
{
    l->day_is_over = true;
}

bool workload_is_done(const struct workload *l)
{
    for (unsigned i = 0; i < l->o->actors; i++)
        if (l->actors[i].state != ACTOR_DONE || l->actors[i].calls_out > 0)
            return false;
    return l->listings_out == 0;
}

void workload_put_away(struct workload *l)
{
    for (unsigned i = 0; i < LOCKS; i++)
        if (l->mutexes[i])
            free_mutex(l, i);
}
