/* thread_start.h - starting threads and loops, which the system may refuse. Here a refusal is an
 * errno rather than an abort in libuv. */
#ifndef CLAVE_RUNTIME_THREAD_START_H
#define CLAVE_RUNTIME_THREAD_START_H

#include <pthread.h>
#include <uv.h>

/* Starts a thread with this name (at most 15 characters) and all signals blocked, since the
 * process's signals are for the program's own threads. Returns 0 or an errno. */
int clave__thread_start(pthread_t *out, const char *name, void *(*run)(void *arg), void *arg);

/* Checks whether a thread could be started now; returns 0 or an errno. For programs that will need
 * one later, at a point where they could only report the failure. */
int clave__thread_check(void);

/* Checks whether n more descriptors (at most 16) could be opened now; returns 0 or an errno. For
 * calls that would abort, or fail without giving the reason, if one is refused. */
int clave__files_check(int n);

/* Returns 0 if `bytes` more can be allocated, else ENOMEM; for the same kind of calls. */
int clave__memory_check(size_t bytes);

/* Like uv_loop_init, but returns 0 or an errno, and does nothing unless there are descriptors and
 * memory for it: otherwise libuv aborts the program (on its first loop) or leaks the descriptors
 * that it already has. */
int clave__loop_init(uv_loop_t *loop);

#endif
