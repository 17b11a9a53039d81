/* acl.c - access lists: sharing them between nodes, checking permissions, and validating the list
 * in a request; see acl.h. Lists are compared as encoded bytes, since equal lists have equal
 * encodings. */
#include "server/access/acl.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "wire/x509_name.h"

/* Longer lists are refused, because looking for duplicates compares every entry with every
 * other. */
enum { MAX_ENTRIES = 1024 };

static bool server_acl_is(struct jbytes s, const char *text)
{
    return clave__jbytes_eq(s, clave__jbytes(text));
}

/* ---- the shared lists ------------------------------------------------------------------------ */

struct jvec clave__acl_entries(const struct acl *list)
{
    return (struct jvec){list->count, (const uint8_t *)(list + 1), list->len};
}

static bool acl_same_entries(const struct map_node *node, const void *key)
{
    const struct acl *list = (const void *)node; /* its first member */
    const struct jvec *v = key;
    return list->count == v->count && list->len == v->n &&
           (v->n == 0 || memcmp(list + 1, v->p, v->n) == 0);
}

static int32_t acl_permissions_of_everyone(struct jvec entries)
{
    struct jreader r = clave__jvec_reader(entries);
    int32_t perms = 0;
    for (int32_t i = 0; i < entries.count; i++) {
        struct wire_acl a = clave__wire_get_acl(&r);
        if (server_acl_is(a.scheme, "world"))
            perms |= a.perms;
    }
    return entries.count > 0 ? perms : -1;
}

static struct acl *acl_new_list(struct acls *a, struct jvec entries)
{
    struct acl *list = clave__mem_alloc(a->mem, sizeof *list + entries.n);
    if (!list)
        return NULL;
    *list = (struct acl){
        .refs = 1,
        .everyone = acl_permissions_of_everyone(entries),
        .count = entries.count,
        .len = (uint32_t)entries.n,
    };
    if (entries.n > 0)
        memcpy(list + 1, entries.p, entries.n);
    return list;
}

clave_err clave__acls_init(struct acls *a, const struct clave_mem *mem, uint64_t seed)
{
    static const uint8_t everyone[] = {0,   0, 0, PERM_ALL, 0, 0,   0,   5,   'w', 'o', 'r', 'l',
                                       'd', 0, 0, 0,        6, 'a', 'n', 'y', 'o', 'n', 'e'};
    *a = (struct acls){.mem = mem, .next_key = 1};
    list_init(&a->all);
    clave_err err = clave__map_init(&a->lists, mem, seed);
    if (err != CLAVE_OK)
        return err;
    a->open = acl_new_list(a, (struct jvec){1, everyone, sizeof everyone});
    if (!a->open) {
        clave__map_fini(&a->lists);
        return CLAVE_ENOMEM;
    }
    a->open->key = ACL_OPEN_KEY;
    return CLAVE_OK;
}

void clave__acls_fini(struct acls *a)
{
    assert(a->lists.count == 0);
    clave__mem_free(a->mem, a->open);
    clave__map_fini(&a->lists);
    a->open = NULL;
}

struct acl *clave__acls_take(struct acls *a, struct jvec entries, int64_t key)
{
    assert(key == ACL_NEW_KEY || key > 0);
    entries.count = entries.count > 0 ? entries.count : 0;
    uint32_t hash = clave__map_hash_bytes(&a->lists, entries.p, entries.n);
    struct map_node *known = clave__map_find(&a->lists, hash, acl_same_entries, &entries);
    if (known)
        return clave__acl_ref(MAP_ENTRY(known, struct acl, in_cache));
    struct acl *list = acl_new_list(a, entries);
    if (!list)
        return NULL;
    list->key = key == ACL_NEW_KEY ? a->next_key : key;
    if (list->key >= a->next_key)
        a->next_key = list->key + 1;
    list->saved = a->saved;
    list_push_back(&a->all, &list->in_all);
    clave__map_insert(&a->lists, &list->in_cache, hash);
    return list;
}

struct acl *clave__acl_ref(struct acl *list)
{
    assert(list->refs > 0);
    list->refs++;
    return list;
}

void clave__acls_drop(struct acls *a, struct acl *list)
{
    assert(!list || list->refs > 0);
    if (!list || --list->refs > 0)
        return;
    if (a->before_free && list->saved != a->saved)
        a->before_free(a, list);
    list_remove(&list->in_all);
    clave__map_remove(&a->lists, &list->in_cache);
    clave__mem_free(a->mem, list);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool server_acl_is_meant(const struct wire_acl *entry, const struct identities *who)
{
    if (server_acl_is(entry->scheme, "digest"))
        return clave__identities_has_digest(who, entry->id);
    if (server_acl_is(entry->scheme, "x509"))
        return clave__identities_has_subject(who, entry->id);
    if (server_acl_is(entry->scheme, "uid"))
        return clave__uid_matches(entry->id, who);
    return server_acl_is(entry->scheme, "ip") && clave__ip_matches(entry->id, who);
}

bool clave__acl_allows(const struct acl *list, const struct identities *who, int32_t perms)
{
    if ((list->everyone & perms) || who->is_super)
        return true;
    struct jreader r = clave__jvec_reader(clave__acl_entries(list));
    for (int32_t i = 0; i < list->count; i++) {
        struct wire_acl entry = clave__wire_get_acl(&r);
        if ((entry.perms & perms) && server_acl_is_meant(&entry, who))
            return true;
    }
    return false;
}

void clave__acl_put_masked(struct jwriter *w, const struct acl *list)
{
    struct jreader r = clave__jvec_reader(clave__acl_entries(list));
    clave__jput_int(w, list->count);
    for (int32_t i = 0; i < list->count; i++) {
        struct wire_acl entry = clave__wire_get_acl(&r);
        const char *colon = entry.id.n > 0 ? memchr(entry.id.p, ':', (size_t)entry.id.n) : NULL;
        if (!colon || !server_acl_is(entry.scheme, "digest")) {
            clave__wire_put_acl(w, &entry);
            continue;
        }
        int32_t user = (int32_t)(colon - entry.id.p);
        clave__jput_int(w, entry.perms);
        clave__jput_bytes(w, entry.scheme);
        clave__jput_int(w, user + 2);
        for (int32_t c = 0; c < user; c++)
            clave__jput_byte(w, (uint8_t)entry.id.p[c]);
        clave__jput_byte(w, ':');
        clave__jput_byte(w, 'x');
    }
}

/* ---- a request's list ------------------------------------------------------------------------ */

/* Splits like Java's split(":"), which drops empty parts at the end: there must be exactly two
 * parts. */
static bool acl_digest_valid(struct jbytes id)
{
    int32_t n = id.n, colons = 0;
    while (n > 0 && id.p[n - 1] == ':')
        n--;
    for (int32_t i = 0; i < n; i++)
        colons += id.p[i] == ':';
    return colons == 1;
}

static bool acl_entry_valid(const struct wire_acl *a, const struct identities *who)
{
    if (server_acl_is(a->scheme, "world"))
        return server_acl_is(a->id, "anyone");
    if (server_acl_is(a->scheme, "digest"))
        return acl_digest_valid(a->id);
    if (server_acl_is(a->scheme, "x509"))
        return who->knows_x509 && clave__x509_name_valid(a->id);
    if (server_acl_is(a->scheme, "uid"))
        return clave__uid_valid(a->id);
    return server_acl_is(a->scheme, "ip") && clave__ip_valid(a->id);
}

static bool acl_same_entry(const struct wire_acl *a, const struct wire_acl *b)
{
    return a->perms == b->perms && clave__jbytes_eq(a->scheme, b->scheme) &&
           clave__jbytes_eq(a->id, b->id);
}

/* Appends the entry unless it is already in the list. */
static clave_err acl_append_entry(struct buf *room, int32_t *count, const struct wire_acl *a)
{
    struct jreader r = clave__jreader(clave__buf_bytes(room), clave__buf_len(room));
    for (int32_t i = 0; i < *count; i++) {
        struct wire_acl known = clave__wire_get_acl(&r);
        if (acl_same_entry(&known, a))
            return CLAVE_OK;
    }
    if (*count == MAX_ENTRIES)
        return CLAVE_EINVALIDACL;
    struct jwriter w = clave__jwriter(room);
    clave__wire_put_acl(&w, a);
    ++*count;
    return w.err == CLAVE_ETOOBIG ? CLAVE_EINVALIDACL : w.err;
}

static clave_err acl_append_users(struct buf *room, int32_t *count, const struct identities *who,
                                  int32_t perms)
{
    struct jvec users = clave__identities_digests(who);
    struct jreader r = clave__jvec_reader(users);
    char uid[AUTH_UID_TEXT];
    bool known = users.count > 0 || who->has_subject || who->has_uid;
    clave_err err = known ? CLAVE_OK : CLAVE_EINVALIDACL;
    for (int32_t i = 0; i < users.count && err == CLAVE_OK; i++) {
        struct wire_acl a = {perms, clave__jbytes("digest"), clave__jget_bytes(&r)};
        err = acl_append_entry(room, count, &a);
    }
    if (err == CLAVE_OK && who->has_subject) {
        struct wire_acl a = {perms, clave__jbytes("x509"), clave__identities_subject(who)};
        err = acl_append_entry(room, count, &a);
    }
    if (err == CLAVE_OK && who->has_uid) {
        struct wire_acl a = {perms, clave__jbytes("uid"), clave__uid_text(who, uid)};
        err = acl_append_entry(room, count, &a);
    }
    return err;
}

clave_err clave__acl_fix_up(struct jvec asked, const struct identities *who, struct buf *room,
                            struct jvec *fixed)
{
    struct jreader r = clave__jvec_reader(asked);
    int32_t count = 0;
    clave_err err = asked.count > 0 ? CLAVE_OK : CLAVE_EINVALIDACL;
    clave__buf_clear(room);
    for (int32_t i = 0; i < asked.count && err == CLAVE_OK; i++) {
        struct wire_acl a = clave__wire_get_acl(&r);
        if (server_acl_is(a.scheme, "auth"))
            err = acl_append_users(room, &count, who, a.perms);
        else if (!acl_entry_valid(&a, who))
            err = CLAVE_EINVALIDACL;
        else if (asked.count == 1)
            break; /* the usual case, a single valid entry, is used without a copy */
        else
            err = acl_append_entry(room, &count, &a);
    }
    *fixed = count > 0 ? (struct jvec){count, clave__buf_bytes(room), clave__buf_len(room)} : asked;
    return err;
}
