/* slot_claim_id.h - the id of a claim to a slot: its path and its owner as one word, so that any
 * gate knows from it which slot is meant. It is no secret, and proves nothing. */
#ifndef CLAVE_WEB_SLOTS_SLOT_CLAIM_ID_H
#define CLAVE_WEB_SLOTS_SLOT_CLAIM_ID_H

#include "web/http/exchange.h"

enum { SLOT_MOST_PATH = 4096 };

struct slot_claim_id {
    const char *path, *owner;
    const char *text; /* "slot." and both in base64url */
};

/* It begins as the id of such a claim does. */
bool clave__slot_claim_id_is_one(const char *text);
/* Checks both, and makes the text; all lasts as long as the exchange. false: it has answered. */
bool clave__slot_claim_id_make(struct web_exchange *x, const char *path, const char *owner,
                               struct slot_claim_id *out);
/* Of the text. false: it has answered 404 or 503. */
bool clave__slot_claim_id_parse(struct web_exchange *x, const char *text,
                                struct slot_claim_id *out);

#endif
