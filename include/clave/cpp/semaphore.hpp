/* semaphore.hpp - the semaphore and its leases: clave/semaphore.h. */
#ifndef CLAVE_CPP_SEMAPHORE_HPP
#define CLAVE_CPP_SEMAPHORE_HPP

#include "clave/cpp/grant.hpp"
#include "clave/semaphore.h"

namespace clave
{

/* One lease; the destructor releases it. No lease outlives its semaphore. */
class lease
{
  public:
    explicit lease(clave_lease *l) : l_(l)
    {
    }
    /* ELOST: it had been lost, and is released all the same. */
    result<void> release()
    {
        return clave_lease_release(l_.release());
    }
    result<void> release_confirmed(timeout t)
    {
        return clave_lease_release_confirmed(l_.release(), t.ms());
    }
    result<grant> held() const
    {
        return detail::granted(get(), clave_lease_grant);
    }
    clave_lease *get() const noexcept
    {
        return l_.get();
    }

  private:
    struct releaser {
        void operator()(clave_lease *l) const noexcept
        {
            (void)clave_lease_release(l);
        }
    };
    std::unique_ptr<clave_lease, releaser> l_;
};

class semaphore
{
  public:
    using event_fn = std::function<void(const clave_lease_event &event)>;

    static result<semaphore> make(const client &c, const std::string &path,
                                  clave_semaphore_options options, event_fn on_event = {})
    {
        auto fn = on_event ? std::make_unique<event_fn>(std::move(on_event)) : nullptr;
        if (fn) {
            options.event_arg = fn.get();
            options.event_cb = [](clave_async_semaphore *, const clave_lease_event *ev,
                                  void *arg) noexcept { (*static_cast<event_fn *>(arg))(*ev); };
        }
        clave_semaphore *s = nullptr;
        clave_err err = clave_semaphore_new(&s, c.get(), path.c_str(), &options);
        if (err != CLAVE_OK)
            return c.failed(err);
        return semaphore(s, std::move(fn));
    }
    /* With so many leases, the same number everywhere. */
    static result<semaphore> make(const client &c, const std::string &path, std::uint32_t limit)
    {
        clave_semaphore_options options = CLAVE_SEMAPHORE_OPTIONS_INIT;
        options.limit = limit;
        return make(c, path, options);
    }

    result<lease> acquire(timeout t = forever)
    {
        clave_lease *l = nullptr;
        clave_err err = clave_semaphore_acquire(get(), 1, t.ms(), &l);
        if (err != CLAVE_OK)
            return failure{err};
        return lease(l);
    }
    /* n leases, all or none. */
    result<std::vector<lease>> acquire(std::size_t n, timeout t)
    {
        std::vector<clave_lease *> all(n);
        clave_err err = clave_semaphore_acquire(get(), n, t.ms(), all.data());
        if (err != CLAVE_OK)
            return failure{err};
        std::vector<lease> leases;
        for (clave_lease *l : all)
            leases.emplace_back(l);
        return leases;
    }
    /* Ends every acquire that waits in another thread. */
    void cancel()
    {
        clave_semaphore_cancel(get());
    }
    std::string deadlock() const
    {
        char text[1024];
        return clave_semaphore_deadlock(get(), text, sizeof text);
    }
    clave_semaphore *get() const noexcept
    {
        return s_.get();
    }

  private:
    semaphore(clave_semaphore *s, std::unique_ptr<event_fn> fn) : fn_(std::move(fn)), s_(s)
    {
    }
    std::unique_ptr<event_fn> fn_;
    detail::handle<clave_semaphore, clave_semaphore_free> s_;
};

} // namespace clave

#endif
