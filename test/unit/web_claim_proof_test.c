/* web_claim_proof_test.c - nothing is called held that another session may hold: a session that is
 * used at two gates of one key. */
#include "lib/claim_scene.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

static const uint8_t key[32] = {42};

/* One session, two gates, and the lock that it holds at both. */
struct scene {
    struct webrig *r;
    struct user u;
    const char *body; /* of its claim */
    char id[32];      /* of the session */
    char again[96];   /* Idempotency-Key */
};

static void scene_begin(struct scene *s, const char *body)
{
    s->r = webrig_new(&(struct webrig_options){.session_key = key});
    s->body = body;
    struct webrig_call *c =
        webrig_request(s->r, "POST", "/v1/sessions", NULL, "{\"ttl_ms\": 8000}");
    user_expects(c, 201);
    snprintf(s->id, sizeof s->id, "%s", webrig_member(c, "id"));
    snprintf(s->u.secret, sizeof s->u.secret, "%s", webrig_member(c, "secret"));
    webrig_end(c);
    c = user_sends(s->r, &s->u, "POST", -1, NULL, body);
    user_expects(c, 201);
    user_takes_claim(&s->u, c);
    snprintf(s->again, sizeof s->again, "Idempotency-Key: %s", s->u.claim);
    webrig_second(s->r);
}

static struct webrig_call *scene_asks_session(struct scene *s, const char *method, const char *what)
{
    char target[128], header[160];
    snprintf(target, sizeof target, "/v1/sessions/%s%s", s->id, what);
    snprintf(header, sizeof header, "Clave-Session: %s", s->u.secret);
    return webrig_request(s->r, method, target, header, NULL);
}

/* What ends the hold at the other gate. */
static void scene_deletes_claim(struct scene *s)
{
    struct webrig_call *c = user_sends(s->r, &s->u, "POST", 5, s->again, s->body);
    webrig_advance(s->r, 4000);
    user_expects(c, 201);
    webrig_end(c);
    c = user_sends(s->r, &s->u, "DELETE", -1, NULL, NULL);
    user_expects(c, 204);
    webrig_end(c);
}

static void scene_deletes_session(struct scene *s)
{
    CLOSED_BY(webrig_ended) struct webrig_call *c = scene_asks_session(s, "DELETE", "");
    user_expects(c, 204);
}

/* What may say that it is held. */
static struct webrig_call *gets(struct scene *s)
{
    return user_sends(s->r, &s->u, "GET", -1, NULL, NULL);
}

static struct webrig_call *tries(struct scene *s)
{
    return user_sends(s->r, &s->u, "GET", 0, NULL, NULL);
}

static struct webrig_call *polls(struct scene *s)
{
    return user_sends(s->r, &s->u, "GET", 30, NULL, NULL);
}

static struct webrig_call *repeats(struct scene *s)
{
    return user_sends(s->r, &s->u, "POST", -1, s->again, s->body);
}

static struct webrig_call *renews(struct scene *s)
{
    return scene_asks_session(s, "POST", "/renew");
}

static struct webrig_call *looks(struct scene *s)
{
    return scene_asks_session(s, "GET", "");
}

static struct webrig_call *lists(struct scene *s)
{
    struct web_peer was = s->r->peer;
    s->r->peer = (struct web_peer){.is_unix = true, .address = "unix"};
    struct webrig_call *c = webrig_request(s->r, "GET", "/v1/sessions", NULL, NULL);
    s->r->peer = was;
    return c;
}

static struct webrig_call *publishes(struct scene *s)
{
    char header[160];
    snprintf(header, sizeof header, "Clave-Session: %s\nContent-Type: application/octet-stream",
             s->u.secret);
    return webrig_request(s->r, "PUT", "/v1/elections/e/value", header, "mine");
}

struct row {
    const char *name;
    struct webrig_call *(*ask)(struct scene *s);
    unsigned after_claim, after_session; /* the answer's status, when that is gone */
};

static const struct row rows[] = {
    {"GET", gets, 410, 410},
    {"GET, wait=0", tries, 410, 410},
    {"GET, wait=30", polls, 410, 410},
    {"POST again", repeats, 410, 410},
    {"renew", renews, 200, 410},
    {"GET of the session", looks, 200, 410},
    {"GET of all sessions", lists, 200, 200},
    {"PUT of a leader's value", publishes, 410, 410},
};

static const char *const bodies[] = {
    "{\"path\": \"/l\"}",
    "{\"path\": \"/l\", \"kind\": \"read\"}",
    "{\"path\": \"/l\", \"kind\": \"write\"}",
    "{\"path\": \"/e\", \"kind\": \"election\"}",
    "{\"path\": \"/s\", \"kind\": \"semaphore\", \"limit\": 1}",
};

/* The same claim of another session is granted at once. */
static void another_takes_it(struct scene *s, struct user *other)
{
    user_enter(s->r, other);
    struct webrig_call *c = user_sends(s->r, other, "POST", 0, NULL, s->body);
    user_expects(c, 201);
    user_takes_claim(other, c);
}

static void nothing_is_held_that_was_given_back_elsewhere(const struct row *row, const char *body,
                                                          void (*end)(struct scene *s))
{
    struct scene s;
    struct user other;
    scene_begin(&s, body);
    end(&s);
    another_takes_it(&s, &other);
    webrig_other(s.r);
    struct webrig_call *c = row->ask(&s);
    for (int i = 0; i < 20 && !c->answered; i++)
        webrig_advance(s.r, 100);
    unsigned status = end == scene_deletes_claim ? row->after_claim : row->after_session;
    if (!c->answered || c->status != status || strstr(webrig_body(c), "\"held\""))
        fail_msg("%s of %s: %u %s", row->name, body, c->status, webrig_body(c));
    webrig_end(c);
    webrig_free(s.r);
}

TEST(no_answer_says_held_of_what_was_given_back_at_another_gate)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t b = 0; b < sizeof bodies / sizeof *bodies; b++) {
            nothing_is_held_that_was_given_back_elsewhere(&rows[i], bodies[b], scene_deletes_claim);
            nothing_is_held_that_was_given_back_elsewhere(&rows[i], bodies[b],
                                                          scene_deletes_session);
        }
    }
}

/* ---- a session that is over ------------------------------------------------------------------ */

/* Nobody has it, but the gate cannot know before it has asked. */
TEST(a_try_of_a_session_that_is_over_is_gone)
{
    static const int waits[] = {0, -1, 30};
    for (size_t b = 0; b < sizeof bodies / sizeof *bodies; b++) {
        for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
            struct scene s;
            scene_begin(&s, bodies[b]);
            scene_deletes_session(&s);
            webrig_other(s.r);
            struct webrig_call *c = user_sends(s.r, &s.u, "POST", waits[i], NULL, bodies[b]);
            webrig_advance(s.r, 2000);
            if (!c->answered || c->status != 410)
                fail_msg("%s, wait=%d: %u %s", bodies[b], waits[i], c->status, webrig_body(c));
            webrig_end(c);
            webrig_free(s.r);
        }
    }
}

/* ---- a place that is given back elsewhere ---------------------------------------------------- */

static size_t places(const struct webrig *r, size_t kind)
{
    static const char *const dirs[] = {"/l", "/l", "/l", "/e", "/s/leases"};
    return (size_t)memnet_list(r->net, 0, dirs[kind], NULL, 0);
}

/* The first gate is used for something else after that, and does not take the place anew. */
TEST(a_place_that_was_given_up_elsewhere_stays_given_up)
{
    for (size_t b = 0; b < sizeof bodies / sizeof *bodies; b++) {
        const char *body = b == 1 ? bodies[2] : bodies[b]; /* a reader does not wait for a reader */
        struct scene s;
        struct user waiter;
        scene_begin(&s, bodies[b]);
        webrig_other(s.r);
        user_enter(s.r, &waiter);
        struct webrig_call *c = user_sends(s.r, &waiter, "POST", -1, NULL, body);
        user_expects(c, 202);
        user_takes_claim(&waiter, c);
        snprintf(s.again, sizeof s.again, "Idempotency-Key: %s", waiter.claim);
        assert_int_equal(places(s.r, b), 2);
        webrig_other(s.r);
        c = user_sends(s.r, &waiter, "POST", -1, s.again, body);
        webrig_advance(s.r, 1000);
        user_expects(c, 202);
        webrig_end(c);
        c = user_sends(s.r, &waiter, "DELETE", -1, NULL, NULL);
        webrig_advance(s.r, 1000);
        user_expects(c, 204);
        webrig_end(c);
        assert_int_equal(places(s.r, b), 1);
        webrig_other(s.r);
        c = user_sends(s.r, &waiter, "POST", -1, NULL, "{\"path\": \"/else\"}");
        webrig_advance(s.r, 3000);
        user_expects(c, 201);
        webrig_end(c);
        if (places(s.r, b) != 1)
            fail_msg("%s: %zu places", body, places(s.r, b));
        c = user_sends(s.r, &waiter, "GET", -1, NULL, NULL);
        webrig_advance(s.r, 1000);
        user_expects(c, 410);
        assert_string_equal(webrig_member(c, "cause"), "released");
        webrig_end(c);
        webrig_free(s.r);
    }
}

/* The answer to its create is lost, and its client goes to the other gate with the same key. What
 * the first gate still has to clean up is held there by now. */
TEST(a_try_that_goes_on_elsewhere_is_not_cleaned_up)
{
    static const int waits[] = {0, -1, 30};
    enum { CLIENT = 1 };
    for (size_t b = 0; b < sizeof bodies / sizeof *bodies; b++) {
        for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
            CLOSED_BY(webrig_freed)
            struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
            struct user u;
            user_enter(r, &u);
            webrig_second(r);
            webrig_other(r);
            memnet_rule(r->net,
                        (struct memnet_rule){CLIENT, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
            struct webrig_call *c =
                user_sends(r, &u, "POST", waits[i], "Idempotency-Key: one", bodies[b]);
            memnet_refuse(r->net, CLIENT, true);
            memnet_clear(r->net);
            webrig_advance(r, 50);
            webrig_end(c); /* it hangs up */
            webrig_other(r);
            c = user_sends(r, &u, "POST", waits[i], "Idempotency-Key: one", bodies[b]);
            webrig_advance(r, 2000);
            user_expects(c, 201);
            user_takes_claim(&u, c);
            memnet_refuse(r->net, CLIENT, false);
            webrig_other(r);
            c = user_sends(r, &u, "POST", -1, NULL, "{\"path\": \"/else\"}");
            webrig_advance(r, 1000);
            user_expects(c, 201);
            webrig_end(c);
            webrig_other(r);
            c = user_sends(r, &u, "GET", -1, NULL, NULL);
            webrig_advance(r, 1000);
            if (!c->answered || c->status != 200)
                fail_msg("%s, wait=%d: %u %s", bodies[b], waits[i], c->status, webrig_body(c));
            webrig_end(c);
        }
    }
}

/* ---- a grant after a wait -------------------------------------------------------------------- */

/* Deletes the first node of the queue. */
static void first_is_deleted(struct webrig *r, const char *dir, size_t of)
{
    char names[8][96], path[128];
    size_t n = memnet_list(r->net, 0, dir, names, 8), first = 0;
    assert_int_equal(n, of);
    for (size_t i = 1; i < n; i++)
        if (strcmp(strrchr(names[i], '-'), strrchr(names[first], '-')) < 0)
            first = i;
    snprintf(path, sizeof path, "%s/%s", dir, names[first]);
    assert_int_equal(memnet_delete(r->net, 0, path), CLAVE_OK);
}

/* Its turn comes, and its node is deleted before the servers have heard more of it. */
TEST(a_wait_ends_in_held_only_when_that_is_proved)
{
    enum { WAITER = 2 };
    for (size_t b = 0; b < 4; b++) {
        CLOSED_BY(webrig_freed)
        struct webrig *r = webrig_new(&(struct webrig_options){.session_key = key});
        const char *dir = b == 3 ? "/e" : "/l";
        struct user holder, waiter;
        char header[160];
        user_enter(r, &holder);
        user_enter(r, &waiter);
        struct webrig_call *c = user_sends(r, &holder, "POST", -1, NULL, bodies[b]);
        user_expects(c, 201);
        webrig_end(c);
        const char *body = b == 1 ? bodies[2] : bodies[b]; /* a reader does not wait for a reader */
        snprintf(header, sizeof header, "Clave-Session: %s", waiter.secret);
        CLOSED_BY(webrig_ended)
        struct webrig_call *events = webrig_request(r, "GET", "/v1/events?claims=1", header, NULL);
        CLOSED_BY(webrig_ended)
        struct webrig_call *poll = user_sends(r, &waiter, "POST", 30, NULL, body);
        assert_false(poll->answered);
        memnet_rule(r->net, (struct memnet_rule){WAITER, MEMNET_REQUEST, OP_MULTI, MEMNET_HOLD, 0});
        first_is_deleted(r, dir, 2);
        assert_false(poll->answered);
        first_is_deleted(r, dir, 1);
        memnet_clear(r->net);
        webrig_advance(r, 1000);
        user_expects(poll, 410);
        assert_string_equal(webrig_member(poll, "cause"), "deleted");
        assert_non_null(strstr(webrig_body(events), "event: lost"));
        assert_null(strstr(webrig_body(events), "event: held"));
    }
}

/* ---- what proofs cost ------------------------------------------------------------------------ */

TEST(requests_share_proofs)
{
    enum { AT_ONCE = 20, LOOKS = 6, CLIENT = 1 }; /* the first rows */
    struct scene s;
    struct webrig_call *calls[AT_ONCE];
    scene_begin(&s, bodies[0]);
    webrig_other(s.r);
    memnet_reset_counts(s.r->net);
    memnet_rule(s.r->net, (struct memnet_rule){CLIENT, MEMNET_REPLY, OP_MULTI, MEMNET_HOLD, 0});
    for (size_t i = 0; i < AT_ONCE; i++)
        calls[i] = rows[i % LOOKS].ask(&s);
    assert_int_equal(s.r->net->clients[CLIENT].requests[OP_MULTI], 1);
    memnet_clear(s.r->net);
    webrig_settle(s.r);
    for (size_t i = 0; i < AT_ONCE; i++) {
        user_expects(calls[i],
                     calls[i]->q.method[0] == 'P' && calls[i]->q.body_length > 0 ? 201 : 200);
        webrig_end(calls[i]);
    }
    assert_int_equal(s.r->net->clients[CLIENT].requests[OP_MULTI], 2);
    webrig_free(s.r);
}

/* Without a key that others may have, what the gate remembers is proof. */
/* The checks of a transaction end with the one that is refused: a node of the first claim that its
 * session may not read proves nothing of the second. */
TEST(a_check_that_is_refused_proves_nothing_of_the_next)
{
    static const char unreadable[] =
        "{\"acl\": [{\"perms\": \"cdwa\", \"scheme\": \"world\", \"id\": \"anyone\"}]}";
    static const char one[] = "{\"path\": \"/l\"}", two[] = "{\"path\": \"/m\"}";
    struct scene s;
    char node[128];
    scene_begin(&s, one);
    struct user first = s.u;
    webrig_other(s.r);
    struct webrig_call *c = user_sends(s.r, &s.u, "GET", -1, NULL, NULL);
    snprintf(node, sizeof node, "/v1/znodes%s?acl", webrig_member(c, "node"));
    user_expects(c, 200);
    webrig_end(c);
    user_takes_claim(&s.u, user_sends(s.r, &s.u, "POST", -1, NULL, two));
    struct web_peer peer = s.r->peer;
    s.r->peer = (struct web_peer){.is_unix = true, .address = "unix"}; /* who may write */
    user_expects(webrig_request(s.r, "PUT", node, NULL, unreadable), 200);
    s.r->peer = peer;
    user_expects(user_sends(s.r, &first, "GET", -1, NULL, NULL), 200);
    user_expects(user_sends(s.r, &s.u, "GET", -1, NULL, NULL), 200);
    webrig_other(s.r);
    s.body = two;
    snprintf(s.again, sizeof s.again, "Idempotency-Key: %s", s.u.claim);
    scene_deletes_claim(&s);
    webrig_other(s.r);
    user_expects(user_sends(s.r, &s.u, "GET", -1, NULL, NULL), 410);
    user_expects(user_sends(s.r, &first, "GET", -1, NULL, NULL), 200);
    webrig_free(s.r);
}

TEST(a_gate_that_is_alone_proves_nothing_for_a_look)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct user u;
    user_enter(r, &u);
    user_takes_claim(&u, user_sends(r, &u, "POST", -1, NULL, LOCK));
    memnet_reset_counts(r->net);
    struct webrig_call *c = user_sends(r, &u, "GET", -1, NULL, NULL);
    user_expects(c, 200);
    webrig_end(c);
    assert_int_equal(r->net->clients[1].requests[OP_MULTI], 0);
}

/* ---- the session between two gates ----------------------------------------------------------- */

static size_t attached(const struct webrig *r)
{
    size_t n = 0;
    for (size_t i = 0; i < MEMNET_CLIENTS; i++)
        for (size_t k = 0; k < r->net->clients[i].nstates; k++)
            n += r->net->clients[i].states[k] == CLAVE_STATE_CONNECTED ||
                 r->net->clients[i].states[k] == CLAVE_STATE_RECONNECTED;
    return n;
}

/* The first renewal at the other gate takes the session there; the poll is answered that it waits,
 * and keeps its place. Nothing goes back and forth after that. */
TEST(a_poll_here_and_renewals_there_leave_each_other_alone)
{
    struct scene s;
    struct user holder;
    struct webrig *r;
    scene_begin(&s, "{\"path\": \"/mine\"}");
    r = s.r;
    webrig_other(r);
    user_enter(r, &holder);
    struct webrig_call *c = user_sends(r, &holder, "POST", -1, NULL, LOCK);
    user_expects(c, 201);
    user_takes_claim(&holder, c);
    struct webrig_call *poll = user_sends(r, &s.u, "POST", 60, NULL, LOCK);
    assert_false(poll->answered);
    webrig_other(r);
    size_t before = 0;
    for (int i = 0; i < 10; i++) {
        c = renews(&s);
        webrig_advance(r, 500);
        user_expects(c, 200);
        assert_true(atoi(webrig_member(c, "valid_ms")) > 4000);
        webrig_end(c);
        webrig_other(r); /* the holder goes on at its gate */
        c = user_sends(r, &holder, "GET", -1, NULL, NULL);
        user_expects(c, 200);
        webrig_end(c);
        webrig_other(r);
        if (i == 0) {
            user_expects(poll, 202);
            before = attached(r);
        }
        webrig_advance(r, 1500);
    }
    assert_int_equal(attached(r), before);
    user_takes_claim(&s.u, poll);
    assert_int_equal(memnet_list(r->net, 0, "/l", NULL, 0), 2);
    /* Asked for again here, it is granted in its turn. */
    webrig_other(r);
    snprintf(s.again, sizeof s.again, "Idempotency-Key: %s", s.u.claim);
    poll = user_sends(r, &s.u, "POST", 30, s.again, LOCK);
    webrig_advance(r, 1000);
    c = user_sends(r, &holder, "DELETE", -1, NULL, NULL);
    user_expects(c, 204);
    webrig_end(c);
    webrig_advance(r, 1000);
    user_expects(poll, 201);
    webrig_end(poll);
    webrig_free(r);
}
