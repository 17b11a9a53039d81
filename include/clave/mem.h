/* mem.h - allocator hooks and the log callback, kept per object and never per process. The hooks of
 * an object are called on the threads that its functions are called on. */
#ifndef CLAVE_MEM_H
#define CLAVE_MEM_H

#include <stddef.h>

/* `alloc` and `realloc` may return NULL: the current call then fails with CLAVE_ENOMEM and leaves
 * its object usable. `free` accepts NULL. */
typedef struct clave_mem {
    void *(*alloc)(void *arg, size_t size);
    void *(*realloc)(void *arg, void *p, size_t size);
    void (*free)(void *arg, void *p);
    void *arg;
} clave_mem;

/* Receives a log line. `level` is one of CLAVE_LOG_*; `msg` has no newline and is valid during the
 * call only. */
enum { CLAVE_LOG_ERROR = 1, CLAVE_LOG_WARN = 2, CLAVE_LOG_INFO = 3, CLAVE_LOG_DEBUG = 4 };
typedef void clave_log_cb(void *arg, int level, const char *msg);

#endif
