/* The log of `clave serve`: what a line has as JSON, and the end. */
#include <unistd.h>

#include "cmd/serve/serve_log.h"
#include "lib/unit.h"

TEST(lines_lost_at_the_end_are_told)
{
    struct serve_log l;
    int ends[2];
    char text[200] = "";
    assert_int_equal(pipe(ends), 0);
    serve_log_init(&l, "serve");
    l.time = LOG_TIME_NO;
    l.level = CLAVE_LOG_WARN;
    l.file.fd = ends[1];
    serve_log_begin_queue(&l);
    l.file.lost = 3; /* as of a last job that found the pipe full */
    serve_log_end_queue(&l);
    serve_log_fini(&l);
    close(ends[1]);
    assert_true(read(ends[0], text, sizeof text - 1) >= 0);
    close(ends[0]);
    assert_string_equal(text, "clave: serve: the log has lost 3 lines: they come faster than they "
                              "can be written\n");
}

/* Not what its text looks like. */
TEST(json_has_what_a_line_is_about)
{
    struct serve_log l;
    int ends[2];
    char text[600] = "";
    assert_int_equal(pipe(ends), 0);
    serve_log_init(&l, "serve");
    l.format = LOG_JSON;
    l.level = CLAVE_LOG_INFO;
    l.file.fd = ends[1];
    const struct log log = {serve_log_line, &l, serve_log_about, &l.level};
    const struct log_about about = {.connection = "[::1]:5", .session = 0x10, .path = "/a b"};
    clave__log_about(&log, CLAVE_LOG_INFO, &about, "it is slow");
    clave__log(&log, CLAVE_LOG_INFO, "10.0.0.1:7 is /CN=x of session 0x9");
    serve_log_fini(&l);
    close(ends[1]);
    assert_true(read(ends[0], text, sizeof text - 1) >= 0);
    close(ends[0]);
    const char *second = strchr(text, '\n');
    assert_non_null(second);
    assert_non_null(strstr(text, "\"message\": \"it is slow\", \"connection\": \"[::1]:5\", "
                                 "\"session\": \"0x10\", \"path\": \"/a b\"}\n"));
    assert_non_null(strstr(second, "\"message\": \"10.0.0.1:7 is /CN=x of session 0x9\"}\n"));
}
