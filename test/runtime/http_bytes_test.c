/* http_bytes_test.c - what an HTTP server makes of bytes: a table of what may come on a connection,
 * each row in one piece, cut at every byte, and byte by byte. How the bytes arrive changes
 * nothing. */
#include "rig.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "runtime/clock.h"
#include "runtime/http/http_server.h"

enum { PATIENCE_MS = 20000, MAX_HEAD = 300, MAX_BODY = 20 };

struct world {
    uv_loop_t loop;
    uv_timer_t tick;
    struct clave_mem mem;
    struct http *http;
    int port;
    unsigned begun, ended;
};

struct asked {
    struct http_exchange *x;
    struct web_answer answer;
};

/* Answers "METHOD PATH [body]": /no is refused by its head. */
static void world_begin(void *arg, const struct web_request *q, struct http_exchange *x,
                        void **user)
{
    struct world *w = arg;
    struct asked *a = calloc(1, sizeof *a);
    char text[400];
    assert_non_null(a);
    w->begun++;
    *user = a;
    a->x = x;
    a->answer.status = strcmp(clave__http_path(x), "/no") == 0 ? 403 : 200;
    clave__buf_init(&a->answer.body, &w->mem, sizeof text);
    int n = snprintf(text, sizeof text, "%s %s [", q->method, clave__http_path(x));
    clave__buf_append(&a->answer.body, text, (size_t)n);
    if (a->answer.status == 403)
        clave__http_answer(x, &a->answer);
}

static bool world_take_body(void *arg, void *user, const void *p, size_t n)
{
    struct asked *a = user;
    (void)arg;
    if (clave__buf_len(&a->answer.body) + n <= MAX_BODY + sizeof "POST / [" - 1)
        return clave__buf_append(&a->answer.body, p, n) == CLAVE_OK;
    a->answer.status = 413;
    clave__http_answer(a->x, &a->answer);
    return false;
}

static void world_body_done(void *arg, void *user)
{
    struct asked *a = user;
    (void)arg;
    clave__buf_append(&a->answer.body, "]", 1);
    clave__http_answer(a->x, &a->answer);
}

static void world_ended(void *arg, void *user)
{
    struct world *w = arg;
    struct asked *a = user;
    clave__buf_fini(&a->answer.body);
    free(a);
    w->ended++;
}

static void world_open(struct world *w)
{
    char why[300] = "";
    const struct fault f = {why, sizeof why};
    memset(w, 0, sizeof *w);
    w->mem = clave__mem_or_default(NULL);
    rig_loop_open(&w->loop, &w->tick);
    const struct http_options o = {.loop = &w->loop,
                                   .mem = &w->mem,
                                   .begin = world_begin,
                                   .take_body = world_take_body,
                                   .body_done = world_body_done,
                                   .ended = world_ended,
                                   .arg = w,
                                   .max_connections = 100,
                                   .max_head = MAX_HEAD,
                                   .ms = {PATIENCE_MS, PATIENCE_MS, 0, PATIENCE_MS}};
    assert_int_equal(clave__http_server_start(&w->http, "127.0.0.1:0", &o, &f), CLAVE_OK);
    w->port = atoi(strrchr(clave__http_server_address(w->http, 0), ':') + 1);
}

static void world_close(struct world *w)
{
    clave__http_server_stop(w->http);
    rig_loop_close(&w->loop, &w->tick);
    assert_int_equal(w->begun, w->ended);
}

/* ---- a row ---------------------------------------------------------------------------------- */

static char heard[1 << 16];

/* Sends the bytes with a cut after each `piece` (0: none) or after the first `cut`, and hears all
 * that is answered until the server closes the connection. */
static void world_exchange(struct world *w, const char *raw, size_t len, size_t cut, size_t piece)
{
    int fd = rig_dial(w->port, 0);
    size_t sent = 0, n = 0;
    ssize_t got = -1;
    int64_t until = clave__clock_wall() + PATIENCE_MS;
    while (got != 0) {
        size_t next = cut > 0 && sent < cut ? cut - sent : piece > 0 ? piece : len - sent;
        next = next < len - sent ? next : len - sent;
        if (next > 0 && send(fd, raw + sent, next, MSG_NOSIGNAL) < 0)
            break; /* it has heard enough */
        sent += next;
        uv_run(&w->loop, UV_RUN_NOWAIT);
        got = recv(fd, heard + n, sizeof heard - n - 1, MSG_DONTWAIT);
        n += got > 0 ? (size_t)got : 0;
        assert_true(clave__clock_wall() < until);
    }
    heard[n] = '\0';
    close(fd);
}

/* "200 GET / []|403 ...": the statuses of all answers, and what follows "[" in those of 200. */
static void world_outline(char *out, size_t cap)
{
    size_t n = 0;
    out[0] = '\0';
    for (const char *at = heard; (at = strstr(at, "HTTP/1.1 ")); at += 9) {
        if (strspn(at + 9, "0123456789") != 3)
            continue;
        n += (size_t)snprintf(out + n, cap - n, "%s%.3s", n > 0 ? "|" : "", at + 9);
        const char *body = strstr(at, "\r\n\r\n"), *open = body ? strchr(body, '[') : NULL;
        if (strncmp(at + 9, "200", 3) == 0 && open)
            n += (size_t)snprintf(out + n, cap - n, " %.*s",
                                  (int)(strchr(open, ']') + 1 - (body + 4)), body + 4);
    }
}

struct row {
    const char *raw;
    const char *told; /* as world_outline has it; the last answer closes the connection */
    size_t len;       /* 0: up to its NUL */
};

#define GET_LAST "GET /last HTTP/1.1\r\nConnection: close\r\n\r\n"
#define LAST "200 GET /last []"
#define POST "POST / HTTP/1.1\r\nConnection: close\r\n"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
#define ROW_OF(text, told)                                                                         \
    {                                                                                              \
        text, told, sizeof text - 1                                                                \
    }

static const struct row rows[] = {
    {GET_LAST, LAST, 0},
    {"\r\n" GET_LAST, LAST, 0},
    {"GET /a%20b?c HTTP/1.1\r\n\r\n" GET_LAST, "200 GET /a b []|" LAST, 0},
    {"GET / HTTP/1.0\r\n\r\n" GET_LAST, "200 GET / []", 0},
    {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" GET_LAST, "200 GET / []|" LAST, 0},
    {"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n" GET_LAST, "200 GET / []|" LAST,
     0},
    {POST "Content-Length: 2\r\n\r\nab", "200 POST / [ab]", 0},
    {POST "Content-Length: 0\r\n\r\n", "200 POST / []", 0},
    {CHUNKED "1\r\na\r\n2;x=y\r\nbc\r\n0\r\nTrailer: t\r\n\r\n", "200 POST / [abc]", 0},
    {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0a\r\n0123456789\r\n0\r\n\r\n" GET_LAST,
     "200 POST / [0123456789]|" LAST, 0},
    {"POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n\r\nab",
     "100|200 POST / [ab]", 0},
    /* refused by the head: its body is not read */
    {"POST /no HTTP/1.1\r\nContent-Length: 2000\r\n\r\n" GET_LAST, "403", 0},
    {"POST /no HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n", "403", 0},
    /* by its body */
    {POST "Content-Length: 30\r\n\r\n012345678901234567890123456789", "413", 0},
    {CHUNKED "1e\r\n012345678901234567890123456789\r\n0\r\n\r\n", "413", 0},
    {CHUNKED "zz\r\n", "400", 0},
    {CHUNKED "-2\r\n", "400", 0},
    {CHUNKED "2\r\nabXX0\r\n\r\n" GET_LAST, "400", 0},
    {CHUNKED "2\nab\r\n0\r\n\r\n", "400", 0},
    {CHUNKED "2\r\nab\n0\r\n\r\n" GET_LAST, "400", 0},
    {CHUNKED "\r\n" GET_LAST, "400", 0},
    {CHUNKED "fffffffffffffffff\r\nab", "400", 0},
    /* no request, or one that could be read in two ways */
    ROW_OF("\0\0\0\0", "400"),
    {"\x16\x03\x01\x02", "400", 0},
    {"GET\r\n\r\n", "400", 0},
    {"NONSENSE / HTTP/1.1\r\n\r\n", "501", 0},
    {"GET / HTTP/2.0\r\n\r\n", "505", 0},
    {"GET / HTTP/1.2\r\n\r\n", "505", 0},
    ROW_OF("GET /\0 HTTP/1.1\r\n\r\n", "400"),
    ROW_OF("GET / HTTP/1.1\r\nA: b\0c\r\n\r\n", "400"),
    {"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", "400", 0},
    {"GET / HTTP/1.1\r\nA: b\r\n\tc\r\n\r\n", "400", 0},
    {"GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", "400", 0},
    {"GET / HTTP/1.1\r\nA : b\r\n\r\n", "400", 0},
    {"GET / HTTP/1.1\r\nA b: c\r\n\r\n", "400", 0},
    {"GET / HTTP/1.1\r\n: b\r\n\r\n", "400", 0},
    {"GET / HTTP/1.1\r\nA: b\r\n\rGET /last HTTP/1.1\r\n\r\n", "400", 0},
    {POST "Content-Length: 2\r\nContent-Length: 2\r\n\r\nab", "400", 0},
    {POST "Content-Length: 2, 2\r\n\r\nab", "400", 0},
    {POST "Content-Length: +2\r\n\r\nab", "400", 0},
    {POST "Content-Length: -1\r\n\r\n", "400", 0},
    {POST "Content-Length: 18446744073709551616\r\n\r\n", "400", 0},
    {POST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400", 0},
    {POST "Transfer-Encoding: gzip\r\n\r\n", "501", 0},
};

TEST(test_what_comes_in_any_pieces)
{
    CLOSED_BY(world_close) struct world w;
    char told[1000];
    world_open(&w);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t len = rows[i].len > 0 ? rows[i].len : strlen(rows[i].raw);
        for (size_t cut = 0; cut <= len; cut++) { /* the last one: byte by byte */
            world_exchange(&w, rows[i].raw, len, cut < len ? cut : 0, cut < len ? 0 : 1);
            world_outline(told, sizeof told);
            if (strcmp(told, rows[i].told) != 0)
                fail_msg("row %zu, cut %zu: '%s', not '%s': %s", i, cut, told, rows[i].told, heard);
        }
    }
}

TEST(test_heads_that_are_too_long)
{
    char raw[4000], told[1000];
    CLOSED_BY(world_close) struct world w;
    world_open(&w);
    snprintf(raw, sizeof raw, "GET /%0*d HTTP/1.1\r\n\r\n", MAX_HEAD + 1, 0);
    world_exchange(&w, raw, strlen(raw), 0, 0);
    world_outline(told, sizeof told);
    assert_string_equal(told, "414");
    snprintf(raw, sizeof raw, "GET / HTTP/1.1\r\nA: %0*d\r\n\r\n", MAX_HEAD + 1, 0);
    world_exchange(&w, raw, strlen(raw), 0, 7);
    world_outline(told, sizeof told);
    assert_string_equal(told, "431");
    assert_non_null(strstr(heard, "application/problem+json"));
}

/* Of a body that was refused little is read, whatever its sender goes on to send. */
TEST(test_a_refused_body_is_not_read)
{
    enum { MANY = 64 << 20, MOST = 40 << 20 };
    static const char *const ways[] = {"Content-Length: 67108864", "Transfer-Encoding: chunked"};
    static char zeros[1 << 16];
    CLOSED_BY(world_close) struct world w;
    world_open(&w);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char head[200];
        size_t sent = 0, heard_len = 0;
        ssize_t put = 0;
        int fd = rig_dial(w.port, 0);
        int n = snprintf(head, sizeof head, "POST /no HTTP/1.1\r\n%s\r\n\r\n%s", ways[i],
                         i == 1 ? "4000000\r\n" : "");
        assert_int_equal(send(fd, head, (size_t)n, MSG_NOSIGNAL), n);
        for (int64_t until = clave__clock_wall() + PATIENCE_MS; sent < MANY;) {
            put = send(fd, zeros, sizeof zeros, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (put < 0 && errno != EAGAIN)
                break;
            sent += put > 0 ? (size_t)put : 0;
            uv_run(&w.loop, UV_RUN_NOWAIT);
            ssize_t got = recv(fd, heard + heard_len, sizeof heard - heard_len - 1, MSG_DONTWAIT);
            heard_len += got > 0 ? (size_t)got : 0;
            assert_true(clave__clock_wall() < until);
        }
        heard[heard_len] = '\0';
        assert_memory_equal(heard, "HTTP/1.1 403", 12);
        assert_true(put < 0 && sent < MOST);
        close(fd);
    }
}
