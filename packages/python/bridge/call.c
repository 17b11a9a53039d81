/* call.c - calls on the loop's thread, and the ways their answers take to Python. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "bridge.h"

/* ---- channels ------------------------------------------------------------------------------- */

struct bridge_channel {
    pthread_mutex_t mutex;
    struct bridge_note *first, **end;
    int fd;
};

bridge_channel *bridge_channel_new(void)
{
    bridge_channel *ch = calloc(1, sizeof *ch);
    if (!ch)
        return NULL;
    ch->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ch->end = &ch->first;
    if (ch->fd < 0 || pthread_mutex_init(&ch->mutex, NULL) != 0) {
        if (ch->fd >= 0)
            close(ch->fd);
        free(ch);
        return NULL;
    }
    return ch;
}

void bridge_channel_free(bridge_channel *ch)
{
    for (struct bridge_note *n; (n = ch->first);) {
        ch->first = n->next;
        bridge_note_free(n);
    }
    close(ch->fd);
    pthread_mutex_destroy(&ch->mutex);
    free(ch);
}

int bridge_channel_fd(const bridge_channel *ch)
{
    return ch->fd;
}

void bridge_channel_clear(bridge_channel *ch)
{
    eventfd_t count;
    (void)eventfd_read(ch->fd, &count);
}

void bridge__channel_push(bridge_channel *ch, struct bridge_note *n)
{
    n->next = NULL;
    pthread_mutex_lock(&ch->mutex);
    bool was_empty = !ch->first;
    *ch->end = n;
    ch->end = &n->next;
    pthread_mutex_unlock(&ch->mutex);
    if (was_empty)
        (void)eventfd_write(ch->fd, 1);
}

struct bridge_note *bridge_channel_take(bridge_channel *ch, uint64_t *id)
{
    pthread_mutex_lock(&ch->mutex);
    struct bridge_note *n = ch->first;
    if (n) {
        ch->first = n->next;
        if (!ch->first)
            ch->end = &ch->first;
    }
    pthread_mutex_unlock(&ch->mutex);
    if (n)
        *id = n->id;
    return n;
}

/* ---- at once -------------------------------------------------------------------------------- */

/* The asynchronous client of a session, which never changes. */
static void call_session_run(clave_async_client *c, void *arg)
{
    *(clave_async_client **)arg = c;
}

clave_err bridge_session(clave_client *client, clave_async_client **out)
{
    return clave_client_run(client, call_session_run, out);
}

struct call_now {
    bridge_fn *fn;
    const bridge_word *args;
    bridge_word result;
};

static void call_now_run(clave_async_client *client, void *arg)
{
    (void)client;
    struct call_now *now = arg;
    const bridge_word *a = now->args;
    now->result = now->fn(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
}

clave_err bridge_now(clave_client *client, bridge_fn *fn, const bridge_word *args,
                     bridge_word *result)
{
    struct call_now now = {.fn = fn, .args = args};
    clave_err err = clave_client_run(client, call_now_run, &now);
    *result = now.result;
    return err;
}

/* ---- frees, for which nobody waits ---------------------------------------------------------- */

struct call_free {
    bridge_fn *fn;
    void *object;
    struct bridge_source *source;
};

static void call_free_run(clave_async_client *client, void *arg)
{
    (void)client;
    struct call_free *f = arg;
    f->fn((bridge_word)f->object, 0, 0, 0, 0, 0, 0, 0);
    bridge_source_free(f->source);
    free(f);
}

clave_err bridge_free(clave_client *client, bridge_fn *fn, void *object,
                      struct bridge_source *source)
{
    struct call_free *f = malloc(sizeof *f);
    if (!f)
        return CLAVE_ENOMEM;
    *f = (struct call_free){.fn = fn, .object = object, .source = source};
    clave_err err = clave_client_post(client, call_free_run, f);
    if (err != CLAVE_OK)
        free(f);
    return err;
}

/* ---- with an answer later ------------------------------------------------------------------- */

static void call_end(struct bridge_call *c)
{
    bridge__note_fini(&c->note);
    sem_destroy(&c->begun);
    sem_destroy(&c->done);
    free(c->leases);
    free(c->text);
    free(c);
}

void bridge_note_free(struct bridge_note *n)
{
    if (n->call) {
        call_end(n->call);
        return;
    }
    bridge__note_fini(n);
    free(n);
}

void bridge__complete(struct bridge_call *c)
{
    if (c->abandoned) {
        if (c->undo)
            c->undo(c);
        call_end(c);
        return;
    }
    c->complete = true;
    if (c->channel)
        bridge__channel_push(c->channel, &c->note);
    else
        sem_post(&c->done);
}

/* Completions never run inside the starting call, so the call lives until `begun` is posted. */
static void call_begin_run(clave_async_client *client, void *arg)
{
    (void)client;
    struct bridge_call *c = arg;
    const bridge_word *a = c->args;
    clave_err err = (clave_err)(int)c->fn(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
    sem_post(&c->begun);
    if (err == CLAVE_OK)
        return;
    bridge__put_int(&c->note, err);
    bridge__complete(c);
}

clave_err bridge_start(struct bridge_call **out, clave_client *client, bridge_channel *channel,
                       uint64_t id, bridge_fn *fn, const bridge_word *args, unsigned nargs,
                       void (*cb)(void))
{
    *out = NULL;
    if (nargs > BRIDGE_WORDS - 2)
        return CLAVE_EINVAL;
    struct bridge_call *c = calloc(1, sizeof *c);
    if (!c)
        return CLAVE_ENOMEM;
    sem_init(&c->begun, 0, 0);
    sem_init(&c->done, 0, 0);
    bridge__note_init(&c->note, id, c);
    c->channel = channel;
    c->fn = fn;
    for (unsigned i = 0; i < nargs; i++)
        c->args[i] = args[i];
    c->args[nargs] = (bridge_word)cb;
    c->args[nargs + 1] = (bridge_word)c;
    clave_err err = clave_client_post(client, call_begin_run, c);
    if (err == CLAVE_OK)
        *out = c;
    else
        call_end(c);
    return err;
}

bool bridge_wait(struct bridge_call *c, int ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until); /* the wall clock may be set while a call waits */
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    if (sem_clockwait(&c->done, CLOCK_MONOTONIC, &until) != 0) {
        while (sem_wait(&c->begun) != 0)
            continue; /* a signal; the loop's thread never waits for anything */
        (void)sem_post(&c->begun);
        return false;
    }
    (void)sem_post(&c->done); /* an exception may have Python forget that it was told */
    return true;
}

struct call_abandon {
    struct bridge_call *call;
    bridge_fn *cancel;
    void *object;
    uint64_t number;
    bool given_up;
};

static void call_abandon_run(clave_async_client *client, void *arg)
{
    (void)client;
    struct call_abandon *a = arg;
    if (a->call->complete)
        return;
    a->given_up = true;
    a->call->abandoned = true;
    if (a->cancel)
        a->cancel((bridge_word)a->object, (bridge_word)a->number, 0, 0, 0, 0, 0, 0);
}

bool bridge_abandon(clave_client *client, struct bridge_call *c, bridge_fn *cancel, void *object,
                    uint64_t number)
{
    struct call_abandon a = {.call = c, .cancel = cancel, .object = object, .number = number};
    return clave_client_run(client, call_abandon_run, &a) == CLAVE_OK && a.given_up;
}

static void call_undo_run(clave_async_client *client, void *arg)
{
    (void)client;
    struct bridge_call *c = arg;
    if (c->undo)
        c->undo(c);
}

void bridge_undo(clave_client *client, struct bridge_call *c)
{
    (void)clave_client_run(client, call_undo_run, c); /* ECLOSED: nothing is held any more */
    call_end(c);
}
