#include "heirs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/deadline.h"
#include "inspector.h"
#include "server/server_internal.h"
#include "wire/proto.h"

static const char lock[] = "/handed/lock", side_lock[] = "/handed/side";

static void heir_later(struct heir *p, int64_t mean)
{
    p->due = false;
    world_set(p->all->w, &p->alarm, p->all->w->now + world_wait(p->all->w, mean));
}

static void heir_rest(struct heir *p)
{
    p->state = p->all->day_is_over ? HEIR_DONE : HEIR_RESTING;
    if (p->state == HEIR_RESTING)
        heir_later(p, p->all->pace_us);
}

static void heir_unexpected(struct heir *p, const char *what, clave_err err)
{
    if (err != CLAVE_ENOMEM || p->host.allocator.refused == 0)
        world_break(p->all->w, "each call ends as its header says", "%s: %s gives %s", p->host.name,
                    what, clave_err_name(err));
}

static void heir_answered(struct heir *p, const char *what)
{
    if (p->calls_out == 0)
        world_break(p->all->w, "each request completes exactly once", "%s: %s again", p->host.name,
                    what);
    else
        p->calls_out--;
}

/* The process ends at once, and begins anew after a while. */
static void heir_end(struct heir *p, struct heir_text *next, int64_t after_us)
{
    p->next = next;
    p->after_us = after_us;
    world_set(p->all->w, &p->restart, p->all->w->now + (p->host.client ? 0 : after_us));
}

/* ---- the holder ------------------------------------------------------------------------------ */

static bool heir_is_valid(const struct heir *p)
{
    return p->host.client && p->grant &&
           deadline_lasts(clave_async_grant_deadline(p->grant), host_clock(&p->host), 1);
}

static clave_async_mutex *heir_mutex(const struct heir *p)
{
    if (!p->rw)
        return p->mutex;
    return p->reads ? clave_async_rwlock_read(p->rw) : clave_async_rwlock_write(p->rw);
}

/* A token is there again only in a hold that goes on, of a process that has stopped. Readers that
 * hold together may hear of it in any order. */
static void heir_check_token(struct heir *p, int64_t token, bool resumed)
{
    struct heirs *s = p->all;
    struct heir_text *t = p->from;
    /* a hold that nobody had taken up was handed over again, with another one */
    while (t && resumed && t->token != token && t > s->texts)
        t--;
    int64_t last = p->reads ? s->last_written : s->last_token;
    if (!resumed && token <= last && heir_is_valid(p)) /* it may hear of it late */
        world_break(s->w, "tokens grow", "%s has token %lld after %lld", p->host.name,
                    (long long)token, (long long)last);
    if (!resumed) {
        s->last_token = token > s->last_token ? token : s->last_token;
        s->last_written = p->reads ? s->last_written : token;
        return;
    }
    if (!t || t->token != token)
        world_break(s->w, "only a hold that was handed over is resumed", "%s resumes token %lld",
                    p->host.name, (long long)token);
    else if (t->taken)
        world_break(s->w, "a session that was handed over is good for one process",
                    "%s resumes token %lld, as %s in its life %u did", p->host.name,
                    (long long)token, t->taken, t->life);
    else
        *t = (struct heir_text){.text = t->text,
                                .token = token,
                                .reads = t->reads,
                                .taken = p->host.name,
                                .life = p->host.life};
}

static void heir_hold(struct heir *p)
{
    struct heirs *s = p->all;
    clave_async_grant_free(p->grant);
    p->grant = NULL;
    clave_err err = s->kind == HEIRS_ELECTION
                        ? clave_async_latch_grant(p->latch, &p->grant)
                        : clave_async_mutex_grant(heir_mutex(p), 0, &p->grant);
    p->believed = err == CLAVE_OK || s->kind != HEIRS_ELECTION;
    p->state = HEIR_HOLDING;
    heir_later(p, s->pace_us);
    if (err != CLAVE_OK) {
        if (p->believed) /* a leader may have lost it before it is told */
            heir_unexpected(p, "grant after acquire", err);
        return;
    }
    int64_t token = clave_async_grant_token(p->grant);
    bool resumed = clave_async_grant_is_resumed(p->grant);
    world_log(s->w, p->host.name, "%s %s, token %lld", resumed ? "resumes" : "holds", lock,
              (long long)token);
    snprintf(s->last_node, sizeof s->last_node, "%s", clave_async_grant_node(p->grant));
    heir_check_token(p, token, resumed);
}

static void heir_forget(struct heir *p)
{
    clave_async_grant_free(p->grant);
    p->grant = NULL;
    p->believed = false;
}

static void heir_lost(struct heir *p, clave_err why)
{
    world_log(p->all->w, p->host.name, "LOST %s by %s", lock, clave_err_name(why));
    if (!p->believed)
        world_break(p->all->w, "LOST comes once for a hold", "%s holds nothing", p->host.name);
    p->believed = false;
    if (p->state == HEIR_HOLDING)
        heir_later(p, p->all->pace_us / 4);
}

static void heir_on_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    (void)m;
    if (ev->kind == CLAVE_MUTEX_LOST)
        heir_lost(arg, ev->why);
}

/* It may have led, and have lost that, before the wait for that ends. */
static void heir_on_latch_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    struct heir *p = arg;
    (void)l;
    if (ev->kind == CLAVE_LATCH_FAILED)
        heir_unexpected(p, "candidate", ev->why);
    if (ev->kind == CLAVE_LATCH_NOT_LEADER && p->believed)
        heir_lost(p, ev->why);
}

static void heir_acquired(struct heir *p, clave_err err)
{
    heir_answered(p, "acquire");
    if (err == CLAVE_OK) {
        heir_hold(p);
        return;
    }
    world_log(p->all->w, p->host.name, "acquire: %s", clave_err_name(err));
    if (err != CLAVE_EBUSY && err != CLAVE_EUNREACHABLE && err != CLAVE_ECLOSED &&
        (err != CLAVE_ECANCELED || p->state == HEIR_WAITING)) /* freed at the process's end */
        heir_unexpected(p, "acquire", err);
    if (p->state != HEIR_WAITING)
        return;
    clave_async_latch_free(p->latch);
    p->latch = NULL;
    heir_rest(p);
}

static void heir_on_acquired(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m, (void)owner;
    heir_acquired(arg, err);
}

static void heir_on_led(clave_async_latch *l, clave_err err, void *arg)
{
    (void)l;
    heir_acquired(arg, err);
}

static clave_err heir_stand(struct heir *p, int64_t deadline)
{
    struct heirs *s = p->all;
    const clave_latch_options o = {
        .size = sizeof o,
        .id = s->form || s->plain ? p->host.name : NULL,
        .max_term_ms = s->max_hold_ms,
        .revocable = true,
        .event_cb = heir_on_latch_event,
        .event_arg = p,
    };
    clave_err err = clave_async_latch_new(&p->latch, p->host.client, lock, &o);
    if (err == CLAVE_OK)
        err = clave_async_latch_start(p->latch);
    if (err == CLAVE_OK)
        err = clave_async_latch_await(p->latch, deadline, heir_on_led, p);
    if (err != CLAVE_OK) {
        clave_async_latch_free(p->latch);
        p->latch = NULL;
    }
    return err;
}

/* Now and then it asks for another lock of which it needs nothing, at the same time: what a process
 * leaves behind in a session that another one goes on in is in everybody's way. */
static void heir_on_side(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct heir *p = arg;
    (void)owner;
    heir_answered(p, "acquire of the other lock");
    p->at_side = false;
    if (err == CLAVE_OK)
        (void)clave_async_mutex_release(m, 0, NULL, NULL);
    else if (err != CLAVE_ECLOSED && err != CLAVE_ECANCELED)
        heir_unexpected(p, "acquire of the other lock", err);
}

static void heir_ask_side(struct heir *p)
{
    struct heirs *s = p->all;
    clave_err err = CLAVE_OK;
    if (p->at_side || !world_chance(s->w, 300))
        return;
    world_log(s->w, p->host.name, "asks for %s", side_lock);
    if (!p->side)
        err = clave_async_mutex_new(
            &p->side, p->host.client, side_lock,
            &(clave_mutex_options){.size = sizeof(clave_mutex_options),
                                   .data = p->name,
                                   .len = (size_t)snprintf(p->name, sizeof p->name, "%s.%u",
                                                           p->host.name, p->host.life)});
    if (err == CLAVE_OK)
        err = clave_async_mutex_acquire(p->side, 0, CLAVE_NEVER, heir_on_side, p);
    p->at_side = err == CLAVE_OK;
    p->calls_out += p->at_side;
    if (err != CLAVE_OK && err != CLAVE_ECLOSED)
        heir_unexpected(p, "acquire of the other lock", err);
}

static void heir_acquire(struct heir *p)
{
    struct heirs *s = p->all;
    char form[64];
    size_t n = clave_identity_format(&(clave_identity){.host = p->host.name}, form, sizeof form);
    const clave_mutex_options o = {
        .size = sizeof o,
        .data = s->form    ? form
                : s->plain ? p->host.name
                           : NULL,
        .len = s->form    ? n
               : s->plain ? strlen(p->host.name)
                          : 0,
        .max_hold_ms = s->max_hold_ms,
        .revocable = true,
        .event_cb = heir_on_event,
        .event_arg = p,
    };
    int64_t deadline = world_chance(s->w, 700)
                           ? CLAVE_NEVER
                           : host_clock(&p->host) + 1 + world_wait(s->w, s->timeout_us / MS);
    clave_err err = CLAVE_OK;
    if (s->kind == HEIRS_RWLOCK)
        p->reads =
            p->from && world_chance(s->w, 800) ? p->from->reads : (bool)world_chance(s->w, 500);
    heir_ask_side(p);
    world_log(s->w, p->host.name, "asks for %s%s", lock, p->reads ? " to read" : "");
    if (s->kind == HEIRS_MUTEX && !p->mutex)
        err = clave_async_mutex_new(&p->mutex, p->host.client, lock, &o);
    else if (s->kind == HEIRS_RWLOCK && !p->rw)
        err = clave_async_rwlock_new(&p->rw, p->host.client, lock, &o);
    if (err == CLAVE_OK)
        err = s->kind == HEIRS_ELECTION
                  ? heir_stand(p, deadline)
                  : clave_async_mutex_acquire(heir_mutex(p), 0, deadline, heir_on_acquired, p);
    if (err == CLAVE_OK) {
        p->calls_out++;
        p->state = HEIR_WAITING;
        heir_later(p, s->timeout_us);
        return;
    }
    if (err != CLAVE_ECLOSED)
        heir_unexpected(p, "acquire", err);
    heir_rest(p);
}

static void heir_left(struct heir *p, clave_err err)
{
    heir_answered(p, "release");
    if (err != CLAVE_OK && err != CLAVE_ECLOSED && err != CLAVE_ELOST && err != CLAVE_EMAXHOLD)
        heir_unexpected(p, "release", err);
    if (p->state == HEIR_LEAVING)
        heir_rest(p);
}

static void heir_on_left(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m, (void)owner;
    heir_left(arg, err);
}

static void heir_on_closed(clave_async_latch *l, clave_err err, void *arg)
{
    (void)l;
    heir_left(arg, err);
}

/* A candidate is closed, and the next acquire makes another. */
static clave_err heir_leave(struct heir *p, bool sure)
{
    if (p->all->kind != HEIRS_ELECTION)
        return clave_async_mutex_release(heir_mutex(p), 0, sure ? heir_on_left : NULL, p);
    clave_err err =
        clave_async_latch_close(p->latch, CLAVE_CLOSE_SILENT, sure ? heir_on_closed : NULL, p);
    if (err == CLAVE_EINVAL) /* the client was closed, and so was the candidate */
        err = CLAVE_ELOST;
    if (err == CLAVE_OK || err == CLAVE_ELOST) {
        clave_async_latch_free(p->latch); /* its callback still comes */
        p->latch = NULL;
    }
    return err;
}

static void heir_release(struct heir *p)
{
    bool sure = world_chance(p->all->w, 400), had_lost = !p->believed;
    world_log(p->all->w, p->host.name, "releases%s", had_lost ? " what it lost" : "");
    heir_forget(p);
    clave_err err = heir_leave(p, sure);
    if (err == CLAVE_ENOMEM && sure)
        err = heir_leave(p, false);
    else if (err == CLAVE_OK && sure) {
        p->calls_out++;
        p->state = HEIR_LEAVING;
        return;
    }
    if (err != CLAVE_OK && !(had_lost && (err == CLAVE_ELOST || err == CLAVE_EMAXHOLD)))
        heir_unexpected(p, "release", err);
    heir_rest(p);
}

/* ---- handing over ---------------------------------------------------------------------------- */

/* The text has one user, two, one that is too late, or none. */
static void heir_pass_on(struct heir *p, struct heir_text *t)
{
    struct heirs *s = p->all;
    int64_t way = world_between(s->w, 0, 99);
    int64_t soon = world_wait(s->w, s->timeout_us / 8);
    heir_end(p, way < 10 ? NULL : t, way < 20 ? soon + 3 * s->timeout_us : soon);
    if (way < 60)
        return;
    struct heir *other = &s->of[world_between(s->w, 0, (int64_t)s->n - 1)];
    if (other != p)
        heir_end(other, t, world_wait(s->w, s->timeout_us / 4));
}

static void heir_on_text(clave_async_client *c, clave_err err, const char *session, void *arg)
{
    struct heir *p = arg;
    struct heirs *s = p->all;
    heir_answered(p, "hand-over");
    world_log(s->w, p->host.name, "hand-over: %s", clave_err_name(err));
    if (err == CLAVE_OK) {
        struct heir_text *t = &s->texts[s->ntexts++];
        t->text = strdup(session);
        world_must(t->text != NULL);
        t->token = clave_async_grant_token(p->grant);
        t->reads = p->reads;
        if (clave_async_client_state(c) != CLAVE_STATE_CLOSED || heir_is_valid(p) || p->believed)
            world_break(s->w, "who hands over has stopped before the text is there",
                        "%s counts on token %lld", p->host.name, (long long)t->token);
        p->state = HEIR_HANDED;
        heir_pass_on(p, t);
        return;
    }
    if (err != CLAVE_ETIMEDOUT && err != CLAVE_ELOST && err != CLAVE_ENOTHELD &&
        err != CLAVE_ECLOSED)
        heir_unexpected(p, "hand-over", err);
    if (p->state != HEIR_HANDING)
        return;
    p->state = HEIR_HOLDING;
    heir_later(p, s->pace_us);
}

/* False: that cannot be. */
static bool heir_hand_over(struct heir *p)
{
    struct heirs *s = p->all;
    if (!p->believed || !p->grant || s->ntexts == HEIR_TEXTS || s->day_is_over ||
        !world_chance(s->w, s->handing))
        return false;
    int64_t within = world_between(s->w, 1, s->timeout_us / MS);
    world_log(s->w, p->host.name, "hands its session over");
    clave_err err = clave_async_client_hand_over(p->host.client, host_clock(&p->host) + within,
                                                 heir_on_text, p);
    if (err != CLAVE_OK) {
        heir_unexpected(p, "hand-over", err);
        return false;
    }
    p->calls_out++;
    p->state = HEIR_HANDING;
    return true;
}

/* ---- what next ------------------------------------------------------------------------------- */

static void heir_on_asked(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c, (void)res;
    heir_answered(arg, "request to release");
}

/* Asks the last holder, also while nobody has the text. */
static void heir_ask(struct heir *p)
{
    struct heirs *s = p->all;
    if (p->calls_out > 1U + p->at_side || !s->last_node[0] || s->kind == HEIRS_ELECTION ||
        clave_async_revoke(p->host.client, s->last_node, heir_on_asked, p) != CLAVE_OK)
        return;
    world_log(s->w, p->host.name, "asks for %s", s->last_node);
    p->calls_out++;
}

static void heir_decide(struct heir *p)
{
    struct heirs *s = p->all;
    world_clear(s->w, &p->alarm);
    p->due = false;
    switch (p->state) {
    case HEIR_RESTING:
        if (s->day_is_over)
            p->state = HEIR_DONE;
        else if (p->from && world_chance(s->w, 150))
            heir_later(p, 2 * s->timeout_us); /* it has something else to do first */
        else
            heir_acquire(p);
        break;
    case HEIR_WAITING:
        heir_ask(p);
        heir_later(p, s->timeout_us);
        break;
    case HEIR_HOLDING:
        if (!heir_hand_over(p))
            heir_release(p);
        break;
    case HEIR_DONE:
    case HEIR_LEAVING:
    case HEIR_HANDING:
    case HEIR_HANDED:
        break;
    }
}

static void heir_on_alarm(struct alarm *a)
{
    struct heir *p = LIST_ENTRY(a, struct heir, alarm);
    p->due = true;
    host_wake(&p->host);
}

/* ---- the process ----------------------------------------------------------------------------- */

static void heir_on_act(struct host *h)
{
    struct heir *p = h->user;
    if (clave_async_client_state(h->client) == CLAVE_STATE_CLOSED && !h->closing &&
        !alarm_is_set(&p->restart)) {
        heir_end(p, NULL, world_wait(p->all->w, p->all->timeout_us / 8));
    } else if (p->due && !h->closing) {
        heir_decide(p);
    }
}

/* It leaves a session to another process. */
static void heir_on_state(struct host *h, clave_state state, clave_err why)
{
    struct heir *p = h->user;
    const char *id = p->from ? strstr(p->from->text, "\nid ") : NULL;
    if (!id || state != CLAVE_STATE_CLOSED || why != CLAVE_EREPLACED)
        return;
    struct heir_left *l = &p->all->left;
    l->session = (int64_t)strtoull(id + 4, NULL, 16);
    l->until = h->w->now + p->all->timeout_us;
    snprintf(l->name, sizeof l->name, "%s", p->name);
}

/* One that resumes a session may ask for everything before it is connected. */
static void heir_on_start(struct host *h)
{
    struct heir *p = h->user;
    const clave_create_options o = {.size = sizeof o, .flags = CLAVE_CREATE_PARENTS};
    heir_rest(p);
    if (!p->from) /* no container, so that a create there is one request */
        (void)clave_async_create(h->client, side_lock, "", 0, &o, NULL, NULL);
    if (p->from && p->state == HEIR_RESTING && world_chance(h->w, 500))
        world_set(h->w, &p->alarm, h->w->now);
}

static void heir_free_recipes(struct heir *p)
{
    clave_async_mutex_free(p->mutex);
    clave_async_rwlock_free(p->rw);
    clave_async_latch_free(p->latch);
    clave_async_mutex_free(p->side);
    p->mutex = p->side = NULL;
    p->rw = NULL;
    p->latch = NULL;
}

static void heir_on_end(struct host *h)
{
    struct heir *p = h->user;
    world_clear(h->w, &p->alarm);
    p->state = HEIR_DONE;
    heir_free_recipes(p);
}

static void heir_on_ended(struct host *h)
{
    struct heir *p = h->user;
    if (p->calls_out > 0)
        world_break(h->w, "each request completes exactly once",
                    "%s is freed, and %u of its callbacks have not run", h->name, p->calls_out);
    p->calls_out = 0;
    p->at_side = false;
    p->state = HEIR_DONE;
    world_clear(h->w, &p->alarm);
    heir_forget(p);
}

/* A process that is killed may be started with the same text once more. */
static void heir_on_killed(void *arg, struct host *h)
{
    struct heirs *s = arg;
    struct heir *p = h->user;
    struct rand_state *before = world_use_rng(s->w, &s->rng);
    heir_end(p, world_chance(s->w, 300) ? p->from : NULL, world_wait(s->w, s->timeout_us / 2));
    world_use_rng(s->w, before);
}

static void heir_begin(struct heir *p)
{
    p->from = p->next;
    p->next = NULL;
    p->name[0] = '\0';
    p->host.options.resume = p->from ? p->from->text : NULL;
    if (p->from)
        world_log(p->all->w, p->host.name, "begins with the session of token %lld",
                  (long long)p->from->token);
    host_start(&p->host);
}

static void heir_on_restart(struct alarm *a)
{
    struct heir *p = LIST_ENTRY(a, struct heir, restart);
    struct rand_state *before = world_use_rng(p->all->w, &p->all->rng);
    if (p->host.client) {
        host_kill(&p->host, false);
        world_set(p->all->w, a, p->all->w->now + p->after_us);
    } else {
        heir_begin(p);
    }
    world_use_rng(p->all->w, before);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void heirs_hurt_message(struct heirs *s, struct host *h)
{
    static const int32_t ops[] = {OPCODE_HANDSHAKE, OPCODE_ANY,    OP_CREATE2, OP_DELETE,
                                  OP_GET_DATA,      OP_SET_DATA,   OP_PING,    OP_GET_CHILDREN2,
                                  OP_SET_DATA,      OP_SET_WATCHES};
    static const enum message_fault_kind kinds[] = {
        MESSAGE_LOSE_REPLY, MESSAGE_LOSE_REPLY, MESSAGE_LOSE_REQUEST, MESSAGE_FORGET,
        MESSAGE_PAUSE,      MESSAGE_KILL,       MESSAGE_LATE,
    };
    h->message_fault = (struct message_fault){
        .kind = kinds[world_between(s->w, 0, (int64_t)(sizeof kinds / sizeof *kinds) - 1)],
        .op = ops[world_between(s->w, 0, (int64_t)(sizeof ops / sizeof *ops) - 1)],
        .us = world_wait(s->w, s->timeout_us / 3)};
}

static void heirs_strike(struct heirs *s)
{
    struct host *h = &s->of[world_between(s->w, 0, (int64_t)s->n - 1)].host;
    int64_t us = world_wait(s->w, s->timeout_us / 2);
    switch (world_between(s->w, 0, 7)) {
    case 0:
        if (h->socket && h->socket->state == NET_OPEN)
            net_reset(h->socket);
        break;
    case 1:
        h->route.refuse_to = s->w->now + us;
        break;
    case 2:
        h->route.stall_to[world_chance(s->w, 500) ? NET_UP : NET_DOWN] = s->w->now + us;
        break;
    case 3:
        if (h->client && !h->paused)
            host_pause_at(h, (unsigned)world_between(s->w, 1, 60),
                          world_chance(s->w, 300) ? 0 : us);
        break;
    case 4:
        if (h->client)
            h->allocator.fail_in = (unsigned)world_between(s->w, 1, 30);
        break;
    default:
        heirs_hurt_message(s, h);
        break;
    }
}

static void heirs_on_fault(struct alarm *a)
{
    struct heirs *s = LIST_ENTRY(a, struct heirs, fault);
    struct rand_state *before = world_use_rng(s->w, &s->rng);
    heirs_strike(s);
    world_set(s->w, a, s->w->now + world_wait(s->w, s->fault_us));
    world_use_rng(s->w, before);
}

static void heir_recover(struct heir *p)
{
    struct host *h = &p->host;
    h->message_fault.kind = MESSAGE_NONE;
    h->stop_in = 0;
    h->stop_us = 1;
    h->allocator.fail_in = 0;
    h->route.refuse_to = 0;
    h->route.stall_to[NET_UP] = h->route.stall_to[NET_DOWN] = 0;
    host_resume(h);
}

/* ---- what must hold -------------------------------------------------------------------------- */

/* Whatever a process has asked for in a session that it gives up would stay, as another process
 * goes on in that. */
static void heirs_look_behind(const struct heirs *s)
{
    const struct node *n;
    const struct server_host *h = s->checker->server;
    for (size_t i = 0; h->server && (n = inspector_child(h, side_lock, i)); i++) {
        struct jbytes data = clave__node_data(n);
        if (n->stat.owner == s->left.session && data.n == (int32_t)strlen(s->left.name) &&
            memcmp(data.p, s->left.name, strlen(s->left.name)) == 0)
            world_break(s->w, "who gives a session up leaves nothing in it", "%s has left %.*s",
                        s->left.name, (int)n->path_len, clave__node_path(n));
    }
}

void heirs_look(struct heirs *s)
{
    const struct heir *one = NULL;
    if (s->n > 0 && s->w->now < s->left.until)
        heirs_look_behind(s);
    for (size_t i = 0; i < s->n; i++) {
        const struct heir *p = &s->of[i];
        if (!heir_is_valid(p))
            continue;
        if (p->state == HEIR_HANDED)
            world_break(s->w, "who hands over has stopped before the text is there",
                        "%s counts on token %lld", p->host.name,
                        (long long)clave_async_grant_token(p->grant));
        if (one && !(one->reads && p->reads) && !checker_is_beyond(s->checker))
            world_break(s->w, "no two valid holds at once", "%s and %s both hold %s",
                        one->host.name, p->host.name, lock);
        one = one && !one->reads ? one : p;
    }
}

bool heirs_are_done(const struct heirs *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->of[i].state != HEIR_DONE || s->of[i].calls_out > 0 || !s->of[i].host.client ||
            alarm_is_set(&s->of[i].restart))
            return false;
    return true;
}

/* ---- life ------------------------------------------------------------------------------------ */

void heirs_draw(struct heirs *s, struct checker *c, const struct host *like, int64_t timeout_us)
{
    s->w = c->w;
    s->checker = c;
    s->timeout_us = timeout_us;
    s->fault.fire = heirs_on_fault;
    clave__rand_seed(&s->rng, s->w->seed ^ 0x68656972);
    struct rand_state *before = world_use_rng(s->w, &s->rng);
    if (world_chance(s->w, 200))
        s->n = (size_t)world_between(s->w, 2, HEIRS);
    s->pace_us = world_between(s->w, 1 * MS, timeout_us / 8);
    s->fault_us = world_between(s->w, timeout_us / 8, timeout_us * 4);
    s->max_hold_ms = world_chance(s->w, 150) ? world_between(s->w, 5, timeout_us / MS) : 0;
    s->handing = (unsigned)world_between(s->w, 300, 1000);
    s->form = world_chance(s->w, 600);
    s->plain = world_chance(s->w, 500);
    if (world_chance(s->w, 500))
        s->kind = world_chance(s->w, 500) ? HEIRS_RWLOCK : HEIRS_ELECTION;
    for (size_t i = 0; i < s->n; i++) {
        struct heir *p = &s->of[i];
        host_init(&p->host, s->w, like->net, (unsigned)i);
        snprintf(p->host.name, sizeof p->host.name, "heir%zu", i);
        memcpy(p->host.servers, like->servers, sizeof p->host.servers);
        p->host.options = like->options;
        p->host.options.seed = 0;
        p->host.options.identified = true;
        p->host.clock = world_clock(s->w);
        p->host.route.delay_us = world_between(s->w, 20, 2 * MS);
        p->host.route.jitter_us = world_between(s->w, 0, 2 * p->host.route.delay_us);
        p->host.on_start = heir_on_start;
        p->host.on_act = heir_on_act;
        p->host.on_state = heir_on_state;
        p->host.on_end = heir_on_end;
        p->host.on_ended = heir_on_ended;
        p->host.on_killed = heir_on_killed;
        p->host.killed_arg = s;
        p->host.user = p;
        p->all = s;
        p->alarm.fire = heir_on_alarm;
        p->restart.fire = heir_on_restart;
    }
    world_use_rng(s->w, before);
}

void heirs_start(struct heirs *s)
{
    if (s->n == 0)
        return;
    struct rand_state *before = world_use_rng(s->w, &s->rng);
    for (size_t i = 0; i < s->n; i++)
        host_start(&s->of[i].host);
    world_set(s->w, &s->fault, s->w->now + world_wait(s->w, s->fault_us));
    world_use_rng(s->w, before);
}

void heirs_evening(struct heirs *s)
{
    if (s->n == 0)
        return;
    s->day_is_over = true;
    world_clear(s->w, &s->fault);
    for (size_t i = 0; i < s->n; i++)
        heir_recover(&s->of[i]);
}

void heirs_put_away(struct heirs *s)
{
    for (size_t i = 0; i < s->n; i++) {
        heir_free_recipes(&s->of[i]);
        host_wake(&s->of[i].host);
    }
}

void heirs_close(struct heirs *s)
{
    for (size_t i = 0; i < s->n; i++) {
        world_clear(s->w, &s->of[i].restart);
        host_close(&s->of[i].host);
    }
}

bool heirs_are_closed(const struct heirs *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->of[i].host.client)
            return false;
    return true;
}

void heirs_fini(struct heirs *s)
{
    for (size_t i = 0; i < s->n; i++)
        host_fini(&s->of[i].host);
    for (size_t i = 0; i < s->ntexts; i++)
        free(s->texts[i].text);
}
