/* The host list: what is understood, what is refused, and in which order hosts are tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "client/hosts.h"
#include "lib/failmem.h"

/* "h1:2181 h2:2182 /chroot" */
static const char *taken_apart(const char *text)
{
    static char out[512];
    struct failmem mem;
    struct hosts h;
    size_t n = 0;
    failmem_init(&mem);
    assert_int_equal(clave__hosts_init(&h, &mem.mem, text), CLAVE_OK);
    for (size_t i = 0; i < h.count; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s:%u ", h.list[i].name,
                              (unsigned)h.list[i].port);
    snprintf(out + n, sizeof out - n, "%s", h.chroot);
    assert_int_equal(h.chroot_len, strlen(h.chroot));
    clave__hosts_fini(&h);
    assert_int_equal(mem.live, 0);
    return out;
}

static void lists_are_taken_apart(void **state)
{
    (void)state;
    assert_string_equal(taken_apart("h"), "h:2181 ");
    assert_string_equal(taken_apart("h:1"), "h:1 ");
    assert_string_equal(taken_apart("h/"), "h:2181 ");
    assert_string_equal(taken_apart("h1:1,h2,10.0.0.1:65535/a/b"),
                        "h1:1 h2:2181 10.0.0.1:65535 /a/b");
    assert_string_equal(taken_apart("[::1]:9,[fe80::1%eth0]/x"), "::1:9 fe80::1%eth0:2181 /x");
    assert_string_equal(taken_apart("unix:/run/x/sock"), "/run/x/sock:0 ");
    assert_string_equal(taken_apart("local:"), "local::0 ");
    assert_string_equal(taken_apart("local:/"), "local::0 ");
    assert_string_equal(taken_apart("local:/app"), "local::0 /app");
}

static bool wants_tls(const char *text)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    struct hosts h;
    assert_int_equal(clave__hosts_init(&h, &mem, text), CLAVE_OK);
    bool wants = h.tls;
    clave__hosts_fini(&h);
    return wants;
}

static void tls_is_of_all_hosts(void **state)
{
    (void)state;
    assert_string_equal(taken_apart("tls:h1:1,h2,[::1]/a"), "h1:1 h2:2281 ::1:2281 /a");
    assert_true(wants_tls("tls:h1:1,h2,[::1]/a"));
    assert_false(wants_tls("h1:1,h2"));
    assert_false(wants_tls("[tls]:2181")); /* a host of this name */
    assert_false(wants_tls("unix:/tls:"));
}

static void nonsense_is_refused_with_a_reason(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",       ",",      "h,",          "h:",         "h:x",     "h:0",    "h:65536", "h:999999",
        "h 1",    "[::1",   "[]:1",        "[::1]x",     "[::1]:x", "::1",    "a:1:2",   "h/a//b",
        "h/a/",   "h/../b", "local:x",     "local:/a/",  "unix:",   "h\x01x", "h]",      "tls:",
        "tls:,h", "tls:/a", "tls:unix:/x", "tls:local:", "a,tls:b",
    };
    struct clave_mem mem = clave__mem_or_default(NULL);
    struct hosts h;
    assert_non_null(clave__hosts_fault(NULL));
    assert_string_equal(clave__hosts_fault("::1"),
                        "an IPv6 address must be in brackets: [::1]:2181");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (!clave__hosts_fault(bad[i]))
            fail_msg("accepted: %s", bad[i]);
        assert_int_equal(clave__hosts_init(&h, &mem, bad[i]), CLAVE_EHOST);
    }
}

static void a_pause_comes_after_a_whole_round_of_failures(void **state)
{
    (void)state;
    struct clave_mem mem = clave__mem_or_default(NULL);
    struct hosts h;
    assert_int_equal(clave__hosts_init(&h, &mem, "a,b,c"), CLAVE_OK);
    assert_false(clave__hosts_next(&h, true));
    assert_string_equal(clave__hosts_current(&h)->name, "b");
    assert_false(clave__hosts_next(&h, true));
    assert_true(clave__hosts_next(&h, true));
    assert_string_equal(clave__hosts_current(&h)->name, "a");
    assert_int_equal(clave__hosts_current(&h)->tried, 1);
    assert_false(clave__hosts_next(&h, true));
    clave__hosts_served(&h); /* b was of use */
    assert_false(clave__hosts_next(&h, false));
    assert_false(clave__hosts_next(&h, true));
    assert_false(clave__hosts_next(&h, true));
    assert_true(clave__hosts_next(&h, true));
    clave__hosts_fini(&h);
}

static void shuffling_keeps_every_host(void **state)
{
    (void)state;
    struct clave_mem mem = clave__mem_or_default(NULL);
    struct rand_state r;
    unsigned first[5] = {0};
    clave__rand_seed(&r, 4);
    for (int round = 0; round < 1000; round++) {
        struct hosts h;
        unsigned seen = 0;
        assert_int_equal(clave__hosts_init(&h, &mem, "0,1,2,3,4"), CLAVE_OK);
        clave__hosts_shuffle(&h, &r);
        for (size_t i = 0; i < h.count; i++)
            seen |= 1u << (h.list[i].name[0] - '0');
        assert_int_equal(seen, 31);
        first[h.list[0].name[0] - '0']++;
        clave__hosts_fini(&h);
    }
    for (int i = 0; i < 5; i++)
        assert_in_range(first[i], 140, 260);
}

static void without_memory_nothing_is_left(void **state)
{
    (void)state;
    struct failmem mem;
    struct hosts h;
    for (size_t n = 1; n <= 2; n++) {
        failmem_init(&mem);
        failmem_arm(&mem, n, 1);
        assert_int_equal(clave__hosts_init(&h, &mem.mem, "a,b/c"), CLAVE_ENOMEM);
        assert_int_equal(mem.live, 0);
    }
}

static void try_next(struct hosts *h, unsigned refused_by)
{
    if (refused_by > 0)
        clave__hosts_refused(h, refused_by);
    clave__hosts_next(h, true);
}

static void all_of_them_refuse(void **state)
{
    (void)state;
    struct clave_mem mem = clave__mem_or_default(NULL);
    struct hosts h;
    assert_int_equal(clave__hosts_init(&h, &mem, "a,b"), CLAVE_OK);
    assert_false(clave__hosts_all_refuse(&h));
    try_next(&h, 1);
    assert_false(clave__hosts_all_refuse(&h)); /* b was not asked yet */
    try_next(&h, 2);
    assert_false(clave__hosts_all_refuse(&h)); /* nor was b's other address */
    try_next(&h, 1);
    assert_false(clave__hosts_all_refuse(&h));
    try_next(&h, 0);
    assert_true(clave__hosts_all_refuse(&h)); /* nobody is there */
    try_next(&h, 1);
    try_next(&h, 0);
    assert_false(clave__hosts_all_refuse(&h)); /* what b said is not of its newest two tries */
    try_next(&h, 1);
    try_next(&h, 2);
    assert_true(clave__hosts_all_refuse(&h));
    clave__hosts_answered(&h); /* a */
    assert_false(clave__hosts_all_refuse(&h));
    clave__hosts_fini(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_taken_apart),
        cmocka_unit_test(tls_is_of_all_hosts),
        cmocka_unit_test(nonsense_is_refused_with_a_reason),
        cmocka_unit_test(a_pause_comes_after_a_whole_round_of_failures),
        cmocka_unit_test(shuffling_keeps_every_host),
        cmocka_unit_test(without_memory_nothing_is_left),
        cmocka_unit_test(all_of_them_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
