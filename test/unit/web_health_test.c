/* web_health_test.c - /healthz and /readyz, and what every answer has. */
#include "lib/unit.h"
#include "lib/webrig.h"

TEST(the_engine_is_alive_without_a_server)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    memnet_stop_server(r->net);
    struct webrig_call *c = webrig_request(r, "GET", "/healthz", NULL, NULL);
    assert_true(c->answered && c->done);
    assert_int_equal(c->status, 200);
    assert_string_equal(webrig_body(c), "{\"status\": \"ok\"}");
    assert_string_equal(webrig_header(c, "Content-Type"), "application/json");
    memnet_start_server(r->net);
}

TEST(it_is_ready_while_it_has_a_server)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct webrig_call *c = webrig_request(r, "GET", "/readyz", NULL, NULL);
    assert_int_equal(c->status, 200);
    webrig_end(c);
    memnet_refuse(r->net, 0, true);
    c = webrig_request(r, "GET", "/readyz", NULL, NULL);
    assert_int_equal(c->status, 503);
    assert_string_equal(webrig_header(c, "Retry-After"), "1");
    assert_string_equal(webrig_member(c, "code"), "EUNREACHABLE");
    assert_string_equal(webrig_member(c, "class"), "retry");
    memnet_refuse(r->net, 0, false);
}

struct told {
    char text[1024];
    int lines;
};

static void tell(void *arg, int level, const char *msg)
{
    struct told *t = arg;
    if (level > CLAVE_LOG_WARN)
        return;
    t->lines++;
    strcat(strcat(t->text, msg), "\n");
}

TEST(servers_that_are_away_are_told_of_once)
{
    struct told told = {"", 0};
    struct webrig *r = webrig_new(&(struct webrig_options){.log = {tell, &told}});
    webrig_advance(r, 60000);
    memnet_refuse(r->net, 0, true);
    webrig_advance(r, 2000);
    memnet_refuse(r->net, 0, false);
    webrig_advance(r, 60000);
    assert_int_equal(told.lines, 0); /* a server that starts again is none of it */
    memnet_refuse(r->net, 0, true);
    webrig_advance(r, 60000);
    assert_int_equal(told.lines, 1);
    assert_non_null(strstr(told.text, "no server of pair:1 answers: "));
    assert_null(strstr(told.text, "answers: \n")); /* but why */
    memnet_refuse(r->net, 0, false);
    webrig_advance(r, 60000);
    assert_int_equal(told.lines, 2);
    assert_non_null(strstr(told.text, "a server of pair:1 answers again\n"));
    webrig_free(r);
    assert_int_equal(told.lines, 2);
}

TEST(every_answer_has_the_headers_that_protect_browsers)
{
    static const char *const targets[] = {"/healthz", "/nothing", "//", "/%zz"};
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = webrig_request(r, "GET", targets[i], NULL, NULL);
        assert_true(c->answered);
        assert_string_equal(webrig_header(c, "X-Content-Type-Options"), "nosniff");
        assert_string_equal(webrig_header(c, "Cache-Control"), "no-store");
        assert_non_null(webrig_header(c, "Content-Security-Policy"));
    }
}

TEST(a_path_or_method_that_is_not_there_is_told)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct webrig_call *c = webrig_request(r, "GET", "/nothing", NULL, NULL);
    assert_int_equal(c->status, 404);
    assert_string_equal(webrig_header(c, "Content-Type"), "application/problem+json");
    webrig_end(c);
    c = webrig_request(r, "DELETE", "/healthz", NULL, NULL);
    assert_int_equal(c->status, 405);
    assert_string_equal(webrig_header(c, "Allow"), "GET, HEAD");
    webrig_end(c);
    c = webrig_request(r, "HEAD", "/healthz", NULL, NULL);
    assert_int_equal(c->status, 200);
}

TEST(after_its_end_the_engine_answers_nobody)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    clave__web_close(r->web, r->net->now);
    struct webrig_call *c = webrig_request(r, "GET", "/healthz", NULL, NULL);
    assert_int_equal(c->status, 503);
    assert_string_equal(webrig_member(c, "class"), "retry"); /* another gate may serve it */
}

/* ---- figures: what the page shows of the last hour ------------------------------------------- */

enum { SAMPLE_MS = 10000, SAMPLES = 360 };

static const char *server_of(struct webrig *r, struct webrig_call **c)
{
    *c = webrig_request(r, "GET", "/v1/server?samples", NULL, NULL);
    assert_int_equal((*c)->status, 200);
    return webrig_body(*c);
}

static size_t commas_from(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    size_t n = 0;
    assert_non_null(at);
    for (; *at != ']'; at++)
        n += *at == ',';
    return n;
}

TEST(nothing_is_known_of_a_server_that_does_not_tell)
{
    struct webrig_call *c;
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    webrig_advance(r, 2 * SAMPLE_MS);
    const char *text = server_of(r, &c);
    assert_non_null(strstr(text, "\"server\": null"));
    assert_string_equal(webrig_member(c, "latency_ms"), "0");
    assert_non_null(strstr(text, "\"znodes\": [null, null")); /* and of the gate it is */
    assert_non_null(strstr(text, "\"waiting\": [0, 0"));
    webrig_end(c);
}

TEST(what_a_server_tells_is_kept_for_an_hour)
{
    int64_t figures[WEB_FIGURES] = {[WEB_ZNODES] = 4711, [WEB_FSYNC_US] = -1};
    struct webrig_call *c;
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    for (int i = 0; i < SAMPLES + 5; i++) {
        figures[WEB_SESSIONS] = i;
        clave__web_take_figures(r->web, r->net->now, figures);
        webrig_advance(r, SAMPLE_MS);
    }
    const char *text = server_of(r, &c);
    const char *series = strstr(text, "\"samples\"");
    assert_string_equal(webrig_member(c, "znodes"), "4711");
    assert_non_null(strstr(text, "\"fsync_us\": null"));
    series = strstr(strstr(series, "\"server\""), "\"sessions\": [");
    assert_int_equal(commas_from(series, "[") + 1, SAMPLES);
    assert_non_null(strstr(text, ", 362, 363, 364]"));
    webrig_end(c);
    webrig_advance(r, 40000); /* and then it is silent */
    assert_non_null(strstr(server_of(r, &c), "\"server\": null"));
    webrig_end(c);
}

TEST(a_server_that_does_not_answer_has_no_latency)
{
    struct webrig_call *c;
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    webrig_advance(r, 2 * SAMPLE_MS);
    memnet_refuse(r->net, 0, true);
    webrig_advance(r, 2 * SAMPLE_MS);
    assert_non_null(strstr(server_of(r, &c), "\"latency_ms\": null"));
    webrig_end(c);
    memnet_refuse(r->net, 0, false);
    webrig_advance(r, 3 * SAMPLE_MS);
    server_of(r, &c);
    assert_string_equal(webrig_member(c, "latency_ms"), "0");
    webrig_end(c);
    c = webrig_request(r, "GET", "/v1/server", NULL, NULL);
    assert_null(strstr(webrig_body(c), "samples"));
    webrig_end(c);
}
