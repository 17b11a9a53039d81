/* microhttpd.h - the functions of libmicrohttpd, loaded when HTTP is asked for, so that a program
 * that does not serve HTTP needs neither the library nor its memory. */
#ifndef CLAVE_RUNTIME_HTTP_MICROHTTPD_H
#define CLAVE_RUNTIME_HTTP_MICROHTTPD_H

#include <microhttpd.h>

#define MICROHTTPD_FUNCTIONS(X)                                                                    \
    X(MHD_start_daemon)                                                                            \
    X(MHD_stop_daemon)                                                                             \
    X(MHD_get_daemon_info)                                                                         \
    X(MHD_get_timeout)                                                                             \
    X(MHD_run)                                                                                     \
    X(MHD_add_connection)                                                                          \
    X(MHD_get_connection_info)                                                                     \
    X(MHD_get_connection_values)                                                                   \
    X(MHD_suspend_connection)                                                                      \
    X(MHD_resume_connection)                                                                       \
    X(MHD_create_response_from_buffer_with_free_callback_cls)                                      \
    X(MHD_create_response_from_callback)                                                           \
    X(MHD_set_response_options)                                                                    \
    X(MHD_add_response_header)                                                                     \
    X(MHD_queue_response)                                                                          \
    X(MHD_destroy_response)

struct microhttpd {
#define MICROHTTPD_MEMBER(name) __typeof__(name) *name;
    MICROHTTPD_FUNCTIONS(MICROHTTPD_MEMBER)
#undef MICROHTTPD_MEMBER
};

/* Any thread. NULL: it is not on this machine; *why says what is missing. */
const struct microhttpd *clave__microhttpd(const char **why);

#endif
