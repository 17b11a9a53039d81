/* rm.c - `clave rm`: deletes one node or, with --recursive, a tree (znodes/tree_walk.h). Children
 * are deleted before their parents. The root is never deleted. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/znodes/request_window.h"
#include "cmd/znodes/tree_walk.h"

enum { RM_VERSION = FLAG_LONG };

/* ---- a whole tree --------------------------------------------------------------------------- */

struct removal {
    struct tree_walk walk;
    clave_err err; /* the first error that matters, and the index of its node */
    size_t where;
};

/* Children come first, in the reverse of the walk's order. */
static size_t removal_node(const struct removal *f, size_t i)
{
    return f->walk.n - 1 - i;
}

static clave_err rm_submit_delete(clave_async_client *c, size_t i, clave_result_cb *cb,
                                  void *cb_arg, void *arg)
{
    const struct removal *f = arg;
    return clave_async_delete(c, f->walk.nodes[removal_node(f, i)].path, -1, cb, cb_arg);
}

static void rm_deleted(size_t i, const clave_result *res, void *arg)
{
    struct removal *f = arg;
    if (res->err == CLAVE_OK || res->err == CLAVE_ENONODE || f->err != CLAVE_OK)
        return;
    f->err = res->err;
    f->where = removal_node(f, i);
}

static int rm_remove_tree(struct options *o, clave_client *c, const char *path, bool force)
{
    enum { TRIES = 5 }; /* other clients may keep creating children */
    struct tree_walk_options options = {.max_depth = UINT_MAX, .timeout_ms = o->timeout_ms};
    int code = EXIT_OK;
    for (int i = 0; i < TRIES; i++) {
        struct removal f = {.err = CLAVE_OK};
        clave_err err = tree_walk_read(c, path, &options, &f.walk);
        struct request_window_plan plan = {
            .n = f.walk.n, .submit = rm_submit_delete, .done = rm_deleted, .arg = &f};
        if (err == CLAVE_ENONODE && (force || i > 0)) {
            tree_walk_fini(&f.walk);
            return EXIT_OK;
        }
        if (err == CLAVE_OK)
            err = request_window_run(c, &plan, o->timeout_ms);
        bool again = err == CLAVE_OK && f.err == CLAVE_ENOTEMPTY && i + 1 < TRIES;
        if (err != CLAVE_OK)
            code = diag_err(o, path, err, c);
        else if (f.err != CLAVE_OK && !again)
            code = diag_err(o, f.walk.nodes[f.where].path, f.err, c);
        tree_walk_fini(&f.walk);
        if (!again)
            break;
    }
    return code;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int rm_remove_node(struct options *o, clave_client *c, const char *path, int32_t version,
                          bool force)
{
    clave_err err = clave_delete(c, path, version, o->timeout_ms);
    if (err == CLAVE_OK || (force && err == CLAVE_ENONODE))
        return EXIT_OK;
    return diag_err(o, path, err, c);
}

static int run_rm(struct options *o, int argc, char **argv)
{
    bool recursive = false, force = false;
    int64_t version = -1;
    clave_client *c;
    int id;
    while ((id = options_next(o, argc, argv)) > 0) {
        if (id == 'r')
            recursive = true;
        else if (id == 'f')
            force = true;
        else if (!options_number(o, "version", 0, INT32_MAX, &version))
            return EXIT_USAGE;
    }
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 1, 1))
        return EXIT_USAGE;
    if (recursive && version >= 0)
        return diag_usage(o, "--recursive and --version exclude each other");
    const char *path = o->argv[0];
    if (!connect_path_ok(o, path))
        return EXIT_PATH;
    if (strcmp(path, "/") == 0)
        return diag_end(o, "/", EXIT_PATH, "the root cannot be removed");
    int code = connect_open(o, NULL, &c);
    if (code != EXIT_OK)
        return code;
    code = recursive ? rm_remove_tree(o, c, path, force)
                     : rm_remove_node(o, c, path, (int32_t)version, force);
    connect_close(c);
    return code;
}

static const struct flag flags[] = {
    {'r', "recursive", NULL, "remove everything below it, too"},
    {'f', "force", NULL, "succeed if there is no such node"},
    {RM_VERSION, "version", "N", "only if the node has this version"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_rm = {
    .name = "rm",
    .args = "PATH",
    .summary = "Remove a node",
    .flags = flags,
    .max_args = -1,
    .run = run_rm,
};
