/* link.h - what of a clave_uv the layers of src/drive use beyond clave/uv.h. */
#ifndef CLAVE_DRIVE_LINK_H
#define CLAVE_DRIVE_LINK_H

#include "clave/uv.h"

/* Runs at the end of every pass over the client, when all callbacks have returned and the
 * engine is consistent: the place to publish what other threads read. Not after _stop. */
void clave__uv_on_settled(clave_uv *u, void (*settled)(void *arg), void *arg);

#endif
