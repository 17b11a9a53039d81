/* deadlock_schedule.c - decides when a waiting contender looks for deadlocks, and whether it gives
 * up as the victim of one. Called by the contender. What must stay true: it gives up only if both
 * readings of the queues make it the victim. */
#include "recipe/deadlock/deadlock_schedule.h"

#include <assert.h>
#include <string.h>

#include "base/deadline.h"
#include "base/path.h"
#include "recipe/queue/identity.h"

enum { MOST_DOUBLINGS = 6, LONGEST_MS = 60000, MAX_NODES = 10000 };

/* ---- terms ----------------------------------------------------------------------------------- */

static clave_err deadlock_terms_add_root(struct deadlock_terms *t, clave_async_client *c,
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

static clave_err deadlock_terms_check_options(const struct deadlock_terms_options *o)
{
    bool fine = o->delay_ms > 0 && (o->roots || o->nroots == 0) &&
                (o->len == 0 || clave__identity_is_form(o->data, o->len));
    return fine ? CLAVE_OK : CLAVE_EINVAL;
}

clave_err clave__deadlock_terms_init(struct deadlock_terms *t, clave_async_client *c,
                                     const char *path, const struct deadlock_terms_options *o)
{
    *t = (struct deadlock_terms){.mem = clave__client_mem(c)};
    if (o->delay_ms == 0)
        return o->nroots == 0 ? CLAVE_OK : CLAVE_EINVAL;
    clave_err err = deadlock_terms_check_options(o);
    if (err != CLAVE_OK)
        return err;
    size_t n = o->nroots > 0 ? o->nroots : 1;
    size_t parent = clave__path_parent_len(path, strlen(path));
    t->roots = clave__mem_zalloc(t->mem, n * sizeof *t->roots);
    if (!t->roots)
        return CLAVE_ENOMEM;
    t->delay_ms = o->delay_ms;
    if (o->nroots == 0)
        return deadlock_terms_add_root(t, c, path, strcmp(path, "/") == 0 ? 1 : parent);
    for (size_t i = 0; err == CLAVE_OK && i < n; i++)
        err = deadlock_terms_add_root(t, c, o->roots[i], strlen(o->roots[i]));
    return err;
}

void clave__deadlock_terms_fini(struct deadlock_terms *t)
{
    for (size_t i = 0; i < t->nroots; i++)
        clave__mem_free(t->mem, t->roots[i]);
    clave__mem_free(t->mem, t->roots);
    *t = (struct deadlock_terms){0};
}

void clave__deadlock_keep_text(const struct clave_mem *mem, char **kept, const char *text)
{
    clave__mem_free(mem, *kept);
    *kept = text ? clave__mem_strdup(mem, text) : NULL;
}

/* ---- looking --------------------------------------------------------------------------------- */

static void deadlock_schedule_look_later(struct deadlock_schedule *s)
{
    assert(s->terms);
    int64_t now = clave__client_now(s->client), delay = s->terms->delay_ms;
    for (unsigned i = 0; i < s->looks && i < MOST_DOUBLINGS && delay < LONGEST_MS; i++)
        delay *= 2;
    s->looks++;
    clave__client_timer_set(s->client, &s->timer, deadline_after(now, delay));
}

static const char *deadlock_schedule_victim_text(const struct deadlock_schedule *s,
                                                 const clave_deadlock *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].victim < list[i].n &&
            strcmp(list[i].members[list[i].victim].node, s->node) == 0)
            return list[i].text;
    return NULL;
}

/* An error of the search may pass, and is no reason to give up an acquire. */
static void deadlock_schedule_on_found(clave_async_client *c, clave_err err,
                                       const clave_deadlock *list, size_t n, void *arg)
{
    struct deadlock_schedule *s = arg;
    s->deadlock_search = NULL;
    const char *text = err == CLAVE_OK ? deadlock_schedule_victim_text(s, list, n) : NULL;
    if (err != CLAVE_OK)
        clave__log(clave__client_log(c), CLAVE_LOG_WARN, "looking for deadlocks of %s: %s", s->node,
                   err == CLAVE_ETOOBIG ? clave_async_client_errmsg(c) : clave_strerror(err));
    deadlock_schedule_look_later(s);
    if (text)
        s->on_deadlock(s, text);
}

static void deadlock_schedule_on_timer(struct timer *timer, int64_t now)
{
    struct deadlock_schedule *s = LIST_ENTRY(timer, struct deadlock_schedule, timer);
    assert(!s->deadlock_search);
    (void)now;
    struct deadlock_search_options o = {.roots = (const char *const *)s->terms->roots,
                                        .nroots = s->terms->nroots,
                                        .max_nodes = MAX_NODES};
    clave_err err = clave__deadlock_search_start(&s->deadlock_search, s->client, &o,
                                                 deadlock_schedule_on_found, s);
    if (err != CLAVE_OK)
        deadlock_schedule_look_later(s);
}

void clave__deadlock_schedule_init(struct deadlock_schedule *s, clave_async_client *c,
                                   void (*on_deadlock)(struct deadlock_schedule *s,
                                                       const char *text))
{
    *s = (struct deadlock_schedule){.client = c, .on_deadlock = on_deadlock};
    clave__timer_init(&s->timer, deadlock_schedule_on_timer);
}

void clave__deadlock_schedule_begin(struct deadlock_schedule *s, const struct deadlock_terms *terms,
                                    const char *node)
{
    assert(node);
    if (!terms || terms->delay_ms == 0 || s->terms)
        return;
    s->terms = terms;
    s->node = node;
    s->looks = 0;
    deadlock_schedule_look_later(s);
}

void clave__deadlock_schedule_end(struct deadlock_schedule *s)
{
    clave__client_timer_clear(s->client, &s->timer);
    if (s->deadlock_search)
        clave__deadlock_search_abandon(s->deadlock_search);
    s->deadlock_search = NULL;
    s->terms = NULL;
}
