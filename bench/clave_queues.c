/* clave_queues.c - joins, hand-overs and uncontended cycles for bench/costs, which measures the
 * server meanwhile.
 *
 *   clave_queues CONNECT PATH WAITERS QUEUES PAUSE_MS
 *
 * QUEUES locks below PATH, each with a queue of its own. With WAITERS > 0: in each, one session
 * holds and WAITERS - 1 wait; then one more joins ("join"). One more makes up for the first holder,
 * which releases: it has not waited, as later ones have. Then the second one releases
 * ("hand-over"), with WAITERS waiting. With WAITERS = 0: each lock is acquired and released
 * ("cycle"). PAUSE_MS lies between one queue's turn and the next one's; 0: all at the same time.
 *
 * The places of one queue are of different sessions, and those of a rank in different queues, too.
 *
 * Before a phase it prints the phase's name, after it {"ops": ..., "sent": ..., "received": ...},
 * bytes of all sessions, and waits for a line each time. */
#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <uv.h>

#include "clave/clave.h"
#include "clave/uv.h"
#include "measure.h"

/* Long enough that hardly a ping falls into a phase. */
enum { SESSION_TIMEOUT_MS = 40000, QUIET_MS = 400, MOST_SESSIONS = 103, PATH_CAP = 128 };

struct session {
    clave_async_client *client;
    clave_uv *uv;
};

struct queue {
    struct bench *bench;
    clave_async_mutex **places; /* waiters + 2 */
    int holder;                 /* the rank that holds */
    int joined;                 /* the rank that has joined last and is in the queue */
};

struct bench {
    uv_loop_t loop;
    uv_timer_t timer;
    int waiters, queues, pause_ms, nsessions;
    struct session sessions[MOST_SESSIONS];
    struct queue *all;
    int done;  /* what a phase waits for */
    int begun; /* queues that had their turn */
    void (*turn)(struct queue *q);
    bool ending; /* the sessions end with what they hold and wait for */
};

static void check(clave_err err, const char *what)
{
    if (err == CLAVE_OK)
        return;
    fprintf(stderr, "clave_queues: %s: %s\n", what, clave_strerror(err));
    exit(1);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

struct bytes {
    unsigned long long sent, received;
};

/* The kernel's struct tcp_info, as far as it matters here; libc's ends before the bytes. */
struct tcp_figures {
    unsigned char others[120];
    uint64_t acked, received;
};

/* Of all connections of this process. */
static struct bytes bytes_now(void)
{
    struct bytes sum = {0, 0};
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        struct tcp_figures f;
        socklen_t len = sizeof f;
        if (getsockopt(atoi(e->d_name), IPPROTO_TCP, TCP_INFO, &f, &len) == 0 && len == sizeof f) {
            sum.sent += f.acked;
            sum.received += f.received;
        }
    }
    if (dir)
        closedir(dir);
    return sum;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static struct session *session_of(struct queue *q, int rank)
{
    struct bench *b = q->bench;
    return &b->sessions[((q - b->all) + rank) % b->nsessions];
}

static void stop_loop(uv_timer_t *t)
{
    uv_stop(t->loop);
}

/* Watches are set and events taken after the event that a phase waits for. */
static void settle(struct bench *b)
{
    uv_timer_start(&b->timer, stop_loop, QUIET_MS, 0);
    uv_run(&b->loop, UV_RUN_DEFAULT);
}

static void begin_turn(uv_timer_t *t)
{
    struct bench *b = t->data;
    b->turn(&b->all[b->begun]);
    if (++b->begun == b->queues)
        uv_timer_stop(t);
}

/* Each queue has its turn, and each turn counts one in b->done. */
static void play(struct bench *b, void (*turn)(struct queue *q), int pause_ms)
{
    b->turn = turn;
    b->begun = b->done = 0;
    if (pause_ms > 0)
        uv_timer_start(&b->timer, begin_turn, 0, (uint64_t)pause_ms);
    else
        while (b->begun < b->queues)
            turn(&b->all[b->begun++]);
    while (b->done < b->queues)
        uv_run(&b->loop, UV_RUN_ONCE);
}

static void await_line(void)
{
    int c;
    fflush(stdout);
    while ((c = getchar()) != '\n')
        if (c == EOF)
            exit(1);
}

static void measured(struct bench *b, const char *name, void (*turn)(struct queue *q))
{
    settle(b);
    printf("%s\n", name);
    await_line();
    struct bytes before = bytes_now();
    play(b, turn, b->pause_ms);
    settle(b);
    struct bytes after = bytes_now();
    printf("{\"ops\": %d, \"sent\": %llu, \"received\": %llu}\n", b->queues,
           after.sent - before.sent, after.received - before.received);
    await_line();
}

/* ---- queues ---------------------------------------------------------------------------------- */

/* The owner is the rank. A place that is free when it joins is HELD at once, all others are QUEUED
 * or NEXT before. */
static void queue_on_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct queue *q = arg;
    int rank = (int)ev->owner;
    (void)m;
    if (q->bench->ending)
        return;
    if (ev->kind == CLAVE_MUTEX_LOST)
        check(ev->why, "a hold");
    if (rank > q->joined) {
        q->joined = rank;
        q->bench->done++;
    } else if (ev->kind == CLAVE_MUTEX_HELD) {
        q->bench->done++; /* handed over */
    }
}

static void queue_on_acquired(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct queue *q = arg;
    (void)m, (void)owner;
    if (!q->bench->ending)
        check(err, "acquire");
}

static void queue_join(struct queue *q)
{
    int rank = q->joined + 1;
    struct session *s = session_of(q, rank);
    check(clave_async_mutex_acquire(q->places[rank], (uint64_t)rank, CLAVE_NEVER, queue_on_acquired,
                                    q),
          "acquire");
    clave_uv_flush(s->uv);
}

static void queue_hand_over(struct queue *q)
{
    int rank = q->holder++;
    check(clave_async_mutex_release(q->places[rank], (uint64_t)rank, NULL, NULL), "release");
    clave_uv_flush(session_of(q, rank)->uv);
}

/* ---- cycles ---------------------------------------------------------------------------------- */

static void cycle_on_released(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct queue *q = arg;
    (void)m, (void)owner;
    check(err, "release");
    q->bench->done++;
}

static void cycle_on_acquired(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    check(err, "acquire");
    check(clave_async_mutex_release(m, owner, cycle_on_released, arg), "release");
}

static void queue_cycle(struct queue *q)
{
    check(clave_async_mutex_acquire(q->places[0], 0, CLAVE_NEVER, cycle_on_acquired, q), "acquire");
    clave_uv_flush(session_of(q, 0)->uv);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void bench_begin(struct bench *b, const char *connect, const char *path)
{
    uv_loop_init(&b->loop);
    uv_timer_init(&b->loop, &b->timer);
    b->timer.data = b;
    for (int i = 0; i < b->nsessions; i++) {
        clave_client_options o = {.size = sizeof o,
                                  .hosts = connect,
                                  .seed = clave_random_seed(),
                                  .session_timeout_ms = SESSION_TIMEOUT_MS};
        check(clave_async_client_new(&b->sessions[i].client, &o), "client");
        check(clave_uv_start(&b->sessions[i].uv, &b->loop, b->sessions[i].client), "start");
    }
    for (int i = 0; i < b->queues; i++) {
        struct queue *q = &b->all[i];
        char lock[PATH_CAP];
        clave_mutex_options o = {.size = sizeof o, .event_arg = q};
        if (b->waiters > 0)
            o.event_cb = queue_on_event;
        snprintf(lock, sizeof lock, "%s/%d", path, i);
        q->bench = b;
        q->joined = -1;
        q->places = calloc((size_t)b->waiters + 2, sizeof(clave_async_mutex *));
        if (!q->places)
            exit(1);
        for (int rank = 0; rank < b->waiters + 2; rank++)
            check(clave_async_mutex_new(&q->places[rank], session_of(q, rank)->client, lock, &o),
                  "mutex");
    }
}

static void bench_end(struct bench *b)
{
    b->ending = true;
    for (int i = 0; i < b->nsessions; i++) {
        clave_async_client_close(b->sessions[i].client, clave_now());
        clave_uv_flush(b->sessions[i].uv);
    }
    for (int i = 0; i < b->nsessions; i++)
        while (clave_async_client_state(b->sessions[i].client) != CLAVE_STATE_CLOSED)
            uv_run(&b->loop, UV_RUN_ONCE);
    fflush(stdout);
    _Exit(0); /* the sessions are closed: nothing else to tidy up in a benchmark */
}

int main(int argc, char **argv)
{
    static struct bench b;
    if (argc != 6) {
        fprintf(stderr, "usage: clave_queues CONNECT PATH WAITERS QUEUES PAUSE_MS\n");
        return 64;
    }
    b.waiters = atoi(argv[3]);
    b.queues = atoi(argv[4]);
    b.pause_ms = atoi(argv[5]);
    b.nsessions = MOST_SESSIONS;
    b.all = calloc((size_t)b.queues, sizeof *b.all);
    if (!b.all || b.waiters + 2 > b.nsessions)
        return 64;
    bench_begin(&b, argv[1], argv[2]);
    if (b.waiters == 0) {
        play(&b, queue_cycle, 0); /* makes the containers */
        measured(&b, "cycle", queue_cycle);
        bench_end(&b);
    }
    for (int rank = 0; rank < b.waiters; rank++)
        play(&b, queue_join, 0);
    measured(&b, "join", queue_join);
    play(&b, queue_join, 0);
    play(&b, queue_hand_over, 0);
    measured(&b, "hand-over", queue_hand_over);
    bench_end(&b);
    return 0;
}
