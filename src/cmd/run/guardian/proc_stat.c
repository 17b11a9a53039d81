/* proc_stat.c - see proc_stat.h. Called by the files of this folder, runner.c and parent_watch.c.
 */
#include "cmd/run/guardian/proc_stat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* "PID (NAME) STATE PPID PGRP SESSION ..."; the name may contain anything, parentheses too. The
 * 20th field is the number of threads, the 22nd the start time. */
bool proc_stat_read(pid_t pid, struct proc_stat *out)
{
    char path[64], line[1024], state;
    int threads;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = proc_is_ours() ? fopen(path, "re") : NULL;
    size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
    if (f)
        fclose(f);
    line[n] = '\0';
    const char *rest = strrchr(line, ')');
    if (!rest ||
        sscanf(rest + 1,
               " %c %d %d %d"
               " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
               " %d %*s %llu",
               &state, &out->parent, &out->group, &out->session, &threads, &out->start) != 6)
        return false;
    out->dead = proc_state_is_dead(state, threads);
    return true;
}
