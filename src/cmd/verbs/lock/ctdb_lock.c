/* ctdb_lock.c - `clave ctdb-lock`: CTDB's recovery lock, in the role of one of its cluster mutex
 * helpers.
 *
 * CTDB reads a single character from standard output (without a line feed, since a second character
 * would count as a second status), and notices the end of the stream when this process is gone. It
 * ends a helper with SIGTERM. CTDB may also be killed itself, and then the lock must not outlive
 * it. */
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clave/mutex.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/run/parent_watch.h"

enum { RELEASE_MS = 1000 };
enum ctdb_status { CTDB_HELD = '0', CTDB_CONTENTION = '1', CTDB_ERROR = '3' };

struct ctdb_lock {
    struct options *o;
    const char *path;
    struct parent_watch parent;
    int signals;
    int lost; /* an eventfd, written when the lock is lost */
    _Atomic(clave_err) why;
    bool told;
};

/* Prints the status of this process, of which there must be only one. */
static bool ctdb_lock_tell(struct ctdb_lock *l, enum ctdb_status status)
{
    l->told = true;
    putchar((int)status);
    return finish_stdout(l->o) == EXIT_OK;
}

/* Called on the loop's thread. */
static void ctdb_lock_on_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct ctdb_lock *l = arg;
    (void)m;
    if (ev->kind == CLAVE_MUTEX_LOST) {
        l->why = ev->why;
        eventfd_write(l->lost, 1);
    }
}

/* Holds the lock until CTDB ends this process, or is gone itself, or until the lock is lost. */
static int ctdb_lock_hold(const struct ctdb_lock *l, clave_client *session)
{
    char text[PARENT_WATCH_TEXT_CAP];
    struct pollfd fds[] = {{.fd = l->lost, .events = POLLIN},
                           {.fd = l->signals, .events = POLLIN},
                           {.fd = parent_watch_fd(&l->parent), .events = POLLIN}};
    while (!parent_watch_has_ended(&l->parent)) {
        if (poll(fds, 3, parent_watch_pause_ms(&l->parent)) <= 0)
            continue;
        if (fds[0].revents != 0) {
            diag_err(l->o, l->path, l->why, session);
            return EXIT_LOST;
        }
        if (fds[1].revents != 0)
            return EXIT_OK;
    }
    diag(l->o, "%s: released: %s", l->path, parent_watch_text(&l->parent, text));
    return EXIT_OK;
}

/* Tries once; CTDB decides when to try again. */
static int ctdb_lock_take(struct ctdb_lock *l, clave_client *session, clave_mutex *mutex)
{
    clave_err err = clave_mutex_acquire(mutex, 0);
    if (err == CLAVE_EBUSY)
        return ctdb_lock_tell(l, CTDB_CONTENTION) ? EXIT_TIMEOUT : EXIT_IO;
    if (err != CLAVE_OK)
        return diag_err(l->o, l->path, err, session);
    int code = ctdb_lock_tell(l, CTDB_HELD) ? ctdb_lock_hold(l, session) : EXIT_IO;
    err = clave_mutex_release_confirmed(mutex, RELEASE_MS);
    return code == EXIT_OK && err != CLAVE_OK ? diag_err(l->o, l->path, err, session) : code;
}

static int ctdb_lock_on(struct ctdb_lock *l, clave_client *session)
{
    clave_mutex_options mo = CLAVE_MUTEX_OPTIONS_INIT;
    clave_mutex *mutex;
    mo.event_cb = ctdb_lock_on_event;
    mo.event_arg = l;
    l->signals = inheritance_open_signals(0); /* the loop's thread blocks all signals */
    l->lost = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->signals < 0 || l->lost < 0)
        return diag_err(l->o, l->path, CLAVE_EFILES, NULL);
    clave_err err = clave_mutex_new(&mutex, session, l->path, &mo);
    if (err != CLAVE_OK)
        return diag_err(l->o, l->path, err, session);
    int code = ctdb_lock_take(l, session, mutex);
    clave_mutex_free(mutex);
    return code;
}

/* Until there is a session, a signal simply ends the process: there is nothing to clean up. */
static int ctdb_lock_connect(struct ctdb_lock *l)
{
    clave_client *session;
    if (!connect_path_ok(l->o, l->path))
        return EXIT_PATH;
    int code = parent_watch_open(&l->parent, l->o, l->path, 0);
    if (code == EXIT_OK)
        code = connect_open(l->o, NULL, &session);
    if (code != EXIT_OK)
        return code;
    code = ctdb_lock_on(l, session);
    connect_close(session);
    return code;
}

static int ctdb_lock_run(struct options *o, int argc, char **argv)
{
    struct ctdb_lock l = {.o = o, .signals = -1, .lost = -1};
    if (options_next(o, argc, argv) == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 1, 1))
        return EXIT_USAGE;
    l.path = o->argv[0];
    int code = ctdb_lock_connect(&l);
    if (!l.told)
        ctdb_lock_tell(&l, CTDB_ERROR);
    parent_watch_close(&l.parent);
    if (l.signals >= 0)
        close(l.signals);
    if (l.lost >= 0)
        close(l.lost);
    return code;
}

const struct verb verb_ctdb_lock = {
    .name = "ctdb-lock",
    .args = "PATH",
    .summary = "Hold CTDB's recovery lock, as its cluster mutex helper",
    .text = "For clustered Samba, in ctdb.conf:\n"
            "  cluster lock = !/usr/bin/clave ctdb-lock -c HOSTS /ctdb/lock\n"
            "Prints one character: 0 held, 1 contention, 3 error. When held, it stays until\n"
            "SIGTERM, or until the process that started it ends, and then releases the lock. If\n"
            "the lock is lost, it ends with exit code 76.\n",
    .max_args = -1,
    .run = ctdb_lock_run,
};
