/* ls.c - `clave ls`: lists the children of one node, sorted. With -l it asks for their Stats, with
 * a window of requests (znodes/request_window.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/path.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/format.h"
#include "cmd/cli/json.h"
#include "cmd/znodes/request_window.h"
#include "cmd/znodes/tree_walk.h"

struct child {
    clave_err err;
    clave_stat stat;
};

struct listing {
    const char *path;
    char **names;
    size_t n;
    struct child *children; /* NULL: without -l */
};

/* ---- -l ------------------------------------------------------------------------------------- */

static clave_err ls_submit_exists(clave_async_client *c, size_t i, clave_result_cb *cb,
                                  void *cb_arg, void *arg)
{
    const struct listing *l = arg;
    char *path = clave__path_child(NULL, l->path, l->names[i]);
    clave_err err = path ? clave_async_exists(c, path, NULL, cb, cb_arg) : CLAVE_ENOMEM;
    free(path);
    return err;
}

static void ls_got_stat(size_t i, const clave_result *res, void *arg)
{
    const struct listing *l = arg;
    l->children[i].err = res->err;
    if (res->err == CLAVE_OK)
        l->children[i].stat = *res->stat;
}

static clave_err ls_read_stats(const struct options *o, clave_client *c, struct listing *l)
{
    struct request_window_plan plan = {
        .n = l->n, .submit = ls_submit_exists, .done = ls_got_stat, .arg = l};
    l->children = calloc(l->n + 1, sizeof *l->children);
    if (!l->children)
        return CLAVE_ENOMEM;
    return request_window_run(c, &plan, o->timeout_ms);
}

/* ---- output --------------------------------------------------------------------------------- */

static void ls_show_child(const struct options *o, const char *name, const clave_stat *st)
{
    char modified[TIME_TEXT_CAP];
    struct json j;
    if (o->json) {
        json_begin(&j, stdout);
        clave__json_string(&j, "name", name);
        if (st) {
            clave__json_string(&j, "kind", format_kind(st));
            json_stat(&j, "stat", st);
        }
        json_end(&j);
        return;
    }
    if (st)
        printf("%-10s %8d %6d %6d %s ", format_kind(st), (int)st->data_length,
               (int)st->num_children, (int)st->version, time_text(st->mtime, modified));
    format_name(stdout, name);
    putchar('\n');
}

/* Returns EXIT_OK, or the exit code for the first child that could not be read. */
static int ls_show(const struct options *o, const struct listing *l)
{
    int code = EXIT_OK;
    for (size_t i = 0; i < l->n; i++) {
        const struct child *child = l->children ? &l->children[i] : NULL;
        if (child && child->err == CLAVE_ENONODE) /* it was deleted after it was listed */
            continue;
        if (!child || child->err == CLAVE_OK)
            ls_show_child(o, l->names[i], child ? &child->stat : NULL);
        else if (code == EXIT_OK)
            code = diag_err(o, l->names[i], child->err, NULL);
    }
    return code;
}

static int ls_list(struct options *o, clave_client *c, const char *path, bool details)
{
    clave_reply *r = NULL;
    clave_err err = clave_children(c, path, o->timeout_ms, &r);
    if (err != CLAVE_OK)
        return diag_err(o, path, err, c);
    tree_walk_sort_names(r->names, r->nnames);
    struct listing l = {.path = path, .names = r->names, .n = r->nnames};
    if (details)
        err = ls_read_stats(o, c, &l);
    int code = err == CLAVE_OK ? ls_show(o, &l) : diag_err(o, path, err, c);
    free(l.children);
    clave_reply_free(r);
    return code;
}

static int run_ls(struct options *o, int argc, char **argv)
{
    clave_client *c;
    bool details = false;
    int id;
    while ((id = options_next(o, argc, argv)) > 0)
        details |= id == 'l';
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
    code = ls_list(o, c, path, details);
    connect_close(c);
    return code;
}

static const struct flag flags[] = {
    {'l', "long", NULL, "kind, bytes, children, version, time of change and name"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_ls = {
    .name = "ls",
    .args = "[PATH]",
    .summary = "List the children of a node, sorted",
    .flags = flags,
    .max_args = -1,
    .run = run_ls,
};
