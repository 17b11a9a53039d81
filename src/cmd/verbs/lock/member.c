/* member.c - `clave member`: keeps a node below a group's path while a command runs. `clave
 * members` lists those nodes. Both use the layout of Curator's GroupMember: PATH/ID, ephemeral.
 *
 * The command is not ended when the session is lost: being seen is no right to be alone, and the
 * node is created again. So there is no guardian here. What must stay true: the command is started
 * when the node is there, the node is deleted when the command has ended, and this process ends as
 * the command did.
 *
 * With --health the node is there while the command is known to be healthy. A check usually asks
 * the command, so that one runs before its node is there. Neither the session nor the command
 * depends on the check, unless --on-unhealthy says that the command is ended. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "clave/cache.h"
#include "clave/uv.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "cmd/cli/participant.h"
#include "cmd/run/hook.h"
#include "cmd/verbs/lock/member.h"
#include "runtime/thread_start.h"

enum { MEMBER_ID = RUN_FLAG_OWN, MEMBER_DATA, MEMBER_REPLACE };
enum { MEMBERS_WATCH = FLAG_LONG };
enum { CLOSE_MS = 5000, SET_MS = 1000, KILL_MS = 10000 };
enum { LOOK_MS = 200, GATHER_MS = 50, COLUMN_CAP = 256 };

/* ---- the node -------------------------------------------------------------------------------- */

/* Called on the thread of the client's loop. */
static void member_on_event(clave_async_persistent_node *n, const clave_persistent_node_event *ev,
                            void *arg)
{
    struct member *m = arg;
    (void)n;
    if (ev->type == CLAVE_PERSISTENT_NODE_PRESENT)
        diag_note(m->o, "%s: present", ev->path);
    else if (ev->type == CLAVE_PERSISTENT_NODE_ABSENT)
        diag(m->o, "%s: absent: %s; it is created again", ev->path, clave_strerror(ev->err));
    else if (ev->type == CLAVE_PERSISTENT_NODE_FAILED && m->started)
        diag(m->o, "%s: refused: %s", ev->path, clave_strerror(ev->err));
    else if (ev->type == CLAVE_PERSISTENT_NODE_FAILED)
        diag_note(m->o, "%s: refused: %s", ev->path, clave_strerror(ev->err));
    else if (ev->owner != 0)
        diag(m->o, "%s: session 0x%llx has %s of this id; waiting until it is gone", ev->path,
             (unsigned long long)ev->owner, m->what);
    else
        diag(m->o, "%s: a node that is no member is in the way; waiting until it is removed",
             ev->path);
}

/* Begins to keep the node. It takes another's place only when this process has just come. */
static clave_err member_appear(struct member *m)
{
    const char *data = m->disabled ? m->disabled : m->data; /* until it is known to be healthy */
    clave_persistent_node_options no = CLAVE_PERSISTENT_NODE_OPTIONS_INIT;
    no.kind = m->kind;
    no.replace = m->replace && m->told == HEALTH_UNTRIED;
    no.data = data;
    no.len = strlen(data);
    no.event_cb = member_on_event;
    no.event_arg = m;
    return clave_persistent_node_new(&m->node, m->session, m->path, &no);
}

static void member_show(struct member *m, bool healthy)
{
    clave_err err = CLAVE_OK;
    if (m->disabled) { /* if this is not answered in time, the node gets it later */
        const char *data = healthy ? m->data : m->disabled;
        err = clave_persistent_node_set(m->node, data, strlen(data), SET_MS);
    } else if (healthy && !m->node) {
        err = member_appear(m);
    } else if (!healthy) {
        clave_persistent_node_free(m->node);
        m->node = NULL;
    }
    if (err != CLAVE_OK && err != CLAVE_ETIMEDOUT)
        diag(m->o, "%s: %s", m->path, clave_strerror(err));
}

/* ---- its health ------------------------------------------------------------------------------ */

static void member_end_command(struct member *m)
{
    diag(m->o, "%s: ending the command: %s", m->path, m->check.why);
    m->ending = true;
    kill(m->pid, SIGTERM);
    uv_timer_start(&m->kill, m->kill.timer_cb, KILL_MS, 0);
}

static void member_on_kill(uv_timer_t *timer)
{
    struct member *m = timer->data;
    kill(m->pid, SIGKILL);
}

static void member_on_judged(void *arg)
{
    struct member *m = arg;
    const struct health_policy *p = &m->check.policy;
    const char *gone = m->disabled ? "disabled" : "not there";
    bool too_often = p->phase == HEALTH_UNFIT && p->failures >= p->terms.fails;
    if (p->phase != m->told && p->phase == HEALTH_FIT) {
        member_show(m, true);
        diag(m->o, "%s: healthy: its node is %s", m->path, m->disabled ? "enabled" : "there");
    } else if (p->phase != m->told && m->told == HEALTH_UNTRIED) {
        diag(m->o, "%s: not healthy yet, its node is %s: %s", m->path, gone, m->check.why);
    } else if (p->phase != m->told) {
        member_show(m, false);
        diag(m->o, "%s: unhealthy, its node is %s: %s", m->path, gone, m->check.why);
    }
    m->told = p->phase;
    if (m->on_unhealthy == ON_UNHEALTHY_END && too_often && !m->ending &&
        clave_now() >= m->grace_until)
        member_end_command(m);
}

static pid_t member_start_check(void *arg, const char *command, int output)
{
    const struct member *m = arg;
    const struct hook_facts facts = {.event = m->told == HEALTH_FIT ? "healthy" : "unhealthy",
                                     .path = m->path,
                                     .connect = m->o->connect ? m->o->connect : "local:"};
    return hook_start_check(&facts, command, output);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* In the child: as the command should find the process. Says in the pipe why it could not start. */
static void member_exec(const struct member *m, int failure)
{
    char *const *argv = m->o->argv + 1;
    inheritance_restore(&m->o->inherited);
    execvp(argv[0], argv);
    int err = errno;
    (void)!write(failure, &err, sizeof err);
    _exit(EXIT_NOEXEC);
}

/* Returns an exit code; EXIT_OK: the command runs. */
static int member_start(struct member *m)
{
    int ends[2], err = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return diag_err(m->o, m->path, CLAVE_EFILES, NULL);
    m->pid = fork();
    if (m->pid == 0)
        member_exec(m, ends[1]);
    if (m->pid < 0)
        err = errno;
    close(ends[1]);
    if (m->pid > 0 && read(ends[0], &err, sizeof err) == sizeof err) /* else it was executed */
        (void)waitpid(m->pid, NULL, 0);
    close(ends[0]);
    if (err == 0)
        return EXIT_OK;
    m->pid = 0;
    return diag_end(m->o, m->o->argv[1], err == ENOENT ? EXIT_NOTFOUND : EXIT_NOEXEC,
                    "cannot run it: %s", strerror(err));
}

/* Takes what has been signalled, and passes it on to the command unless the terminal has sent it to
 * both. Returns 0, or the signal that ends this process since there is no command. */
static int member_take_signal(struct member *m, bool *child_ended)
{
    struct signalfd_siginfo info;
    if (read(m->signals, &info, sizeof info) != sizeof info)
        return 0;
    int sig = (int)info.ssi_signo;
    *child_ended = sig == SIGCHLD;
    if (sig != SIGCHLD && m->pid > 0 && info.ssi_code <= 0)
        kill(m->pid, sig);
    return sig != SIGCHLD && m->pid == 0 ? sig : 0;
}

/* Waits until the node is there. Returns an exit code. */
static int member_await(struct member *m)
{
    struct pollfd p = {.fd = m->signals, .events = POLLIN};
    for (;;) {
        bool child_ended;
        clave_err err = clave_persistent_node_await(m->node, LOOK_MS);
        if (err != CLAVE_ETIMEDOUT && err != CLAVE_EBUSY)
            return err == CLAVE_OK ? EXIT_OK : diag_err(m->o, m->path, err, m->session);
        int sig = poll(&p, 1, 0) == 1 ? member_take_signal(m, &child_ended) : 0;
        if (sig != 0)
            return 128 + sig;
    }
}

static void member_on_signal(uv_poll_t *poll, int status, int events)
{
    struct member *m = poll->data;
    bool child_ended = false;
    (void)status;
    (void)events;
    (void)member_take_signal(m, &child_ended);
    if (!child_ended)
        return;
    health_reap(&m->check);
    if (waitpid(m->pid, &m->status, WNOHANG) != m->pid)
        return;
    /* Timers that are due may still run in this turn, and the number may be another process's. */
    m->pid = 0;
    uv_timer_stop(&m->kill);
    health_stop(&m->check);
    uv_stop(&m->loop);
}

/* Returns 0, or an error of libuv. */
static int member_open_loop(struct member *m)
{
    static const struct health_owner owner = {member_start_check, member_on_judged};
    int err = -clave__loop_init(&m->loop);
    if (err != 0)
        return err;
    uv_timer_init(&m->loop, &m->kill);
    m->kill.timer_cb = member_on_kill;
    m->kill.data = m->signalled.data = m;
    err = health_open(&m->check, &m->health, &m->loop, &owner, m);
    if (err == 0)
        err = uv_poll_init(&m->loop, &m->signalled, m->signals);
    return err != 0 ? err : uv_poll_start(&m->signalled, UV_READABLE, member_on_signal);
}

/* Runs the command, and waits for its end. Returns its exit code, or another one after a message.
 */
static int member_run_command(struct member *m)
{
    int err = member_open_loop(m); /* if this fails, this process ends */
    if (err != 0)
        return diag_end(m->o, m->path, EXIT_INTERNAL, "cannot start: %s", uv_strerror(err));
    int code = member_start(m);
    if (code == EXIT_OK) {
        m->grace_until = clave_now() + m->health.terms.grace_ms;
        health_begin(&m->check);
        uv_run(&m->loop, UV_RUN_DEFAULT);
        code = WIFSIGNALED(m->status) ? 128 + WTERMSIG(m->status) : WEXITSTATUS(m->status);
    }
    health_close(&m->check);
    uv_close((uv_handle_t *)&m->kill, NULL);
    uv_close((uv_handle_t *)&m->signalled, NULL);
    uv_run(&m->loop, UV_RUN_DEFAULT);
    uv_loop_close(&m->loop);
    return m->ending ? EXIT_UNHEALTHY : code;
}

static int member_keep(struct member *m)
{
    bool comes_later = m->health.command && !m->disabled;
    clave_err err = comes_later ? CLAVE_OK : member_appear(m);
    if (err != CLAVE_OK)
        return diag_err(m->o, m->path, err, m->session);
    int code = comes_later ? EXIT_OK : member_await(m);
    m->started = code == EXIT_OK;
    if (code == EXIT_OK)
        code = member_run_command(m);
    if (m->node && !m->stays)
        err = clave_persistent_node_close(m->node, CLOSE_MS);
    if (err != CLAVE_OK)
        diag_note(m->o, "%s: it goes with the session: %s", m->path, clave_strerror(err));
    clave_persistent_node_free(m->node);
    return code;
}

bool member_take_flag(struct member *m, int id)
{
    static const char *const words[] = {[ON_UNHEALTHY_REMOVE] = "remove",
                                        [ON_UNHEALTHY_END] = "end",
                                        [ON_UNHEALTHY_DISABLE] = "disable",
                                        NULL};
    static const char *const of_members[] = {"remove", "end", NULL};
    int n;
    if (id != RUN_FLAG_ON_UNHEALTHY)
        return health_plan_take_flag(&m->health, m->o, id);
    if (!options_word(m->o, "on-unhealthy", m->o->verb->shares == RUN_MEMBER ? of_members : words,
                      &n))
        return false;
    m->on_unhealthy = (enum on_unhealthy)n;
    return true;
}

int member_run(struct member *m)
{
    if (m->on_unhealthy != ON_UNHEALTHY_REMOVE && !m->health.command)
        return diag_usage(m->o, "--on-unhealthy needs --health SHELL-COMMAND");
    int code = health_plan_check(&m->health, m->o, ON_LOST_TERM);
    if (code != EXIT_OK)
        return code;
    m->signals = inheritance_open_signals(SIGCHLD); /* the loop's thread blocks all signals */
    if (m->signals < 0)
        return diag_err(m->o, m->path, CLAVE_EFILES, NULL);
    code = connect_open(m->o, NULL, &m->session);
    if (code == EXIT_OK) {
        code = member_keep(m);
        connect_close(m->session);
    }
    close(m->signals);
    return code;
}

const char *member_default_id(char out[MEMBER_ID_CAP])
{
    char host[256] = "";
    (void)gethostname(host, sizeof host - 1);
    snprintf(out, MEMBER_ID_CAP, "%s-%ld", host, (long)getpid());
    return out;
}

static int run_member(struct options *o, int argc, char **argv)
{
    struct member m = MEMBER_INIT;
    char id[MEMBER_ID_CAP];
    const char *name = member_default_id(id);
    int flag;
    m.o = o;
    m.data = "";
    m.what = "a member";
    while ((flag = options_next(o, argc, argv)) > 0) {
        if (flag == MEMBER_ID)
            name = o->value;
        else if (flag == MEMBER_DATA)
            m.data = o->value;
        else if (flag == MEMBER_REPLACE)
            m.replace = true;
        else if (!member_take_flag(&m, flag))
            return EXIT_USAGE;
    }
    if (flag == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 2, -1))
        return EXIT_USAGE;
    if (strchr(name, '/'))
        return diag_usage(o, "--id '%s': it is the name of a node, and has no '/'", name);
    if (!connect_path_ok(o, o->argv[0]))
        return EXIT_PATH;
    char *path = clave__path_child(NULL, o->argv[0], name);
    if (!path)
        return diag_err(o, o->argv[0], CLAVE_ENOMEM, NULL);
    m.path = path;
    int code = connect_path_ok(o, path) ? member_run(&m) : EXIT_PATH;
    free(path);
    return code;
}

static const struct flag member_flags[] = {
    {MEMBER_ID, "id", "ID", "the member's name in the group [HOST-PID]"},
    {MEMBER_DATA, "data", "DATA", "what its node says []"},
    {MEMBER_REPLACE, "replace", NULL, "take the place of a member of this id"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_member = {
    .name = "member",
    .args = "PATH -- COMMAND...",
    .summary = "Run a command, and be a member of a group meanwhile",
    .text =
        "The node PATH/ID is there while the command runs, over every loss of the session. The\n"
        "command starts once the node is there; a member of the same id is waited for, or loses\n"
        "its place with --replace. With --health the command starts at once, and the node is\n"
        "there only while the check succeeds; the command runs on. The exit code is the\n"
        "command's; 80: it was unhealthy, and --on-unhealthy is end.\n",
    .flags = member_flags,
    .more_flags = run_flags_of,
    .shares = RUN_MEMBER,
    .max_args = 1,
    .runs_command = true,
    .run = run_member,
};

/* ---- the list -------------------------------------------------------------------------------- */

struct members {
    struct options *o;
    const char *path;
    FILE *out;
    size_t shown;
};

/* On the loop's thread, which never waits for whoever reads the output. */
static bool members_show(const clave_cache_node *n, void *arg)
{
    struct members *l = arg;
    const char *id = clave__path_name(n->path);
    char name[COLUMN_CAP], data[COLUMN_CAP], text[COLUMN_CAP], age[AGE_CAP];
    if (!clave__path_is_child(n->path, l->path, id))
        return true;
    l->shown++;
    if (l->o->json) {
        struct json j;
        json_begin(&j, l->out);
        clave__json_string(&j, "id", id);
        json_bytes(&j, "data", n->data, n->len);
        json_stat(&j, "stat", &n->stat);
        json_end(&j);
        return true;
    }
    snprintf(data, sizeof data, "%.*s", n->data ? (int)n->len : 0,
             n->data ? (const char *)n->data : "");
    fprintf(l->out, "%s %s %s\n", participant_text_column(id, false, name, sizeof name),
            participant_text_age(&n->stat, age),
            participant_text_column(data, true, text, sizeof text));
    return true;
}

static int members_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Prints the lines sorted, by id: each begins with it, also as JSON. */
static clave_err members_print_sorted(char *text, size_t n)
{
    char **lines = calloc(n + 1, sizeof *lines);
    size_t i = 0;
    if (!lines)
        return CLAVE_ENOMEM;
    for (char *rest = text, *line; i < n && (line = strsep(&rest, "\n"));)
        lines[i++] = line;
    qsort(lines, i, sizeof *lines, members_compare);
    for (size_t k = 0; k < i; k++)
        puts(lines[k]);
    free(lines);
    return CLAVE_OK;
}

static int members_print(struct members *l, clave_cache *cache, clave_client *c)
{
    char *text = NULL;
    size_t len = 0;
    l->shown = 0;
    l->out = open_memstream(&text, &len);
    clave_err err = l->out ? clave_cache_walk(cache, l->path, members_show, l) : CLAVE_ENOMEM;
    if (l->out && (ferror(l->out) | fclose(l->out)) != 0)
        err = CLAVE_ENOMEM;
    if (err == CLAVE_OK)
        err = members_print_sorted(text, l->shown);
    free(text);
    if (err != CLAVE_OK && err != CLAVE_ENONODE) /* a group without members needs no node */
        return diag_err(l->o, l->path, err, c);
    if (l->shown == 0)
        diag_note(l->o, "%s: no members", l->path);
    return finish_stdout(l->o);
}

static void members_on_event(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    (void)cache;
    if (ev->type != CLAVE_CACHE_INITIALIZED) /* which may come after the wait for it */
        (void)!write(*(int *)arg, &(uint64_t){1}, sizeof(uint64_t));
}

static int members_follow(struct members *l, clave_cache *cache, clave_client *c, int changed)
{
    struct pollfd p = {.fd = changed, .events = POLLIN};
    for (;;) {
        uint64_t n;
        int code = members_print(l, cache, c);
        if (code != EXIT_OK)
            return code;
        while (poll(&p, 1, -1) < 0 && errno == EINTR)
            continue;
        poll(NULL, 0, GATHER_MS); /* for those that come with it */
        (void)!read(changed, &n, sizeof n);
        clave_err err = clave_cache_wait(cache, -1); /* until they are known again */
        if (err != CLAVE_OK)
            return diag_err(l->o, l->path, err, c);
        if (!l->o->json)
            putchar('\n');
    }
}

static int members_list(struct members *l, clave_client *c, bool watch)
{
    clave_cache *cache;
    int changed = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (changed < 0)
        return diag_err(l->o, l->path, CLAVE_EFILES, NULL);
    clave_err err = clave_sync(c, "/", l->o->timeout_ms); /* as current as the leader */
    if (err == CLAVE_OK)
        err = clave_cache_new(&cache, c, l->path, NULL, members_on_event, &changed);
    int code = err == CLAVE_OK ? EXIT_OK : diag_err(l->o, l->path, err, c);
    if (err == CLAVE_OK) {
        uint64_t n;
        err = clave_cache_wait(cache, l->o->timeout_ms);
        (void)!read(changed, &n, sizeof n); /* what was there already is no change */
        if (err != CLAVE_OK)
            code = diag_err(l->o, l->path, err, c);
        else
            code = watch ? members_follow(l, cache, c, changed) : members_print(l, cache, c);
        clave_cache_free(cache);
    }
    close(changed);
    return code;
}

static int run_members(struct options *o, int argc, char **argv)
{
    struct members l = {.o = o};
    clave_client *c;
    bool watch = false;
    int id;
    while ((id = options_next(o, argc, argv)) > 0)
        watch |= id == MEMBERS_WATCH;
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 1, 1))
        return EXIT_USAGE;
    l.path = o->argv[0];
    if (!connect_path_ok(o, l.path))
        return EXIT_PATH;
    int code = connect_open(o, NULL, &c);
    if (code == EXIT_OK) {
        code = members_list(&l, c, watch);
        connect_close(c);
    }
    return code;
}

static const struct flag members_flags[] = {
    {MEMBERS_WATCH, "watch", NULL, "print them again after every change"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_members = {
    .name = "members",
    .args = "PATH",
    .summary = "List the members of a group",
    .text =
        "One member a line: its id, for how long it has been there, and what its node says. Those\n"
        "of 'clave member' and of Curator's GroupMember.\n",
    .flags = members_flags,
    .max_args = -1,
    .run = run_members,
};
