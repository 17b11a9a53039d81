/* thread_start.h - threads, descriptors and loops: what the system may refuse. A refusal is an
 * errno here, and never an abort of libuv. */
#ifndef CLAVE_RUNTIME_THREAD_START_H
#define CLAVE_RUNTIME_THREAD_START_H

#include <pthread.h>
#include <uv.h>

/* A thread with this name (15 characters) and all signals blocked: those of the process are for the
 * program's own threads. 0 or an errno. */
int clave__thread_start(pthread_t *out, const char *name, void *(*run)(void *arg), void *arg);

/* Whether a thread could be started now: 0 or an errno. For programs that will need one later, and
 * then could only say so. */
int clave__thread_check(void);

/* Whether n more descriptors could be opened now, at most 16: 0 or an errno. For calls that fail
 * without the reason, or abort, when one is refused. */
int clave__files_check(int n);

/* Returns 0 if `bytes` more can be allocated, else ENOMEM. For the same calls. */
int clave__memory_check(size_t bytes);

/* As uv_loop_init, but 0 or an errno, and only if there are descriptors and memory for it: if not,
 * libuv aborts the program (with its first loop) or leaks those that it has got. */
int clave__loop_init(uv_loop_t *loop);

#endif
