/* version.c - `clave version`: the version of the program and of the library it runs with. */
#include <stdio.h>

#include "cmd/cli/cmd_options.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"

static int run_version(struct options *o, int argc, char **argv)
{
    struct json j;
    if (options_next(o, argc, argv) == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 0, 0))
        return EXIT_USAGE;
    if (!o->json) {
        printf("clave %s\n", clave_version());
        return EXIT_OK;
    }
    json_begin(&j, stdout);
    clave__json_string(&j, "version", clave_version());
    json_end(&j);
    return EXIT_OK;
}

const struct verb verb_version = {
    .name = "version",
    .args = "",
    .summary = "Print the version",
    .max_args = -1,
    .offline = true,
    .ignores_client_flags = true,
    .run = run_version,
};
