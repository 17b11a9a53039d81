/* client_seed_test.c - clients whose seeds are equal: protected names differ all the same, and a
 * search after a lost answer neither adopts nor deletes the node of another client. */
#include "lib/fake_server.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { SEED = 7, T = FAKE_TIMEOUT, OTHER_SESSION = 0x1234 };

static const clave_create_options protected_options = {
    .size = sizeof protected_options,
    .mode = CLAVE_EPHEMERAL_SEQUENTIAL,
    .flags = CLAVE_CREATE_PROTECTED,
};

TEST(a_seed_of_zero_is_refused)
{
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

TEST(the_log_names_the_option_that_is_refused)
{
    clave_async_client *c;
    char line[160] = "";
    clave_client_options o = {.size = sizeof o, .hosts = "a", .log = take_line, .log_arg = line};
    assert_int_equal(clave_async_client_new(&c, &o), CLAVE_EINVAL);
    assert_non_null(strstr(line, "seed"));
}

/* ---- names --------------------------------------------------------------------------- */

static void ask(struct fake_server *s, const char *path, struct outcome *out)
{
    *out = (struct outcome){0};
    assert_int_equal(clave_async_create(s->c, path, NULL, 0, &protected_options, outcome_cb, out),
                     CLAVE_OK);
}

static void take_name(struct fake_server *s, char out[128])
{
    struct jbytes p = fake_expect(s, OP_CREATE2)->body.create.path;
    snprintf(out, 128, "%.*s", (int)p.n, p.p);
}

static void connect_as(struct fake_server *s, int64_t session)
{
    fake_dial(s);
    fake_answer_handshake(s, session, T, false);
}

/* The server has given them sessions of their own, before the creates were asked for or after. */
TEST(equal_seeds_make_other_names_in_other_sessions)
{
    for (int early = 0; early <= 1; early++) {
        char names[2][128];
        for (int i = 0; i < 2; i++) {
            struct fake_server s;
            struct outcome got;
            fake_open(&s, &(clave_client_options){.seed = SEED, .hosts = "a/chroot"});
            if (early)
                ask(&s, "/l/x-", &got);
            connect_as(&s, FAKE_SESSION + i);
            if (!early) {
                fake_config(&s, true);
                ask(&s, "/l/x-", &got);
            }
            take_name(&s, names[i]);
            fake_close(&s);
            assert_string_equal(got.path + strlen(got.path) - 3, "-x-");
            assert_memory_equal(names[i], "/chroot/l/_c_", 13);
            assert_string_equal(names[i] + 7, got.path); /* the caller gets the same name */
            assert_int_equal(names[i][13 + 14], '8');    /* a UUID of version 8 */
            assert_non_null(strchr("89ab", names[i][13 + 19]));
        }
        assert_string_not_equal(names[0], names[1]);
    }
}

/* A session that is handed over to a process that draws the same numbers. */
TEST(equal_seeds_make_other_names_later_in_one_session)
{
    char names[2][128];
    for (int i = 0; i < 2; i++) {
        CLOSED_BY(fake_close) struct fake_server s;
        struct outcome got;
        fake_open(&s, &(clave_client_options){.seed = SEED});
        fake_connect(&s, true);
        s.now += i;
        fake_advance_to(&s, s.now);
        ask(&s, "/l/x-", &got);
        take_name(&s, names[i]);
    }
    assert_string_not_equal(names[0], names[1]);
}

/* ---- the search ---------------------------------------------------------------------- */

/* The create's answer is lost; up to the listing that is searched. */
static void lose_the_answer(struct fake_server *s, struct outcome *got, char path[128])
{
    fake_open(s, NULL);
    fake_connect(s, true);
    ask(s, "/l/x-", got);
    take_name(s, path);
    fake_hang_up(s);
    connect_as(s, FAKE_SESSION);
    fake_expect(s, OP_MULTI);
    fake_answer_checks(s, CLAVE_OK);
    fake_expect(s, OP_GET_CHILDREN2);
}

static void answer_with_numbers(struct fake_server *s, const char *path, size_t n)
{
    char text[3][160];
    const char *names[3];
    for (size_t i = 0; i < n; i++) {
        snprintf(text[i], sizeof text[i], "%s%010zu", path + 3, i + 1);
        names[i] = text[i];
    }
    struct wire_reply m = {.names = fake_names(names, n)};
    fake_answer(s, CLAVE_OK, &m);
    fake_config(s, true);
}

static void expect_look(struct fake_server *s, const char *path, size_t number, int64_t owner)
{
    char full[160];
    snprintf(full, sizeof full, "%s%010zu", path, number);
    struct jbytes asked = fake_expect(s, OP_EXISTS)->body.read.path;
    assert_int_equal(asked.n, strlen(full));
    assert_memory_equal(asked.p, full, (size_t)asked.n);
    struct wire_reply m = {.stat = {.czxid = 42, .ephemeral_owner = owner}};
    fake_answer(s, CLAVE_OK, &m);
}

/* It belongs to a session that this client never had, whatever its name is. */
TEST(a_node_of_another_clients_session_is_left_alone)
{
    static const int64_t owners[] = {OTHER_SESSION, 0};
    for (size_t i = 0; i < 2; i++) {
        CLOSED_BY(fake_close) struct fake_server s;
        struct outcome got;
        char path[128], again[128];
        lose_the_answer(&s, &got, path);
        answer_with_numbers(&s, path, 1);
        expect_look(&s, path, 1, owners[i]);
        take_name(&s, again); /* not a delete */
        assert_string_equal(again, path);
        assert_int_equal(got.times, 0);
    }
}

TEST(ours_is_found_beside_another_clients_node)
{
    CLOSED_BY(fake_close) struct fake_server s;
    struct outcome got;
    char path[128];
    lose_the_answer(&s, &got, path);
    answer_with_numbers(&s, path, 3);
    expect_look(&s, path, 1, OTHER_SESSION);
    expect_look(&s, path, 2, OTHER_SESSION + 1);
    expect_look(&s, path, 3, FAKE_SESSION);
    assert_int_equal(got.times, 1);
    assert_int_equal(got.err, CLAVE_OK);
    assert_string_equal(got.path + strlen(got.path) - 10, "0000000003");
    assert_true(fake_is_quiet(&s));
}

/* ---- two processes ------------------------------------------------------------------- */

enum { LOST_REPLIES = 10000 };

struct contest {
    struct memnet *p;
    struct mutex_owner owners[2];
    size_t replies_lost, sessions_lost;
};

static void lose_next_create(struct contest *k, size_t i)
{
    memnet_rule(k->p, (struct memnet_rule){i, MEMNET_REPLY, OP_CREATE2, MEMNET_LOSE, 0});
    k->replies_lost++;
}

static void only_one_holds(struct contest *k)
{
    assert_false(owner_holds(&k->owners[0]) && owner_holds(&k->owners[1]));
}

/* Both queue up, and the answer to either create is lost. The one behind has no session any more
 * in some rounds: its node goes, and it queues anew. */
static void play_round(struct contest *k, unsigned round)
{
    size_t first = round / 2 % 2, second = 1 - first;
    bool lapse = round % 16 == 15;
    struct mutex_owner *a = &k->owners[first], *b = &k->owners[second];
    memnet_reset_counts(k->p);
    lose_next_create(k, first);
    lose_next_create(k, second);
    assert_int_equal(owner_begin_acquire(a, OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(owner_begin_acquire(b, OWNER_FOREVER), CLAVE_OK);
    memnet_advance(k->p, 300);
    only_one_holds(k);
    if (lapse) {
        size_t loser = owner_holds(a) ? second : first;
        lose_next_create(k, loser);
        memnet_kill_session(k->p, loser);
        memnet_advance(k->p, 300);
        k->sessions_lost++;
        only_one_holds(k);
    }
    for (int i = 0; i < 2; i++) {
        struct mutex_owner *s = owner_holds(a) ? a : b;
        assert_true(owner_holds(s));
        owner_release(s);
        memnet_advance(k->p, 100);
        only_one_holds(k);
    }
    /* Each made its node once for each session: nobody else took it away. */
    assert_int_equal(k->p->clients[first].requests[OP_CREATE2] +
                         k->p->clients[second].requests[OP_CREATE2],
                     lapse ? 3 : 2);
    assert_int_equal(memnet_stats(k->p).ephemerals, 0);
    memnet_clear(k->p);
}

TEST(two_processes_with_equal_seeds_lose_10000_replies)
{
    struct contest k = {.p = memnet_new(&(struct memnet_options){.clients = 2, .seed = SEED})};
    assert_int_equal(memnet_create(k.p, 0, "/l"), CLAVE_OK);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(owner_open(&k.owners[i], k.p, i, "/l", NULL), CLAVE_OK);
    for (unsigned round = 0; k.replies_lost < LOST_REPLIES; round++)
        play_round(&k, round);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(k.owners[i].lost, 0);
        owner_close(&k.owners[i]);
    }
    assert_true(k.sessions_lost > 100);
    memnet_free(k.p);
}
