/* stat.c - `clave stat`: the Stat of one node, in the fixed order of cli/format.h. */
#include <stdio.h>

#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/format.h"
#include "cmd/cli/json.h"

static void stat_show(const struct options *o, const char *path, const clave_stat *st)
{
    struct json j;
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
    clave_client *s;
    clave_reply *r = NULL;
    if (options_next(o, argc, argv) == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 1, 1))
        return EXIT_USAGE;
    const char *path = o->argv[0];
    if (!connect_path_ok(o, path))
        return EXIT_PATH;
    int code = connect_open(o, NULL, &s);
    if (code != EXIT_OK)
        return code;
    clave_err err = clave_exists(s, path, o->timeout_ms, &r);
    if (err == CLAVE_OK)
        stat_show(o, path, &r->stat);
    else
        code = diag_err(o, path, err, s);
    clave_reply_free(r);
    connect_close(s);
    return code;
}

const struct verb verb_stat = {
    .name = "stat",
    .args = "PATH",
    .summary = "Print the Stat of a node",
    .max_args = -1,
    .run = run_stat,
};
