/* services.c - /v1/services: the instances of services, from the gate's copy of the tree, for
 * scripts, balancers, and Prometheus (?format=http_sd).
 *
 * Prometheus keeps the targets that it has when an answer is not 200, and drops those that a list
 * does not name. So a list is answered only from a copy that is current and complete; and a service
 * that has no node has no instances, which is an empty list, because its node goes with its last
 * instance.
 *
 * Invariant: the list names the instances that were there when it was begun, each as it is when it
 * is written; one that has gone meanwhile is left out. If the copy itself goes, the answer ends in
 * the middle, so that nobody takes it for a whole list. */
#include "web/api/api.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "clave/async/cache.h"
#include "observe/instance_json.h"
#include "web/observe/observe.h"

enum { MOST_INSTANCES = 20000, PIECE_INSTANCES = 500 };

struct service_list {
    struct web_exchange *x;
    struct observe *o;
    uint64_t copy;    /* the number of the copy that it is from */
    const char *path; /* the service's, or that of the parent of all services */
    bool of_one;      /* service */
    bool ready;       /* only those that are up */
    bool http_sd;
    const char **paths; /* of the instances, sorted */
    size_t n, cap;
    size_t at;
    size_t ready_ones;
    bool begun, no_memory;
    size_t unreadable;
};

/* ---- the nodes ------------------------------------------------------------------------------- */

static bool service_list_add(const clave_cache_node *node, void *arg)
{
    struct service_list *l = arg;
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 64;
        const char **paths = clave__web_alloc(l->x, cap * sizeof *paths);
        l->no_memory |= !paths;
        if (!paths)
            return false;
        if (l->n > 0)
            memcpy(paths, l->paths, l->n * sizeof *paths);
        l->paths = paths;
        l->cap = cap;
    }
    l->paths[l->n] = clave__web_strndup(l->x, node->path, strlen(node->path));
    l->no_memory |= !l->paths[l->n];
    l->n += !l->no_memory;
    return !l->no_memory && l->n <= MOST_INSTANCES;
}

static void service_list_add_children(struct service_list *l, const char *path,
                                      clave_cache_visit_cb *add)
{
    l->no_memory |= clave_async_cache_children(l->o->copy, path, add, l) == CLAVE_ENOMEM;
}

static bool service_list_add_service(const clave_cache_node *node, void *arg)
{
    struct service_list *l = arg;
    service_list_add_children(l, node->path, service_list_add);
    return !l->no_memory && l->n <= MOST_INSTANCES;
}

static int service_compare_paths(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What the copy has at a path, as an instance. false: nothing. Free the instance. */
static bool service_list_entry(const struct service_list *l, const char *path,
                               clave_instances_entry *e, clave_instance **parsed)
{
    clave_cache_node node;
    *parsed = NULL;
    if (clave_async_cache_get(l->o->copy, path, &node) != CLAVE_OK)
        return false;
    *e = (clave_instances_entry){.path = path, .stat = node.stat};
    if (node.unreadable)
        e->fault = "may not be read by the gate";
    else if (!node.has_data)
        e->fault = "has more data than the gate keeps of a node, 4096 bytes";
    else if (clave_instance_parse(parsed, node.data, node.len, &l->x->web->mem, &e->fault) ==
             CLAVE_ENOMEM)
        e->fault = "did not fit into memory";
    e->instance = *parsed;
    return true;
}

/* Nothing is kept of an instance but its path, so it is looked at once more for this. */
static void service_list_count_ready(struct service_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        clave_instances_entry e;
        clave_instance *parsed;
        if (service_list_entry(l, l->paths[i], &e, &parsed))
            l->ready_ones += parsed && !parsed->disabled;
        clave_instance_free(parsed);
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

static clave_err service_list_write(struct service_list *l, struct json *j, const char *path)
{
    clave_instances_entry e;
    clave_instance *parsed;
    if (!service_list_entry(l, path, &e, &parsed))
        return CLAVE_OK;
    size_t parent = clave__path_parent_len(path, strlen(path));
    char *service = clave__web_strndup(l->x, path, parent);
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
    clave_err err = l->o->copy && l->o->copies == l->copy ? CLAVE_OK : CLAVE_EUNREACHABLE;
    if (!l->begun && l->http_sd) {
        clave__json_open(j, NULL, '[');
    } else if (!l->begun) {
        clave__json_open(j, NULL, '{');
        clave__json_string(j, "path", l->path);
        clave__json_open(j, "instances", '[');
    }
    l->begun = true;
    for (size_t i = 0; i < PIECE_INSTANCES && l->at < l->n && err == CLAVE_OK; i++)
        err = service_list_write(l, j, l->paths[l->at++]);
    *done = l->at == l->n;
    if (!*done || err != CLAVE_OK)
        return err;
    clave__json_close(j, ']');
    if (!l->http_sd) {
        clave__json_int(j, "unreadable", (int64_t)l->unreadable);
        clave__observe_copy_json(j, l->x);
        clave__json_close(j, '}');
    }
    return CLAVE_OK;
}

/* ---- the request ----------------------------------------------------------------------------- */

/* false: it has answered. */
static bool service_list_read(struct web_exchange *x, struct service_list *l)
{
    const char *base = clave__web_query(x, "base"), *format = clave__web_query(x, "format");
    const char *service = x->params[0];
    *l = (struct service_list){.x = x, .of_one = service, .ready = clave__web_query(x, "ready")};
    if (base && !clave__query_path(x, "base"))
        return false;
    if (format && strcmp(format, "http_sd") != 0)
        return clave__web_bad_request(x,
                                      "the only format is http_sd; without one, JSON is answered");
    if (l->ready && format)
        return clave__web_bad_request(x, "format=http_sd has only what is ready: leave out ready");
    l->http_sd = format;
    l->path = base ? base : "/services";
    if (service)
        l->path = clave__web_child(x, l->path, service);
    if (!l->path) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "list", NULL);
        return false;
    }
    if (service && (strchr(service, '/') || clave__path_fault(l->path, strlen(l->path), false)))
        return clave__web_bad_request(x,
                                      "a service has a name that can be part of a path, without /");
    return clave__web_must(x, WEB_READ, l->path);
}

/* Whether the copy can tell who is there. false: it has answered. */
static bool service_list_is_known(struct service_list *l)
{
    struct web_exchange *x = l->x;
    char *path = clave__web_strndup(x, l->path, strlen(l->path));
    const char *hidden = path ? clave__observe_feed_unreadable(l->o->feed, path) : NULL;
    if (!path)
        clave__web_problem_err(x, CLAVE_ENOMEM, "list", l->path);
    else if (hidden)
        clave__web_refuse(x, 403, CLAVE_ENOAUTH, l->path,
                          "the gate may not read %s, so what is at %s is not known", hidden,
                          l->path);
    else if (!l->o->copy || l->o->partial || !clave__observe_is_current(l->o))
        clave__observe_copy_answer_old(x, l->path, "which instances there are at");
    else
        return true;
    return false;
}

void clave__web_get_services(struct web_exchange *x)
{
    struct service_list *l = clave__web_must_alloc(x, sizeof *l);
    if (!l || !service_list_read(x, l) || !(l->o = clave__observe_for(x)) ||
        !service_list_is_known(l))
        return;
    l->copy = l->o->copies;
    service_list_add_children(l, l->path, l->of_one ? service_list_add : service_list_add_service);
    if (l->no_memory) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "list", l->path);
        return;
    }
    if (l->n > MOST_INSTANCES) {
        clave__web_bad_request(x, "there are more than 20000 instances: ask for one service");
        return;
    }
    if (l->n > 0)
        qsort(l->paths, l->n, sizeof *l->paths, service_compare_paths);
    clave__observe_copy_set_headers(x);
    if (l->ready)
        service_list_count_ready(l);
    if (l->ready && l->ready_ones == 0)
        clave__web_problem(x,
                           &(struct problem){.status = 503, .err = CLAVE_ENONODE, .path = l->path},
                           "no instance at %s is up", l->path);
    else
        clave__web_answer_pieces(x, service_list_piece, NULL, l);
}
