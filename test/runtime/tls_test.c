/* tls_test.c - TLS byte by byte, damaged, without memory; and clients with it on
 * real sockets. What certificates are worth is tested from outside (test/cmd/serve_tls_test.py). */
#include "rig.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "clave/tls.h"
#include "clave/uv.h"
#include "lib/failmem.h"
#include "runtime/tls/tls_filter.h"

/* ---- certificates ------------------------------------------------------------------------- */

static const char *ca, *server, *client; /* PEM; the latter two with their keys */

static void run(const char *dir, const char *command)
{
    char line[1024];
    snprintf(line, sizeof line, "(cd %s && openssl %s) >/dev/null 2>&1", dir, command);
    if (system(line) != 0)
        fail_msg("this has failed: %s", line);
}

#define KEY "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
static int make_certificates(void **state)
{
    (void)state;
    const char *dir = rig_dir();
    run(dir, "req -x509 " KEY " -keyout ca.key -out ca.pem -subj /CN=ca");
    run(dir, "req " KEY " -keyout server.pem -out server.csr -subj /CN=server && "
             "echo subjectAltName=DNS:localhost,IP:127.0.0.1 > ext && "
             "openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
             "-extfile ext -out server.crt");
    run(dir, "req " KEY " -keyout client.pem -out client.csr -subj /O=Acme/CN=client && "
             "openssl x509 -req -in client.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
             "-out client.crt");
    run(dir, "version && cat server.crt >> server.pem && cat client.crt >> client.pem");
    ca = rig_path(dir, "ca.pem");
    server = rig_path(dir, "server.pem");
    client = rig_path(dir, "client.pem");
    return 0;
}

static clave_tls *client_side(void)
{
    const clave_tls_options o = {.size = sizeof o, .ca_file = ca, .cert_file = client};
    clave_tls *t;
    char fault[400];
    if (clave_tls_new(&t, &o, fault, sizeof fault) != CLAVE_OK)
        fail_msg("%s", fault);
    return t;
}

static clave_tls *server_side(void)
{
    const struct tls_server_options o = {.ca_file = ca, .cert_file = server};
    clave_tls *t;
    char text[400];
    const struct fault f = {text, sizeof text};
    if (clave__tls_context_serve(&t, &o, &f) != CLAVE_OK)
        fail_msg("%s", text);
    return t;
}

/* ---- two channels, back to back ----------------------------------------------------------- */

struct tls_pair {
    clave_tls *sides[2];
    struct tls *ends[2]; /* the client's, the server's */
    struct clave_mem mem;
    char heard[2][256]; /* what each was told through the channel */
    size_t n[2];
};

static void open_pair(struct tls_pair *p)
{
    memset(p, 0, sizeof *p);
    p->mem = clave__mem_or_default(NULL);
    p->sides[0] = client_side();
    p->sides[1] = server_side();
    p->ends[0] = clave__tls_new(p->sides[0], &p->mem, "localhost");
    p->ends[1] = clave__tls_new(p->sides[1], &p->mem, NULL);
    assert_true(p->ends[0] && p->ends[1]);
}

static void close_pair(struct tls_pair *p)
{
    for (int i = 0; i < 2; i++) {
        clave__tls_free(p->ends[i]);
        clave_tls_free(p->sides[i]);
    }
}

static void feed(struct tls_pair *p, int to, const void *bytes, size_t n)
{
    size_t got;
    clave__tls_feed(p->ends[to], bytes, n);
    clave__tls_shake(p->ends[to]);
    while ((got = clave__tls_read(p->ends[to], p->heard[to] + p->n[to],
                                  sizeof p->heard[to] - p->n[to])) > 0)
        p->n[to] += got;
}

/* Carries what one end has to say to the other, `piece` bytes at a time. */
static bool carry(struct tls_pair *p, int from, size_t piece)
{
    const void *out;
    bool any = false;
    size_t n;
    while ((n = clave__tls_output(p->ends[from], &out)) > 0) {
        uint8_t copy[64];
        n = n < piece ? n : piece;
        n = n < sizeof copy ? n : sizeof copy;
        memcpy(copy, out, n);
        clave__tls_sent(p->ends[from], n);
        feed(p, 1 - from, copy, n);
        any = true;
    }
    return any;
}

static void settle(struct tls_pair *p, size_t piece)
{
    bool any = true;
    while (any) {
        any = carry(p, 0, piece);
        any = carry(p, 1, piece) || any;
    }
}

TEST(bytes_in_pieces_of_every_size)
{
    for (size_t piece = 1; piece <= 64; piece += piece < 8 ? 1 : 8) {
        CLOSED_BY(close_pair) struct tls_pair p;
        const void *der;
        open_pair(&p);
        settle(&p, piece);
        assert_int_equal(clave__tls_state(p.ends[0]), TLS_OPEN);
        assert_int_equal(clave__tls_state(p.ends[1]), TLS_OPEN);
        assert_true(clave__tls_subject(p.ends[0], &der) > 0);
        assert_true(clave__tls_subject(p.ends[1], &der) > 0);
        assert_int_equal(clave__tls_write(p.ends[0], "question", 8), 8);
        assert_int_equal(clave__tls_write(p.ends[1], "answer", 6), 6);
        settle(&p, piece);
        assert_memory_equal(p.heard[1], "question", 8);
        assert_memory_equal(p.heard[0], "answer", 6);
        clave__tls_end(p.ends[0]);
        settle(&p, piece);
        assert_int_equal(clave__tls_state(p.ends[1]), TLS_ENDED);
        assert_int_equal(clave__tls_write(p.ends[1], "x", 1), 0);
    }
}

TEST(what_is_written_waits_for_the_socket)
{
    enum { MUCH = 1 << 20 };
    CLOSED_BY(close_pair) struct tls_pair p;
    const void *out;
    char *much = calloc(1, MUCH);
    open_pair(&p);
    assert_int_equal(clave__tls_write(p.ends[0], much, MUCH), 0); /* not open yet */
    settle(&p, 64);
    size_t n = clave__tls_write(p.ends[0], much, MUCH);
    assert_in_range(n, 1, 64 * 1024);
    assert_int_equal(clave__tls_write(p.ends[0], much, MUCH), 0);
    n = clave__tls_output(p.ends[0], &out);
    clave__tls_sent(p.ends[0], n - 1);
    assert_int_equal(clave__tls_write(p.ends[0], much, MUCH), 0);
    clave__tls_sent(p.ends[0], 1);
    assert_int_equal(clave__tls_output(p.ends[0], &out), 0);
    assert_true(clave__tls_write(p.ends[0], much, MUCH) > 0);
    free(much);
}

/* What the server answers to a client's hello, for the client that has sent it. */
static size_t answer(struct tls_pair *p, uint8_t *to, size_t cap)
{
    const void *out;
    size_t n = clave__tls_output(p->ends[0], &out);
    feed(p, 1, out, n);
    clave__tls_sent(p->ends[0], n);
    n = clave__tls_output(p->ends[1], &out);
    assert_in_range(n, 1, cap);
    memcpy(to, out, n);
    return n;
}

TEST(a_damaged_answer_never_opens)
{
    uint8_t bytes[8192];
    char why[600];
    for (size_t at = 0, n = 1; at < n; at += 11) {
        CLOSED_BY(close_pair) struct tls_pair p;
        open_pair(&p);
        n = answer(&p, bytes, sizeof bytes);
        bytes[at % n] ^= (uint8_t)(1u << at % 8);
        feed(&p, 0, bytes, n);
        assert_int_not_equal(clave__tls_state(p.ends[0]), TLS_OPEN);
        clave__tls_fault(p.ends[0], why, sizeof why);
        assert_true(strlen(why) > 0);
    }
}

TEST(a_cut_answer_is_waited_for)
{
    uint8_t bytes[8192];
    for (size_t cut = 0, n = 1; cut < n; cut += 7) {
        CLOSED_BY(close_pair) struct tls_pair p;
        open_pair(&p);
        n = answer(&p, bytes, sizeof bytes);
        feed(&p, 0, bytes, cut < n ? cut : n - 1);
        assert_int_equal(clave__tls_state(p.ends[0]), TLS_SHAKING);
    }
}

/* A xorshift; noise that is noise from the first byte, and noise in the dress of records. */
TEST(noise_never_opens)
{
    uint32_t x = 2463534242u;
    for (int round = 0; round < 2000; round++) {
        struct tls_pair p;
        uint8_t noise[300];
        char why[600];
        int to = round % 2;
        open_pair(&p);
        for (size_t i = 0; i < sizeof noise; i++) {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            noise[i] = (uint8_t)x;
        }
        if (round % 4 > 1) {
            const uint8_t head[] = {22, 3, 3, 0, 200, (uint8_t)(1 + round % 20), 0, 0, 196};
            memcpy(noise, head, sizeof head);
        }
        feed(&p, to, noise, sizeof noise);
        assert_int_not_equal(clave__tls_state(p.ends[to]), TLS_OPEN);
        clave__tls_fault(p.ends[to], why, sizeof why);
        close_pair(&p);
        if (round % 4 <= 1)
            assert_true(strlen(why) > 0);
    }
}

TEST(without_memory_it_fails)
{
    struct failmem mem;
    clave_tls *side = client_side();
    for (size_t first = 1; first <= 2; first++) {
        failmem_init(&mem);
        failmem_arm(&mem, first, 1);
        struct tls *t = clave__tls_new(side, &mem.mem, "localhost");
        if (first == 1)
            assert_null(t); /* the channel itself */
        else
            assert_int_equal(clave__tls_state(t), TLS_FAILED); /* its first bytes */
        clave__tls_free(t);
        assert_int_equal(mem.live, 0);
    }
    clave_tls_free(side);
}

/* After it has read, too: a write that fails must not be taken for one that has to wait. */
TEST(without_memory_an_open_one_fails)
{
    struct failmem mem;
    struct tls_pair p;
    open_pair(&p);
    clave__tls_free(p.ends[0]);
    failmem_init(&mem);
    p.ends[0] = clave__tls_new(p.sides[0], &mem.mem, "localhost");
    settle(&p, 64);
    assert_int_equal(clave__tls_state(p.ends[0]), TLS_OPEN);
    failmem_arm(&mem, 1, 1);
    assert_int_equal(clave__tls_write(p.ends[0], "x", 1), 0);
    assert_int_equal(clave__tls_state(p.ends[0]), TLS_FAILED);
    close_pair(&p);
    assert_int_equal(mem.live, 0);
}

TEST(options_that_cannot_be)
{
    clave_tls *t;
    char fault[400];
    clave_tls_options o = {.size = sizeof o, .ca_file = "/nowhere"};
    assert_int_equal(clave_tls_new(&t, &o, fault, sizeof fault), CLAVE_EIO);
    assert_null(t);
    assert_string_equal(fault, "cannot read /nowhere: No such file or directory");
    o = (clave_tls_options){.size = sizeof o, .key_file = client};
    assert_int_equal(clave_tls_new(&t, &o, fault, sizeof fault), CLAVE_ETLS);
    assert_int_equal(clave_tls_new(&t, &o, NULL, 0), CLAVE_ETLS);
    clave_tls_free(NULL);
}

/* ---- on sockets --------------------------------------------------------------------------- */

static struct rig *start_server(void)
{
    static const char *const listen[] = {"tls:127.0.0.1:0", "127.0.0.1:0"};
    static struct tls_server_options t;
    struct server_run_options o = rig_options(rig_dir(), listen);
    t = (struct tls_server_options){.ca_file = ca, .cert_file = server};
    o.nlisten = 2;
    o.tls = &t;
    return rig_start_with(&o);
}

static clave_client *open_session(const char *connect, clave_tls *tls, clave_loop *loop)
{
    clave_client_options o = {.size = sizeof o, .session_timeout_ms = 10000, .tls = tls};
    clave_client *s;
    char text[512];
    assert_int_equal(clave_client_open(&s, loop, connect, &o), CLAVE_OK);
    clave_err err = clave_client_wait(s, RIG_PATIENCE_MS);
    if (err != CLAVE_OK)
        fail_msg("%s: %s", clave_err_name(err), clave_client_errmsg(s, text, sizeof text));
    return s;
}

TEST(a_session_keeps_its_side)
{
    enum { BIG = 1000 * 1000 };
    struct rig *r = start_server();
    clave_tls *tls = client_side();
    clave_client *s = open_session(r->connect, tls, NULL);
    clave_tls_free(tls); /* which the session still has */
    char *big = malloc(BIG);
    clave_reply *got;
    for (size_t i = 0; i < BIG; i++)
        big[i] = (char)(i * 31);
    assert_int_equal(clave_create(s, "/big", big, BIG, NULL, 20000, NULL), CLAVE_OK);
    assert_int_equal(clave_get(s, "/big", 20000, &got), CLAVE_OK);
    assert_int_equal(got->len, BIG);
    assert_memory_equal(got->data, big, BIG);
    clave_reply_free(got);
    free(big);
    clave_client_close(s, 5000);
    rig_stop(r);
}

TEST(the_environment_is_shared)
{
    struct rig *r = start_server();
    clave_client *s;
    char text[512];
    setenv("CLAVE_TLS_CA", "/nowhere", 1);
    assert_int_equal(clave_client_open(&s, NULL, r->connect, NULL), CLAVE_EIO);
    setenv("CLAVE_TLS_CA", ca, 1);
    setenv("CLAVE_TLS_CERT", client, 1);
    for (int i = 0; i < 2; i++)
        clave_client_close(open_session(r->connect, NULL, NULL), 5000);
    unsetenv("CLAVE_TLS_CA");
    unsetenv("CLAVE_TLS_CERT");
    assert_int_equal(clave_client_open(&s, NULL, r->connect, NULL), CLAVE_OK);
    assert_int_equal(clave_client_wait(s, -1), CLAVE_ETLS);
    assert_non_null(
        strstr(clave_client_errmsg(s, text, sizeof text), "no authority in the system"));
    clave_client_close(s, 0);
    rig_stop(r);
}

/* A listener that takes connections and says nothing: the handshake has the time of a dial. */
TEST(a_silent_server_is_given_up)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, n), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    char connect[64], text[512];
    snprintf(connect, sizeof connect, "tls:127.0.0.1:%u", (unsigned)ntohs(at.sin_port));
    clave_tls *tls = client_side();
    clave_client_options o = {.size = sizeof o, .session_timeout_ms = 900, .tls = tls};
    clave_client *s;
    assert_int_equal(clave_client_open(&s, NULL, connect, &o), CLAVE_OK);
    int64_t until = clave_now() + RIG_PATIENCE_MS;
    do
        assert_int_equal(clave_client_wait(s, 1000), CLAVE_EUNREACHABLE);
    while (!strstr(clave_client_errmsg(s, text, sizeof text), "in time") && clave_now() < until);
    assert_non_null(strstr(text, "in time"));
    clave_client_close(s, 0);
    clave_tls_free(tls);
    close(fd);
}

/* The fault of a handshake is logged while its bytes are being read. */
struct stopper {
    uv_loop_t loop;
    clave_async_client *client;
    clave_uv *uv;
    bool stopping, stopped;
};

static void on_stopped(void *arg)
{
    struct stopper *s = arg;
    clave_async_client_free(s->client);
    s->stopped = true;
}

static void on_log(void *arg, int level, const char *text)
{
    struct stopper *s = arg;
    (void)level;
    if (s->stopping || !strstr(text, "no authority"))
        return;
    s->stopping = true;
    clave_uv_stop(s->uv, on_stopped, s);
}

TEST(a_log_callback_stops_its_client)
{
    struct rig *r = start_server();
    struct stopper s = {.stopping = false};
    const clave_tls_options trusts = {.size = sizeof trusts}; /* the system's authorities */
    char fault[400];
    clave_client_options o = {.size = sizeof o,
                              .hosts = r->connect,
                              .seed = clave_random_seed(),
                              .log = on_log,
                              .log_arg = &s};
    assert_int_equal(clave_tls_new(&o.tls, &trusts, fault, sizeof fault), CLAVE_OK);
    assert_int_equal(uv_loop_init(&s.loop), 0);
    assert_int_equal(clave_async_client_new(&s.client, &o), CLAVE_OK);
    assert_int_equal(clave_uv_start(&s.uv, &s.loop, s.client), CLAVE_OK);
    clave_tls_free(o.tls); /* which the driver still has */
    uv_run(&s.loop, UV_RUN_DEFAULT);
    assert_true(s.stopped);
    assert_int_equal(uv_loop_close(&s.loop), 0);
    rig_stop(r);
}

/* One side for sessions on several threads, which come and go while its files change. */
struct visitor {
    pthread_t thread;
    const char *connect;
    clave_tls *tls;
    atomic_uint *visits;
};

static void *visit(void *arg)
{
    struct visitor *v = arg;
    clave_loop *loop;
    if (clave_loop_new(&loop) != CLAVE_OK)
        return NULL;
    for (int i = 0; i < 10; i++) {
        clave_client_options o = {.size = sizeof o, .session_timeout_ms = 10000, .tls = v->tls};
        clave_client *s;
        if (clave_client_open(&s, loop, v->connect, &o) != CLAVE_OK)
            break;
        if (clave_client_wait(s, RIG_PATIENCE_MS) == CLAVE_OK &&
            clave_exists(s, "/", RIG_PATIENCE_MS, NULL) == CLAVE_OK)
            atomic_fetch_add(v->visits, 1);
        clave_client_close(s, 5000);
    }
    clave_loop_free(loop);
    return NULL;
}

TEST(many_threads_share_a_side)
{
    enum { THREADS = 4 };
    struct rig *r = start_server();
    struct visitor v[THREADS];
    atomic_uint visits = 0;
    clave_tls *tls = client_side();
    for (int i = 0; i < THREADS; i++) {
        v[i] = (struct visitor){.connect = r->connect, .tls = tls, .visits = &visits};
        assert_int_equal(pthread_create(&v[i].thread, NULL, visit, &v[i]), 0);
    }
    while (atomic_load(&visits) < 5 * THREADS) {
        char text[400];
        const struct fault f = {text, sizeof text};
        assert_int_equal(clave__tls_context_reload(tls, &f), CLAVE_OK);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(v[i].thread, NULL);
    assert_int_equal(visits, 10 * THREADS);
    clave_tls_free(tls);
    rig_stop(r);
}

/* ---- the queue of handshakes -------------------------------------------------------------- */

enum { COMERS = 240, STAY_EVERY = 10 };
struct refusals {
    unsigned ports[COMERS]; /* of whom the server has turned away, in that order */
    size_t n;
};

static void note_refusal(void *arg, int level, const char *text)
{
    struct refusals *seen = arg;
    unsigned port;
    (void)level;
    if (seen->n < COMERS && strstr(text, "does not speak TLS") &&
        sscanf(text, "127.0.0.1:%u ", &port) == 1)
        seen->ports[seen->n++] = port;
}

/* Connects to `at`, "tls:127.0.0.1:PORT", and says something that no handshake begins with. */
static int come(const char *at, unsigned *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    a.sin_port = htons((uint16_t)atoi(strrchr(at, ':') + 1));
    assert_int_equal(connect(fd, (struct sockaddr *)&a, n), 0);
    assert_int_equal(send(fd, "ruok", 4, 0), 4);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    *port = ntohs(a.sin_port);
    return fd;
}

static void *serve(void *run)
{
    char fault[400];
    clave__server_run_loop(run, fault, sizeof fault);
    return NULL;
}

/* Those who have gone before their turn are not heard; the others have theirs in the order in which
 * they came, and whoever needs no handshake is served. */
TEST(handshakes_wait_for_their_turn)
{
    static const char *const listen[] = {"tls:127.0.0.1:0", "127.0.0.1:0"};
    static struct refusals seen;
    const struct tls_server_options t = {.ca_file = ca, .cert_file = server};
    struct server_run_options o = rig_options(rig_dir(), listen);
    struct server_run *run;
    pthread_t thread;
    int stay[COMERS / STAY_EVERY];
    unsigned ports[COMERS / STAY_EVERY], gone;
    char text[400];
    o.nlisten = 2;
    o.tls = &t;
    o.engine.log = note_refusal;
    o.engine.log_arg = &seen;
    assert_int_equal(clave__server_run_new(&run, &o, text, sizeof text), CLAVE_OK);
    for (int i = 0; i < COMERS; i++) {
        const char *at = clave__server_run_address(run, 0);
        if (i % STAY_EVERY == STAY_EVERY - 1)
            stay[i / STAY_EVERY] = come(at, &ports[i / STAY_EVERY]);
        else
            close(come(at, &gone));
    }
    assert_int_equal(pthread_create(&thread, NULL, serve, run), 0);
    clave_client_close(open_session(clave__server_run_address(run, 1), NULL, NULL), 5000);
    for (int i = 0; i < COMERS / STAY_EVERY; i++) {
        assert_int_equal(recv(stay[i], text, sizeof text, 0), 7); /* the alert */
        close(stay[i]);
    }
    clave__server_run_stop(run);
    pthread_join(thread, NULL);
    clave__server_run_free(run);
    assert_int_equal(seen.n, COMERS / STAY_EVERY);
    assert_memory_equal(seen.ports, ports, sizeof ports);
}

TEST_GROUP(make_certificates, NULL)
