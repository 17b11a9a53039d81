/* What reading has found in the engine, each as a short timeline of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/engine.h"
#include "lib/failmem.h"
#include "lib/script.h"

enum { T = SCRIPT_TIMEOUT };

/* ---- the hold deadline --------------------------------------------------------------- */

static void ignore(struct hold *h)
{
    (void)h;
}

static void hold(struct script *s, struct hold *h, const char *path)
{
    *h = (struct hold){.path = path, .on_missing = ignore, .on_settled = ignore};
    clave__client_hold(s->c, h);
}

/* The heartbeat was made and its bytes never left. It goes out on the next connection, which
 * was left at once: its time was counted from the first attempt. */
static void a_heartbeat_that_never_left_has_its_time_on_the_next_connection(void **state)
{
    (void)state;
    struct script s;
    struct hold h;
    script_open(&s, NULL);
    script_connect(&s, false);
    hold(&s, &h, "/l/a");
    script_at(&s, clave_async_client_deadline(s.c));
    assert_true(clave_async_client_wants(s.c) & CLAVE_WANT_WRITE);
    script_hang_up(&s); /* and it is not taken */
    s.now += T / 6;
    script_dial(&s);
    script_shake(&s, SCRIPT_SESSION, T, false);
    script_at(&s, s.now);
    assert_true(clave_async_client_is_connected(s.c));
    assert_true(clave_async_client_deadline(s.c) > s.now);
    script_expect(&s, OP_MULTI);
    clave__client_unhold(s.c, &h);
    script_close(&s);
}

/* The leader still counts by the timeout that it agreed on. */
static void a_read_only_server_cannot_prolong_a_hold(void **state)
{
    (void)state;
    struct script s;
    clave_client_options o = {.read_only = true, .margin_ms = 1000};
    script_open(&s, &o);
    script_connect(&s, false);
    int64_t deadline = clave_async_client_hold_deadline(s.c);
    script_hang_up(&s);
    script_dial(&s);
    script_shake(&s, SCRIPT_SESSION, 2 * T, true);
    script_config(&s, false);
    assert_int_equal(clave_async_client_hold_deadline(s.c), deadline);
    script_hang_up(&s);
    script_dial(&s);
    script_shake(&s, SCRIPT_SESSION, T / 2, true);
    script_config(&s, false);
    assert_true(clave_async_client_hold_deadline(s.c) <= deadline);
    script_close(&s);
}

/* Members may differ in the longest timeout that they agree to, while they are configured anew for
 * example. Who answers a handshake may have been deposed: the leader that counts knows nothing of a
 * longer timeout before something is committed on that connection. */
static void a_longer_timeout_counts_when_something_is_committed(void **state)
{
    (void)state;
    struct script s;
    struct hold h;
    clave_client_options o = {.margin_ms = 1000};
    script_open(&s, &o);
    script_connect(&s, false);
    hold(&s, &h, "/l/a");
    int64_t deadline = clave_async_client_hold_deadline(s.c);
    script_hang_up(&s);
    script_at(&s, s.now + 10);
    int64_t sent = s.now;
    script_dial(&s);
    script_shake(&s, SCRIPT_SESSION, 2 * T, false);
    assert_int_equal(clave_async_client_hold_deadline(s.c), deadline);
    script_expect(&s, OP_MULTI);
    script_answer(&s, CLAVE_ENONODE, NULL);
    assert_int_equal(clave_async_client_hold_deadline(s.c), sent + 2 * T - 1000);
    clave__client_unhold(s.c, &h);
    script_close(&s);
}

/* A read-only server answers at once and confirms nothing: another one may. */
static void a_holder_does_not_stay_with_a_read_only_server(void **state)
{
    (void)state;
    struct script s;
    struct hold h;
    clave_client_options o = {.hosts = "a:1,b:2", .read_only = true};
    script_open(&s, &o);
    script_connect(&s, false);
    hold(&s, &h, "/l/a");
    script_hang_up(&s);
    script_dial(&s);
    script_shake(&s, SCRIPT_SESSION, T, true);
    script_config(&s, false);
    script_at(&s, clave_async_client_deadline(s.c));
    script_expect(&s, OP_MULTI);
    script_answer(&s, CLAVE_ENOTREADONLY, NULL);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_HANGUP);
    script_hang_up(&s);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_DIAL);
    assert_string_equal(clave_async_client_target(s.c).host, "a");
    clave__client_unhold(s.c, &h);
    script_close(&s);
}

struct glance {
    struct script *s;
    unsigned times;
    clave_err err;
    clave_state state;
    int64_t deadline;
};

static void look(clave_async_client *c, const clave_result *res, void *arg)
{
    struct glance *g = arg;
    g->times++;
    g->err = res->err;
    g->state = clave_async_client_state(c);
    g->deadline = clave_async_client_hold_deadline(c);
}

/* An answer that says "expired" is none of those that keep a session. */
static void an_expired_session_promises_nothing_to_its_last_callback(void **state)
{
    (void)state;
    struct script s;
    struct glance g = {0}, next = {0};
    script_open(&s, NULL);
    script_connect(&s, true);
    assert_int_equal(clave_async_delete(s.c, "/a", -1, look, &g), CLAVE_OK);
    assert_int_equal(clave_async_delete(s.c, "/b", -1, look, &next), CLAVE_OK);
    script_expect(&s, OP_DELETE);
    script_answer(&s, CLAVE_EEXPIRED, NULL);
    assert_int_equal(g.times, 1);
    assert_int_equal(g.err, CLAVE_EEXPIRED);
    assert_int_equal(g.state, CLAVE_STATE_LOST);
    assert_true(g.deadline == INT64_MIN);
    assert_int_equal(next.times, 1);
    assert_int_equal(next.err, CLAVE_ECONNLOSS);
    script_close(&s);
}

/* From closeSession on the server may end the session at any moment, whoever hears of it when;
 * also when the connection goes before the answer. */
static void nothing_is_promised_behind_close(void **state)
{
    (void)state;
    struct script s;
    script_open(&s, NULL);
    script_connect(&s, true);
    assert_int_equal(clave_async_delete(s.c, "/a", -1, NULL, NULL), CLAVE_OK);
    assert_true(clave_async_client_hold_deadline(s.c) > s.now);
    clave_async_client_close(s.c, s.now);
    assert_true(clave_async_client_hold_deadline(s.c) == INT64_MIN);
    script_expect(&s, OP_DELETE);
    script_expect(&s, OP_CLOSE_SESSION);
    script_hang_up(&s);
    script_dial(&s);
    assert_true(clave_async_client_hold_deadline(s.c) == INT64_MIN);
    script_close(&s);
}

/* In an ensemble a proof is a relay interval old when it comes. */
static void options_that_leave_nothing_are_refused(void **state)
{
    (void)state;
    clave_async_client *c;
    clave_client_options o = {.size = sizeof o, .hosts = "h", .seed = 7, .margin_ms = 6000};
    o.relay_interval_ms = 4000;
    assert_int_equal(clave_async_client_new(&c, &o), CLAVE_EINVAL);
    o.relay_interval_ms = 3000;
    assert_int_equal(clave_async_client_new(&c, &o), CLAVE_OK);
    clave_async_client_free(c);
}

/* ---- watches ------------------------------------------------------------------------- */

struct seen {
    clave_async_watch *w;
    unsigned events;
    clave_event_type type;
    char path[64];
    const char *next;   /* what to watch then */
    struct seen *other; /* and this one too */
    unsigned refused;
};

static void arm(clave_async_client *c, struct seen *seen, const char *path)
{
    assert_int_equal(clave_async_get(c, path, seen->w, NULL, NULL), CLAVE_OK);
}

static void on_event(clave_async_client *c, clave_async_watch *w, const clave_event *ev, void *arg)
{
    struct seen *seen = arg;
    assert_false(clave_async_watch_is_armed(w));
    seen->events++;
    seen->type = ev->type;
    if (seen->next)
        arm(c, seen, seen->next);
    if (seen->other)
        seen->refused += clave_async_get(c, "/other", seen->other->w, NULL, NULL) == CLAVE_EINVAL;
    snprintf(seen->path, sizeof seen->path, "%s", ev->path);
}

static void watch(struct script *s, struct seen *seen)
{
    *seen = (struct seen){0};
    assert_int_equal(clave_async_watch_new(&seen->w, s->c, on_event, seen), CLAVE_OK);
}

static void answer_get(struct script *s)
{
    struct wire_reply m = {.data = JBYTES_NULL};
    script_expect(s, OP_GET_DATA);
    script_answer(s, CLAVE_OK, &m);
}

/* The path of an event lay in a buffer that a longer path, watched by the callback, moved. */
static void the_path_of_an_event_outlives_what_its_callback_asks_for(void **state)
{
    (void)state;
    struct script s;
    struct seen seen;
    char longer[2000] = "/";
    memset(longer + 1, 'x', sizeof longer - 2);
    script_open(&s, NULL);
    script_connect(&s, true);
    watch(&s, &seen);
    arm(s.c, &seen, "/a");
    answer_get(&s);
    seen.next = longer;
    script_event(&s, EVENT_DATA_CHANGED, "/a");
    assert_int_equal(seen.events, 1);
    assert_string_equal(seen.path, "/a");
    seen.next = NULL;
    answer_get(&s);
    script_event(&s, EVENT_DATA_CHANGED, longer);
    assert_int_equal(seen.events, 2);
    clave_async_watch_free(seen.w);
    script_close(&s);
}

/* One change is the event of two watches, and the first callback wants to use both anew. The
 * second has its event still to come: it would have been taken for one of its next path. */
static void a_watch_is_in_use_until_its_event_was_told(void **state)
{
    (void)state;
    struct script s;
    struct seen a, b;
    script_open(&s, NULL);
    script_connect(&s, true);
    watch(&s, &a);
    watch(&s, &b);
    for (int i = 0; i < 2; i++) {
        arm(s.c, i ? &b : &a, "/a");
        answer_get(&s);
    }
    a.other = &b;
    b.other = &a;
    script_event(&s, EVENT_DATA_CHANGED, "/a");
    assert_int_equal(a.events + b.events, 2);
    assert_int_equal(a.refused + b.refused, 1);
    assert_string_equal(a.path, "/a");
    assert_string_equal(b.path, "/a");
    clave_async_watch_free(a.w);
    clave_async_watch_free(b.w);
    script_close(&s);
}

/* A request that fails leaves its watch idle, and no memory for its answer is a failure. */
static void a_listing_without_memory_leaves_its_watch_idle(void **state)
{
    (void)state;
    static const char *const names[] = {"one", "two", "three"};
    struct failmem mem;
    struct script s;
    struct seen seen;
    struct outcome got = {0};
    struct wire_reply m = {.names = script_names(names, 3)};
    failmem_init(&mem);
    clave_client_options o = {.mem = &mem.mem};
    script_open(&s, &o);
    script_connect(&s, true);
    watch(&s, &seen);
    assert_int_equal(clave_async_children(s.c, "/a", seen.w, script_outcome, &got), CLAVE_OK);
    script_expect(&s, OP_GET_CHILDREN2);
    failmem_arm(&mem, 1, 1);
    script_answer(&s, CLAVE_OK, &m);
    assert_int_equal(got.times, 1);
    assert_int_equal(got.err, CLAVE_ENOMEM);
    assert_false(clave_async_watch_is_armed(seen.w));
    assert_int_equal(script_expect(&s, OP_REMOVE_WATCHES)->body.typed.type, WATCHER_CHILDREN);
    clave_async_watch_free(seen.w);
    script_close(&s);
    assert_int_equal(mem.live, 0);
}

/* ---- callbacks ----------------------------------------------------------------------- */

struct nest {
    struct script *s;
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
static void a_tick_inside_a_callback_runs_no_other(void **state)
{
    (void)state;
    struct script s;
    struct nest n = {.s = &s};
    script_open(&s, NULL);
    script_connect(&s, true);
    clave__timer_init(&n.timer, on_timer);
    clave__client_timer_set(s.c, &n.timer, s.now + 10);
    assert_int_equal(clave_async_delete(s.c, "/a", -1, tick_inside, &n), CLAVE_OK);
    script_expect(&s, OP_DELETE);
    s.now += 10;
    script_answer(&s, CLAVE_OK, NULL);
    assert_true(clave_async_client_deadline(s.c) <= s.now);
    script_at(&s, s.now);
    assert_int_equal(n.times, 1);
    script_close(&s);
}

/* ---- requests ------------------------------------------------------------------------ */

/* NULL is the open ACL, whatever count is left beside it; in composed creates too. */
static void no_acls_are_none_whatever_their_count(void **state)
{
    (void)state;
    struct script s;
    clave_create_options o = {.size = sizeof o, .nacls = 3};
    script_open(&s, NULL);
    script_connect(&s, true);
    for (unsigned flags = 0; flags <= CLAVE_CREATE_PROTECTED; flags += CLAVE_CREATE_PROTECTED) {
        o.flags = flags;
        assert_int_equal(clave_async_create(s.c, "/a", NULL, 0, &o, NULL, NULL), CLAVE_OK);
        assert_int_equal(script_expect(&s, OP_CREATE2)->body.create.acl.count, 1);
    }
    script_close(&s);
}

/* Lengths that no frame has are refused before anything looks at the bytes. */
static void more_than_a_frame_is_too_big(void **state)
{
    (void)state;
    size_t len = (size_t)UINT32_MAX + 2; /* 1, when it is cut */
    struct script s;
    clave_op op = {.kind = CLAVE_OP_SET, .path = "/a", .data = "x", .len = len, .version = -1};
    script_open(&s, NULL);
    script_connect(&s, true);
    assert_int_equal(clave_async_create(s.c, "/a", "x", len, NULL, NULL, NULL), CLAVE_ETOOBIG);
    assert_int_equal(clave_async_set(s.c, "/a", "x", len, -1, NULL, NULL), CLAVE_ETOOBIG);
    assert_int_equal(clave_async_multi(s.c, &op, 1, NULL, NULL), CLAVE_ETOOBIG);
    op.kind = CLAVE_OP_CREATE;
    assert_int_equal(clave_async_multi(s.c, &op, 1, NULL, NULL), CLAVE_ETOOBIG);
    assert_true(script_is_quiet(&s));
    script_close(&s);
}

/* The root has no parent to list: that was told as the create's fault. */
static void a_create_of_the_root_is_answered_by_the_server(void **state)
{
    (void)state;
    struct script s;
    struct outcome got = {0};
    clave_create_options o = {.size = sizeof o, .with_names = true};
    script_open(&s, NULL);
    script_connect(&s, true);
    assert_int_equal(clave_async_create(s.c, "/", NULL, 0, &o, script_outcome, &got), CLAVE_OK);
    assert_null(strstr(clave_async_client_errmsg(s.c), "not valid"));
    int32_t xid = script_expect(&s, OP_CREATE2)->xid;
    script_answer_to(&s, xid, OP_CREATE2, CLAVE_ENODEEXISTS, NULL);
    script_expect(&s, OP_GET_CHILDREN2);
    script_answer(&s, CLAVE_OK, &(struct wire_reply){.names = script_names(NULL, 0)});
    assert_int_equal(got.err, CLAVE_ENODEEXISTS);
    script_close(&s);
}

/* A reply over the limit: the read that asked for it would ask again, on every connection to
 * come, and each would end the same way. */
static void a_read_whose_reply_is_too_big_fails_at_once(void **state)
{
    (void)state;
    struct script s;
    struct outcome got = {0}, next = {0};
    clave_client_options o = {.max_frame = 1000};
    script_open(&s, &o);
    script_connect(&s, true);
    assert_int_equal(clave_async_children(s.c, "/huge", NULL, script_outcome, &got), CLAVE_OK);
    assert_int_equal(clave_async_exists(s.c, "/x", NULL, script_outcome, &next), CLAVE_OK);
    script_expect(&s, OP_GET_CHILDREN2);
    script_feed(&s, "\0\0\x10\0", 4);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_HANGUP);
    assert_int_equal(got.times, 1);
    assert_int_equal(got.err, CLAVE_ETOOBIG);
    script_hang_up(&s);
    script_dial(&s);
    script_shake(&s, SCRIPT_SESSION, T, false);
    script_expect(&s, OP_EXISTS); /* that one was not at fault */
    assert_int_equal(next.times, 0);
    script_close(&s);
}

/* The same for the search of a create whose answer was lost: it would go on for ever. */
static void a_search_that_cannot_be_answered_ends(void **state)
{
    (void)state;
    struct script s;
    struct outcome got = {0};
    clave_create_options create = {.size = sizeof create, .flags = CLAVE_CREATE_PROTECTED};
    clave_client_options o = {.max_frame = 1000};
    script_open(&s, &o);
    script_connect(&s, true);
    assert_int_equal(clave_async_create(s.c, "/a", NULL, 0, &create, script_outcome, &got),
                     CLAVE_OK);
    script_expect(&s, OP_CREATE2);
    script_hang_up(&s);
    script_dial(&s);
    script_shake(&s, SCRIPT_SESSION, T, false);
    script_expect(&s, OP_MULTI);
    script_answer_checks(&s, CLAVE_OK);
    script_expect(&s, OP_GET_CHILDREN2);
    script_feed(&s, "\0\0\x10\0", 4);
    assert_int_equal(got.times, 1);
    assert_int_equal(got.err, CLAVE_ECONNLOSS); /* it may be there, and we cannot see it */
    script_close(&s);
}

/* What one huge request or reply took is given back. */
static void one_huge_message_does_not_stay(void **state)
{
    (void)state;
    enum { HUGE = 900000, PIECE = 100000, FEW = 128 * 1024 };
    static char huge[HUGE];
    struct script s;
    struct outcome got = {0};
    struct wire_reply m = {.data = clave__jbytes_n(huge, HUGE)};
    script_open(&s, NULL);
    script_connect(&s, true);
    assert_int_equal(clave_async_set(s.c, "/a", huge, HUGE, -1, script_outcome, &got), CLAVE_OK);
    script_expect(&s, OP_SET_DATA);
    script_answer(&s, CLAVE_OK, &m);
    assert_int_equal(clave_async_get(s.c, "/a", NULL, script_outcome, &got), CLAVE_OK);
    script_expect(&s, OP_GET_DATA);
    s.piece = PIECE;
    script_answer(&s, CLAVE_OK, &m);
    assert_int_equal(got.times, 2);
    assert_int_equal(got.len, HUGE);
    assert_true(s.c->encode.cap <= FEW);
    assert_true(s.c->link.out.cap <= FEW);
    assert_true(s.c->link.in.held.cap <= FEW);
    script_close(&s);
}

/* ---- servers ------------------------------------------------------------------------- */

/* 0 means "no session", also to us: it could not be lost, nor owned by. */
static void a_session_without_a_number_is_none(void **state)
{
    (void)state;
    struct script s;
    script_open(&s, NULL);
    script_dial(&s);
    script_shake(&s, 0, T, false);
    assert_true(script_no_state(&s));
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_HANGUP);
    script_close(&s);
}

/* A server whose bytes make no sense is asked again after a pause, not at once for ever. */
static void a_server_that_answers_nonsense_is_not_of_use(void **state)
{
    (void)state;
    struct script s;
    script_open(&s, NULL);
    script_connect(&s, true);
    assert_int_equal(clave_async_get(s.c, "/x", NULL, NULL, NULL), CLAVE_OK);
    script_expect(&s, OP_GET_DATA);
    script_answer(&s, CLAVE_OK, NULL); /* without a body */
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_HANGUP);
    script_hang_up(&s);
    assert_int_equal(clave_async_client_wants(s.c), 0);
    assert_true(clave_async_client_deadline(s.c) > s.now);
    script_close(&s);
}

/* A server that refuses an identity has answered: the next connection, without it, need not
 * wait, and a client with several such identities is not slowed down by each. */
static void a_server_that_refuses_an_identity_is_of_use(void **state)
{
    (void)state;
    struct script s;
    struct outcome got = {0};
    script_open(&s, NULL);
    assert_int_equal(clave_async_add_auth(s.c, "none", "a:b", 3, script_outcome, &got), CLAVE_OK);
    script_dial(&s);
    script_shake(&s, SCRIPT_SESSION, T, false);
    script_expect(&s, OP_AUTH);
    script_answer_to(&s, XID_AUTH, OP_AUTH, CLAVE_EAUTHFAILED, NULL);
    assert_int_equal(got.err, CLAVE_EAUTHFAILED);
    script_hang_up(&s);
    assert_int_equal(clave_async_client_wants(s.c), CLAVE_WANT_DIAL);
    script_close(&s);
}

/* ---- the end ------------------------------------------------------------------------- */

/* A create whose answer is lost, and no memory for the search but its sync: then the client
 * closes, the failure of that sync is told behind CLOSED, and no time passes any more. */
static void a_search_that_breaks_off_while_the_client_closes_is_told(void **state)
{
    (void)state;
    struct failmem mem;
    struct script s;
    struct outcome got = {0};
    clave_create_options create = {.size = sizeof create, .flags = CLAVE_CREATE_PROTECTED};
    failmem_init(&mem);
    clave_client_options o = {.mem = &mem.mem};
    script_open(&s, &o);
    script_connect(&s, true);
    assert_int_equal(clave_async_create(s.c, "/a", NULL, 0, &create, script_outcome, &got),
                     CLAVE_OK);
    script_expect(&s, OP_CREATE2);
    failmem_arm(&mem, 3, 1);
    script_hang_up(&s);
    assert_true(mem.failed);
    script_dial(&s);
    script_shake(&s, SCRIPT_SESSION, T, false);
    script_expect(&s, OP_MULTI);
    clave_async_client_close(s.c, s.now);
    script_hang_up(&s);
    script_at(&s, clave_async_client_deadline(s.c));
    script_dial(&s);
    script_shake(&s, 0, 0, false);
    assert_int_equal(clave_async_client_state(s.c), CLAVE_STATE_CLOSED);
    assert_int_equal(got.times, 1);
    script_close(&s);
    assert_int_equal(mem.live, 0);
}

/* Closed while the handshake is out, and the connection goes: there may be a session whose
 * number nobody knows. Dialling on would make another one, only to end it. */
static void a_client_closed_before_it_had_a_session_asks_for_none(void **state)
{
    (void)state;
    struct script s;
    script_open(&s, NULL);
    script_dial(&s);
    clave_async_client_close(s.c, s.now);
    script_hang_up(&s);
    assert_int_equal(clave_async_client_state(s.c), CLAVE_STATE_CLOSED);
    assert_int_equal(clave_async_client_wants(s.c), 0);
    script_close(&s);

    script_open(&s, NULL); /* or it does not answer */
    script_dial(&s);
    clave_async_client_close(s.c, s.now);
    script_at(&s, clave_async_client_deadline(s.c));
    script_hang_up(&s);
    assert_int_equal(clave_async_client_state(s.c), CLAVE_STATE_CLOSED);
    script_close(&s);

    script_open(&s, NULL); /* or says no */
    script_dial(&s);
    clave_async_client_close(s.c, s.now);
    script_shake(&s, 0, 0, false);
    script_hang_up(&s);
    assert_int_equal(clave_async_client_state(s.c), CLAVE_STATE_CLOSED);
    script_close(&s);
}

/* Requests that were submitted before the close go first, one that waits to be sent again
 * among them. */
static void close_waits_for_a_read_that_is_sent_again(void **state)
{
    (void)state;
    struct script s;
    struct outcome got = {0};
    clave_client_options o = {.reads = {.kind = CLAVE_RETRY_N_TIMES, .base_ms = 500, .times = 3}};
    script_open(&s, &o);
    script_connect(&s, true);
    assert_int_equal(clave_async_exists(s.c, "/x", NULL, script_outcome, &got), CLAVE_OK);
    script_expect(&s, OP_EXISTS);
    script_hang_up(&s);
    script_dial(&s);
    script_shake(&s, SCRIPT_SESSION, T, false);
    script_config(&s, true);
    clave_async_client_close(s.c, s.now);
    assert_true(script_is_quiet(&s));
    script_at(&s, s.now + 500);
    script_expect(&s, OP_EXISTS);
    script_answer(&s, CLAVE_ENONODE, NULL);
    assert_int_equal(got.err, CLAVE_ENONODE);
    script_expect(&s, OP_CLOSE_SESSION);
    script_answer(&s, CLAVE_OK, NULL);
    assert_int_equal(clave_async_client_state(s.c), CLAVE_STATE_CLOSED);
    script_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_heartbeat_that_never_left_has_its_time_on_the_next_connection),
        cmocka_unit_test(a_read_only_server_cannot_prolong_a_hold),
        cmocka_unit_test(a_longer_timeout_counts_when_something_is_committed),
        cmocka_unit_test(a_holder_does_not_stay_with_a_read_only_server),
        cmocka_unit_test(an_expired_session_promises_nothing_to_its_last_callback),
        cmocka_unit_test(nothing_is_promised_behind_close),
        cmocka_unit_test(options_that_leave_nothing_are_refused),
        cmocka_unit_test(the_path_of_an_event_outlives_what_its_callback_asks_for),
        cmocka_unit_test(a_watch_is_in_use_until_its_event_was_told),
        cmocka_unit_test(a_listing_without_memory_leaves_its_watch_idle),
        cmocka_unit_test(a_tick_inside_a_callback_runs_no_other),
        cmocka_unit_test(no_acls_are_none_whatever_their_count),
        cmocka_unit_test(more_than_a_frame_is_too_big),
        cmocka_unit_test(a_create_of_the_root_is_answered_by_the_server),
        cmocka_unit_test(a_read_whose_reply_is_too_big_fails_at_once),
        cmocka_unit_test(a_search_that_cannot_be_answered_ends),
        cmocka_unit_test(one_huge_message_does_not_stay),
        cmocka_unit_test(a_session_without_a_number_is_none),
        cmocka_unit_test(a_server_that_answers_nonsense_is_not_of_use),
        cmocka_unit_test(a_server_that_refuses_an_identity_is_of_use),
        cmocka_unit_test(a_search_that_breaks_off_while_the_client_closes_is_told),
        cmocka_unit_test(a_client_closed_before_it_had_a_session_asks_for_none),
        cmocka_unit_test(close_waits_for_a_read_that_is_sent_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
