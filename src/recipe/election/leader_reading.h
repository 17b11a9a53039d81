/* leader_reading.h - what one reading of an election has found: who leads, and the leader's value.
 */
#ifndef CLAVE_RECIPE_ELECTION_LEADER_READING_H
#define CLAVE_RECIPE_ELECTION_LEADER_READING_H

#include "base/memory.h"
#include "clave/async/mutex.h"

/* All zero: no reading yet, or nobody leads. */
struct leader_reading {
    clave_err err; /* of a reading that has failed: nothing else is set */
    char *node;    /* name; NULL: nobody leads */
    char *data;    /* of the node; NULL: we may not read it */
    char *value;   /* NULL: none */
    size_t len, nvalue;
    clave_stat stat;
};

void clave__leader_reading_fini(struct leader_reading *v, const struct clave_mem *mem);
bool clave__leader_reading_equals(const struct leader_reading *a, const struct leader_reading *b);

/* Forgets everything, and begins with the leader's node. ENOMEM. */
clave_err clave__leader_reading_begin(struct leader_reading *v, const struct clave_mem *mem,
                                      const char *node);
/* The same with node, data and Stat of another view. ENOMEM. */
clave_err clave__leader_reading_begin_with(struct leader_reading *v, const struct clave_mem *mem,
                                           const struct leader_reading *from);
/* Keeps the reply to a getData of the node. ENOAUTH is no fault: the node exists. ENOMEM. */
clave_err clave__leader_reading_take_node(struct leader_reading *v, const struct clave_mem *mem,
                                          const clave_result *res);
/* Keeps the value in the reply to a getData of the value's node, if it is this leader's. ENOMEM. */
clave_err clave__leader_reading_take_value(struct leader_reading *v, const struct clave_mem *mem,
                                           const clave_result *res);

/* The leader as a participant, which points into the view and into *text; the caller frees *text.
 * ENOMEM. */
clave_err clave__leader_reading_describe(const struct leader_reading *v,
                                         const struct clave_mem *mem, clave_participant *p,
                                         char **text);

#endif
