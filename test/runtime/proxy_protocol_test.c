/* proxy_protocol_test.c - headers of the PROXY protocol: a table of them, each cut at every byte,
 * and before a request, with what the server then takes for its client. */
#include "rig.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "runtime/clock.h"
#include "runtime/http/http_server.h"
#include "runtime/http/proxy_protocol.h"

enum { PATIENCE_MS = 20000, SHORT_MS = 300 };

struct row {
    const char *raw;
    size_t len;
    const char *named; /* NULL: it is no header; "": the proxy itself */
};

#define ROW(raw, named)                                                                            \
    {                                                                                              \
        raw, sizeof(raw) - 1, named                                                                \
    }
#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define TCP4 "\xc0\x00\x02\x07\x7f\x00\x00\x01\x10\x00\x01\xbb"
#define TCP6                                                                                       \
    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07"                                                   \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x10\x00\x01\xbb"
#define MAPPED                                                                                     \
    "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\x00\x00\x01"                                                 \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x10\x00\x01\xbb"

static const struct row rows[] = {
    ROW("PROXY TCP4 192.0.2.7 127.0.0.1 4096 443\r\n", "192.0.2.7:4096"),
    ROW("PROXY TCP6 2001:db8::7 ::1 4096 443\r\n", "[2001:db8::7]:4096"),
    ROW("PROXY TCP4 127.0.0.1 127.0.0.1 0 65535\r\n", "127.0.0.1:0"),
    ROW("PROXY UNKNOWN\r\n", ""),
    ROW("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", ""),
    ROW(SIGNATURE "\x21\x11\x00\x0c" TCP4, "192.0.2.7:4096"),
    ROW(SIGNATURE "\x21\x11\x00\x11" TCP4 "\x04\x00\x02xy", "192.0.2.7:4096"),
    ROW(SIGNATURE "\x21\x21\x00\x24" TCP6, "[2001:db8::7]:4096"),
    ROW(SIGNATURE "\x21\x21\x00\x24" MAPPED, "127.0.0.1:4096"),
    ROW(SIGNATURE "\x20\x11\x00\x0c" TCP4, ""), /* LOCAL: a check of the proxy's */
    ROW(SIGNATURE "\x20\x00\x00\x00", ""),
    ROW(SIGNATURE "\x21\x00\x00\x00", ""), /* of no kind, and UDP */
    ROW(SIGNATURE "\x21\x12\x00\x0c" TCP4, ""),
    ROW("GET / HTTP/1.1\r\n\r\n", NULL),
    ROW("\x16\x03\x01\x02\x00", NULL),
    ROW("PROXY\r\n", NULL),
    ROW("PROXY TCP4\r\n", NULL),
    ROW("PROXY  TCP4 192.0.2.7 127.0.0.1 4096 443\r\n", NULL),
    ROW("PROXY TCP4 192.0.2.7 127.0.0.1 4096 443\n", NULL),
    ROW("PROXY TCP4 192.0.2.7 127.0.0.1 65536 443\r\n", NULL),
    ROW("PROXY TCP4 192.0.2.7 127.0.0.1 4096\r\n", NULL),
    ROW("PROXY TCP4 192.0.2.7 127.0.0.1 4096 443 \r\n", NULL),
    ROW("PROXY TCP4 ::1 ::1 4096 443\r\n", NULL),
    ROW("PROXY TCP4 192.0.2.7\0 127.0.0.1 4096 443\r\n", NULL),
    ROW("PROXY UNKNOWN 1234567890123456789012345678901234567890123456789012345678901234567890123456"
        "789012345678901234567890\r\n",
        NULL),                                    /* longer than a line may be */
    ROW(SIGNATURE "\x11\x11\x00\x0c" TCP4, NULL), /* version 1, in this form */
    ROW(SIGNATURE "\x22\x11\x00\x0c" TCP4, NULL),
    ROW(SIGNATURE "\x21\x11\x00\x0b" TCP4, NULL), /* too short for its kind */
    ROW(SIGNATURE "\x21\x21\x00\x0c" TCP4, NULL),
    ROW(SIGNATURE "\x21\x11\xff\xff" TCP4, NULL),
};

TEST(test_headers_cut_at_every_byte)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t n = 0; n <= rows[i].len; n++) {
            struct peer_addr peer;
            size_t used;
            bool is_named;
            enum proxy_parsed what = clave__proxy_parse(rows[i].raw, n, &used, &is_named, &peer);
            if (n < rows[i].len && what == PROXY_DONE)
                fail_msg("row %zu is done after %zu bytes", i, n);
            if (rows[i].named && n < rows[i].len && what != PROXY_MORE)
                fail_msg("row %zu is refused after %zu bytes", i, n);
            if (n < rows[i].len)
                continue;
            if (what != (rows[i].named ? PROXY_DONE : PROXY_FAULT))
                fail_msg("row %zu: %d", i, (int)what);
            if (!rows[i].named)
                continue;
            assert_int_equal(used, rows[i].len);
            assert_int_equal(is_named, rows[i].named[0] != '\0');
            if (is_named)
                assert_string_equal(peer.text, rows[i].named);
        }
}

/* ---- before a request ----------------------------------------------------------------------- */

struct world {
    uv_loop_t loop;
    uv_timer_t tick;
    struct clave_mem mem;
    struct http *http;
    int port;
    struct web_answer answer;
    char address[100];
    bool is_loopback;
};

static void world_begin(void *arg, const struct web_request *q, struct http_exchange *x,
                        void **user)
{
    struct world *w = arg;
    *user = w;
    snprintf(w->address, sizeof w->address, "%s", q->peer.address);
    w->is_loopback = q->peer.is_loopback;
    clave__buf_init(&w->answer.body, &w->mem, 1);
    w->answer.status = 200;
    clave__http_answer(x, &w->answer);
}

/* What it is answered; "": closed. */
static void world_exchange(struct world *w, const char *raw, size_t len, size_t piece, char *heard)
{
    int fd = rig_dial(w->port, 0);
    size_t sent = 0;
    ssize_t got = -1;
    int64_t until = clave__clock_wall() + PATIENCE_MS;
    while (got < 0) {
        size_t n = piece < len - sent ? piece : len - sent;
        if (n > 0 && send(fd, raw + sent, n, MSG_NOSIGNAL) < 0)
            break;
        sent += n;
        uv_run(&w->loop, UV_RUN_NOWAIT);
        got = recv(fd, heard, 99, MSG_DONTWAIT);
        if (got < 0 && errno != EAGAIN)
            break;
        assert_true(clave__clock_wall() < until);
    }
    heard[got > 0 ? got : 0] = '\0';
    close(fd);
}

TEST(test_requests_behind_a_header)
{
    static const char get[] = "GET / HTTP/1.1\r\nConnection: close\r\n\r\n";
    struct world w = {.mem = clave__mem_or_default(NULL)};
    char why[300] = "", raw[1000], heard[100];
    const struct fault f = {why, sizeof why};
    rig_loop_open(&w.loop, &w.tick);
    const struct http_options o = {.loop = &w.loop,
                                   .mem = &w.mem,
                                   .begin = world_begin,
                                   .arg = &w,
                                   .max_connections = 10,
                                   .ms = {PATIENCE_MS, PATIENCE_MS, 0, PATIENCE_MS, SHORT_MS}};
    assert_int_equal(clave__http_server_start(&w.http, "proxy:127.0.0.1:0", &o, &f), CLAVE_OK);
    w.port = atoi(strrchr(clave__http_server_address(w.http, 0), ':') + 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t piece = 1; piece < sizeof raw; piece += sizeof raw - 2) {
            memcpy(raw, rows[i].raw, rows[i].len);
            memcpy(raw + rows[i].len, get, sizeof get - 1);
            w.address[0] = '\0';
            world_exchange(&w, raw, rows[i].len + sizeof get - 1, piece, heard);
            if ((strncmp(heard, "HTTP/1.1 200", 12) == 0) != (rows[i].named != NULL))
                fail_msg("row %zu: '%s'", i, heard);
            if (!rows[i].named)
                continue;
            assert_false(w.is_loopback);
            if (rows[i].named[0])
                assert_string_equal(w.address, rows[i].named);
        }
    int silent = rig_dial(w.port, 0); /* as long as a handshake may take */
    char byte;
    while (recv(silent, &byte, 1, MSG_DONTWAIT) < 0)
        uv_run(&w.loop, UV_RUN_ONCE);
    close(silent);
    clave__http_server_stop(w.http);
    rig_loop_close(&w.loop, &w.tick);
}
