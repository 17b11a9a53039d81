/* instances.c - the events of instances of services, and questions to them, which the loop's thread
 * answers from memory into a note. */
#include "bridge.h"

/* Of a URI that is longer there is none. */
static void instances_put_uri(struct bridge_note *n, const clave_instance *i)
{
    char uri[2048];
    size_t len = clave_instance_uri(i, uri, sizeof uri);
    bridge__put_text(n, len > 0 && len < sizeof uri ? uri : NULL);
}

static void instances_put_entry(struct bridge_note *n, const clave_instances_entry *e)
{
    const clave_instance *i = e ? e->instance : NULL;
    if (!e) {
        bridge__put_none(n);
        return;
    }
    bridge__put_list(n, i ? 15 : 4);
    bridge__put_text(n, e->path);
    bridge__put_text(n, e->service);
    bridge__put_text(n, e->fault);
    bridge__put_stat(n, &e->stat);
    if (!i)
        return;
    bridge__put_text(n, i->name);
    bridge__put_text(n, i->id);
    bridge__put_text(n, i->address);
    bridge__put_int(n, i->port);
    bridge__put_int(n, i->ssl_port);
    bridge__put_text(n, i->payload);
    bridge__put_int(n, i->registered);
    bridge__put_text(n, clave_service_type_name(i->type));
    bridge__put_text(n, i->uri_spec);
    bridge__put_int(n, i->disabled);
    instances_put_uri(n, i);
}

void bridge_on_instances_event(clave_async_instances *d, const clave_instances_event *ev, void *arg)
{
    (void)d;
    const struct bridge_source *s = arg;
    struct bridge_note *n = s->kinds >> ev->type & 1 ? bridge_note_new() : NULL;
    if (!n)
        return;
    n->id = s->id;
    bridge__put_int(n, ev->type);
    instances_put_entry(n, ev->now);
    instances_put_entry(n, ev->was);
    bridge__put_int(n, ev->err);
    bridge__channel_push(s->channel, n);
}

static bool instances_put(const clave_instances_entry *e, void *arg)
{
    instances_put_entry(arg, e);
    return true;
}

clave_err bridge_instances_walk(const clave_async_instances *d, struct bridge_note *n)
{
    clave_async_instances_walk(d, instances_put, n);
    return CLAVE_OK;
}

clave_err bridge_instances_pick(clave_async_instances *d, intptr_t how, struct bridge_note *n)
{
    clave_instances_entry e;
    clave_err err = clave_async_instances_pick(d, (clave_pick)how, &e);
    if (err == CLAVE_OK)
        instances_put_entry(n, &e);
    return err;
}
