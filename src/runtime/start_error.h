/* start_error.h - the text of a failed start: what was tried, on which file, and what to do. Checks
 * of settings collect everything that is wrong, a line for each finding. */
#ifndef CLAVE_RUNTIME_START_ERROR_H
#define CLAVE_RUNTIME_START_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include "clave/err.h"

struct fault {
    char *text; /* the caller's buffer; empty until something fails */
    size_t cap;
};

/* Writes the text and returns `err`. */
__attribute__((format(printf, 3, 4))) clave_err
clave__start_error(const struct fault *f, clave_err err, const char *fmt, ...);

/* OK for 0; EFULL if the disk or a quota is full, EFILES, ENOMEM, else EIO. */
clave_err clave__err_of_errno(int number);
/* The system lacked memory, a thread or a descriptor: that may pass by itself. */
bool clave__start_error_passes(clave_err err);
/* Writes "WHAT: the text of errno", with what to do where that is clear; returns the error for the
 * errno. */
clave_err clave__start_error_errno(const struct fault *f, int number, const char *what,
                                   const char *name);

/* ---- all that is wrong, instead of the first fault ------------------------------------------- */

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
