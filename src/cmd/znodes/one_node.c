/* one_node.c - what the verbs share that write or show a single node (one_node.h). */
#include "cmd/znodes/one_node.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"

enum { MAX_DATA = 1048575 }; /* jute.maxbuffer, the default limit of servers */

int node_data_read(struct options *o, const char *arg, struct node_data *out)
{
    *out = (struct node_data){.p = arg, .n = arg ? strlen(arg) : 0};
    if (!arg || strcmp(arg, "-") != 0)
        return EXIT_OK;
    out->owned = malloc(MAX_DATA + 1);
    if (!out->owned)
        return diag_err(o, NULL, CLAVE_ENOMEM, NULL);
    errno = 0;
    out->p = out->owned;
    out->n = fread(out->owned, 1, MAX_DATA + 1, stdin);
    if (ferror(stdin))
        return diag_end(o, NULL, EXIT_IO, "standard input: %s", strerror(errno));
    if (out->n > MAX_DATA)
        return diag_end(o, NULL, EXIT_USAGE, "standard input: a node holds at most %d bytes",
                        MAX_DATA);
    return EXIT_OK;
}

void node_data_fini(struct node_data *d)
{
    free(d->owned);
    *d = (struct node_data){0};
}

int node_reader_run(const struct node_reader *n, struct options *o, int argc, char **argv)
{
    assert(n->read && n->show);
    clave_client *c;
    clave_reply *r = NULL;
    bool stat = false;
    int id;
    while ((id = options_next(o, argc, argv)) > 0)
        stat |= id == n->stat_flag;
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 1, 1))
        return EXIT_USAGE;
    const char *path = o->argv[0];
    if (!connect_path_ok(o, path))
        return EXIT_PATH;
    int code = connect_open(o, NULL, &c);
    if (code != EXIT_OK)
        return code;
    clave_err err = n->read(c, path, o->timeout_ms, &r);
    if (err == CLAVE_OK)
        n->show(o, path, r, stat);
    else
        code = diag_err(o, path, err, c);
    clave_reply_free(r);
    connect_close(c);
    return code;
}
