#include "http/http_user.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/deadline.h"
#include "base/rand.h"
#include "http/http_world.h"

static int64_t user_clock(const struct http_user *u)
{
    return clock_ms(&u->clock, u->w->now);
}

bool http_user_believes(const struct http_user *u)
{
    bool holds = u->state == USER_HOLDING || u->state == USER_ASKING || u->state == USER_GONE ||
                 u->state == USER_STREAMING;
    return holds && u->token != 0 && user_clock(u) < u->deadline;
}

static void user_wake_in(struct http_user *u, int64_t us)
{
    int64_t at = u->w->now + us;
    world_set(u->w, &u->alarm, at > u->paused_to ? at : u->paused_to);
}

static void user_wake_at(struct http_user *u, int64_t ms)
{
    int64_t at = clock_when(&u->clock, ms);
    world_set(u->w, &u->alarm, at > u->paused_to ? at : u->paused_to);
}

void http_user_pause(struct http_user *u, int64_t us)
{
    if (u->state == USER_GONE || u->w->now < u->paused_to)
        return;
    world_log(u->w, u->name, "is paused for %lld ms", (long long)(us / MS));
    u->paused_to = u->w->now + us;
    if (alarm_is_set(&u->alarm) && u->alarm.at < u->paused_to)
        world_set(u->w, &u->alarm, u->paused_to);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static struct http_call *user_begin(struct http_user *u, const char *method, const char *what)
{
    struct http_call *c = http_call_new(&u->sender, u->gates[u->gate], method);
    snprintf(c->target, sizeof c->target, "%s", what);
    if (u->secret[0])
        http_call_header(c, "Clave-Session", u->secret);
    return c;
}

/* The clock is read before it is sent; much may happen in between. */
static void user_send(struct http_user *u, struct http_call *c, int64_t limit_ms)
{
    struct world *w = u->w;
    c->sent_ms = user_clock(u);
    if (c->body[0])
        http_call_header(c, "Content-Type", "application/json");
    bool late = w->now < c->gate->late_to;
    http_call_send(c, late && world_chance(w, 100) ? -1 : gate_delay(c->gate));
    http_tell(u->w, u->name, c, "asks", "");
    u->call = c;
    u->asked_in = u->state;
    u->renews = u->signs = false;
    u->call_limit_ms = c->sent_ms + limit_ms;
    user_wake_at(u, u->call_limit_ms);
}

static void user_enter(struct http_user *u)
{
    u->secret[0] = '\0';
    u->sender.session = 0;
    u->token = 0;
    struct http_call *c = user_begin(u, "POST", "/v1/sessions");
    snprintf(c->body, sizeof c->body, "{\"ttl_ms\": %lld, \"name\": \"%s\"}",
             (long long)u->timeout_ms, u->name);
    user_send(u, c, u->timeout_ms);
}

static void user_renew(struct http_user *u)
{
    char target[96];
    snprintf(target, sizeof target, "/v1/sessions/%s/renew", u->session);
    user_send(u, user_begin(u, "POST", target), u->timeout_ms / 2);
    u->renews = true;
}

static void user_sign(struct http_user *u)
{
    char target[96];
    snprintf(target, sizeof target, "/v1/claims/%s/alive", u->key);
    user_send(u, user_begin(u, "POST", target), u->timeout_ms / 2);
    u->signs = true;
}

static void user_prefer(struct http_user *u, struct http_call *c, int64_t *limit_ms)
{
    int64_t kind = world_between(u->w, 0, 9);
    int64_t wait = kind < 2 ? -1
                   : kind < 3 && u->token == 0
                       ? 0
                       : world_between(u->w, 1, 1 + 2 * u->timeout_ms / 1000);
    char text[32];
    snprintf(text, sizeof text, "wait=%lld", (long long)wait);
    if (wait >= 0)
        http_call_header(c, "Prefer", text);
    *limit_ms = (wait > 0 ? wait * 1000 : 0) + u->timeout_ms;
}

static void user_claim(struct http_user *u)
{
    int64_t limit;
    char target[96];
    snprintf(target, sizeof target, "/v1/claims/%s", u->key);
    bool post = u->unsure;
    struct http_call *c = user_begin(u, post ? "POST" : "GET", post ? "/v1/claims" : target);
    if (post) {
        http_call_header(c, "Idempotency-Key", u->key);
        snprintf(c->body, sizeof c->body, "%s", http_site(u->of, u->site)->body);
    }
    if (!post || u->token != 0 || !world_chance(u->w, 200))
        user_prefer(u, c, &limit);
    else
        limit = u->timeout_ms;
    user_send(u, c, limit);
}

static void user_leave(struct http_user *u)
{
    char target[96];
    snprintf(target, sizeof target, "/v1/claims/%s", u->key);
    user_send(u, user_begin(u, "DELETE", target), u->timeout_ms);
}

static void user_rest(struct http_user *u)
{
    u->state = USER_RESTING;
    u->token = 0;
    u->until = user_clock(u) + world_wait(u->w, u->rest_us) / MS;
    user_wake_in(u, world_between(u->w, 1, 5 * MS));
}

static void user_out(struct http_user *u, const char *why)
{
    world_log(u->w, u->name, "has no session any more: %s", why);
    u->lost += u->token != 0;
    u->state = USER_OUT;
    u->token = 0;
    u->secret[0] = '\0';
    user_wake_in(u, world_wait(u->w, u->rest_us));
}

/* Instead of a claim of its session. */
static void user_stream(struct http_user *u)
{
    struct http_call *c = http_call_new(&u->sender, u->gates[u->gate], "POST");
    snprintf(c->target, sizeof c->target, "/v1/hold");
    c->session = 0;
    const char *body = http_site(u->of, u->site)->body;
    snprintf(c->body, sizeof c->body, "{\"ttl_ms\": %lld, %s", (long long)u->timeout_ms, body + 1);
    u->state = USER_STREAMING;
    u->token = 0;
    u->unread[0] = '\0';
    user_send(u, c, world_wait(u->w, u->hold_us) / MS + world_between(u->w, 1, 4) * u->timeout_ms);
}

static void user_want(struct http_user *u)
{
    char uuid[CLAVE_UUID_TEXT + 1];
    clave__rand_uuid(&u->rng, uuid);
    uuid[14] = '4'; /* of no owner */
    snprintf(u->key, sizeof u->key, "%s", uuid);
    u->site = (unsigned)world_between(u->w, 0, HTTP_SITES - 1);
    u->state = USER_ASKING;
    u->unsure = true;
    u->token = 0;
}

/* Nothing is under way: what next? */
static void user_decide(struct http_user *u)
{
    int64_t now = user_clock(u);
    if (u->state == USER_RESTING && now >= u->until && !u->leaves)
        user_want(u);
    if (u->state == USER_ASKING && u->unsure && u->token == 0 && world_chance(u->w, 250) &&
        http_site(u->of, u->site)->depend_ms == 0) {
        user_stream(u);
        return;
    }
    if (u->state == USER_HOLDING && (now >= u->until || u->leaves))
        u->state = USER_LEAVING; /* it stops before it says so */
    switch (u->state) {
    case USER_OUT:
        if (!u->leaves)
            user_enter(u);
        else
            u->state = USER_GONE;
        break;
    case USER_RESTING:
        if (u->leaves) {
            char target[64];
            snprintf(target, sizeof target, "/v1/sessions/%s", u->session);
            user_send(u, user_begin(u, "DELETE", target), 2 * u->timeout_ms);
        } else if (now >= u->renew_at) {
            user_renew(u);
        } else {
            user_wake_at(u, u->until < u->renew_at ? u->until : u->renew_at);
        }
        break;
    case USER_ASKING:
        if (u->leaves && u->token == 0)
            u->state = USER_LEAVING;
        if (u->state == USER_LEAVING)
            user_leave(u);
        else
            user_claim(u);
        break;
    case USER_HOLDING:
        if (now >= u->sign_at)
            user_sign(u);
        else if (now >= u->renew_at && world_chance(u->w, 300))
            user_claim(u); /* which asks the same of this claim alone */
        else if (now >= u->renew_at)
            user_renew(u);
        else
            user_wake_at(u, deadline_earlier(u->sign_at, deadline_earlier(u->until, u->renew_at)));
        break;
    case USER_LEAVING:
        user_leave(u);
        break;
    case USER_STREAMING: /* it has ended */
        user_rest(u);
        break;
    case USER_GONE:
        break;
    }
}

/* ---- what it hears --------------------------------------------------------------------------- */

/* A third of depend_ms after the newest sign of life; the grant is the first one. */
static void user_plan_sign(struct http_user *u, int64_t sent_ms, bool first)
{
    int64_t depend_ms = http_site(u->of, u->site)->depend_ms;
    if (first)
        u->sign_at = INT64_MAX;
    if (depend_ms == 0 || (!first && !u->signs))
        return;
    if (first)
        u->signs_left = world_chance(u->w, 500) ? (unsigned)world_between(u->w, 0, 6) : 1000;
    u->sign_at = u->signs_left > 0 ? sent_ms + depend_ms / 3 : INT64_MAX;
    u->signs_left -= u->signs_left > 0;
}

static void user_take_hold(struct http_user *u, const struct http_call *c, const char *text)
{
    int64_t token = http_json_int(text, "token"), valid = http_json_int(text, "valid_ms");
    char state[16];
    if (!http_json(text, "state", state, sizeof state) || strcmp(state, "held") != 0)
        return;
    /* A gate that did not end the claim of a silent client makes another one under its key. */
    if (token != u->token && user_clock(u) >= u->deadline)
        u->token = 0;
    bool first = u->token == 0;
    if (!first && token != u->token)
        world_break(u->w, "a claim has one token", "%s has %lld, then %lld", u->name,
                    (long long)u->token, (long long)token);
    u->token = token;
    if (first)
        u->deadline = INT64_MIN;
    http_json(text, "node", u->node, sizeof u->node);
    int64_t deadline = c->sent_ms + valid;
    u->deadline = deadline > u->deadline ? deadline : u->deadline;
    u->seen_zxid = 0;
    if (u->state == USER_ASKING) {
        u->state = USER_HOLDING;
        u->until = user_clock(u) + world_wait(u->w, u->hold_us) / MS;
    }
    u->renew_at = c->sent_ms + u->timeout_ms / 3;
    user_plan_sign(u, c->sent_ms, first);
    if (first) {
        u->grants++;
        world_log(u->w, u->name, "holds %s with token %lld for %lld ms",
                  http_site(u->of, u->site)->layout.path, (long long)token,
                  (long long)(u->deadline - user_clock(u)));
        http_world_granted(u->of, u);
    }
}

static void user_lost(struct http_user *u, const char *cause)
{
    world_log(u->w, u->name, "has lost %lld: %s", (long long)u->token, cause);
    u->lost += u->token != 0;
    user_rest(u);
}

/* Its own claim among those of the session; unknown to a gate that did not make it. */
static void user_heard_renewal(struct http_user *u, const struct http_call *c)
{
    char id[32], state[16] = "";
    u->renew_at = c->sent_ms + u->timeout_ms / 3;
    if (!http_json(c->answer, "id", id, sizeof id) || strcmp(id, u->session) != 0)
        world_break(u->w, "never silently another session", "%s renewed %s and was told of %s",
                    u->name, u->session, id);
    if (u->state != USER_HOLDING)
        return;
    const char *at = strstr(c->answer, u->key);
    if (!at) {
        u->state = USER_ASKING;
        u->unsure = true;
        return;
    }
    http_json(at, "state", state, sizeof state);
    if (strcmp(state, "held") == 0)
        user_take_hold(u, c, at);
    else
        user_lost(u, state);
}

static void user_heard_session(struct http_user *u, const struct http_call *c)
{
    if (c->status != 201)
        return;
    http_json(c->answer, "id", u->session, sizeof u->session);
    http_json(c->answer, "secret", u->secret, sizeof u->secret);
    u->sender.session = atoll(u->session);
    u->renew_at = c->sent_ms + u->timeout_ms / 3;
    world_log(u->w, u->name, "has session 0x%llx", (unsigned long long)u->sender.session);
    user_rest(u);
}

static void user_heard_claim(struct http_user *u, const struct http_call *c)
{
    u->renew_at = c->sent_ms + u->timeout_ms / 3;
    if (c->status == 200 || c->status == 201) {
        u->unsure = false;
        user_take_hold(u, c, c->answer);
    } else if (c->status == 202) {
        u->unsure = false;
    } else if (c->status == 404) {
        u->unsure = true;
    } else if (c->status == 409) {
        user_rest(u);
    } else if (c->status == 410) {
        char cause[32] = "";
        http_json(c->answer, "cause", cause, sizeof cause);
        if (strcmp(cause, "canceled") == 0 || strcmp(cause, "released") == 0)
            world_break(u->w, "a place is kept", "%s did not give its claim of %s back", u->name,
                        http_site(u->of, u->site)->layout.path);
        user_lost(u, cause);
    }
}

static void user_heard_leaving(struct http_user *u, const struct http_call *c)
{
    if (c->status == 204 || c->status == 410 || c->status == 404)
        user_rest(u);
}

static void user_heard(struct http_user *u, const struct http_call *c)
{
    if (http_call_has_no_session(c)) {
        char cause[32] = "";
        http_json(c->answer, "cause", cause, sizeof cause);
        user_out(u, cause);
    } else if (c->status == 429 || c->status >= 503 || c->status == 0) {
        u->unsure = true;
    } else if (u->renews) {
        if (c->status == 200)
            user_heard_renewal(u, c);
    } else if (u->asked_in == USER_STREAMING) {
        u->state = USER_RESTING;
    } else if (u->asked_in == USER_OUT) {
        user_heard_session(u, c);
    } else if (u->asked_in == USER_RESTING) {
        u->state = c->status == 204 ? USER_GONE : u->state;
    } else if (u->asked_in == USER_LEAVING) {
        user_heard_leaving(u, c);
    } else {
        user_heard_claim(u, c);
    }
}

/* Lines of a stream, read at once or late. An event never extends a hold: only `held` says for how
 * long, and that counts from the request. */
static void user_read_line(struct http_user *u, const char *line)
{
    const struct http_call *c = u->call;
    char event[16] = "";
    http_json(line, "event", event, sizeof event);
    if (strcmp(event, "held") == 0) {
        u->token = http_json_int(line, "token");
        u->deadline = c->sent_ms + http_json_int(line, "valid_ms");
        http_json(line, "node", u->node, sizeof u->node);
        u->seen_zxid = 0;
        u->grants++;
        world_log(u->w, u->name, "holds %s with token %lld for %lld ms, by a stream",
                  http_site(u->of, u->site)->layout.path, (long long)u->token,
                  (long long)(u->deadline - user_clock(u)));
        http_world_granted(u->of, u);
    } else if (strcmp(event, "lost") == 0) {
        u->lost += u->token != 0;
        u->token = 0;
    }
}

/* One line at a time. false: there is no whole one. */
static bool user_read(struct http_user *u)
{
    char *end = strchr(u->unread, '\n');
    if (!end)
        return false;
    *end = '\0';
    user_read_line(u, u->unread);
    memmove(u->unread, end + 1, strlen(end + 1) + 1);
    user_wake_in(u, world_between(u->w, 0, 2 * MS));
    return true;
}

static void on_user_reads(struct http_sender *s, struct http_call *c, const char *text)
{
    struct http_user *u = LIST_ENTRY(s, struct http_user, sender);
    size_t n = strlen(u->unread);
    if (c != u->call || u->state != USER_STREAMING)
        return;
    snprintf(u->unread + n, sizeof u->unread - n, "%s", text);
    world_set(u->w, &u->alarm, u->w->now > u->paused_to ? u->w->now : u->paused_to);
}

/* ---- its loop -------------------------------------------------------------------------------- */

/* It may ask another gate the next time. */
static void user_turns(struct http_user *u)
{
    if (u->ngates > 1 && world_chance(u->w, 600))
        u->gate = !u->gate;
}

static void user_gives_up(struct http_user *u)
{
    struct world *w = u->w;
    /* The gate hears nothing of it before its own bytes are not acknowledged for long. */
    int64_t half_open = world_between(w, u->timeout_ms, 2 * u->timeout_ms) * MS;
    http_call_give_up(u->call, world_chance(w, 700) ? gate_delay(u->call->gate) : half_open);
    u->call = NULL;
    u->unsure = true;
    user_turns(u);
}

static void user_run(struct http_user *u)
{
    struct http_call *c = u->call;
    int64_t pause = 0;
    if (c && u->state == USER_STREAMING && user_read(u))
        return;
    if (c && u->has_answer) {
        u->call = NULL;
        u->has_answer = false;
        bool failed = c->status == 0 || c->status == 429 || c->status >= 500;
        u->token = u->state == USER_STREAMING ? 0 : u->token; /* the connection has gone */
        if (failed)
            user_turns(u);
        pause = failed ? world_between(u->w, 1, u->timeout_ms / 8) * MS : 0;
        http_tell(u->w, u->name, c, "is answered by", c->answer);
        user_heard(u, c);
        http_call_drop(c);
    } else if (c &&
               (user_clock(u) >= u->call_limit_ms || (u->leaves && u->state == USER_STREAMING))) {
        u->token = u->state == USER_STREAMING ? 0 : u->token;
        user_gives_up(u);
    }
    if (u->call)
        user_wake_at(u, u->call_limit_ms);
    if (u->call || u->state == USER_GONE)
        return;
    if (pause > 0 && u->state != USER_OUT)
        user_wake_in(u, pause);
    else if (!alarm_is_set(&u->alarm))
        user_decide(u);
}

static void on_user(struct alarm *a)
{
    struct http_user *u = LIST_ENTRY(a, struct http_user, alarm);
    struct rand_state *before = world_use_rng(u->w, &u->rng);
    user_run(u);
    world_use_rng(u->w, before);
}

/* Read when the process runs: at once, or late. */
static void on_user_hears(struct http_sender *s, struct http_call *c)
{
    struct http_user *u = LIST_ENTRY(s, struct http_user, sender);
    if (c != u->call)
        return;
    u->has_answer = true;
    world_set(u->w, &u->alarm, u->w->now > u->paused_to ? u->w->now : u->paused_to);
}

void http_user_finish(struct http_user *u, bool vanish)
{
    u->leaves = true;
    if (vanish && u->state != USER_OUT) {
        world_log(u->w, u->name, "vanishes");
        if (u->state == USER_LEAVING || u->state == USER_STREAMING)
            u->token = 0; /* it had stopped before; the connection goes with it */
        u->state = USER_GONE;
        if (u->call)
            http_call_give_up(u->call, gate_delay(u->call->gate));
        u->call = NULL;
        world_clear(u->w, &u->alarm);
        return;
    }
    if ((!u->call || u->state == USER_STREAMING) && u->state != USER_GONE)
        user_wake_in(u, 0);
}

void http_user_start(struct http_user *u)
{
    user_wake_in(u, world_wait(u->w, u->rest_us));
}

void http_user_init(struct http_user *u, struct http_world *of, unsigned number)
{
    *u = (struct http_user){.w = of->w, .of = of};
    snprintf(u->name, sizeof u->name, "user%u", number);
    clave__rand_seed(&u->rng, world_u64(of->w));
    u->sender = (struct http_sender){.of = of,
                                     .name = u->name,
                                     .clock = &u->clock,
                                     .hears = on_user_hears,
                                     .reads = on_user_reads};
    u->alarm.fire = on_user;
}

void http_user_fini(struct http_user *u)
{
    world_clear(u->w, &u->alarm);
    if (u->call)
        http_call_give_up(u->call, -1);
    u->call = NULL;
}
