/* persistent_node.hpp - a node that stays as long as its owner: clave/persistent_node.h. */
#ifndef CLAVE_CPP_PERSISTENT_NODE_HPP
#define CLAVE_CPP_PERSISTENT_NODE_HPP

#include "clave/cpp/client.hpp"
#include "clave/persistent_node.h"

namespace clave
{

/* The destructor deletes an ephemeral node, without waiting. */
class persistent_node
{
  public:
    using event_fn = std::function<void(const clave_persistent_node_event &event)>;

    /* Does not wait for the node; `data` are those of the options if it is empty. */
    static result<persistent_node>
    make(const client &c, const std::string &path, std::string_view data = {},
         clave_persistent_node_options options = CLAVE_PERSISTENT_NODE_OPTIONS_INIT,
         event_fn on_event = {})
    {
        auto fn = on_event ? std::make_unique<event_fn>(std::move(on_event)) : nullptr;
        if (fn) {
            options.event_arg = fn.get();
            options.event_cb = [](clave_async_persistent_node *,
                                  const clave_persistent_node_event *ev,
                                  void *arg) noexcept { (*static_cast<event_fn *>(arg))(*ev); };
        }
        if (!data.empty()) {
            options.data = data.data();
            options.len = data.size();
        }
        clave_persistent_node *n = nullptr;
        clave_err err = clave_persistent_node_new(&n, c.get(), path.c_str(), &options);
        if (err != CLAVE_OK)
            return c.failed(err);
        return persistent_node(n, std::move(fn));
    }

    /* Waits until the node is there. */
    result<void> await(timeout t)
    {
        return clave_persistent_node_await(get(), t.ms());
    }
    result<void> set(std::string_view data, timeout t)
    {
        return clave_persistent_node_set(get(), data.data(), data.size(), t.ms());
    }
    /* Deletes the node, and waits until it is gone. */
    result<void> close(timeout t)
    {
        return clave_persistent_node_close(get(), t.ms());
    }
    bool is_present() const
    {
        return clave_persistent_node_is_present(get());
    }
    std::string path() const
    {
        std::string out(clave_persistent_node_path(get(), nullptr, 0) + 1, '\0');
        out.resize(clave_persistent_node_path(get(), out.data(), out.size()));
        return out;
    }
    clave_persistent_node *get() const noexcept
    {
        return node_.get();
    }

  private:
    persistent_node(clave_persistent_node *n, std::unique_ptr<event_fn> fn)
        : fn_(std::move(fn)), node_(n)
    {
    }
    std::unique_ptr<event_fn> fn_;
    detail::handle<clave_persistent_node, clave_persistent_node_free> node_;
};

} // namespace clave

#endif
