/* reach.h - telling that no server is reached, and why, while it is still tried: within a second at
 * a terminal and with -v; elsewhere the end of the time tells it. */
#ifndef CLAVE_CMD_CLI_REACH_H
#define CLAVE_CMD_CLI_REACH_H

#include "cmd/cli/options.h"

enum { REACH_FIRST_MS = 700, REACH_AGAIN_MS = 250, REACH_REASONS = 16 };

struct reach {
    const struct options *o;
    const char *connect;
    int64_t began, until;
    bool says;
    bool live;  /* a terminal: and how long it has been is shown in a line that goes away */
    bool drawn; /* it is there */
    uint64_t told[REACH_REASONS]; /* hashes: each reason is told once, not with each attempt */
    size_t ntold;
};

/* From now on, until `until`. */
void reach_begin(struct reach *r, const struct options *o, const char *connect, int64_t until);
/* Milliseconds until _tell may have something to say; INT64_MAX: never. */
int64_t reach_due_ms(const struct reach *r);
/* true: `fault` was not told before, and is now counted as told. */
bool reach_is_news(struct reach *r, const char *fault);
/* Still none; `fault` is the newest of the client's. */
void reach_tell(struct reach *r, const char *fault);
/* Wipes the line. Harmless at any time. */
void reach_clear(struct reach *r);

#endif
