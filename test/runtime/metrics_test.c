/* metrics_test.c - clave/metrics.h: what clients, loops and threads leave in the page, and that
 * nothing is counted twice or lost when they go. */
#include "rig.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clave/metrics.h"

enum { PAGE = 65536 };

/* The value of a sample, with its labels; -1: there is none. */
static double sample(const char *name)
{
    static char page[PAGE];
    size_t len;
    char line[200];
    assert_int_equal(clave_metrics_copy(CLAVE_METRICS_TEXT, page, sizeof page, &len), CLAVE_OK);
    assert_int_equal(strlen(page), len);
    snprintf(line, sizeof line, "\n%s ", name);
    const char *at = strstr(page, line);
    return at ? strtod(at + strlen(line), NULL) : -1;
}

static void locks_and_losses_are_counted(void **state)
{
    (void)state;
    double grants = sample("clave_client_acquire_seconds_count");
    double creates = sample("clave_client_requests_total{op=\"create2\"}") +
                     sample("clave_client_requests_total{op=\"create\"}");
    double deleted = sample("clave_client_losses_total{cause=\"deleted\"}");
    clave_client *s = rig_session(rig->connect);
    clave_mutex *m;
    assert_int_equal(sample("clave_client_sessions{state=\"connected\"}"), 1);
    assert_int_equal(clave_mutex_new(&m, s, "/counted", NULL), CLAVE_OK);
    assert_int_equal(clave_mutex_acquire(m, RIG_PATIENCE_MS), CLAVE_OK);
    assert_int_equal(sample("clave_client_holds"), 1);
    assert_int_equal(sample("clave_client_is_leader"), 0);
    assert_int_equal(sample("clave_client_acquire_seconds_count"), grants + 1);
    assert_int_equal(sample("clave_client_acquire_seconds_bucket{le=\"+Inf\"}"), grants + 1);
    assert_true(sample("clave_client_requests_total{op=\"create2\"}") +
                    sample("clave_client_requests_total{op=\"create\"}") >
                creates);
    clave_participant_list *list;
    char node[100];
    assert_int_equal(
        clave_participants(s, clave_async_participants, "/counted", RIG_PATIENCE_MS, &list),
        CLAVE_OK);
    assert_int_equal(list->n, 1);
    snprintf(node, sizeof node, "/counted/%s", list->list[0].node);
    clave_participant_list_free(list);
    assert_int_equal(clave_delete(s, node, -1, RIG_PATIENCE_MS), CLAVE_OK);
    while (sample("clave_client_losses_total{cause=\"deleted\"}") == deleted)
        assert_int_equal(clave_sync(s, "/counted", RIG_PATIENCE_MS), CLAVE_OK);
    assert_int_equal(sample("clave_client_losses_total{cause=\"deleted\"}"), deleted + 1);
    assert_int_equal(sample("clave_client_holds"), 0);
    clave_mutex_free(m);
    clave_client_close(s, RIG_PATIENCE_MS);
    /* The client and its loop are gone, and nothing that they counted. */
    assert_int_equal(sample("clave_client_sessions{state=\"connected\"}"), 0);
    assert_int_equal(sample("clave_client_losses_total{cause=\"deleted\"}"), deleted + 1);
    assert_int_equal(sample("clave_client_acquire_seconds_count"), grants + 1);
}

static void leaderships_are_no_locks(void **state)
{
    (void)state;
    double grants = sample("clave_client_acquire_seconds_count");
    clave_client *s = rig_session(rig->connect);
    clave_latch *l;
    assert_int_equal(clave_latch_new(&l, s, "/elected", NULL), CLAVE_OK);
    assert_int_equal(clave_latch_start(l), CLAVE_OK);
    assert_int_equal(clave_latch_await(l, RIG_PATIENCE_MS), CLAVE_OK);
    assert_int_equal(sample("clave_client_is_leader"), 1);
    assert_int_equal(sample("clave_client_holds"), 1);
    double closed = sample("clave_client_losses_total{cause=\"closed\"}");
    clave_client_close(s, RIG_PATIENCE_MS);
    assert_int_equal(sample("clave_client_is_leader"), 0);
    assert_int_equal(sample("clave_client_losses_total{cause=\"closed\"}"), closed + 1);
    assert_int_equal(sample("clave_client_acquire_seconds_count"), grants);
    clave_latch_free(l);
}

/* ---- the page ------------------------------------------------------------------------------- */

static clave_err refuse(void *arg, const char *text, size_t n)
{
    size_t *len = arg;
    assert_int_equal(text[n - 1], '\n');
    *len = n;
    return CLAVE_EIO;
}

static void the_page_goes_where_it_fits(void **state)
{
    char page[PAGE], little[100];
    size_t len, told;
    (void)state;
    assert_int_equal(clave_metrics_copy(CLAVE_METRICS_TEXT, page, sizeof page, &len), CLAVE_OK);
    assert_int_equal(clave_metrics_copy(CLAVE_METRICS_TEXT, page, len + 1, &told), CLAVE_OK);
    assert_int_equal(clave_metrics_copy(CLAVE_METRICS_TEXT, page, len, &told), CLAVE_ETOOBIG);
    assert_int_equal(told, len);
    assert_string_equal(page, "");
    assert_int_equal(clave_metrics_copy(CLAVE_METRICS_TEXT, NULL, 0, &told), CLAVE_ETOOBIG);
    assert_int_equal(clave_metrics_copy(CLAVE_METRICS_TEXT, little, sizeof little, &told),
                     CLAVE_ETOOBIG);
    assert_int_equal(clave_metrics_write(CLAVE_METRICS_TEXT, refuse, &told), CLAVE_EIO);
    assert_int_equal(told, len);
    assert_int_equal(clave_metrics_copy(CLAVE_METRICS_OPENMETRICS, page, sizeof page, &len),
                     CLAVE_OK);
    assert_string_equal(page + len - 6, "# EOF\n");
    assert_int_equal(clave_metrics_accepted("application/openmetrics-text"),
                     CLAVE_METRICS_OPENMETRICS);
    assert_int_equal(clave_metrics_accepted(NULL), CLAVE_METRICS_TEXT);
    assert_non_null(strstr(clave_metrics_content_type(CLAVE_METRICS_TEXT), "0.0.4"));
}

static void ask_on_loop(clave_async_client *c, void *arg)
{
    size_t len;
    (void)c;
    *(clave_err *)arg = clave_metrics_copy(CLAVE_METRICS_TEXT, NULL, 0, &len);
}

static void not_in_a_callback(void **state)
{
    clave_err err = CLAVE_OK;
    (void)state;
    clave_client *s = rig_session(rig->connect);
    assert_int_equal(clave_client_run(s, ask_on_loop, &err), CLAVE_OK);
    assert_int_equal(err, CLAVE_ELOOPTHREAD);
    clave_client_close(s, RIG_PATIENCE_MS);
}

/* ---- many threads --------------------------------------------------------------------------- */

enum { THREADS = 4, TURNS = 10 };
static atomic_int busy;

/* Clients with loops of their own come and go. */
static void *come_and_go(void *arg)
{
    (void)arg;
    for (int i = 0; i < TURNS; i++) {
        clave_client *s = NULL;
        clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
        if (clave_client_open(&s, NULL, rig->connect, &o) == CLAVE_OK)
            (void)clave_exists(s, "/", RIG_PATIENCE_MS, NULL);
        clave_client_close(s, RIG_PATIENCE_MS);
    }
    atomic_fetch_sub(&busy, 1);
    return NULL;
}

static void counters_never_go_back(void **state)
{
    const char *const name = "clave_client_requests_total{op=\"exists\"}";
    pthread_t threads[THREADS];
    double first = sample(name), newest = first;
    (void)state;
    atomic_store(&busy, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
    while (atomic_load(&busy) > 0) {
        double now = sample(name);
        assert_true(now >= newest && now <= first + THREADS * TURNS);
        newest = now;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(sample(name), first + THREADS * TURNS);
}

/* It does not count what the parent's clients did. Runs while there are no other threads. */
static void a_fork_begins_anew(void **state)
{
    const char *const name = "clave_client_requests_total{op=\"exists\"}";
    struct rig_process server;
    int status;
    (void)state;
    rig_fork(&server, rig_dir(), NULL);
    clave_client *s = rig_session(server.connect);
    assert_int_equal(clave_exists(s, "/", RIG_PATIENCE_MS, NULL), CLAVE_OK);
    clave_client_close(s, RIG_PATIENCE_MS);
    rig_kill(&server, SIGTERM);
    assert_int_equal(sample(name), 1);
    pid_t pid = rig_fork_alone();
    if (pid == 0)
        _exit(sample(name) == 0 ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locks_and_losses_are_counted), cmocka_unit_test(leaderships_are_no_locks),
        cmocka_unit_test(the_page_goes_where_it_fits),  cmocka_unit_test(not_in_a_callback),
        cmocka_unit_test(counters_never_go_back),
    };
    const struct CMUnitTest alone[] = {cmocka_unit_test(a_fork_begins_anew)};
    int failed = cmocka_run_group_tests(alone, NULL, NULL);
    return failed + cmocka_run_group_tests(tests, rig_start_group, rig_stop_group);
}
