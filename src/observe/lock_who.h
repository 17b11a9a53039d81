/* lock_who.h - the owner of a place in a lock, in words. */
#ifndef CLAVE_OBSERVE_LOCK_WHO_H
#define CLAVE_OBSERVE_LOCK_WHO_H

#include "clave/async/mutex.h"
#include "clave/async/slots.h"
#include "observe/lock_model.h"

/* Writes who the owner is: "web1 pid 4711 (nightly)". For a slot, its id and host, "rack-4 (web1)".
 * For a client that names neither host nor process: its name, or else the text of its node (kazoo's
 * identifier, or the address that Curator writes by default), or else its session. Returns out. */
enum { LOCK_WHO_CAP = 256, LOCK_TEXT_CAP = LOCK_DATA_MAX + 1 + CLAVE_SLOT_ID_MAX + 1 };
const char *clave__lock_who_says(const clave_identity *id, int64_t session, char out[LOCK_WHO_CAP]);
const char *clave__lock_who(const struct lock_node *p, char out[LOCK_WHO_CAP]);
/* The same in two parts, for tables: the owner without the "(nightly)", which is `task`, or "" if
 * nothing more is known. For a slot these are its id, and its host and reason. Control characters
 * that other clients wrote are left in both. */
struct lock_label {
    char whose[LOCK_WHO_CAP];
    /* what the owner says of its state, and its command; points into the text below */
    const char *task;
    const char *host; /* the same; NULL: unknown */
    int64_t pid;      /* 0: unknown */
    char data[LOCK_TEXT_CAP];
    char said[LOCK_TEXT_CAP]; /* `task`, if it is put together */
};
void clave__lock_label(const struct lock_node *p, struct lock_label *out);

/* What the node says about its owner, pointing into `text`. For a slot, its name gives the id. */
void clave__lock_who_identity(const struct lock_node *p, char text[LOCK_TEXT_CAP],
                              clave_identity *id);
/* A field that only slots have; NULL: it is missing. */
const char *clave__lock_who_field(const struct lock_node *p, const char *key,
                                  char out[CLAVE_SLOT_TEXT_MAX + 1]);

#endif
