/* The cache of trees: what it asks for. What is too long for the client is left out and said to be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/cache_play.h"

/* A client that takes replies of four times as many bytes. */
enum { FRAME = 1000, NARROW = 2 };

static void play_init_narrow(struct play *y, bool each)
{
    clave_client_options o = {.size = sizeof o,
                              .hosts = "pair:1",
                              .session_timeout_ms = PLAY_TIMEOUT,
                              .seed = 7,
                              .max_frame = FRAME};
    play_init(y, each);
    assert_int_equal(memnet_open(y->p, &o), NARROW);
    memnet_settle(y->p);
}

/* Its connection goes with each reply that is too long. */
static void play_open_narrow(struct play *y)
{
    clave_cache_options o = play_options();
    o.without_persistent_watch = y->each;
    assert_int_equal(clave_async_cache_new(&y->cache, y->p->clients[NARROW].c, "/t", &o,
                                           cache_mirror_on_event, &y->m),
                     CLAVE_OK);
    memnet_advance(y->p, PLAY_TIMEOUT);
}

/* A listing is too long for the client: the cache does not have what is below, and says so. */
static void a_listing_that_is_too_long_is_left_out(bool each)
{
    struct play y;
    play_init_narrow(&y, each);
    play_create(&y, "/t");
    play_create(&y, "/t/a");
    play_create(&y, "/t/b");
    play_create_many(&y, "/t/a", 600);
    play_open_narrow(&y);
    assert_int_equal(y.m.initialized, 1);
    assert_int_equal(y.m.count, 3);
    assert_int_equal(y.m.full, 1);
    assert_false(clave_async_cache_is_complete(y.cache));
    play_create(&y, "/t/c"); /* what is beside it is followed */
    assert_int_equal(y.m.count, 4);
    play_end(&y);
}
BOTH(a_listing_that_is_too_long_is_left_out)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_listing_that_is_too_long_is_left_out_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
