/* proctree.c - reads /proc to find and signal every descendant of this process. The guardian calls
 * it, and so does the runner if the guardian dies.
 *
 * Invariants: a process is signalled only while it is known to descend from us, and reading about a
 * process does not block on what that process waits for. The exception is the command line, which
 * is read only of detached descendants. */
#include "cmd/run/guardian/proctree.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- one process ----------------------------------------------------------------------------- */

bool proc_is_ours(void)
{
    char number[16];
    ssize_t n = readlink("/proc/self", number, sizeof number - 1);
    if (n <= 0)
        return false;
    number[n] = '\0';
    return atoi(number) == (int)getpid();
}

bool proc_state_is_dead(char state, int threads)
{
    return state == 'X' || (state == 'Z' && threads <= 1);
}

/* Reads /proc/PID/status up to the line with the threads. What it needs is in /proc/PID/stat too,
 * on one line; but the kernel lets readers of that file wait while the process is within execve(2),
 * which closes files: one process anywhere on the machine that waits for a disk in there would keep
 * us from ending the command. */
bool proc_read(pid_t pid, struct proc *out)
{
    char path[64], line[256], state = '\0';
    int threads = 0;
    bool has_parent = false;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = proc_is_ours() ? fopen(path, "re") : NULL;
    while (f && threads == 0 && fgets(line, sizeof line, f)) {
        has_parent |= sscanf(line, "PPid:\t%d", &out->parent) == 1;
        if (sscanf(line, "State:\t%c", &state) != 1)
            (void)sscanf(line, "Threads:\t%d", &threads);
    }
    if (f)
        fclose(f);
    out->group = getpgid(pid);
    out->session = getsid(pid);
    out->dead = proc_state_is_dead(state, threads);
    return has_parent && threads > 0;
}

/* Parses "PID (NAME) STATE PPID ...". The name may contain anything, parentheses too. */
unsigned long long proc_start_time(pid_t pid)
{
    char path[64], line[1024];
    unsigned long long start = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = proc_is_ours() ? fopen(path, "re") : NULL;
    size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
    if (f)
        fclose(f);
    line[n] = '\0';
    const char *rest = strrchr(line, ')');
    if (rest && sscanf(rest + 1,
                       " %*c %*d %*d %*d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
                       " %*d %*s %llu",
                       &start) != 1)
        start = 0;
    return start;
}

bool proc_is_below(pid_t pid, pid_t ancestor)
{
    enum { ROUNDS = 3, DEPTH = 1000 };
    struct proc its = {.parent = pid};
    for (int round = 0; round < ROUNDS; round++, its.parent = pid) {
        for (int i = 0; i < DEPTH && its.parent > 1 && proc_read(its.parent, &its); i++)
            if (its.parent == ancestor)
                return true;
    }
    return false;
}

/* ---- all descendants ------------------------------------------------------------------------- */

/* How often we look again before killing what we know of. Processes that were started after the
 * last look are found by the next call. */
enum { STOP_ROUNDS = 20, CHILD_ROUNDS = 100, CHILDREN_CAP = 4096 };

struct process {
    pid_t pid;
    struct proc is;
    bool ours;
    bool server; /* the server of "local:", which is left alone */
};

struct census {
    struct process *list;
    size_t n, cap;
};

static bool proctree_read_process(pid_t pid, struct process *p)
{
    *p = (struct process){.pid = pid};
    return proc_read(pid, &p->is);
}

static bool proctree_add(struct census *c, const struct process *p)
{
    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 256;
        struct process *list = realloc(c->list, cap * sizeof *list);
        if (!list)
            return false;
        c->list = list;
        c->cap = cap;
    }
    c->list[c->n++] = *p;
    return true;
}

static int proctree_by_pid(const void *a, const void *b)
{
    const struct process *p = a, *q = b;
    return (p->pid > q->pid) - (p->pid < q->pid);
}

static struct process *proctree_find(const struct census *c, pid_t pid)
{
    const struct process key = {.pid = pid};
    return c->n > 0 ? bsearch(&key, c->list, c->n, sizeof key, proctree_by_pid) : NULL;
}

/* ---- the local server ------------------------------------------------------------------------ */

static bool proctree_runs_our_program(pid_t pid)
{
    char path[64];
    struct stat its, own;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    return stat(path, &its) == 0 && stat("/proc/self/exe", &own) == 0 && its.st_dev == own.st_dev &&
           its.st_ino == own.st_ino;
}

/* True if the process has the arguments with which local_start.c starts the server. */
static bool proctree_has_words_of_server(pid_t pid)
{
    static const char verb[] = "\0serve\0--local";
    char path[64], words[256];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(words, 1, sizeof words, f) : 0;
    if (f)
        fclose(f);
    const char *end = n > 0 ? memchr(words, '\0', n) : NULL;
    return end && n - (size_t)(end - words) >= sizeof verb && memcmp(end, verb, sizeof verb) == 0;
}

/* True if this process is the server that a client started for the connect string "local:". A
 * client starts it for all clients of the machine, in a session whose leader ends at once; so the
 * server is the child of a sub-reaper: ourselves, or another guardian. A `clave serve --local` that
 * the command runs like any other program looks different, and belongs to the command. The
 * arguments alone would prove nothing, since any program can choose its own. */
static bool proctree_is_local_server(const struct census *c, const struct process *p)
{
    const struct process *leader = proctree_find(c, p->is.session);
    bool detached = p->is.session != getsid(0) && (!leader || leader->is.dead);
    return detached && proctree_has_words_of_server(p->pid) &&
           proctree_runs_our_program(p->is.parent) && proctree_runs_our_program(p->pid);
}

/* ---- the census ------------------------------------------------------------------------------ */

static bool proctree_list_processes(struct census *c)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    bool fine = dir != NULL;
    c->n = 0;
    while (fine && (entry = readdir(dir))) {
        struct process p;
        if (!isdigit((unsigned char)entry->d_name[0]) ||
            !proctree_read_process((pid_t)atoi(entry->d_name), &p))
            continue;
        fine = proctree_add(c, &p);
    }
    if (dir)
        closedir(dir);
    if (fine && c->n > 0)
        qsort(c->list, c->n, sizeof *c->list, proctree_by_pid);
    return fine && c->n > 0;
}

/* True if the process is a descendant of ours. The child of a local server counts too: the server
 * starts no processes itself, so somebody else has. */
static bool proctree_is_ours(const struct census *c, const struct process *p)
{
    const struct process *parent = proctree_find(c, p->is.parent);
    return p->is.parent == getpid() || (parent && (parent->ours || parent->server));
}

static void proctree_mark(struct census *c)
{
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < c->n; i++) {
            struct process *p = &c->list[i];
            if (p->ours || p->server || !proctree_is_ours(c, p))
                continue;
            p->server = proctree_is_local_server(c, p);
            p->ours = !p->server;
            again = true;
        }
    }
}

static bool proctree_census_take(struct census *c)
{
    bool known = proctree_list_processes(c);
    if (known)
        proctree_mark(c);
    return known;
}

/* ---- signals --------------------------------------------------------------------------------- */

/* A pid cannot be reused while we hold its pidfd open. If that process descends from us, it has to
 * get the signal, whether it is the one that was counted or not. */
static void proctree_signal_process(const struct process *p, int sig)
{
    int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    bool kernel_lacks_it = fd < 0 && errno != ESRCH;
    if (fd < 0 && !kernel_lacks_it)
        return;
    if (proc_is_below(p->pid, getpid())) {
        if (fd >= 0)
            (void)syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
        else
            kill(p->pid, sig);
    }
    if (fd >= 0)
        close(fd);
}

/* Returns how many are alive. Skips the processes that are also in the census `but` (NULL: skips
 * none). */
static int proctree_signal_all(const struct census *c, const struct census *but, int sig,
                               pid_t group)
{
    int alive = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct process *p = &c->list[i];
        const struct process *before = but ? proctree_find(but, p->pid) : NULL;
        if (!p->ours || p->is.dead || (before && before->ours))
            continue;
        alive++;
        if (sig != 0 && (group <= 0 || p->is.group != group))
            proctree_signal_process(p, sig);
    }
    return alive;
}

/* ---- children -------------------------------------------------------------------------------- */

/* Our children, including dead ones, at one moment. This list is reliable: no child leaves it
 * before we wait for it, new ones are added at the end, and the kernel continues reading where it
 * stopped. A census of all processes is never that reliable: a process that starts the next one and
 * ends, over and over, can always be where we are not looking. */
struct children {
    pid_t list[CHILDREN_CAP];
    size_t n;
    bool known; /* false: the kernel does not list children, or there are too many */
};

static bool proctree_add_children_of_task(struct children *c, pid_t pid, const char *task)
{
    char path[64];
    int child;
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/children", (int)pid, task);
    FILE *f = fopen(path, "re");
    bool fine = f != NULL;
    while (fine && fscanf(f, "%d", &child) == 1) {
        fine = c->n < CHILDREN_CAP;
        if (fine)
            c->list[c->n++] = child;
    }
    if (f)
        fclose(f);
    return fine;
}

/* Appends the children of `pid`. false: they cannot be read, or there are too many. */
static bool proctree_add_children(struct children *c, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    struct dirent *entry;
    bool fine = dir != NULL;
    while (dir && (entry = readdir(dir)))
        if (isdigit((unsigned char)entry->d_name[0]))
            fine = proctree_add_children_of_task(c, pid, entry->d_name) && fine;
    if (dir)
        closedir(dir);
    return fine;
}

static void proctree_read_children(struct children *c)
{
    c->n = 0;
    c->known = proc_is_ours() && proctree_add_children(c, getpid());
}

static bool proctree_same_children(const struct children *a, const struct children *b)
{
    return a->known && b->known && a->n == b->n &&
           memcmp(a->list, b->list, a->n * sizeof *a->list) == 0;
}

/* Works without /proc, which may be mounted so that it hides other users' processes (hidepid). */
static bool proctree_child_is_alive(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

/* True if none of our children is alive, except for local servers. */
static bool proctree_are_done(const struct children *c, const struct census *all)
{
    for (size_t i = 0; i < c->n; i++) {
        struct process p;
        if (proctree_read_process(c->list[i], &p) ? !p.is.dead && !proctree_is_local_server(all, &p)
                                                  : proctree_child_is_alive(c->list[i]))
            return false;
    }
    return true;
}

/* Stops the child before looking at it: one that lives only to start the next one would be gone by
 * then. A child's pid cannot be reused before we have waited for it. */
static void proctree_stop_child(pid_t pid, const struct census *all)
{
    struct process p;
    kill(pid, SIGSTOP);
    if (proctree_read_process(pid, &p) && proctree_is_local_server(all, &p))
        kill(pid, SIGCONT);
}

/* Stops our children until no new one appears. */
static void proctree_stop_children(struct children *now, const struct census *all)
{
    size_t done = 0;
    for (int i = 0; i < CHILD_ROUNDS; i++) {
        proctree_read_children(now);
        if (!now->known || now->n == done)
            return;
        for (; done < now->n; done++)
            proctree_stop_child(now->list[done], all);
    }
}

bool proctree_is_gone(void)
{
    static struct children before, now;
    struct census c = {0};
    proctree_read_children(&before);
    bool known = proctree_list_processes(&c);
    bool gone = false;
    if (known && before.known) {
        gone = proctree_are_done(&before, &c);
        proctree_read_children(&now);
        gone = gone && proctree_same_children(&before, &now);
    } else if (known) {
        proctree_mark(&c);
        gone = proctree_signal_all(&c, NULL, 0, 0) == 0;
    }
    free(c.list);
    return gone;
}

/* Signals those of our children that /proc does not show (hidepid, if they are not dumpable). A
 * child's pid cannot be reused before we have waited for it. Returns how many are alive. */
static int proctree_signal_hidden(const struct children *c, int sig)
{
    int alive = 0;
    for (size_t i = 0; c->known && i < c->n; i++) {
        struct process p;
        if (proctree_read_process(c->list[i], &p) || !proctree_child_is_alive(c->list[i]))
            continue;
        alive++;
        kill(c->list[i], sig);
    }
    return alive;
}

int proctree_signal(int sig, pid_t group)
{
    static struct children children;
    struct census c = {0};
    if (group > 0 && sig != 0)
        kill(-group, sig);
    proctree_read_children(&children);
    int alive = proctree_census_take(&c) ? proctree_signal_all(&c, NULL, sig, group) +
                                               proctree_signal_hidden(&children, sig)
                                         : -1;
    free(c.list);
    return alive;
}

int proctree_kill(pid_t group)
{
    static struct children children;
    struct census now = {0}, before = {0};
    bool known = true;
    int fresh = 1, alive = -1;
    if (group > 0)
        kill(-group, SIGSTOP);
    for (int i = 0; i < STOP_ROUNDS && known && fresh > 0; i++) {
        const struct census former = before;
        before = now;
        now = former;
        proctree_stop_children(&children, &before);
        known = proctree_census_take(&now);
        fresh = known ? proctree_signal_all(&now, &before, SIGSTOP, 0) : 0;
    }
    if (group > 0)
        kill(-group, SIGKILL);
    if (known)
        alive = proctree_signal_all(&now, NULL, SIGKILL, group) +
                proctree_signal_hidden(&children, SIGKILL);
    free(now.list);
    free(before.list);
    return alive;
}

void proctree_each(void (*visit)(void *arg, pid_t pid), void *arg)
{
    static struct children all;
    struct census c = {0};
    proctree_read_children(&all);
    for (size_t i = 0; all.known && i < all.n; i++) {
        (void)proctree_add_children(
            &all, all.list[i]); /* fails for a process that has ended, which has no children */
        visit(arg, all.list[i]);
    }
    bool counted = !all.known && proctree_census_take(&c);
    for (size_t i = 0; counted && i < c.n; i++)
        if (c.list[i].ours)
            visit(arg, c.list[i].pid);
    free(c.list);
}

void proctree_each_server(void (*visit)(const void *arg, pid_t server), const void *arg)
{
    struct census c = {0};
    bool known = proctree_census_take(&c);
    for (size_t i = 0; known && i < c.n; i++)
        if (c.list[i].server && !c.list[i].is.dead)
            visit(arg, c.list[i].pid);
    free(c.list);
}
