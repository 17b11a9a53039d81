/* nightly.c - the job of this folder in C.
 *
 *   cc nightly.c $(pkg-config --cflags --libs clave) -o nightly && ./nightly ledger */
#include <clave/clave.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void work(clave_grant *grant, const char *ledger)
{
    FILE *f = fopen(ledger, "a");
    if (!f)
        return;
    setvbuf(f, NULL, _IOLBF, 0);
    fprintf(f, "begin %" PRId64 " c\n", clave_grant_token(grant));
    usleep(100000);
    if (clave_grant_valid_for(grant, 0)) /* else it may be another's by now */
        fprintf(f, "end %" PRId64 " c\n", clave_grant_token(grant));
    fclose(f);
}

int main(int argc, char **argv)
{
    clave_client *client = NULL;
    clave_mutex *mutex = NULL;
    clave_grant *grant = NULL;
    clave_err err = clave_client_open(&client, NULL, NULL, NULL);
    if (err == CLAVE_OK)
        err = clave_mutex_new(&mutex, client, "/jobs/nightly", NULL);
    if (err == CLAVE_OK)
        err = clave_mutex_acquire(mutex, -1);
    if (err == CLAVE_OK)
        err = clave_mutex_grant(mutex, &grant);
    if (err == CLAVE_OK) {
        work(grant, argc > 1 ? argv[1] : "ledger");
        err = clave_mutex_release_confirmed(mutex, 5000);
    }
    if (err != CLAVE_OK)
        fprintf(stderr, "nightly: %s\n", clave_strerror(err));
    clave_grant_free(grant);
    clave_mutex_free(mutex);
    clave_client_close(client, 1000);
    return err == CLAVE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
