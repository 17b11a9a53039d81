/* The checker of histories (test/sim/history.h): good and bad ones, and the verdict of small ones
 * held against a search of all orders. */
#include "base/rand.h"
#include "lib/unit.h"
#include "sim/history.h"

enum { MOST = 5, CALLS = 10, TIMES = CALLS + 6 };

static enum history_fault verdict(const struct history_hold *holds, size_t n, unsigned capacity)
{
    struct history h = {0};
    size_t at;
    for (size_t i = 0; i < n; i++)
        (void)history_add(&h, &holds[i]);
    enum history_fault fault = history_check(&h, capacity, &at);
    history_fini(&h);
    return fault;
}

/* ---- told by hand ------------------------------------------------------------------------ */

struct example {
    const char *what;
    unsigned capacity;
    enum history_fault fault;
    size_t n;
    struct history_hold holds[4]; /* called, answered, ended, token, holder, weight */
};

static const struct example examples[] = {
    {"nobody", 1, HISTORY_FINE, 0, {{0}}},
    {"one behind the other", 1, HISTORY_FINE, 2, {{0, 1, 5, 1, 1, 1}, {2, 6, 9, 2, 2, 1}}},
    {"the next begins when the last ends",
     1,
     HISTORY_FINE,
     2,
     {{0, 1, 5, 1, 1, 1}, {2, 5, 9, 2, 2, 1}}},
    {"two at a time", 1, HISTORY_ROOM, 2, {{0, 1, 5, 1, 1, 1}, {2, 4, 9, 2, 2, 1}}},
    {"two leases of two", 2, HISTORY_FINE, 2, {{0, 1, 5, 1, 1, 1}, {2, 4, 9, 2, 2, 1}}},
    {"three leases of two",
     2,
     HISTORY_ROOM,
     3,
     {{0, 1, 5, 1, 1, 1}, {2, 4, 9, 2, 2, 1}, {2, 4, 9, 3, 3, 1}}},
    {"a token that falls", 1, HISTORY_TOKENS, 2, {{0, 1, 2, 7, 1, 1}, {3, 4, 5, 6, 2, 1}}},
    {"a smaller token, answered later, called before",
     2,
     HISTORY_FINE,
     2,
     {{0, 9, 12, 1, 1, 1}, {3, 4, 8, 2, 2, 1}}},
    {"so; but who was answered first held already",
     1,
     HISTORY_ROOM,
     2,
     {{0, 9, 12, 1, 1, 1}, {3, 4, 8, 2, 2, 1}}},
    {"a token that comes again for its holder",
     1,
     HISTORY_FINE,
     2,
     {{0, 1, 2, 7, 1, 1}, {3, 4, 5, 7, 1, 1}}},
    {"a token of two holders", 1, HISTORY_TOKENS, 2, {{0, 1, 2, 7, 1, 1}, {3, 4, 5, 7, 2, 1}}},
    {"readers beside each other",
     64,
     HISTORY_FINE,
     3,
     {{0, 1, 5, 1, 1, 1}, {0, 2, 6, 2, 2, 1}, {1, 6, 8, 3, 3, 64}}},
    {"a reader beside a writer", 64, HISTORY_ROOM, 2, {{0, 1, 5, 1, 1, 1}, {1, 4, 8, 3, 3, 64}}},
    {"a hold that was over when it was answered",
     1,
     HISTORY_FINE,
     2,
     {{0, 5, 5, 1, 1, 1}, {2, 5, 9, 2, 2, 1}}},
};

TEST(good_and_bad_histories_are_told_apart)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const struct example *e = &examples[i];
        enum history_fault fault = verdict(e->holds, e->n, e->capacity);
        if (fault != e->fault)
            fail_msg("%s: %d, not %d", e->what, (int)fault, (int)e->fault);
    }
}

/* ---- against a search --------------------------------------------------------------------- */

/* Is there a moment of effect for each hold, of the whole times, that explains all? The tokens
 * are 0..n-1; holds of one moment take effect in the order of their tokens, after the ends. */
static bool fits(const struct history_hold *holds, size_t n, const int64_t *at, unsigned capacity)
{
    for (size_t i = 1; i < n; i++)
        if (at[i] < at[i - 1])
            return false;
    for (int64_t t = 0; t < TIMES; t++) {
        unsigned held = 0;
        for (size_t i = 0; i < n; i++)
            held += at[i] <= t && t < holds[i].ended ? holds[i].weight : 0;
        if (held > capacity)
            return false;
    }
    return true;
}

static bool search(const struct history_hold *holds, size_t n, size_t i, int64_t *at,
                   unsigned capacity)
{
    if (i == n)
        return fits(holds, n, at, capacity);
    for (at[i] = holds[i].called; at[i] <= holds[i].answered; at[i]++)
        if (search(holds, n, i + 1, at, capacity))
            return true;
    return false;
}

static struct history_hold draw(struct rand_state *rng, size_t token, unsigned capacity)
{
    int64_t called = (int64_t)clave__rand_below(rng, CALLS);
    int64_t answered = called + (int64_t)clave__rand_below(rng, 4);
    return (struct history_hold){
        .called = called,
        .answered = answered,
        .ended = answered + (int64_t)clave__rand_below(rng, 4),
        .token = (int64_t)token,
        .holder = (int64_t)token,
        .weight = 1 + (unsigned)clave__rand_below(rng, capacity),
    };
}

TEST(the_verdict_is_that_of_a_search_of_all_orders)
{
    struct rand_state rng;
    unsigned good = 0, bad = 0;
    clave__rand_seed(&rng, 7);
    for (int round = 0; round < 20000; round++) {
        struct history_hold holds[MOST];
        int64_t at[MOST];
        size_t n = 2 + (size_t)clave__rand_below(&rng, MOST - 1);
        unsigned capacity = 1 + (unsigned)clave__rand_below(&rng, 3);
        for (size_t i = 0; i < n; i++)
            holds[i] = draw(&rng, i, capacity);
        bool fine = search(holds, n, 0, at, capacity);
        assert_int_equal(verdict(holds, n, capacity) == HISTORY_FINE, fine);
        good += fine;
        bad += !fine;
    }
    assert_true(good > 1000 && bad > 1000);
}
