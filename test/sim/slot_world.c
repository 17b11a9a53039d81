#include "slot_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector.h"
#include "server/server_internal.h"

const char *slot_world_id(unsigned id)
{
    static const char *const ids[SLOT_IDS] = {"a", "b/1", "c-d", "100%", "e"};
    return ids[id];
}

void slot_world_init(struct slot_world *s, struct world *w, struct server_host *server)
{
    *s = (struct slot_world){.w = w, .server = server};
}

void slot_world_fini(struct slot_world *s)
{
    free(s->verdicts);
    s->verdicts = NULL;
}

/* ---- what stands at the server --------------------------------------------------------------- */

static const struct node *slot_world_find(const struct slot_world *s, const char *path)
{
    return clave__tree_find(&s->server->server->tree, clave__jbytes(path));
}

/* As Curator's SharedCount: four bytes, the highest first. */
static unsigned slot_world_limit(const struct node *n)
{
    struct jbytes data = clave__node_data(n);
    unsigned limit = 0;
    for (int i = 0; data.n == 4 && i < 4; i++)
        limit = limit << 8 | (uint8_t)data.p[i];
    return limit;
}

/* The id of a node: what stands before "-<uuid>" in its name. */
static size_t slot_world_id_len(const struct node *n)
{
    enum { SUFFIX = 1 + 36 };
    return n->path_len > SUFFIX ? n->path_len - SUFFIX : 0;
}

static unsigned slot_world_take_of(const struct node *n)
{
    char text[256];
    struct jbytes data = clave__node_data(n);
    snprintf(text, sizeof text, "%.*s", data.n > 0 ? (int)data.n : 0, data.n > 0 ? data.p : "");
    const char *at = strstr(text, "reason=take ");
    return at ? (unsigned)atoi(at + strlen("reason=take ")) : 0;
}

/* `own` beside all others. How many were owned when it was made is at least what is left of them.
 */
static void slot_world_look_at(struct slot_world *s, const struct node *top, const struct node *own,
                               const struct node *limit)
{
    unsigned owned = 0;
    size_t len = slot_world_id_len(own);
    const char *path = clave__node_path(own);
    for (const struct node *n = top; (n = clave__tree_next(n, top));) {
        owned += n->stat.czxid <= own->stat.czxid;
        if (n != own && slot_world_id_len(n) == len && memcmp(clave__node_path(n), path, len) == 0)
            world_break(s->w, "an id owns one slot", "%.*s has another", (int)own->path_len, path);
    }
    if (limit && own->stat.czxid > limit->stat.mzxid && owned > slot_world_limit(limit))
        world_break(s->w, "a slot is taken while fewer are owned than the limit says",
                    "%.*s is number %u of %u", (int)own->path_len, path, owned,
                    slot_world_limit(limit));
    unsigned take = slot_world_take_of(own);
    if (take >= s->ntakes)
        world_break(s->w, "a slot says what its taker said", "%.*s", (int)own->path_len, path);
    else if (s->verdicts[take] == SLOT_REFUSED)
        world_break(s->w, "a take that failed took nothing", "take %u has %.*s", take,
                    (int)own->path_len, path);
}

static void slot_world_look_for(struct slot_world *s, const struct slot_owner *o)
{
    const struct node *n = o->node[0] ? slot_world_find(s, o->node) : NULL;
    if (o->node[0] && !n)
        world_break(s->w, "an owner owns until a give or a break", "%s is not there", o->node);
    else if (n && n->stat.czxid != o->token)
        world_break(s->w, "a token is the czxid", "%s has %lld, not %lld", o->node,
                    (long long)n->stat.czxid, (long long)o->token);
}

static void slot_world_note_room(struct slot_world *s, const struct node *top,
                                 const struct node *limit)
{
    unsigned owned = 0;
    int64_t newest = 0;
    for (const struct node *n = top; n && (n = clave__tree_next(n, top));) {
        owned++;
        newest = n->stat.czxid > newest ? n->stat.czxid : newest;
    }
    s->limit = limit ? slot_world_limit(limit) : 0;
    bool has_room = top && owned < s->limit;
    if (!s->free || !has_room || newest > s->seen_zxid)
        s->free_since = s->w->now;
    s->free = has_room;
}

void slot_world_look(struct slot_world *s)
{
    if (!s->server->server) {
        s->free = false;
        return;
    }
    int64_t zxid = inspector_zxid(s->server);
    if (zxid == s->seen_zxid && s->seen_start == s->server->stats.starts && !s->news)
        return;
    const struct node *top = slot_world_find(s, SLOTS_PATH "/owners");
    const struct node *limit = slot_world_find(s, SLOTS_PATH "/limit");
    for (const struct node *n = top; n && (n = clave__tree_next(n, top));)
        slot_world_look_at(s, top, n, limit);
    for (unsigned i = 0; i < SLOT_IDS; i++)
        slot_world_look_for(s, &s->owners[i]);
    slot_world_note_room(s, top, limit);
    s->news = false;
    s->seen_zxid = zxid;
    s->seen_start = s->server->stats.starts;
}

int64_t slot_world_unused_us(const struct slot_world *s)
{
    return s->free ? s->w->now - s->free_since : 0;
}

/* ---- what was told ----------------------------------------------------------------------------
 */

unsigned slot_world_ask(struct slot_world *s)
{
    s->verdicts = world_grow(s->verdicts, s->ntakes + 1);
    s->verdicts[s->ntakes] = SLOT_UNKNOWN;
    return s->ntakes++;
}

void slot_world_answer(struct slot_world *s, unsigned take, clave_err err)
{
    if (err != CLAVE_OK && clave_err_classify(err) != CLAVE_CLASS_UNKNOWN)
        s->verdicts[take] = SLOT_REFUSED;
    s->news = true;
}

void slot_world_owns(struct slot_world *s, unsigned id, const clave_slot *slot, bool taken,
                     int64_t before)
{
    struct slot_owner *o = &s->owners[id];
    if (strcmp(slot->id, slot_world_id(id)) != 0)
        world_break(s->w, "a take is told of its own slot", "%s is told of %s", slot_world_id(id),
                    slot->id);
    if (taken && slot->token <= before)
        world_break(s->w, "tokens grow", "%s has token %lld, after %lld", slot->id,
                    (long long)slot->token, (long long)before);
    o->newest = slot->token > o->newest ? slot->token : o->newest;
    if (o->gives_out > 0 || slot->token <= o->given_upto)
        return; /* it may be gone already */
    o->token = slot->token;
    snprintf(o->node, sizeof o->node, "%s", slot->node);
}

static void slot_world_forget(struct slot_owner *o, int64_t upto)
{
    o->given_upto = upto > o->given_upto ? upto : o->given_upto;
    if (o->token <= o->given_upto)
        o->node[0] = '\0';
}

void slot_world_give(struct slot_world *s, unsigned id, int64_t token)
{
    struct slot_owner *o = &s->owners[id];
    o->gives_out += token == 0;
    if (token == 0)
        o->node[0] = '\0';
    else if (token >= o->token)
        slot_world_forget(o, token);
}

/* It names a slot that it has read, which is no newer than what the server has done by now. */
void slot_world_given(struct slot_world *s, unsigned id, int64_t token, const clave_slot *slot)
{
    struct slot_owner *o = &s->owners[id];
    o->gives_out -= token == 0;
    if (token == 0)
        slot_world_forget(o, s->server->server ? inspector_zxid(s->server) : s->seen_zxid);
    if (slot && token != 0 && slot->token != token)
        world_break(s->w, "a give names its token", "of %lld, not %lld", (long long)slot->token,
                    (long long)token);
}
