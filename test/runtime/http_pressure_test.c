/* http_pressure_test.c - an HTTP server with all of its places taken: whoever is known stays,
 * whoever comes anew gets in, and the address with the most unknown connections makes room. And a
 * stream whose reader takes nothing. */
#include "rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "runtime/clock.h"
#include "runtime/http/http_server.h"
#include "server/server.h"

enum { PATIENCE_MS = 20000, PLACES = 20, LIMIT_MS = 300, LINE_MS = 10 };

struct world {
    uv_loop_t loop;
    uv_timer_t tick, lines;
    struct clave_mem mem;
    struct http *http;
    int port;
    unsigned begun, ended;
    struct http_exchange *stream; /* NULL: none */
    uint32_t exempt;              /* 0: no address is */
};

struct asked {
    struct world *w;
    struct web_answer answer;
    bool is_known;
};

static clave_err world_more(void *arg, struct buf *out, bool *done)
{
    static const char line[] = "{\"event\":\"heartbeat\"}\n";
    (void)arg;
    (void)done;
    return clave__buf_append(out, line, sizeof line - 1);
}

/* Who has a token is known; /wait is never answered, /401 so, and /stream with a line for each
 * _wake. */
static void world_begin(void *arg, const struct web_request *q, struct http_exchange *x,
                        void **user)
{
    struct world *w = arg;
    struct asked *a = calloc(1, sizeof *a);
    (void)q;
    assert_non_null(a);
    w->begun++;
    *user = a;
    a->w = w;
    a->is_known = clave__http_header(x, "Authorization") != NULL;
    a->answer.status = strcmp(clave__http_path(x), "/401") == 0 ? 401 : 200;
    clave__buf_init(&a->answer.body, &w->mem, 100);
    if (strcmp(clave__http_path(x), "/stream") == 0) {
        a->answer.more = world_more;
        a->answer.sending_ms = LIMIT_MS;
        w->stream = x;
    }
    if (strcmp(clave__http_path(x), "/wait") != 0)
        clave__http_answer(x, &a->answer);
}

static void world_ended(void *arg, void *user)
{
    struct world *w = arg;
    struct asked *a = user;
    if (a->answer.more)
        w->stream = NULL;
    clave__buf_fini(&a->answer.body);
    free(a);
    w->ended++;
}

static bool world_is_known(void *arg, void *user, void **kept)
{
    (void)kept;
    const struct asked *a = user;
    (void)arg;
    return a->is_known;
}

static bool world_is_exempt(void *arg, const struct peer_addr *peer)
{
    const struct world *w = arg;
    uint32_t host = htonl(w->exempt);
    return w->exempt && memcmp(peer->ip, &host, sizeof host) == 0;
}

static void world_open(struct world *w, bool has_identities)
{
    char why[300] = "";
    const struct fault f = {why, sizeof why};
    memset(w, 0, sizeof *w);
    w->mem = clave__mem_or_default(NULL);
    rig_loop_open(&w->loop, &w->tick);
    uv_timer_init(&w->loop, &w->lines);
    w->lines.data = w;
    const struct http_options o = {.loop = &w->loop,
                                   .mem = &w->mem,
                                   .begin = world_begin,
                                   .ended = world_ended,
                                   .is_known = has_identities ? world_is_known : NULL,
                                   .is_exempt = world_is_exempt,
                                   .arg = w,
                                   .max_connections = PLACES,
                                   .ms = {PATIENCE_MS, PATIENCE_MS, 0, PATIENCE_MS}};
    assert_int_equal(clave__http_server_start(&w->http, "127.0.0.1:0", &o, &f), CLAVE_OK);
    w->port = atoi(strrchr(clave__http_server_address(w->http, 0), ':') + 1);
}

static void world_close(struct world *w)
{
    uv_close((uv_handle_t *)&w->lines, NULL);
    clave__http_server_stop(w->http);
    rig_loop_close(&w->loop, &w->tick);
    assert_int_equal(w->begun, w->ended);
}

/* ---- clients -------------------------------------------------------------------------------- */

/* From 127.0.0.`host`. */
static int dial(const struct world *w, unsigned host)
{
    struct sockaddr_in from = {.sin_family = AF_INET}, to = from;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    from.sin_addr.s_addr = htonl(0x7f000000u + host);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons((uint16_t)w->port);
    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void turn_until_accepted(struct world *w)
{
    for (int i = 0; i < 10; i++)
        uv_run(&w->loop, UV_RUN_NOWAIT);
}

static bool is_closed(struct world *w, int fd)
{
    char byte;
    turn_until_accepted(w);
    ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return got == 0 || (got < 0 && errno != EAGAIN);
}

/* The status; 0: closed without one. */
static int ask(struct world *w, int fd, const char *path, bool with_token)
{
    char text[300], heard[2000];
    int64_t until = clave__clock_wall() + PATIENCE_MS;
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\n%s\r\n", path,
             with_token ? "Authorization: Bearer x\r\n" : "");
    if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
        return 0;
    ssize_t got = -1;
    while (got < 0) {
        assert_true(clave__clock_wall() < until);
        uv_run(&w->loop, UV_RUN_NOWAIT);
        got = recv(fd, heard, sizeof heard - 1, MSG_DONTWAIT);
        if (got < 0 && errno != EAGAIN)
            return 0;
    }
    heard[got] = '\0';
    return got > 0 ? atoi(heard + strlen("HTTP/1.1 ")) : 0;
}

static void dial_all(struct world *w, int *fds, int n, unsigned host)
{
    for (int i = 0; i < n; i++) {
        fds[i] = dial(w, host);
        turn_until_accepted(w);
    }
}

static void close_all(const int *fds, int n)
{
    for (int i = 0; i < n; i++)
        close(fds[i]);
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* The flood may come from the holder's own address, and go on. */
TEST(test_a_holder_gets_in_and_stays)
{
    for (unsigned host = 1; host <= 2; host++) {
        CLOSED_BY(world_close) struct world w;
        int silent[PLACES], more[3 * PLACES];
        world_open(&w, true);
        dial_all(&w, silent, PLACES, 1);
        int holder = dial(&w, host);
        assert_int_equal(ask(&w, holder, "/", true), 200);
        assert_true(is_closed(&w, silent[0]));
        assert_false(is_closed(&w, silent[1]));
        dial_all(&w, more, 3 * PLACES, 1);
        assert_true(is_closed(&w, silent[PLACES - 1]));
        assert_false(is_closed(&w, more[3 * PLACES - 1]));
        assert_int_equal(ask(&w, holder, "/", true), 200);
        assert_int_equal(clave__http_server_connections(w.http), PLACES);
        close(holder);
        close_all(silent, PLACES);
        close_all(more, 3 * PLACES);
    }
}

/* Whatever others do, an address with few connections keeps them; one that floods loses its own. */
TEST(test_an_address_loses_its_own)
{
    CLOSED_BY(world_close) struct world w;
    int quiet[2], flood[4 * PLACES];
    world_open(&w, true);
    dial_all(&w, quiet, 2, 3);
    dial_all(&w, flood, 4 * PLACES, 1);
    assert_false(is_closed(&w, quiet[0]));
    assert_int_equal(ask(&w, quiet[1], "/", false), 200);
    assert_true(is_closed(&w, flood[3 * PLACES]));
    close_all(quiet, 2);
    close_all(flood, 4 * PLACES);
}

/* Turned away before idle, idle before asking, oldest first. */
TEST(test_who_goes_first)
{
    CLOSED_BY(world_close) struct world w;
    int fds[PLACES], more[3];
    world_open(&w, true);
    dial_all(&w, fds, 3, 1); /* below half, a 401 keeps its connection */
    assert_int_equal(ask(&w, fds[2], "/401", false), 401);
    send(fds[0], "GET /wait HTTP/1.1\r\n\r\n", 22, MSG_NOSIGNAL);
    dial_all(&w, fds + 3, PLACES - 3, 1);
    const int order[] = {2, 1, 3};
    for (int i = 0; i < 3; i++) {
        assert_false(is_closed(&w, fds[order[i]]));
        dial_all(&w, &more[i], 1, 2);
        assert_true(is_closed(&w, fds[order[i]]));
    }
    assert_false(is_closed(&w, fds[0])); /* whose request waits */
    assert_int_equal(ask(&w, fds[4], "/401", false), 401);
    assert_true(is_closed(&w, fds[4])); /* more than half are taken */
    close_all(fds, PLACES);
    close_all(more, 3);
}

/* Nobody has to go: further ones wait until there is room. */
TEST(test_who_stays)
{
    for (int how = 0; how < 3; how++) { /* known; exempt; nobody has an identity */
        struct world w;
        int fds[PLACES];
        world_open(&w, how != 2);
        w.exempt = how == 1 ? INADDR_LOOPBACK : 0;
        dial_all(&w, fds, PLACES, 1);
        for (int i = 0; i < PLACES && how == 0; i++)
            assert_int_equal(ask(&w, fds[i], "/", true), 200);
        int late = dial(&w, 2);
        turn_until_accepted(&w);
        assert_int_equal(clave__http_server_connections(w.http), PLACES);
        for (int i = 0; i < PLACES; i++)
            assert_false(is_closed(&w, fds[i]));
        close(fds[0]);
        assert_int_equal(ask(&w, late, "/", false), 200);
        close_all(fds + 1, PLACES - 1);
        close(late);
        world_close(&w);
    }
}

/* A proxy keeps what it has opened: with all places taken the one that was idle for the longest
 * goes, whatever its last request was, never one whose request is not answered. */
TEST(test_a_proxy_loses_idle_ones_alone)
{
    CLOSED_BY(world_close) struct world w;
    int fds[PLACES];
    world_open(&w, true);
    w.exempt = INADDR_LOOPBACK;
    dial_all(&w, fds, PLACES, 1);
    static const char waits[] = "GET /wait HTTP/1.1\r\n\r\n";
    assert_int_equal(send(fds[0], waits, sizeof waits - 1, MSG_NOSIGNAL), sizeof waits - 1);
    assert_int_equal(ask(&w, fds[2], "/401", false), 401);
    assert_int_equal(ask(&w, fds[1], "/", true), 200);
    assert_int_equal(ask(&w, fds[2], "/", true), 200);
    for (int gone = 1; gone <= 2; gone++) {
        assert_false(is_closed(&w, fds[gone]));
        int late = dial(&w, 1);
        assert_int_equal(ask(&w, late, "/wait-no-more", false), 200);
        assert_true(is_closed(&w, fds[gone]));
        close(fds[gone]);
        fds[gone] = late;
        assert_int_equal(send(late, waits, sizeof waits - 1, MSG_NOSIGNAL), sizeof waits - 1);
        turn_until_accepted(&w);
    }
    for (int i = 0; i < PLACES; i++)
        assert_false(is_closed(&w, fds[i]));
    close_all(fds, PLACES);
}

/* From its next connection on it is none any more. */
TEST(test_a_proxy_that_is_named_no_more)
{
    CLOSED_BY(world_close) struct world w;
    int fds[PLACES];
    world_open(&w, true);
    w.exempt = INADDR_LOOPBACK;
    dial_all(&w, fds, PLACES - 1, 1);
    w.exempt = 0;
    dial_all(&w, fds + PLACES - 1, 1, 1);
    int late = dial(&w, 2);
    turn_until_accepted(&w);
    assert_true(is_closed(&w, fds[0]));
    assert_int_equal(ask(&w, late, "/", false), 200);
    close_all(fds, PLACES);
    close(late);
}

static int option_of(int fd, int option)
{
    int value = 0;
    socklen_t size = sizeof value;
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, option, &value, &size), 0);
    return value;
}

/* The server's end of this connection. */
static int other_end(int fd)
{
    struct sockaddr_in mine, peer;
    socklen_t size = sizeof mine;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&mine, &size), 0);
    for (int other = 3; other < 1000; other++) {
        size = sizeof peer;
        if (other != fd && getpeername(other, (struct sockaddr *)&peer, &size) == 0 &&
            peer.sin_family == AF_INET && peer.sin_port == mine.sin_port)
            return other;
    }
    fail();
    return -1;
}

/* A client without power sends no FIN: the kernel asks for it, whether something was sent or not.
 */
TEST(test_a_client_that_is_gone_is_noticed_in_20_s)
{
    CLOSED_BY(world_close) struct world w;
    world_open(&w, true);
    int fd = dial(&w, 1);
    turn_until_accepted(&w);
    int served = other_end(fd);
    int noticed = option_of(served, TCP_KEEPIDLE) +
                  option_of(served, TCP_KEEPINTVL) * option_of(served, TCP_KEEPCNT);
    assert_in_range(noticed, 1, 20);
    assert_in_range(option_of(served, TCP_USER_TIMEOUT), 1, 20000);
    close(fd);
}

static void on_line(uv_timer_t *t)
{
    struct world *w = t->data;
    if (w->stream)
        clave__http_wake(w->stream);
}

/* It takes what its kernel has room for, and then it is closed within the answer's own limit. */
TEST(test_a_stream_that_is_not_read)
{
    CLOSED_BY(world_close) struct world w;
    world_open(&w, true);
    int fd = rig_dial(w.port, 2048);
    static const char get[] = "GET /stream HTTP/1.1\r\n\r\n";
    assert_int_equal(send(fd, get, sizeof get - 1, MSG_NOSIGNAL), sizeof get - 1);
    uv_timer_start(&w.lines, on_line, LINE_MS, LINE_MS);
    uint64_t from =
        uv_now(&w.loop); /* the clock that limits it, and not later than what it counts from */
    while (w.ended == 0) {
        assert_true(uv_now(&w.loop) < from + PATIENCE_MS / 2);
        uv_run(&w.loop, UV_RUN_ONCE);
    }
    assert_true(uv_now(&w.loop) >= from + LIMIT_MS);
    close(fd);
}
