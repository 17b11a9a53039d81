/* web_guard_test.c - Clave-Guard and ?token=: only the token of a place that holds is one, whatever
 * lock it is; guard, token, page and `clave locks` (lock_listing.h) agree on that; and what
 * is said when an answer is lost before anything was done. */
#include <inttypes.h>

#include "lib/failmem.h"
#include "lib/unit.h"
#include "lib/webrig_answer.h"

#define OCTETS "Content-Type: application/octet-stream"
#define UUID "01234567-89ab-4def-8123-456789abcdef"
#define HEX "0123456789abcdef0123456789abcdef"
#define DELAYS "clave/1\nhost=a\ndelays=1\n"

enum { OWN = 2 }; /* the engine's client, after those of the test */

static void rig_admit(struct webrig *r)
{
    static const struct web_grant all[] = {{WEB_ADMIN, "/"}};
    static const struct web_user users[] = {{.name = "ann", .uid = 7, .grants = all, .ngrants = 1}};
    static const struct web_access access = {.users = users, .nusers = 1, .owner_uid = -1};
    clave__web_set_access(r->web, &access);
    r->peer.is_unix = true;
    r->peer.uid = 7;
}

static struct webrig *rig_new(void)
{
    struct webrig_options o = {.net = {.clients = OWN}};
    struct webrig *r = webrig_new(&o);
    rig_admit(r);
    return r;
}

static void create(struct webrig *r, const char *target, const char *data)
{
    webrig_done(r, "POST", target, OCTETS, data, 201);
}

static int64_t last_czxid;

static void on_created(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    (void)arg;
    assert_int_equal(res->err, CLAVE_OK);
    last_czxid = res->stat->czxid;
}

/* A place of this client's session; the number follows the path, unless that is a UUID.
 * Returns the token. */
static int64_t queue_of(struct webrig *r, int client, const char *path, const char *data)
{
    bool whole = path[strlen(path) - 1] == 'f';
    clave_create_options o = CLAVE_CREATE_OPTIONS_INIT;
    o.mode = whole ? CLAVE_EPHEMERAL : CLAVE_EPHEMERAL_SEQUENTIAL;
    o.flags = CLAVE_CREATE_PARENTS;
    assert_int_equal(clave_async_create(r->net->clients[client].c, path, data, strlen(data), &o,
                                        on_created, NULL),
                     CLAVE_OK);
    webrig_settle(r);
    return last_czxid;
}

static int64_t queue(struct webrig *r, const char *path)
{
    return queue_of(r, 0, path, "");
}

/* ---- who holds ------------------------------------------------------------------------------ */

struct listed {
    int client;
    const char *path, *data;
    bool holds;
};

enum { MARK_NONE, MARK_LOST, MARK_FIRST }; /* of a holder that was lost; of the first place */

static const struct row {
    const char *lock;
    int mark;
    struct listed places[5];
} rows[] = {
    {"/l", MARK_NONE, {{0, "/l/_c_" UUID "-lock-", "", true}, {1, "/l/lock-", "", false}}},
    /* Curator's nodes, and those of earlier versions, do not say that they have a delay. */
    {"/l", MARK_LOST, {{0, "/l/_c_" UUID "-lock-", "", true}, {1, "/l/lock-", "", false}}},
    {"/l", MARK_LOST, {{0, "/l/_c_" UUID "-lock-", DELAYS, false}, {1, "/l/lock-", "", false}}},
    {"/l", MARK_FIRST, {{0, "/l/_c_" UUID "-lock-", DELAYS, true}, {1, "/l/lock-", "", false}}},
    {"/r",
     MARK_NONE,
     {{0, "/r/-__READ__", "", true},
      {1, "/r/-__READ__", "", true},
      {0, "/r/-__WRIT__", "", false},
      {1, "/r/-__READ__", "", false}}},
    {"/r", MARK_LOST, {{0, "/r/-__WRIT__", DELAYS, false}, {1, "/r/-__READ__", "", false}}},
    {"/e", MARK_NONE, {{0, "/e/_c_" UUID "-latch-", "a", true}, {1, "/e/latch-", "b", false}}},
    {"/k",
     MARK_NONE,
     {{0, "/k/-lock-", "", true},
      {1, "/k/" HEX "__lock__", "", false},
      {0, "/k/-lock-", "", false}}},
    {"/k",
     MARK_NONE,
     {{0, "/k/" HEX "__rlock__", "", true},
      {1, "/k/" HEX "__rlock__", "", true},
      {0, "/k/" HEX "__lock__", "", false}}},
    /* A semaphore: the newest lease waits for room, and its session for it. */
    {"/s",
     MARK_NONE,
     {{0, "/s/leases/-lease-", "clave/1\nlimit=1\n", true},
      {1, "/s/locks/-lock-", "clave/1\nlimit=1\n", false},
      {1, "/s/leases/-lease-", "clave/1\nlimit=1\n", false}}},
    {"/s",
     MARK_NONE,
     {{0, "/s/leases/-lease-", "clave/1\nlimit=2\n", true},
      {1, "/s/locks/-lock-", "clave/1\nlimit=2\n", false},
      {1, "/s/leases/-lease-", "clave/1\nlimit=2\n", true}}},
    /* Those who waited for it have lost their places among those who acquire. */
    {"/s",
     MARK_NONE,
     {{0, "/s/leases/-lease-", "clave/1\nlimit=1\n", true},
      {1, "/s/leases/-lease-", "clave/1\nlimit=1\n", false}}},
    {"/s",
     MARK_NONE,
     {{0, "/s/leases/-lease-", "clave/1\nlimit=2\n", true},
      {1, "/s/leases/-lease-", "clave/1\nlimit=2\n", true},
      {0, "/s/leases/-lease-", "clave/1\nlimit=2\n", false},
      {1, "/s/leases/-lease-", "clave/1\nlimit=2\n", false}}},
    /* Curator's leases say no limit. */
    {"/s",
     MARK_NONE,
     {{0, "/s/leases/-lease-", "", true},
      {1, "/s/locks/-lock-", "", false},
      {1, "/s/leases/-lease-", "", false}}},
    {"/s", MARK_NONE, {{0, "/s/leases/-lease-", "", true}, {1, "/s/leases/-lease-", "", true}}},
    {"/z",
     MARK_NONE,
     {{0, "/z/" HEX, "", true},
      {0, "/z-__lock__/" HEX "__lock__", "", false},
      {1, "/z/a123456789abcdef0123456789abcdef", "", true}}},
};

static void put_guarded(struct webrig *r, const char *path, int64_t token, unsigned status)
{
    char headers[200];
    snprintf(headers, sizeof headers, "Clave-Guard: %s;token=%" PRId64, path, token);
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = webrig_answer(r, "PUT", "/v1/znodes/a", headers, "x", status);
    if (status == 409 || status == 410) {
        snprintf(headers, sizeof headers, "token %" PRId64, token);
        assert_non_null(strstr(webrig_body(c), headers));
        assert_string_equal(webrig_member(c, "path"), path);
    }
}

static void ask_token(struct webrig *r, const char *path, int64_t token, bool holds)
{
    char target[200];
    snprintf(target, sizeof target, "/v1/locks%s?token=%" PRId64, path, token);
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = webrig_answer(r, "GET", target, NULL, NULL, 200);
    assert_non_null(strstr(webrig_body(c), holds ? "\"holds\": true" : "\"holds\": false"));
}

static void ask_page(struct webrig *r, const char *path, int64_t token, bool holds)
{
    char target[200], text[64];
    snprintf(target, sizeof target, "/v1/locks%s", path);
    snprintf(text, sizeof text, "\"token\": \"%" PRId64 "\"", token);
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = webrig_answer(r, "GET", target, NULL, NULL, 200);
    const char *waiters = strstr(webrig_body(c), "\"waiters\""), *at = strstr(webrig_body(c), text);
    assert_non_null(waiters);
    assert_int_equal(at && at < waiters, holds);
}

static void put_mark(struct webrig *r, const struct row *row, int64_t first)
{
    char target[64], data[64];
    if (row->mark == MARK_NONE)
        return;
    snprintf(target, sizeof target, "/v1/znodes%s-held", row->lock);
    snprintf(data, sizeof data, "clave/1\nstate=held\nid=x\ntoken=%" PRId64 "\ntook=0\n",
             row->mark == MARK_FIRST ? first : 1);
    create(r, target, data);
}

TEST(guard_token_and_page_agree_on_who_holds)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t tokens[5] = {0};
        size_t n = 0;
        CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
        create(r, "/v1/znodes/a", NULL);
        for (const struct listed *p = rows[i].places; p->path; p++, n++)
            tokens[n] = queue_of(r, p->client, p->path, p->data);
        put_mark(r, &rows[i], tokens[0]);
        webrig_advance(r, 1000);
        for (size_t k = 0; k < n; k++) {
            bool holds = rows[i].places[k].holds;
            put_guarded(r, rows[i].lock, tokens[k], holds ? 200 : 409);
            ask_token(r, rows[i].lock, tokens[k], holds);
            ask_page(r, rows[i].lock, tokens[k], holds);
        }
        put_guarded(r, rows[i].lock, tokens[n - 1] + 1000, 410);
        ask_token(r, rows[i].lock, tokens[n - 1] + 1000, false);
    }
}

/* Their nodes are of no kind that the page knows; the lowest number holds. */
TEST(a_lock_written_by_hand_has_tokens_too)
{
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    create(r, "/v1/znodes/a", NULL);
    create(r, "/v1/znodes/hand", NULL);
    create(r, "/v1/znodes/hand/config", NULL);
    int64_t tokens[3] = {queue(r, "/hand/lock_"), queue(r, "/hand/lock_"), queue(r, "/hand/lock_")};
    for (int i = 0; i < 3; i++) {
        put_guarded(r, "/hand", tokens[i], i == 0 ? 200 : 409);
        ask_token(r, "/hand", tokens[i], i == 0);
    }
    webrig_done(r, "DELETE", "/v1/znodes/hand/lock_0000000001", NULL, NULL, 204);
    put_guarded(r, "/hand", tokens[0], 410);
    put_guarded(r, "/hand", tokens[1], 200);
    /* With a place of a known kind beside them they are none. */
    int64_t known = queue(r, "/hand/x-lock-");
    put_guarded(r, "/hand", tokens[1], 410);
    put_guarded(r, "/hand", known, 200);
}

TEST(a_guarded_write_is_done_while_the_token_holds)
{
    int64_t tokens[9];
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    create(r, "/v1/znodes/a", NULL);
    for (int i = 0; i < 9; i++)
        tokens[i] = queue(r, "/lock/_c_1-lock-");
    for (int i = 0; i < 9; i++)
        put_guarded(r, "/lock", tokens[i], i == 0 ? 200 : 409);
    put_guarded(r, "/lock", tokens[0] - 1, 410);
    put_guarded(r, "/lock", tokens[8] + 1000, 410);
    put_guarded(r, "/nolock", tokens[0], 410);
    put_guarded(r, "/sem", queue(r, "/sem/leases/_c_1-lease-"), 200);
    webrig_done(r, "DELETE", "/v1/znodes/lock/_c_1-lock-0000000004", NULL, NULL, 204);
    put_guarded(r, "/lock", tokens[4], 410);
    webrig_done(r, "DELETE", "/v1/znodes/lock/_c_1-lock-0000000000", NULL, NULL, 204);
    put_guarded(r, "/lock", tokens[0], 410);
    put_guarded(r, "/lock", tokens[1], 200);
    memnet_kill_session(r->net, 0);
    put_guarded(r, "/lock", tokens[1], 410);
}

TEST(every_write_can_be_guarded)
{
    char good[100], bad[100];
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    int64_t token = queue(r, "/l/x-lock-");
    snprintf(good, sizeof good, OCTETS "\nClave-Guard: /l;token=%" PRId64, token);
    snprintf(bad, sizeof bad, OCTETS "\nClave-Guard: /l;token=%" PRId64, token + 1);
    webrig_done(r, "POST", "/v1/znodes/b", bad, "x", 410);
    struct webrig_call *c = webrig_answer(r, "POST", "/v1/znodes/b", good, "x", 201);
    assert_string_equal(webrig_header(c, "Location"), "/v1/znodes/b");
    webrig_end(c);
    webrig_done(r, "POST", "/v1/znodes/b", good, "x", 409);
    webrig_done(r, "DELETE", "/v1/znodes/b", bad, NULL, 410);
    webrig_done(r, "DELETE", "/v1/znodes/b", good, NULL, 204);
    webrig_done(r, "DELETE", "/v1/znodes/b", good, NULL, 404);
    snprintf(good, sizeof good, "Clave-Guard: /l;token=%" PRId64, token);
    snprintf(bad, sizeof bad, "Clave-Guard: /l;token=%" PRId64, token + 1);
    static const char ops[] = "{\"ops\":[{\"op\":\"create\",\"path\":\"/m\"},"
                              "{\"op\":\"delete\",\"path\":\"/m\"}]}";
    webrig_done(r, "POST", "/v1/multi", bad, ops, 410);
    webrig_done(r, "POST", "/v1/multi", good, ops, 200);
    c = webrig_answer(r, "POST", "/v1/multi", good,
                      "{\"ops\":[{\"op\":\"delete\",\"path\":\"/m\"}]}", 404);
    assert_string_equal(webrig_member(c, "failed"), "0");
    webrig_end(c);
    webrig_done(r, "PUT", "/v1/znodes/l", "Clave-Guard: /l", "x", 400);
    webrig_done(r, "PUT", "/v1/znodes/l", "Clave-Guard: l;token=1", "x", 400);
    webrig_done(r, "PUT", "/v1/znodes/l", "Clave-Guard: /l;token=1x", "x", 400);
    webrig_done(r, "PUT", "/v1/znodes/l", "Clave-Guard: /l;token=1,", "x", 400);
    webrig_done(r, "PUT", "/v1/znodes/l", "Clave-Guard: /l;token=1,/m", "x", 400);
    webrig_done(r, "PUT", "/v1/znodes/l?acl", good,
                "{\"acl\": [{\"perms\": \"r\", \"scheme\": \"world\", \"id\": \"anyone\"}]}", 400);
}

/* The role lock is enough for the records of --once of what is held, and for nothing else. */
TEST(who_holds_a_lock_writes_its_record)
{
    static const struct {
        const char *method, *target, *body;
        unsigned status;
    } rows[] = {
        {"POST", "/v1/znodes/l-once/daily?parents", "x", 201},
        {"PUT", "/v1/znodes/l-once/daily", "y", 200},
        {"POST", "/v1/multi",
         "{\"ops\":[{\"op\":\"delete\",\"path\":\"/l-once/daily\"},"
         "{\"op\":\"create\",\"path\":\"/l-once/daily\",\"data\":\"z\"}]}",
         200},
        {"POST", "/v1/multi",
         "{\"ops\":[{\"op\":\"set\",\"path\":\"/l-once/daily\"},"
         "{\"op\":\"create\",\"path\":\"/x\"}]}",
         403},
        {"POST", "/v1/znodes/l-once/a/b?parents", "x", 403},
        {"POST", "/v1/znodes/l-only/a?parents", "x", 403},
        {"POST", "/v1/znodes/l/a", "x", 403},
        {"POST", "/v1/znodes/m-once/a?parents", "x", 403},
        {"POST", "/v1/znodes/a,/m-once/a?parents", "x", 403},
        {"DELETE", "/v1/znodes/l-once/daily?recursive", NULL, 400},
        {"PUT", "/v1/slots/l-once/daily", "{\"limit\":1}", 400},
    };
    char guard[160], late[160];
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    int64_t token = queue(r, "/l/x-lock-");
    create(r, "/v1/znodes/m", NULL);
    clave__web_set_access(r->web, NULL); /* a loopback address may lock */
    r->peer.is_unix = false;
    webrig_done(r, "POST", "/v1/znodes/l-once/daily?parents", OCTETS, "x", 403);
    snprintf(guard, sizeof guard, "Clave-Guard: /l;token=%" PRId64 ", /a,/m;token=1", token);
    webrig_done(r, "POST", "/v1/znodes/l-once/daily?parents", guard, "x", 415);
    snprintf(late, sizeof late, OCTETS "\nClave-Guard: /l;token=%" PRId64, token + 1);
    webrig_done(r, "POST", "/v1/znodes/l-once/daily?parents", late, "x", 410);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *type = strstr(rows[i].target, "/v1/znodes") ? OCTETS "\n" : "";
        snprintf(guard, sizeof guard, "%sClave-Guard: /l;token=%" PRId64, type, token);
        struct webrig_call *c =
            webrig_request(r, rows[i].method, rows[i].target, guard, rows[i].body);
        if (c->status != rows[i].status)
            print_error("%s %s: %s\n", rows[i].method, rows[i].target, webrig_body(c));
        assert_int_equal(c->status, rows[i].status);
        if (c->status == 403)
            assert_non_null(strstr(webrig_body(c), "openssl rand -hex 16"));
        webrig_end(c);
    }
}

/* Missing parents are made in the same transaction. */
TEST(a_guarded_create_takes_parents_and_every_mode)
{
    static const struct {
        const char *target, *path;
    } good[] = {
        {"/v1/znodes/p/q/r?parents", "/p/q/r"},
        {"/v1/znodes/p/q/s?parents", "/p/q/s"},
        {"/v1/znodes/p/t/u/v?parents&mode=container", "/p/t/u/v"},
        {"/v1/znodes/x/n-?parents&mode=persistent_sequential", "/x/n-0000000000"},
        {"/v1/znodes/c?mode=container", "/c"},
    };
    char headers[100], lost[100], node[64];
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    int64_t token = queue(r, "/l/x-lock-");
    snprintf(headers, sizeof headers, OCTETS "\nClave-Guard: /l;token=%" PRId64, token);
    snprintf(lost, sizeof lost, OCTETS "\nClave-Guard: /l;token=%" PRId64, token + 100);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        webrig_done(r, "POST", good[i].target, lost, "x", 410);
        struct webrig_call *c = webrig_answer(r, "POST", good[i].target, headers, "x", 201);
        assert_string_equal(webrig_member(c, "path"), good[i].path);
        webrig_end(c);
        snprintf(node, sizeof node, "/v1/znodes%s", good[i].path);
        c = webrig_answer(r, "GET", node, NULL, NULL, 200);
        assert_string_equal(webrig_body(c), "x");
        webrig_end(c);
    }
    webrig_done(r, "POST", "/v1/znodes/y/z", headers, "x", 404);
    webrig_done(r, "POST", "/v1/znodes/p/q/r?parents", headers, "x", 409);
    webrig_done(r, "GET", "/v1/znodes/y", NULL, NULL, 404);
    snprintf(headers, sizeof headers, "Clave-Guard: /l;token=%" PRId64, token);
    webrig_done(r, "POST", "/v1/multi", headers,
                "{\"ops\":[{\"op\":\"create\",\"path\":\"/m\",\"mode\":\"container\"},"
                "{\"op\":\"create\",\"path\":\"/m/n\"}]}",
                200);
    /* A server without extended types has no TTL. */
    webrig_done(r, "POST", "/v1/multi", headers,
                "{\"ops\":[{\"op\":\"create\",\"path\":\"/t\",\"mode\":\"persistent_ttl\","
                "\"ttl_ms\":1000}]}",
                501);
    webrig_done(r, "GET", "/v1/znodes/m/n", NULL, NULL, 200);
    snprintf(headers, sizeof headers, OCTETS "\nClave-Guard: /l;token=%" PRId64, token);
    webrig_done(r, "POST", "/v1/znodes/t?mode=persistent_ttl&ttl=60000", headers, "x", 501);
}

/* The lock is lost while the parents are looked for: none of them is made. */
TEST(parents_are_guarded_too)
{
    char headers[100];
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    snprintf(headers, sizeof headers, OCTETS "\nClave-Guard: /l;token=%" PRId64,
             queue(r, "/l/x-lock-"));
    memnet_rule(r->net,
                (struct memnet_rule){
                    .client = OWN, .way = MEMNET_REPLY, .op = OP_MULTI, .fate = MEMNET_HOLD});
    struct webrig_call *c = webrig_request(r, "POST", "/v1/znodes/p/q?parents", headers, "x");
    assert_false(c->answered);
    memnet_kill_session(r->net, 0);
    memnet_clear(r->net);
    webrig_settle(r);
    assert_int_equal(c->status, 410);
    webrig_end(c);
    webrig_done(r, "GET", "/v1/znodes/p", NULL, NULL, 404);
}

/* In one header or several, as proxies join them. The one that fails is named. */
TEST(a_write_is_guarded_by_several_locks)
{
    enum { LOCKS = 3 };
    static const char *const separators[] = {",", ", ", "\nClave-Guard: "};
    static const char odd[] = "/o;token=7"; /* a path */
    for (size_t way = 0; way < 3; way++) {
        CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
        const char *locks[LOCKS] = {"/l", "/m", odd};
        int64_t tokens[LOCKS] = {queue(r, "/l/x-lock-"), queue(r, "/m/x-__WRIT__"),
                                 queue(r, "/o;token=7/x-lock-")};
        create(r, "/v1/znodes/a", "old");
        for (int lost = 0; lost <= LOCKS; lost++) {
            char headers[300] = "Clave-Guard: ";
            for (int i = 0; i < LOCKS; i++) {
                size_t n = strlen(headers);
                snprintf(headers + n, sizeof headers - n, "%s%s;token=%" PRId64,
                         i ? separators[way] : "", locks[i], tokens[i] + (lost == i ? 50 : 0));
            }
            struct webrig_call *c =
                webrig_answer(r, "PUT", "/v1/znodes/a", headers, "x", lost < LOCKS ? 410 : 200);
            if (lost < LOCKS)
                assert_string_equal(webrig_member(c, "path"), locks[lost]);
            webrig_end(c);
        }
    }
}

/* Before the transaction is sent nothing was done: the request may be repeated. */
TEST(an_answer_lost_before_the_write_leaves_nothing_in_doubt)
{
    static const struct {
        int op;
        unsigned status;
        const char *word;
    } rows_of_test[] = {
        {OP_GET_CHILDREN2, 503, "retry"},
        {OP_EXISTS, 503, "retry"},
        {OP_MULTI, 504, "unknown"},
    };
    char headers[100];
    for (size_t i = 0; i < 2 * sizeof rows_of_test / sizeof *rows_of_test; i++) {
        CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
        create(r, "/v1/znodes/a", "old");
        snprintf(headers, sizeof headers, "Clave-Guard: /l;token=%" PRId64, queue(r, "/l/x-lock-"));
        memnet_rule(r->net, (struct memnet_rule){.client = OWN,
                                                 .way = MEMNET_REPLY,
                                                 .op = rows_of_test[i / 2].op,
                                                 .fate = MEMNET_HOLD});
        struct webrig_call *c = webrig_request(r, "PUT", "/v1/znodes/a", headers, "new");
        assert_false(c->answered);
        if (i % 2)
            clave__web_close(r->web, r->net->now);
        else
            webrig_advance(r, 16000);
        webrig_settle(r);
        assert_true(c->answered && c->done);
        assert_int_equal(c->status, rows_of_test[i / 2].status);
        assert_string_equal(webrig_member(c, "class"), rows_of_test[i / 2].word);
        webrig_end(c);
        memnet_clear(r->net);
        webrig_settle(r);
    }
}

/* The lock is lost after the look, before the transaction. */
TEST(the_transaction_decides)
{
    char headers[100];
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    create(r, "/v1/znodes/a", "old");
    snprintf(headers, sizeof headers, "Clave-Guard: /l;token=%" PRId64, queue(r, "/l/x-lock-"));
    memnet_rule(r->net,
                (struct memnet_rule){
                    .client = OWN, .way = MEMNET_REQUEST, .op = OP_MULTI, .fate = MEMNET_HOLD});
    struct webrig_call *c = webrig_request(r, "PUT", "/v1/znodes/a", headers, "new");
    assert_false(c->answered);
    memnet_kill_session(r->net, 0);
    memnet_clear(r->net);
    webrig_settle(r);
    assert_int_equal(c->status, 410);
    webrig_end(c);
    c = webrig_answer(r, "GET", "/v1/znodes/a", NULL, NULL, 200);
    assert_string_equal(webrig_body(c), "old");
}

/* Its session's connection is lost between two of its steps, and is made again for the others. */
TEST(a_guarded_write_keeps_its_session_until_the_answer)
{
    char headers[300];
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    create(r, "/v1/znodes/a", "old");
    int64_t token = queue(r, "/l/x-lock-");
    struct webrig_call *s =
        webrig_answer(r, "POST", "/v1/sessions", NULL, "{\"ttl_ms\": 8000}", 201);
    snprintf(headers, sizeof headers, "Clave-Guard: /l;token=%" PRId64 "\nClave-Session: %s", token,
             webrig_member(s, "secret"));
    webrig_end(s);
    memnet_rule(r->net, (struct memnet_rule){.client = OWN + 1,
                                             .way = MEMNET_REQUEST,
                                             .op = OP_EXISTS,
                                             .fate = MEMNET_HOLD});
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = webrig_request(r, "PUT", "/v1/znodes/a", headers, "new");
    assert_false(c->answered);
    memnet_cut(r->net, OWN + 1);
    memnet_clear(r->net);
    webrig_advance(r, 3000);
    assert_true(c->answered);
    assert_int_equal(c->status, 200);
}

/* That a token holds no more is said behind a commit: a lost one is sent again. */
TEST(a_refusal_follows_a_commit)
{
    char headers[100];
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    create(r, "/v1/znodes/a", "old");
    int64_t token = queue(r, "/l/x-lock-");
    memnet_rule(r->net,
                (struct memnet_rule){
                    .client = OWN, .way = MEMNET_REPLY, .op = OP_MULTI, .fate = MEMNET_LOSE});
    uint64_t before = r->net->clients[OWN].requests[OP_MULTI];
    snprintf(headers, sizeof headers, "Clave-Guard: /l;token=%" PRId64, token + 1);
    CLOSED_BY(webrig_ended)
    struct webrig_call *c = webrig_request(r, "PUT", "/v1/znodes/a", headers, "new");
    webrig_advance(r, 3000);
    assert_true(c->answered);
    assert_int_equal(c->status, 410);
    assert_int_equal(r->net->clients[OWN].requests[OP_MULTI] - before, 2);
}

/* What it costs in requests; the listing and the mark are one round trip. */
TEST(a_guarded_write_takes_four_requests)
{
    static const struct {
        int op;
        uint64_t n;
    } cost[] = {{OP_GET_CHILDREN2, 1}, {OP_GET_DATA, 1}, {OP_EXISTS, 1},
                {OP_MULTI, 1},         {OP_SYNC, 0},     {OP_SET_DATA, 0}};
    uint64_t before[128];
    CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
    create(r, "/v1/znodes/a", "old");
    int64_t token = queue(r, "/l/x-lock-");
    for (int i = 0; i < 100; i++)
        queue(r, "/l/x-lock-");
    memcpy(before, r->net->clients[OWN].requests, sizeof before);
    put_guarded(r, "/l", token, 200);
    for (size_t i = 0; i < sizeof cost / sizeof *cost; i++)
        assert_int_equal(r->net->clients[OWN].requests[cost[i].op] - before[cost[i].op], cost[i].n);
}

/* A member may lag behind: by its listing the place still waits. */
TEST(an_old_listing_refuses_nothing)
{
    char headers[100], target[100];
    for (int asks = 0; asks < 2; asks++) {
        CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
        create(r, "/v1/znodes/a", "old");
        queue(r, "/l/x-lock-");
        int64_t next = queue_of(r, 1, "/l/x-lock-", "");
        memnet_rule(r->net, (struct memnet_rule){.client = OWN,
                                                 .way = MEMNET_REPLY,
                                                 .op = OP_GET_CHILDREN2,
                                                 .fate = MEMNET_HOLD});
        snprintf(headers, sizeof headers, "Clave-Guard: /l;token=%" PRId64, next);
        snprintf(target, sizeof target, "/v1/locks/l?token=%" PRId64, next);
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = asks ? webrig_request(r, "GET", target, NULL, NULL)
                                     : webrig_request(r, "PUT", "/v1/znodes/a", headers, "x");
        assert_false(c->answered);
        memnet_kill_session(r->net, 0);
        memnet_clear(r->net);
        webrig_settle(r);
        assert_true(c->answered);
        assert_int_equal(c->status, 200);
        assert_true(!asks || strstr(webrig_body(c), "\"holds\": true"));
    }
}

/* What a listing says of a holder is proved by a transaction. */
TEST(a_token_is_checked_by_a_transaction)
{
    char target[100];
    for (int lost = 0; lost < 2; lost++) {
        CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
        snprintf(target, sizeof target, "/v1/locks/l?token=%" PRId64, queue(r, "/l/x-lock-"));
        memnet_rule(r->net,
                    (struct memnet_rule){
                        .client = OWN, .way = MEMNET_REQUEST, .op = OP_MULTI, .fate = MEMNET_HOLD});
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = webrig_request(r, "GET", target, NULL, NULL);
        assert_false(c->answered);
        if (lost)
            memnet_kill_session(r->net, 0);
        memnet_clear(r->net);
        webrig_settle(r);
        assert_true(c->answered);
        assert_int_equal(c->status, 200);
        assert_non_null(strstr(webrig_body(c), lost ? "\"holds\": false" : "\"holds\": true"));
    }
}

/* The sender hangs up at each step; nothing is leaked or touched afterwards. */
TEST(a_sender_may_hang_up_at_each_step)
{
    static const int ops[] = {OP_GET_CHILDREN2, OP_GET_DATA, OP_EXISTS, OP_MULTI};
    char headers[100];
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        CLOSED_BY(webrig_freed) struct webrig *r = rig_new();
        create(r, "/v1/znodes/a", "old");
        snprintf(headers, sizeof headers, "Clave-Guard: /l;token=%" PRId64, queue(r, "/l/x-lock-"));
        memnet_rule(r->net,
                    (struct memnet_rule){
                        .client = OWN, .way = MEMNET_REPLY, .op = ops[i], .fate = MEMNET_HOLD});
        struct webrig_call *c = webrig_request(r, "PUT", "/v1/znodes/a", headers, "new");
        assert_false(c->answered);
        webrig_end(c);
        memnet_clear(r->net);
        webrig_settle(r);
    }
}

/* Each allocation fails once: the write is done and said so, or not done; 503 only if not done. */
TEST(without_memory_a_guarded_write_is_done_or_refused)
{
    char headers[100];
    bool failed = true;
    for (size_t failing = 1; failed; failing++) {
        struct failmem fail;
        failmem_init(&fail);
        struct webrig_options o = {.net = {.clients = OWN}, .mem = &fail.mem};
        struct webrig *r = webrig_new(&o);
        rig_admit(r);
        create(r, "/v1/znodes/a", "old");
        snprintf(headers, sizeof headers, "Clave-Guard: /l;token=%" PRId64, queue(r, "/l/x-lock-"));
        failmem_arm(&fail, failing, 1);
        struct webrig_call *c = webrig_request(r, "PUT", "/v1/znodes/a", headers, "new");
        failed = fail.failed;
        failmem_arm(&fail, 0, 0);
        if (c && c->answered && c->x) {
            unsigned status = c->status;
            webrig_end(c);
            c = webrig_answer(r, "GET", "/v1/znodes/a", NULL, NULL, 200);
            bool was_done = strcmp(webrig_body(c), "new") == 0;
            assert_true(status == 200 ? was_done : status == 504 || !was_done);
        }
        webrig_end(c);
        webrig_free(r);
        assert_int_equal(fail.live, 0);
    }
}

/* Nor is a write of which nothing was heard said to be not done. */
TEST(without_memory_a_lost_answer_is_unknown)
{
    bool failed = true;
    for (size_t failing = 1; failed; failing++) {
        struct failmem fail;
        failmem_init(&fail);
        struct webrig_options o = {.net = {.clients = OWN}, .mem = &fail.mem};
        struct webrig *r = webrig_new(&o);
        rig_admit(r);
        create(r, "/v1/znodes/a", "old");
        memnet_rule(r->net, (struct memnet_rule){OWN, MEMNET_REPLY, MEMNET_ANY, MEMNET_HOLD, 0});
        struct webrig_call *c = webrig_request(r, "PUT", "/v1/znodes/a", NULL, "new");
        assert_false(c->answered);
        failmem_arm(&fail, failing, 1);
        webrig_advance(r, 16000);
        failed = fail.failed;
        failmem_arm(&fail, 0, 0);
        assert_int_equal(c->status, 504);
        webrig_end(c);
        memnet_clear(r->net);
        webrig_free(r);
        assert_int_equal(fail.live, 0);
    }
}
