/* leader_reading.h - what one reading of an election has found: who leads, and the leader's
 * value. */
#ifndef CLAVE_RECIPE_ELECTION_LEADER_READING_H
#define CLAVE_RECIPE_ELECTION_LEADER_READING_H

#include "base/memory.h"
#include "clave/async/mutex.h"

/* All zeros: there was no reading yet, or nobody leads. */
struct leader_reading {
    clave_err err; /* if the reading failed: nothing else is set then */
    char *node;    /* the name of the leader's node; NULL: nobody leads */
    char *data;    /* that node's data; NULL: we may not read it */
    char *value;   /* NULL: none */
    size_t len, nvalue;
    clave_stat stat;
};

void clave__leader_reading_fini(struct leader_reading *v, const struct clave_mem *mem);
bool clave__leader_reading_equals(const struct leader_reading *a, const struct leader_reading *b);

/* Forgets everything, and starts with the leader's node. ENOMEM. */
clave_err clave__leader_reading_begin(struct leader_reading *v, const struct clave_mem *mem,
                                      const char *node);
/* The same, but takes node, data and Stat from another reading. ENOMEM. */
clave_err clave__leader_reading_begin_with(struct leader_reading *v, const struct clave_mem *mem,
                                           const struct leader_reading *from);
/* Keeps the answer to a getData of the node. ENOAUTH is not a failure: the node exists. ENOMEM. */
clave_err clave__leader_reading_take_node(struct leader_reading *v, const struct clave_mem *mem,
                                          const clave_result *res);
/* Keeps the value in the answer to a getData of the value's node, if it is this leader's.
 * ENOMEM. */
clave_err clave__leader_reading_take_value(struct leader_reading *v, const struct clave_mem *mem,
                                           const clave_result *res);

/* Describes the leader as a participant, which points into the reading and into *text; the caller
 * frees *text. ENOMEM. */
clave_err clave__leader_reading_describe(const struct leader_reading *v,
                                         const struct clave_mem *mem, clave_participant *p,
                                         char **text);

#endif
