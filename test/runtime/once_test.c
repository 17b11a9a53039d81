/* once_test.c - a job that several start and one runs, for threads. */
#include "lib/grants.h"
#include "rig.h"

#include <stdatomic.h>

enum { PATIENCE = 10000, HOUR = 3600 * 1000 };

static const clave_once_options hourly = {
    .size = sizeof hourly, .path = "/jobs/report-once/hourly", .period_ms = HOUR};

/* ---- many start it ------------------------------------------------------------------------- */

enum { STARTERS = 6 };

struct starter {
    pthread_t thread;
    atomic_int *runs, *refusals;
    bool fails; /* its run does */
};

static clave_err begin_once(clave_once **out, clave_mutex *l, const clave_once_options *o,
                            int64_t timeout_ms, clave_once_record *former)
{
    clave_grant *g;
    *out = NULL;
    clave_err err = clave_mutex_grant(l, &g);
    if (err == CLAVE_OK)
        err = clave_once_begin(out, g, o, timeout_ms, former);
    clave_grant_free(g);
    return err;
}

static void *start(void *arg)
{
    struct starter *me = arg;
    clave_client *s = rig_session(rig->connect);
    clave_mutex *l;
    clave_once *job;
    clave_once_record former;
    clave_err err = clave_mutex_new(&l, s, "/jobs/report", NULL);
    if (err == CLAVE_OK)
        err = clave_mutex_acquire(l, PATIENCE);
    if (err == CLAVE_OK)
        err = begin_once(&job, l, &hourly, PATIENCE, &former);
    if (err == CLAVE_OK) {
        atomic_fetch_add(me->runs, 1);
        err = clave_once_end(job, !me->fails, PATIENCE);
        me->fails |= err != CLAVE_OK;
    } else if (err == CLAVE_EDONE && former.state == CLAVE_ONCE_DONE && former.age_ms >= 0) {
        atomic_fetch_add(me->refusals, 1);
    }
    clave_mutex_release(l);
    clave_mutex_free(l);
    clave_client_close(s, PATIENCE);
    return NULL;
}

TEST_WITH(one_of_many_runs_it, rig_start_group, rig_stop_group)
{
    struct starter all[STARTERS];
    atomic_int runs = 0, refusals = 0;
    for (size_t i = 0; i < STARTERS; i++) {
        all[i] = (struct starter){.runs = &runs, .refusals = &refusals};
        assert_int_equal(pthread_create(&all[i].thread, NULL, start, &all[i]), 0);
    }
    for (size_t i = 0; i < STARTERS; i++)
        pthread_join(all[i].thread, NULL);
    assert_int_equal(runs, 1);
    assert_int_equal(refusals, STARTERS - 1);
}

/* ---- errors -------------------------------------------------------------------------------- */

TEST_WITH(what_fails, rig_start_group, rig_stop_group)
{
    clave_client *s = rig_session(rig->connect);
    clave_mutex *l;
    clave_once *job;
    clave_once_options o = {.size = sizeof o, .path = "/errors-once"};
    assert_int_equal(clave_mutex_new(&l, s, "/errors", NULL), CLAVE_OK);
    assert_int_equal(begin_once(&job, l, &o, PATIENCE, NULL), CLAVE_ENOTHELD);
    assert_null(job);
    assert_int_equal(clave_mutex_acquire(l, PATIENCE), CLAVE_OK);
    assert_int_equal(begin_once(&job, l, &(clave_once_options){0}, PATIENCE, NULL), CLAVE_EINVAL);
    /* Nothing is said of how it went; so it may be begun again. */
    assert_int_equal(begin_once(&job, l, &o, PATIENCE, NULL), CLAVE_OK);
    clave_once_free(job);
    clave_once_free(NULL);
    clave_once_record former;
    assert_int_equal(begin_once(&job, l, &o, PATIENCE, &former), CLAVE_OK);
    assert_int_equal(former.state, CLAVE_ONCE_STARTED);
    assert_int_equal(former.token, token_held(by_mutex(l)));
    assert_int_equal(clave_once_end(job, true, PATIENCE), CLAVE_OK);
    assert_int_equal(begin_once(&job, l, &o, PATIENCE, &former), CLAVE_EDONE);
    assert_int_equal(former.state, CLAVE_ONCE_DONE);
    clave_mutex_free(l);
    clave_client_close(s, PATIENCE);
}

TEST(time_is_up)
{
    struct rig *own = rig_start(rig_dir(), NULL);
    clave_client *s = rig_session(own->connect);
    clave_mutex *l;
    clave_once *job, *other;
    clave_once_options o = {.size = sizeof o, .path = "/x"};
    assert_int_equal(clave_mutex_new(&l, s, "/late", NULL), CLAVE_OK);
    assert_int_equal(clave_mutex_acquire(l, PATIENCE), CLAVE_OK);
    assert_int_equal(begin_once(&job, l, &o, PATIENCE, NULL), CLAVE_OK);
    assert_int_equal(rig_stop(own), CLAVE_OK);
    o.path = "/y";
    assert_int_equal(begin_once(&other, l, &o, 50, NULL), CLAVE_ETIMEDOUT);
    assert_null(other);
    assert_int_equal(clave_once_end(job, true, 50), CLAVE_ETIMEDOUT);
    clave_mutex_free(l);
    clave_client_close(s, 0);
}
