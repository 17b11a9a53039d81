/* The locks of a server's tree, as the engine's own client sees them come and go. */
#include "clave/async/mutex.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "lib/webrig.h"
#include "web/observe/observe.h"
#include "web/web_internal.h"

static size_t open_client(struct webrig *r)
{
    clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
    o.hosts = "pair:1";
    o.seed = 7 + r->net->o.clients;
    o.session_timeout_ms = 10000;
    size_t n = memnet_open(r->net, &o);
    webrig_settle(r);
    return n;
}

static void create(struct webrig *r, size_t client, const char *path, clave_create_mode mode)
{
    assert_int_equal(clave_async_create(r->net->clients[client].c, path, "x", 1,
                                        &(clave_create_options){
                                            .size = sizeof(clave_create_options), .mode = mode},
                                        NULL, NULL),
                     CLAVE_OK);
    webrig_settle(r);
}

static void on_acquired(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m;
    (void)owner;
    (void)err;
    (void)arg;
}

static void get_member(struct webrig *r, const char *target, const char *key, const char *value)
{
    CLOSED_BY(webrig_ended) struct webrig_call *c = webrig_request(r, "GET", target, NULL, NULL);
    assert_true(c->answered);
    const char *found = webrig_member(c, key);
    if (!found || strcmp(found, value) != 0)
        fail_msg("%s: %s is %s, not %s: %s", target, key, found, value, webrig_body(c));
}

TEST(locks_of_the_server_are_seen_as_they_change)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    size_t one = open_client(r), two = open_client(r);
    clave_async_mutex *a, *b;
    create(r, one, "/jobs", CLAVE_PERSISTENT);
    assert_int_equal(clave_async_mutex_new(&a, r->net->clients[one].c, "/jobs/a", NULL), 0);
    assert_int_equal(clave_async_mutex_new(&b, r->net->clients[two].c, "/jobs/a", NULL), 0);
    assert_int_equal(clave_async_mutex_acquire(a, 0, CLAVE_NEVER, on_acquired, NULL), 0);
    webrig_settle(r);
    get_member(r, "/v1/locks/jobs/a", "nholders", "1"); /* which starts the feed */
    get_member(r, "/v1/locks/jobs/a", "nwaiters", "0");
    assert_int_equal(clave_async_mutex_acquire(b, 0, CLAVE_NEVER, on_acquired, NULL), 0);
    webrig_settle(r);
    get_member(r, "/v1/locks/jobs/a", "nwaiters", "1");
    assert_int_equal(clave_async_mutex_release(a, 0, NULL, NULL), 0);
    webrig_settle(r);
    get_member(r, "/v1/locks/jobs/a", "nwaiters", "0");
    clave_async_mutex_free(a);
    clave_async_mutex_free(b);
    webrig_settle(r);
    struct webrig_call *c = webrig_request(r, "GET", "/v1/locks", NULL, NULL);
    assert_non_null(strstr(webrig_body(c), "\"locks\": []"));
    webrig_end(c);
    get_member(r, "/v1/history?limit=1", "what", "ended");
    memnet_close(r->net, one);
    memnet_close(r->net, two);
}

/* What changed while the engine was cut off becomes events; until then it says so. */
TEST(a_lost_connection_is_made_up_for)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    size_t one = open_client(r);
    create(r, one, "/a", CLAVE_PERSISTENT);
    create(r, one, "/a/x-lock-", CLAVE_EPHEMERAL_SEQUENTIAL);
    get_member(r, "/v1/locks", "current", "true");
    struct webrig_call *stream = webrig_request(r, "GET", "/v1/events", NULL, NULL);
    memnet_refuse(r->net, 0, true);
    create(r, one, "/a/x-lock-", CLAVE_EPHEMERAL_SEQUENTIAL);
    get_member(r, "/v1/locks", "current", "false");
    get_member(r, "/v1/locks/a", "nwaiters", "0");
    memnet_refuse(r->net, 0, false);
    webrig_advance(r, 3000);
    get_member(r, "/v1/locks", "current", "true");
    get_member(r, "/v1/locks/a", "nwaiters", "1");
    assert_non_null(strstr(webrig_body(stream), "\"nwaiters\": 1"));
    webrig_end(stream);
    memnet_close(r->net, one);
}

/* A session of the engine's that ends, and one of a holder's. */
TEST(sessions_that_end_are_seen)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    size_t one = open_client(r);
    create(r, one, "/a", CLAVE_PERSISTENT);
    create(r, one, "/a/x-lock-", CLAVE_EPHEMERAL_SEQUENTIAL);
    get_member(r, "/v1/locks/a", "nholders", "1");
    memnet_kill_session(r->net, 0);
    webrig_advance(r, 3000);
    get_member(r, "/v1/locks/a", "nholders", "1");
    memnet_kill_session(r->net, one);
    webrig_advance(r, 3000);
    struct webrig_call *c = webrig_request(r, "GET", "/v1/locks/a", NULL, NULL);
    assert_int_equal(c->status, 404);
    webrig_end(c);
    memnet_close(r->net, one);
}

/* Two sessions of the gate and one lock: the second one's stream has its way to the lock, and
 * history knows why the first one's hold ended. */
static struct webrig_call *claim(struct webrig *r, char secret[512], const char *path)
{
    char body[256];
    struct webrig_call *c = webrig_request(r, "POST", "/v1/sessions", NULL, "{\"ttl_ms\": 10000}");
    snprintf(secret, 512, "Clave-Session: %s", webrig_member(c, "secret"));
    snprintf(body, sizeof body, "{\"session\": \"%s\", \"path\": \"%s\", \"kind\": \"lock\"}",
             webrig_member(c, "id"), path);
    webrig_end(c);
    char headers[600];
    snprintf(headers, sizeof headers, "%s\nContent-Type: application/json", secret);
    return webrig_request(r, "POST", "/v1/claims", headers, body);
}

TEST(claims_of_the_gate_are_told_and_have_causes)
{
    char first[512], second[512], target[128];
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    webrig_end(webrig_request(r, "GET", "/v1/locks", NULL, NULL));
    struct webrig_call *held = claim(r, first, "/jobs/a"), *waits = claim(r, second, "/jobs/a");
    snprintf(target, sizeof target, "%s", webrig_header(held, "Location"));
    webrig_advance(r, 100);
    struct webrig_call *stream = webrig_request(r, "GET", "/v1/events?claims=1", second, NULL);
    assert_int_equal(stream->status, 200);
    webrig_end(webrig_request(r, "DELETE", target, first, NULL));
    webrig_advance(r, 200);
    assert_non_null(strstr(webrig_body(stream), "event: held\n"));
    assert_null(strstr(webrig_body(stream), "event: lost\n"));
    struct webrig_call *c = webrig_request(r, "GET", "/v1/history?path=/jobs/a", NULL, NULL);
    assert_non_null(strstr(webrig_body(c), "\"what\": \"ended\", \"cause\": \"released\""));
    webrig_end(c);
    /* Told in the words of /v1/claims. */
    char name[1][96];
    assert_int_equal(memnet_list(r->net, 0, "/jobs/a", name, 1), 1);
    snprintf(target, sizeof target, "/jobs/a/%s", name[0]);
    assert_int_equal(memnet_delete(r->net, 0, target), CLAVE_OK);
    webrig_advance(r, 200);
    assert_non_null(strstr(webrig_body(stream), "event: lost\n"));
    assert_non_null(strstr(webrig_body(stream), "\"cause\": \"deleted\""));
    webrig_end(stream);
    webrig_end(held);
    webrig_end(waits);
}

/* Nothing is known of the tree, and nothing will be before a server answers. */
TEST(without_a_server_nobody_waits_for_the_tree)
{
    static const char *const targets[] = {"/v1/locks",     "/v1/locks/a", "/v1/deadlocks",
                                          "/v1/elections", "/v1/history", "/v1/events"};
    enum { NTARGETS = sizeof targets / sizeof *targets };
    struct webrig_call *calls[NTARGETS], *c;
    struct webrig *r = webrig_new(NULL);
    memnet_refuse(r->net, 0, true);
    webrig_advance(r, 10);
    for (size_t i = 0; i < NTARGETS; i++)
        calls[i] = webrig_request(r, "GET", targets[i], NULL, NULL);
    webrig_advance(r, 2000);
    for (size_t i = 0; i < NTARGETS; i++) {
        assert_int_equal(calls[i]->status, 503);
        assert_string_equal(webrig_member(calls[i], "code"), "EUNREACHABLE");
        assert_non_null(
            strstr(webrig_member(calls[i], "detail"), "not connected to a ZooKeeper server: "));
        webrig_end(calls[i]);
    }
    c = webrig_request(r, "GET", "/v1/locks", NULL, NULL); /* one that waits for its return */
    memnet_refuse(r->net, 0, false);
    webrig_advance(r, 1500);
    assert_int_equal(c->status, 200);
    webrig_end(c);
    webrig_free(r);
}

/* An operator's order is the cause, not the other places that the owner's session still has. */
TEST(what_an_operator_breaks_is_broken)
{
    static const char order[] = "{\"node\": \"x-lock-0000000000\", \"force\": true}";
    static const struct web_access owner_only = {.owner_uid = 7};
    CLOSED_BY(webrig_freed)
    struct webrig *r = webrig_new(&(struct webrig_options){.access = &owner_only});
    r->peer = (struct web_peer){.is_unix = true, .uid = 7, .address = "unix"};
    size_t one = open_client(r);
    for (const char *const *lock = (const char *const[]){"/a", "/b", NULL}; *lock; lock++) {
        char node[32];
        snprintf(node, sizeof node, "%s/x-lock-", *lock);
        create(r, one, *lock, CLAVE_PERSISTENT);
        create(r, one, node, CLAVE_EPHEMERAL_SEQUENTIAL);
    }
    get_member(r, "/v1/locks/a", "nholders", "1"); /* which starts the feed */
    struct webrig_call *c = webrig_request(r, "POST", "/v1/locks/a/break", NULL, order);
    assert_int_equal(c->status, 200);
    webrig_end(c);
    webrig_advance(r, 200);
    get_member(r, "/v1/history?limit=1", "what", "ended");
    get_member(r, "/v1/history?limit=1", "cause", "broken");
    memnet_close(r->net, one);
}
