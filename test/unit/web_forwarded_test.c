/* web_forwarded_test.c - requests that a proxy has passed on: whose they are, which hosts and
 * origins they may name, and what stands before their paths. */
#include "base/ip_range.h"
#include "lib/unit.h"
#include "lib/webrig.h"
#include "web/http/exchange.h"

static const struct ip_range proxies[] = {{.family = 4, .ip = {127, 0, 0, 1}, .bits = 32},
                                          {.family = 4, .ip = {10}, .bits = 8},
                                          {.family = 6, .ip = {0xfd}, .bits = 8}};
static const char *const origins[] = {"https://gate.example:8443"};
static const struct web_access nobody = {.owner_uid = 1000};
static const struct web_access named = {.owner_uid = 1000,
                                        .proxies = proxies,
                                        .nproxies = 3,
                                        .unix_proxies = true,
                                        .origins = origins,
                                        .norigins = 1,
                                        .prefix = "/clave"};
static const struct web_peer tcp = {.is_loopback = true, .uid = -1, .address = "127.0.0.1:4711"};
static const struct web_peer far = {.uid = -1, .address = "[fd00::7]:4711"};
static const struct web_peer foreign = {.uid = -1, .address = "192.0.2.1:4711"};
static const struct web_peer local = {.is_unix = true, .uid = 1000, .address = "local"};

/* ---- whose they are -------------------------------------------------------------------------- */

TEST(a_proxy_is_believed_if_it_is_named)
{
    static const struct {
        const struct web_access *access;
        const struct web_peer *peer;
        const char *headers, *user, *address;
    } rows[] = {
        {&nobody, &tcp, NULL, "loopback", "127.0.0.1:4711"},
        {&nobody, &tcp, "X-Forwarded-For: 127.0.0.1", "", "127.0.0.1:4711"},
        {&nobody, &tcp, "Forwarded: for=127.0.0.1", "", "127.0.0.1:4711"},
        {&nobody, &tcp, "X-Real-IP: 127.0.0.1", "", "127.0.0.1:4711"},
        {&nobody, &tcp, "X-Forwarded-Proto: https", "", "127.0.0.1:4711"},
        {&nobody, &tcp, "X-Forwarded-Host: a", "", "127.0.0.1:4711"},
        {&nobody, &tcp, "Via: 1.1 a", "", "127.0.0.1:4711"},
        {&nobody, &local, NULL, "owner", "local"},
        {&nobody, &local, "X-Forwarded-For: 127.0.0.1", "", "local"},
        {&named, &tcp, NULL, "", "127.0.0.1:4711"},
        {&named, &tcp, "X-Forwarded-For: 192.0.2.9", "", "192.0.2.9"},
        {&named, &tcp, "X-Forwarded-For: 127.0.0.2", "loopback", "127.0.0.2"},
        {&named, &tcp, "X-Forwarded-For: ::1", "loopback", "::1"},
        {&named, &tcp, "X-Forwarded-For: 127.0.0.9,  192.0.2.9 , 10.1.1.1", "", "192.0.2.9"},
        {&named, &tcp, "X-Forwarded-For: 127.0.0.9\nX-Forwarded-For: 192.0.2.9", "", "192.0.2.9"},
        {&named, &tcp, "X-Forwarded-For: 192.0.2.9:80", "", "192.0.2.9:80"},
        {&named, &tcp, "X-Forwarded-For: [2001:db8::1]:80", "", "[2001:db8::1]:80"},
        {&named, &tcp, "X-Forwarded-For: 127.0.0.9, unknown", "", "127.0.0.1:4711"},
        {&named, &tcp, "X-Forwarded-For: 127.0.0.9,", "", "127.0.0.1:4711"},
        {&named, &tcp, "X-Forwarded-For: 127.0.0.2/8", "", "127.0.0.1:4711"},
        {&named, &tcp, "X-Forwarded-For: 10.1.1.1", "", "127.0.0.1:4711"},
        {&named, &tcp, "Forwarded: for=127.0.0.9", "", "127.0.0.1:4711"},
        {&named, &far, "X-Forwarded-For: 192.0.2.9", "", "192.0.2.9"},
        {&named, &far, "X-Forwarded-For: 127.0.0.9", "", "127.0.0.9"}, /* of its own machine */
        {&named, &local, "X-Forwarded-For: 127.0.0.9", "loopback", "127.0.0.9"},
        {&named, &foreign, "X-Forwarded-For: 127.0.0.9", "", "192.0.2.1:4711"},
        {&named, &local, NULL, "", "local"},
        {&named, &local, "X-Forwarded-For: 192.0.2.9", "", "192.0.2.9"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct webrig_options o = {.access = rows[i].access};
        CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(&o);
        r->peer = *rows[i].peer;
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = webrig_request(r, "GET", "/v1/whoami", rows[i].headers, NULL);
        if (strcmp(c->x->peer.address, rows[i].address) != 0 ||
            strcmp(c->x->who.name, rows[i].user) != 0)
            print_error("row %zu, %s: \"%s\" at %s\n", i, rows[i].headers, c->x->who.name,
                        c->x->peer.address);
        assert_string_equal(c->x->peer.address, rows[i].address);
        assert_string_equal(c->x->who.name, rows[i].user);
    }
}

/* ---- which gate they name -------------------------------------------------------------------- */

TEST(the_public_url_is_a_name_and_an_origin)
{
    static const struct {
        const struct web_access *access;
        const char *headers;
        unsigned status;
    } rows[] = {
        {&named, "Host: gate.example", 200},
        {&named, "Host: GATE.example:8443", 200},
        {&named, "Host: gate.example.org", 421},
        {&named, "Host: gate", 421},
        {&nobody, "Host: gate.example", 421},
        {&named, "Origin: https://gate.example:8443", 200},
        {&named, "Origin: https://gate.example", 403},
        {&named, "Origin: http://gate.example:8443", 403},
        {&named, "Origin: https://gate.example:8443\nHost: 127.0.0.1:8080", 200},
        {&nobody, "Origin: https://gate.example:8443", 403},
        {&named, "X-Forwarded-Proto: https\nHost: 127.0.0.1\nOrigin: http://127.0.0.1", 403},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct webrig_options o = {.access = rows[i].access};
        CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(&o);
        char headers[200];
        snprintf(headers, sizeof headers, "%s%s", rows[i].headers,
                 rows[i].access == &named ? "\nX-Forwarded-For: 127.0.0.9" : "");
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = webrig_request(r, "GET", "/v1/server", headers, NULL);
        if (c->status != rows[i].status)
            print_error("row %zu, %s: %u\n", i, headers, c->status);
        assert_int_equal(c->status, rows[i].status);
    }
}

/* ---- what stands before the path ------------------------------------------------------------- */

TEST(the_prefix_may_be_there_or_not)
{
    static const struct {
        const char *target, *headers;
        unsigned status;
        const char *location; /* of a session made there */
    } rows[] = {
        {"/clave/v1/sessions", "X-Forwarded-For: 127.0.0.9", 201, "/clave/v1/sessions/"},
        {"/v1/sessions", "X-Forwarded-For: 127.0.0.9", 201, "/clave/v1/sessions/"},
        {"/clavev1/sessions", "X-Forwarded-For: 127.0.0.9", 404, NULL},
        {"/clave/clave/v1/sessions", "X-Forwarded-For: 127.0.0.9", 404, NULL},
    };
    struct webrig_options o = {.access = &named};
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(&o);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct webrig_call *c =
            webrig_request(r, "POST", rows[i].target, rows[i].headers, "{\"ttl_ms\":10000}");
        assert_int_equal(c->status, rows[i].status);
        if (rows[i].location)
            assert_memory_equal(webrig_header(c, "Location"), rows[i].location,
                                strlen(rows[i].location));
        webrig_end(c);
    }
}

TEST(without_a_proxy_the_prefix_is_not_told)
{
    static const struct web_access prefixed = {.owner_uid = 1000, .prefix = "/clave"};
    struct webrig_options o = {.access = &prefixed};
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(&o);
    struct webrig_call *c = webrig_request(r, "POST", "/v1/sessions", NULL, "{\"ttl_ms\":10000}");
    assert_int_equal(c->status, 201);
    assert_memory_equal(webrig_header(c, "Location"), "/v1/sessions/", strlen("/v1/sessions/"));
    webrig_end(c);
    c = webrig_request(r, "POST", "/clave/v1/sessions", NULL, "{\"ttl_ms\":10000}");
    assert_memory_equal(webrig_header(c, "Location"), "/clave/v1/", strlen("/clave/v1/"));
    webrig_end(c);
}

TEST(a_stream_is_not_kept_by_a_proxy)
{
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(NULL);
    struct webrig_call *c = webrig_request(r, "GET", "/v1/events", NULL, NULL);
    assert_string_equal(webrig_header(c, "X-Accel-Buffering"), "no");
    webrig_end(c);
    c = webrig_request(r, "POST", "/v1/hold", NULL, "{\"path\":\"/a\"}");
    assert_string_equal(webrig_header(c, "X-Accel-Buffering"), "no");
    webrig_end(c);
}
