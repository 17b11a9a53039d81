/* depend.c - a lock that a thread loses when it hangs.
 *
 *   cc depend.c $(pkg-config --cflags --libs clave) && ./a.out
 *
 * Talks to the servers that `clave` would: clave_client_open with NULL. */
#include <clave/clave.h>
#include <stdio.h>
#include <time.h>

static void work(int step)
{
    printf("step %d\n", step);
}

/* Stands for a disk that stalls, a lock that is never released, a loop without end. */
static void hang(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 300 * 1000000}, NULL);
}

static clave_err run(clave_grant *grant)
{
    clave_grant_depend(grant, 5000); /* a sign of life every 5 s, or it is lost */
    for (int i = 0; i < 3 && clave_grant_alive(grant) == CLAVE_OK; i++)
        work(i);
    clave_grant_depend(grant, 100);
    hang();
    /* It holds nothing any more, and another may: what is written from here on must be guarded. */
    printf("valid after the hang: %d\n", clave_grant_valid_for(grant, 0));
    printf("a guarded write: %s\n", clave_err_name(clave_grant_set(grant, "/", "", 0, -1, 5000)));
    return clave_grant_alive(grant);
}

int main(void)
{
    clave_client *client;
    clave_mutex *mutex = NULL;
    clave_grant *grant = NULL;
    clave_err err = clave_client_open(&client, NULL, NULL, NULL);
    if (err != CLAVE_OK)
        return 1;
    err = clave_mutex_new(&mutex, client, "/examples/depend", NULL);
    if (err == CLAVE_OK)
        err = clave_mutex_acquire(mutex, -1);
    if (err == CLAVE_OK)
        err = clave_mutex_grant(mutex, &grant);
    if (err == CLAVE_OK) {
        printf("a sign of life after the hang: %s\n", clave_err_name(run(grant)));
        err = clave_mutex_release(mutex); /* ESILENT: it was lost, and why */
        printf("the release: %s\n", clave_err_name(err));
    }
    clave_grant_free(grant);
    clave_mutex_free(mutex);
    clave_client_close(client, 5000);
    return err == CLAVE_ESILENT ? 0 : 1;
}
