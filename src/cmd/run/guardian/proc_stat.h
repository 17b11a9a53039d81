/* proc_stat.h - whether /proc can be read, and what /proc/PID/stat says of a process. */
#ifndef CLAVE_CMD_RUN_GUARDIAN_PROC_STAT_H
#define CLAVE_CMD_RUN_GUARDIAN_PROC_STAT_H

#include <stdbool.h>
#include <sys/types.h>

struct proc_stat {
    pid_t parent, group, session;
    /* In ticks since the machine was started. Together with the pid this identifies a process, even
     * if the number is reused. */
    unsigned long long start;
    bool dead; /* a zombie, without a thread that runs */
};

/* false: there is no /proc, or it is that of another PID namespace, whose numbers mean other
 * processes (`unshare --pid` without --mount-proc). */
bool proc_is_ours(void);
/* By the letter of its state and its number of threads. A process whose first thread has ended is a
 * zombie that counts other threads: those run on. */
bool proc_state_is_dead(char state, int threads);
/* false: there is no such process, /proc is not ours, or it is hidden from us (hidepid). */
bool proc_stat_read(pid_t pid, struct proc_stat *out);

#endif
