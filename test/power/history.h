/* history.h - what was true after each transaction, by the log itself. A zxid may come more than
 * once: what was written and never acknowledged may be gone after a restart. */
#ifndef CLAVE_TEST_POWER_HISTORY_H
#define CLAVE_TEST_POWER_HISTORY_H

#include "recorder.h"

struct moment {
    int64_t zxid;
    uint64_t digest;
    size_t sessions;
};

struct history {
    struct moment *of; /* in the order they came */
    size_t n;
    size_t cap;
    size_t tip; /* of them: what the next one follows */
};

void history_init(struct history *h);
void history_fini(struct history *h);
/* Takes what a recording writes to its logs. */
void history_read(struct history *h, const struct recording *r);
/* NULL: there was no such zxid, or never with this tree. */
const struct moment *history_find(const struct history *h, int64_t zxid, uint64_t digest);
/* The next recording begins at that moment. */
void history_go_to(struct history *h, const struct moment *m);

#endif
