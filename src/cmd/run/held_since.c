/* held_since.c - the field "granted=" in a lock node's data. acquisition.c appends it, runner.c
 * updates it after the grant, `clave locks` reads it. The update never changes the length of the
 * data, nor any other field. */
#include "cmd/run/held_since.h"

#include <stdlib.h>
#include <string.h>

#include "recipe/contender/identity.h"

static const char waited[] = "\ngranted=ctime\n", granted[] = "\ngranted=mtime\n";
static const char asked[] = "\nasked=1\n";
_Static_assert(sizeof waited == sizeof granted, "one takes the place of the other");

/* A revocable lock takes any write to its node for a request to release it. */
static bool held_since_can_record(const struct lock_plan *plan)
{
    return !plan->elects && !plan->revocable && acl_lets_owner_write(&plan->acl);
}

/* A field of clave's form (clave_identity_format), whose readers skip unknown fields. The newline
 * before it is there already. */
size_t held_since_promise(const struct lock_plan *plan, char *data, size_t n, size_t cap)
{
    size_t len = sizeof waited - 2;
    if (!held_since_can_record(plan) || n + len >= cap)
        return n;
    memcpy(data + n, waited + 1, len + 1);
    return n + len;
}

static void *held_since_find(const void *data, size_t n, const char *what, size_t len)
{
    const char *p = data;
    for (size_t i = 0; i + len <= n; i++)
        if (memcmp(p + i, what, len) == 0)
            return (void *)(uintptr_t)(p + i);
    return NULL;
}

/* Only writes over the version that was read: not over a "__REVOKE__" that comes in between. */
static void held_on_read(clave_async_client *c, const clave_result *res, void *arg)
{
    char *node = arg;
    size_t n = res->err == CLAVE_OK ? res->len : 0;
    char *data = n > 0 ? malloc(n) : NULL;
    if (data) {
        memcpy(data, res->data, n);
        char *at = held_since_find(data, n, waited, sizeof waited - 1);
        if (at) {
            memcpy(at, granted, sizeof granted - 1);
            (void)clave_async_set(c, node, data, n, res->stat->version, NULL, NULL);
        }
    }
    free(data);
    free(node);
}

void held_since_record(clave_async_client *c, const struct lock_plan *plan, const char *node)
{
    char *copy = held_since_can_record(plan) ? strdup(node) : NULL;
    if (copy && clave_async_get(c, copy, NULL, held_on_read, copy) != CLAVE_OK)
        free(copy);
}

int64_t held_since(const void *data, size_t n, const clave_stat *stat)
{
    if (!clave__identity_is_form(data, n) ||
        held_since_find(data, n, asked, sizeof asked - 1)) /* since then, that was written last */
        return -1;
    if (held_since_find(data, n, granted, sizeof granted - 1))
        return stat->mtime;
    return held_since_find(data, n, waited, sizeof waited - 1) ? stat->ctime : -1;
}
