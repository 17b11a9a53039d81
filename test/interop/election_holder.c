/* election_holder.c - one candidate of elections_test.py, with clave's latch or selector; or one of
 * elementary_test.py.
 *
 *   election_holder latch|selector|fair|unfair|simple CONNECT PATH LOG NAME STOP SESSION_MS
 *
 * Until the file STOP exists: lead, append "+ NAME TOKEN" to LOG, lead for a moment, append
 * "- NAME TOKEN", resign. Each line is one write with O_APPEND. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../lib/grants.h"
#include "clave/clave.h"

struct holder {
    const char *what;
    const char *path, *name, *stop;
    int log;
    clave_async_latch *latch; /* the loop's thread only */
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int64_t token; /* of the leadership; 0: none */
    bool done;
};

static void check(clave_err err, const char *what)
{
    if (err == CLAVE_OK)
        return;
    fprintf(stderr, "election_holder: %s: %s\n", what, clave_strerror(err));
    exit(1);
}

static void append(struct holder *h, char sign, int64_t token)
{
    char line[128];
    int n = snprintf(line, sizeof line, "%c %s %lld\n", sign, h->name, (long long)token);
    if (write(h->log, line, (size_t)n) != n)
        exit(1);
}

static void lead(struct holder *h, int64_t token)
{
    struct timespec moment = {.tv_nsec = rand() % 3 * 1000000L};
    append(h, '+', token);
    nanosleep(&moment, NULL);
    append(h, '-', token);
}

static bool is_over(const struct holder *h)
{
    return access(h->stop, F_OK) == 0;
}

/* ---- the latch -------------------------------------------------------------------------- */

static void on_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    struct holder *h = arg;
    clave_async_grant *g = NULL;
    if (ev->kind == CLAVE_LATCH_FAILED)
        check(ev->why, "latch");
    pthread_mutex_lock(&h->mutex);
    if (ev->kind == CLAVE_LATCH_LEADER)
        check(clave_async_latch_grant(l, &g), "grant");
    h->token = g ? clave_async_grant_token(g) : 0;
    clave_async_grant_free(g);
    pthread_cond_signal(&h->cond);
    pthread_mutex_unlock(&h->mutex);
}

static void start_latch(clave_async_client *c, void *arg)
{
    struct holder *h = arg;
    clave_latch_options o = {.size = sizeof o, .id = h->name, .event_cb = on_event, .event_arg = h};
    if (strcmp(h->what, "fair") == 0) {
        o.layout = CLAVE_LATCH_FAIR;
        o.prefix = "c_";
    } else if (strcmp(h->what, "unfair") == 0) {
        o.layout = CLAVE_LATCH_UNFAIR;
    }
    check(clave_async_latch_new(&h->latch, c, h->path, &o), "latch");
    check(clave_async_latch_start(h->latch), "start");
}

static void resign(clave_async_client *c, void *arg)
{
    struct holder *h = arg;
    (void)c;
    check(clave_async_latch_resign(h->latch), "resign");
}

static void free_latch(clave_async_client *c, void *arg)
{
    struct holder *h = arg;
    (void)c;
    clave_async_latch_free(h->latch);
}

static int64_t await_leadership(struct holder *h)
{
    pthread_mutex_lock(&h->mutex);
    while (h->token == 0)
        pthread_cond_wait(&h->cond, &h->mutex);
    int64_t token = h->token;
    h->token = 0;
    pthread_mutex_unlock(&h->mutex);
    return token;
}

static void run_latch(struct holder *h, clave_client *s)
{
    check(clave_client_run(s, start_latch, h), "run");
    while (!is_over(h)) {
        lead(h, await_leadership(h));
        check(clave_client_run(s, resign, h), "run");
    }
    check(clave_client_run(s, free_latch, h), "run");
}

/* ---- the selector ----------------------------------------------------------------------- */

static void take(clave_selector *s, void *arg)
{
    struct holder *h = arg;
    lead(h, token_held(by_selector(s)));
    pthread_mutex_lock(&h->mutex);
    h->done = is_over(h);
    pthread_cond_signal(&h->cond);
    pthread_mutex_unlock(&h->mutex);
}

static void run_selector(struct holder *h, clave_client *s)
{
    clave_selector *selector;
    clave_selector_options o = {
        .size = sizeof o, .id = h->name, .auto_requeue = true, .take = take, .take_arg = h};
    check(clave_selector_new(&selector, s, h->path, &o), "selector");
    check(clave_selector_start(selector), "start");
    pthread_mutex_lock(&h->mutex);
    while (!h->done)
        pthread_cond_wait(&h->cond, &h->mutex);
    pthread_mutex_unlock(&h->mutex);
    clave_selector_free(selector);
}

/* ---- the simple lock -------------------------------------------------------------------- */

static void run_simple(struct holder *h, clave_client *s)
{
    clave_mutex *l;
    clave_mutex_options o = {.size = sizeof o, .simple_prefix = "lock_"};
    check(clave_mutex_new(&l, s, h->path, &o), "lock");
    while (!is_over(h)) {
        check(clave_mutex_acquire(l, -1), "acquire");
        lead(h, token_held(by_mutex(l)));
        check(clave_mutex_release(l), "release");
    }
    clave_mutex_free(l);
}

int main(int argc, char **argv)
{
    clave_client *s = NULL;
    clave_client_options o = {.size = sizeof o};
    if (argc != 8)
        return 64;
    struct holder h = {.what = argv[1],
                       .path = argv[3],
                       .name = argv[5],
                       .stop = argv[6],
                       .mutex = PTHREAD_MUTEX_INITIALIZER,
                       .cond = PTHREAD_COND_INITIALIZER};
    o.session_timeout_ms = atoi(argv[7]);
    srand((unsigned)getpid());
    h.log = open(argv[4], O_WRONLY | O_APPEND | O_CREAT, 0644);
    if (h.log < 0)
        return 74;
    check(clave_client_open(&s, NULL, argv[2], &o), "open");
    check(clave_client_wait(s, 30000), "connect");
    if (strcmp(h.what, "selector") == 0)
        run_selector(&h, s);
    else if (strcmp(h.what, "simple") == 0)
        run_simple(&h, s);
    else
        run_latch(&h, s);
    clave_client_close(s, 1000);
    return 0;
}
