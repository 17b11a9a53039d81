/* start_error.h - the message of a failed start: what was tried, on which file, and what to do
 * about it. Checks of settings collect everything that is wrong, one line per finding. */
#ifndef CLAVE_RUNTIME_START_ERROR_H
#define CLAVE_RUNTIME_START_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include "clave/err.h"

struct fault {
    char *text; /* the caller's buffer; empty until something fails */
    size_t cap;
};

/* Writes the message and returns `err`. */
__attribute__((format(printf, 3, 4))) clave_err
clave__start_error(const struct fault *f, clave_err err, const char *fmt, ...);

/* Converts an errno: 0 to OK; EFULL if the disk or a quota is full, EFILES, ENOMEM, else EIO. */
clave_err clave__err_of_errno(int number);
/* True if the system lacked memory, a thread or a descriptor, which may pass. */
bool clave__start_error_passes(clave_err err);
/* Writes "WHAT: the text of errno", and what to do if that is clear. Returns the error for the
 * errno. */
clave_err clave__start_error_errno(const struct fault *f, int number, const char *what,
                                   const char *name);

/* ---- collecting everything that is wrong ----------------------------------------------------- */

/* Runs several checks, each of which may find something; each finding is a line of the text.
 *
 *     struct findings all = clave__findings_in(f);
 *     clave__findings_add(&all, check_this(&all.next));
 *     clave__findings_add(&all, check_that(&all.next));
 *     return all.err; */
struct findings {
    clave_err err;     /* the first error, unless a later one is EINVAL; CLAVE_OK: none */
    struct fault next; /* for the next check */
};
struct findings clave__findings_in(const struct fault *f);
void clave__findings_add(struct findings *all, clave_err err);

#endif
