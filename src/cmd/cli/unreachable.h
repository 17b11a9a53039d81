/* unreachable.h - tells the user that no server has been reached yet, and why, while the client
 * keeps trying. On a terminal or with -v this happens within a second; elsewhere only when the time
 * is up. */
#ifndef CLAVE_CMD_CLI_UNREACHABLE_H
#define CLAVE_CMD_CLI_UNREACHABLE_H

#include "cmd/cli/cmd_options.h"

enum { UNREACHABLE_FIRST_MS = 700, UNREACHABLE_AGAIN_MS = 250, UNREACHABLE_REASONS = 16 };

struct unreachable {
    const struct options *o;
    const char *connect;
    int64_t began, until;
    bool says;
    bool live;  /* on a terminal: shows the time left in a line that is erased later */
    bool drawn; /* the line is on the screen */
    /* hashes of the reasons that were reported, so that each one is reported once, not at every
     * attempt */
    uint64_t reported[UNREACHABLE_REASONS];
    size_t nreported;
};

/* Starts now; the client keeps trying until `until`. */
void unreachable_begin(struct unreachable *u, const struct options *o, const char *connect,
                       int64_t until);
/* Milliseconds until unreachable_report may have something to print; INT64_MAX: never. */
int64_t unreachable_due_ms(const struct unreachable *u);
/* true: `fault` was not reported before. From now on it counts as reported. */
bool unreachable_is_news(struct unreachable *u, const char *fault);
/* There is still no server; `fault` is the client's latest fault. */
void unreachable_report(struct unreachable *u, const char *fault);
/* Clears the line. Harmless at any time. */
void unreachable_clear(struct unreachable *u);
/* Says that no server of `connect` was reached within this time; `fault` is the client's latest
 * fault. Returns EXIT_UNREACHABLE. */
int unreachable_give_up(const struct options *o, const char *connect, int64_t within_ms,
                        const char *fault);

#endif
