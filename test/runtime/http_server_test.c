/* http_server_test.c - the HTTP server by itself, on the loop of the test: bodies, keep-alive,
 * answers that wait, streams, clients that hang up, are slow or many, and that nothing is left. */
#include "rig.h"

#include <malloc.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "runtime/clock.h"
#include "runtime/http/http_server.h"

enum { MAX_BODY = 1000, MANY = 1000, PATIENCE_MS = 20000, SHORT_MS = 300 };
enum { LONG_PIECE = 40000 };

struct world;

struct asked {
    struct world *w;
    struct http_exchange *x;
    char line[300], path[100];
    struct buf body;
    struct web_answer answer;
    struct web_peer peer;
    unsigned empty;  /* pieces of a stream without text, which ask to go on */
    unsigned pieces; /* to be made after those */
    bool closes;     /* after those */
    bool is_long;    /* the pieces are */
};

struct world {
    uv_loop_t loop;
    uv_timer_t tick;
    struct clave_mem mem;
    struct http *http;
    struct http_options o;
    int port;
    struct asked *asked[MANY]; /* begun and not ended */
    unsigned begun, ended;
    unsigned turns, at_turn; /* of the loop; of the newest request that is slow to begin */
};

/* ---- what is served ------------------------------------------------------------------------- */

static clave_err world_more(void *arg, struct buf *out, bool *done)
{
    struct asked *a = arg;
    if (a->empty > 0) {
        a->empty--;
        clave__http_wake(a->x);
        return CLAVE_OK;
    }
    if (a->pieces == 0) {
        *done = a->closes;
        return CLAVE_OK;
    }
    a->pieces--;
    if (a->is_long) {
        static const char block[LONG_PIECE];
        return clave__buf_append(out, block, sizeof block);
    }
    return clave__buf_append(out, "piece;", 6);
}

static void world_fill(struct world *w, struct asked *a, const struct web_request *q)
{
    clave__buf_init(&a->body, &w->mem, MAX_BODY);
    clave__buf_init(&a->answer.body, &w->mem, 1 << 24);
    snprintf(a->line, sizeof a->line, "%s %s", q->method, q->target);
    snprintf(a->path, sizeof a->path, "%s", clave__http_path(a->x));
    a->answer.status = 200;
    a->answer.headers[0] = (struct web_header){"X-Test", "yes"};
    a->answer.nheaders = 1;
    a->answer.arg = a;
}

/* "PUT /echo 5 [hello]" */
static void world_echo(struct asked *a)
{
    char text[400];
    size_t len = clave__buf_len(&a->body);
    int n = snprintf(text, sizeof text, "%s %zu [", a->line, len);
    clave__buf_append(&a->answer.body, text, (size_t)n);
    clave__buf_append(&a->answer.body, clave__buf_bytes(&a->body), len);
    clave__buf_append(&a->answer.body, "]", 1);
}

static void world_be_slow(struct world *w)
{
    uint64_t until = uv_hrtime() + 3000000;
    if (w->at_turn == w->turns)
        fail_msg("two slow requests in a turn of the loop");
    w->at_turn = w->turns;
    while (uv_hrtime() < until)
        ;
}

/* /refused is, by its head; everything else is answered when its body is complete. */
static void world_begin(void *arg, const struct web_request *q, struct http_exchange *x,
                        void **user)
{
    struct world *w = arg;
    struct asked *a = calloc(1, sizeof *a);
    assert_non_null(a);
    *user = a;
    a->x = x;
    a->peer = q->peer;
    a->w = w;
    w->asked[w->begun++ % MANY] = a;
    world_fill(w, a, q);
    if (strcmp(a->path, "/refused") != 0)
        return;
    a->answer.status = 403;
    world_echo(a);
    clave__http_answer(x, &a->answer);
}

static bool world_take_body(void *arg, void *user, const void *p, size_t n)
{
    struct asked *a = user;
    (void)arg;
    if (clave__buf_append(&a->body, p, n) == CLAVE_OK)
        return true;
    a->answer.status = 413;
    clave__http_answer(a->x, &a->answer);
    return false;
}

/* /echo is answered at once; /wait when the test says so; /stream is; /large is a megabyte; /slow
 * takes milliseconds of the loop. */
static void world_body_done(void *arg, void *user)
{
    struct world *w = arg;
    struct asked *a = user;
    world_echo(a);
    if (strncmp(a->path, "/stream", 7) == 0)
        a->answer.more = world_more;
    if (strcmp(a->path, "/stream/long") == 0) {
        a->is_long = true;
        a->pieces = 2;
    }
    for (int i = 0; i < 16 && strcmp(a->path, "/large") == 0; i++) {
        static const char block[65536];
        clave__buf_append(&a->answer.body, block, sizeof block);
    }
    if (strcmp(a->path, "/slow") == 0)
        world_be_slow(w);
    if (strcmp(a->path, "/wait") != 0)
        clave__http_answer(a->x, &a->answer);
}

static void world_ended(void *arg, void *user)
{
    struct world *w = arg;
    struct asked *a = user;
    for (size_t i = 0; i < MANY; i++)
        if (w->asked[i] == a)
            w->asked[i] = NULL;
    clave__buf_fini(&a->body);
    clave__buf_fini(&a->answer.body);
    free(a);
    w->ended++;
}

static void world_open_at(struct world *w, const char *address)
{
    char why[300] = "";
    const struct fault f = {why, sizeof why};
    memset(w, 0, sizeof *w);
    w->mem = clave__mem_or_default(NULL);
    rig_loop_open(&w->loop, &w->tick);
    w->o = (struct http_options){.loop = &w->loop,
                                 .mem = &w->mem,
                                 .begin = world_begin,
                                 .take_body = world_take_body,
                                 .body_done = world_body_done,
                                 .ended = world_ended,
                                 .arg = w,
                                 .max_connections = MANY,
                                 .max_head = 8192,
                                 .ms = {PATIENCE_MS, SHORT_MS, 0, SHORT_MS}};
    assert_int_equal(clave__http_server_start(&w->http, address, &w->o, &f), CLAVE_OK);
    const char *colon = strrchr(clave__http_server_address(w->http, 0), ':');
    w->port = atoi(colon + 1);
}

static void world_open(struct world *w)
{
    world_open_at(w, "127.0.0.1:0");
}

static void world_close(struct world *w)
{
    clave__http_server_stop(w->http);
    rig_loop_close(&w->loop, &w->tick);
    assert_int_equal(w->begun, w->ended);
}

/* ---- clients -------------------------------------------------------------------------------- */

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void turn(struct world *w)
{
    w->turns++;
    uv_run(&w->loop, UV_RUN_ONCE);
}

/* Turns the loop until the client has heard this; what it heard is in `heard`. */
static char heard[1 << 16];

static void hear(struct world *w, int fd, const char *text)
{
    size_t n = 0;
    int64_t until = clave__clock_wall() + PATIENCE_MS;
    heard[0] = '\0';
    while (!strstr(heard, text)) {
        ssize_t got = recv(fd, heard + n, sizeof heard - n - 1, MSG_DONTWAIT);
        n += got > 0 ? (size_t)got : 0;
        heard[n] = '\0';
        if (got == 0 || clave__clock_wall() > until)
            fail_msg("heard '%s', not '%s'", heard, text);
        if (got < 0)
            turn(w);
    }
}

static void hear_end(struct world *w, int fd)
{
    char some[4096];
    ssize_t got = 1;
    int64_t until = clave__clock_wall() + PATIENCE_MS;
    while (got > 0 || (got < 0 && errno == EAGAIN)) {
        assert_true(clave__clock_wall() < until);
        got = recv(fd, some, sizeof some, MSG_DONTWAIT);
        if (got < 0)
            turn(w);
    }
    close(fd);
}

static void await_ended(struct world *w, unsigned n)
{
    int64_t until = clave__clock_wall() + PATIENCE_MS;
    while (w->ended < n) {
        assert_true(clave__clock_wall() < until);
        turn(w);
    }
}

static void await_begun(struct world *w, unsigned n)
{
    int64_t until = clave__clock_wall() + PATIENCE_MS;
    while (w->begun < n) {
        assert_true(clave__clock_wall() < until);
        turn(w);
    }
}

static void await_none(struct world *w)
{
    int64_t until = clave__clock_wall() + PATIENCE_MS / 4;
    while (clave__http_server_connections(w->http) > 0) {
        assert_true(clave__clock_wall() < until);
        turn(w);
    }
}

/* ---- requests ------------------------------------------------------------------------------- */

TEST(test_requests_in_a_row)
{
    CLOSED_BY(world_close) struct world w;
    world_open(&w);
    int fd = rig_dial(w.port, 0);
    say(fd, "PUT /echo?a=%20b&c HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
            "DELETE /a%2Fb HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(&w, fd, "DELETE /a%2Fb 0 []");
    assert_non_null(strstr(heard, "X-Test: yes"));
    assert_non_null(strstr(heard, "PUT /echo?a=%20b&c 5 [hello]"));
    say(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    hear(&w, fd, "POST /echo 5 [abcde]");
    say(fd, "HEAD /echo HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(&w, fd, "Content-Length: 15\r\n");
    assert_int_equal(w.begun, 4);
    close(fd);
    await_none(&w);
}

/* ---- waiting -------------------------------------------------------------------------------- */

TEST(test_answers_that_wait)
{
    CLOSED_BY(world_close) struct world w;
    world_open(&w);
    int first = rig_dial(w.port, 0), second = rig_dial(w.port, 0);
    say(first, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\nGET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
    await_begun(&w, 1);
    say(second, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    await_begun(&w, 2);
    int64_t until = clave__clock_wall() + 2 * SHORT_MS;
    while (clave__clock_wall() < until) /* longer than any other state may last */
        turn(&w);
    assert_int_equal(w.ended, 0);
    for (int i = 0; i < 2; i++)
        clave__http_answer(w.asked[i]->x, &w.asked[i]->answer);
    hear(&w, second, "GET /wait 0 []");
    hear(&w, first, "GET /echo 0 []"); /* the one behind it, too */
    assert_non_null(strstr(heard, "GET /wait 0 []"));
    close(first);
    close(second);
    await_none(&w);
}

/* The library does not see these hang up. */
TEST(test_clients_that_vanish)
{
    static const char *const parts[] = {
        "",
        "GET /wa",
        "GET /wait HTTP/1.1\r\nHost: x\r\n",
        "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab",
        "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /large HTTP/1.1\r\nHost: x\r\n\r\n"};
    enum { PARTS = sizeof parts / sizeof *parts };
    CLOSED_BY(world_close) struct world w;
    world_open(&w);
    for (int how = 0; how < 3; how++)
        for (int i = 0; i < PARTS; i++) {
            const struct linger at_once = {.l_onoff = 1};
            int fd = rig_dial(w.port, 0);
            say(fd, parts[i]);
            while (clave__http_server_connections(w.http) == 0)
                turn(&w);
            for (int turns = 0; turns < 5; turns++)
                turn(&w);
            if (how == 1)
                setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
            if (how == 2)
                shutdown(fd, SHUT_WR);
            else
                close(fd);
            await_none(&w);
            assert_int_equal(w.begun, w.ended);
            if (how == 2)
                close(fd);
        }
    assert_int_equal(w.begun, 12); /* a request begins with its head */
}

TEST(test_many_that_wait)
{
    CLOSED_BY(world_close) struct world w;
    int fds[MANY];
    world_open(&w);
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < MANY; i++) {
        fds[i] = rig_dial(w.port, 0);
        say(fds[i], "GET /wait HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\n\r\n");
        turn(&w);
    }
    await_begun(&w, MANY);
    size_t each = (mallinfo2().uordblks - before) / MANY;
    print_message("%zu bytes a waiting client\n", each);
    assert_true(each < 12 * 1024);
    for (int i = 0; i < MANY; i++)
        close(fds[i]);
    await_none(&w);
    assert_int_equal(w.ended, MANY);
}

/* ---- streams -------------------------------------------------------------------------------- */

TEST(test_streams)
{
    CLOSED_BY(world_close) struct world w;
    world_open(&w);
    int fd = rig_dial(w.port, 0);
    say(fd, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(&w, fd, "GET /stream 0 []");
    assert_non_null(strstr(heard, "Transfer-Encoding: chunked"));
    int64_t until = clave__clock_wall() + 2 * SHORT_MS;
    while (clave__clock_wall() < until) /* nothing to send is not slow */
        turn(&w);
    w.asked[0]->pieces = 2;
    clave__http_wake(w.asked[0]->x);
    clave__http_wake(w.asked[0]->x);
    hear(&w, fd, "piece;");
    w.asked[0]->empty = 3;
    w.asked[0]->pieces = 1;
    w.asked[0]->closes = true;
    clave__http_wake(w.asked[0]->x);
    hear(&w, fd, "\r\n0\r\n\r\n");
    say(fd, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(&w, fd, "GET /echo 0 []");
    close(fd);
    await_none(&w);
}

static void hear_bytes(struct world *w, int fd, size_t n)
{
    int64_t until = clave__clock_wall() + PATIENCE_MS;
    while (n > 0) {
        ssize_t got = recv(fd, heard, n < sizeof heard ? n : sizeof heard, MSG_DONTWAIT);
        assert_true(got != 0 && clave__clock_wall() < until);
        n -= got > 0 ? (size_t)got : 0;
        if (got < 0)
            turn(w);
    }
}

/* A stream that has sent all there was keeps no memory for what it may send. */
TEST(test_streams_that_wait_are_small)
{
    enum { STREAMS = 100 };
    CLOSED_BY(world_close) struct world w;
    int fds[STREAMS];
    world_open(&w);
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < STREAMS; i++) {
        fds[i] = rig_dial(w.port, 0);
        say(fds[i], "GET /stream/long HTTP/1.1\r\nHost: x\r\n\r\n");
        hear_bytes(&w, fds[i], 2 * LONG_PIECE);
    }
    int64_t until = clave__clock_wall() + PATIENCE_MS;
    while ((mallinfo2().uordblks - before) / STREAMS > 16 * 1024) { /* the rest is being sent */
        assert_true(clave__clock_wall() < until);
        turn(&w);
    }
    for (int i = 0; i < STREAMS; i++)
        close(fds[i]);
    await_none(&w);
}

/* Nothing keeps the loop for long: neither an answer of many pieces whose client reads it as fast
 * as it comes, nor requests that come together. */
TEST(test_turns_are_short)
{
    enum { PIECES = 300, SLOW = 4 };
    CLOSED_BY(world_close) struct world w;
    int fds[SLOW];
    world_open(&w);
    for (int i = 0; i < SLOW; i++) {
        fds[i] = rig_dial(w.port, 0);
        say(fds[i], i == 0 ? "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"
                           : "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
        hear(&w, fds[i], " 0 []");
    }
    unsigned before = w.turns;
    w.asked[0]->pieces = PIECES;
    w.asked[0]->closes = true;
    clave__http_wake(w.asked[0]->x);
    hear(&w, fds[0], "\r\n0\r\n\r\n");
    assert_true(w.turns - before >= PIECES / 2); /* the library asks for two */
    for (int i = 0; i < SLOW; i++)
        say(fds[i], "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int i = 0; i < SLOW; i++) {
        hear(&w, fds[i], "GET /slow 0 []");
        close(fds[i]);
    }
    await_none(&w);
}

TEST(test_the_end_while_they_wait)
{
    struct world w;
    world_open(&w);
    int waits = rig_dial(w.port, 0), streams = rig_dial(w.port, 0), half = rig_dial(w.port, 0);
    say(waits, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    say(streams, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    say(half, "GET /str");
    await_begun(&w, 2);
    for (int turns = 0; turns < 5; turns++)
        turn(&w);
    world_close(&w);
    close(waits);
    close(streams);
    close(half);
}

/* ---- the slow ------------------------------------------------------------------------------- */

TEST(test_slow_bodies_and_readers)
{
    CLOSED_BY(world_close) struct world w;
    const int small = 4096;
    world_open(&w);
    int slow = rig_dial(w.port, 0), deaf = rig_dial(w.port, 0);
    say(slow, "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n");
    setsockopt(deaf, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    for (int i = 0; i < 20; i++) /* more than the kernel takes for it */
        say(deaf, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    int64_t from = clave__clock_wall();
    while (clave__http_server_connections(w.http) < 2)
        turn(&w);
    while (clave__http_server_connections(w.http) > 0) {
        assert_true(clave__clock_wall() < from + PATIENCE_MS);
        send(slow, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        turn(&w);
    }
    hear_end(&w, slow);
    close(deaf);
    assert_true(clave__clock_wall() >= from + SHORT_MS);
}

TEST(test_the_user_behind_a_unix_socket)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    char address[sizeof to.sun_path + 8], folder[] = "/tmp/clave-http-XXXXXX";
    struct world w;
    assert_non_null(mkdtemp(folder));
    snprintf(to.sun_path, sizeof to.sun_path, "%s/socket", folder);
    snprintf(address, sizeof address, "unix:%s", to.sun_path);
    world_open_at(&w, address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    say(fd, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    await_begun(&w, 1);
    assert_true(w.asked[0]->peer.is_unix);
    assert_int_equal(w.asked[0]->peer.uid, getuid());
    close(fd);
    await_ended(&w, 1);
    world_close(&w);
    assert_int_equal(access(to.sun_path, F_OK), -1);
    assert_int_equal(rmdir(folder), 0);
}
