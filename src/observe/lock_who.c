/* lock_who.c - the owner of a place, in words (lock_who.h). What must stay true: whatever other
 * clients wrote into nodes is only displayed, never trusted. */
#include "observe/lock_who.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "recipe/queue/identity.h"
#include "recipe/slots/slot_node.h"

void clave__lock_who_identity(const struct lock_node *p, char text[LOCK_TEXT_CAP],
                              clave_identity *id)
{
    char *slot = text + LOCK_DATA_MAX + 1;
    *id = (clave_identity){0};
    if (p->data) {
        memcpy(text, p->data, p->ndata + 1);
        clave__identity_parse(text, p->ndata, id);
    }
    if (p->kept && clave__slot_name_parse(p->name, slot))
        id->name = slot;
}

const char *clave__lock_who_field(const struct lock_node *p, const char *key,
                                  char out[CLAVE_SLOT_TEXT_MAX + 1])
{
    bool there = p->kept && p->data &&
                 clave__identity_get_field(p->data, p->ndata, key, out, CLAVE_SLOT_TEXT_MAX + 1);
    return there ? out : NULL;
}

/* Replaces control characters, which come from other clients. */
static void lock_who_clean(char *text)
{
    for (size_t i = 0, n = strlen(text), len; i < n; i += len) {
        len = clave__utf8_printable(text + i, n - i);
        if (len == 0)
            text[i] = '?';
        len += len == 0;
    }
}

/* How many bytes of the text fit in `most` without cutting a character. */
static int lock_who_fits(const char *text, size_t most)
{
    size_t n = strlen(text);
    if (n > most)
        for (n = most; n > 0 && (text[n] & 0xc0) == 0x80;)
            n--;
    return (int)n;
}

/* The first text that is not empty; "" if none is. */
static const char *lock_who_first(const char *a, const char *b, const char *c)
{
    if (a && *a)
        return a;
    if (b && *b)
        return b;
    return c ? c : "";
}

/* True if the client names its host or process; then those are shown, with its name in brackets. */
static bool lock_who_is_placed(const clave_identity *id)
{
    return id->pid || *lock_who_first(id->host, NULL, NULL);
}

static void lock_who_whose(const clave_identity *id, int64_t session, char out[LOCK_WHO_CAP])
{
    const char *host = lock_who_first(id->host, NULL, NULL);
    const char *text = lock_who_first(id->name, id->command, id->text);
    char pid[32] = "";
    if (id->pid)
        snprintf(pid, sizeof pid, "%spid %" PRId64, *host ? " " : "", id->pid);
    if (lock_who_is_placed(id))
        snprintf(out, LOCK_WHO_CAP, "%.*s%s", lock_who_fits(host, 100), host, pid);
    else if (*text)
        snprintf(out, LOCK_WHO_CAP, "%.*s", lock_who_fits(text, 200), text);
    else if (session)
        snprintf(out, LOCK_WHO_CAP, "session 0x%" PRIx64, (uint64_t)session);
    else
        snprintf(out, LOCK_WHO_CAP, "an unnamed client");
}

const char *clave__lock_who_says(const clave_identity *id, int64_t session, char out[LOCK_WHO_CAP])
{
    const char *name = lock_who_first(id->name, id->command, NULL);
    lock_who_whose(id, session, out);
    size_t n = strlen(out);
    if (*name && lock_who_is_placed(id))
        snprintf(out + n, LOCK_WHO_CAP - n, " (%.*s)", lock_who_fits(name, 100), name);
    lock_who_clean(out);
    return out;
}

static void lock_who_label_slot(const struct lock_node *p, const clave_identity *id,
                                struct lock_label *out)
{
    char text[CLAVE_SLOT_TEXT_MAX + 1];
    const char *reason = clave__lock_who_field(p, "reason", text),
               *host = lock_who_first(id->host, NULL, NULL);
    snprintf(out->whose, sizeof out->whose, "%s", id->name);
    snprintf(out->said, sizeof out->said, "%s%s%s", host, *host && reason ? ": " : "",
             reason ? reason : "");
    out->task = out->said;
}

void clave__lock_label(const struct lock_node *p, struct lock_label *out)
{
    clave_identity id;
    clave__lock_who_identity(p, out->data, &id);
    if (p->unreadable)
        strcpy(out->whose, "(not readable)");
    else
        lock_who_whose(&id, p->session ? p->session->id : 0, out->whose);
    out->host = id.host;
    out->pid = id.pid;
    out->task = lock_who_first(id.name, id.command, NULL);
    if (!lock_who_is_placed(&id))
        out->task = id.name && *id.name ? lock_who_first(id.command, NULL, NULL) : "";
    if (p->kept) {
        lock_who_label_slot(p, &id, out);
    } else if (lock_who_is_placed(&id) && id.text && *id.text) {
        snprintf(out->said, sizeof out->said, "%s (%s)", id.text, out->task);
        out->task = *out->task ? out->said : id.text;
    }
}

const char *clave__lock_who(const struct lock_node *p, char out[LOCK_WHO_CAP])
{
    char data[LOCK_TEXT_CAP];
    clave_identity id;
    clave__lock_who_identity(p, data, &id);
    if (p->kept)
        id = (clave_identity){.host = id.name, .name = id.host};
    else if (p->unreadable)
        return strcpy(out, "a client whose node may not be read");
    return clave__lock_who_says(&id, p->session ? p->session->id : 0, out);
}
