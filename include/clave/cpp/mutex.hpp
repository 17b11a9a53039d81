/* mutex.hpp - the mutex and the read-write lock: clave/mutex.h, clave/rwlock.h. A mutex is a
 * TimedLockable: std::unique_lock, std::lock_guard and std::scoped_lock work on it. */
#ifndef CLAVE_CPP_MUTEX_HPP
#define CLAVE_CPP_MUTEX_HPP

#include "clave/cpp/grant.hpp"
#include "clave/mutex.h"
#include "clave/rwlock.h"

namespace clave
{

class mutex
{
  public:
    using event_fn = std::function<void(const clave_mutex_event &event)>;

    static result<mutex> make(const client &c, const std::string &path,
                              clave_mutex_options options = CLAVE_MUTEX_OPTIONS_INIT,
                              event_fn on_event = {})
    {
        auto fn = handler(options, std::move(on_event));
        clave_mutex *m = nullptr;
        clave_err err = clave_mutex_new(&m, c.get(), path.c_str(), &options);
        if (err != CLAVE_OK)
            return c.failed(err);
        return mutex(m, std::move(fn));
    }

    /* ---- with results ------------------------------------------------------------------- */

    result<void> acquire(timeout t = forever)
    {
        return clave_mutex_acquire(get(), t.ms());
    }
    /* ELOST, EMAXHOLD, ESILENT: it had been lost, and is released all the same. */
    result<void> release()
    {
        return clave_mutex_release(get());
    }
    result<void> release_confirmed(timeout t)
    {
        return clave_mutex_release_confirmed(get(), t.ms());
    }
    result<void> acquire_as(std::uint64_t owner, timeout t = forever)
    {
        return clave_mutex_acquire_as(get(), owner, t.ms());
    }
    result<void> release_as(std::uint64_t owner)
    {
        return clave_mutex_release_as(get(), owner);
    }
    result<void> release_confirmed_as(std::uint64_t owner, timeout t)
    {
        return clave_mutex_release_confirmed_as(get(), owner, t.ms());
    }
    result<void> cancel_as(std::uint64_t owner)
    {
        return clave_mutex_cancel_as(get(), owner);
    }
    static std::uint64_t owner_self()
    {
        return clave_mutex_owner_self();
    }
    /* What the calling thread holds. */
    result<grant> held() const
    {
        return detail::granted(get(), clave_mutex_grant);
    }
    std::string deadlock() const
    {
        char text[1024];
        return clave_mutex_deadlock(get(), text, sizeof text);
    }

    /* ---- as the standard library has them ----------------------------------------------- */

    void lock()
    {
        acquire().value();
    }
    bool try_lock()
    {
        return try_for(at_once);
    }
    template <class Rep, class Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period> &d)
    {
        return try_for(d);
    }
    template <class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration> &at)
    {
        return try_for(at - Clock::now());
    }
    /* A lock that was lost is released as well; held() and the events tell of the loss. */
    void unlock() noexcept
    {
        (void)clave_mutex_release(get());
    }

    clave_mutex *get() const noexcept
    {
        return m_.get();
    }

  private:
    friend struct rwlock;
    mutex(clave_mutex *m, std::unique_ptr<event_fn> fn) : fn_(std::move(fn)), m_(m)
    {
    }
    static std::unique_ptr<event_fn> handler(clave_mutex_options &options, event_fn on_event)
    {
        if (!on_event)
            return nullptr;
        auto fn = std::make_unique<event_fn>(std::move(on_event));
        options.event_arg = fn.get();
        options.event_cb = [](clave_async_mutex *, const clave_mutex_event *ev,
                              void *arg) noexcept { (*static_cast<event_fn *>(arg))(*ev); };
        return fn;
    }
    /* false: it is another's, or nobody can know. What will fail again is thrown. */
    bool try_for(timeout t)
    {
        result<void> r = acquire(t);
        if (r.code() != CLAVE_EBUSY && r.code() != CLAVE_EUNREACHABLE)
            r.value();
        return static_cast<bool>(r);
    }

    std::unique_ptr<event_fn> fn_;
    detail::handle<clave_mutex, clave_mutex_free> m_;
};

/* Two mutexes in one queue: readers share, writers exclude. */
struct rwlock {
    mutex read;
    mutex write;

    static result<rwlock> make(const client &c, const std::string &path,
                               clave_mutex_options reads = CLAVE_MUTEX_OPTIONS_INIT,
                               clave_mutex_options writes = CLAVE_MUTEX_OPTIONS_INIT,
                               mutex::event_fn on_read = {}, mutex::event_fn on_write = {})
    {
        auto on_r = mutex::handler(reads, std::move(on_read));
        auto on_w = mutex::handler(writes, std::move(on_write));
        clave_mutex *r = nullptr, *w = nullptr;
        clave_err err = clave_rwlock_new(&r, &w, c.get(), path.c_str(), &reads, &writes);
        if (err != CLAVE_OK)
            return c.failed(err);
        return rwlock{mutex(r, std::move(on_r)), mutex(w, std::move(on_w))};
    }
};

} // namespace clave

#endif
