/* server_admin_test.c - the admin commands as JSON and the metrics, by their bytes. */
#include "base/json_writer.h"
#include "lib/failmem.h"
#include "lib/memserver.h"
#include "lib/unit.h"
#include "server/monitoring/listing.h"
#include "server/monitoring/server_metrics.h"

enum { MOST = 1 << 20 };

static const char *text_of(struct buf *b)
{
    assert_int_equal(clave__buf_append(b, "", 1), CLAVE_OK);
    return (const char *)clave__buf_bytes(b);
}

/* The whole answer, as the driver makes it. */
static clave_err answer(struct memserver *d, const char *name, struct buf *out)
{
    struct listing l;
    clave_err known = clave__admin_begin(&l, d->s, name), err = CLAVE_OK;
    while (err == CLAVE_OK && !clave__listing_is_over(&l))
        err = clave__listing_step(&l, out);
    clave__listing_end(&l);
    return err != CLAVE_OK ? err : known;
}

static void expect(struct memserver *d, const char *name, const char *text)
{
    CLOSED_BY(clave__buf_fini) struct buf b;
    clave__buf_init(&b, &d->mem, MOST);
    assert_int_equal(answer(d, name, &b), CLAVE_OK);
    const char *got = text_of(&b);
    if (!strstr(got, text))
        fail_msg("%s: no \"%s\" in \"%s\"", name, text, got);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

TEST_SERVER(strings_are_escaped)
{
    static const struct {
        const char *in;
        size_t n;
        const char *out;
    } cases[] = {
        {"", 0, "\"\""},
        {"a/b", 3, "\"a/b\""},
        {"\"\\\n\t\x7f", 5, "\"\\\"\\\\\\n\\u0009\\u007f\""},
        {"a\0b", 3, "\"a\\u0000b\""},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x92", 9, "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x92\""},
        {"\xff\xc3", 2, "\"\\ufffd\\ufffd\""},            /* no lead, and one cut short */
        {"\xc0\xaf", 2, "\"\\ufffd\\ufffd\""},            /* overlong */
        {"\xed\xa0\x80", 3, "\"\\ufffd\\ufffd\\ufffd\""}, /* a surrogate */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(clave__buf_fini) struct buf b;
        clave__buf_init(&b, &d->mem, MOST);
        struct json j = clave__json_to(&b);
        clave__json_bytes(&j, NULL, cases[i].in, cases[i].n);
        assert_int_equal(j.err, CLAVE_OK);
        assert_string_equal(text_of(&b), cases[i].out);
    }
}

TEST_SERVER(values_have_commas_between_them)
{
    CLOSED_BY(clave__buf_fini) struct buf b;
    clave__buf_init(&b, &d->mem, MOST);
    struct json j = clave__json_to(&b);
    clave__json_open(&j, NULL, '{');
    clave__json_int(&j, "a", INT64_MIN);
    clave__json_key(&j, "k\"", 2);
    clave__json_open(&j, NULL, '[');
    clave__json_bool(&j, NULL, true);
    clave__json_string(&j, NULL, NULL);
    clave__json_close(&j, ']');
    clave__json_open(&j, "o", '{');
    clave__json_close(&j, '}');
    clave__json_number(&j, "n", "4.25");
    clave__json_int_key(&j, -7);
    clave__json_int(&j, NULL, 1);
    clave__json_close(&j, '}');
    assert_string_equal(text_of(&b), "{\"a\": -9223372036854775808, \"k\\\"\": [true, null], "
                                     "\"o\": {}, \"n\": 4.25, \"-7\": 1}");
}

/* ---- commands ------------------------------------------------------------------------------ */

TEST_SERVER(every_command_ends_with_its_name_and_no_error)
{
    char end[80];
    size_t n = 0;
    for (const char *name; (name = clave__admin_name(n)); n++) {
        const char *error = strcmp(name, "leader") == 0 ? "\"server is not initialized\"" : "null";
        snprintf(end, sizeof end, "\"command\": \"%s\", \"error\": %s}\n", name, error);
        expect(d, name, end);
    }
    assert_int_equal(n, 19);
    expect(d, "ruok", "{\"command\": \"ruok\", \"error\": null}\n");
    expect(d, "mntr", "\"command\": \"monitor\"");
    expect(d, "env", "\"command\": \"environment\"");
}

TEST_SERVER(unknown_commands_are_told)
{
    CLOSED_BY(clave__buf_fini) struct buf b;
    clave__buf_init(&b, &d->mem, MOST);
    assert_int_equal(answer(d, "\"x", &b), CLAVE_EINVAL);
    assert_string_equal(text_of(&b), "{\"command\": \"\\\"x\", \"error\": \"Unknown command\"}\n");
}

TEST_SERVER(sessions_and_watches_are_listed)
{
    CLOSED_BY(memserver_hang_up) struct memserver_conn a, b;
    char text[200];
    expect(d, "dump",
           "{\"expiry_time_to_session_ids\": {}, \"session_id_to_ephemeral_paths\": {}, ");
    expect(d, "wchc", "{\"session_id_to_watched_paths\": {}, ");
    memserver_connect(&a, d, 10000);
    memserver_connect(&b, d, 10000);
    memserver_watch(&a, OP_EXISTS, "/no\"ne");
    memserver_watch(&b, OP_EXISTS, "/no\"ne");
    memserver_watch(&a, OP_GET_CHILDREN, "/"); /* of the other table */
    expect(d, "wchs", "{\"num_connections\": 2, \"num_paths\": 1, \"num_total_watches\": 2, ");
    snprintf(text, sizeof text, "{\"path_to_session_ids\": {\"/no\\\"ne\": [%lld, %lld]}, ",
             (long long)a.session, (long long)b.session);
    expect(d, "wchp", text);
    snprintf(text, sizeof text, "\"%lld\": [\"/no\\\"ne\"]", (long long)b.session);
    expect(d, "wchc", text);
    /* Both end at the same time: one key for the two. */
    snprintf(text, sizeof text, ": [%lld, %lld]}",
             (long long)(a.session < b.session ? a.session : b.session),
             (long long)(a.session < b.session ? b.session : a.session));
    expect(d, "dump", text);
    snprintf(text, sizeof text, "\"session_id\": %lld, \"last_operation\": \"EXIS\", ",
             (long long)b.session);
    expect(d, "cons", text);
    expect(d, "cons", "\"secure_connections\": []");
    expect(d, "mntr", "\"num_alive_connections\": 2, ");
}

TEST_SERVER(resets_count_anew)
{
    CLOSED_BY(memserver_hang_up) struct memserver_conn a;
    memserver_connect(&a, d, 10000);
    memserver_watch(&a, OP_EXISTS, "/none");
    expect(d, "cons", "\"packets_received\": 2, \"packets_sent\": 2, ");
    expect(d, "crst", "{\"command\": \"connection_stat_reset\"");
    expect(d, "cons", "\"packets_received\": 0, \"packets_sent\": 0, ");
    expect(d, "srvr", "\"packets_received\": 2, \"packets_sent\": 2, ");
    expect(d, "srst", "{\"command\": \"stat_reset\"");
    expect(d, "srvr", "\"packets_received\": 0, \"packets_sent\": 0, ");
}

/* Nothing that is half an answer is taken for one. */
TEST_SERVER(what_does_not_fit_is_an_error)
{
    struct buf b;
    size_t n = 0;
    for (const char *name; (name = clave__admin_name(n)); n++) {
        clave__buf_init(&b, &d->mem, MOST);
        assert_int_equal(answer(d, name, &b), CLAVE_OK);
        size_t whole = clave__buf_len(&b);
        clave__buf_fini(&b);
        for (size_t most = 0; most < whole; most++) {
            clave__buf_init(&b, &d->mem, most);
            assert_int_equal(answer(d, name, &b), CLAVE_ETOOBIG);
            clave__buf_fini(&b);
        }
    }
    clave__buf_init(&b, &d->mem, 1000);
    assert_int_equal(clave__metrics(d->s, PROMETHEUS_TEXT, &b), CLAVE_ETOOBIG);
    clave__buf_fini(&b);
}

/* Neither the server's nor the page's. */
TEST(without_memory_there_is_no_answer)
{
    static const char *const names[] = {"cons", "dump", "wchs"};
    struct failmem mem;
    failmem_init(&mem);
    struct server_options o = {.mem = &mem.mem};
    CLOSED_BY(memserver_close) struct memserver d;
    CLOSED_BY(memserver_hang_up) struct memserver_conn a;
    struct buf b;
    memserver_open(&d, &o);
    memserver_connect(&a, &d, 10000);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bool failed = true;
        for (size_t first = 1; failed; first++) {
            size_t live = mem.live;
            clave__buf_init(&b, &mem.mem, MOST);
            failmem_arm(&mem, first, 1);
            clave_err err = answer(&d, names[i], &b);
            failed = mem.failed;
            failmem_arm(&mem, 0, 0);
            assert_int_equal(err, failed ? CLAVE_ENOMEM : CLAVE_OK);
            clave__buf_fini(&b);
            assert_int_equal(mem.live, live);
            assert_true(first < 100);
        }
    }
}

/* ---- metrics ------------------------------------------------------------------------------- */

TEST_SERVER(figures_are_told_once_each)
{
    static const struct driver_stats known = {7, 1024, 4096, 1234, 12, 345, 0x1f, 99, 5000, 90000};
    static const struct driver_stats unknown = DRIVER_STATS_UNKNOWN;
    CLOSED_BY(memserver_hang_up) struct memserver_conn a;
    struct buf b;
    memserver_connect(&a, d, 10000);
    memserver_watch(&a, OP_EXISTS, "/none");
    clave__buf_init(&b, &d->mem, MOST);
    clave__server_set_driver_stats(d->s, &known);
    clave__server_note_fsync(d->s, 4001);
    clave__server_note_fsync(d->s, 15);
    clave__server_note_fsync(d->s, 551);
    assert_int_equal(clave__metrics(d->s, PROMETHEUS_TEXT, &b), CLAVE_OK);
    const char *page = text_of(&b);
    static const char *const lines[] = {
        "# TYPE watch_count gauge\nwatch_count 1\n",
        "# TYPE znode_count gauge\nznode_count 5\n",
        "\nnum_alive_connections 1\n",
        "\nglobal_sessions 1\n",
        "# TYPE requests_total counter\n",
        "\nrequests_total{op=\"exists\"} 1\n",
        "\nopen_file_descriptor_count 7\n",
        "\ndata_dir_size 12\n",
        "\nlog_dir_size 345\n",
        "\ndata_dir_free_bytes 5000\n",
        "\ndata_dir_total_bytes 90000\n",
        "\nstale_sessions_expired 0\n",
        "\nstale_sessions_expired_total 0\n",
        "# TYPE log_append_ms summary\nlog_append_ms{quantile=\"0.5\"} 0.575\n",
        "\nfsynctime_sum 4.567\nfsynctime_count 3\n",
        "# TYPE readlatency summary\nreadlatency{quantile=\"0.5\"} 0\n",
        "\nreadlatency_count 1\n",
        "\nupdatelatency{quantile=\"0.99\"} NaN\nupdatelatency_sum 0\nupdatelatency_count 0\n",
        "\nelection_time_count 0\n",
        "# TYPE bytes_received_count counter\nbytes_received_count ",
        "\nconnection_request_count 1\n",
        "\nproposal_count 1\n",
        "\nclave_session_slack_seconds_bucket{le=\"+Inf\"} 0\n",
        "\nclave_session_ends_total{cause=\"closed\"} 0\n",
        "\nprocess_cpu_seconds_total 1.234\n",
        "# TYPE request_latency_ms summary\nrequest_latency_ms_sum 0\nrequest_latency_ms_count ",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const char *at = strstr(page, lines[i]);
        if (!at || strstr(at + 1, lines[i]))
            fail_msg("\"%s\" is not there once in %s", lines[i], page);
    }
    assert_int_equal(page[strlen(page) - 1], '\n');
    clave__buf_fini(&b);
    clave__buf_init(&b, &d->mem, MOST);
    clave__server_set_driver_stats(d->s, &unknown);
    assert_int_equal(clave__metrics(d->s, PROMETHEUS_TEXT, &b), CLAVE_OK);
    assert_null(strstr(text_of(&b), "process_")); /* not known: not told */
    assert_null(strstr(text_of(&b), "_dir_"));
    clave__buf_fini(&b);
}
