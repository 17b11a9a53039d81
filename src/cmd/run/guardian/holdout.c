/* holdout.c - finds out for each descendant whether we may signal it, and reads from /proc what it
 * is. The guardian calls this while the command runs and after each attempt to kill it; the runner
 * calls it once the guardian is dead. */
#include "cmd/run/guardian/holdout.h"

#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cli/participant.h"
#include "cmd/run/guardian/proctree.h"

enum { LINE_CAP = 256 };

struct process_status {
    struct holdout is;
    char state;
    int threads;
    bool kill_pending; /* SIGKILL was sent to it, and is still pending */
    /* An exiting process releases its memory before it closes its files. By then no signal reaches
     * it, but it may still be waiting for a disk. */
    bool has_memory;
};

/* Takes one line of /proc/PID/status: "Name:\tsudo", "State:\tD (disk sleep)",
 * "Uid:\tREAL\tEFFECTIVE\t...", "SigPnd:\t0000000000000100" (pending for the thread), "ShdPnd:"
 * (for the process). */
static void holdout_take_line(struct process_status *s, const char *line)
{
    unsigned uid;
    uint64_t pending;
    if (sscanf(line, "Name:\t%63[^\n]", s->is.name) == 1)
        return;
    s->has_memory |= strncmp(line, "VmSize:", strlen("VmSize:")) == 0;
    if (sscanf(line, "State:\t%c", &s->state) == 1 ||
        sscanf(line, "Threads:\t%d", &s->threads) == 1)
        return;
    if (sscanf(line, "Uid:\t%*u\t%u", &uid) == 1)
        s->is.uid = uid;
    else if (sscanf(line, "SigPnd:\t%" SCNx64, &pending) == 1 ||
             sscanf(line, "ShdPnd:\t%" SCNx64, &pending) == 1)
        s->kill_pending |= pending >> (SIGKILL - 1) & 1;
}

/* false: there is no such process, or it is hidden from us (hidepid). `task` is "", or "/task/TID"
 * for one of its threads. */
static bool holdout_read_status(pid_t pid, const char *task, struct process_status *s)
{
    char path[64], line[LINE_CAP];
    *s = (struct process_status){.is = {.pid = pid, .uid = HOLDOUT_UNKNOWN}};
    snprintf(path, sizeof path, "/proc/%d%s/status", (int)pid, task);
    FILE *f = proc_is_ours() ? fopen(path, "re") : NULL;
    while (f && fgets(line, sizeof line, f))
        holdout_take_line(s, line);
    if (f)
        fclose(f);
    return s->state != '\0';
}

bool holdout_refuses(struct holdout *out, pid_t pid)
{
    struct process_status s;
    if (kill(pid, 0) == 0 || errno != EPERM)
        return false;
    holdout_read_status(pid, "", &s);
    *out = s.is;
    return true;
}

static bool holdout_thread_is_asleep(pid_t pid, const char *task)
{
    struct process_status s;
    if (!holdout_read_status(pid, task, &s) || s.state == 'Z' || s.state == 'X')
        return false;
    return (s.state == 'D' && s.kill_pending) || !s.has_memory;
}

/* True if SIGKILL has reached the process, but a thread of it has not ended, and no further signal
 * changes that. The first thread may have ended before the others. */
static bool holdout_is_asleep(const struct process_status *s)
{
    char path[64], task[32];
    bool ends = s->kill_pending || s->state == 'Z' || !s->has_memory;
    bool asleep = false;
    snprintf(path, sizeof path, "/proc/%d/task", (int)s->is.pid);
    DIR *dir = ends ? opendir(path) : NULL;
    struct dirent *entry;
    while (!asleep && dir && (entry = readdir(dir))) {
        snprintf(task, sizeof task, "/task/%.20s", entry->d_name);
        asleep =
            isdigit((unsigned char)entry->d_name[0]) && holdout_thread_is_asleep(s->is.pid, task);
    }
    if (dir)
        closedir(dir);
    return asleep;
}

struct holdout_search {
    struct holdouts *out;
    const struct cgroup *cgroup;
};

static void holdout_visit(void *arg, pid_t pid)
{
    struct holdout_search *s = arg;
    struct process_status p;
    bool refuses = kill(pid, 0) != 0 && errno == EPERM;
    bool shown = holdout_read_status(pid, "", &p);
    if (shown ? proc_state_is_dead(p.state, p.threads) : !refuses)
        return; /* dead */
    p.is.asleep = shown && !refuses && holdout_is_asleep(&p);
    if ((!refuses && !p.is.asleep) || (refuses && cgroup_has(s->cgroup, pid)))
        return;
    if (s->out->n++ == 0)
        s->out->first = p.is;
}

void holdout_look(struct holdouts *out, const struct cgroup *c)
{
    struct holdout_search s = {.out = out, .cgroup = c};
    *out = (struct holdouts){.n = 0};
    proctree_each(holdout_visit, &s);
}

const char *holdout_user(const struct holdout *h, char out[HOLDOUT_NAME_CAP])
{
    snprintf(out, HOLDOUT_NAME_CAP, "%" PRId64, h->uid);
    if (h->uid == HOLDOUT_UNKNOWN)
        return "unknown";
    return h->uid == 0 ? "root" : out;
}

const char *holdout_text(const struct holdout *h, char out[HOLDOUT_TEXT_CAP])
{
    assert(h->pid > 0);
    char user[HOLDOUT_NAME_CAP], name[HOLDOUT_NAME_CAP];
    const char *printable = participant_text_printable(h->name, name, sizeof name);
    if (h->uid == HOLDOUT_UNKNOWN)
        snprintf(out, HOLDOUT_TEXT_CAP, "process %d of another user", (int)h->pid);
    else
        snprintf(out, HOLDOUT_TEXT_CAP, "process %d (%s) of user %s", (int)h->pid, printable,
                 holdout_user(h, user));
    return out;
}
