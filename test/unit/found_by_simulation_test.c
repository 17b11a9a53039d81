/* What the simulated world (test/sim) has found, each as a short timeline of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/desk.h"
#include "lib/seat.h"

/* ---- memory that is counted -------------------------------------------------------------- */

static void *take(void *arg, size_t size)
{
    ++*(size_t *)arg;
    return malloc(size);
}

static void *change(void *arg, void *p, size_t size)
{
    *(size_t *)arg += p ? 0 : 1;
    return realloc(p, size);
}

static void give_back(void *arg, void *p)
{
    *(size_t *)arg -= p ? 1 : 0;
    free(p);
}

/* A client whose acquire waits for one reply, and both are freed. */
static void free_while_listing_is_out(bool path_exists)
{
    size_t blocks = 0;
    clave_mem mem = {take, change, give_back, &blocks};
    struct pair *p =
        pair_new(&(struct pair_options){.clients = 1, .timeout_ms = 6000, .mem = &mem});
    struct seat a;
    pair_settle(p);
    seat_open(&a, p, 0, "/l", NULL);
    if (path_exists) {
        seat_acquire(&a, SEAT_EVER);
        seat_release(&a);
    }
    unsigned before = a.answers;
    pair_rule(p, (struct pair_rule){0, PAIR_REPLY, OP_GET_CHILDREN2, PAIR_HOLD, 0});
    seat_acquire(&a, SEAT_EVER);
    clave_mutex_free(a.m);
    clave_client_free(p->end[0].c);
    p->o.clients = 0;
    assert_int_equal(a.answers, before + 1);
    assert_int_equal(a.err, CLAVE_ECANCELED);
    assert_int_equal(blocks, 0);
    pair_free(p);
}

/* Seed 176. The create had been answered and its listing had not: the node's delete was
 * refused by the closed client, and the contender waited for it for ever. */
static void a_client_freed_between_create_and_listing_leaves_nothing(void **state)
{
    (void)state;
    free_while_listing_is_out(true);
}

/* Seed 10713. The create had been answered with ENONODE: the ancestors were asked for behind
 * the end, and nobody answered. */
static void a_client_freed_before_the_ancestors_leaves_nothing(void **state)
{
    (void)state;
    free_while_listing_is_out(false);
}

/* Seed 12589. Power is lost when a new log has its size and not its first bytes: there is no
 * record in it, and the server starts. */
static void a_log_whose_header_is_torn_is_empty(void **state)
{
    (void)state;
    enum { SIZE = 200 };
    uint8_t file[SIZE];
    for (size_t kept = 0; kept < SERVER_LOG_HEADER; kept++) {
        struct desk d;
        struct log_replay r;
        uint8_t header[SERVER_LOG_HEADER];
        clave__server_log_header(header);
        memset(file, 0, sizeof file);
        memcpy(file, header, kept);
        assert_int_equal(desk_open_bare(&d, NULL), CLAVE_OK);
        assert_int_equal(clave__server_replay_log(d.s, file, sizeof file, &r), CLAVE_OK);
        assert_true(r.torn || kept >= 8); /* the header ends in zeros */
        assert_int_equal(r.first_zxid, 0);
        desk_close(&d);
    }
    /* What has bytes of something else is not taken for it. */
    struct desk d;
    struct log_replay r;
    memset(file, 0, sizeof file);
    file[SIZE - 1] = 'B';
    assert_int_equal(desk_open_bare(&d, NULL), CLAVE_OK);
    assert_int_equal(clave__server_replay_log(d.s, file, sizeof file, &r), CLAVE_ECORRUPT);
    desk_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_freed_between_create_and_listing_leaves_nothing),
        cmocka_unit_test(a_client_freed_before_the_ancestors_leaves_nothing),
        cmocka_unit_test(a_log_whose_header_is_torn_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
