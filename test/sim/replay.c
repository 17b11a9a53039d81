#include "replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "scenario.h"
#include "shrink.h"
#include "timeline_svg.h"
#include "timeline_text.h"

enum { CANNOT_WRITE = 74 };

static bool draw(const struct recording *r, const char *path)
{
    FILE *f = fopen(path, "w");
    bool fine = f && timeline_svg(r, f);
    if (f && fclose(f) != 0)
        fine = false;
    if (!fine)
        fprintf(stderr, "clave_sim: cannot write %s: %s\n", path, strerror(errno));
    return fine;
}

/* The invariant that breaks; `fine`: the picture was written. */
static const char *look_at(const struct replay *c, const struct subset *subset, bool *fine)
{
    struct recording r;
    struct outcome o;
    struct play p = {.seed = c->seed,
                     .drift_ppm = c->drift_ppm,
                     .aloud = c->aloud,
                     .quiet = c->text,
                     .subset = subset,
                     .record = &r};
    recording_init(&r, c->seed);
    scenario_play(&p, &o);
    if (c->text)
        timeline_text(&r);
    *fine = !c->svg || draw(&r, c->svg);
    recording_fini(&r);
    return o.broken;
}

static void tell_shrunk(const struct replay *c, const struct shrunk *s)
{
    if (s->broken) {
        printf("seed %" PRIu64 " BREAKS: %s\nwith %zu of %zu faults that struck, found in %u "
               "plays\nreplay: ",
               c->seed, s->broken, s->least.faults.n, s->happened, s->plays);
        subset_print_command(c->seed, c->drift_ppm, &s->least);
        printf(" --timeline\n\n");
    } else {
        printf("seed %" PRIu64 " breaks nothing\n", c->seed);
    }
    fflush(stdout);
}

int replay_run(const struct replay *c)
{
    struct shrunk s = {.least = c->subset};
    bool fine;
    if (c->shrink) {
        shrink(c->seed, c->drift_ppm, &c->subset, &s);
        tell_shrunk(c, &s);
    }
    const char *broken = look_at(c, &s.least, &fine);
    return !fine ? CANNOT_WRITE : broken ? 1 : 0;
}
