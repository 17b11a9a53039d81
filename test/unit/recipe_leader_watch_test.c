/* Elections from outside: participants, the leader, its value, and transfers. */
#include "base/path.h"
#include "clave/async/leader.h"
#include "lib/candidate.h"
#include "lib/failmem.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { TIMEOUT = 6000 };

static void enter_as(struct candidate *s, struct memnet *p, size_t client, const char *id)
{
    clave_latch_options o = {.size = sizeof o, .id = id, .revocable = true};
    candidate_enter(s, p, client, "/e", &o);
}

/* Everything a follower was told, as "id=value ", "-" for a vacancy, "!" for an error. */
struct follower {
    clave_async_leader_watch *w;
    char story[256];
    char left_over[128]; /* the name of the node; "": none */
    clave_err err;
};

static void on_news(clave_async_leader_watch *w, const clave_leader_news *news, void *arg)
{
    struct follower *f = arg;
    size_t n = strlen(f->story);
    (void)w;
    f->err = news->err;
    snprintf(f->left_over, sizeof f->left_over, "%s", news->left_over ? news->left_over->node : "");
    if (news->err != CLAVE_OK)
        snprintf(f->story + n, sizeof f->story - n, "! ");
    else if (!news->leader)
        snprintf(f->story + n, sizeof f->story - n, "- ");
    else
        snprintf(f->story + n, sizeof f->story - n, "%s%s%.*s ", news->leader->identity.text,
                 news->value ? "=" : "", (int)news->len,
                 news->value ? (const char *)news->value : "");
}

static bool told(struct follower *f, const char *story)
{
    bool same = strcmp(f->story, story) == 0;
    if (!same)
        fprintf(stderr, "told \"%s\" instead of \"%s\"\n", f->story, story);
    f->story[0] = '\0';
    return same;
}

static void follow(struct follower *f, struct memnet *p, size_t client)
{
    *f = (struct follower){0};
    assert_int_equal(clave_async_leader_watch_new(&f->w, p->clients[client].c, "/e", on_news, f),
                     CLAVE_OK);
    memnet_settle(p);
}

static void on_transferred(clave_async_client *c, clave_err err, void *arg)
{
    (void)c;
    *(clave_err *)arg = err;
}

static void publish(struct candidate *s, const char *text)
{
    clave_err err = clave_async_latch_publish(s->l, text, strlen(text), NULL, NULL);
    assert_int_equal(err, CLAVE_OK);
    memnet_settle(s->p);
}

static void end(struct candidate *s, size_t n)
{
    CLOSED_BY(memnet_freed) struct memnet *p = s->p;
    for (size_t i = 0; i < n; i++)
        candidate_close(&s[i]);
    assert_int_equal(memnet_stats(p).ephemerals, 0);
    assert_int_equal(memnet_stats(p).watches, 0);
}

/* ---- who stands ------------------------------------------------------------------------ */

struct roll {
    unsigned times;
    clave_err err;
    size_t n;
    char ids[64];
};

static void on_participants(clave_async_client *c, clave_err err, const clave_participant *list,
                            size_t n, void *arg)
{
    struct roll *r = arg;
    (void)c;
    r->times++;
    r->err = err;
    r->n = n;
    r->ids[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        strcat(r->ids, list[i].identity.text ? list[i].identity.text : "?");
        strcat(r->ids, " ");
    }
}

TEST(participants_stand_in_order)
{
    struct memnet *p = memnet_of(4, TIMEOUT);
    struct candidate s[3];
    struct roll r = {0};
    enter_as(&s[0], p, 0, "a");
    enter_as(&s[1], p, 1, "b");
    enter_as(&s[2], p, 2, "c");
    candidate_resign(&s[0]);
    assert_int_equal(memnet_create(p, 3, "/e/foreign"), CLAVE_OK);
    clave_async_latch_participants(p->clients[3].c, "/e", on_participants, &r);
    memnet_settle(p);
    assert_string_equal(r.ids, "b c a ");
    clave_async_latch_leader(p->clients[3].c, "/e", on_participants, &r);
    memnet_settle(p);
    assert_string_equal(r.ids, "b ");
    assert_int_equal(r.times, 2);
    end(s, 3);
}

/* The first node is a copy, which no session owns: nobody leads, whoever is behind it. */
TEST(a_candidate_that_is_left_over_leads_nobody)
{
    static const char copy[] = "/e/_c_01234567-89ab-4def-8123-456789abcdef-latch-0000000000";
    struct memnet *p = memnet_of(3, TIMEOUT);
    struct candidate s;
    struct follower f;
    struct roll r = {0};
    memnet_settle(p);
    assert_int_equal(memnet_create(p, 2, "/e"), CLAVE_OK);
    assert_int_equal(memnet_create(p, 2, copy), CLAVE_OK);
    assert_int_equal(memnet_create(p, 2, "/e/foreign"), CLAVE_OK); /* counts up */
    follow(&f, p, 2);
    assert_string_equal(f.left_over, clave__path_name(copy));
    enter_as(&s, p, 0, "a");
    assert_true(told(&f, "- "));
    clave_async_latch_leader(p->clients[2].c, "/e", on_participants, &r);
    memnet_settle(p);
    assert_int_equal(r.n, 0);
    assert_int_equal(clave_async_delete(p->clients[2].c, copy, -1, NULL, NULL), CLAVE_OK);
    memnet_settle(p);
    assert_true(told(&f, "a "));
    assert_string_equal(f.left_over, "");
    clave_async_leader_watch_free(f.w);
    memnet_settle(p);
    end(&s, 1);
}

/* CURATOR-436. */
TEST_NET(testUncreatedPathGetLeader, 1, TIMEOUT)
{
    struct roll r = {.err = CLAVE_ETIMEDOUT};
    clave_async_latch_leader(p->clients[0].c, "/e", on_participants, &r);
    memnet_settle(p);
    assert_int_equal(r.times, 1);
    assert_int_equal(r.err, CLAVE_OK);
    assert_int_equal(r.n, 0);
    clave_async_latch_participants(p->clients[0].c, "/e", on_participants, &r);
    memnet_settle(p);
    assert_int_equal(r.n, 0);
    assert_int_equal(clave_async_latch_leader(p->clients[0].c, "e", on_participants, &r),
                     CLAVE_EPATH);
    assert_int_equal(memnet_stats(p).watches, 0);
}

/* CURATOR-358: the leader goes between the listing and the question for its data. */
TEST(a_leader_that_goes_meanwhile_is_asked_for_again)
{
    struct memnet *p = memnet_of(3, TIMEOUT);
    struct candidate s[2];
    struct roll r = {0};
    enter_as(&s[0], p, 0, "a");
    enter_as(&s[1], p, 1, "b");
    memnet_rule(p, (struct memnet_rule){2, MEMNET_REQUEST, OP_GET_DATA, MEMNET_HOLD, 0});
    clave_async_latch_leader(p->clients[2].c, "/e", on_participants, &r);
    memnet_settle(p);
    candidate_close(&s[0]);
    memnet_clear(p);
    memnet_settle(p);
    assert_string_equal(r.ids, "b ");
    end(&s[1], 1);
}

/* ---- following ------------------------------------------------------------------------- */

TEST(a_follower_sees_leaders_values_and_vacancies)
{
    struct memnet *p = memnet_of(3, TIMEOUT);
    struct candidate s[2];
    struct follower f;
    follow(&f, p, 2);
    assert_true(told(&f, "- "));
    enter_as(&s[0], p, 0, "a");
    assert_true(told(&f, "a "));
    publish(&s[0], "one");
    assert_true(told(&f, "a=one "));
    publish(&s[0], "two");
    assert_true(told(&f, "a=two "));
    enter_as(&s[1], p, 1, "b"); /* a candidate more is no news */
    assert_true(told(&f, ""));
    candidate_resign(&s[0]);
    assert_true(told(&f, "b "));
    publish(&s[1], "");
    assert_true(told(&f, "b= "));
    candidate_close(&s[1]);
    assert_true(told(&f, "a "));
    candidate_close(&s[0]);
    assert_true(told(&f, "- "));
    enter_as(&s[0], p, 0, "c");
    assert_true(told(&f, "c "));
    clave_async_leader_watch_free(f.w);
    memnet_settle(p);
    end(&s[0], 1);
}

/* Nobody sees the value of a leader that is gone, whose session still stands. */
TEST(a_former_leaders_value_is_not_shown)
{
    struct memnet *p = memnet_of(3, TIMEOUT);
    struct candidate s[2];
    struct follower f;
    char node[128];
    enter_as(&s[0], p, 0, "a");
    enter_as(&s[1], p, 1, "b");
    publish(&s[0], "old");
    follow(&f, p, 2);
    assert_true(told(&f, "a=old "));
    snprintf(node, sizeof node, "%s", clave_async_latch_own_path(s[0].l));
    assert_int_equal(memnet_delete(p, 2, node), CLAVE_OK);
    assert_true(told(&f, "b "));
    assert_int_equal(memnet_list(p, 2, "/", NULL, 0), 3); /* /e, /e-value, /zookeeper */
    publish(&s[1], "new");
    assert_true(told(&f, "b=new "));
    /* And it does not go with the session that made the first. */
    candidate_close(&s[0]);
    clave_async_client_abandon(p->clients[0].c, p->now);
    memnet_advance(p, 3 * TIMEOUT);
    assert_true(told(&f, ""));
    clave_async_leader_watch_free(f.w);
    memnet_settle(p);
    end(&s[1], 1);
}

TEST_NET(a_follower_goes_on_over_lost_connections_and_sessions, 2, TIMEOUT)
{
    struct candidate s[1];
    struct follower f;
    enter_as(&s[0], p, 0, "a");
    follow(&f, p, 1);
    assert_true(told(&f, "a "));
    memnet_refuse(p, 1, true);
    memnet_advance(p, 500);
    publish(&s[0], "x");
    memnet_refuse(p, 1, false);
    memnet_advance(p, 3000);
    assert_true(told(&f, "a=x "));
    memnet_kill_session(p, 1);
    memnet_advance(p, 3000);
    assert_true(told(&f, ""));
    publish(&s[0], "y");
    assert_true(told(&f, "a=y "));
    candidate_close(&s[0]);
    assert_true(told(&f, "- "));
    clave_async_client_abandon(p->clients[1].c, p->now);
    assert_true(told(&f, "! "));
    assert_int_equal(f.err, CLAVE_ECLOSED);
    clave_async_leader_watch_free(f.w);
}

/* The leader's session ends: its node and its value go at once, and that is one news. */
TEST(a_leader_that_dies_with_its_value_leaves_a_vacancy)
{
    struct memnet *p = memnet_of(2, TIMEOUT);
    struct candidate s[1];
    struct follower f;
    enter_as(&s[0], p, 0, "a");
    publish(&s[0], "x");
    follow(&f, p, 1);
    assert_true(told(&f, "a=x "));
    memnet_refuse(p, 0, true);
    memnet_advance(p, 3 * TIMEOUT);
    assert_true(told(&f, "- "));
    memnet_refuse(p, 0, false);
    memnet_advance(p, 5000);
    assert_true(told(&f, "a "));
    clave_async_leader_watch_free(f.w);
    memnet_settle(p);
    end(s, 1);
}

/* Seed 1000330: so many asked the leader that its node was written to in every reading. */
TEST(a_follower_is_told_while_the_leader_is_asked)
{
    struct memnet *p = memnet_of(3, TIMEOUT);
    struct candidate s[1];
    struct follower f = {0};
    clave_err err = CLAVE_ETIMEDOUT;
    enter_as(&s[0], p, 0, "a");
    memnet_rule(
        p, (struct memnet_rule){1, MEMNET_REQUEST, OP_GET_DATA, MEMNET_HOLD, 1}); /* the value */
    follow(&f, p, 1);
    clave_async_leader_transfer(p->clients[2].c, "/e", NULL, on_transferred, &err);
    memnet_settle(p);
    assert_int_equal(err, CLAVE_OK);
    assert_true(told(&f, ""));
    memnet_clear(p);
    memnet_rule(
        p, (struct memnet_rule){1, MEMNET_REQUEST, OP_GET_DATA, MEMNET_HOLD, 1}); /* the node */
    memnet_settle(p);
    assert_true(told(&f, "a "));
    memnet_clear(p);
    memnet_settle(p);
    publish(&s[0], "1");
    assert_true(told(&f, "a=1 "));
    clave_async_leader_watch_free(f.w);
    end(s, 1);
}

TEST(a_follower_may_be_freed_at_any_time)
{
    struct memnet *p = memnet_of(2, TIMEOUT);
    struct candidate s[1];
    enter_as(&s[0], p, 0, "a");
    static const int ops[] = {OP_GET_CHILDREN2, OP_GET_DATA};
    for (size_t i = 0; i < 2; i++) {
        struct follower f = {0};
        memnet_rule(p, (struct memnet_rule){1, MEMNET_REPLY, ops[i], MEMNET_HOLD, 0});
        follow(&f, p, 1);
        clave_async_leader_watch_free(f.w);
        memnet_clear(p);
        memnet_settle(p);
        assert_true(told(&f, ""));
    }
    end(s, 1);
}

TEST(only_a_leader_publishes)
{
    struct memnet *p = memnet_of(2, TIMEOUT);
    struct candidate s[2];
    enter_as(&s[0], p, 0, "a");
    enter_as(&s[1], p, 1, "b");
    assert_int_equal(clave_async_latch_publish(s[1].l, "x", 1, NULL, NULL), CLAVE_ENOTHELD);
    publish(&s[0], "x");
    /* Somebody deletes it: it is made anew. */
    assert_int_equal(memnet_delete(p, 1, "/e-value"), CLAVE_OK);
    publish(&s[0], "y");
    assert_int_equal(memnet_delete(p, 1, "/e-value"), CLAVE_OK);
    end(s, 2);
}

/* ---- transfers ------------------------------------------------------------------------- */

static const char *name_of(const struct candidate *s)
{
    return clave__path_name(clave_async_latch_own_path(s->l));
}

TEST(a_leader_hands_over_past_those_between)
{
    enum { N = 5 };
    struct memnet *p = memnet_of(N, TIMEOUT);
    struct candidate s[N];
    clave_err err = CLAVE_ETIMEDOUT;
    for (size_t i = 0; i < N; i++)
        enter_as(&s[i], p, i, "x");
    int64_t token = candidate_grant(&s[0]).token;
    assert_int_equal(clave_async_latch_transfer(s[1].l, name_of(&s[3]), NULL, NULL),
                     CLAVE_ENOTHELD);
    assert_int_equal(clave_async_latch_transfer(s[0].l, name_of(&s[3]), on_transferred, &err),
                     CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(err, CLAVE_OK);
    assert_true(candidate_leads(&s[3]));
    assert_true(candidate_grant(&s[3]).token > token);
    assert_int_equal(s[1].leader + s[2].leader, 0);
    assert_int_equal(s[0].not_leader, 1);
    assert_int_equal(s[0].why, CLAVE_OK);
    /* The others queue again, after the one that was after the target. */
    memnet_advance(p, 2000);
    assert_int_equal(memnet_list(p, 0, "/e", NULL, 0), N);
    candidate_resign(&s[3]);
    assert_true(candidate_leads(&s[4]));
    /* To itself; to nobody. */
    clave_async_latch_transfer(s[4].l, name_of(&s[4]), on_transferred, &err);
    memnet_settle(p);
    assert_int_equal(err, CLAVE_OK);
    assert_true(candidate_leads(&s[4]));
    clave_async_latch_transfer(s[4].l, "nobody", on_transferred, &err);
    memnet_settle(p);
    assert_int_equal(err, CLAVE_ENONODE);
    assert_true(candidate_leads(&s[4]));
    end(s, N);
}

/* The target goes between the listing and the transaction: nothing is done. */
TEST(a_transfer_to_one_that_goes_changes_nothing)
{
    struct memnet *p = memnet_of(3, TIMEOUT);
    struct candidate s[3];
    clave_err err = CLAVE_ETIMEDOUT;
    for (size_t i = 0; i < 3; i++)
        enter_as(&s[i], p, i, "x");
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD, 0});
    clave_async_latch_transfer(s[0].l, name_of(&s[2]), on_transferred, &err);
    memnet_settle(p);
    candidate_close(&s[2]);
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(err, CLAVE_ENONODE);
    assert_true(candidate_leads(&s[0]));
    assert_int_equal(memnet_list(p, 1, "/e", NULL, 0), 2);
    end(s, 2);
}

TEST(a_leader_is_asked_and_decides_itself)
{
    struct memnet *p = memnet_of(4, TIMEOUT);
    struct candidate s[3];
    clave_err err = CLAVE_ETIMEDOUT;
    struct roll r = {0};
    enter_as(&s[0], p, 0, "a");
    enter_as(&s[1], p, 1, "b");
    enter_as(&s[2], p, 2, "c");
    clave_async_client *c = p->clients[3].c;
    clave_async_leader_transfer(c, "/e", name_of(&s[2]), on_transferred, &err);
    memnet_settle(p);
    assert_int_equal(err, CLAVE_OK);
    assert_true(candidate_leads(&s[0]));
    assert_int_equal(s[0].asked, 1);
    assert_int_equal(s[1].asked + s[2].asked, 0);
    memnet_advance(p, 1000);
    clave_async_latch_participants(c, "/e", on_participants, &r);
    memnet_settle(p);
    assert_string_equal(r.ids, "a c b ");
    /* Asked again it hears nothing new; a leader of its own choice resigns. */
    clave_async_leader_transfer(c, "/e", NULL, on_transferred, &err);
    memnet_settle(p);
    assert_int_equal(s[0].asked, 1);
    candidate_resign(&s[0]);
    assert_true(candidate_leads(&s[2]));
    assert_int_equal(s[2].asked, 0);
    end(s, 3);
}

/* Seed 20095: thousands asked at once, and each asked again because another had. */
TEST(a_leader_that_was_asked_meanwhile_is_asked)
{
    struct memnet *p = memnet_of(3, TIMEOUT);
    struct candidate s[1];
    clave_err first = CLAVE_ETIMEDOUT, second = CLAVE_ETIMEDOUT;
    enter_as(&s[0], p, 0, "a");
    memnet_rule(p, (struct memnet_rule){1, MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD, 0});
    clave_async_leader_transfer(p->clients[1].c, "/e", NULL, on_transferred, &first);
    memnet_settle(p);
    clave_async_leader_transfer(p->clients[2].c, "/e", NULL, on_transferred, &second);
    memnet_settle(p);
    memnet_clear(p);
    memnet_settle(p);
    assert_int_equal(first, CLAVE_OK);
    assert_int_equal(second, CLAVE_OK);
    assert_int_equal(p->clients[1].requests[OP_MULTI], 1);
    assert_int_equal(s[0].asked, 1);
    end(s, 1);
}

TEST_NET(asking_where_nobody_leads_says_so, 1, TIMEOUT)
{
    clave_err err = CLAVE_OK;
    clave_async_leader_transfer(p->clients[0].c, "/e", NULL, on_transferred, &err);
    memnet_settle(p);
    assert_int_equal(err, CLAVE_ENONODE);
    assert_int_equal(memnet_create(p, 0, "/e"), CLAVE_OK);
    clave_async_leader_transfer(p->clients[0].c, "/e", "x", on_transferred, &err);
    memnet_settle(p);
    assert_int_equal(err, CLAVE_ENONODE);
}

/* ---- memory ---------------------------------------------------------------------------- */

static void story(struct failmem *mem, size_t first, size_t fails)
{
    struct memnet_options o = {.clients = 2, .timeout_ms = TIMEOUT, .mem = &mem->mem};
    failmem_init(mem);
    struct memnet *p = memnet_new(&o);
    struct candidate s[2];
    struct follower f = {0};
    enter_as(&s[0], p, 0, "a");
    enter_as(&s[1], p, 0, "b");
    failmem_arm(mem, first, fails);
    clave_err followed = clave_async_leader_watch_new(&f.w, p->clients[1].c, "/e", on_news, &f);
    memnet_settle(p);
    (void)clave_async_latch_publish(s[0].l, "x", 1, NULL, NULL);
    memnet_settle(p);
    if (clave_async_latch_own_path(s[1].l))
        (void)clave_async_latch_transfer(s[0].l, name_of(&s[1]), NULL, NULL);
    memnet_settle(p);
    (void)clave_async_leader_transfer(p->clients[1].c, "/e", NULL, NULL, NULL);
    memnet_advance(p, 3000);
    mem->first = 0;
    memnet_advance(p, 3000);
    assert_int_equal(candidate_count_leaders(s, 2), 1);
    if (followed == CLAVE_OK) {
        f.story[0] = '\0';
        publish(candidate_leads(&s[0]) ? &s[0] : &s[1], "z");
        assert_true(told(&f, candidate_leads(&s[0]) ? "a=z " : "b=z "));
        clave_async_leader_watch_free(f.w);
    }
    candidate_close(&s[0]);
    candidate_close(&s[1]);
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

/* Memory is short while a follower reads who leads now; before it tries again, the leader
 * publishes. */
static void follow_with_a_failure(size_t first)
{
    struct failmem mem;
    failmem_init(&mem);
    struct memnet *p =
        memnet_new(&(struct memnet_options){.clients = 3, .timeout_ms = TIMEOUT, .mem = &mem.mem});
    struct candidate a, b;
    struct follower f;
    memnet_settle(p);
    enter_as(&a, p, 0, "a");
    enter_as(&b, p, 1, "b");
    follow(&f, p, 2);
    memnet_settle(p);
    assert_true(told(&f, "a "));
    memnet_rule(p, (struct memnet_rule){2, MEMNET_REPLY, OP_GET_CHILDREN2, MEMNET_HOLD, 0});
    candidate_close(&a);
    assert_true(candidate_leads(&b));
    failmem_arm(&mem, first, 1);
    memnet_clear(p);
    memnet_settle(p);
    failmem_arm(&mem, 0, 0);
    assert_int_equal(clave_async_latch_publish(b.l, "v", 1, NULL, NULL), CLAVE_OK);
    memnet_advance(p, 3000);
    size_t n = strlen(f.story);
    assert_true(n >= 4);
    assert_string_equal(f.story + n - 4, "b=v ");
    clave_async_leader_watch_free(f.w);
    candidate_close(&b);
    memnet_free(p);
    assert_int_equal(mem.live, 0);
}

/* The follower went on with the value of the leader that it knew, and never read the list again.
 * (Seed 89, docs/evidence/simulation.md.) */
TEST(a_reading_that_failed_begins_again)
{
    for (size_t first = 1; first <= 6; first++)
        follow_with_a_failure(first);
}

/* The path was missing in the list and is there when it is to be watched for: that watch is not
 * one of its children. (Seed 3362, docs/evidence/simulation.md.) */
TEST_NET(a_path_that_is_made_meanwhile_is_watched, 2, TIMEOUT)
{
    struct candidate a;
    struct follower f;
    memnet_settle(p);
    memnet_rule(p, (struct memnet_rule){1, MEMNET_REQUEST, OP_EXISTS, MEMNET_HOLD, 0});
    follow(&f, p, 1);
    memnet_settle(p);
    assert_int_equal(memnet_create(p, 0, "/e"), CLAVE_OK);
    memnet_clear(p);
    memnet_settle(p);
    enter_as(&a, p, 0, "a");
    assert_true(told(&f, "- a "));
    clave_async_leader_watch_free(f.w);
    candidate_close(&a);
    assert_int_equal(memnet_stats(p).watches, 0);
}

/* The answer to the publication is lost, and the leader resigns: the value goes. (Seed 478,
 * docs/evidence/simulation.md.) */
TEST_NET(a_value_that_may_be_there_is_taken_back, 2, TIMEOUT)
{
    struct candidate a;
    enter_as(&a, p, 0, "a");
    memnet_rule(p, (struct memnet_rule){0, MEMNET_REPLY, OP_MULTI, MEMNET_LOSE, 0});
    assert_int_equal(clave_async_latch_publish(a.l, "v", 1, NULL, NULL), CLAVE_OK);
    memnet_settle(p);
    memnet_advance(p, 1000);
    assert_true(candidate_leads(&a));
    assert_int_equal(memnet_stats(p).ephemerals, 2);
    candidate_close(&a);
    assert_int_equal(memnet_stats(p).ephemerals, 0);
}
