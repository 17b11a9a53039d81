/* err_class.h - whether another attempt is worth while: the one place that says so. */
#ifndef CLAVE_BASE_ERR_CLASS_H
#define CLAVE_BASE_ERR_CLASS_H

#include <stdbool.h>

#include "clave/err.h"

/* The answer was lost or the request put off: the same call may succeed later. Whether the first
 * attempt did it is another question: class UNKNOWN. */
static inline bool clave__err_passes(clave_err err)
{
    clave_err_class class_ = clave_err_classify(err);
    return class_ == CLAVE_CLASS_RETRY || class_ == CLAVE_CLASS_UNKNOWN;
}

#endif
