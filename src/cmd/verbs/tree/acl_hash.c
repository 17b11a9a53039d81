/* acl_hash.c - `clave acl hash`: prints what an access list contains in place of a user's password.
 * The password is never taken as an argument, which every user of the machine could see. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/hash/sha1.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"

enum { PASSWORD_CAP = 1024, INTERRUPT = 3 };

/* Turns off the echo. Signals are turned off as well: one that ended us would leave the terminal
 * without an echo. */
static bool acl_hash_hide(struct termios *before)
{
    struct termios t;
    if (tcgetattr(STDIN_FILENO, before) != 0)
        return false;
    t = *before;
    t.c_lflag &= ~(tcflag_t)(ECHO | ISIG);
    t.c_lflag |= ECHONL;
    return tcsetattr(STDIN_FILENO, TCSAFLUSH, &t) == 0;
}

/* Reads one line, without the line feed. Returns EXIT_OK, or an exit code after a message. */
static int acl_hash_read_password(struct options *o, char password[PASSWORD_CAP])
{
    struct termios before;
    bool hidden = acl_hash_hide(&before);
    if (hidden)
        fputs("Password: ", stderr);
    errno = 0;
    const char *line = fgets(password, PASSWORD_CAP, stdin);
    if (hidden)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    if (!line && ferror(stdin))
        return diag_end(o, NULL, EXIT_IO, "standard input: %s", strerror(errno));
    size_t n = line ? strcspn(password, "\n") : 0;
    if (hidden && memchr(password, INTERRUPT, n))
        return 128 + SIGINT;
    if (n == 0)
        return diag_usage(o, "no password: it is the first line of standard input");
    if (n == PASSWORD_CAP - 1)
        return diag_usage(o, "a password has at most %d bytes", PASSWORD_CAP - 2);
    password[n] = '\0';
    return EXIT_OK;
}

static void acl_hash_show(const struct options *o, const char *user, const char *password)
{
    char text[2 * PASSWORD_CAP], hash[BASE64_LEN(SHA1_LEN) + 1];
    uint8_t sum[SHA1_LEN];
    int n = snprintf(text, sizeof text, "%s:%s", user, password);
    clave__sha1(text, (size_t)n, sum);
    clave__base64(sum, sizeof sum, hash);
    explicit_bzero(text, sizeof text);
    snprintf(text, sizeof text, "digest:%s:%s", user, hash);
    if (!o->json) {
        puts(text);
        return;
    }
    struct json j;
    json_begin(&j, stdout);
    clave__json_string(&j, "id", text);
    json_end(&j);
}

static int run_acl(struct options *o, int argc, char **argv)
{
    char password[PASSWORD_CAP] = "";
    int id = options_next(o, argc, argv);
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 2, 2))
        return EXIT_USAGE;
    const char *user = o->argv[1];
    if (strcmp(o->argv[0], "hash") != 0)
        return diag_usage(o, "'%s': expected hash", o->argv[0]);
    if (*user == '\0' || strlen(user) >= PASSWORD_CAP - BASE64_LEN(SHA1_LEN) ||
        strpbrk(user, ":,\n"))
        return diag_usage(o, "'%.80s': a user's name has no colon, no comma and at most 990 bytes",
                          user);
    int code = acl_hash_read_password(o, password);
    if (code == EXIT_OK)
        acl_hash_show(o, user, password);
    explicit_bzero(password, sizeof password);
    return code;
}

const struct verb verb_acl = {
    .name = "acl",
    .args = "hash USER",
    .summary = "Print a user's entry for an access list, made from a password",
    .text =
        "Reads the password from standard input, one line, or without echo from a terminal, and\n"
        "prints digest:USER:HASH. With permissions after it, it is an entry of --acl and of\n"
        "'clave setacl'; --super-digest of 'clave serve' takes USER:HASH. Clients then\n"
        "give --auth digest:USER:PASSWORD.\n",
    .max_args = -1,
    .offline = true,
    .ignores_client_flags = true,
    .run = run_acl,
};
