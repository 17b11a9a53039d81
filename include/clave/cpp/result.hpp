/* result.hpp - what every call returns: a value, or a clave_err with its text. */
#ifndef CLAVE_CPP_RESULT_HPP
#define CLAVE_CPP_RESULT_HPP

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "clave/err.h"

namespace clave
{

#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wweak-vtables" /* there is no other file to put it into */
#endif
/* Thrown by result::value. */
class error : public std::runtime_error
{
  public:
    explicit error(clave_err code, const std::string &detail = {})
        : std::runtime_error(std::string(clave_err_name(code)) + ": " + clave_strerror(code) +
                             (detail.empty() ? "" : ": " + detail)),
          code_(code)
    {
    }
    clave_err code() const noexcept
    {
        return code_;
    }
    /* RETRY, UNKNOWN, FINAL or FATAL: see clave/err.h. */
    clave_err_class err_class() const noexcept
    {
        return clave_err_classify(code_);
    }

  private:
    clave_err code_;
};

namespace detail
{
[[noreturn]] inline void fail(clave_err code, const std::string &text)
{
#if defined(__cpp_exceptions)
    throw error(code, text);
#else
    (void)code;
    (void)text;
    std::abort();
#endif
}
} // namespace detail

/* A failure, to be returned as any result. */
struct failure {
    clave_err code;
    std::string detail = {};
};

template <class T> class [[nodiscard]] result
{
  public:
    result(T value) : value_(std::move(value))
    {
    }
    result(failure f) : code_(f.code), detail_(std::move(f.detail))
    {
    }

    explicit operator bool() const noexcept
    {
        return value_.has_value();
    }
    clave_err code() const noexcept
    {
        return code_;
    }
    clave_err_class err_class() const noexcept
    {
        return clave_err_classify(code_);
    }
    /* What the client's latest fault said; may be empty. */
    const std::string &detail() const noexcept
    {
        return detail_;
    }

    T &value() &
    {
        return check(), *value_;
    }
    const T &value() const &
    {
        return check(), *value_;
    }
    T value() && /* not a reference: safe in a range-for */
    {
        return check(), *std::move(value_);
    }
    T &operator*() &
    {
        return value();
    }
    const T &operator*() const &
    {
        return value();
    }
    T operator*() &&
    {
        return std::move(*this).value();
    }
    T *operator->()
    {
        return &value();
    }
    const T *operator->() const
    {
        return &value();
    }

  private:
    void check() const
    {
        if (!value_)
            detail::fail(code_, detail_);
    }
    std::optional<T> value_;
    clave_err code_ = CLAVE_OK;
    std::string detail_;
};

template <> class [[nodiscard]] result<void>
{
  public:
    result() = default;
    result(clave_err code) : code_(code)
    {
    }
    result(failure f) : code_(f.code), detail_(std::move(f.detail))
    {
    }

    explicit operator bool() const noexcept
    {
        return code_ == CLAVE_OK;
    }
    clave_err code() const noexcept
    {
        return code_;
    }
    clave_err_class err_class() const noexcept
    {
        return clave_err_classify(code_);
    }
    const std::string &detail() const noexcept
    {
        return detail_;
    }
    void value() const
    {
        if (code_ != CLAVE_OK)
            detail::fail(code_, detail_);
    }

  private:
    clave_err code_ = CLAVE_OK;
    std::string detail_;
};

/* How long a call may take: any duration, or `forever`. */
class timeout
{
  public:
    template <class Rep, class Period>
    constexpr timeout(std::chrono::duration<Rep, Period> d)
        : ms_(std::max<std::int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(d).count()))
    {
    }
    static constexpr timeout never()
    {
        return timeout(-1);
    }
    std::int64_t ms() const noexcept
    {
        return ms_;
    }

  private:
    constexpr explicit timeout(std::int64_t ms) : ms_(ms)
    {
    }
    std::int64_t ms_;
};
inline constexpr timeout forever = timeout::never();
inline constexpr timeout at_once = std::chrono::milliseconds(0); /* only if it is free now */

namespace detail
{
template <class T, void (*Free)(T *)> struct deleter {
    void operator()(T *p) const noexcept
    {
        Free(p);
    }
};
template <class T, void (*Free)(T *)> using handle = std::unique_ptr<T, deleter<T, Free>>;
} // namespace detail

} // namespace clave

#endif
