/* The heap of deadlines against a plain array, and the retry policies. */
#include "base/rand.h"
#include "clave/async/client.h"
#include "client/client_internal.h"
#include "client/timer.h"
#include "lib/fake_server.h"
#include "lib/unit.h"

enum { N = 300 };

TEST(equal_deadlines_fire_in_the_order_they_were_set)
{
    struct timers ts = {0};
    struct timer t[N];
    for (int i = 0; i < N; i++) {
        clave__timer_init(&t[i], NULL);
        clave__timers_set(&ts, &t[i], 5);
    }
    clave__timers_set(&ts, &t[0], 5); /* set anew: now the last */
    assert_null(clave__timers_pop(&ts, 4));
    for (int i = 1; i < N; i++)
        assert_ptr_equal(clave__timers_pop(&ts, 5), &t[i]);
    assert_ptr_equal(clave__timers_pop(&ts, 5), &t[0]);
    assert_null(clave__timers_pop(&ts, INT64_MAX));
    assert_int_equal(clave__timers_next(&ts), INT64_MAX);
}

static const struct timer *earliest(const struct timer *t)
{
    const struct timer *best = NULL;
    for (int i = 0; i < N; i++)
        if (t[i].armed &&
            (!best || t[i].at < best->at || (t[i].at == best->at && t[i].seq < best->seq)))
            best = &t[i];
    return best;
}

TEST(any_order_of_calls_agrees_with_an_array)
{
    struct timers ts = {0};
    struct timer t[N];
    struct rand_state r;
    clave__rand_seed(&r, 3);
    for (int i = 0; i < N; i++)
        clave__timer_init(&t[i], NULL);
    for (int step = 0; step < 100000; step++) {
        struct timer *one = &t[clave__rand_below(&r, N)];
        const struct timer *best = earliest(t);
        switch (clave__rand_below(&r, 4)) {
        case 0:
            clave__timers_clear(&ts, one);
            assert_false(one->armed);
            break;
        case 1:
            assert_ptr_equal(clave__timers_pop(&ts, INT64_MAX - 1), best);
            break;
        default:
            clave__timers_set(&ts, one, (int64_t)clave__rand_below(&r, 1000));
        }
        best = earliest(t);
        assert_int_equal(clave__timers_next(&ts), best ? best->at : INT64_MAX);
    }
}

TEST(policies_of_curator)
{
    static const struct {
        clave_retry r;
        int32_t n;
        int64_t elapsed;
        uint64_t random;
        int64_t delay;
    } cases[] = {
        {{.kind = CLAVE_RETRY_NEVER}, 0, 0, 0, -1},
        {{.kind = CLAVE_RETRY_DEFAULT}, 0, 0, 0, -1},
        {{.kind = CLAVE_RETRY_N_TIMES, .base_ms = 7, .times = 2}, 0, 0, 0, 7},
        {{.kind = CLAVE_RETRY_N_TIMES, .base_ms = 7, .times = 2}, 1, 0, 0, 7},
        {{.kind = CLAVE_RETRY_N_TIMES, .base_ms = 7, .times = 2}, 2, 0, 0, -1},
        {{.kind = CLAVE_RETRY_FOREVER, .base_ms = 9}, 1000000, INT64_MAX, 5, 9},
        /* base * random in [1, 2^(n+1)) */
        {{.kind = CLAVE_RETRY_EXPONENTIAL, .base_ms = 10}, 0, 0, 0, 10},
        {{.kind = CLAVE_RETRY_EXPONENTIAL, .base_ms = 10}, 0, 0, UINT64_MAX, 10},
        {{.kind = CLAVE_RETRY_EXPONENTIAL, .base_ms = 10}, 1, 0, 2, 30},
        {{.kind = CLAVE_RETRY_EXPONENTIAL, .base_ms = 10}, 1, 0, 3, 10},
        {{.kind = CLAVE_RETRY_EXPONENTIAL, .base_ms = 10, .max_ms = 25}, 4, 0, 30, 25},
        {{.kind = CLAVE_RETRY_EXPONENTIAL, .base_ms = 10, .times = 3}, 3, 0, 0, -1},
        {{.kind = CLAVE_RETRY_UNTIL, .base_ms = 4, .elapsed_ms = 100}, 50, 99, 0, 4},
        {{.kind = CLAVE_RETRY_UNTIL, .base_ms = 4, .elapsed_ms = 100}, 50, 100, 0, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(
            clave_retry_delay(&cases[i].r, cases[i].n, cases[i].elapsed, cases[i].random),
            cases[i].delay);
}

TEST(an_exponential_delay_stays_in_its_bounds)
{
    clave_retry r = {.kind = CLAVE_RETRY_EXPONENTIAL, .base_ms = INT32_MAX, .max_ms = 60000};
    struct rand_state rand;
    clave__rand_seed(&rand, 9);
    for (int32_t n = 0; n < 1000; n++) {
        int64_t delay = clave_retry_delay(&r, n, 0, clave__rand_u64(&rand));
        assert_true(delay > 0 && delay <= 60000);
        delay = clave_retry_delay(&(clave_retry){.kind = r.kind, .base_ms = 1}, n, 0,
                                  clave__rand_u64(&rand));
        assert_true(delay >= 1 && delay < (INT64_C(1) << (n + 1 < 29 ? n + 1 : 29)));
    }
    assert_true(clave_retry_delay(&r, INT32_MAX - 1, 0, 1) > 0);
}

/* A negative pause would end the client at the first failure, and none at all would never let it
 * rest. */
TEST(policies_out_of_range_are_refused)
{
    static const struct {
        clave_retry r;
        bool good;
        const char *fault; /* a word of it */
    } cases[] = {
        {{0}, true, NULL},
        {{.kind = CLAVE_RETRY_NEVER}, true, NULL},
        {{.kind = CLAVE_RETRY_N_TIMES}, true, NULL},
        {{.kind = CLAVE_RETRY_N_TIMES, .base_ms = INT32_MAX, .times = INT32_MAX}, true, NULL},
        {{.kind = CLAVE_RETRY_FOREVER, .base_ms = 1}, true, NULL},
        {{.kind = CLAVE_RETRY_EXPONENTIAL, .base_ms = 50}, true, NULL},
        {{.kind = CLAVE_RETRY_EXPONENTIAL, .base_ms = 50, .max_ms = 10, .times = 1}, true, NULL},
        {{.kind = CLAVE_RETRY_UNTIL, .base_ms = 1, .elapsed_ms = 1}, true, NULL},
        {{.kind = CLAVE_RETRY_UNTIL, .base_ms = 1, .elapsed_ms = INT64_MAX}, true, NULL},
        {{.kind = (clave_retry_kind)(CLAVE_RETRY_UNTIL + 1)},
         false,
         ".kind is not a clave_retry_kind"},
        {{.kind = (clave_retry_kind)-1}, false, ".kind is not a clave_retry_kind"},
        {{.base_ms = 100}, false, ".kind is not set"},
        {{.times = 3}, false, ".kind is not set"},
        {{.max_ms = 3}, false, ".kind is not set"},
        {{.elapsed_ms = 3}, false, ".kind is not set"},
        {{.base_ms = -1}, false, "negative"},
        {{.kind = CLAVE_RETRY_NEVER, .times = -1}, false, "negative"},
        {{.kind = CLAVE_RETRY_N_TIMES, .base_ms = -1, .times = 3}, false, "negative"},
        {{.kind = CLAVE_RETRY_N_TIMES, .base_ms = 1, .times = -1}, false, "negative"},
        {{.kind = CLAVE_RETRY_FOREVER, .base_ms = -1}, false, "negative"},
        {{.kind = CLAVE_RETRY_FOREVER, .base_ms = INT32_MIN}, false, "negative"},
        {{.kind = CLAVE_RETRY_FOREVER}, false, ".base_ms is 0"},
        {{.kind = CLAVE_RETRY_EXPONENTIAL}, false, ".base_ms is 0"},
        {{.kind = CLAVE_RETRY_EXPONENTIAL, .base_ms = 1, .max_ms = -1}, false, "negative"},
        {{.kind = CLAVE_RETRY_EXPONENTIAL, .base_ms = 1, .times = -1}, false, "negative"},
        {{.kind = CLAVE_RETRY_UNTIL, .elapsed_ms = 9}, false, ".base_ms is 0"},
        {{.kind = CLAVE_RETRY_UNTIL, .base_ms = 1}, false, ".elapsed_ms is 0"},
        {{.kind = CLAVE_RETRY_UNTIL, .base_ms = 1, .elapsed_ms = -1}, false, "negative"},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        clave_client_options o = {.size = sizeof o, .hosts = "h", .seed = 7};
        clave_async_client *c;
        *(i % 2 ? &o.reads : &o.reconnect) = cases[i / 2].r;
        assert_int_equal(clave_async_client_new(&c, &o),
                         cases[i / 2].good ? CLAVE_OK : CLAVE_EINVAL);
        const char *fault = clave_async_client_options_fault(&o);
        assert_int_equal(cases[i / 2].good, fault == NULL);
        if (fault) {
            assert_non_null(strstr(fault, cases[i / 2].fault));
            assert_ptr_equal(strstr(fault, i % 2 ? "reads" : "reconnect"), fault);
        }
        clave_async_client_free(c);
    }
}

struct nest {
    struct fake_server *s;
    struct timer timer;
    unsigned inside, times;
};

static void on_timer(struct timer *t, int64_t now)
{
    struct nest *n = LIST_ENTRY(t, struct nest, timer);
    (void)now;
    assert_int_equal(n->inside, 0);
    n->times++;
}

static void tick_inside(clave_async_client *c, const clave_result *res, void *arg)
{
    struct nest *n = arg;
    (void)res;
    n->inside++;
    clave_async_client_tick(c, n->s->now);
    assert_int_equal(n->times, 0);
    n->inside--;
}

/* Callbacks run one at a time, also when one brings the clock up to date, as the header tells
 * it to. */
TEST(a_tick_inside_a_callback_runs_no_other)
{
    CLOSED_BY(fake_close) struct fake_server s;
    struct nest n = {.s = &s};
    fake_open(&s, NULL);
    fake_connect(&s, true);
    clave__timer_init(&n.timer, on_timer);
    clave__client_timer_set(s.c, &n.timer, s.now + 10);
    assert_int_equal(clave_async_delete(s.c, "/a", -1, tick_inside, &n), CLAVE_OK);
    fake_expect(&s, OP_DELETE);
    s.now += 10;
    fake_answer(&s, CLAVE_OK, NULL);
    assert_true(clave_async_client_deadline(s.c) <= s.now);
    fake_advance_to(&s, s.now);
    assert_int_equal(n.times, 1);
}
