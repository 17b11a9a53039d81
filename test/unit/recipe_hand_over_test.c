/* A session and its holds pass from one process to another. At no moment do both count on a hold,
 * and the text is good for one process. */
#include <stdio.h>
#include <stdlib.h>

#include "clave/async/latch.h"
#include "clave/async/multilock.h"
#include "lib/async_grants.h"
#include "lib/each_fault.h"
#include "lib/fake_server.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { OLD, OTHER, TEXT = 16 * 1024 };

/* OLD holds /l, and OTHER waits for it. */
struct relay {
    struct memnet *p;
    struct mutex_owner old, other, now, copy;
    clave_async_grant *was; /* what the old process had */
    size_t heir;            /* the client of the new one */
    unsigned answers;
    clave_err err;
    char text[TEXT];
};

static void relay_begin_with(struct relay *r, const clave_mutex_options *o)
{
    r->p = memnet_new(
        &(struct memnet_options){.clients = 2, .container_check_ms = 1000, .ensemble = true});
    owner_open(&r->old, r->p, OLD, "/l", o);
    owner_open(&r->other, r->p, OTHER, "/l", NULL);
    owner_acquire(&r->old, OWNER_FOREVER);
    owner_acquire(&r->other, OWNER_FOREVER);
    assert_int_equal(clave_async_mutex_grant(r->old.m, 0, &r->was), CLAVE_OK);
}

static void relay_begin(struct relay *r)
{
    relay_begin_with(r, NULL);
}

/* By then the old process counts on nothing. */
static void relay_on_text(clave_async_client *c, clave_err err, const char *session, void *arg)
{
    struct relay *r = arg;
    r->answers++;
    r->err = err;
    assert_true((err == CLAVE_OK) == (session != NULL));
    if (err != CLAVE_OK)
        return;
    assert_int_equal(clave_async_client_state(c), CLAVE_STATE_CLOSED);
    assert_false(clave_async_grant_valid_for(r->was, r->p->now, 0));
    assert_true(strlen(session) < sizeof r->text);
    memcpy(r->text, session, strlen(session) + 1);
}

static clave_err relay_hand_over(struct relay *r, int64_t within_ms)
{
    r->err = CLAVE_EINVAL;
    clave_err err =
        clave_async_client_hand_over(r->p->clients[OLD].c, r->p->now + within_ms, relay_on_text, r);
    memnet_advance(r->p, 0);
    return err;
}

static size_t relay_resume(struct relay *r, struct mutex_owner *o, const char *text)
{
    size_t client = memnet_open(r->p, &(clave_client_options){.size = sizeof(clave_client_options),
                                                              .hosts = "pair:1",
                                                              .seed = 77 + r->p->o.clients,
                                                              .resume = text});
    owner_open(o, r->p, client, "/l", NULL);
    assert_int_equal(owner_begin_acquire(o, OWNER_FOREVER), CLAVE_OK);
    return client;
}

static bool holds_resumed(const struct mutex_owner *o)
{
    clave_async_grant *g;
    if (clave_async_mutex_grant(o->m, o->owner, &g) != CLAVE_OK)
        return false;
    bool is = clave_async_grant_is_resumed(g);
    clave_async_grant_free(g);
    return is;
}

static void relay_end(struct relay *r)
{
    clave_async_grant_free(r->was);
    owner_close(&r->old);
    owner_close(&r->other);
    if (r->now.m)
        owner_close(&r->now);
    if (r->copy.m)
        owner_close(&r->copy);
    memnet_settle(r->p);
    memnet_free(r->p);
}

/* ---- it goes on ------------------------------------------------------------------------------ */

TEST(the_hold_goes_on_with_its_token)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin(&r);
    assert_false(clave_async_grant_is_resumed(r.was));
    assert_int_equal(relay_hand_over(&r, 1000), CLAVE_OK);
    assert_int_equal(r.answers, 1);
    assert_int_equal(r.err, CLAVE_OK);
    assert_int_equal(r.old.lost, 1);
    assert_int_equal(r.old.why, CLAVE_ECLOSED);
    relay_resume(&r, &r.now, r.text);
    memnet_settle(r.p);
    assert_int_equal(r.now.err, CLAVE_OK);
    assert_true(holds_resumed(&r.now));
    assert_true(owner_grant(&r.now).token == clave_async_grant_token(r.was));
    assert_string_equal(owner_grant(&r.now).node, clave_async_grant_node(r.was));
    assert_true(mutex_valid_for(r.now.m, 0, r.p->now, 1));
    memnet_advance(r.p, 60000);
    assert_true(owner_holds(&r.now));
    assert_false(owner_holds(&r.other));
    owner_release(&r.now);
    assert_true(owner_holds(&r.other));
}

TEST(it_passes_on_from_process_to_process)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin(&r);
    relay_hand_over(&r, 1000);
    for (int i = 0; i < 3; i++) {
        size_t client = relay_resume(&r, &r.now, r.text);
        memnet_settle(r.p);
        assert_true(holds_resumed(&r.now));
        assert_true(owner_grant(&r.now).token == clave_async_grant_token(r.was));
        assert_int_equal(clave_async_client_hand_over(r.p->clients[client].c, r.p->now + 1000,
                                                      relay_on_text, &r),
                         CLAVE_OK);
        memnet_advance(r.p, 0);
        assert_int_equal(r.err, CLAVE_OK);
        owner_close(&r.now);
    }
    relay_resume(&r, &r.now, r.text);
    memnet_settle(r.p);
    assert_true(holds_resumed(&r.now));
}

/* An answer to the handshake proves nothing: a member that is cut off gives it, too. */
TEST(it_does_not_count_before_the_leader_has_answered)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin(&r);
    relay_hand_over(&r, 1000);
    r.heir = relay_resume(&r, &r.now, r.text);
    memnet_rule(r.p, (struct memnet_rule){r.heir, MEMNET_REPLY, OP_MULTI, MEMNET_HOLD, 0});
    memnet_settle(r.p);
    assert_int_equal(r.now.answers, 0);
    memnet_clear(r.p);
    memnet_settle(r.p);
    assert_true(holds_resumed(&r.now));
}

/* Whoever reads the node learns of the process that holds now. */
TEST(the_node_says_who_holds_it_now)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    char was[256], is[256];
    size_t nwas = clave_identity_format(&(clave_identity){.host = "a", .pid = 1}, was, sizeof was);
    size_t nis = clave_identity_format(&(clave_identity){.host = "a", .pid = 2}, is, sizeof is);
    relay_begin_with(
        &r, &(clave_mutex_options){.size = sizeof(clave_mutex_options), .data = was, .len = nwas});
    relay_hand_over(&r, 1000);
    size_t client = memnet_open(r.p, &(clave_client_options){.size = sizeof(clave_client_options),
                                                             .hosts = "pair:1",
                                                             .seed = 9,
                                                             .resume = r.text});
    owner_open(&r.now, r.p, client, "/l",
               &(clave_mutex_options){.size = sizeof(clave_mutex_options), .data = is, .len = nis});
    owner_acquire(&r.now, OWNER_FOREVER);
    assert_true(holds_resumed(&r.now));
    assert_int_equal(r.now.asked, 0);
    memnet_advance(r.p, 60000);
    assert_true(owner_holds(&r.now));
}

/* ---- it has ended meanwhile ------------------------------------------------------------------ */

static void relay_assert_queued_anew(struct relay *r)
{
    assert_true(owner_holds(&r->other));
    assert_int_equal(r->now.answers, 0);
    owner_release(&r->other);
    memnet_advance(r->p, 2000);
    assert_int_equal(r->now.err, CLAVE_OK);
    assert_true(owner_holds(&r->now));
    assert_false(holds_resumed(&r->now));
    assert_true(owner_grant(&r->now).token > clave_async_grant_token(r->was));
}

TEST(when_the_session_has_expired_it_queues_anew)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin(&r);
    relay_hand_over(&r, 1000);
    memnet_advance(r.p, 15000);
    relay_resume(&r, &r.now, r.text);
    memnet_advance(r.p, 500);
    relay_assert_queued_anew(&r);
}

TEST(when_the_node_was_deleted_it_queues_anew)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin(&r);
    relay_hand_over(&r, 1000);
    assert_int_equal(memnet_delete(r.p, OTHER, clave_async_grant_node(r.was)), CLAVE_OK);
    relay_resume(&r, &r.now, r.text);
    memnet_advance(r.p, 500);
    relay_assert_queued_anew(&r);
}

TEST(the_server_may_restart_in_between)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin(&r);
    relay_hand_over(&r, 1000);
    memnet_stop_server(r.p);
    memnet_start_server(r.p);
    relay_resume(&r, &r.now, r.text);
    memnet_advance(r.p, 3000);
    assert_true(holds_resumed(&r.now));
}

/* ---- one text, two processes ----------------------------------------------------------------- */

/* The first process has marked the node, if what that says has room for a mark. */
static void relay_assert_second_closed(const clave_mutex_options *o)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin_with(&r, o);
    relay_hand_over(&r, 1000);
    relay_resume(&r, &r.now, r.text);
    memnet_settle(r.p);
    assert_true(owner_holds(&r.now));
    size_t second = relay_resume(&r, &r.copy, r.text);
    memnet_advance(r.p, 0);
    assert_int_equal(clave_async_client_state(r.p->clients[second].c), CLAVE_STATE_CLOSED);
    assert_int_equal(r.copy.err, CLAVE_ECLOSED);
    assert_int_equal(r.copy.held, 0);
    memnet_advance(r.p, 30000);
    assert_true(owner_holds(&r.now));
    assert_false(owner_holds(&r.other));
}

TEST(a_second_process_with_the_text_is_closed)
{
    char form[128];
    size_t n = clave_identity_format(&(clave_identity){.host = "h"}, form, sizeof form);
    relay_assert_second_closed(NULL);
    relay_assert_second_closed(
        &(clave_mutex_options){.size = sizeof(clave_mutex_options), .data = form, .len = n});
}

/* The first process goes on in the session when it has released, so the second begins one of its
 * own: closing it takes nothing from the first. */
TEST(a_second_process_that_comes_after_the_release_has_its_own_session)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin(&r);
    relay_hand_over(&r, 1000);
    size_t first = relay_resume(&r, &r.now, r.text);
    memnet_settle(r.p);
    owner_release(&r.now);
    owner_release(&r.other);
    owner_acquire(&r.now, OWNER_FOREVER);
    assert_true(owner_holds(&r.now));
    size_t second = relay_resume(&r, &r.copy, r.text);
    memnet_advance(r.p, 3000);
    const clave_async_client *a = r.p->clients[first].c, *b = r.p->clients[second].c;
    assert_true(clave_async_client_is_connected(b));
    assert_true(clave_async_client_session_id(a) != clave_async_client_session_id(b));
    clave_async_client_close(r.p->clients[second].c, r.p->now);
    memnet_advance(r.p, 30000);
    assert_true(owner_holds(&r.now));
}

/* What the second one asks for before it knows that it comes too late would stay in the session of
 * the first, where nobody would ever remove it. */
static void relay_assert_leaves_nothing(enum memnet_action fate, unsigned at)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    struct mutex_owner more = {.owner = 0};
    struct rwlock_owner rw = {.rw = NULL};
    relay_begin(&r);
    assert_int_equal(memnet_create(r.p, OTHER, "/m"), CLAVE_OK);
    assert_int_equal(memnet_create(r.p, OTHER, "/rw"), CLAVE_OK);
    relay_hand_over(&r, 1000);
    size_t first = relay_resume(&r, &r.now, r.text);
    memnet_settle(r.p);
    assert_true(owner_holds(&r.now));
    memnet_freeze(r.p, first, true); /* otherwise it is back at once, and the second one is not */
    size_t second = relay_resume(&r, &r.copy, r.text);
    owner_open(&more, r.p, second, "/m", NULL);
    rwlock_owner_open(&rw, r.p, second, "/rw", NULL);
    assert_int_equal(owner_begin_acquire(&more, OWNER_FOREVER), CLAVE_OK);
    assert_int_equal(owner_begin_acquire(&rw.read, OWNER_FOREVER), CLAVE_OK);
    memnet_rule(r.p, (struct memnet_rule){second, MEMNET_REPLY, MEMNET_ANY, fate, at});
    memnet_advance(r.p, 0);
    memnet_freeze(r.p, first, false);
    memnet_clear(r.p);
    memnet_advance(r.p, 30000);
    assert_int_equal(clave_async_client_state(r.p->clients[second].c), CLAVE_STATE_CLOSED);
    assert_int_equal(more.err, CLAVE_ECLOSED);
    assert_int_equal(memnet_list(r.p, OTHER, "/m", NULL, 0), 0);
    assert_int_equal(memnet_list(r.p, OTHER, "/rw", NULL, 0), 0);
    assert_true(owner_holds(&r.now));
    owner_close(&more);
    rwlock_owner_close(&rw);
}

TEST(a_second_process_leaves_nothing_in_the_session)
{
    for (unsigned at = 0; at < 4; at++) {
        relay_assert_leaves_nothing(MEMNET_HOLD, at);
        relay_assert_leaves_nothing(MEMNET_LOSE, at);
    }
}

/* Before it has learnt whose the session is, it has nothing to end. */
TEST(closing_a_second_process_ends_nothing)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin(&r);
    relay_hand_over(&r, 1000);
    size_t first = relay_resume(&r, &r.now, r.text);
    memnet_settle(r.p);
    memnet_freeze(r.p, first, true);
    size_t second = relay_resume(&r, &r.copy, r.text);
    memnet_rule(r.p, (struct memnet_rule){second, MEMNET_REPLY, OP_GET_DATA, MEMNET_HOLD, 0});
    memnet_advance(r.p, 0);
    clave_async_client_close(r.p->clients[second].c, r.p->now);
    memnet_advance(r.p, 0);
    memnet_freeze(r.p, first, false);
    memnet_advance(r.p, 30000);
    assert_true(owner_holds(&r.now));
    assert_int_equal(r.now.lost, 0);
}

/* From a session of its own it finds that node again, which is not its own. */
TEST(a_second_process_in_a_session_of_its_own_deletes_nothing)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin(&r);
    relay_hand_over(&r, 1000);
    relay_resume(&r, &r.now, r.text);
    memnet_settle(r.p);
    size_t second = relay_resume(&r, &r.copy, r.text);
    memnet_refuse(r.p, second, true);
    memnet_advance(r.p, 12000);
    assert_int_equal(clave_async_client_state(r.p->clients[second].c), CLAVE_STATE_LOST);
    memnet_refuse(r.p, second, false);
    memnet_advance(r.p, 30000);
    assert_true(owner_holds(&r.now));
    assert_int_equal(r.now.lost, 0);
}

/* Two processes that each take up a hold of their own must not both have the session. */
TEST(the_session_is_claimed_as_a_whole)
{
    for (unsigned at = 0; at < 6; at++) {
        CLOSED_BY(relay_end) struct relay r = {.p = NULL};
        struct mutex_owner more = {.owner = 0}, taken = {.owner = 0};
        relay_begin(&r);
        owner_open(&more, r.p, OLD, "/m", NULL);
        owner_acquire(&more, OWNER_FOREVER);
        relay_hand_over(&r, 1000);
        size_t first = relay_resume(&r, &r.now, r.text);
        size_t second =
            memnet_open(r.p, &(clave_client_options){.size = sizeof(clave_client_options),
                                                     .hosts = "pair:1",
                                                     .seed = 99,
                                                     .resume = r.text});
        owner_open(&taken, r.p, second, "/m", NULL);
        assert_int_equal(owner_begin_acquire(&taken, OWNER_FOREVER), CLAVE_OK);
        memnet_rule(r.p, (struct memnet_rule){first, MEMNET_REPLY, MEMNET_ANY, MEMNET_LOSE, at});
        memnet_advance(r.p, 5000);
        bool one = holds_resumed(&r.now), two = holds_resumed(&taken);
        assert_true(one != two);
        assert_int_equal(clave_async_client_state(r.p->clients[one ? second : first].c),
                         CLAVE_STATE_CLOSED);
        owner_close(&more);
        owner_close(&taken);
    }
}

/* More holds than one transaction writes to. */
TEST(many_holds_are_claimed)
{
    enum { MANY = 70 };
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    struct mutex_owner was[MANY] = {{.owner = 0}}, is[MANY] = {{.owner = 0}};
    char path[16];
    relay_begin(&r);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "/many%d", i);
        owner_open(&was[i], r.p, OLD, path, NULL);
        owner_acquire(&was[i], OWNER_FOREVER);
    }
    relay_hand_over(&r, 1000);
    size_t client = relay_resume(&r, &r.now, r.text);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "/many%d", i);
        owner_open(&is[i], r.p, client, path, NULL);
        assert_int_equal(owner_begin_acquire(&is[i], OWNER_FOREVER), CLAVE_OK);
    }
    memnet_settle(r.p);
    assert_true(holds_resumed(&r.now));
    for (int i = 0; i < MANY; i++) {
        assert_true(holds_resumed(&is[i]));
        owner_close(&was[i]);
        owner_close(&is[i]);
    }
}

struct said {
    char data[512];
    size_t len;
};

static void said_on_read(clave_async_client *c, const clave_result *res, void *arg)
{
    struct said *s = arg;
    (void)c;
    assert_int_equal(res->err, CLAVE_OK);
    assert_true(res->len < sizeof s->data);
    memcpy(s->data, res->data, res->len);
    s->len = res->len;
}

/* Without data of its own the next process leaves what the node says, but for the mark. */
TEST(the_node_does_not_grow_from_process_to_process)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    char form[128];
    size_t n = clave_identity_format(&(clave_identity){.host = "h"}, form, sizeof form), first = 0;
    relay_begin_with(
        &r, &(clave_mutex_options){.size = sizeof(clave_mutex_options), .data = form, .len = n});
    relay_hand_over(&r, 1000);
    for (int i = 0; i < 4; i++) {
        struct said said = {.len = 0};
        size_t client = relay_resume(&r, &r.now, r.text);
        memnet_settle(r.p);
        assert_true(holds_resumed(&r.now));
        assert_int_equal(clave_async_get(r.p->clients[OTHER].c, clave_async_grant_node(r.was), NULL,
                                         said_on_read, &said),
                         CLAVE_OK);
        memnet_settle(r.p);
        assert_memory_equal(said.data, form, n);
        first = i == 0 ? said.len : first;
        assert_int_equal(said.len, first);
        assert_int_equal(clave_async_client_hand_over(r.p->clients[client].c, r.p->now + 1000,
                                                      relay_on_text, &r),
                         CLAVE_OK);
        memnet_advance(r.p, 0);
        owner_close(&r.now);
    }
}

/* Nor is an old text good for anything when the hold has passed on since. */
TEST(a_text_from_before_the_last_hand_over_is_refused)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    char form[128], old[TEXT];
    size_t n = clave_identity_format(&(clave_identity){.host = "h"}, form, sizeof form);
    const clave_mutex_options o = {.size = sizeof o, .data = form, .len = n};
    relay_begin_with(&r, &o);
    relay_hand_over(&r, 1000);
    memcpy(old, r.text, sizeof old);
    for (uint64_t life = 1; life <= 2; life++) {
        size_t client =
            memnet_open(r.p, &(clave_client_options){.size = sizeof(clave_client_options),
                                                     .hosts = "pair:1",
                                                     .seed = 100 + life,
                                                     .resume = r.text});
        struct mutex_owner heir = {.owner = 0};
        owner_open(&heir, r.p, client, "/l", &o);
        owner_acquire(&heir, OWNER_FOREVER);
        assert_true(holds_resumed(&heir));
        assert_int_equal(clave_async_client_hand_over(r.p->clients[client].c, r.p->now + 1000,
                                                      relay_on_text, &r),
                         CLAVE_OK);
        memnet_advance(r.p, 0);
        assert_int_equal(r.err, CLAVE_OK);
        owner_close(&heir);
    }
    size_t late = relay_resume(&r, &r.copy, old);
    memnet_advance(r.p, 0);
    assert_int_equal(clave_async_client_state(r.p->clients[late].c), CLAVE_STATE_CLOSED);
    relay_resume(&r, &r.now, r.text);
    memnet_advance(r.p, 1000);
    assert_true(holds_resumed(&r.now));
}

/* A hold that the first process has not taken up does not let a second one in. */
TEST(a_second_process_looks_at_each_hold)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    struct mutex_owner more = {.owner = 0}, taken = {.owner = 0};
    relay_begin(&r);
    owner_open(&more, r.p, OLD, "/m", NULL);
    owner_acquire(&more, OWNER_FOREVER);
    relay_hand_over(&r, 1000);
    for (int turn = 0; turn < 2; turn++) {
        size_t client =
            memnet_open(r.p, &(clave_client_options){.size = sizeof(clave_client_options),
                                                     .hosts = "pair:1",
                                                     .seed = 9 + (uint64_t)turn,
                                                     .resume = r.text});
        struct mutex_owner *o = turn == 0 ? &taken : &r.now;
        owner_open(o, r.p, client, turn == 0 ? "/m" : "/l", NULL);
        assert_int_equal(owner_begin_acquire(o, OWNER_FOREVER), CLAVE_OK);
        memnet_advance(r.p, 0);
        assert_int_equal(clave_async_client_state(r.p->clients[client].c) == CLAVE_STATE_CLOSED,
                         turn == 1);
    }
    assert_true(holds_resumed(&taken));
    owner_close(&more);
    owner_close(&taken);
}

/* The other one may keep the session for itself: it always comes back before that is confirmed. */
TEST(a_session_that_no_server_confirms_in_time_is_given_up)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin(&r);
    relay_hand_over(&r, 1000);
    size_t heir = relay_resume(&r, &r.now, r.text);
    memnet_rule(r.p, (struct memnet_rule){heir, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    memnet_advance(r.p, 9000);
    assert_int_equal(clave_async_client_state(r.p->clients[heir].c), CLAVE_STATE_LATENT);
    memnet_advance(r.p, 2000);
    assert_int_equal(clave_async_client_state(r.p->clients[heir].c), CLAVE_STATE_LOST);
    memnet_clear(r.p);
    memnet_advance(r.p, 15000);
    assert_true(clave_async_client_is_connected(r.p->clients[heir].c));
    owner_release(&r.other);
    memnet_advance(r.p, 2000);
    assert_true(owner_holds(&r.now));
    assert_false(holds_resumed(&r.now));
}

/* Whatever is lost when both begin at the same time, at most one of them holds. */
TEST(of_two_that_begin_together_at_most_one_holds)
{
    for (unsigned at = 0; at < 12; at++) {
        CLOSED_BY(relay_end) struct relay r = {.p = NULL};
        relay_begin(&r);
        relay_hand_over(&r, 1000);
        size_t first = relay_resume(&r, &r.now, r.text);
        relay_resume(&r, &r.copy, r.text);
        memnet_rule(r.p, (struct memnet_rule){first, MEMNET_REPLY, MEMNET_ANY, MEMNET_LOSE, at});
        for (int i = 0; i < 60; i++) {
            memnet_advance(r.p, 500);
            assert_true(r.now.held + r.copy.held + r.other.held <= 1);
        }
        assert_int_equal(r.now.held + r.copy.held, 1);
    }
}

/* ---- each message is lost once --------------------------------------------------------------- */

static void relay_lose_in_hand_over(enum memnet_direction way, unsigned at)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin(&r);
    memnet_rule(r.p, (struct memnet_rule){OLD, way, MEMNET_ANY, MEMNET_LOSE, at});
    assert_int_equal(relay_hand_over(&r, 5000), CLAVE_OK);
    memnet_advance(r.p, 3000);
    memnet_clear(r.p);
    assert_int_equal(r.answers, 1);
    assert_int_equal(r.err, CLAVE_OK);
    relay_resume(&r, &r.now, r.text);
    memnet_advance(r.p, 500);
    assert_true(holds_resumed(&r.now));
}

TEST(a_connection_lost_while_handing_over_costs_nothing)
{
    for (unsigned at = 0; at < 6; at++) {
        relay_lose_in_hand_over(MEMNET_REQUEST, at);
        relay_lose_in_hand_over(MEMNET_REPLY, at);
    }
}

static void relay_lose_in_take_up(enum memnet_direction way, unsigned at, bool marked)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    char form[128];
    size_t n = clave_identity_format(&(clave_identity){.host = "h"}, form, sizeof form);
    relay_begin_with(&r, &(clave_mutex_options){.size = sizeof(clave_mutex_options),
                                                .data = marked ? form : "mine",
                                                .len = marked ? n : 4});
    relay_hand_over(&r, 5000);
    size_t heir = relay_resume(&r, &r.now, r.text);
    memnet_rule(r.p, (struct memnet_rule){heir, way, MEMNET_ANY, MEMNET_LOSE, at});
    memnet_advance(r.p, 3000);
    bool closed = clave_async_client_state(r.p->clients[heir].c) == CLAVE_STATE_CLOSED;
    /* Data without room for a mark: a lost answer to the write leaves open whose it was. */
    assert_true(closed ? !marked && r.now.held == 0 : holds_resumed(&r.now));
    assert_int_equal(r.other.held, 0);
}

TEST(a_connection_lost_while_taking_it_up_is_no_loss)
{
    for (unsigned at = 0; at < 12; at++)
        for (int marked = 0; marked < 2; marked++) {
            relay_lose_in_take_up(MEMNET_REQUEST, at, marked);
            relay_lose_in_take_up(MEMNET_REPLY, at, marked);
        }
}

/* ---- what waits, and what is left ------------------------------------------------------------ */

TEST(what_waits_gives_up_its_place)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    struct mutex_owner waits = {.owner = 0};
    relay_begin(&r);
    assert_int_equal(memnet_create(r.p, OTHER, "/m"), CLAVE_OK);
    struct mutex_owner first = {.owner = 0};
    owner_open(&first, r.p, OTHER, "/m", NULL);
    owner_acquire(&first, OWNER_FOREVER);
    owner_open(&waits, r.p, OLD, "/m", NULL);
    owner_acquire(&waits, OWNER_FOREVER);
    assert_int_equal(memnet_list(r.p, OTHER, "/m", NULL, 0), 2);
    relay_hand_over(&r, 1000);
    assert_int_equal(r.err, CLAVE_OK);
    assert_int_equal(waits.err, CLAVE_ECLOSED);
    assert_int_equal(memnet_list(r.p, OTHER, "/m", NULL, 0), 1);
    owner_close(&waits);
    owner_close(&first);
}

TEST(what_nobody_takes_up_is_given_back)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin(&r);
    relay_hand_over(&r, 1000);
    memnet_open(r.p, &(clave_client_options){.size = sizeof(clave_client_options),
                                             .hosts = "pair:1",
                                             .seed = 9,
                                             .resume = r.text});
    memnet_advance(r.p, 9000);
    assert_false(owner_holds(&r.other));
    memnet_advance(r.p, 2000);
    assert_true(owner_holds(&r.other));
}

/* A request to release is another version of the node. If what the node says cannot tell whose
 * write that was, the whole session is given up. */
static void relay_assert_asked_is_given_back(const char *data, const char *request, int64_t within)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin_with(&r, &(clave_mutex_options){.size = sizeof(clave_mutex_options),
                                                .data = data,
                                                .len = strlen(data)});
    relay_hand_over(&r, 1000);
    memnet_open(r.p, &(clave_client_options){.size = sizeof(clave_client_options),
                                             .hosts = "pair:1",
                                             .seed = 9,
                                             .resume = r.text});
    memnet_settle(r.p);
    assert_int_equal(memnet_set(r.p, OTHER, clave_async_grant_node(r.was), request), CLAVE_OK);
    memnet_advance(r.p, 9000);
    assert_false(owner_holds(&r.other));
    memnet_advance(r.p, within);
    assert_true(owner_holds(&r.other));
}

TEST(what_somebody_asked_for_and_nobody_takes_up_is_given_back)
{
    char form[128];
    clave_identity_format(&(clave_identity){.host = "h"}, form, sizeof form);
    relay_assert_asked_is_given_back(form, form, 2000);
    relay_assert_asked_is_given_back("mine", "__REVOKE__", 15000);
}

/* An acquire that ends while it takes the hold up leaves the node to the next acquire, or to
 * nobody: then it is given back. */
static void relay_assert_given_back(bool cut, int op, int64_t within, bool again)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    char form[128];
    size_t n = clave_identity_format(&(clave_identity){.host = "h"}, form, sizeof form);
    bool marked = cut; /* a late answer is enough where there is no mark */
    const clave_mutex_options o = {
        .size = sizeof o, .data = marked ? form : "mine", .len = marked ? n : 4};
    relay_begin_with(&r, &o);
    relay_hand_over(&r, 1000);
    size_t heir = memnet_open(r.p, &(clave_client_options){.size = sizeof(clave_client_options),
                                                           .hosts = "pair:1",
                                                           .seed = 9,
                                                           .resume = r.text});
    owner_open(&r.now, r.p, heir, "/l", &o);
    memnet_rule(r.p, (struct memnet_rule){heir, MEMNET_REPLY, op, MEMNET_HOLD, 0});
    assert_int_equal(owner_begin_acquire(&r.now, within), CLAVE_OK);
    memnet_advance(r.p, 0);
    memnet_refuse(r.p, heir, cut);
    memnet_advance(r.p, 500);
    assert_int_equal(r.now.answers, 1);
    assert_int_not_equal(r.now.err, CLAVE_OK);
    memnet_refuse(r.p, heir, false);
    memnet_clear(r.p);
    memnet_advance(r.p, 2000);
    assert_int_equal(r.other.held, 0);
    if (again) {
        owner_acquire(&r.now, OWNER_FOREVER);
        assert_true(holds_resumed(&r.now));
        memnet_advance(r.p, 30000);
        assert_true(owner_holds(&r.now));
        return;
    }
    memnet_advance(r.p, 25000);
    assert_true(owner_holds(&r.other));
}

TEST(what_an_acquire_began_to_take_up_is_given_back)
{
    for (int again = 0; again < 2; again++) {
        for (int cut = 0; cut < 2; cut++) {
            relay_assert_given_back(cut, OP_SET_DATA, 300, again);
            relay_assert_given_back(cut, OP_MULTI, 300, again);
        }
        relay_assert_given_back(true, OP_MULTI, OWNER_TRY, again);
    }
}

/* A copy of the text that takes up nothing must not give back what the other process holds. */
TEST(what_another_process_took_up_is_not_given_back)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin(&r);
    relay_hand_over(&r, 1000);
    relay_resume(&r, &r.now, r.text);
    memnet_settle(r.p);
    memnet_open(r.p, &(clave_client_options){.size = sizeof(clave_client_options),
                                             .hosts = "pair:1",
                                             .seed = 9,
                                             .resume = r.text});
    memnet_advance(r.p, 15000);
    assert_true(owner_holds(&r.now));
    assert_false(owner_holds(&r.other));
}

TEST(what_was_not_taken_up_is_handed_over_again)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin(&r);
    relay_hand_over(&r, 1000);
    size_t between = memnet_open(r.p, &(clave_client_options){.size = sizeof(clave_client_options),
                                                              .hosts = "pair:1",
                                                              .seed = 9,
                                                              .resume = r.text});
    memnet_settle(r.p);
    assert_int_equal(
        clave_async_client_hand_over(r.p->clients[between].c, r.p->now + 1000, relay_on_text, &r),
        CLAVE_OK);
    memnet_advance(r.p, 0);
    assert_int_equal(r.answers, 2);
    assert_int_equal(r.err, CLAVE_OK);
    relay_resume(&r, &r.now, r.text);
    memnet_settle(r.p);
    assert_true(holds_resumed(&r.now));
}

/* ---- limits and requests to release ---------------------------------------------------------- */

TEST(the_longest_hold_goes_on_counting)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin_with(
        &r, &(clave_mutex_options){.size = sizeof(clave_mutex_options), .max_hold_ms = 3000});
    memnet_advance(r.p, 1000);
    relay_hand_over(&r, 500);
    relay_resume(&r, &r.now, r.text);
    memnet_settle(r.p);
    assert_true(holds_resumed(&r.now));
    memnet_advance(r.p, 1900);
    assert_true(owner_holds(&r.now));
    memnet_advance(r.p, 200);
    assert_int_equal(r.now.lost, 1);
    assert_int_equal(r.now.why, CLAVE_EMAXHOLD);
    assert_true(owner_holds(&r.other));
}

TEST(a_request_made_in_between_is_told)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    char form[128];
    size_t n = clave_identity_format(&(clave_identity){.host = "h"}, form, sizeof form);
    const clave_mutex_options o = {.size = sizeof o, .data = form, .len = n, .revocable = true};
    relay_begin_with(&r, &o);
    relay_hand_over(&r, 1000);
    assert_int_equal(memnet_set(r.p, OTHER, clave_async_grant_node(r.was), form), CLAVE_OK);
    size_t client = memnet_open(r.p, &(clave_client_options){.size = sizeof(clave_client_options),
                                                             .hosts = "pair:1",
                                                             .seed = 9,
                                                             .resume = r.text});
    owner_open(&r.now, r.p, client, "/l", &o);
    owner_acquire(&r.now, OWNER_FOREVER);
    assert_true(holds_resumed(&r.now));
    assert_int_equal(r.now.asked, 1);
}

/* ---- what else can be held ------------------------------------------------------------------- */

static void latch_count(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    (void)l;
    ((unsigned *)arg)[ev->kind]++;
}

TEST(a_leader_goes_on_in_its_term)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    clave_async_latch *was, *is;
    clave_async_grant *before, *after;
    unsigned events[16] = {0};
    relay_begin(&r);
    clave_latch_options o = {
        .size = sizeof o, .id = "a", .event_cb = latch_count, .event_arg = events};
    assert_int_equal(clave_async_latch_new(&was, r.p->clients[OLD].c, "/e", &o), CLAVE_OK);
    assert_int_equal(clave_async_latch_start(was), CLAVE_OK);
    memnet_settle(r.p);
    assert_int_equal(clave_async_latch_grant(was, &before), CLAVE_OK);
    relay_hand_over(&r, 1000);
    assert_int_equal(r.err, CLAVE_OK);
    assert_int_equal(events[CLAVE_LATCH_NOT_LEADER], 1);
    size_t client = memnet_open(r.p, &(clave_client_options){.size = sizeof(clave_client_options),
                                                             .hosts = "pair:1",
                                                             .seed = 9,
                                                             .resume = r.text});
    assert_int_equal(clave_async_latch_new(&is, r.p->clients[client].c, "/e", &o), CLAVE_OK);
    assert_int_equal(clave_async_latch_start(is), CLAVE_OK);
    memnet_settle(r.p);
    assert_int_equal(clave_async_latch_grant(is, &after), CLAVE_OK);
    assert_true(clave_async_grant_is_resumed(after));
    assert_true(clave_async_grant_token(after) == clave_async_grant_token(before));
    clave_async_grant_free(before);
    clave_async_grant_free(after);
    clave_async_latch_free(was);
    clave_async_latch_free(is);
}

/* The candidate with the higher priority leads next, not now. */
TEST(a_leader_goes_on_before_a_candidate_with_a_higher_priority)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    clave_async_latch *was, *is, *other;
    clave_async_grant *before, *after;
    relay_begin(&r);
    clave_latch_options o = {.size = sizeof o, .id = "a", .priority = 1};
    clave_latch_options higher = {.size = sizeof o, .id = "b", .priority = 5};
    assert_int_equal(clave_async_latch_new(&was, r.p->clients[OLD].c, "/e", &o), CLAVE_OK);
    assert_int_equal(clave_async_latch_start(was), CLAVE_OK);
    memnet_settle(r.p);
    assert_int_equal(clave_async_latch_grant(was, &before), CLAVE_OK);
    assert_int_equal(clave_async_latch_new(&other, r.p->clients[OTHER].c, "/e", &higher), CLAVE_OK);
    assert_int_equal(clave_async_latch_start(other), CLAVE_OK);
    memnet_settle(r.p);
    relay_hand_over(&r, 1000);
    size_t client = relay_resume(&r, &r.now, r.text);
    assert_int_equal(clave_async_latch_new(&is, r.p->clients[client].c, "/e", &o), CLAVE_OK);
    assert_int_equal(clave_async_latch_start(is), CLAVE_OK);
    memnet_settle(r.p);
    assert_int_equal(clave_async_latch_grant(is, &after), CLAVE_OK);
    assert_true(clave_async_grant_is_resumed(after));
    assert_true(clave_async_grant_token(after) == clave_async_grant_token(before));
    clave_async_grant_free(before);
    clave_async_grant_free(after);
    clave_async_latch_free(was);
    clave_async_latch_free(is);
    clave_async_latch_free(other);
}

TEST(both_sides_of_a_read_write_lock_go_on)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    struct rwlock_owner was = {.rw = NULL}, is = {.rw = NULL};
    relay_begin(&r);
    rwlock_owner_open(&was, r.p, OLD, "/rw", NULL);
    owner_acquire(&was.write, OWNER_FOREVER);
    owner_acquire(&was.read, OWNER_FOREVER);
    assert_true(owner_holds(&was.read) && owner_holds(&was.write));
    relay_hand_over(&r, 1000);
    size_t client = memnet_open(r.p, &(clave_client_options){.size = sizeof(clave_client_options),
                                                             .hosts = "pair:1",
                                                             .seed = 9,
                                                             .resume = r.text});
    rwlock_owner_open(&is, r.p, client, "/rw", NULL);
    owner_acquire(&is.write, OWNER_FOREVER);
    owner_acquire(&is.read, OWNER_FOREVER);
    assert_true(holds_resumed(&is.read));
    assert_true(holds_resumed(&is.write));
    assert_int_equal(memnet_list(r.p, OTHER, "/rw", NULL, 0), 2);
    rwlock_owner_close(&was);
    rwlock_owner_close(&is);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void relay_assert_refused(struct relay *r, clave_err err, const char *why)
{
    const clave_async_client *c = r->p->clients[OLD].c;
    assert_int_equal(relay_hand_over(r, 1000), err);
    assert_non_null(strstr(clave_async_client_errmsg(c), why));
    assert_int_equal(r->answers, 0);
}

TEST(nothing_held_nothing_handed_over)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin(&r);
    owner_release(&r.old);
    relay_assert_refused(&r, CLAVE_ENOTHELD, "nothing is held");
    assert_int_equal(clave_async_client_hand_over(r.p->clients[OLD].c, CLAVE_NEVER, NULL, NULL),
                     CLAVE_EINVAL);
}

TEST(what_cannot_be_found_again_is_refused)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    struct mutex_owner simple = {.owner = 0};
    relay_begin(&r);
    assert_int_equal(owner_open_simple(&simple, r.p, OLD, "/s", "lock-", NULL), CLAVE_OK);
    owner_acquire(&simple, OWNER_FOREVER);
    relay_assert_refused(&r, CLAVE_EINVAL, "without protected names");
    owner_close(&simple);
    assert_true(owner_holds(&r.old));
}

/* The next holder reads the node before it counts on it. */
TEST(what_may_not_be_read_is_refused)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    const clave_acl sealed = {
        .perms = CLAVE_PERM_WRITE | CLAVE_PERM_DELETE, .scheme = "world", .id = "anyone"};
    relay_begin_with(&r, &(clave_mutex_options){
                             .size = sizeof(clave_mutex_options), .acls = &sealed, .nacls = 1});
    assert_int_equal(relay_hand_over(&r, 60000), CLAVE_OK);
    assert_int_equal(r.answers, 1);
    assert_int_equal(r.err, CLAVE_ENOAUTH);
    assert_non_null(
        strstr(clave_async_client_errmsg(r.p->clients[OLD].c), "cannot be read, which its next"));
    assert_true(owner_holds(&r.old));
}

static void count_hand_over(clave_async_client *c, clave_err err, const char *session, void *arg)
{
    (void)c;
    (void)session;
    assert_int_equal(err, CLAVE_OK);
    ++*(unsigned *)arg;
}

static void ignore_acquired(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m;
    (void)owner;
    (void)arg;
    assert_int_equal(err, CLAVE_OK);
}

TEST_CONNECTED(a_server_that_puts_reads_off_is_asked_again_after_a_pause)
{
    clave_async_mutex *m;
    unsigned answers = 0;
    char path[128];
    assert_int_equal(clave_async_mutex_new(&m, s->c, "/l", NULL), CLAVE_OK);
    assert_int_equal(clave_async_mutex_acquire(m, 0, CLAVE_NEVER, ignore_acquired, NULL), CLAVE_OK);
    fake_expect(s, OP_CREATE2);
    int32_t xid = s->q.xid;
    snprintf(path, sizeof path, "%.*s0000000000", (int)s->q.body.create.path.n,
             s->q.body.create.path.p);
    const char *names[] = {path + strlen("/l/")};
    fake_expect(s, OP_GET_CHILDREN2);
    fake_answer_to(s, xid, OP_CREATE2, CLAVE_OK,
                   &(struct wire_reply){.path = clave__jbytes(path),
                                        .stat = {.czxid = 42, .ephemeral_owner = FAKE_SESSION}});
    fake_answer(s, CLAVE_OK, &(struct wire_reply){.names = fake_names(names, 1)});
    assert_int_equal(clave_async_client_hand_over(s->c, CLAVE_NEVER, count_hand_over, &answers),
                     CLAVE_OK);
    fake_advance_to(s, s->now);
    for (int i = 0; i < 3; i++) {
        fake_expect(s, OP_GET_DATA);
        fake_answer(s, CLAVE_ETHROTTLED, NULL);
        fake_advance_to(s, s->now + 99);
        assert_true(fake_is_quiet(s));
        fake_advance_to(s, s->now + 1);
    }
    fake_expect(s, OP_GET_DATA);
    fake_answer(s, CLAVE_OK, &(struct wire_reply){.stat = {.czxid = 42}});
    assert_int_equal(answers, 1);
    clave_async_mutex_free(m);
}

TEST(when_it_is_too_late_the_old_process_goes_on)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin(&r);
    memnet_rule(r.p, (struct memnet_rule){OLD, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    assert_int_equal(relay_hand_over(&r, 300), CLAVE_OK);
    assert_int_equal(
        clave_async_client_hand_over(r.p->clients[OLD].c, CLAVE_NEVER, relay_on_text, &r),
        CLAVE_EINVAL);
    memnet_advance(r.p, 299);
    assert_int_equal(r.answers, 0);
    memnet_advance(r.p, 1);
    assert_int_equal(r.answers, 1);
    assert_int_equal(r.err, CLAVE_ETIMEDOUT);
    memnet_clear(r.p);
    memnet_settle(r.p);
    assert_true(clave_async_grant_valid_for(r.was, r.p->now, 1));
    struct mutex_owner more = {.owner = 0};
    owner_open(&more, r.p, OLD, "/m", NULL);
    owner_acquire(&more, OWNER_FOREVER);
    assert_true(owner_holds(&more));
    owner_close(&more);
    assert_int_equal(relay_hand_over(&r, 300), CLAVE_OK);
    assert_int_equal(r.err, CLAVE_OK);
}

TEST(a_session_that_ends_is_not_handed_over)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin(&r);
    memnet_refuse(r.p, OLD, true);
    assert_int_equal(relay_hand_over(&r, 60000), CLAVE_OK);
    memnet_advance(r.p, 20000);
    assert_int_equal(r.answers, 1);
    assert_int_equal(r.err, CLAVE_ELOST);
    assert_true(owner_holds(&r.other));
}

TEST(a_client_that_is_freed_hands_nothing_over)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin(&r);
    memnet_rule(r.p, (struct memnet_rule){OLD, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    assert_int_equal(relay_hand_over(&r, 60000), CLAVE_OK);
    memnet_close(r.p, OLD);
    assert_int_equal(r.answers, 1);
    assert_int_equal(r.err, CLAVE_ECLOSED);
}

/* ---- without memory -------------------------------------------------------------------------- */

/* A relay whose clients have this memory; without a waiter. */
static void relay_begin_on(struct relay *r, struct failmem *mem)
{
    r->p = memnet_on(mem, 2, 6000);
    owner_open(&r->old, r->p, OLD, "/l", NULL);
    owner_open(&r->other, r->p, OTHER, "/l", NULL);
    owner_acquire(&r->old, OWNER_FOREVER);
    assert_int_equal(clave_async_mutex_grant(r->old.m, 0, &r->was), CLAVE_OK);
}

TEST_EACH_ALLOCATION(handing_over_any_allocation_may_fail, 1)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin_on(&r, mem);
    failmem_arm(mem, which, 1);
    clave_err err = relay_hand_over(&r, 2000);
    memnet_advance(r.p, 3000);
    failmem_disarm(mem);
    assert_int_equal(r.answers, err == CLAVE_OK);
    bool handed = err == CLAVE_OK && r.err == CLAVE_OK;
    assert_true(handed || err == CLAVE_ENOMEM || r.err == CLAVE_ENOMEM);
    assert_int_equal(clave_async_grant_valid_for(r.was, r.p->now, 0), !handed);
}

TEST_EACH_ALLOCATION(taking_it_up_any_allocation_may_fail, 10)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin_on(&r, mem);
    relay_hand_over(&r, 2000);
    size_t client = memnet_open(r.p, &(clave_client_options){.size = sizeof(clave_client_options),
                                                             .hosts = "pair:1",
                                                             .seed = 9,
                                                             .mem = &mem->mem,
                                                             .resume = r.text});
    owner_open(&r.now, r.p, client, "/l", NULL);
    failmem_arm(mem, which, 1);
    clave_err err = owner_begin_acquire(&r.now, OWNER_FOREVER);
    memnet_advance(r.p, 2000);
    failmem_disarm(mem);
    if (err != CLAVE_OK || r.now.err != CLAVE_OK) {
        assert_true(err == CLAVE_ENOMEM || r.now.err == CLAVE_ENOMEM);
        owner_acquire(&r.now, OWNER_FOREVER);
    }
    memnet_advance(r.p, 1000);
    /* An acquire that fails when the node is its own already gives it up. */
    assert_true(owner_holds(&r.now));
    assert_true(holds_resumed(&r.now) || r.now.answers == 2);
}

/* ---- the text -------------------------------------------------------------------------------- */

TEST(a_damaged_text_is_refused)
{
    CLOSED_BY(relay_end) struct relay r = {.p = NULL};
    relay_begin(&r);
    relay_hand_over(&r, 1000);
    clave_client_options o = {.size = sizeof o, .hosts = "pair:1", .seed = 9, .resume = r.text};
    assert_null(clave_async_client_options_fault(&o));
    char cut[TEXT];
    for (size_t n = strlen(r.text); n-- > 0;) {
        memcpy(cut, r.text, n);
        cut[n] = '\0';
        o.resume = cut;
        assert_non_null(clave_async_client_options_fault(&o));
    }
    for (size_t i = 0; r.text[i]; i++) { /* nothing beyond the text is read */
        size_t n = strlen(r.text) + 1;
        char *exact = malloc(n);
        assert_non_null(exact);
        memcpy(exact, r.text, n);
        exact[i] = '\n';
        o.resume = exact;
        (void)clave_async_client_options_fault(&o);
        free(exact);
    }
    o.resume = r.text;
    o.resume_session_id = 1;
    assert_non_null(clave_async_client_options_fault(&o));
    o.resume_session_id = 0;
    o.hosts = "pair:1/elsewhere";
    clave_async_client *c;
    assert_int_equal(clave_async_client_new(&c, &o), CLAVE_EINVAL);
}
