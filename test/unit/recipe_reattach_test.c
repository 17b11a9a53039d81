/* A hold that another process goes on with: the session is handed on, then its node is taken up. At
 * no moment do both processes count on it. */
#include "base/path.h"
#include "lib/async_grants.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "recipe/reattach.h"

enum { OLD, OTHER, NEW, UUID_AT = 3 /* after "_c_" */ };

struct relay {
    struct memnet *p;
    struct mutex_owner old, other;
    clave_async_grant *was; /* what the old process had */
    clave_client_options key;
    struct queue_place place;
    clave_async_mutex *m; /* of the new one */
    unsigned answers;
    clave_err err;
};

/* OLD holds /l, and OTHER waits for it. */
static void relay_begin(struct relay *r)
{
    r->p = memnet_new(
        &(struct memnet_options){.clients = 2, .container_check_ms = 1000, .ensemble = true});
    owner_open(&r->old, r->p, OLD, "/l", NULL);
    owner_open(&r->other, r->p, OTHER, "/l", NULL);
    owner_acquire(&r->old, OWNER_FOREVER);
    owner_acquire(&r->other, OWNER_FOREVER);
    const clave_async_client *c = r->p->clients[OLD].c;
    r->key = (clave_client_options){.size = sizeof r->key,
                                    .hosts = "pair:1",
                                    .session_timeout_ms = 10000,
                                    .seed = 77,
                                    .resume_session_id = clave_async_client_session_id(c)};
    memcpy(r->key.resume_passwd, clave_async_client_session_passwd(c), sizeof r->key.resume_passwd);
}

/* From here on nothing of the old process counts on the hold. */
static void relay_hand_on(struct relay *r)
{
    assert_int_equal(clave_async_mutex_grant(r->old.m, 0, &r->was), CLAVE_OK);
    assert_true(clave_async_grant_valid_for(r->was, r->p->now, 1));
    clave_async_client_abandon(r->p->clients[OLD].c, r->p->now);
    assert_true(clave_async_grant_deadline(r->was) == INT64_MIN);
    assert_false(clave_async_grant_valid_for(r->was, r->p->now, 0));
    memnet_settle(r->p);
}

static void relay_on_verdict(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct relay *r = arg;
    (void)m;
    (void)owner;
    r->answers++;
    r->err = err;
}

/* The new process, as far as its first request. */
static void relay_take_up(struct relay *r, const char *node)
{
    struct memnet_client *c = &r->p->clients[NEW];
    const char *name = clave__path_name(node);
    r->place = (struct queue_place){.at = name, .final = true};
    memcpy(r->place.uuid, name + UUID_AT, CLAVE_UUID_TEXT);
    assert_int_equal(clave_async_client_new(&c->c, &r->key), CLAVE_OK);
    r->p->o.clients++;
    clave_async_client_start(c->c, r->p->now);
    assert_int_equal(clave_async_mutex_new(&r->m, c->c, "/l", NULL), CLAVE_OK);
    clave__mutex_set_place(r->m, &r->place);
    assert_int_equal(clave_async_mutex_acquire(r->m, 0, CLAVE_NEVER, relay_on_verdict, r),
                     CLAVE_OK);
}

static void relay_end(struct relay *r)
{
    clave_async_grant_free(r->was);
    clave_async_mutex_free(r->m);
    owner_close(&r->old);
    owner_close(&r->other);
    memnet_settle(r->p);
    memnet_free(r->p);
}

TEST(the_hold_goes_on_with_its_token)
{
    CLOSED_BY(relay_end) struct relay r = {.err = CLAVE_EINVAL};
    clave_async_grant *now;
    relay_begin(&r);
    relay_hand_on(&r);
    relay_take_up(&r, clave_async_grant_node(r.was));
    memnet_settle(r.p);
    assert_int_equal(r.answers, 1);
    assert_int_equal(r.err, CLAVE_OK);
    assert_int_equal(clave_async_mutex_grant(r.m, 0, &now), CLAVE_OK);
    assert_true(clave_async_grant_token(now) == clave_async_grant_token(r.was));
    assert_true(clave_async_grant_session_id(now) == clave_async_grant_session_id(r.was));
    assert_string_equal(clave_async_grant_node(now), clave_async_grant_node(r.was));
    assert_true(clave_async_grant_valid_for(now, r.p->now, 1));
    assert_false(clave_async_grant_valid_for(r.was, r.p->now, 0));
    assert_false(owner_holds(&r.other));
    clave_async_grant_free(now);
    assert_int_equal(clave_async_mutex_release(r.m, 0, NULL, NULL), CLAVE_OK);
    memnet_settle(r.p);
    assert_true(owner_holds(&r.other));
}

/* An answer to the handshake proves nothing: a member that is cut off gives it, too. */
TEST(it_does_not_count_before_the_leader_has_answered)
{
    CLOSED_BY(relay_end) struct relay r = {.err = CLAVE_EINVAL};
    relay_begin(&r);
    relay_hand_on(&r);
    relay_take_up(&r, clave_async_grant_node(r.was));
    memnet_rule(r.p, (struct memnet_rule){NEW, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
    memnet_settle(r.p);
    assert_true(clave_async_client_hold_deadline(r.p->clients[NEW].c) == INT64_MIN);
    assert_int_equal(r.answers, 0);
    memnet_clear(r.p);
    memnet_settle(r.p);
    assert_int_equal(r.err, CLAVE_OK);
}

TEST(a_hold_that_has_ended_meanwhile_is_not_queued_for_anew)
{
    CLOSED_BY(relay_end) struct relay r = {.err = CLAVE_EINVAL};
    relay_begin(&r);
    relay_hand_on(&r);
    assert_int_equal(
        clave_async_delete(r.p->clients[OTHER].c, clave_async_grant_node(r.was), -1, NULL, NULL),
        CLAVE_OK);
    memnet_settle(r.p);
    assert_true(owner_holds(&r.other));
    relay_take_up(&r, clave_async_grant_node(r.was));
    memnet_advance(r.p, 500);
    assert_int_equal(r.answers, 1);
    assert_int_equal(r.err, CLAVE_ENONODE);
    assert_true(owner_holds(&r.other));
}

/* The process that was to go on never came. */
TEST(nobody_takes_it_up)
{
    CLOSED_BY(relay_end) struct relay r = {.err = CLAVE_EINVAL};
    relay_begin(&r);
    relay_hand_on(&r);
    assert_false(owner_holds(&r.other));
    memnet_advance(r.p, 15000);
    assert_true(owner_holds(&r.other));
    relay_take_up(&r, clave_async_grant_node(r.was));
    memnet_settle(r.p);
    assert_int_not_equal(r.err, CLAVE_OK);
    assert_true(owner_holds(&r.other));
}
