/* lock_who.h - who has a place in a lock, in words. */
#ifndef CLAVE_OBSERVE_LOCK_WHO_H
#define CLAVE_OBSERVE_LOCK_WHO_H

#include "clave/async/mutex.h"
#include "clave/async/slots.h"
#include "observe/lock_model.h"

/* Who it is, in words: "web1 pid 4711 (nightly)"; of a slot its id and host, "rack-4 (web1)"; of a
 * client that names neither host nor process, its name, else the text of its node (kazoo's
 * identifier, the address that is Curator's default), else its session. Returns out. */
enum { LOCK_WHO_CAP = 256, LOCK_TEXT_CAP = LOCK_DATA_MAX + 1 + CLAVE_SLOT_ID_MAX + 1 };
const char *clave__lock_who_says(const clave_identity *id, int64_t session, char out[LOCK_WHO_CAP]);
const char *clave__lock_who(const struct lock_node *p, char out[LOCK_WHO_CAP]);
/* The same in two parts, for tables: whose place it is, without the "(nightly)", which is `task`:
 * "" when nothing more is known. Of a slot: its id; its host and the reason. Control characters of
 * others are in both. */
struct lock_label {
    char whose[LOCK_WHO_CAP];
    const char *task; /* into what follows, or "" */
    const char *host; /* the same; NULL: not known */
    int64_t pid;      /* 0: not known */
    char data[LOCK_TEXT_CAP];
    char kept[LOCK_TEXT_CAP]; /* of a slot, its task */
};
void clave__lock_label(const struct lock_node *p, struct lock_label *out);

/* What the node says about its owner; it points into `text`. The name of a slot's node says its id.
 */
void clave__lock_who_identity(const struct lock_node *p, char text[LOCK_TEXT_CAP],
                              clave_identity *id);
/* A field that only slots have; NULL: there is none. */
const char *clave__lock_who_field(const struct lock_node *p, const char *key,
                                  char out[CLAVE_SLOT_TEXT_MAX + 1]);

#endif
