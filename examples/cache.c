/* cache.c - a configuration that is always at hand: a tree of settings is kept in memory, any
 * thread looks into it, and each change is told as it happens.
 *
 *   cc cache.c $(pkg-config --cflags --libs clave) && ./a.out
 *
 * Uses the servers that `clave` would: clave_client_open with NULL. */
#include <clave/clave.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

/* On the loop's thread. */
static void on_event(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    (void)cache;
    switch (ev->type) {
    case CLAVE_CACHE_CREATED:
        printf("created %s\n", ev->path);
        break;
    case CLAVE_CACHE_CHANGED:
        printf("changed %s\n", ev->path);
        sem_post(arg);
        break;
    case CLAVE_CACHE_DELETED:
        printf("deleted %s\n", ev->path);
        break;
    case CLAVE_CACHE_STALE: /* go on with what is known, if that will do */
    case CLAVE_CACHE_INITIALIZED:
    case CLAVE_CACHE_RESYNCED:
    case CLAVE_CACHE_FULL:
    case CLAVE_CACHE_ENDED:
        break;
    }
}

/* From memory, on any thread: no request is sent. */
static clave_err print_colour(clave_cache *cache)
{
    clave_reply *colour;
    clave_err err = clave_cache_get(cache, "/settings/colour", &colour);
    if (err == CLAVE_OK)
        printf("the colour is %.*s\n", (int)colour->len, (const char *)colour->data);
    clave_reply_free(colour);
    return err;
}

static clave_err follow(clave_client *client, sem_t *changed)
{
    clave_cache *cache;
    clave_err err = clave_cache_new(&cache, client, "/settings", NULL, on_event, changed);
    if (err != CLAVE_OK)
        return err;
    err = clave_cache_wait(cache, 10000);
    if (err == CLAVE_OK)
        err = print_colour(cache);
    if (err == CLAVE_OK) /* somebody, somewhere, changes a setting */
        err = clave_set(client, "/settings/colour", "blue", 4, -1, 10000, NULL);
    if (err == CLAVE_OK) {
        sem_wait(changed);
        err = print_colour(cache);
    }
    clave_cache_free(cache);
    return err;
}

static clave_err create_settings(clave_client *client)
{
    clave_err err = clave_create(client, "/settings", "", 0, NULL, 10000, NULL);
    if (err == CLAVE_OK || err == CLAVE_ENODEEXISTS)
        err = clave_create(client, "/settings/colour", "red", 3, NULL, 10000, NULL);
    return err == CLAVE_ENODEEXISTS ? CLAVE_OK : err;
}

int main(void)
{
    clave_client *client;
    sem_t changed;
    if (clave_client_open(&client, NULL, NULL, NULL) != CLAVE_OK)
        return EXIT_FAILURE;
    sem_init(&changed, 0, 0);
    clave_err err = create_settings(client);
    if (err == CLAVE_OK)
        err = follow(client, &changed);
    clave_client_close(client, 1000);
    sem_destroy(&changed);
    return err == CLAVE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
