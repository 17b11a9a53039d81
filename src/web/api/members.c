/* members.c - /v1/members: listing who is in a group, and joining or leaving it; and the node of an
 * instance of /v1/services (services.c).
 *
 * A member is an ephemeral node of the session that the request names. The servers know to whom the
 * node belongs, so any gate with the same key can tell, and nothing about members is remembered
 * here. A PUT makes the node; a repeated PUT finds the session's own node, whatever became of the
 * answer before. So a program repeats the PUT with its renewals: if somebody has deleted the node,
 * it is made anew.
 *
 * A PUT that changes nothing writes nothing: it is a sync and a read in one flight, so the answer
 * shows the node as it was once the leader had committed everything before it. It proves nothing
 * about the session; renewals do that. Only the first PUT on a connection waits for a commit, and
 * only if other gates may have the session: another gate may have deleted the node just before, and
 * a server that this gate has not written to yet may lag behind that.
 *
 * Invariants: a node counts as the session's by its ephemeralOwner alone; the answer that there is
 * none is given after a commit on the session's connection, so that no server that lags hides the
 * node; a request changes or deletes only a node that it has seen to be its session's, or one whose
 * replacement was asked for, at the version that it has seen. A node that is replaced is deleted in
 * the transaction that makes the new one, which begins at another version. Servers compare
 * versions, not owners: if the node was deleted after the look, made anew by somebody else, and has
 * come to the version seen, the change meets the new node. A write notices that by the owner in its
 * answer, and looks again; a delete cannot notice it. */
#include "web/api/api.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/hash/siphash.h"
#include "base/path.h"
#include "base/utf8.h"
#include "clave/async/cache.h"
#include "observe/lock_json.h"
#include "web/observe/observe.h"

/* ==== nodes of the copy ======================================================================= */

/* The list is visited twice, so that a request that waits for a change of it keeps no paths: first
 * to count the nodes and digest what they are; then, with room for that many, to take their paths.
 */
static bool node_list_add(const clave_cache_node *node, void *arg)
{
    struct node_list *l = arg;
    if (l->paths) {
        l->paths[l->n] = clave__web_strndup(l->x, node->path, strlen(node->path));
        l->no_memory |= !l->paths[l->n];
    } else {
        struct siphash_key key = {0, node->unreadable ? 0 : (uint64_t)node->stat.mzxid};
        l->digest += clave__siphash(key, node->path, strlen(node->path));
    }
    l->n++;
    return !l->no_memory && l->n <= MOST_LISTED;
}

static void node_list_add_children(struct node_list *l, const char *path, clave_cache_visit_cb *add)
{
    l->no_memory |= clave_async_cache_children(l->o->copy, path, add, l) == CLAVE_ENOMEM;
}

static bool node_list_add_below(const clave_cache_node *node, void *arg)
{
    struct node_list *l = arg;
    if (node->unreadable) {
        l->unreadable = clave__web_strndup(l->x, node->path, strlen(node->path));
        l->no_memory |= !l->unreadable;
        return false;
    }
    node_list_add_children(l, node->path, node_list_add);
    return !l->no_memory && l->n <= MOST_LISTED;
}

static int node_list_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns false, having answered, if the copy cannot tell who is there. */
static bool node_list_is_known(struct node_list *l, const char *what)
{
    if (!clave__observe_copy_covers(l->x, l->path, "what is at"))
        return false;
    if (l->o->copy && !l->o->partial && clave__observe_is_current(l->o))
        return true;
    clave__observe_copy_answer_old(l->x, l->path, what);
    return false;
}

static void node_list_visit(struct node_list *l, bool grandchildren)
{
    l->n = 0;
    node_list_add_children(l, l->path, grandchildren ? node_list_add_below : node_list_add);
}

static bool node_list_take_paths(struct node_list *l, bool grandchildren)
{
    l->paths = clave__web_alloc(l->x, l->n * sizeof *l->paths);
    l->no_memory = !l->paths;
    if (l->paths)
        node_list_visit(l, grandchildren);
    if (l->no_memory) {
        clave__web_problem_err(l->x, CLAVE_ENOMEM, "list", l->path);
        return false;
    }
    qsort(l->paths, l->n, sizeof *l->paths, node_list_compare);
    return true;
}

bool clave__node_list_read(struct node_list *l, bool grandchildren, const char *what)
{
    struct web_exchange *x = l->x;
    l->o = clave__observe_settled_for(x);
    if (!l->o || !node_list_is_known(l, what))
        return false;
    l->copy = l->o->copies;
    node_list_visit(l, grandchildren);
    if (l->no_memory) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "list", l->path);
        return false;
    }
    if (l->unreadable)
        return clave__web_refuse(x, 403, CLAVE_ENOAUTH, l->path,
                                 "the gate may not read %s, so what is at %s is not known",
                                 l->unreadable, l->path);
    if (l->n > MOST_LISTED)
        return clave__web_bad_request(x, "there are more than %d nodes at %s", MOST_LISTED,
                                      l->path);
    return clave__observe_list_is_news(x, grandchildren, l->path, l->digest) &&
           (l->n == 0 || node_list_take_paths(l, grandchildren));
}

const char *clave__node_list_next(struct node_list *l, clave_cache_node *node)
{
    while (l->at < l->n) {
        const char *path = l->paths[l->at++];
        if (clave_async_cache_get(l->o->copy, path, node) == CLAVE_OK)
            return path;
    }
    return NULL;
}

/* ==== GET ===================================================================================== */

enum { PIECE_MEMBERS = 500 };

struct member_list {
    struct node_list nodes;
    bool begun;
};

static bool member_data_is_text(const char *p, size_t n)
{
    for (size_t i = 0, len; i < n; i += len) {
        len = clave__utf8_len(p + i, n - i);
        if (len == 0 || p[i] == '\0')
            return false;
    }
    return true;
}

static void member_put_data(struct json *j, const clave_cache_node *node)
{
    char text[BASE64_LEN(LOCK_DATA_MAX + 1) + 1];
    bool whole = node->has_data && node->len <= LOCK_DATA_MAX + 1;
    if (whole && member_data_is_text(node->data, node->len)) {
        clave__json_bytes(j, "data", node->data, node->len);
        return;
    }
    clave__json_string(j, "data", NULL);
    if (whole) {
        clave__base64(node->data, node->len, text);
        clave__json_string(j, "data_base64", text);
    } else if (node->unreadable) {
        clave__json_bool(j, "unreadable", true);
    } else {
        clave__json_bool(j, "truncated", true);
    }
}

static void member_put(struct json *j, const char *path, const clave_cache_node *node)
{
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "id", clave__path_name(path));
    if (node->stat.ephemeral_owner)
        clave__json_int64(j, "session", node->stat.ephemeral_owner);
    else
        clave__json_string(j, "session", NULL);
    clave__json_int64(j, "czxid", node->stat.czxid);
    clave__lock_time_json(j, "since", node->unreadable ? -1 : node->stat.ctime);
    member_put_data(j, node);
    clave__json_close(j, '}');
}

static clave_err member_list_piece(void *arg, struct json *j, bool *done)
{
    struct member_list *l = arg;
    struct node_list *nodes = &l->nodes;
    clave_cache_node node;
    const char *path = NULL;
    if (!nodes->o->copy || nodes->o->copies != nodes->copy)
        return CLAVE_EUNREACHABLE;
    if (!l->begun) {
        clave__json_open(j, NULL, '{');
        clave__json_string(j, "path", nodes->path);
        clave__json_open(j, "members", '[');
    }
    l->begun = true;
    for (int i = 0; i < PIECE_MEMBERS && (path = clave__node_list_next(nodes, &node)); i++)
        member_put(j, path, &node);
    *done = !path;
    if (!*done)
        return CLAVE_OK;
    clave__json_close(j, ']');
    clave__json_int(j, "as_of_ms", clave__observe_now(nodes->o) - clave__observe_age(nodes->o));
    clave__observe_copy_json(j, nodes->x);
    clave__json_close(j, '}');
    return CLAVE_OK;
}

void clave__web_get_members(struct web_exchange *x)
{
    struct member_list *l = clave__web_must_alloc(x, sizeof *l);
    if (!l || !clave__param_path(x))
        return;
    *l = (struct member_list){.nodes = {.x = x, .path = x->params[0]}};
    if (clave__node_list_read(&l->nodes, false, "who is in"))
        clave__web_answer_pieces(x, member_list_piece, NULL, l);
}

/* ==== a node of the session =================================================================== */

enum { MOST_TRIES = 4 };

/* The x->state of a request that makes or deletes such a node. */
struct own_node_request {
    struct own_node node;
    bool removes;
    unsigned tries;
    int32_t version; /* the version that was seen */
};

static void own_node_look(struct web_exchange *x, clave_async_client *c);
static void own_node_create(struct web_exchange *x, clave_async_client *c);

static int64_t own_node_session(const struct web_exchange *x)
{
    const struct session_request *k = x->owned;
    return k->s->id;
}

static void own_node_answer(struct web_exchange *x, unsigned status, const clave_stat *st)
{
    const struct own_node_request *r = x->state;
    clave__json_open(&x->json, NULL, '{');
    clave__json_string(&x->json, "path", r->node.path);
    clave__json_int64(&x->json, "session", own_node_session(x));
    clave__web_json_stat(&x->json, "stat", st);
    clave__web_answer_object(x, status);
}

static void own_node_owner(struct json *j, const void *arg)
{
    clave__json_int64(j, "session", *(const int64_t *)arg);
}

static void own_node_conflict(struct web_exchange *x, int64_t owner)
{
    const struct own_node_request *r = x->state;
    const struct problem p = {.status = 409,
                              .err = CLAVE_ENODEEXISTS,
                              .path = r->node.path,
                              .members = own_node_owner,
                              .arg = &owner};
    if (owner)
        clave__web_problem(x, &p, "the node of session %" PRId64 " is at %s%s", owner, r->node.path,
                           r->removes || r->node.replace ? "" : "; ?replace takes its place");
    else
        clave__web_problem(
            x, &p, "%s is not an ephemeral node and belongs to no session: choose another id",
            r->node.path);
}

/* Somebody else has changed the node meanwhile: looks again, a few times. */
static void own_node_again(struct web_exchange *x, clave_async_client *c, clave_err err)
{
    struct own_node_request *r = x->state;
    if (r->tries++ < MOST_TRIES)
        own_node_look(x, c);
    else
        clave__web_problem_err(x, err, r->removes ? "leave" : "join", r->node.path);
}

/* The answer of a set, a replacement or a delete. */
static void on_own_node_changed(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    if (!clave__web_expected(x))
        return;
    const struct own_node_request *r = x->state;
    bool raced = res->err == CLAVE_EBADVERSION || res->err == CLAVE_ENONODE;
    const clave_stat *st = res->nops > 1 ? res->ops[res->nops - 1].stat : res->stat;
    bool sets = res->err == CLAVE_OK && !r->removes && res->nops <= 1;
    if (raced)
        own_node_again(x, c, res->err);
    else if (sets && st->ephemeral_owner != own_node_session(x))
        own_node_again(x, c, CLAVE_EBADVERSION); /* the node of another session has come to this
                                                  * version */
    else if (res->err != CLAVE_OK)
        clave__web_problem_err(x, res->err, r->removes ? "leave" : "join", r->node.path);
    else if (r->removes)
        clave__web_answer_empty(x, 204);
    else
        own_node_answer(x, res->nops > 1 ? 201 : 200, st);
}

/* The new node never has the version of the one that it replaces: it is set once if that was 0. So
 * what the old one's session has sent meanwhile, a delete above all, does not meet the new node. */
static clave_err own_node_replace(struct web_exchange *x, clave_async_client *c)
{
    const struct own_node_request *r = x->state;
    const struct own_node *n = &r->node;
    const clave_op ops[] = {
        {.kind = CLAVE_OP_DELETE, .path = n->path, .version = r->version},
        {.kind = CLAVE_OP_CREATE,
         .path = n->path,
         .data = n->data,
         .len = n->len,
         .mode = CLAVE_EPHEMERAL},
        {.kind = CLAVE_OP_SET, .path = n->path, .data = n->data, .len = n->len, .version = 0}};
    return clave_async_multi(c, ops, r->version == 0 ? 3 : 2, on_own_node_changed, x);
}

static void own_node_change(struct web_exchange *x, clave_async_client *c, bool own)
{
    const struct own_node_request *r = x->state;
    clave_err err;
    x->only_reads = false;
    if (!own)
        err = own_node_replace(x, c);
    else if (r->removes)
        err = clave_async_delete(c, r->node.path, r->version, on_own_node_changed, x);
    else
        err = clave_async_set(c, r->node.path, r->node.data, r->node.len, r->version,
                              on_own_node_changed, x);
    clave__request_client_sent(x, c, err, r->removes ? "leave" : "join", r->node.path);
}

static bool own_node_replaces(const struct own_node *n, int64_t owner)
{
    return n->replace && owner && (!n->replaces || n->replaces == owner);
}

static void own_node_seen(struct web_exchange *x, clave_async_client *c, const clave_result *res)
{
    struct own_node_request *r = x->state;
    bool own = res->stat->ephemeral_owner == own_node_session(x);
    bool same = r->node.same ? r->node.same(x, &r->node, res)
                             : res->len == r->node.len && memcmp(res->data ? res->data : "",
                                                                 r->node.data, r->node.len) == 0;
    r->version = res->stat->version;
    if (own && !r->removes && same)
        own_node_answer(x, 200, res->stat);
    else if (own || own_node_replaces(&r->node, res->stat->ephemeral_owner))
        own_node_change(x, c, own);
    else
        own_node_conflict(x, res->stat->ephemeral_owner);
}

static void on_own_node_looked(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    if (!clave__web_expected(x))
        return;
    const struct own_node_request *r = x->state;
    if (res->err == CLAVE_OK)
        own_node_seen(x, c, res);
    else if (res->err == CLAVE_ENONODE && !r->removes)
        own_node_create(x, c);
    else
        clave__web_problem_err(x, res->err, r->removes ? "leave" : "join", r->node.path);
}

/* A server that lags catches up first, in the same flight; if the sync cannot be sent, the get
 * cannot either. */
static void own_node_look(struct web_exchange *x, clave_async_client *c)
{
    const struct own_node_request *r = x->state;
    x->only_reads = true;
    (void)clave_async_sync(c, r->node.path, NULL, NULL);
    clave_err err = clave_async_get(c, r->node.path, NULL, on_own_node_looked, x);
    clave__request_client_sent(x, c, err, "look at", r->node.path);
}

static void on_own_node_created(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    if (!clave__web_expected(x))
        return;
    if (res->err == CLAVE_OK)
        own_node_answer(x, 201, res->stat);
    else if (res->err == CLAVE_ENODEEXISTS)
        own_node_again(x, c, res->err);
    else
        clave__web_problem_err(x, res->err, "join", res->path);
}

static void own_node_create(struct web_exchange *x, clave_async_client *c)
{
    const struct own_node_request *r = x->state;
    clave_create_options o = CLAVE_CREATE_OPTIONS_INIT;
    o.mode = CLAVE_EPHEMERAL;
    o.flags = CLAVE_CREATE_PARENTS;
    x->only_reads = false;
    clave_err err =
        clave_async_create(c, r->node.path, r->node.data, r->node.len, &o, on_own_node_created, x);
    clave__request_client_sent(x, c, err, "join", r->node.path);
}

static void own_node_look_proven(struct session_request *k)
{
    own_node_look(k->x, k->s->client);
    clave__http_session_flush(k->s);
}

static void own_node_join(struct web_exchange *x, clave_async_client *c)
{
    const struct session_request *k = x->owned;
    if (clave__http_session_must_list(k->s))
        clave__session_request_prove(x->owned, own_node_look_proven);
    else
        own_node_look(x, c);
}

/* A commit comes first: another gate may have made the node, and a member that lags behind would
 * not show it. */
static void own_node_begin_leave(struct web_exchange *x, clave_async_client *c)
{
    (void)c;
    clave__session_request_prove(x->owned, own_node_look_proven);
}

static void own_node_request(struct web_exchange *x, const struct own_node *n, bool removes)
{
    struct own_node_request *r = clave__web_must_alloc(x, sizeof *r);
    if (!r)
        return;
    *r = (struct own_node_request){.node = *n, .removes = removes};
    x->state = r;
    if (!clave__web_header(x, "Clave-Session"))
        clave__web_refuse(x, 401, CLAVE_ENOAUTH, n->path,
                          "the header Clave-Session is missing: the node is that of a session, see "
                          "POST /v1/sessions");
    else if (clave__lock_is_place(n->path))
        clave__web_bad_request(x, "%s has the name of a place in a queue: take another id",
                               n->path);
    else if (removes)
        clave__request_client(x, own_node_begin_leave);
    else
        clave__request_client_to_create(x, n->path, own_node_join);
}

bool clave__own_node_read_replace(struct web_exchange *x, struct own_node *n)
{
    const char *text = clave__web_query(x, "replace");
    bool is_any = !text || !*text || strcmp(text, "1") == 0 || strcmp(text, "true") == 0;
    return is_any || clave__web_parse_int(text, &n->replaces) ||
           clave__web_bad_request(x, "replace is the id of a session, or it has no value");
}

void clave__web_put_own_node(struct web_exchange *x, const struct own_node *n)
{
    own_node_request(x, n, false);
}

void clave__web_delete_own_node(struct web_exchange *x, const char *path)
{
    own_node_request(x, &(struct own_node){.path = path, .data = ""}, true);
}

void clave__web_put_member(struct web_exchange *x)
{
    struct own_node n = {.path = x->params[0],
                         .data = clave__web_body_bytes(x),
                         .len = clave__web_body_len(x),
                         .replace = clave__web_query(x, "replace") != NULL};
    if (clave__own_node_read_replace(x, &n) && clave__param_path(x))
        clave__web_put_own_node(x, &n);
}

void clave__web_delete_member(struct web_exchange *x)
{
    if (clave__param_path(x))
        clave__web_delete_own_node(x, x->params[0]);
}
