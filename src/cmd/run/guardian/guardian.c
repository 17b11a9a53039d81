/* guardian.c - the runner's side of the guardian: its start, its orders, its reports. Called by
 * runner.c and child.c. Invariant: no call waits for a guardian that does not read. */
#include "cmd/run/guardian/guardian.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cli/diag.h"
#include "cmd/run/guardian/guardian_process.h"

static int guardian_cannot_start(const struct options *o)
{
    return diag_end(o, NULL, EXIT_INTERNAL, "cannot start the guardian: %s", strerror(errno));
}

int guardian_start(struct guardian *g, const struct guardian_plan *plan)
{
    int ends[2], deadline_page_fd;
    *g = (struct guardian){.socket = -1};
    if (!deadline_page_new(&g->page, &deadline_page_fd))
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
                                         .cgroup = g->cgroup};
        close(ends[0]);
        child.socket = ends[1];
        guardian_process_run(&child);
    }
    int code = pid < 0 ? guardian_cannot_start(plan->o) : EXIT_OK;
    close(ends[1]);
    close(deadline_page_fd);
    g->pid = pid > 0 ? pid : 0;
    g->socket = ends[0];
    return code;
}

/* Never waits: a guardian that does not read is stopped, and then orders would come too late
 * anyway. */
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

void guardian_stop(struct guardian *g)
{
    guardian_send(g, &(struct order){.kind = ORDER_STOP});
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
