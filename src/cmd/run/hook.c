/* hook.c - starts the shell commands of hook.h: hooks with posix_spawn, checks with fork. runner.c,
 * child.c and health_check.c call it. Such a command is not the service that the service manager
 * watches, so it inherits neither our signal mask nor the variables of the service manager. */
#include "cmd/run/hook.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cmd/cli/diag.h"
#include "cmd/service/sd_notify.h"

enum { HOOK_ENV_ADDED = 4 };

struct hook_env {
    char *added[HOOK_ENV_ADDED]; /* NULL: not set */
    char **all;                  /* what exec gets: `added`, and the rest of our own environment */
};

static char *hook_env_text(const char *name, const char *value)
{
    char *text = NULL;
    return asprintf(&text, "%s=%s", name, value) < 0 ? NULL : text;
}

/* This process's environment and the variables in `added`, which replace those of the same name. */
static char **hook_env_join(char *const added[HOOK_ENV_ADDED])
{
    size_t n = 0;
    while (environ[n])
        n++;
    char **env = calloc(n + HOOK_ENV_ADDED + 1, sizeof *env);
    size_t at = 0;
    for (size_t i = 0; env && i < HOOK_ENV_ADDED; i++)
        if (added[i])
            env[at++] = added[i];
    for (size_t i = 0; env && i < n; i++) {
        size_t name = strcspn(environ[i], "=");
        bool replaced = sd_notify_is_variable(
            environ[i]); /* the service manager's variables are not for a hook */
        for (size_t k = 0; k < HOOK_ENV_ADDED; k++)
            replaced |= added[k] && strncmp(added[k], environ[i], name + 1) == 0;
        if (!replaced)
            env[at++] = environ[i];
    }
    return env;
}

/* The environment of a hook: ours without the service manager's variables, plus the facts. false:
 * no memory. Call hook_env_fini in either case. */
static bool hook_env_init(struct hook_env *e, const struct hook_facts *facts)
{
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, facts->token);
    char *added[HOOK_ENV_ADDED] = {hook_env_text("CLAVE_EVENT", facts->event),
                                   hook_env_text("CLAVE_PATH", facts->path),
                                   hook_env_text("CLAVE_CONNECT", facts->connect),
                                   facts->token != 0 ? hook_env_text("CLAVE_TOKEN", number) : NULL};
    memcpy(e->added, added, sizeof added);
    e->all = added[0] && added[1] && added[2] ? hook_env_join(added) : NULL;
    return e->all != NULL;
}

static void hook_env_fini(struct hook_env *e)
{
    free(e->all);
    for (size_t i = 0; i < HOOK_ENV_ADDED; i++)
        free(e->added[i]);
}

/* Starts the shell command as a shell would: in a process group of its own, with no signal blocked
 * or ignored. */
static int hook_start(const char *command, char **env)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    pid_t pid;
    char shell[] = "sh", flag[] = "-c";
    char *text = strdup(command);
    char *argv[] = {shell, flag, text, NULL};
    if (!text)
        return -1;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                        POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setsigmask(&attr, &none);
    int err = posix_spawn(&pid, "/bin/sh", &files, &attr, argv, env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    free(text);
    return err;
}

void hook_run(const struct run_plan *p, const char *command, const char *event, int64_t token)
{
    const struct hook_facts facts = {event, p->path, p->connect, token};
    struct hook_env env;
    if (!command)
        return;
    if (!hook_env_init(&env, &facts) || hook_start(command, env.all) != 0)
        diag(p->o, "%s: cannot run the hook: %s", p->path, command);
    hook_env_fini(&env);
}

/* ---- checks ---------------------------------------------------------------------------------- */

struct hook_program {
    const char *file;
    char *const *argv;
    char **env;
    int output, errors; /* its standard output and standard error */
};

/* In the forked child: only what a child of a threaded process may call. */
static _Noreturn void hook_become(const struct hook_program *p, pid_t parent)
{
    static const char failed[] = "cannot run ";
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;
    sigemptyset(&none);
    for (int sig = 1; sig < NSIG; sig++)
        (void)sigaction(sig, &usual, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_RDONLY);
    if (getppid() != parent || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(p->output, STDOUT_FILENO) < 0 || dup2(p->errors, STDERR_FILENO) < 0)
        _exit(HOOK_FAILED);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(p->file, p->argv, p->env);
    const struct iovec text[] = {{(void *)(uintptr_t)failed, sizeof failed - 1},
                                 {(void *)(uintptr_t)p->file, strlen(p->file)},
                                 {(void *)(uintptr_t) "\n", 1}};
    ssize_t ignored = writev(STDERR_FILENO, text, 3);
    (void)ignored;
    _exit(HOOK_FAILED);
}

/* Does not use posix_spawn, which waits for exec: if the disk with the program stalled, the
 * heartbeats would stall as well. */
static pid_t hook_fork(const struct hook_program *p)
{
    sigset_t all, before;
    pid_t self = getpid();
    sigfillset(&all);
    /* until the child has given up our handlers, which would report its signals to our own loop */
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        hook_become(p, self);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid > 0)
        setpgid(pid, pid); /* the child does the same: whichever comes first */
    return pid;
}

pid_t hook_start_check(const struct hook_facts *facts, const char *command, int output)
{
    struct hook_env env;
    pid_t pid = -1;
    char shell[] = "sh", flag[] = "-c";
    char *text = strdup(command);
    char *argv[] = {shell, flag, text, NULL};
    if (hook_env_init(&env, facts) && text)
        pid = hook_fork(&(struct hook_program){"/bin/sh", argv, env.all, output, output});
    hook_env_fini(&env);
    free(text);
    return pid;
}

pid_t hook_start_program(const char *file, char *const *argv, char **env, int output)
{
    return hook_fork(&(struct hook_program){file, argv, env, output, STDERR_FILENO});
}
