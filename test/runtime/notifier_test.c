/* notifier_test.c - threads that wake a loop: nothing that is sent is missed, and a loop with
 * real-time priority does not wait for a sender without. */
#include "rig.h"

#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "runtime/store/disk_thread.h"

enum { SENDERS = 3, SENDS = 2000, REALTIME_SENDS = 5, MOST_CPU_MS = 200 };

struct notified {
    uv_loop_t loop;
    struct notifier notifier;
    unsigned calls, sends_again; /* the callback sends so often itself */
    atomic_int sent;
    int seen, wanted; /* of `sent`; closes when it has seen all that are wanted */
    sem_t answered;
};

static void notified_open(struct notified *n, void (*notified)(void *arg))
{
    memset(n, 0, sizeof *n);
    assert_int_equal(uv_loop_init(&n->loop), 0);
    assert_int_equal(clave__notifier_open(&n->notifier, &n->loop, notified, n), 0);
    assert_int_equal(sem_init(&n->answered, 0, 0), 0);
}

static void notified_close(struct notified *n)
{
    clave__notifier_close(&n->notifier);
    assert_int_equal(uv_run(&n->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&n->loop), 0);
    sem_destroy(&n->answered);
}

/* ---- on one thread ------------------------------------------------------------------------ */

static void on_notified(void *arg)
{
    struct notified *n = arg;
    n->calls++;
    if (n->sends_again > 0) {
        n->sends_again--;
        clave__notifier_send(&n->notifier);
    }
}

TEST(sends_together_are_one)
{
    CLOSED_BY(notified_close) struct notified n;
    notified_open(&n, on_notified);
    uv_run(&n.loop, UV_RUN_NOWAIT);
    assert_int_equal(n.calls, 0);
    for (int i = 0; i < 3; i++)
        clave__notifier_send(&n.notifier);
    assert_int_equal(n.calls, 0); /* never inside the sender */
    for (int i = 0; i < 3; i++)
        uv_run(&n.loop, UV_RUN_NOWAIT);
    assert_int_equal(n.calls, 1);
    clave__notifier_send(&n.notifier);
    uv_run(&n.loop, UV_RUN_ONCE);
    assert_int_equal(n.calls, 2);
}

TEST(one_sent_by_the_callback_leads_to_another_call)
{
    CLOSED_BY(notified_close) struct notified n;
    notified_open(&n, on_notified);
    n.sends_again = 2;
    clave__notifier_send(&n.notifier);
    for (int i = 0; i < 6; i++)
        uv_run(&n.loop, UV_RUN_NOWAIT);
    assert_int_equal(n.calls, 3);
}

TEST(one_that_is_closed_does_not_call)
{
    struct notified n;
    notified_open(&n, on_notified);
    clave__notifier_send(&n.notifier);
    notified_close(&n);
    assert_int_equal(n.calls, 0);
}

/* ---- from other threads ------------------------------------------------------------------- */

static void on_sent(void *arg)
{
    struct notified *n = arg;
    n->seen = atomic_load_explicit(&n->sent, memory_order_relaxed);
    if (n->seen == n->wanted)
        uv_stop(&n->loop);
}

static void *send_often(void *arg)
{
    struct notified *n = arg;
    for (int i = 0; i < SENDS; i++) {
        atomic_fetch_add_explicit(&n->sent, 1, memory_order_relaxed);
        clave__notifier_send(&n->notifier);
    }
    return NULL;
}

TEST(none_is_missed)
{
    CLOSED_BY(notified_close) struct notified n;
    pthread_t senders[SENDERS];
    notified_open(&n, on_sent);
    n.wanted = SENDERS * SENDS;
    for (int i = 0; i < SENDERS; i++)
        assert_int_equal(pthread_create(&senders[i], NULL, send_often, &n), 0);
    uv_run(&n.loop, UV_RUN_DEFAULT); /* for ever, if the last one is */
    assert_int_equal(n.seen, n.wanted);
    for (int i = 0; i < SENDERS; i++)
        pthread_join(senders[i], NULL);
}

/* ---- at real-time priority ---------------------------------------------------------------- */

static void on_answered(void *arg)
{
    struct notified *n = arg;
    sem_post(&n->answered);
    if (++n->seen == n->wanted)
        uv_stop(&n->loop);
}

static void *run_loop(void *arg)
{
    struct notified *n = arg;
    uv_run(&n->loop, UV_RUN_DEFAULT);
    return NULL;
}

/* false: this process may not have it. */
static bool start_realtime(pthread_t *out, struct notified *n)
{
    const struct sched_param high = {.sched_priority = 50};
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
    pthread_attr_setschedparam(&attr, &high);
    int err = pthread_create(out, &attr, run_loop, n);
    pthread_attr_destroy(&attr);
    return err == 0;
}

/* The loop interrupts its sender within _send, on the only processor that they have: if it waited
 * for the sender it would do so until the kernel throttles it, after most of a second. */
TEST(a_realtime_loop_does_not_wait_for_its_sender)
{
    struct notified n;
    pthread_t thread;
    clockid_t clock;
    struct timespec cpu;
    cpu_set_t before, one;
    notified_open(&n, on_answered);
    n.wanted = REALTIME_SENDS + 1; /* it lives until its time was read */
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0); /* the new thread inherits it */
    bool permitted = start_realtime(&thread, &n);
    for (int i = 0; i < REALTIME_SENDS && permitted; i++) {
        clave__notifier_send(&n.notifier);
        sem_wait(&n.answered);
    }
    if (permitted) {
        assert_int_equal(pthread_getcpuclockid(thread, &clock), 0);
        assert_int_equal(clock_gettime(clock, &cpu), 0);
        clave__notifier_send(&n.notifier);
        pthread_join(thread, NULL);
    }
    sched_setaffinity(0, sizeof before, &before);
    notified_close(&n);
    if (!permitted)
        skip();
    assert_true(cpu.tv_sec == 0 && cpu.tv_nsec < MOST_CPU_MS * 1000000L);
}
