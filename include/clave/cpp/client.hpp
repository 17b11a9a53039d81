/* client.hpp - a session, and the tree: clave/client.h. */
#ifndef CLAVE_CPP_CLIENT_HPP
#define CLAVE_CPP_CLIENT_HPP

#include <functional>
#include <string_view>
#include <vector>

#include "clave/client.h"
#include "clave/cpp/result.hpp"

namespace clave
{

/* An answer with all that it points to. */
class reply
{
  public:
    explicit reply(clave_reply *r) : r_(r)
    {
    }
    const char *path() const noexcept
    {
        return r_->path;
    }
    std::string_view data() const noexcept
    {
        return r_->data ? std::string_view(static_cast<const char *>(r_->data), r_->len)
                        : std::string_view();
    }
    const clave_stat &stat() const noexcept
    {
        return r_->stat;
    }
    std::vector<std::string> names() const
    {
        return {r_->names, r_->names + r_->nnames};
    }
    /* Of a transaction: the error of each operation. */
    std::vector<clave_err> errors() const
    {
        return {r_->op_errs, r_->op_errs + r_->nops};
    }
    const clave_reply *get() const noexcept
    {
        return r_.get();
    }

  private:
    detail::handle<clave_reply, clave_reply_free> r_;
};

/* A thread for any number of clients: clave_loop. */
class loop
{
  public:
    static result<loop> make()
    {
        clave_loop *l = nullptr;
        clave_err err = clave_loop_new(&l);
        if (err != CLAVE_OK)
            return failure{err};
        return loop(l);
    }
    clave_loop *get() const noexcept
    {
        return l_.get();
    }

  private:
    explicit loop(clave_loop *l) : l_(l)
    {
    }
    detail::handle<clave_loop, clave_loop_free> l_;
};

class client
{
  public:
    using state_fn = std::function<void(clave_state state, clave_err why)>;

    /* `options` as of clave_client_options, but its callback is `on_state`. Does not wait. */
    static result<client> open(const std::string &hosts,
                               clave_client_options options = CLAVE_CLIENT_OPTIONS_INIT,
                               state_fn on_state = {}, const loop *on = nullptr)
    {
        auto fn = on_state ? std::make_unique<state_fn>(std::move(on_state)) : nullptr;
        if (fn) {
            options.state_cb = told;
            options.state_arg = fn.get();
        }
        clave_client *c = nullptr;
        clave_err err = clave_client_open(&c, on ? on->get() : nullptr,
                                          hosts.empty() ? nullptr : hosts.c_str(), &options);
        client made(c, std::move(fn));
        if (err != CLAVE_OK)
            return failure{err, made.errmsg()};
        return result<client>(std::move(made));
    }

    result<void> wait(timeout t)
    {
        return done(clave_client_wait(get(), t.ms()));
    }
    result<void> set_hosts(const std::string &hosts)
    {
        return done(clave_client_set_hosts(get(), hosts.c_str()));
    }
    clave_state state() const
    {
        return clave_client_state(get());
    }
    std::int64_t id() const
    {
        return clave_client_id(get());
    }
    /* The text of the latest fault. */
    std::string errmsg() const
    {
        char text[512];
        return clave_client_errmsg(get(), text, sizeof text);
    }
    /* Hands the session and what is held over to another process, which passes the file's name in
     * clave_client_options.resume_file. When it succeeds, nothing here counts on it any more. */
    result<void> hand_over(const std::string &file, timeout t)
    {
        return done(clave_client_hand_over(get(), file.c_str(), t.ms()));
    }
    /* Ends the session, and waits for it; the destructor waits five seconds. */
    void close(timeout t)
    {
        clave_client *c = c_.release();
        if (c)
            clave_client_close(c, t.ms());
    }

    /* ---- the tree ----------------------------------------------------------------------- */

    result<reply> create(const std::string &path, std::string_view data, timeout t,
                         const clave_create_options *o = nullptr)
    {
        clave_reply *r = nullptr;
        clave_err err = clave_create(get(), path.c_str(), data.data(), data.size(), o, t.ms(), &r);
        return answer(err, r);
    }
    result<reply> get_data(const std::string &path, timeout t)
    {
        clave_reply *r = nullptr;
        clave_err err = clave_get(get(), path.c_str(), t.ms(), &r);
        return answer(err, r);
    }
    result<reply> set(const std::string &path, std::string_view data, timeout t,
                      std::int32_t version = -1)
    {
        clave_reply *r = nullptr;
        clave_err err =
            clave_set(get(), path.c_str(), data.data(), data.size(), version, t.ms(), &r);
        return answer(err, r);
    }
    result<void> remove(const std::string &path, timeout t, std::int32_t version = -1)
    {
        return done(clave_delete(get(), path.c_str(), version, t.ms()));
    }
    result<reply> exists(const std::string &path, timeout t)
    {
        clave_reply *r = nullptr;
        clave_err err = clave_exists(get(), path.c_str(), t.ms(), &r);
        return answer(err, r);
    }
    result<reply> children(const std::string &path, timeout t)
    {
        clave_reply *r = nullptr;
        clave_err err = clave_children(get(), path.c_str(), t.ms(), &r);
        return answer(err, r);
    }
    result<reply> get_acl(const std::string &path, timeout t)
    {
        clave_reply *r = nullptr;
        clave_err err = clave_get_acl(get(), path.c_str(), t.ms(), &r);
        return answer(err, r);
    }
    result<reply> set_acl(const std::string &path, const std::vector<clave_acl> &acls, timeout t,
                          std::int32_t version = -1)
    {
        clave_reply *r = nullptr;
        clave_err err =
            clave_set_acl(get(), path.c_str(), acls.data(), acls.size(), version, t.ms(), &r);
        return answer(err, r);
    }
    /* All operations or none. */
    result<reply> multi(const std::vector<clave_op> &ops, timeout t)
    {
        clave_reply *r = nullptr;
        clave_err err = clave_multi(get(), ops.data(), ops.size(), t.ms(), &r);
        return answer(err, r);
    }
    result<void> sync(const std::string &path, timeout t)
    {
        return done(clave_sync(get(), path.c_str(), t.ms()));
    }
    result<void> add_auth(const std::string &scheme, std::string_view auth, timeout t)
    {
        return done(clave_add_auth(get(), scheme.c_str(), auth.data(), auth.size(), t.ms()));
    }

    /* ---- the loop's thread: for the asynchronous API ------------------------------------ */

    /* Runs fn(clave_async_client *) there, and waits for it. */
    template <class Fn> result<void> run(Fn fn)
    {
        return clave_client_run(
            get(), [](clave_async_client *c, void *arg) noexcept { (*static_cast<Fn *>(arg))(c); },
            &fn);
    }
    /* The same, later. */
    template <class Fn> result<void> post(Fn fn)
    {
        auto copy = std::make_unique<Fn>(std::move(fn));
        clave_err err = clave_client_post(
            get(),
            [](clave_async_client *c, void *arg) noexcept {
                std::unique_ptr<Fn> own(static_cast<Fn *>(arg));
                (*own)(c);
            },
            copy.get());
        if (err == CLAVE_OK)
            (void)copy.release();
        return err;
    }

    clave_client *get() const noexcept
    {
        return c_.get();
    }
    /* A failure of a call on this client, with its text. */
    failure failed(clave_err err) const
    {
        return {err, c_ ? errmsg() : std::string()};
    }
    result<void> done(clave_err err) const
    {
        return err == CLAVE_OK ? result<void>() : result<void>(failed(err));
    }

  private:
    struct closer {
        void operator()(clave_client *c) const noexcept
        {
            clave_client_close(c, 5000);
        }
    };
    client(clave_client *c, std::unique_ptr<state_fn> fn) : fn_(std::move(fn)), c_(c)
    {
    }
    static void told(clave_async_client *, clave_state state, clave_err why, void *arg) noexcept
    {
        (*static_cast<state_fn *>(arg))(state, why);
    }
    result<reply> answer(clave_err err, clave_reply *r) const
    {
        reply owned(r);
        if (err != CLAVE_OK)
            return failed(err);
        return owned;
    }

    std::unique_ptr<state_fn> fn_; /* outlives the client */
    std::unique_ptr<clave_client, closer> c_;
};

} // namespace clave

#endif
