/* once.hpp - a job that several processes start and one of them runs: clave/once.h. */
#ifndef CLAVE_CPP_ONCE_HPP
#define CLAVE_CPP_ONCE_HPP

#include "clave/cpp/grant.hpp"
#include "clave/once.h"

namespace clave
{

class once
{
  public:
    /* Success: the job is to be run, and is recorded as started. EDONE: another has run it.
     * `former` receives the previous run, except for its identity. */
    static result<once> begin(const grant &held, const std::string &path,
                              std::chrono::milliseconds period, timeout t,
                              bool at_most_once = false, clave_once_record *former = nullptr)
    {
        clave_once_options options = CLAVE_ONCE_OPTIONS_INIT;
        options.path = path.c_str();
        options.period_ms = period.count();
        options.at_most_once = at_most_once;
        clave_once *o = nullptr;
        clave_err err = clave_once_begin(&o, held.get(), &options, t.ms(), former);
        if (err != CLAVE_OK)
            return failure{err, path};
        return once(o);
    }
    /* How it ended; before the lock is released. */
    result<void> end(bool succeeded, timeout t)
    {
        return clave_once_end(o_.release(), succeeded, t.ms());
    }
    clave_once *get() const noexcept
    {
        return o_.get();
    }

  private:
    explicit once(clave_once *o) : o_(o)
    {
    }
    detail::handle<clave_once, clave_once_free> o_;
};

} // namespace clave

#endif
