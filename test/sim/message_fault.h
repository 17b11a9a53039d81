/* message_fault.h - what a client says, by opcode; and faults that wait for a certain message. */
#ifndef CLAVE_SIM_MESSAGE_FAULT_H
#define CLAVE_SIM_MESSAGE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "world.h"

enum { TAP_HANDSHAKE = -100, TAP_ANY = -101, TAP_HEAD = 12 };

struct tap {
    uint8_t head[TAP_HEAD]; /* length, xid, opcode */
    size_t have;
    size_t skip; /* of the frame at hand */
    bool shaken;
    size_t body; /* of the message found: where it begins in the bytes that were fed */
};

enum ambush_kind {
    AMBUSH_NONE,
    AMBUSH_LOSE_REQUEST, /* cut in the middle of it */
    AMBUSH_LOSE_REPLY,   /* it arrives, and is done; the answer is cut */
    AMBUSH_FORGET,       /* half-open from then on */
    AMBUSH_PAUSE,        /* the process is stopped right behind sending it */
    AMBUSH_KILL,         /* it is killed some steps behind sending it */
    AMBUSH_LATE,         /* its answer is late, and nothing else gets through for a while */
    AMBUSH_LATE_UP,      /* it arrives late */
    AMBUSH_BESIDE,       /* something else happens while it is on its way */
    AMBUSH_REFUSE,       /* setWatches: the server answers with an error, and goes on */
};

struct ambush {
    enum ambush_kind kind;
    int32_t op;
    int64_t us;         /* of AMBUSH_PAUSE and the late ones */
    unsigned again;     /* AMBUSH_REFUSE: so many more behind it */
    struct alarm *then; /* NULL, or set when it is sprung */
    int64_t then_us;
};

/* A new connection. */
void tap_reset(struct tap *t);
/* Bytes on their way; true when a message of that opcode begins in them. */
bool tap_feed(struct tap *t, const void *p, size_t n, int32_t op);

/* "create2"; for the story. */
const char *tap_op_name(int32_t op);

#endif
