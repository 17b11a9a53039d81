/* contender_set_data.c - changes what our node says. Called by the recipes. What must stay true:
 * what others have written to the node is read before it is overwritten. A request to release is
 * reported, and the node goes on saying that somebody has asked. */
#include <string.h>

#include "recipe/contender/contender.h"
#include "recipe/queue/identity.h"

/* Others write to the node only to ask for it. */
enum { DESCRIBE_TRIES = 8 };

struct description {
    struct contender *c;
    clave_identity said; /* its texts are in the same block */
    unsigned tries;
    bool asked; /* somebody else has written to the node */
    char *data; /* what the node will say; owned */
    size_t ndata;
    contender_left *done;
    void *arg;
};

static void set_data_finish(struct description *d, clave_err err)
{
    struct contender *c = d->c;
    if (err == CLAVE_OK) { /* also for nodes still to be created */
        clave__mem_free(c->mem, c->node.data);
        c->node.data = d->data;
        c->node.ndata = d->ndata;
        d->data = NULL;
        c->grant.asked_before |= d->asked;
    }
    bool tell = c->state == CONTENDER_HELD && c->grant.asked_before && c->spec->revocable;
    if (tell) {
        c->grant.asked_before = false;
        c->events->asked(c->owner);
    }
    contender_left *done = d->done;
    void *arg = d->arg;
    clave__mem_free(c->mem, d->data);
    clave__mem_free(c->mem, d);
    done(arg, err);
    clave__contender_end(c);
}

static void set_data_take(const char **out, const char *said)
{
    if (said)
        *out = said;
}

/* Sets d->data, and *out to the same, with the mark of a request if there was one. ENOMEM. */
static clave_err set_data_compose(struct description *d, const void *base, size_t n,
                                  const clave_stat *stat, char **out, size_t *nout)
{
    const struct clave_mem *mem = d->c->mem;
    clave_identity id;
    char *text = clave__mem_strndup(mem, n ? base : "", n);
    bool form = clave__identity_is_form(base, n);
    clave__mem_free(mem, d->data);
    d->data = *out = NULL;
    if (!text)
        return CLAVE_ENOMEM;
    if (form) {
        clave__identity_parse(text, n, &id);
        set_data_take(&id.host, d->said.host);
        set_data_take(&id.name, d->said.name);
        set_data_take(&id.command, d->said.command);
        d->asked |= id.asked;
        id.asked = false;
        d->data = clave__identity_rewrite(mem, &id, base, n, stat, &d->ndata);
        id.asked = d->asked;
        *out = clave__identity_rewrite(mem, &id, base, n, stat, nout);
    } else { /* a candidate's id, which Curator reads */
        const char *said = d->said.text ? d->said.text : text;
        d->ndata = *nout = strlen(said);
        d->data = clave__mem_strndup(mem, said, d->ndata);
        *out = clave__mem_strndup(mem, said, d->ndata);
    }
    clave__mem_free(mem, text);
    return d->data && *out ? CLAVE_OK : CLAVE_ENOMEM;
}

static clave_err set_data_read(struct description *d);

static void set_data_on_described(clave_async_client *client, const clave_result *res, void *arg)
{
    struct description *d = arg;
    clave_err err = res->err;
    (void)client;
    if (err == CLAVE_OK)
        d->c->grant.restored = res->stat->version;
    if (err == CLAVE_EBADVERSION && ++d->tries < DESCRIBE_TRIES) {
        err = set_data_read(d);
        if (err == CLAVE_OK)
            return;
    }
    set_data_finish(d, err);
}

static void on_set_data_read(clave_async_client *client, const clave_result *res, void *arg)
{
    struct description *d = arg;
    struct contender *c = d->c;
    bool ours = c->owner && c->state >= CONTENDER_WAITING && c->state <= CONTENDER_HELD;
    clave_err err = res->err == CLAVE_OK && !ours ? CLAVE_ELOST : res->err;
    char *text = NULL;
    size_t n = 0;
    if (err == CLAVE_OK) {
        int32_t version = res->stat->version;
        bool request = clave__identity_is_request(res->data, res->len);
        const void *base = request ? clave__contender_data(c, &n) : res->data;
        d->asked |= version != 0 && version != c->grant.restored;
        err = set_data_compose(d, base, request ? n : res->len, res->stat, &text, &n);
    }
    if (err == CLAVE_OK)
        err = clave_async_set(client, c->node.watch.path, text, n, res->stat->version,
                              set_data_on_described, d);
    clave__mem_free(c->mem, text);
    if (err != CLAVE_OK)
        set_data_finish(d, err);
}

static clave_err set_data_read(struct description *d)
{
    return clave_async_get(d->c->client, d->c->node.watch.path, NULL, on_set_data_read, d);
}

static void set_data_copy(const char **to, char **at)
{
    if (!*to)
        return;
    size_t n = strlen(*to) + 1;
    memcpy(*at, *to, n);
    *to = *at;
    *at += n;
}

static size_t set_data_size(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

clave_err clave__contender_describe(struct contender *c, const clave_identity *said,
                                    contender_left *done, void *arg)
{
    if (c->state < CONTENDER_WAITING || c->state > CONTENDER_HELD)
        return CLAVE_ENOTHELD;
    struct description *d =
        clave__mem_alloc(c->mem, sizeof *d + set_data_size(said->host) + set_data_size(said->name) +
                                     set_data_size(said->command) + set_data_size(said->text));
    if (!d)
        return CLAVE_ENOMEM;
    *d = (struct description){.c = c, .said = *said, .done = done, .arg = arg};
    char *at = (char *)(d + 1);
    set_data_copy(&d->said.host, &at);
    set_data_copy(&d->said.name, &at);
    set_data_copy(&d->said.command, &at);
    set_data_copy(&d->said.text, &at);
    clave__contender_begin(c); /* matched in set_data_finish */
    clave_err err = set_data_read(d);
    if (err != CLAVE_OK) {
        clave__mem_free(c->mem, d);
        clave__contender_end(c);
    }
    return err;
}
