/* snapshot_file.h - a snapshot being written, a piece at a time, under another name, and renamed
 * when it is on disk: a power cut leaves either all of it or nothing. _begin and _step return 0 or
 * an errno. */
#ifndef CLAVE_RUNTIME_SERVER_SNAPSHOT_FILE_H
#define CLAVE_RUNTIME_SERVER_SNAPSHOT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct snapshot_file {
    int dir;
    int fd; /* -1: none */
    int64_t zxid;
    const uint8_t *p; /* not owned */
    size_t n;
    size_t done;
};
int clave__snapshot_file_begin(struct snapshot_file *f, int dir, int64_t zxid, const void *p,
                               size_t n);
/* Writes one piece. *finished: it was the last one, and the snapshot is complete. */
int clave__snapshot_file_step(struct snapshot_file *f, bool *finished);
void clave__snapshot_file_abort(struct snapshot_file *f);

#endif
