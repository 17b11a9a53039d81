/* diag.h - exit codes, and messages on standard error. Every line begins with "clave: " and says
 * which verb failed, for which path, what was wrong and what to do. With --json each message is an
 * object: time, event ("error" or "message"), verb, message and, where they are known, path, code
 * and exit. */
#ifndef CLAVE_CMD_CLI_DIAG_H
#define CLAVE_CMD_CLI_DIAG_H

#include "clave/client.h"
#include "client/errmsg.h"
#include "cmd/cli/cmd_options.h"

enum exit_code {
    EXIT_OK = 0,
    EXIT_USAGE = 64,       /* invalid command line or configuration */
    EXIT_PATH = 66,        /* no such node, node exists, wrong version, not empty, invalid path */
    EXIT_UNREACHABLE = 69, /* no server answered */
    EXIT_INTERNAL = 70,
    /* not done, because it might harm another client or be in vain, or because the user said no */
    EXIT_REFUSED = 73,
    EXIT_IO = 74,      /* standard input or output, the data directory */
    EXIT_TIMEOUT = 75, /* no answer in time; a lock was not acquired in time */
    EXIT_LOST = 76,    /* the lock was lost */
    EXIT_NOAUTH = 77,
    EXIT_DEADLOCK = 79,  /* owners of locks wait for each other */
    EXIT_UNHEALTHY = 80, /* the work under a lock was unhealthy (--health, --ready, --watchdog-sec),
                            or the candidate was */
    EXIT_FENCE = 81,     /* the last holder could not be fenced */
    EXIT_WATCHDOG = 82,  /* the watchdog of the machine cannot be used (--watchdog) */
    EXIT_NOEXEC = 126,   /* the command cannot be executed */
    EXIT_NOTFOUND = 127, /* the command was not found */
};

/* The exit code for an error. */
int exit_code_of(clave_err err);

/* Like clave_strerror, but if the verb is about elections, in terms of elections. */
const char *diag_text(const struct options *o, clave_err err);

/* Where a path is missing: "; '/x' was taken as the value of --id", if a flag has such a value;
 * otherwise "". */
enum { DIAG_HINT_CAP = 256 };
const char *diag_path_hint(const struct options *o, char out[DIAG_HINT_CAP]);

/* Prints "clave: VERB: ...", or "clave: ..." if `o` is NULL. */
void diag(const struct options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same, with a hint at the help. Sets o->status and returns EXIT_USAGE. */
int diag_usage(struct options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints why a verb ends, for a reason that is not an error code of the library: "clave: VERB:
 * PATH: ...", without the path if it is NULL. Returns `code`. */
int diag_end(const struct options *o, const char *path, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Prints, for example, "clave: VERB PATH: no such node (create it with ...)". The client (may be
 * NULL) supplies the details of its latest fault. Returns exit_code_of(err). */
int diag_err(const struct options *o, const char *path, clave_err err, clave_client *c);
/* The same for an asynchronous client. `fault` is its latest fault, of which the details are used
 * if they are about this error. */
int diag_fault(const struct options *o, const char *path, clave_err err,
               const struct client_fault *fault);
/* Says that the path is not valid and why (`fault`). Returns EXIT_PATH. */
int diag_path(const struct options *o, const char *path, const char *fault);
/* What to print between the servers and the text that follows: ":", or "" after "local:", which
 * ends with one. */
const char *diag_colon(const char *connect);
/* Says that every server of `connect` refuses us or cannot be started, and will until what `fault`
 * says is fixed. Returns EXIT_UNREACHABLE. */
int diag_refused(const struct options *o, const char *connect, const char *fault);
/* Prints a message only with -v. */
void diag_note(const struct options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Flushes standard output. Returns EXIT_OK, or EXIT_IO after a message (none for a closed pipe). */
int finish_stdout(const struct options *o);

#endif
