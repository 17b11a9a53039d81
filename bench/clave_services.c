/* clave_services.c - registering and following the instances of a service on the public API;
 * CuratorServices.java measures the same of Curator's x-discovery.
 *
 *   clave_services register CONNECT N             N instances on one client, until all are there
 *   clave_services change CONNECT N WRITES        N sessions that follow the service: an instance
 * is changed, and again when all have been told
 *
 * `register` prints how long it took, from the first call to the last answer, and by how much the
 * process had grown. A change is told after the time from before the call that makes it. */
#include <semaphore.h>

#include "clave/clave.h"
#include "measure.h"

enum { PATIENCE_MS = 120000, WARM_UP = 20, JSON_CAP = 256 };

static void check(clave_err err, const char *what)
{
    if (err == CLAVE_OK)
        return;
    fprintf(stderr, "clave_services: %s: %s\n", what, clave_strerror(err));
    exit(1);
}

static clave_client *session(clave_loop *loop, const char *connect)
{
    clave_client *client;
    check(clave_client_open(&client, loop, connect, NULL), "open");
    check(clave_client_wait(client, PATIENCE_MS), "connect");
    return client;
}

static size_t describe(char json[JSON_CAP], const char *id, int64_t registered)
{
    const clave_instance i = {.name = "web",
                              .id = id,
                              .address = "10.0.0.1",
                              .port = 80,
                              .payload = "\"of the bench\"",
                              .registered = registered};
    return clave_instance_format(&i, json, JSON_CAP);
}

static clave_persistent_node *keep(clave_client *c, const char *id)
{
    char json[JSON_CAP], path[64];
    clave_persistent_node *n;
    clave_persistent_node_options o = CLAVE_PERSISTENT_NODE_OPTIONS_INIT;
    snprintf(path, sizeof path, "/services/web/%s", id);
    o.replace = true;
    o.data = json;
    o.len = describe(json, id, 1);
    check(clave_persistent_node_new(&n, c, path, &o), "register");
    return n;
}

static void register_all(const char *connect, int n)
{
    clave_client *c = session(NULL, connect);
    clave_persistent_node **nodes = calloc((size_t)n, sizeof *nodes);
    long before = own_status("VmRSS:");
    double begin = now_us();
    for (int i = 0; i < n; i++) {
        char id[32];
        snprintf(id, sizeof id, "instance-%06d", i);
        nodes[i] = keep(c, id);
    }
    for (int i = 0; i < n; i++)
        check(clave_persistent_node_await(nodes[i], PATIENCE_MS), "registered");
    double us = now_us() - begin;
    long all = own_status("VmRSS:");
    printf("{\"ms\": %.1f, \"rss_mb\": %.2f, \"all_mb\": %.1f}\n", us / 1e3,
           (double)(all - before) / 1024, (double)all / 1024);
    clave_client_close(c, 5000);
    for (int i = 0; i < n; i++)
        clave_persistent_node_free(nodes[i]);
    free(nodes);
}

struct seen {
    double *us, sent;
    size_t n, of_each, count;
    bool counts;
    int64_t wanted;
    sem_t all;
};

static void on_event(clave_async_instances *d, const clave_instances_event *ev, void *arg)
{
    struct seen *s = arg;
    (void)d;
    if (ev->type != CLAVE_INSTANCES_CHANGED || ev->now->instance->registered != s->wanted)
        return;
    if (s->counts)
        s->us[s->n++] = now_us() - s->sent;
    if (++s->count == s->of_each)
        sem_post(&s->all);
}

static void change(const char *connect, int n, int writes)
{
    struct seen s = {.of_each = (size_t)n};
    const clave_instances_options o = {.size = sizeof o, .service = "web"};
    clave_loop *loop;
    clave_client **clients = calloc((size_t)n, sizeof(clave_client *)), *writer;
    clave_instances **followed = calloc((size_t)n, sizeof(clave_instances *));
    s.us = calloc((size_t)n * (size_t)writes, sizeof *s.us);
    sem_init(&s.all, 0, 0);
    writer = session(NULL, connect);
    clave_persistent_node *node = keep(writer, "changes");
    check(clave_persistent_node_await(node, PATIENCE_MS), "registered");
    check(clave_loop_new(&loop), "loop");
    for (int i = 0; i < n; i++) {
        clients[i] = session(loop, connect);
        check(clave_instances_new(&followed[i], clients[i], &o, on_event, &s), "follow");
        check(clave_instances_wait(followed[i], PATIENCE_MS), "load");
    }
    for (int i = -WARM_UP; i < writes; i++) {
        char json[JSON_CAP];
        s.count = 0;
        s.wanted = 1000 + i;
        s.counts = i >= 0;
        size_t len = describe(json, "changes", s.wanted);
        s.sent = now_us();
        check(clave_persistent_node_set(node, json, len, PATIENCE_MS), "change");
        sem_wait(&s.all);
    }
    times_sort(s.us, s.n);
    printf("{\"p50_us\": %.1f, \"p99_us\": %.1f}\n", times_p50(s.us, s.n), times_p99(s.us, s.n));
    for (int i = 0; i < n; i++) {
        clave_instances_free(followed[i]);
        clave_client_close(clients[i], 1000);
    }
    clave_persistent_node_free(node);
    clave_client_close(writer, 1000);
    clave_loop_free(loop);
    sem_destroy(&s.all);
    free(followed);
    free(clients);
    free(s.us);
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";
    if (argc == 4 && strcmp(verb, "register") == 0)
        register_all(argv[2], atoi(argv[3]));
    else if (argc == 5 && strcmp(verb, "change") == 0)
        change(argv[2], atoi(argv[3]), atoi(argv[4]));
    else
        return fprintf(stderr, "usage: see the top of clave_services.c\n"), 64;
    return 0;
}
