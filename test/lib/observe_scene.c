/* observe_scene.c - see observe_scene.h. */
#include "lib/observe_scene.h"
#include "lib/unit.h"

void scene_open(struct scene *s)
{
    *s = (struct scene){.rig = webrig_new(NULL)};
    s->o = s->rig->web->observe;
    clave__observe_set_wall(s->o, WALL);
    s->o->feed = (struct observe_feed *)s->feed;
}

void scene_close(struct scene *s)
{
    s->o->feed = NULL;
    webrig_free(s->rig);
}

void scene_add(struct scene *s, const char *path, const char *data)
{
    clave__web_tick(s->rig->web, s->rig->net->now); /* as a callback of the client would */
    s->zxid++;
    clave_stat stat = {.czxid = s->zxid,
                       .mzxid = s->zxid,
                       .ctime = clave__observe_now(s->o),
                       .ephemeral_owner = s->zxid};
    clave__observe_node(s->o, &(struct observe_node){path, &stat, data, strlen(data)});
}

/* As the feed's next question would. */
static void scene_hear(struct scene *s)
{
    s->o->as_of = s->rig->net->now;
}

void scene_loaded(struct scene *s)
{
    scene_hear(s);
    clave__observe_loaded(s->o, s->zxid);
    webrig_settle(s->rig);
}

struct webrig_call *scene_get(struct scene *s, const char *target, unsigned status)
{
    scene_hear(s);
    struct webrig_call *c = webrig_request(s->rig, "GET", target, NULL, NULL);
    assert_true(c->answered);
    if (c->status != status)
        fail_msg("%s: %u %s", target, c->status, webrig_body(c));
    return c;
}

size_t scene_count(const char *text, const char *word)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        n++;
    return n;
}

const char *scene_paths(struct webrig_call *c)
{
    static char text[4096];
    text[0] = '\0';
    for (const char *at = webrig_body(c); (at = strstr(at, "{\"path\": \""));) {
        at += strlen("{\"path\": \"");
        size_t n = strlen(text), len = strcspn(at, "\"");
        snprintf(text + n, sizeof text - n, "%.*s ", (int)len, at);
    }
    return text;
}

struct webrig_call *scene_follow(struct scene *s, const char *target, const char *headers)
{
    struct webrig_call *c = webrig_request(s->rig, "GET", target, headers, NULL);
    assert_int_equal(c->status, 200);
    assert_string_equal(webrig_header(c, "Content-Type"), "text/event-stream");
    return c;
}

const char *scene_events(const struct webrig_call *c)
{
    static char text[4096];
    text[0] = '\0';
    for (const char *at = webrig_body(c); (at = strstr(at, "event: ")); at++) {
        char name[32], path[64] = "";
        int holders = -1, waiters = -1;
        sscanf(at, "event: %31s\ndata: {\"path\": \"%63[^\"]", name, path);
        const char *end = strstr(at, "\n\n"), *n = strstr(at, "\"nholders\": ");
        if (n && n < end)
            sscanf(n, "\"nholders\": %d, \"nwaiters\": %d", &holders, &waiters);
        size_t len = strlen(text);
        if (holders >= 0)
            snprintf(text + len, sizeof text - len, "%s:%s/%d/%d ", name, path, holders, waiters);
        else
            snprintf(text + len, sizeof text - len, "%s ", name);
    }
    return text;
}

const char *scene_last_id(const struct webrig_call *c)
{
    static char header[128];
    const char *last = NULL;
    for (const char *at = webrig_body(c); (at = strstr(at, "id: ")); at++)
        last = at;
    assert_non_null(last);
    snprintf(header, sizeof header, "Last-Event-ID: %.*s", (int)strcspn(last + 4, "\n"), last + 4);
    return header;
}

void scene_add_of(struct scene *s, int64_t session, const char *path, const char *data)
{
    s->zxid++;
    clave_stat stat = {.czxid = s->zxid, .mzxid = s->zxid, .ephemeral_owner = session};
    clave__observe_node(s->o, &(struct observe_node){path, &stat, data, strlen(data)});
}
