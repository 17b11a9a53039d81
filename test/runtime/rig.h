/* rig.h - servers for the driver's tests: in a thread of the test, or in a process of their own
 * that can be killed. */
#ifndef CLAVE_TEST_DRIVE_RIG_H
#define CLAVE_TEST_DRIVE_RIG_H

#include <pthread.h>
#include <sys/types.h>

#include "clave/clave.h"
#include "clave/uv.h"
#include "lib/unit.h"
#include "runtime/server/server_run.h"

enum { RIG_PATIENCE_MS = 20000 }; /* until something that should happen has not */

/* Says that the product is unsafe (two holders, a lost write, corruption), in the words after which
 * tools/run-tests does not run a test again. Always 1. */
int rig_unsafe(const char *what);
#define assert_safe(fine, what) assert_true((fine) || !rig_unsafe(what))

/* A new empty directory, removed with all that is in it when the test program ends. */
const char *rig_dir(void);
/* With all that is in it. */
void rig_remove(const char *dir);
/* DIR/NAME, in a buffer of its own for the rest of the program. */
const char *rig_path(const char *dir, const char *name);
/* "unix:" and a path in a new directory. */
const char *rig_unix(void);

/* From here on no server is named by this machine, its user, or the environment. */
void rig_without_settings(void);

struct rig {
    struct server_run *run;
    pthread_t thread;
    clave_err err; /* of the loop, after rig_stop */
    char fault[1024];
    const char *connect; /* what clients say */
};

/* What rig_start asks for: a tick of 100 ms, no limit of connections. */
struct server_run_options rig_options(const char *data, const char *const *listen);
/* Starts it or fails the test. `address` NULL: 127.0.0.1, a free port. */
struct rig *rig_start(const char *data, const char *address);
struct rig *rig_start_with(const struct server_run_options *o);
/* Stops, frees, and gives the loop's error. */
clave_err rig_stop(struct rig *r);
/* Waits until it has stopped by itself; then as rig_stop. */
clave_err rig_join(struct rig *r, char *fault, size_t cap);

/* A server for a whole group of tests: cmocka's setup and teardown, which set and use `rig`. */
extern struct rig *rig;
int rig_start_group(void **state);
int rig_stop_group(void **state);

/* fork() for a child that goes on in this program. No other thread may be there: whatever lock it
 * has at that moment is never released in the child, and ASan's allocator does not release its own.
 */
pid_t rig_fork_alone(void);

/* A server in a child process. */
struct rig_process {
    pid_t pid;
    char connect[160];
};
void rig_fork(struct rig_process *p, const char *data, const char *address);
/* Sends the signal and waits for the end; the exit status as waitpid gives it. */
int rig_kill(struct rig_process *p, int signal);
/* SIGSTOP, and waits until no thread of it runs any more. */
void rig_freeze(const struct rig_process *p);

/* An open session that is connected, or the test fails. */
clave_client *rig_session(const char *connect);

/* A loop of the test's own, which turns every 10 ms at least; _close fails the test if anything is
 * left on it. */
void rig_loop_open(uv_loop_t *loop, uv_timer_t *tick);
void rig_loop_close(uv_loop_t *loop, uv_timer_t *tick);
/* A TCP connection to this port here. `room` is what the kernel takes before it is read; 0: as much
 * as it wants. */
int rig_dial(int port, int room);

/* The whole file, in a buffer that the caller frees; NULL when there is none. */
void *rig_read(const char *path, size_t *n);
void rig_write(const char *path, const void *p, size_t n);

#endif
