/* inherited_fds.c - see inherited_fds.h. main.c notes the state, and everything that executes a
 * program restores it. */
#include "cmd/cli/inherited_fds.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    int number;
    void (*handler)(int number);
} changed[INHERITANCE_SIGNALS] = {
    {SIGTERM, SIG_DFL}, {SIGCHLD, SIG_DFL}, {SIGPIPE, SIG_IGN}, {SIGXFSZ, SIG_IGN}};

/* If one of these were left closed, the next socket would get its number, and output would be
 * written to the socket. Writing to a missing stdout has to fail, so /dev/null is opened for
 * reading; reading from a missing stdin has to fail too (otherwise `clave set PATH -` would write
 * an empty value), so it is opened for writing. O_CLOEXEC lets a child find the descriptor closed,
 * as we did. */
bool inheritance_hold_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        if (open("/dev/null", (fd == 1 ? O_RDONLY : O_WRONLY) | O_CLOEXEC) != fd)
            return false;
    }
    return true;
}

static const char in_place_variable[] = "CLAVE_IN_PLACE", in_place_tried[] = "try";

/* Removes the variable, so that nobody else gets it. */
static int inheritance_take_in_place(void)
{
    const char *text = secure_getenv(in_place_variable);
    int fd = IN_PLACE_NOT;
    if (text && strcmp(text, in_place_tried) == 0)
        fd = IN_PLACE_TRIED;
    else if (text && atoi(text) > 2 && fcntl(atoi(text), F_SETFD, FD_CLOEXEC) == 0)
        fd = atoi(text);
    unsetenv(in_place_variable);
    return fd;
}

void inheritance_take(struct inheritance *out)
{
    sigset_t none;
    out->in_place = inheritance_take_in_place();
    out->parent = getppid();
    out->umask = umask(S_IRWXG | S_IRWXO);
    umask(out->umask & (S_IRWXG | S_IRWXO));
    for (size_t i = 0; i < INHERITANCE_SIGNALS; i++) {
        const struct sigaction wanted = {.sa_handler = changed[i].handler};
        sigaction(changed[i].number, &wanted, &out->actions[i]);
    }
    sigemptyset(&none);
    sigprocmask(out->in_place < 0 ? SIG_SETMASK : SIG_BLOCK, &none, &out->mask);
}

char **inheritance_words(void)
{
    char *text = NULL;
    size_t cap = 0, n = 0;
    FILE *f = fopen("/proc/self/cmdline", "re");
    ssize_t len = f ? getdelim(&text, &cap, EOF, f) : -1; /* up to the end of the file */
    if (f)
        fclose(f);
    for (ssize_t i = 0; i < len; i++)
        n += text[i] == '\0';
    char **words = n > 0 ? calloc(n + 1, sizeof *words) : NULL;
    char *at = text;
    for (size_t i = 0; words && i < n; i++, at += strlen(at) + 1)
        words[i] = at;
    if (!words)
        free(text);
    return words;
}

char **inheritance_environment(int in_place)
{
    char number[16];
    size_t n = 0, name = sizeof in_place_variable - 1;
    while (environ[n])
        n++;
    char **env = calloc(n + 2, sizeof *env), *added = NULL;
    snprintf(number, sizeof number, "%d", in_place);
    if (!env || asprintf(&added, "%s=%s", in_place_variable,
                         in_place == IN_PLACE_TRIED ? in_place_tried : number) < 0) {
        free(env);
        return NULL;
    }
    size_t at = 0;
    env[at++] = added;
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], added, name + 1) != 0)
            env[at++] = environ[i];
    return env;
}

void inheritance_free_environment(char **env)
{
    if (env)
        free(env[0]);
    free(env);
}

void inheritance_restore(const struct inheritance *in)
{
    umask(in->umask);
    for (size_t i = 0; i < INHERITANCE_SIGNALS; i++)
        sigaction(changed[i].number, &in->actions[i], NULL);
    sigprocmask(SIG_SETMASK, &in->mask, NULL);
}

/* A blocked signal is delivered to a signalfd even if it is ignored, hence the check. */
int inheritance_open_signals(int also)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t set;
    sigemptyset(&set);
    if (also != 0)
        sigaddset(&set, also);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        struct sigaction now;
        sigaction(ending[i], NULL, &now);
        if (now.sa_handler != SIG_IGN)
            sigaddset(&set, ending[i]);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}
