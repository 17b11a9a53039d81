/* clave.h - the umbrella: everything but uv.h (which needs libuv's header) and testserver.h.
 *
 * One noun, one concept, in two forms with the same options, events and errors. The blocking form
 * has the bare noun and is for any thread: clave_mutex_acquire in clave/mutex.h. The asynchronous
 * form says async and runs on one loop: clave_async_mutex_acquire in clave/async/mutex.h.
 *
 *   noun         blocking          asynchronous             Curator
 *   ------------ ----------------- ------------------------ ------------------------------
 *   client       client.h          async/client.h           CuratorFramework
 *   mutex        mutex.h           async/mutex.h            InterProcessMutex, Revoker
 *   rwlock       rwlock.h          async/rwlock.h           InterProcessReadWriteLock
 *   semaphore    semaphore.h       async/semaphore.h        InterProcessSemaphoreV2
 *   slots        slots.h           async/slots.h            -
 *   multilock    multilock.h       async/multilock.h        InterProcessMultiLock
 *   latch        latch.h           async/latch.h            LeaderLatch
 *   selector     selector.h        -(a)                     LeaderSelector
 *   leader       -(b)              async/leader.h           getLeader, getParticipants
 *   grant        grant.h           async/grant.h            -
 *   participants participants.h    async/mutex.h            getParticipantNodes
 *   deadlock     deadlock.h        async/deadlock.h         -
 *   once         once.h            async/once.h             -
 *   lock_delay   -(b)              async/lock_delay.h       -
 *   metrics      metrics.h         -(f)                     -
 *   cache        cache.h           async/cache.h            CuratorCache
 *   persistent_watcher -(b)        async/persistent_watcher.h PersistentWatcher
 *   instances    instances.h       async/instances.h        ServiceCache, ServiceProvider
 *   counter      counter.h         async/counter.h          DistributedAtomicLong
 *   persistent_node persistent_node.h async/persistent_node.h PersistentNode, GroupMember
 *
 *   (a) a function that may block needs a thread: on a loop use the latch
 *   (b) on a session of clave/client.h: from clave_client_run
 *   (f) they are those of all clients of clave/client.h together
 *
 * What can be held has the same set of operations. A cell names the function after the noun;
 * semaphore:x is the semaphore's x. Each side of a rwlock is a mutex.
 *
 *   blocking     mutex      lease              latch      selector    multilock
 *   ------------ ---------- ------------------ ---------- ----------- -----------
 *   acquire      acquire    semaphore:acquire  start      start       acquire
 *   release      release    release            resign     interrupt   release
 *   grant        grant      grant              grant      grant       at(c)
 *   cancel       cancel_as  semaphore:cancel   cancel     close       at(d)
 *   events       event_cb   semaphore:event_cb event_cb   take(e)     mutex:event_cb
 *
 *   asynchronous mutex      lease              latch      selector    multilock
 *   ------------ ---------- ------------------ ---------- ----------- -----------
 *   acquire      acquire    semaphore:acquire  start      -(a)        acquire
 *   release      release    release            resign     -(a)        release
 *   grant        grant      grant              grant      -(a)        at(c)
 *   cancel       cancel     semaphore:cancel   cancel     -(a)        cancel
 *   events       event_cb   semaphore:event_cb event_cb   -(a)        event_cb
 *
 *   (c) each lock of a multilock gives a grant of its own
 *   (d) cancel the lock that it waits for, clave_mutex_cancel_as of _at: the acquire ends with it
 *   (e) leadership is a call of `take`, and its loss is clave_selector_is_interrupted
 *
 * Whatever is held, the grant has the token, says how long it is valid, and guards writes:
 * clave_grant_set, clave_async_grant_set and so on. One write can be guarded by several grants.
 *
 * After an error of class UNKNOWN (clave/err.h) a write may have been done: clave_sync, then read.
 *
 * tools/check-api holds these tables against the headers. Options structs begin with their size,
 * and one rule holds for all of them: clave/options.h. So does one for handles, which are never
 * NULL but for _free: clave/version.h. */
#ifndef CLAVE_H
#define CLAVE_H

#include "clave/async/cache.h"
#include "clave/async/client.h"
#include "clave/async/counter.h"
#include "clave/async/deadlock.h"
#include "clave/async/grant.h"
#include "clave/async/instances.h"
#include "clave/async/latch.h"
#include "clave/async/leader.h"
#include "clave/async/lock_delay.h"
#include "clave/async/multilock.h"
#include "clave/async/mutex.h"
#include "clave/async/once.h"
#include "clave/async/persistent_node.h"
#include "clave/async/persistent_watcher.h"
#include "clave/async/rwlock.h"
#include "clave/async/semaphore.h"
#include "clave/async/slots.h"
#include "clave/cache.h"
#include "clave/client.h"
#include "clave/counter.h"
#include "clave/deadlock.h"
#include "clave/err.h"
#include "clave/grant.h"
#include "clave/instances.h"
#include "clave/latch.h"
#include "clave/mem.h"
#include "clave/metrics.h"
#include "clave/multilock.h"
#include "clave/mutex.h"
#include "clave/once.h"
#include "clave/options.h"
#include "clave/participants.h"
#include "clave/persistent_node.h"
#include "clave/retry.h"
#include "clave/rwlock.h"
#include "clave/selector.h"
#include "clave/semaphore.h"
#include "clave/slots.h"
#include "clave/tls.h"
#include "clave/version.h"

#endif
