/* auth_ops.h - the requests about who the client is. */
#ifndef CLAVE_SERVER_REQUEST_AUTH_OPS_H
#define CLAVE_SERVER_REQUEST_AUTH_OPS_H

#include "server/request/request.h"

request_answer clave__auth_op_add; /* auth */
request_answer clave__auth_op_sasl;
request_answer clave__auth_op_who_am_i;

#endif
