/* slots.hpp - slots, which belong to an id and not to a session: clave/slots.h. */
#ifndef CLAVE_CPP_SLOTS_HPP
#define CLAVE_CPP_SLOTS_HPP

#include "clave/cpp/grant.hpp"
#include "clave/slots.h"

namespace clave
{

/* What a take tells of its slot. The destructor gives nothing back: the id owns the slot until
 * slots::give. */
class slot
{
  public:
    slot(clave_slot *s, bool taken) : s_(s), taken_(taken)
    {
    }
    /* False: the id owned it before this take. */
    bool taken() const noexcept
    {
        return taken_;
    }
    /* The fencing token, which grows with every take. */
    std::int64_t token() const noexcept
    {
        return s_->token;
    }
    const clave_slot &operator*() const noexcept
    {
        return *s_;
    }
    const clave_slot *operator->() const noexcept
    {
        return s_.get();
    }
    clave_slot *get() const noexcept
    {
        return s_.get();
    }

  private:
    detail::handle<clave_slot, clave_slot_free> s_;
    bool taken_;
};

/* The slots that are owned, the oldest first: a range of clave_slot. */
class slot_list
{
  public:
    explicit slot_list(clave_slots_view *v) : v_(v)
    {
    }
    const clave_slot *begin() const noexcept
    {
        return v_->slots;
    }
    const clave_slot *end() const noexcept
    {
        return v_->slots + v_->n;
    }
    std::size_t size() const noexcept
    {
        return v_->n;
    }
    const clave_slot &operator[](std::size_t i) const
    {
        return v_->slots[i];
    }
    /* -1: none is set. */
    std::int64_t limit() const noexcept
    {
        return v_->limit;
    }
    /* The slot that was broken last, by whom and why; its id is NULL: none was. */
    const clave_slot &broken() const noexcept
    {
        return v_->broken;
    }

  private:
    detail::handle<clave_slots_view, clave_slots_view_free> v_;
};

class slots
{
  public:
    using event_fn = std::function<void(const clave_slots_event &event)>;

    static result<slots> make(const client &c, const std::string &path,
                              clave_slots_options options = CLAVE_SLOTS_OPTIONS_INIT,
                              event_fn on_event = {})
    {
        auto fn = on_event ? std::make_unique<event_fn>(std::move(on_event)) : nullptr;
        if (fn) {
            options.event_arg = fn.get();
            options.event_cb = [](clave_async_slots *, const clave_slots_event *ev,
                                  void *arg) noexcept { (*static_cast<event_fn *>(arg))(*ev); };
        }
        clave_slots *s = nullptr;
        clave_err err = clave_slots_new(&s, c.get(), path.c_str(), &options);
        if (err != CLAVE_OK)
            return c.failed(err);
        return slots(s, std::move(fn));
    }

    /* Of `as` the id, the host, `by` and the reason count. */
    result<slot> take(const clave_slot &as, timeout t = forever)
    {
        clave_slot *s = nullptr;
        bool taken = false;
        clave_err err = clave_slots_take(get(), &as, t.ms(), &s, &taken);
        if (err != CLAVE_OK)
            return failure{err};
        return slot(s, taken);
    }
    result<slot> take(const std::string &id, timeout t = forever)
    {
        clave_slot as = {};
        as.id = id.c_str();
        return take(as, t);
    }
    /* Ends every take that waits in another thread. */
    void cancel()
    {
        clave_slots_cancel(get());
    }

    /* The token of the slot that was given back; 0: the id owned none, or none of this token. */
    result<std::int64_t> give(const std::string &id, timeout t, std::int64_t token = 0)
    {
        std::int64_t given = 0;
        clave_err err = clave_slots_give(get(), id.c_str(), token, t.ms(), &given);
        if (err != CLAVE_OK)
            return failure{err};
        return given;
    }
    /* Of `which` the id, the token (0: any), `by` and the reason, which is due, count. */
    result<std::int64_t> break_slot(const clave_slot &which, timeout t)
    {
        std::int64_t broken = 0;
        clave_err err = clave_slots_break(get(), &which, t.ms(), &broken);
        if (err != CLAVE_OK)
            return failure{err};
        return broken;
    }
    result<void> set_limit(std::uint32_t limit, timeout t)
    {
        return clave_slots_set_limit(get(), limit, t.ms());
    }
    /* What a slot is worth, for guarded writes. */
    result<grant> held(const slot &s) const
    {
        clave_grant *g = nullptr;
        clave_err err = clave_slots_grant(get(), s.get(), &g);
        if (err != CLAVE_OK)
            return failure{err};
        return grant(g);
    }
    clave_slots *get() const noexcept
    {
        return s_.get();
    }

  private:
    slots(clave_slots *s, std::unique_ptr<event_fn> fn) : fn_(std::move(fn)), s_(s)
    {
    }
    std::unique_ptr<event_fn> fn_;
    detail::handle<clave_slots, clave_slots_free> s_;
};

/* The owners of the slots at a path. */
inline result<slot_list> list_slots(const client &c, const std::string &path, timeout t)
{
    clave_slots_view *v = nullptr;
    clave_err err = clave_slots_list(c.get(), path.c_str(), t.ms(), &v);
    if (err != CLAVE_OK)
        return c.failed(err);
    return slot_list(v);
}

} // namespace clave

#endif
