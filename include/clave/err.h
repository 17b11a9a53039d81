/* err.h - every error clave can report.
 *
 * 0 is success. Codes from -1 to -999 are ZooKeeper's own and keep their number on the wire;
 * clave's begin at -1000. Each code has a class, and programs should branch on the class:
 *
 *   RETRY    the operation was certainly not done; the same call may succeed later, when another
 *            session has begun, the lock is free, or the system has memory, threads and files again
 *   UNKNOWN  the connection was lost or the time ran out before the answer came: the
 *            operation may or may not have been done. Call clave_sync (clave_async_sync), and
 *            then read: without it the server that you are connected to now may not show yet
 *            what was done. Acquire and release need none of this: they find out themselves
 *   FINAL    the server or the library refused; the same call will fail again
 *   FATAL    the object is unusable: only its _free is legal now
 *
 * Any thread may call anything here. */
#ifndef CLAVE_ERR_H
#define CLAVE_ERR_H

#include "clave/version.h"

/* X(name, number, class, text) */
#define CLAVE_ERR_MAP(X)                                                                           \
    X(OK, 0, NONE, "ok")                                                                           \
    X(ESYSTEM, -1, UNKNOWN, "the server reported a system error")                                  \
    X(ERUNTIME, -2, UNKNOWN, "the server reported a runtime inconsistency")                        \
    X(EDATA, -3, UNKNOWN, "the server reported a data inconsistency")                              \
    X(ECONNLOSS, -4, UNKNOWN, "connection lost before the answer came")                            \
    X(EMARSHALLING, -5, FINAL, "the server could not read the request")                            \
    X(EUNIMPLEMENTED, -6, FINAL, "the server does not implement this operation")                   \
    X(EOPTIMEOUT, -7, UNKNOWN, "the server reported an operation timeout")                         \
    X(EBADARGS, -8, FINAL, "the server refused the arguments")                                     \
    X(EUNKNOWNSESSION, -12, FINAL, "the server does not know the session")                         \
    X(ENEWCONFIGNOQUORUM, -13, RETRY, "no quorum of the new configuration")                        \
    X(ERECONFIGINPROGRESS, -14, RETRY, "another reconfiguration is in progress")                   \
    X(ENONODE, -101, FINAL, "no such node")                                                        \
    X(ENOAUTH, -102, FINAL, "not authorised")                                                      \
    X(EBADVERSION, -103, FINAL, "the node has another version")                                    \
    X(ENOCHILDREN, -108, FINAL, "an ephemeral node cannot have children")                          \
    X(ENODEEXISTS, -110, FINAL, "the node exists already")                                         \
    X(ENOTEMPTY, -111, FINAL, "the node has children")                                             \
    X(EEXPIRED, -112, RETRY, "the session has expired")                                            \
    X(EINVALIDCALLBACK, -113, FINAL, "invalid callback")                                           \
    X(EINVALIDACL, -114, FINAL, "invalid ACL")                                                     \
    X(EAUTHFAILED, -115, FINAL, "authentication failed")                                           \
    X(ESESSIONMOVED, -118, RETRY, "the session has moved to another server")                       \
    X(ENOTREADONLY, -119, RETRY, "the server is read-only at present")                             \
    X(EEPHEMERALONLOCAL, -120, FINAL, "ephemeral node on a local session")                         \
    X(ENOWATCHER, -121, FINAL, "no such watch")                                                    \
    X(EREQUESTTIMEOUT, -122, UNKNOWN, "the request timed out")                                     \
    X(ERECONFIGDISABLED, -123, FINAL, "reconfiguration is disabled")                               \
    X(ESASLREQUIRED, -124, FINAL, "the server requires clients to authenticate")                   \
    X(EQUOTA, -125, FINAL, "a quota is exceeded")                                                  \
    X(ETHROTTLED, -127, RETRY, "the server throttled the request")                                 \
    X(ENOMEM, -1001, RETRY, "out of memory")                                                       \
    X(EINVAL, -1002, FINAL, "invalid argument")                                                    \
    X(ECLOSED, -1003, FATAL, "closed")                                                             \
    X(EPROTO, -1004, UNKNOWN, "the peer sent bytes that are not ZooKeeper's protocol")             \
    X(ENOTSENT, -1005, RETRY, "the request was never sent")                                        \
    X(ETIMEDOUT, -1006, UNKNOWN, "no answer in time")                                              \
    X(EBUSY, -1007, RETRY, "not acquired in time: another holds it")                               \
    X(ECANCELED, -1008, FINAL, "cancelled")                                                        \
    X(ELOOPTHREAD, -1009, FINAL, "a blocking call was made on the loop's own thread")              \
    X(ELOST, -1010, FINAL, "the lock was lost")                                                    \
    X(ENOTHELD, -1011, FINAL, "the lock is not held by this owner")                                \
    X(ETOOBIG, -1012, FINAL, "too big for one frame")                                              \
    X(EPATH, -1013, FINAL, "invalid path")                                                         \
    X(EUNREACHABLE, -1014, RETRY, "no server could be reached")                                    \
    X(EIO, -1015, FATAL, "input/output error")                                                     \
    X(ECORRUPT, -1016, FATAL, "the data directory is damaged")                                     \
    X(EINUSE, -1017, RETRY, "in use by another process")                                           \
    X(ESEQUENCE, -1018, FINAL, "the sequence counter of the lock's parent is used up")             \
    X(EREPLACED, -1019, FINAL, "the server answered with another session")                         \
    X(EMAXHOLD, -1020, FINAL, "the maximum hold time had passed")                                  \
    X(EHOST, -1021, FINAL, "the host list cannot be understood or resolved")                       \
    X(EFULL, -1022, RETRY, "no space left for the data directory")                                 \
    X(EUPGRADE, -1023, FINAL, "a read lock cannot become a write lock: release it first")          \
    X(EDONE, -1024, FINAL, "done already: another has run it")                                     \
    X(EDEADLOCK, -1025, FINAL, "the owners of locks wait for each other")                          \
    X(ETLS, -1026, FINAL, "TLS cannot be had as it was asked for")                                 \
    X(ELOCAL, -1027, FINAL, "the local server cannot be started")                                  \
    X(ETHREAD, -1028, RETRY, "no thread can be started: a limit of processes, or a sandbox")       \
    X(EFILES, -1029, RETRY, "no file can be opened: the limit of open files is reached")           \
    X(ESILENT, -1030, FINAL, "the work gave no sign of life in time")

typedef enum clave_err {
#define CLAVE_ERR_ENUM(name, number, class_, text) CLAVE_##name = number,
    CLAVE_ERR_MAP(CLAVE_ERR_ENUM)
#undef CLAVE_ERR_ENUM
} clave_err;

typedef enum clave_err_class {
    CLAVE_CLASS_NONE,
    CLAVE_CLASS_RETRY,
    CLAVE_CLASS_UNKNOWN,
    CLAVE_CLASS_FINAL,
    CLAVE_CLASS_FATAL,
} clave_err_class;

#ifdef __cplusplus
extern "C" {
#endif

/* The name: "ENONODE" for -101; "E?" for a number that is not in the table. A static string, never
 * NULL. */
CLAVE_EXPORT const char *clave_err_name(clave_err err);

/* The text: "no such node" for -101. A static string, never NULL. */
CLAVE_EXPORT const char *clave_strerror(clave_err err);

/* The class. A number that is not in the table is UNKNOWN: nothing may be concluded from it. */
CLAVE_EXPORT clave_err_class clave_err_classify(clave_err err);

#ifdef __cplusplus
}
#endif
#endif
