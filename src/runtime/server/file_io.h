/* file_io.h - the bytes of a file. Both functions with a result return 0 or an errno. */
#ifndef CLAVE_RUNTIME_SERVER_FILE_IO_H
#define CLAVE_RUNTIME_SERVER_FILE_IO_H

#include <stddef.h>
#include <stdint.h>

/* The whole file, read-only. n 0: p is NULL. */
struct file_content {
    void *p;
    size_t n;
};
int clave__file_map(int dir, const char *name, struct file_content *out);
void clave__file_unmap(struct file_content *c);

/* Writes all of it, from the offset `at` on. */
int clave__file_write(int fd, const void *p, size_t n, int64_t at);

#endif
