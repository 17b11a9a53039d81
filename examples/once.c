/* once.c - a job that several processes start, and that one of them runs, once a day.
 *
 *   cc once.c $(pkg-config --cflags --libs clave) && ./a.out && ./a.out
 *
 * The second one finds it done. Talks to the servers that `clave` would:
 * clave_client_open with NULL. */
#include <clave/clave.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SECOND = 1000, HOUR = 3600 * SECOND };

static bool make_report(void)
{
    puts("making the report");
    return true;
}

/* Holding the lock, so nobody else does. Somewhat less than a day: no two starts are one day apart
 * exactly. It counts from the begin of a run, by the servers' clock. */
static clave_err run_once(clave_grant *grant)
{
    const clave_once_options daily = {
        .size = sizeof daily, .path = "/jobs/report-once/daily", .period_ms = 20 * HOUR};
    clave_once *job;
    clave_once_record former;
    clave_err err = clave_once_begin(&job, grant, &daily, 5 * SECOND, &former);
    if (err == CLAVE_OK)
        return clave_once_end(job, make_report(), 5 * SECOND);
    if (err != CLAVE_EDONE)
        return err;
    printf("done already, %" PRId64 " ms ago\n", former.age_ms);
    return CLAVE_OK;
}

int main(void)
{
    clave_client *client;
    clave_mutex *lock = NULL;
    clave_grant *grant = NULL;
    clave_err err = clave_client_open(&client, NULL, NULL, NULL);
    if (err == CLAVE_OK) {
        err = clave_mutex_new(&lock, client, "/jobs/report", NULL);
        if (err == CLAVE_OK)
            err = clave_mutex_acquire(lock, -1); /* for as long as another one runs it */
        if (err == CLAVE_OK)
            err = clave_mutex_grant(lock, &grant);
        if (err == CLAVE_OK)
            err = run_once(grant);
        clave_grant_free(grant);
        clave_mutex_free(lock);
        clave_client_close(client, SECOND);
    }
    if (err != CLAVE_OK)
        fprintf(stderr, "the report: %s\n", clave_strerror(err));
    return err == CLAVE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
