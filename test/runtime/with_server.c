/* with_server.c - runs a program while a server for it is up: drive_with_server PROGRAM
 * [ARGUMENT]..., with CLAVE_CONNECT in its environment. Ends as the program does. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

int main(int argc, char **argv)
{
    struct rig_process server;
    int status = 0;
    if (argc < 2)
        return 64;
    rig_fork(&server, rig_dir(), NULL);
    rig_without_settings();
    setenv("CLAVE_CONNECT", server.connect, 1);
    pid_t child = fork();
    if (child == 0) {
        execv(argv[1], argv + 1);
        _exit(127);
    }
    waitpid(child, &status, 0);
    rig_kill(&server, SIGTERM);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
