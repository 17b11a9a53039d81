/* file_names.h - the files of version-2: their names, and how each is written so that a power cut
 * leaves either all of it or nothing. Every function except _list returns 0 or an errno. */
#ifndef CLAVE_RUNTIME_SERVER_FILE_NAMES_H
#define CLAVE_RUNTIME_SERVER_FILE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum file_kind {
    FILE_LOG,        /* log.<zxid of its first record> */
    FILE_SNAPSHOT,   /* snapshot.<zxid of the newest txn in it> */
    FILE_COMPRESSED, /* snapshot.<zxid>.gz or .snappy: Apache's, if it is set to compress */
    FILE_TEMPORARY,  /* a snapshot or a log that was not finished */
    FILE_KNOWN,      /* an ensemble's files, which a single server leaves alone */
    FILE_UNKNOWN,
};

enum { FILE_NAME_SIZE = 48 };

enum file_kind clave__file_kind(const char *name, int64_t *zxid);
/* "log.1f" into out. */
void clave__file_name(char out[FILE_NAME_SIZE], enum file_kind kind, int64_t zxid);

/* The zxids of one kind in a directory, ascending. */
struct file_list {
    int64_t *zxid;
    size_t n;
};
int clave__files_list(int dir, enum file_kind kind, struct file_list *out);
void clave__files_free(struct file_list *l);

/* The bytes of a file, read-only. n 0: p may be NULL. */
struct file_content {
    void *p;
    size_t n;
};
int clave__file_map(int dir, const char *name, struct file_content *out);
void clave__file_unmap(struct file_content *c);

/* A log being written. Its file is extended ahead of the records with zeros, which readers take for
 * padding: an fdatasync without a new length to write is a third faster. */
struct log_writer {
    int fd;       /* -1: none */
    int64_t end;  /* of the records */
    int64_t room; /* the length of the file; 0: it is not extended ahead */
};
/* Creates a file (one of that name has no record yet, and is replaced), with its header on disk
 * before it gets its name: ZooKeeper does not start on a log without one. */
int clave__logfile_create(struct log_writer *w, int dir, int64_t first_zxid);
/* Durable when it returns. After an error nothing more may be appended. */
int clave__logfile_append(struct log_writer *w, const void *p, size_t n);
/* Cuts off the extension, and with it an append that failed: read again, what a failed sync left in
 * the page cache would be taken for durable. */
void clave__logfile_close(struct log_writer *w);

/* A snapshot, written a piece at a time under another name, and renamed when it is on disk. */
struct snapshot_writer {
    int dir;
    int fd; /* -1: idle */
    int64_t zxid;
    const uint8_t *p; /* not owned */
    size_t n;
    size_t done;
};
int clave__snapshot_begin(struct snapshot_writer *w, int dir, int64_t zxid, const void *p,
                          size_t n);
/* Writes one piece. *finished: it was the last one, and the snapshot is complete. */
int clave__snapshot_step(struct snapshot_writer *w, bool *finished);
void clave__snapshot_abort(struct snapshot_writer *w);

/* Removes all snapshots but the newest three, and the logs that none of these needs (Apache's
 * PurgeTxnLog): those with zxids below the oldest of them, except the newest such log. */
int clave__files_purge(int dir);

#endif
