/* getacl.c - `clave getacl`: prints the access list of one node, one entry per line, in the
 * notation of setacl and --acl. */
#include <stdio.h>

#include "cmd/cli/acl_text.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/format.h"
#include "cmd/cli/json.h"
#include "cmd/znodes/one_node.h"

enum { GETACL_STAT = FLAG_LONG };

static void getacl_show_json(const char *path, const clave_reply *r, bool stat)
{
    struct json j;
    char perms[ACL_PERMS_CAP];
    json_begin(&j, stdout);
    clave__json_string(&j, "path", path);
    clave__json_open(&j, "acl", '[');
    for (size_t i = 0; i < r->nacls; i++) {
        clave__json_open(&j, NULL, '{');
        clave__json_string(&j, "scheme", r->acls[i].scheme);
        clave__json_string(&j, "id", r->acls[i].id);
        clave__json_string(&j, "perms", acl_perms(r->acls[i].perms, perms));
        clave__json_close(&j, '}');
    }
    clave__json_close(&j, ']');
    if (stat)
        json_stat(&j, "stat", &r->stat);
    json_end(&j);
}

static void getacl_show(const struct options *o, const char *path, const clave_reply *r, bool stat)
{
    char perms[ACL_PERMS_CAP];
    if (o->json) {
        getacl_show_json(path, r, stat);
        return;
    }
    for (size_t i = 0; i < r->nacls; i++) {
        format_text(stdout, r->acls[i].scheme);
        putchar(':');
        format_text(stdout, r->acls[i].id);
        printf(":%s\n", acl_perms(r->acls[i].perms, perms));
    }
    if (stat)
        format_stat(stderr, &r->stat);
}

static int run_getacl(struct options *o, int argc, char **argv)
{
    static const struct node_reader reader = {clave_get_acl, getacl_show, GETACL_STAT};
    return node_reader_run(&reader, o, argc, argv);
}

static const struct flag flags[] = {
    {GETACL_STAT, "stat", NULL, "also print the node's Stat: on stderr, or in the JSON"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_getacl = {
    .name = "getacl",
    .args = "PATH",
    .summary = "Print the access list of a node",
    .text =
        "One entry a line, SCHEME:ID:PERMS, as 'clave setacl' takes them. Hashes of passwords are\n"
        "shown as x to clients that may not change the list.\n",
    .flags = flags,
    .max_args = -1,
    .run = run_getacl,
};
