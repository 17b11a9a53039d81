/* web_routes_test.c - targets are taken apart, patterns find their routes, and every route is in
 * the OpenAPI document as it is. */
#include <strings.h>

#include "lib/unit.h"
#include "lib/webrig.h"
#include "web/http/exchange.h"

static const char *parse(struct target *t, char copy[256], const char *text)
{
    snprintf(copy, 256, "%s", text);
    return clave__target_parse(t, copy);
}

TEST(a_target_is_a_path_and_arguments)
{
    struct target t;
    char copy[256];
    assert_null(parse(&t, copy, "/v1/locks/a%2Fb?prefix=%2Fjobs+x&limit=3&flag&&e=&a=b=c"));
    assert_string_equal(t.path, "/v1/locks/a%2Fb");
    assert_int_equal(t.nargs, 5);
    assert_string_equal(clave__target_arg(&t, "prefix"), "/jobs x");
    assert_string_equal(clave__target_arg(&t, "limit"), "3");
    assert_string_equal(clave__target_arg(&t, "flag"), "");
    assert_string_equal(clave__target_arg(&t, "e"), "");
    assert_string_equal(clave__target_arg(&t, "a"), "b=c");
    assert_null(clave__target_arg(&t, "pre"));
}

/* As to a proxy: RFC 9112, 3.2.2. */
TEST(a_target_may_name_the_host)
{
    static const struct {
        const char *target, *host, *path, *arg;
    } cases[] = {
        {"http://localhost:80/a/b?e=1", "localhost:80", "/a/b", "1"},
        {"HTTPS://[::1]/", "[::1]", "/", NULL},
        {"http://gate", "gate", "/", NULL},
        {"http://g?e=2", "g", "/", "2"},
        {"http://", "", "/", NULL},
        {"http:///x", "", "/x", NULL},
        {"/http://x/", NULL, "/http://x/", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct target t;
        char copy[256];
        const char *fault = parse(&t, copy, cases[i].target);
        assert_null(fault);
        assert_string_equal(t.host ? t.host : "none", cases[i].host ? cases[i].host : "none");
        assert_string_equal(t.path, cases[i].path);
        const char *arg = clave__target_arg(&t, "e");
        assert_string_equal(arg ? arg : "none", cases[i].arg ? cases[i].arg : "none");
    }
}

TEST(a_malformed_target_is_refused)
{
    static const char *const bad[] = {
        "",         "x",
        "*",        "ftp://localhost/",
        "/a?b=%",   "/a?b=%4",
        "/a?%zz=1", "/a#b",
        "/a b",     "/a\tb",
        "/a?b=%00", "/a\x7f?",
        "/a?b c",   "/?a&b&c&d&e&f&g&h&i&j&k&l&m&n&o&p&q",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct target t;
        char copy[256];
        assert_non_null(parse(&t, copy, bad[i]));
    }
}

TEST(escapes_are_decoded_once)
{
    char out[32];
    assert_true(clave__percent_decode(out, "%2541+%c3%A9", 12, false));
    assert_string_equal(out, "%41+\xc3\xa9");
    assert_false(clave__percent_decode(out, "%4", 2, false));
    assert_false(clave__percent_decode(out, "a%", 2, false));
    assert_false(clave__percent_decode(out, "%00", 3, false));
}

/* What the route's pattern makes of a path of it. */
TEST(params_are_znode_paths)
{
    static const struct {
        const char *target, *asset;
    } cases[] = {{"/ui/a/b.js", "a/b.js"}, {"/ui/a%2Fb.js", "a/b.js"}, {"/ui/%2Fa/b.js", "a/b.js"}};
    static const struct web_asset assets[] = {{"a/b.js", "text/javascript", "\"1\"", "x", 1}};
    struct webrig_options o = {.assets = assets, .nassets = 1};
    CLOSED_BY(webrig_freed) struct webrig *r = webrig_new(&o);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = webrig_request(r, "GET", cases[i].target, NULL, NULL);
        assert_int_equal(c->status, 200);
    }
    struct webrig_call *c = webrig_request(r, "GET", "/ui/%4", NULL, NULL);
    assert_int_equal(c->status, 400);
}

/* ---- the document --------------------------------------------------------------------------- */

static const json_t *operation_of(const json_t *document, const struct route *r)
{
    char method[16] = "";
    for (size_t i = 0; r->method[i] && i < sizeof method - 1; i++)
        method[i] = (char)(r->method[i] | 0x20);
    return json_object_get(json_object_get(json_object_get(document, "paths"), r->pattern), method);
}

static bool is_documented(const struct route *r)
{
    /* The page's ways, which no program uses. */
    return strcmp(r->pattern, "/") != 0 && strncmp(r->pattern, "/ui", 3) != 0;
}

TEST(every_route_is_in_the_document)
{
    const struct route *routes = clave__routes.at;
    size_t n = clave__routes.n;
    CLOSED_BY(webrig_freed) struct webrig *rig = webrig_new(NULL);
    struct webrig_call *c = webrig_request(rig, "GET", "/v1/openapi.json", NULL, NULL);
    json_t *document = json_loads(webrig_body(c), JSON_REJECT_DUPLICATES, NULL);
    assert_int_equal(c->status, 200);
    assert_non_null(document);
    for (size_t i = 0; i < n; i++) {
        if (!is_documented(&routes[i]))
            continue;
        const json_t *op = operation_of(document, &routes[i]);
        if (!op)
            print_error("%s %s is not in openapi.json\n", routes[i].method, routes[i].pattern);
        assert_non_null(op);
        assert_string_equal(json_string_value(json_object_get(op, "x-clave-role")),
                            clave__web_role_name(routes[i].role));
    }
    json_decref(document);
}

/* HEAD is answered by the route of GET, and /ui/{file} is how programs see /ui/{path}. */
static bool is_routed(const char *path, const char *method)
{
    const struct route *routes = clave__routes.at;
    size_t n = clave__routes.n;
    if (strcmp(method, "head") == 0 || strcmp(path, "/ui/{file}") == 0)
        return true;
    for (size_t i = 0; i < n; i++)
        if (strcmp(routes[i].pattern, path) == 0 && strcasecmp(routes[i].method, method) == 0)
            return true;
    return false;
}

TEST(every_operation_of_the_document_has_a_route)
{
    const char *path, *method;
    json_t *ops, *op;
    CLOSED_BY(webrig_freed) struct webrig *rig = webrig_new(NULL);
    struct webrig_call *c = webrig_request(rig, "GET", "/v1/openapi.json", NULL, NULL);
    json_t *document = json_loads(webrig_body(c), 0, NULL);
    assert_non_null(document);
    json_object_foreach(json_object_get(document, "paths"), path, ops)
    {
        json_object_foreach(ops, method, op)
        {
            if (!is_routed(path, method))
                print_error("%s %s is in openapi.json only\n", method, path);
            assert_true(is_routed(path, method));
        }
    }
    json_decref(document);
}
