/* observer.h - looks at a run from outside after every step, and writes down what each of its
 * parts is. Changes nothing: a run that is observed is the same run. */
#ifndef CLAVE_SIM_OBSERVER_H
#define CLAVE_SIM_OBSERVER_H

#include "nemesis.h"
#include "recording.h"

struct observer {
    struct recording *record;
    struct world *w;
    struct server_host *server;
    struct ensemble *ensemble; /* NULL: the server stands alone */
    struct host *hosts;
    size_t nhosts;
    uint64_t lost[CHECKED_HOSTS]; /* bytes, by host */
};

/* Its world's time is 0. */
void observer_begin(struct observer *o);
void observer_look(struct observer *o);
void observer_end(struct observer *o, const struct nemesis *n);

#endif
