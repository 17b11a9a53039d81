/* timeline_text.h - one run, told so that a person can follow it. */
#ifndef CLAVE_SIM_TIMELINE_TEXT_H
#define CLAVE_SIM_TIMELINE_TEXT_H

#include "recording.h"

/* To stdout. */
void timeline_text(const struct recording *r);

#endif
