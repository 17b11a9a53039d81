/* copy_dir.h - a new data directory, made of the bytes of another: a backup, or what is restored
 * from one. The files are written in a directory of another name, which becomes version-2 when all
 * of them are on the disk: half a copy is never taken for one, by clave nor by Apache. */
#ifndef CLAVE_RUNTIME_STORE_COPY_DIR_H
#define CLAVE_RUNTIME_STORE_COPY_DIR_H

#include "runtime/store/datadir.h"

struct copy_dir {
    struct datadir to; /* locked; to.dir is the directory that becomes version-2 */
    int top;           /* -1: it was not begun */
    size_t files;
    int64_t bytes;
};

/* The faults name the path and what to do. After any of these, _end; before _finish it removes what
 * was written. EINUSE: a server or another copy has the directory. ECORRUPT: it is not empty. EIO,
 * EFULL. */
clave_err clave__copy_dir_begin(struct copy_dir *c, const char *path, const struct log *log,
                                const struct fault *f);
clave_err clave__copy_dir_put(struct copy_dir *c, const char *name, const void *p, size_t n,
                              const struct fault *f);
/* Starts anew: removes what was put. */
clave_err clave__copy_dir_clear(struct copy_dir *c, const struct fault *f);
clave_err clave__copy_dir_finish(struct copy_dir *c, const struct fault *f);
void clave__copy_dir_end(struct copy_dir *c);

#endif
