/* services.c - /v1/services: the instances of services, from the gate's copy of the tree, for
 * scripts, balancers, and Prometheus (?format=http_sd); and registering an instance with a session
 * (members.c).
 *
 * Prometheus keeps the targets that it has when an answer is not 200, and drops those that a list
 * does not name. So a list is answered only from a copy that is current and complete; and a service
 * that has no node has no instances, which is an empty list, because the node of a service is
 * deleted with its last instance.
 *
 * Invariant: the list names the instances that were there when the list was begun, each as it is
 * when it is written; an instance that has gone meanwhile is left out. If the copy itself goes, the
 * answer ends in the middle, so that nobody takes it for a whole list. */
#include "web/api/api.h"

#include <string.h>

#include "base/path.h"
#include "clave/async/cache.h"
#include "observe/instance_json.h"
#include "recipe/discovery.h"
#include "web/observe/observe.h"

enum { PIECE_INSTANCES = 500 };

struct service_list {
    struct node_list nodes; /* below the service, or the parent of all services */
    bool of_one;            /* only the instances of one service */
    bool ready;             /* only those that are up */
    bool http_sd;
    size_t ready_ones;
    bool begun;
    size_t unreadable;
};

/* ---- the nodes ------------------------------------------------------------------------------- */

/* Reads a node as an instance. The caller frees *parsed. */
static void service_list_entry(const struct service_list *l, const char *path,
                               const clave_cache_node *node, clave_instances_entry *e,
                               clave_instance **parsed)
{
    *parsed = NULL;
    *e = (clave_instances_entry){.path = path, .stat = node->stat};
    if (node->unreadable)
        e->fault = "may not be read by the gate";
    else if (!node->has_data)
        e->fault = "has more data than the gate keeps of a node, 4096 bytes";
    else if (clave_instance_parse(parsed, node->data, node->len, &l->nodes.x->web->mem,
                                  &e->fault) == CLAVE_ENOMEM)
        e->fault = "did not fit into memory";
    e->instance = *parsed;
}

/* Nothing but the path of an instance is kept, so each is looked at once more to count those that
 * are up. */
static void service_list_count_ready(struct service_list *l)
{
    clave_cache_node node;
    for (const char *path; (path = clave__node_list_next(&l->nodes, &node));) {
        clave_instances_entry e;
        clave_instance *parsed;
        service_list_entry(l, path, &node, &e, &parsed);
        l->ready_ones += parsed && !parsed->disabled;
        clave_instance_free(parsed);
    }
    l->nodes.at = 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static clave_err service_list_write(struct service_list *l, struct json *j, const char *path,
                                    const clave_cache_node *node)
{
    clave_instances_entry e;
    clave_instance *parsed;
    service_list_entry(l, path, node, &e, &parsed);
    size_t parent = clave__path_parent_len(path, strlen(path));
    char *service = clave__web_strndup(l->nodes.x, path, parent);
    if (service) {
        e.service = clave__path_name(service);
        l->unreadable += !parsed;
        if (l->http_sd)
            (void)clave__instance_http_sd(j, &e);
        else if (!l->ready || (parsed && !parsed->disabled)) {
            clave__json_open(j, NULL, '{');
            clave__instance_json(j, &e);
            clave__json_close(j, '}');
        }
    }
    clave_instance_free(parsed);
    return service ? CLAVE_OK : CLAVE_ENOMEM;
}

static clave_err service_list_piece(void *arg, struct json *j, bool *done)
{
    struct service_list *l = arg;
    const struct node_list *nodes = &l->nodes;
    clave_err err =
        nodes->o->copy && nodes->o->copies == nodes->copy ? CLAVE_OK : CLAVE_EUNREACHABLE;
    clave_cache_node node;
    const char *path = NULL;
    if (!l->begun && l->http_sd) {
        clave__json_open(j, NULL, '[');
    } else if (!l->begun) {
        clave__json_open(j, NULL, '{');
        clave__json_string(j, "path", nodes->path);
        clave__json_open(j, "instances", '[');
    }
    l->begun = true;
    for (size_t i = 0; i < PIECE_INSTANCES && err == CLAVE_OK; i++) {
        path = clave__node_list_next(&l->nodes, &node);
        if (!path)
            break;
        err = service_list_write(l, j, path, &node);
    }
    *done = !path;
    if (!*done || err != CLAVE_OK)
        return err;
    clave__json_close(j, ']');
    if (!l->http_sd) {
        clave__json_int(j, "unreadable", (int64_t)l->unreadable);
        clave__observe_copy_json(j, nodes->x);
        clave__json_close(j, '}');
    }
    return CLAVE_OK;
}

/* ---- the request ----------------------------------------------------------------------------- */

/* The path of a service's node, or of one of its instances; NULL: it has answered. */
static const char *service_path(struct web_exchange *x)
{
    const char *base = clave__web_query(x, "base"), *path = base ? base : "/services";
    if (base && !clave__query_path(x, "base"))
        return NULL;
    for (size_t i = 0; i < WEB_MAX_PARAMS && x->params[i] && path; i++) {
        const char *name = x->params[i];
        path = clave__web_child(x, path, name);
        if (path && (strchr(name, '/') || clave__path_fault(path, strlen(path), false))) {
            clave__web_bad_request(x, "%s has a name that can be part of a path, without /",
                                   i == 0 ? "a service" : "an instance");
            return NULL;
        }
    }
    if (!path)
        clave__web_problem_err(x, CLAVE_ENOMEM, "find", "/services");
    return path;
}

/* false: it has answered. */
static bool service_list_read(struct web_exchange *x, struct service_list *l)
{
    const char *format = clave__web_query(x, "format");
    *l = (struct service_list){.nodes = {.x = x, .path = service_path(x)},
                               .of_one = x->params[0],
                               .ready = clave__web_query(x, "ready")};
    if (!l->nodes.path)
        return false;
    if (format && strcmp(format, "http_sd") != 0)
        return clave__web_bad_request(x,
                                      "the only format is http_sd; without one, JSON is answered");
    if (l->ready && format)
        return clave__web_bad_request(x, "format=http_sd has only what is ready: leave out ready");
    l->http_sd = format;
    return clave__web_must(x, WEB_READ, l->nodes.path);
}

void clave__web_get_services(struct web_exchange *x)
{
    struct service_list *l = clave__web_must_alloc(x, sizeof *l);
    if (!l || !service_list_read(x, l) ||
        !clave__node_list_read(&l->nodes, !l->of_one, "which instances there are at"))
        return;
    if (l->ready)
        service_list_count_ready(l);
    if (l->ready && l->ready_ones == 0)
        clave__web_problem(x,
                           &(struct problem){.status = 503,
                                             .err = CLAVE_EUNREACHABLE, /* an instance may come, so
                                                                         * the class is retry */
                                             .code = clave_err_name(CLAVE_ENONODE),
                                             .path = l->nodes.path,
                                             .retry_after_s = 1},
                           "no instance at %s is up", l->nodes.path);
    else
        clave__web_answer_pieces(x, service_list_piece, NULL, l);
}

/* ==== registering ============================================================================= */

/* The body, completed by the name and the id from the path, which the body may leave out. NULL: it
 * has answered. */
static char *service_text(struct web_exchange *x)
{
    const char *body = clave__web_body_bytes(x), *end = body + clave__web_body_len(x);
    while (body < end && strchr(" \t\r\n", *body) && *body)
        body++;
    if (body < end && *body == '{') {
        body++;
        const char *rest = body;
        while (rest < end && strchr(" \t\r\n", *rest) && *rest)
            rest++;
        struct json j = clave__json_to(&x->answer.body);
        clave__json_open(&j, NULL, '{');
        clave__json_string(&j, "name", x->params[0]);
        clave__json_string(&j, "id", x->params[1]);
        char *text =
            clave__web_sprintf(x, "%.*s%s%.*s", (int)clave__buf_len(&x->answer.body),
                               (const char *)clave__buf_bytes(&x->answer.body),
                               rest < end && *rest != '}' ? "," : "", (int)(end - body), body);
        clave__buf_consume(&x->answer.body, clave__buf_len(&x->answer.body));
        if (!text || j.err != CLAVE_OK)
            clave__web_problem_err(x, CLAVE_ENOMEM, "register", x->params[1]);
        return j.err == CLAVE_OK ? text : NULL;
    }
    clave__web_bad_request(x, "the body is the JSON of an instance: {\"address\": \"10.0.0.7\", "
                              "\"port\": 8080}");
    return NULL;
}

/* `same` for a program that gives no registration time: the node's time is kept, so a repeated
 * request changes nothing. */
static bool service_is_same(struct web_exchange *x, const struct own_node *n,
                            const clave_result *res)
{
    const struct clave_mem *mem = &x->web->mem;
    clave_instance *there = NULL, *asked = NULL;
    const char *fault = NULL, *unknown = NULL;
    char *data = NULL;
    clave_err err =
        clave__instance_parse(&there, res->data ? res->data : "", res->len, mem, &fault, &unknown);
    if (err == CLAVE_OK && !fault)
        err = clave__instance_parse(&asked, n->data, n->len, mem, &fault, &unknown);
    if (err == CLAVE_OK && there && asked) {
        asked->registered = there->registered;
        data = clave__web_alloc(x, res->len + 1);
    }
    bool same = data && clave_instance_format(asked, data, res->len + 1) == res->len &&
                memcmp(data, res->data, res->len) == 0;
    clave_instance_free(there);
    clave_instance_free(asked);
    return same;
}

/* The data of the instance's node, from the body of the request. Returns NULL, having answered, if
 * the body does not describe an instance. */
static char *service_data(struct web_exchange *x, struct own_node *n)
{
    const char *fault = NULL, *unknown = NULL;
    clave_instance *i = NULL;
    char *text = service_text(x), *data = NULL;
    if (!text)
        return NULL;
    clave_err err = clave__instance_parse(&i, text, strlen(text), &x->web->mem, &fault, &unknown);
    if (err == CLAVE_OK && i->type != CLAVE_SERVICE_DYNAMIC) /* others may lack a name and an id */
        fault = "has a serviceType that is not DYNAMIC, as the node of a session is";
    else if (err == CLAVE_OK &&
             (strcmp(i->name, x->params[0]) != 0 || strcmp(i->id, x->params[1]) != 0))
        fault = "has another name or id than the path";
    else if (err == CLAVE_OK && !unknown && (!i->address || !*i->address))
        fault = "has no \"address\", where it can be reached";
    else if (err == CLAVE_OK)
        fault = clave_instance_fault(i);
    if (!fault && i && !unknown) {
        n->same = i->registered ? NULL : service_is_same;
        i->registered = i->registered ? i->registered : clave__observe_now(x->web->observe);
        n->len = clave_instance_format(i, NULL, 0);
        data = clave__web_alloc(x, n->len + 1);
        if (data)
            clave_instance_format(i, data, n->len + 1);
    }
    if (fault)
        clave__web_bad_request(x, "the instance %s", fault);
    else if (unknown)
        clave__web_bad_request(x, "unknown member \"%.64s\": see /v1/openapi.json", unknown);
    else if (!data)
        clave__web_problem_err(x, CLAVE_ENOMEM, "register", x->params[1]);
    clave_instance_free(i);
    return data;
}

/* As with Curator, an instance that is registered already is replaced, so that a program that is
 * started again is registered at once. With the id of a session in ?replace, only an instance of
 * that session is replaced, so that two programs with the same id do not replace each other for
 * ever. */
void clave__web_put_service(struct web_exchange *x)
{
    struct own_node n = {.path = service_path(x), .replace = true};
    if (!n.path || !clave__own_node_read_replace(x, &n) || !clave__web_must(x, WEB_WRITE, n.path))
        return;
    n.data = service_data(x, &n);
    if (n.data)
        clave__web_put_own_node(x, &n);
}

void clave__web_delete_service(struct web_exchange *x)
{
    const char *path = service_path(x);
    if (path && clave__web_must(x, WEB_WRITE, path))
        clave__web_delete_own_node(x, path);
}
