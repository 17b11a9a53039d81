/* unreachable.h - reports that no server has been reached, and why, while the client still tries:
 * within a second at a terminal and with -v; elsewhere only when time is up. */
#ifndef CLAVE_CMD_CLI_UNREACHABLE_H
#define CLAVE_CMD_CLI_UNREACHABLE_H

#include "cmd/cli/cmd_options.h"

enum { UNREACHABLE_FIRST_MS = 700, UNREACHABLE_AGAIN_MS = 250, UNREACHABLE_REASONS = 16 };

struct unreachable {
    const struct options *o;
    const char *connect;
    int64_t began, until;
    bool says;
    bool live;  /* a terminal: shows the time left in a line that is erased */
    bool drawn; /* the line is on the screen */
    uint64_t reported[UNREACHABLE_REASONS]; /* hashes: each reason is reported once, not with each
                                               attempt */
    size_t nreported;
};

/* Starts now; the client tries until `until`. */
void unreachable_begin(struct unreachable *u, const struct options *o, const char *connect,
                       int64_t until);
/* Milliseconds until unreachable_report may have something to print; INT64_MAX: never. */
int64_t unreachable_due_ms(const struct unreachable *u);
/* true: `fault` was not reported before, and now counts as reported. */
bool unreachable_is_news(struct unreachable *u, const char *fault);
/* Still no server; `fault` is the client's latest. */
void unreachable_report(struct unreachable *u, const char *fault);
/* Clears the line. Harmless at any time. */
void unreachable_clear(struct unreachable *u);
/* No server of `connect` was reached in this time; `fault` is the client's latest one. Returns
 * EXIT_UNREACHABLE. */
int unreachable_give_up(const struct options *o, const char *connect, int64_t within_ms,
                        const char *fault);

#endif
