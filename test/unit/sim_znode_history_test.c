/* The checker of znodes (test/sim/znode_history.h): histories known to be linearizable and known
 * not to be, small ones held against a search of all orders, and zxids in order and out of it. */
#include "base/rand.h"
#include "lib/unit.h"
#include "sim/znode_history.h"

enum { MOST = 6, ANY = -1, NEVER = 1000, STEPS = 1000000 };

static struct znode_history history_of(const struct znode_call *calls, size_t n)
{
    struct znode_history h = {0};
    for (size_t i = 0; i < n; i++)
        (void)znode_history_add(&h, &calls[i]);
    return h;
}

static enum znode_verdict verdict(const struct znode_call *calls, size_t n, size_t *at)
{
    struct znode_history h = history_of(calls, n);
    enum znode_verdict v = znode_history_check(&h, 0, STEPS, at);
    znode_history_fini(&h);
    return v;
}

/* ---- told by hand ------------------------------------------------------------------------ */

#define CREATE(from, to, v)                                                                        \
    {                                                                                              \
        .op = ZNODE_CREATE, .called = from, .answered = to, .value = v, .expected = ANY            \
    }
#define SET(from, to, v, asked, shown)                                                             \
    {                                                                                              \
        .op = ZNODE_SET, .called = from, .answered = to, .value = v, .expected = asked,            \
        .version = shown                                                                           \
    }
#define GET(from, to, v, shown)                                                                    \
    {                                                                                              \
        .op = ZNODE_GET, .called = from, .answered = to, .value = v, .expected = ANY,              \
        .version = shown                                                                           \
    }
#define EXISTS(from, to, shown)                                                                    \
    {                                                                                              \
        .op = ZNODE_EXISTS, .called = from, .answered = to, .expected = ANY, .version = shown      \
    }
#define DELETE(from, to, asked)                                                                    \
    {                                                                                              \
        .op = ZNODE_DELETE, .called = from, .answered = to, .expected = asked                      \
    }
#define REFUSED(o, from, to, asked, why)                                                           \
    {                                                                                              \
        .op = ZNODE_##o, .answer = ZNODE_##why, .called = from, .answered = to, .expected = asked  \
    }
#define LOST(o, from, v, asked)                                                                    \
    {                                                                                              \
        .op = ZNODE_##o, .answer = ZNODE_UNKNOWN, .called = from, .answered = NEVER, .value = v,   \
        .expected = asked                                                                          \
    }

struct example {
    const char *what;
    enum znode_verdict verdict;
    size_t n;
    struct znode_call calls[MOST];
};

static const struct example good[] = {
    {"nothing", ZNODE_FINE, 0, {{0}}},
    {"one life",
     ZNODE_FINE,
     5,
     {CREATE(0, 1, 1), SET(2, 3, 2, 0, 1), GET(4, 5, 2, 1), DELETE(6, 7, 1),
      REFUSED(GET, 8, 9, ANY, NO_NODE)}},
    {"a read beside a write sees it or not",
     ZNODE_FINE,
     4,
     {CREATE(0, 1, 1), SET(2, 9, 2, ANY, 1), GET(3, 4, 1, 0), GET(5, 6, 2, 1)}},
    {"a lost write is seen late",
     ZNODE_FINE,
     4,
     {CREATE(0, 1, 1), LOST(SET, 2, 2, ANY), GET(3, 4, 1, 0), GET(50, 60, 2, 1)}},
    {"a lost write is never done",
     ZNODE_FINE,
     4,
     {CREATE(0, 1, 1), LOST(SET, 2, 2, ANY), GET(50, 60, 1, 0), SET(61, 62, 3, 0, 1)}},
    {"a lost write shows in the next version only",
     ZNODE_FINE,
     3,
     {CREATE(0, 1, 1), LOST(SET, 2, 2, ANY), SET(4, 5, 3, ANY, 2)}},
    {"a lost delete explains that it is gone",
     ZNODE_FINE,
     4,
     {CREATE(0, 1, 1), LOST(DELETE, 2, 0, 0), REFUSED(EXISTS, 4, 5, ANY, NO_NODE),
      CREATE(6, 7, 2)}},
    {"of two creates the first that was done wins",
     ZNODE_FINE,
     3,
     {REFUSED(CREATE, 0, 9, ANY, NODE_EXISTS), CREATE(1, 8, 2), EXISTS(2, 3, 0)}},
    {"of two that compare and set one is refused",
     ZNODE_FINE,
     4,
     {CREATE(0, 1, 1), REFUSED(SET, 2, 9, 0, BAD_VERSION), SET(3, 8, 3, 0, 1), GET(9, 10, 3, 1)}},
};

static const struct example bad[] = {
    {"a stale read", ZNODE_BROKEN, 3, {CREATE(0, 1, 1), SET(2, 3, 2, ANY, 1), GET(4, 5, 1, 0)}},
    {"two readers, and the later one reads what was before",
     ZNODE_BROKEN,
     4,
     {CREATE(0, 1, 1), SET(2, 9, 2, ANY, 1), GET(3, 4, 2, 1), GET(5, 6, 1, 0)}},
    {"a lost acknowledged write",
     ZNODE_BROKEN,
     3,
     {CREATE(0, 1, 1), SET(2, 3, 2, ANY, 1), SET(4, 5, 3, ANY, 1)}},
    {"a lost acknowledged create",
     ZNODE_BROKEN,
     2,
     {CREATE(0, 1, 1), REFUSED(GET, 2, 3, ANY, NO_NODE)}},
    {"a write that was done twice",
     ZNODE_BROKEN,
     3,
     {CREATE(0, 1, 1), SET(2, 3, 2, ANY, 1), GET(4, 5, 2, 2)}},
    {"a lost write that was done twice",
     ZNODE_BROKEN,
     5,
     {CREATE(0, 1, 1), LOST(SET, 2, 2, ANY), GET(4, 5, 2, 1), SET(6, 7, 3, ANY, 2),
      GET(8, 9, 2, 3)}},
    {"what was read and not durable is gone",
     ZNODE_BROKEN,
     4,
     {CREATE(0, 1, 1), LOST(SET, 2, 2, ANY), GET(4, 5, 2, 1), GET(6, 7, 1, 0)}},
    {"a deleted znode comes back",
     ZNODE_BROKEN,
     3,
     {CREATE(0, 1, 1), DELETE(2, 3, ANY), EXISTS(4, 5, 0)}},
    {"a version that nobody asked for is refused",
     ZNODE_BROKEN,
     2,
     {CREATE(0, 1, 1), REFUSED(SET, 2, 3, 0, BAD_VERSION)}},
    {"a wrong version is not refused",
     ZNODE_BROKEN,
     3,
     {CREATE(0, 1, 1), SET(2, 3, 2, ANY, 1), DELETE(4, 5, 0)}},
    {"two creates of one znode", ZNODE_BROKEN, 2, {CREATE(0, 9, 1), CREATE(1, 8, 2)}},
    {"a write is seen before it is asked for",
     ZNODE_BROKEN,
     3,
     {CREATE(0, 1, 1), GET(2, 3, 2, 1), LOST(SET, 4, 2, ANY)}},
};

static void expect(const struct example *e)
{
    size_t at;
    enum znode_verdict v = verdict(e->calls, e->n, &at);
    if (v != e->verdict)
        fail_msg("%s: %d, not %d", e->what, (int)v, (int)e->verdict);
}

TEST(linearizable_histories_are_accepted)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        expect(&good[i]);
}

TEST(other_histories_are_rejected)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect(&bad[i]);
}

TEST(the_call_that_nothing_explains_is_named)
{
    size_t at;
    assert_int_equal(verdict(bad[0].calls, bad[0].n, &at), ZNODE_BROKEN);
    assert_int_equal(at, 2);
}

/* ---- against a search of all orders --------------------------------------------------------- */

struct model {
    int32_t version; /* -1: there is none */
    int64_t value;
};

/* What a znode answers; written apart from the checker's. */
static struct znode_call model_do(struct model *m, struct znode_call c)
{
    bool fits = c.expected == ANY || c.expected == m->version;
    c.answer = ZNODE_DONE;
    if (c.op == ZNODE_CREATE && m->version >= 0)
        c.answer = ZNODE_NODE_EXISTS;
    else if (c.op != ZNODE_CREATE && m->version < 0)
        c.answer = ZNODE_NO_NODE;
    else if ((c.op == ZNODE_SET || c.op == ZNODE_DELETE) && !fits)
        c.answer = ZNODE_BAD_VERSION;
    if (c.answer != ZNODE_DONE)
        return c;
    if (c.op == ZNODE_CREATE || c.op == ZNODE_SET)
        *m = (struct model){m->version + 1, c.value};
    if (c.op == ZNODE_DELETE)
        *m = (struct model){-1, 0};
    c.version = c.op == ZNODE_DELETE ? 0 : m->version;
    c.value = c.op == ZNODE_GET ? m->value : c.value;
    return c;
}

static bool is_explained(struct model *m, const struct znode_call *c)
{
    struct znode_call does = model_do(m, *c);
    if (c->answer == ZNODE_UNKNOWN)
        return true;
    return does.answer == c->answer &&
           (c->answer != ZNODE_DONE || (does.version == c->version && does.value == c->value));
}

/* Each call left that may be next; an unknown one may be left out for ever. */
static bool search(const struct znode_call *calls, size_t n, unsigned done, struct model m)
{
    bool complete = true;
    int64_t answered = NEVER;
    for (size_t i = 0; i < n; i++) {
        bool left = !(done >> i & 1);
        complete = complete && (!left || calls[i].answer == ZNODE_UNKNOWN);
        answered = left && calls[i].answered < answered ? calls[i].answered : answered;
    }
    for (size_t i = 0; i < n && !complete; i++) {
        struct model next = m;
        if (!(done >> i & 1) && calls[i].called <= answered && is_explained(&next, &calls[i]) &&
            search(calls, n, done | 1u << i, next))
            return true;
    }
    return complete;
}

static struct znode_call draw_call(struct rand_state *rng, size_t i)
{
    static const enum znode_op ops[] = {ZNODE_CREATE, ZNODE_CREATE, ZNODE_SET,    ZNODE_SET,
                                        ZNODE_SET,    ZNODE_GET,    ZNODE_EXISTS, ZNODE_DELETE};
    struct znode_call c = {
        .op = ops[clave__rand_below(rng, 8)],
        .value = (int64_t)i + 1,
        .expected = clave__rand_below(rng, 2) ? ANY : (int32_t)clave__rand_below(rng, 3),
        .called = 3 * (int64_t)i - (int64_t)clave__rand_below(rng, 8),
    };
    c.answered = 3 * (int64_t)i + (int64_t)clave__rand_below(rng, 8);
    return c;
}

/* As a znode would have answered in the order of the calls; then some answers are lost or changed.
 */
static void draw_history(struct rand_state *rng, struct znode_call *calls, size_t n)
{
    struct model m = {-1, 0};
    for (size_t i = 0; i < n; i++) {
        calls[i] = model_do(&m, draw_call(rng, i));
        if (calls[i].op <= ZNODE_DELETE && clave__rand_below(rng, 4) == 0) {
            calls[i].answer = ZNODE_UNKNOWN;
            calls[i].answered = NEVER;
        }
    }
    struct znode_call *victim = &calls[clave__rand_below(rng, (uint32_t)n)];
    if (victim->answer == ZNODE_DONE && victim->op == ZNODE_GET)
        victim->value = 1 + (int64_t)clave__rand_below(rng, (uint32_t)n);
    else if (victim->answer == ZNODE_DONE && victim->op != ZNODE_DELETE)
        victim->version = (int32_t)clave__rand_below(rng, 3);
}

TEST(the_verdict_is_that_of_a_search_of_all_orders)
{
    struct rand_state rng;
    unsigned fine = 0, broken = 0;
    clave__rand_seed(&rng, 7);
    for (int round = 0; round < 20000; round++) {
        struct znode_call calls[MOST];
        size_t at, n = 2 + (size_t)clave__rand_below(&rng, MOST - 1);
        draw_history(&rng, calls, n);
        bool wanted = search(calls, n, 0, (struct model){-1, 0});
        assert_int_equal(verdict(calls, n, &at), wanted ? ZNODE_FINE : ZNODE_BROKEN);
        fine += wanted;
        broken += !wanted;
    }
    assert_true(fine > 4000);
    assert_true(broken > 2000);
}

/* Many lost writes, and in the end one answer that none of them explains. */
TEST(lost_writes_do_not_make_it_exponential)
{
    enum { LOST_WRITES = 8, ROUNDS = 3 };
    CLOSED_BY(znode_history_fini) struct znode_history h = {0};
    size_t at;
    znode_history_add(&h, &(struct znode_call)CREATE(0, 1, 1));
    for (int i = 0; i < LOST_WRITES; i++) {
        znode_history_add(&h, &(struct znode_call)LOST(SET, 2 + i, 100 + i, ANY));
        znode_history_add(&h, &(struct znode_call)LOST(DELETE, 2 + i, 0, ANY));
        znode_history_add(&h, &(struct znode_call)LOST(SET, 2 + i, 300 + i, i));
        znode_history_add(&h, &(struct znode_call)LOST(CREATE, 2 + i, 200 + i, ANY));
    }
    for (int i = 0; i < ROUNDS; i++)
        znode_history_add(&h,
                          &(struct znode_call)EXISTS(300 + 2 * i, 301 + 2 * i, LOST_WRITES - i));
    znode_history_add(&h, &(struct znode_call)GET(400, 401, 1, LOST_WRITES + 1));
    assert_int_equal(znode_history_check(&h, 0, STEPS, &at), ZNODE_BROKEN);
}

TEST(a_search_that_is_cut_short_says_so)
{
    size_t at;
    CLOSED_BY(znode_history_fini) struct znode_history h = history_of(good[0].calls, 0);
    for (size_t i = 0; i < good[1].n; i++)
        (void)znode_history_add(&h, &good[1].calls[i]);
    assert_int_equal(znode_history_check(&h, 0, 2, &at), ZNODE_UNDECIDED);
}

/* ---- zxids ------------------------------------------------------------------------------------
 */

struct order_example {
    const char *what;
    bool fine;
    size_t n;
    struct znode_call calls[4];
};

/* A znode, its call and answer, session, version, czxid and mzxid. A write's reply has its mzxid.
 */
#define SEEN(o, z, from, to, s, ver, c, m)                                                         \
    {                                                                                              \
        .znode = z, .op = ZNODE_##o, .called = from, .answered = to, .session = s, .version = ver, \
        .zxid = m, .czxid = c, .mzxid = m                                                          \
    }

static const struct order_example orders[] = {
    {"one life and the next",
     true,
     4,
     {SEEN(CREATE, 0, 0, 1, 1, 0, 5, 5), SEEN(SET, 0, 2, 3, 1, 1, 5, 6),
      SEEN(DELETE, 0, 4, 5, 1, 0, 0, 8), SEEN(CREATE, 0, 6, 7, 2, 0, 9, 9)}},
    {"calls that overlap, of two sessions",
     true,
     2,
     {SEEN(CREATE, 0, 0, 9, 1, 0, 6, 6), SEEN(CREATE, 1, 1, 8, 2, 0, 5, 5)}},
    {"calls that overlap, of one session",
     false,
     2,
     {SEEN(CREATE, 0, 0, 9, 1, 0, 6, 6), SEEN(CREATE, 1, 1, 8, 1, 0, 5, 5)}},
    {"a czxid that is older than one answered before",
     false,
     2,
     {SEEN(CREATE, 0, 0, 1, 1, 0, 6, 6), SEEN(CREATE, 1, 2, 3, 2, 0, 5, 5)}},
    {"a write that is older than what was read before",
     false,
     2,
     {SEEN(GET, 0, 0, 1, 1, 2, 3, 7), SEEN(CREATE, 1, 2, 3, 2, 0, 5, 5)}},
    {"one czxid for two znodes",
     false,
     2,
     {SEEN(CREATE, 0, 0, 9, 1, 0, 5, 5), SEEN(CREATE, 1, 1, 8, 2, 0, 5, 5)}},
    {"one czxid for two lives",
     false,
     2,
     {SEEN(CREATE, 0, 0, 9, 1, 0, 5, 5), SEEN(CREATE, 0, 1, 8, 2, 0, 5, 5)}},
    {"one transaction that left two versions",
     false,
     2,
     {SEEN(GET, 0, 0, 9, 1, 1, 5, 7), SEEN(GET, 0, 1, 8, 2, 2, 5, 7)}},
    {"a version that falls",
     false,
     2,
     {SEEN(GET, 0, 0, 9, 1, 2, 5, 7), SEEN(GET, 0, 1, 8, 2, 1, 5, 8)}},
    {"a version without a write", false, 1, {SEEN(GET, 0, 0, 9, 1, 2, 5, 5)}},
    {"a write that counted nothing", false, 1, {SEEN(SET, 0, 0, 9, 1, 0, 5, 6)}},
    {"a znode made while another of its name lives",
     false,
     2,
     {SEEN(GET, 0, 0, 9, 1, 2, 5, 9), SEEN(GET, 0, 1, 8, 2, 0, 7, 7)}},
    {"a session that does not see what it asked for before",
     false,
     2,
     {SEEN(SET, 0, 0, 9, 1, 2, 5, 8), SEEN(GET, 0, 1, 8, 1, 1, 5, 7)}},
};

TEST(zxids_in_order_and_out_of_it)
{
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        CLOSED_BY(znode_history_fini)
        struct znode_history h = history_of(orders[i].calls, orders[i].n);
        size_t at;
        const char *why = znode_order_check(&h, &at);
        if ((why == NULL) != orders[i].fine)
            fail_msg("%s: %s", orders[i].what, why ? why : "fine");
    }
}
