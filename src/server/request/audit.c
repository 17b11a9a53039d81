/* audit.c - writes the lines of the audit log (request.h). request.c and session.c call it
 * once the transaction is in the log. Values never contain a tab or a newline, so no client can
 * forge a line; whatever a terminal would obey, and bytes that are not UTF-8, are escaped: \u001b,
 * \xff. */
#include "server/request/request.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "wire/opcode.h"

enum { KEEP_LINE = 1024 };

/* ---- a line ---------------------------------------------------------------------------------- */

static void audit_put_text(struct server *s, const void *text, size_t n)
{
    if (clave__buf_append(&s->audit.line, text, n) != CLAVE_OK)
        s->audit.torn = true;
}

static void audit_put_value(struct server *s, struct jbytes value)
{
    char escaped[8];
    int32_t from = 0;
    for (int32_t i = 0; i < value.n;) {
        uint32_t c;
        size_t left = (size_t)(value.n - i), len = clave__utf8_printable(value.p + i, left);
        if (len > 0) {
            i += (int32_t)len;
            continue;
        }
        len = clave__utf8_len(value.p + i, left) ? clave__utf8_decode(value.p + i, left, &c) : 0;
        audit_put_text(s, value.p + from, (size_t)(i - from));
        int n = len > 0 ? snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)c)
                        : snprintf(escaped, sizeof escaped, "\\x%02x", (unsigned char)value.p[i]);
        audit_put_text(s, escaped, (size_t)n);
        from = i += len > 0 ? (int32_t)len : 1;
    }
    if (value.n > from)
        audit_put_text(s, value.p + from, (size_t)(value.n - from));
}

static void audit_begin_pair(struct server *s, const char *key)
{
    if (clave__buf_len(&s->audit.line) > 0)
        audit_put_text(s, "\t", 1);
    audit_put_text(s, key, strlen(key));
    audit_put_text(s, "=", 1);
}

static void audit_put(struct server *s, const char *key, const char *value)
{
    audit_begin_pair(s, key);
    audit_put_value(s, clave__jbytes(value));
}

static void audit_put_session(struct server *s, int64_t id)
{
    char text[24];
    snprintf(text, sizeof text, "0x%llx", (unsigned long long)id);
    audit_put(s, "session", text);
}

static void audit_end(struct server *s, bool failed)
{
    audit_put(s, "result", failed ? "failure" : "success");
    s->audit.write(s->audit.arg, failed,
                   s->audit.torn ? NULL : (const char *)clave__buf_bytes(&s->audit.line),
                   clave__buf_len(&s->audit.line));
    s->audit.torn = false;
    clave__buf_clear(&s->audit.line);
    clave__buf_trim(&s->audit.line, KEEP_LINE);
}

/* ---- who did it ------------------------------------------------------------------------------ */

/* The names of all identities: "joe,127.0.0.1". */
static void audit_put_users(struct server *s, const struct identities *who)
{
    char text[AUTH_UID_TEXT];
    const char *separator = "";
    struct jreader r = clave__jvec_reader(clave__identities_digests(who));
    audit_begin_pair(s, "user");
    for (int32_t i = 0; i < who->count; i++, separator = ",") {
        audit_put_text(s, separator, strlen(separator));
        audit_put_value(s, clave__identities_user(clave__jget_bytes(&r)));
    }
    if (who->has_subject) {
        audit_put_text(s, separator, strlen(separator));
        audit_put_value(s, clave__identities_subject(who));
        separator = ",";
    }
    if (who->has_uid) {
        audit_put_text(s, separator, strlen(separator));
        audit_put_value(s, clave__uid_text(who, text));
        separator = ",";
    }
    if (who->family != 0) {
        char ip[AUTH_IP_TEXT];
        clave__identities_ip_text(who, ip);
        audit_put_text(s, separator, strlen(separator));
        audit_put_text(s, ip, strlen(ip));
    }
}

static void audit_begin(struct server_conn *c, int64_t session, const char *operation)
{
    assert(c->s->audit.write && operation);
    assert(clave__buf_len(&c->s->audit.line) == 0); /* one line at a time */
    char ip[AUTH_IP_TEXT];
    audit_put_session(c->s, session);
    audit_put_users(c->s, &c->who);
    if (c->who.family != 0)
        clave__identities_ip_text(&c->who, ip);
    audit_put(c->s, "ip", c->who.family != 0 ? ip : c->peer.text);
    audit_put(c->s, "operation", operation);
}

/* ---- what was done --------------------------------------------------------------------------- */

static const char *audit_operation(int32_t op)
{
    static const char *const names[] = {[EFFECT_CREATE] = "create",
                                        [EFFECT_DELETE] = "delete",
                                        [EFFECT_SET_DATA] = "setData",
                                        [EFFECT_SET_ACL] = "setAcl"};
    return op == OP_RECONFIG ? "reconfig" : names[clave__opcode(op)->effect];
}

static const char *audit_mode(int32_t mode)
{
    static const char *const names[] = {[MODE_PERSISTENT] = "persistent",
                                        [MODE_EPHEMERAL] = "ephemeral",
                                        [MODE_PERSISTENT_SEQUENTIAL] = "persistent_sequential",
                                        [MODE_EPHEMERAL_SEQUENTIAL] = "ephemeral_sequential",
                                        [MODE_CONTAINER] = "container",
                                        [MODE_PERSISTENT_TTL] = "persistent_with_ttl",
                                        [MODE_PERSISTENT_SEQUENTIAL_TTL] =
                                            "persistent_sequential_with_ttl"};
    return mode >= 0 && (size_t)mode < sizeof names / sizeof *names ? names[mode] : "unknown";
}

/* Writes an access list, "world:anyone:cdrwa", with nothing between two entries, as Apache does. */
static void audit_put_acl(struct server *s, struct jvec acl)
{
    static const struct {
        int32_t bit;
        char letter;
    } perms[] = {{PERM_CREATE, 'c'},
                 {PERM_DELETE, 'd'},
                 {PERM_READ, 'r'},
                 {PERM_WRITE, 'w'},
                 {PERM_ADMIN, 'a'}};
    struct jreader r = clave__jvec_reader(acl);
    audit_begin_pair(s, "acl");
    for (int32_t i = 0; i < acl.count; i++) {
        struct wire_acl entry = clave__wire_get_acl(&r);
        audit_put_value(s, entry.scheme);
        audit_put_text(s, ":", 1);
        audit_put_value(s, entry.id);
        audit_put_text(s, ":", 1);
        for (size_t k = 0; k < sizeof perms / sizeof *perms; k++)
            if (entry.perms & perms[k].bit)
                audit_put_text(s, &perms[k].letter, 1);
    }
}

/* ---- the lines ------------------------------------------------------------------------------- */

void clave__audit_write(struct server_conn *c, int32_t op, const union wire_body *body,
                        const struct change *made)
{
    struct server *s = c->s;
    if (!s->audit.write || !audit_operation(op)) /* a check in a multi, for instance */
        return;
    const struct opcode *kind = clave__opcode(op);
    audit_begin(c, s->txn.head.client,
                audit_operation(op)); /* from the transaction, because c may have been cut since */
    if (kind->effect != EFFECT_NONE) {
        audit_begin_pair(s, "znode");
        /* The body of each of them begins with the path. A create may have appended a number to it.
         */
        audit_put_value(s, made && kind->effect == EFFECT_CREATE ? made->path : body->path);
    }
    if (kind->effect == EFFECT_CREATE)
        audit_put(s, "znode_type", audit_mode(body->create.flags));
    if (kind->effect == EFFECT_SET_ACL)
        audit_put_acl(s, body->set_acl.acl);
    audit_end(s, !made);
}

void clave__audit_failed_multi(struct server_conn *c)
{
    if (!c->s->audit.write)
        return;
    audit_begin(c, c->s->txn.head.client, "multiOperation");
    audit_end(c->s, true);
}

void clave__audit_end_session(struct server_conn *c, struct jbytes path, clave_err err)
{
    if (!c->s->audit.write)
        return;
    audit_begin(c, c->session->id, audit_operation(OP_DELETE));
    audit_begin_pair(c->s, "znode");
    audit_put_value(c->s, path);
    audit_end(c->s, err != CLAVE_OK);
}

void clave__audit_ephemerals(struct server *s, int64_t session)
{
    for (size_t i = 0; s->audit.write && i < s->txn.count; i++) {
        audit_put_session(s, session);
        audit_put(s, "user", s->audit.user);
        audit_put(s, "operation", "ephemeralZNodeDeletionOnSessionCloseOrExpire");
        audit_begin_pair(s, "znode");
        audit_put_value(s, s->txn.changes[i].path);
        audit_end(s, false);
    }
}
