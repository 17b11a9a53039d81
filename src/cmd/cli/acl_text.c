/* acl_text.c - parses --acl (see acl_text.h) for create, setacl and the flags of locks, and formats
 * permissions for getacl. A list that was parsed successfully is never empty, except for
 * "parent". */
#include "cmd/cli/acl_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/hash/sha1.h"
#include "cmd/cli/diag.h"

enum { HASH_MAX = 64 }; /* SHA-512 */

static bool acl_text_parse_perms(const char *p, int32_t *perms)
{
    static const char letters[] = "rwcda"; /* in the order of the bits */
    *perms = 0;
    if (*p == '\0')
        return false;
    for (; *p; p++) {
        const char *at = strchr(letters, *p);
        if (!at)
            return false;
        *perms |= 1 << (at - letters);
    }
    return true;
}

/* Whether the id looks like USER:HASH. Refuses a password in place of its hash: the server would
 * store it as it is, and admit nobody. Apache may be configured for another algorithm than SHA-1
 * (DigestAuthenticationProvider.digestAlg), so the hash may have several lengths. */
static bool acl_text_is_digest(const char *id)
{
    uint8_t hash[BASE64_LEN(HASH_MAX) / 4 * 3];
    const char *colon = strchr(id, ':');
    size_t chars = colon ? strlen(colon + 1) : 0, n;
    if (chars == 0 || chars > BASE64_LEN(HASH_MAX) ||
        !clave__base64_decode(colon + 1, chars, hash, &n))
        return false;
    return n == SHA1_LEN || n == 32 || n == 48 || n == HASH_MAX;
}

/* An id may contain colons: the scheme ends at the first colon of the entry, and the permissions
 * begin after the last one. */
static bool cmd_acl_parse_entry(char *entry, clave_acl *out, const char **fault)
{
    char *id = strchr(entry, ':'), *perms = strrchr(entry, ':');
    *fault = "an entry is SCHEME:ID:PERMS, such as world:anyone:r";
    if (!id || id == perms || id == entry)
        return false;
    *id++ = '\0';
    *perms++ = '\0';
    *fault = "it ends with its permissions, letters of cdrwa: SCHEME:ID:cdrwa";
    out->scheme = entry;
    out->id = id;
    if (!acl_text_parse_perms(perms, &out->perms))
        return false;
    *fault =
        "a digest entry is digest:USER:HASH:PERMS, with a hash in place of the password: 'clave "
        "acl hash USER' prints it. 'creator' needs no hash: it admits the identities of "
        "--auth digest:USER:PASSWORD";
    return strcmp(entry, "digest") != 0 || acl_text_is_digest(id);
}

/* The comma at the end of the first entry; NULL: there is only one entry. The name in a certificate
 * (x509) contains commas itself, so such an entry ends at the first comma that follows valid
 * permissions. */
static char *acl_text_entry_end(char *entry)
{
    bool is_name = strncmp(entry, "x509:", 5) == 0;
    int32_t ignored;
    char *comma = strchr(entry, ',');
    for (; comma && is_name; comma = strchr(comma + 1, ',')) {
        *comma = '\0';
        const char *perms = strrchr(entry, ':') + 1;
        bool whole = perms > entry + 5 && acl_text_parse_perms(perms, &ignored);
        if (whole)
            return comma;
        *comma = ',';
    }
    return comma;
}

bool acl_parse(const char *text, struct acl_list *out, const char **fault)
{
    acl_fini(out);
    out->of_parent = strcmp(text, "parent") == 0;
    if (out->of_parent)
        return true;
    if (strcmp(text, "open") == 0)
        text = "world:anyone:cdrwa";
    else if (strcmp(text, "read") == 0)
        text = "world:anyone:r";
    else if (strcmp(text, "creator") == 0)
        text = "auth::cdrwa";
    *fault = "out of memory";
    out->text = strdup(text);
    if (!out->text)
        return false;
    for (char *entry = out->text; entry;) {
        char *comma = acl_text_entry_end(entry);
        if (comma)
            *comma = '\0';
        if (out->n == ACL_MAX) {
            *fault = "too many entries";
            return false;
        }
        if (!cmd_acl_parse_entry(entry, &out->list[out->n++], fault))
            return false;
        entry = comma ? comma + 1 : NULL;
    }
    return true;
}

/* Refuses a list with hidden hashes: a server shows a hash as "x" to clients that may not change
 * the list. */
bool acl_copy(struct acl_list *out, const clave_acl *acls, size_t n, const char **fault)
{
    size_t bytes = 0;
    *fault = "too many entries";
    if (n > ACL_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(acls[i].scheme) + strlen(acls[i].id) + 2;
    *fault = "out of memory";
    acl_fini(out);
    out->text = malloc(bytes + 1);
    if (!out->text)
        return false;
    *fault = "the hashes of its passwords are hidden: this takes the permission 'a' there";
    char *at = out->text;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(acls[i].scheme, "digest") == 0 && !acl_text_is_digest(acls[i].id))
            return false;
        clave_acl *entry = &out->list[out->n++];
        entry->perms = acls[i].perms;
        entry->scheme = at;
        at = stpcpy(at, acls[i].scheme) + 1;
        entry->id = at;
        at = stpcpy(at, acls[i].id) + 1;
    }
    return true;
}

/* Whether the connection itself gives us an identity: a server on this machine knows the user who
 * connects to its Unix socket. */
static bool acl_text_has_uid(const struct options *o)
{
    return !o->connect || strncmp(o->connect, "unix:", 5) == 0 ||
           strncmp(o->connect, "local:", 6) == 0;
}

bool acl_has_identity(const struct options *o, const struct acl_list *a)
{
    bool known =
        o->client.nauths > 0 || o->client.tls_texts[CLIENT_TLS_CERT] || acl_text_has_uid(o);
    for (size_t i = 0; i < a->n && !known; i++)
        if (strcmp(a->list[i].scheme, "auth") == 0) {
            diag_end(o, NULL, EXIT_PATH,
                     "--acl: 'creator' needs an identity: --auth digest:user:password, "
                     "--tls-cert, or a Unix socket");
            return false;
        }
    return true;
}

bool acl_lets_all_read(const struct acl_list *a)
{
    for (size_t i = 0; i < a->n; i++)
        if ((a->list[i].perms & CLAVE_PERM_READ) && strcmp(a->list[i].scheme, "world") == 0)
            return true;
    return a->n == 0; /* an empty list is open to all */
}

bool acl_lets_owner_write(const struct acl_list *a)
{
    for (size_t i = 0; i < a->n; i++) {
        bool owner =
            strcmp(a->list[i].scheme, "world") == 0 || strcmp(a->list[i].scheme, "auth") == 0;
        if (owner && (a->list[i].perms & CLAVE_PERM_WRITE))
            return true;
    }
    return a->n == 0;
}

const char *acl_perms(int32_t perms, char out[ACL_PERMS_CAP])
{
    static const struct {
        char letter;
        int32_t bit;
    } order[] = {{'c', CLAVE_PERM_CREATE},
                 {'d', CLAVE_PERM_DELETE},
                 {'r', CLAVE_PERM_READ},
                 {'w', CLAVE_PERM_WRITE},
                 {'a', CLAVE_PERM_ADMIN}};
    size_t n = 0;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (perms & order[i].bit)
            out[n++] = order[i].letter;
    out[n] = '\0';
    return out;
}

void acl_fini(struct acl_list *a)
{
    free(a->text);
    *a = (struct acl_list){.n = 0};
}
