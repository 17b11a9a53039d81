/* znodes.c - clients of plain znodes, for znodes_test.py, which kills their server now and then:
 *
 *     znodes HOSTS CALLS   so many calls, by several threads with a session each
 *
 * After every TOLD calls it prints a line. In the end it checks them all as a history, as the
 * simulated world does (test/sim/znode_history.h). */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/rand.h"
#include "clave/clave.h"
#include "sim/znode_answer.h"

enum { THREADS = 4, ZNODES = 6, TOLD = 150, TIMEOUT_MS = 20000, MAX_STEPS = 20000000 };

struct caller {
    pthread_t thread;
    clave_client *client;
    struct rand_state rng;
    unsigned calls;
    struct znode_history history;
};

static atomic_uint calls_done;
static atomic_llong values;
static atomic_int versions[ZNODES]; /* that were seen last */

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool is_write(const struct znode_call *c)
{
    return c->op == ZNODE_CREATE || c->op == ZNODE_SET || c->op == ZNODE_DELETE;
}

static struct znode_call draw(struct caller *k)
{
    static const enum znode_op ops[] = {ZNODE_CREATE, ZNODE_CREATE, ZNODE_SET,
                                        ZNODE_SET,    ZNODE_SET,    ZNODE_DELETE,
                                        ZNODE_GET,    ZNODE_GET,    ZNODE_EXISTS};
    struct znode_call c = {
        .znode = (unsigned)clave__rand_below(&k->rng, ZNODES),
        .op = ops[clave__rand_below(&k->rng, sizeof ops / sizeof *ops)],
        .expected = -1,
        .session = clave_client_id(k->client),
    };
    if (clave__rand_below(&k->rng, 2))
        c.expected = atomic_load(&versions[c.znode]);
    if (c.op == ZNODE_CREATE || c.op == ZNODE_SET)
        c.value = (int64_t)atomic_fetch_add(&values, 1) + 1;
    return c;
}

static clave_err call(struct caller *k, const struct znode_call *c, clave_reply **r)
{
    char path[32], text[32];
    snprintf(path, sizeof path, "/z%u", c->znode);
    size_t n = (size_t)snprintf(text, sizeof text, "%" PRId64, c->value);
    switch (c->op) {
    case ZNODE_CREATE:
        return clave_create(k->client, path, text, n, NULL, TIMEOUT_MS, r);
    case ZNODE_SET:
        return clave_set(k->client, path, text, n, c->expected, TIMEOUT_MS, r);
    case ZNODE_DELETE:
        return clave_delete(k->client, path, c->expected, TIMEOUT_MS);
    case ZNODE_GET:
        return clave_get(k->client, path, TIMEOUT_MS, r);
    case ZNODE_EXISTS:
        return clave_exists(k->client, path, TIMEOUT_MS, r);
    }
    return CLAVE_EINVAL;
}

/* A delete's reply has no zxid here. */
static void take_reply(struct znode_call *c, const clave_reply *r)
{
    char text[32];
    c->version = r->stat.version;
    c->czxid = r->stat.czxid;
    c->mzxid = r->stat.mzxid;
    c->zxid = is_write(c) ? r->stat.mzxid : 0;
    atomic_store(&versions[c->znode], c->version);
    if (c->op != ZNODE_GET)
        return;
    snprintf(text, sizeof text, "%.*s", (int)r->len, (const char *)r->data);
    c->value = atoll(text);
}

static void *run(void *arg)
{
    struct caller *k = arg;
    for (unsigned i = 0; i < k->calls; i++) {
        struct znode_call c = draw(k);
        clave_reply *r = NULL;
        c.called = now();
        clave_err err = call(k, &c, &r);
        c.answer = znode_answer_of(err);
        c.answered = c.answer == ZNODE_UNKNOWN ? INT64_MAX : now();
        if (r && err == CLAVE_OK && r->has_stat)
            take_reply(&c, r);
        clave_reply_free(r);
        (void)znode_history_add(&k->history, &c);
        unsigned done = atomic_fetch_add(&calls_done, 1) + 1;
        if (done % TOLD == 0) {
            printf("%u calls\n", done);
            (void)getchar();
        }
    }
    return NULL;
}

static int tell(const struct znode_history *h, const char *why, size_t at)
{
    const struct znode_call *c = &h->calls[at];
    printf("SAFETY VIOLATED: /z%u: %s: call %zu, op %d, answer %d, value %" PRId64
           ", version %d, zxid %" PRId64 "\n",
           c->znode, why, at, (int)c->op, (int)c->answer, c->value, (int)c->version, c->mzxid);
    return 1;
}

static int check(const struct znode_history *h)
{
    size_t at, unknown = 0, undecided = 0;
    const char *why = znode_order_check(h, &at);
    if (why)
        return tell(h, why, at);
    for (unsigned i = 0; i < ZNODES; i++) {
        enum znode_verdict v = znode_history_check(h, i, MAX_STEPS, &at);
        if (v == ZNODE_BROKEN)
            return tell(h, "nothing explains this answer", at);
        undecided += v == ZNODE_UNDECIDED;
    }
    for (size_t i = 0; i < h->n; i++)
        unknown += is_write(&h->calls[i]) && h->calls[i].answer == ZNODE_UNKNOWN;
    printf("linearizable: %zu calls, %zu writes of unknown outcome, %zu znodes undecided\n", h->n,
           unknown, undecided);
    return 0;
}

static bool begin(struct caller *k, const char *hosts, unsigned calls, unsigned number)
{
    clave_client_options o = {.size = sizeof o, .session_timeout_ms = TIMEOUT_MS};
    clave__rand_seed(&k->rng, (uint64_t)now() + number);
    k->calls = calls;
    return clave_client_open(&k->client, NULL, hosts, &o) == CLAVE_OK &&
           clave_client_wait(k->client, TIMEOUT_MS) == CLAVE_OK &&
           pthread_create(&k->thread, NULL, run, k) == 0;
}

int main(int argc, char **argv)
{
    static struct caller callers[THREADS];
    struct znode_history all = {0};
    if (argc != 3)
        return 64;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (unsigned i = 0; i < THREADS; i++)
        if (!begin(&callers[i], argv[1], (unsigned)atoi(argv[2]) / THREADS, i))
            return 69;
    for (unsigned i = 0; i < THREADS; i++) {
        struct znode_history *h = &callers[i].history;
        pthread_join(callers[i].thread, NULL);
        clave_client_close(callers[i].client, TIMEOUT_MS);
        for (size_t k = 0; k < h->n; k++)
            (void)znode_history_add(&all, &h->calls[k]);
        znode_history_fini(h);
    }
    int verdict = check(&all);
    znode_history_fini(&all);
    return verdict;
}
