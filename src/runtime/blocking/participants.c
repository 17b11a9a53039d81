/* participants.c - clave_participants: the queue of a lock or an election, copied into one block
 * that the caller frees. */
#include "clave/participants.h"

#include <stdlib.h>

#include "base/deadline.h"
#include "runtime/blocking/arena.h"
#include "runtime/blocking/call.h"

static void blocking_participants_put(struct arena *p, const clave_participant *from,
                                      clave_participant *to)
{
    *to = *from;
    to->node = arena_text(p, from->node);
    arena_identity(p, &to->identity);
}

static clave_participant_list *blocking_participants_copy(const clave_participant *list, size_t n)
{
    struct arena p = {0};
    clave_participant scratch;
    for (size_t i = 0; i < n; i++)
        blocking_participants_put(&p, &list[i], &scratch);
    clave_participant_list *r = malloc(sizeof *r + n * sizeof *list + p.n);
    if (!r)
        return NULL;
    clave_participant *at = (clave_participant *)(r + 1);
    r->list = at;
    r->n = n;
    p = (struct arena){.at = (char *)(at + n)};
    for (size_t i = 0; i < n; i++)
        blocking_participants_put(&p, &list[i], &at[i]);
    return r;
}

void clave_participant_list_free(clave_participant_list *r)
{
    free(r);
}

struct request {
    clave_participants_fn *call;
    const char *path;
};

/* Writes to the reply, which exists as long as the call, even if the waiting thread has given up.
 */
static void blocking_participants_on_participants(clave_async_client *client, clave_err err,
                                                  const clave_participant *list, size_t n,
                                                  void *arg)
{
    struct call *c = arg;
    (void)client;
    if (err == CLAVE_OK) {
        c->reply->data = blocking_participants_copy(list, n);
        err = c->reply->data ? CLAVE_OK : CLAVE_ENOMEM;
    }
    c->reply->err = err;
    clave__call_finish(c, err);
}

static clave_err blocking_participants_begin(struct call *c, void *args)
{
    const struct request *r = args;
    return r->call(c->client->async, r->path, blocking_participants_on_participants, c);
}

clave_err clave_participants(clave_client *c, clave_participants_fn *call, const char *path,
                             int64_t timeout_ms, clave_participant_list **out)
{
    struct request r = {.call = call, .path = path};
    struct call_spec spec = {.begin = blocking_participants_begin, .args = &r};
    clave_reply *reply = NULL;
    int64_t deadline = clave__deadline_after(timeout_ms);
    *out = NULL;
    clave_err err = clave_sync(c, path, timeout_ms);
    if (err != CLAVE_OK)
        return err;
    if (timeout_ms >= 0)
        timeout_ms = deadline_left(deadline, clave_now());
    err = clave__call(c, &spec, timeout_ms, &reply);
    if (err != CLAVE_OK)
        return err;
    *out = reply->data;
    reply->data = NULL;
    clave_reply_free(reply);
    return CLAVE_OK;
}
