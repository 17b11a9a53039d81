/* server_slow_test.c - slow_ms: which requests are logged, with what, and that few are at a time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/memserver.h"

static int lines_of(const struct memserver *d, const char *text)
{
    int n = 0;
    for (const char *at = d->lines; (at = strstr(at, text)); at += strlen(text))
        n++;
    return n;
}

static void the_line(void **state)
{
    (void)state;
    struct server_options o = {.slow_ms = 50};
    struct memserver d;
    struct memserver_conn c, other;
    char line[200];
    memserver_open(&d, &o);
    memserver_connect(&c, &d, 30000);
    memserver_connect(&other, &d, 30000);
    d.disk_stands = true;
    union wire_body create = memserver_create_body("/a\nb", "12345", 0);
    union wire_body read = {.read.path = clave__jbytes("/")};
    memserver_request(&c, OP_CREATE, &create);
    memserver_advance(&d, 30);
    memserver_request(&other, OP_GET_DATA, &read); /* waits as well, but not so long */
    memserver_request(&c, OP_PING, NULL);
    memserver_advance(&d, 30);
    assert_int_equal(lines_of(&d, "slow request"), 0); /* said when it is known */
    memserver_flush(&d);
    memserver_settle(&d);
    snprintf(line, sizeof line, "slow request: create /a?b took 60 ms, 56 bytes, session 0x%llx of",
             (unsigned long long)c.session);
    assert_non_null(strstr(d.lines, line));
    assert_int_equal(lines_of(&d, "slow request"), 1);
    memserver_hang_up(&c);
    memserver_hang_up(&other);
    memserver_close(&d);
}

static void few_lines_and_a_count(void **state)
{
    (void)state;
    struct server_options o = {.slow_ms = 10};
    struct memserver d;
    struct memserver_conn c;
    memserver_open(&d, &o);
    memserver_connect(&c, &d, 30000);
    d.disk_stands = true;
    union wire_body create = memserver_create_body("/n-", "", 2);
    for (int i = 0; i < 35; i++)
        memserver_request(&c, OP_CREATE, &create);
    memserver_advance(&d, 10);
    memserver_flush(&d);
    memserver_settle(&d);
    assert_int_equal(lines_of(&d, "slow request: create /n- took"), 10);
    assert_null(strstr(d.lines, "more slow requests"));
    d.disk_stands = false;
    memserver_advance(&d, 1000);
    assert_non_null(strstr(d.lines, "25 more slow requests in a second"));
    memserver_advance(&d, 1000);
    assert_int_equal(lines_of(&d, "more slow requests"), 1);
    memserver_hang_up(&c);
    memserver_close(&d);
}

/* What waits when its client goes, or when the limit is taken away, is nobody's business. */
static void what_ends_before(void **state)
{
    (void)state;
    struct server_options o = {.slow_ms = 10};
    struct memserver d;
    struct memserver_conn c, other;
    memserver_open(&d, &o);
    memserver_connect(&c, &d, 30000);
    memserver_connect(&other, &d, 30000);
    d.disk_stands = true;
    union wire_body create = memserver_create_body("/n-", "", 2);
    memserver_request(&c, OP_CREATE, &create);
    memserver_request(&other, OP_CREATE, &create);
    memserver_advance(&d, 20);
    memserver_hang_up(&c);
    struct server_options off = d.o;
    off.slow_ms = 0;
    assert_int_equal(clave__server_change(d.s, &off), CLAVE_OK);
    memserver_flush(&d);
    memserver_settle(&d);
    assert_null(strstr(d.lines, "slow"));
    memserver_hang_up(&other);
    memserver_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line),
        cmocka_unit_test(few_lines_and_a_count),
        cmocka_unit_test(what_ends_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
