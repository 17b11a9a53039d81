#include "lib/deadlock_cycle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct pair *ring_world(size_t clients)
{
    return pair_new(&(struct pair_options){.clients = clients, .timeout_ms = RING_TIMEOUT});
}

clave_mutex_options ring_options(void)
{
    static const char form[] = "clave/1\nhost=h\n";
    return (clave_mutex_options){
        .size = sizeof(clave_mutex_options), .data = form, .len = sizeof form - 1};
}

void ring_path(char out[32], size_t i)
{
    sprintf(out, "/locks/%c", (char)('a' + i));
}

void ring_open(struct ring *r, struct pair *p, size_t n, const clave_mutex_options *o)
{
    char path[32];
    *r = (struct ring){.p = p, .n = n};
    for (size_t i = 0; i < n; i++) {
        char data[128];
        char name[] = {(char)('A' + i), '\0'};
        clave_identity id = {.host = "h", .pid = (int64_t)i + 1, .name = name};
        clave_mutex_options mine = {.size = sizeof mine};
        if (o)
            mine = *o;
        mine.data = data;
        mine.len = clave_identity_format(&id, data, sizeof data);
        ring_path(path, i);
        assert_int_equal(seat_open(&r->has[i], p, i, path, &mine), CLAVE_OK);
        ring_path(path, (i + 1) % n);
        assert_int_equal(seat_open(&r->wants[i], p, i, path, &mine), CLAVE_OK);
        assert_int_equal(seat_acquire(&r->has[i], SEAT_EVER), CLAVE_OK);
    }
}

void ring_want(struct ring *r, size_t i)
{
    assert_int_equal(seat_acquire(&r->wants[i], SEAT_EVER), CLAVE_OK);
}

void ring_close(struct ring *r)
{
    for (size_t i = 0; i < r->n; i++) {
        seat_close(&r->has[i]);
        seat_close(&r->wants[i]);
    }
    pair_settle(r->p);
    assert_int_equal(pair_stats(r->p).ephemerals, 0);
    assert_int_equal(pair_stats(r->p).watches, 0);
    pair_free(r->p);
}
