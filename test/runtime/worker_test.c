/* worker_test.c - jobs on threads: their result comes to the loop, nobody waits for those that are
 * abandoned, and no thread is left. */
#include "rig.h"

#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "runtime/worker.h"

enum { THREADS = 4, JOBS = 12 };

struct waiting_job {
    struct job job;
    sem_t may_end, began, freed;
    atomic_bool ran;
    bool finished;
};

static void job_run(struct job *j)
{
    struct waiting_job *w = LIST_ENTRY(j, struct waiting_job, job);
    w->ran = true;
    sem_post(&w->began);
    while (sem_wait(&w->may_end) != 0)
        continue;
}

static void job_finished(struct job *j)
{
    LIST_ENTRY(j, struct waiting_job, job)->finished = true;
}

static void job_free(struct job *j)
{
    sem_post(&LIST_ENTRY(j, struct waiting_job, job)->freed);
}

static void job_begin(struct waiting_job *w, uv_loop_t *loop)
{
    memset(w, 0, sizeof *w);
    sem_init(&w->may_end, 0, 0);
    sem_init(&w->began, 0, 0);
    sem_init(&w->freed, 0, 0);
    w->job.run = job_run;
    w->job.finished = job_finished;
    w->job.free = job_free;
    assert_int_equal(clave__job_start(&w->job, loop), 0);
}

static void job_await(sem_t *s)
{
    while (sem_wait(s) != 0)
        continue;
}

static int threads_now(void)
{
    char line[128];
    int n = 0;
    FILE *f = fopen("/proc/self/status", "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "Threads: %d", &n) == 1)
            break;
    fclose(f);
    return n;
}

static void *thread_of_nothing(void *arg)
{
    return arg;
}

/* A sanitizer has a thread of its own from the first one of the program on. */
static int threads_at_rest(void)
{
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, thread_of_nothing, NULL), 0);
    pthread_join(t, NULL);
    return threads_now();
}

static void await_threads(int n)
{
    while (threads_now() > n)
        poll(NULL, 0, 1);
}

TEST(results_come_to_the_loop_and_no_thread_is_left)
{
    static struct waiting_job jobs[JOBS];
    int before = threads_at_rest();
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    for (size_t i = 0; i < JOBS; i++) {
        job_begin(&jobs[i], &loop);
        sem_post(&jobs[i].may_end);
    }
    uv_run(&loop, UV_RUN_DEFAULT); /* until no job keeps it alive */
    for (size_t i = 0; i < JOBS; i++) {
        assert_true(jobs[i].ran && jobs[i].finished);
        job_await(&jobs[i].freed);
    }
    assert_int_equal(uv_loop_close(&loop), 0);
    await_threads(before);
}

TEST(the_loop_does_not_wait_for_what_is_abandoned)
{
    static struct waiting_job busy[THREADS], queued;
    int before = threads_at_rest();
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    for (size_t i = 0; i < THREADS; i++)
        job_begin(&busy[i], &loop);
    for (size_t i = 0; i < THREADS; i++)
        job_await(&busy[i].began);
    job_begin(&queued, &loop);
    assert_true(threads_now() <= before + THREADS);
    clave__job_abandon(&queued.job);
    for (size_t i = 0; i < THREADS; i++)
        clave__job_abandon(&busy[i].job);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    job_await(&queued.freed); /* by the loop: no thread had it */
    assert_false(queued.ran);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_not_equal(sem_trywait(&busy[i].freed), 0);
        sem_post(&busy[i].may_end);
        job_await(&busy[i].freed);
        assert_false(busy[i].finished);
    }
    await_threads(before);
}
