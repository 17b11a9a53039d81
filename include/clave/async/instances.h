/* async/instances.h - the instances of a service: who offers it, and where. Curator's x-discovery:
 * its layout (BASE/SERVICE/ID, a node for each instance), its JSON, and what its ServiceCache and
 * ServiceProvider do. Instances of clave and of Curator are the same, in both directions.
 *
 * A clave_instance is what a node says. clave_async_instances keeps those of one service, or of all
 * services below a path, up to date in memory, and picks one of them. A node that cannot be read as
 * an instance is kept as well, with the reason: it may be somebody's only instance, in a newer
 * form.
 *
 * Asynchronous, on a clave_async_client and under its thread and callback rules. */
#ifndef CLAVE_ASYNC_INSTANCES_H
#define CLAVE_ASYNC_INSTANCES_H

#include "clave/async/client.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what a node says ------------------------------------------------------------------------ */

/* Curator's ServiceType, and one type that is not Curator's. */
typedef enum clave_service_type {
    CLAVE_SERVICE_DYNAMIC,            /* an ephemeral node: gone with the session */
    CLAVE_SERVICE_STATIC,             /* a persistent node, deleted by whoever registered it */
    CLAVE_SERVICE_PERMANENT,          /* a persistent node, deleted by a human */
    CLAVE_SERVICE_DYNAMIC_SEQUENTIAL, /* an ephemeral node, its name the id and a number */
    /* An ephemeral node member_NUMBER with the JSON of Twitter's server sets, which Finagle and
     * Prometheus (serverset_sd_configs) read. It has an address, a port and a status, but neither
     * name, id, payload, SSL port nor time. */
    CLAVE_SERVICE_SERVERSET,
} clave_service_type;

typedef struct clave_instance {
    const char *name; /* of the service */
    const char *id;   /* unique in the service */
    const char *address;
    int32_t port;        /* 0: none (null in JSON) */
    int32_t ssl_port;    /* 0: none */
    const char *payload; /* a JSON value, as text: "{\"zone\":3}"; NULL: null. What was read has
                            no line breaks */
    int64_t registered;  /* milliseconds since 1970, by the wall clock of the registrant */
    clave_service_type type;
    const char *uri_spec; /* Curator's UriSpec as JSON; NULL: null */
    bool disabled;        /* registered, but not to be used for now */
} clave_instance;

/* The name of a type as it is in JSON, "DYNAMIC" for instance; "SERVERSET". A static string. Any
 * thread. */
CLAVE_EXPORT const char *clave_service_type_name(clave_service_type type);
/* The type with this name. false: there is none. Any thread. */
CLAVE_EXPORT bool clave_service_type_parse(const char *name, clave_service_type *out);

/* Why an instance cannot be registered, as text that follows its name: "has no id"; NULL: it can
 * be. A static string. Any thread. */
CLAVE_EXPORT const char *clave_instance_fault(const clave_instance *i);
/* Writes the JSON of an instance that has no fault, compact and in the order of Curator's own
 * serializer, and a NUL. "enabled" is written for a disabled instance only, as old Curators do not
 * know it. Returns the length without the NUL; a result >= cap means that it was cut off. Any
 * thread. */
CLAVE_EXPORT size_t clave_instance_format(const clave_instance *i, char *out, size_t cap);
/* Reads the data of a node. On CLAVE_OK *out belongs to the caller, who frees it with
 * clave_instance_free; on an error it is NULL. `mem` is copied; NULL: libc. Members that are not
 * known are ignored, as Curator does; "enabled" is true if it is missing. EINVAL: it is not an
 * instance, and *fault (may be NULL) says why, as text that follows a path: "is not JSON"; a static
 * string. ENOMEM. Any thread. */
CLAVE_EXPORT clave_err clave_instance_parse(clave_instance **out, const void *data, size_t len,
                                            const clave_mem *mem, const char **fault);
/* Frees what clave_instance_parse returned. NULL is ignored. Any thread. */
CLAVE_EXPORT void clave_instance_free(clave_instance *i);

/* ---- its URI --------------------------------------------------------------------------------- */

/* Writes the URI that uri_spec makes of the instance, and a NUL. A spec is literal text and
 * variables: scheme (https if there is an SSL port, else http), name, id, address, port, ssl-port,
 * registration-time-utc, service-type (in small letters), and [ and ] for braces. A variable that
 * is none of these, or has no value, is empty, as with Curator. Returns the length without the NUL
 * as clave_instance_format does; 0: there is no uri_spec, or it is none of Curator's. Any thread.
 */
CLAVE_EXPORT size_t clave_instance_uri(const clave_instance *i, char *out, size_t cap);
/* Why a text such as "{scheme}://{address}:{port}/" is no spec, as text that follows it: "has a }
 * without {"; NULL: it is one. A static string. Any thread. */
CLAVE_EXPORT const char *clave_uri_spec_fault(const char *text);
/* Writes the JSON for uri_spec of a text that has no fault, and a NUL. Returns the length as
 * clave_instance_format does. Any thread. */
CLAVE_EXPORT size_t clave_uri_spec_format(const char *text, char *out, size_t cap);

/* ---- the instances that there are --------------------------------------------------------------
 */

typedef struct clave_async_instances clave_async_instances; /* opaque */

/* A node of an instance. What it points to is valid until the callback returns, or outside of
 * callbacks until the next call that may run some. */
typedef struct clave_instances_entry {
    const char *path;
    const char *service;            /* the name of the parent node */
    const clave_instance *instance; /* NULL: it cannot be read */
    const char *fault;              /* why, as text that follows the path; NULL: it can */
    clave_stat stat;
} clave_instances_entry;

typedef enum clave_instances_event_type {
    CLAVE_INSTANCES_UP,      /* there is an instance; also reported for each one found at first */
    CLAVE_INSTANCES_CHANGED, /* its data; or another node has taken the place of its node */
    CLAVE_INSTANCES_DOWN,    /* a round trip after the event: so much is known then */
    CLAVE_INSTANCES_INITIALIZED, /* once: all that were there are known */
    CLAVE_INSTANCES_STALE,       /* the connection is gone: what is known may be out of date */
    CLAVE_INSTANCES_RESYNCED,    /* after STALE: up to date again */
    /* The last event: nothing is followed any more. `err` says why: ECLOSED, the client was closed;
     * ENOAUTH, the path may not be read; ENOMEM. */
    CLAVE_INSTANCES_ENDED,
} clave_instances_event_type;

typedef struct clave_instances_event {
    clave_instances_event_type type;
    const clave_instances_entry *now; /* for UP and CHANGED; otherwise NULL */
    const clave_instances_entry *was; /* for CHANGED and DOWN; otherwise NULL */
    clave_err err;                    /* for ENDED */
} clave_instances_event;
/* Queries in the callback already reflect the event. It may free the instances. */
typedef void clave_async_instances_cb(clave_async_instances *d, const clave_instances_event *ev,
                                      void *arg);

typedef struct clave_instances_options {
    size_t size;         /* CLAVE_INSTANCES_OPTIONS_INIT sets it: clave/options.h */
    const char *base;    /* the parent of the services' nodes; NULL: "/services"; copied */
    const char *service; /* only this one; NULL: all of them; copied */
    /* Curator's DownInstancePolicy: an instance with this many reported errors (0: 2) is not picked
     * until down_ms (0: 30000) have passed since the first of them. */
    uint32_t down_errors;
    uint32_t down_ms;
} clave_instances_options;
#define CLAVE_INSTANCES_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_instances_options)

/* Starts to follow the instances. The nodes need not exist. `o` and `cb` may be NULL. On CLAVE_OK
 * *out belongs to the caller, who frees it with clave_async_instances_free; on an error it is NULL.
 * EPATH: the base or the service is not valid in a path. EINVAL: the options. ENOMEM. ECLOSED. */
CLAVE_MAKING clave_err clave_async_instances_new(clave_async_instances **out, clave_async_client *c,
                                                 const clave_instances_options *o,
                                                 clave_async_instances_cb *cb, void *arg);
/* Stops following and frees; no callback follows. NULL is ignored. */
CLAVE_EXPORT void clave_async_instances_free(clave_async_instances *d);
/* True between INITIALIZED or RESYNCED and the next STALE. */
CLAVE_METHOD bool clave_async_instances_is_current(const clave_async_instances *d);

/* Receives an instance; returning false ends the walk. It may make queries, but not free. */
typedef bool clave_instances_visit_cb(const clave_instances_entry *e, void *arg);
/* Visits all instances, sorted by path, those included that are disabled or cannot be read. */
CLAVE_METHOD void clave_async_instances_walk(const clave_async_instances *d,
                                             clave_instances_visit_cb *visit, void *arg);

/* Curator's ProviderStrategy. */
typedef enum clave_pick {
    CLAVE_PICK_ROUND_ROBIN, /* in the order of the paths */
    CLAVE_PICK_RANDOM,
    CLAVE_PICK_STICKY, /* the one picked last, as long as it can be; then any other */
} clave_pick;
/* Picks an instance that can be read, is enabled and is not down. Only for the instances of one
 * service. ENONODE: there is none. EINVAL: no service was named, or `how`. */
CLAVE_METHOD clave_err clave_async_instances_pick(clave_async_instances *d, clave_pick how,
                                                  clave_instances_entry *out);
/* The instance at this path did not work: counts towards down_errors. ENONODE: it is gone. */
CLAVE_METHOD clave_err clave_async_instances_note_error(clave_async_instances *d, const char *path);

#ifdef __cplusplus
}
#endif
#endif
