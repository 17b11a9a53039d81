/* start_error.h - the text of a failed start: what was tried, on which file, and what to do. */
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

#endif
