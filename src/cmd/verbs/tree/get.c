/* get.c - `clave get`: writes the data of one node to standard output, byte for byte. */
#include <stdio.h>

#include "cmd/cli/cmd_options.h"
#include "cmd/cli/format.h"
#include "cmd/cli/json.h"
#include "cmd/znodes/one_node.h"

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
    static const struct node_reader reader = {clave_get, get_show, GET_STAT};
    return node_reader_run(&reader, o, argc, argv);
}

static const struct flag flags[] = {
    {GET_STAT, "stat", NULL, "also print the node's Stat: on stderr, or in the JSON"},
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
