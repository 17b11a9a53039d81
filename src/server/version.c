/* version.c - what the server says that it is, where monitoring programs ask: the release whose
 * protocol it speaks, clave's own, and a date. The date comes from the build (cmake/built.cmake)
 * and not from the compiler, so that a build can be repeated. */
#include "server/figures/four_letter.h"

#ifndef CLAVE_BUILT
#error "CLAVE_BUILT has to be a date, MM/DD/YYYY HH:MM UTC: see cmake/built.cmake"
#endif

const char clave__server_version[] = "3.9.2-clave-" CLAVE_VERSION_STRING ", built on " CLAVE_BUILT;
