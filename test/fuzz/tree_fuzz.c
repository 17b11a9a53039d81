/* tree_fuzz.c - whatever strangers have left in the tree, nothing that reads it crashes or goes on
 * for ever. An input is the recipe of a tree (hostile_tree.h), after two bytes that seed the
 * questions. Every endpoint in the table of routes is asked about the tree; claims, slots and
 * operators' orders that list children are made in it; the recipes and the views of the program
 * look at it. Then strangers change it, and everything is read again.
 *
 *   tree_fuzz --seeds N [FIRST]     the trees of N seeds, instead of the fuzzer's
 *
 * Each question is answered in a bounded number of steps. An answer of type JSON is valid JSON, no
 * status is 500 (but FleetLock's, see check_answer), and what a list names can be looked up. */
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "base/path.h"
#include "clave/async/cache.h"
#include "clave/async/deadlock.h"
#include "clave/async/latch.h"
#include "clave/async/leader.h"
#include "clave/async/lock_delay.h"
#include "clave/async/once.h"
#include "clave/async/rwlock.h"
#include "clave/async/semaphore.h"
#include "clave/async/slots.h"
#include "fuzz/hostile_tree.h"
#include "lib/webrig.h"
#include "observe/lock_listing.h"
#include "observe/lock_model.h"
#include "observe/lock_replay.h"
#include "observe/lock_who.h"
#include "recipe/slots/slot_node.h"
#include "web/http/exchange.h"
#include "web/http/jansson.h"

enum {
    STRANGERS = 2,
    MOST_NODES = 8 * HOSTILE_NODES, /* of a tree, with parents and what strangers change */
    MOST_IDS = 64,
    MOST_WAITING = 40,
    SUBJECTS = 1, /* paths that each endpoint is asked about */
    CHANGES = 8,
    DICE = 1 << 15,
    SECONDS = 60, /* that a tree may take */
};

/* A node as a stranger made it. */
struct made {
    char *path; /* NULL: the server has refused it */
    int64_t token;
    struct hostile_node node;
};

struct play {
    struct webrig *rig;
    clave_async_client *strangers[STRANGERS];
    size_t places[STRANGERS]; /* of them in memnet */
    struct input dice;        /* what is asked, and how */
    struct made made[MOST_NODES];
    size_t nmade;
    char *ids[MOST_IDS]; /* of sessions and claims */
    size_t nids;
    const char *session; /* the newest */
    char *secret;        /* of it; NULL: it has ended */
    const char *subject; /* {path} of the present question */
    const char *id;      /* and its {id} */
    struct webrig_call *waiting[MOST_WAITING];
    size_t nwaiting;
    uint64_t asked, answered; /* of the recipes */
};

static unsigned roll(struct play *p, unsigned sides)
{
    unsigned high = input_byte(&p->dice);
    return (high << 8 | input_byte(&p->dice)) % sides;
}

static char *copy_of(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = malloc(n);
    must(copy != NULL);
    return memcpy(copy, text, n);
}

/* ---- the tree -------------------------------------------------------------------------------- */

static void on_made(clave_async_client *c, const clave_result *res, void *arg)
{
    struct made *m = arg;
    (void)c;
    if (res->err != CLAVE_OK)
        return;
    m->path = copy_of(res->path);
    m->token = res->stat ? res->stat->czxid : 0;
}

static void make_node(void *arg, const struct hostile_node *node)
{
    struct play *p = arg;
    const clave_acl everybody = {node->perms, "world", "anyone"};
    const clave_create_options o = {
        .size = sizeof o, .mode = (clave_create_mode)node->mode, .acls = &everybody, .nacls = 1};
    if (p->nmade == MOST_NODES)
        return;
    struct made *m = &p->made[p->nmade++];
    *m = (struct made){.node = *node};
    (void)clave_async_create(p->strangers[node->owner], node->path, node->data, node->n, &o,
                             on_made, m);
}

static void on_changed(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    (void)res;
    (void)arg;
}

/* The path of some node, or of a lock. */
static const char *some_path(struct play *p)
{
    static char root[HOSTILE_PATH];
    const struct made *m = p->nmade ? &p->made[roll(p, (unsigned)p->nmade)] : NULL;
    if (m && m->path && roll(p, 3))
        return m->path;
    for (unsigned number = roll(p, 8); !hostile_root(number, "", root);)
        number = roll(p, 8);
    return root;
}

static int64_t some_token(struct play *p)
{
    for (unsigned n = 0; n < 4 && p->nmade; n++) {
        const struct made *m = &p->made[roll(p, (unsigned)p->nmade)];
        if (m->token)
            return m->token;
    }
    return 1;
}

/* The name of a child of the path, if it has one. */
static const char *some_child(struct play *p, const char *path)
{
    for (unsigned n = 0; n < 16 && p->nmade; n++) {
        const struct made *m = &p->made[roll(p, (unsigned)p->nmade)];
        if (m->path && clave__path_is_child(m->path, path, clave__path_name(m->path)))
            return clave__path_name(m->path);
    }
    return clave__path_name(some_path(p));
}

static void change_tree(struct play *p)
{
    for (unsigned n = roll(p, CHANGES); n > 0; n--) {
        clave_async_client *c = p->strangers[roll(p, STRANGERS)];
        char data[HOSTILE_DATA];
        size_t len = hostile_data(&p->dice, data, sizeof data);
        if (roll(p, 3))
            (void)clave_async_set(c, some_path(p), data, len, -1, on_changed, NULL);
        else
            (void)clave_async_delete(c, some_path(p), -1, on_changed, NULL);
    }
    if (roll(p, 3) == 0)
        hostile_tree(&p->dice, "", make_node, p);
    webrig_settle(p->rig);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void keep_id(struct play *p, const char *id)
{
    if (id && p->nids < MOST_IDS)
        p->ids[p->nids++] = copy_of(id);
}

static json_t *json_of(const struct webrig_call *c)
{
    const char *type = c->done ? webrig_header(c, "Content-Type") : NULL;
    if (!type || (strcmp(type, "application/json") && strcmp(type, "application/problem+json")) ||
        strcmp(c->q.method, "HEAD") == 0)
        return NULL;
    json_t *body = json_loadb(webrig_body(c), clave__buf_len(&c->body), 0, NULL);
    must(body != NULL);
    return body;
}

static bool is_fleetlock(const char *pattern)
{
    return strcmp(pattern, "/v1/pre-reboot") == 0 || strcmp(pattern, "/v1/steady-state") == 0;
}

/* The servers are there and answer, so nothing is a reason for 500; but FleetLock's clients repeat
 * a request only after 5xx, whatever the error was. */
static void check_answer(const struct webrig_call *c)
{
    if (!c->x || !c->answered)
        return;
    const struct web_answer *a = clave__web_exchange_answer(c->x);
    bool fine =
        a->status >= 200 && a->status < 600 && (a->status != 500 || is_fleetlock(c->q.target));
    if (!fine)
        fprintf(stderr, "%s %s: %u %s\n", c->q.method, c->q.target, a->status, webrig_body(c));
    must(fine);
    for (size_t i = 0; i < a->nheaders; i++)
        for (const char *v = a->headers[i].value; *v; v++)
            must((unsigned char)*v >= ' ' && *v != 0x7f);
    json_decref(json_of(c));
}

static void end_oldest(struct play *p)
{
    check_answer(p->waiting[0]);
    webrig_end(p->waiting[0]);
    memmove(p->waiting, p->waiting + 1, --p->nwaiting * sizeof *p->waiting);
}

/* The call is ended here, unless it waits. */
static void take_answer(struct play *p, struct webrig_call *c)
{
    check_answer(c);
    if (c->answered && c->done) {
        webrig_end(c);
        return;
    }
    if (p->nwaiting == MOST_WAITING)
        end_oldest(p);
    p->waiting[p->nwaiting++] = c;
}

/* ---- requests -------------------------------------------------------------------------------- */

static const char *slot_id_text(const char *path, const char *owner)
{
    static char out[BASE64_LEN(2 * HOSTILE_PATH) + sizeof "slot."];
    char both[2 * HOSTILE_PATH];
    int n = snprintf(both, sizeof both, "%s\n%s", path, owner);
    n = n < (int)sizeof both ? n : (int)sizeof both - 1;
    strcpy(out, "slot.");
    clave__base64(both, (size_t)n, out + strlen(out));
    for (char *c = out; *c; c++)
        *c = *c == '+' ? '-' : *c == '/' ? '_' : *c == '=' ? '\0' : *c;
    return out;
}

/* An id that may own a slot: the end of a node's name, all of it, or some word. */
static const char *some_owner(struct play *p)
{
    static const char *const owners[] = {"a", "web1", "b/c", "\xc3\xbc", "owners", "%", "a-b-c"};
    static char out[HOSTILE_PATH];
    const struct made *m = p->nmade ? &p->made[roll(p, (unsigned)p->nmade)] : NULL;
    if (!m || !m->path || roll(p, 2))
        return owners[roll(p, sizeof owners / sizeof *owners)];
    const char *name = strrchr(m->path, '/') + 1;
    bool is_slot = strncmp(name, "slot-", 5) == 0 && roll(p, 4);
    snprintf(out, sizeof out, "%s", is_slot ? name + 5 : name);
    return out;
}

static const char *some_id(struct play *p)
{
    if (p->nids > 0 && roll(p, 2))
        return p->ids[roll(p, (unsigned)p->nids)];
    return slot_id_text(some_path(p), some_owner(p));
}

/* A value that the argument of this name may have, in a query or a body. */
static const char *some_value(struct play *p, const char *name)
{
    static const char *const kinds[] = {"lock",     "read", "write", "semaphore",
                                        "election", "slot", "mixed"};
    static const char *const modes[] = {"persistent", "ephemeral", "container",
                                        "persistent_sequential", "ephemeral_sequential"};
    static const char *const words[] = {"1",    "0",        "2",    "60000",
                                        "-1",   "nightly",  "\"<&", "18446744073709551616",
                                        "true", "children", "stat", "2026-11-23T09:35:19Z"};
    static char number[24];
    const char *path = roll(p, 2) ? p->subject : some_path(p);
    if (strcmp(name, "path") == 0 || strcmp(name, "prefix") == 0)
        return path;
    if (strcmp(name, "node") == 0 || strcmp(name, "to") == 0 || strcmp(name, "after") == 0)
        return roll(p, 8) ? some_child(p, p->subject) : path;
    if (strcmp(name, "mode") == 0)
        return modes[roll(p, sizeof modes / sizeof *modes)];
    if (strcmp(name, "kind") == 0)
        return kinds[roll(p, sizeof kinds / sizeof *kinds)];
    if (strcmp(name, "owner") == 0 || strcmp(name, "group") == 0)
        return some_owner(p);
    if (strcmp(name, "token") == 0 || strcmp(name, "since") == 0) {
        snprintf(number, sizeof number, "%lld", (long long)some_token(p));
        return number;
    }
    if (strcmp(name, "ttl_ms") == 0 || strcmp(name, "limit") == 0) {
        snprintf(number, sizeof number, "%u", 1 + roll(p, name[0] == 't' ? 20000 : 3));
        return number;
    }
    return words[roll(p, sizeof words / sizeof *words)];
}

/* Takes the next name of a list like "a b? c|d": `b` one time in three, `c` or `d`. */
static bool next_name(struct play *p, const char **list, char name[32])
{
    for (;;) {
        *list += strspn(*list, " ");
        size_t n = strcspn(*list, " ");
        if (n == 0)
            return false;
        must(n < 32);
        memcpy(name, *list, n);
        name[n] = '\0';
        *list += n;
        char *bar = strchr(name, '|');
        if (bar && roll(p, 2))
            memmove(name, bar + 1, strlen(bar));
        else if (bar)
            *bar = '\0';
        if (name[strlen(name) - 1] != '?')
            return true;
        name[strlen(name) - 1] = '\0';
        if (roll(p, 3) == 0)
            return true;
    }
}

/* The members of a request's body, by the beginning of the route's pattern; of several rows with
 * the same one any. The last row is for endpoints that nobody has added here. */
static const struct {
    const char *pattern, *members;
} bodies[] = {
    {"/v1/sessions", "ttl_ms name?"},
    {"/v1/claims",
     "path kind=lock lock_delay_ms? max_hold_ms? depend_ms? name? command? revocable?"},
    {"/v1/claims", "path kind=read host? name?"},
    {"/v1/claims", "path kind=write lock_delay_ms? max_hold_ms?"},
    {"/v1/claims", "path kind=semaphore limit permits? max_hold_ms?"},
    {"/v1/claims", "path kind=election lock_delay_ms? name? revocable?"},
    {"/v1/claims", "path kind=slot limit? host? by? reason?"},
    {"/v1/hold", "path kind=lock ttl_ms? lock_delay_ms?"},
    {"/v1/hold", "path kind=semaphore limit permits? ttl_ms?"},
    {"/v1/hold", "path kind|limit ttl_ms?"},
    {"/v1/slots/{path}/break", "owner reason token?"},
    {"/v1/slots", "limit"},
    {"/v1/locks/{path}/revoke", "node|token reason? force?"},
    {"/v1/locks/{path}/break", "node|token reason force?"},
    {"/v1/elections/{path}/transfer", "to reason?"},
    {"/v1/pre-reboot", "client_params"},
    {"/v1/steady-state", "client_params"},
    {"/v1/multi", "ops"},
    {"", "path? kind? limit? token? owner? node? to? reason? force? name? host? session? ttl_ms?"},
};

static const char *some_members(struct play *p, const struct route *route)
{
    size_t first = 0, n = 1;
    while (strncmp(route->pattern, bodies[first].pattern, strlen(bodies[first].pattern)) != 0)
        first++;
    while (first + n < sizeof bodies / sizeof *bodies &&
           strcmp(bodies[first + n].pattern, bodies[first].pattern) == 0)
        n++;
    return bodies[first + roll(p, (unsigned)n)].members;
}

/* "NAME=VALUE", or a name alone. */
static void put_member(struct play *p, struct json *j, const char *name)
{
    size_t n = strcspn(name, "=");
    clave__json_key(j, name, n);
    if (name[n]) {
        clave__json_string(j, NULL, name + n + 1);
    } else if (strcmp(name, "client_params") == 0) {
        clave__json_open(j, NULL, '{');
        clave__json_string(j, "group", roll(p, 2) ? "b" : some_owner(p));
        clave__json_string(j, "id", some_owner(p));
        clave__json_close(j, '}');
    } else if (strcmp(name, "ops") == 0) {
        static const char *const ops[] = {"check", "set", "delete", "create"};
        clave__json_open(j, NULL, '[');
        for (unsigned count = roll(p, 3); count > 0; count--) {
            clave__json_open(j, NULL, '{');
            clave__json_string(j, "op", ops[roll(p, 4)]);
            clave__json_string(j, "path", some_path(p));
            clave__json_close(j, '}');
        }
        clave__json_close(j, ']');
    } else if (strcmp(name, "force") == 0 || strcmp(name, "revocable") == 0) {
        clave__json_bool(j, NULL, roll(p, 2));
    } else if (strstr(name, "_ms") || strcmp(name, "limit") == 0 || strcmp(name, "permits") == 0) {
        clave__json_int(
            j, NULL, strtoll(some_value(p, "limit"), NULL, 10) * (strstr(name, "_ms") ? 2000 : 1));
    } else {
        clave__json_string(j, NULL, some_value(p, name));
    }
}

static void put_body(struct play *p, const char *members, struct buf *out)
{
    char name[32];
    struct json j = clave__json_to(out);
    clave__json_open(&j, NULL, '{');
    while (next_name(p, &members, name))
        put_member(p, &j, name);
    clave__json_close(&j, '}');
    must(clave__buf_append(out, "", 1) == CLAVE_OK);
}

static void put_text(struct buf *out, const char *text)
{
    must(clave__buf_append(out, text, strlen(text)) == CLAVE_OK);
}

static void put_encoded(struct buf *out, const char *text)
{
    char encoded[3 * HOSTILE_PATH + 1];
    must(strlen(text) < HOSTILE_PATH);
    clave__percent_encode(encoded, text);
    put_text(out, encoded);
}

/* Arguments that take no value. */
static bool is_flag(const char *name)
{
    static const char flags[] = " samples fresh stat children acl sync parents recursive claims ";
    const char *at = strstr(flags, name);
    return at && at[-1] == ' ' && at[strlen(name)] == ' ';
}

/* A target of the route: its parameters are this path and some id. */
static void put_target(struct play *p, const struct route *route, struct buf *out)
{
    const char *path = p->subject;
    const char *list = route->query ? route->query : "";
    const char *mark = "?";
    char name[32];
    for (const char *c = route->pattern; *c; c++) {
        if (strncmp(c, "{path}", 6) == 0) {
            put_encoded(out, path + (c[-1] == '/'));
            c += 5;
        } else if (strncmp(c, "{id}", 4) == 0) {
            put_text(out, p->id);
            c += 3;
        } else {
            must(clave__buf_append(out, c, 1) == CLAVE_OK);
        }
    }
    if (strcmp(list, "*") == 0)
        list = "view? dataformat? callback? name? op? stat? expire?";
    while (next_name(p, &list, name)) {
        if (roll(p, 3) == 0 && route->query[0] != '*')
            continue;
        put_text(out, mark);
        put_text(out, name);
        mark = "&";
        if (!is_flag(name) || roll(p, 16) == 0) {
            put_text(out, "=");
            put_encoded(out, some_value(p, name));
        }
    }
    must(clave__buf_append(out, "", 1) == CLAVE_OK);
}

/* Who asks: an owner of slots, a session, or nobody in particular. */
static void put_whose(struct play *p, const struct route *route, const char *members,
                      struct buf *out)
{
    static const char *const of_sessions[] = {"/v1/sessions/", "/v1/claims", "/v1/elections/"};
    bool by_session = roll(p, 4) == 0 && strncmp(route->pattern, "/v1/slots", 9) != 0;
    bool takes = members && strstr(members, "kind=slot");
    bool of_slot = strstr(route->pattern, "/claims/") && strncmp(p->id, "slot.", 5) == 0;
    for (size_t i = 0; i < sizeof of_sessions / sizeof *of_sessions; i++)
        by_session |= !strncmp(route->pattern, of_sessions[i], strlen(of_sessions[i]));
    if (takes || (of_slot && roll(p, 2))) {
        char owner[3 * HOSTILE_PATH + 1], line[128];
        clave__percent_encode(owner, some_owner(p));
        snprintf(line, sizeof line, "\nClave-Owner: %.100s", owner);
        put_text(out, line);
    } else if (by_session && p->secret && !of_slot) {
        put_text(out, "\nClave-Session: ");
        put_text(out, p->secret);
    }
}

static void put_headers(struct play *p, const struct route *route, const char *members,
                        struct buf *out)
{
    char line[HOSTILE_PATH + 64];
    snprintf(line, sizeof line, "Prefer: wait=%u", roll(p, 3) ? 0 : roll(p, 3));
    put_text(out, line);
    put_whose(p, route, members, out);
    if (is_fleetlock(route->pattern))
        put_text(out, "\nfleet-lock-protocol: true");
    if (strstr(route->pattern, "znodes") && strcmp(route->method, "GET") != 0 && roll(p, 8))
        put_text(out, "\nContent-Type: application/octet-stream");
    if (roll(p, 16) == 0)
        put_text(out, "\nIf-Match: *");
    if (roll(p, route->flags & ROUTE_GUARDED ? 4 : 64) == 0) {
        char guarded[3 * HOSTILE_PATH + 1];
        clave__percent_encode(guarded, some_path(p));
        snprintf(line, sizeof line, "\nClave-Guard: %.300s;token=%lld", guarded,
                 (long long)some_token(p));
        put_text(out, line);
    }
    if (roll(p, 8) == 0)
        put_text(out, "\nAccept: application/xml");
    must(clave__buf_append(out, "", 1) == CLAVE_OK);
}

static void forget_session(struct play *p)
{
    free(p->secret);
    p->secret = NULL;
}

static void ask_route(struct play *p, const struct route *route, const char *path)
{
    char id[3 * HOSTILE_PATH];
    bool newest = p->session && strstr(route->pattern, "/v1/sessions/") && roll(p, 4);
    snprintf(id, sizeof id, "%s", newest ? p->session : some_id(p));
    p->subject = path;
    p->id = id;
    struct buf target, headers, body;
    bool writes = strcmp(route->method, "GET") != 0 && strcmp(route->method, "DELETE") != 0;
    const char *members = writes ? some_members(p, route) : NULL;
    clave__buf_init(&target, &p->rig->mem, SIZE_MAX / 4);
    clave__buf_init(&headers, &p->rig->mem, SIZE_MAX / 4);
    clave__buf_init(&body, &p->rig->mem, SIZE_MAX / 4);
    put_target(p, route, &target);
    put_headers(p, route, members, &headers);
    if (writes)
        put_body(p, members, &body);
    struct webrig_call *c =
        webrig_request(p->rig, route->method, (const char *)clave__buf_bytes(&target),
                       (const char *)clave__buf_bytes(&headers),
                       writes ? (const char *)clave__buf_bytes(&body) : NULL);
    if (c->status == 201) {
        const char *secret = webrig_member(c, "secret");
        if (secret) {
            forget_session(p);
            p->secret = copy_of(secret);
        }
        keep_id(p, webrig_member(c, "id"));
        if (secret && p->nids > 0)
            p->session = p->ids[p->nids - 1];
    }
    if ((c->status == 410 || c->status == 204) && strstr(route->pattern, "/v1/sessions/"))
        forget_session(p);
    take_answer(p, c);
    clave__buf_fini(&target);
    clave__buf_fini(&headers);
    clave__buf_fini(&body);
}

/* ---- everything that is to be asked ---------------------------------------------------------- */

static bool is_about_paths(const struct route *route)
{
    return strchr(route->pattern, '{') || strstr(route->pattern, "claims");
}

/* Mostly there is a session, which may claim. */
static void open_session(struct play *p)
{
    for (size_t i = 0; i < clave__routes.n && !p->secret; i++)
        if (strcmp(clave__routes.at[i].method, "POST") == 0 &&
            strcmp(clave__routes.at[i].pattern, "/v1/sessions") == 0)
            ask_route(p, &clave__routes.at[i], "/");
}

static void ask_all(struct play *p, bool reading)
{
    for (size_t i = 0; i < clave__routes.n; i++) {
        const struct route *route = &clave__routes.at[i];
        bool is_told = route->role != WEB_NONE; /* others tell nothing of the tree */
        if (reading != (strcmp(route->method, "GET") == 0) || (!is_told && roll(p, 16)))
            continue;
        for (unsigned n = is_about_paths(route) ? SUBJECTS : 1; n > 0; n--) {
            char path[HOSTILE_PATH];
            snprintf(path, sizeof path, "%s", some_path(p));
            open_session(p);
            ask_route(p, route, path);
        }
    }
}

/* The body of a GET that has to succeed. */
static json_t *get(struct play *p, const char *what, const char *path, const char *query)
{
    char encoded[3 * HOSTILE_PATH + 1], target[sizeof encoded + 128];
    clave__percent_encode(encoded, path);
    snprintf(target, sizeof target, "%s%s%s", what, encoded, query);
    struct webrig_call *c = webrig_request(p->rig, "GET", target, NULL, NULL);
    if (!c->answered || c->status != 200)
        fprintf(stderr, "GET %s: %u %s\n", target, c->status, webrig_body(c));
    must(c->answered && c->status == 200);
    json_t *body = json_of(c);
    webrig_end(c);
    return body;
}

static const char *text_of(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

/* A lock or an election that is listed is shown. */
static void check_listed(struct play *p, const char *what, const char *list)
{
    json_t *all = get(p, what, "", "?fresh=1"), *one;
    size_t i;
    json_array_foreach(json_object_get(all, list), i, one)
        json_decref(get(p, what, text_of(one, "path"), ""));
    json_decref(all);
}

/* An owner that is listed is found by its claim, with the same token. */
static void check_slots(struct play *p, const char *path)
{
    char encoded[3 * HOSTILE_PATH + 1], target[sizeof encoded + 64];
    clave__percent_encode(encoded, path);
    snprintf(target, sizeof target, "/v1/slots%s", encoded);
    struct webrig_call *c = webrig_request(p->rig, "GET", target, NULL, NULL);
    json_t *slots = c->status == 200 ? json_of(c) : NULL, *one;
    size_t i;
    webrig_end(c);
    json_array_foreach(json_object_get(slots, "owners"), i, one)
    {
        const char *owner = text_of(one, "owner");
        if (owner && clave__slot_id_is_valid(owner) && !strstr(owner, "\xef\xbf\xbd"))
            json_decref(get(p, "/v1/claims/", slot_id_text(path, owner), ""));
    }
    json_decref(slots);
}

static void check_found(struct play *p)
{
    char root[HOSTILE_PATH];
    check_listed(p, "/v1/locks", "locks");
    check_listed(p, "/v1/elections", "elections");
    for (size_t i = 0; hostile_root(i, "", root); i++)
        check_slots(p, root);
}

/* ---- the recipes ----------------------------------------------------------------------------- */

static void on_participants(clave_async_client *c, clave_err err, const clave_participant *list,
                            size_t n, void *arg)
{
    struct play *p = arg;
    (void)c;
    p->answered++;
    must(err == CLAVE_OK || n == 0);
    for (size_t i = 0; i < n; i++)
        must(*list[i].node && list[i].priority >= 0);
}

static void on_deadlocks(clave_async_client *c, clave_err err, const clave_deadlock *list, size_t n,
                         void *arg)
{
    struct play *p = arg;
    (void)c;
    p->answered++;
    must(err == CLAVE_OK || n == 0);
    for (size_t i = 0; i < n; i++)
        must(list[i].n > 0 && list[i].victim <= list[i].n && *list[i].text);
}

static void on_slots(clave_async_client *c, clave_err err, const clave_slots_view *view, void *arg)
{
    struct play *p = arg;
    (void)c;
    p->answered++;
    must((err == CLAVE_OK) == (view != NULL));
    for (size_t i = 0; view && i < view->n; i++)
        must(view->slots[i].node != NULL);
}

static void on_news(clave_async_leader_watch *w, const clave_leader_news *news, void *arg)
{
    (void)w;
    (void)arg;
    must(!news->leader || *news->leader->node);
}

/* What the recipes list of a path. */
static void list_path(struct play *p, const char *path)
{
    clave_async_client *c = p->strangers[0];
    const clave_err started[] = {
        clave_async_participants(c, path, on_participants, p),
        clave_async_rwlock_participants(c, path, CLAVE_RWLOCK_READ, on_participants, p),
        clave_async_rwlock_participants(c, path, CLAVE_RWLOCK_WRITE, on_participants, p),
        clave_async_rwlock_participants(c, path, CLAVE_RWLOCK_BOTH, on_participants, p),
        clave_async_semaphore_participants(c, path, on_participants, p),
        clave_async_latch_participants(c, path, on_participants, p),
        clave_async_latch_leader(c, path, on_participants, p),
        clave_async_slots_list(c, path, on_slots, p),
        clave_async_deadlocks_find(c, &path, 1, on_deadlocks, p),
    };
    for (size_t i = 0; i < sizeof started / sizeof *started; i++)
        p->asked += started[i] == CLAVE_OK;
    webrig_settle(p->rig);
}

/* One lock of a recipe, acquired for a while: what it finds it must cope with. */
static void on_mutex(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m;
    (void)owner;
    *(clave_err *)arg = err;
}

static void on_once(clave_async_once *o, clave_err err, const clave_once_record *former, void *arg)
{
    (void)o;
    (void)arg;
    must(err != CLAVE_EDONE || former->state != CLAVE_ONCE_NONE);
}

static void on_delay(clave_async_delay *d, clave_err err, void *arg)
{
    (void)d;
    (void)err;
    (void)arg;
}

/* A job once, and a lock delay, on records that others may have written. */
static void run_jobs(struct play *p, clave_async_mutex *m)
{
    char done[HOSTILE_PATH], held[HOSTILE_PATH];
    clave_async_grant *g;
    clave_async_once *once = NULL;
    clave_async_delay *delay = NULL;
    if (clave_async_mutex_grant(m, 1, &g) != CLAVE_OK)
        return;
    snprintf(done, sizeof done, "%s", roll(p, 2) ? some_path(p) : "/a-done");
    snprintf(held, sizeof held, "%s", roll(p, 2) ? some_path(p) : "/a-held");
    const clave_once_options o = {.size = sizeof o, .path = done, .period_ms = roll(p, 2) * 5000};
    const clave_delay_options d = {.size = sizeof d, .path = held, .delay_ms = roll(p, 2) * 100};
    (void)clave_async_once_begin(&once, g, &o, on_once, p);
    (void)clave_async_delay_begin(&delay, g, &d, on_delay, p);
    webrig_advance(p->rig, 200);
    clave_async_once_free(once);
    clave_async_delay_free(delay);
    clave_async_grant_free(g);
}

static void acquire_mutex(struct play *p, const char *path)
{
    const clave_mutex_options o = {.size = sizeof o, .detect_deadlocks_ms = roll(p, 2) * 500};
    clave_async_client *c = p->strangers[1];
    int64_t deadline = roll(p, 2) ? CLAVE_TRY : p->rig->net->now + 700;
    clave_err got = CLAVE_EINVAL;
    clave_async_rwlock *rw = NULL;
    clave_async_mutex *m = NULL, *plain = NULL;
    if (roll(p, 3) == 0) {
        if (clave_async_mutex_new(&plain, c, path, &o) == CLAVE_OK)
            m = plain;
    } else if (clave_async_rwlock_new(&rw, c, path, &o) == CLAVE_OK) {
        m = roll(p, 2) ? clave_async_rwlock_read(rw) : clave_async_rwlock_write(rw);
    }
    if (m && clave_async_mutex_acquire(m, 1, deadline, on_mutex, &got) == CLAVE_OK) {
        webrig_advance(p->rig, 800);
        if (got == CLAVE_OK)
            run_jobs(p, m);
    }
    clave_async_mutex_free(plain);
    clave_async_rwlock_free(rw);
    webrig_settle(p->rig);
}

static void on_leases(clave_async_semaphore *s, clave_err err, clave_async_lease *const *leases,
                      size_t n, void *arg)
{
    (void)s;
    (void)leases;
    (void)arg;
    must((err == CLAVE_OK) == (n > 0));
}

static void acquire_leases(struct play *p, const char *path)
{
    char limit[HOSTILE_PATH];
    snprintf(limit, sizeof limit, "%s", roll(p, 2) ? some_path(p) : "/a-limit");
    const clave_semaphore_options o = {.size = sizeof o,
                                       .limit = 1 + roll(p, 3),
                                       .limit_path = roll(p, 2) ? limit : NULL,
                                       .detect_deadlocks_ms = roll(p, 2) * 500};
    clave_async_semaphore *s;
    if (clave_async_semaphore_new(&s, p->strangers[1], path, &o) != CLAVE_OK)
        return;
    (void)clave_async_semaphore_acquire(
        s, 1, 1 + roll(p, 2), roll(p, 2) ? CLAVE_TRY : p->rig->net->now + 700, on_leases, p);
    webrig_advance(p->rig, 800);
    clave_async_semaphore_free(s);
    webrig_settle(p->rig);
}

/* Followers see the tree before and after strangers have changed it. */
static void follow(struct play *p, const char *path)
{
    const clave_latch_options candidate = {.size = sizeof candidate, .id = "c"};
    clave_async_client *c = p->strangers[1];
    clave_async_leader_watch *watch = NULL;
    clave_async_cache *cache = NULL;
    clave_async_latch *latch = NULL;
    (void)clave_async_leader_watch_new(&watch, c, path, on_news, p);
    (void)clave_async_cache_new(&cache, c, path, NULL, NULL, NULL);
    if (clave_async_latch_new(&latch, c, path, &candidate) == CLAVE_OK)
        (void)clave_async_latch_start(latch);
    webrig_advance(p->rig, 500);
    change_tree(p);
    webrig_advance(p->rig, 500);
    clave_async_leader_watch_free(watch);
    clave_async_cache_free(cache);
    clave_async_latch_free(latch);
    webrig_settle(p->rig);
}

static void use_recipes(struct play *p)
{
    char path[HOSTILE_PATH];
    for (unsigned n = 0; n < SUBJECTS; n++) {
        snprintf(path, sizeof path, "%s", some_path(p));
        list_path(p, path);
    }
    acquire_mutex(p, path);
    acquire_leases(p, path);
    snprintf(path, sizeof path, "%s", some_path(p));
    follow(p, path);
    must(p->asked == p->answered);
}

/* ---- the views of `clave locks` and of the history ------------------------------------------- */

static void show_node(const struct lock_listing *l, const struct lock_node *at)
{
    char text[LOCK_TEXT_CAP], words[LOCK_WHO_CAP];
    clave_identity id;
    struct lock_label label;
    clave__lock_label(at, &label);
    clave__lock_who_identity(at, text, &id);
    must(*clave__lock_listing_role(l, at) && strlen(clave__lock_who(at, words)) < LOCK_WHO_CAP);
    must(label.task && strlen(label.whose) < sizeof label.whose);
    clave__mem_free(l->model.mem, clave__lock_node_path(l->model.mem, at));
    (void)clave__lock_listing_holds(l, at);
}

/* The names of the children of `dir` among the nodes that were made. */
static size_t children_of(const struct play *p, const char *dir, const char *names[MOST_NODES])
{
    size_t n = 0;
    for (size_t i = 0; i < p->nmade; i++) {
        const char *path = p->made[i].path, *name = path ? clave__path_name(path) : NULL;
        if (path && clave__path_is_child(path, dir, name))
            names[n++] = name;
    }
    return n;
}

static clave_stat stat_of(const struct made *m)
{
    bool kept = m->node.mode != CLAVE_EPHEMERAL && m->node.mode != CLAVE_EPHEMERAL_SEQUENTIAL;
    return (clave_stat){.czxid = m->token, .ephemeral_owner = kept ? 0 : 7 + m->node.owner};
}

static void show_listing(struct play *p, const char *root)
{
    struct lock_listing l;
    const char *names[MOST_NODES];
    must(clave__lock_listing_init(&l, &p->rig->mem, 7, root) == CLAVE_OK);
    l.certain = roll(p, 2);
    for (int side = 0; side < LOCK_SIDES; side++) {
        char *dir = clave__lock_side_path(&p->rig->mem, root, (enum lock_side)side);
        must(dir != NULL);
        must(clave__lock_listing_names(&l, (enum lock_side)side, names,
                                       children_of(p, dir, names)) == CLAVE_OK);
        clave__mem_free(&p->rig->mem, dir);
    }
    for (size_t i = 0; i < p->nmade; i++) {
        const struct made *m = &p->made[i];
        clave_stat stat = stat_of(m);
        if (m->path && roll(p, 8))
            must(clave__lock_listing_node(&l, m->path, &stat, m->node.data, m->node.n) == CLAVE_OK);
        else if (m->path)
            clave__lock_listing_gone(&l, m->path);
    }
    size_t n = 0;
    for (const struct lock_node *at = NULL; (at = clave__lock_listing_after(&l, at)); n++)
        show_node(&l, at);
    must(n <= p->nmade);
    clave__lock_listing_fini(&l);
}

/* What a log says of this tree: the first half was there, the second came, some has gone. */
static struct lock_replay *replay_tree(struct play *p)
{
    struct lock_replay *r;
    must(clave__lock_replay_new(&r, &p->rig->mem, 7) == CLAVE_OK);
    for (size_t i = 0; i < p->nmade; i++) {
        const struct made *m = &p->made[i];
        clave_stat stat = stat_of(m);
        const struct lock_replay_txn txn = {m->token, 1000 + m->token, 7 + m->node.owner};
        if (i == p->nmade / 2)
            clave__lock_replay_loaded(r);
        if (!m->path)
            continue;
        if (i < p->nmade / 2) {
            clave__lock_replay_node(r, m->path, &stat, m->node.data, m->node.n);
            continue;
        }
        clave__lock_replay_txn(r, &txn);
        clave__lock_replay_created(r, m->path, stat.ephemeral_owner, m->node.data, m->node.n);
        const char *other = some_path(p);
        if (roll(p, 2))
            clave__lock_replay_written(r, other, 1, m->node.data, m->node.n);
        else
            clave__lock_replay_deleted(r, other);
    }
    if (p->nmade == 0)
        clave__lock_replay_loaded(r);
    clave__lock_replay_closed(r, roll(p, 2));
    return r;
}

static void on_loaded(void *arg, int64_t zxid)
{
    struct webrig *rig = arg;
    (void)zxid;
    clave__web_take_replay(rig->web, rig->net->now, replay_tree(rig->of_test));
}

/* ---- a play ---------------------------------------------------------------------------------- */

static void open_play(struct play *p)
{
    static const struct web_grant all[] = {{WEB_ADMIN, "/"}};
    static const struct web_user users[] = {{.name = "ann", .uid = 7, .grants = all, .ngrants = 1}};
    static const struct web_access access_of_test = {
        .users = users, .nusers = 1, .owner_uid = -1, .fleetlock = "/a"};
    static const char *const labelled[] = {"/"};
    const struct webrig_options o = {
        .access = &access_of_test, .metric_paths = labelled, .nmetric_paths = 1};
    p->rig = webrig_new(&o);
    p->rig->peer.is_unix = true;
    p->rig->peer.uid = 7;
    p->rig->of_test = p;
    p->rig->env.loaded = on_loaded;
    for (size_t i = 0; i < STRANGERS; i++) {
        const clave_client_options stranger = {
            .size = sizeof stranger, .hosts = "a:1", .seed = 8 + i};
        p->places[i] = memnet_open(p->rig->net, &stranger);
        p->strangers[i] = p->rig->net->clients[p->places[i]].c;
    }
    webrig_settle(p->rig);
}

static void close_play(struct play *p)
{
    while (p->nwaiting > 0)
        end_oldest(p);
    for (size_t i = 0; i < STRANGERS; i++)
        memnet_close(p->rig->net, p->places[i]);
    webrig_free(p->rig);
    for (size_t i = 0; i < p->nmade; i++)
        free(p->made[i].path);
    for (size_t i = 0; i < p->nids; i++)
        free(p->ids[i]);
    forget_session(p);
}

static void read_everything(struct play *p)
{
    char root[HOSTILE_PATH];
    check_found(p);
    ask_all(p, true);
    for (size_t i = 0; hostile_root(i, "", root); i++)
        show_listing(p, root);
}

static void use_everything(struct play *p)
{
    ask_all(p, false);
    use_recipes(p);
    change_tree(p);
    webrig_advance(p->rig, 1000 * roll(p, 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct play p;
    static uint8_t dice[DICE];
    struct input in = {data, size};
    uint64_t seed = input_byte(&in);
    seed = seed << 8 | input_byte(&in);
    memset(&p, 0, sizeof p);
    hostile_seed(seed, dice, sizeof dice);
    p.dice = (struct input){dice, sizeof dice};
    alarm(SECONDS);
    open_play(&p);
    hostile_tree(&in, "", make_node, &p);
    webrig_settle(p.rig);
    read_everything(&p);
    use_everything(&p);
    read_everything(&p);
    close_play(&p);
    alarm(0);
    return 0;
}

/* false: the arguments are the fuzzer's. */
static bool play_seeds(int argc, char **argv)
{
    if (argc < 3 || strcmp(argv[1], "--seeds") != 0)
        return false;
    uint64_t n = strtoull(argv[2], NULL, 10), first = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + n; seed++) {
        uint8_t tree[2048];
        fprintf(stderr, "seed %llu\r", (unsigned long long)seed);
        hostile_seed(seed, tree, sizeof tree);
        LLVMFuzzerTestOneInput(tree, sizeof tree);
    }
    printf("%llu trees\n", (unsigned long long)n);
    return true;
}

#ifdef TREE_SEEDS /* without a fuzzer, with any compiler */
int main(int argc, char **argv)
{
    return play_seeds(argc, argv) ? 0 : 2;
}
#else
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    if (play_seeds(*argc, *argv))
        exit(0);
    return 0;
}
#endif
