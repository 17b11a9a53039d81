#include "lib/fake_server.h"

#include "base/memory.h"
#include "lib/unit.h"
#include "wire/frame.h"

static void on_state(clave_async_client *c, clave_state state, clave_err why, void *arg)
{
    struct fake_server *s = arg;
    (void)c;
    assert_true(s->nstates < FAKE_STATES);
    s->states[s->nstates] = state;
    s->whys[s->nstates++] = why;
}

void outcome_cb(clave_async_client *c, const clave_result *res, void *arg)
{
    struct outcome *o = arg;
    (void)c;
    o->times++;
    o->err = res->err;
    snprintf(o->path, sizeof o->path, "%s", res->path ? res->path : "");
    o->has_stat = res->stat != NULL;
    if (res->stat)
        o->stat = *res->stat;
    o->has_names = res->names != NULL;
    o->nnames = res->nnames;
    snprintf(o->first_name, sizeof o->first_name, "%s", res->nnames ? res->names[0] : "");
    o->len = res->len;
    o->nops = res->nops;
    o->nacls = res->nacls;
}

void fake_open(struct fake_server *s, const clave_client_options *given)
{
    clave_client_options o = {.size = sizeof o};
    *s = (struct fake_server){.now = 1000, .zxid = 1, .mem = clave__mem_or_default(NULL)};
    if (given)
        o = *given;
    o.size = sizeof o;
    o.hosts = o.hosts ? o.hosts : "script:1";
    o.session_timeout_ms = o.session_timeout_ms ? o.session_timeout_ms : FAKE_TIMEOUT;
    o.seed = o.seed ? o.seed : 7;
    o.keep_order = true;
    o.state_cb = on_state;
    o.state_arg = s;
    clave__buf_init(&s->up, &s->mem, SIZE_MAX / 4);
    clave__buf_init(&s->down, &s->mem, SIZE_MAX / 4);
    clave__buf_init(&s->seen, &s->mem, SIZE_MAX / 4);
    assert_int_equal(clave_async_client_new(&s->c, &o), CLAVE_OK);
    clave_async_client_start(s->c, s->now);
}

void fake_close(struct fake_server *s)
{
    clave_async_client_free(s->c);
    clave__buf_fini(&s->up);
    clave__buf_fini(&s->down);
    clave__buf_fini(&s->seen);
}

void fake_advance_to(struct fake_server *s, int64_t now)
{
    s->now = now;
    clave_async_client_tick(s->c, now);
}

/* ---- from the client ----------------------------------------------------------------- */

void fake_take_output(struct fake_server *s)
{
    const void *p;
    for (size_t n; (n = clave_async_client_output(s->c, &p)) > 0;) {
        assert_true(clave_async_client_wants(s->c) & CLAVE_WANT_WRITE);
        assert_int_equal(clave__buf_append(&s->up, p, n), CLAVE_OK);
        clave_async_client_sent(s->c, s->now, n);
    }
}

/* The next frame, without its length, into `seen`. */
static struct jreader next_frame(struct fake_server *s)
{
    fake_take_output(s);
    assert_true(clave__buf_len(&s->up) >= 4);
    struct jreader length = clave__jreader(clave__buf_bytes(&s->up), 4);
    size_t n = (size_t)clave__jget_int(&length);
    assert_true(clave__buf_len(&s->up) >= 4 + n);
    clave__buf_clear(&s->seen);
    assert_int_equal(clave__buf_append(&s->seen, clave__buf_bytes(&s->up) + 4, n), CLAVE_OK);
    clave__buf_consume(&s->up, 4 + n);
    return clave__jreader(clave__buf_bytes(&s->seen), n);
}

const struct wire_request *fake_expect(struct fake_server *s, int32_t op)
{
    struct jreader r = next_frame(s);
    s->q = clave__wire_get_request(&r);
    assert_false(r.bad);
    assert_int_equal(s->q.op, op);
    return &s->q;
}

bool fake_is_quiet(struct fake_server *s)
{
    fake_take_output(s);
    return clave__buf_len(&s->up) == 0;
}

/* ---- to the client ------------------------------------------------------------------- */

void fake_feed(struct fake_server *s, const void *p, size_t n)
{
    clave_async_client_input(s->c, s->now, p, n);
}

static struct jwriter begin(struct fake_server *s)
{
    clave__buf_clear(&s->down);
    struct jwriter w = clave__jwriter(&s->down);
    (void)clave__frame_begin(&w);
    return w;
}

static void deliver(struct fake_server *s, struct jwriter *w)
{
    assert_int_equal(clave__frame_end(w, 0), CLAVE_OK);
    /* A copy, since the client's answer may be written by the same script. */
    size_t n = clave__buf_len(&s->down);
    uint8_t *copy = malloc(n);
    assert_non_null(copy);
    memcpy(copy, clave__buf_bytes(&s->down), n);
    size_t piece = s->piece ? s->piece : n;
    for (size_t at = 0; at < n; at += piece)
        fake_feed(s, copy + at, n - at < piece ? n - at : piece);
    free(copy);
}

void fake_answer_to(struct fake_server *s, int32_t xid, int32_t op, clave_err err,
                    const struct wire_reply *m)
{
    struct wire_reply_header h = {.xid = xid, .zxid = ++s->zxid, .err = err};
    struct jwriter w = begin(s);
    clave__wire_put_reply_header(&w, &h);
    if (err == CLAVE_OK && m)
        clave__wire_put_reply(&w, op, m);
    deliver(s, &w);
}

void fake_answer(struct fake_server *s, clave_err err, const struct wire_reply *m)
{
    fake_answer_to(s, s->q.xid, s->q.op, err, m);
}

void fake_event(struct fake_server *s, int32_t type, const char *path)
{
    struct wire_reply_header h = {.xid = XID_EVENT, .zxid = -1};
    struct wire_event ev = {type, STATE_SYNC_CONNECTED, clave__jbytes(path)};
    struct jwriter w = begin(s);
    clave__wire_put_reply_header(&w, &h);
    clave__wire_put_event(&w, &ev);
    deliver(s, &w);
}

void fake_answer_ping(struct fake_server *s)
{
    fake_answer_to(s, XID_PING, OP_PING, CLAVE_OK, NULL);
}

/* ---- connections --------------------------------------------------------------------- */

struct wire_connect_request fake_dial(struct fake_server *s)
{
    assert_int_equal(clave_async_client_wants(s->c), CLAVE_WANT_DIAL);
    clave__buf_clear(&s->up);
    clave_async_client_connected(s->c, s->now);
    struct jreader r = next_frame(s);
    struct wire_connect_request q = clave__wire_get_connect_request(&r);
    assert_false(r.bad);
    return q;
}

void fake_answer_handshake(struct fake_server *s, int64_t session, int32_t timeout_ms,
                           bool read_only)
{
    struct wire_connect_response m = {
        .timeout_ms = timeout_ms,
        .session_id = session,
        .passwd = clave__jbytes_n("0123456789abcdef", WIRE_PASSWORD_LEN),
        .read_only = read_only,
        .has_read_only = true,
    };
    struct jwriter w = begin(s);
    clave__wire_put_connect_response(&w, &m);
    deliver(s, &w);
}

void fake_config(struct fake_server *s, bool standalone)
{
    const struct wire_request *q = fake_expect(s, OP_GET_DATA);
    assert_true(clave__jbytes_eq(q->body.read.path, clave__jbytes("/zookeeper/config")));
    struct wire_reply m = {.data = clave__jbytes(standalone ? "" : "server.1=a:1:2;3")};
    fake_answer(s, CLAVE_OK, &m);
}

void fake_connect(struct fake_server *s, bool standalone)
{
    fake_dial(s);
    fake_answer_handshake(s, FAKE_SESSION, FAKE_TIMEOUT, false);
    fake_config(s, standalone);
}

void fake_hang_up(struct fake_server *s)
{
    clave__buf_clear(&s->up);
    clave_async_client_disconnected(s->c, s->now);
}

/* ---- what was told ------------------------------------------------------------------- */

void fake_expect_state(struct fake_server *s, clave_state state, clave_err why)
{
    assert_true(s->told < s->nstates);
    assert_string_equal(clave_state_name(s->states[s->told]), clave_state_name(state));
    assert_int_equal(s->whys[s->told], why);
    s->told++;
}

bool fake_expects_no_state(const struct fake_server *s)
{
    return s->told == s->nstates;
}

struct jvec fake_names(const char *const *names, size_t n)
{
    static uint8_t bytes[4096];
    struct jvec v = {(int32_t)n, bytes, 0};
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(names[i]);
        assert_true(v.n + 4 + len <= sizeof bytes);
        memset(bytes + v.n, 0, 4);
        bytes[v.n + 3] = (uint8_t)len;
        memcpy(bytes + v.n + 4, names[i], len);
        v.n += 4 + len;
    }
    return v;
}

void fake_answer_checks(struct fake_server *s, clave_err err)
{
    struct buf b;
    clave__buf_init(&b, &s->mem, 4096);
    struct jwriter w = clave__jwriter(&b);
    int32_t n = s->q.body.multi.count;
    for (int32_t i = 0; i < n; i++) {
        struct wire_result r = {.op = err ? OP_ERROR : OP_CHECK, .err = i == n - 1 ? err : 0};
        clave__wire_put_result(&w, &r);
    }
    clave__wire_put_ops_end(&w);
    struct wire_reply m = {.results = {n, clave__buf_bytes(&b), clave__buf_len(&b)}};
    fake_answer(s, CLAVE_OK, &m);
    clave__buf_fini(&b);
}

void fake_put_off(struct fake_server *s, int32_t op)
{
    for (int64_t pause = 100, at = s->now; pause <= 400; pause *= 2, at = s->now) {
        fake_answer(s, CLAVE_ETHROTTLED, NULL);
        fake_advance_to(s, at + pause - 1);
        assert_true(fake_is_quiet(s));
        fake_advance_to(s, at + pause);
        fake_expect(s, op);
    }
}
