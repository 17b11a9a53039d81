/* sync.c - `clave sync`: returns when the server has caught up with its leader. */
#include <stdio.h>

#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"

static int run_sync(struct options *o, int argc, char **argv)
{
    clave_client *c;
    struct json j;
    if (options_next(o, argc, argv) == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 0, 1))
        return EXIT_USAGE;
    const char *path = o->argc > 0 ? o->argv[0] : "/";
    if (!connect_path_ok(o, path))
        return EXIT_PATH;
    int code = connect_open(o, NULL, &c);
    if (code != EXIT_OK)
        return code;
    clave_err err = clave_sync(c, path, o->timeout_ms);
    if (err != CLAVE_OK) {
        code = diag_err(o, path, err, c);
    } else if (o->json) {
        json_begin(&j, stdout);
        clave__json_string(&j, "path", path);
        json_end(&j);
    }
    connect_close(c);
    return code;
}

const struct verb verb_sync = {
    .name = "sync",
    .args = "[PATH]",
    .summary = "Wait until the server has everything that the leader has committed",
    .max_args = -1,
    .run = run_sync,
};
