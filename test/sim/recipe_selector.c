/* recipe_selector.c - leadership as a function call. The task's thread is the actor: what the lock
 * tells it finds it at once or a while later, as a thread is woken. */
#include <stdlib.h>
#include <string.h>

#include "base/deadline.h"
#include "checker.h"
#include "recipe/election/selector_state.h"

struct selector {
    struct selector_state is;
    struct actor *actor;
    clave_async_mutex *mutex;
    bool answered; /* the acquire, and the thread has not gone on */
    clave_err err;
};

static struct world *world_of(const struct actor *a)
{
    return a->host->w;
}

bool selector_is_interrupted(const struct actor *a)
{
    return a->selector && a->selector->is.interrupted;
}

static void expect(const struct actor *a, const char *what, clave_err err, clave_err expected)
{
    if (err != expected)
        world_break(world_of(a), "each call ends as its header says", "%s: %s gives %s", a->name,
                    what, clave_err_name(err));
}

/* ---- what it is told ----------------------------------------------------------------- */

/* A thread that waits in clave_selector_pause is woken. */
static void wake_if_interrupted(struct selector *s)
{
    struct actor *a = s->actor;
    if (s->is.interrupted && a->state == ACTOR_HOLDING)
        actor_later(a, a->load->o->rest_us / 4);
}

static void must_be_interrupted(const struct selector *s, const char *why)
{
    if (s->is.phase == SELECTOR_STATE_LEADING && !s->is.interrupted)
        world_break(world_of(s->actor), "whose leadership is in doubt is interrupted",
                    "%s is not, by %s", s->actor->name, why);
}

void selector_hears(struct actor *a, clave_state state)
{
    struct selector *s = a->selector;
    if (!s)
        return;
    clave__selector_state_connection(&s->is, state);
    if (state == CLAVE_STATE_SUSPENDED && s->is.policy == CLAVE_POLICY_STANDARD)
        must_be_interrupted(s, clave_state_name(state));
    wake_if_interrupted(s);
}

static void on_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct selector *s = arg;
    struct actor *a = s->actor;
    bool cancels = clave__selector_state_event(&s->is, ev->kind);
    bool leads = s->is.phase == SELECTOR_STATE_LEADING && actor_believes(a);
    if (cancels)
        (void)clave_async_mutex_cancel(m, ev->owner);
    if (ev->kind == CLAVE_MUTEX_QUEUED)
        actor_queued(a, ev->ahead);
    if (ev->kind != CLAVE_MUTEX_LOST && ev->kind != CLAVE_MUTEX_ASKED)
        return;
    must_be_interrupted(s, ev->kind == CLAVE_MUTEX_LOST ? "LOST" : "ASKED");
    /* Before the thread has gone on nobody hears it. */
    if (leads && ev->kind == CLAVE_MUTEX_LOST)
        actor_lost(a, 0, ev->why);
    else if (leads)
        actor_heard_asked(a);
}

/* ---- life ---------------------------------------------------------------------------- */

static void free_selector(struct actor *a)
{
    struct selector *s = a->selector;
    bool answered = s->answered;
    a->selector = NULL;
    a->object = NULL;
    (void)clave__selector_state_close(&s->is);
    clave_async_mutex_free(s->mutex);
    free(s);
    if (answered)
        actor_acquired(a, CLAVE_ECLOSED);
}

static clave_err make(struct actor *a)
{
    const struct workload_options *o = a->load->o;
    struct selector *s = world_alloc(sizeof *s);
    *s = (struct selector){
        .actor = a,
        .is = {.policy = o->session_policy ? CLAVE_POLICY_SESSION : CLAVE_POLICY_STANDARD,
               .auto_requeue = a->owner % 2 == 0,
               .suspended = !clave_async_client_is_connected(a->host->client)},
    };
    clave_mutex_options mo = {
        .size = sizeof mo,
        .data = a->name,
        .len = strlen(a->name),
        .revocable = o->revocable,
        .event_cb = on_event,
        .event_arg = s,
    };
    const char *path = workload_layout(a->load, a->lock)->path;
    clave_err err = clave_async_mutex_new(&s->mutex, a->host->client, path, &mo);
    if (err != CLAVE_OK) {
        free(s);
        return err;
    }
    a->selector = s;
    expect(a, "requeue before start", clave__selector_state_requeue(&s->is), CLAVE_EINVAL);
    expect(a, "start", clave__selector_state_start(&s->is), CLAVE_OK);
    return CLAVE_OK;
}

/* ---- the task ------------------------------------------------------------------------ */

static void end_without_leading(struct actor *a)
{
    struct selector *s = a->selector;
    world_log(world_of(a), a->name, "has the lock, and does not lead");
    clave__selector_state_end(&s->is, CLAVE_OK);
    (void)clave_async_mutex_release(s->mutex, a->owner, NULL, NULL);
    actor_answered(a, "acquire");
    actor_rest(a);
}

/* Its function is called. */
static bool holds_mutex(const struct actor *a)
{
    struct grant_facts f;
    return clave__mutex_held(a->selector->mutex, a->owner, &f) &&
           deadline_lasts(f.deadline, host_clock(a->host), 0);
}

static void must_be_beyond_doubt(const struct actor *a)
{
    const struct selector *s = a->selector;
    if (a->canceled)
        world_break(world_of(a), "who has closed leads no more", "%s does", a->name);
    if (s->is.policy == CLAVE_POLICY_STANDARD && !clave_async_client_is_connected(a->host->client))
        world_break(world_of(a), "a candidate that is cut off does not lead", "%s begins to",
                    a->name);
    if (!holds_mutex(a))
        world_break(world_of(a), "a candidate that lost the lock does not begin to lead", "%s does",
                    a->name);
}

/* Its thread goes on. */
static bool go_on(struct actor *a)
{
    struct selector *s = a->selector;
    if (!s || !s->answered)
        return false;
    s->answered = false;
    if (s->err != CLAVE_OK) {
        clave__selector_state_end(&s->is, s->err);
        actor_acquired(a, s->err);
        return true;
    }
    if (clave__selector_state_elect(&s->is, holds_mutex(a))) {
        must_be_beyond_doubt(a);
        actor_acquired(a, CLAVE_OK);
    } else {
        end_without_leading(a);
    }
    return true;
}

static void on_acquired(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct actor *a = arg;
    (void)m, (void)owner;
    if (!a->selector) { /* freed */
        actor_acquired(a, err);
        return;
    }
    a->selector->answered = true;
    a->selector->err = err;
    if (a->calling || world_chance(world_of(a), 500))
        (void)go_on(a);
    else
        actor_later(a, a->load->o->rest_us / 4);
}

static clave_err acquire(struct actor *a)
{
    struct selector *s = a->selector;
    a->nholds = 1;
    a->holds[0] = (struct hold){.lock = a->lock};
    a->deadline = CLAVE_NEVER;
    if (s && s->is.closed) {
        expect(a, "requeue after the close", clave__selector_state_requeue(&s->is), CLAVE_ECLOSED);
        expect(a, "a task after the close", clave__selector_state_begin(&s->is), CLAVE_ECLOSED);
        free_selector(a);
    } else if (s && s->is.phase == SELECTOR_STATE_IDLE) {
        expect(a, "requeue", clave__selector_state_requeue(&s->is), CLAVE_OK);
    }
    clave_err err = a->selector ? CLAVE_OK : make(a);
    if (err != CLAVE_OK)
        return err;
    s = a->selector;
    a->object = s;
    expect(a, "requeue of one that is queued", clave__selector_state_requeue(&s->is), CLAVE_EBUSY);
    expect(a, "a task", clave__selector_state_begin(&s->is), CLAVE_OK);
    err = clave_async_mutex_acquire(s->mutex, a->owner, CLAVE_NEVER, on_acquired, a);
    if (err != CLAVE_OK)
        clave__selector_state_end(&s->is, err);
    return err;
}

/* Who stands leaves the queue by closing. */
static clave_err cancel(struct actor *a)
{
    struct selector *s = a->selector;
    if (!clave__selector_state_close(&s->is))
        world_break(world_of(a), "each call ends as its header says", "%s is not queued", a->name);
    clave_err err = clave_async_mutex_cancel(s->mutex, a->owner);
    return s->answered ? CLAVE_OK : err; /* its thread will see that it is closed */
}

static void on_released(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m, (void)owner;
    actor_left(arg, err);
}

/* The function has returned. */
static clave_err release(struct actor *a, bool sure)
{
    struct selector *s = a->selector;
    if (s->is.phase == SELECTOR_STATE_LEADING)
        clave__selector_state_end(&s->is, CLAVE_OK);
    clave_err err =
        clave_async_mutex_release(s->mutex, a->owner, sure ? on_released : NULL, sure ? a : NULL);
    if (sure && err == CLAVE_OK)
        actor_owe(a);
    return err;
}

/* ---- leading ------------------------------------------------------------------------- */

static bool held(const struct actor *a, unsigned nth, struct grant_facts *out)
{
    (void)nth;
    return a->selector && clave__mutex_held(a->selector->mutex, a->owner, out);
}

static bool is_valid(const struct actor *a, bool lasts)
{
    const struct selector *s = a->selector;
    bool valid = lasts && clave__selector_state_leads(&s->is);
    clave_state state = clave_async_client_state(a->host->client);
    bool cut_off = state == CLAVE_STATE_SUSPENDED || state == CLAVE_STATE_LOST;
    if (valid && cut_off && s->is.policy == CLAVE_POLICY_STANDARD)
        world_break(world_of(a), "a candidate that is cut off does not lead", "%s does", a->name);
    return valid;
}

static clave_err grant(const struct actor *a, unsigned nth, clave_async_grant **out)
{
    (void)nth;
    return clave_async_mutex_grant(a->selector->mutex, a->owner, out);
}

/* Another thread calls something. */
static bool be_called(struct actor *a)
{
    struct selector *s = a->selector;
    expect(a, "requeue of one that leads", clave__selector_state_requeue(&s->is), CLAVE_EBUSY);
    if (world_chance(world_of(a), 500))
        expect(a, "interrupt", clave__selector_state_interrupt(&s->is), CLAVE_OK);
    else if (clave__selector_state_close(&s->is))
        world_break(world_of(a), "each call ends as its header says", "%s stands", a->name);
    must_be_interrupted(s, "a call");
    return false;
}

static void discard(struct actor *a)
{
    if (a->selector)
        free_selector(a);
}

static clave_err list(struct actor *a, clave_async_participants_cb *cb, void *arg)
{
    return clave_async_participants(a->host->client, workload_layout(a->load, a->lock)->queue, cb,
                                    arg);
}

const struct recipe recipe_selector = {
    .name = "leadership by function of",
    .in_order = true,
    .is_personal = true,
    .acquire = acquire,
    .awaken = go_on,
    .cancel = cancel,
    .release = release,
    .held = held,
    .is_valid = is_valid,
    .grant = grant,
    .dally = be_called,
    .discard = discard,
    .list = list,
};
