/* runner_signals.c - what the signals of the runner mean in each phase, and the end of the process
 * that it is to end with. Called by runner.c. Invariant: no signal is lost between the runner and
 * the program that this process executes next. */
#include "cmd/run/runner_signals.h"

#include <assert.h>
#include <signal.h>

#include "clave/uv.h"
#include "cmd/cli/diag.h"
#include "cmd/run/child.h"
#include "cmd/run/lock_messages.h"

/* Forwarded while the command runs, except the last; before that, the first four end this process.
 * A signal that was ignored when we were started (nohup, a shell's background job) stays ignored,
 * for the command too. */
static const int caught[RUNNER_SIGNALS] = {SIGTERM, SIGINT,  SIGHUP,   SIGQUIT, SIGUSR1,
                                           SIGUSR2, SIGTSTP, SIGWINCH, SIGCONT, SIGCHLD};

static void runner_on_signal(uv_signal_t *handle, int sig)
{
    struct runner *r = handle->data;
    if (sig == SIGCHLD) {
        child_reap(r);
        return;
    }
    bool ends = sig == SIGTERM || sig == SIGINT || sig == SIGHUP || sig == SIGQUIT;
    r->told_to_end |= ends;
    switch (r->phase) {
    case CONNECTING:
    case WAITING:
        if (ends)
            r->events->leave(r, 128 + sig);
        else if (sig == SIGTSTP)
            raise(SIGSTOP);
        break;
    case HOLDING:
        if (sig == SIGCONT)
            child_on_continued(r);
        else
            child_on_signal(r, sig);
        break;
    case LEAVING:
        if (ends)
            r->events->stop(r);
        break;
    case KEEPING:
        if (ends)
            run_stages_cut_short(r);
        else if (sig == SIGTSTP)
            raise(SIGSTOP);
        break;
    case SWEEPING:
        break;
    }
}

/* While the command runs, the guardian ends it. */
void runner_on_parent_end(void *arg)
{
    struct runner *r = arg;
    r->told_to_end = true;
    switch (r->phase) {
    case CONNECTING:
    case WAITING:
        lock_wait_end(&r->progress);
        lock_message_parent_ended(r->plan, clave_now() - r->began);
        r->events->leave(r, EXIT_LOST);
        break;
    case KEEPING:
        run_stages_cut_short(r);
        break;
    case HOLDING:
    case SWEEPING:
    case LEAVING:
        break;
    }
}

int runner_catch_signals(struct runner *r)
{
    assert(r->nsignals == 0);
    int err = 0;
    for (size_t i = 0; i < RUNNER_SIGNALS && err == 0; i++) {
        struct sigaction now;
        sigaction(caught[i], NULL, &now);
        if (now.sa_handler == SIG_IGN)
            continue;
        uv_signal_t *handle = &r->signals[r->nsignals];
        err = uv_signal_init(&r->loop, handle);
        if (err != 0)
            break;
        handle->data = r;
        r->before[r->nsignals++] = now;
        err = uv_signal_start(handle, runner_on_signal, caught[i]);
    }
    return err;
}

/* Handles the signals that have come. Those from here on have the effect that they had before, or
 * their own on the program that this process executes: none is lost in between. */
void runner_release_signals(struct runner *r)
{
    assert(r->stopped);
    sigset_t ending, before;
    sigemptyset(&ending);
    for (size_t i = 0; i < r->nsignals; i++)
        sigaddset(&ending, r->signals[i].signum);
    pthread_sigmask(SIG_BLOCK, &ending, &before);
    uv_run(&r->loop, UV_RUN_NOWAIT);
    for (size_t i = 0; i < r->nsignals; i++) {
        int sig = r->signals[i].signum;
        uv_close((uv_handle_t *)&r->signals[i], NULL); /* makes it the default */
        sigaction(sig, &r->before[i], NULL);
    }
    uv_run(&r->loop, UV_RUN_NOWAIT);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
