/* timeline_svg.h - one run as a picture: a line of time for each client, each lock it holds and
 * each server; faults across them, and what was lost on the way. */
#ifndef CLAVE_SIM_TIMELINE_SVG_H
#define CLAVE_SIM_TIMELINE_SVG_H

#include <stdio.h>

#include "recording.h"

/* false: it could not be written. */
bool timeline_svg(const struct recording *r, FILE *out);

#endif
