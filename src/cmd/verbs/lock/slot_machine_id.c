/* slot_machine_id.c - the id of this machine (slot.h; machine-id(5)). It is the HMAC (RFC 2104,
 * with SHA-1) of our name under the machine id, as a UUID. slot.c calls it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hash/sha1.h"
#include "cmd/cli/diag.h"
#include "cmd/verbs/lock/slot.h"

enum { MACHINE_ID_DIGITS = 32, KEY_LEN = 16, BLOCK_LEN = 64, TEXT_MAX = 32 };

static const char slot_id_file[] = "/etc/machine-id";

/* The hash of a block of the key, each byte of it changed by `pad`, and of a text after it. */
static void slot_machine_id_hash(const uint8_t key[KEY_LEN], uint8_t pad, const void *text,
                                 size_t n, uint8_t out[SHA1_LEN])
{
    uint8_t block[BLOCK_LEN + TEXT_MAX];
    memset(block, pad, BLOCK_LEN);
    for (size_t i = 0; i < KEY_LEN; i++)
        block[i] ^= key[i];
    memcpy(block + BLOCK_LEN, text, n);
    clave__sha1(block, BLOCK_LEN + n, out);
}

static void slot_machine_id_derive(const uint8_t key[KEY_LEN], uint8_t out[SHA1_LEN])
{
    static const char name[] = "clave slot";
    uint8_t inner[SHA1_LEN];
    slot_machine_id_hash(key, 0x36, name, sizeof name - 1, inner);
    slot_machine_id_hash(key, 0x5c, inner, sizeof inner, out);
    out[6] = (uint8_t)((out[6] & 0x0f) | 0x50); /* a UUID from a name, RFC 9562 */
    out[8] = (uint8_t)((out[8] & 0x3f) | 0x80);
}

static bool slot_machine_id_parse(const char text[MACHINE_ID_DIGITS + 1], uint8_t key[KEY_LEN])
{
    if (strspn(text, "0123456789abcdefABCDEF") < MACHINE_ID_DIGITS)
        return false;
    unsigned any = 0;
    for (size_t i = 0; i < KEY_LEN; i++) {
        unsigned byte = 0;
        sscanf(text + 2 * i, "%2x", &byte);
        key[i] = (uint8_t)byte;
        any |= byte;
    }
    return any != 0;
}

/* NULL, or why there is none. */
static const char *slot_machine_id_read(uint8_t key[KEY_LEN])
{
    char text[MACHINE_ID_DIGITS + 1] = "";
    FILE *f = fopen(slot_id_file, "re");
    if (!f)
        return strerror(errno);
    size_t n = fread(text, 1, MACHINE_ID_DIGITS, f);
    fclose(f);
    text[n] = '\0';
    return slot_machine_id_parse(text, key) ? NULL : "it holds no machine id";
}

bool slot_id_of_machine(const struct options *o, char out[SLOT_ID_TEXT])
{
    uint8_t key[KEY_LEN], id[SHA1_LEN];
    const char *fault = slot_machine_id_read(key);
    if (fault) {
        diag_end(o, NULL, EXIT_USAGE,
                 "%s: %s: name an id with --id, or make the file with systemd-machine-id-setup",
                 slot_id_file, fault);
        return false;
    }
    slot_machine_id_derive(key, id);
    char *at = out;
    for (size_t i = 0; i < KEY_LEN; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        at += snprintf(at, 3, "%02x", id[i]);
    }
    return true;
}
