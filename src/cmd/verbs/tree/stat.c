/* stat.c - `clave stat`: prints the Stat of one node, in the fixed order of cli/format.h. */
#include <stdio.h>

#include "cmd/cli/cmd_options.h"
#include "cmd/cli/format.h"
#include "cmd/cli/json.h"
#include "cmd/znodes/one_node.h"

static void stat_show(const struct options *o, const char *path, const clave_reply *r, bool stat)
{
    const clave_stat *st = &r->stat;
    struct json j;
    (void)stat;
    if (!o->json) {
        printf("path %s\nkind %s\n", path, format_kind(st));
        format_stat(stdout, st);
        return;
    }
    json_begin(&j, stdout);
    clave__json_string(&j, "path", path);
    clave__json_string(&j, "kind", format_kind(st));
    json_stat(&j, "stat", st);
    json_end(&j);
}

static int run_stat(struct options *o, int argc, char **argv)
{
    static const struct node_reader reader = {clave_exists, stat_show, 0};
    return node_reader_run(&reader, o, argc, argv);
}

const struct verb verb_stat = {
    .name = "stat",
    .args = "PATH",
    .summary = "Print the Stat of a node",
    .max_args = -1,
    .run = run_stat,
};
