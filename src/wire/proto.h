/* proto.h - the numbers of the ZooKeeper protocol: opcodes, reserved xids, modes, permissions,
 * event types, limits and ports. Names and values are those of ZooDefs and zookeeper.jute. */
#ifndef CLAVE_WIRE_PROTO_H
#define CLAVE_WIRE_PROTO_H

#include <stdint.h>

enum wire_opcode {
    OP_NOTIFICATION = 0,
    OP_CREATE = 1,
    OP_DELETE = 2,
    OP_EXISTS = 3,
    OP_GET_DATA = 4,
    OP_SET_DATA = 5,
    OP_GET_ACL = 6,
    OP_SET_ACL = 7,
    OP_GET_CHILDREN = 8,
    OP_SYNC = 9,
    OP_PING = 11,
    OP_GET_CHILDREN2 = 12,
    OP_CHECK = 13,
    OP_MULTI = 14,
    OP_CREATE2 = 15,
    OP_RECONFIG = 16,
    OP_CHECK_WATCHES = 17,
    OP_REMOVE_WATCHES = 18,
    OP_CREATE_CONTAINER = 19,
    OP_DELETE_CONTAINER = 20,
    OP_CREATE_TTL = 21,
    OP_MULTI_READ = 22,
    OP_AUTH = 100,
    OP_SET_WATCHES = 101,
    OP_SASL = 102,
    OP_GET_EPHEMERALS = 103,
    OP_GET_ALL_CHILDREN_NUMBER = 104,
    OP_SET_WATCHES2 = 105,
    OP_ADD_WATCH = 106,
    OP_WHO_AM_I = 107,
    OP_CREATE_SESSION = -10,
    OP_CLOSE_SESSION = -11,
    OP_ERROR = -1,
};

enum wire_xid { XID_EVENT = -1, XID_PING = -2, XID_AUTH = -4, XID_SET_WATCHES = -8 };

enum wire_create_mode {
    MODE_PERSISTENT = 0,
    MODE_EPHEMERAL = 1,
    MODE_PERSISTENT_SEQUENTIAL = 2,
    MODE_EPHEMERAL_SEQUENTIAL = 3,
    MODE_CONTAINER = 4,
    MODE_PERSISTENT_TTL = 5,
    MODE_PERSISTENT_SEQUENTIAL_TTL = 6,
};

enum wire_perm {
    PERM_READ = 1,
    PERM_WRITE = 2,
    PERM_CREATE = 4,
    PERM_DELETE = 8,
    PERM_ADMIN = 16,
    PERM_ALL = 31,
};

enum wire_event_type {
    EVENT_NONE = -1,
    EVENT_CREATED = 1,
    EVENT_DELETED = 2,
    EVENT_DATA_CHANGED = 3,
    EVENT_CHILDREN_CHANGED = 4,
};

enum wire_keeper_state { STATE_SYNC_CONNECTED = 3 };

enum wire_watcher_type {
    WATCHER_CHILDREN = 1,
    WATCHER_DATA = 2,
    WATCHER_ANY = 3,
    WATCHER_PERSISTENT = 4,
    WATCHER_PERSISTENT_RECURSIVE = 5,
};

enum wire_add_watch_mode { ADD_WATCH_PERSISTENT = 0, ADD_WATCH_PERSISTENT_RECURSIVE = 1 };

/* Apache's default jute.maxbuffer; a frame of exactly this size is accepted. */
#define WIRE_MAX_FRAME 0xfffff
#define WIRE_PASSWORD_LEN 16
#define WIRE_STAT_LEN 68
#define WIRE_DEFAULT_PORT 2181
/* The secureClientPort of the examples in ZooKeeper's Administrator's Guide. */
#define WIRE_SECURE_PORT 2281

#endif
