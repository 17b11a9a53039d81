/* file_io.h - reads and writes files, and makes files and directories that are durable. All
 * functions that return an int return 0 or an errno. */
#ifndef CLAVE_RUNTIME_STORE_FILE_IO_H
#define CLAVE_RUNTIME_STORE_FILE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A copy of a whole file. If n is 0, p is NULL. */
struct file_content {
    void *p;
    size_t n;
};
/* Reads a whole file. After an error p is NULL, and n tells how far it could be read. */
int clave__file_read(int dir, const char *name, struct file_content *out);
/* Describes that error: what it was, where, and what to do. */
void clave__file_read_fault(const struct file_content *c, int number, char *text, size_t cap);
void clave__file_free(struct file_content *c);

/* Writes all of it, beginning at the offset `at`. */
int clave__file_write(int fd, const void *p, size_t n, int64_t at);

/* Makes a file of these bytes and syncs it; its name is not durable yet. After an error, part of
 * the file may be there. */
int clave__file_save(int dir, const char *name, mode_t mode, const void *p, size_t n);
/* Writes a file under its name, replacing one that had it, so that a crash leaves the whole old
 * file or the whole new one. The name is durable, too. */
int clave__file_replace(int dir, const char *name, mode_t mode, const void *p, size_t n);

/* Creates a directory unless it exists, and makes its name durable. */
int clave__make_directory(const char *path, mode_t mode);
/* The same, including the directories above it. */
int clave__make_path(const char *path, mode_t mode);

#endif
