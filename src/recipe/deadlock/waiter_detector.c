/* waiter_detector.c - when a waiting contender looks for deadlocks, and whether it gives up. Called
 * by contender_turn.c. Invariant: it gives up only when both readings of the queues make it the
 * victim. */
#include "recipe/deadlock/waiter_detector.h"

#include <assert.h>
#include <string.h>

#include "base/deadline.h"
#include "base/path.h"
#include "recipe/queue/identity.h"

enum { MOST_DOUBLINGS = 6, LONGEST_MS = 60000, MAX_NODES = 10000 };

/* ---- terms ----------------------------------------------------------------------------- */

static clave_err detector_add_root(struct detector_terms *t, clave_async_client *c,
                                   const char *root, size_t len)
{
    const char *fault = clave__path_fault(root, len, false);
    if (fault) {
        clave__client_fault(c, "the path \"%.*s\" to look for deadlocks at %s", (int)len, root,
                            fault);
        return CLAVE_EPATH;
    }
    t->roots[t->nroots] = clave__mem_strndup(t->mem, root, len);
    return t->roots[t->nroots++] ? CLAVE_OK : CLAVE_ENOMEM;
}

static clave_err detector_check_options(const struct detector_options *o)
{
    bool fine = o->delay_ms > 0 && (o->roots || o->nroots == 0) &&
                (o->len == 0 || clave__identity_is_form(o->data, o->len));
    return fine ? CLAVE_OK : CLAVE_EINVAL;
}

clave_err clave__detector_terms_init(struct detector_terms *t, clave_async_client *c,
                                     const char *path, const struct detector_options *o)
{
    *t = (struct detector_terms){.mem = clave__client_mem(c)};
    if (o->delay_ms == 0)
        return o->nroots == 0 ? CLAVE_OK : CLAVE_EINVAL;
    clave_err err = detector_check_options(o);
    if (err != CLAVE_OK)
        return err;
    size_t n = o->nroots > 0 ? o->nroots : 1;
    size_t parent = clave__path_parent_len(path, strlen(path));
    t->roots = clave__mem_zalloc(t->mem, n * sizeof *t->roots);
    if (!t->roots)
        return CLAVE_ENOMEM;
    t->delay_ms = o->delay_ms;
    if (o->nroots == 0)
        return detector_add_root(t, c, path, strcmp(path, "/") == 0 ? 1 : parent);
    for (size_t i = 0; err == CLAVE_OK && i < n; i++)
        err = detector_add_root(t, c, o->roots[i], strlen(o->roots[i]));
    return err;
}

void clave__detector_terms_fini(struct detector_terms *t)
{
    for (size_t i = 0; i < t->nroots; i++)
        clave__mem_free(t->mem, t->roots[i]);
    clave__mem_free(t->mem, t->roots);
    *t = (struct detector_terms){0};
}

void clave__detector_keep_text(const struct clave_mem *mem, char **kept, const char *text)
{
    clave__mem_free(mem, *kept);
    *kept = text ? clave__mem_strdup(mem, text) : NULL;
}

/* ---- looking --------------------------------------------------------------------------- */

static void detector_look_later(struct detector *d)
{
    assert(d->terms);
    int64_t now = clave__client_now(d->client), delay = d->terms->delay_ms;
    for (unsigned i = 0; i < d->looks && i < MOST_DOUBLINGS && delay < LONGEST_MS; i++)
        delay *= 2;
    d->looks++;
    clave__client_timer_set(d->client, &d->timer, deadline_after(now, delay));
}

static const char *detector_text_for(const struct detector *d, const clave_deadlock *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].victim < list[i].n &&
            strcmp(list[i].members[list[i].victim].node, d->node) == 0)
            return list[i].text;
    return NULL;
}

/* An error of the search may pass, and is no reason to give up an acquire. */
static void detector_on_found(clave_async_client *c, clave_err err, const clave_deadlock *list,
                              size_t n, void *arg)
{
    struct detector *d = arg;
    d->deadlock_search = NULL;
    const char *text = err == CLAVE_OK ? detector_text_for(d, list, n) : NULL;
    if (err != CLAVE_OK)
        clave__log(clave__client_log(c), CLAVE_LOG_WARN, "looking for deadlocks of %s: %s", d->node,
                   err == CLAVE_ETOOBIG ? clave_async_client_errmsg(c) : clave_strerror(err));
    detector_look_later(d);
    if (text)
        d->on_deadlock(d, text);
}

static void detector_on_timer(struct timer *timer, int64_t now)
{
    struct detector *d = LIST_ENTRY(timer, struct detector, timer);
    assert(!d->deadlock_search);
    (void)now;
    struct deadlock_search_options o = {.roots = (const char *const *)d->terms->roots,
                                        .nroots = d->terms->nroots,
                                        .max_nodes = MAX_NODES};
    clave_err err =
        clave__deadlock_search_start(&d->deadlock_search, d->client, &o, detector_on_found, d);
    if (err != CLAVE_OK)
        detector_look_later(d);
}

void clave__detector_init(struct detector *d, clave_async_client *c,
                          void (*on_deadlock)(struct detector *d, const char *text))
{
    *d = (struct detector){.client = c, .on_deadlock = on_deadlock};
    clave__timer_init(&d->timer, detector_on_timer);
}

void clave__detector_begin(struct detector *d, const struct detector_terms *terms, const char *node)
{
    assert(node);
    if (!terms || terms->delay_ms == 0 || d->terms)
        return;
    d->terms = terms;
    d->node = node;
    d->looks = 0;
    detector_look_later(d);
}

void clave__detector_end(struct detector *d)
{
    clave__client_timer_clear(d->client, &d->timer);
    if (d->deadlock_search)
        clave__deadlock_search_abandon(d->deadlock_search);
    d->deadlock_search = NULL;
    d->terms = NULL;
}
