#include "http/http_signs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "http/http_world.h"
#include "inspector.h"
#include "server/server_internal.h"

bool http_sign_claim(const struct http_call *c, char out[40])
{
    static const char claims[] = "/v1/claims/";
    const char *id = c->target + strlen(claims), *end = strchr(id, '/');
    if (!http_call_is(c, "POST", claims) || !end)
        return false;
    snprintf(out, 40, "%.*s", (int)(end - id), id);
    return true;
}

void http_signs_sent(struct http_call *c)
{
    struct http_signs *s = &c->from->of->signs;
    char claim[40];
    size_t i = 0, n = s->n < HTTP_SIGNS ? s->n : HTTP_SIGNS;
    if (!http_sign_claim(c, claim))
        return;
    while (i < n && strcmp(s->list[i].claim, claim) != 0)
        i++;
    if (i == n) {
        i = s->n++ % HTTP_SIGNS;
        s->list[i].asked = s->list[i].noted = 0;
        snprintf(s->list[i].claim, sizeof s->list[i].claim, "%s", claim);
    }
    s->list[i].asked++;
}

static void sign_count(struct http_world *h, const struct http_place *p)
{
    struct http_signs *s = &h->signs;
    size_t n = s->n < HTTP_SIGNS ? s->n : HTTP_SIGNS;
    s->noted++;
    for (size_t i = 0; i < n; i++)
        if (strstr(p->node, s->list[i].claim) && s->list[i].noted++ < s->list[i].asked)
            return;
    if (s->n <= HTTP_SIGNS) /* else it may be forgotten */
        http_rule_broken(h->w, RULE_SIGN_IS_ASKED,
                         "more signs of life are noted of %s than were asked for", p->node);
}

/* What the gates have noted of it: see src/web/session/claim.c. */
static void sign_look(struct http_world *h, struct http_place *p)
{
    char path[PATH_SIZE], text[32];
    const char *uuid = strstr(p->node, "_c_");
    if (!uuid)
        return;
    snprintf(path, sizeof path, "/clave-gate/hold-%.36s-%016" PRIx64, uuid + 3, (uint64_t)p->token);
    const struct node *n = clave__tree_find(&h->server->server->tree, clave__jbytes(path));
    if (!n || (n->stat.mzxid == p->note_mzxid && n->stat.mtime == p->note_mtime))
        return;
    bool newer = n->stat.mzxid > p->note_mzxid; /* else a crash has taken something back */
    struct jbytes data = clave__node_data(n);
    snprintf(text, sizeof text, "%.*s", data.n > 0 ? (int)data.n : 0,
             data.n > 0 ? (const char *)data.p : "");
    bool made = n->stat.version == 0, word = text[0] > '9', sign = !word && atoll(text) <= 0;
    bool anew = made || n->stat.ctime != p->note_ctime; /* the one before was lost in a crash */
    p->note_mzxid = n->stat.mzxid;
    p->note_ctime = n->stat.ctime;
    p->note_mtime = n->stat.mtime;
    if (anew || sign)
        p->signed_at = h->w->now + (sign && !made ? atoll(text) * MS : 0);
    if (sign && !made && newer && p->session != 0)
        sign_count(h, p);
}

void http_signs_look(struct http_world *h)
{
    struct http_signs *s = &h->signs;
    int64_t zxid = inspector_zxid(h->server);
    if (s->seen_zxid == zxid && s->seen_start == h->server->stats.starts)
        return;
    s->seen_zxid = zxid;
    s->seen_start = h->server->stats.starts;
    for (size_t i = 0; i < h->places.nstanding; i++)
        if (h->sites[h->places.standing[i]->site].depend_ms > 0)
            sign_look(h, h->places.standing[i]);
}

/* The servers' wall clock says how long the work was silent: see told_is_overheld. */
void http_signs_told(struct http_call *c, const struct http_place *p, int64_t valid_ms)
{
    struct http_world *h = c->from->of;
    int64_t most = h->sites[p->site].depend_ms, until = c->begun_at + valid_ms * MS;
    int64_t slack = most * MS * (h->w->drift_ppm + 2 * HTTP_PPM) / 1000000 + 2 * MS;
    if (most > 0 && valid_ms > 0 && h->server->wall_shift_ms == 0 &&
        until > p->signed_at + most * MS + slack && !checker_is_beyond(h->checker))
        http_rule_broken(h->w, RULE_SILENCE_ENDS,
                         "%s tells %s of %s that it is held until %lld ms after its newest sign of "
                         "life, with depend_ms %lld",
                         c->gate->name, c->from->name, p->node,
                         (long long)((until - p->signed_at) / MS), (long long)most);
}
