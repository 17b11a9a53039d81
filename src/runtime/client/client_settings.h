/* client_settings.h - what the environment and the configuration files (the user's and the
 * machine's) say about clients. They fill in what was left unset, key by key, by the same rule for
 * the program and for clave_client_open. */
#ifndef CLAVE_RUNTIME_CLIENT_CLIENT_SETTINGS_H
#define CLAVE_RUNTIME_CLIENT_CLIENT_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/log_line.h"
#include "clave/async/client.h"
#include "runtime/start_error.h"

enum {
    CLIENT_MAX_AUTH = 16,
    CLIENT_SCHEME_CAP = 64, /* including the NUL */
    CLIENT_ORIGIN_CAP = 300,
    CLIENT_MAX_MS = 24 * 24 * 3600 * 1000, /* 24 days, which fit into 32 bits */
};
/* What a client of "tls:" hosts needs. */
enum client_tls {
    CLIENT_TLS_CA,
    CLIENT_TLS_CERT,
    CLIENT_TLS_KEY,
    CLIENT_TLS_NAME,
    CLIENT_TLS_TEXTS
};
/* Whether "local:" may be used. */
enum client_local {
    CLIENT_LOCAL_UNSAID, /* the same as WARN */
    CLIENT_LOCAL_WARN,   /* yes, with a warning when a lock is acquired there */
    CLIENT_LOCAL_YES,
    CLIENT_LOCAL_NEVER,
};

struct client_settings {
    const char *connect;        /* NULL: no source names servers */
    int32_t session_timeout_ms; /* 0: no source sets it */
    int64_t timeout_ms;         /* for the program's verbs; 0: no source sets it */
    clave_auth auths[CLIENT_MAX_AUTH];
    char schemes[CLIENT_MAX_AUTH][CLIENT_SCHEME_CAP];
    size_t nauths;
    const char *tls_texts[CLIENT_TLS_TEXTS]; /* NULL: not given */
    enum client_local local;
    char local_from[CLIENT_ORIGIN_CAP]; /* where `local` was set: "/etc/clave/config:2: ..." */
    char *user_text, *machine_text;     /* of the files; values point into them */
    struct clave_tls *tls;              /* made by _complete; NULL: not needed */
};

/* True for "local:", with or without a chroot. */
static inline bool local_is(const char *connect)
{
    return strncmp(connect, "local:", 6) == 0;
}

/* Fills in what is unset: from CLAVE_CONNECT, CLAVE_SESSION_TIMEOUT, CLAVE_TIMEOUT, CLAVE_AUTH and
 * so on, then from the user's file, then from the machine's. A process that runs with another
 * user's rights than its caller's (set-user-ID) reads only the machine's file. EHOST: the list of
 * servers that applies is not valid. EINVAL: another value or a line is wrong, or a file cannot be
 * read. `f` says where. A user's file that was skipped is logged. Call _fini in any case. */
clave_err clave__client_settings_read(struct client_settings *s, const struct log *log,
                                      const struct fault *f);
/* Reads the settings into `s`, which must be all zeros, and completes the options of a client for
 * which no servers are named: its hosts, which are "local:" if no source names any, and whichever
 * of session timeout, identities and TLS is 0 or NULL. `warning` is set to what has to be logged
 * when something is acquired, or to "". The options point into `s`. Also returns the errors of
 * clave_tls_new. */
enum { CLIENT_WARNING_CAP = 480 };
clave_err clave__client_settings_complete(struct client_settings *s, clave_client_options *o,
                                          char warning[CLIENT_WARNING_CAP], const struct fault *f);
/* Parses the text of the file `path`, which is cut into pieces that the settings point into. */
clave_err clave__client_settings_parse(struct client_settings *s, char *text, const char *path,
                                       const struct fault *f);
/* Reads only whether "local:" is forbidden, and where; reports no other faults. */
void clave__client_settings_find_never(struct client_settings *s);
void clave__client_settings_fini(struct client_settings *s);

/* Adds an identity "digest:user:password", whose bytes remain the caller's. Returns false if it
 * would only fail at the server; *fault says why. */
bool clave__client_settings_add_auth(struct client_settings *s, const char *auth,
                                     const char **fault);

#endif
