/* zoocfg_keys.h - which keys Apache ZooKeeper's zoo.cfg may have, and what clave does with each.
 * zoocfg_load.c reads the table; docs/reference/zoo-cfg.md shows it, and a test compares the two.
 */
#ifndef CLAVE_CMD_SERVE_ZOOCFG_KEYS_H
#define CLAVE_CMD_SERVE_ZOOCFG_KEYS_H

enum zoocfg_meaning {
    ZOOCFG_IGNORED,   /* `text`: why it has no effect */
    ZOOCFG_REFUSED,   /* `text`: what to do; unless the value is Java's "false" */
    ZOOCFG_ONLY,      /* likewise, unless the value is `only`: what clave does anyway */
    ZOOCFG_AS_IS,     /* `text`: the setting */
    ZOOCFG_AS_MS,     /* likewise, from here on */
    ZOOCFG_AS_SWITCH, /* Java's "true", or anything else */
    ZOOCFG_AS_NUMBER, /* 0x.. too, as Java's decode() */
    ZOOCFG_AS_WORDS,
    ZOOCFG_KEPT,     /* likewise; remembered in slot `slot`, since it depends on other keys */
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
