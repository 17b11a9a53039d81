/* zoocfg_keys.h - which keys Apache ZooKeeper's zoo.cfg may have besides those of settings.c, and
 * what clave does with each. docs/reference/zoo-cfg.md shows both tables, and a test compares. */
#ifndef CLAVE_CMD_SERVE_ZOOCFG_KEYS_H
#define CLAVE_CMD_SERVE_ZOOCFG_KEYS_H

enum zoocfg_meaning {
    ZOOCFG_IGNORED, /* `text`: why it has no effect */
    ZOOCFG_REFUSED, /* `text`: what to do; unless the value is Java's "false" */
    ZOOCFG_ONLY,    /* likewise, unless the value is `only`: what clave does anyway */
    ZOOCFG_KEPT,    /* `text`: the setting; remembered in slot `slot`, since it depends on others */
    ZOOCFG_PROVIDER, /* a class of Apache's own; `text`: why not another */
    ZOOCFG_SERVER,   /* the one line of this server: `text` is the setting */
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
    const char *name; /* ending with '.': all other keys that begin so */
    enum zoocfg_meaning meaning;
    const char *text;
    enum zoocfg_slot slot;
    const char *only;
};

/* The key of this name, without "zookeeper." before it. NULL: Apache has none. */
const struct zoocfg_key *zoocfg_key_find(const char *name);

#endif
