#include "lib/deadlock_cycle.h"
#include "lib/unit.h"

struct memnet *cycle_world(size_t clients)
{
    return memnet_new(&(struct memnet_options){.clients = clients, .timeout_ms = CYCLE_TIMEOUT});
}

clave_mutex_options cycle_options(void)
{
    static const char form[] = "clave/1\nhost=h\n";
    return (clave_mutex_options){
        .size = sizeof(clave_mutex_options), .data = form, .len = sizeof form - 1};
}

void cycle_path(char out[32], size_t i)
{
    sprintf(out, "/locks/%c", (char)('a' + i));
}

void cycle_open(struct deadlock_cycle *r, struct memnet *p, size_t n, const clave_mutex_options *o)
{
    char path[32];
    *r = (struct deadlock_cycle){.p = p, .n = n};
    for (size_t i = 0; i < n; i++) {
        char data[128];
        char name[] = {(char)('A' + i), '\0'};
        clave_identity id = {.host = "h", .pid = (int64_t)i + 1, .name = name};
        clave_mutex_options mine = {.size = sizeof mine};
        if (o)
            mine = *o;
        mine.data = data;
        mine.len = clave_identity_format(&id, data, sizeof data);
        cycle_path(path, i);
        assert_int_equal(owner_open(&r->has[i], p, i, path, &mine), CLAVE_OK);
        cycle_path(path, (i + 1) % n);
        assert_int_equal(owner_open(&r->wants[i], p, i, path, &mine), CLAVE_OK);
        assert_int_equal(owner_acquire(&r->has[i], OWNER_FOREVER), CLAVE_OK);
    }
}

void cycle_wait(struct deadlock_cycle *r, size_t i)
{
    assert_int_equal(owner_acquire(&r->wants[i], OWNER_FOREVER), CLAVE_OK);
}

void cycle_close(struct deadlock_cycle *r)
{
    for (size_t i = 0; i < r->n; i++) {
        owner_close(&r->has[i]);
        owner_close(&r->wants[i]);
    }
    memnet_settle(r->p);
    assert_int_equal(memnet_stats(r->p).ephemerals, 0);
    assert_int_equal(memnet_stats(r->p).watches, 0);
    memnet_free(r->p);
}
