/* web_page_test.c - the files of the page as the engine serves them below /ui/. */
#include "lib/unit.h"
#include "lib/webrig.h"
#include "web/api/api.h"

static struct webrig *page_rig(void)
{
    struct webrig_options o = {.assets = clave__page_assets, .nassets = clave__page_nassets};
    return webrig_new(&o);
}

TEST(it_begins_at_ui)
{
    CLOSED_BY(webrig_freed) struct webrig *r = page_rig();
    CLOSED_BY(webrig_ended) struct webrig_call *c = webrig_request(r, "GET", "/ui/", NULL, NULL);
    assert_int_equal(c->status, 200);
    assert_string_equal(webrig_header(c, "Content-Type"), "text/html; charset=utf-8");
    assert_string_equal(webrig_header(c, "Content-Encoding"), "gzip");
    assert_string_equal(webrig_header(c, "X-Content-Type-Options"), "nosniff");
    assert_non_null(strstr(webrig_header(c, "Content-Security-Policy"), "default-src 'self'"));
}

/* A proxy may serve it below a path that the engine does not know. */
TEST(the_ways_to_it_are_relative)
{
    static const char *const targets[] = {"/", "/ui"};
    CLOSED_BY(webrig_freed) struct webrig *r = page_rig();
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = webrig_request(r, "GET", targets[i], NULL, NULL);
        assert_int_equal(c->status, 308);
        assert_string_equal(webrig_header(c, "Location"), "ui/");
    }
}

TEST(every_file_is_compressed_and_told_unchanged)
{
    CLOSED_BY(webrig_freed) struct webrig *r = page_rig();
    size_t total = 0;
    for (size_t i = 0; i < clave__page_nassets; i++) {
        const struct web_asset *a = &clave__page_assets[i];
        char target[128], known[64];
        snprintf(target, sizeof target, "/ui/%s", a->path);
        snprintf(known, sizeof known, "If-None-Match: %s", a->etag);
        struct webrig_call *c = webrig_request(r, "GET", target, NULL, NULL);
        assert_int_equal(c->status, 200);
        assert_string_equal(webrig_header(c, "ETag"), a->etag);
        assert_int_equal(clave__buf_len(&c->body), a->len);
        assert_memory_equal(clave__buf_bytes(&c->body), "\x1f\x8b", 2);
        total += a->len;
        webrig_end(c);
        c = webrig_request(r, "GET", target, known, NULL);
        assert_int_equal(c->status, 304);
        webrig_end(c);
    }
    assert_true(total > 0 && total <= 100 * 1024);
}

TEST(other_files_are_not_there)
{
    static const char *const targets[] = {"/ui/no.js", "/ui/js/", "/ui/../web.c",
                                          "/ui/%2e%2e/web.c"};
    CLOSED_BY(webrig_freed) struct webrig *r = page_rig();
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        CLOSED_BY(webrig_ended)
        struct webrig_call *c = webrig_request(r, "GET", targets[i], NULL, NULL);
        assert_true(c->status == 404 || c->status == 400);
    }
}
