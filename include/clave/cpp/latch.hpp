/* latch.hpp - a candidate of an election: clave/latch.h. */
#ifndef CLAVE_CPP_LATCH_HPP
#define CLAVE_CPP_LATCH_HPP

#include "clave/cpp/grant.hpp"
#include "clave/latch.h"

namespace clave
{

class latch
{
  public:
    using event_fn = std::function<void(const clave_latch_event &event)>;

    static result<latch> make(const client &c, const std::string &path,
                              clave_latch_options options = CLAVE_LATCH_OPTIONS_INIT,
                              event_fn on_event = {})
    {
        auto fn = on_event ? std::make_unique<event_fn>(std::move(on_event)) : nullptr;
        if (fn) {
            options.event_arg = fn.get();
            options.event_cb = [](clave_async_latch *, const clave_latch_event *ev,
                                  void *arg) noexcept { (*static_cast<event_fn *>(arg))(*ev); };
        }
        clave_latch *l = nullptr;
        clave_err err = clave_latch_new(&l, c.get(), path.c_str(), &options);
        if (err != CLAVE_OK)
            return c.failed(err);
        return latch(l, std::move(fn));
    }

    result<void> start()
    {
        return clave_latch_start(get());
    }
    result<void> resign()
    {
        return clave_latch_resign(get());
    }
    result<void> close(timeout t, clave_latch_close_mode mode = CLAVE_CLOSE_SILENT)
    {
        return clave_latch_close(get(), mode, t.ms());
    }
    /* Waits until it leads. */
    result<void> await(timeout t = forever)
    {
        return clave_latch_await(get(), t.ms());
    }
    /* Waits until the present term is over. */
    result<void> await_loss(timeout t = forever)
    {
        return clave_latch_await_loss(get(), t.ms());
    }
    /* Ends every await in another thread. */
    void cancel()
    {
        clave_latch_cancel(get());
    }
    bool has_leadership() const
    {
        return clave_latch_has_leadership(get());
    }
    result<grant> held() const
    {
        return detail::granted(get(), clave_latch_grant);
    }
    result<void> publish(std::string_view value, timeout t)
    {
        return clave_latch_publish(get(), value.data(), value.size(), t.ms());
    }
    /* Hands leadership over to the candidate whose node has this name. */
    result<void> transfer(const std::string &node, timeout t)
    {
        return clave_latch_transfer(get(), node.c_str(), t.ms());
    }
    clave_latch *get() const noexcept
    {
        return l_.get();
    }

  private:
    latch(clave_latch *l, std::unique_ptr<event_fn> fn) : fn_(std::move(fn)), l_(l)
    {
    }
    std::unique_ptr<event_fn> fn_;
    detail::handle<clave_latch, clave_latch_free> l_;
};

} // namespace clave

#endif
