/* cache.hpp - a copy of a tree in memory, kept up to date: clave/cache.h. */
#ifndef CLAVE_CPP_CACHE_HPP
#define CLAVE_CPP_CACHE_HPP

#include "clave/cache.h"
#include "clave/cpp/client.hpp"

namespace clave
{

class cache
{
  public:
    using event_fn = std::function<void(const clave_cache_event &event)>;
    using filter_fn = std::function<clave_cache_take(const char *path)>;

    static result<cache> make(const client &c, const std::string &path, event_fn on_event = {},
                              clave_cache_options options = CLAVE_CACHE_OPTIONS_INIT,
                              filter_fn filter = {})
    {
        auto fn = std::make_unique<handlers>(handlers{std::move(on_event), std::move(filter)});
        if (fn->filter) {
            options.filter_arg = fn.get();
            options.filter = [](const char *at, void *arg) noexcept {
                return static_cast<handlers *>(arg)->filter(at);
            };
        }
        clave_async_cache_cb *told = [](clave_async_cache *, const clave_cache_event *ev,
                                        void *arg) noexcept {
            static_cast<handlers *>(arg)->on_event(*ev);
        };
        clave_cache *made = nullptr;
        clave_err err = clave_cache_new(&made, c.get(), path.c_str(), &options,
                                        fn->on_event ? told : nullptr, fn.get());
        if (err != CLAVE_OK)
            return c.failed(err);
        return cache(made, std::move(fn));
    }

    /* Waits until it is current. */
    result<void> wait(timeout t)
    {
        return clave_cache_wait(get(), t.ms());
    }
    result<reply> find(const std::string &path) const
    {
        clave_reply *r = nullptr;
        clave_err err = clave_cache_get(get(), path.c_str(), &r);
        return answer(err, r);
    }
    result<reply> children(const std::string &path) const
    {
        clave_reply *r = nullptr;
        clave_err err = clave_cache_children(get(), path.c_str(), &r);
        return answer(err, r);
    }
    /* visit(const clave_cache_node &) -> bool: false ends it. On the loop's thread. */
    template <class Fn> result<void> walk(const std::string &path, Fn visit) const
    {
        return clave_cache_walk(
            get(), path.c_str(),
            [](const clave_cache_node *n, void *arg) noexcept {
                return static_cast<bool>((*static_cast<Fn *>(arg))(*n));
            },
            &visit);
    }
    clave_cache_status status() const
    {
        return clave_cache_status_of(get());
    }
    clave_cache *get() const noexcept
    {
        return cache_.get();
    }

  private:
    struct handlers {
        event_fn on_event;
        filter_fn filter;
    };
    cache(clave_cache *c, std::unique_ptr<handlers> fn) : fn_(std::move(fn)), cache_(c)
    {
    }
    static result<reply> answer(clave_err err, clave_reply *r)
    {
        reply owned(r);
        if (err != CLAVE_OK)
            return failure{err};
        return owned;
    }
    std::unique_ptr<handlers> fn_;
    detail::handle<clave_cache, clave_cache_free> cache_;
};

} // namespace clave

#endif
