/* guardian.c - the guardian: a process that ends the command in time, whatever happens to the
 * runner. The file has three parts: how the command is started; the guardian process; and the
 * runner's side, which sends orders and reads reports, and never waits for a guardian that does not
 * read.
 *
 * The runner forks the guardian before it does anything else. The guardian starts the command as
 * its own child, and checks by its own clock the hold deadline that the runner writes to a shared
 * page. supervise/kill_policy.h decides when the command is warned and when it is killed.
 *
 * The guardian knows for certain when nothing of the command is left: it is a child sub-reaper, so
 * every orphan below it becomes its child, and a process without children has no descendants. (On a
 * system without sub-reapers this is not certain; the runner warns about that.) If the runner is
 * dead by then, the guardian re-attaches to the runner's session and closes it, so that the next
 * holder need not wait for the session to expire.
 *
 * What follows when a process dies or stops ("ENDING" is the warning and killing of the command):
 *
 *   runner killed       ENDING, then the guardian closes the session
 *   runner replaced     (in_place.h) nothing: the new program has the same process, the same end
 *                       of the socket and the same page. If it fails, as for killed
 *   runner stopped      the deadline no longer moves: ENDING in time; the session expires
 *   guardian killed     the command dies with it (parent-death signal); the runner, a
 *                       sub-reaper too, inherits what is left, kills it and releases
 *   guardian stopped    the runner kills it a moment after it should have acted itself,
 *                       still before the deadline; then as above
 *   command             what it left behind is ended, then the runner releases
 *   runner, command     what is left is ended, then the guardian closes the session
 *   guardian, command   the runner kills what is left and releases
 *   runner stopped, then killed        as for stopped, then as for killed
 *   the --with-parent process          ENDING, then the runner releases
 *   that process and the runner        ENDING, then the guardian closes the session
 *   runner and guardian                the command itself is killed; processes it had started
 *                       run on, and only the fencing token protects the next holder, which is
 *                       granted the lock when the session expires
 *   the machine         everything ends at once; the session expires
 *
 * A process that cannot be killed (holdout.h) is reported as soon as it is found. If the command
 * has to end, the guardian keeps trying to kill this process, and the runner neither releases the
 * lock nor exits before it has ended; but if the session is lost, the next holder does not wait for
 * that. Since the kernel clears the parent-death signal of a set-user-ID program, such a process
 * also survives the death of both the runner and the guardian.
 *
 * With --watchdog the guardian has the machine's watchdog open while the command runs, and feeds it
 * by supervise/watchdog_policy.h. In each row above where something of the command outlives its
 * end, and where the guardian is stopped, the machine is reset before the next holder. If the
 * guardian is killed, the runner stops the device once nothing is left of the command. The guardian
 * reports to the runner before it opens the device, so the runner never misses a device that was
 * just opened. */
#include "cmd/run/guardian/guardian.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/path.h"
#include "clave/uv.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/standard_error.h"
#include "cmd/run/guardian/proctree.h"
#include "cmd/service/sd_notify.h"
#include "supervise/watchdog_policy.h"

/* ---- starting the command -------------------------------------------------------------------- */

static bool guardian_put_number(const char *name, const char *format, int64_t n)
{
    char text[32];
    snprintf(text, sizeof text, strcmp(format, "hex") == 0 ? "0x%llx" : "%lld", (long long)n);
    return setenv(name, text, 1) == 0;
}

/* If the command runs clave, that clave reaches the same servers. */
static bool guardian_put_tls(const struct options *o)
{
    static const char *const names[CLIENT_TLS_TEXTS] = {[CLIENT_TLS_CA] = "CLAVE_TLS_CA",
                                                        [CLIENT_TLS_CERT] = "CLAVE_TLS_CERT",
                                                        [CLIENT_TLS_KEY] = "CLAVE_TLS_KEY",
                                                        [CLIENT_TLS_NAME] = "CLAVE_TLS_NAME"};
    for (size_t i = 0; i < CLIENT_TLS_TEXTS; i++)
        if (o->client.tls_texts[i] && setenv(names[i], o->client.tls_texts[i], 1) != 0)
            return false;
    return true;
}

/* Sets CLAVE_EVENT and CLAVE_FENCE_... for the fence; if the task is not a fence, removes them. */
static bool guardian_put_fence(const struct guardian_task *task)
{
    const struct fence_target *t = &task->fence;
    char pid[24] = "", token[24] = "";
    if (t->pid != 0)
        snprintf(pid, sizeof pid, "%lld", (long long)t->pid);
    if (t->token != 0)
        snprintf(token, sizeof token, "%lld", (long long)t->token);
    const char *const put[][2] = {{"CLAVE_EVENT", "fence"},
                                  {"CLAVE_FENCE_HOST", t->host},
                                  {"CLAVE_FENCE_PID", pid},
                                  {"CLAVE_FENCE_NAME", t->name},
                                  {"CLAVE_FENCE_COMMAND", t->command},
                                  {"CLAVE_FENCE_TEXT", t->text},
                                  {"CLAVE_FENCE_TOKEN", token},
                                  {"CLAVE_FENCE_CAUSE", t->foreign ? "foreign" : "lost"}};
    bool fine = true;
    for (size_t i = 0; i < sizeof put / sizeof *put && fine; i++)
        fine = task->fences ? setenv(put[i][0], put[i][1], 1) == 0 : unsetenv(put[i][0]) == 0;
    return fine;
}

/* Sets the command's variables in our own environment, which the command inherits: CLAVE_PATH,
 * CLAVE_NODE, CLAVE_TOKEN, CLAVE_SESSION, CLAVE_DEADLINE, CLAVE_OWNER, CLAVE_CONNECT, and the names
 * of the TLS files. false: no memory. */
static bool guardian_set_env(const struct guardian_plan *plan, const struct guardian_task *task,
                             int deadline_page_fd)
{
    char page[DEADLINE_PAGE_FILE_CAP];
    char *node = clave__path_child(NULL, plan->holders, task->node);
    if (!node || (plan->fence && !guardian_put_fence(task))) {
        free(node);
        return false;
    }
    snprintf(page, sizeof page, "/proc/%d/fd/%d", (int)getpid(), deadline_page_fd);
    bool fine =
        setenv("CLAVE_PATH", plan->path, 1) == 0 && setenv("CLAVE_NODE", node, 1) == 0 &&
        setenv("CLAVE_DEADLINE", page, 1) == 0 && setenv("CLAVE_CONNECT", plan->connect, 1) == 0 &&
        (!*plan->owner || setenv("CLAVE_OWNER", plan->owner, 1) == 0) &&
        guardian_put_tls(plan->o) && guardian_put_number("CLAVE_TOKEN", "dec", task->token) &&
        guardian_put_number("CLAVE_SESSION", "hex", task->session_id);
    free(node);
    return fine;
}

enum { SPAWN_NO_PROCESS = -2 };

/* A process that is not the command: it gets no standard input, and standard output stays the
 * command's. */
static void guardian_set_aside(void)
{
    int null = open("/dev/null", O_RDONLY);
    if (null > 0) {
        dup2(null, 0);
        close(null);
    }
    dup2(2, 1);
}

/* In the forked child: becomes the command. This is where each member of struct command takes
 * effect. If exec fails, errno is written to the pipe `fault`; a successful exec closes it. */
static _Noreturn void guardian_become(const struct command *command,
                                      const struct inheritance *before, pid_t parent, int fault)
{
    int error = 0;
    setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
        (command->same_user && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0))
        error = errno;
    if (getppid() != parent) /* the guardian died before we asked to die with it */
        _exit(EXIT_INTERNAL);
    inheritance_restore(before);
    sd_notify_offer(command->notify_socket, command->watchdog_ms);
    if (command->aside)
        guardian_set_aside();
    if (error == 0) {
        execvp(command->argv[0], command->argv);
        error = errno;
    }
    ssize_t ignored = write(fault, &error, sizeof error);
    (void)ignored;
    _exit(EXIT_NOTFOUND);
}

/* Starts argv[0], looked up in PATH, in the control group `cgroup` if there is one, with the
 * signals, streams and descriptors that the runner was started with. Returns the process id, which
 * is also the id of the process group. -1: the command cannot be run, errno says why;
 * SPAWN_NO_PROCESS: the system has no process for it, errno says why. When this single-threaded
 * process ends, the kernel kills the command (SIGKILL), unless it has become another user. */
static pid_t guardian_spawn(const struct command *command, const struct inheritance *before,
                            const struct cgroup *cgroup)
{
    int ends[2], error = 0;
    pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return SPAWN_NO_PROCESS;
    pid_t pid = cgroup_fork(cgroup);
    if (pid == 0)
        guardian_become(command, before, parent, ends[1]);
    int fork_error = errno;
    close(ends[1]);
    ssize_t n = 0;
    if (pid > 0) {
        setpgid(pid, pid); /* the child does the same: whichever comes first */
        while ((n = read(ends[0], &error, sizeof error)) < 0 && errno == EINTR)
            continue;
    }
    close(ends[0]);
    if (pid < 0) {
        errno = fork_error;
        return SPAWN_NO_PROCESS;
    }
    if (n != (ssize_t)sizeof error)
        return pid; /* exec closed the pipe */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    errno = error;
    return -1;
}

/* ---- the process ----------------------------------------------------------------------------- */

/* An order from the runner; the guardian answers with a guardian_report. After an upgrade in place
 * a newer runner talks to an older guardian, so if the meaning of either changes, raise
 * IN_PLACE_FORMAT. */
struct order {
    enum { ORDER_SESSION, ORDER_RUN, ORDER_FORWARD, ORDER_STOP } kind;
    int sig;
    enum kill_policy_cause cause; /* ORDER_STOP */
    struct session_key session;
    struct guardian_task task;
};

struct guardian_process {
    const struct guardian_plan *plan;
    struct deadline_page *page;
    int deadline_page_fd, socket, signals, timer;
    struct kill_policy kill_policy;
    struct watchdog_policy watchdog_policy;
    struct watchdog_device watchdog;
    struct session_key session;
    struct guardian_task task;
    pid_t command; /* process id, and id of its process group */
    struct cgroup cgroup;
    struct holdout told;         /* the holdout that was reported last */
    enum guardian_event told_of; /* and the event it was reported with */
    int64_t look_at, look_ms;
    bool told_to_stop, unhealthy;
    bool reaped;
    bool childless;
    bool runner_dead;
    bool parent_ended;
    int status;
};

enum { CLOSE_MS = 5000, LOOK_FIRST_MS = 20, LOOK_LAST_MS = 2000, LOOK_SHARE = 100 };

_Static_assert((int)DEADLINE_PAGE_LOST == (int)KILL_POLICY_NO_DEADLINE,
               "the kill policy reads the deadline from the page");

/* True if holdouts have to be looked for, which is so only while a command runs that may have to be
 * ended. */
static bool guardian_looks(const struct guardian_process *g)
{
    const struct kill_policy *p = &g->kill_policy;
    return p->phase == KILL_POLICY_ENDING ||
           (p->phase == KILL_POLICY_RUNNING && p->terms.on_lost != ON_LOST_IGNORE);
}

/* Arms the timer for the next thing to do. Its clock is CLOCK_BOOTTIME, unlike that of poll's
 * timeout, so it fires at once when a suspended machine wakes up. */
static void guardian_arm(struct guardian_process *g)
{
    int64_t at =
        clave__kill_policy_wake_at(&g->kill_policy, deadline_page_limit(g->page), clave_now());
    struct itimerspec t = {0};
    at = deadline_earlier(at, clave__watchdog_policy_wake_at(&g->watchdog_policy));
    if (guardian_looks(g))
        at = deadline_earlier(at, g->look_at);
    if (at != CLAVE_NEVER) {
        at = at > 1 ? at : 1; /* 0 would disarm the timer */
        t.it_value.tv_sec = (time_t)(at / 1000);
        t.it_value.tv_nsec = (long)(at % 1000) * 1000000;
    }
    timerfd_settime(g->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

/* ---- reports --------------------------------------------------------------------------------- */

static void guardian_send_report(struct guardian_process *g, struct guardian_report *r)
{
    r->cause = g->kill_policy.cause;
    /* The last report must not be dropped, even if the runner is stopped and reads it only later,
     * so sending it may block. */
    int flags = MSG_NOSIGNAL | (r->event == GUARDIAN_ENDED ? 0 : MSG_DONTWAIT);
    while (!g->runner_dead && send(g->socket, r, sizeof *r, flags) < 0 && errno == EINTR)
        continue;
}

static void guardian_report_of(struct guardian_process *g, enum guardian_event event, int value,
                               const struct holdout *holdout)
{
    guardian_send_report(
        g, &(struct guardian_report){.event = event, .value = value, .holdout = *holdout});
}

static void guardian_report(struct guardian_process *g, enum guardian_event event, int value)
{
    guardian_report_of(g, event, value, &(struct holdout){.pid = 0});
}

/* ---- the watchdog of the machine ------------------------------------------------------------- */

/* Opens the watchdog before the command is started. Returns false, after a report, if the command
 * is not to be started. */
static bool guardian_arm_watchdog(struct guardian_process *g)
{
    const struct watchdog_plan *plan = g->plan->watchdog;
    int64_t session_ms = g->task.session_ms;
    if (g->task.fences || !plan->device || plan->mode == WATCHDOG_NOT_USED)
        return true;
    struct watchdog_trouble t = {.fault = WATCHDOG_FAULT_SESSION};
    if (watchdog_device_fits(session_ms))
        t = watchdog_device_look(plan->device);
    if (t.fault == WATCHDOG_FAULT_NONE) {
        /* Report this beforehand: if we are killed while the device is open, the runner has to stop
         * it. */
        guardian_report(g, GUARDIAN_ARMING, 0);
        t = watchdog_device_open(&g->watchdog, plan->device, session_ms);
    }
    if (t.fault == WATCHDOG_FAULT_NONE &&
        !clave__watchdog_policy_begin(&g->watchdog_policy, session_ms, g->watchdog.timeout_ms,
                                      deadline_page_limit(g->page), clave_now())) {
        watchdog_device_disarm(&g->watchdog);
        t.fault = WATCHDOG_FAULT_LATE;
    }
    if (t.fault == WATCHDOG_FAULT_NONE) {
        g->kill_policy.terms.grace_lost_ms =
            clave__watchdog_policy_grace_lost(g->watchdog.timeout_ms);
        guardian_report(g, GUARDIAN_ARMED, (int)g->watchdog.timeout_ms);
        return true;
    }
    guardian_send_report(g, &(struct guardian_report){.event = GUARDIAN_UNARMED, .watchdog = t});
    return plan->mode == WATCHDOG_TRY;
}

/* Feeds the watchdog if that is due, or stops it if nothing of the command is left. */
static void guardian_tend_watchdog(struct guardian_process *g, bool nothing_left)
{
    const struct watchdog_sight sight = {.deadline = deadline_page_limit(g->page),
                                         .worthless = g->kill_policy.cause == CAUSE_UNHEALTHY &&
                                                      g->told_of == GUARDIAN_STUCK,
                                         .nothing_left = nothing_left};
    unsigned todo = clave__watchdog_policy_step(&g->watchdog_policy, &sight, clave_now());
    if (todo & WATCHDOG_FEED)
        watchdog_device_feed(&g->watchdog);
    if (todo & WATCHDOG_DISARM)
        watchdog_device_disarm(&g->watchdog);
    if (todo & WATCHDOG_TELL)
        guardian_report(g, GUARDIAN_STARVED, 0);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Looks for holdouts again in a moment. A command that becomes another user usually does so at
 * once; the processes that it starts may do so at any time. */
static void guardian_look_soon(struct guardian_process *g)
{
    g->look_ms = LOOK_FIRST_MS;
    g->look_at = clave_now() + g->look_ms;
}

/* True if the next task may begin: the first one, or the one after a fence. */
static bool guardian_is_free(const struct guardian_process *g)
{
    enum kill_policy_phase phase = g->kill_policy.phase;
    return phase == KILL_POLICY_IDLE || (phase == KILL_POLICY_ENDED && g->task.fences);
}

/* Starts the command, or the fence, which is supervised in the same way. */
static void guardian_start_command(struct guardian_process *g, const struct guardian_task *task)
{
    assert(guardian_is_free(g));
    const struct command *command = task->fences ? g->plan->fence : g->plan->command;
    g->task = *task;
    g->kill_policy = (struct kill_policy){.phase = KILL_POLICY_IDLE};
    g->command = 0;
    g->reaped = g->childless = false;
    /* the holdout that was reported last belonged to the fence, which has ended */
    g->told = (struct holdout){.pid = 0};
    g->told_of = GUARDIAN_STARTED;
    if (!clave__kill_policy_run(&g->kill_policy, &task->terms, deadline_page_limit(g->page),
                                clave_now())) {
        guardian_report(g, GUARDIAN_ENDED, 0);
        return;
    }
    if (!guardian_arm_watchdog(g)) {
        clave__kill_policy_refused(&g->kill_policy);
        return;
    }
    cgroup_make(&g->cgroup);
    pid_t pid = SPAWN_NO_PROCESS;
    if (guardian_set_env(g->plan, &g->task, g->deadline_page_fd))
        pid = guardian_spawn(command, &g->plan->o->inherited, &g->cgroup);
    if (pid < 0) {
        int error = errno;
        cgroup_remove(&g->cgroup);
        guardian_tend_watchdog(g, true);
        guardian_report(g, pid == SPAWN_NO_PROCESS ? GUARDIAN_NO_PROCESS : GUARDIAN_REFUSED, error);
        clave__kill_policy_refused(&g->kill_policy);
        return;
    }
    g->command = pid;
    guardian_look_soon(g);
    guardian_report(g, GUARDIAN_STARTED, pid);
}

/* The command's process group; 0: it must not be signalled. Its number cannot be reused as long as
 * the first process of the group has not been waited for. */
static pid_t guardian_group(const struct guardian_process *g)
{
    return g->reaped ? 0 : g->command;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void guardian_reap(struct guardian_process *g)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (pid != g->command)
            continue;
        if (WIFSTOPPED(status)) {
            guardian_report(g, GUARDIAN_STOPPED, WSTOPSIG(status));
            continue;
        }
        g->reaped = true;
        g->status = status;
    }
    g->childless = pid < 0 && errno == ECHILD;
}

/* True if every process of the command is gone. A local server that something in the command
 * started does not count, although it may be our child. */
static bool guardian_nothing_left(const struct guardian_process *g)
{
    return g->childless || (g->reaped && proctree_is_gone());
}

/* ---- what cannot be ended -------------------------------------------------------------------- */

static void guardian_tell_stuck(const struct guardian_process *g, const struct holdout *h)
{
    assert(g->runner_dead); /* otherwise the runner reports it */
    char text[HOLDOUT_TEXT_CAP];
    diag(g->plan->o, "%s: cannot end %s, which runs on after clave %s", g->plan->path,
         holdout_text(h, text), g->plan->o->verb->name);
}

/* Reports each stuck process once. While the command runs, the next holdout of the same program and
 * user is not reported again: a script may call sudo a hundred times. */
static void guardian_tell_holdout(struct guardian_process *g, const struct holdout *h,
                                  enum guardian_event event)
{
    assert(event == GUARDIAN_HOLDOUT || event == GUARDIAN_STUCK);
    bool stuck = event == GUARDIAN_STUCK;
    bool same = g->told.uid == h->uid && strcmp(g->told.name, h->name) == 0;
    if (g->told_of == event && (stuck ? g->told.pid == h->pid : g->told.pid != 0 && same))
        return;
    g->told = *h;
    g->told_of = event;
    guardian_report_of(g, event, 0, h);
    if (stuck && g->runner_dead)
        guardian_tell_stuck(g, h);
}

static void guardian_look(struct guardian_process *g)
{
    struct holdouts found;
    int64_t now = clave_now();
    if (!guardian_looks(g) || now < g->look_at)
        return;
    holdout_look(&found, &g->cgroup);
    if (found.n > 0 &&
        !found.first.asleep) /* a process that waits for a disk for a moment is not a holdout */
        guardian_tell_holdout(g, &found.first, GUARDIAN_HOLDOUT);
    int64_t took = clave_now() - now;
    g->look_ms = deadline_earlier(2 * g->look_ms, LOOK_LAST_MS);
    g->look_at = now + g->look_ms + LOOK_SHARE * took;
}

static void guardian_look_for_stuck(struct guardian_process *g, struct holdouts *left)
{
    holdout_look(left, &g->cgroup);
    if (holdout_is_certain(left, g->kill_policy.again_ms))
        guardian_tell_holdout(g, &left->first, GUARDIAN_STUCK);
}

static void guardian_kill(struct guardian_process *g)
{
    assert(g->kill_policy.phase == KILL_POLICY_KILLING);
    struct holdouts left;
    cgroup_kill(&g->cgroup);
    if (g->told.pid != 0)
        /* report it now: the killing below may take so long that the runner takes us for stopped */
        guardian_look_for_stuck(g, &left);
    int alive = proctree_kill(guardian_group(g));
    guardian_look_for_stuck(g, &left);
    clave__kill_policy_killed(&g->kill_policy, holdout_is_all(&left, alive));
}

static void guardian_act(struct guardian_process *g, unsigned todo)
{
    if (todo & KILL_POLICY_TELL)
        guardian_report(g, GUARDIAN_ENDING, 0);
    if (todo & KILL_POLICY_TERM) {
        proctree_signal(SIGTERM, guardian_group(g));
        proctree_signal(
            SIGCONT,
            guardian_group(g)); /* a stopped process handles SIGTERM only when it is continued */
        g->look_at = clave_now();
    }
    if (todo & KILL_POLICY_KILL)
        guardian_kill(g);
    if ((todo & KILL_POLICY_TELL) && g->runner_dead)
        diag(g->plan->o, "%s: clave %s was killed: ending the command", g->plan->path,
             g->plan->o->verb->name);
    if (todo & KILL_POLICY_TELL_END) {
        cgroup_remove(&g->cgroup);
        guardian_report(g, GUARDIAN_ENDED, g->status);
    }
}

static void guardian_step(struct guardian_process *g)
{
    guardian_reap(g);
    g->parent_ended = g->parent_ended || parent_watch_has_ended(g->plan->parent);
    const struct kill_policy_sight sight = {.deadline = deadline_page_limit(g->page),
                                            .told_to_stop = g->told_to_stop,
                                            .unhealthy = g->unhealthy,
                                            .alone = g->runner_dead,
                                            .parent_ended = g->parent_ended,
                                            .reaped = g->reaped,
                                            .nothing_left = guardian_nothing_left(g)};
    unsigned todo = clave__kill_policy_step(&g->kill_policy, &sight, clave_now());
    guardian_tend_watchdog(g, g->kill_policy.phase == KILL_POLICY_ENDED);
    guardian_act(g, todo);
    guardian_look(g);
    standard_error_retry();
}

static void guardian_pass_signal(struct guardian_process *g, int sig)
{
    if (sig == SIGTERM && clave__kill_policy_ask(&g->kill_policy, clave_now()))
        return; /* the kill policy sends SIGTERM to the command and all its descendants */
    struct holdout command;
    bool refused = guardian_group(g) > 0 && kill(-guardian_group(g), sig) != 0 && sig != SIGWINCH;
    if (refused && holdout_refuses(&command, guardian_group(g)))
        guardian_report_of(g, GUARDIAN_DENIED, sig, &command);
}

static void guardian_obey(struct guardian_process *g, const struct order *order)
{
    switch (order->kind) {
    case ORDER_SESSION:
        g->session = order->session;
        break;
    case ORDER_RUN:
        if (guardian_is_free(g))
            guardian_start_command(g, &order->task);
        break;
    case ORDER_FORWARD:
        guardian_pass_signal(g, order->sig);
        break;
    case ORDER_STOP:
        g->told_to_stop = true;
        g->unhealthy = order->cause == CAUSE_UNHEALTHY;
        break;
    }
}

static void guardian_take_orders(struct guardian_process *g)
{
    struct order order;
    ssize_t n;
    while ((n = recv(g->socket, &order, sizeof order, MSG_DONTWAIT)) == (ssize_t)sizeof order)
        guardian_obey(g, &order);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        g->runner_dead = true;
}

static void guardian_drain(int fd)
{
    char buf[sizeof(struct signalfd_siginfo)];
    while (read(fd, buf, sizeof buf) > 0)
        continue;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Closes everything we inherited, so that a process that reads our output to its end need not wait
 * for what follows. */
static void guardian_close_streams(void)
{
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; null >= 0 && fd <= 2; fd++)
        dup2(null, fd);
    syscall(SYS_close_range, 3u, ~0u, 0u);
}

/* Nothing of the command is left, so the next holder has nobody to fence. The multi that removes
 * the mark is refused if the lock is no longer ours. If its answer is lost, the mark may remain,
 * and the next holder fences without need. A mark that is there because a fence has not succeeded
 * is not ours, and stays. */
static void guardian_remove_mark(const struct guardian_process *g, clave_client *c)
{
    if (!g->plan->mark || g->task.token == 0 || g->task.fences)
        return;
    char *node = clave__path_child(NULL, g->plan->holders, g->task.node);
    const clave_op ops[] = {{.kind = CLAVE_OP_CHECK, .path = node, .version = -1},
                            {.kind = CLAVE_OP_DELETE, .path = g->plan->mark, .version = -1}};
    clave_reply *reply = NULL;
    if (node)
        (void)clave_multi(c, ops, sizeof ops / sizeof *ops, CLOSE_MS, &reply);
    clave_reply_free(reply);
    free(node);
}

/* The runner is dead but its session is not: closes the session, so that the lock, or the place in
 * the queue, passes on now and not when the session expires. */
static void guardian_close_session(struct guardian_process *g)
{
    clave_client_options co;
    clave_client *c;
    guardian_close_streams();
    connect_client_options(g->plan->o, &co);
    co.session_timeout_ms = g->session.timeout_ms;
    co.resume_session_id = g->session.id;
    memcpy(co.resume_passwd, g->session.passwd, sizeof co.resume_passwd);
    if (clave_client_open(&c, NULL, g->plan->connect, &co) != CLAVE_OK)
        return;
    clave_err err = clave_client_wait(c, g->session.timeout_ms);
    if (err == CLAVE_OK)
        guardian_remove_mark(g, c);
    clave_client_close(c, err == CLAVE_OK ? CLOSE_MS : 0);
}

static bool guardian_prepare(struct guardian_process *g)
{
    sigset_t all, child;
    sigfillset(&all);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setpgid(0, 0); /* signals for the runner's group are not meant for us */
    prctl(PR_SET_NAME, "lock-guardian");
    g->signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    g->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    /* EINVAL: no sub-reapers here; the runner has warned about that. */
    return g->signals >= 0 && g->timer >= 0 &&
           (prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 || errno == EINVAL);
}

static _Noreturn void guardian_process_run(struct guardian_process *g)
{
    if (!guardian_prepare(g)) {
        diag(g->plan->o, "the guardian cannot start: %s", strerror(errno));
        _exit(EXIT_INTERNAL);
    }
    standard_error_never_wait();
    sd_notify_offer(NULL, 0);
    while (g->kill_policy.phase != KILL_POLICY_ENDED || !g->runner_dead) {
        const struct parent_watch *parent = g->plan->parent;
        struct pollfd fds[] = {
            {.fd = g->runner_dead ? -1 : g->socket, .events = POLLIN},
            {.fd = g->signals, .events = POLLIN},
            {.fd = g->timer, .events = POLLIN},
            {.fd = g->parent_ended ? -1 : parent_watch_fd(parent), .events = POLLIN}};
        guardian_arm(g);
        poll(fds, 4, g->parent_ended ? -1 : parent_watch_pause_ms(parent));
        guardian_drain(g->signals);
        guardian_drain(g->timer);
        if (!g->runner_dead)
            guardian_take_orders(g);
        guardian_step(g);
    }
    if (g->session.id != 0)
        guardian_close_session(g);
    _exit(EXIT_OK);
}

/* ---- the runner's side ----------------------------------------------------------------------- */

static int guardian_cannot_start(const struct options *o)
{
    return diag_end(o, NULL, EXIT_INTERNAL, "cannot start the guardian: %s", strerror(errno));
}

int guardian_start(struct guardian *g, const struct guardian_plan *plan)
{
    int ends[2], deadline_page_fd;
    *g = (struct guardian){.socket = -1, .page_fd = -1};
    if (!deadline_page_new(&g->page, &deadline_page_fd, plan->in_place))
        return guardian_cannot_start(plan->o);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        int code = guardian_cannot_start(plan->o);
        close(deadline_page_fd);
        return code;
    }
    cgroup_plan(&g->cgroup);
    pid_t pid = fork();
    if (pid == 0) {
        struct guardian_process child = {.plan = plan,
                                         .page = g->page,
                                         .deadline_page_fd = deadline_page_fd,
                                         .watchdog = {.fd = -1},
                                         .cgroup = g->cgroup};
        close(ends[0]);
        child.socket = ends[1];
        guardian_process_run(&child);
    }
    int code = pid < 0 ? guardian_cannot_start(plan->o) : EXIT_OK;
    close(ends[1]);
    if (plan->in_place)
        g->page_fd = deadline_page_fd;
    else
        close(deadline_page_fd);
    g->pid = pid > 0 ? pid : 0;
    g->socket = ends[0];
    return code;
}

bool guardian_adopt(struct guardian *g)
{
    g->page = deadline_page_map(g->page_fd);
    return g->page != NULL;
}

size_t guardian_size_of_order(void)
{
    return sizeof(struct order);
}

/* Sends an order; never blocks. A guardian that does not read its orders is stopped, and by the
 * time it continues they would be too late anyway. */
static void guardian_send(const struct guardian *g, const struct order *order)
{
    assert(g->socket >= 0);
    while (send(g->socket, order, sizeof *order, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EINTR)
        continue;
}

void guardian_set_session(struct guardian *g, const struct session_key *key)
{
    guardian_send(g, &(struct order){.kind = ORDER_SESSION, .session = *key});
}

void guardian_run(struct guardian *g, const struct guardian_task *task)
{
    guardian_send(g, &(struct order){.kind = ORDER_RUN, .task = *task});
}

void guardian_forward(struct guardian *g, int sig)
{
    guardian_send(g, &(struct order){.kind = ORDER_FORWARD, .sig = sig});
}

void guardian_stop(struct guardian *g, enum kill_policy_cause cause)
{
    guardian_send(g, &(struct order){.kind = ORDER_STOP, .cause = cause});
}

int guardian_read(struct guardian *g, struct guardian_report *out)
{
    ssize_t n = recv(g->socket, out, sizeof *out, MSG_DONTWAIT);
    if (n == (ssize_t)sizeof *out)
        return 1;
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

void guardian_note_reaped(struct guardian *g, pid_t pid)
{
    if (g->pid == pid)
        g->pid = 0;
}

void guardian_dismiss(struct guardian *g)
{
    if (g->pid > 0) {
        kill(g->pid, SIGKILL);
        while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
        g->pid = 0;
    }
    cgroup_remove(&g->cgroup);
}

int guardian_exit_code(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return EXIT_NOTFOUND;
    case EAGAIN: /* the system is out of processes; the command is not at fault */
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return EXIT_INTERNAL;
    default:
        return EXIT_NOEXEC;
    }
}
