/* gate_key.c - see gate_key.h; gate_engine.c and gate_run.c call it. */
#include "runtime/gate/gate_key.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "runtime/gate/secret_file.h"
#include "runtime/text_file.h"

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
    clave_err err = secret_file_check("the key", path, f);
    if (err != CLAVE_OK)
        return err;
    char why[TEXT_FILE_WHY];
    char *text = clave__text_file_read(path, why);
    if (!text)
        return clave__start_error(f, errno == ENOMEM ? CLAVE_ENOMEM : CLAVE_EINVAL, "the key %s",
                                  why);
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
    return clave__start_error(f, CLAVE_EIO, "cannot draw a key: %s; give one with --http-key",
                              n < 0 ? strerror(errno) : "too few bytes");
}
