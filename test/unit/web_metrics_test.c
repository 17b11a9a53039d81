/* Locks and elections at /metrics. */
#include "lib/observe_scene.h"
#include "lib/unit.h"

static void assert_has_line(struct webrig_call *c, const char *line)
{
    char with_end[256];
    snprintf(with_end, sizeof with_end, "\n%s\n", line);
    if (!strstr(webrig_body(c), with_end))
        fail_msg("no line %s in\n%s", line, webrig_body(c));
}

TEST(locks_of_all_clients_are_measured)
{
    CLOSED_BY(scene_close) struct scene s;
    static const char *const prefixes[] = {"/jobs"};
    scene_open(&s);
    s.rig->web->o.metric_paths = prefixes;
    s.rig->web->o.nmetric_paths = 1;
    s.rig->web->o.max_metric_paths = 1;
    scene_add(&s, "/jobs/a/_c_" UUID "-lock-0000000000", "");
    scene_add(&s, "/jobs/b/_c_" UUID "-lock-0000000000", "");
    scene_add(&s, "/e/" LATCH1, "clave/1\nhost=web1\n");
    scene_add_of(&s, 0, "/z/_c_" UUID "-lock-0000000000", "");
    scene_loaded(&s);
    webrig_advance(s.rig, 1000);
    scene_add(&s, "/jobs/a/_c_" UUID "-lock-0000000001", "");
    scene_add(&s, "/x/_c_" UUID "-lock-0000000000", "");
    webrig_advance(s.rig, 2500);
    scene_add(&s, "/x/_c_" UUID "-lock-0000000001", "");
    clave__observe_gone(s.o, "/jobs/a/_c_" UUID "-lock-0000000000");
    clave__observe_gone(s.o, "/x/_c_" UUID "-lock-0000000000");
    webrig_advance(s.rig, 500);
    scene_add(&s, "/y/_c_" UUID "-lock-0000000000", "");
    struct webrig_call *c = scene_get(&s, "/metrics", 200);
    assert_true(c->done);
    assert_has_line(c, "clave_lock_holders{path=\"/jobs/a\",kind=\"lock\"} 1");
    assert_has_line(c, "clave_lock_holders{path=\"other\",kind=\"lock\"} 3");
    assert_has_line(c, "clave_lock_unhealthy{path=\"/jobs/a\",kind=\"lock\"} 0");
    assert_has_line(c, "clave_lock_waiters{path=\"other\",kind=\"lock\"} 0");
    assert_has_line(c, "clave_lock_left_over{path=\"/jobs/a\",kind=\"lock\"} 0");
    assert_has_line(c, "clave_lock_left_over{path=\"other\",kind=\"lock\"} 1");
    assert_has_line(c, "clave_lock_left_over{path=\"other\",kind=\"election\"} 0");
    assert_has_line(c, "clave_lock_grants_total{kind=\"lock\"} 4");
    assert_has_line(c, "clave_lock_wait_seconds_sum{kind=\"lock\",outcome=\"granted\"} 2.5");
    assert_has_line(c, "clave_lock_hold_seconds_sum{kind=\"lock\"} 2.5");
    assert_has_line(c, "clave_lock_ends_total{cause=\"unknown\"} 2");
    assert_has_line(c, "clave_election_has_leader{path=\"other\"} 1");
    assert_has_line(c, "clave_deadlocks 0");
    clave__observe_gone(s.o, "/e/" LATCH1);
    webrig_end(c);
    c = scene_get(&s, "/metrics", 200);
    assert_has_line(c, "clave_election_has_leader{path=\"other\"} 0");
    clave__observe_gone(s.o, "/e");
    webrig_end(c);
    c = scene_get(&s, "/metrics", 200);
    assert_null(strstr(webrig_body(c), "clave_election_has_leader{"));
    assert_has_line(c, "clave_http_waiting{how=\"answer\"} 0");
    webrig_end(c);
    c = scene_get(&s, "/metrics", 200);
    assert_has_line(c,
                    "clave_http_requests_total{route=\"/metrics\",method=\"GET\",code=\"200\"} 4");
    webrig_end(c);
}

/* `clave lock --health` says so in its node; a waiter that would say so is not counted. */
TEST(holders_whose_work_is_not_healthy_are_counted)
{
    CLOSED_BY(scene_close) struct scene s;
    static const char *const prefixes[] = {"/jobs"};
    static const char ill[] = "clave/1\nhost=web1\nunhealthy=1\ntext=no disk\n";
    scene_open(&s);
    s.rig->web->o.metric_paths = prefixes;
    s.rig->web->o.nmetric_paths = 1;
    s.rig->web->o.max_metric_paths = 1;
    scene_add(&s, "/jobs/a/_c_" UUID "-lock-0000000000", ill);
    scene_add(&s, "/jobs/a/_c_" UUID "-lock-0000000001", ill);
    scene_add(&s, "/x/_c_" UUID "-lock-0000000000", ill);
    scene_add(&s, "/y/_c_" UUID "-lock-0000000000", ill);
    scene_add(&s, "/z/_c_" UUID "-lock-0000000000", "clave/1\nhost=web1\nunhealthy=0\n");
    scene_loaded(&s);
    struct webrig_call *c = scene_get(&s, "/metrics", 200);
    assert_has_line(c, "clave_lock_unhealthy{path=\"/jobs/a\",kind=\"lock\"} 1");
    assert_has_line(c, "clave_lock_unhealthy{path=\"other\",kind=\"lock\"} 2");
    webrig_end(c);
}

/* Pieces of the page that come to no label have no text, and must not end it. */
TEST(metrics_of_many_locks_without_labels_are_whole)
{
    enum { LOCKS = 2000 };
    CLOSED_BY(scene_close) struct scene s;
    scene_open(&s);
    for (int i = 0; i < LOCKS; i++) {
        char path[96];
        snprintf(path, sizeof path, "/many/l%d/_c_" UUID "-lock-0000000000", i);
        scene_add(&s, path, "");
    }
    scene_loaded(&s);
    CLOSED_BY(webrig_ended) struct webrig_call *c = scene_get(&s, "/metrics", 200);
    assert_true(c->done);
    assert_has_line(c, "clave_lock_holders{path=\"other\",kind=\"lock\"} 2000");
    assert_has_line(c, "clave_lock_waiters{path=\"other\",kind=\"lock\"} 0");
    assert_has_line(c, "clave_deadlocks 0");
}
