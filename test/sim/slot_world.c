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
    free(s->takes);
    s->takes = NULL;
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

/* The next child of `top`, below which each slot has a node of its take. */
static const struct node *slot_world_next(const struct node *top, const struct node *n)
{
    do
        n = clave__tree_next(n, top);
    while (n && memchr(clave__node_path(n) + top->path_len + 1, '/',
                       (size_t)(n->path_len - top->path_len - 1)));
    return n;
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
    const char *path = clave__node_path(own);
    for (const struct node *n = top; (n = slot_world_next(top, n));)
        owned += n->stat.czxid <= own->stat.czxid;
    if (own->stat.num_children != 1)
        world_break(s->w, "a slot has the node of its take", "%.*s has %d", (int)own->path_len,
                    path, (int)own->stat.num_children);
    if (limit && own->stat.czxid > limit->stat.mzxid && owned > slot_world_limit(limit))
        world_break(s->w, "a slot is taken while fewer are owned than the limit says",
                    "%.*s is number %u of %u", (int)own->path_len, path, owned,
                    slot_world_limit(limit));
    unsigned take = slot_world_take_of(own);
    if (take >= s->ntakes)
        world_break(s->w, "a slot says what its taker said", "%.*s", (int)own->path_len, path);
    else if (s->takes[take].verdict == SLOT_REFUSED)
        world_break(s->w, "a take that failed, or was withdrawn, takes nothing", "take %u has %.*s",
                    take, (int)own->path_len, path);
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

/* How many children were made or deleted: cversion counts only those that were made. */
static int64_t slot_world_children(const struct node *dir)
{
    return dir ? 2 * (int64_t)dir->stat.cversion - dir->stat.num_children : 0;
}

/* How often the limit, the owners or the queue have changed. The queue is a container, which the
 * server removes: a sum without it must not look like one change, or none. */
static int64_t slot_world_changes(const struct node *top, const struct node *queue,
                                  const struct node *limit)
{
    return slot_world_children(top) + slot_world_children(queue) + (queue ? queue->stat.czxid : 0) +
           (limit ? (int64_t)limit->stat.version + 1 : 0);
}

static void slot_world_note_room(struct slot_world *s, const struct node *top,
                                 const struct node *limit)
{
    unsigned owned = 0, places = 0;
    int64_t newest = 0;
    const struct node *queue = slot_world_find(s, SLOTS_PATH "/queue");
    int64_t changes = slot_world_changes(top, queue, limit);
    bool unseen = changes != s->changes && changes != s->changes + 1;
    s->changes = changes;
    for (const struct node *n = queue; n && (n = clave__tree_next(n, queue));)
        places++;
    for (const struct node *n = top; n && (n = slot_world_next(top, n));) {
        owned++;
        newest = n->stat.czxid > newest ? n->stat.czxid : newest;
    }
    s->limit = limit ? slot_world_limit(limit) : 0;
    bool has_room = top && owned < s->limit;
    if (!s->free || !has_room || newest > s->seen_zxid)
        s->free_since = s->w->now;
    s->free = has_room;
    if (s->full) /* until now */
        s->full_at = s->w->now;
    s->full = owned + places >= s->limit;
    if (s->full || unseen) /* of several changes at once only the last state is seen */
        s->full_at = s->w->now;
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
    for (const struct node *n = top; n && (n = slot_world_next(top, n));)
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

struct slot_begun slot_world_begin(struct slot_world *s, unsigned id)
{
    const struct slot_owner *o = &s->owners[id];
    return (struct slot_begun){.when = ++s->answers,
                               .newest = o->newest,
                               .calls = o->calls,
                               .undisturbed = o->calls_out == 0};
}

unsigned slot_world_ask(struct slot_world *s, unsigned id)
{
    s->takes = world_grow(s->takes, (s->ntakes + 1) * sizeof *s->takes);
    s->takes[s->ntakes] = (struct slot_told){.id = id, .verdict = SLOT_PENDING};
    return s->ntakes++;
}

void slot_world_answer(struct slot_world *s, unsigned take, clave_err err)
{
    struct slot_told *t = &s->takes[take];
    t->answered = ++s->answers;
    if (err != CLAVE_OK)
        t->verdict = clave_err_classify(err) == CLAVE_CLASS_UNKNOWN ? SLOT_UNKNOWN : SLOT_REFUSED;
    s->news = true;
}

void slot_world_refused(struct slot_world *s, unsigned take, int64_t started)
{
    slot_world_look(s);
    if (s->server->server && !s->may_be_old && !s->full && s->full_at < started)
        world_break(s->w, "a try is refused only if owners and places before it fill the limit",
                    "take %u is refused, and they have not for %lld ms", take,
                    (long long)((s->w->now - s->full_at) / 1000));
}

/* Between the begin of the take and its answer no give or break of its id was under way: what was
 * sent for one before does nothing any more. */
static bool slot_world_is_certain(const struct slot_owner *o, const struct slot_begun *begun)
{
    return begun->undisturbed && o->calls == begun->calls;
}

void slot_world_owns(struct slot_world *s, unsigned id, const clave_slot *slot, bool taken,
                     const struct slot_begun *begun)
{
    struct slot_owner *o = &s->owners[id];
    if (strcmp(slot->id, slot_world_id(id)) != 0)
        world_break(s->w, "a take is told of its own slot", "%s is told of %s", slot_world_id(id),
                    slot->id);
    if (taken && slot->token <= begun->newest)
        world_break(s->w, "tokens grow", "%s has token %lld, after %lld", slot->id,
                    (long long)slot->token, (long long)begun->newest);
    o->newest = slot->token > o->newest ? slot->token : o->newest;
    bool may_be_gone = o->gives_out > 0 || slot->token <= o->given_upto;
    if (may_be_gone && !slot_world_is_certain(o, begun))
        return;
    o->token = slot->token;
    o->known_at = s->w->now;
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
    o->calls++;
    o->calls_out++;
    o->gives_out += token == 0;
    if (token == 0)
        o->node[0] = '\0';
    else if (token >= o->token)
        slot_world_forget(o, token);
}

/* It names a slot that it has read, which is no newer than what the server has done by now. */
void slot_world_given(struct slot_world *s, unsigned id, int64_t token, clave_err err,
                      const clave_slot *slot, const struct slot_begun *begun)
{
    struct slot_owner *o = &s->owners[id];
    o->calls_out--;
    o->gives_out -= token == 0;
    if (token == 0)
        slot_world_forget(o, s->server->server ? inspector_zxid(s->server) : s->seen_zxid);
    if (slot && token != 0 && slot->token != token)
        world_break(s->w, "a give names its token", "of %lld, not %lld", (long long)slot->token,
                    (long long)token);
    for (unsigned i = 0; i < s->ntakes && token == 0 && err == CLAVE_OK; i++) {
        struct slot_told *t = &s->takes[i];
        if (t->id == id && t->verdict == SLOT_UNKNOWN && t->answered < begun->when)
            t->verdict = SLOT_REFUSED;
    }
    s->news = true;
}
