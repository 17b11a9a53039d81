/* clave.h - everything but uv.h (which needs libuv's header) and testserver.h.
 *
 * Options structs begin with their size, and one rule is for all of them: clave/options.h. */
#ifndef CLAVE_H
#define CLAVE_H

#include "clave/candidate.h"
#include "clave/client.h"
#include "clave/deadlock.h"
#include "clave/deadlock_search.h"
#include "clave/delay.h"
#include "clave/elementary.h"
#include "clave/err.h"
#include "clave/job.h"
#include "clave/latch.h"
#include "clave/leader.h"
#include "clave/lock.h"
#include "clave/lockset.h"
#include "clave/mem.h"
#include "clave/multilock.h"
#include "clave/mutex.h"
#include "clave/once.h"
#include "clave/options.h"
#include "clave/permit.h"
#include "clave/retry.h"
#include "clave/roll.h"
#include "clave/rwlock.h"
#include "clave/selector.h"
#include "clave/semaphore.h"
#include "clave/session.h"
#include "clave/tls.h"
#include "clave/version.h"

#endif
