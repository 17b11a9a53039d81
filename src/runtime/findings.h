/* findings.h - all that is wrong with a start, instead of the first fault. */
#ifndef CLAVE_RUNTIME_FINDINGS_H
#define CLAVE_RUNTIME_FINDINGS_H

#include "runtime/start_error.h"

/* Several checks, of which each may find something: a line of the text for each finding.
 *
 *     struct findings all = clave__findings_in(f);
 *     clave__findings_add(&all, check_this(&all.next));
 *     clave__findings_add(&all, check_that(&all.next));
 *     return all.err; */
struct findings {
    clave_err err;     /* the first, unless a later one is EINVAL; CLAVE_OK: there is none */
    struct fault next; /* for the next check */
};
struct findings clave__findings_in(const struct fault *f);
void clave__findings_add(struct findings *all, clave_err err);

#endif
