/* record_node.c - reads and writes the record node of once and lock_delay. What must stay true:
 * every write is one transaction that also checks the lock's node. */
#include "recipe/lock/record_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err_class.h"
#include "base/path.h"
#include "recipe/contender/guarded_write.h"
#include "recipe/queue/identity.h"

enum { TRIES = 16, ROUNDS = 16, HEAD_CAP = 160, IDENTITY_HEAD = sizeof "clave/1\n" - 1 };

/* ---- the content of an entry ----------------------------------------------------------------- */

void clave__record_node_compose(struct record_node *l, const char *state, int64_t took_ms)
{
    const struct contender_config *tail = &l->config;
    int n = snprintf(l->text, l->cap, "clave/1\nstate=%s\nid=%s\ntoken=%lld\ntook=%lld\n", state,
                     l->id, (long long)l->token, (long long)took_ms);
    l->len = (size_t)n;
    if (tail->spec.len > 0)
        memcpy(l->text + n, tail->spec.data, tail->spec.len);
    l->len += tail->spec.len;
}

clave_err clave__record_node_compose_for(struct record_node *l, const char *id, int64_t token,
                                         const clave_identity *who)
{
    size_t n = clave_identity_format(who, NULL, 0), cap = HEAD_CAP + n + 1;
    cap = cap > l->cap ? cap : l->cap; /* our own entry must fit again later */
    char *text = clave__mem_alloc(l->config.mem, cap);
    if (!text)
        return CLAVE_ENOMEM;
    int head =
        snprintf(text, cap, "clave/1\nstate=held\nid=%s\ntoken=%lld\n", id, (long long)token);
    /* The identity begins with a line that the head has as well: it is written over the end of the
     * head, which is then restored. */
    char *at = text + head - IDENTITY_HEAD;
    char kept[IDENTITY_HEAD];
    memcpy(kept, at, IDENTITY_HEAD);
    clave_identity_format(who, at, cap - (size_t)(at - text));
    memcpy(at, kept, IDENTITY_HEAD);
    clave__mem_free(l->config.mem, l->text);
    l->text = text;
    l->cap = cap;
    l->len = (size_t)head + n - (size_t)IDENTITY_HEAD;
    return CLAVE_OK;
}

/* The value of a line "key=value", cut to what fits; "" if there is none. */
static void record_node_take_value(const char *text, const char *key, char *out, size_t cap)
{
    size_t nkey = strlen(key);
    const char *line = text;
    out[0] = '\0';
    while (*line && (strncmp(line, key, nkey) != 0 || line[nkey] != '=')) {
        line += strcspn(line, "\n");
        line += *line != '\0';
    }
    if (!*line)
        return;
    const char *value = line + nkey + 1;
    size_t n = strcspn(value, "\n");
    n = n < cap ? n : cap - 1;
    memcpy(out, value, n);
    out[n] = '\0';
}

static int64_t record_node_take_number(const char *text, const char *key)
{
    char digits[24];
    record_node_take_value(text, key, digits, sizeof digits);
    return strtoll(digits, NULL, 10);
}

/* Keeps the entry that was read. One of our own does not replace the previous one, which may still
 * be needed. */
static clave_err record_node_keep(struct record_node *l, const clave_result *res)
{
    struct record_node_entry *e = &l->entry;
    size_t n = res->len;
    char *found = clave__mem_zalloc(l->config.mem, 2 * n + 1);
    if (!found)
        return CLAVE_ENOMEM;
    char *copy = found + n;
    if (n > 0) {
        memcpy(found, res->data, n);
        memcpy(copy, res->data, n);
    }
    *e = (struct record_node_entry){.stat = *res->stat};
    record_node_take_value(copy, "state", e->state, sizeof e->state);
    record_node_take_value(copy, "id", e->id, sizeof e->id);
    e->token = record_node_take_number(copy, "token");
    e->took_ms = record_node_take_number(copy, "took");
    if (clave__record_node_is_own(l)) {
        clave__mem_free(l->config.mem, found);
        return CLAVE_OK;
    }
    clave__identity_parse(copy, n, &e->identity);
    clave__mem_free(l->config.mem, l->found);
    l->found = found;
    l->nfound = n;
    return CLAVE_OK;
}

bool clave__record_node_is_own(const struct record_node *l)
{
    return strcmp(l->entry.id, l->id) == 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void free_lock_record(struct record_node *l)
{
    const struct clave_mem *mem = l->config.mem;
    clave__mem_free(mem, l->node);
    clave__mem_free(mem, l->path);
    clave__mem_free(mem, l->text);
    clave__mem_free(mem, l->found);
    clave__contender_config_fini(&l->config);
    clave__mem_free(mem, l);
}

static void record_node_finish(struct record_node *l, clave_err err, const clave_stat *stat)
{
    l->busy = false;
    if (l->owner)
        l->done(l->owner, l->act, err, stat);
    else
        free_lock_record(l);
}

static clave_err record_node_submit(struct record_node *l);

static bool record_node_may_repeat(const struct record_node *l, clave_err err)
{
    bool harmless = l->act != LOCK_RECORD_CREATE && l->act != LOCK_RECORD_REPLACE;
    return harmless && clave__err_passes(err) && l->owner && l->tries < TRIES;
}

/* Repeats the request or tells the owner. If an earlier attempt may have succeeded, a later one
 * that finds the lock gone does not prove that nothing was done. */
static void record_node_settle(struct record_node *l, clave_err err, const clave_stat *stat)
{
    if (record_node_may_repeat(l, err)) {
        if (clave_err_classify(err) == CLAVE_CLASS_UNKNOWN)
            l->doubt = err;
        err = record_node_submit(l);
        if (err == CLAVE_OK)
            return;
    }
    if (err == CLAVE_ELOST && l->doubt != CLAVE_OK)
        err = l->doubt;
    if (l->act == LOCK_RECORD_REMOVE && err == CLAVE_ENONODE)
        err = CLAVE_OK;
    record_node_finish(l, err, stat);
}

static void record_node_on_read(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct record_node *l = arg;
    clave_err err = res->err;
    if (err == CLAVE_OK && l->owner)
        err = record_node_keep(l, res);
    record_node_settle(l, err, NULL);
}

static void record_node_on_parent(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct record_node *l = arg;
    clave_err err = res->err;
    bool there = err == CLAVE_OK || err == CLAVE_ENODEEXISTS;
    if (there && l->owner) {
        err = record_node_submit(l);
        if (err == CLAVE_OK)
            return;
    }
    record_node_finish(l, err, NULL);
}

static clave_err record_node_make_parent(struct record_node *l)
{
    const clave_create_options o = {.size = sizeof o, .flags = CLAVE_CREATE_PARENTS};
    size_t n = clave__path_parent_len(l->path, strlen(l->path));
    char *parent = clave__mem_strndup(l->config.mem, l->path, n);
    if (!parent)
        return CLAVE_ENOMEM;
    clave_err err = clave_async_create(l->client, parent, "", 0, &o, record_node_on_parent, l);
    clave__mem_free(l->config.mem, parent);
    return err;
}

static void record_node_on_written(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct record_node *l = arg;
    clave_err err = res->err;
    bool orphan = l->act == LOCK_RECORD_CREATE && err == CLAVE_ENONODE;
    if (orphan && l->owner && l->tries < TRIES) {
        err = record_node_make_parent(l);
        if (err == CLAVE_OK)
            return;
    }
    const clave_stat *stat = l->act == LOCK_RECORD_TOUCH && res->nops > 0 ? res->ops[0].stat : NULL;
    if (stat)
        l->entry.stat = *stat; /* its version has changed */
    record_node_settle(l, err, stat);
}

static clave_err record_node_submit(struct record_node *l)
{
    const struct contender_spec *spec = &l->config.spec;
    clave_op create = {.kind = CLAVE_OP_CREATE, .path = l->path, .data = l->text, .len = l->len};
    create.acls = spec->acls;
    create.nacls = spec->nacls;
    clave_op update = {.kind = CLAVE_OP_SET, .path = l->path, .data = l->text, .len = l->len};
    update.version = -1;
    clave_op remove = {.kind = CLAVE_OP_DELETE, .path = l->path, .version = -1};
    clave_op touch = {.kind = CLAVE_OP_SET, .path = l->path, .data = l->found, .len = l->nfound};
    clave_op replaced = remove;
    touch.version = replaced.version = l->entry.stat.version;
    clave_op ops[2] = {remove, create};
    if (l->act == LOCK_RECORD_CREATE)
        ops[0] = create;
    else if (l->act == LOCK_RECORD_REPLACE)
        ops[0] = replaced;
    else if (l->act == LOCK_RECORD_UPDATE)
        ops[0] = update;
    else if (l->act == LOCK_RECORD_TOUCH)
        ops[0] = touch;
    l->tries++;
    if (l->act == LOCK_RECORD_READ)
        return clave_async_get(l->client, l->path, NULL, record_node_on_read, l);
    struct write_guard lock = {.nodes = (const char *const[]){l->node}, .n = 1};
    return clave__guarded_write_multi(l->client, lock, ops, l->act == LOCK_RECORD_REPLACE ? 2 : 1,
                                      record_node_on_written, l);
}

clave_err clave__record_node_do(struct record_node *l, enum record_node_act act)
{
    l->act = act;
    l->tries = 0;
    l->doubt = CLAVE_OK;
    clave_err err = record_node_submit(l);
    l->busy = err == CLAVE_OK;
    return err;
}

clave_err clave__record_node_look_again(struct record_node *l, clave_err err)
{
    /* The write was done but its answer was lost; or it was not done; or the entry is not the one
     * that was read. */
    bool in_doubt = clave__err_passes(err) || err == CLAVE_ENODEEXISTS ||
                    err == CLAVE_EBADVERSION || err == CLAVE_ENONODE;
    return in_doubt && ++l->rounds < ROUNDS ? clave__record_node_do(l, LOCK_RECORD_READ) : err;
}

/* ---- creating and freeing -------------------------------------------------------------------- */

static clave_err record_node_fill(struct record_node *l, const struct record_node_spec *spec)
{
    const clave_identity nobody = {0};
    const clave_identity *who = spec->identity ? spec->identity : &nobody;
    const struct clave_mem *mem = l->config.mem;
    char prefix[CLAVE_PROTECTED_PREFIX + 1];
    size_t n = clave_identity_format(who, NULL, 0);
    l->cap = HEAD_CAP + n + 1;
    l->node = clave__mem_strdup(mem, clave_async_grant_node(spec->grant));
    l->path = clave__mem_strdup(mem, spec->path);
    l->text = clave__mem_alloc(mem, l->cap);
    if (!l->node || !l->path || !l->text)
        return CLAVE_ENOMEM;
    clave_identity_format(who, l->text, l->cap);
    clave_err err = clave__contender_config_set_data(&l->config, l->text + IDENTITY_HEAD,
                                                     n - (size_t)IDENTITY_HEAD);
    if (err == CLAVE_OK)
        err = clave__contender_config_set_acls(&l->config, spec->acls, spec->nacls);
    clave__client_protect(l->client, prefix); /* "_c_<uuid>-" */
    memcpy(l->id, prefix + 3, CLAVE_UUID_TEXT);
    return err;
}

clave_err clave__record_node_new(struct record_node **out, clave_async_client *c,
                                 const struct record_node_spec *spec, const char *what)
{
    const struct clave_mem *mem = clave__client_mem(c);
    *out = NULL;
    const char *fault = clave__path_fault(spec->path, strlen(spec->path), false);
    if (fault) {
        clave__client_fault(c, "%s \"%s\" %s", what, spec->path, fault);
        return CLAVE_EPATH;
    }
    struct record_node *l = clave__mem_zalloc(mem, sizeof *l);
    if (!l)
        return CLAVE_ENOMEM;
    l->client = c;
    l->done = spec->done;
    l->owner = spec->owner;
    l->token = clave_async_grant_token(spec->grant);
    l->config.mem = mem;
    clave_err err = record_node_fill(l, spec);
    if (err != CLAVE_OK) {
        free_lock_record(l);
        return err;
    }
    *out = l;
    return CLAVE_OK;
}

void clave__record_node_free(struct record_node *l)
{
    if (!l)
        return;
    l->owner = NULL;
    if (!l->busy)
        free_lock_record(l);
}
