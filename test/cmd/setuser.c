/* setuser.c - what sudo does, for tests: becomes root (it is installed set-user-ID) and runs the
 * program that it is told. Exit code 9: it was not allowed to. */
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 2 || setgid(0) != 0 || setuid(0) != 0)
        return 9;
    execvp(argv[1], argv + 1);
    return 127;
}
