/* metrics.c - what this process's clients have done, as a page for Prometheus.
 *
 *   cc metrics.c $(pkg-config --cflags --libs clave) && ./a.out
 *
 * Here the page goes to standard output. A program with an HTTP server answers GET /metrics with
 * it; a job that cron starts writes it into the directory of the node exporter's textfile
 * collector. Talks to the servers that `clave` would: clave_client_open with NULL.
 */
#include <clave/clave.h>
#include <stdio.h>
#include <stdlib.h>

static clave_err to_file(void *arg, const char *text, size_t n)
{
    return fwrite(text, 1, n, arg) == n ? CLAVE_OK : CLAVE_EIO;
}

static clave_err hold_once(clave_client *client)
{
    clave_mutex *lock;
    clave_err err = clave_mutex_new(&lock, client, "/jobs/metrics", NULL);
    if (err != CLAVE_OK)
        return err;
    err = clave_mutex_acquire(lock, 10000);
    if (err == CLAVE_OK)
        err = clave_mutex_release(lock);
    clave_mutex_free(lock);
    return err;
}

int main(void)
{
    clave_client *client = NULL;
    clave_err err = clave_client_open(&client, NULL, NULL, NULL);
    if (err == CLAVE_OK)
        err = hold_once(client);
    if (err == CLAVE_OK)
        err = clave_metrics_write(CLAVE_METRICS_TEXT, to_file, stdout);
    if (err != CLAVE_OK)
        fprintf(stderr, "metrics: %s\n", clave_strerror(err));
    clave_client_close(client, 1000);
    return err == CLAVE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
