/* cache.c - a configuration that is always at hand: a tree of settings is kept in memory, and each
 * change is told as it happens.
 *
 *   cc cache.c $(pkg-config --cflags --libs clave) && ./a.out
 *
 * Uses the servers in CLAVE_CONNECT; without it, a local server that it starts. */
#include <clave/clave.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

struct config {
    clave_async_cache *cache; /* of the loop's thread */
    clave_err err;
    sem_t loaded, changed;
};

/* On the loop's thread. The queries answer with the event done. */
static void on_event(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    struct config *config = arg;
    switch (ev->type) {
    case CLAVE_CACHE_CREATED:
        printf("created %s: %.*s\n", ev->path, (int)ev->now->len, (const char *)ev->now->data);
        break;
    case CLAVE_CACHE_CHANGED:
        printf("changed %s: %.*s\n", ev->path, (int)ev->now->len, (const char *)ev->now->data);
        sem_post(&config->changed);
        break;
    case CLAVE_CACHE_DELETED:
        printf("deleted %s\n", ev->path);
        break;
    case CLAVE_CACHE_INITIALIZED:
        printf("%zu nodes, as of zxid %lld\n", clave_async_cache_count(cache), (long long)ev->zxid);
        sem_post(&config->loaded);
        break;
    case CLAVE_CACHE_STALE: /* go on with what is known, if that will do */
    case CLAVE_CACHE_RESYNCED:
    case CLAVE_CACHE_FULL:
        break;
    case CLAVE_CACHE_ENDED:
        config->err = ev->err;
        break;
    }
}

static void begin(clave_async_client *c, void *arg)
{
    struct config *config = arg;
    config->err = clave_async_cache_new(&config->cache, c, "/settings", NULL, on_event, config);
}

static void end(clave_async_client *c, void *arg)
{
    struct config *config = arg;
    (void)c;
    clave_async_cache_free(config->cache);
}

static int run(clave_client *client)
{
    struct config config = {0};
    clave_err err = clave_create(client, "/settings", "", 0, NULL, 10000, NULL);
    if (err == CLAVE_OK || err == CLAVE_ENODEEXISTS)
        err = clave_create(client, "/settings/colour", "red", 3, NULL, 10000, NULL);
    if (err != CLAVE_OK && err != CLAVE_ENODEEXISTS)
        return EXIT_FAILURE;
    sem_init(&config.loaded, 0, 0);
    sem_init(&config.changed, 0, 0);
    err = clave_client_run(client, begin, &config);
    if (err == CLAVE_OK && config.err == CLAVE_OK) {
        sem_wait(&config.loaded);
        /* Somebody, somewhere, changes a setting. */
        err = clave_set(client, "/settings/colour", "blue", 4, -1, 10000, NULL);
        if (err == CLAVE_OK)
            sem_wait(&config.changed);
        clave_client_run(client, end, &config);
    }
    sem_destroy(&config.loaded);
    sem_destroy(&config.changed);
    return err == CLAVE_OK && config.err == CLAVE_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(void)
{
    clave_client *session;
    if (clave_client_open(&session, NULL, NULL, NULL) != CLAVE_OK)
        return EXIT_FAILURE;
    int code = run(session);
    clave_client_close(session, 1000);
    return code;
}
