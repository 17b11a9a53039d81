/* claim_note.c - what the next gate must know of a claim, and its place cannot say.
 *
 * A note is an ephemeral node of the session, beside its marks, of a claim whose max_hold_ms is to
 * go on at the next gate, or after a restart of this one; or which is of an election, whose place
 * says the candidate's id alone, and has other terms. The same for all kinds: a write to the place
 * itself would be a request for it, where that is revocable.
 *
 * It is made before the place is, and written again at the grant, which says by the servers' clock
 * when that was. A gate that takes the claim up writes that time into it; the time of this write,
 * by the same clock, less the other one is how long it has been held. A round trip of either gate
 * is between those times and what it knows of them, so it tells as if the hold ended that much
 * earlier, and deletes the place that much later: what any gate has told stays true. Since the wall
 * clocks of servers are set, and differ, it deletes nothing before what another gate can have told
 * last is over; the hold is as much shorter or longer as that clock was set by.
 *
 * It goes when its claim is over; one that stays behind, since the connection was lost, is deleted
 * by the next gate that lists it.
 *
 * Called by claim.c at the grant and at the end, and by session_claims.c for what is taken up and
 * listed. Invariant: while a claim here is being noted or read, no proof of its session is told. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "client/client_for_gate.h"
#include "recipe/queue/identity.h"
#include "web/session/claim.h"

#define NOTE_PREFIX SESSION_MARKS "/claim-"

enum { NOTE_PATH = sizeof NOTE_PREFIX + CLAVE_UUID_TEXT, NOTE_DATA = 160 };
/* A hold may last longer by a part of max_hold_ms, for clocks of gates that differ. */
enum { NOTE_CLOCKS = VALIDITY_RATE / 2 };

static void claim_note_path(char out[NOTE_PATH], const char *id)
{
    snprintf(out, NOTE_PATH, "%s%s", NOTE_PREFIX, id);
}

bool clave__claim_note_is(const char *path, const char **id)
{
    size_t n = sizeof NOTE_PREFIX - 1;
    *id = path + n;
    return strncmp(path, NOTE_PREFIX, n) == 0 && strlen(*id) == CLAVE_UUID_TEXT;
}

static int claim_note_format(const struct claim_note *n, char out[NOTE_DATA])
{
    return snprintf(out, NOTE_DATA,
                    "max_hold_ms=%lld\nlock_delay_ms=%lld\nheld_ms=%lld\nsince=%lld\n",
                    n->max_hold_ms, n->lock_delay_ms, n->held_ms, n->since);
}

/* One that somebody has made up says nothing: the session owns it, or it is none. */
static bool claim_note_parse(const struct http_session *s, const clave_result *res,
                             struct claim_note *out)
{
    char text[NOTE_DATA];
    size_t len = res->len < sizeof text ? res->len : sizeof text - 1;
    memcpy(text, len > 0 ? res->data : "", len);
    text[len] = '\0';
    const struct {
        const char *key;
        long long *value;
    } fields[] = {{"max_hold_ms", &out->max_hold_ms},
                  {"lock_delay_ms", &out->lock_delay_ms},
                  {"held_ms", &out->held_ms},
                  {"since", &out->since}};
    bool fine = res->stat->ephemeral_owner == s->id;
    for (size_t i = 0; fine && i < sizeof fields / sizeof *fields; i++) {
        const char *value = clave__identity_find_value(text, text + len, fields[i].key);
        fine = value != NULL;
        *fields[i].value = value ? atoll(value) : 0;
    }
    return fine && out->max_hold_ms >= 0 && out->lock_delay_ms >= 0;
}

static bool claim_has_note(const struct claim *c)
{
    const struct http_session *s = c->part.s;
    return s->known && s->state == HTTP_SESSION_LIVE &&
           (c->max_hold_ms > 0 || (c->kind->plain && c->lock_delay_ms > 0));
}

static struct claim_note claim_note_of(const struct claim *c)
{
    int64_t now = c->part.s->all->web->now, held = -1;
    if (c->max_hold_ms > 0 && c->ends_at != CLAVE_NEVER)
        held = c->max_hold_ms - (c->ends_at - now);
    return (struct claim_note){c->max_hold_ms, c->lock_delay_ms, held, 0};
}

static void claim_note_on_directory(clave_async_client *client, const clave_result *res, void *arg)
{
    struct web *w = arg;
    (void)client;
    w->has_marks |= res->err == CLAVE_OK || res->err == CLAVE_ENODEEXISTS;
}

/* A try that fails has none, so that its end takes none away: a claim of its id may be held. */
void clave__claim_note_make(struct claim *c)
{
    struct http_session *s = c->part.s;
    clave_create_options o = CLAVE_CREATE_OPTIONS_INIT;
    char path[NOTE_PATH], data[NOTE_DATA];
    if (!claim_has_note(c) || (c->trying && c->granted_at == 0))
        return;
    if (!s->all->web->has_marks)
        (void)clave_async_create(s->client, SESSION_MARKS, NULL, 0, &o, claim_note_on_directory,
                                 s->all->web);
    const struct claim_note n = claim_note_of(c);
    o.mode = CLAVE_EPHEMERAL;
    claim_note_path(path, c->place.uuid);
    (void)clave_async_create(s->client, path, data, (size_t)claim_note_format(&n, data), &o, NULL,
                             NULL);
}

bool clave__claim_limits(const struct claim *c)
{
    return c->max_hold_ms > 0 && claim_has_note(c);
}

void clave__claim_note_drop(struct claim *c)
{
    char path[NOTE_PATH];
    bool tried = c->trying && c->granted_at == 0;
    if (!claim_has_note(c) || tried || !c->part.s->attached || c->place.spares != SPARES_NOTHING)
        return;
    claim_note_path(path, c->place.uuid);
    (void)clave_async_delete(c->part.s->client, path, -1, NULL, NULL);
}

static void claim_note_limit(struct claim *c, int64_t ends_at, int64_t gone_at)
{
    c->ends_at = ends_at;
    clave__web_timer_set(c->part.s->all->web, &c->ends, gone_at);
}

/* ---- since when it is held ---- */

void clave__claim_noting_end(struct claim_noting *n)
{
    struct http_session *s = n->s;
    assert(s->taking > 0);
    if (--s->taking == 0 && s->state == HTTP_SESSION_LIVE)
        clave__http_session_known(s);
}

/* A claim here, which may be over. */
static void claim_note_on_known(struct claim_noting *n, clave_err err)
{
    struct http_session *s = n->s;
    (void)err;
    for (struct list *l = s->parts.next; l != &s->parts; l = l->next) {
        struct claim *c = clave__claim_of(LIST_ENTRY(l, struct session_part, link));
        bool held = c->state == CLAIM_DOUBTED || c->state == CLAIM_HELD;
        if (held && n->ends_at != CLAVE_NEVER && strcmp(c->place.uuid, n->uuid) == 0)
            claim_note_limit(c, n->ends_at, n->gone_at);
    }
    clave__claim_noting_end(n);
    clave__mem_free(&s->all->web->mem, n);
}

static struct claim_noting *claim_noting_new(struct claim *c)
{
    struct http_session *s = c->part.s;
    struct claim_noting *n = clave__mem_zalloc(&s->all->web->mem, sizeof *n);
    if (n)
        clave__claim_noting_init(n, s, c->place.uuid, claim_note_on_known);
    return n;
}

void clave__claim_noting_init(struct claim_noting *n, struct http_session *s, const char *uuid,
                              void (*done)(struct claim_noting *n, clave_err err))
{
    *n =
        (struct claim_noting){.s = s, .done = done, .ends_at = CLAVE_NEVER, .gone_at = CLAVE_NEVER};
    memcpy(n->uuid, uuid, CLAVE_UUID_TEXT);
    s->taking++;
}

/* Nothing was asked for. */
static void claim_noting_drop(struct claim_noting *n)
{
    struct http_session *s = n->s;
    s->taking--;
    clave__mem_free(&s->all->web->mem, n);
}

/* Where the grant of a claim here cannot be noted, the next gate knows nothing of it, and this one
 * goes on by its own clock. */
static void claim_on_noted(clave_async_client *client, const clave_result *res, void *arg)
{
    struct claim_noting *f = arg;
    const struct claim_note *n = &f->note;
    int64_t held = n->held_ms;
    if (n->since > 0 && res->err == CLAVE_OK)
        held = res->stat->mtime > n->since ? res->stat->mtime - n->since : 0;
    if (n->since == 0 || res->err == CLAVE_OK) {
        int64_t rest = n->max_hold_ms - held;
        f->ends_at = f->asked + rest;
        int64_t now = clave__client_now(client), told = f->s->ttl_ms;
        told = told < n->max_hold_ms ? told : n->max_hold_ms;
        told += told / SESSION_CLOCKS;
        f->gone_at = now + rest + n->max_hold_ms / NOTE_CLOCKS;
        if (n->since > 0 && f->gone_at < now + told)
            f->gone_at = now + told;
    }
    f->done(f, res->err);
}

/* Since when a claim here is held. */
void clave__claim_note_write(struct claim *c, bool makes)
{
    struct http_session *s = c->part.s;
    clave_create_options o = CLAVE_CREATE_OPTIONS_INIT;
    struct claim_noting *f = claim_noting_new(c);
    char path[NOTE_PATH], data[NOTE_DATA];
    clave_err err = f ? CLAVE_OK : CLAVE_ENOMEM;
    claim_note_path(path, c->place.uuid);
    if (f) {
        f->note = claim_note_of(c);
        f->asked = s->all->web->now;
        size_t n = (size_t)claim_note_format(&f->note, data);
        o.mode = CLAVE_EPHEMERAL;
        err = makes ? clave_async_create(s->client, path, data, n, &o, claim_on_noted, f)
                    : clave_async_set(s->client, path, data, n, -1, claim_on_noted, f);
    }
    if (err == CLAVE_OK)
        return;
    claim_note_limit(c, c->ends_at, c->ends_at + c->max_hold_ms / NOTE_CLOCKS);
    if (f)
        claim_noting_drop(f);
}

void clave__claim_note_held(struct claim *c)
{
    if (c->trying)
        clave__claim_note_make(c);
    if (!clave__claim_limits(c) || c->ends_at != CLAVE_NEVER)
        return;
    c->ends_at = c->granted_at + c->max_hold_ms;
    clave__claim_note_write(c, false);
}

static void claim_on_note(clave_async_client *client, const clave_result *res, void *arg)
{
    struct claim_noting *f = arg;
    struct claim_note *n = &f->note;
    char path[NOTE_PATH], data[NOTE_DATA];
    f->noted = res->err == CLAVE_OK && claim_note_parse(f->s, res, n);
    if (!f->noted)
        *n = (struct claim_note){0};
    if (!f->noted || n->max_hold_ms == 0 || n->held_ms < 0) {
        f->done(f, res->err);
        return;
    }
    if (n->since == 0)
        n->since = res->stat->mtime - n->held_ms;
    f->asked = clave__client_now(client);
    claim_note_path(path, f->uuid);
    clave_err err = clave_async_set(client, path, data, (size_t)claim_note_format(n, data), -1,
                                    claim_on_noted, f);
    if (err != CLAVE_OK)
        f->done(f, err);
}

clave_err clave__claim_noting_read(struct claim_noting *n)
{
    char path[NOTE_PATH];
    claim_note_path(path, n->uuid);
    return clave_async_get(n->s->client, path, NULL, claim_on_note, n);
}

void clave__claim_note_read(struct claim *c)
{
    if (!clave__claim_limits(c) || c->ends_at != CLAVE_NEVER)
        return;
    struct claim_noting *f = claim_noting_new(c);
    if (f && clave__claim_noting_read(f) != CLAVE_OK)
        claim_noting_drop(f);
}
