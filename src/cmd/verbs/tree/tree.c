/* tree.c - `clave tree`: prints a tree that znodes/tree_walk.h has read. The nodes are read one
 * after another, so the tree need not have existed like that at any one moment.
 *
 * Map of src/cmd/verbs, one file per verb (cli/verb.h):
 *   lock/     lock (rwlock, semaphore too), locks, check; slot; elect, leader, candidates,
 *             resign, transfer
 *   tree/     get, set, create, rm, ls, tree, stat, watch, sync: one request or one tree each
 *   server/   ping, sessions, history, grow, help, completion, version
 *
 * The verbs serve and gate are in src/cmd/serve, data is in src/cmd/data, top in src/cmd/top. */
#include <limits.h>
#include <stdio.h>

#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/format.h"
#include "cmd/cli/json.h"
#include "cmd/znodes/tree_walk.h"

enum { TREE_DEPTH = FLAG_LONG, TREE_DATA };

static void verb_tree_show_node(const struct options *o, const struct tree_walk_node *node,
                                bool data)
{
    struct json j;
    if (o->json) {
        json_begin(&j, stdout);
        clave__json_string(&j, "path", node->path);
        clave__json_int(&j, "depth", node->depth);
        if (data)
            json_bytes(&j, "data", node->data, node->len);
        json_end(&j);
        return;
    }
    for (unsigned i = 0; i < node->depth; i++)
        fputs("  ", stdout);
    format_name(stdout, node->depth == 0 ? node->path : tree_walk_name(node));
    if (node->len > 0) {
        fputs(" = ", stdout);
        format_bytes(stdout, node->data, node->len);
    }
    putchar('\n');
}

static int verb_tree_show(const struct options *o, const struct tree_walk *w, bool data)
{
    int code = EXIT_OK;
    for (size_t i = 0; i < w->n; i = tree_walk_next(w, i)) {
        const struct tree_walk_node *node = &w->nodes[i];
        if (node->err == CLAVE_ENONODE) /* it was deleted after it was listed */
            continue;
        verb_tree_show_node(o, node, data && node->err == CLAVE_OK);
        if (node->err != CLAVE_OK)
            code = diag_err(o, node->path, node->err, NULL);
    }
    return code;
}

static int run_tree(struct options *o, int argc, char **argv)
{
    struct tree_walk_options options = {.max_depth = UINT_MAX};
    struct tree_walk w;
    clave_client *c;
    int64_t depth;
    int id;
    while ((id = options_next(o, argc, argv)) > 0) {
        if (id == TREE_DATA)
            options.data = true;
        else if (!options_number(o, "depth", 0, INT_MAX, &depth))
            return EXIT_USAGE;
        else
            options.max_depth = (unsigned)depth;
    }
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 0, 1))
        return EXIT_USAGE;
    const char *path = o->argc > 0 ? o->argv[0] : "/";
    if (!connect_path_ok(o, path))
        return EXIT_PATH;
    int code = connect_open(o, NULL, &c);
    if (code != EXIT_OK)
        return code;
    options.timeout_ms = o->timeout_ms;
    clave_err err = tree_walk_read(c, path, &options, &w);
    code = err == CLAVE_OK ? verb_tree_show(o, &w, options.data) : diag_err(o, path, err, c);
    connect_close(c);
    tree_walk_fini(&w);
    return code;
}

static const struct flag flags[] = {
    {TREE_DEPTH, "depth", "N", "descend at most N levels"},
    {TREE_DATA, "data", NULL, "print the data, too, on one line, with \\n and \\xNN in it"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_tree = {
    .name = "tree",
    .args = "[PATH]",
    .summary = "Print the nodes below a node, indented by two spaces a level",
    .flags = flags,
    .max_args = -1,
    .run = run_tree,
};
