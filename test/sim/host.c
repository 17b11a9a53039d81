#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LATE_US = 200 };

static void wake(struct host *h)
{
    if (h->client && !h->paused && h->step == STEP_CLOCK)
        world_set_earlier(h->w, &h->run, h->w->now + world_between(h->w, 0, LATE_US));
}

void host_wake(struct host *h)
{
    wake(h);
}

static void on_socket_event(void *owner)
{
    wake(owner);
}

int64_t host_clock(const struct host *h)
{
    return clock_ms(&h->clock, h->w->now);
}

bool host_is_awake(const struct host *h)
{
    return h->client && !h->paused && h->step == STEP_CLOCK && !alarm_is_set(&h->run);
}

/* ---- stopping ------------------------------------------------------------------------ */

void host_pause(struct host *h, int64_t us)
{
    if (!h->client || h->paused)
        return;
    if (us > 0)
        world_log(h->w, h->name, "is paused for %lld ms", (long long)(us / MS));
    h->paused = true;
    h->stop_in = 0;
    h->stop_us = us;
    world_clear(h->w, &h->run);
    world_clear(h->w, &h->timer);
    world_set(h->w, &h->resume, h->w->now + us);
}

void host_pause_at(struct host *h, unsigned step, int64_t us)
{
    h->stop_in = step;
    h->stop_us = us;
}

static bool stops_here(struct host *h)
{
    if (h->stop_in == 0 || --h->stop_in > 0)
        return false;
    host_pause(h, h->stop_us);
    return true;
}

/* ---- reads of no consequence --------------------------------------------------------- */

static void on_looked(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    (void)res;
    (void)arg;
}

static void look_again(struct host *h)
{
    h->look_due = false;
    if (h->options.look_us > 0)
        world_set(h->w, &h->look, h->w->now + world_wait(h->w, h->options.look_us));
}

/* They prove nothing about the leader, and keep a connection busy that has nothing else to say. */
static void look(struct host *h)
{
    if (!h->look_due || h->closing)
        return;
    (void)clave_async_exists(h->client, "/", NULL, on_looked, NULL);
    look_again(h);
}

static void on_look(struct alarm *a)
{
    struct host *h = LIST_ENTRY(a, struct host, look);
    h->look_due = true;
    wake(h);
}

/* ---- the steps ----------------------------------------------------------------------- */

static void feed(struct host *h)
{
    const void *p;
    size_t n = net_peek(h->socket, &p);
    if (n > 0 && (clave_async_client_wants(h->client) & CLAVE_WANT_READ)) {
        size_t piece = world_chance(h->w, 200) ? (size_t)world_between(h->w, 1, (int64_t)n) : n;
        clave_async_client_input(h->client, h->now, p, piece);
        net_read(h->socket, piece);
        h->restless = true;
    } else if (net_is_over(h->socket)) {
        net_close(h->socket);
        h->socket = NULL;
        clave_async_client_disconnected(h->client, h->now);
        h->restless = true;
    }
}

static void look_at_socket(struct host *h)
{
    if (!h->socket)
        return;
    if (h->socket->state == NET_OPEN && !h->told_open) {
        h->told_open = true;
        clave_async_client_connected(h->client, h->now);
        h->restless = true;
        return;
    }
    feed(h);
}

static void dial(struct host *h)
{
    clave_target t = clave_async_client_target(h->client);
    h->server = (unsigned)(t.port - 1) % h->options.servers;
    scanner_reset(&h->scanner);
    h->told_open = false;
    bool reached = h->w->now >= h->reach_to || (h->reach >> h->server & 1);
    h->socket = net_dial(h->net, h->servers[h->server], reached ? &h->route : &h->nowhere,
                         (struct net_callback){on_socket_event, h});
}

static void obey(struct host *h)
{
    unsigned wants = clave_async_client_wants(h->client);
    if (wants & CLAVE_WANT_HANGUP) {
        if (h->socket)
            net_close(h->socket);
        h->socket = NULL;
        clave_async_client_disconnected(h->client, h->now);
        h->restless = true;
    } else if ((wants & CLAVE_WANT_DIAL) && !h->socket) {
        dial(h);
    }
}

static void tell_ambush(const struct host *h, const struct message_fault *a)
{
    static const char *const what[] = {
        [MESSAGE_LOSE_REQUEST] = "is lost",
        [MESSAGE_LOSE_REPLY] = "will have no reply",
        [MESSAGE_FORGET] = "is the last that arrives",
        [MESSAGE_PAUSE] = "is followed by a pause",
        [MESSAGE_KILL] = "is followed by its death",
        [MESSAGE_LATE] = "is answered late",
        [MESSAGE_LATE_UP] = "arrives late",
        [MESSAGE_BESIDE] = "arrives beside another fault",
        [MESSAGE_REFUSE] = "is refused",
    };
    world_log(h->w, h->name, "message fault: its %s %s", opcode_name(a->op), what[a->kind]);
}

/* Around writing n bytes with the message in them. */
static void spring(struct host *h, const struct message_fault *a, const void *p, size_t n)
{
    struct world *w = h->w;
    tell_ambush(h, a);
    h->triggered += a->then == NULL;
    if (a->then)
        world_set(w, a->then, w->now + a->then_us);
    if (a->kind == MESSAGE_LOSE_REQUEST)
        net_cut_after(h->socket, (size_t)world_between(w, 1, (int64_t)n));
    if (a->kind == MESSAGE_FORGET)
        net_forget(h->socket);
    if (a->kind == MESSAGE_LATE_UP)
        h->route.stall_to[NET_UP] = w->now + a->us;
    net_write(h->socket, p, n);
    if (a->kind == MESSAGE_LOSE_REPLY)
        net_lose_answer(h->socket, (size_t)(world_chance(w, 700) ? 0 : world_between(w, 0, 60)));
    if (a->kind == MESSAGE_PAUSE)
        host_pause_at(h, 1, a->us);
    if (a->kind == MESSAGE_KILL)
        host_pause_at(h, (unsigned)world_between(w, 1, 16), 0);
    if (a->kind == MESSAGE_LATE) {
        h->route.stall_to[NET_DOWN] = w->now + a->us;
        h->route.stall_to[NET_UP] = w->now + 8 * a->us;
    }
}

/* The server cannot read it: it has no such number of paths. It says so, and the connection goes
 * on. False: that number is not among these bytes. */
static bool write_unreadable(struct host *h, const uint8_t *p, size_t n)
{
    enum { COUNT_AT = 8 }; /* after the zxid */
    struct message_fault *a = &h->message_fault;
    size_t at = h->scanner.body + COUNT_AT;
    if (at >= n)
        return false;
    uint8_t *bytes = world_alloc(n);
    memcpy(bytes, p, n);
    bytes[at] = 0x7f;
    net_write(h->socket, bytes, n);
    free(bytes);
    tell_ambush(h, a);
    h->refused++;
    if (a->again == 0)
        a->kind = MESSAGE_NONE;
    else
        a->again--;
    return true;
}

static void write_some(struct host *h)
{
    const void *p;
    size_t n = clave_async_client_output(h->client, &p);
    h->wrote = 0;
    if (n == 0 || !h->socket || h->socket->state != NET_OPEN)
        return;
    if (world_chance(h->w, 100))
        n = (size_t)world_between(h->w, 1, (int64_t)n);
    struct message_fault a = h->message_fault;
    bool found = scanner_feed(&h->scanner, p, n, a.op) && a.kind != MESSAGE_NONE;
    if (found && a.kind != MESSAGE_REFUSE) {
        h->message_fault.kind = MESSAGE_NONE;
        spring(h, &a, p, n);
    } else if (!found || !write_unreadable(h, p, n)) {
        net_write(h->socket, p, n);
    }
    h->wrote = n;
    h->now = host_clock(h);
}

static void fall_asleep(struct host *h)
{
    int64_t at = clock_when(&h->clock, clave_async_client_deadline(h->client));
    h->step = STEP_CLOCK;
    if (at == INT64_MAX)
        world_clear(h->w, &h->timer);
    else
        world_set(h->w, &h->timer, at + world_between(h->w, 0, h->options.slice_us));
}

static void take_step(struct host *h)
{
    switch (h->step) {
    case STEP_CLOCK:
        h->now = host_clock(h);
        h->restless = false;
        h->step = STEP_TICK;
        break;
    case STEP_TICK:
        if (clave_async_client_deadline(h->client) <= h->now)
            clave_async_client_tick(h->client, h->now);
        h->step = STEP_LOOK;
        break;
    case STEP_LOOK:
        h->now = host_clock(h);
        h->step = STEP_FEED;
        break;
    case STEP_FEED:
        look_at_socket(h);
        h->step = STEP_OBEY;
        break;
    case STEP_OBEY:
        obey(h);
        h->step = STEP_WRITE;
        break;
    case STEP_WRITE:
        write_some(h);
        h->step = h->wrote ? STEP_SENT : STEP_ACT;
        break;
    case STEP_SENT:
        if (h->socket)
            clave_async_client_sent(h->client, h->now, h->wrote);
        h->step = STEP_OBEY;
        break;
    case STEP_ACT:
        h->now = host_clock(h);
        clave_async_client_tick(h->client, h->now);
        h->on_act(h);
        look(h);
        h->step = STEP_CLOCK;
        break;
    }
}

/* ---- life ---------------------------------------------------------------------------- */

static void end_process(struct host *h)
{
    if (h->socket)
        net_close(h->socket);
    h->socket = NULL;
    world_clear(h->w, &h->run);
    world_clear(h->w, &h->timer);
    world_clear(h->w, &h->resume);
    world_clear(h->w, &h->look);
    h->on_end(h);
    clave_async_client_free(h->client);
    h->client = NULL;
    h->paused = h->closing = false;
    h->stop_in = 0;
    h->message_fault.kind = MESSAGE_NONE;
    h->step = STEP_CLOCK;
    h->on_ended(h);
    if (h->allocator.blocks != 0)
        world_break(h->w, "no leak", "%s leaves %zu blocks of memory", h->name,
                    h->allocator.blocks);
}

static bool wants_more(const struct host *h)
{
    const void *p;
    unsigned wants = clave_async_client_wants(h->client);
    bool readable = h->socket && ((wants & CLAVE_WANT_READ) || h->socket->state == NET_ENDED) &&
                    (net_peek(h->socket, &p) > 0 || net_is_over(h->socket));
    bool writable = h->socket && h->socket->state == NET_OPEN && (wants & CLAVE_WANT_WRITE);
    return h->restless || readable || writable || (wants & CLAVE_WANT_HANGUP) ||
           ((wants & CLAVE_WANT_DIAL) && !h->socket) ||
           clave_async_client_deadline(h->client) <= host_clock(h);
}

static void pass(struct host *h)
{
    if (!h->client || h->paused)
        return;
    do {
        if (stops_here(h))
            return;
        take_step(h);
    } while (h->step != STEP_CLOCK);
    if (h->closing && clave_async_client_state(h->client) == CLAVE_STATE_CLOSED) {
        end_process(h);
        return;
    }
    if (wants_more(h))
        wake(h);
    fall_asleep(h);
}

static void pass_with_own_dice(struct host *h)
{
    struct rand_state *before = world_use_rng(h->w, &h->rng);
    pass(h);
    world_use_rng(h->w, before);
}

static void on_run(struct alarm *a)
{
    pass_with_own_dice(LIST_ENTRY(a, struct host, run));
}

static void on_timer(struct alarm *a)
{
    pass_with_own_dice(LIST_ENTRY(a, struct host, timer));
}

void host_resume(struct host *h)
{
    if (!h->paused)
        return;
    world_clear(h->w, &h->resume);
    world_log(h->w, h->name, "goes on");
    h->paused = false;
    pass(h);
}

static void on_resume(struct alarm *a)
{
    struct host *h = LIST_ENTRY(a, struct host, resume);
    if (h->stop_us > 0) {
        host_resume(h);
        return;
    }
    host_kill(h, false);
    h->on_killed(h->killed_arg, h);
}

static void on_state(clave_async_client *c, clave_state state, clave_err why, void *arg)
{
    struct host *h = arg;
    (void)c;
    world_log(h->w, h->name, "%s%s%s", clave_state_name(state), why ? " by " : "",
              why ? clave_err_name(why) : "");
    h->on_state(h, state, why);
    h->state = state;
}

static void on_log(void *arg, int level, const char *msg)
{
    const struct host *h = arg;
    (void)level;
    world_log_unhashed(h->w, h->name, msg);
}

static void format_servers(const struct host *h, char *out, size_t cap)
{
    size_t n = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < h->options.servers; i++)
        n += (size_t)snprintf(out + n, cap - n, "%ssim:%u", i ? "," : "", i + 1);
}

void host_start(struct host *h)
{
    static const clave_auth who = {.scheme = "digest", .auth = "client:secret", .len = 13};
    char servers[64];
    format_servers(h, servers, sizeof servers);
    uint64_t own = world_u64(h->w) | 1;
    clave_client_options o = {
        .size = sizeof o,
        .hosts = servers,
        .session_timeout_ms = h->options.session_timeout_ms,
        .relay_interval_ms = h->options.relay_interval_ms,
        .seed = h->options.seed ? h->options.seed : own,
        .auths = &who,
        .nauths = h->options.identified ? 1 : 0,
        .resume = h->options.resume,
        .mem = &h->allocator.mem,
        .state_cb = on_state,
        .state_arg = h,
        .log = on_log,
        .log_arg = h,
    };
    h->life++;
    h->allocator.fail_in = 0;
    h->allocator.refused = 0;
    h->state = CLAVE_STATE_LATENT;
    world_log(h->w, h->name, "starts, life %u", h->life);
    world_must(clave_async_client_new(&h->client, &o) == CLAVE_OK);
    clave_async_client_start(h->client, host_clock(h));
    h->on_start(h);
    look_again(h);
    wake(h);
}

void host_close(struct host *h)
{
    if (!h->client || h->closing)
        return;
    world_log(h->w, h->name, "closes its session");
    h->closing = true;
    clave_async_client_close(h->client, host_clock(h));
    wake(h);
}

void host_kill(struct host *h, bool machine)
{
    if (!h->client)
        return;
    world_log(h->w, h->name, machine ? "loses its power" : "is killed");
    if (machine && h->socket)
        net_forget(h->socket);
    end_process(h);
}

void host_init(struct host *h, struct world *w, struct net *n, unsigned index)
{
    memset(h, 0, sizeof *h);
    h->w = w;
    h->net = n;
    h->index = index;
    snprintf(h->name, sizeof h->name, "client%u", index);
    allocator_init(&h->allocator);
    h->nowhere.unanswered_to = INT64_MAX;
    clave__rand_seed(&h->rng, world_u64(w));
    h->run.fire = on_run;
    h->timer.fire = on_timer;
    h->resume.fire = on_resume;
    h->look.fire = on_look;
}

void host_fini(struct host *h)
{
    if (h->client)
        end_process(h);
}
