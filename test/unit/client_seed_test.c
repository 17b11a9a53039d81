/* client_seed_test.c - clients whose seeds are equal: protected names differ all the same, and a
 * search after a lost answer neither adopts nor deletes the node of another client. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/fake_server.h"
#include "lib/mutex_owner.h"

enum { SEED = 7, T = SCRIPT_TIMEOUT, OTHER_SESSION = 0x1234 };

static const clave_create_options protected_options = {
    .size = sizeof protected_options,
    .mode = CLAVE_EPHEMERAL_SEQUENTIAL,
    .flags = CLAVE_CREATE_PROTECTED,
};

static void a_seed_of_zero_is_refused(void **state)
{
    (void)state;
    clave_async_client *c;
    clave_client_options o = {.size = sizeof o, .hosts = "a"};
    assert_int_equal(clave_async_client_new(&c, &o), CLAVE_EINVAL);
    assert_null(c);
    assert_non_null(strstr(clave_async_client_options_fault(&o), "seed"));
    o.seed = 1;
    assert_null(clave_async_client_options_fault(&o));
    assert_int_equal(clave_async_client_new(&c, &o), CLAVE_OK);
    clave_async_client_free(c);
}

static void take_line(void *arg, int level, const char *msg)
{
    if (level == CLAVE_LOG_ERROR)
        snprintf(arg, 160, "%s", msg);
}

static void the_log_names_the_option_that_is_refused(void **state)
{
    (void)state;
    clave_async_client *c;
    char line[160] = "";
    clave_client_options o = {.size = sizeof o, .hosts = "a", .log = take_line, .log_arg = line};
    assert_int_equal(clave_async_client_new(&c, &o), CLAVE_EINVAL);
    assert_non_null(strstr(line, "seed"));
}

/* ---- names --------------------------------------------------------------------------- */

static void ask(struct script *s, const char *path, struct outcome *out)
{
    *out = (struct outcome){0};
    assert_int_equal(
        clave_async_create(s->c, path, NULL, 0, &protected_options, script_outcome, out), CLAVE_OK);
}

static void take_name(struct script *s, char out[128])
{
    struct jbytes p = script_expect(s, OP_CREATE2)->body.create.path;
    snprintf(out, 128, "%.*s", (int)p.n, p.p);
}

static void connect_as(struct script *s, int64_t session)
{
    script_dial(s);
    script_shake(s, session, T, false);
}

/* The server has given them sessions of their own, before the creates were asked for or after. */
static void equal_seeds_make_other_names_in_other_sessions(void **state)
{
    (void)state;
    for (int early = 0; early <= 1; early++) {
        char names[2][128];
        for (int i = 0; i < 2; i++) {
            struct script s;
            struct outcome got;
            script_open(&s, &(clave_client_options){.seed = SEED, .hosts = "a/chroot"});
            if (early)
                ask(&s, "/l/x-", &got);
            connect_as(&s, SCRIPT_SESSION + i);
            if (!early) {
                script_config(&s, true);
                ask(&s, "/l/x-", &got);
            }
            take_name(&s, names[i]);
            script_close(&s);
            assert_string_equal(got.path + strlen(got.path) - 3, "-x-");
            assert_memory_equal(names[i], "/chroot/l/_c_", 13);
            assert_string_equal(names[i] + 7, got.path); /* the caller gets the same name */
            assert_int_equal(names[i][13 + 14], '4');    /* a UUID of version 4, as before */
            assert_non_null(strchr("89ab", names[i][13 + 19]));
        }
        assert_string_not_equal(names[0], names[1]);
    }
}

/* A session that is handed over to a process that draws the same numbers. */
static void equal_seeds_make_other_names_later_in_one_session(void **state)
{
    (void)state;
    char names[2][128];
    for (int i = 0; i < 2; i++) {
        struct script s;
        struct outcome got;
        script_open(&s, &(clave_client_options){.seed = SEED});
        script_connect(&s, true);
        s.now += i;
        script_at(&s, s.now);
        ask(&s, "/l/x-", &got);
        take_name(&s, names[i]);
        script_close(&s);
    }
    assert_string_not_equal(names[0], names[1]);
}

/* ---- the search ---------------------------------------------------------------------- */

/* The create's answer is lost; up to the listing that is searched. */
static void lose_the_answer(struct script *s, struct outcome *got, char path[128])
{
    script_open(s, NULL);
    script_connect(s, true);
    ask(s, "/l/x-", got);
    take_name(s, path);
    script_hang_up(s);
    connect_as(s, SCRIPT_SESSION);
    script_expect(s, OP_MULTI);
    script_answer_checks(s, CLAVE_OK);
    script_expect(s, OP_GET_CHILDREN2);
}

static void answer_with_numbers(struct script *s, const char *path, size_t n)
{
    char text[3][160];
    const char *names[3];
    for (size_t i = 0; i < n; i++) {
        snprintf(text[i], sizeof text[i], "%s%010zu", path + 3, i + 1);
        names[i] = text[i];
    }
    struct wire_reply m = {.names = script_names(names, n)};
    script_answer(s, CLAVE_OK, &m);
    script_config(s, true);
}

static void expect_look(struct script *s, const char *path, size_t number, int64_t owner)
{
    char full[160];
    snprintf(full, sizeof full, "%s%010zu", path, number);
    struct jbytes asked = script_expect(s, OP_EXISTS)->body.read.path;
    assert_int_equal(asked.n, strlen(full));
    assert_memory_equal(asked.p, full, (size_t)asked.n);
    struct wire_reply m = {.stat = {.czxid = 42, .ephemeral_owner = owner}};
    script_answer(s, CLAVE_OK, &m);
}

/* It belongs to a session that this client never had, whatever its name is. */
static void a_node_of_another_clients_session_is_left_alone(void **state)
{
    (void)state;
    static const int64_t owners[] = {OTHER_SESSION, 0};
    for (size_t i = 0; i < 2; i++) {
        struct script s;
        struct outcome got;
        char path[128], again[128];
        lose_the_answer(&s, &got, path);
        answer_with_numbers(&s, path, 1);
        expect_look(&s, path, 1, owners[i]);
        take_name(&s, again); /* not a delete */
        assert_string_equal(again, path);
        assert_int_equal(got.times, 0);
        script_close(&s);
    }
}

static void ours_is_found_beside_another_clients_node(void **state)
{
    (void)state;
    struct script s;
    struct outcome got;
    char path[128];
    lose_the_answer(&s, &got, path);
    answer_with_numbers(&s, path, 3);
    expect_look(&s, path, 1, OTHER_SESSION);
    expect_look(&s, path, 2, OTHER_SESSION + 1);
    expect_look(&s, path, 3, SCRIPT_SESSION);
    assert_int_equal(got.times, 1);
    assert_int_equal(got.err, CLAVE_OK);
    assert_string_equal(got.path + strlen(got.path) - 10, "0000000003");
    assert_true(script_is_quiet(&s));
    script_close(&s);
}

/* ---- two processes ------------------------------------------------------------------- */

enum { LOST_REPLIES = 10000 };

struct contest {
    struct pair *p;
    struct seat seats[2];
    size_t replies_lost, sessions_lost;
};

static void lose_next_create(struct contest *k, size_t i)
{
    pair_rule(k->p, (struct pair_rule){i, PAIR_REPLY, OP_CREATE2, PAIR_LOSE, 0});
    k->replies_lost++;
}

static void only_one_holds(struct contest *k)
{
    assert_false(seat_holds(&k->seats[0]) && seat_holds(&k->seats[1]));
}

/* Both queue up, and the answer to either create is lost. The one behind has no session any more
 * in some rounds: its node goes, and it queues anew. */
static void play_round(struct contest *k, unsigned round)
{
    size_t first = round / 2 % 2, second = 1 - first;
    bool lapse = round % 16 == 15;
    struct seat *a = &k->seats[first], *b = &k->seats[second];
    pair_reset_counts(k->p);
    lose_next_create(k, first);
    lose_next_create(k, second);
    assert_int_equal(seat_ask(a, SEAT_EVER), CLAVE_OK);
    assert_int_equal(seat_ask(b, SEAT_EVER), CLAVE_OK);
    pair_advance(k->p, 300);
    only_one_holds(k);
    if (lapse) {
        size_t loser = seat_holds(a) ? second : first;
        lose_next_create(k, loser);
        pair_kill_session(k->p, loser);
        pair_advance(k->p, 300);
        k->sessions_lost++;
        only_one_holds(k);
    }
    for (int i = 0; i < 2; i++) {
        struct seat *s = seat_holds(a) ? a : b;
        assert_true(seat_holds(s));
        seat_release(s);
        pair_advance(k->p, 100);
        only_one_holds(k);
    }
    /* Each made its node once for each session: nobody else took it away. */
    assert_int_equal(k->p->end[first].requests[OP_CREATE2] + k->p->end[second].requests[OP_CREATE2],
                     lapse ? 3 : 2);
    assert_int_equal(pair_stats(k->p).ephemerals, 0);
    pair_clear(k->p);
}

static void two_processes_with_equal_seeds_lose_10000_replies(void **state)
{
    (void)state;
    struct contest k = {.p = pair_new(&(struct pair_options){.clients = 2, .seed = SEED})};
    assert_int_equal(seat_make(k.p, 0, "/l"), CLAVE_OK);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(seat_open(&k.seats[i], k.p, i, "/l", NULL), CLAVE_OK);
    for (unsigned round = 0; k.replies_lost < LOST_REPLIES; round++)
        play_round(&k, round);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(k.seats[i].lost, 0);
        seat_close(&k.seats[i]);
    }
    assert_true(k.sessions_lost > 100);
    pair_free(k.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_of_zero_is_refused),
        cmocka_unit_test(the_log_names_the_option_that_is_refused),
        cmocka_unit_test(equal_seeds_make_other_names_in_other_sessions),
        cmocka_unit_test(equal_seeds_make_other_names_later_in_one_session),
        cmocka_unit_test(a_node_of_another_clients_session_is_left_alone),
        cmocka_unit_test(ours_is_found_beside_another_clients_node),
        cmocka_unit_test(two_processes_with_equal_seeds_lose_10000_replies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
