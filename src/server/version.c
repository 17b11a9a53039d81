/* version.c - the version reported to monitoring programs: the ZooKeeper release whose protocol the
 * server speaks, clave's own version, and the date of the build. The build system supplies the date
 * (cmake/built.cmake), not the compiler, so that builds are reproducible. */
#include "server/monitoring/server_metrics.h"

#ifndef CLAVE_BUILT
#error "CLAVE_BUILT has to be a date, MM/DD/YYYY HH:MM UTC: see cmake/built.cmake"
#endif

const char clave__server_version[] = "3.9.2-clave-" CLAVE_VERSION_STRING ", built on " CLAVE_BUILT;
