/* instances.hpp - the instances of a service, kept up to date: clave/instances.h. */
#ifndef CLAVE_CPP_INSTANCES_HPP
#define CLAVE_CPP_INSTANCES_HPP

#include "clave/cpp/client.hpp"
#include "clave/instances.h"

namespace clave
{

/* The JSON for uri_spec of a text such as "{scheme}://{address}:{port}/v1". EINVAL: it is no spec.
 */
inline result<std::string> uri_spec(const std::string &text)
{
    if (const char *fault = clave_uri_spec_fault(text.c_str()))
        return failure{CLAVE_EINVAL, "the URI " + text + " " + fault};
    std::string out(clave_uri_spec_format(text.c_str(), nullptr, 0) + 1, '\0');
    out.resize(clave_uri_spec_format(text.c_str(), out.data(), out.size()));
    return out;
}
/* The URI that its uri_spec makes of an instance; empty: it has none. */
inline std::string uri_of(const clave_instance &i)
{
    std::string out(clave_instance_uri(&i, nullptr, 0) + 1, '\0');
    out.resize(clave_instance_uri(&i, out.data(), out.size()));
    return out;
}
/* The data of an instance's node, for a persistent_node at BASE/SERVICE/ID. EINVAL if the instance
 * cannot be registered. */
inline result<std::string> instance_data(const clave_instance &i)
{
    if (const char *fault = clave_instance_fault(&i))
        return failure{CLAVE_EINVAL, std::string("the instance ") + fault};
    std::string out(clave_instance_format(&i, nullptr, 0) + 1, '\0');
    out.resize(clave_instance_format(&i, out.data(), out.size()));
    return out;
}

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
