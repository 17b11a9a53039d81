/* scale.c - many sessions, znodes and watches on one server, of one process on one thread:
 *
 *   scale HOST PORT SESSIONS ZNODES WATCHES
 *
 * Each session makes its part of the znodes, 1000 below one parent, and sets its part of the
 * watches on those of its neighbour. Writes a line of JSON after every stage, and waits for a line
 * on standard input before the next one, so that who drives it can look at the server: the count of
 * what was made, and how long it took. In the last stage 2000 creates and 2000 gets are sent one at
 * a time, and their latencies told.
 *
 * It speaks the protocol by itself, as load_library.c does, so that it is never the limit. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure.h"

enum { IN_CAP = 64 * 1024, OUT_CAP = 128 * 1024, BURST = 50, A_FOLDER = 1000, PROBES = 2000 };
enum { OP_CREATE = 1, OP_EXISTS = 3, OP_GET = 4 };

struct session {
    int fd;
    long id;
    long sent, answered, goal;
    uint8_t head[4]; /* of a frame that is coming in */
    size_t nhead, body;
};

struct scale {
    struct sockaddr_in address;
    struct session *sessions;
    long n, znodes, watches;
    int epoll;
    uint8_t in[IN_CAP], out[OUT_CAP];
    size_t out_len;
};

static void die(const char *what)
{
    fprintf(stderr, "scale: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- messages ------------------------------------------------------------------------------ */

static void put(struct scale *s, const void *p, size_t n)
{
    memcpy(s->out + s->out_len, p, n);
    s->out_len += n;
}

static void put_int(struct scale *s, uint32_t v)
{
    uint8_t b[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
    put(s, b, 4);
}

static void put_text(struct scale *s, const char *text)
{
    put_int(s, (uint32_t)strlen(text));
    put(s, text, strlen(text));
}

static size_t begin(struct scale *s, uint32_t xid, uint32_t op)
{
    size_t at = s->out_len;
    put_int(s, 0);
    put_int(s, xid);
    put_int(s, op);
    return at;
}

static void end(struct scale *s, size_t at)
{
    size_t to = s->out_len;
    s->out_len = at;
    put_int(s, (uint32_t)(to - at - 4));
    s->out_len = to;
}

static void put_create(struct scale *s, const char *path)
{
    size_t at = begin(s, 1, OP_CREATE);
    put_text(s, path);
    put_text(s, "some data");
    put_int(s, 1); /* one entry: all, world:anyone */
    put_int(s, 31);
    put_text(s, "world");
    put_text(s, "anyone");
    put_int(s, 0);
    end(s, at);
}

static void put_look(struct scale *s, uint32_t op, const char *path, bool watch)
{
    size_t at = begin(s, 1, op);
    put_text(s, path);
    put(s, watch ? "\1" : "\0", 1);
    end(s, at);
}

static void put_greeting(struct scale *s)
{
    static const uint8_t none[17];
    const uint32_t ints[] = {45, 0, 0, 0, 40000, 0, 0, 16}; /* 40 s, no session yet */
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        put_int(s, ints[i]);
    put(s, none, sizeof none);
}

static void flush(struct scale *s, const struct session *to)
{
    for (size_t at = 0; at < s->out_len;) {
        ssize_t n = write(to->fd, s->out + at, s->out_len - at);
        if (n <= 0)
            die("write");
        at += (size_t)n;
    }
    s->out_len = 0;
}

/* Counts the frames in what has come, and looks at the error of none: the server's own counters
 * tell whether all was made. */
static void take(struct session *c, const uint8_t *p, size_t n)
{
    while (n > 0) {
        if (c->body == 0) {
            c->head[c->nhead++] = *p++;
            n--;
            if (c->nhead < sizeof c->head)
                continue;
            c->nhead = 0;
            c->body = (size_t)c->head[1] << 16 | (size_t)c->head[2] << 8 | c->head[3];
            continue;
        }
        size_t part = n < c->body ? n : c->body;
        p += part;
        n -= part;
        c->body -= part;
        c->answered += c->body == 0;
    }
}

static void receive(struct scale *s, struct session *c)
{
    ssize_t n = read(c->fd, s->in, IN_CAP);
    if (n <= 0)
        die("read");
    take(c, s->in, (size_t)n);
}

/* ---- stages -----------------------------------------------------------------------------------
 */

static void name(char out[64], long number)
{
    snprintf(out, 64, "/scale/%ld/node-%ld", number / A_FOLDER, number);
}

static void put_one(struct scale *s, const struct session *c, int stage, long i)
{
    char path[64];
    long each = s->znodes / s->n;
    if (stage == 1) {
        name(path, c->id * each + i);
        put_create(s, path);
    } else {
        name(path, (c->id + 1) % s->n * each + i % each);
        put_look(s, OP_EXISTS, path, true);
    }
}

static void go_on(struct scale *s, struct session *c, int stage)
{
    if (c->answered < c->sent) /* bursts, each answered before the next */
        return;
    while (c->sent < c->goal && c->sent - c->answered < BURST)
        put_one(s, c, stage, c->sent++);
    flush(s, c);
}

/* Every session sends `goal` of one kind. */
static void run(struct scale *s, int stage, long goal)
{
    struct epoll_event events[256];
    long left = s->n;
    for (long i = 0; i < s->n; i++) {
        struct session *c = &s->sessions[i];
        c->sent = c->answered = 0;
        c->goal = goal;
        go_on(s, c, stage);
    }
    while (left > 0) {
        int n = epoll_wait(s->epoll, events, 256, 30000);
        if (n <= 0)
            die("no answer");
        for (int i = 0; i < n; i++) {
            struct session *c = events[i].data.ptr;
            receive(s, c);
            go_on(s, c, stage);
            left -= c->answered == goal;
        }
    }
}

static void dial(struct scale *s, struct session *c)
{
    int one = 1;
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&s->address, sizeof s->address) != 0)
        die("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, c->fd, &ev) != 0)
        die("epoll_ctl");
}

static void open_sessions(struct scale *s)
{
    for (long from = 0; from < s->n; from += 500) {
        long to = from + 500 < s->n ? from + 500 : s->n;
        for (long i = from; i < to; i++) {
            s->sessions[i].id = i;
            dial(s, &s->sessions[i]);
            put_greeting(s);
            flush(s, &s->sessions[i]);
        }
        for (long i = from; i < to; i++)
            while (s->sessions[i].answered == 0)
                receive(s, &s->sessions[i]);
    }
}

static void call(struct scale *s, struct session *c)
{
    long before = c->answered;
    flush(s, c);
    while (c->answered == before)
        receive(s, c);
}

static void make_folders(struct scale *s)
{
    char path[64];
    put_create(s, "/scale");
    call(s, s->sessions);
    for (long i = 0; i * A_FOLDER < s->znodes; i++) {
        snprintf(path, sizeof path, "/scale/%ld", i);
        put_create(s, path);
        call(s, s->sessions);
    }
}

static void probe(struct scale *s, bool write, double *p50_us, double *p99_us)
{
    static double took[PROBES];
    char path[64];
    for (long i = 0; i < PROBES; i++) {
        struct session *c = &s->sessions[i % s->n];
        double from = now_s();
        name(path, write ? s->znodes + i : i * 499 % s->znodes);
        if (write)
            snprintf(path, sizeof path, "/scale/0/probe-%ld", i);
        if (write)
            put_create(s, path);
        else
            put_look(s, OP_GET, path, false);
        call(s, c);
        took[i] = (now_s() - from) * 1e6;
    }
    times_sort(took, PROBES);
    *p50_us = times_p50(took, PROBES);
    *p99_us = times_p99(took, PROBES);
}

static void tell(const char *stage, long n, double from)
{
    printf("{\"stage\": \"%s\", \"n\": %ld, \"seconds\": %.3f}\n", stage, n, now_s() - from);
    fflush(stdout);
    if (getchar() == EOF)
        exit(0);
}

int main(int argc, char **argv)
{
    static struct scale s;
    struct rlimit files;
    double create[2], get[2];
    if (argc != 6) {
        fprintf(stderr, "usage: scale HOST PORT SESSIONS ZNODES WATCHES\n");
        return 64;
    }
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    s.address.sin_family = AF_INET;
    s.address.sin_port = htons((uint16_t)atoi(argv[2]));
    inet_pton(AF_INET, argv[1], &s.address.sin_addr);
    s.n = atol(argv[3]);
    s.znodes = atol(argv[4]) / s.n * s.n;
    s.watches = atol(argv[5]) / s.n * s.n;
    s.sessions = calloc((size_t)s.n, sizeof *s.sessions);
    s.epoll = epoll_create1(0);
    if (!s.sessions || s.epoll < 0)
        die("begin");
    double from = now_s();
    open_sessions(&s);
    tell("sessions", s.n, from);
    make_folders(&s);
    from = now_s();
    run(&s, 1, s.znodes / s.n);
    tell("znodes", s.znodes, from);
    from = now_s();
    run(&s, 2, s.watches / s.n);
    tell("watches", s.watches, from);
    probe(&s, true, &create[0], &create[1]);
    probe(&s, false, &get[0], &get[1]);
    printf("{\"stage\": \"probes\", \"create_p50_us\": %.0f, \"create_p99_us\": %.0f, "
           "\"get_p50_us\": %.0f, \"get_p99_us\": %.0f}\n",
           create[0], create[1], get[0], get[1]);
    fflush(stdout);
    getchar(); /* the sessions stay as long as somebody looks */
    return 0;
}
