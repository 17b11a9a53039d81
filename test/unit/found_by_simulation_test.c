/* What the simulated world (test/sim) has found, each as a short timeline of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/client_internal.h"
#include "lib/desk.h"
#include "lib/script.h"
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
    clave_async_mutex_free(a.m);
    clave_async_client_free(p->end[0].c);
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

static void on_hold(struct hold *h)
{
    (void)h;
}

/* Seed 1670. Cut off from its quorum a leader re-attached a holder, as Apache's does for up to
 * syncLimit ticks (measured: 11.4 s), and the holder counted from there, while the next leader
 * had long been counting: two held. What it answers may be believed, but proves nothing. */
static void a_deposed_leader_that_re_attaches_prolongs_no_hold(void **state)
{
    (void)state;
    struct script s;
    struct hold hold = {.path = "/l/n", .on_missing = on_hold, .on_settled = on_hold};
    list_init(&hold.link);
    script_open(&s, NULL);
    script_connect(&s, false);
    clave__client_hold(s.c, &hold);
    int64_t deadline = clave_async_client_hold_deadline(s.c);
    script_hang_up(&s);
    s.now += SCRIPT_TIMEOUT / 2;
    script_dial(&s);
    script_shake(&s, SCRIPT_SESSION, SCRIPT_TIMEOUT, false);
    script_expect(&s, OP_MULTI); /* and no answer to it */
    assert_int_equal(clave_async_client_hold_deadline(s.c), deadline);
    script_at(&s, deadline);
    assert_int_equal(s.states[s.nstates - 1], CLAVE_STATE_LOST);
    clave__client_unhold(s.c, &hold);
    script_close(&s);
}

/* Seed 988. A lock was granted by its predecessor's Deleted event, which carries no zxid before
 * ZooKeeper 3.9. The holder moved to a member that lagged behind that event and read what the one
 * before had long written over. Now nothing is read there before a write has been committed. */
static void a_holder_reads_nothing_at_another_member_before_a_write(void **state)
{
    (void)state;
    struct script s;
    struct outcome got = {0};
    struct hold hold = {.path = "/l/n", .on_missing = on_hold, .on_settled = on_hold};
    list_init(&hold.link);
    script_open(&s, NULL);
    script_connect(&s, false);
    clave__client_hold(s.c, &hold);
    script_hang_up(&s);
    assert_int_equal(clave_async_exists(s.c, "/data", NULL, script_outcome, &got), CLAVE_OK);
    script_dial(&s);
    script_shake(&s, SCRIPT_SESSION, SCRIPT_TIMEOUT, false);
    script_expect(&s, OP_MULTI);
    script_expect(&s, OP_EXISTS);
    script_expect(&s, OP_GET_DATA); /* which kind of server it is */
    clave__client_unhold(s.c, &hold);
    script_close(&s);
}

/* Seed 405559. The leader that took the create is deposed, and its side still answers what it had
 * before; the successor commits the create later. "It is not there" counts only behind something
 * that was committed: else a second node is made, or none is known of, and the first stands in the
 * queue, of a session that lives, and everybody waits for nobody. */
static void a_deposed_leader_does_not_tell_that_a_create_was_not_done(void **state)
{
    (void)state;
    struct script s;
    struct outcome got = {0};
    char path[128];
    clave_create_options o = {
        .size = sizeof o, .mode = CLAVE_EPHEMERAL_SEQUENTIAL, .flags = CLAVE_CREATE_PROTECTED};
    script_open(&s, NULL);
    script_connect(&s, false);
    assert_int_equal(clave_async_create(s.c, "/q/n-", "", 0, &o, script_outcome, &got), CLAVE_OK);
    const struct wire_request *q = script_expect(&s, OP_CREATE2);
    snprintf(path, sizeof path, "%.*s0000000005", (int)q->body.create.path.n,
             (const char *)q->body.create.path.p);
    const char *names[] = {path + strlen("/q/")};
    script_hang_up(&s);
    script_dial(&s); /* the deposed leader's side */
    script_shake(&s, SCRIPT_SESSION, SCRIPT_TIMEOUT, false);
    script_expect(&s, OP_MULTI); /* which it cannot commit */
    int32_t multi = s.q.xid;
    script_answer_to(&s, multi, OP_MULTI, CLAVE_ENOTREADONLY, NULL);
    struct wire_reply m = {.names = script_names(names, 0)};
    script_answer_to(&s, multi + 1, OP_GET_CHILDREN2, CLAVE_OK, &m);
    assert_int_equal(got.times, 0);
    script_hang_up(&s);
    script_dial(&s); /* and its successor's */
    script_shake(&s, SCRIPT_SESSION, SCRIPT_TIMEOUT, false);
    script_config(&s, false);
    script_at(&s, s.now + 1000);
    script_expect(&s, OP_MULTI);
    script_answer_checks(&s, CLAVE_OK);
    script_expect(&s, OP_GET_CHILDREN2);
    m = (struct wire_reply){.names = script_names(names, 1)};
    script_answer(&s, CLAVE_OK, &m);
    script_expect(&s, OP_EXISTS);
    m = (struct wire_reply){.stat = {.czxid = 7, .ephemeral_owner = SCRIPT_SESSION}};
    script_answer(&s, CLAVE_OK, &m);
    assert_int_equal(got.times, 1);
    assert_int_equal(got.err, CLAVE_OK);
    assert_string_equal(got.path, path);
    script_close(&s);
}

/* Seed 1004798. Of an ancestor and the create behind it only the ancestor had left when the
 * connection went: nobody knows whether it was made, and the create failed for it. */
static void an_ancestor_whose_answer_was_lost_is_made_again(void **state)
{
    (void)state;
    struct script s;
    struct outcome got = {0};
    const clave_create_options o = {.size = sizeof o, .flags = CLAVE_CREATE_PARENTS};
    const void *p;
    script_open(&s, NULL);
    script_connect(&s, true);
    assert_int_equal(clave_async_create(s.c, "/a/b", NULL, 0, &o, script_outcome, &got), CLAVE_OK);
    script_expect(&s, OP_CREATE2);
    script_answer(&s, CLAVE_ENONODE, NULL);
    assert_true(clave_async_client_output(s.c, &p) > 4);
    const uint8_t *frame = p;
    clave_async_client_sent(s.c, s.now, 4 + (size_t)(frame[2] << 8 | frame[3]));
    script_hang_up(&s);
    script_dial(&s);
    script_shake(&s, SCRIPT_SESSION, SCRIPT_TIMEOUT, false);
    script_expect(&s, OP_CREATE2);
    script_answer(&s, CLAVE_ENONODE, NULL);
    script_config(&s, true);
    script_expect(&s, OP_CREATE_CONTAINER);
    script_answer(&s, CLAVE_OK, &(struct wire_reply){.path = clave__jbytes("/a")});
    script_expect(&s, OP_CREATE2);
    script_answer(&s, CLAVE_OK, &(struct wire_reply){.path = clave__jbytes("/a/b")});
    assert_int_equal(got.times, 1);
    assert_int_equal(got.err, CLAVE_OK);
    script_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_freed_between_create_and_listing_leaves_nothing),
        cmocka_unit_test(a_client_freed_before_the_ancestors_leaves_nothing),
        cmocka_unit_test(a_log_whose_header_is_torn_is_empty),
        cmocka_unit_test(a_deposed_leader_that_re_attaches_prolongs_no_hold),
        cmocka_unit_test(a_holder_reads_nothing_at_another_member_before_a_write),
        cmocka_unit_test(a_deposed_leader_does_not_tell_that_a_create_was_not_done),
        cmocka_unit_test(an_ancestor_whose_answer_was_lost_is_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
