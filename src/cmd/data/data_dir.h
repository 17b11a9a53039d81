/* data_dir.h - what `clave data` looks at: the files of one data directory, and the state that a
 * server would make of them. Nothing is changed. */
#ifndef CLAVE_CMD_DATA_DATA_DIR_H
#define CLAVE_CMD_DATA_DATA_DIR_H

#include "cmd/cli/json.h"
#include "cmd/cli/options.h"
#include "runtime/server/data_files.h"
#include "runtime/server/datadir.h"

struct files {
    const struct options *o;
    struct datadir dir;
    struct file_list snapshots;
    struct file_list logs;
    char noted[300]; /* the first thing that the engine warned of; "": none */
};

/* EXIT_OK, or the exit code, having told why. files_close() is for either case. */
int files_open(struct files *f, const struct options *o, const char *path);
void files_close(struct files *f);

/* A file's bytes; false: told. Ended with clave__file_unmap. */
bool files_map(const struct files *f, const char *name, struct file_content *out);
/* A server to load files into; its warnings are noted. NULL: told. */
struct server *files_server(struct files *f);

/* As text: 64 bits are more than a number of JSON holds everywhere. */
void files_json_digest(struct json *j, uint64_t digest);

/* data_check.c, data_dump.c */
int data_check(struct files *f);
int data_dump(struct files *f, const char *only);
int data_digest(struct files *f);

#endif
