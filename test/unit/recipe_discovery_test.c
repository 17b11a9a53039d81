/* Service discovery: the JSON of an instance, byte for byte as Curator's serializer writes it, and
 * the instances that are followed. Curator's tests of x-discovery bear their names. */
#include "clave/async/instances.h"
#include "lib/failmem.h"
#include "lib/fake_server.h"
#include "lib/mutex_owner.h"
#include "lib/unit.h"

enum { ACTOR = 0, USER = 1, JSON_CAP = 1024 };

/* ---- JSON ------------------------------------------------------------------------------------ */

/* As Curator 5.4 wrote it for ServiceInstance("web", "i1", ...), in its compatible mode. */
static const char of_curator[] =
    "{\"name\":\"web\",\"id\":\"i1\",\"address\":\"1.2.3.4\",\"port\":80,\"sslPort\":null,"
    "\"payload\":\"str\",\"registrationTimeUTC\":1,\"serviceType\":\"STATIC\",\"uriSpec\":null}";

static clave_instance *parsed(const char *json)
{
    clave_instance *i;
    const char *fault;
    clave_err err = clave_instance_parse(&i, json, strlen(json), NULL, &fault);
    if (err != CLAVE_OK)
        fail_msg("%s: %s", json, fault);
    assert_null(fault);
    return i;
}

static void written(const clave_instance *i, const char *expected)
{
    char json[JSON_CAP];
    assert_null(clave_instance_fault(i));
    size_t n = strlen(expected);
    assert_int_equal(clave_instance_format(i, json, sizeof json), n);
    assert_string_equal(json, expected);
    for (size_t cap = 0; cap <= n; cap++) {
        memset(json, 'x', sizeof json);
        assert_int_equal(clave_instance_format(i, json, cap), n);
        assert_int_equal(json[cap], 'x');
        if (cap > 0)
            assert_int_equal(strlen(json), cap - 1);
    }
}

TEST(testJsonInstanceSerializer)
{
    clave_instance *i = parsed(of_curator);
    assert_string_equal(i->name, "web");
    assert_string_equal(i->id, "i1");
    assert_string_equal(i->address, "1.2.3.4");
    assert_int_equal(i->port, 80);
    assert_int_equal(i->ssl_port, 0);
    assert_string_equal(i->payload, "\"str\"");
    assert_int_equal(i->registered, 1);
    assert_int_equal(i->type, CLAVE_SERVICE_STATIC);
    assert_null(i->uri_spec);
    assert_false(i->disabled);
    written(i, of_curator);
    clave_instance_free(i);
}

/* Everything that an instance can have, each member once. */
TEST(every_member_is_kept)
{
    static const char all[] =
        "{\"name\":\"\xc3\xa4\\\"\",\"id\":\"i\",\"address\":null,\"port\":null,\"sslPort\":443,"
        "\"payload\":{\"@class\":\"a.B\",\"n\":[1,-2.5e3,true,null]},"
        "\"registrationTimeUTC\":1700000000123,\"serviceType\":\"DYNAMIC_SEQUENTIAL\","
        "\"uriSpec\":{\"parts\":[{\"value\":\"scheme\",\"variable\":true}]},\"enabled\":false}";
    clave_instance *i = parsed(all);
    assert_string_equal(i->name, "\xc3\xa4\"");
    assert_null(i->address);
    assert_int_equal(i->ssl_port, 443);
    assert_true(i->disabled);
    written(i, all);
    clave_instance_free(i);
}

/* Old reads new, new reads old, unknown members: TestJsonInstanceSerializerCompatibility. */
TEST(members_may_be_unknown_missing_or_in_another_order)
{
    clave_instance *i = parsed(" { \"new\" : {\"a\":[{}, \"]\"]} , \"id\" : \"\\u0069\\ud83d\\ude00"
                               "\\n\", \"name\":\"n\", \"status\":\"gone\", \"enabled\":true } ");
    assert_string_equal(i->id, "i\xf0\x9f\x98\x80\n");
    assert_int_equal(i->type, CLAVE_SERVICE_DYNAMIC);
    assert_false(i->disabled);
    clave_instance_free(i);
}

TEST(a_server_set_has_another_form)
{
    static const char member[] =
        "{\"serviceEndpoint\":{\"host\":\"h\",\"port\":8080},\"additionalEndpoints\":{},"
        "\"status\":\"ALIVE\"}";
    clave_instance *i = parsed(member);
    assert_int_equal(i->type, CLAVE_SERVICE_SERVERSET);
    assert_string_equal(i->address, "h");
    assert_int_equal(i->port, 8080);
    assert_false(i->disabled);
    i->name = "web";
    written(i, member);
    clave_instance_free(i);
    i = parsed(
        "{\"status\":\"STARTING\",\"shard\":3,\"serviceEndpoint\":{\"port\":1,\"host\":\"h\"}}");
    assert_true(i->disabled);
    clave_instance_free(i);
}

TEST(what_is_no_instance_is_told_why)
{
    static const struct {
        const char *json, *fault;
    } cases[] = {
        {"", "is empty"},
        {"127.0.0.1", "is not a JSON object"},
        {"[]", "is not a JSON object"},
        {"{}", "has no name"},
        {"{\"name\":null,\"id\":\"i\"}", "has no name"},
        {"{\"name\":\"n\"}", "has no id"},
        {"{\"name\":1,\"id\":\"i\"}", "has a name that is no text"},
        {"{\"name\":\"n\",\"id\":\"i\",\"port\":70000}",
         "has a port that is no number from 0 to 65535"},
        {"{\"name\":\"n\",\"id\":\"i\",\"port\":\"80\"}",
         "has a port that is no number from 0 to 65535"},
        {"{\"name\":\"n\",\"id\":\"i\",\"port\":8.5}",
         "has a port that is no number from 0 to 65535"},
        {"{\"name\":\"n\",\"id\":\"i\",\"sslPort\":99999999999999999999}",
         "has a port that is no number from 0 to 65535"},
        {"{\"name\":\"n\",\"id\":\"i\",\"serviceType\":\"SERVERSET\"}",
         "has a serviceType that is none of DYNAMIC, STATIC, PERMANENT, DYNAMIC_SEQUENTIAL"},
        {"{\"name\":\"n\",\"id\":\"i\",\"enabled\":1}",
         "has an \"enabled\" that is neither true nor false"},
        {"{\"name\":\"n\\u0000\",\"id\":\"i\"}", "has a NUL in a text"},
        {"{\"name\":\"\\ud800\",\"id\":\"i\"}", "has half a surrogate pair in a text"},
        {"{\"name\":\"\xff\",\"id\":\"i\"}", "is not JSON in UTF-8"},
        {"{\"name\":\"n\",\"id\":\"i\",}", "is not JSON"},
        {"{\"name\":\"n\",\"id\":\"i\"} x", "is not JSON"},
        {"{\"name\":\"n\",\"id\":\"i\",\"port\":01}", "is not JSON"},
        {"{\"serviceEndpoint\":{\"host\":\"h\"}}", "has a serviceEndpoint without host or port"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clave_instance *out;
        const char *fault;
        assert_int_equal(
            clave_instance_parse(&out, cases[i].json, strlen(cases[i].json), NULL, &fault),
            CLAVE_EINVAL);
        assert_null(out);
        assert_string_equal(fault, cases[i].fault);
    }
}

/* In memory of just that length, for the sanitizers. */
TEST(cut_anywhere_it_is_no_instance)
{
    for (size_t n = 0; n < sizeof of_curator - 1; n++) {
        clave_instance *out;
        char *cut = malloc(n + 1);
        memcpy(cut, of_curator, n);
        cut = realloc(cut, n ? n : 1);
        assert_int_equal(clave_instance_parse(&out, cut, n, NULL, NULL), CLAVE_EINVAL);
        free(cut);
    }
}

/* ---- URIs ------------------------------------------------------------------------------------ */

/* Through the JSON, as an instance that was read has it. */
static void makes(clave_instance i, const char *spec, const char *uri)
{
    char json[JSON_CAP], spec_json[JSON_CAP], got[JSON_CAP];
    assert_null(clave_uri_spec_fault(spec));
    size_t n = clave_uri_spec_format(spec, spec_json, sizeof spec_json);
    assert_int_equal(n, strlen(spec_json));
    i.uri_spec = spec_json;
    clave_instance_format(&i, json, sizeof json);
    clave_instance *read = parsed(json);
    n = strlen(uri);
    for (size_t cap = 0; cap <= n + 1; cap++) {
        assert_int_equal(clave_instance_uri(read, got, cap), n);
        if (cap > 0)
            assert_memory_equal(got, uri, cap - 1);
    }
    assert_string_equal(got, uri);
    clave_instance_free(read);
}

TEST(testScheme)
{
    makes((clave_instance){.id = "x", .name = "foo", .port = 5}, "{scheme}://foo.com",
          "http://foo.com");
    makes((clave_instance){.id = "x", .name = "foo", .ssl_port = 5}, "{scheme}://foo.com",
          "https://foo.com");
}

TEST(testFromInstance)
{
    makes((clave_instance){.address = "1.2.3.4",
                           .name = "foo",
                           .id = "bar",
                           .port = 5,
                           .ssl_port = 6,
                           .registered = 789,
                           .type = CLAVE_SERVICE_PERMANENT},
          "test://{address}:{port}:{ssl-port}/{name}/{id}/{registration-time-utc}/{service-type}",
          "test://1.2.3.4:5:6/foo/bar/789/permanent");
    /* What has no value is empty. */
    makes((clave_instance){.name = "n", .id = "i"}, "{address}{port}{ssl-port}|{ id }|{other}{}",
          "|i|");
}

TEST(testEscapes)
{
    char json[JSON_CAP];
    clave_uri_spec_format("{one}two-three-{[}four{]}-five{six}", json, sizeof json);
    assert_string_equal(json, "{\"parts\":[{\"value\":\"one\",\"variable\":true},"
                              "{\"value\":\"two-three-\",\"variable\":false},"
                              "{\"value\":\"[\",\"variable\":true},"
                              "{\"value\":\"four\",\"variable\":false},"
                              "{\"value\":\"]\",\"variable\":true},"
                              "{\"value\":\"-five\",\"variable\":false},"
                              "{\"value\":\"six\",\"variable\":true}]}");
    makes((clave_instance){.name = "n", .id = "i"}, "two-three-{[}four{]}-\"five\\\xc3\xa4",
          "two-three-{four}-\"five\\\xc3\xa4");
    clave_uri_spec_format("", json, sizeof json);
    assert_string_equal(json, "{\"parts\":[]}");
}

/* testBasic of UriSpec, and what it refuses. */
TEST(a_spec_has_its_braces_in_pairs)
{
    char json[JSON_CAP];
    clave_uri_spec_format("{one}{two}three-four-five{six}", json, sizeof json);
    assert_string_equal(json, "{\"parts\":[{\"value\":\"one\",\"variable\":true},"
                              "{\"value\":\"two\",\"variable\":true},"
                              "{\"value\":\"three-four-five\",\"variable\":false},"
                              "{\"value\":\"six\",\"variable\":true}]}");
    assert_string_equal(clave_uri_spec_fault("a}"), "has a } without {: write {]} for one");
    assert_string_equal(clave_uri_spec_fault("{a{"), "has a { within braces: write {[} for one");
    assert_string_equal(clave_uri_spec_fault("{a"), "has a { without }");
    assert_string_equal(clave_uri_spec_fault("\xff"), "is not UTF-8");
}

/* By others: members in another order and new ones, or something else. */
TEST(a_spec_may_be_anything)
{
    static const struct {
        const char *spec, *uri;
    } cases[] = {
        {NULL, ""},
        {"null", ""},
        {"\"http://h\"", ""},
        {"{}", ""},
        {"{\"parts\":{}}", ""},
        {"{\"parts\":[]}", ""},
        {"{\"parts\":[{}]}", ""},
        {"{\"parts\":[{\"variable\":true}]}", ""},
        {"{\"parts\":[{\"value\":3,\"variable\":true}]}", ""},
        {"{\"parts\":[{\"value\":\"a\"},7]}", ""},
        {"{\"parts\":[{\"value\":\"a\"}", ""},
        {"{\"new\":[1],\"parts\":[ {\"new\":{}, \"variable\" : true , \"value\":\"\\u0069d\"},"
         "{\"value\":\"\\u00e4/\"}]}",
         "i\xc3\xa4/"},
        {"{\"parts\":[{\"value\":\"a-name-that-is-longer-than-any-variable\",\"variable\":true},"
         "{\"value\":\"x\",\"variable\":false}]}",
         "x"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char uri[64] = "?";
        const clave_instance i = {.name = "n", .id = "i", .uri_spec = cases[k].spec};
        assert_int_equal(clave_instance_uri(&i, uri, sizeof uri), strlen(cases[k].uri));
        assert_string_equal(uri, cases[k].uri);
        size_t n = cases[k].spec ? strlen(cases[k].spec) : 0;
        for (size_t cut = 0; cut < n; cut++) { /* in memory of just that length */
            char *part = malloc(cut + 1);
            memcpy(part, cases[k].spec, cut);
            part[cut] = '\0';
            const clave_instance of = {.name = "n", .id = "i", .uri_spec = part};
            assert_int_equal(clave_instance_uri(&of, uri, sizeof uri), 0);
            free(part);
        }
    }
}

TEST(too_many_levels_are_refused)
{
    enum { LEVELS = 100000 };
    static char json[LEVELS + 32];
    const char *fault;
    clave_instance *out;
    int n = snprintf(json, sizeof json, "{\"payload\":");
    memset(json + n, '[', LEVELS);
    assert_int_equal(clave_instance_parse(&out, json, (size_t)n + LEVELS, NULL, &fault),
                     CLAVE_EINVAL);
    assert_string_equal(fault, "has more than 64 levels of JSON");
}

TEST(what_cannot_be_registered_is_told_why)
{
    static const struct {
        clave_instance i;
        const char *fault;
    } cases[] = {
        {{.name = "a/b", .id = "i"}, "has no name that can be part of a path"},
        {{.name = "", .id = "i"}, "has no name that can be part of a path"},
        {{.name = "n"}, "has no id that can be part of a path"},
        {{.name = "n", .id = ".."}, "has no id that can be part of a path"},
        {{.name = "n", .id = "i", .port = 65536}, "has a port that is no number from 0 to 65535"},
        {{.name = "n", .id = "i", .address = "\xff"}, "has an address that is not UTF-8"},
        {{.name = "n", .id = "i", .payload = "x"}, "has a payload that is not JSON"},
        {{.name = "n", .id = "i", .payload = "1 2"}, "has a payload that is not JSON"},
        {{.name = "n", .type = CLAVE_SERVICE_SERVERSET},
         "has no address or no port, which a member of a server set needs"},
        {{.name = "n", .id = "i", .payload = "{\"a\": [1]} "}, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *fault = clave_instance_fault(&cases[i].i);
        if (cases[i].fault)
            assert_string_equal(fault, cases[i].fault);
        else
            assert_null(fault);
    }
}

TEST(types_have_names)
{
    clave_service_type t;
    for (int i = CLAVE_SERVICE_DYNAMIC; i <= CLAVE_SERVICE_SERVERSET; i++) {
        assert_true(clave_service_type_parse(clave_service_type_name((clave_service_type)i), &t));
        assert_int_equal(t, i);
    }
    assert_false(clave_service_type_parse("dynamic", &t));
}

/* ---- following ------------------------------------------------------------------------------- */

/* Everything that was told: "+web/i1 ~web/i1 -web/i1 ready ". A path that cannot be read has a '!'
 * behind it. */
struct story {
    clave_async_instances *d;
    char text[512];
    bool free_in_event;
};

static void on_event(clave_async_instances *d, const clave_instances_event *ev, void *arg)
{
    static const char *const words[] = {
        [CLAVE_INSTANCES_UP] = "+",         [CLAVE_INSTANCES_CHANGED] = "~",
        [CLAVE_INSTANCES_DOWN] = "-",       [CLAVE_INSTANCES_INITIALIZED] = "ready",
        [CLAVE_INSTANCES_STALE] = "stale",  [CLAVE_INSTANCES_RESYNCED] = "again",
        [CLAVE_INSTANCES_ENDED] = "ended:",
    };
    struct story *s = arg;
    const clave_instances_entry *e = ev->now ? ev->now : ev->was;
    size_t n = strlen(s->text);
    const char *what = ev->type == CLAVE_INSTANCES_ENDED ? clave_err_name(ev->err) : "";
    if (e) {
        assert_true(!e->instance == !!e->fault);
        what = strstr(e->path, e->service);
    }
    snprintf(s->text + n, sizeof s->text - n, "%s%s%s ", words[ev->type], what,
             e && e->fault ? "!" : "");
    if (s->free_in_event)
        clave_async_instances_free(d);
}

static void told(struct story *s, const char *text)
{
    assert_string_equal(s->text, text);
    s->text[0] = '\0';
}

static const char *pick(struct story *s, clave_pick how)
{
    clave_instances_entry e;
    clave_err err = clave_async_instances_pick(s->d, how, &e);
    if (err == CLAVE_ENONODE)
        return "";
    assert_int_equal(err, CLAVE_OK);
    assert_non_null(e.instance);
    return strrchr(e.path, '/') + 1;
}

static struct memnet *world(void)
{
    struct memnet *p = memnet_new(&(struct memnet_options){.clients = 2, .timeout_ms = 6000});
    memnet_settle(p);
    assert_int_equal(memnet_create(p, ACTOR, "/s"), CLAVE_OK);
    assert_int_equal(memnet_create(p, ACTOR, "/s/web"), CLAVE_OK);
    assert_int_equal(memnet_create(p, ACTOR, "/s/db"), CLAVE_OK);
    return p;
}

static void put(struct memnet *p, const char *path, bool disabled)
{
    char json[JSON_CAP];
    clave_instance i = {.name = "web", .id = strrchr(path, '/') + 1, .disabled = disabled};
    clave_instance_format(&i, json, sizeof json);
    clave_create_options o = CLAVE_CREATE_OPTIONS_INIT;
    clave_err err =
        clave_async_create(p->clients[ACTOR].c, path, json, strlen(json), &o, NULL, NULL);
    assert_int_equal(err, CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(memnet_set(p, ACTOR, path, json), CLAVE_OK);
    memnet_settle(p);
}

static void follow(struct story *s, struct memnet *p, const char *service)
{
    clave_instances_options o = CLAVE_INSTANCES_OPTIONS_INIT;
    o.base = "/s";
    o.service = service;
    *s = (struct story){0};
    assert_int_equal(clave_async_instances_new(&s->d, p->clients[USER].c, &o, on_event, s),
                     CLAVE_OK);
    memnet_settle(p);
}

static void end(struct memnet *p, struct story *s)
{
    clave_async_instances_free(s->d);
    memnet_settle(p);
    assert_int_equal(memnet_stats(p).watches, 0);
    memnet_free(p);
}

static bool list(const clave_instances_entry *e, void *arg)
{
    char *out = arg;
    snprintf(out + strlen(out), 256 - strlen(out), "%s ", e->path);
    return true;
}

TEST(testServiceCache)
{
    struct story s;
    char all[256] = "";
    struct memnet *p = world();
    put(p, "/s/web/i1", false);
    put(p, "/s/db/x", false);
    assert_int_equal(memnet_create(p, ACTOR, "/s/web/i1/below"), CLAVE_OK);
    follow(&s, p, NULL);
    assert_non_null(strstr(s.text, "+web/i1 "));
    assert_non_null(strstr(s.text, "+db/x "));
    assert_non_null(strstr(s.text, "ready "));
    s.text[0] = '\0';
    assert_true(clave_async_instances_is_current(s.d));
    put(p, "/s/web/i0", false);
    told(&s, "+web/i0 ~web/i0 ");
    clave_async_instances_walk(s.d, list, all);
    assert_string_equal(all, "/s/db/x /s/web/i0 /s/web/i1 ");
    assert_int_equal(memnet_delete(p, ACTOR, "/s/web/i0"), CLAVE_OK);
    memnet_settle(p);
    told(&s, "-web/i0 ");
    end(p, &s);
}

/* Of one service; nodes of others and the service's own are no instances. */
TEST(one_service_is_followed)
{
    struct story s;
    struct memnet *p = world();
    put(p, "/s/db/x", false);
    follow(&s, p, "web");
    told(&s, "ready ");
    put(p, "/s/web/i", true);
    told(&s, "+web/i ~web/i ");
    put(p, "/s/db/y", true);
    told(&s, "");
    end(p, &s);
}

TEST(what_cannot_be_read_is_told)
{
    struct story s;
    struct memnet *p = world();
    assert_int_equal(memnet_create(p, ACTOR, "/s/web/odd"), CLAVE_OK);
    follow(&s, p, "web");
    told(&s, "+web/odd! ready ");
    assert_int_equal(memnet_set(p, ACTOR, "/s/web/odd", "{}"), CLAVE_OK);
    memnet_settle(p);
    told(&s, "~web/odd! ");
    assert_int_equal(memnet_delete(p, ACTOR, "/s/web/odd"), CLAVE_OK);
    memnet_settle(p);
    told(&s, "-web/odd! ");
    end(p, &s);
}

/* What came and went while the connection was cut is told afterwards. */
TEST(testCrashedServer)
{
    struct story s;
    struct memnet *p = world();
    put(p, "/s/web/a", false);
    put(p, "/s/web/b", false);
    follow(&s, p, "web");
    s.text[0] = '\0';
    memnet_refuse(p, USER, true);
    memnet_settle(p);
    assert_false(clave_async_instances_is_current(s.d));
    assert_int_equal(memnet_delete(p, ACTOR, "/s/web/a"), CLAVE_OK);
    put(p, "/s/web/c", false);
    memnet_refuse(p, USER, false);
    memnet_advance(p, 3000);
    assert_true(clave_async_instances_is_current(s.d));
    assert_non_null(strstr(s.text, "stale "));
    assert_non_null(strstr(s.text, "-web/a "));
    assert_non_null(strstr(s.text, "+web/c "));
    assert_null(strstr(s.text, "web/b"));
    assert_string_equal(s.text + strlen(s.text) - 6, "again ");
    end(p, &s);
}

/* As a registrant does whose session was lost: deleted and created in one transaction. */
static void put_again(struct memnet *p, const char *path, int32_t port)
{
    char json[JSON_CAP];
    clave_instance i = {.name = "web", .id = strrchr(path, '/') + 1, .port = port};
    size_t n = clave_instance_format(&i, json, sizeof json);
    const clave_op ops[] = {{.kind = CLAVE_OP_DELETE, .path = path, .version = -1},
                            {.kind = CLAVE_OP_CREATE, .path = path, .data = json, .len = n}};
    assert_int_equal(clave_async_multi(p->clients[ACTOR].c, ops, 2, NULL, NULL), CLAVE_OK);
}

/* And so it is never missing, for those that have a watch of the tree, and while a connection is
 * cut. Others that leave at that time do. */
TEST(a_registration_that_is_replaced_is_no_flap)
{
    struct story s;
    struct memnet *p = world();
    put(p, "/s/web/a", false);
    put(p, "/s/web/b", false);
    follow(&s, p, "web");
    s.text[0] = '\0';
    for (int32_t port = 1; port < 4; port++) {
        put_again(p, "/s/web/a", port);
        memnet_settle(p);
        told(&s, "~web/a ");
    }
    put_again(p, "/s/web/a", 5);
    assert_int_equal(memnet_delete(p, ACTOR, "/s/web/b"), CLAVE_OK);
    memnet_settle(p);
    assert_string_equal(pick(&s, CLAVE_PICK_STICKY), "a");
    assert_non_null(strstr(s.text, "~web/a "));
    assert_non_null(strstr(s.text, "-web/b "));
    assert_null(strstr(s.text, "-web/a "));
    s.text[0] = '\0';
    memnet_refuse(p, USER, true);
    memnet_settle(p);
    put_again(p, "/s/web/a", 6);
    memnet_settle(p);
    memnet_refuse(p, USER, false);
    memnet_advance(p, 3000);
    told(&s, "stale ~web/a again ");
    end(p, &s);
}

TEST(they_end_with_their_client)
{
    struct story s;
    struct memnet *p = world();
    follow(&s, p, "web");
    clave_async_client_close(p->clients[USER].c, p->now);
    memnet_settle(p);
    told(&s, "ready stale ended:ECLOSED ");
    assert_false(clave_async_instances_is_current(s.d));
    end(p, &s);
}

TEST(they_may_be_freed_in_an_event)
{
    struct story s;
    struct memnet *p = world();
    put(p, "/s/web/a", false);
    put(p, "/s/web/b", false);
    clave_instances_options o = {.size = sizeof o, .base = "/s", .service = "web"};
    s = (struct story){.free_in_event = true};
    assert_int_equal(clave_async_instances_new(&s.d, p->clients[USER].c, &o, on_event, &s),
                     CLAVE_OK);
    memnet_settle(p);
    assert_int_equal(strlen(s.text), strlen("+web/a "));
    assert_int_equal(memnet_stats(p).watches, 0);
    memnet_free(p);
}

TEST(names_that_are_no_part_of_a_path_are_refused)
{
    clave_async_instances *d;
    struct memnet *p = world();
    clave_instances_options o = {.size = sizeof o, .service = "a/b"};
    assert_int_equal(clave_async_instances_new(&d, p->clients[USER].c, &o, NULL, NULL),
                     CLAVE_EPATH);
    assert_non_null(strstr(clave_async_client_errmsg(p->clients[USER].c), "\"a/b\""));
    o = (clave_instances_options){.size = sizeof o, .base = "services"};
    assert_int_equal(clave_async_instances_new(&d, p->clients[USER].c, &o, NULL, NULL),
                     CLAVE_EPATH);
    assert_null(d);
    memnet_free(p);
}

/* Each allocation fails once: all is told, or the end. */
TEST(without_memory_nothing_is_missing_in_silence)
{
    struct failmem f;
    bool failed = true;
    for (size_t first = 1; failed; first++) {
        failmem_init(&f);
        struct memnet *p =
            memnet_new(&(struct memnet_options){.clients = 2, .timeout_ms = 6000, .mem = &f.mem});
        memnet_settle(p);
        assert_int_equal(memnet_create(p, ACTOR, "/s"), CLAVE_OK);
        assert_int_equal(memnet_create(p, ACTOR, "/s/web"), CLAVE_OK);
        put(p, "/s/web/a", false);
        struct story s = {0};
        clave_instances_options o = {.size = sizeof o, .base = "/s", .service = "web"};
        failmem_arm(&f, first, 1);
        clave_err err = clave_async_instances_new(&s.d, p->clients[USER].c, &o, on_event, &s);
        memnet_settle(p);
        memnet_advance(p, 5000);
        failed = f.failed;
        failmem_arm(&f, 0, 0);
        memnet_advance(p, 5000);
        if (err == CLAVE_OK)
            assert_true(strstr(s.text, "ended:ENOMEM ") || strstr(s.text, "+web/a "));
        else
            assert_int_equal(err, CLAVE_ENOMEM);
        clave_async_instances_free(s.d);
        memnet_free(p);
        assert_int_equal(f.live, 0);
    }
}

/* ---- picking --------------------------------------------------------------------------------- */

static void picks(struct story *s, clave_pick how, const char *expected)
{
    char all[64] = "";
    for (size_t i = 0; i < strlen(expected); i++)
        strcat(all, pick(s, how));
    assert_string_equal(all, expected);
}

/* TestStrategies; disabled ones are left out, as in TestServiceProvider. */
TEST(testStrategies)
{
    struct story s;
    struct memnet *p = world();
    follow(&s, p, "web");
    assert_string_equal(pick(&s, CLAVE_PICK_ROUND_ROBIN), "");
    assert_string_equal(pick(&s, CLAVE_PICK_RANDOM), "");
    assert_string_equal(pick(&s, CLAVE_PICK_STICKY), "");
    put(p, "/s/web/a", false);
    put(p, "/s/web/b", false);
    put(p, "/s/web/c", true);
    put(p, "/s/web/d", false);
    assert_int_equal(memnet_create(p, ACTOR, "/s/web/e"), CLAVE_OK); /* cannot be read */
    memnet_settle(p);
    picks(&s, CLAVE_PICK_ROUND_ROBIN, "abdabda");
    assert_int_equal(memnet_delete(p, ACTOR, "/s/web/b"), CLAVE_OK);
    memnet_settle(p);
    picks(&s, CLAVE_PICK_ROUND_ROBIN, "dad");
    put(p, "/s/web/b", false);
    unsigned seen[128] = {0};
    for (int i = 0; i < 300; i++)
        seen[(int)*pick(&s, CLAVE_PICK_RANDOM)]++;
    assert_int_equal(seen['a'] + seen['b'] + seen['d'], 300);
    assert_true(seen['a'] > 60 && seen['b'] > 60 && seen['d'] > 60);
    char first[2] = "";
    strcat(first, pick(&s, CLAVE_PICK_STICKY));
    for (int i = 0; i < 20; i++)
        assert_string_equal(pick(&s, CLAVE_PICK_STICKY), first);
    char path[16];
    snprintf(path, sizeof path, "/s/web/%s", first);
    assert_int_equal(memnet_delete(p, ACTOR, path), CLAVE_OK);
    memnet_settle(p);
    assert_string_not_equal(pick(&s, CLAVE_PICK_STICKY), first);
    clave_instances_entry e;
    assert_int_equal(clave_async_instances_pick(s.d, (clave_pick)9, &e), CLAVE_EINVAL);
    end(p, &s);
}

/* TestDownInstanceManager: two errors within the time, from the first one on. */
TEST(testDownInstanceManager)
{
    struct story s;
    struct memnet *p = world();
    put(p, "/s/web/a", false);
    put(p, "/s/web/b", false);
    follow(&s, p, "web");
    assert_int_equal(clave_async_instances_note_error(s.d, "/s/web/x"), CLAVE_ENONODE);
    assert_int_equal(clave_async_instances_note_error(s.d, "/s/web/a"), CLAVE_OK);
    picks(&s, CLAVE_PICK_ROUND_ROBIN, "abab");
    memnet_advance(p, 29000);
    assert_int_equal(clave_async_instances_note_error(s.d, "/s/web/a"), CLAVE_OK);
    picks(&s, CLAVE_PICK_ROUND_ROBIN, "bbb");
    memnet_advance(p, 1000);
    picks(&s, CLAVE_PICK_ROUND_ROBIN, "aba");
    /* The first error is over: one more does not make two. */
    assert_int_equal(clave_async_instances_note_error(s.d, "/s/web/a"), CLAVE_OK);
    memnet_advance(p, 30000);
    assert_int_equal(clave_async_instances_note_error(s.d, "/s/web/a"), CLAVE_OK);
    picks(&s, CLAVE_PICK_ROUND_ROBIN, "bab");
    end(p, &s);
}

TEST(only_one_service_is_picked_from)
{
    struct story s;
    clave_instances_entry e;
    struct memnet *p = world();
    follow(&s, p, NULL);
    assert_int_equal(clave_async_instances_pick(s.d, CLAVE_PICK_RANDOM, &e), CLAVE_EINVAL);
    end(p, &s);
}

/* ---- a server that puts requests off --------------------------------------------------------- */

/* An instance has gone; whether anything about it is still under way has to be asked. */
static void ask_one_that_puts_it_off(bool frees)
{
    CLOSED_BY(fake_close) struct fake_server f;
    static const struct wire_reply none;
    static const char *const names[] = {"i1"};
    struct wire_reply m = {.data = clave__jbytes("{\"name\":\"web\",\"id\":\"i1\"}"),
                           .stat = {.czxid = 1, .mzxid = 1, .pzxid = 1, .num_children = 1}};
    clave_async_instances *d;
    clave_instances_options o = CLAVE_INSTANCES_OPTIONS_INIT;
    o.service = "web";
    fake_open(&f, NULL);
    fake_connect(&f, true);
    assert_int_equal(clave_async_instances_new(&d, f.c, &o, NULL, NULL), CLAVE_OK);
    fake_expect(&f, OP_ADD_WATCH);
    fake_answer(&f, CLAVE_OK, &none);
    fake_expect(&f, OP_GET_DATA);
    fake_answer(&f, CLAVE_OK, &m);
    fake_expect(&f, OP_GET_CHILDREN2);
    m.names = fake_names(names, 1);
    fake_answer(&f, CLAVE_OK, &m);
    fake_expect(&f, OP_GET_DATA);
    m.stat.num_children = 0;
    fake_answer(&f, CLAVE_OK, &m);
    clave_instances_entry e;
    assert_int_equal(clave_async_instances_pick(d, CLAVE_PICK_ROUND_ROBIN, &e), CLAVE_OK);
    fake_event(&f, EVENT_DELETED, "/services/web/i1");
    fake_expect(&f, OP_EXISTS);
    fake_put_off(&f, OP_EXISTS);
    int64_t at = f.now;
    assert_int_equal(clave_async_instances_pick(d, CLAVE_PICK_ROUND_ROBIN, &e), CLAVE_OK);
    fake_answer(&f, CLAVE_ETHROTTLED, NULL);
    if (frees) {
        clave_async_instances_free(d);
        fake_expect(&f, OP_REMOVE_WATCHES);
        fake_answer(&f, CLAVE_OK, NULL);
        fake_advance_to(&f, at + 800);
        assert_true(fake_is_quiet(&f));
        return;
    }
    fake_advance_to(&f, at + 800);
    fake_expect(&f, OP_EXISTS);
    fake_answer(&f, CLAVE_OK, &m);
    assert_int_equal(clave_async_instances_pick(d, CLAVE_PICK_ROUND_ROBIN, &e), CLAVE_ENONODE);
    assert_true(fake_is_quiet(&f));
    clave_async_instances_free(d);
}

TEST(a_server_that_puts_the_question_off_is_asked_again_after_pauses)
{
    ask_one_that_puts_it_off(false);
}

TEST(what_pauses_may_be_freed)
{
    ask_one_that_puts_it_off(true);
}
