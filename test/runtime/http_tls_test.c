/* http_tls_test.c - the HTTP server behind TLS, by itself, on the loop of the test: clients that do
 * not shake hands, that do not read, and the server's end; what a connection costs. The rest is
 * tested from outside (test/cmd/gate_tls_test.py). */
#include "rig.h"

#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "runtime/clock.h"
#include "runtime/http/http_server.h"
#include "runtime/tls/tls_filter.h"

enum { PATIENCE_MS = 20000, SHORT_MS = 300, UNREAD_MS = 1000, MANY = 200, LARGE = 4 << 20 };

struct world {
    uv_loop_t loop;
    uv_timer_t tick;
    struct clave_mem mem;
    clave_tls *sides[2]; /* the clients', the server's */
    struct http *http;
    int port;
    unsigned begun, ended;
    bool is_forwarded;        /* the newest request */
    struct web_answer answer; /* of LARGE bytes, made anew for each request */
};

struct secure {
    int fd;
    struct tls *tls;
    size_t heard;
};

/* ---- what is served ------------------------------------------------------------------------- */

/* /wait is never answered; everything else with zeros. */
static void world_begin(void *arg, const struct web_request *q, struct http_exchange *x,
                        void **user)
{
    struct world *w = arg;
    *user = w;
    w->begun++;
    w->is_forwarded = q->peer.is_tls && strcmp(q->peer.address, "192.0.2.7:4096") == 0;
    if (strcmp(clave__http_path(x), "/wait") == 0)
        return;
    static const char zeros[4096];
    clave__buf_fini(&w->answer.body);
    clave__buf_init(&w->answer.body, &w->mem, LARGE);
    for (size_t n = 0; n < LARGE && strcmp(clave__http_path(x), "/large") == 0; n += sizeof zeros)
        clave__buf_append(&w->answer.body, zeros, sizeof zeros);
    w->answer.status = 200;
    clave__http_answer(x, &w->answer);
}

static void world_ended(void *arg, void *user)
{
    struct world *w = arg;
    (void)user;
    w->ended++;
}

static void world_make_sides(struct world *w)
{
    char line[400], why[400];
    const struct fault f = {why, sizeof why};
    const char *pem = rig_path(rig_dir(), "server.pem");
    snprintf(line, sizeof line,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout "
             "%s.key -out %s -subj /CN=localhost >/dev/null 2>&1 && cat %s.key >> %s",
             pem, pem, pem, pem);
    assert_int_equal(system(line), 0);
    const clave_tls_options ours = {.size = sizeof ours, .ca_file = pem};
    const struct tls_server_options its = {.cert_file = pem,
                                           .clients = TLS_CLIENTS_NONE,
                                           .alpn = clave__http_alpn,
                                           .to_foreign = clave__http_to_foreign};
    assert_int_equal(clave_tls_new(&w->sides[0], &ours, why, sizeof why), CLAVE_OK);
    assert_int_equal(clave__tls_context_serve(&w->sides[1], &its, &f), CLAVE_OK);
}

static void world_open_at(struct world *w, const char *address, uint64_t handshake_ms,
                          uint64_t unread_ms)
{
    char why[300] = "";
    const struct fault f = {why, sizeof why};
    memset(w, 0, sizeof *w);
    w->mem = clave__mem_or_default(NULL);
    rig_loop_open(&w->loop, &w->tick);
    world_make_sides(w);
    const struct http_options o = {.loop = &w->loop,
                                   .mem = &w->mem,
                                   .begin = world_begin,
                                   .ended = world_ended,
                                   .arg = w,
                                   .tls = w->sides[1],
                                   .max_connections = MANY + 1,
                                   .ms = {PATIENCE_MS, PATIENCE_MS, 0, unread_ms, handshake_ms}};
    assert_int_equal(clave__http_server_start(&w->http, address, &o, &f), CLAVE_OK);
    w->port = atoi(strrchr(clave__http_server_address(w->http, 0), ':') + 1);
}

static void world_open(struct world *w, uint64_t handshake_ms, uint64_t unread_ms)
{
    world_open_at(w, "tls:127.0.0.1:0", handshake_ms, unread_ms);
}

static void world_close(struct world *w)
{
    clave__http_server_stop(w->http);
    rig_loop_close(&w->loop, &w->tick);
    assert_int_equal(w->begun, w->ended);
    clave__buf_fini(&w->answer.body);
    clave_tls_free(w->sides[0]);
    clave_tls_free(w->sides[1]);
}

static void turn(struct world *w)
{
    uv_run(&w->loop, UV_RUN_ONCE);
}

static void await_connections(struct world *w, size_t most)
{
    int64_t until = clave__clock_wall() + PATIENCE_MS / 2;
    while (clave__http_server_connections(w->http) > most) {
        assert_true(clave__clock_wall() < until);
        turn(w);
    }
}

/* ---- clients -------------------------------------------------------------------------------- */

static void secure_send(struct secure *s)
{
    const void *p;
    size_t n = clave__tls_output(s->tls, &p);
    if (n > 0) {
        assert_int_equal(send(s->fd, p, n, MSG_NOSIGNAL), n);
        clave__tls_sent(s->tls, n);
    }
}

/* Takes what has come; false: the end. */
static bool secure_hear(struct secure *s)
{
    static char raw[1 << 18], plain[20000];
    size_t got;
    ssize_t n = recv(s->fd, raw, sizeof raw, MSG_DONTWAIT);
    if (n <= 0)
        return n < 0 && errno == EAGAIN;
    clave__tls_feed(s->tls, raw, (size_t)n);
    clave__tls_shake(s->tls);
    while ((got = clave__tls_read(s->tls, plain, sizeof plain)) > 0)
        s->heard += got;
    clave__tls_feed(s->tls, NULL, 0);
    secure_send(s);
    return clave__tls_state(s->tls) <= TLS_OPEN;
}

/* Says `first` before its handshake. */
static struct secure secure_open_after(struct world *w, int room, const char *first)
{
    struct secure s = {rig_dial(w->port, room), clave__tls_new(w->sides[0], &w->mem, "localhost"),
                       0};
    assert_int_equal(send(s.fd, first, strlen(first), MSG_NOSIGNAL), strlen(first));
    int64_t until = clave__clock_wall() + PATIENCE_MS;
    assert_non_null(s.tls);
    secure_send(&s);
    while (clave__tls_state(s.tls) == TLS_SHAKING) {
        assert_true(clave__clock_wall() < until && secure_hear(&s));
        turn(w);
    }
    return s;
}

static struct secure secure_open(struct world *w, int room)
{
    return secure_open_after(w, room, "");
}

static void secure_say(struct secure *s, const char *text)
{
    assert_int_equal(clave__tls_write(s->tls, text, strlen(text)), strlen(text));
    secure_send(s);
}

static void secure_close(struct secure *s)
{
    close(s->fd);
    clave__tls_free(s->tls);
}

/* ---- tests ---------------------------------------------------------------------------------- */

TEST(test_handshakes_end)
{
    CLOSED_BY(world_close) struct world w;
    world_open(&w, SHORT_MS, UNREAD_MS);
    int silent = rig_dial(w.port, 0), half = rig_dial(w.port, 0);
    assert_int_equal(send(half, "\x16\x03\x01\x02", 4, MSG_NOSIGNAL), 4);
    int64_t from = clave__clock_wall();
    while (clave__http_server_connections(w.http) < 2)
        turn(&w);
    await_connections(&w, 0);
    assert_true(clave__clock_wall() >= from + SHORT_MS - 20);
    close(silent);
    close(half);
}

TEST(test_who_does_not_read_is_disconnected)
{
    CLOSED_BY(world_close) struct world w;
    world_open(&w, PATIENCE_MS, UNREAD_MS);
    struct secure deaf = secure_open(&w, 4096), reads = secure_open(&w, 0);
    secure_say(&deaf,
               "GET /large HTTP/1.1\r\nHost: x\r\n\r\nGET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    int64_t until = clave__clock_wall() + PATIENCE_MS;
    while (w.begun == 0)
        turn(&w);
    while (clave__http_server_connections(w.http) > 1) { /* it has not read anything */
        assert_true(clave__clock_wall() < until);
        turn(&w);
    }
    secure_say(&reads, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    while (reads.heard < LARGE) {
        assert_true(clave__clock_wall() < until);
        assert_true(secure_hear(&reads) || reads.heard >= LARGE);
        turn(&w);
    }
    secure_close(&deaf);
    secure_close(&reads);
    await_connections(&w, 0);
}

/* Its time is not put off by one that is over later. */
TEST(test_a_handshake_ends_beside_who_does_not_read)
{
    enum { HANDSHAKE_MS = 1000 };
    CLOSED_BY(world_close) struct world w;
    world_open(&w, HANDSHAKE_MS, PATIENCE_MS);
    struct secure deaf = secure_open(&w, 4096);
    secure_say(&deaf, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    while (w.begun == 0)
        turn(&w);
    for (int i = 0; i < 2; i++) { /* after the first, nothing but the deaf one has a time */
        int silent = rig_dial(w.port, 0);
        while (clave__http_server_connections(w.http) < 2)
            turn(&w);
        await_connections(&w, 1);
        close(silent);
    }
    secure_close(&deaf);
    await_connections(&w, 0);
}

TEST(test_the_end_at_every_stage)
{
    struct world w;
    world_open(&w, PATIENCE_MS, UNREAD_MS);
    struct secure waits = secure_open(&w, 0), deaf = secure_open(&w, 4096),
                  idle = secure_open(&w, 0);
    int silent = rig_dial(w.port, 0);
    secure_say(&waits, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    secure_say(&deaf, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    while (w.begun < 2 || clave__http_server_connections(w.http) < 4)
        turn(&w);
    world_close(&w);
    close(silent);
    secure_close(&waits);
    secure_close(&deaf);
    secure_close(&idle);
}

TEST(test_a_header_of_a_proxy_before_the_handshake)
{
    CLOSED_BY(world_close) struct world w;
    world_open_at(&w, "proxy:tls:127.0.0.1:0", PATIENCE_MS, UNREAD_MS);
    struct secure s = secure_open_after(&w, 0, "PROXY TCP4 192.0.2.7 127.0.0.1 4096 443\r\n");
    secure_say(&s, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    while (w.begun == 0)
        turn(&w);
    assert_true(w.is_forwarded);
    secure_close(&s);
    await_connections(&w, 0);
}

/* Of the server's side, with what OpenSSL keeps for it; 0: a sanitizer's heap tells nothing. */
static size_t world_cost(struct world *w, bool waits)
{
    struct secure many[MANY];
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < MANY; i++) {
        many[i] = secure_open(w, 0);
        secure_say(&many[i], waits ? "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"
                                   : "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        while (!waits && many[i].heard == 0) {
            assert_true(secure_hear(&many[i]));
            turn(w);
        }
    }
    while (w->begun < MANY)
        turn(w);
    for (int i = 0; i < MANY; i++) {
        clave__tls_free(many[i].tls);
        many[i].tls = NULL;
    }
    size_t each = (mallinfo2().uordblks - before) / MANY;
    for (int i = 0; i < MANY; i++)
        secure_close(&many[i]);
    await_connections(w, 0);
    return each;
}

/* As docs/operate/gate.md has it: OpenSSL's part is most of it. */
TEST(test_what_a_connection_costs)
{
    enum { MOST_IDLE = 16 * 1024, MOST_WAITING = 18 * 1024 };
    for (int waits = 0; waits < 2; waits++) {
        CLOSED_BY(world_close) struct world w;
        world_open(&w, PATIENCE_MS, UNREAD_MS);
        struct secure first = secure_open(&w, 0); /* what OpenSSL takes once */
        secure_close(&first);
        await_connections(&w, 0);
        size_t each = world_cost(&w, waits);
        printf("a connection that %s: %zu bytes\n", waits ? "waits" : "is idle", each);
        assert_true(each < (waits ? MOST_WAITING : MOST_IDLE));
    }
}
