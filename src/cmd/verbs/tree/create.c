/* create.c - `clave create`: creates one node of any mode, with --parents and --guard
 * (znodes/guard.h). It refuses ephemeral nodes, which would not outlive the command. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "cmd/cli/acl_text.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "cmd/znodes/guard.h"
#include "cmd/znodes/one_node.h"

enum { CREATE_CONTAINER = FLAG_LONG, CREATE_TTL, CREATE_ACL, CREATE_GUARD, CREATE_EPHEMERAL };

/* The largest time that fits in an ephemeralOwner next to the mark of a TTL node: about 34
 * years. */
#define MAX_TTL_MS ((INT64_C(1) << 40) - 1)

struct create {
    const char *path;
    struct node_data data;
    struct acl_list acl;
    bool sequential;
    bool container;
    bool parents;
    bool guard;
    int64_t ttl_ms; /* 0: none */
    const char *node;
};

static clave_create_mode create_mode_of(const struct create *w)
{
    if (w->container)
        return CLAVE_CONTAINER;
    if (w->ttl_ms > 0)
        return w->sequential ? CLAVE_PERSISTENT_SEQUENTIAL_TTL : CLAVE_PERSISTENT_TTL;
    return w->sequential ? CLAVE_PERSISTENT_SEQUENTIAL : CLAVE_PERSISTENT;
}

static void verb_create_show(const struct options *o, const char *path)
{
    struct json j;
    if (!o->json) {
        puts(path);
        return;
    }
    json_begin(&j, stdout);
    clave__json_string(&j, "path", path);
    json_end(&j);
}

static clave_err create_guarded(struct options *o, clave_client *c, const struct create *w)
{
    clave_op op = {.kind = CLAVE_OP_CREATE,
                   .path = w->path,
                   .data = w->data.p,
                   .len = w->data.n,
                   .mode = create_mode_of(w),
                   .acls = w->acl.n ? w->acl.list : NULL,
                   .nacls = w->acl.n};
    clave_err err = w->parents ? guard_create_deep(c, w->node, &op, o->timeout_ms)
                               : guard_multi(c, w->node, &op, 1, o->timeout_ms);
    if (err == CLAVE_OK)
        verb_create_show(o, w->path);
    return err;
}

/* Reads the list for --acl parent. Returns EXIT_OK, or an exit code after a message. */
static int create_read_parent_acl(struct options *o, clave_client *c, struct create *w)
{
    size_t n = clave__path_parent_len(w->path, strlen(w->path));
    char *path = strndup(w->path, n > 0 ? n : 1);
    const char *fault = NULL;
    clave_reply *r = NULL;
    clave_err err = path ? clave_get_acl(c, path, o->timeout_ms, &r) : CLAVE_ENOMEM;
    int code = err == CLAVE_OK ? EXIT_OK : diag_err(o, path, err, c);
    if (err == CLAVE_OK && !acl_copy(&w->acl, r->acls, r->nacls, &fault))
        code = diag_end(o, path, EXIT_NOAUTH, "its access list cannot be used for %s: %s", w->path,
                        fault);
    clave_reply_free(r);
    free(path);
    return code;
}

static clave_err create_plain(struct options *o, clave_client *c, const struct create *w)
{
    clave_create_options co = {.size = sizeof co,
                               .mode = create_mode_of(w),
                               .flags = w->parents ? CLAVE_CREATE_PARENTS : 0,
                               .ttl_ms = w->ttl_ms,
                               .acls = w->acl.n ? w->acl.list : NULL,
                               .nacls = w->acl.n};
    clave_reply *r = NULL;
    clave_err err = clave_create(c, w->path, w->data.p, w->data.n, &co, o->timeout_ms, &r);
    if (err == CLAVE_OK)
        verb_create_show(o, r->path);
    clave_reply_free(r);
    return err;
}

/* Returns EXIT_OK, EXIT_USAGE or OPTIONS_STOP. */
static int create_parse_flags(struct options *o, int argc, char **argv, struct create *w)
{
    const char *fault;
    int id;
    while ((id = options_next(o, argc, argv)) > 0) {
        if (id == 's')
            w->sequential = true;
        else if (id == 'p')
            w->parents = true;
        else if (id == CREATE_CONTAINER)
            w->container = true;
        else if (id == CREATE_GUARD)
            w->guard = true;
        else if (id == CREATE_TTL && !options_duration(o, "ttl", 1, MAX_TTL_MS, &w->ttl_ms))
            return EXIT_USAGE;
        else if (id == CREATE_ACL && !acl_parse(o->value, &w->acl, &fault))
            return diag_usage(o, "--acl '%s': %s", o->value, fault);
        else if (id == CREATE_EPHEMERAL)
            return diag_usage(o, "an ephemeral node would be gone when this command ends; hold a "
                                 "lock with 'clave lock PATH -- COMMAND' instead");
    }
    if (id == OPTIONS_STOP)
        return OPTIONS_STOP;
    if (!acl_has_identity(o, &w->acl))
        return EXIT_PATH;
    if (w->acl.of_parent && w->parents)
        return diag_usage(o, "--acl parent excludes --parents: whom would a new parent let in?");
    if (w->container && (w->sequential || w->ttl_ms > 0))
        return diag_usage(o, "--container excludes --sequential and --ttl");
    if (w->guard && (w->container || w->sequential || w->ttl_ms > 0))
        return diag_usage(o, "--guard works only for plain nodes");
    return EXIT_OK;
}

static int verb_create_parse(struct options *o, int argc, char **argv, struct create *w)
{
    int code = create_parse_flags(o, argc, argv, w);
    if (code != EXIT_OK)
        return code == OPTIONS_STOP ? o->status : code;
    if (!options_args(o, 1, 2))
        return EXIT_USAGE;
    const char *path = o->argv[0];
    const char *fault = clave__path_fault(path, strlen(path), w->sequential);
    if (fault)
        return diag_path(o, path, fault);
    if (w->guard && !(w->node = guard_node(o)))
        return EXIT_USAGE;
    w->path = path;
    return node_data_read(o, o->argc > 1 ? o->argv[1] : NULL, &w->data);
}

static int run_create(struct options *o, int argc, char **argv)
{
    struct create w = {0};
    clave_client *c = NULL;
    int code = verb_create_parse(o, argc, argv, &w);
    if (code == EXIT_OK && w.path)
        code = connect_open(o, NULL, &c);
    if (c && w.acl.of_parent)
        code = create_read_parent_acl(o, c, &w);
    if (c && code == EXIT_OK) {
        clave_err err = w.guard ? create_guarded(o, c, &w) : create_plain(o, c, &w);
        if (err == CLAVE_EUNIMPLEMENTED && w.ttl_ms > 0) {
            code = diag_end(
                o, w.path, exit_code_of(err),
                "the server does not support nodes with a time to live: start it with "
                "--extended-types, Apache ZooKeeper with zookeeper.extendedTypesEnabled=true");
        } else if (err != CLAVE_OK) {
            code = guard_tell(o, w.path, err, c);
        }
    }
    connect_close(c);
    node_data_fini(&w.data);
    acl_fini(&w.acl);
    return code;
}

static const struct flag flags[] = {
    {'s', "sequential", NULL, "append ten digits that count up; PATH may end with a /"},
    {'p', "parents", NULL, "create missing parents too"},
    {CREATE_CONTAINER, "container", NULL, "a node the server removes once its children are gone"},
    {CREATE_TTL, "ttl", "DURATION", "remove it after this long without children and writes"},
    {CREATE_ACL, "acl", "ACL", "open, read, creator, parent, or SCHEME:ID:PERMS,... [open]"},
    {CREATE_GUARD, "guard", NULL, "only while the enclosing 'clave lock' holds its lock"},
    {CREATE_EPHEMERAL, "ephemeral", NULL, "refused: the node would end with this command"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_create = {
    .name = "create",
    .args = "PATH [DATA|-]",
    .summary = "Create a node and print its path",
    .text =
        "DATA - reads standard input. PERMS are letters of cdrwa: create, delete, read, write,\n"
        "admin; 'creator' gives everything to the identities of --auth, and 'clave acl hash USER'\n"
        "prints the digest:USER:HASH of a password. 'parent' is the parent's list. With --guard "
        "exit\n"
        "code 76 says that the lock was lost and nothing was created. --ttl needs a server with\n"
        "extended types ('clave serve --extended-types').\n",
    .flags = flags,
    .max_args = -1,
    .run = run_create,
};
