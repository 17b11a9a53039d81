/* set.c - `clave set`: writes the data of one node, with --create and --guard (znodes/guard.h).
 * With --version it never creates the node. */
#include <stdio.h>

#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/znodes/guard.h"
#include "cmd/znodes/one_node.h"

enum { SET_VERSION = FLAG_LONG, SET_CREATE, SET_GUARD };

struct set {
    const char *path;
    struct node_data data;
    int64_t version; /* -1: any version */
    bool create;
    bool guard;
    const char *node;
};

static clave_err set_write_once(struct options *o, clave_client *c, const struct set *w)
{
    clave_op op = {.kind = CLAVE_OP_SET,
                   .path = w->path,
                   .data = w->data.p,
                   .len = w->data.n,
                   .version = (int32_t)w->version};
    if (w->node)
        return guard_multi(c, w->node, &op, 1, o->timeout_ms);
    return clave_set(c, w->path, w->data.p, w->data.n, (int32_t)w->version, o->timeout_ms, NULL);
}

static clave_err set_create_once(struct options *o, clave_client *c, const struct set *w)
{
    clave_op op = {.kind = CLAVE_OP_CREATE,
                   .path = w->path,
                   .data = w->data.p,
                   .len = w->data.n,
                   .mode = CLAVE_PERSISTENT};
    clave_create_options co = {.size = sizeof co, .flags = CLAVE_CREATE_PARENTS};
    if (w->node)
        return guard_create_deep(c, w->node, &op, o->timeout_ms);
    return clave_create(c, w->path, w->data.p, w->data.n, &co, o->timeout_ms, NULL);
}

/* Tries several times, since other clients may create and delete the node between two attempts. */
static clave_err set_write_node(struct options *o, clave_client *c, const struct set *w)
{
    enum { TRIES = 8 };
    clave_err err = CLAVE_OK;
    for (int i = 0; i < TRIES; i++) {
        err = set_write_once(o, c, w);
        if (err != CLAVE_ENONODE || !w->create)
            return err;
        err = set_create_once(o, c, w);
        if (err != CLAVE_ENODEEXISTS)
            return err;
    }
    return err;
}

static int set_parse(struct options *o, int argc, char **argv, struct set *w)
{
    int id;
    while ((id = options_next(o, argc, argv)) > 0) {
        if (id == SET_CREATE)
            w->create = true;
        else if (id == SET_GUARD)
            w->guard = true;
        else if (id == SET_VERSION && !options_number(o, "version", 0, INT32_MAX, &w->version))
            return EXIT_USAGE;
    }
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 2, 2))
        return EXIT_USAGE;
    if (w->create && w->version >= 0)
        return diag_usage(o, "--create and --version exclude each other");
    w->path = o->argv[0];
    if (!connect_path_ok(o, w->path))
        return EXIT_PATH;
    if (w->guard && !(w->node = guard_node(o)))
        return EXIT_USAGE;
    return node_data_read(o, o->argv[1], &w->data);
}

static int run_set(struct options *o, int argc, char **argv)
{
    struct set w = {.version = -1};
    clave_client *c = NULL;
    int code = set_parse(o, argc, argv, &w);
    if (code == EXIT_OK && w.path)
        code = connect_open(o, NULL, &c);
    if (c) {
        clave_err err = set_write_node(o, c, &w);
        if (err != CLAVE_OK)
            code = guard_tell(o, w.path, err, c);
    }
    connect_close(c);
    node_data_fini(&w.data);
    return code;
}

static const struct flag flags[] = {
    {SET_VERSION, "version", "N", "only if the node has this version"},
    {SET_CREATE, "create", NULL, "create the node and its parents if missing"},
    {SET_GUARD, "guard", NULL, "only while the enclosing 'clave lock' holds its lock"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_set = {
    .name = "set",
    .args = "PATH DATA|-",
    .summary = "Write the data of a node",
    .text =
        "DATA - reads standard input. With --guard the write and the check of the lock are one\n"
        "transaction; exit code 76 says that the lock was lost and nothing was written.\n",
    .flags = flags,
    .max_args = -1,
    .run = run_set,
};
