/* zoocfg_keys.h - the keys that Apache ZooKeeper's zoo.cfg may have besides those in settings.c,
 * and what clave does with each. docs/reference/zoo-cfg.md shows both tables, and a test compares
 * them. */
#ifndef CLAVE_CMD_SERVE_ZOOCFG_KEYS_H
#define CLAVE_CMD_SERVE_ZOOCFG_KEYS_H

enum zoocfg_meaning {
    ZOOCFG_IGNORED, /* `text` says why it has no effect */
    ZOOCFG_REFUSED, /* `text` says what to do; accepted if the value is Java's "false" */
    ZOOCFG_ONLY, /* refused as above, unless the value is `only`, which is what clave does anyway */
    ZOOCFG_KEPT, /* `text` names the setting; kept in slot `slot`, as it depends on other keys */
    ZOOCFG_PROVIDER, /* a class of Apache's own; `text` says why no other is accepted */
    ZOOCFG_SERVER,   /* the line of this server; `text` names the setting */
};

enum zoocfg_slot {
    DATA_DIR,
    LOG_DIR,
    PORT,
    ADDRESS,
    SECURE_PORT,
    SECURE_ADDRESS,
    CERT,
    CA,
    CLIENTS,
    SUPER,
    ADMIN_ENABLED,
    ADMIN_ADDRESS,
    ADMIN_PORT,
    ADMIN_URL,
    METRICS_CLASS,
    METRICS_HOST,
    METRICS_PORT,
    AUDIT,
    ENFORCE,
    SCHEMES,
    ZOOCFG_SLOTS
};

struct zoocfg_key {
    const char *name; /* if it ends with '.', it stands for all other keys that begin with it */
    enum zoocfg_meaning meaning;
    const char *text;
    enum zoocfg_slot slot;
    const char *only;
};

/* The row of this key, whose name is given without "zookeeper."; NULL: Apache has no such key. */
const struct zoocfg_key *zoocfg_key_find(const char *name);

#endif
