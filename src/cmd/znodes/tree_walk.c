/* tree_walk.c - reads a tree one level after another (see tree_walk.h), for the verbs tree and rm.
 * Parents precede their children in the list. */
#include "cmd/znodes/tree_walk.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "cmd/znodes/request_window.h"

/* ---- names ---------------------------------------------------------------------------------- */

static int tree_walk_by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void tree_walk_sort_names(char **names, size_t n)
{
    if (n > 1)
        qsort(names, n, sizeof *names, tree_walk_by_name);
}

const char *tree_walk_name(const struct tree_walk_node *node)
{
    return clave__path_name(node->path);
}

static void tree_walk_free_names(struct tree_walk_node *node)
{
    for (size_t i = 0; node->names && i < node->nchildren; i++)
        free(node->names[i]);
    free(node->names);
    node->names = NULL;
}

static void tree_walk_drop_names(struct tree_walk_node *node)
{
    tree_walk_free_names(node);
    node->nchildren = 0;
}

static bool tree_walk_copy_names(struct tree_walk_node *node, const clave_result *res)
{
    assert(!node->names && node->nchildren == 0);
    node->names = calloc(res->nnames + 1, sizeof *node->names);
    if (!node->names)
        return false;
    for (size_t i = 0; i < res->nnames; i++) {
        node->names[i] = strdup(res->names[i]);
        node->nchildren = i + 1;
        if (!node->names[i])
            return false;
    }
    tree_walk_sort_names(node->names, node->nchildren);
    return true;
}

/* ---- one level ------------------------------------------------------------------------------ */

struct level {
    struct tree_walk *walk;
    size_t first;
};

static struct tree_walk_node *tree_walk_level_node(const struct level *l, size_t i)
{
    return &l->walk->nodes[l->first + i];
}

static clave_err tree_walk_submit_children(clave_async_client *c, size_t i, clave_result_cb *cb,
                                           void *cb_arg, void *arg)
{
    return clave_async_children(c, tree_walk_level_node(arg, i)->path, NULL, cb, cb_arg);
}

static void tree_walk_got_children(size_t i, const clave_result *res, void *arg)
{
    struct tree_walk_node *node = tree_walk_level_node(arg, i);
    node->err = res->err;
    if (res->err == CLAVE_OK && !tree_walk_copy_names(node, res))
        node->err = CLAVE_ENOMEM;
}

static clave_err tree_walk_submit_get(clave_async_client *c, size_t i, clave_result_cb *cb,
                                      void *cb_arg, void *arg)
{
    return clave_async_get(c, tree_walk_level_node(arg, i)->path, NULL, cb, cb_arg);
}

static void tree_walk_got_data(size_t i, const clave_result *res, void *arg)
{
    struct tree_walk_node *node = tree_walk_level_node(arg, i);
    assert(!node->data);
    node->err = res->err;
    if (res->err != CLAVE_OK || !res->data)
        return;
    node->data = malloc(res->len + 1);
    if (!node->data) {
        node->err = CLAVE_ENOMEM;
        return;
    }
    memcpy(node->data, res->data, res->len);
    node->len = res->len;
}

/* The first error that ends the walk. ENOAUTH and ENONODE concern only one node, so they do not. */
static clave_err tree_walk_first_fatal(const struct level *l, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        clave_err err = tree_walk_level_node(l, i)->err;
        if (err != CLAVE_OK && err != CLAVE_ENONODE && err != CLAVE_ENOAUTH)
            return err;
    }
    return CLAVE_OK;
}

static clave_err tree_walk_read_level(clave_client *c, struct level *l, size_t n, bool data,
                                      bool children, int64_t timeout_ms)
{
    struct request_window_plan get = {
        .n = n, .submit = tree_walk_submit_get, .done = tree_walk_got_data, .arg = l};
    struct request_window_plan list = {
        .n = n, .submit = tree_walk_submit_children, .done = tree_walk_got_children, .arg = l};
    clave_err err = CLAVE_OK;
    if (children)
        err = request_window_run(c, &list, timeout_ms);
    if (err == CLAVE_OK)
        err = tree_walk_first_fatal(l, n);
    if (err == CLAVE_OK && data)
        err = request_window_run(c, &get, timeout_ms);
    return err == CLAVE_OK ? tree_walk_first_fatal(l, n) : err;
}

/* ---- the tree -------------------------------------------------------------------------------- */

static struct tree_walk_node *tree_walk_add_node(struct tree_walk *w)
{
    if (w->n == w->cap) {
        size_t cap = w->cap ? 2 * w->cap : 64;
        struct tree_walk_node *nodes = realloc(w->nodes, cap * sizeof *nodes);
        if (!nodes)
            return NULL;
        w->nodes = nodes;
        w->cap = cap;
    }
    struct tree_walk_node *node = &w->nodes[w->n];
    *node = (struct tree_walk_node){0};
    return node;
}

static clave_err tree_walk_add_children(struct tree_walk *w, size_t parent)
{
    assert(w->nodes[parent].first_child == 0);
    size_t first = w->n;
    for (size_t i = 0; i < w->nodes[parent].nchildren; i++) {
        struct tree_walk_node *node = tree_walk_add_node(w), *up = &w->nodes[parent];
        if (!node || !(node->path = clave__path_child(NULL, up->path, up->names[i])))
            return CLAVE_ENOMEM;
        node->parent = parent;
        node->depth = up->depth + 1;
        w->n++;
    }
    tree_walk_free_names(&w->nodes[parent]);
    w->nodes[parent].first_child = first;
    return CLAVE_OK;
}

clave_err tree_walk_read(clave_client *c, const char *path, const struct tree_walk_options *options,
                         struct tree_walk *out)
{
    *out = (struct tree_walk){0};
    struct tree_walk_node *root = tree_walk_add_node(out);
    if (!root || !(root->path = strdup(path)))
        return CLAVE_ENOMEM;
    out->n = 1;
    size_t first = 0;
    for (unsigned depth = 0; first < out->n; depth++) {
        size_t end = out->n;
        struct level l = {.walk = out, .first = first};
        clave_err err =
            tree_walk_read_level(c, &l, end - first, options->data,
                                 depth < options->max_depth || first == 0, options->timeout_ms);
        for (size_t i = first; i < end && err == CLAVE_OK; i++) {
            if (depth < options->max_depth)
                err = tree_walk_add_children(out, i);
            else
                tree_walk_drop_names(&out->nodes[i]);
        }
        if (err != CLAVE_OK)
            return err;
        first = end;
    }
    return out->nodes[0].err;
}

void tree_walk_fini(struct tree_walk *w)
{
    for (size_t i = 0; i < w->n; i++) {
        tree_walk_free_names(&w->nodes[i]);
        free(w->nodes[i].path);
        free(w->nodes[i].data);
    }
    free(w->nodes);
    *w = (struct tree_walk){0};
}

size_t tree_walk_next(const struct tree_walk *w, size_t i)
{
    assert(i < w->n);
    if (w->nodes[i].nchildren > 0)
        return w->nodes[i].first_child;
    while (i != 0) {
        const struct tree_walk_node *up = &w->nodes[w->nodes[i].parent];
        if (i + 1 < up->first_child + up->nchildren)
            return i + 1;
        i = w->nodes[i].parent;
    }
    return w->n;
}
