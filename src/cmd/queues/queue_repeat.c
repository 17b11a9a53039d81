/* queue_repeat.c - see queue_repeat.h. A cache of the queue's nodes tells that something has
 * changed; what is shown is read anew, after a sync. */
#include "cmd/queues/queue_repeat.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clave/cache.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"

/* Changes that come together, as those of a hand-over do, are one picture. */
enum { GATHER_MS = 50 };

static void queue_repeat_on_event(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    (void)cache;
    (void)ev;
    (void)!write(*(int *)arg, &(uint64_t){1}, sizeof(uint64_t));
}

/* false: no more events will come. */
static bool queue_repeat_wait(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint64_t n;
    int ready;
    do
        ready = poll(&p, 1, -1);
    while (ready < 0 && errno == EINTR);
    poll(NULL, 0, GATHER_MS);
    return ready == 1 && read(fd, &n, sizeof n) == sizeof n;
}

static int queue_repeat_show(struct options *o, clave_client *c, const char *path, int fd,
                             queue_show *show)
{
    bool screen = isatty(STDOUT_FILENO);
    for (size_t shown = 0;; shown++) {
        if (screen)
            fputs("\033[H\033[2J", stdout);
        else if (shown > 0 && !o->json)
            putchar('\n');
        int code = show(o, c, path);
        int written = finish_stdout(o);
        if (written != EXIT_OK)
            return written;
        if (code != EXIT_OK && code != EXIT_PATH) /* a queue may begin later */
            return code;
        if (!queue_repeat_wait(fd))
            return EXIT_INTERNAL;
    }
}

static int queue_repeat_watch(struct options *o, clave_client *c, const char *path,
                              queue_show *show)
{
    clave_cache *cache;
    clave_cache_options options = CLAVE_CACHE_OPTIONS_INIT;
    options.without_data = true;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return diag_end(o, path, EXIT_INTERNAL, "cannot watch it: %s", strerror(errno));
    clave_err err = clave_cache_new(&cache, c, path, &options, queue_repeat_on_event, &fd);
    if (err != CLAVE_OK) {
        close(fd);
        return diag_err(o, path, err, c);
    }
    uint64_t told;
    (void)clave_cache_wait(cache, o->timeout_ms); /* what is there already is no change */
    (void)!read(fd, &told, sizeof told);
    int code = queue_repeat_show(o, c, path, fd, show);
    clave_cache_free(cache);
    close(fd);
    return code;
}

int queue_repeat(struct options *o, const char *path, bool watch, queue_show *show)
{
    clave_client *c;
    int code = connect_open(o, NULL, &c);
    if (code != EXIT_OK)
        return code;
    code = watch ? queue_repeat_watch(o, c, path, show) : show(o, c, path);
    connect_close(c);
    return code;
}
