/* hand_over.c - a program that is replaced by its new version while it holds a lock, and keeps it.
 *
 *   cc hand_over.c $(pkg-config --cflags --libs clave) && ./a.out
 *
 * Talks to the servers that `clave` would: clave_client_open with NULL. */
#include <clave/clave.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Connects, and takes the lock, or goes on with it. */
static clave_err begin(const char *file, clave_client **client, clave_mutex **mutex,
                       clave_grant **grant)
{
    clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
    o.resume_file = file; /* NULL: begins a session of its own */
    clave_err err = clave_client_open(client, NULL, NULL, &o);
    if (err == CLAVE_OK)
        err = clave_mutex_new(mutex, *client, "/examples/hand_over", NULL);
    if (err == CLAVE_OK)
        err = clave_mutex_acquire(*mutex, -1);
    return err == CLAVE_OK ? clave_mutex_grant(*mutex, grant) : err;
}

int main(int argc, char **argv)
{
    clave_client *client = NULL;
    clave_mutex *mutex = NULL;
    clave_grant *grant = NULL;
    char file[64] = "", text[512];
    clave_err err = begin(argc > 1 ? argv[1] : NULL, &client, &mutex, &grant);
    if (err == CLAVE_OK)
        printf("token %lld, resumed %d\n", (long long)clave_grant_token(grant),
               clave_grant_is_resumed(grant));
    if (err == CLAVE_OK && argc == 1) {
        snprintf(file, sizeof file, "/tmp/hand_over.%ld", (long)getpid());
        err = clave_client_hand_over(client, file, 5000);
    }
    if (err != CLAVE_OK)
        printf("%s: %s\n", clave_err_name(err), clave_client_errmsg(client, text, sizeof text));
    int resumed = argc > 1 && grant && clave_grant_is_resumed(grant);
    clave_grant_free(grant);
    clave_mutex_free(mutex); /* after a hand-over nothing is released */
    clave_client_close(client, 5000);
    fflush(stdout);
    if (err == CLAVE_OK && argc == 1) /* the new version: here, the same program */
        execl("/proc/self/exe", argv[0], file, (char *)NULL);
    return err == CLAVE_OK && resumed ? 0 : 1;
}
