/* selector.hpp - leadership as a function call: clave/selector.h. */
#ifndef CLAVE_CPP_SELECTOR_HPP
#define CLAVE_CPP_SELECTOR_HPP

#include "clave/cpp/grant.hpp"
#include "clave/selector.h"

namespace clave
{

/* What the function that leads is given. */
class leadership
{
  public:
    explicit leadership(clave_selector *s) : s_(s)
    {
    }
    /* It should return. */
    bool is_interrupted() const
    {
        return clave_selector_is_interrupted(s_);
    }
    /* Waits; false, at once: it is interrupted. */
    bool pause(timeout t) const
    {
        return clave_selector_pause(s_, t.ms());
    }
    bool has_leadership() const
    {
        return clave_selector_has_leadership(s_);
    }
    result<grant> held() const
    {
        return detail::granted(s_, clave_selector_grant);
    }

  private:
    clave_selector *s_;
};

class selector
{
  public:
    using take_fn = std::function<void(leadership &l)>;

    /* `take` leads until it returns, on a thread of the selector's. */
    static result<selector> make(const client &c, const std::string &path, take_fn take,
                                 clave_selector_options options = CLAVE_SELECTOR_OPTIONS_INIT)
    {
        auto fn = std::make_unique<take_fn>(std::move(take));
        options.take_arg = fn.get();
        options.take = [](clave_selector *s, void *arg) noexcept {
            leadership l(s);
            (*static_cast<take_fn *>(arg))(l);
        };
        clave_selector *s = nullptr;
        clave_err err = clave_selector_new(&s, c.get(), path.c_str(), &options);
        if (err != CLAVE_OK)
            return c.failed(err);
        return selector(s, std::move(fn));
    }

    result<void> start()
    {
        return clave_selector_start(get());
    }
    result<void> requeue()
    {
        return clave_selector_requeue(get());
    }
    result<void> interrupt()
    {
        return clave_selector_interrupt(get());
    }
    void close()
    {
        clave_selector_close(get());
    }
    bool is_interrupted() const
    {
        return clave_selector_is_interrupted(get());
    }
    bool has_leadership() const
    {
        return clave_selector_has_leadership(get());
    }
    result<grant> held() const
    {
        return detail::granted(get(), clave_selector_grant);
    }
    /* Why it left the election without being closed. */
    result<void> error() const
    {
        return clave_selector_error(get());
    }
    clave_selector *get() const noexcept
    {
        return s_.get();
    }

  private:
    selector(clave_selector *s, std::unique_ptr<take_fn> fn) : fn_(std::move(fn)), s_(s)
    {
    }
    std::unique_ptr<take_fn> fn_; /* outlives the function that runs */
    detail::handle<clave_selector, clave_selector_free> s_;
};

} // namespace clave

#endif
