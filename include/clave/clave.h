/* clave.h - everything but uv.h (which needs libuv's header) and testserver.h.
 *
 * Options structs begin with their size, and one rule is for all of them: clave/options.h. */
#ifndef CLAVE_H
#define CLAVE_H

#include "clave/async/client.h"
#include "clave/async/deadlock.h"
#include "clave/async/latch.h"
#include "clave/async/leader.h"
#include "clave/async/lock_delay.h"
#include "clave/async/multilock.h"
#include "clave/async/mutex.h"
#include "clave/async/once.h"
#include "clave/async/plain_layouts.h"
#include "clave/async/rwlock.h"
#include "clave/async/semaphore.h"
#include "clave/client.h"
#include "clave/deadlock.h"
#include "clave/err.h"
#include "clave/latch.h"
#include "clave/mem.h"
#include "clave/multilock.h"
#include "clave/mutex.h"
#include "clave/once.h"
#include "clave/options.h"
#include "clave/participants.h"
#include "clave/retry.h"
#include "clave/selector.h"
#include "clave/semaphore.h"
#include "clave/tls.h"
#include "clave/version.h"

#endif
