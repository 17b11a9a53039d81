#include "http/http_copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/http_world.h"

/* A copy counts as current for so long. */
enum { COPY_CURRENT_MS = 2000 };

bool http_copy_is_asked(const struct http_call *c)
{
    return !strstr(c->target, "?token=") &&
           (http_call_is(c, "GET", "/v1/locks") || http_call_is(c, "GET", "/v1/elections"));
}

/* What the answer says of who holds it: "holders" or "leader", up to the end of that; "": nobody.
 * false: it does not say. */
static bool copy_holders(const struct http_call *c, const char *path, char *out, size_t cap)
{
    char mark[48];
    snprintf(mark, sizeof mark, "\"path\": \"%s\"", path);
    const char *at = strstr(c->answer, mark);
    bool list = strstr(c->target, "?prefix=") != NULL;
    out[0] = '\0';
    if (c->status == 404 || !at)
        return c->status == 404 || list;
    bool election = http_call_is(c, "GET", "/v1/elections");
    at = strstr(at, election ? "\"leader\": " : "\"holders\": [");
    const char *end = at ? strchr(at, election ? '}' : ']') : NULL;
    if (!end)
        return false;
    snprintf(out, cap, "%.*s", (int)(end - at), at);
    if (election && strncmp(at, "\"leader\": null", 14) == 0)
        out[0] = '\0';
    return true;
}

/* Each of whom it says that it holds did, at a moment since `from`. */
static void copy_judge_holders(const struct http_call *c, unsigned site, const char *holders,
                               int64_t from)
{
    static const char mark[] = "\"token\": ";
    struct http_world *h = c->from->of;
    for (const char *at = holders; (at = strstr(at, mark)); at += strlen(mark)) {
        int64_t token = http_json_int(at, "token");
        const struct http_place *p = http_place_find(h, site, token);
        if (p && !http_place_held_since(p, from))
            http_rule_broken(h->w, RULE_COPY_IS_TRUE, "%s says that %s holds, %s %lld ms before",
                             c->gate->name, p->node,
                             p->turn == HTTP_NEVER ? "whose turn it is not," : "which was gone",
                             (long long)((from - p->gone) / MS));
    }
}

/* Whoever held it all the time since then is among them. */
static void copy_judge_missing(const struct http_call *c, unsigned site, const char *holders,
                               int64_t from)
{
    struct http_world *h = c->from->of;
    for (size_t i = 0; i < h->places.nstanding; i++) {
        const struct http_place *p = h->places.standing[i];
        char token[32];
        snprintf(token, sizeof token, "\"%lld\"", (long long)p->token);
        if (p->site == site && p->holds <= from && !strstr(holders, token))
            http_rule_broken(h->w, RULE_COPY_IS_TRUE, "%s does not say that %s holds, for %lld ms",
                             c->gate->name, p->node, (long long)((h->w->now - p->holds) / MS));
    }
}

/* What is sent is older by the time from the clock that the age was read from: that was read after
 * the request had been sent. */
int64_t http_copy_from(const struct http_call *c, bool untold)
{
    const char *now = strstr(c->answer, "\"current\": true");
    if (!now && !untold)
        return -1;
    int64_t age_ms = now ? http_json_int(now, "age_ms") : COPY_CURRENT_MS;
    int64_t from = c->sent_at - age_ms * MS - 2 * MS - c->from->of->timeout_us / 32;
    return from > 0 ? from : 0;
}

/* That of an ensemble follows one member, which may be behind. */
void http_copy_told(struct http_call *c)
{
    struct http_world *h = c->from->of;
    int64_t from = http_copy_from(c, false);
    char holders[HTTP_ANSWER];
    bool whole = strlen(c->answer) < sizeof c->answer - 1;
    if (from < 0 || !whole || c->gate->nservers > 1 || !h->server->server ||
        checker_is_beyond(h->checker))
        return;
    for (unsigned i = 0; i < HTTP_SITES; i++) {
        const char *path = h->sites[i].layout.path;
        bool election = h->sites[i].layout.kind == LOCK_LATCH;
        if (election != http_call_is(c, "GET", "/v1/elections") ||
            (!strstr(c->target, "?prefix=") && !strstr(c->target, path)) ||
            !copy_holders(c, path, holders, sizeof holders))
            continue;
        h->told.copies++;
        copy_judge_holders(c, i, holders, from);
        copy_judge_missing(c, i, holders, from);
    }
}
