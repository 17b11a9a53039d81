/* server_listing_test.c - long answers to four-letter words and admin commands: no turn does more
 * than a piece of one of them, and what stays while one is made is in it once. */
#include "base/rand.h"
#include "lib/memserver.h"
#include "lib/unit.h"
#include "server/monitoring/listing.h"

enum { CONNS = 30, PATHS = 1500, OWNED = 1200, LONGEST_LINE = 200 };

struct town {
    struct memserver d;
    struct memserver_conn conns[CONNS]; /* the first half stays */
    struct rand_state rand;
};

static void watch_many(struct memserver_conn *c, int from, int to)
{
    char path[64];
    for (int i = from; i < to; i++) {
        snprintf(path, sizeof path, "/stays/%04d.", i);
        memserver_watch(c, OP_EXISTS, path);
    }
}

static void town_open(struct town *t, uint64_t seed)
{
    static const struct server_options o = {.words = "*"};
    char path[64];
    clave__rand_seed(&t->rand, seed);
    memserver_open(&t->d, &o);
    for (int i = 0; i < CONNS; i++) {
        memserver_connect(&t->conns[i], &t->d, 40000);
        memserver_watch(&t->conns[i], OP_EXISTS, "/all");
    }
    watch_many(&t->conns[0], 0, PATHS);
    watch_many(&t->conns[1], 0, PATHS / 2);
    for (int i = 0; i < OWNED; i++) {
        snprintf(path, sizeof path, "/owned-%04d.", i);
        assert_int_equal(memserver_create(&t->conns[2], path, "", MODE_EPHEMERAL), CLAVE_OK);
    }
}

static void town_close(struct town *t)
{
    for (int i = 0; i < CONNS; i++)
        memserver_hang_up(&t->conns[i]);
    memserver_close(&t->d);
}

/* Something that does not stay comes or goes. */
static void town_change(struct town *t)
{
    int who = CONNS / 2 + (int)clave__rand_below(&t->rand, CONNS / 2);
    struct memserver_conn *c = &t->conns[who];
    char path[64];
    if (!c->c) {
        memserver_connect(c, &t->d, 4000);
        return;
    }
    snprintf(path, sizeof path, "//comes-%d", (int)clave__rand_below(&t->rand, 300));
    switch (clave__rand_below(&t->rand, 6)) {
    case 0:
        memserver_hang_up(c);
        break;
    case 1:
        memserver_create(c, path + 1, "", MODE_EPHEMERAL);
        break;
    case 2:
        memserver_call(c, OP_CLOSE_SESSION, NULL, NULL);
        memserver_hang_up(c);
        break;
    default:
        memserver_watch(c, OP_EXISTS, path); /* of another path: no event comes */
    }
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

/* Each of the numbered texts is there so many times. */
static void expect_each(const char *text, const char *fmt, int n, size_t times)
{
    char what[64];
    for (int i = 0; i < n; i++) {
        snprintf(what, sizeof what, fmt, i);
        if (count(text, what) != times)
            fail_msg("%s: %zu times", what, count(text, what));
    }
}

static const char *text_of(struct buf *b)
{
    assert_int_equal(clave__buf_append(b, "", 1), CLAVE_OK);
    b->tail--;
    return (const char *)clave__buf_bytes(b);
}

/* Asks, and changes things between the pieces. */
static const char *ask_slowly(struct town *t, struct memserver_conn *asker, const char *word)
{
    memserver_dial(asker, &t->d);
    memserver_send(asker, word, 4);
    size_t pieces = 0;
    for (; asker->c; pieces++) {
        assert_true(pieces < 1000);
        for (int i = 0; i < 20; i++)
            town_change(t);
        clave__server_tick(t->d.s, ++t->d.now, memserver_wall(&t->d));
        memserver_settle(&t->d);
    }
    assert_true(pieces > 0); /* after the first one */
    return text_of(&asker->in);
}

TEST(words_list_what_stays)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        CLOSED_BY(town_close) struct town t;
        struct memserver_conn c;
        char what[64];
        town_open(&t, seed);
        const char *text = ask_slowly(&t, &c, "wchp");
        expect_each(text, "/stays/%04d.\n", PATHS, 1);
        snprintf(what, sizeof what, "\n\t0x%llx\n", (unsigned long long)t.conns[0].session);
        assert_int_equal(count(text, "/all\n"), 1);
        assert_int_equal(count(text, what), PATHS + 1);
        memserver_hang_up(&c);
        text = ask_slowly(&t, &c, "wchc");
        expect_each(text, "\t/stays/%04d.\n", PATHS / 2, 2);
        assert_int_equal(count(text, "/stays/"), PATHS + PATHS / 2);
        memserver_hang_up(&c);
        text = ask_slowly(&t, &c, "dump");
        expect_each(text, "\t/owned-%04d.\n", OWNED, 1);
        for (int i = 0; i < CONNS / 2; i++) {
            snprintf(what, sizeof what, ":\n\t0x%llx\n", (unsigned long long)t.conns[i].session);
            assert_int_equal(count(text, what), 1);
        }
        memserver_hang_up(&c);
    }
}

/* Objects are closed, and nothing but what stays is certain. */
TEST(commands_list_what_stays)
{
    static const struct {
        const char *name, *fmt;
        int n;
    } cases[] = {{"wchp", "\"/stays/%04d.\": [", PATHS},
                 {"dump", "\"/owned-%04d.\"", OWNED},
                 {"wchs", "num_total_watches%.0d", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(town_close) struct town t;
        struct listing l;
        CLOSED_BY(clave__buf_fini) struct buf b;
        size_t pieces = 0;
        town_open(&t, i);
        clave__buf_init(&b, &t.d.mem, SIZE_MAX / 4);
        assert_int_equal(clave__admin_begin(&l, t.d.s, cases[i].name), CLAVE_OK);
        for (; !clave__listing_is_over(&l); pieces++) {
            size_t before = clave__buf_len(&b);
            assert_int_equal(clave__listing_step(&l, &b), CLAVE_OK);
            assert_true(clave__buf_len(&b) - before < LISTING_BYTES + LONGEST_LINE);
            for (int k = 0; k < 20; k++)
                town_change(&t);
        }
        clave__listing_end(&l);
        assert_true(pieces > 1);
        const char *text = text_of(&b);
        expect_each(text, cases[i].fmt, cases[i].n, 1);
        assert_int_equal(count(text, "{"), count(text, "}"));
        assert_int_equal(count(text, "["), count(text, "]"));
        assert_int_equal(count(text, ", ,") + count(text, "[,") + count(text, "{,"), 0);
    }
}

/* Ten ask at once: beyond its first piece, none gets more than its turn. Who takes nothing costs
 * nothing. */
TEST(one_piece_a_turn)
{
    CLOSED_BY(town_close) struct town t;
    struct memserver_conn askers[10];
    town_open(&t, 1);
    for (size_t i = 0; i < 10; i++) {
        memserver_dial(&askers[i], &t.d);
        askers[i].deaf = i == 9;
        memserver_send(&askers[i], "wchp", 4);
    }
    size_t last[10];
    for (bool any = true; any;) {
        for (size_t i = 0; i < 10; i++)
            last[i] = count(text_of(&askers[i].in), "\n");
        clave__server_tick(t.d.s, ++t.d.now, memserver_wall(&t.d));
        memserver_settle(&t.d);
        size_t grown = 0, lines = 0;
        for (size_t i = 0; i < 10; i++) {
            size_t now = count(text_of(&askers[i].in), "\n");
            grown += now > last[i];
            lines += now - last[i];
        }
        assert_true(grown <= 1);
        assert_true(lines <= 2 * LISTING_LOOKS);
        any = false;
        for (size_t i = 0; i < 9; i++)
            any = any || askers[i].c;
    }
    assert_int_equal(clave__buf_len(&askers[9].in), 0);
    assert_true(memserver_stats(&t.d).undelivered < 3 * LISTING_BYTES);
    assert_true(clave__server_deadline(t.d.s) > t.d.now + 1);
    memserver_take_output(&askers[9]);
    memserver_advance(&t.d, 100);
    assert_null(askers[9].c);
    for (size_t i = 0; i < 10; i++) {
        expect_each(text_of(&askers[i].in), "/stays/%04d.\n", PATHS, 1);
        memserver_hang_up(&askers[i]);
    }
}

/* The asker, or all others, go in the middle of an answer. */
TEST(the_end_in_the_middle)
{
    static const char *const words[] = {"wchp", "wchc", "dump"};
    for (size_t i = 0; i < 6; i++) {
        struct town t;
        struct memserver_conn c;
        town_open(&t, i);
        memserver_dial(&c, &t.d);
        memserver_send(&c, words[i % 3], 4);
        assert_non_null(c.c);
        if (i < 3)
            memserver_hang_up(&c);
        for (int k = 0; k < CONNS; k++) {
            memserver_call(&t.conns[k], OP_CLOSE_SESSION, NULL, NULL);
            memserver_hang_up(&t.conns[k]);
        }
        memserver_advance(&t.d, 100);
        if (i >= 3) {
            assert_null(c.c);
            memserver_hang_up(&c);
        }
        memserver_close(&t.d);
    }
}

/* Each open list makes every removal look at its place: those that nobody reads are ended, and a
 * client that reads gets the whole of its own. */
TEST(lists_that_nobody_reads)
{
    enum { DEAF = 200, MOST = 64 };
    static struct memserver_conn deaf[DEAF];
    struct memserver_conn c;
    CLOSED_BY(town_close) struct town t;
    int open = 0;
    town_open(&t, 1);
    for (int i = 0; i < DEAF; i++) {
        memserver_dial(&deaf[i], &t.d);
        deaf[i].deaf = true;
        memserver_send(&deaf[i], "wchp", 4);
    }
    expect_each(ask_slowly(&t, &c, "wchp"), "/stays/%04d.\n", PATHS, 1);
    memserver_hang_up(&c);
    for (int i = 0; i < DEAF; i++)
        open += deaf[i].c != NULL;
    assert_int_equal(open, MOST - 1); /* but the one that reads */
    assert_non_null(strstr(t.d.lines, "it does not read its list, and 64 lists"));
    for (int i = 0; i < DEAF; i++)
        memserver_hang_up(&deaf[i]);
}
