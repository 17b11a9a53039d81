/* metrics.c - clave/metrics.h: adds up the counters of the clients of all loops. Each loop adds up
 * its own clients, on its thread, so no counter needs a lock. A client that is closed leaves its
 * counters to its loop, and a loop that is freed leaves them to the process; so each counts exactly
 * once. */
#include "clave/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/prometheus.h"
#include "runtime/blocking/call.h"

enum { MOST_PAGE = 1024 * 1024 };

_Static_assert((int)CLAVE_METRICS_TEXT == (int)PROMETHEUS_TEXT &&
                   (int)CLAVE_METRICS_OPENMETRICS == (int)PROMETHEUS_OPENMETRICS,
               "the public names of the formats");

struct loop_visit_args {
    clave_loop *loop;
    struct client_totals *totals;
};

static void add_loop(void *arg)
{
    const struct loop_visit_args *v = arg;
    clave__client_totals_add(v->totals, &v->loop->past);
    for (struct list *e = v->loop->clients.next; e != &v->loop->clients; e = e->next)
        clave__client_totals_add_client(v->totals,
                                        LIST_ENTRY(e, struct clave_client, in_loop)->async);
}

/* A loop that is ending has no clients any more, and its totals do not change. */
static clave_err visit_loop(clave_loop *l, struct client_totals *t)
{
    struct loop_visit_args v = {l, t};
    clave_err err = clave__loop_run(l, add_loop, &v);
    if (err != CLAVE_ECLOSED)
        return err;
    clave__loop_lock(l);
    clave__client_totals_add(t, &l->past);
    clave__loop_unlock(l);
    return CLAVE_OK;
}

static clave_err gather(struct client_totals *t)
{
    clave_loop **list;
    size_t n;
    clave_err err = clave__loops_list(&list, &n, t);
    for (size_t i = 0; i < n; i++) {
        /* two loops that waited for each other would wait forever */
        if (err == CLAVE_OK && clave__loop_is_current(list[i]))
            err = CLAVE_ELOOPTHREAD;
    }
    for (size_t i = 0; i < n; i++) {
        if (err == CLAVE_OK)
            err = visit_loop(list[i], t);
        clave__loop_unref(list[i]);
    }
    free(list);
    return err;
}

static clave_err write_page(clave_metrics_format format, struct buf *out)
{
    struct client_totals t;
    struct prometheus p = clave__prometheus_to(out, (enum prometheus_format)format);
    clave_err err = gather(&t);
    if (err != CLAVE_OK)
        return err;
    clave__client_totals_put(&p, &t);
    clave__prometheus_end(&p);
    return p.err;
}

const char *clave_metrics_content_type(clave_metrics_format format)
{
    return clave__prometheus_content_type((enum prometheus_format)format);
}

clave_metrics_format clave_metrics_accepted(const char *accept)
{
    return (clave_metrics_format)clave__prometheus_accepted(accept);
}

clave_err clave_metrics_write(clave_metrics_format format, clave_metrics_cb *write, void *arg)
{
    struct clave_mem mem = clave__mem_or_default(NULL);
    struct buf page;
    clave__buf_init(&page, &mem, MOST_PAGE);
    clave_err err = write_page(format, &page);
    if (err == CLAVE_OK)
        err = write(arg, (const char *)clave__buf_bytes(&page), clave__buf_len(&page));
    clave__buf_fini(&page);
    return err;
}

struct room {
    char *buf;
    size_t cap;
    size_t *len;
};

static clave_err copy_page(void *arg, const char *text, size_t n)
{
    const struct room *room = arg;
    *room->len = n;
    if (n >= room->cap)
        return CLAVE_ETOOBIG;
    memcpy(room->buf, text, n);
    room->buf[n] = '\0';
    return CLAVE_OK;
}

clave_err clave_metrics_copy(clave_metrics_format format, char *buf, size_t cap, size_t *len)
{
    struct room room = {buf, cap, len};
    *len = 0;
    if (cap > 0)
        *buf = '\0';
    return clave_metrics_write(format, copy_page, &room);
}
