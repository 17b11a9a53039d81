/* base_prometheus_test.c - pages of metrics, byte for byte, in both formats. */
#include "base/memory.h"
#include "base/prometheus.h"
#include "lib/unit.h"

static const struct histogram_bounds bounds = {3, {5, 1000, 2500}};

/* One family of each kind. */
static void page_write(struct prometheus *p)
{
    static const struct prometheus_family gauge = {"waiters", PROMETHEUS_GAUGE, 0, "Who waits."},
                                          counter = {"ends", PROMETHEUS_COUNTER, 0, "Ends."},
                                          bare = {"cc", PROMETHEUS_BARE_COUNTER, 0, "Apache's."},
                                          times = {"wait_seconds", PROMETHEUS_HISTOGRAM, 3, "W."},
                                          latency = {"readlatency", PROMETHEUS_SUMMARY, 0,
                                                     "Reads."};
    const struct prometheus_summary now = {{1, 20, 300}, true, 321, 3};
    const struct prometheus_summary idle = {{-1, -1, -1}, true, 0, 0};
    struct histogram h;
    clave__prometheus_family(p, &gauge);
    clave__prometheus_put(p, NULL, -7);
    clave__prometheus_put(
        p, (struct prometheus_label[]){{"path", "/a\\b\"c\nd\xff€"}, {"kind", "lock"}, {0}}, 2);
    clave__prometheus_family(p, &counter);
    clave__prometheus_put(p, (struct prometheus_label[]){{"cause", "expired"}, {0}}, INT64_MAX);
    clave__prometheus_family(p, &bare);
    clave__prometheus_put(p, NULL, 10);
    clave__histogram_init(&h, &bounds);
    for (int64_t v = 0; v <= 2501; v += 5)
        clave__histogram_note(&h, v);
    clave__histogram_note(&h, 2501);
    clave__prometheus_family(p, &times);
    clave__prometheus_histogram(p, NULL, &h);
    clave__prometheus_family(p, &latency);
    clave__prometheus_summary(p, NULL, &now);
    clave__prometheus_summary(p, (struct prometheus_label[]){{"op", "x"}, {0}}, &idle);
    clave__prometheus_end(p);
}

static void page_is(enum prometheus_format format, const char *expected)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    CLOSED_BY(clave__buf_fini) struct buf out;
    struct prometheus p;
    clave__buf_init(&out, &mem, 65536);
    p = clave__prometheus_to(&out, format);
    page_write(&p);
    assert_int_equal(p.err, CLAVE_OK);
    assert_int_equal(clave__buf_append(&out, "", 1), CLAVE_OK);
    assert_string_equal((const char *)clave__buf_bytes(&out), expected);
}

TEST(text)
{
    page_is(PROMETHEUS_TEXT, "# HELP waiters Who waits.\n"
                             "# TYPE waiters gauge\n"
                             "waiters -7\n"
                             "waiters{path=\"/a\\\\b\\\"c\\nd\xef\xbf\xbd€\",kind=\"lock\"} 2\n"
                             "# HELP ends_total Ends.\n"
                             "# TYPE ends_total counter\n"
                             "ends_total{cause=\"expired\"} 9223372036854775807\n"
                             "# HELP cc Apache's.\n"
                             "# TYPE cc counter\n"
                             "cc 10\n"
                             "# HELP cc_total Apache's.\n"
                             "# TYPE cc_total counter\n"
                             "cc_total 10\n"
                             "# HELP wait_seconds W.\n"
                             "# TYPE wait_seconds histogram\n"
                             "wait_seconds_bucket{le=\"0.005\"} 2\n"
                             "wait_seconds_bucket{le=\"1\"} 201\n"
                             "wait_seconds_bucket{le=\"2.5\"} 501\n"
                             "wait_seconds_bucket{le=\"+Inf\"} 502\n"
                             "wait_seconds_sum 628.751\n"
                             "wait_seconds_count 502\n"
                             "# HELP readlatency Reads.\n"
                             "# TYPE readlatency summary\n"
                             "readlatency{quantile=\"0.5\"} 1\n"
                             "readlatency{quantile=\"0.9\"} 20\n"
                             "readlatency{quantile=\"0.99\"} 300\n"
                             "readlatency_sum 321\n"
                             "readlatency_count 3\n"
                             "readlatency{op=\"x\",quantile=\"0.5\"} NaN\n"
                             "readlatency{op=\"x\",quantile=\"0.9\"} NaN\n"
                             "readlatency{op=\"x\",quantile=\"0.99\"} NaN\n"
                             "readlatency_sum{op=\"x\"} 0\n"
                             "readlatency_count{op=\"x\"} 0\n");
}

TEST(openmetrics)
{
    page_is(PROMETHEUS_OPENMETRICS,
            "# HELP waiters Who waits.\n"
            "# TYPE waiters gauge\n"
            "waiters -7\n"
            "waiters{path=\"/a\\\\b\\\"c\\nd\xef\xbf\xbd€\",kind=\"lock\"} 2\n"
            "# HELP ends Ends.\n"
            "# TYPE ends counter\n"
            "ends_total{cause=\"expired\"} 9223372036854775807\n"
            "# HELP cc Apache's.\n"
            "# TYPE cc unknown\n"
            "cc 10\n"
            "# HELP cc_total Apache's.\n"
            "# TYPE cc_total unknown\n"
            "cc_total 10\n"
            "# HELP wait_seconds W.\n"
            "# TYPE wait_seconds histogram\n"
            "wait_seconds_bucket{le=\"0.005\"} 2\n"
            "wait_seconds_bucket{le=\"1.0\"} 201\n"
            "wait_seconds_bucket{le=\"2.5\"} 501\n"
            "wait_seconds_bucket{le=\"+Inf\"} 502\n"
            "wait_seconds_sum 628.751\n"
            "wait_seconds_count 502\n"
            "# HELP readlatency Reads.\n"
            "# TYPE readlatency summary\n"
            "readlatency{quantile=\"0.5\"} 1\n"
            "readlatency{quantile=\"0.9\"} 20\n"
            "readlatency{quantile=\"0.99\"} 300\n"
            "readlatency_sum 321\n"
            "readlatency_count 3\n"
            "readlatency{op=\"x\",quantile=\"0.5\"} NaN\n"
            "readlatency{op=\"x\",quantile=\"0.9\"} NaN\n"
            "readlatency{op=\"x\",quantile=\"0.99\"} NaN\n"
            "readlatency_sum{op=\"x\"} 0\n"
            "readlatency_count{op=\"x\"} 0\n"
            "# EOF\n");
}

/* The first error stays, and says that the page is of no use. */
TEST(too_big)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    CLOSED_BY(clave__buf_fini) struct buf out;
    struct prometheus p;
    clave__buf_init(&out, &mem, 300);
    p = clave__prometheus_to(&out, PROMETHEUS_TEXT);
    page_write(&p);
    assert_int_equal(p.err, CLAVE_ETOOBIG);
}

TEST(histograms_add)
{
    struct histogram a, b;
    clave__histogram_init(&a, &bounds);
    clave__histogram_init(&b, &bounds);
    clave__histogram_note(&a, 5);
    clave__histogram_note(&b, 6);
    clave__histogram_note(&b, 100000);
    clave__histogram_add(&a, &b);
    assert_int_equal(a.counts[0], 1);
    assert_int_equal(a.counts[1], 1);
    assert_int_equal(a.counts[3], 1);
    assert_int_equal(a.sum, 100011);
    assert_int_equal(clave__histogram_count(&a), 3);
}

TEST(accepted)
{
    static const struct {
        const char *accept;
        enum prometheus_format format;
    } cases[] = {
        {NULL, PROMETHEUS_TEXT},
        {"", PROMETHEUS_TEXT},
        {"*/*", PROMETHEUS_TEXT},
        {"text/plain", PROMETHEUS_TEXT},
        {"application/openmetrics-text", PROMETHEUS_OPENMETRICS},
        {"text/html, application/openmetrics-text", PROMETHEUS_OPENMETRICS},
        {"application/openmetrics-text2", PROMETHEUS_TEXT},
        {"application/openmetrics-text;q=0", PROMETHEUS_TEXT},
        {"application/openmetrics-text; version=1.0.0; q=0.4, text/plain;q=0.3",
         PROMETHEUS_OPENMETRICS},
        {"application/openmetrics-text;q=0.3,text/plain;q=0.30001", PROMETHEUS_OPENMETRICS},
        {"application/openmetrics-text;q=0.3,text/plain;q=1.0", PROMETHEUS_TEXT},
        {"text/plain;version=0.0.4,application/openmetrics-text;q=0.9", PROMETHEUS_TEXT},
        /* Prometheus 2.42 */
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
         "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         PROMETHEUS_OPENMETRICS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(clave__prometheus_accepted(cases[i].accept), cases[i].format);
    assert_non_null(strstr(clave__prometheus_content_type(PROMETHEUS_TEXT), "version=0.0.4"));
    assert_non_null(
        strstr(clave__prometheus_content_type(PROMETHEUS_OPENMETRICS), "version=1.0.0"));
}
