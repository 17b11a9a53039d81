#include "cmd/offspring.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct process {
    pid_t pid, parent, group;
    bool dead; /* a zombie */
    bool ours;
};

struct census {
    struct process *list;
    size_t n, cap;
};

/* "PID (NAME) STATE PPID PGRP ..."; the name may hold anything, parentheses too. */
static bool read_process(const char *pid, struct process *p)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
    if (f)
        fclose(f);
    line[n] = '\0';
    const char *rest = strrchr(line, ')');
    char state;
    int parent, group;
    if (!rest || sscanf(rest + 1, " %c %d %d", &state, &parent, &group) != 3)
        return false;
    *p = (struct process){.pid = (pid_t)atoi(pid), .parent = parent, .group = group};
    p->dead = state == 'Z' || state == 'X';
    return true;
}

static bool add(struct census *c, const struct process *p)
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

static int by_pid(const void *a, const void *b)
{
    const struct process *p = a, *q = b;
    return (p->pid > q->pid) - (p->pid < q->pid);
}

static bool take_census(struct census *c)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    bool fine = dir != NULL;
    *c = (struct census){0};
    while (fine && (entry = readdir(dir))) {
        struct process p;
        if (isdigit((unsigned char)entry->d_name[0]) && read_process(entry->d_name, &p))
            fine = add(c, &p);
    }
    if (dir)
        closedir(dir);
    if (fine && c->n > 0)
        qsort(c->list, c->n, sizeof *c->list, by_pid);
    return fine && c->n > 0;
}

/* As local.c starts it. */
static bool is_local_server(pid_t pid)
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

static bool is_ours(const struct census *c, pid_t self, const struct process *p)
{
    const struct process key = {.pid = p->parent};
    if (p->parent == self)
        return true;
    const struct process *parent = bsearch(&key, c->list, c->n, sizeof key, by_pid);
    return parent && parent->ours;
}

static void mark(struct census *c)
{
    pid_t self = getpid();
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < c->n; i++) {
            struct process *p = &c->list[i];
            if (p->ours || !is_ours(c, self, p) || is_local_server(p->pid))
                continue;
            p->ours = again = true;
        }
    }
}

int offspring_signal(int sig, pid_t group)
{
    struct census c;
    int alive = 0;
    if (group > 0 && sig != 0)
        kill(-group, sig);
    bool known = take_census(&c);
    if (known)
        mark(&c);
    for (size_t i = 0; known && i < c.n; i++) {
        const struct process *p = &c.list[i];
        if (!p->ours || p->dead)
            continue;
        alive++;
        if (sig != 0 && (group <= 0 || p->group != group))
            kill(p->pid, sig);
    }
    free(c.list);
    return known ? alive : -1;
}
