/* observe_scene.h - an engine of HTTP whose model of locks is told the nodes by the test, as
 * observe_feed.c would: for the tests of what is shown of the tree. */
#ifndef CLAVE_TEST_OBSERVE_SCENE_H
#define CLAVE_TEST_OBSERVE_SCENE_H

#include "lib/webrig.h"
#include "web/observe/observe.h"
#include "web/web_internal.h"

#define UUID "01234567-89ab-4def-8123-456789abcdef"
#define LATCH1 "_c_" UUID "-latch-0000000001"
#define LATCH2 "_c_" UUID "-latch-0000000002"
#define LATCH3 "_c_" UUID "-latch-0000000003"

enum { WALL = 1000000 }; /* of the model, at the engine's 0 */

struct scene {
    struct webrig *rig;
    struct observe *o;
    void *feed[16]; /* in the place of one, so that none is started: zeros, it has no cache */
    int64_t zxid;
};

void scene_open(struct scene *s);
void scene_close(struct scene *s);

/* A node is there, of a session of its own, or of this one. */
void scene_add(struct scene *s, const char *path, const char *data);
void scene_add_of(struct scene *s, int64_t session, const char *path, const char *data);
/* That was the whole tree. */
void scene_loaded(struct scene *s);

/* GETs, and compares the status. */
struct webrig_call *scene_get(struct scene *s, const char *target, unsigned status);
/* A stream of events. */
struct webrig_call *scene_follow(struct scene *s, const char *target, const char *headers);

/* How often a word is in a text. */
size_t scene_count(const char *text, const char *word);
/* The paths of a list, one after another. */
const char *scene_paths(struct webrig_call *c);
/* The events so far, by name: for a lock "lock:PATH/HOLDERS/WAITERS". */
const char *scene_events(const struct webrig_call *c);
/* The header by which a reader goes on after the last event. */
const char *scene_last_id(const struct webrig_call *c);

#endif
