/* multilock.hpp - several locks as one: clave/multilock.h. */
#ifndef CLAVE_CPP_MULTILOCK_HPP
#define CLAVE_CPP_MULTILOCK_HPP

#include "clave/cpp/mutex.hpp"
#include "clave/multilock.h"

namespace clave
{

class multilock
{
  public:
    struct part {
        std::string path;
        clave_multilock_kind kind = CLAVE_MULTILOCK_MUTEX;
    };

    static result<multilock> make(const client &c, const std::vector<part> &parts)
    {
        std::vector<clave_multilock_part> given;
        for (const part &p : parts)
            given.push_back({p.path.c_str(), p.kind});
        clave_multilock *m = nullptr;
        clave_err err = clave_multilock_new(&m, c.get(), given.data(), given.size(), nullptr);
        if (err != CLAVE_OK)
            return c.failed(err);
        return multilock(m);
    }

    /* All or none; the detail of a failure is the path at which it ended. */
    result<void> acquire(timeout t = forever)
    {
        const char *failed = nullptr;
        clave_err err = clave_multilock_acquire(get(), t.ms(), &failed);
        return outcome(err, failed);
    }
    result<void> release()
    {
        const char *failed = nullptr;
        clave_err err = clave_multilock_release(get(), &failed);
        return outcome(err, failed);
    }
    /* What the calling thread holds at `path`, one of the parts. ENONODE: it is none. */
    result<grant> held(const std::string &path) const
    {
        clave_mutex *m = clave_multilock_at(get(), path.c_str());
        if (!m)
            return failure{CLAVE_ENONODE, path};
        return detail::granted(m, clave_mutex_grant);
    }

    void lock()
    {
        acquire().value();
    }
    void unlock() noexcept
    {
        (void)clave_multilock_release(get(), nullptr);
    }
    clave_multilock *get() const noexcept
    {
        return m_.get();
    }

  private:
    explicit multilock(clave_multilock *m) : m_(m)
    {
    }
    static result<void> outcome(clave_err err, const char *failed)
    {
        return err == CLAVE_OK ? result<void>() : result<void>(failure{err, failed ? failed : ""});
    }
    detail::handle<clave_multilock, clave_multilock_free> m_;
};

} // namespace clave

#endif
