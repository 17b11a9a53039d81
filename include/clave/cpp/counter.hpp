/* counter.hpp - a number that several processes change: clave/counter.h. */
#ifndef CLAVE_CPP_COUNTER_HPP
#define CLAVE_CPP_COUNTER_HPP

#include "clave/counter.h"
#include "clave/cpp/client.hpp"

namespace clave
{

class counter
{
  public:
    static result<counter> make(const client &c, const std::string &path)
    {
        clave_counter *n = nullptr;
        clave_err err = clave_counter_new(&n, c.get(), path.c_str());
        if (err != CLAVE_OK)
            return c.failed(err);
        return counter(n);
    }

    result<std::int64_t> value(timeout t)
    {
        std::int64_t value = 0;
        clave_err err = clave_counter_get(get(), t.ms(), &value);
        if (err != CLAVE_OK)
            return failure{err};
        return value;
    }
    /* Exactly once; an error of class UNKNOWN says that it may have been done. */
    result<clave_counter_change> add(std::int64_t delta, timeout t)
    {
        clave_counter_change change = {};
        return made(clave_counter_add(get(), delta, t.ms(), &change), change);
    }
    result<clave_counter_change> set(std::int64_t value, timeout t)
    {
        clave_counter_change change = {};
        return made(clave_counter_set(get(), value, t.ms(), &change), change);
    }
    result<clave_counter_change> compare_and_set(std::int64_t expected, std::int64_t value,
                                                 timeout t)
    {
        clave_counter_change change = {};
        return made(clave_counter_compare_and_set(get(), expected, value, t.ms(), &change), change);
    }
    clave_counter *get() const noexcept
    {
        return counter_.get();
    }

  private:
    explicit counter(clave_counter *n) : counter_(n)
    {
    }
    static result<clave_counter_change> made(clave_err err, const clave_counter_change &change)
    {
        if (err != CLAVE_OK)
            return failure{err};
        return change;
    }
    detail::handle<clave_counter, clave_counter_free> counter_;
};

} // namespace clave

#endif
