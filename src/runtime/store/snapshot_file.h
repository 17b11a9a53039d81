/* snapshot_file.h - a snapshot being written under another name, and renamed when it is on disk: a
 * power cut leaves either all of it or nothing. _begin, _append and _finish return 0 or an errno;
 * after an error, _abort. */
#ifndef CLAVE_RUNTIME_STORE_SNAPSHOT_FILE_H
#define CLAVE_RUNTIME_STORE_SNAPSHOT_FILE_H

#include <stddef.h>
#include <stdint.h>

struct snapshot_file {
    int dir;
    int fd; /* -1: none */
    int64_t end;
};
int clave__snapshot_file_begin(struct snapshot_file *f, int dir);
int clave__snapshot_file_append(struct snapshot_file *f, const void *p, size_t n);
/* All of it was appended: it becomes snapshot.<zxid>. */
int clave__snapshot_file_finish(struct snapshot_file *f, int64_t zxid);
/* Removes it; does nothing after _finish. */
void clave__snapshot_file_abort(struct snapshot_file *f);

#endif
