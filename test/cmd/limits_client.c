/* limits_client.c - a program of libclave's, for limits_test.py: takes a lock and releases it. The
 * exit code is 0, or 70 with the name of the error on standard error. An argument, the servers. */
#include <stdio.h>

#include "clave/clave.h"

enum { WAIT_MS = 2000 };

static int say(const char *call, clave_err err, const char *detail)
{
    fprintf(stderr, "%s: %s: %s: %s\n", call, clave_err_name(err), clave_strerror(err), detail);
    return 70;
}

static int lock_and_release(clave_client *client)
{
    clave_mutex *lock;
    char why[512];
    clave_err err = clave_client_wait(client, WAIT_MS);
    if (err != CLAVE_OK)
        return say("clave_client_wait", err, clave_client_errmsg(client, why, sizeof why));
    err = clave_mutex_new(&lock, client, "/linked", NULL);
    if (err != CLAVE_OK)
        return say("clave_mutex_new", err, "");
    err = clave_mutex_acquire(lock, WAIT_MS);
    if (err == CLAVE_OK)
        err = clave_mutex_release(lock);
    clave_mutex_free(lock);
    return err == CLAVE_OK ? 0 : say("clave_mutex_acquire", err, "");
}

int main(int argc, char **argv)
{
    clave_client *client;
    if (argc != 2)
        return 64;
    clave_err err = clave_client_open(&client, NULL, argv[1], NULL);
    if (err != CLAVE_OK)
        return say("clave_client_open", err, "");
    int code = lock_and_release(client);
    clave_client_close(client, WAIT_MS);
    return code;
}
