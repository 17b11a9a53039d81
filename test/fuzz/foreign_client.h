/* foreign_client.h - a client that knows no recipe, among the nodes of those that do. */
#ifndef CLAVE_TEST_FUZZ_FOREIGN_CLIENT_H
#define CLAVE_TEST_FUZZ_FOREIGN_CLIENT_H

#include "fuzz/fuzz.h"
#include "lib/memserver.h"

/* Makes, writes or removes a node: a byte for the deed, one for the folder; a name or data. true:
 * it has tried to remove one. */
bool foreign_client_act(struct memserver_conn *c, struct input *in);

#endif
