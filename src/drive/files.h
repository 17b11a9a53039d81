/* files.h - the files of version-2: their names, and how one is written so that a power cut
 * leaves either all of it or none. Every function but _list returns 0 or an errno. */
#ifndef CLAVE_DRIVE_FILES_H
#define CLAVE_DRIVE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum file_kind {
    FILE_LOG,        /* log.<zxid of its first record> */
    FILE_SNAPSHOT,   /* snapshot.<zxid of the newest txn in it> */
    FILE_COMPRESSED, /* snapshot.<zxid>.gz or .snappy: Apache's, with its own setting */
    FILE_TEMPORARY,  /* a snapshot that was not finished */
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

/* The bytes of a file, to be read. n 0: p may be NULL. */
struct file_content {
    void *p;
    size_t n;
};
int clave__file_map(int dir, const char *name, struct file_content *out);
void clave__file_unmap(struct file_content *c);

int clave__file_write(int fd, const void *p, size_t n);

/* A new log file (one of that name has no record yet: it is replaced), its header written;
 * the directory knows it when this returns. */
int clave__log_create(int dir, int64_t first_zxid, int *fd);

/* A snapshot, written a piece at a time under another name, and renamed when it is on the
 * disk. */
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
/* Writes one piece. *finished: that was the last one, and the snapshot stands. */
int clave__snapshot_step(struct snapshot_writer *w, bool *finished);
void clave__snapshot_abort(struct snapshot_writer *w);

/* Removes snapshots but the newest three, and the logs that none of the three needs (Apache's
 * PurgeTxnLog): with zxids below the oldest of them, but for the newest such file. */
int clave__files_purge(int dir);

#endif
