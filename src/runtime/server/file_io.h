/* file_io.h - the bytes of a file. Both functions with a result return 0 or an errno. */
#ifndef CLAVE_RUNTIME_SERVER_FILE_IO_H
#define CLAVE_RUNTIME_SERVER_FILE_IO_H

#include <stddef.h>
#include <stdint.h>

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

#endif
