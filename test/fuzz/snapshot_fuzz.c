/* snapshot_fuzz.c - a snapshot of any bytes. With an odd first byte the first seal is made right,
 * so that the nodes before it count; what is loaded can be served, saved, and loaded again. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "lib/memserver.h"
#include "server/store/adler32.h"
#include "server/store/recovery_plan.h"

enum { SEAL = 8 + 5 };

/* The file ends with the seal over everything before it. */
static void mend(uint8_t *p, size_t n)
{
    if (n < 16 + SEAL)
        return;
    memcpy(p, "ZKSN", 4);
    uint32_t sum = clave__checksum(CHECKSUM_START, p, n - SEAL);
    for (size_t i = 0; i < 8; i++)
        p[n - SEAL + i] = i < 4 ? 0 : (uint8_t)(sum >> (8 * (7 - i)));
    memcpy(p + n - 5, "\0\0\0\1/", 5);
}

static void count_node(void *arg, const struct node_view *n)
{
    size_t *nodes = arg;
    must(n->path.n >= 0 && n->stat.num_children >= 0);
    ++*nodes;
}

static void count_session(void *arg, int64_t id, int32_t timeout_ms)
{
    size_t *sessions = arg;
    (void)id;
    (void)timeout_ms;
    ++*sessions;
}

/* What `clave data` shows of it. */
static void look_through(const struct memserver *d)
{
    size_t nodes = 0, sessions = 0;
    clave__server_each_node(d->s, count_node, &nodes);
    clave__server_each_session(d->s, count_session, &sessions);
    must(nodes >= memserver_stats(d).nodes && sessions == memserver_stats(d).sessions);
}

static void serve_and_save(struct memserver *d)
{
    struct memserver e;
    struct buf b;
    char fault[200];
    int64_t zxid;
    memserver_start(d);
    clave__buf_init(&b, &d->mem, SIZE_MAX / 4);
    must(clave__server_save_snapshot(d->s, &b, &zxid) == CLAVE_OK);
    must(memserver_open_bare(&e, NULL) == CLAVE_OK);
    must(clave__server_load_snapshot(e.s, b.data, b.tail, fault, sizeof fault) == CLAVE_OK);
    must(memserver_stats(&e).nodes == memserver_stats(d).nodes);
    must(memserver_stats(&e).sessions == memserver_stats(d).sessions);
    memserver_close(&e);
    clave__buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    bool mended = input_byte(&in) & 1;
    uint8_t *copy = malloc(in.n ? in.n : 1);
    struct memserver d;
    char fault[200] = "";
    must(copy != NULL);
    if (in.n > 0)
        memcpy(copy, in.p, in.n);
    if (mended)
        mend(copy, in.n);
    must(memserver_open_bare(&d, NULL) == CLAVE_OK);
    clave_err err = clave__server_load_snapshot(d.s, copy, in.n, fault, sizeof fault);
    must(err == CLAVE_OK || err == CLAVE_ECORRUPT);
    must((err == CLAVE_OK) == (fault[0] == '\0'));
    if (err == CLAVE_ECORRUPT)
        must(memserver_stats(&d).nodes == 4 && memserver_stats(&d).sessions == 0);
    look_through(&d);
    serve_and_save(&d);
    memserver_close(&d);
    free(copy);
    return 0;
}
