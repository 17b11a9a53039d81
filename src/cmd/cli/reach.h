/* reach.h - reports that no server has been reached, and why, while the client still tries: within
 * a second at a terminal and with -v; elsewhere only when time is up. */
#ifndef CLAVE_CMD_CLI_REACH_H
#define CLAVE_CMD_CLI_REACH_H

#include "cmd/cli/cmd_options.h"

enum { REACH_FIRST_MS = 700, REACH_AGAIN_MS = 250, REACH_REASONS = 16 };

struct reach {
    const struct options *o;
    const char *connect;
    int64_t began, until;
    bool says;
    bool live;  /* a terminal: shows the time left in a line that is erased */
    bool drawn; /* the line is on the screen */
    uint64_t
        reported[REACH_REASONS]; /* hashes: each reason is reported once, not with each attempt */
    size_t nreported;
};

/* Starts now; the client tries until `until`. */
void reach_begin(struct reach *r, const struct options *o, const char *connect, int64_t until);
/* Milliseconds until reach_report may have something to print; INT64_MAX: never. */
int64_t reach_due_ms(const struct reach *r);
/* true: `fault` was not reported before, and now counts as reported. */
bool reach_is_news(struct reach *r, const char *fault);
/* Still no server; `fault` is the client's latest. */
void reach_report(struct reach *r, const char *fault);
/* Clears the line. Harmless at any time. */
void reach_clear(struct reach *r);

#endif
