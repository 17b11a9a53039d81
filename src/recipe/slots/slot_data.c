/* slot_data.c - writes and reads what the nodes of slots say. Called by the files of the folder. */
#include "recipe/slots/slot_data.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "recipe/queue/identity.h"
#include "recipe/slots/slot_name.h"

enum { TOKEN_TEXT = 24 };

static size_t slot_data_write(const clave_slot *slot, char *out, size_t cap)
{
    char token[TOKEN_TEXT];
    snprintf(token, sizeof token, "%lld", (long long)slot->token);
    size_t n =
        clave_identity_format(&(clave_identity){.host = slot->host, .name = slot->id}, out, cap);
    n = clave__identity_put_field(out, n, cap, "by", slot->by);
    n = clave__identity_put_field(out, n, cap, "reason", slot->reason);
    return clave__identity_put_field(out, n, cap, "token", slot->token ? token : NULL);
}

char *clave__slot_data_format(const struct clave_mem *mem, const clave_slot *slot, size_t *n)
{
    *n = slot_data_write(slot, NULL, 0);
    char *data = clave__mem_alloc(mem, *n + 1);
    if (data)
        slot_data_write(slot, data, *n + 1);
    return data;
}

/* A value as text at `at`; NULL, and nothing is used of `at`: there is none. */
static const char *slot_data_take(const clave_result *res, const char *key, char **at)
{
    char *text = *at;
    if (!clave__identity_get_field(res->data, res->len, key, text, res->len + 1))
        return NULL;
    *at += strlen(text) + 1;
    return text;
}

static int64_t slot_data_token(const clave_result *res)
{
    char text[TOKEN_TEXT];
    bool there = clave__identity_get_field(res->data, res->len, "token", text, sizeof text);
    return there ? strtoll(text, NULL, 10) : 0;
}

struct slot_copy *clave__slot_data_parse(const struct clave_mem *mem, const clave_result *res,
                                         bool is_record)
{
    enum { FIELDS = 4 };
    size_t npath = strlen(res->path) + 1;
    size_t cap = npath + CLAVE_SLOT_ID_MAX + 1 + FIELDS * (res->len + 1);
    struct slot_copy *copy = clave__mem_zalloc(mem, sizeof *copy + cap);
    if (!copy)
        return NULL;
    clave_slot *slot = &copy->slot;
    char *at = copy->texts;
    slot->node = memcpy(at, res->path, npath);
    at += npath;
    if (clave__slot_name_parse(clave__path_name(res->path), at)) {
        slot->id = at;
        at += strlen(at) + 1;
    } else {
        slot->id = slot_data_take(res, "name", &at);
    }
    slot->host = slot_data_take(res, "host", &at);
    slot->by = slot_data_take(res, "by", &at);
    slot->reason = slot_data_take(res, "reason", &at);
    slot->token = is_record ? slot_data_token(res) : res->stat->czxid;
    slot->since = is_record ? res->stat->mtime : res->stat->ctime;
    return copy;
}
