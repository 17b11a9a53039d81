/* clave_async_latch.c - how long after a leader has closed the next one leads, and what 10 000
 * candidates of one process take.
 *
 *   clave_async_latch failover CONNECT CYCLES      microseconds, one a line
 *   clave_async_latch floor CONNECT CYCLES         the same of a bare delete and its watch event
 *   clave_async_latch crowd CONNECT N              memory a candidate, and a whole rotation
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clave/clave.h"
#include "measure.h"

struct candidate {
    clave_client *session;
    clave_async_latch *latch;
    size_t terms;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static struct candidate *leader; /* under the mutex, as all that follows */
static double leads_since;
static size_t standing; /* leads, or knows whom it waits for */
static size_t led;

static void check(clave_err err, const char *what)
{
    if (err == CLAVE_OK)
        return;
    fprintf(stderr, "clave_async_latch: %s: %s\n", what, clave_strerror(err));
    exit(1);
}

static void on_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    struct candidate *c = arg;
    (void)l;
    pthread_mutex_lock(&mutex);
    if (ev->kind == CLAVE_LATCH_LEADER) {
        leader = c;
        leads_since = now_us();
        led += c->terms++ == 0;
    }
    standing += ev->kind == CLAVE_LATCH_LEADER || ev->kind == CLAVE_LATCH_QUEUED;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
}

static void stand(clave_async_client *client, void *arg)
{
    struct candidate *c = arg;
    clave_latch_options o = {.size = sizeof o, .event_cb = on_event, .event_arg = c};
    check(clave_async_latch_new(&c->latch, client, "/bench/latch", &o), "new");
    check(clave_async_latch_start(c->latch), "start");
}

static void quit(clave_async_client *client, void *arg)
{
    struct candidate *c = arg;
    (void)client;
    clave_async_latch_free(c->latch);
}

static clave_client *open_session(const char *connect)
{
    clave_client *s;
    check(clave_client_open(&s, NULL, connect, NULL), "open");
    check(clave_client_wait(s, 30000), "connect");
    return s;
}

/* Waits until somebody else leads; since when. */
static double await_other(const struct candidate *than)
{
    pthread_mutex_lock(&mutex);
    while (!leader || leader == than)
        pthread_cond_wait(&cond, &mutex);
    double since = leads_since;
    pthread_mutex_unlock(&mutex);
    return since;
}

static void failover(const char *connect, int cycles)
{
    struct candidate c[2] = {{.session = open_session(connect)},
                             {.session = open_session(connect)}};
    const struct timespec rest = {.tv_nsec = 20000000}; /* as long as CuratorLatch */
    clave_client_run(c[0].session, stand, &c[0]);
    (void)await_other(NULL);
    for (int i = 0; i < cycles; i++) {
        struct candidate *old = &c[i % 2], *next = &c[(i + 1) % 2];
        clave_client_run(next->session, stand, next);
        nanosleep(&rest, NULL); /* its watches stand */
        double begin = now_us();
        clave_client_run(old->session, quit, old);
        printf("%.0f\n", await_other(old) - begin);
    }
    for (int i = 0; i < 2; i++)
        clave_client_close(c[i].session, 1000);
}

/* ---- what no election can be faster than ------------------------------------------------- */

static void on_gone(clave_async_client *client, clave_async_watch *w, const clave_event *ev,
                    void *arg)
{
    (void)client, (void)w, (void)ev, (void)arg;
    pthread_mutex_lock(&mutex);
    leads_since = now_us();
    led++;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
}

static void look(clave_async_client *client, void *arg)
{
    clave_async_watch **w = arg;
    if (*w)
        clave_async_watch_free(*w);
    check(clave_async_watch_new(w, client, on_gone, NULL), "watch");
    check(clave_async_exists(client, "/bench-floor", *w, NULL, NULL), "exists");
}

static void delete_it(clave_async_client *client, void *arg)
{
    (void)arg;
    check(clave_async_delete(client, "/bench-floor", -1, NULL, NULL), "delete");
}

static void floor_of(const char *connect, int cycles)
{
    clave_client *a = open_session(connect), *b = open_session(connect);
    const struct timespec rest = {.tv_nsec = 20000000};
    const clave_create_options ephemeral = {.size = sizeof ephemeral, .mode = CLAVE_EPHEMERAL};
    clave_async_watch *w = NULL;
    for (int i = 0; i < cycles; i++) {
        check(clave_create(a, "/bench-floor", "", 0, &ephemeral, 5000, NULL), "create");
        clave_client_run(b, look, &w);
        nanosleep(&rest, NULL);
        double begin = now_us();
        clave_client_run(a, delete_it, NULL);
        pthread_mutex_lock(&mutex);
        while (led <= (size_t)i)
            pthread_cond_wait(&cond, &mutex);
        printf("%.0f\n", leads_since - begin);
        pthread_mutex_unlock(&mutex);
    }
    clave_client_close(a, 1000);
    clave_client_close(b, 1000);
}

/* ---- many candidates ---------------------------------------------------------------------- */

static void crowd(const char *connect, size_t n)
{
    clave_client *s = open_session(connect);
    struct candidate *c = calloc(n, sizeof *c);
    long before = own_status("VmRSS:");
    double begin = now_us();
    for (size_t i = 0; c && i < n; i++)
        clave_client_post(s, stand, &c[i]);
    pthread_mutex_lock(&mutex);
    while (standing < n)
        pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    printf("%zu candidates stand after %.0f ms, %.1f KB each\n", n, (now_us() - begin) / 1000,
           (double)(own_status("VmRSS:") - before) / (double)n);
    begin = now_us();
    for (size_t i = 0; c && i < n; i++) {
        pthread_mutex_lock(&mutex);
        while (!leader)
            pthread_cond_wait(&cond, &mutex);
        struct candidate *old = leader;
        leader = NULL;
        pthread_mutex_unlock(&mutex);
        clave_client_run(s, quit, old);
    }
    printf("a rotation took %.0f ms; %zu led\n", (now_us() - begin) / 1000, led);
    clave_client_close(s, 5000);
    free(c);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "failover") == 0)
        failover(argv[2], atoi(argv[3]));
    else if (argc == 4 && strcmp(argv[1], "floor") == 0)
        floor_of(argv[2], atoi(argv[3]));
    else if (argc == 4 && strcmp(argv[1], "crowd") == 0)
        crowd(argv[2], (size_t)atoi(argv[3]));
    else
        return 64;
    return 0;
}
