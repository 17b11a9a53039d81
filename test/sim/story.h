/* story.h - one run, told so that a person can follow it. */
#ifndef CLAVE_SIM_STORY_H
#define CLAVE_SIM_STORY_H

#include "record.h"

/* To stdout. */
void story_tell(const struct record *r);

#endif
