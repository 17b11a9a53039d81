/* wakeup_test.c - a machine that was suspended: the time of sessions has gone on, the timers have
 * not. No test can have that, so the clock and the kernel's news of it are ours here. */
#include "lib/grants.h"
#include "rig.h"

#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* So long that no timer goes off while the test lasts: the first is due after a third of it. */
enum { SESSION_MS = 600 * 1000, SLEEP_S = 3600 };

static atomic_int slept_s;
static atomic_int news = -1; /* the newest "timer" that tells of a jump */

int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *t, struct itimerspec *old);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    int err = __real_clock_gettime(clock, t);
    if (clock == CLOCK_BOOTTIME)
        t->tv_sec += slept_s;
    return err;
}

int __wrap_timerfd_create(int clock, int flags)
{
    (void)clock;
    (void)flags;
    return news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *t, struct itimerspec *old)
{
    (void)fd;
    (void)flags;
    (void)t;
    (void)old;
    return 0;
}

/* It goes on without us, and at the moment says nothing that could prove the session alive. */
static struct rig_process server;

static void suspend_the_machine(void)
{
    const uint64_t one = 1;
    rig_freeze(&server);
    slept_s += SLEEP_S;
    assert_int_equal(write(news, &one, sizeof one), sizeof one);
}

static int start_server(void **state)
{
    (void)state;
    rig_fork(&server, rig_dir(), NULL);
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    rig_kill(&server, SIGTERM);
    return 0;
}

/* ---- on a loop of the library ---------------------------------------------------------- */

static void on_event(clave_async_mutex *m, const clave_mutex_event *e, void *arg)
{
    (void)m;
    if (e->kind == CLAVE_MUTEX_LOST)
        sem_post(arg);
}

TEST(a_holder_hears_of_its_loss)
{
    clave_client_options o = {.size = sizeof o, .session_timeout_ms = SESSION_MS};
    clave_mutex_options mo = {.size = sizeof mo, .event_cb = on_event};
    clave_client *s;
    clave_mutex *l;
    sem_t lost;
    struct timespec patience;
    mo.event_arg = &lost;
    sem_init(&lost, 0, 0);
    assert_int_equal(clave_client_open(&s, NULL, server.connect, &o), CLAVE_OK);
    assert_int_equal(clave_mutex_new(&l, s, "/held", &mo), CLAVE_OK);
    assert_int_equal(clave_mutex_acquire(l, RIG_PATIENCE_MS), CLAVE_OK);
    assert_true(held_for(by_mutex(l), SESSION_MS / 2));
    suspend_the_machine();
    clock_gettime(CLOCK_REALTIME, &patience);
    patience.tv_sec += RIG_PATIENCE_MS / 1000;
    assert_int_equal(sem_timedwait(&lost, &patience), 0);
    assert_false(held_for(by_mutex(l), 0));
    kill(server.pid, SIGCONT);
    assert_int_equal(clave_mutex_release(l), CLAVE_ELOST);
    clave_mutex_free(l);
    clave_client_close(s, RIG_PATIENCE_MS);
    sem_destroy(&lost);
}

/* ---- on a loop of the program's own ----------------------------------------------------- */

struct program {
    uv_loop_t loop;
    uv_timer_t limit;
    clave_async_client *client;
    clave_uv *uv;
    bool lost, late;
};

static void on_stopped(void *arg)
{
    struct program *p = arg;
    clave_async_client_free(p->client);
    uv_close((uv_handle_t *)&p->limit, NULL);
}

static void on_limit(uv_timer_t *t)
{
    struct program *p = t->data;
    p->late = true;
    clave_uv_stop(p->uv, on_stopped, p);
}

static void on_state(clave_async_client *c, clave_state state, clave_err why, void *arg)
{
    struct program *p = arg;
    (void)c;
    (void)why;
    if (state == CLAVE_STATE_CONNECTED && !p->lost)
        suspend_the_machine();
    if (state == CLAVE_STATE_LOST) {
        p->lost = true;
        clave_uv_stop(p->uv, on_stopped, p);
    }
}

TEST(a_client_hears_of_its_loss)
{
    struct program p = {.lost = false};
    clave_client_options o = {.size = sizeof o,
                              .hosts = server.connect,
                              .session_timeout_ms = SESSION_MS,
                              .seed = clave_random_seed(),
                              .state_cb = on_state,
                              .state_arg = &p};
    assert_int_equal(uv_loop_init(&p.loop), 0);
    assert_int_equal(clave_async_client_new(&p.client, &o), CLAVE_OK);
    assert_int_equal(clave_uv_start(&p.uv, &p.loop, p.client), CLAVE_OK);
    uv_timer_init(&p.loop, &p.limit);
    p.limit.data = &p;
    uv_timer_start(&p.limit, on_limit, RIG_PATIENCE_MS, 0);
    uv_run(&p.loop, UV_RUN_DEFAULT);
    kill(server.pid, SIGCONT);
    assert_true(p.lost && !p.late);
    assert_int_equal(uv_loop_close(&p.loop), 0);
}

TEST_GROUP(start_server, stop_server)
