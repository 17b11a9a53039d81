/* diag.h - exit codes, and messages on standard error. Every line begins with "clave: " and names
 * the verb, the path, what was wrong and what to do. With --json each is an object: time, event
 * ("error" or "message"), verb, message, and where they are known path, code and exit. */
#ifndef CLAVE_CMD_CLI_DIAG_H
#define CLAVE_CMD_CLI_DIAG_H

#include "clave/client.h"
#include "client/errmsg.h"
#include "cmd/cli/cmd_options.h"

enum exit_code {
    EXIT_OK = 0,
    EXIT_USAGE = 64,       /* the command line or the configuration */
    EXIT_PATH = 66,        /* no node, exists already, wrong version, not empty, invalid path */
    EXIT_UNREACHABLE = 69, /* no server answered */
    EXIT_INTERNAL = 70,
    EXIT_REFUSED =
        73,       /* not done: it might harm another client or be in vain, or the user said no */
    EXIT_IO = 74, /* standard input or output, the data directory */
    EXIT_TIMEOUT = 75, /* no answer in time; lock: not acquired in time */
    EXIT_LOST = 76,    /* the lock was lost */
    EXIT_NOAUTH = 77,
    EXIT_DEADLOCK = 79,  /* owners of locks wait for each other */
    EXIT_NOEXEC = 126,   /* the command cannot be executed */
    EXIT_NOTFOUND = 127, /* the command was not found */
};

/* The exit code for an error. */
int exit_code_of(clave_err err);

/* clave_strerror, in the terms of elections if the verb is about them. */
const char *diag_text(const struct options *o, clave_err err);

/* "clave: VERB: ..." ; `o` may be NULL: "clave: ...". */
void diag(const struct options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same with a hint at the help; sets o->status and returns EXIT_USAGE. */
int diag_usage(struct options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The end of a verb for a reason that is no code of the library's: "clave: VERB: PATH: ...",
 * without the path if it is NULL. Returns the exit code given. */
int diag_end(const struct options *o, const char *path, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* "clave: VERB PATH: no such node (create it with ...)". `s` (may be NULL) supplies the details of
 * the latest fault. Returns exit_code_of(err). */
int diag_err(const struct options *o, const char *path, clave_err err, clave_client *c);
/* The same with the latest fault of an asynchronous client, of which what is about this error is
 * used. */
int diag_fault(const struct options *o, const char *path, clave_err err,
               const struct client_fault *fault);
/* The path is not valid: `fault` says why. Returns EXIT_PATH. */
int diag_path(const struct options *o, const char *path, const char *fault);
/* What follows the servers at the beginning of a line: nothing after "local:". */
const char *diag_colon(const char *connect);
/* Every server of `connect` refuses, or cannot be started, and will until what `fault` says is
 * fixed. Returns EXIT_UNREACHABLE. */
int diag_refused(const struct options *o, const char *connect, const char *fault);
/* Only with -v. */
void diag_note(const struct options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Flushes standard output. EXIT_OK, or EXIT_IO after a message (none for a closed pipe). */
int finish_stdout(const struct options *o);

#endif
