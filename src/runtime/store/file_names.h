/* file_names.h - the files of version-2: what their names mean, and which files are no longer
 * needed. Functions that return an int return 0 or an errno. */
#ifndef CLAVE_RUNTIME_STORE_FILE_NAMES_H
#define CLAVE_RUNTIME_STORE_FILE_NAMES_H

#include <stddef.h>
#include <stdint.h>

enum file_kind {
    FILE_LOG,        /* log.<zxid of its first record> */
    FILE_SNAPSHOT,   /* snapshot.<zxid of the newest txn in it> */
    FILE_COMPRESSED, /* snapshot.<zxid>.gz or .snappy: written by Apache if it is configured to
                        compress */
    FILE_UNFINISHED, /* a file that is still being written */
    FILE_KNOWN, /* files of an ensemble, which a single server leaves alone; the next one too */
    FILE_UNKNOWN,
};

/* The prefix of files that are not finished. Since it is neither "log." nor "snapshot.", Apache
 * ignores them. */
#define FILE_UNFINISHED_PREFIX "unfinished."
#define FILE_UNFINISHED_LOG FILE_UNFINISHED_PREFIX "log"
#define FILE_UNFINISHED_SNAPSHOT FILE_UNFINISHED_PREFIX "snapshot"

/* The file with the longest timeout that a session of this directory's server may have, in ms: for
 * a restore (datadir.h). Apache ignores it. */
#define FILE_LONGEST_SESSION "maxSessionTimeout"

enum { FILE_NAME_SIZE = 48 };

enum file_kind clave__file_kind(const char *name, int64_t *zxid);
/* Writes a name, such as "log.1f", to out. */
void clave__file_name(char out[FILE_NAME_SIZE], enum file_kind kind, int64_t zxid);

/* The zxids of the files of one kind in a directory, ascending. */
struct file_list {
    int64_t *zxid;
    size_t n;
};
int clave__file_list_read(int dir, enum file_kind kind, struct file_list *out);
void clave__file_list_free(struct file_list *l);

/* ---- removing old ones ----------------------------------------------------------------------- */

/* How much was removed. */
struct purged {
    int64_t snapshots;
    int64_t logs;
};

/* Removes all snapshots except the newest three, and the logs that none of these needs, as Apache's
 * PurgeTxnLog does: logs with zxids below the oldest of them, except the newest such log. Returns 0
 * or an errno; *out is set in either case. */
int clave__purge(int dir, struct purged *out);

#endif
