/* get.c - `clave get`: the data of one node, byte for byte, on standard output. */
#include <stdio.h>

#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/format.h"
#include "cmd/cli/json.h"

enum { GET_STAT = FLAG_LONG };

static void get_show(const struct options *o, const char *path, const clave_reply *r, bool stat)
{
    struct json j;
    if (!o->json) {
        if (r->data)
            fwrite(r->data, 1, r->len, stdout);
        if (stat)
            format_stat(stderr, &r->stat);
        return;
    }
    json_begin(&j, stdout);
    clave__json_string(&j, "path", path);
    json_bytes(&j, "data", r->data, r->len);
    if (stat)
        json_stat(&j, "stat", &r->stat);
    json_end(&j);
}

static int run_get(struct options *o, int argc, char **argv)
{
    bool stat = false;
    clave_client *s;
    clave_reply *r = NULL;
    int id;
    while ((id = options_next(o, argc, argv)) > 0)
        stat |= id == GET_STAT;
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 1, 1))
        return EXIT_USAGE;
    const char *path = o->argv[0];
    if (!connect_path_ok(o, path))
        return EXIT_PATH;
    int code = connect_open(o, NULL, &s);
    if (code != EXIT_OK)
        return code;
    clave_err err = clave_get(s, path, o->timeout_ms, &r);
    if (err == CLAVE_OK)
        get_show(o, path, r, stat);
    else
        code = diag_err(o, path, err, s);
    clave_reply_free(r);
    connect_close(s);
    return code;
}

static const struct flag flags[] = {
    {GET_STAT, "stat", NULL, "the node's Stat too: on stderr, or in the JSON"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_get = {
    .name = "get",
    .args = "PATH",
    .summary = "Print the data of a node, byte for byte",
    .flags = flags,
    .max_args = -1,
    .run = run_get,
};
