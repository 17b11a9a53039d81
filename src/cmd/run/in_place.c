/* in_place.c - see in_place.h. runner.c and child.c call it; runner.c hands the session over and
 * takes it up again.
 *
 * The exec preserves the process id, and therefore the parent, the children (guardian, checks and
 * hooks), the control group and the service manager's main process; also the sub-reaper attribute,
 * the parent-death signal, pending and blocked signals, and the descriptors without FD_CLOEXEC. It
 * does not preserve threads, mappings, signal handlers and the connection to the server. */
#include "cmd/run/in_place.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time_format.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/standard_error.h"
#include "cmd/run/hook.h"
#include "cmd/run/lock_messages.h"
#include "cmd/run/runner.h"
#include "runtime/clock.h"

/* To be raised when the meaning of struct in_place_state, or of the guardian's orders and reports,
 * changes. A change of their sizes is noticed without that. */
enum { IN_PLACE_FORMAT = 1, ANSWER_CAP = 256, TRIAL_MS = 10000 };
enum { PAUSE_MS = 20, PAUSES_MAX = 100 };

struct in_place_state {
    char format[ANSWER_CAP]; /* comes first in every format */
    pid_t self;
    pid_t guardian, command, lent;
    int socket, page;
    struct cgroup cgroup;
    struct inheritance inherited;
    struct parent_watch parent;
    char owner[RUN_OWNER_CAP];
    int64_t began, acquired_at, acquired_wall_ms, guardian_session_id;
    bool waited, asked, told_to_end, told_unhealthy, taken, armed, wants_terminal, stuck;
    struct guardian_task task;
    struct holder_policy hold_policy;
    struct holdout holdout;
    bool unhealthy;
    char unhealthy_why[HEALTH_WHY_CAP];
    int failures;
    struct health_passed health;
    struct command_notify_passed command_notify;
    bool said_ready, said_stopping; /* to the service manager */
    bool reaped;
    int status;      /* of the command, if it was reaped */
    size_t nsession; /* this many bytes follow, the session that was handed over */
};

static void in_place_put_format(char out[ANSWER_CAP])
{
    snprintf(out, ANSWER_CAP, "clave in place, format %d (%zu, %zu, %zu, %zu)\n", IN_PLACE_FORMAT,
             sizeof(struct in_place_state), guardian_size_of_order(),
             sizeof(struct guardian_report), sizeof(struct deadline_page));
}

/* ---- whether the new program can take over --------------------------------------------------- */

int in_place_agree(void)
{
    char format[ANSWER_CAP];
    in_place_put_format(format);
    fputs(format, stdout);
    return EXIT_OK;
}

static void in_place_drop_trial(struct in_place *p)
{
    if (p->answer >= 0)
        close(p->answer);
    p->answer = -1;
    uv_timer_stop(&p->limit);
}

static void in_place_drop_words(struct in_place *p)
{
    if (p->words)
        free(p->words[0]);
    free(p->words);
    p->words = NULL;
}

void in_place_refuse(struct runner *r, const char *why)
{
    r->in_place.phase = IN_PLACE_STAYING;
    in_place_drop_trial(&r->in_place);
    in_place_drop_words(&r->in_place);
    command_notify_stay(r);
    lock_message_not_replaced(r->plan, why);
}

static void in_place_on_limit(uv_timer_t *timer)
{
    struct runner *r = timer->data;
    pid_t trial = r->in_place.trial;
    char why[sizeof r->in_place.program + 64];
    r->in_place.trial = 0;
    if (trial > 0)
        kill(-trial, SIGKILL); /* not reaped yet, so the number is still its own */
    snprintf(why, sizeof why, "%s does not say within %d s that it can take over",
             r->in_place.program, TRIAL_MS / 1000);
    in_place_refuse(r, why);
}

/* The file by which this program was started, which by now may be another one. A program that was
 * started by the link in /proc (a candidate's next term) looks for the file that it once was. */
static bool in_place_find_program(struct in_place *p)
{
    static const char self[] = "/proc/self/exe", deleted[] = " (deleted)";
    const char *file = (const char *)getauxval(AT_EXECFN); // NOLINT(performance-no-int-to-ptr)
    if (file && strcmp(file, self) != 0)
        return snprintf(p->program, sizeof p->program, "%s", file) < (int)sizeof p->program;
    ssize_t n = readlink(self, p->program, sizeof p->program - 1);
    if (n <= 0)
        return false;
    p->program[n] = '\0';
    size_t end = (size_t)n - (sizeof deleted - 1);
    if ((size_t)n >= sizeof deleted && strcmp(p->program + end, deleted) == 0)
        p->program[end] = '\0';
    return true;
}

/* Returns why it could not be started; NULL: it was. */
static const char *in_place_start_trial(struct in_place *p)
{
    int ends[2];
    p->words = inheritance_words();
    if (!p->words || !in_place_find_program(p))
        return "/proc does not say how this program was started";
    char **env = inheritance_environment(IN_PLACE_TRIED);
    if (!env || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        inheritance_free_environment(env);
        return strerror(errno);
    }
    p->answer = ends[0];
    p->trial = hook_start_program(p->program, p->words, env, ends[1]);
    int error = errno;
    close(ends[1]);
    inheritance_free_environment(env);
    return p->trial > 0 ? NULL : strerror(error);
}

/* Why this is not the time for it; NULL: it is. */
static const char *in_place_fault(const struct runner *r)
{
    if (r->hold_policy.lost || r->unhealthy || r->asked)
        return "the command is being ended";
    if (command_notify_is_taking(&r->command_notify) && r->in_place.pauses >= PAUSES_MAX)
        return "a descriptor that was sent to the command's NOTIFY_SOCKET cannot be closed";
    return NULL;
}

static void in_place_on_pause_over(uv_timer_t *timer)
{
    in_place_look(timer->data);
}

/* A thread that takes a message off the command's NOTIFY_SOCKET would hold up the exec, and the
 * message would be lost with it. It usually takes no time at all. */
static bool in_place_pauses(struct runner *r)
{
    struct in_place *p = &r->in_place;
    if (!command_notify_is_taking(&r->command_notify))
        return false;
    p->phase = IN_PLACE_ASKED;
    p->pauses++;
    uv_update_time(&r->loop);
    uv_timer_start(&p->limit, in_place_on_pause_over, PAUSE_MS, 0);
    return true;
}

void in_place_look(struct runner *r)
{
    struct in_place *p = &r->in_place;
    if (p->phase != IN_PLACE_ASKED || r->phase != HOLDING || r->command == 0)
        return;
    const char *fault = in_place_fault(r);
    if (!fault && in_place_pauses(r))
        return;
    if (!fault)
        fault = in_place_start_trial(p);
    if (fault) {
        in_place_refuse(r, fault);
        return;
    }
    p->phase = IN_PLACE_TRYING;
    uv_update_time(&r->loop);
    uv_timer_start(&p->limit, in_place_on_limit, TRIAL_MS, 0);
}

void in_place_ask(struct runner *r)
{
    struct in_place *p = &r->in_place;
    if (r->phase == SWEEPING || r->phase == KEEPING || r->phase == LEAVING) {
        lock_message_not_replaced(r->plan, "the command has ended");
        return;
    }
    p->again |= p->phase == IN_PLACE_GOING_ON;
    if (p->phase != IN_PLACE_STAYING) /* what is under way executes what is there by then */
        return;
    p->phase = IN_PLACE_ASKED;
    p->pauses = 0;
    if (r->phase != HOLDING)
        lock_message_not_replaced(r->plan, "not yet: it keeps its place in the queue, and is "
                                           "replaced as soon as the command runs");
    in_place_look(r);
}

void in_place_on_reaped(struct runner *r, pid_t pid, int status)
{
    struct in_place *p = &r->in_place;
    char format[ANSWER_CAP], answer[ANSWER_CAP] = "", how[64] = "",
                             why[sizeof p->program + ANSWER_CAP + 64];
    if (pid == 0 || pid != p->trial)
        return;
    p->trial = 0;
    ssize_t n = read(p->answer, answer, sizeof answer - 1);
    answer[n > 0 ? n : 0] = '\0';
    in_place_drop_trial(p);
    in_place_put_format(format);
    if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "ended by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        snprintf(how, sizeof how, "exit code %d", WEXITSTATUS(status));
    else if (strcmp(answer, format) != 0)
        snprintf(how, sizeof how, "it has another format of the state; see --resume");
    const char *fault = *how ? NULL : in_place_fault(r);
    if (r->phase != HOLDING)
        fault = "the command has ended";
    snprintf(why, sizeof why, "%s cannot take over: %s", p->program, how);
    if (*how || fault)
        in_place_refuse(r, fault ? fault : why);
    else if (in_place_pauses(r))
        in_place_drop_words(p); /* the program is tried once more */
    else
        r->events->agreed(r);
}

/* ---- executing it ---------------------------------------------------------------------------- */

static void in_place_fill(struct in_place_state *s, const struct runner *r)
{
    in_place_put_format(s->format);
    s->self = getpid();
    s->guardian = r->guardian.pid;
    s->command = r->command;
    s->lent = r->terminal.lent;
    s->socket = r->guardian.socket;
    s->page = r->guardian.page_fd;
    s->cgroup = r->guardian.cgroup;
    s->inherited = r->o->inherited;
    s->parent = r->plan->parent;
    memcpy(s->owner, r->plan->owner, sizeof s->owner);
    s->began = r->began;
    s->acquired_at = r->acquired_at;
    s->acquired_wall_ms = r->plan->granted_wall_ms != 0
                              ? r->plan->granted_wall_ms
                              : clave__clock_wall() - (clave_now() - r->acquired_at);
    s->guardian_session_id = r->guardian_session_id;
    s->waited = r->waited;
    s->asked = r->asked;
    s->told_to_end = r->told_to_end;
    s->told_unhealthy = r->told_unhealthy;
    s->taken = r->taken;
    s->armed = r->armed;
    s->wants_terminal = r->wants_terminal;
    s->stuck = r->stuck;
    s->task = r->task;
    s->hold_policy = r->hold_policy;
    s->holdout = r->holdout;
    s->unhealthy = r->unhealthy;
    memcpy(s->unhealthy_why, r->unhealthy_why, sizeof s->unhealthy_why);
    s->failures = r->failures;
    health_pass_on(&r->health, &s->health);
    command_notify_pass_on(&r->command_notify, &s->command_notify);
    s->said_ready = r->service.notify.ready;
    s->said_stopping = r->service.notify.stopping;
    s->reaped = r->reaped;
    s->status = r->status;
    s->nsession = strlen(r->in_place.session);
}

enum { IN_PLACE_FDS = 7 };

/* The descriptors that the new program needs besides those that this one was started with. */
static void in_place_keep(const struct in_place_state *s, int memory, bool keeps)
{
    const int fds[IN_PLACE_FDS] = {memory,
                                   s->socket,
                                   s->page,
                                   s->parent.pid > 0 ? s->parent.fd : -1,
                                   s->health.ends[0],
                                   s->health.ends[1],
                                   s->command_notify.socket};
    for (size_t i = 0; i < IN_PLACE_FDS; i++)
        if (fds[i] >= 0)
            fcntl(fds[i], F_SETFD, keeps ? 0 : FD_CLOEXEC);
}

static bool in_place_write(int fd, const void *data, size_t n)
{
    return write(fd, data, n) == (ssize_t)n; /* to memory: at once, or not at all */
}

/* Returns only if it fails; errno says why. */
static void in_place_execute_it(struct runner *r, const struct in_place_state *s)
{
    struct in_place *p = &r->in_place;
    int memory = memfd_create("clave-in-place", MFD_CLOEXEC);
    char **env = memory >= 0 ? inheritance_environment(memory) : NULL;
    bool written = env && in_place_write(memory, s, sizeof *s) &&
                   in_place_write(memory, p->session, s->nsession) &&
                   lseek(memory, 0, SEEK_SET) == 0;
    if (written) {
        in_place_keep(s, memory, true);
        execve(p->program, p->words, env);
        diag(r->o, "%s: cannot execute %s: %s: this program goes on", r->plan->path, p->program,
             strerror(errno));
        execve("/proc/self/exe", p->words, env);
        int error = errno;
        in_place_keep(s, memory, false);
        errno = error;
    }
    int error = errno;
    inheritance_free_environment(env);
    if (memory >= 0)
        close(memory);
    errno = error;
}

void in_place_execute(struct runner *r)
{
    struct in_place *p = &r->in_place;
    assert(p->phase == IN_PLACE_EXECUTING && p->session && p->words);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    uv_run(&r->loop, UV_RUN_NOWAIT); /* handles the signals that have arrived */
    standard_error_retry();
    struct in_place_state *s = calloc(1, sizeof *s);
    errno = ENOMEM;
    if (s && r->phase == HOLDING && !r->hold_policy.lost) {
        in_place_fill(s, r);
        in_place_execute_it(r, s);
    }
    int error = errno;
    free(s);
    free(p->session);
    p->session = NULL;
    in_place_refuse(r, r->phase == HOLDING && !r->hold_policy.lost ? strerror(error)
                                                                   : "the command is being ended");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- the new program ------------------------------------------------------------------------- */

static int in_place_unfit(const struct run_plan *p, const char *why)
{
    return diag_end(p->o, p->path, EXIT_INTERNAL, "cannot go on in place: %s", why);
}

int in_place_take(struct run_plan *p)
{
    int fd = p->o->inherited.in_place;
    char format[ANSWER_CAP];
    struct in_place_state *s = calloc(1, sizeof *s);
    in_place_put_format(format);
    if (!s || read(fd, s, sizeof *s) != (ssize_t)sizeof *s || strcmp(s->format, format) != 0 ||
        s->self != getpid()) {
        free(s);
        return in_place_unfit(p, "the descriptor does not have the state of this process");
    }
    char *session = calloc(1, s->nsession + 1);
    if (!session || read(fd, session, s->nsession) != (ssize_t)s->nsession) {
        free(session);
        free(s);
        return in_place_unfit(p, "no session was handed over");
    }
    close(fd);
    p->o->inherited = s->inherited;
    p->o->inherited.in_place = IN_PLACE_NOT;
    p->parent = s->parent;
    memcpy(p->owner, s->owner, sizeof p->owner);
    p->granted_wall_ms = s->acquired_wall_ms;
    p->in_place = s;
    p->handed_session = session;
    in_place_keep(s, -1, false);
    return EXIT_OK;
}

void in_place_free(struct run_plan *p)
{
    free(p->in_place);
    free(p->handed_session);
    p->in_place = NULL;
    p->handed_session = NULL;
}

void in_place_open(struct runner *r)
{
    uv_timer_init(&r->loop, &r->in_place.limit);
    r->in_place.limit.data = r;
    r->in_place.answer = -1;
}

void in_place_close(struct runner *r)
{
    struct in_place *p = &r->in_place;
    if (p->trial > 0)
        kill(-p->trial, SIGKILL);
    in_place_drop_trial(p);
    in_place_drop_words(p);
    uv_close((uv_handle_t *)&p->limit, NULL);
}

int in_place_adopt_guardian(struct runner *r)
{
    const struct in_place_state *s = r->plan->in_place;
    r->guardian = (struct guardian){
        .pid = s->guardian, .socket = s->socket, .cgroup = s->cgroup, .page_fd = s->page};
    return guardian_adopt(&r->guardian) ? EXIT_OK : in_place_unfit(r->plan, strerror(errno));
}

void in_place_go_on(struct runner *r)
{
    const struct in_place_state *s = r->plan->in_place;
    sigset_t none;
    r->phase = HOLDING;
    r->stand = SETTLED;
    r->stages.phase = BEGUN;
    r->in_place.phase = IN_PLACE_GOING_ON;
    r->command = s->command;
    r->terminal.lent = s->lent;
    r->began = s->began;
    r->acquired_at = s->acquired_at;
    r->guardian_session_id = s->guardian_session_id;
    r->waited = s->waited;
    r->asked = s->asked;
    r->told_to_end = s->told_to_end;
    r->told_unhealthy = s->told_unhealthy;
    r->taken = s->taken;
    r->armed = s->armed;
    r->wants_terminal = s->wants_terminal;
    r->stuck = s->stuck;
    r->task = s->task;
    r->watchdog_at = CLAVE_NEVER;
    r->hold_policy = s->hold_policy;
    r->holdout = s->holdout;
    r->reaped = s->reaped;
    r->status = s->status;
    r->unhealthy = s->unhealthy;
    memcpy(r->unhealthy_why, s->unhealthy_why, sizeof r->unhealthy_why);
    r->failures = s->failures;
    r->service.notify.ready = s->said_ready;
    r->service.notify.stopping = s->said_stopping;
    health_go_on(&r->health, &s->health);
    command_notify_go_on_with(r, &s->command_notify);
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}
