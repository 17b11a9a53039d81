/* gate_clients.c - see gate_clients.h. */
#include "runtime/gate/gate_clients.h"

#include <assert.h>

#include "runtime/client/uv_client.h"

/*   NEW ──▶ RUNNING ──▶ STOPPING ──▶ STOPPED ──▶ freed
 *    └────────────────────────────────▲ */
enum client_phase { CLIENT_NEW, CLIENT_RUNNING, CLIENT_STOPPING, CLIENT_STOPPED };

struct gate_client {
    struct map_node node; /* by client; must be the first member */
    struct list in_changed;
    struct gate_clients *of;
    clave_async_client *client;
    clave_uv *driver; /* for RUNNING and STOPPING */
    enum client_phase phase;
    bool is_doomed; /* the engine is done with it */
};

static uint32_t gate_client_hash(const clave_async_client *c)
{
    return clave__map_hash_u64((uint64_t)(uintptr_t)c);
}

static bool gate_client_is(const struct map_node *node, const void *key)
{
    const struct gate_client *k = (const void *)node;
    return k->client == key;
}

static struct gate_client *gate_client_find(const struct gate_clients *g,
                                            const clave_async_client *c)
{
    struct map_node *node = clave__map_find(&g->by_client, gate_client_hash(c), gate_client_is, c);
    return node ? MAP_ENTRY(node, struct gate_client, node) : NULL;
}

static void gate_client_destroy(struct gate_client *k)
{
    assert(k->phase == CLIENT_NEW || k->phase == CLIENT_STOPPED);
    struct gate_clients *g = k->of;
    clave_async_client *c = k->client;
    clave__map_remove(&g->by_client, &k->node);
    list_remove(&k->in_changed);
    clave__mem_free(g->mem, k);
    clave_async_client_free(c); /* this may call the engine */
}

static void gate_client_on_stopped(void *arg)
{
    struct gate_client *k = arg;
    assert(k->phase == CLIENT_STOPPING);
    assert(k->of->running > 0);
    k->phase = CLIENT_STOPPED;
    k->driver = NULL;
    k->of->running--;
    if (k->is_doomed)
        gate_client_destroy(k);
}

static void gate_client_stop(struct gate_client *k)
{
    if (k->phase == CLIENT_NEW)
        k->phase = CLIENT_STOPPED;
    if (k->phase != CLIENT_RUNNING)
        return;
    k->phase = CLIENT_STOPPING;
    clave_uv_stop(k->driver, gate_client_on_stopped, k);
}

/* Starts a client; if there is no memory, it is tried again in the next turn. */
static void gate_client_start(struct gate_client *k)
{
    assert(k->phase == CLIENT_NEW);
    struct gate_clients *g = k->of;
    if (clave__uv_start(&k->driver, g->loop, &g->wakeup, k->client) == CLAVE_OK) {
        k->phase = CLIENT_RUNNING;
        g->running++;
    } else {
        list_push_back(&g->changed, &k->in_changed);
    }
}

static void gate_client_change(struct gate_client *k)
{
    if (k->is_doomed)
        gate_client_stop(k);
    else if (k->phase == CLIENT_NEW)
        gate_client_start(k);
    else if (k->phase == CLIENT_RUNNING)
        clave_uv_flush(k->driver);
    if (k->is_doomed && k->phase == CLIENT_STOPPED)
        gate_client_destroy(k);
}

static void gate_clients_on_turn(uv_idle_t *turn)
{
    struct gate_clients *g = turn->data;
    struct list now, *e;
    list_init(&now);
    list_splice(&now, &g->changed);
    while ((e = list_pop_front(&now)))
        gate_client_change(LIST_ENTRY(e, struct gate_client, in_changed));
    if (list_empty(&g->changed))
        uv_idle_stop(turn);
}

static void gate_client_note(struct gate_client *k)
{
    if (!list_empty(&k->in_changed))
        return;
    list_push_back(&k->of->changed, &k->in_changed);
    uv_idle_start(&k->of->turn, gate_clients_on_turn);
}

/* ---- what the engine requests ---------------------------------------------------------------- */

clave_err gate_clients_open(struct gate_clients *g, const clave_client_options *o,
                            clave_async_client **out)
{
    struct gate_client *k = clave__mem_zalloc(g->mem, sizeof *k);
    *out = NULL;
    if (!k)
        return CLAVE_ENOMEM;
    clave_err err = clave_async_client_new(out, o);
    if (err != CLAVE_OK) {
        clave__mem_free(g->mem, k);
        return err;
    }
    k->of = g;
    k->client = *out;
    list_init(&k->in_changed);
    clave__map_insert(&g->by_client, &k->node, gate_client_hash(k->client));
    gate_client_note(k);
    return CLAVE_OK;
}

void gate_clients_free(struct gate_clients *g, clave_async_client *c)
{
    struct gate_client *k = gate_client_find(g, c);
    assert(k && !k->is_doomed);
    k->is_doomed = true;
    if (!g->is_ending)
        gate_client_note(k);
    else if (k->phase !=
             CLIENT_STOPPING) /* its driver still has it, and gate_client_on_stopped will free it */
        gate_client_destroy(k);
}

void gate_clients_flush(struct gate_clients *g, clave_async_client *c)
{
    gate_client_note(gate_client_find(g, c));
}

/* ---- life ----------------------------------------------------------------------------------- */

clave_err gate_clients_init(struct gate_clients *g, uv_loop_t *loop, const struct clave_mem *mem)
{
    *g = (struct gate_clients){.loop = loop, .mem = mem};
    list_init(&g->changed);
    clave_err err = clave__map_init(&g->by_client, mem, clave_random_seed());
    if (err != CLAVE_OK)
        return err;
    uv_idle_init(loop, &g->turn);
    g->turn.data = g;
    clave__wakeup_open(&g->wakeup, loop);
    return CLAVE_OK;
}

void gate_clients_stop(struct gate_clients *g)
{
    struct map_node *next;
    uv_idle_stop(&g->turn);
    g->is_ending = true;
    for (struct map_node *node = clave__map_next(&g->by_client, NULL); node; node = next) {
        struct gate_client *k = MAP_ENTRY(node, struct gate_client, node);
        next = clave__map_next(&g->by_client, node);
        gate_client_stop(k);
        if (k->is_doomed && k->phase == CLIENT_STOPPED)
            gate_client_destroy(k);
    }
}

void gate_clients_fini(struct gate_clients *g)
{
    assert(g->running == 0);
    struct map_node *node;
    while ((node = clave__map_next(&g->by_client, NULL)))
        gate_client_destroy(MAP_ENTRY(node, struct gate_client, node));
    clave__map_fini(&g->by_client);
    uv_close((uv_handle_t *)&g->turn, NULL);
    clave__wakeup_close(&g->wakeup, NULL, NULL);
}
