/* load.c - a load generator for one connection with a window of requests in flight:
 *
 *   load zk HOST PORT create|set|get WINDOW COUNT BYTES [SECONDS]
 *   load redis HOST PORT set|get WINDOW COUNT BYTES [SECONDS]
 *   load disk FILE - write 1 COUNT BYTES [SECONDS]
 *
 * It ends after COUNT requests, or SECONDS when they are over first. It writes whole batches and
 * only counts frames on the way back, so that it is never the limit. Prints one JSON object:
 * requests per second, the mean latency, and the median and 99th percentile of the time from one
 * batch to the next, which is the latency if the window is 1. `disk` is no server but the least
 * that one has to do: it writes to blocks that the file has, each time with an fdatasync. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure.h"

enum { IN_CAP = 1 << 20, OUT_CAP = 4 << 20, MAX_TURNS = 1 << 20, ROOM = 4 << 20, ZEROS = 16 << 10 };

struct load {
    int fd;
    bool zk;
    bool write;
    bool same; /* every write is of one key, with set */
    long window, count, bytes;
    double seconds;
    long sent, answered;
    uint64_t run; /* makes the paths of this run its own */
    uint8_t *in, *out;
    size_t in_len, out_len;
    double *turns_us;
    size_t nturns;
};

static void die(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void put(struct load *l, const void *p, size_t n)
{
    memcpy(l->out + l->out_len, p, n);
    l->out_len += n;
}

static void put_int(struct load *l, uint32_t v)
{
    uint8_t b[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
    put(l, b, 4);
}

static void put_text(struct load *l, const char *s)
{
    put_int(l, (uint32_t)strlen(s));
    put(l, s, strlen(s));
}

static void flush(struct load *l)
{
    for (size_t at = 0; at < l->out_len;) {
        ssize_t n = write(l->fd, l->out + at, l->out_len - at);
        if (n <= 0)
            die("write");
        at += (size_t)n;
    }
    l->out_len = 0;
}

static void fill(struct load *l)
{
    size_t n = l->in_len;
    ssize_t got = read(l->fd, l->in + n, IN_CAP - n);
    if (got <= 0)
        die("read");
    l->in_len += (size_t)got;
}

static uint32_t int_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void zk_data(struct load *l)
{
    put_int(l, (uint32_t)l->bytes);
    memset(l->out + l->out_len, 'x', (size_t)l->bytes);
    l->out_len += (size_t)l->bytes;
}

static void zk_create(struct load *l, uint32_t xid, const char *path)
{
    size_t at = l->out_len;
    put_int(l, 0);
    put_int(l, xid);
    put_int(l, 1);
    put_text(l, path);
    zk_data(l);
    put_int(l, 1);
    put_int(l, 31);
    put_text(l, "world");
    put_text(l, "anyone");
    put_int(l, 0);
    size_t end = l->out_len;
    l->out_len = at;
    put_int(l, (uint32_t)(end - at - 4));
    l->out_len = end;
}

static void zk_get(struct load *l, uint32_t xid, const char *path)
{
    put_int(l, (uint32_t)(8 + 4 + strlen(path) + 1));
    put_int(l, xid);
    put_int(l, 4);
    put_text(l, path);
    put(l, "", 1);
}

static void zk_set(struct load *l, uint32_t xid, const char *path)
{
    put_int(l, (uint32_t)(8 + 4 + strlen(path) + 4 + (size_t)l->bytes + 4));
    put_int(l, xid);
    put_int(l, 5);
    put_text(l, path);
    zk_data(l);
    put_int(l, UINT32_MAX); /* whatever its version */
}

static void redis_command(struct load *l, const char *key)
{
    char head[160];
    if (!l->write) {
        put(l, head,
            (size_t)snprintf(head, sizeof head, "*2\r\n$3\r\nGET\r\n$%zu\r\n%s\r\n", strlen(key),
                             key));
        return;
    }
    put(l, head,
        (size_t)snprintf(head, sizeof head, "*3\r\n$3\r\nSET\r\n$%zu\r\n%s\r\n$%ld\r\n",
                         strlen(key), key, l->bytes));
    memset(l->out + l->out_len, 'x', (size_t)l->bytes);
    l->out_len += (size_t)l->bytes;
    put(l, "\r\n", 2);
}

static void send_one(struct load *l)
{
    char key[64];
    if (l->write && !l->same)
        snprintf(key, sizeof key, "/load-%llx-%ld", (unsigned long long)l->run, l->sent);
    else
        snprintf(key, sizeof key, "/load-%llx", (unsigned long long)l->run);
    if (!l->zk)
        redis_command(l, key);
    else if (l->same)
        zk_set(l, (uint32_t)l->sent + 1, key);
    else if (l->write)
        zk_create(l, (uint32_t)l->sent + 1, key);
    else
        zk_get(l, (uint32_t)l->sent + 1, key);
    l->sent++;
}

/* Bytes of the first whole answer in the buffer, 0 when it is not whole. */
static size_t answer_len(const struct load *l, size_t at)
{
    const uint8_t *p = l->in + at;
    size_t n = l->in_len - at;
    if (l->zk) {
        if (n < 4 || n < 4 + (size_t)int_at(p))
            return 0;
        size_t len = 4 + (size_t)int_at(p);
        if (len >= 20 && int_at(p + 16) != 0) {
            fprintf(stderr, "load: the server answered error %d\n", (int)int_at(p + 16));
            exit(1);
        }
        return len;
    }
    const uint8_t *nl = memchr(p, '\n', n);
    if (!nl)
        return 0;
    size_t line = (size_t)(nl - p) + 1;
    if (p[0] == '+')
        return line;
    if (p[0] != '$') {
        fprintf(stderr, "load: redis answered %.*s", (int)line, (const char *)p);
        exit(1);
    }
    size_t len = line + (size_t)strtol((const char *)p + 1, NULL, 10) + 2;
    return n < len ? 0 : len;
}

static void take_answers(struct load *l)
{
    size_t at = 0, len;
    while (at < l->in_len && (len = answer_len(l, at)) > 0) {
        at += len;
        l->answered++;
    }
    memmove(l->in, l->in + at, l->in_len - at);
    l->in_len -= at;
}

static void zk_handshake(struct load *l)
{
    put_int(l, 45);
    put_int(l, 0);
    put_int(l, 0);
    put_int(l, 0);
    put_int(l, 30000);
    put_int(l, 0);
    put_int(l, 0);
    put_int(l, 16);
    put(l, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    put(l, "", 1);
    flush(l);
    while (l->in_len < 41)
        fill(l);
    if (int_at(l->in + 8) == 0) {
        fprintf(stderr, "load: the server refused the session\n");
        exit(1);
    }
    l->in_len = 0;
}

static void prepare_target(struct load *l)
{
    char key[64];
    snprintf(key, sizeof key, "/load-%llx", (unsigned long long)l->run);
    if (l->zk) {
        zk_create(l, 0x7fffffff, key);
    } else {
        l->write = true;
        redis_command(l, key);
        l->write = false;
    }
    flush(l);
    while (l->answered == 0) {
        fill(l);
        take_answers(l);
    }
    l->answered = 0;
}

/* The time since `start`, when another turn has ended. */
static double end_turn(struct load *l, double start, double before)
{
    double now = now_s() - start;
    if (l->nturns < MAX_TURNS)
        l->turns_us[l->nturns++] = (now - before) * 1e6;
    return now;
}

static void report(struct load *l, double took)
{
    times_sort(l->turns_us, l->nturns);
    printf("{\"per_s\": %.0f, \"mean_us\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f}\n",
           (double)l->answered / took, took * 1e6 * (double)l->window / (double)l->answered,
           times_p50(l->turns_us, l->nturns), times_p99(l->turns_us, l->nturns));
}

static void run_disk(struct load *l, const char *file)
{
    off_t end = 0;
    l->fd = open(file, O_WRONLY);
    if (l->fd < 0)
        die(file);
    for (off_t at = 0; at < ROOM; at += ZEROS) /* long writes make for slow pages */
        if (pwrite(l->fd, l->in, ZEROS, at) != ZEROS)
            die(file);
    if (fsync(l->fd) != 0)
        die(file);
    memset(l->out, 'x', (size_t)l->bytes);
    double start = now_s(), took = 0;
    for (; l->answered < l->count && took < l->seconds; l->answered++, end += l->bytes) {
        if (end + l->bytes > ROOM)
            end = 0;
        if (pwrite(l->fd, l->out, (size_t)l->bytes, end) != l->bytes || fdatasync(l->fd) != 0)
            die(file);
        took = end_turn(l, start, took);
    }
    report(l, took);
}

static void run(struct load *l)
{
    if (!l->write || l->same)
        prepare_target(l);
    double start = now_s(), took = 0;
    while (l->answered < l->count && took < l->seconds) {
        while (l->sent < l->count && l->sent - l->answered < l->window &&
               l->out_len + (size_t)l->bytes + 512 < OUT_CAP)
            send_one(l);
        flush(l);
        fill(l);
        take_answers(l);
        took = end_turn(l, start, took);
    }
    report(l, took);
}

static int dial(const char *host, const char *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    int one = 1;
    if (inet_pton(AF_INET, host, &a.sin_addr) != 1)
        die(host);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) != 0)
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

int main(int argc, char **argv)
{
    if (argc != 8 && argc != 9) {
        fprintf(stderr, "usage: load zk|redis HOST PORT create|set|get WINDOW COUNT BYTES "
                        "[SECONDS]\n       load disk FILE - write 1 COUNT BYTES [SECONDS]\n");
        return 64;
    }
    struct load l = {.zk = strcmp(argv[1], "zk") == 0,
                     .write = strcmp(argv[4], "get") != 0,
                     .same = strcmp(argv[1], "zk") == 0 && strcmp(argv[4], "set") == 0,
                     .window = atol(argv[5]),
                     .count = atol(argv[6]),
                     .bytes = atol(argv[7]),
                     .seconds = argc == 9 ? atof(argv[8]) : 1e9,
                     .in = calloc(1, IN_CAP),
                     .out = malloc(OUT_CAP),
                     .turns_us = malloc(MAX_TURNS * sizeof(double))};
    if (!l.in || !l.out || !l.turns_us)
        die("malloc");
    if (strcmp(argv[1], "disk") == 0) {
        run_disk(&l, argv[2]);
        return 0;
    }
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    l.run = (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
    l.fd = dial(argv[2], argv[3]);
    if (l.zk)
        zk_handshake(&l);
    run(&l);
    return 0;
}
