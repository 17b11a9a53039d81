/* uv_client.c - a clave_async_client on a libuv loop (clave/uv.h).
 *
 *            dial             connect        (tls:)
 *   IDLE ──────────▶ LOOKUP ──────────▶ DIALLING ──▶ SECURING ──▶ OPEN
 *    ▲                 │ given up           │ failed     │         │ hung up
 *    ├─────────────────┘                    ▼            ▼         ▼
 *    └──────────────────────────────────── CLOSING ◀────┴─────────┘
 *
 * After every call into the engine, uv_client_obey() does what the engine wants until there is
 * nothing left that can be done now. Callbacks of the engine may call _flush and _stop here: those
 * only leave a note, since the uv_client_obey() of the outer call follows. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/client_internal.h"
#include "runtime/client/resolve.h"
#include "runtime/client/uv_client.h"
#include "runtime/tls/tls_filter.h"

/* A read allocates a buffer just for itself, and a write only for what the kernel does not take at
 * once, so that an idle session has neither. */
enum { INPUT_SIZE = 16384, SCANTY_INPUT = 256, OUTPUT_SIZE = 16384 };

/* To the engine SECURING is part of dialling, and has to finish within the same time. */
enum link_state {
    UV_CLIENT_IDLE,
    UV_CLIENT_LOOKUP,
    UV_CLIENT_DIALLING,
    UV_CLIENT_SECURING,
    UV_CLIENT_OPEN,
    UV_CLIENT_CLOSING,
};

struct clave_uv {
    uv_loop_t *loop;
    clave_async_client *client;
    const struct clave_mem *mem;
    enum link_state state;
    clave_tls *side; /* NULL: hosts without TLS */
    struct tls *tls; /* between the socket and the engine's bytes; NULL: no TLS */
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } socket;
    uv_timer_t timer;
    struct sleeper sleeper;
    struct wakeup *own_wakeup; /* NULL: the loop's */
    int64_t armed_at;          /* what the timer is set for; CLAVE_NEVER: it is not */
    struct resolve *resolve;
    unsigned addresses; /* of the host that is dialled */
    clave_err refusal;  /* the latest fault that is permanent, and why */
    char refused[512];
    uv_connect_t connect;
    bool reading;
    bool writing;
    bool busy; /* inside the engine, or in uv_client_obey() */
    bool stopping;
    unsigned handles; /* open or closing handles, the timer and our own wakeup included */
    void (*closed)(void *arg);
    void *closed_arg;
    void (*settled)(void *arg);
    void *settled_arg;
    char scanty[SCANTY_INPUT]; /* to read into if memory is short */
};

/* What the kernel did not take at once. */
struct rest {
    uv_write_t req;
    clave_uv *link;
    char bytes[];
};

static void uv_client_obey(clave_uv *u);

static clave_uv *of_handle(const uv_handle_t *h)
{
    return h->data;
}

/* ---- closing -------------------------------------------------------------------------------- */

/* The last handle that closes frees everything. */
static void one_closed(clave_uv *u)
{
    if (--u->handles > 0)
        return;
    void (*closed)(void *arg) = u->closed;
    void *arg = u->closed_arg;
    clave_tls_free(u->side);
    clave__mem_free(u->mem, u->own_wakeup);
    clave__mem_free(u->mem, u);
    closed(arg);
}

static void on_wakeup_closed(void *arg)
{
    one_closed(arg);
}

static void on_timer_closed(uv_handle_t *h)
{
    one_closed(of_handle(h));
}

static void uv_client_on_socket_closed(uv_handle_t *h)
{
    clave_uv *u = of_handle(h);
    u->state = UV_CLIENT_IDLE;
    if (u->stopping) {
        one_closed(u);
        return;
    }
    u->handles--;
    u->busy = true;
    clave_async_client_disconnected(u->client, clave_now());
    u->busy = false;
    uv_client_obey(u);
}

static bool has_socket(const clave_uv *u)
{
    return u->state == UV_CLIENT_DIALLING || u->state == UV_CLIENT_SECURING ||
           u->state == UV_CLIENT_OPEN;
}

/* Sends the TLS end or alert, if it can be sent at once. */
static void uv_client_say_farewell(clave_uv *u)
{
    const void *p;
    clave__tls_end(u->tls);
    size_t n = clave__tls_output(u->tls, &p);
    uv_buf_t buf = uv_buf_init((char *)(uintptr_t)p, (unsigned)n);
    if (n > 0 && !u->writing)
        uv_try_write(&u->socket.stream, &buf, 1);
}

static void close_socket(clave_uv *u)
{
    assert(has_socket(u));
    if (u->tls)
        uv_client_say_farewell(u);
    clave__tls_free(u->tls);
    u->tls = NULL;
    u->state = UV_CLIENT_CLOSING;
    u->reading = u->writing = false;
    uv_close(&u->socket.handle, uv_client_on_socket_closed);
}

/* ---- faults --------------------------------------------------------------------------------- */

/* Reported before _disconnected, which keeps a text that says more than it could. */
static void tell_fault(clave_uv *u, const char *why)
{
    clave_target t = clave_async_client_target(u->client);
    const char *what =
        clave_async_client_is_connected(u->client) ? "lost the connection to" : "cannot connect to";
    if (t.port == 0)
        clave__client_fault(u->client, "%s unix:%s: %s", what, t.host, why);
    else
        clave__client_fault(u->client, "%s %s:%u: %s", what, t.host, (unsigned)t.port, why);
}

/* What was reported last will happen again. */
static void note_refusal(clave_uv *u, clave_err err)
{
    u->refusal = err;
    snprintf(u->refused, sizeof u->refused, "%s", clave_async_client_errmsg(u->client));
    clave__client_refused(u->client, u->addresses);
}

static void tell_tls_fault(clave_uv *u)
{
    char why[600];
    clave__tls_fault(u->tls, why, sizeof why);
    tell_fault(u, why);
    if (clave__tls_is_final(u->tls))
        note_refusal(u, CLAVE_ETLS);
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static void uv_client_on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    clave_uv *u = of_handle(h);
    (void)suggested;
    char *p = clave__mem_alloc(u->mem, INPUT_SIZE);
    *buf = p ? uv_buf_init(p, INPUT_SIZE) : uv_buf_init(u->scanty, sizeof u->scanty);
}

static void uv_client_take_input(clave_uv *u, const void *p, size_t n)
{
    u->busy = true;
    clave_async_client_input(u->client, clave_now(), p, n);
    u->busy = false;
}

static void secured(clave_uv *u)
{
    u->state = UV_CLIENT_OPEN;
    u->busy = true;
    clave_async_client_connected(u->client, clave_now());
    u->busy = false;
}

/* false: nothing more will come. */
static bool take_sealed(clave_uv *u, const void *p, size_t n)
{
    char plain[INPUT_SIZE];
    size_t got;
    clave__tls_feed(u->tls, p, n);
    if (clave__tls_shake(u->tls))
        secured(u);
    while (!u->stopping && (got = clave__tls_read(u->tls, plain, sizeof plain)) > 0)
        uv_client_take_input(u, plain, got);
    if (clave__tls_state(u->tls) == TLS_FAILED)
        tell_tls_fault(u);
    return clave__tls_state(u->tls) <= TLS_OPEN;
}

static void uv_client_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    clave_uv *u = of_handle((uv_handle_t *)stream);
    bool open = u->state == UV_CLIENT_OPEN || u->state == UV_CLIENT_SECURING, ended = n < 0;
    if (open && n > 0 && u->tls)
        ended = !take_sealed(u, buf->base, (size_t)n);
    else if (open && n > 0)
        uv_client_take_input(u, buf->base, (size_t)n);
    if (buf->base != u->scanty)
        clave__mem_free(u->mem, buf->base); /* NULL if the end was found without a read */
    if (open && n < 0 && u->state == UV_CLIENT_SECURING)
        tell_fault(u, "it closed the connection in the TLS handshake: is this the TLS port?");
    if (open && ended)
        close_socket(u);
    else if (open && n > 0)
        uv_client_obey(u);
}

static void uv_client_on_written(uv_write_t *w, int status)
{
    struct rest *rest = w->data;
    clave_uv *u = rest->link;
    clave__mem_free(u->mem, rest);
    if (u->state == UV_CLIENT_CLOSING) /* the socket was closed meanwhile */
        return;
    u->writing = false;
    if (status < 0)
        close_socket(u);
    else
        uv_client_obey(u);
}

/* Bytes taken, or an error. */
static int uv_client_write_later(clave_uv *u, const void *p, size_t n)
{
    n = n < OUTPUT_SIZE ? n : OUTPUT_SIZE;
    struct rest *rest = clave__mem_alloc(u->mem, sizeof *rest + n);
    if (!rest)
        return UV_ENOMEM;
    rest->req.data = rest;
    rest->link = u;
    memcpy(rest->bytes, p, n);
    uv_buf_t buf = uv_buf_init(rest->bytes, (unsigned)n);
    int err = uv_write(&rest->req, &u->socket.stream, &buf, 1, uv_client_on_written);
    if (err != 0) {
        clave__mem_free(u->mem, rest);
        return err;
    }
    u->writing = true;
    return (int)n;
}

/* Encrypted bytes are sent first. What is encrypted now counts as sent: it is too late to take it
 * back. */
static size_t sealed_output(clave_uv *u, const void **p)
{
    size_t n = clave__tls_output(u->tls, p);
    if (n > 0 || u->state != UV_CLIENT_OPEN)
        return n;
    n = clave_async_client_output(u->client, p);
    n = clave__tls_write(u->tls, *p, n);
    if (n > 0)
        clave_async_client_sent(u->client, clave_now(), n);
    return clave__tls_output(u->tls, p);
}

/* Writes straight from the engine's buffer while the kernel takes it. The rest is copied, a piece
 * at a time, since the engine's bytes move with the next call into it. */
static bool write_some(clave_uv *u)
{
    const void *p;
    size_t n = u->tls ? sealed_output(u, &p) : clave_async_client_output(u->client, &p);
    if (n == 0) {
        if (u->tls && clave__tls_state(u->tls) == TLS_FAILED) /* out of memory for it */
            close_socket(u);
        return false;
    }
    uv_buf_t buf = uv_buf_init((char *)(uintptr_t)p, (unsigned)(n < (1u << 30) ? n : 1u << 30));
    int done = uv_try_write(&u->socket.stream, &buf, 1);
    if (done == UV_EAGAIN)
        done = uv_client_write_later(u, p, n);
    if (done < 0) {
        close_socket(u);
        return false;
    }
    if (u->tls)
        clave__tls_sent(u->tls, (size_t)done);
    else
        clave_async_client_sent(u->client, clave_now(), (size_t)done);
    return !u->writing;
}

static void uv_client_set_reading(clave_uv *u, bool wanted)
{
    if (wanted == u->reading)
        return;
    u->reading = wanted;
    if (wanted)
        uv_read_start(&u->socket.stream, uv_client_on_alloc, uv_client_on_read);
    else
        uv_read_stop(&u->socket.stream);
}

/* ---- dialling ------------------------------------------------------------------------------- */

/* Uses renewed certificate files; if they are unusable, the old ones stay in use. */
static void uv_client_begin_tls(clave_uv *u)
{
    char text[400] = "";
    const struct fault f = {text, sizeof text};
    if (clave__tls_context_refresh(u->side, &f) != CLAVE_OK)
        clave__log(clave__client_log(u->client), CLAVE_LOG_WARN, "%s", text);
    u->tls = clave__tls_new(u->side, u->mem, clave_async_client_target(u->client).host);
    if (u->tls) {
        u->state = UV_CLIENT_SECURING;
        return;
    }
    tell_fault(u, "out of memory for TLS");
    close_socket(u);
}

static void opened(clave_uv *u)
{
    if (u->side)
        uv_client_begin_tls(u);
    else
        secured(u);
    uv_client_obey(u);
}

/* The dial failed before there was a socket. */
static void dial_failed(clave_uv *u)
{
    u->state = UV_CLIENT_IDLE;
    clave_async_client_disconnected(u->client, clave_now());
}

static void on_connect(uv_connect_t *req, int status)
{
    clave_uv *u = req->data;
    if (u->state != UV_CLIENT_DIALLING) /* given up meanwhile */
        return;
    if (status == 0) {
        opened(u);
        return;
    }
    tell_fault(u, uv_strerror(status));
    close_socket(u);
}

static void opened_handle(clave_uv *u)
{
    u->socket.handle.data = u;
    u->handles++;
    u->state = UV_CLIENT_DIALLING;
}

/* Each of these ends in DIALLING, CLOSING, or (false) IDLE. */
static bool dial_address(clave_uv *u, const struct sockaddr *addr)
{
    if (uv_tcp_init(u->loop, &u->socket.tcp) != 0)
        return false;
    opened_handle(u);
    uv_tcp_nodelay(&u->socket.tcp, 1);
    int err = uv_tcp_connect(&u->connect, &u->socket.tcp, addr, on_connect);
    if (err != 0) {
        tell_fault(u, uv_strerror(err));
        close_socket(u);
    }
    return true;
}

static bool dial_path(clave_uv *u, const char *path)
{
    if (strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path) { /* libuv would truncate it */
        tell_fault(u, "the path is too long for a socket");
        return false;
    }
    if (uv_pipe_init(u->loop, &u->socket.pipe, 0) != 0)
        return false;
    opened_handle(u);
    uv_pipe_connect(&u->connect, &u->socket.pipe, path, on_connect);
    return true;
}

static bool adopt_descriptor(clave_uv *u, int fd)
{
    if (uv_pipe_init(u->loop, &u->socket.pipe, 0) != 0) {
        close(fd);
        return false;
    }
    opened_handle(u);
    if (uv_pipe_open(&u->socket.pipe, fd) != 0) {
        close(fd);
        close_socket(u);
    }
    return true;
}

static void on_resolve(void *arg, const struct resolve_result *res)
{
    clave_uv *u = arg;
    bool dialling;
    u->resolve = NULL;
    u->busy = true;
    u->addresses = res->addresses;
    if (res->fault[0])
        clave__client_fault(u->client, "%s", res->fault);
    if (res->for_good)
        note_refusal(u, CLAVE_ELOCAL);
    if (res->fault[0])
        dialling = false;
    else if (res->fd >= 0)
        dialling = adopt_descriptor(u, res->fd);
    else
        dialling = dial_address(u, res->addr);
    if (!dialling)
        dial_failed(u);
    u->busy = false;
    if (u->state == UV_CLIENT_DIALLING && res->fd >= 0)
        opened(u);
    else
        uv_client_obey(u);
}

static void uv_client_dial(clave_uv *u)
{
    clave_target t = clave_async_client_target(u->client);
    struct sockaddr_storage addr;
    bool dialling;
    u->connect.data = u;
    u->addresses = 1;
    if (strcmp(t.host, "local:") == 0) {
        u->resolve = clave__resolve_local(u->loop, on_resolve, u);
        dialling = u->resolve != NULL;
    } else if (t.port == 0) {
        dialling = dial_path(u, t.host);
    } else if (clave__resolve_literal(t.host, t.port, &addr)) {
        dialling = dial_address(u, (const struct sockaddr *)&addr);
    } else {
        u->resolve = clave__resolve_name(u->loop, &t, on_resolve, u);
        dialling = u->resolve != NULL;
    }
    if (u->resolve)
        u->state = UV_CLIENT_LOOKUP;
    else if (!dialling)
        dial_failed(u);
}

static void hang_up(clave_uv *u)
{
    if (u->state == UV_CLIENT_LOOKUP) {
        clave__resolve_abandon(u->resolve);
        u->resolve = NULL;
    }
    if (has_socket(u))
        close_socket(u); /* on_socket_closed notifies the engine */
    else if (u->state != UV_CLIENT_CLOSING)
        dial_failed(u);
}

/* ---- obeying -------------------------------------------------------------------------------- */

/* The deadline that the timer was set for no longer counts. */
static void uv_client_look(clave_uv *u)
{
    u->armed_at = CLAVE_NEVER;
    u->busy = true;
    clave_async_client_tick(u->client, clave_now());
    u->busy = false;
    uv_client_obey(u);
}

static void uv_client_on_timer(uv_timer_t *t)
{
    uv_client_look(of_handle((uv_handle_t *)t));
}

static void on_woke(struct sleeper *s)
{
    uv_client_look(LIST_ENTRY(s, clave_uv, sleeper));
}

/* A deadline that moves back (as with every heartbeat) leaves the timer as it is: it fires early
 * once, for nothing, and is set anew. */
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

/* One step; false: nothing is left that can be done now. */
static bool uv_client_step(clave_uv *u)
{
    unsigned wants = clave_async_client_wants(u->client);
    if (u->stopping || u->state == UV_CLIENT_CLOSING)
        return false;
    if (wants & CLAVE_WANT_HANGUP) {
        hang_up(u);
        return true;
    }
    if (u->state == UV_CLIENT_IDLE && (wants & CLAVE_WANT_DIAL)) {
        uv_client_dial(u);
        return true;
    }
    bool open = u->state == UV_CLIENT_OPEN, securing = u->state == UV_CLIENT_SECURING;
    if (!open && !securing)
        return false;
    uv_client_set_reading(u, securing || (wants & CLAVE_WANT_READ));
    return (u->tls || (wants & CLAVE_WANT_WRITE)) && !u->writing && write_some(u);
}

static void uv_client_close_all(clave_uv *u)
{
    if (u->resolve)
        clave__resolve_abandon(u->resolve);
    u->resolve = NULL;
    list_remove(&u->sleeper.link);
    if (u->own_wakeup)
        clave__wakeup_close(u->own_wakeup, on_wakeup_closed, u);
    uv_close((uv_handle_t *)&u->timer, on_timer_closed);
    if (has_socket(u))
        close_socket(u);
}

static void uv_client_obey(clave_uv *u)
{
    if (u->busy)
        return;
    u->busy = true;
    while (uv_client_step(u))
        continue;
    if (u->stopping) {
        if (!uv_is_closing((const uv_handle_t *)&u->timer))
            uv_client_close_all(u);
        return; /* busy from now on: the engine is not called again */
    }
    uv_client_arm(u);
    if (u->settled)
        u->settled(u->settled_arg);
    u->busy = false;
}

/* ---- public --------------------------------------------------------------------------------- */

static clave_err take_side(clave_uv *u)
{
    char text[400] = "";
    const struct fault f = {text, sizeof text};
    clave_tls *given = clave__client_tls(u->client);
    if (!clave_async_client_target(u->client).tls)
        return CLAVE_OK;
    if (given) {
        u->side = clave__tls_context_ref(given);
        return CLAVE_OK;
    }
    clave_err err = clave__tls_context_of_environment(&u->side, &f);
    if (err != CLAVE_OK)
        clave__client_fault(u->client, "%s", text[0] ? text : clave_strerror(err));
    return err;
}

static clave_err own_wakeup(clave_uv *u, struct wakeup **out)
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
    u->armed_at = CLAVE_NEVER;
    u->sleeper.woke = on_woke;
    clave_err err = take_side(u);
    if (err == CLAVE_OK && !wakeup)
        err = own_wakeup(u, &wakeup);
    if (err != CLAVE_OK) {
        clave_tls_free(u->side);
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
    uv_client_obey(u);
    return CLAVE_OK;
}

clave_err clave_uv_start(clave_uv **out, uv_loop_t *loop, clave_async_client *c)
{
    return clave__uv_start(out, loop, NULL, c);
}

void clave_uv_flush(clave_uv *u)
{
    uv_client_obey(u);
}

void clave_uv_stop(clave_uv *u, void (*closed)(void *arg), void *arg)
{
    assert(!u->stopping);
    u->stopping = true;
    u->closed = closed;
    u->closed_arg = arg;
    uv_client_obey(u);
}

void clave__uv_on_settled(clave_uv *u, void (*settled)(void *arg), void *arg)
{
    u->settled = settled;
    u->settled_arg = arg;
}

clave_err clave__uv_refusal(const clave_uv *u, const char **text)
{
    *text = u->refused;
    return clave__client_all_refuse(u->client) ? u->refusal : CLAVE_OK;
}
