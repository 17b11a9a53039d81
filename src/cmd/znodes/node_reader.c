/* node_reader.c - for the verbs that show one node: everything from the arguments to the answer
 * (see node_reader.h). */
#include "cmd/znodes/node_reader.h"

#include <assert.h>

#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"

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
