/* timeline_text.h - one run as text that a person can follow. */
#ifndef CLAVE_SIM_TIMELINE_TEXT_H
#define CLAVE_SIM_TIMELINE_TEXT_H

#include "recording.h"

/* To stdout. */
void timeline_text(const struct recording *r);

#endif
