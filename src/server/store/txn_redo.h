/* txn_redo.h - the changes of recorded transactions, made again, as recovery does: one that the
 * snapshot already contains, because it was taken while writes continued, is not made twice. */
#ifndef CLAVE_SERVER_STORE_TXN_REDO_H
#define CLAVE_SERVER_STORE_TXN_REDO_H

#include "server/store/txn_record.h"

/* For the table of kinds: txn_kind.replay. */
clave_err clave__txn_redo_create(struct txn *t, const struct change_record *r);
clave_err clave__txn_redo_delete(struct txn *t, const struct change_record *r);
/* setData, setACL, and a reconfig. */
clave_err clave__txn_redo_set(struct txn *t, const struct change_record *r);
/* Deletes what the session owns that was not in the list. */
clave_err clave__txn_redo_end_of_session(struct txn *t);

#endif
