/* instances.c - `clave instances`: lists the instances of one service or of all, once or again
 * after every change. clave/instances.h reads them; this file shows them.
 *
 * What must stay true: the loop's thread never waits for whoever reads the output. So a list is
 * written to memory there, and printed here. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/path.h"
#include "clave/instances.h"
#include "cmd/cli/cmd_options.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "cmd/cli/participant.h"
#include "observe/instance_json.h"

enum { INSTANCES_BASE = FLAG_LONG, INSTANCES_READY, INSTANCES_WATCH, INSTANCES_URI };
enum { GATHER_MS = 50, ENDPOINT_CAP = 2048 };

struct instances_list {
    struct options *o;
    const char *base, *service; /* service NULL: all */
    const char *path;           /* of the two */
    bool ready, watch, uri;
    FILE *out;
    size_t shown;
};

/* ---- one instance, on the loop's thread ------------------------------------------------------ */

static void instance_show_json(FILE *out, const clave_instances_entry *e)
{
    struct json j;
    json_begin(&j, out);
    clave__instance_json(&j, e);
    json_stat(&j, "stat", &e->stat);
    json_end(&j);
}

/* "[::1]:80,ssl:443"; "-" if it says neither an address nor a port. */
static const char *instance_endpoint(const clave_instance *i, char out[ENDPOINT_CAP])
{
    bool v6 = i->address && strchr(i->address, ':');
    int n =
        snprintf(out, 256, "%s%s%s", v6 ? "[" : "", i->address ? i->address : "", v6 ? "]" : "");
    n = n < 256 ? n : 255;
    if (i->port > 0)
        n += snprintf(out + n, (size_t)(ENDPOINT_CAP - n), ":%d", (int)i->port);
    if (i->ssl_port > 0)
        n += snprintf(out + n, (size_t)(ENDPOINT_CAP - n), ",ssl:%d", (int)i->ssl_port);
    return n > 0 ? out : "-";
}

/* "-" if it has none. */
static const char *instance_uri(const clave_instance *i, char out[ENDPOINT_CAP])
{
    size_t n = clave_instance_uri(i, out, ENDPOINT_CAP);
    return n > 0 && n < ENDPOINT_CAP ? out : "-";
}

static void instance_show_line(FILE *out, const clave_instances_entry *e, bool uri)
{
    char service[256], name[256], endpoint[ENDPOINT_CAP], text[ENDPOINT_CAP], age[AGE_CAP];
    const char *id = clave__path_name(e->path), *where = "-";
    if (e->instance && e->instance->id)
        id = e->instance->id;
    if (e->instance)
        where =
            participant_text_column((uri ? instance_uri : instance_endpoint)(e->instance, endpoint),
                                    false, text, sizeof text);
    fprintf(out, "%s %s %s %s %s %s",
            participant_text_column(e->service, false, service, sizeof service),
            participant_text_column(id, false, name, sizeof name), where, clave__instance_state(e),
            e->instance ? clave_service_type_name(e->instance->type) : "-",
            participant_text_age(&e->stat, age));
    if (e->fault)
        fprintf(out, " (it %s)", e->fault);
    fputc('\n', out);
}

static bool instance_show(const clave_instances_entry *e, void *arg)
{
    struct instances_list *l = arg;
    bool is_ready = e->instance && !e->instance->disabled;
    if (l->ready && !is_ready)
        return true;
    l->shown++;
    if (l->o->json)
        instance_show_json(l->out, e);
    else
        instance_show_line(l->out, e, l->uri);
    return true;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Returns an exit code. */
static int instances_show(struct instances_list *l, clave_instances *d, clave_client *c)
{
    char *text = NULL;
    size_t len = 0;
    l->shown = 0;
    l->out = open_memstream(&text, &len);
    clave_err err = l->out ? clave_instances_walk(d, instance_show, l) : CLAVE_ENOMEM;
    if (l->out && (ferror(l->out) | fclose(l->out)) != 0)
        err = CLAVE_ENOMEM;
    if (err == CLAVE_OK) {
        if (l->shown > 0 && !l->o->json && isatty(STDOUT_FILENO))
            printf("# SERVICE ID %s STATE TYPE AGE\n", l->uri ? "URI" : "ADDRESS");
        fwrite(text, 1, len, stdout);
    }
    free(text);
    if (err != CLAVE_OK)
        return diag_err(l->o, l->path, err, c);
    if (l->shown == 0)
        diag_note(l->o, "%s: no instances", l->path);
    return finish_stdout(l->o);
}

static void instances_on_change(clave_async_instances *d, const clave_instances_event *ev,
                                void *arg)
{
    (void)d;
    if (ev->type != CLAVE_INSTANCES_INITIALIZED) /* which may come after the wait for it */
        (void)!write(*(int *)arg, &(uint64_t){1}, sizeof(uint64_t));
}

/* Waits for a change, and for those that come with it. */
static bool instances_await_change(int fd)
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

static int instances_follow(struct instances_list *l, clave_instances *d, clave_client *c, int fd)
{
    bool screen = isatty(STDOUT_FILENO);
    uint64_t told;
    (void)!read(fd, &told, sizeof told); /* what was there already is no change */
    for (;;) {
        if (screen)
            fputs("\033[H\033[2J", stdout);
        int code = instances_show(l, d, c);
        if (code != EXIT_OK)
            return code;
        if (!instances_await_change(fd))
            return EXIT_INTERNAL;
        clave_err err = clave_instances_wait(d, -1); /* until they are known again */
        if (err != CLAVE_OK)
            return diag_err(l->o, l->path, err, c);
        if (!screen && !l->o->json)
            putchar('\n');
    }
}

static int instances_run(struct instances_list *l, clave_client *c, int fd)
{
    clave_instances_options options = CLAVE_INSTANCES_OPTIONS_INIT;
    options.base = l->base;
    options.service = l->service;
    clave_instances *d;
    clave_err err = clave_sync(c, "/", l->o->timeout_ms); /* as current as the leader */
    if (err != CLAVE_OK)
        return diag_err(l->o, l->path, err, c);
    err = clave_instances_new(&d, c, &options, instances_on_change, &fd);
    if (err != CLAVE_OK)
        return diag_err(l->o, l->path, err, c);
    err = clave_instances_wait(d, l->o->timeout_ms);
    int code;
    if (err != CLAVE_OK)
        code = diag_err(l->o, l->path, err, c);
    else if (l->watch)
        code = instances_follow(l, d, c, fd);
    else
        code = instances_show(l, d, c);
    clave_instances_free(d);
    if (code == EXIT_OK && l->ready && l->shown == 0)
        code = EXIT_PATH;
    return code;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int instances_open(struct instances_list *l)
{
    clave_client *c;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return diag_end(l->o, l->path, EXIT_INTERNAL, "%s", strerror(errno));
    int code = connect_open(l->o, NULL, &c);
    if (code == EXIT_OK) {
        code = instances_run(l, c, fd);
        connect_close(c);
    }
    close(fd);
    return code;
}

static int run_instances(struct options *o, int argc, char **argv)
{
    struct instances_list l = {.o = o, .base = "/services"};
    int id;
    while ((id = options_next(o, argc, argv)) > 0) {
        if (id == INSTANCES_BASE)
            l.base = o->value;
        l.ready |= id == INSTANCES_READY;
        l.watch |= id == INSTANCES_WATCH;
        l.uri |= id == INSTANCES_URI;
    }
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 0, 1))
        return EXIT_USAGE;
    l.service = o->argc > 0 ? o->argv[0] : NULL;
    if (l.service && strchr(l.service, '/'))
        return diag_usage(o, "%s is not the name of a service; give its parent with --base",
                          l.service);
    if (!connect_path_ok(o, l.base))
        return EXIT_PATH;
    char *path = l.service ? clave__path_child(NULL, l.base, l.service) : strdup(l.base);
    if (!path)
        return diag_err(o, l.base, CLAVE_ENOMEM, NULL);
    l.path = path;
    int code = connect_path_ok(o, path) ? instances_open(&l) : EXIT_PATH;
    free(path);
    return code;
}

static const struct flag flags[] = {
    {INSTANCES_BASE, "base", "PATH", "the parent of the services' nodes [/services]"},
    {INSTANCES_READY, "ready", NULL, "only those to be used now; exit 66 if there are none"},
    {INSTANCES_WATCH, "watch", NULL, "print them again after every change"},
    {INSTANCES_URI, "uri", NULL, "the URI of each that has one, instead of address and port"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_instances = {
    .name = "instances",
    .args = "[SERVICE]",
    .summary = "List the instances of services, where each can be reached",
    .text =
        "One instance a line: service, id, address and port, state, type, and for how long it has\n"
        "been registered. The state is up, disabled, or unreadable with the reason. The layout is\n"
        "that of Curator's x-discovery, or of server sets.\n",
    .flags = flags,
    .max_args = -1,
    .run = run_instances,
};
