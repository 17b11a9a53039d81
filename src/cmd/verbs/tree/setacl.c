/* setacl.c - `clave setacl`: replaces the access list of one node. Nothing is sent unless every
 * entry is valid. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cli/acl_text.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"

enum { SETACL_VERSION = FLAG_LONG };

struct setacl {
    const char *path;
    struct acl_list acl;
    int64_t version; /* version of the list; -1: any */
};

/* Joins the arguments with commas: several arguments form a single list. NULL: no memory. */
static char *setacl_join(int n, char *const *words)
{
    size_t size = 1;
    for (int i = 0; i < n; i++)
        size += strlen(words[i]) + 1;
    char *text = calloc(1, size), *at = text;
    for (int i = 0; text && i < n; i++)
        at = stpcpy(stpcpy(at, i > 0 ? "," : ""), words[i]);
    return text;
}

static int setacl_parse_list(struct options *o, struct setacl *w)
{
    const char *fault;
    char *text = setacl_join(o->argc - 1, o->argv + 1);
    if (!text)
        return diag_err(o, w->path, CLAVE_ENOMEM, NULL);
    bool good = acl_parse(text, &w->acl, &fault);
    if (good && w->acl.of_parent) {
        fault = "only a new node can take the list of its parent";
        good = false;
    }
    int code = good ? EXIT_OK : diag_usage(o, "'%s': %s", text, fault);
    free(text);
    return code == EXIT_OK && !acl_has_identity(o, &w->acl) ? EXIT_PATH : code;
}

static int setacl_parse(struct options *o, int argc, char **argv, struct setacl *w)
{
    int id;
    while ((id = options_next(o, argc, argv)) > 0)
        if (id == SETACL_VERSION && !options_number(o, "version", 0, INT32_MAX, &w->version))
            return EXIT_USAGE;
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 2, 1 + ACL_MAX))
        return EXIT_USAGE;
    w->path = o->argv[0];
    if (!connect_path_ok(o, w->path))
        return EXIT_PATH;
    return setacl_parse_list(o, w);
}

static int run_setacl(struct options *o, int argc, char **argv)
{
    struct setacl w = {.version = -1};
    clave_client *c = NULL;
    int code = setacl_parse(o, argc, argv, &w);
    if (code == EXIT_OK && w.path)
        code = connect_open(o, NULL, &c);
    if (c) {
        clave_err err =
            clave_set_acl(c, w.path, w.acl.list, w.acl.n, (int32_t)w.version, o->timeout_ms, NULL);
        if (err != CLAVE_OK)
            code = diag_err(o, w.path, err, c);
    }
    connect_close(c);
    acl_fini(&w.acl);
    return code;
}

static const struct flag flags[] = {
    {SETACL_VERSION, "version", "N", "only if the list has this version (aversion in the Stat)"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_setacl = {
    .name = "setacl",
    .args = "PATH ACL...",
    .summary = "Replace the access list of a node",
    .text =
        "ACL is open, read or creator, or SCHEME:ID:PERMS; several such entries are separated by\n"
        "commas or given as several arguments. PERMS are letters of cdrwa: create, delete, read,\n"
        "write, admin. 'creator' is auth::cdrwa: everything to the identities of --auth. If the\n"
        "list lets nobody in with 'a', only the super user can change it back. An entry for the\n"
        "password of a user has its hash, digest:USER:HASH:PERMS, and 'clave acl hash USER'\n"
        "prints it.\n",
    .flags = flags,
    .max_args = -1,
    .run = run_setacl,
};
