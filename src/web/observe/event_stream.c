/* event_stream.c - see event_stream.h. Called by api/locks.c. Invariant: every event up to
 * number `n` was written, or was not for this reader; nothing is produced before the driver asks
 * for more. */
#include "web/observe/event_stream.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "observe/lock_json.h"
#include "web/http/answer.h"

enum {
    COMMENT_MS = 15000,
    PIECE = 32768,   /* bytes at a time, or a little more */
    SKIPPED = 2000,  /* events for others at a time */
    MOST_PLACES = 20 /* of a lock in an event; its counts tell of more */
};

struct event_stream {
    struct observe_reader reader;
    struct observe *o;
    struct event_stream_options options;
    struct timer comment;
    uint64_t n;
    enum { STREAM_RESET, STREAM_SNAPSHOT, STREAM_LIVE } phase;
    bool comment_due;
    struct buf at; /* SNAPSHOT: the path of the lock written last, with its NUL */
    bool at_leases;
};

/* ---- writing --------------------------------------------------------------------------------- */

static clave_err stream_put(struct buf *out, const char *text)
{
    return clave__buf_append(out, text, strlen(text));
}

static clave_err stream_begin(const struct event_stream *s, struct buf *out, uint64_t n,
                              const char *name)
{
    char id[EVENT_ID_CAP], head[EVENT_ID_CAP + 64];
    clave__event_id_format(&s->o->ring, n, id);
    snprintf(head, sizeof head, "id: %s\nevent: %.16s\ndata: ", id, name);
    return stream_put(out, head);
}

static clave_err stream_put_lock(const struct event_stream *s, struct buf *out, uint64_t n,
                                 const struct lock_queue *q)
{
    clave_err err = stream_begin(s, out, n, "lock");
    struct json j = clave__json_to(out);
    clave__lock_json(&j, NULL, q, clave__observe_now(s->o), MOST_PLACES);
    err = err == CLAVE_OK ? j.err : err;
    return err == CLAVE_OK ? stream_put(out, "\n\n") : err;
}

/* A lock that is gone: nobody holds it, and nobody waits. */
static clave_err stream_put_vanished(const struct event_stream *s, struct buf *out,
                                     const struct event *e)
{
    clave_err err = stream_begin(s, out, e->n, "lock");
    struct json j = clave__json_to(out);
    clave__lock_json_vanished(&j, e->path, e->kind);
    err = err == CLAVE_OK ? j.err : err;
    return err == CLAVE_OK ? stream_put(out, "\n\n") : err;
}

static clave_err stream_put_event(const struct event_stream *s, struct buf *out,
                                  const struct event *e)
{
    if (!e->data) {
        const struct lock_queue *q = clave__lock_model_get(&s->o->model, e->path, e->leases);
        return q ? stream_put_lock(s, out, e->n, q) : stream_put_vanished(s, out, e);
    }
    clave_err err = stream_begin(s, out, e->n, e->name);
    if (err == CLAVE_OK)
        err = stream_put(out, e->data);
    return err == CLAVE_OK ? stream_put(out, "\n\n") : err;
}

/* ---- which events ---------------------------------------------------------------------------- */

static bool stream_takes_path(const struct event_stream *s, const char *path)
{
    const struct event_stream_options *o = &s->options;
    if (o->path && !(path && strcmp(path, o->path) == 0))
        return false;
    if (o->prefix && !(path && clave__observe_is_below(path, o->prefix)))
        return false;
    return o->may(s->reader.x, path);
}

/* Its text names all locks of the deadlock. One that is over is not told any more. */
static bool stream_may_see_deadlock(const struct event_stream *s, const struct event *e)
{
    const struct list *found = &s->o->waits.found;
    for (struct list *at = found->next; at != found; at = at->next) {
        const struct lock_deadlock *d = LIST_ENTRY(at, struct lock_deadlock, link);
        if (strcmp(d->data, e->data) != 0)
            continue;
        for (size_t i = 0; i < d->npaths; i++)
            if (!s->options.may(s->reader.x, d->paths[i]))
                return false;
        return true;
    }
    return false;
}

static bool stream_takes(const struct event_stream *s, const struct event *e)
{
    if (e->session)
        return s->options.session && strcmp(e->session, s->options.session) == 0;
    bool names_others = strcmp(e->name, "deadlock") == 0;
    if (names_others && !e->path) /* there is none any more: that names no lock */
        return true;
    return stream_takes_path(s, e->path) && (!names_others || stream_may_see_deadlock(s, e));
}

/* ---- in pieces ------------------------------------------------------------------------------- */

static clave_err stream_put_reset(struct event_stream *s, struct buf *out)
{
    s->n = s->o->ring.last;
    clave_err err = stream_put(out, "retry: 1000\n");
    if (err == CLAVE_OK)
        err = stream_begin(s, out, s->n, "reset");
    s->phase = STREAM_SNAPSHOT;
    return err == CLAVE_OK ? stream_put(out, "{}\n\n") : err;
}

/* One lock. Locks that change meanwhile come again as events. */
static clave_err stream_put_next_lock(struct event_stream *s, struct buf *out)
{
    const struct lock_queue *q =
        clave__lock_model_after(&s->o->model, clave__buf_text(&s->at), s->at_leases);
    if (!q) {
        s->phase = STREAM_LIVE;
        return CLAVE_OK;
    }
    s->at_leases = q->leases;
    clave_err err = clave__buf_set_text(&s->at, q->path);
    if (err != CLAVE_OK || !stream_takes_path(s, q->path))
        return err;
    return stream_put_lock(s, out, s->n, q);
}

/* *idle: there is nothing more now. */
static clave_err stream_put_next_event(struct event_stream *s, struct buf *out, bool *idle)
{
    const struct event *e = clave__event_ring_after(&s->o->ring, s->n);
    *idle = !e;
    if (!e)
        return CLAVE_OK;
    s->n = e->n;
    return stream_takes(s, e) ? stream_put_event(s, out, e) : CLAVE_OK;
}

static clave_err stream_put_some(struct event_stream *s, struct buf *out)
{
    size_t before = clave__buf_len(out);
    bool idle = false;
    clave_err err = CLAVE_OK;
    for (int i = 0; i < SKIPPED && !idle && err == CLAVE_OK; i++) {
        if (clave__buf_len(out) - before > PIECE)
            return CLAVE_OK;
        if (s->phase == STREAM_RESET)
            err = stream_put_reset(s, out);
        else if (s->phase == STREAM_SNAPSHOT)
            err = stream_put_next_lock(s, out);
        else
            err = stream_put_next_event(s, out, &idle);
    }
    if (!idle && clave__buf_len(out) == before)
        clave__web_wake(s->reader.x);
    return err;
}

static clave_err stream_more(void *arg, struct buf *out, bool *done)
{
    struct event_stream *s = arg;
    size_t before = clave__buf_len(out);
    if (s->phase != STREAM_RESET && !clave__event_ring_reaches(&s->o->ring, s->n)) {
        *done = true; /* it is too slow */
        return CLAVE_OK;
    }
    clave_err err = stream_put_some(s, out);
    if (err == CLAVE_OK && s->comment_due && clave__buf_len(out) == before)
        err = stream_put(out, ":\n\n");
    s->comment_due = false;
    if (clave__buf_len(out) > before)
        clave__web_timer_set(s->o->web, &s->comment, s->o->web->now + COMMENT_MS);
    return err;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void stream_on_silence(struct timer *t, int64_t now)
{
    struct event_stream *s = LIST_ENTRY(t, struct event_stream, comment);
    s->comment_due = true;
    clave__web_timer_set(s->o->web, t, now + COMMENT_MS);
    clave__web_wake(s->reader.x);
}

static void stream_end(void *arg)
{
    struct event_stream *s = arg;
    clave__web_timer_clear(s->o->web, &s->comment);
    list_remove(&s->reader.link);
    clave__buf_fini(&s->at);
}

clave_err clave__event_stream_open(struct observe *o, struct web_exchange *x,
                                   const struct event_stream_options *options)
{
    assert(options->may && !x->answered && !x->answer.more);
    struct event_stream *s = clave__web_alloc(x, sizeof *s);
    if (!s)
        return CLAVE_ENOMEM;
    *s = (struct event_stream){.reader.x = x, .o = o, .options = *options};
    clave__buf_init(&s->at, &o->web->mem, SIZE_MAX);
    clave__timer_init(&s->comment, stream_on_silence);
    if (options->last_id && clave__event_id_parse(&o->ring, options->last_id, &s->n) &&
        clave__event_ring_reaches(&o->ring, s->n))
        s->phase = STREAM_LIVE;
    list_push_back(&o->streams, &s->reader.link);
    clave__web_timer_set(o->web, &s->comment, o->web->now + COMMENT_MS);
    x->answer.more = stream_more;
    x->answer.end = stream_end;
    x->answer.arg = s;
    clave__web_answer_stream(x, 200, "text/event-stream");
    return CLAVE_OK;
}
