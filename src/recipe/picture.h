/* picture.h - what two surveys, one after the other, have in common, as queues of claims: a node
 * that both have seen stood all the time between, so all of them stood at one moment, and waited
 * for each other as the picture says. */
#ifndef CLAVE_RECIPE_PICTURE_H
#define CLAVE_RECIPE_PICTURE_H

#include "recipe/survey.h"
#include "recipe/waitgraph.h"

struct picture {
    const struct clave_mem *mem;
    struct wait_queue *queues; /* of claims */
    size_t n;
    struct wait_claim *claims;
    const struct survey_node **nodes; /* of the claims; they belong to the survey */
    size_t nclaims;
};

/* Of `now`, and as far as `before` has it too; NULL: all of it. ENOMEM. */
clave_err clave__picture_init(struct picture *p, const struct survey *before,
                              const struct survey *now);
void clave__picture_fini(struct picture *p);

const struct survey_node *clave__picture_node(const struct picture *p, size_t queue, size_t claim);

#endif
