/* bridge.h - what lets Python use the asynchronous form of libclave through ctypes.
 *
 * The loop's thread keeps the session alive, so it never waits for Python's interpreter lock: no
 * Python code runs on it. A callback of libclave is a C function here. It writes what it received
 * into a note, and whoever waits for the note reads it later.
 *
 *   call.c      calls on the loop's thread, waiting for their answers, channels of notes
 *   note.c      the encoding of a note
 *   answers.c   callbacks that end a call
 *   events.c    callbacks that come at any time
 *   cache.c     questions to a cache; instances.c: to instances of services
 *
 * A note is a sequence of values: 'N'; 'I' and 8 bytes; 'B' (bytes) or 'S' (UTF-8), 4 bytes of
 * length, and the bytes; 'L', 4 bytes of count, and as many values. Numbers are in the machine's
 * order. The first value of an answer is its error. */
#ifndef CLAVE_PYTHON_BRIDGE_H
#define CLAVE_PYTHON_BRIDGE_H

#include <semaphore.h>

#include "clave/clave.h"

/* ---- notes ---------------------------------------------------------------------------------- */

struct bridge_call;

struct bridge_note {
    struct bridge_note *next; /* in a channel */
    uint64_t id;              /* of the call or the source */
    struct bridge_call *call; /* NULL: an event, or an answer at once */
    unsigned char *bytes;
    size_t len, cap;
    bool failed;             /* no memory */
    unsigned char room[384]; /* an answer of this size needs no memory */
};

void bridge__note_init(struct bridge_note *n, uint64_t id, struct bridge_call *call);
void bridge__note_fini(struct bridge_note *n);
void bridge__put_none(struct bridge_note *n);
void bridge__put_int(struct bridge_note *n, int64_t value);
void bridge__put_bytes(struct bridge_note *n, const void *p, size_t len); /* p NULL: none */
void bridge__put_text(struct bridge_note *n, const char *s);              /* NULL: none */
void bridge__put_list(struct bridge_note *n, size_t count);
void bridge__put_stat(struct bridge_note *n, const clave_stat *s); /* NULL: none */
void bridge__put_grant(struct bridge_note *n, clave_async_grant *g);
void bridge__put_identity(struct bridge_note *n, const clave_identity *id);
void bridge__put_participants(struct bridge_note *n, const clave_participant *list, size_t count);

CLAVE_EXPORT struct bridge_note *bridge_note_new(void);
/* A grant in the note is then the reader's. */
CLAVE_EXPORT size_t bridge_note_read(struct bridge_note *n, const void **bytes);
/* Frees a note, and the call that it ends. */
CLAVE_EXPORT void bridge_note_free(struct bridge_note *n);

/* ---- channels ------------------------------------------------------------------------------- */

typedef struct bridge_channel bridge_channel; /* opaque: notes for one reader, and a descriptor */

/* NULL: no memory, or no descriptor. */
CLAVE_EXPORT bridge_channel *bridge_channel_new(void);
/* Nothing may refer to it any more. */
CLAVE_EXPORT void bridge_channel_free(bridge_channel *ch);
/* An eventfd, readable while there are notes: clear it, then take notes until there is none. */
CLAVE_EXPORT int bridge_channel_fd(const bridge_channel *ch);
CLAVE_EXPORT void bridge_channel_clear(bridge_channel *ch);
CLAVE_EXPORT struct bridge_note *bridge_channel_take(bridge_channel *ch, uint64_t *id);
void bridge__channel_push(bridge_channel *ch, struct bridge_note *n);

/* ---- events --------------------------------------------------------------------------------- */

/* The argument of the callbacks of events.c: where their notes go, and with which number. */
struct bridge_source {
    bridge_channel *channel;
    uint64_t id;
    uint64_t kinds; /* those that are wanted: bits 1 << kind */
};
CLAVE_EXPORT struct bridge_source *bridge_source_new(bridge_channel *channel, uint64_t id,
                                                     uint64_t kinds);
CLAVE_EXPORT void bridge_source_free(struct bridge_source *s);

/* ---- calls ---------------------------------------------------------------------------------- */

/* Any function of libclave whose arguments are pointers and integers, as ctypes sees it. */
typedef intptr_t bridge_word;
typedef bridge_word bridge_fn(bridge_word, bridge_word, bridge_word, bridge_word, bridge_word,
                              bridge_word, bridge_word, bridge_word);
enum { BRIDGE_WORDS = 8 };

struct bridge_call {
    struct bridge_note note;
    bridge_fn *fn;
    bridge_word args[BRIDGE_WORDS];
    bridge_channel *channel; /* NULL: a thread waits in bridge_wait */
    sem_t begun;             /* fn has returned, and its arguments may go */
    sem_t done;
    bool complete;  /* this and the next are the loop's thread's */
    bool abandoned; /* nobody waits any more */
    bool read;      /* the grant in its note is the reader's */
    /* Takes back what the answer granted, when nobody has taken it. */
    void (*undo)(struct bridge_call *c);
    void *object;
    uint64_t number;
    clave_async_grant *grant;
    clave_async_lease **leases;
    size_t nleases;
    char *text;
};

/* The asynchronous client of a session, which never changes. ECLOSED. */
CLAVE_EXPORT clave_err bridge_session(clave_client *client, clave_async_client **out);
/* Calls fn(args..., 0...) on the loop's thread and waits for its return. ECLOSED. */
CLAVE_EXPORT clave_err bridge_now(clave_client *client, bridge_fn *fn, const bridge_word *args,
                                  bridge_word *result);
/* Has fn(object) called there, then frees the source (may be NULL); does not wait. It is done
 * before the end of the session. ENOMEM, ECLOSED: nothing is freed. */
CLAVE_EXPORT clave_err bridge_free(clave_client *client, bridge_fn *fn, void *object,
                                   struct bridge_source *source);
/* Has fn(args..., cb, call) called there: `cb` is one of answers.c. It does not wait: what the
 * arguments point to has to stay until the answer is there, until bridge_wait has returned or until
 * bridge_abandon has. The answer comes to `channel` with the number `id`, or, without a channel, to
 * bridge_wait; if fn refuses the call, it has nothing but fn's error. An error of bridge_start
 * means that no answer follows. ENOMEM, ECLOSED, EINVAL: more arguments than there is room for. */
CLAVE_EXPORT clave_err bridge_start(struct bridge_call **out, clave_client *client,
                                    bridge_channel *channel, uint64_t id, bridge_fn *fn,
                                    const bridge_word *args, unsigned nargs, void (*cb)(void));
/* Waits for the answer for `ms` milliseconds, or until a signal comes, and in any case until fn has
 * been called; true: it is there, and is again when it is asked again. */
CLAVE_EXPORT bool bridge_wait(struct bridge_call *c, int ms);
/* Gives up waiting: cancel(object, number), and nothing is held whatever the answer will be. true:
 * the call is no longer the caller's. false: the answer is there, for bridge_undo. */
CLAVE_EXPORT bool bridge_abandon(clave_client *client, struct bridge_call *c, bridge_fn *cancel,
                                 void *object, uint64_t number);
/* Takes back what an answer granted, and frees the call. */
CLAVE_EXPORT void bridge_undo(clave_client *client, struct bridge_call *c);
/* Ends one await, for bridge_abandon. */
CLAVE_EXPORT clave_err bridge_cancel_await(clave_async_latch *l, struct bridge_call *c);
/* For answers.c, when the note is written. */
void bridge__complete(struct bridge_call *c);

/* ---- the callbacks, each of the type that libclave calls it with ----------------------------- */

CLAVE_EXPORT clave_async_mutex_cb bridge_on_acquired, bridge_on_released;
CLAVE_EXPORT clave_async_multilock_cb bridge_on_multilock, bridge_on_multilock_left;
CLAVE_EXPORT clave_async_lease_cb bridge_on_leases;
CLAVE_EXPORT clave_async_lease_left_cb bridge_on_lease_left;
CLAVE_EXPORT clave_async_slots_take_cb bridge_on_slot_taken;
CLAVE_EXPORT clave_async_slots_give_cb bridge_on_slot_given;
CLAVE_EXPORT clave_async_slots_limit_cb bridge_on_slots_limit;
CLAVE_EXPORT clave_async_slots_list_cb bridge_on_slots_list;
CLAVE_EXPORT clave_async_latch_cb bridge_on_leader, bridge_on_latch_closed;
CLAVE_EXPORT clave_async_transfer_cb bridge_on_transfer;
CLAVE_EXPORT clave_async_once_cb bridge_on_once;
CLAVE_EXPORT clave_async_counter_cb bridge_on_counted;
CLAVE_EXPORT clave_async_persistent_node_cb bridge_on_persistent_node;
CLAVE_EXPORT clave_async_delay_cb bridge_on_delay;
CLAVE_EXPORT clave_result_cb bridge_on_result;
CLAVE_EXPORT clave_async_participants_cb bridge_on_participants;
CLAVE_EXPORT clave_async_deadlocks_cb bridge_on_deadlocks;

CLAVE_EXPORT clave_mutex_event_cb bridge_on_mutex_event;
CLAVE_EXPORT clave_multilock_event_cb bridge_on_multilock_event;
CLAVE_EXPORT clave_lease_event_cb bridge_on_lease_event;
CLAVE_EXPORT clave_slots_event_cb bridge_on_slots_event;
CLAVE_EXPORT clave_latch_event_cb bridge_on_latch_event;
CLAVE_EXPORT clave_async_leader_watch_cb bridge_on_leader_news;
CLAVE_EXPORT clave_delay_event_cb bridge_on_delay_event;
CLAVE_EXPORT clave_state_cb bridge_on_state;
CLAVE_EXPORT clave_log_cb bridge_on_log;
CLAVE_EXPORT clave_async_persistent_watcher_cb bridge_on_persistent_watcher;
CLAVE_EXPORT clave_persistent_node_event_cb bridge_on_persistent_node_event;
CLAVE_EXPORT clave_async_cache_cb bridge_on_cache_event;
CLAVE_EXPORT clave_async_instances_cb bridge_on_instances_event;

/* ---- questions to a cache, answered into a note --------------------------------------------- */

CLAVE_EXPORT clave_err bridge_cache_get(const clave_async_cache *cache, const char *path,
                                        struct bridge_note *n);
CLAVE_EXPORT clave_err bridge_cache_children(const clave_async_cache *cache, const char *path,
                                             struct bridge_note *n);
CLAVE_EXPORT clave_err bridge_cache_walk(const clave_async_cache *cache, const char *path,
                                         struct bridge_note *n);
CLAVE_EXPORT clave_err bridge_cache_status(const clave_async_cache *cache, struct bridge_note *n);

/* ---- and to instances ----------------------------------------------------------------------- */

CLAVE_EXPORT clave_err bridge_instances_walk(const clave_async_instances *d, struct bridge_note *n);
CLAVE_EXPORT clave_err bridge_instances_pick(clave_async_instances *d, intptr_t how,
                                             struct bridge_note *n);

#endif
