/* gate_audit.h - who changed what over HTTP, in a file of its own: the server's audit log, in the
 * same form, with the user of the gate, the method, the target, what was done (the session, the
 * node, the kind of a claim or the operations of a transaction) and the status. */
#ifndef CLAVE_RUNTIME_GATE_GATE_AUDIT_H
#define CLAVE_RUNTIME_GATE_GATE_AUDIT_H

#include "runtime/start_error.h"
#include "runtime/store/disk_thread.h"
#include "web/web.h"

struct gate_audit; /* opaque */

/* Whether _open could be called with this file. The faults of _open. */
clave_err gate_audit_check(const char *path, const struct fault *f);
/* `path` and `log` outlive it; `done` is woken, and has _pump called. EIO, EFULL, ENOMEM. */
clave_err gate_audit_open(struct gate_audit **out, const char *path, const struct clave_mem *mem,
                          const struct log *log, struct notifier *done, const struct fault *f);
void gate_audit_put(struct gate_audit *a, const struct web_audit *line);
/* Has the lines written; never waits. */
void gate_audit_pump(struct gate_audit *a);
/* The file is opened anew by its name, before the next line. */
void gate_audit_reopen(struct gate_audit *a);
/* Writes what is left. NULL is ignored. */
void gate_audit_close(struct gate_audit *a);

#endif
