/* http.c - clients of locks over HTTP, for bench/http; PORT is on 127.0.0.1, KIND clave or etcd.
 *
 *   http cycle KIND PORT LOCK CYCLES PAUSE_US    acquire + release, one session, one connection
 *   http get KIND PORT KEY CONNECTIONS SECONDS   reads, one in flight on each connection
 *   http queue KIND PORT LOCK N TTL_MS CYCLES    N sessions of one lock: one holds, the others wait
 *   http streams PORT N                          N connections that follow /v1/events
 *   http pings PORT PAUSE_US                     GET /healthz until standard input ends
 *   http fetch PORT PATH TIMES                   GETs, each on a connection of its own
 *
 * Each prints JSON objects, a line each. `queue` and `streams` print {"ready": N} when all are
 * there, and go on when a line comes in: `queue` hands the lock over CYCLES times, each timed from
 * the sending of the release to the arrival of the next one's grant. etcd's names are base64. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure.h"

enum { IN_CAP = 8192, FIELD = 256 };

/* A connection, with the session and the lock that its requests are for. */
struct peer {
    int fd;
    char in[IN_CAP];
    size_t len;
    char id[FIELD], secret[FIELD]; /* etcd: the lease */
    char claim[FIELD];             /* etcd: the key */
    double asked_at;
    bool releasing; /* it has not been told yet that its lock is released */
};

struct answer {
    int status;
    const char *body;
};

static bool etcd;
static const char *port, *name; /* of the lock or key */

static void die(const char *what)
{
    fprintf(stderr, "http: ");
    perror(what);
    exit(1);
}

static void report(double *us, size_t n, double took_us)
{
    if (n == 0)
        exit(1);
    times_sort(us, n);
    printf(
        "{\"n\": %zu, \"per_s\": %.0f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"longest_us\": %.1f}\n",
        n, (double)n / took_us * 1e6, times_p50(us, n), times_p99(us, n), us[n - 1]);
    fflush(stdout);
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

static int dial(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) != 0)
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

/* `headers` as lines, each with its CRLF; `format` makes the body. */
static void ask(struct peer *p, const char *method, const char *path, const char *headers,
                const char *format, ...)
{
    char body[1024], out[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(body, sizeof body, format, args);
    va_end(args);
    size_t len = strlen(body);
    const char *type = len > 0 ? "Content-Type: application/json\r\n" : "";
    int n = snprintf(out, sizeof out,
                     "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n%s%sContent-Length: %zu\r\n\r\n%s",
                     method, path, port, headers, type, len, body);
    p->asked_at = now_us();
    if (n >= (int)sizeof out || write(p->fd, out, (size_t)n) != n)
        die("write");
}

static void ask_session(struct peer *p, const char *method, const char *path, const char *more,
                        const char *body)
{
    char headers[2 * FIELD];
    snprintf(headers, sizeof headers, "Clave-Session: %s\r\n%s", p->secret, more);
    ask(p, method, path, headers, "%s", body);
}

/* One whole answer is in, which is taken out at the next call; the body ends with a NUL. */
static bool answer_whole(struct peer *p, struct answer *a)
{
    p->in[p->len] = '\0';
    char *end = strstr(p->in, "\r\n\r\n");
    if (!end)
        return false;
    char *length = strcasestr(p->in, "\r\nContent-Length:");
    size_t body = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
    if (p->len < (size_t)(end - p->in) + 4 + body)
        return false;
    a->status = atoi(p->in + 9);
    a->body = end + 4;
    p->len = 0; /* one request at a time: nothing can follow */
    return true;
}

static bool fill(struct peer *p, struct answer *a)
{
    ssize_t n = read(p->fd, p->in + p->len, IN_CAP - 1 - p->len);
    if (n <= 0)
        die("read");
    p->len += (size_t)n;
    return answer_whole(p, a);
}

static void expect(struct answer a, int status)
{
    if (a.status == status)
        return;
    fprintf(stderr, "http: answered %d, not %d: %s\n", a.status, status, a.body);
    exit(1);
}

static struct answer take(struct peer *p, int status)
{
    struct answer a;
    while (!fill(p, &a))
        ;
    expect(a, status);
    return a;
}

/* The text of a member, which must be there. */
static void member(struct answer a, const char *key, char out[FIELD])
{
    char quoted[FIELD];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(a.body, quoted);
    at = at ? strchr(at + strlen(quoted), '"') : NULL;
    size_t n = at ? strcspn(at + 1, "\"") : FIELD;
    if (n >= FIELD) {
        fprintf(stderr, "http: no %s in %s\n", key, a.body);
        exit(1);
    }
    memcpy(out, at + 1, n);
    out[n] = '\0';
}

/* ---- sessions and locks ---------------------------------------------------------------------- */

static void session_open(struct peer *p, int ttl_ms)
{
    p->fd = dial();
    if (etcd) {
        ask(p, "POST", "/v3/lease/grant", "", "{\"TTL\":\"%d\"}", (ttl_ms + 999) / 1000);
        member(take(p, 200), "ID", p->id);
        return;
    }
    ask(p, "POST", "/v1/sessions", "", "{\"ttl_ms\":%d}", ttl_ms);
    struct answer a = take(p, 201);
    member(a, "id", p->id);
    member(a, "secret", p->secret);
}

static void session_close(struct peer *p, struct peer *with)
{
    char path[2 * FIELD];
    snprintf(path, sizeof path, "/v1/sessions/%s", p->id);
    memcpy(with->secret, p->secret, sizeof with->secret);
    if (etcd)
        ask(with, "POST", "/v3/lease/revoke", "", "{\"ID\":\"%s\"}", p->id);
    else
        ask_session(with, "DELETE", path, "", "");
    take(with, etcd ? 200 : 204);
}

/* Whoever waits is there; a holder must say so. */
static void session_renew(struct peer *p)
{
    char path[2 * FIELD];
    snprintf(path, sizeof path, "/v1/sessions/%s/renew", p->id);
    ask_session(p, "POST", path, "", "");
    take(p, 200);
}

/* `waits`: for the lock; else clave answers as soon as the place in the queue is known. */
static void lock_ask(struct peer *p, bool waits)
{
    char body[2 * FIELD];
    if (etcd) {
        ask(p, "POST", "/v3/lock/lock", "", "{\"name\":\"%s\",\"lease\":\"%s\"}", name, p->id);
        return;
    }
    snprintf(body, sizeof body, "{\"session\":\"%s\",\"path\":\"%s\",\"kind\":\"lock\"}", p->id,
             name);
    ask_session(p, "POST", "/v1/claims", waits ? "Prefer: wait=300\r\n" : "", body);
}

static void lock_granted(struct peer *p, struct answer a)
{
    if (!etcd && a.status != 200) /* 200: of GET; 201: of POST */
        expect(a, 201);
    else
        expect(a, 200);
    member(a, etcd ? "key" : "id", p->claim);
}

static void lock_release(struct peer *p)
{
    char path[2 * FIELD];
    snprintf(path, sizeof path, "/v1/claims/%s", p->claim);
    if (etcd)
        ask(p, "POST", "/v3/lock/unlock", "", "{\"key\":\"%s\"}", p->claim);
    else
        ask_session(p, "DELETE", path, "", "");
}

static void run_cycles(int cycles, int pause_us)
{
    static struct peer p;
    double *us = malloc((size_t)cycles * sizeof *us), begin = now_us();
    struct answer a;
    if (!us)
        die("malloc");
    session_open(&p, 60000);
    for (int i = -cycles / 10; i < cycles; i++) {
        lock_ask(&p, true);
        double start = p.asked_at;
        while (!fill(&p, &a))
            ;
        lock_granted(&p, a);
        lock_release(&p);
        take(&p, etcd ? 200 : 204);
        if (i >= 0)
            us[i] = now_us() - start;
        if (pause_us > 0)
            usleep((useconds_t)pause_us);
    }
    report(us, (size_t)cycles, now_us() - begin);
    session_close(&p, &p);
}

/* ---- many connections ------------------------------------------------------------------------ */

static int watch_all(struct peer *peers, int n)
{
    int epoll = epoll_create1(0);
    for (int i = 0; i < n; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &peers[i]};
        if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, peers[i].fd, &e) != 0)
            die("epoll");
    }
    return epoll;
}

static struct peer *peers_new(int n)
{
    struct peer *peers = calloc((size_t)n, sizeof *peers);
    if (!peers)
        die("malloc");
    return peers;
}

/* Tells the script, and waits for its word. */
static void ready(int n)
{
    char line[8];
    printf("{\"ready\": %d}\n", n);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        exit(0);
}

static void read_ask(struct peer *p)
{
    char path[2 * FIELD];
    snprintf(path, sizeof path, "/v1/znodes%s", name);
    if (etcd)
        ask(p, "POST", "/v3/kv/range", "", "{\"key\":\"%s\"}", name);
    else
        ask(p, "GET", path, "", "");
}

static void run_gets(int n, double seconds)
{
    enum { MOST = 1 << 20 };
    struct peer *peers = peers_new(n);
    double *us = malloc(MOST * sizeof *us), begin = now_us();
    struct epoll_event e[64];
    struct answer a;
    size_t done = 0;
    for (int i = 0; i < n; i++)
        peers[i].fd = dial();
    int epoll = watch_all(peers, n);
    for (int i = 0; i < n; i++)
        read_ask(&peers[i]);
    while (us && done < MOST && now_us() - begin < seconds * 1e6) {
        int got = epoll_wait(epoll, e, 64, 1000);
        for (int i = 0; i < got && done < MOST; i++) {
            struct peer *p = e[i].data.ptr;
            if (!fill(p, &a))
                continue;
            expect(a, 200);
            us[done++] = now_us() - p->asked_at;
            read_ask(p);
        }
    }
    report(us, done, now_us() - begin);
}

/* Nobody tells of a place in etcd's queue: how many keys there are does. */
static void etcd_await_places(int n)
{
    static struct peer p;
    char end[FIELD], count[FIELD] = "";
    p.fd = dial();
    snprintf(end, sizeof end, "%s", name);
    end[strlen(end) - 1]++; /* the script's names are whole groups of 4, and end with a v */
    while (atoi(count) < n) {
        ask(&p, "POST", "/v3/kv/range", "",
            "{\"key\":\"%s\",\"range_end\":\"%s\",\"count_only\":true}", name, end);
        member(take(&p, 200), "count", count);
    }
}

static void queue_fill(struct peer *peers, int n, int ttl_ms)
{
    char path[2 * FIELD];
    double renewed_at = now_us();
    for (int i = 0; i < n; i++) {
        struct peer *p = &peers[i];
        session_open(p, ttl_ms);
        lock_ask(p, false);
        if (!etcd && i > 0 && now_us() - renewed_at > 1e6) {
            session_renew(&peers[0]);
            renewed_at = now_us();
        }
        if (i == 0) {
            lock_granted(p, take(p, etcd ? 200 : 201));
        } else if (!etcd) {
            member(take(p, 202), "id", p->claim);
            snprintf(path, sizeof path, "/v1/claims/%s", p->claim);
            ask_session(p, "GET", path, "Prefer: wait=300\r\n", "");
        }
    }
    if (etcd)
        etcd_await_places(n);
}

static double *hand_over(struct peer *peers, int n, int cycles)
{
    double *us = malloc((size_t)cycles * sizeof *us), released_at;
    struct epoll_event e[64];
    struct answer a;
    int epoll = watch_all(peers, n), done = 0;
    peers[0].releasing = true;
    lock_release(&peers[0]);
    released_at = peers[0].asked_at;
    while (us && done < cycles) {
        int got = epoll_wait(epoll, e, 64, 1000);
        for (int i = 0; i < got && done < cycles; i++) {
            struct peer *p = e[i].data.ptr;
            if (!fill(p, &a))
                continue;
            if (p->releasing) {
                expect(a, etcd ? 200 : 204);
                p->releasing = false;
                lock_ask(p, true);
                continue;
            }
            us[done++] = now_us() - released_at;
            lock_granted(p, a);
            p->releasing = true;
            lock_release(p);
            released_at = p->asked_at;
        }
    }
    return us;
}

static void run_queue(int n, int ttl_ms, int cycles)
{
    static struct peer last;
    struct peer *peers = peers_new(n);
    queue_fill(peers, n, ttl_ms);
    ready(n);
    double begin = now_us(), *us = hand_over(peers, n, cycles);
    report(us, (size_t)cycles, now_us() - begin);
    last.fd = dial();
    for (int i = 0; i < n; i++) {
        close(peers[i].fd);
        session_close(&peers[i], &last);
    }
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void run_streams(int n)
{
    struct peer *peers = peers_new(n);
    for (int i = 0; i < n; i++) {
        peers[i].fd = dial();
        ask(&peers[i], "GET", "/v1/events", "Accept: text/event-stream\r\n", "");
        ssize_t got = read(peers[i].fd, peers[i].in, IN_CAP - 1);
        if (got <= 0 || !strstr(peers[i].in, " 200 "))
            die("/v1/events");
    }
    ready(n);
}

static void run_pings(int pause_us)
{
    enum { MOST = 1 << 20 };
    static struct peer p;
    static double us[MOST];
    fd_set in;
    size_t n = 0;
    double begin = now_us();
    p.fd = dial();
    for (;;) {
        struct timeval pause = {.tv_usec = pause_us};
        FD_ZERO(&in);
        FD_SET(0, &in);
        if (n == MOST || select(1, &in, NULL, NULL, &pause) > 0)
            break;
        ask(&p, "GET", "/healthz", "", "");
        take(&p, 200);
        us[n++] = now_us() - p.asked_at;
    }
    report(us, n, now_us() - begin);
}

static void run_fetches(const char *path, int times)
{
    static struct peer p;
    static char in[1 << 16];
    double *us = malloc((size_t)times * sizeof *us), begin = now_us();
    size_t bytes = 0;
    for (int i = 0; us && i < times; i++) {
        ssize_t n;
        p.fd = dial();
        ask(&p, "GET", path, "Connection: close\r\n", "");
        for (bytes = 0; (n = read(p.fd, in, sizeof in - 1)) > 0; bytes += (size_t)n)
            if (bytes == 0 && !strstr(in, " 200 "))
                die(path);
        us[i] = now_us() - p.asked_at;
        close(p.fd);
    }
    printf("{\"bytes\": %zu}\n", bytes);
    report(us, (size_t)times, now_us() - begin);
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";
    bool kind =
        strcmp(verb, "cycle") == 0 || strcmp(verb, "get") == 0 || strcmp(verb, "queue") == 0;
    if (kind && argc >= 5) {
        etcd = strcmp(argv[2], "etcd") == 0;
        port = argv[3];
        name = argv[4];
    } else if (argc >= 4) {
        port = argv[2];
    }
    if (argc == 7 && strcmp(verb, "cycle") == 0)
        run_cycles(atoi(argv[5]), atoi(argv[6]));
    else if (argc == 7 && strcmp(verb, "get") == 0)
        run_gets(atoi(argv[5]), atof(argv[6]));
    else if (argc == 8 && strcmp(verb, "queue") == 0)
        run_queue(atoi(argv[5]), atoi(argv[6]), atoi(argv[7]));
    else if (argc == 4 && strcmp(verb, "streams") == 0)
        run_streams(atoi(argv[3]));
    else if (argc == 4 && strcmp(verb, "pings") == 0)
        run_pings(atoi(argv[3]));
    else if (argc == 5 && strcmp(verb, "fetch") == 0)
        run_fetches(argv[3], atoi(argv[4]));
    else
        return fprintf(stderr, "http: for its arguments, see http.c\n"), 64;
    return 0;
}
