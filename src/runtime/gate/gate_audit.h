/* gate_audit.h - the log of who changed what over HTTP, in a file of its own. It has the form of
 * the server's audit log, with the gate's user, the method, the target, what was done (the session,
 * the node, the kind of claim, or the operations of a transaction) and the status. */
#ifndef CLAVE_RUNTIME_GATE_GATE_AUDIT_H
#define CLAVE_RUNTIME_GATE_GATE_AUDIT_H

#include "runtime/start_error.h"
#include "runtime/store/disk_thread.h"
#include "web/web.h"

struct gate_audit; /* opaque */

/* `path` and `log` must outlive it; `done` is woken, and its owner calls _pump. EIO, EFULL,
 * ENOMEM. */
clave_err gate_audit_open(struct gate_audit **out, const char *path, const struct clave_mem *mem,
                          const struct log *log, struct notifier *done, const struct fault *f);
void gate_audit_put(struct gate_audit *a, const struct web_audit *line);
/* Lets the thread write the lines; never blocks. */
void gate_audit_pump(struct gate_audit *a);
/* Makes the thread open the file again by its name before the next line. */
void gate_audit_reopen(struct gate_audit *a);
/* Writes what is left, and closes. NULL is ignored. */
void gate_audit_close(struct gate_audit *a);

#endif
