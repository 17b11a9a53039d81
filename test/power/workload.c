#include "workload.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "recorder.h"
#include "runtime/rig.h"

enum { CLIENTS = 2, WINDOW = 12, BIGGEST = 3000, SNAP_COUNT = 60 };

struct client {
    clave_client *session;
    struct rand_state rand;
    unsigned number;
    unsigned made;
    unsigned writes;
    atomic_uint answered;
    char data[BIGGEST];
};

static struct client clients[CLIENTS];

static void make(clave_async_client *c, struct client *w);

static void on_done(clave_async_client *c, const clave_result *res, void *arg)
{
    struct client *w = arg;
    if (res->err == CLAVE_OK || clave_err_classify(res->err) == CLAVE_CLASS_FINAL)
        recorder_ack(res->zxid);
    if (w->made < w->writes)
        make(c, w);
    atomic_fetch_add(&w->answered, 1);
}

static void create(clave_async_client *c, struct client *w, const char *path)
{
    size_t len = (size_t)clave__rand_below(&w->rand, BIGGEST);
    clave_create_options o = {.size = sizeof o};
    if (clave__rand_below(&w->rand, 4) == 0)
        o.mode = CLAVE_EPHEMERAL;
    assert_int_equal(clave_async_create(c, path, w->data, len, &o, on_done, w), CLAVE_OK);
}

/* All or nothing: two nodes, and the one that counts them. */
static void create_two(clave_async_client *c, struct client *w, const char *path)
{
    char first[80], second[80];
    clave_op ops[] = {
        {.kind = CLAVE_OP_CREATE, .path = first, .data = w->data, .len = 700},
        {.kind = CLAVE_OP_CREATE, .path = second, .data = w->data, .len = 900},
        {.kind = CLAVE_OP_SET, .path = "/count", .data = path, .len = strlen(path), .version = -1},
    };
    snprintf(first, sizeof first, "%s-a", path);
    snprintf(second, sizeof second, "%s-b", path);
    assert_int_equal(clave_async_multi(c, ops, 3, on_done, w), CLAVE_OK);
}

static void make(clave_async_client *c, struct client *w)
{
    char path[64];
    unsigned i = w->made++;
    unsigned back = i > 0 ? (unsigned)clave__rand_below(&w->rand, i) : 0;
    snprintf(path, sizeof path, "/%u-%llx-%u", w->number,
             (unsigned long long)clave_async_client_session_id(c), i);
    switch (clave__rand_below(&w->rand, 8)) {
    case 0:
        create_two(c, w, path);
        break;
    case 1:
        assert_int_equal(clave_async_set(c, "/count", path, strlen(path), -1, on_done, w),
                         CLAVE_OK);
        break;
    case 2: /* many are not there: a failed request is logged too */
        snprintf(path, sizeof path, "/%u-%llx-%u", w->number,
                 (unsigned long long)clave_async_client_session_id(c), back);
        assert_int_equal(clave_async_delete(c, path, -1, on_done, w), CLAVE_OK);
        break;
    default:
        create(c, w, path);
        break;
    }
}

static void begin(clave_async_client *c, void *arg)
{
    struct client *w = arg;
    for (int i = 0; i < WINDOW && w->made < w->writes; i++)
        make(c, w);
}

static void wait_for(unsigned part)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        while (atomic_load(&clients[i].answered) < clients[i].writes * part / 3)
            sched_yield();
}

static void on_nothing(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    (void)res;
    (void)arg;
}

/* When it is connected: the clients may have written all that they had to. */
static void write_once(clave_async_client *c, void *arg)
{
    (void)arg;
    assert_int_equal(clave_async_set(c, "/count", "", 0, -1, on_nothing, NULL), CLAVE_OK);
}

/* The disk fails when a start syncs what it has found. The next one finds the same, in the page
 * cache, and its sync would succeed without writing anything. */
static void fail_to_start(const struct server_run_options *o)
{
    char fault[600];
    struct server_run *r;
    recorder_set_syncs(SYNCS_FAIL);
    assert_int_equal(clave__server_run_new(&r, o, fault, sizeof fault), CLAVE_EIO);
}

/* The server ends with a batch that was written and not synced, and is started again: what it finds
 * there it will show, so that it has to be on the disk first. */
static struct rig *end_unsynced(struct rig *r, const struct server_run_options *o, clave_client *s,
                                enum syncs how)
{
    recorder_set_syncs(how);
    assert_int_equal(clave_client_run(s, write_once, NULL), CLAVE_OK);
    assert_int_equal(rig_join(r, NULL, 0), CLAVE_EIO);
    fail_to_start(o);
    recorder_set_syncs(SYNCS_WORK);
    return rig_start_with(o);
}

static void open_client(struct client *w, unsigned number, unsigned writes, uint64_t seed)
{
    *w = (struct client){.number = number, .writes = writes};
    clave__rand_seed(&w->rand, seed + number);
    for (size_t k = 0; k < BIGGEST; k++)
        w->data[k] = (char)clave__rand_u64(&w->rand);
    memset(w->data + BIGGEST / 2, 0, BIGGEST / 6); /* a hole that is none */
}

void workload_run(const char *data, unsigned writes, uint64_t seed)
{
    const char *address = rig_unix();
    struct server_run_options o = rig_options(data, &address);
    o.engine.snap_count = SNAP_COUNT;
    struct rig *r = rig_start_with(&o);
    clave_client *first = rig_session(r->connect);
    clave_create(first, "/count", "", 0, NULL, RIG_PATIENCE_MS, NULL);
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct client *w = &clients[i];
        open_client(w, i, writes / CLIENTS, seed);
        w->session = rig_session(r->connect);
        assert_int_equal(clave_client_run(w->session, begin, w), CLAVE_OK);
    }
    wait_for(1);
    r = end_unsynced(r, &o, first, SYNCS_FAIL);
    wait_for(2);
    r = end_unsynced(r, &o, first, SYNCS_NEVER_COME);
    wait_for(3);
    for (unsigned i = 0; i < CLIENTS; i++)
        clave_client_close(clients[i].session, RIG_PATIENCE_MS);
    clave_client_close(first, RIG_PATIENCE_MS);
    assert_int_equal(rig_stop(r), CLAVE_OK);
}
