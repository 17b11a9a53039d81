/* data.c - `clave data`: opens a data directory and runs the check, the dump or the digest on it.
 */
#include <string.h>

#include "cmd/cli/diag.h"
#include "cmd/data/data_check.h"
#include "cmd/data/data_dump.h"

static int run_data(struct options *o, int argc, char **argv)
{
    struct data_files f;
    int id = options_next(o, argc, argv);
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 2, 3))
        return EXIT_USAGE;
    const char *what = o->argv[0], *only = o->argv[2];
    bool dump = strcmp(what, "dump") == 0, check = strcmp(what, "check") == 0;
    if (!dump && !check && strcmp(what, "digest") != 0)
        return diag_usage(o, "'%s': expected check, dump or digest", what);
    if (only && !dump)
        return diag_usage(o, "%s takes one directory only", what);
    int code = data_files_open(&f, o, o->argv[1]);
    if (code == EXIT_OK)
        code = dump ? data_dump(&f, only) : check ? data_check(&f) : data_digest(&f);
    data_files_close(&f);
    return code;
}

const struct verb verb_data = {
    .name = "data",
    .args = "check|dump|digest DIR [FILE]",
    .summary = "Inspect a data directory, clave's or Apache ZooKeeper's",
    .text = "check    verify every checksum and digest; report each fault with file and offset\n"
            "dump     print every snapshot and every transaction, or those of one FILE\n"
            "digest   print the zxid and the digest of the tree that a server would start with\n"
            "\n"
            "Changes nothing and locks nothing: a file that a running server is writing may look\n"
            "torn at its end.\n",
    .max_args = -1,
    .offline = true,
    .run = run_data,
};
