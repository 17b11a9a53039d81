/* event_ring.h - the most recent events, numbered, as many as there is room for. The event of a
 * lock stands for the lock's present state and replaces the previous event of the same lock, so a
 * late reader reads each lock only once. All other events are kept as they were reported. */
#ifndef CLAVE_WEB_OBSERVE_EVENT_RING_H
#define CLAVE_WEB_OBSERVE_EVENT_RING_H

#include "base/map.h"
#include "base/ordered_set.h"
#include "observe/lock_model.h"

struct event {
    struct ordered_node node; /* in event_ring.events */
    struct map_node by_path;  /* of a lock's event */
    uint64_t n;
    const char *name;          /* "lock", "leader", ...: static */
    const char *path;          /* of the node it is about; NULL: none */
    const char *session;       /* only for the streams of this HTTP session; NULL: for all */
    const char *data;          /* JSON; NULL: the lock at `path`, as it is when it is read */
    enum lock_queue_kind kind; /* of the lock, when it changed */
    bool leases;
    size_t size;
    char text[]; /* what the pointers point to */
};

struct event_ring {
    const struct clave_mem *mem; /* borrowed */
    struct ordered events;       /* by number */
    struct map by_path;
    uint64_t epoch;   /* identifies this run: numbers of other runs mean nothing */
    uint64_t last;    /* the number of the newest; 0: there was none */
    uint64_t dropped; /* the highest number that was dropped */
    size_t bytes, max_bytes, max_events;
};

/* ENOMEM. */
clave_err clave__event_ring_init(struct event_ring *r, const struct clave_mem *mem, uint64_t seed);
void clave__event_ring_fini(struct event_ring *r);

/* The lock has changed. If there is no memory, all events so far count as dropped, and every reader
 * starts afresh. */
void clave__event_ring_lock(struct event_ring *r, const struct lock_queue *q);
struct event_text {
    const char *name; /* static */
    const char *path, *session;
    const char *data; /* JSON of one line */
};
/* The texts are copied. */
void clave__event_ring_put(struct event_ring *r, const struct event_text *e);

/* All events so far count as dropped. */
void clave__event_ring_clear(struct event_ring *r);

/* True if a reader that has seen the events up to n has missed none. */
bool clave__event_ring_reaches(const struct event_ring *r, uint64_t n);
/* The first one after number n; NULL: none. Valid until the next event is put. */
const struct event *clave__event_ring_after(const struct event_ring *r, uint64_t n);

/* "EPOCH-N", the id of a server-sent event. _parse returns false if it is not of this run. */
enum { EVENT_ID_CAP = 48 };
void clave__event_id_format(const struct event_ring *r, uint64_t n, char out[EVENT_ID_CAP]);
bool clave__event_id_parse(const struct event_ring *r, const char *id, uint64_t *n);

#endif
