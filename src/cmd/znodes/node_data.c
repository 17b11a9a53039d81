/* node_data.c - see node_data.h. */
#include "cmd/znodes/node_data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
