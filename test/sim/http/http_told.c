#include "http/http_told.h"

#include <stdio.h>
#include <stdlib.h>

#include "http/http_copy.h"
#include "http/http_world.h"
#include "inspector.h"
#include "server/server_internal.h"

/* ---- what was asked for ---------------------------------------------------------------------- */

void http_told_sent(struct http_call *c)
{
    static const char claims[] = "/v1/claims/", sessions[] = "/v1/sessions/";
    struct http_told *t = &c->from->of->told;
    http_signs_sent(c);
    bool one = http_call_is(c, "DELETE", claims);
    if (c->sent_at == 0)
        c->sent_at = c->w->now;
    if (!one && !http_call_is(c, "DELETE", sessions))
        return;
    struct http_deed *d = &t->deeds[t->ndeeds++ % HTTP_DEEDS];
    *d = (struct http_deed){.session = c->session};
    if (one)
        snprintf(d->claim, sizeof d->claim, "%s", c->target + strlen(claims));
}

static bool told_is_own_deed(const struct http_world *h, const struct http_place *p)
{
    const struct http_told *t = &h->told;
    for (size_t i = 0; i < HTTP_DEEDS; i++)
        if (t->deeds[i].session == p->session && p->session != 0 &&
            strstr(p->node, t->deeds[i].claim))
            return true;
    return false;
}

uint64_t http_told_write(struct http_world *h, unsigned site, int64_t guard)
{
    struct http_told *t = &h->told;
    struct http_write *w = &t->writes[t->nwrites++ % HTTP_WRITES];
    *w = (struct http_write){
        .number = ++t->requests, .site = site, .guard = guard, .sent_at = h->w->now};
    return w->number;
}

/* ---- over, or waiting ------------------------------------------------------------------------ */

/* Marks are kept for a minute at least, at the servers. A gate whose key nobody shares has them in
 * memory, and forgets them with a session that it gives up and that comes back: see told_over. */
enum { OVER_S = 50 };

/* A place of a claim of which it was told that it is over, though it may take a while to go: nobody
 * is told that it is held, and it does not stay. `held`: it is told now. Where its max_hold_ms is
 * over, its place goes when a gate has its session, and the claim may be made anew. */
static void told_is_over(struct http_world *h, const struct http_place *p,
                         const struct http_call *held)
{
    bool runs = h->server->server != NULL && !checker_is_beyond(h->checker);
    for (size_t i = 0; i < HTTP_OVER && runs && p->session != 0; i++) {
        const struct http_over *o = &h->told.over[i];
        int64_t ago = h->w->now - o->at;
        if (o->session == p->session && ago < OVER_S * 1000 * MS &&
            (!o->spent ||
             (held && held->sent_at > o->at && p->told_at > 0 && p->told_at <= o->at)) &&
            (held || ago > 3 * h->timeout_us) && strstr(p->node, o->claim))
            http_rule_broken(h->w, RULE_RELEASED_STAYS, "%s %s, of which it was told %lld ms ago",
                             p->node, held ? "is held" : "stands", (long long)(ago / MS));
    }
}

static void told_note_over(struct http_call *c, const char *claim, bool spent)
{
    struct http_world *h = c->from->of;
    if (c->session == 0 || h->gates[0].draws_key)
        return;
    for (size_t i = 0; i < HTTP_OVER && spent; i++)
        if (h->told.over[i].session == c->session && strcmp(h->told.over[i].claim, claim) == 0)
            return;
    struct http_over *o = &h->told.over[h->told.nover++ % HTTP_OVER];
    *o = (struct http_over){.session = c->session, .at = h->w->now, .spent = spent};
    snprintf(o->claim, sizeof o->claim, "%s", claim);
}

static bool told_is_spent(const char *cause)
{
    return strcmp(cause, "max_hold") == 0 || strcmp(cause, "work_silent") == 0;
}

/* Each claim of a session of which is told that its time is over. */
static void told_spent(struct http_call *c, const char *mark)
{
    for (const char *at = c->answer; (at = strstr(at, mark)); at += strlen(mark)) {
        const char *from = at;
        char id[40] = "";
        while (from > c->answer && *from != '{')
            from--;
        if (http_json(from, "id", id, sizeof id))
            told_note_over(c, id, true);
    }
}

/* The node of the claim is gone, by the servers, when it is told that it was released. */
static void told_released(struct http_call *c, const char *claim)
{
    struct http_world *h = c->from->of;
    for (unsigned i = 0; i < HTTP_SITES && h->server->server && c->session != 0; i++) {
        const struct tree *tree = &h->server->server->tree;
        const struct node *top = clave__tree_find(tree, clave__jbytes(h->sites[i].layout.path));
        for (const struct node *n = top; n && (n = clave__tree_next(n, top));) {
            char path[PATH_SIZE];
            snprintf(path, sizeof path, "%.*s", (int)n->path_len, clave__node_path(n));
            if (n->stat.owner == c->session && strstr(path, claim) &&
                !checker_is_beyond(h->checker))
                http_rule_broken(h->w, RULE_RELEASED_IS_GONE, "%s tells %s that %s is released",
                                 c->gate->name, c->from->name, path);
        }
    }
}

/* So has the session of which it is told that it is closed, at whichever gate it was last. */
static void told_closed(struct http_call *c)
{
    struct http_world *h = c->from->of;
    if (h->server->server && c->session != 0 && inspector_has_session(h->server, c->session) &&
        !checker_is_beyond(h->checker))
        http_rule_broken(h->w, RULE_CLOSED_IS_OVER, "%s tells %s that 0x%llx is closed",
                         c->gate->name, c->from->name, (unsigned long long)c->session);
}

static void told_over(struct http_call *c)
{
    static const char claims[] = "/v1/claims/";
    struct http_world *h = c->from->of;
    char cause[32] = "", id[40];
    bool signs = http_sign_claim(c, id);
    bool released = c->status == 204 && http_call_is(c, "DELETE", claims);
    if (released)
        told_released(c, c->target + strlen(claims));
    for (size_t i = 0; i < h->places.nstanding; i++)
        if (h->places.standing[i]->gone == HTTP_NEVER)
            told_is_over(h, h->places.standing[i], NULL);
    if (c->status == 410 && (signs || http_call_is(c, "GET", claims)))
        http_json(c->answer, "cause", cause, sizeof cause);
    bool spent = told_is_spent(cause);
    if (released || spent || strcmp(cause, "released") == 0)
        told_note_over(c, signs ? id : c->target + strlen(claims), spent);
    if (c->status < 300) {
        told_spent(c, "\"cause\": \"max_hold\"");
        told_spent(c, "\"cause\": \"work_silent\"");
    }
}

/* ---- held ------------------------------------------------------------------------------------ */

static void told_is_barred(struct http_call *c, const struct http_place *p, int64_t valid_ms)
{
    struct http_world *h = c->from->of;
    int64_t took = c->from == &h->team.sender ? c->gate->roles->took_at[p->site] : HTTP_NEVER;
    int64_t slack = 2 * MS + h->timeout_us / 32;
    int64_t until = c->begun_at + valid_ms * MS;
    bool before = p->told_at > 0 && p->told_at < took;
    if (valid_ms > 0 && took < c->begun_at && until > p->told_to + slack)
        http_rule_broken(h->w, before ? RULE_ROLE_ENDS : RULE_ROLE_BEFORE_GRANT,
                         "%s tells %s of %s %lld ms after the role was taken away, for %lld ms "
                         "more than was told before",
                         c->gate->name, c->from->name, p->node,
                         (long long)((h->w->now - took) / MS),
                         (long long)((until - p->told_to) / MS));
}

/* Nobody is told of it before its beginning is noted at the servers. Their wall clock says how long
 * it has been held: as much longer as that is slow, and nothing is known once it was set. */
static void told_is_overheld(struct http_call *c, const struct http_place *p, int64_t valid_ms)
{
    struct http_world *h = c->from->of;
    int64_t most = h->sites[p->site].max_hold_ms, until = c->begun_at + valid_ms * MS;
    int64_t slack = most * MS * (h->w->drift_ppm + 2 * HTTP_PPM) / 1000000 + MS;
    if (most > 0 && valid_ms > 0 && p->told_at > 0 && h->server->wall_shift_ms == 0 &&
        until > p->told_at + most * MS + slack && !checker_is_beyond(h->checker))
        http_rule_broken(h->w, RULE_HOLD_IS_LIMITED,
                         "%s tells %s of %s that it is held until %lld ms after it was first told, "
                         "with a limit of %lld",
                         c->gate->name, c->from->name, p->node,
                         (long long)((until - p->told_at) / MS), (long long)most);
}

static unsigned told_site(const struct http_world *h, const char *node)
{
    for (unsigned i = 0; i < HTTP_SITES; i++)
        if (strncmp(node, h->sites[i].layout.path, strlen(h->sites[i].layout.path)) == 0)
            return i;
    return 0;
}

/* `session` 0: it is not told. */
static struct http_place *told_held(struct http_call *c, const char *text, int64_t session)
{
    struct http_world *h = c->from->of;
    char node[PATH_SIZE] = "";
    int64_t token = http_json_int(text, "token"), valid = http_json_int(text, "valid_ms");
    http_json(text, "node", node, sizeof node);
    unsigned site = told_site(h, node);
    struct http_place *p = http_place_find(h, site, token);
    bool runs = h->server->server != NULL; /* else what stood last is known */
    h->told.held++;
    if (!p || !http_place_held_since(p, c->sent_at) || strcmp(p->node, node) != 0 ||
        (session != 0 && p->session != session)) {
        if (runs && !checker_is_beyond(h->checker))
            http_rule_broken(h->w, RULE_HELD_IS_TRUE,
                             "%s tells %s (%s) that it holds %s, %s, for %lld ms", c->gate->name,
                             c->from->name, c->target, node,
                             !p                      ? "which never was there"
                             : p->turn == HTTP_NEVER ? "whose turn it is not"
                             : p->gone == HTTP_NEVER ? "which is not its own"
                                                     : "which was gone when it asked",
                             (long long)valid);
        return NULL;
    }
    told_is_barred(c, p, valid);
    told_is_overheld(c, p, valid);
    http_signs_told(c, p, valid);
    if (p->gone == HTTP_NEVER)
        told_is_over(h, p, c);
    int64_t until = c->begun_at + valid * MS;
    p->told_to = until > p->told_to ? until : p->told_to;
    p->told_at = p->told_at > 0 ? p->told_at : h->w->now;
    p->named_at = h->w->now;
    return runs ? p : NULL;
}

/* Of the session, or of one claim: each that is held. */
static void told_claims(struct http_call *c)
{
    static const char mark[] = "\"state\": \"held\"";
    for (const char *at = c->answer; (at = strstr(at, mark)); at += strlen(mark)) {
        const char *from = at;
        while (from > c->answer && *from != '{')
            from--;
        struct http_place *p = told_held(c, from, c->session);
        if (!p)
            continue;
        int64_t until = clock_when(c->from->clock, c->sent_ms + http_json_int(from, "valid_ms"));
        p->relied_to = until > p->relied_to ? until : p->relied_to;
        if (p->gone != HTTP_NEVER)
            http_told_gone(c->from->of, p);
    }
}

void http_told_piece(struct http_call *c, const void *bytes, size_t n)
{
    static const char mark[] = "\"event\": \"held\"";
    char text[2048];
    snprintf(text, sizeof text, "%.*s", (int)n, (const char *)bytes);
    for (const char *at = text; (at = strstr(at, mark)); at += strlen(mark))
        told_held(c, at, 0);
}

void http_told_gone(struct http_world *h, const struct http_place *p)
{
    if (p->gone >= p->relied_to || told_is_own_deed(h, p) || checker_is_beyond(h->checker))
        return;
    http_rule_broken(h->w, RULE_RELIED_ON_STANDS,
                     "%s is gone, of which was told that it is held for %lld ms more", p->node,
                     (long long)((p->relied_to - p->gone) / MS));
}

/* ---- waiting ----------------------------------------------------------------------------------
 */

/* Somebody was told that it is held before this was asked, and it stands still. */
static void told_waits(struct http_call *c, const char *from)
{
    struct http_world *h = c->from->of;
    char id[40] = "";
    if (!http_json(from, "id", id, sizeof id) || !id[0] || !h->server->server ||
        checker_is_beyond(h->checker))
        return;
    for (size_t i = 0; i < h->places.nstanding; i++) {
        const struct http_place *p = h->places.standing[i];
        if (p->session == c->session && strstr(p->node, id) && p->told_at > 0 &&
            p->told_at < c->sent_at && p->gone == HTTP_NEVER)
            http_rule_broken(h->w, RULE_WAITING_IS_TRUE, "%s says that %s waits (%s)",
                             c->gate->name, p->node, c->target);
    }
}

static void told_waiting(struct http_call *c)
{
    static const char mark[] = "\"state\": \"waiting\"";
    for (const char *at = c->answer; (at = strstr(at, mark)); at += strlen(mark)) {
        const char *from = at;
        while (from > c->answer && *from != '{')
            from--;
        told_waits(c, from);
    }
}

/* There is no such claim, is said, or to a sign of life that it waits. */
static void told_none(struct http_call *c)
{
    struct http_world *h = c->from->of;
    char claim[40];
    bool signs = http_sign_claim(c, claim);
    const char *id = signs ? claim : c->target + strlen("/v1/claims/");
    bool none = c->status == 404 && (signs || http_call_is(c, "GET", "/v1/claims/"));
    if (!(none || (c->status == 409 && signs)) || !h->server->server ||
        checker_is_beyond(h->checker))
        return;
    for (size_t i = 0; i < h->places.nstanding; i++) {
        const struct http_place *p = h->places.standing[i];
        if (p->session == c->session && strstr(p->node, id) && p->told_at > 0 &&
            p->told_at < c->sent_at && p->gone == HTTP_NEVER && !told_is_own_deed(h, p))
            http_rule_broken(h->w, RULE_OVER_IS_TRUE, "%s does not know %s (%s)", c->gate->name,
                             p->node, c->target);
    }
}

/* ---- refused --------------------------------------------------------------------------------- */

static void told_place_of_refused(struct http_world *h, uint64_t number, bool stopped,
                                  const char *node)
{
    http_rule_broken(h->w, stopped ? RULE_STOPPED_IS_NOT_BEGUN : RULE_REFUSED_IS_NOT_BEGUN,
                     "%s was made by request %llu", node, (unsigned long long)number);
}

void http_told_place(struct http_world *h, const struct http_place *p)
{
    for (size_t i = 0; i < HTTP_REFUSED && p->request != 0; i++)
        if (h->told.refused[i] == p->request)
            told_place_of_refused(h, p->request, h->told.stopped[i], p->node);
}

static void told_refused(struct http_call *c)
{
    struct http_world *h = c->from->of;
    struct http_told *t = &h->told;
    if (c->number == 0 || c->twice || !strstr(c->answer, "\"class\": \"retry\""))
        return;
    for (size_t i = 0; i < HTTP_WRITES; i++)
        if (t->writes[i].number == c->number) {
            t->writes[i].refused = true;
            t->writes[i].stopped = c->gate->closing;
            if (t->writes[i].made)
                told_place_of_refused(h, c->number, c->gate->closing, "a node");
            return;
        }
    if (c->status == 409)
        return; /* its node may be on its way out */
    t->stopped[t->nrefused % HTTP_REFUSED] = c->gate->closing;
    t->refused[t->nrefused++ % HTTP_REFUSED] = c->number;
    for (size_t i = 0; i < HTTP_PLACES; i++)
        if (h->places.list[i].request == c->number)
            told_place_of_refused(h, c->number, c->gate->closing, h->places.list[i].node);
}

/* ---- guards and tokens ----------------------------------------------------------------------- */

/* The node of a guarded write is there for the first time. */
static void told_judge_write(struct http_world *h, struct http_write *w)
{
    const struct http_place *p = http_place_find(h, w->site, w->guard);
    w->made = true;
    h->told.guarded++;
    if (w->refused)
        told_place_of_refused(h, w->number, w->stopped, "a node");
    if (!p || !http_place_held_since(p, w->sent_at))
        http_rule_broken(h->w, RULE_GUARD_HOLDS, "write %llu is done with token %lld, %s",
                         (unsigned long long)w->number, (long long)w->guard,
                         !p                      ? "which never was one"
                         : p->turn == HTTP_NEVER ? "whose turn it is not"
                                                 : "which was gone when it was asked for");
}

void http_told_look(struct http_world *h)
{
    struct http_told *t = &h->told;
    const struct tree *tree = &h->server->server->tree;
    const struct node *top = clave__tree_find(tree, clave__jbytes(HTTP_WRITES_PATH));
    if (!top || top->stat.pzxid == t->writes_pzxid)
        return;
    t->writes_pzxid = top->stat.pzxid;
    for (size_t i = 0; i < HTTP_WRITES; i++) {
        char path[PATH_SIZE];
        struct http_write *w = &t->writes[i];
        if (w->number == 0 || w->made)
            continue;
        snprintf(path, sizeof path, HTTP_WRITES_PATH "/w%llu", (unsigned long long)w->number);
        if (clave__tree_find(tree, clave__jbytes(path)))
            told_judge_write(h, w);
    }
}

static void told_token(struct http_call *c)
{
    struct http_world *h = c->from->of;
    const char *at = strstr(c->target, "?token=");
    char holds[8] = "";
    if (!at || c->status != 200)
        return;
    int64_t token = atoll(at + strlen("?token="));
    const struct http_place *p =
        http_place_find(h, told_site(h, c->target + strlen("/v1/locks")), token);
    http_json(c->answer, "holds", holds, sizeof holds);
    bool yes = strcmp(holds, "true") == 0;
    bool ever = p && http_place_held_since(p, c->sent_at);
    /* Somebody was told before: so it is on the disk as well. */
    bool always = p && p->told_at > 0 && p->told_at <= c->sent_at && p->gone == HTTP_NEVER;
    h->told.tokens++;
    if (yes ? !ever : always)
        http_rule_broken(h->w, RULE_TOKEN_IS_TRUE, "%s says that %lld %s, %s", c->gate->name,
                         (long long)token, yes ? "holds" : "does not hold",
                         !p       ? "which never stood there"
                         : always ? "which it did all the time"
                                  : "which it did at no moment since it was asked");
}

/* ---------------------------------------------------------------------------------------------- */

void http_told_answer(struct http_call *c)
{
    if (c->status == 204 && http_call_is(c, "DELETE", "/v1/sessions/"))
        told_closed(c);
    if (c->from->told)
        c->from->told(c->from, c);
    else if (http_copy_is_asked(c))
        http_copy_told(c);
    else if (http_call_is(c, "GET", "/v1/locks/"))
        told_token(c);
    else if (c->status < 300) {
        told_over(c);
        told_claims(c);
        told_waiting(c);
    } else if (c->status == 404 || c->status == 409 || c->status == 410) {
        told_over(c);
        told_none(c);
    }
    if (!c->from->told && (c->status == 409 || c->status == 429 || c->status == 503))
        told_refused(c);
}
