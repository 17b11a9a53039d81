/* callbacks.c - a lock on your own libuv loop: no thread, no call that waits.
 *
 *   cc callbacks.c $(pkg-config --cflags --libs clave libuv) && CLAVE_CONNECT=... ./a.out
 *
 * A request is sent when the callback it was made in returns; outside of callbacks,
 * clave_uv_flush() sends. */
#include <clave/async/mutex.h>
#include <clave/uv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

struct app {
    uv_loop_t loop;
    clave_async_client *client;
    clave_uv *uv;
    clave_async_mutex *mutex;
    uv_timer_t limit;
    int code;
};

static void on_stopped(void *arg)
{
    struct app *app = arg;
    clave_async_client_free(app->client);
}

static void finish(struct app *app, int code)
{
    if (!app->mutex)
        return; /* finished already */
    app->code = code;
    clave_async_mutex_free(app->mutex);
    app->mutex = NULL;
    uv_close((uv_handle_t *)&app->limit, NULL);
    clave_async_client_close(app->client, clave_now());
    clave_uv_flush(app->uv);
}

static void on_released(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    (void)m;
    (void)owner;
    printf("released: %s\n", clave_strerror(err));
    finish(arg, err == CLAVE_OK ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void on_written(clave_async_client *c, const clave_result *res, void *arg)
{
    struct app *app = arg;
    (void)c;
    printf("guarded write: %s\n", clave_strerror(res->err));
    clave_err err = clave_async_mutex_release(app->mutex, 0, on_released, app);
    if (err != CLAVE_OK)
        finish(app, EXIT_FAILURE);
}

static void on_acquired(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct app *app = arg;
    clave_async_grant *grant;
    if (err != CLAVE_OK) {
        fprintf(stderr, "acquire: %s\n", clave_strerror(err));
        finish(app, EXIT_FAILURE);
        return;
    }
    err = clave_async_mutex_grant(m, owner, &grant);
    if (err == CLAVE_OK) {
        printf("held, token %lld, node %s\n", (long long)clave_async_grant_token(grant),
               clave_async_grant_node(grant));
        err = clave_async_grant_create(grant, "/note-", "x", 1, CLAVE_EPHEMERAL_SEQUENTIAL,
                                       on_written, app);
        clave_async_grant_free(grant);
    }
    if (err != CLAVE_OK)
        finish(app, EXIT_FAILURE);
}

static void on_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    (void)m;
    (void)arg;
    if (ev->kind == CLAVE_MUTEX_QUEUED)
        printf("%zu before us\n", ev->ahead);
    else if (ev->kind == CLAVE_MUTEX_LOST)
        printf("lost: %s\n", clave_strerror(ev->why));
}

static void on_state(clave_async_client *c, clave_state state, clave_err why, void *arg)
{
    struct app *app = arg;
    (void)c;
    printf("%s%s%s\n", clave_state_name(state), why ? ": " : "", why ? clave_strerror(why) : "");
    if (state == CLAVE_STATE_CLOSED)
        clave_uv_stop(app->uv, on_stopped, app);
}

static void on_limit(uv_timer_t *t)
{
    struct app *app = t->data;
    fprintf(stderr, "not done in time: %s\n", clave_async_client_errmsg(app->client));
    finish(app, EXIT_FAILURE);
}

int main(void)
{
    struct app app = {.code = EXIT_FAILURE};
    const char *connect = getenv("CLAVE_CONNECT");
    clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
    o.hosts = connect ? connect : "local:";
    o.seed = clave_random_seed();
    o.state_cb = on_state;
    o.state_arg = &app;
    clave_mutex_options mo = CLAVE_MUTEX_OPTIONS_INIT;
    mo.event_cb = on_event;

    signal(SIGPIPE, SIG_IGN); /* as every program with libuv */
    uv_loop_init(&app.loop);
    uv_timer_init(&app.loop, &app.limit);
    app.limit.data = &app;
    if (clave_async_client_new(&app.client, &o) != CLAVE_OK ||
        clave_async_mutex_new(&app.mutex, app.client, "/jobs/callbacks", &mo) != CLAVE_OK ||
        clave_uv_start(&app.uv, &app.loop, app.client) != CLAVE_OK)
        return EXIT_FAILURE;
    clave_async_mutex_acquire(app.mutex, 0, clave_now() + 5000, on_acquired, &app);
    clave_uv_flush(app.uv);
    uv_timer_start(&app.limit, on_limit, 10000, 0);
    uv_run(&app.loop, UV_RUN_DEFAULT);
    uv_loop_close(&app.loop);
    return app.code;
}
