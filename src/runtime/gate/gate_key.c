/* gate_key.c - see gate_key.h. */
#include "runtime/gate/gate_key.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/gate/secret_file.h"

static bool gate_key_parse(const char *text, uint8_t key[GATE_KEY_LEN])
{
    size_t digits = strspn(text, "0123456789abcdefABCDEF");
    if (digits != 2 * GATE_KEY_LEN || text[digits + strspn(text + digits, " \r\n")] != '\0')
        return false;
    for (size_t i = 0; i < GATE_KEY_LEN; i++) {
        char pair[] = {text[2 * i], text[2 * i + 1], '\0'};
        key[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return true;
}

clave_err gate_key_read(const char *path, uint8_t key[GATE_KEY_LEN], const struct fault *f)
{
    char *text;
    clave_err err = secret_file_read("the key", path, &text, f);
    if (err != CLAVE_OK)
        return err;
    if (!gate_key_parse(text, key))
        err =
            clave__start_error(f, CLAVE_EINVAL,
                               "the key %s: expected 64 hexadecimal digits, as 'openssl rand -hex "
                               "32' makes them",
                               path);
    explicit_bzero(text, strlen(text));
    free(text);
    return err;
}

clave_err gate_key_draw(uint8_t key[GATE_KEY_LEN], const struct fault *f)
{
    ssize_t n;
    do
        n = getrandom(key, GATE_KEY_LEN, 0);
    while (n < 0 && errno == EINTR);
    if (n == GATE_KEY_LEN)
        return CLAVE_OK;
    return clave__start_error(f, CLAVE_EIO, "cannot generate a key: %s; give one with --http-key",
                              n < 0 ? strerror(errno) : "too few bytes");
}

/* Writes the key. The file appears with all of its content or not at all, since a half-written key
 * would keep the server from starting. */
static int gate_key_write(const char *dir, const char *path, const uint8_t key[GATE_KEY_LEN])
{
    char temp[PATH_MAX], text[2 * GATE_KEY_LEN + 2];
    for (size_t i = 0; i < GATE_KEY_LEN; i++)
        snprintf(text + 2 * i, 3, "%02x", key[i]);
    text[2 * GATE_KEY_LEN] = '\n';
    if (snprintf(temp, sizeof temp, "%s/http.key.new", dir) >= (int)sizeof temp)
        return ENAMETOOLONG;
    (void)unlink(temp);
    int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int err = fd < 0 ? errno : 0;
    if (fd >= 0 && write(fd, text, sizeof text - 1) != (ssize_t)sizeof text - 1)
        err = errno ? errno : EIO;
    if (fd >= 0 && err == 0 && fsync(fd) != 0)
        err = errno;
    if (fd >= 0)
        (void)close(fd);
    if (err == 0 && rename(temp, path) != 0)
        err = errno;
    explicit_bzero(text, sizeof text);
    return err;
}

clave_err gate_key_keep(const char *dir, uint8_t key[GATE_KEY_LEN], const struct fault *f)
{
    char path[PATH_MAX];
    struct stat st;
    if (snprintf(path, sizeof path, "%s/http.key", dir) >= (int)sizeof path)
        return clave__start_error(f, CLAVE_EINVAL, "%.40s... is too long", dir);
    if (stat(path, &st) == 0)
        return gate_key_read(path, key, f);
    clave_err err = gate_key_draw(key, f);
    int why = err == CLAVE_OK ? gate_key_write(dir, path, key) : 0;
    if (why)
        err = clave__start_error(f, CLAVE_EIO, "cannot write the key %s: %s", path, strerror(why));
    return err;
}
