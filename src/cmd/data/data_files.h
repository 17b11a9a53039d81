/* data_files.h - the files of one data directory as `clave data` sees them, and the state that a
 * server would load from them. Changes nothing in it.
 *
 * Map of src/cmd/data:
 *   data         the verb `clave data`
 *   data_files   a directory, opened without changing it
 *   data_check   checks every file, then loads all of them as a server would; prints digests
 *   data_dump    prints a snapshot's nodes and a log's transactions
 *   data_backup  copies a directory while a server writes
 *   data_restore makes a directory from a backup, as it was at some moment
 *
 * The formats of the files are in src/server/store; src/runtime/store reads and writes them. */
#ifndef CLAVE_CMD_DATA_DATA_FILES_H
#define CLAVE_CMD_DATA_DATA_FILES_H

#include "cmd/cli/cmd_options.h"
#include "cmd/cli/json.h"
#include "runtime/store/datadir.h"
#include "runtime/store/file_io.h"
#include "runtime/store/file_names.h"

struct data_files {
    const struct options *o;
    struct datadir dir;
    struct file_list snapshots;
    struct file_list logs;
    char noted[300]; /* the engine's first warning; "": none */
};

/* Opens the data directory. Returns EXIT_OK, or an exit code after a message. Call
 * data_files_close() in either case. */
int data_files_open(struct data_files *f, const struct options *o, const char *path);
void data_files_close(struct data_files *f);

/* Reads a file, to be released with clave__file_free. false, after a message: it cannot be read. */
bool data_files_read(const struct data_files *f, const char *name, struct file_content *out);
/* Reads a file that need not exist, such as the epochs. Returns 0, ENOENT, or another errno with a
 * text in the fault. That third case is an error, since it may be a file that a restored server has
 * to be ahead of. */
int data_files_beside(const struct data_files *f, const char *name, struct file_content *out,
                      const struct fault *fault);
/* A new server to load files into; its first warning is kept in `noted`. NULL: no memory, after a
 * message. */
struct server *data_files_server(struct data_files *f);

/* The files in which a server of an ensemble stores its epochs. */
enum { DATA_EPOCHS = 2 };
extern const char *const data_files_epochs[DATA_EPOCHS];

/* The exit code for an error of the functions in datadir.h. */
int data_files_exit(clave_err err);

/* Written as a string, since readers of JSON may not keep all 64 bits of a number. */
void data_files_json_digest(struct json *j, uint64_t digest);

/* ---- the parts of the verb (see data.c); each returns the exit code -------------------------- */

/* Prints each fault with its file and offset. EXIT_IO if there is one. */
int data_check(struct data_files *f);
/* Prints the zxid and the digest of the tree that a server would start with. */
int data_digest(struct data_files *f);

/* Prints every file or, if `only` is not NULL, the file of that name. */
int data_dump(struct data_files *f, const char *only);

/* Copies to the new directory `to` what leads to the tree of the opened directory, at one zxid;
 * with `history` also what led to it before, as far back as there are logs. */
int data_backup(struct data_files *f, const char *to, bool history);

struct restore_options {
    const char *until;       /* a zxid or a time; NULL: restore everything */
    int64_t epoch;           /* 0: chosen by the clock */
    int64_t longest_session; /* milliseconds; 0: not given */
};

/* Writes the state of the opened directory to the new directory `to`. */
int data_restore(struct data_files *f, const char *to, const struct restore_options *o);

#endif
