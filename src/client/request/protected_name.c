/* protected_name.c - the names of protected creates, "_c_<uuid>-", as Curator and kazoo read them.
 *
 * The UUID is drawn, and then mixed with the id of the session and with the time: clients whose
 * seeds are equal draw equal numbers, but no two of them have one session at one time. A name is
 * made once, for a create; it stays when the session changes, since the search for the node after
 * a lost answer looks for the name that was sent.
 *
 * A create submitted while there is no session is sent in the next one. Its name is completed when
 * that session has been made, inside the waiting request. */
#include <assert.h>
#include <string.h>

#include "base/path.h"
#include "client/client_internal.h"
#include "client/request/create_steps.h"

/* Before the path in the frame of a create come the lengths of the frame and of the path, the xid
 * and the opcode. */
enum { PATH_AT = 16, UUID_AT = 3 };

void clave__client_protect(clave_async_client *c, char out[CLAVE_PROTECTED_PREFIX + 1])
{
    memcpy(out, "_c_", UUID_AT);
    clave__rand_uuid(&c->rand, out + UUID_AT);
    clave__uuid_mix(out + UUID_AT, (uint64_t)c->session.id, (uint64_t)c->now);
    memcpy(out + CLAVE_PROTECTED_PREFIX - 1, "-", 2);
}

/* The request of a create that has not been sent yet; NULL: it has been. */
static struct request *protected_name_waiting_request(const struct creation *k)
{
    const struct list *unsent = &k->client->pipeline.unsent;
    for (struct list *l = unsent->next; l != unsent; l = l->next) {
        struct request *r = LIST_ENTRY(l, struct request, link);
        if (r->arg == k && strcmp(r->path, k->what.path) == 0)
            return r;
    }
    return NULL;
}

static void complete_name(struct creation *k)
{
    const clave_async_client *c = k->client;
    struct request *r = protected_name_waiting_request(k);
    size_t dir = (size_t)(clave__path_name(k->what.path) - k->what.path);
    size_t in_frame = PATH_AT + c->hosts.chroot_len + dir;
    char *name = k->name;
    if (!r)
        return;
    assert(memcmp(r->frame + in_frame, name, CLAVE_PROTECTED_PREFIX) == 0);
    clave__uuid_mix(name + UUID_AT, (uint64_t)c->session.id, 0);
    memcpy(r->frame + in_frame, name, CLAVE_PROTECTED_PREFIX);
    memcpy(r->path + dir, name, CLAVE_PROTECTED_PREFIX);
}

void clave__creations_session_made(clave_async_client *c)
{
    for (struct list *l = c->creations.next; l != &c->creations; l = l->next) {
        struct creation *k = LIST_ENTRY(l, struct creation, link);
        if (k->sent_in != 0)
            continue;
        k->sent_in = c->session.id;
        if ((k->flags & CLAVE_CREATE_PROTECTED) && !k->lost.named)
            complete_name(k);
    }
}
