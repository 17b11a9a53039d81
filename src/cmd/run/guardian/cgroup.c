/* cgroup.c - finds the control group of this process in /proc, and creates one below it. The
 * guardian creates it; the runner kills and removes it if the guardian dies. proctree.c works
 * without it. */
#include "cmd/run/guardian/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "clave/uv.h"
#include "cmd/run/guardian/proctree.h"

enum { LINE_CAP = 4096, DEPTH_MAX = 8 };

/* ---- where we are ---------------------------------------------------------------------------- */

/* Finds the first mount of type cgroup2 in /proc/self/mountinfo, whose lines look like "36 35 98:0
 * /ROOT /MOUNT-POINT rw,noatime master:1 - TYPE SOURCE OPTIONS". A name with a space in it would be
 * escaped there; such mounts are not supported. */
static bool cgroup_find_mount(char root[CGROUP_CAP], char point[CGROUP_CAP])
{
    char line[LINE_CAP];
    FILE *f = fopen("/proc/self/mountinfo", "re");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *type = strstr(line, " - cgroup2 ");
        found = type && sscanf(line, "%*s %*s %*s %1023s %1023s", root, point) == 2;
    }
    if (f)
        fclose(f);
    return found;
}

/* The line of version 2 is "0::/PATH". */
static bool cgroup_find_path(pid_t pid, char path[CGROUP_CAP])
{
    char line[LINE_CAP], name[64];
    snprintf(name, sizeof name, "/proc/%d/cgroup", (int)pid);
    FILE *f = fopen(name, "re");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f))
        found = sscanf(line, "0::%1023[^\n]", path) == 1;
    if (f)
        fclose(f);
    return found;
}

/* The directory of our own group. The mounted hierarchy may begin below the root, as it does in a
 * container. */
static bool cgroup_find_own(char own[CGROUP_CAP])
{
    char root[CGROUP_CAP], point[CGROUP_CAP], path[CGROUP_CAP];
    if (!proc_is_ours() || !cgroup_find_mount(root, point) || !cgroup_find_path(getpid(), path))
        return false;
    size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(path, root, n) != 0 || (path[n] != '/' && path[n] != '\0'))
        return false;
    int len = snprintf(own, CGROUP_CAP, "%s%s", point, path + n);
    return len > 0 && len < CGROUP_CAP;
}

static bool cgroup_says_yes(const char *dir, const char *name)
{
    char value[4] = "";
    return getxattr(dir, name, value, sizeof value - 1) == 1 && value[0] == '1';
}

/* Where systemd runs, every group is systemd's to manage unless it has delegated it
 * (systemd.resource-control(5), Delegate=). */
static bool cgroup_is_ours_to_divide(const char *own)
{
    bool systemd = access("/run/systemd/system", F_OK) == 0;
    return access(own, W_OK) == 0 && (!systemd || cgroup_says_yes(own, "user.delegate") ||
                                      cgroup_says_yes(own, "trusted.delegate"));
}

/* ---- its life -------------------------------------------------------------------------------- */

void cgroup_plan(struct cgroup *c)
{
    *c = (struct cgroup){.path = ""};
    if (cgroup_find_own(c->own) && cgroup_is_ours_to_divide(c->own))
        snprintf(c->path, sizeof c->path, "%s/clave-%016" PRIx64, c->own, clave_random_seed());
}

static bool cgroup_put(const char *dir, const char *file, const char *text)
{
    char path[CGROUP_CAP + 128];
    size_t n = strlen(dir), m = strlen(file) + 1;
    if (n + 1 + m > sizeof path)
        return false;
    memcpy(path, dir, n);
    path[n] = '/';
    memcpy(path + n + 1, file, m);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t done = fd >= 0 ? write(fd, text, strlen(text)) : -1;
    if (fd >= 0)
        close(fd);
    return done > 0;
}

void cgroup_make(struct cgroup *c)
{
    char kill[CGROUP_CAP + 128];
    if (!*c->path)
        return;
    snprintf(kill, sizeof kill, "%s/cgroup.kill", c->path);
    if (mkdir(c->path, 0755) == 0 && access(kill, W_OK) == 0)
        return;
    rmdir(c->path);
    c->path[0] = '\0';
}

pid_t cgroup_fork(const struct cgroup *c)
{
    int fd = *c->path ? open(c->path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    struct clone_args args = {
        .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (unsigned)fd};
    pid_t pid = fd >= 0 ? (pid_t)syscall(SYS_clone3, &args, sizeof args) : -1;
    if (fd >= 0 && pid != 0)
        close(fd);
    /* clone3 fails if the group refuses new processes, or if the kernel or a sandbox does not
     * support it. */
    return pid >= 0 ? pid : fork();
}

static void cgroup_release(const void *arg, pid_t server)
{
    const struct cgroup *c = arg;
    char text[24];
    snprintf(text, sizeof text, "%d", (int)server);
    cgroup_put(c->own, "cgroup.procs", text);
}

void cgroup_kill(const struct cgroup *c)
{
    if (access(c->path, F_OK) != 0)
        return;
    proctree_each_server(cgroup_release, c);
    cgroup_put(c->path, "cgroup.kill", "1");
}

/* The last part of the path is random, so no other group has this name. */
bool cgroup_has(const struct cgroup *c, pid_t pid)
{
    char path[CGROUP_CAP];
    if (!*c->path || !cgroup_find_path(pid, path))
        return false;
    const char *name = strrchr(c->path, '/'), *at = strstr(path, name);
    char after = at ? at[strlen(name)] : 'x';
    return after == '\0' || after == '/';
}

static void cgroup_remove_tree(const char *path, int depth)
{
    char below[CGROUP_CAP + 512];
    DIR *dir = depth < DEPTH_MAX ? opendir(path) : NULL;
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        int n = snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.' && n < (int)sizeof below)
            cgroup_remove_tree(below, depth + 1);
    }
    if (dir)
        closedir(dir);
    rmdir(path);
}

void cgroup_remove(const struct cgroup *c)
{
    if (access(c->path, F_OK) != 0 || rmdir(c->path) == 0)
        return;
    proctree_each_server(cgroup_release, c);
    cgroup_remove_tree(c->path, 0);
}
