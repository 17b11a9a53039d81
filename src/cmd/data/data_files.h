/* data_files.h - the files of one data directory as `clave data` sees them, and the state that a
 * server would load from them. Changes nothing in it.
 *
 * Map of src/cmd/data:
 *   data         the verb `clave data`
 *   data_files   a directory, opened without changing it
 *   data_check   checks every file, then loads all of them as a server would; prints digests
 *   data_dump    prints a snapshot's nodes and a log's transactions
 *   data_backup  copies a directory while a server writes
 *   data_restore makes a directory of a backup, as it was at some moment
 *   grow         the verb `clave grow`: the move to an ensemble of Apache ZooKeeper
 * What the bytes mean is in src/server/store, names and bytes of files in src/runtime/store. */
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

/* EXIT_OK, or the exit code after a message. Call data_files_close() in either case. */
int data_files_open(struct data_files *f, const struct options *o, const char *path);
void data_files_close(struct data_files *f);

/* A file's bytes, to be released with clave__file_free; false after a message. */
bool data_files_read(const struct data_files *f, const char *name, struct file_content *out);
/* The bytes of a file that need not be there, as the epochs: 0, ENOENT, or another errno with a
 * text in the fault: it may be one that the restored server must be ahead of. */
int data_files_beside(const struct data_files *f, const char *name, struct file_content *out,
                      const struct fault *fault);
/* A server to load files into; its warnings are kept. NULL after a message. */
struct server *data_files_server(struct data_files *f);

/* The files of an ensemble in which its epochs stand. */
enum { DATA_EPOCHS = 2 };
extern const char *const data_files_epochs[DATA_EPOCHS];

/* The exit code for an error of the directory's functions. */
int data_files_exit(clave_err err);

/* As text: JSON readers may not keep all 64 bits of a number. */
void data_files_json_digest(struct json *j, uint64_t digest);

/* ---- what is done with it (data.c); each returns the exit code ------------------------------- */

/* Names each fault with its file and offset; EXIT_IO when there is one. */
int data_check(struct data_files *f);
/* The zxid and the digest of the tree that a server would begin with. */
int data_digest(struct data_files *f);

/* Prints every file, or the one of the name `only` when it is not NULL. */
int data_dump(struct data_files *f, const char *only);

/* The new directory `to` gets what the opened one leads to, at one zxid; with `history` also what
 * led to it, as far back as there are logs. */
int data_backup(struct data_files *f, const char *to, bool history);

struct restore_options {
    const char *until;       /* a zxid or a time; NULL: everything */
    int64_t epoch;           /* 0: by the clock */
    int64_t longest_session; /* ms; 0: not told */
};

/* The new directory `to` gets the state of the opened one. */
int data_restore(struct data_files *f, const char *to, const struct restore_options *o);

#endif
