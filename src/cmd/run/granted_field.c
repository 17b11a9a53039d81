/* granted_field.c - the field "granted=" in the data of a lock's node. run_recipe.c appends it when
 * the node is created, runner.c updates it after the grant, and clave__identity_granted reads it.
 * child.c may set a field "text=" later; that write changes the node's mtime, which until then told
 * the time of the grant, so it writes this time into the data as well.
 *
 * What must stay true: the update after the grant changes neither the length of the data nor any
 * other field. */
#include "cmd/run/granted_field.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipe/queue/identity.h"

static const char numbered[] = "\n" CLAVE_GRANTED_AT "="; /* milliseconds since the epoch follow */
static const char waited[] = "\n" CLAVE_GRANTED_WAITED, granted[] = "\n" CLAVE_GRANTED_GRANTED;
_Static_assert(sizeof waited == sizeof granted, "one takes the place of the other");

/* false for a revocable lock: its owner takes any write to the node for a request to release the
 * lock. */
static bool granted_field_can_record(const struct run_plan *plan)
{
    return !plan->elects && !plan->revocable && acl_lets_owner_write(&plan->acl);
}

/* The field has the form of clave_identity_format, whose readers skip fields they do not know. The
 * data ends in a newline already, so the one that begins the field is left out. */
size_t held_since_promise(const struct run_plan *plan, char *data, size_t n, size_t cap)
{
    char field[sizeof waited + 32];
    int len = plan->granted_wall_ms != 0 ? snprintf(field, sizeof field, "%s%lld\n", numbered + 1,
                                                    (long long)plan->granted_wall_ms)
                                         : snprintf(field, sizeof field, "%s", waited + 1);
    if (!granted_field_can_record(plan) || n + (size_t)len >= cap)
        return n;
    assert(n > 0 && data[n - 1] == '\n');
    memcpy(data + n, field, (size_t)len + 1);
    return n + (size_t)len;
}

static void *granted_field_find(const void *data, size_t n, const char *what, size_t len)
{
    const char *p = data;
    for (size_t i = 0; i + len <= n; i++)
        if (memcmp(p + i, what, len) == 0)
            return (void *)(uintptr_t)(p + i);
    return NULL;
}

/* Writes only if the node is still at the version that was read, so that a "__REVOKE__" written in
 * between is not overwritten. */
static void granted_on_read(clave_async_client *c, const clave_result *res, void *arg)
{
    char *node = arg;
    size_t n = res->err == CLAVE_OK ? res->len : 0;
    char *data = n > 0 ? malloc(n) : NULL;
    if (data) {
        memcpy(data, res->data, n);
        char *at = granted_field_find(data, n, waited, sizeof waited - 1);
        if (at) {
            memcpy(at, granted, sizeof granted - 1);
            (void)clave_async_set(c, node, data, n, res->stat->version, NULL, NULL);
        }
    }
    free(data);
    free(node);
}

void held_since_record(clave_async_client *c, const struct run_plan *plan, const char *node)
{
    char *copy = granted_field_can_record(plan) ? strdup(node) : NULL;
    if (copy && clave_async_get(c, copy, NULL, granted_on_read, copy) != CLAVE_OK)
        free(copy);
}

/* ---- the text -------------------------------------------------------------------------------- */

enum { TEXT_ATTEMPTS = 3 };

static void held_text_write(struct held_text *t);

/* Tries again after two errors. EBADVERSION: the time of the grant may have been written between
 * our read and our write. ECONNLOSS: nobody knows whether the write was done; the next read tells.
 */
static void held_text_answered(struct held_text *t, clave_err err)
{
    bool again = t->changed || err == CLAVE_EBADVERSION || err == CLAVE_ECONNLOSS;
    t->busy = false;
    if (t->changed)
        t->attempts = TEXT_ATTEMPTS;
    if (again && t->attempts > 0)
        held_text_write(t);
}

static void held_text_on_written(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    held_text_answered(arg, res->err);
}

/* Removes the line that begins after the newline at the beginning of `field`, if there is one. */
static void held_text_remove(char *data, size_t *n, const char *field)
{
    char *at = granted_field_find(data, *n, field, strlen(field));
    if (!at)
        return;
    char *line = at + 1, *end = memchr(line, '\n', (size_t)(data + *n - line));
    char *next = end ? end + 1 : data + *n;
    memmove(line, next, (size_t)(data + *n - next));
    *n -= (size_t)(next - line);
}

/* The new data of the node. The write changes the node's mtime; if that is what tells the time of
 * the grant, the time itself is added in digits. NULL: there is nothing to write, or no memory. */
static char *held_text_compose(const clave_result *res, const struct held_text *t, size_t *n)
{
    static const char said[] = "\ntext=", ill[] = "\nunhealthy=";
    const struct clave_mem mem = clave__mem_or_default(
        NULL); /* the default allocator, so that free() may be used on what it returns */
    const clave_identity more = {.text = *t->text ? t->text : NULL};
    bool has = granted_field_find(res->data, res->len, said, sizeof said - 1);
    size_t cap = res->len + sizeof ill + 2;
    char *copy = malloc(cap);
    size_t len = res->len;
    if (!copy || !clave__identity_is_form(res->data, res->len) || (!has && !*t->text)) {
        free(copy);
        return NULL;
    }
    if (len > 0)
        memcpy(copy, res->data, len);
    held_text_remove(copy, &len, said);
    held_text_remove(copy, &len, ill);
    len = clave__identity_put_field(copy, len, cap, "unhealthy", t->unhealthy ? "1" : NULL);
    char *data = clave__identity_extend(&mem, copy, len, &more, n), *out = NULL;
    free(copy);
    if (!data || !granted_field_find(data, *n, granted, sizeof granted - 1) ||
        granted_field_find(data, *n, numbered, sizeof numbered - 1))
        return data;
    int all = asprintf(&out, "%s%s%lld\n", data, numbered + 1, (long long)res->stat->mtime);
    free(data);
    *n = all > 0 ? (size_t)all : 0;
    return all > 0 ? out : NULL;
}

static void held_text_on_read(clave_async_client *c, const clave_result *res, void *arg)
{
    struct held_text *t = arg;
    size_t n = 0;
    t->changed = false;
    char *data = res->err == CLAVE_OK ? held_text_compose(res, t, &n) : NULL;
    if (!data || clave_async_set(c, t->node, data, n, res->stat->version, held_text_on_written,
                                 t) != CLAVE_OK)
        held_text_answered(t, res->err);
    free(data);
}

static void held_text_write(struct held_text *t)
{
    assert(!t->busy && t->attempts > 0);
    t->attempts--;
    t->busy = clave_async_get(t->client, t->node, NULL, held_text_on_read, t) == CLAVE_OK;
}

void held_text_init(struct held_text *t, clave_async_client *c, const struct run_plan *plan,
                    const char *node)
{
    *t = (struct held_text){.client = c};
    if (granted_field_can_record(plan))
        t->node = strdup(node);
}

void held_text_set(struct held_text *t, const char *text, bool unhealthy)
{
    assert(*text || !unhealthy);
    if (!t->node || (t->unhealthy == unhealthy && strncmp(t->text, text, sizeof t->text - 1) == 0))
        return;
    t->unhealthy = unhealthy;
    snprintf(t->text, sizeof t->text, "%s", text);
    t->changed = true;
    t->attempts = TEXT_ATTEMPTS;
    if (!t->busy)
        held_text_write(t);
}

void held_text_fini(struct held_text *t)
{
    free(t->node);
    t->node = NULL;
}
