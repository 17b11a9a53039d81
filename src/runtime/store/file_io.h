/* file_io.h - the bytes of a file, and files and directories that are durable once they are made.
 * All functions with a result return 0 or an errno. */
#ifndef CLAVE_RUNTIME_STORE_FILE_IO_H
#define CLAVE_RUNTIME_STORE_FILE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A copy of the whole file. n 0: p is NULL. */
struct file_content {
    void *p;
    size_t n;
};
/* After an error p is NULL, and n how far it could be read. */
int clave__file_read(int dir, const char *name, struct file_content *out);
/* What that error was, where, and what to do. */
void clave__file_read_fault(const struct file_content *c, int number, char *text, size_t cap);
void clave__file_free(struct file_content *c);

/* Writes all of it, from the offset `at` on. */
int clave__file_write(int fd, const void *p, size_t n, int64_t at);

/* Makes a file of these bytes and syncs it; its name is not durable yet. After an error a part of
 * it may be there. */
int clave__file_save(int dir, const char *name, mode_t mode, const void *p, size_t n);
/* The file gets its name, in the place of one that had it, when all of it is on the disk, and the
 * name is durable: a crash leaves the whole old file or the whole new one. */
int clave__file_replace(int dir, const char *name, mode_t mode, const void *p, size_t n);

/* Creates a directory that is missing, and makes its name durable. */
int clave__make_directory(const char *path, mode_t mode);
/* The same with those above it. */
int clave__make_path(const char *path, mode_t mode);

#endif
