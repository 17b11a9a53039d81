/* uv_client.c - a clave_async_client on a libuv loop (clave/uv.h): looks up a host, dials it, and
 * connects a channel (channel.h) with the engine.
 *
 *   IDLE ── dial ──▶ LOOKUP ──────────▶ the channel is not CLOSED
 *    ▲ └───────────────────────────────────▲      │
 *    │                 │ given up               │ closed
 *    └─────────────────┴────────────────────────┘
 *
 * After every call into the engine, uv_client_drive() does what the engine wants until nothing is
 * left that can be done now. If the engine's callbacks call _flush or _stop, these only leave a
 * note, because the uv_client_drive() of the outer call follows. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/client_for_recipes.h"
#include "runtime/channel.h"
#include "runtime/client/resolve.h"
#include "runtime/client/uv_client.h"
#include "runtime/tls/tls_filter.h"

/* INPUT_SIZE: each read allocates its own buffer, so an idle session has none. READS_A_TURN: after
 * this many full reads the loop gets its turn, because input may cause much work, and the other
 * handles have work too. */
enum { INPUT_SIZE = 16384, SPARE_INPUT = 256, READS_A_TURN = 2 };

struct clave_uv {
    uv_loop_t *loop;
    clave_async_client *client;
    const struct clave_mem *mem;
    struct channel channel; /* to the engine, SECURING is a part of dialling */
    clave_tls *tls;         /* NULL: the hosts are without TLS */
    uv_timer_t timer;
    struct sleeper sleeper;
    struct wakeup *own_wakeup; /* NULL: uses the loop's */
    int64_t armed_at;          /* what the timer is set to; CLAVE_NEVER: it is not set */
    struct resolve *resolve;   /* for LOOKUP; otherwise NULL */
    unsigned addresses;        /* how many addresses the host being dialled has */
    clave_err refusal;         /* the latest permanent fault, and why */
    char refused[512];
    bool busy; /* inside the engine or uv_client_drive() */
    bool stopping;
    unsigned handles; /* handles that are open or closing, including the timer and our own wakeup */
    void (*closed)(void *arg);
    void *closed_arg;
    void (*settled)(void *arg);
    void *settled_arg;
    char spare[SPARE_INPUT]; /* used for reading if memory is short */
};

static void uv_client_drive(clave_uv *u);
static void uv_client_on_timer(uv_timer_t *t);

static clave_uv *uv_client_of(struct channel *ch)
{
    return LIST_ENTRY(ch, clave_uv, channel);
}

/* ---- closing -------------------------------------------------------------------------------- */

/* Called when a handle has closed; the last one frees everything. */
static void uv_client_on_handle_closed(void *user)
{
    clave_uv *u = user;
    assert(u->handles > 0);
    if (--u->handles > 0)
        return;
    void (*closed)(void *arg) = u->closed;
    void *arg = u->closed_arg;
    clave_tls_free(u->tls);
    clave__mem_free(u->mem, u->own_wakeup);
    clave__mem_free(u->mem, u);
    closed(arg);
}

static void uv_client_on_timer_closed(uv_handle_t *h)
{
    uv_client_on_handle_closed(h->data);
}

static void uv_client_disconnected(clave_uv *u)
{
    bool was = u->busy;
    u->busy = true;
    clave_async_client_disconnected(u->client, clave_now());
    u->busy = was;
}

static void uv_client_on_closed(struct channel *ch)
{
    clave_uv *u = uv_client_of(ch);
    if (uv_is_closing((const uv_handle_t *)&u->timer)) {
        uv_client_on_handle_closed(u);
        return;
    }
    assert(u->handles > 0);
    u->handles--;
    if (!u->stopping)
        uv_client_disconnected(u);
    uv_client_drive(u);
}

/* ---- faults --------------------------------------------------------------------------------- */

/* Reports a fault. Call it before _disconnected, which keeps a text that is more specific than its
 * own. The fault is logged, and the log's callback may call _stop. */
static void uv_client_tell_fault(clave_uv *u, const char *why)
{
    clave_target t = clave_async_client_target(u->client);
    const char *what =
        clave_async_client_is_connected(u->client) ? "lost the connection to" : "cannot connect to";
    bool was = u->busy;
    u->busy = true;
    if (t.port == 0)
        clave__client_fault(u->client, "%s unix:%s: %s", what, t.host, why);
    else
        clave__client_fault(u->client, "%s %s:%u: %s", what, t.host, (unsigned)t.port, why);
    u->busy = was;
}

/* Notes that the fault reported last will occur again. */
static void uv_client_note_refusal(clave_uv *u, clave_err err)
{
    u->refusal = err;
    snprintf(u->refused, sizeof u->refused, "%s", clave_async_client_errmsg(u->client));
    clave__client_refused(u->client, u->addresses);
}

static void uv_client_on_closing(struct channel *ch, enum channel_state was, int why)
{
    if (why != 0 && was == CHANNEL_CONNECTING)
        uv_client_tell_fault(uv_client_of(ch), uv_strerror(why));
    else if (why != 0 && was == CHANNEL_SECURING)
        uv_client_tell_fault(
            uv_client_of(ch),
            "it closed the connection in the TLS handshake: is this the TLS port?");
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* Ends reading for now; the timer comes before the loop reads again. */
static uv_buf_t uv_client_read_later(clave_uv *u)
{
    u->armed_at = 0;
    uv_timer_start(&u->timer, uv_client_on_timer, 0, 0);
    return uv_buf_init(NULL, 0);
}

static uv_buf_t uv_client_buffer(struct channel *ch)
{
    clave_uv *u = uv_client_of(ch);
    if (ch->full_reads >= READS_A_TURN && !u->stopping)
        return uv_client_read_later(u);
    char *p = clave__mem_alloc(u->mem, INPUT_SIZE);
    return p ? uv_buf_init(p, INPUT_SIZE) : uv_buf_init(u->spare, sizeof u->spare);
}

static void uv_client_release(struct channel *ch, void *p)
{
    clave_uv *u = uv_client_of(ch);
    if (p != u->spare)
        clave__mem_free(u->mem, p);
}

static bool uv_client_input(struct channel *ch, const void *p, size_t n)
{
    clave_uv *u = uv_client_of(ch);
    if (u->stopping)
        return true;
    assert(!u->busy);
    u->busy = true;
    clave_async_client_input(u->client, clave_now(), p, n);
    u->busy = false;
    return true;
}

static size_t uv_client_output(struct channel *ch, const void **p)
{
    return clave_async_client_output(uv_client_of(ch)->client, p);
}

static void uv_client_sent(struct channel *ch, size_t n)
{
    clave_async_client_sent(uv_client_of(ch)->client, clave_now(), n);
}

static bool uv_client_is_done(struct channel *ch)
{
    return clave_async_client_wants(uv_client_of(ch)->client) & CLAVE_WANT_HANGUP;
}

static void uv_client_progressed(struct channel *ch)
{
    uv_client_drive(uv_client_of(ch));
}

static bool uv_client_opened(struct channel *ch, struct tls *t)
{
    clave_uv *u = uv_client_of(ch);
    bool was = u->busy;
    (void)t;
    u->busy = true;
    clave_async_client_connected(u->client, clave_now());
    u->busy = was;
    return true;
}

/* ---- TLS ------------------------------------------------------------------------------------ */

static bool uv_client_tls_failed(struct channel *ch, struct tls *t)
{
    clave_uv *u = uv_client_of(ch);
    char why[600];
    clave__tls_fault(t, why, sizeof why);
    uv_client_tell_fault(u, why);
    if (clave__tls_is_final(t))
        uv_client_note_refusal(u, CLAVE_ETLS);
    return false;
}

/* Uses renewed certificate files; if they are unusable, the old ones remain in use. */
static void uv_client_add_tls(clave_uv *u)
{
    assert(u->tls && u->channel.state == CHANNEL_SECURING);
    static const struct tls_events events = {uv_client_opened, uv_client_tls_failed};
    char text[400] = "";
    const struct fault f = {text, sizeof text};
    if (clave__tls_context_refresh(u->tls, &f) != CLAVE_OK)
        clave__log(clave__client_log(u->client), CLAVE_LOG_WARN, "%s", text);
    if (clave__tls_add_filter(&u->channel, u->tls, clave_async_client_target(u->client).host,
                              &events))
        return;
    uv_client_tell_fault(u, "out of memory for TLS");
    clave__channel_close(&u->channel, 0);
}

static void uv_client_connected(struct channel *ch)
{
    clave_uv *u = uv_client_of(ch);
    u->busy = true;
    if (u->tls) {
        clave_async_client_securing(u->client, clave_now());
        uv_client_add_tls(u);
    } else {
        clave__channel_opened(ch);
        uv_client_opened(ch, NULL);
    }
    u->busy = false;
    uv_client_drive(u);
}

/* ---- dialling ------------------------------------------------------------------------------- */

static const struct channel_ops uv_client_channel = {
    .buffer = uv_client_buffer,
    .release = uv_client_release,
    .input = uv_client_input,
    .output = uv_client_output,
    .sent = uv_client_sent,
    .is_done = uv_client_is_done,
    .connected = uv_client_connected,
    .received = uv_client_progressed,
    .drained = uv_client_progressed,
    .closing = uv_client_on_closing,
    .closed = uv_client_on_closed,
};

/* The channel has begun to dial, or (`err`) has no socket: then nothing else reports that the dial
 * has failed. */
static void uv_client_dialled(clave_uv *u, int err)
{
    if (err == 0)
        u->handles++;
    else
        uv_client_disconnected(u);
}

static void uv_client_on_resolve(void *arg, const struct resolve_result *res)
{
    clave_uv *u = arg;
    assert(u->resolve && u->channel.state == CHANNEL_CLOSED);
    int err = UV_EAI_NONAME;
    u->resolve = NULL;
    u->busy = true;
    u->addresses = res->addresses;
    if (res->fault[0])
        clave__client_fault(u->client, "%s", res->fault);
    if (res->for_good)
        uv_client_note_refusal(u, CLAVE_ELOCAL);
    if (!res->fault[0])
        err = res->fd >= 0 ? clave__channel_adopt(&u->channel, u->loop, res->fd, false)
                           : clave__channel_connect(&u->channel, u->loop, res->addr);
    uv_client_dialled(u, err);
    u->busy = false;
    if (u->channel.state == CHANNEL_SECURING)
        uv_client_connected(&u->channel);
    else
        uv_client_drive(u);
}

/* A process limit may be temporary, unlike a sandbox that forbids threads. */
static void uv_client_look_up(clave_uv *u, const clave_target *t)
{
    int err = clave__resolve_start(&u->resolve, u->loop, t, uv_client_on_resolve, u);
    if (err == 0)
        return;
    clave__client_fault(u->client, "cannot start a thread to look up '%s': %s", t->host,
                        strerror(err));
    if (err != EAGAIN && err != ENOMEM)
        uv_client_note_refusal(u, CLAVE_ETHREAD);
}

static void uv_client_dial(clave_uv *u)
{
    assert(u->busy && !u->resolve && u->channel.state == CHANNEL_CLOSED);
    clave_target t = clave_async_client_target(u->client);
    struct sockaddr_storage addr;
    u->addresses = 1;
    if (clave__resolve_literal(&t, &addr)) {
        const struct sockaddr *literal = (const struct sockaddr *)&addr;
        uv_client_dialled(u, clave__channel_connect(&u->channel, u->loop, literal));
        return;
    }
    if (t.port == 0 && strcmp(t.host, "local:") != 0)
        uv_client_tell_fault(u, "the path is too long for a socket");
    else
        uv_client_look_up(u, &t);
    if (!u->resolve)
        uv_client_disconnected(u);
}

static void uv_client_drop(clave_uv *u)
{
    if (u->resolve)
        clave__resolve_abandon(u->resolve);
    u->resolve = NULL;
    clave__channel_close(&u->channel, 0);
}

/* ---- driving -------------------------------------------------------------------------------- */

/* The deadline that the timer was set to no longer counts. */
static void uv_client_tick(clave_uv *u)
{
    assert(!u->busy);
    u->armed_at = CLAVE_NEVER;
    u->busy = true;
    clave_async_client_tick(u->client, clave_now());
    u->busy = false;
    uv_client_drive(u);
}

static void uv_client_on_timer(uv_timer_t *t)
{
    uv_client_tick(t->data);
}

static void uv_client_on_woke(struct sleeper *s)
{
    uv_client_tick(LIST_ENTRY(s, clave_uv, sleeper));
}

/* Sets the timer. If the deadline moves later, as after every heartbeat, the timer is left alone:
 * it fires early once, and is then set again. */
static void uv_client_arm(clave_uv *u)
{
    int64_t at = clave_async_client_deadline(u->client);
    if (at >= u->armed_at)
        return;
    int64_t left = at - clave_now();
    u->armed_at = at;
    uv_update_time(u->loop);
    uv_timer_start(&u->timer, uv_client_on_timer, left > 0 ? (uint64_t)left : 0, 0);
}

/* Does one step. Returns false if nothing is left that can be done now. */
static bool uv_client_step(clave_uv *u)
{
    struct channel *ch = &u->channel;
    unsigned wants = clave_async_client_wants(u->client);
    if (u->stopping || ch->state == CHANNEL_CLOSING)
        return false;
    if (wants & CLAVE_WANT_HANGUP) {
        uv_client_drop(u);
        if (ch->state == CHANNEL_CLOSED) /* else uv_client_on_closed tells the engine */
            uv_client_disconnected(u);
        return true;
    }
    if (ch->state == CHANNEL_CLOSED && !u->resolve && (wants & CLAVE_WANT_DIAL)) {
        uv_client_dial(u);
        return true;
    }
    if (!clave__channel_is_live(ch))
        return false;
    clave__channel_set_reading(ch, ch->state == CHANNEL_SECURING || (wants & CLAVE_WANT_READ));
    return (ch->filter || (wants & CLAVE_WANT_WRITE)) && clave__channel_write(ch);
}

static void uv_client_close_all(clave_uv *u)
{
    assert(u->stopping);
    uv_client_drop(u);
    list_remove(&u->sleeper.link);
    if (u->own_wakeup)
        clave__wakeup_close(u->own_wakeup, uv_client_on_handle_closed, u);
    uv_close((uv_handle_t *)&u->timer, uv_client_on_timer_closed);
}

static void uv_client_drive(clave_uv *u)
{
    if (u->busy)
        return;
    u->busy = true;
    while (uv_client_step(u))
        continue;
    if (u->stopping) {
        if (!uv_is_closing((const uv_handle_t *)&u->timer))
            uv_client_close_all(u);
        return; /* the client is busy from now on, so the engine is not called again */
    }
    uv_client_arm(u);
    if (u->settled)
        u->settled(u->settled_arg);
    u->busy = false;
}

/* ---- public --------------------------------------------------------------------------------- */

static clave_err uv_client_take_tls(clave_uv *u)
{
    char text[400] = "";
    const struct fault f = {text, sizeof text};
    clave_tls *given = clave__client_tls(u->client);
    if (!clave_async_client_target(u->client).tls)
        return CLAVE_OK;
    if (given) {
        u->tls = clave__tls_context_ref(given);
        return CLAVE_OK;
    }
    clave_err err = clave__tls_context_of_environment(&u->tls, &f);
    if (err != CLAVE_OK)
        clave__client_fault(u->client, "%s", text[0] ? text : clave_strerror(err));
    return err;
}

static clave_err uv_client_own_wakeup(clave_uv *u, struct wakeup **out)
{
    u->own_wakeup = *out = clave__mem_zalloc(u->mem, sizeof *u->own_wakeup);
    if (!u->own_wakeup)
        return CLAVE_ENOMEM;
    clave__wakeup_open(u->own_wakeup, u->loop);
    u->handles++;
    return CLAVE_OK;
}

clave_err clave__uv_start(clave_uv **out, uv_loop_t *loop, struct wakeup *wakeup,
                          clave_async_client *c)
{
    const struct clave_mem *mem = clave__client_mem(c);
    clave_uv *u = clave__mem_zalloc(mem, sizeof *u);
    *out = NULL;
    if (!u)
        return CLAVE_ENOMEM;
    u->loop = loop;
    u->client = c;
    u->mem = mem;
    clave__channel_init(&u->channel, &uv_client_channel, mem);
    u->armed_at = CLAVE_NEVER;
    u->sleeper.woke = uv_client_on_woke;
    clave_err err = uv_client_take_tls(u);
    if (err == CLAVE_OK && !wakeup)
        err = uv_client_own_wakeup(u, &wakeup);
    if (err != CLAVE_OK) {
        clave_tls_free(u->tls);
        clave__mem_free(mem, u);
        return err;
    }
    list_push_back(&wakeup->sleepers, &u->sleeper.link);
    uv_timer_init(loop, &u->timer);
    u->timer.data = u;
    u->handles++;
    *out = u;
    u->busy = true;
    clave_async_client_start(c, clave_now());
    u->busy = false;
    uv_client_drive(u);
    return CLAVE_OK;
}

clave_err clave_uv_start(clave_uv **out, uv_loop_t *loop, clave_async_client *c)
{
    return clave__uv_start(out, loop, NULL, c);
}

void clave_uv_flush(clave_uv *u)
{
    uv_client_drive(u);
}

void clave_uv_stop(clave_uv *u, void (*closed)(void *arg), void *arg)
{
    assert(!u->stopping);
    u->stopping = true;
    u->closed = closed;
    u->closed_arg = arg;
    uv_client_drive(u);
}

void clave__uv_on_settled(clave_uv *u, void (*settled)(void *arg), void *arg)
{
    assert(!u->stopping);
    u->settled = settled;
    u->settled_arg = arg;
}

clave_err clave__uv_refusal(const clave_uv *u, const char **text)
{
    *text = u->refused;
    return clave__client_all_refuse(u->client) ? u->refusal : CLAVE_OK;
}
