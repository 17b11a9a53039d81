/* uv_conn.c - the connections of a server (uv_conn.h): reading, writing, closing. The engine's
 * bytes are never kept over a call into it. */
#include "runtime/server/uv_conn.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

/* Of one turn of the loop: closing a socket takes the kernel some 15 us. */
enum { CLOSED_A_TURN = 64 };

static void uv_conn_note_session(struct conn *c)
{
    assert(c->engine);
    if (c->has_session || !clave__server_conn_has_session(c->engine))
        return;
    c->has_session = true;
    clave__address_limit_note_session(c->address);
}

/* ---- closing -------------------------------------------------------------------------------- */

/* Thousands that go at once are closed a few in each turn. */
static void uv_conn_hung_up(struct channel *ch, int why)
{
    struct conn *c = clave__conn_of(ch);
    struct server_run *r = clave__conn_run(ch);
    if (r->closed < CLOSED_A_TURN) {
        clave__channel_close(ch, why);
        return;
    }
    c->why = why;
    list_push_back(&r->hung_up, &c->in_hung_up);
    clave__channel_set_reading(ch, false);
}

static void uv_conn_on_closing(struct channel *ch, enum channel_state was, int why)
{
    struct conn *c = clave__conn_of(ch);
    struct server_run *r = clave__conn_run(ch);
    (void)was;
    list_remove(&c->in_hung_up);
    clave__fair_reading_leave(&r->reading, &c->reader);
    r->closed++;
    if (why != 0)
        clave__run_tick(r);
    if (c->engine)
        clave__server_conn_closed(c->engine);
    c->engine = NULL;
    clave__address_limit_leave(&r->address_limit, c->address, c->has_session);
    c->address = NULL;
    list_remove(&c->in_handshakes);
}

static void uv_conn_on_closed(struct channel *ch)
{
    struct conn *c = clave__conn_of(ch);
    struct server_run *r = clave__conn_run(ch);
    assert(!c->engine && !c->address && r->nconns > 0);
    list_remove(&c->link);
    r->nconns--;
    free(c);
    clave__run_count(r);
}

void clave__conn_drop(struct server_conn *engine)
{
    struct conn *c = clave__server_conn_user(engine);
    clave__channel_close(&c->channel, 0);
}

void clave__conn_close_quiet(struct server_run *r, bool all)
{
    struct list *e = r->conns.next;
    while (e != &r->conns) {
        struct conn *c = LIST_ENTRY(e, struct conn, link);
        e = e->next;
        if (all || !c->channel.writing)
            clave__channel_close(&c->channel, 0);
    }
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static uv_buf_t uv_conn_buffer(struct channel *ch)
{
    struct conn *c = clave__conn_of(ch);
    struct server_run *r = clave__conn_run(ch);
    assert(c->engine);
    size_t n = clave__fair_reading_share(&r->reading, &c->reader, clave__server_taken(r->server));
    if (n == 0) {
        clave__server_conn_left_unread(c->engine);
        return uv_buf_init(NULL, 0);
    }
    return uv_buf_init(r->input, (unsigned)(n < RUN_INPUT_SIZE ? n : RUN_INPUT_SIZE));
}

static bool uv_conn_input(struct channel *ch, const void *p, size_t n)
{
    assert(clave__conn_of(ch)->engine);
    struct server_run *r = clave__conn_run(ch);
    clave__run_tick(r);
    clave__server_conn_input(clave__conn_of(ch)->engine, p, n);
    clave__fair_reading_count(&r->reading, n);
    uv_conn_note_session(clave__conn_of(ch));
    return true;
}

static size_t uv_conn_output(struct channel *ch, const void **p)
{
    return clave__server_conn_output(clave__conn_of(ch)->engine, p);
}

static void uv_conn_sent(struct channel *ch, size_t n)
{
    clave__conn_run(ch)->sent += n;
    clave__server_conn_sent(clave__conn_of(ch)->engine, n);
}

static bool uv_conn_is_done(struct channel *ch)
{
    return clave__server_conn_wants_close(clave__conn_of(ch)->engine);
}

void clave__conn_set_reading(struct conn *c)
{
    assert(c->engine);
    bool serving = clave__conn_run(&c->channel)->phase != RUN_STOPPING &&
                   list_empty(&c->in_handshakes) && list_empty(&c->in_hung_up) &&
                   !clave__fair_reader_is_declined(&c->reader);
    bool wanted = serving && clave__server_conn_wants_read(c->engine);
    if (!wanted)
        clave__fair_reading_pass(&clave__conn_run(&c->channel)->reading, &c->reader);
    clave__channel_set_reading(&c->channel, wanted);
}

void clave__conn_serve(struct server_conn *engine)
{
    struct conn *c = clave__server_conn_user(engine);
    while (clave__channel_write(&c->channel))
        continue;
    if (clave__channel_is_live(&c->channel))
        clave__conn_set_reading(c);
}

static void uv_conn_drained(struct channel *ch)
{
    clave__run_tick(clave__conn_run(ch));
    clave__conn_serve(clave__conn_of(ch)->engine);
}

/* What the engine answers is sent at the end of the pass. A filter's own messages are none of the
 * engine's. */
static void uv_conn_received(struct channel *ch)
{
    if (ch->filter)
        uv_conn_drained(ch);
    else
        clave__conn_set_reading(clave__conn_of(ch)); /* now, or libuv keeps reading */
}

static const struct channel_ops uv_conn_channel = {
    .buffer = uv_conn_buffer,
    .input = uv_conn_input,
    .output = uv_conn_output,
    .sent = uv_conn_sent,
    .is_done = uv_conn_is_done,
    .received = uv_conn_received,
    .drained = uv_conn_drained,
    .hung_up = uv_conn_hung_up,
    .closing = uv_conn_on_closing,
    .closed = uv_conn_on_closed,
};

/* ---- taking one in, and turns of the loop ---------------------------------------------------- */

struct conn *clave__conn_new(struct server_run *r, int fd, bool is_unix, struct address *a)
{
    struct conn *c = calloc(1, sizeof *c);
    if (!c) {
        clave__address_limit_leave(&r->address_limit, a, false);
        close(fd);
        return NULL;
    }
    c->address = a;
    list_init(&c->in_handshakes);
    list_init(&c->in_hung_up);
    clave__fair_reader_init(&c->reader);
    clave__channel_init(&c->channel, &uv_conn_channel, &r->mem);
    if (clave__channel_adopt(&c->channel, &r->loop, fd, !is_unix) != 0) {
        clave__address_limit_leave(&r->address_limit, a, false);
        free(c);
        return NULL;
    }
    list_push_back(&r->conns, &c->link);
    r->nconns++;
    clave__run_count(r);
    return c;
}

static void uv_conn_resume(struct fair_reader *reader)
{
    clave__conn_set_reading(LIST_ENTRY(reader, struct conn, reader));
}

bool clave__conns_go_on(struct server_run *r)
{
    while (!list_empty(&r->hung_up) && r->closed < CLOSED_A_TURN) {
        struct conn *c = LIST_ENTRY(r->hung_up.next, struct conn, in_hung_up);
        clave__channel_close(&c->channel, c->why);
    }
    r->closed = 0;
    clave__fair_reading_begin_turn(&r->reading, clave__server_taken(r->server), uv_conn_resume);
    return !list_empty(&r->hung_up) || clave__fair_reading_has_more(&r->reading);
}
