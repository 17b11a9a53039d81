/* slot_world.h - the slots of a world, on true time: what must hold of the nodes at the server, and
 * what was told of them. */
#ifndef CLAVE_SIM_SLOT_WORLD_H
#define CLAVE_SIM_SLOT_WORLD_H

#include "clave/async/slots.h"
#include "server_host.h"

#define SLOTS_PATH "/slots"

enum { SLOT_IDS = 5, SLOT_NODE_SIZE = 96 };

/* What was told of an id; only what nothing that was begun since can have undone. */
struct slot_owner {
    char node[SLOT_NODE_SIZE]; /* "": nothing is known */
    int64_t token;
    int64_t newest;     /* token of a take that was answered */
    int64_t given_upto; /* slots of these tokens may have been given or broken */
    unsigned gives_out; /* under way, of any token */
    unsigned calls_out; /* gives and breaks under way */
    unsigned calls;     /* all that were begun */
    int64_t known_at;   /* true time from which `node` is known */
};

enum slot_verdict {
    SLOT_PENDING,
    SLOT_UNKNOWN,
    SLOT_REFUSED, /* or a give that succeeded has withdrawn it since */
};
/* A take, by its number, which it says as its reason. */
struct slot_told {
    unsigned id;
    enum slot_verdict verdict;
    unsigned answered; /* when, in answers and gives */
};
/* What is known when a take, or a give, begins. */
struct slot_begun {
    unsigned when;
    int64_t newest; /* token of the id */
    unsigned calls; /* gives and breaks of the id until then; none is under way: */
    bool undisturbed;
};

struct slot_world {
    struct world *w;
    struct server_host *server;
    struct slot_owner owners[SLOT_IDS];
    struct slot_told *takes;
    unsigned ntakes;
    unsigned answers;  /* answers and gives so far */
    bool may_be_old;   /* a member of an ensemble may tell of what was */
    bool news;         /* something was told since the last look */
    int64_t seen_zxid; /* of the last look */
    uint64_t seen_start;
    unsigned limit;     /* at the last look */
    bool free;          /* there is room, at the last look */
    int64_t free_since; /* and nobody has taken it */
    bool full;          /* owners and places reach the limit, at the last look */
    int64_t full_at;    /* when they most recently did, or may have: several changes came at once */
    int64_t changes;    /* of limit, owners and queue, at the last look */
};

void slot_world_init(struct slot_world *s, struct world *w, struct server_host *server);
void slot_world_fini(struct slot_world *s);
const char *slot_world_id(unsigned id);

/* After every step. */
void slot_world_look(struct slot_world *s);
/* For so long there has been room that nobody took. */
int64_t slot_world_unused_us(const struct slot_world *s);

/* A take or a give begins. */
struct slot_begun slot_world_begin(struct slot_world *s, unsigned id);
/* A take begins; its number, which it says as its reason. */
unsigned slot_world_ask(struct slot_world *s, unsigned id);
/* It was answered. */
void slot_world_answer(struct slot_world *s, unsigned take, clave_err err);
/* A try that began at this true time was refused for lack of room. */
void slot_world_refused(struct slot_world *s, unsigned take, int64_t started);
/* With a slot. */
void slot_world_owns(struct slot_world *s, unsigned id, const clave_slot *slot, bool taken,
                     const struct slot_begun *begun);
/* A give or a break of `token` (0: any) begins, and ends. */
void slot_world_give(struct slot_world *s, unsigned id, int64_t token);
void slot_world_given(struct slot_world *s, unsigned id, int64_t token, clave_err err,
                      const clave_slot *slot, const struct slot_begun *begun);

#endif
