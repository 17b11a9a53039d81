/* command_notify.c - see command_notify.h. runner.c and child.c call it.
 *
 * Invariants: only messages from processes of the command count; every descriptor that arrives is
 * closed once its message has been read, but never by the loop's thread; and the loop gets its turn
 * after a bounded number of messages, however many are sent. */
#include "cmd/run/command_notify.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/time_format.h"
#include "clave/uv.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/participant.h"
#include "cmd/run/guardian/proctree.h"
#include "cmd/run/runner.h"
#include "runtime/thread_start.h"

/* ---- flags ----------------------------------------------------------------------------------- */

bool command_notify_take_flag(struct command_notify_plan *p, struct options *o, int id)
{
    struct notify_terms *t = &p->terms;
    switch (id) {
    case RUN_FLAG_READY:
        t->ready = true;
        return true;
    case RUN_FLAG_READY_TIMEOUT:
        return options_duration(o, "ready-timeout", 1, RUN_FLAG_YEAR_MS, &t->ready_ms);
    default:
        assert(id == RUN_FLAG_WATCHDOG_SEC);
        p->has_watchdog = true;
        return options_duration(o, "watchdog-sec", 0, RUN_FLAG_YEAR_MS, &t->watchdog_ms);
    }
}

/* If the command is what talks to systemd, the watchdog of the unit is meant for the command: clave
 * feeds the unit's watchdog itself, and demands the same signs of life from the command. */
int command_notify_check(struct run_plan *p)
{
    enum { READY_MS = 90000 }; /* systemd's own default */
    struct command_notify_plan *n = &p->command_notify;
    struct notify_terms *t = &n->terms;
    bool talks = p->notify == SD_NOTIFY_COMMAND, ignores = p->on_lost == ON_LOST_IGNORE;
    if (ignores && (t->ready || t->watchdog_ms > 0))
        return diag_usage(p->o, "--ready and --watchdog-sec end a command that does not keep its "
                                "word, and --on-lost ignore forbids that");
    if (talks && !n->has_watchdog && !ignores)
        t->watchdog_ms = sd_notify_watchdog_ms();
    if (t->ready_ms > 0 && !t->ready && t->watchdog_ms == 0)
        return diag_usage(p->o, "--ready-timeout needs --ready or --watchdog-sec");
    if (t->ready_ms == 0)
        t->ready_ms = READY_MS;
    if (!talks && !t->ready && t->watchdog_ms == 0)
        return EXIT_OK;
    snprintf(n->socket, sizeof n->socket, "@clave-notify-%016" PRIx64, clave_random_seed());
    p->command.notify_socket = n->socket;
    p->command.watchdog_ms = t->watchdog_ms;
    return EXIT_OK;
}

/* ---- a message ------------------------------------------------------------------------------- */

struct command_message {
    char text[SD_NOTIFY_CAP + 1];
    bool whole; /* the message is text without a NUL, and was not cut short */
    struct ucred from;
    struct timespec sent_at;
    bool has_descriptors;
    /* The contents of `text`. */
    struct notify_said said;
    const char *status; /* NULL: no STATUS= */
    bool reloading;
    char rest[SD_NOTIFY_CAP +
              1]; /* lines for the service manager; they fit, as they did in `text` */
    size_t nrest;
};

static void command_message_take_control(struct command_message *m, struct msghdr *msg)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        size_t n = c->cmsg_len - CMSG_LEN(0);
        if (c->cmsg_level != SOL_SOCKET)
            continue;
        if (c->cmsg_type == SCM_CREDENTIALS && n == sizeof m->from)
            memcpy(&m->from, CMSG_DATA(c), n);
        if (c->cmsg_type == SCM_TIMESTAMPNS && n == sizeof m->sent_at)
            memcpy(&m->sent_at, CMSG_DATA(c), n);
        /* On a system that does not tell when a message was sent, there is room for a few
         * descriptors. */
        for (size_t i = 0; c->cmsg_type == SCM_RIGHTS && i < n / sizeof(int); i++)
            close(((const int *)(const void *)CMSG_DATA(c))[i]);
        m->has_descriptors |= c->cmsg_type == SCM_RIGHTS;
    }
    m->has_descriptors |= (msg->msg_flags & MSG_CTRUNC) != 0; /* there was no room for them */
}

/* Reads the next message and leaves it in the queue. Returns false if none is waiting. */
static bool command_message_look(struct command_message *m, int socket)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(struct timespec))];
    } control;
    struct iovec text = {.iov_base = m->text, .iov_len = SD_NOTIFY_CAP};
    struct msghdr msg = {.msg_iov = &text,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof control};
    ssize_t n;
    *m = (struct command_message){.whole = false};
    do
        n = recvmsg(socket, &msg, MSG_DONTWAIT | MSG_PEEK);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return false;
    /* As in systemd, a NUL at the end is not part of the message. */
    m->whole = !(msg.msg_flags & MSG_TRUNC) && strlen(m->text) + 1 >= (size_t)n;
    command_message_take_control(m, &msg);
    return true;
}

/* Takes the message that was looked at off the queue, without its descriptors. */
static void command_message_take_off(int socket)
{
    char none;
    (void)recv(socket, &none, sizeof none, MSG_DONTWAIT);
}

static int64_t command_message_ms(const char *usec)
{
    long long n = strtoll(usec, NULL, 10) / 1000;
    return n > 0 && n <= RUN_FLAG_YEAR_MS ? n : 0;
}

/* The kinds of lines in a message. LINE_OTHER is passed on to the service manager. */
enum command_line {
    LINE_READY,
    LINE_STOPPING,
    LINE_ALIVE,
    LINE_FAILED,
    LINE_STATUS,
    LINE_RELOADING,
    LINE_EXTEND,
    LINE_NOT_PASSED_ON,
    LINE_OTHER
};

static enum command_line command_message_classify(const char *line)
{
    static const struct {
        const char *begins;
        bool whole; /* the line was not cut */
        enum command_line is;
    } rows[] = {
        {"READY=1", true, LINE_READY},
        {"STOPPING=1", true, LINE_STOPPING},
        {"WATCHDOG=1", true, LINE_ALIVE},
        {"WATCHDOG=trigger", true, LINE_FAILED},
        {"STATUS=", false, LINE_STATUS},
        {"RELOADING=1", true, LINE_RELOADING},
        {"EXTEND_TIMEOUT_USEC=", false, LINE_EXTEND},
        {"READY=", false, LINE_NOT_PASSED_ON},
        {"STOPPING=", false, LINE_NOT_PASSED_ON},
        {"WATCHDOG", false, LINE_NOT_PASSED_ON},
        {"MAINPID", false, LINE_NOT_PASSED_ON},
        {"NOTIFYACCESS=", false, LINE_NOT_PASSED_ON},
        {"FDSTORE", false, LINE_NOT_PASSED_ON},
        {"FDNAME=", false, LINE_NOT_PASSED_ON},
        {"FDPOLL=", false, LINE_NOT_PASSED_ON},
        {"BARRIER=", false, LINE_NOT_PASSED_ON},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = strlen(rows[i].begins);
        if (strncmp(line, rows[i].begins, n) == 0 && (!rows[i].whole || line[n] == '\0'))
            return rows[i].is;
    }
    return LINE_OTHER;
}

static void command_message_take_line(struct command_message *m, const char *line)
{
    enum command_line is = command_message_classify(line);
    const char *value = strchr(line, '=');
    if (!value || value == line)
        return; /* it is no assignment */
    m->said.ready |= is == LINE_READY;
    m->said.stopping |= is == LINE_STOPPING;
    m->said.alive |= is == LINE_ALIVE;
    m->said.failed |= is == LINE_FAILED;
    m->reloading |= is == LINE_RELOADING;
    if (is == LINE_STATUS)
        m->status = value + 1;
    if (is == LINE_EXTEND)
        m->said.extend_ms = command_message_ms(value + 1);
    if (is == LINE_RELOADING || is == LINE_EXTEND || is == LINE_OTHER)
        m->nrest += (size_t)snprintf(m->rest + m->nrest, sizeof m->rest - m->nrest, "%s%s",
                                     m->nrest > 0 ? "\n" : "", line);
}

static void command_message_parse(struct command_message *m)
{
    char *next = m->text;
    for (char *line; (line = strsep(&next, "\n"));)
        command_message_take_line(m, line);
}

/* ---- what follows from it -------------------------------------------------------------------- */

/* A message is from the command if its sender descends from the guardian, as all of the command
 * does and no hook or check. If the sender has ended meanwhile, or is hidden by a PID namespace,
 * its descent cannot be checked: then it has to run as our user, or as root. systemd-notify(1)
 * speaks in the name of its parent if it may; if that parent has ended, this is the guardian. */
static bool command_notify_accepts(const struct runner *r, const struct ucred *from)
{
    struct proc its;
    if (from->pid <= 0 || !proc_read(from->pid, &its))
        return from->uid == geteuid() || from->uid == 0;
    return from->pid == r->guardian.pid || proc_is_below(from->pid, r->guardian.pid);
}

static void command_notify_refuse(struct runner *r, const struct ucred *from)
{
    if (!r->command_notify.told_stranger)
        diag(r->o,
             "%s: process %d (user %u), which is none of the command's, sent a message to its "
             "NOTIFY_SOCKET: ignored",
             r->plan->path, (int)from->pid, (unsigned)from->uid);
    r->command_notify.told_stranger = true;
}

static void command_notify_on_pause_over(uv_timer_t *timer);

/* Shows the newest status, at most once in PAUSE_MS: each costs a write to the lock's node, and
 * some daemons count their requests in it. */
static void command_notify_show_status(struct runner *r)
{
    enum { PAUSE_MS = 1000 };
    struct command_notify *n = &r->command_notify;
    if (!n->runs || strcmp(n->shown, n->status) == 0 || uv_is_active((uv_handle_t *)&n->pause))
        return;
    memcpy(n->shown, n->status, sizeof n->shown);
    lock_message_status(r->plan, n->status);
    uv_update_time(&r->loop);
    uv_timer_start(&n->pause, command_notify_on_pause_over, PAUSE_MS, 0);
    r->events->notified(r);
}

static void command_notify_on_pause_over(uv_timer_t *timer)
{
    command_notify_show_status(timer->data);
}

static void command_notify_take_status(struct runner *r, const char *status)
{
    struct command_notify *n = &r->command_notify;
    char printable[COMMAND_NOTIFY_STATUS_CAP];
    participant_text_printable(status, printable, sizeof printable);
    if (strcmp(printable, n->status) == 0)
        return;
    memcpy(n->status, printable, sizeof printable);
    sd_status_said(r);
    command_notify_show_status(r);
}

static void command_notify_on_due(uv_timer_t *timer);

/* Asks the policy if that is due, and reports what has changed. */
static void command_notify_look(struct runner *r)
{
    struct command_notify *n = &r->command_notify;
    if (!n->judged)
        return;
    clave__notify_policy_step(&n->policy, clave_now());
    r->events->notified(r);
    int64_t at = clave__notify_policy_wake_at(&n->policy), left = at - clave_now();
    uv_timer_stop(&n->due);
    if (!n->judged || at == CLAVE_NEVER)
        return;
    uv_update_time(&r->loop);
    uv_timer_start(&n->due, command_notify_on_due, left > 0 ? (uint64_t)left : 0, 0);
}

static void command_notify_heed(struct runner *r, struct command_message *m)
{
    struct command_notify *n = &r->command_notify;
    bool was_ready = n->policy.ready;
    command_message_parse(m);
    if (n->judged)
        clave__notify_policy_hear(&n->policy, &m->said, clave_now());
    if (m->nrest > 0)
        sd_status_pass_on(r, m->rest, m->reloading);
    if (m->said.ready && n->judged) {
        sd_status_said_ready(r);
        if (!was_ready)
            lock_message_ready(r->plan, clave_now() - r->acquired_at);
    }
    if (m->said.stopping) {
        sd_status_stopping(r);
        if (!n->told_stopping)
            lock_message_stopping(r->plan);
        n->told_stopping = true;
    }
    if (m->status)
        command_notify_take_status(r, m->status);
}

/* ---- descriptors that were passed ------------------------------------------------------------ */

/* The last close of a descriptor may block, because a connection lingers, a terminal drains or a
 * file server does not answer, and any user of this machine may send one. So the loop only looks at
 * a message that has descriptors; a separate thread, a taker, takes it off the queue. Since there
 * is no room for the descriptors, the kernel drops them without the flush of close(2), during which
 * a FUSE server can block a process that no signal wakes.
 *
 * The next message is looked at when the taker has reported. A taker that is late is interrupted
 * with TAKER_SIGNAL, which ends the wait for a connection or a terminal, and is not waited for any
 * longer. If TAKERS_CAP of them are stuck nevertheless, no message is read until one of them is
 * free again. */
enum { TAKERS_CAP = 8, TAKER_SIGNAL = SIGURG, TAKER_LATE_MS = 250 };

/* Allocated apart from the runner, because a stuck thread outlives it. */
struct command_takers {
    struct command_taker {
        struct command_takers *all;
        bool runs; /* it has not reported yet */
        _Atomic pid_t tid;
    } list[TAKERS_CAP];
    int socket;
    int reports[2]; /* a pipe: each taker writes its index */
};

static void command_taker_on_signal(int sig)
{
    (void)sig;
}

static void *command_taker_run(void *arg)
{
    struct command_taker *t = arg;
    const uint8_t index = (uint8_t)(t - t->all->list);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, TAKER_SIGNAL);
    t->tid = (pid_t)syscall(SYS_gettid);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
    command_message_take_off(t->all->socket);
    ssize_t ignored = write(t->all->reports[1], &index, sizeof index); /* the pipe is never full */
    (void)ignored;
    return NULL;
}

static struct command_taker *command_takers_idle(struct command_takers *all)
{
    for (size_t i = 0; i < TAKERS_CAP; i++)
        if (!all->list[i].runs)
            return &all->list[i];
    return NULL;
}

/* If no thread can be started, `late` tries again. */
static void command_notify_start_taker(struct runner *r)
{
    struct command_notify *n = &r->command_notify;
    struct command_taker *t = command_takers_idle(n->takers);
    pthread_t thread;
    assert(t && n->taking && !n->taker);
    t->runs = true;
    t->tid = 0;
    if (clave__thread_start(&thread, "notify-taker", command_taker_run, t) == 0) {
        pthread_detach(thread);
        n->taker = t;
    } else {
        t->runs = false;
    }
    uv_update_time(&r->loop);
    uv_timer_start(&n->late, n->late.timer_cb, TAKER_LATE_MS, 0);
}

/* Reads a bounded number of messages. */
static void command_notify_read(struct runner *r)
{
    enum { READS = 64 };
    struct command_notify *n = &r->command_notify;
    struct command_message m;
    for (int i = 0; i < READS && !n->taking && command_message_look(&m, n->socket); i++) {
        if (m.has_descriptors && in_place_is_handing(&r->in_place)) {
            /* Left to the new program: an exec would wait for the thread that takes it, and the
             * message would be heard again. */
            uv_poll_stop(&n->poll);
            return;
        }
        if (n->runs && !command_notify_accepts(r, &m.from))
            command_notify_refuse(r, &m.from);
        else if (n->runs && m.whole)
            command_notify_heed(r, &m);
        if (!m.has_descriptors) {
            command_message_take_off(n->socket);
            continue;
        }
        uv_poll_stop(&n->poll);
        n->taking = true;
        n->taken = m.sent_at;
        command_notify_start_taker(r);
    }
}

static void command_notify_on_message(uv_poll_t *poll, int status, int events);

/* The message has been taken off the queue: goes on with the next if there would be a taker for
 * it. */
static void command_notify_go_on(struct runner *r)
{
    struct command_notify *n = &r->command_notify;
    n->taker = NULL;
    uv_timer_stop(&n->late);
    if (!command_takers_idle(n->takers)) {
        diag(r->o,
             "%s: descriptors that were sent to the command's NOTIFY_SOCKET cannot be closed: "
             "nothing more is heard from it until they are",
             r->plan->path);
        return;
    }
    n->taking = false;
    uv_poll_start(&n->poll, UV_READABLE, command_notify_on_message);
}

static void command_notify_on_late(uv_timer_t *timer)
{
    struct runner *r = timer->data;
    struct command_notify *n = &r->command_notify;
    struct command_message m;
    if (command_message_look(&m, n->socket) && m.sent_at.tv_sec == n->taken.tv_sec &&
        m.sent_at.tv_nsec == n->taken.tv_nsec) {
        if (n->taker) /* the taker has not had a processor yet */
            uv_timer_start(timer, timer->timer_cb, TAKER_LATE_MS, 0);
        else
            command_notify_start_taker(r);
        return;
    }
    if (n->taker)
        (void)syscall(SYS_tgkill, getpid(), n->taker->tid, TAKER_SIGNAL);
    command_notify_go_on(r);
}

static void command_notify_on_reports(uv_poll_t *poll, int status, int events)
{
    struct runner *r = poll->data;
    struct command_notify *n = &r->command_notify;
    uint8_t index;
    (void)status;
    (void)events;
    while (read(n->takers->reports[0], &index, sizeof index) == (ssize_t)sizeof index) {
        struct command_taker *t = &n->takers->list[index];
        t->runs = false;
        /* An earlier taker that is free again lets reading go on, unless the message at the head of
         * the queue, which has been heeded, waits for a thread: `late` starts one. */
        if (n->taking && (t == n->taker || !uv_is_active((uv_handle_t *)&n->late)))
            command_notify_go_on(r);
    }
}

static void command_notify_on_message(uv_poll_t *poll, int status, int events)
{
    struct runner *r = poll->data;
    (void)status;
    (void)events;
    command_notify_read(r);
    command_notify_look(r);
}

/* If this process was the one that did not run, the command's message may have come in time. */
static void command_notify_on_due(uv_timer_t *timer)
{
    struct runner *r = timer->data;
    command_notify_read(r);
    command_notify_look(r);
}

/* ---- what is shown --------------------------------------------------------------------------- */

void command_notify_why(const struct runner *r, char out[COMMAND_NOTIFY_CAP])
{
    const struct notify_policy *p = &r->command_notify.policy;
    char time[DURATION_CAP];
    assert(p->why != NOTIFY_NOT_OVER);
    if (p->why == NOTIFY_NOT_READY)
        snprintf(out, COMMAND_NOTIFY_CAP, "the command was not ready in time (--ready-timeout %s)",
                 clave__duration_format(p->terms.ready_ms, time));
    else if (p->why == NOTIFY_FAILED)
        snprintf(out, COMMAND_NOTIFY_CAP, "the command has sent WATCHDOG=trigger");
    else
        snprintf(out, COMMAND_NOTIFY_CAP,
                 "the command has not sent WATCHDOG=1 in time (--watchdog-sec %s)",
                 clave__duration_format(p->terms.watchdog_ms, time));
}

void command_notify_text(const struct runner *r, char out[COMMAND_NOTIFY_CAP])
{
    const struct command_notify *n = &r->command_notify;
    const struct notify_policy *p = &n->policy;
    const char *what = "";
    if (p->terms.ready && !p->ready)
        what = "not ready yet";
    else if (n->told_stopping)
        what = "stopping";
    snprintf(out, COMMAND_NOTIFY_CAP, "%s%s%s", what, *what && *n->shown ? ": " : "", n->shown);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int command_notify_bind(int fd, const char *name)
{
    int on = 1;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    memcpy(address.sun_path + 1, name + 1, n - 1); /* in place of '@', a byte of 0 */
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) != 0 ||
        bind(fd, (const struct sockaddr *)&address, len) != 0)
        return -errno;
    return 0;
}

static int command_notify_open_takers(struct runner *r)
{
    /* A process runs one command, and a taker may outlive the runner. */
    static struct command_takers of_process;
    struct command_notify *n = &r->command_notify;
    const struct sigaction interrupt = {.sa_handler = command_taker_on_signal};
    struct command_takers *all = &of_process;
    if (pipe2(all->reports, O_CLOEXEC | O_NONBLOCK) != 0)
        return -errno;
    n->takers = all;
    all->socket = n->socket;
    for (size_t i = 0; i < TAKERS_CAP; i++)
        all->list[i].all = all;
    sigaction(TAKER_SIGNAL, &interrupt, NULL);
    int err = uv_poll_init(&r->loop, &n->reports, all->reports[0]);
    return err != 0 ? err : uv_poll_start(&n->reports, UV_READABLE, command_notify_on_reports);
}

int command_notify_open(struct runner *r)
{
    struct command_notify *n = &r->command_notify;
    const char *name = r->plan->command_notify.socket;
    uv_timer_init(&r->loop, &n->due);
    uv_timer_init(&r->loop, &n->pause);
    uv_timer_init(&r->loop, &n->late);
    n->late.timer_cb = command_notify_on_late;
    n->due.data = n->pause.data = n->late.data = n->poll.data = n->reports.data = r;
    n->socket = -1;
    if (!*name)
        return 0;
    n->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int err = n->socket < 0 ? -errno : command_notify_bind(n->socket, name);
    if (err == 0)
        err = command_notify_open_takers(r);
    if (err == 0)
        err = uv_poll_init(&r->loop, &n->poll, n->socket);
    return err != 0 ? err : uv_poll_start(&n->poll, UV_READABLE, command_notify_on_message);
}

void command_notify_run(struct runner *r)
{
    struct command_notify *n = &r->command_notify;
    if (n->socket < 0)
        return;
    clave__notify_policy_begin(&n->policy, &r->plan->command_notify.terms, clave_now());
    n->runs = n->judged = true;
    command_notify_look(r);
}

bool command_notify_is_taking(const struct command_notify *n)
{
    bool any = n->taking;
    for (size_t i = 0; n->takers && i < TAKERS_CAP; i++)
        any |= n->takers->list[i].runs;
    return any;
}

void command_notify_stay(struct runner *r)
{
    struct command_notify *n = &r->command_notify;
    if (n->takers && !n->taking)
        uv_poll_start(&n->poll, UV_READABLE, command_notify_on_message);
}

void command_notify_pass_on(const struct command_notify *n, struct command_notify_passed *out)
{
    *out = (struct command_notify_passed){.policy = n->policy,
                                          .runs = n->runs,
                                          .judged = n->judged,
                                          .told_stopping = n->told_stopping,
                                          .told_stranger = n->told_stranger,
                                          .socket = n->socket};
    memcpy(out->status, n->status, sizeof out->status);
    memcpy(out->shown, n->shown, sizeof out->shown);
}

void command_notify_go_on_with(struct runner *r, const struct command_notify_passed *from)
{
    struct command_notify *n = &r->command_notify;
    if (n->socket < 0 || from->socket < 0)
        return;
    dup3(from->socket, n->socket, O_CLOEXEC); /* in place of one whose name nobody knows */
    close(from->socket);
    n->policy = from->policy;
    n->runs = from->runs;
    n->judged = from->judged;
    n->told_stopping = from->told_stopping;
    n->told_stranger = from->told_stranger;
    memcpy(n->status, from->status, sizeof n->status);
    memcpy(n->shown, from->shown, sizeof n->shown);
    uv_timer_start(&n->due, command_notify_on_due, 0, 0);
    uv_timer_start(&n->pause, command_notify_on_pause_over, 0, 0);
}

void command_notify_excuse(struct runner *r)
{
    r->command_notify.judged = false;
    uv_timer_stop(&r->command_notify.due);
}

void command_notify_end(struct runner *r)
{
    struct command_notify *n = &r->command_notify;
    command_notify_excuse(r);
    uv_timer_stop(&n->pause);
    n->runs = false;
    n->status[0] = n->shown[0] = '\0';
}

/* The socket and the pipe stay open until this process ends: a taker may still use them, and the
 * messages that are left in the queue may have descriptors. */
void command_notify_close(struct runner *r)
{
    struct command_notify *n = &r->command_notify;
    uv_close((uv_handle_t *)&n->due, NULL);
    uv_close((uv_handle_t *)&n->pause, NULL);
    uv_close((uv_handle_t *)&n->late, NULL);
    if (n->socket < 0)
        return;
    uv_close((uv_handle_t *)&n->poll, NULL);
    uv_close((uv_handle_t *)&n->reports, NULL);
}
