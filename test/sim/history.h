/* history.h - is a history of grants linearizable? Each hold took effect at one moment between
 * the acquire's call and its answer, and lasted at least until it was seen to be valid for the
 * last time. The lock that explains all answers has so much room, and numbers its grants with
 * tokens that grow (a token may come again for the same holder: a read that takes its write's
 * place).
 *
 * Knows neither clave nor the world: test/unit/sim_history_test.c. */
#ifndef CLAVE_SIM_HISTORY_H
#define CLAVE_SIM_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct history_hold {
    int64_t called;   /* the acquire's call */
    int64_t answered; /* its answer: granted */
    int64_t ended;    /* until then it held for certain; at or after `answered` */
    int64_t token;
    int64_t holder;
    unsigned weight;
};

struct history {
    struct history_hold *holds;
    size_t n;
    size_t cap;
};

/* The index of what was added. */
size_t history_add(struct history *h, const struct history_hold *hold);
void history_fini(struct history *h);

enum history_fault {
    HISTORY_FINE,
    HISTORY_TOKENS, /* no moments of effect have the tokens grow */
    HISTORY_ROOM,   /* at some moment more is held than there is room */
};

/* `capacity` is the room that one holder of everything alone takes. Sorts the holds by token. `at`:
 * where it fails, an index after sorting. */
enum history_fault history_check(struct history *h, unsigned capacity, size_t *at);

#endif
