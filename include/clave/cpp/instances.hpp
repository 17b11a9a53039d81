/* instances.hpp - the instances of a service, kept up to date: clave/instances.h. */
#ifndef CLAVE_CPP_INSTANCES_HPP
#define CLAVE_CPP_INSTANCES_HPP

#include "clave/cpp/client.hpp"
#include "clave/instances.h"

namespace clave
{

class instances
{
  public:
    using event_fn = std::function<void(const clave_instances_event &event)>;

    /* Of one service, or with an empty name of all of them. */
    static result<instances> make(const client &c, const std::string &service,
                                  event_fn on_event = {},
                                  clave_instances_options options = CLAVE_INSTANCES_OPTIONS_INIT)
    {
        options.service = service.empty() ? nullptr : service.c_str();
        auto fn = std::make_unique<event_fn>(std::move(on_event));
        clave_async_instances_cb *told = [](clave_async_instances *,
                                            const clave_instances_event *ev, void *arg) noexcept {
            (*static_cast<event_fn *>(arg))(*ev);
        };
        clave_instances *made = nullptr;
        clave_err err =
            clave_instances_new(&made, c.get(), &options, *fn ? told : nullptr, fn.get());
        if (err != CLAVE_OK)
            return c.failed(err);
        return instances(made, std::move(fn));
    }

    /* Waits until they are current. */
    result<void> wait(timeout t)
    {
        return clave_instances_wait(get(), t.ms());
    }
    /* visit(const clave_instances_entry &) -> bool: false ends it. On the loop's thread. */
    template <class Fn> result<void> walk(Fn visit) const
    {
        return clave_instances_walk(get(), &visit_with<Fn>, &visit);
    }
    /* visit(const clave_instances_entry &) -> bool, of the one that was picked. On the loop's
     * thread. ENONODE: none can be. */
    template <class Fn> result<void> pick(clave_pick how, Fn visit) const
    {
        return clave_instances_pick(get(), how, &visit_with<Fn>, &visit);
    }
    result<void> note_error(const std::string &path)
    {
        return clave_instances_note_error(get(), path.c_str());
    }
    clave_instances *get() const noexcept
    {
        return instances_.get();
    }

  private:
    instances(clave_instances *d, std::unique_ptr<event_fn> fn) : fn_(std::move(fn)), instances_(d)
    {
    }
    template <class Fn> static bool visit_with(const clave_instances_entry *e, void *arg) noexcept
    {
        return static_cast<bool>((*static_cast<Fn *>(arg))(*e));
    }
    std::unique_ptr<event_fn> fn_;
    detail::handle<clave_instances, clave_instances_free> instances_;
};

} // namespace clave

#endif
