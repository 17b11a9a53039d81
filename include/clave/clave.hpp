/* clave.hpp - the blocking form of clave for C++17: header only, over the C functions of clave.h,
 * whose comments say what each call does, its errors and its thread rule.
 *
 *     clave::client client = clave::client::open("zk1,zk2,zk3").value();
 *     clave::mutex mutex = clave::mutex::make(client, "/jobs/nightly").value();
 *     std::lock_guard<clave::mutex> guard(mutex);
 *
 * Results      every call that can fail returns a clave::result<T>, and throws nothing of its own.
 *              With exceptions: .value(), which throws clave::error. A result that is not looked at
 *              is a warning.
 * Ownership    each class owns one C object and is move-only; its destructor frees it. Objects may
 *              outlive their client, as in C. A moved-from object may only be destroyed or assigned
 *              to.
 * Times        any duration of std::chrono, rounded up to milliseconds; clave::forever.
 * Callbacks    are kept by the object, and run on the loop's thread. An exception that leaves one
 *              ends the program (std::terminate): C code lies between it and any catch.
 * C            get() gives the C object, for what is not wrapped. */
#ifndef CLAVE_CLAVE_HPP
#define CLAVE_CLAVE_HPP

#include "clave/cpp/cache.hpp"
#include "clave/cpp/client.hpp"
#include "clave/cpp/counter.hpp"
#include "clave/cpp/grant.hpp"
#include "clave/cpp/instances.hpp"
#include "clave/cpp/latch.hpp"
#include "clave/cpp/multilock.hpp"
#include "clave/cpp/mutex.hpp"
#include "clave/cpp/observe.hpp"
#include "clave/cpp/once.hpp"
#include "clave/cpp/persistent_node.hpp"
#include "clave/cpp/result.hpp"
#include "clave/cpp/selector.hpp"
#include "clave/cpp/semaphore.hpp"
#include "clave/cpp/slots.hpp"
#include "clave/cpp/tls.hpp"

#endif
