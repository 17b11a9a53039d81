/* Candidates with priorities: who leads next, who hands on, who is asked to. */
#include "base/path.h"
#include "clave/async/leader.h"
#include "lib/candidate.h"
#include "lib/failmem.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "recipe/election/latch_internal.h"
#include "recipe/queue/priority_tag.h"

enum { TIMEOUT = 6000 };

static void enter_with(struct candidate *s, struct memnet *p, size_t client, int32_t priority)
{
    clave_latch_options o = {.size = sizeof o, .priority = priority, .revocable = true};
    candidate_enter(s, p, client, "/e", &o);
}

static void end(struct candidate *s, size_t n)
{
    CLOSED_BY(memnet_freed) struct memnet *p = s->p;
    for (size_t i = 0; i < n; i++)
        candidate_close(&s[i]);
    assert_int_equal(memnet_stats(p).ephemerals, 0);
    assert_int_equal(memnet_stats(p).watches, 0);
}

/* ---- names ----------------------------------------------------------------------------- */

TEST(a_name_tells_the_priority)
{
    static const struct {
        const char *name;
        int32_t priority;
    } rows[] = {
        {"_c_6b-priority-10-latch-0000000007", 10},
        {"_c_6b-priority-2147483647-latch-0000000007", INT32_MAX},
        {"priority-1-latch-0000000007", 1},
        {"_c_6b-latch-0000000007", 0},
        {"_c_6b-10-latch-0000000007", 0},
        {"_c_6b-priority--latch-0000000007", 0},
        {"_c_6b-priority-x1-latch-0000000007", 0},
        {"_c_6b-priority-2147483648-latch-0000000007", 0},
        {"_c_6b-priority-99999999999-latch-0000000007", 0},
        {"_c_6b-priority-5-lock-0000000007", 0},
        {"a-priority-3-latch-b-priority-4-latch-0000000007", 4},
        {"10-latch-0000000007", 0},
        {"-latch-", 0},
        {"", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(clave__priority_of(rows[i].name), rows[i].priority);
    char tag[CLAVE_PRIORITY_TAG], name[64];
    clave__priority_tag(INT32_MAX, tag);
    snprintf(name, sizeof name, "_c_6b-%slatch-0000000007", tag);
    assert_int_equal(clave__priority_of(name), INT32_MAX);
    clave__priority_tag(0, tag);
    assert_string_equal(tag, "");
}

/* Of 1000 elections with five candidates each leads between 160 and 240, and when one goes only
 * its own change hands. */
TEST(spread_elections_are_shared_evenly)
{
    enum { N = 1000, IDS = 5 };
    static const char *const ids[IDS] = {"a:1", "a:2", "host-3", "host-4", "e"};
    unsigned led[IDS] = {0};
    for (unsigned e = 0; e < N; e++) {
        char path[32];
        size_t best = 0;
        snprintf(path, sizeof path, "/shards/%u", e);
        for (size_t i = 1; i < IDS; i++)
            if (clave__latch_priority_spread(path, ids[i]) >
                clave__latch_priority_spread(path, ids[best]))
                best = i;
        assert_true(clave__latch_priority_spread(path, ids[best]) > 0);
        led[best]++;
    }
    for (size_t i = 0; i < IDS; i++)
        assert_in_range(led[i], 160, 240);
}

/* ---- who leads next -------------------------------------------------------------------- */

TEST(the_highest_leads_next)
{
    static const int32_t priorities[] = {4, 1, 9, 2, 9};
    enum { N = sizeof priorities / sizeof *priorities };
    CLOSED_BY(memnet_freed) struct memnet *p = memnet_of(N, TIMEOUT);
    struct candidate s[N];
    for (size_t i = 0; i < N; i++)
        enter_with(&s[i], p, i, priorities[i]);
    assert_true(candidate_leads(&s[0])); /* it was the first, and nobody asked it to go */
    candidate_close(&s[0]);
    memnet_advance(p, 100);
    assert_true(candidate_leads(&s[2])); /* of two equals the first */
    assert_int_equal(s[1].leader + s[3].leader + s[4].leader, 0);
    candidate_close(&s[2]);
    memnet_advance(p, 100);
    assert_true(candidate_leads(&s[4]));
    candidate_close(&s[4]);
    memnet_advance(p, 100);
    assert_true(candidate_leads(&s[3]));
    assert_int_equal(s[1].leader, 0);
    candidate_close(&s[1]);
    candidate_close(&s[3]);
    assert_int_equal(memnet_stats(p).ephemerals, 0);
}

/* A listing, and one transaction that hands on; the higher one then a listing. */
TEST(what_a_priority_costs)
{
    struct memnet *p = memnet_of(3, TIMEOUT);
    struct candidate s[3];
    for (size_t i = 0; i < 3; i++)
        enter_with(&s[i], p, i, (int32_t)i + 1);
    memnet_reset_counts(p);
    candidate_close(&s[0]);
    assert_true(candidate_leads(&s[2]));
    assert_int_equal(p->clients[1].requests[OP_MULTI], 1);
    assert_int_equal(p->clients[2].requests[OP_MULTI], 0);
    end(&s[1], 2);
}

/* A candidate without one is not asked, and does not ask. */
TEST(without_a_priority_the_order_is_that_of_the_queue)
{
    struct memnet *p = memnet_of(3, TIMEOUT);
    struct candidate s[3];
    enter_with(&s[0], p, 0, 2);
    enter_with(&s[1], p, 1, 0);
    enter_with(&s[2], p, 2, 7);
    candidate_close(&s[0]);
    assert_true(candidate_leads(&s[1]));
    end(&s[1], 2);
}

TEST(a_single_candidate_leads)
{
    struct memnet *p = memnet_of(1, TIMEOUT);
    struct candidate s[1];
    enter_with(&s[0], p, 0, 3);
    assert_true(candidate_leads(&s[0]));
    candidate_resign(&s[0]);
    assert_true(candidate_leads(&s[0]));
    memnet_advance(p, 3 * TIMEOUT);
    assert_int_equal(s[0].leader, 2);
    end(s, 1);
}

static void on_transferred(clave_async_client *c, clave_err err, void *arg)
{
    (void)c;
    *(clave_err *)arg = err;
}

static const char *name_of(const struct candidate *s)
{
    return clave__path_name(clave_async_latch_own_path(s->l));
}

/* A leader that resigns, or hands over to a lower one, does not get the leadership back at once. */
TEST(a_resignation_counts_for_a_session_timeout)
{
    struct memnet *p = memnet_of(3, TIMEOUT);
    struct candidate s[3];
    clave_err err = CLAVE_ETIMEDOUT;
    enter_with(&s[0], p, 0, 9);
    enter_with(&s[1], p, 1, 1);
    enter_with(&s[2], p, 2, 2);
    assert_true(candidate_leads(&s[0]));
    candidate_resign(&s[0]);
    memnet_advance(p, TIMEOUT / 2);
    assert_true(candidate_leads(&s[2]));
    assert_int_equal(clave__priority_of(name_of(&s[0])), 0);
    memnet_advance(p, TIMEOUT);
    assert_int_equal(clave__priority_of(name_of(&s[0])), 9);
    assert_true(candidate_leads(&s[2])); /* it does not preempt */
    candidate_resign(&s[2]);
    memnet_advance(p, 1000);
    assert_true(candidate_leads(&s[0]));
    clave_async_latch_transfer(s[0].l, name_of(&s[1]), on_transferred, &err);
    memnet_advance(p, 1000);
    assert_int_equal(err, CLAVE_OK);
    assert_true(candidate_leads(&s[1]));
    end(s, 3);
}

/* ---- preemption ------------------------------------------------------------------------ */

static void resign_when_asked(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    unsigned *asked = arg;
    if (ev->kind == CLAVE_LATCH_ASKED) {
        ++*asked;
        assert_int_equal(clave_async_latch_resign(l), CLAVE_OK);
    }
}

TEST(a_higher_one_asks_the_leader_to_go)
{
    struct memnet *p = memnet_of(4, TIMEOUT);
    struct candidate s[3];
    clave_async_latch *leader;
    unsigned asked = 0;
    clave_latch_options o = {.size = sizeof o, .priority = 2, .revocable = true};
    o.event_cb = resign_when_asked;
    o.event_arg = &asked;
    assert_int_equal(clave_async_latch_new(&leader, p->clients[3].c, "/e", &o), CLAVE_OK);
    clave_async_latch_start(leader);
    memnet_settle(p);
    o.preempt = true;
    o.priority = 2;
    candidate_enter(&s[0], p, 0, "/e", &o); /* not higher */
    assert_int_equal(asked, 0);
    o.priority = 3;
    memnet_reset_counts(p);
    candidate_enter(&s[1], p, 1, "/e", &o);
    assert_int_equal(asked, 1);
    assert_true(candidate_leads(&s[1]));
    assert_int_equal(s[0].leader, 0);
    /* Its place was made, its claim, its turn: each once. */
    assert_int_equal(
        p->clients[1].requests[OP_CREATE2] + p->clients[1].requests[OP_CREATE_CONTAINER], 1);
    assert_int_equal(p->clients[1].requests[OP_MULTI], 1);
    o.priority = 1;
    candidate_enter(&s[2], p, 2, "/e", &o);
    memnet_advance(p, 3 * TIMEOUT);
    assert_true(candidate_leads(&s[1]));
    clave_async_latch_free(leader);
    end(s, 3);
}

TEST_NET(options_that_contradict_each_other, 1, TIMEOUT)
{
    clave_async_latch *l;
    const clave_latch_options wrong[] = {
        {.size = sizeof *wrong, .priority = -1},
        {.size = sizeof *wrong, .preempt = true},
        {.size = sizeof *wrong, .spread = true},
        {.size = sizeof *wrong, .spread = true, .id = ""},
        {.size = sizeof *wrong, .spread = true, .id = "a", .priority = 1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(clave_async_latch_new(&l, p->clients[0].c, "/e", &wrong[i]), CLAVE_EINVAL);
}

/* ---- faults ---------------------------------------------------------------------------- */

/* Any message lost once, applied or not, while four hand on: one leads, in the end the highest
 * that stands, and nothing is left. */
TEST(any_message_may_be_lost)
{
    static const int ops[] = {OP_GET_CHILDREN2, OP_MULTI, OP_DELETE, OP_CREATE2, OP_NOTIFICATION};
    for (unsigned i = 0; i < sizeof ops / sizeof *ops * 4 * 3 * 2; i++) {
        struct memnet *p = memnet_of(4, TIMEOUT);
        struct candidate s[4];
        for (size_t k = 0; k < 4; k++)
            enter_with(&s[k], p, k, (int32_t)k + 1);
        memnet_rule(p, (struct memnet_rule){.client = 1 + i % 3,
                                            .way = i / 3 % 2 ? MEMNET_REQUEST : MEMNET_REPLY,
                                            .op = ops[i / 24],
                                            .fate = i / 6 % 2 ? MEMNET_LOSE : MEMNET_PASS_CUT,
                                            .skip = i / 12 % 2});
        candidate_close(&s[0]);
        memnet_advance(p, 2 * TIMEOUT);
        assert_int_equal(candidate_count_leaders(&s[1], 3), 1);
        assert_true(candidate_leads(&s[3]));
        memnet_clear(p);
        end(&s[1], 3);
    }
}

/* The first, looking whether a higher one stands: the listing waits in the wire. */
static struct memnet *looking(struct candidate *s)
{
    const clave_latch_options o = {.size = sizeof o, .priority = 5};
    struct memnet *p = memnet_of(2, TIMEOUT);
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, OP_GET_CHILDREN2, MEMNET_HOLD, 2});
    candidate_enter(s, p, 0, "/e", &o);
    assert_true(clave__latch_is_first(s->l));
    assert_int_equal(s->leader, 0);
    return p;
}

TEST(who_closes_its_client_while_it_looks_never_leads)
{
    struct candidate s;
    CLOSED_BY(memnet_freed) struct memnet *p = looking(&s);
    clave_async_client_abandon(p->clients[0].c, p->now);
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(s.leader, 0);
    candidate_close(&s);
}

static void ignore_result(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    (void)arg;
    assert_int_equal(res->err, CLAVE_OK);
}

/* A listing without its node is no leave to lead. */
TEST(who_is_removed_while_it_looks_stands_again)
{
    struct candidate s;
    CLOSED_BY(memnet_freed) struct memnet *p = looking(&s);
    assert_int_equal(
        clave_async_delete(p->clients[1].c, s.l->place->node.watch.path, -1, ignore_result, NULL),
        CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(s.leader, 0);
    memnet_clear(p);
    memnet_settle(p);
    memnet_advance(p, 2000);
    assert_string_equal(s.news, "L");
    candidate_close(&s);
}

/* Its node is the first, and a hand-over to a higher candidate is under way; that one leaves, and
 * it resigns. The hand-over then fails after the new node has become the first. */
TEST(a_hand_over_of_a_former_place_keeps_nobody_from_leading)
{
    struct memnet *p = memnet_of(3, TIMEOUT);
    struct candidate first, s, higher;
    enter_with(&first, p, 0, 0);
    enter_with(&s, p, 1, 5);
    enter_with(&higher, p, 2, 9);
    memnet_rule(p, (struct memnet_rule){1, MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD, 0});
    candidate_close(&first);
    assert_true(clave__latch_is_first(s.l));
    assert_false(candidate_leads(&s));
    candidate_close(&higher);
    candidate_resign(&s);
    memnet_clear(p);
    memnet_advance(p, 3000);
    assert_true(candidate_leads(&s));
    end(&s, 1);
}

static void story(struct failmem *mem, size_t first, size_t fails)
{
    struct memnet_options o = {.clients = 3, .timeout_ms = TIMEOUT, .mem = &mem->mem};
    failmem_init(mem);
    struct memnet *p = memnet_new(&o);
    struct candidate s[3];
    clave_latch_options of[3] = {{.priority = 1, .revocable = true},
                                 {.spread = true, .id = "b"},
                                 {.priority = INT32_MAX, .preempt = true}};
    size_t n = 0;
    failmem_arm(mem, first, fails);
    for (size_t i = 0; i < 3; i++) {
        of[i].size = sizeof *of;
        if (candidate_open(&s[n], p, i, "/e", &of[i]) != CLAVE_OK)
            continue;
        candidate_start(&s[n]);
        if (s[n].err == CLAVE_OK)
            n++;
        else
            candidate_close(&s[n]);
    }
    memnet_advance(p, 2000);
    mem->first = 0;
    for (size_t i = 0; i < n; i++)
        if (candidate_leads(&s[i])) {
            candidate_resign(&s[i]);
            break;
        }
    memnet_advance(p, 3 * TIMEOUT);
    assert_int_equal(candidate_count_leaders(s, n), n > 0);
    for (size_t i = 0; i < n; i++)
        candidate_close(&s[i]);
    memnet_free(p);
    assert_int_equal(mem->live, 0);
}

TEST(any_allocation_may_fail)
{
    struct failmem mem;
    for (size_t fails = 1; fails <= 3; fails += 2) {
        size_t first = 1;
        do
            story(&mem, first++, fails);
        while (mem.failed);
        assert_true(first > 40);
    }
}
