/* clave_cache.c - clave's cache on the public API; CuratorTree.java measures the same of Curator's.
 *
 *   clave_cache fill CONNECT PARENTS CHILDREN BYTES   makes what the others read, below /bench
 *   clave_cache load CONNECT TIMES        loads /bench/0 and /bench/1 in one process, TIMES times
 *   clave_cache change CONNECT N WRITES   N sessions, each with a cache of /bench/small: a node is
 *                                         written, and again when all have seen it
 *
 * `fill` makes /bench/0 and /bench/1, each with half of the nodes: PARENTS of CHILDREN each; with 0
 * PARENTS the CHILDREN are right below. There are two because CuratorCache 5.4 stops with 65 535
 * requests under way (CURATOR-690): one cache of 100 000 nodes gets there, two of 50 000 do not.
 * `load` prints how long the first load took, the median of the others, and by how much the process
 * had grown after the first. A change is seen after the time from before the write, which the data
 * tells, to the call of a cache's listener. */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clave/clave.h"
#include "measure.h"

enum { ROOTS = 2, BATCH = 1000, PATIENCE_MS = 120000, WARM_UP = 20 };

static void check(clave_err err, const char *what)
{
    if (err == CLAVE_OK)
        return;
    fprintf(stderr, "clave_cache: %s: %s\n", what, clave_strerror(err));
    exit(1);
}

static void *room(size_t n)
{
    void *p = calloc(1, n);
    if (!p)
        check(CLAVE_ENOMEM, "memory");
    return p;
}

static clave_client *session(clave_loop *loop, const char *connect)
{
    clave_client *client;
    check(clave_client_open(&client, loop, connect, NULL), "open");
    check(clave_client_wait(client, PATIENCE_MS), "connect");
    return client;
}

/* ---- fill ------------------------------------------------------------------------------------ */

struct batch {
    clave_client *client;
    clave_op ops[BATCH];
    char paths[BATCH][96];
    size_t n;
    const char *data;
    size_t len;
};

static void batch_send(struct batch *b)
{
    if (b->n > 0)
        check(clave_multi(b->client, b->ops, b->n, PATIENCE_MS, NULL), "fill");
    b->n = 0;
}

static void batch_create(struct batch *b, const char *path)
{
    char *copy = b->paths[b->n];
    snprintf(copy, sizeof b->paths[0], "%s", path);
    b->ops[b->n++] =
        (clave_op){.kind = CLAVE_OP_CREATE, .path = copy, .data = b->data, .len = b->len};
    if (b->n == BATCH)
        batch_send(b);
}

static void fill_children(struct batch *b, const char *above, int children)
{
    char path[96];
    for (int i = 0; i < children; i++) {
        snprintf(path, sizeof path, "%s/%06d", above, i);
        batch_create(b, path);
    }
}

static void fill_root(struct batch *b, const char *root, int parents, int children)
{
    char path[64];
    batch_create(b, root);
    if (parents == 0)
        fill_children(b, root, children / ROOTS);
    for (int i = 0; i < parents / ROOTS; i++) {
        snprintf(path, sizeof path, "%s/%04d", root, i);
        batch_create(b, path);
        fill_children(b, path, children);
    }
}

static void fill(const char *connect, int parents, int children, size_t bytes)
{
    struct batch *b = room(sizeof *b);
    char *data = room(bytes + 1), root[32];
    memset(data, 'x', bytes);
    b->client = session(NULL, connect);
    b->data = data;
    b->len = bytes;
    batch_create(b, "/bench");
    for (int i = 0; i < ROOTS; i++) {
        snprintf(root, sizeof root, "/bench/%d", i);
        fill_root(b, root, parents, children);
    }
    batch_create(b, "/bench/small");
    fill_children(b, "/bench/small", 10);
    batch_send(b);
    printf("{}\n");
    clave_client_close(b->client, 1000);
    free(data);
    free(b);
}

/* ---- load ------------------------------------------------------------------------------------ */

static double load_once(clave_client *client, clave_cache **caches)
{
    char root[32];
    double begin = now_us();
    for (int i = 0; i < ROOTS; i++) {
        snprintf(root, sizeof root, "/bench/%d", i);
        check(clave_cache_new(&caches[i], client, root, NULL, NULL, NULL), "cache");
    }
    for (int i = 0; i < ROOTS; i++)
        check(clave_cache_wait(caches[i], PATIENCE_MS), "load");
    return (now_us() - begin) / 1e3;
}

static void load(const char *connect, int times)
{
    clave_client *client = session(NULL, connect);
    double *ms = room((size_t)times * sizeof *ms);
    size_t nodes = 0, bytes = 0;
    long before = own_status("VmRSS:"), after = 0;
    for (int t = 0; t < times; t++) {
        clave_cache *caches[ROOTS];
        ms[t] = load_once(client, caches);
        if (t == 0)
            after = own_status("VmRSS:");
        for (int i = 0; i < ROOTS; i++) {
            nodes += t == 0 ? clave_cache_status_of(caches[i]).count : 0;
            bytes += t == 0 ? clave_cache_status_of(caches[i]).bytes : 0;
            clave_cache_free(caches[i]);
        }
    }
    times_sort(ms + 1, (size_t)times - 1);
    double again = times > 1 ? times_p50(ms + 1, (size_t)times - 1) : ms[0];
    printf("{\"nodes\": %zu, \"first_ms\": %.1f, \"again_ms\": %.1f, \"rss_mb\": %.1f, "
           "\"heap_mb\": %.1f}\n",
           nodes, ms[0], again, (double)(after - before) / 1024, (double)bytes / 1048576);
    clave_client_close(client, 1000);
    free(ms);
}

/* ---- change ---------------------------------------------------------------------------------- */

struct seen {
    double *us;
    size_t n, of_each, count; /* the count of those that have seen the write */
    bool counts;
    sem_t all;
};

/* On the loop's thread. */
static void on_event(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    struct seen *s = arg;
    double sent;
    (void)cache;
    if (ev->type != CLAVE_CACHE_CHANGED || ev->now->len != sizeof sent)
        return;
    memcpy(&sent, ev->now->data, sizeof sent);
    if (s->counts)
        s->us[s->n++] = now_us() - sent;
    if (++s->count == s->of_each)
        sem_post(&s->all);
}

static void write_and_wait(clave_client *writer, struct seen *s)
{
    s->count = 0;
    double sent = now_us();
    check(clave_set(writer, "/bench/small/000003", &sent, sizeof sent, -1, PATIENCE_MS, NULL),
          "write");
    sem_wait(&s->all);
}

static void change(const char *connect, int n, int writes)
{
    struct seen s = {.of_each = (size_t)n};
    clave_loop *loop;
    clave_client **clients = room((size_t)n * sizeof(clave_client *)), *writer;
    clave_cache **caches = room((size_t)n * sizeof(clave_cache *));
    long before = own_status("VmRSS:");
    s.us = room((size_t)n * (size_t)writes * sizeof *s.us);
    sem_init(&s.all, 0, 0);
    check(clave_loop_new(&loop), "loop");
    for (int i = 0; i < n; i++) {
        clients[i] = session(loop, connect);
        check(clave_cache_new(&caches[i], clients[i], "/bench/small", NULL, on_event, &s), "cache");
    }
    for (int i = 0; i < n; i++)
        check(clave_cache_wait(caches[i], PATIENCE_MS), "load");
    writer = session(NULL, connect);
    for (int i = -WARM_UP; i < writes; i++) {
        s.counts = i >= 0;
        write_and_wait(writer, &s);
    }
    long kb = own_status("VmRSS:") - before;
    times_sort(s.us, s.n);
    printf("{\"p50_us\": %.1f, \"p99_us\": %.1f, \"each_kb\": %.1f}\n", times_p50(s.us, s.n),
           times_p99(s.us, s.n), (double)kb / n);
    for (int i = 0; i < n; i++) {
        clave_cache_free(caches[i]);
        clave_client_close(clients[i], 1000);
    }
    clave_client_close(writer, 1000);
    clave_loop_free(loop);
    sem_destroy(&s.all);
    free(clients);
    free(caches);
    free(s.us);
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";
    if (argc == 6 && strcmp(verb, "fill") == 0)
        fill(argv[2], atoi(argv[3]), atoi(argv[4]), (size_t)atol(argv[5]));
    else if (argc == 4 && strcmp(verb, "load") == 0 && atoi(argv[3]) > 0)
        load(argv[2], atoi(argv[3]));
    else if (argc == 5 && strcmp(verb, "change") == 0)
        change(argv[2], atoi(argv[3]), atoi(argv[4]));
    else
        return fprintf(stderr, "usage: see the top of clave_cache.c\n"), 64;
    return 0;
}
