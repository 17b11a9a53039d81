/* web_fleetlock_test.c - FleetLock: what its protocol says, who may ask, and what is said when the
 * servers do not answer. */
#include "base/ip_range.h"
#include "lib/claim_scene.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"
#include "wire/proto.h"

/* The engine's own session. */
enum { OWN = 0 };

#define MARK "fleet-lock-protocol: true"

static const struct ip_range fleets[] = {{.family = 4, .ip = {10, 1}, .bits = 16}};
static const struct web_access open_access = {.owner_uid = -1, .fleetlock = "/reboots"};

static struct webrig *fleet_rig(const struct web_access *access)
{
    return webrig_new(&(struct webrig_options){.access = access});
}

static struct webrig_call *fleet_post(struct webrig *r, const char *what, const char *group,
                                      const char *id)
{
    char target[64], body[256];
    snprintf(target, sizeof target, "/v1/%s", what);
    snprintf(body, sizeof body, "{\"client_params\": {\"group\": \"%s\", \"id\": \"%s\"}}", group,
             id);
    return webrig_request(r, "POST", target, MARK, body);
}

static void fleet_ends(struct webrig_call *c, unsigned status)
{
    user_expects(c, status);
    if (status >= 400) {
        assert_non_null(webrig_member(c, "kind"));
        assert_string_equal(webrig_member(c, "value"), webrig_member(c, "detail"));
    }
    webrig_end(c);
}

TEST(machines_take_turns)
{
    CLOSED_BY(webrig_freed) struct webrig *r = fleet_rig(&open_access);
    for (int i = 0; i < 2; i++) {
        fleet_ends(fleet_post(r, "pre-reboot", "default", "m1"), 200); /* and again */
        fleet_ends(fleet_post(r, "pre-reboot", "default", "m2"), 409);
        fleet_ends(fleet_post(r, "pre-reboot", "workers.a-1", "m2"), 200);
    }
    assert_int_equal(memnet_list(r->net, OWN, "/reboots/default/queue", NULL, 0), 0);
    fleet_ends(fleet_post(r, "steady-state", "default", "m2"), 200); /* which has none there */
    fleet_ends(fleet_post(r, "pre-reboot", "default", "m2"), 409);
    for (int i = 0; i < 2; i++)
        fleet_ends(fleet_post(r, "steady-state", "default", "m1"), 200);
    fleet_ends(fleet_post(r, "steady-state", "empty", "m1"), 200);
    assert_int_equal(memnet_list(r->net, OWN, "/reboots", NULL, 0), 2); /* no group is made by it */
    fleet_ends(fleet_post(r, "pre-reboot", "default", "m2"), 200);
}

/* A machine that only its address tells uses what groups there are, and makes a hundred at most. */
TEST(machines_make_no_groups_without_bound)
{
    char group[16];
    CLOSED_BY(webrig_freed) struct webrig *r = fleet_rig(&open_access);
    for (int i = 0; i < 100; i++) {
        snprintf(group, sizeof group, "g%d", i);
        fleet_ends(fleet_post(r, "pre-reboot", group, "m1"), 200);
    }
    fleet_ends(fleet_post(r, "pre-reboot", "one-more", "m1"), 403);
    fleet_ends(fleet_post(r, "pre-reboot", "g7", "m1"), 200);
    assert_int_equal(memnet_list(r->net, OWN, "/reboots", NULL, 0), 100);
}

TEST(what_is_malformed_is_refused)
{
    static const struct {
        const char *headers, *body;
    } cases[] = {
        {NULL, "{\"client_params\": {\"group\": \"g\", \"id\": \"m\"}}"},
        {"fleet-lock-protocol: false", "{\"client_params\": {\"group\": \"g\", \"id\": \"m\"}}"},
        {MARK "\n" MARK, "{\"client_params\": {\"group\": \"g\", \"id\": \"m\"}}"},
        {MARK "\nClave-Session: s", "{\"client_params\": {\"group\": \"g\", \"id\": \"m\"}}"},
        {MARK, ""},
        {MARK, "x"},
        {MARK, "[]"},
        {MARK, "{}"},
        {MARK, "{\"client_params\": []}"},
        {MARK, "{\"client_params\": {\"group\": \"g\"}}"},
        {MARK, "{\"client_params\": {\"id\": \"m\"}}"},
        {MARK, "{\"client_params\": {\"group\": 1, \"id\": \"m\"}}"},
        {MARK, "{\"client_params\": {\"group\": \"\", \"id\": \"m\"}}"},
        {MARK, "{\"client_params\": {\"group\": \"a/b\", \"id\": \"m\"}}"},
        {MARK, "{\"client_params\": {\"group\": \"a b\", \"id\": \"m\"}}"},
        {MARK, "{\"client_params\": {\"group\": \"..\", \"id\": \"m\"}}"},
        {MARK, "{\"client_params\": {\"group\": \".\", \"id\": \"m\"}}"},
        {MARK, "{\"client_params\": {\"group\": \"g\", \"id\": \"\"}}"},
        {MARK, "{\"client_params\": {\"group\": \"g\", \"id\": \"\\u0001\"}}"},
    };
    static char long_body[5000], long_group[300];
    CLOSED_BY(webrig_freed) struct webrig *r = fleet_rig(&open_access);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct webrig_call *c =
            webrig_request(r, "POST", "/v1/pre-reboot", cases[i].headers, cases[i].body);
        fleet_ends(c, 400);
    }
    snprintf(long_body, sizeof long_body,
             "{\"client_params\": {\"group\": \"g\", \"id\": \"%4900s\"}}", "m");
    fleet_ends(webrig_request(r, "POST", "/v1/pre-reboot", MARK, long_body), 400);
    memset(long_group, 'g', 129);
    fleet_ends(fleet_post(r, "pre-reboot", long_group, "m"), 400);
    assert_int_equal(memnet_list(r->net, OWN, "/reboots", NULL, 0), 0);
    /* Of any type, with members that this version does not know. */
    fleet_ends(webrig_request(r, "POST", "/v1/pre-reboot", MARK "\nContent-Type: text/plain",
                              "{\"client_params\": {\"group\": \"g\", \"id\": \"m\", \"x\": 1}, "
                              "\"y\": 2}"),
               200);
    fleet_ends(webrig_request(r, "GET", "/v1/pre-reboot", MARK, NULL), 405);
    fleet_ends(webrig_request(r, "GET", "/v1/pre-reboot", NULL, NULL), 405);
    fleet_ends(webrig_request(r, "POST", "/v1/pre-reboot", MARK "\nHost: other", NULL), 421);
}

TEST(it_is_there_when_it_is_switched_on)
{
    static const struct web_access off = {.owner_uid = -1};
    CLOSED_BY(webrig_freed) struct webrig *r = fleet_rig(&off);
    for (int i = 0; i < 2; i++) {
        struct webrig_call *c = fleet_post(r, "pre-reboot", "g", "m");
        user_expects(c, i == 0 ? 404 : 200);
        webrig_end(c);
        clave__web_set_access(r->web, &open_access);
    }
}

/* Machines of the fleet need no token at these two endpoints, and at these only. */
TEST(a_fleet_needs_no_token)
{
    static const struct web_grant below[] = {{WEB_LOCK, "/reboots/a"}};
    static const struct web_user users[] = {
        {.name = "a", .token = "0123456789abcdef", .uid = -1, .grants = below, .ngrants = 1}};
    static const struct ip_range proxies[] = {{.family = 4, .ip = {10, 1, 0, 9}, .bits = 32}};
    static const struct web_access access = {.users = users,
                                             .nusers = 1,
                                             .owner_uid = -1,
                                             .proxies = proxies,
                                             .nproxies = 1,
                                             .fleetlock = "/reboots",
                                             .fleets = fleets,
                                             .nfleets = 1};
    static const struct {
        const char *address, *headers, *group;
        unsigned status;
    } cases[] = {
        {"10.1.0.1:999", MARK, "g", 200},
        {"10.2.0.1:999", MARK, "g", 401},
        {"10.1.0.1:999", MARK "\nAuthorization: Bearer wrong-wrong-wrong", "g", 401},
        {"10.2.0.1:999", MARK "\nAuthorization: Bearer 0123456789abcdef", "a", 200},
        {"10.2.0.1:999", MARK "\nAuthorization: Bearer 0123456789abcdef", "b", 403},
        {"10.1.0.1:999", MARK "\nX-Forwarded-For: 10.1.0.2", "g", 401}, /* no proxy of ours */
        {"10.1.0.9:999", MARK, "g", 401},                               /* a proxy is no machine */
        {"10.1.0.9:999", MARK "\nX-Forwarded-For: 10.2.0.1", "g", 401},
        {"10.1.0.9:999", MARK "\nX-Forwarded-For: 10.1.0.2", "g", 200},
        {"[fd00::1]:999", MARK, "g", 401},
    };
    CLOSED_BY(webrig_freed) struct webrig *r = fleet_rig(&access);
    assert_int_equal(memnet_create(r->net, OWN, "/reboots"), CLAVE_OK);
    r->peer.is_loopback = false;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[128];
        r->peer.address = cases[i].address;
        snprintf(body, sizeof body, "{\"client_params\": {\"group\": \"%s\", \"id\": \"m\"}}",
                 cases[i].group);
        fleet_ends(webrig_request(r, "POST", "/v1/pre-reboot", cases[i].headers, body),
                   cases[i].status);
    }
    r->peer.address = "10.1.0.1:999";
    static const char *const others[] = {"/v1/locks", "/v1/slots/reboots/g", "/v1/znodes/reboots"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = webrig_request(r, "GET", others[i], MARK, NULL);
        user_expects(c, 401);
    }
}

/* A machine repeats what was answered 5xx, and that is harmless. */
TEST(an_unknown_outcome_is_told_soon)
{
    static const struct {
        const char *what;
        int op;
    } cases[] = {{"pre-reboot", OP_MULTI}, {"steady-state", OP_MULTI}};
    CLOSED_BY(webrig_freed) struct webrig *r = fleet_rig(&open_access);
    for (size_t i = 0; i < 2; i++) {
        memnet_rule(r->net, (struct memnet_rule){OWN, MEMNET_REPLY, cases[i].op, MEMNET_HOLD, 0});
        struct webrig_call *c = fleet_post(r, cases[i].what, "g", "m");
        assert_false(c->answered);
        memnet_refuse(r->net, OWN, true);
        webrig_advance(r, 5000);
        fleet_ends(c, 504);
        fleet_ends(fleet_post(r, cases[i].what, "g", "m"), 503);
        memnet_clear(r->net);
        memnet_refuse(r->net, OWN, false);
        webrig_advance(r, 20000);
        fleet_ends(fleet_post(r, cases[i].what, "g", "m"), 200);
        assert_int_equal(memnet_list(r->net, OWN, "/reboots/g/owners", NULL, 0), i == 0 ? 1 : 0);
    }
}

/* A try does not wait until it is known. */
TEST(an_answer_that_is_lost_is_asked_for_again)
{
    CLOSED_BY(webrig_freed) struct webrig *r = fleet_rig(&open_access);
    memnet_rule(r->net, (struct memnet_rule){OWN, MEMNET_REPLY, OP_MULTI, MEMNET_LOSE, 0});
    struct webrig_call *c = fleet_post(r, "pre-reboot", "g", "m");
    webrig_advance(r, 4000);
    fleet_ends(c, 504);
    assert_int_equal(memnet_list(r->net, OWN, "/reboots/g/owners", NULL, 0), 1);
    fleet_ends(fleet_post(r, "pre-reboot", "g", "m"), 200);
    fleet_ends(fleet_post(r, "pre-reboot", "g", "n"), 409);
    memnet_rule(r->net, (struct memnet_rule){OWN, MEMNET_REPLY, OP_MULTI, MEMNET_LOSE, 0});
    c = fleet_post(r, "steady-state", "g", "m");
    webrig_advance(r, 4000);
    fleet_ends(c, 200);
    assert_int_equal(r->net->nrules, 0);
    assert_int_equal(memnet_list(r->net, OWN, "/reboots/g/owners", NULL, 0), 0);
}
