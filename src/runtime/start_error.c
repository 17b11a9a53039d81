/* start_error.c - see start_error.h. Of a failed start, the first fault is kept; of a check, all
 * findings are. */
#include "runtime/start_error.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

clave_err clave__start_error(const struct fault *f, clave_err err, const char *fmt, ...)
{
    assert(err != CLAVE_OK);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->text, f->cap, fmt, ap);
    va_end(ap);
    return err;
}

clave_err clave__err_of_errno(int number)
{
    switch (number) {
    case 0:
        return CLAVE_OK;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return CLAVE_EFULL;
    case ENOMEM:
        return CLAVE_ENOMEM;
    case EMFILE:
    case ENFILE:
        return CLAVE_EFILES;
    default:
        return CLAVE_EIO;
    }
}

bool clave__start_error_passes(clave_err err)
{
    return err == CLAVE_ENOMEM || err == CLAVE_ETHREAD || err == CLAVE_EFILES;
}

static const char *start_error_advice(int number)
{
    switch (number) {
    case EACCES:
    case EPERM:
        return " (the user of this process needs to read and write it)";
    case ENOSPC:
    case EDQUOT:
        return " (free some space, but nothing of the data directory, then start again: nothing "
               "acknowledged is lost)";
    case EIO:
        return " (the disk or its file system has failed: the kernel's log says more; copy the "
               "data directory before any repair, and when it works, start again)";
    case EROFS:
        return " (the data directory must be on a file system that can be written to)";
    default:
        return "";
    }
}

clave_err clave__start_error_errno(const struct fault *f, int number, const char *what,
                                   const char *name)
{
    return clave__start_error(f, clave__err_of_errno(number), "%s %s: %s%s", what, name,
                              strerror(number), start_error_advice(number));
}

/* ---- all that is wrong, instead of the first fault ------------------------------------------- */

struct findings clave__findings_in(const struct fault *f)
{
    return (struct findings){CLAVE_OK, *f};
}

/* After a text that fills the buffer, nothing can be added. */
void clave__findings_add(struct findings *all, clave_err err)
{
    struct fault *next = &all->next;
    if (err == CLAVE_OK)
        return;
    if (all->err == CLAVE_OK || err == CLAVE_EINVAL)
        all->err = err;
    size_t n = strlen(next->text) + 1;
    if (n == 1 || n >= next->cap)
        return;
    next->text[n - 1] = '\n';
    next->text[n] = '\0';
    *next = (struct fault){next->text + n, next->cap - n};
}
