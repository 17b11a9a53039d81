/* grant.hpp - the proof that something is held, and the writes that only its holder may do:
 * clave/grant.h. Move-only. */
#ifndef CLAVE_CPP_GRANT_HPP
#define CLAVE_CPP_GRANT_HPP

#include "clave/cpp/client.hpp"
#include "clave/grant.h"

namespace clave
{

class dependence;

class grant
{
  public:
    explicit grant(clave_grant *g) : g_(g)
    {
    }

    const char *node() const
    {
        return clave_grant_node(get());
    }
    /* The fencing token, which grows with every grant. */
    std::int64_t token() const
    {
        return clave_grant_token(get());
    }
    std::int64_t session_id() const
    {
        return clave_grant_session_id(get());
    }
    /* True if it goes on with the hold that another process has handed over. */
    bool resumed() const
    {
        return clave_grant_is_resumed(get());
    }
    std::int64_t deadline() const
    {
        return clave_grant_deadline(get());
    }
    /* True while it is held and certainly will be for so long. */
    bool valid_for(timeout t = at_once) const
    {
        return clave_grant_valid_for(get(), t.ms());
    }

    /* From now on the hold ends unless alive() is called at least so often; at_once ends that.
     * ELOST: the grant is over, or the work was silent for too long: it has to stop. */
    result<void> depend(timeout every)
    {
        return clave_grant_depend(get(), every.ms());
    }
    result<void> alive()
    {
        return clave_grant_alive(get());
    }
    /* The same for a scope: the hold depends on its work as long as the returned object lives. */
    result<dependence> depend_here(timeout every);

    /* Guarded writes. ELOST: the grant is over, and nothing was done. */
    result<reply> create(const std::string &path, std::string_view data, timeout t,
                         clave_create_mode mode = CLAVE_PERSISTENT)
    {
        clave_reply *r = nullptr;
        clave_err err =
            clave_grant_create(get(), path.c_str(), data.data(), data.size(), mode, t.ms(), &r);
        reply owned(r);
        if (err != CLAVE_OK)
            return failure{err};
        return owned;
    }
    result<void> set(const std::string &path, std::string_view data, timeout t,
                     std::int32_t version = -1)
    {
        return clave_grant_set(get(), path.c_str(), data.data(), data.size(), version, t.ms());
    }
    result<void> remove(const std::string &path, timeout t, std::int32_t version = -1)
    {
        return clave_grant_delete(get(), path.c_str(), version, t.ms());
    }
    result<void> multi(const std::vector<clave_op> &ops, timeout t)
    {
        clave_grant *g = get();
        return clave_grant_multi(&g, 1, ops.data(), ops.size(), t.ms(), nullptr);
    }

    clave_grant *get() const noexcept
    {
        return g_.get();
    }

  private:
    detail::handle<clave_grant, clave_grant_free> g_;
};

/* A hold depends on its work until the end of a scope. Move-only. */
class dependence
{
  public:
    dependence(dependence &&) noexcept = default;
    dependence &
    operator=(dependence &&) = delete; /* the end of the old one would end the new one */
    ~dependence()
    {
        if (g_.get())
            (void)clave_grant_depend(g_.get(), 0);
    }
    /* A sign of life. ELOST: the grant is over, or this comes too late: the work has to stop. */
    result<void> alive()
    {
        return clave_grant_alive(g_.get());
    }

  private:
    friend class grant;
    explicit dependence(clave_grant *g) : g_(g)
    {
    }
    detail::handle<clave_grant, clave_grant_free> g_;
};

inline result<dependence> grant::depend_here(timeout every)
{
    clave_err err = clave_grant_depend(get(), every.ms());
    if (err != CLAVE_OK)
        return failure{err};
    return dependence(clave_grant_ref(get()));
}

/* One write that several grants guard, of one session. */
inline result<void> multi(const std::vector<const grant *> &grants,
                          const std::vector<clave_op> &ops, timeout t)
{
    std::vector<clave_grant *> all;
    for (const grant *g : grants)
        all.push_back(g->get());
    return clave_grant_multi(all.data(), all.size(), ops.data(), ops.size(), t.ms(), nullptr);
}

namespace detail
{
/* What a `..._grant` of the C API gives. */
template <class T> result<grant> granted(T *holder, clave_err (*take)(T *, clave_grant **))
{
    clave_grant *g = nullptr;
    clave_err err = take(holder, &g);
    if (err != CLAVE_OK)
        return failure{err};
    return grant(g);
}
} // namespace detail

} // namespace clave

#endif
