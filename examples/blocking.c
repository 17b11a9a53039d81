/* blocking.c - a lock, held by a thread, and a write that only the holder can do.
 *
 *   cc blocking.c $(pkg-config --cflags --libs clave) && ./a.out
 *
 * Talks to the servers that `clave` would: clave_client_open with NULL. */
#include <clave/clave.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const char *what, clave_err err, clave_client *client)
{
    char text[512];
    clave_client_errmsg(client, text, sizeof text); /* NULL: of clave_client_open */
    fprintf(stderr, "%s: %s%s%s\n", what, clave_strerror(err), *text ? ": " : "", text);
    return EXIT_FAILURE;
}

/* What the lock protects. The write is one transaction with a check that the lock still
 * stands: however long this thread was paused, it cannot overwrite a later holder's work. */
static clave_err work(clave_client *client, clave_grant *grant)
{
    clave_err err = clave_create(client, "/report", "", 0, NULL, 5000, NULL);
    if (err != CLAVE_OK && err != CLAVE_ENODEEXISTS)
        return err;
    if (!clave_grant_valid_for(grant, 1000))
        return CLAVE_ELOST; /* less than a second left: no new work is begun */
    return clave_grant_set(grant, "/report", "done", 4, -1, 5000);
}

int main(void)
{
    clave_client *client;
    clave_mutex *lock = NULL;
    clave_grant *grant = NULL;
    int code = EXIT_SUCCESS;

    clave_err err = clave_client_open(&client, NULL, NULL, NULL);
    if (err != CLAVE_OK)
        return fail("open", err, NULL);
    err = clave_mutex_new(&lock, client, "/jobs/report", NULL);
    if (err == CLAVE_OK)
        err = clave_mutex_acquire(lock, 10000);
    if (err == CLAVE_OK)
        err = clave_mutex_grant(lock, &grant);
    if (err != CLAVE_OK) {
        code = fail("acquire", err, client);
    } else {
        printf("held, token %lld\n", (long long)clave_grant_token(grant));
        err = work(client, grant);
        if (err != CLAVE_OK)
            code = fail("work", err, client);
        clave_grant_free(grant);
        clave_mutex_release(lock);
    }
    clave_mutex_free(lock);
    clave_client_close(client, 1000);
    return code;
}
