/* event_queue.h - what is to happen, by time, in microseconds. Events of one moment happen in the
 * order in which they were put in. */
#ifndef CLAVE_CROWD_EVENT_QUEUE_H
#define CLAVE_CROWD_EVENT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_kind {
    EVENT_START,       /* a client begins */
    EVENT_TIMER,       /* a client's deadline may have come */
    EVENT_HOLD_OVER,   /* a client releases its lock */
    EVENT_ASKED,       /* a client's wish to connect has reached the member */
    EVENT_TURNED_AWAY, /* a member without a leader closes the connection */
    EVENT_DIALLED,     /* the member's machine has accepted the connection */
    EVENT_REFUSED,     /* nobody accepts it */
    EVENT_ARRIVED,     /* the connection's next message has reached the member */
    EVENT_PASSED,      /* the member has dealt with the connection's next message */
    EVENT_AT_LEADER,   /* that message has reached the leader */
    EVENT_LED,         /* the leader has dealt with it */
    EVENT_DOWN,        /* bytes reach the client */
    EVENT_GONE,        /* the client learns that the connection has ended */
    EVENT_COMMITTED,   /* a batch of the log is on the disks of a quorum */
    EVENT_SERVER_TICK, /* the engine's deadline */
    EVENT_FAULT,
    EVENT_FAULT_OVER,
    EVENT_END,
};

struct event {
    int64_t at;
    uint64_t order;
    enum event_kind kind;
    uint32_t client;
    uint32_t generation; /* of the connection; an event of an older one is void */
    uint32_t detail;     /* DOWN: bytes; AT_LEADER: 1 for a write; COMMITTED: the leader's term */
};

struct event_queue {
    struct event *heap;
    size_t n, cap;
    uint64_t order;
};

void event_queue_put(struct event_queue *q, struct event e);
/* false: empty. */
bool event_queue_take(struct event_queue *q, struct event *out);
void event_queue_free(struct event_queue *q);

#endif
