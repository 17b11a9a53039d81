/* observe.hpp - who is in a queue, which owners wait for each other, and the metrics of this
 * process: clave/participants.h, clave/deadlock.h, clave/metrics.h. */
#ifndef CLAVE_CPP_OBSERVE_HPP
#define CLAVE_CPP_OBSERVE_HPP

#include "clave/async/latch.h"
#include "clave/async/semaphore.h"
#include "clave/cpp/client.hpp"
#include "clave/deadlock.h"
#include "clave/metrics.h"
#include "clave/participants.h"

namespace clave
{

/* The participants of a queue, in its order: a range of clave_participant. */
class participant_list
{
  public:
    explicit participant_list(clave_participant_list *l) : l_(l)
    {
    }
    const clave_participant *begin() const noexcept
    {
        return l_->list;
    }
    const clave_participant *end() const noexcept
    {
        return l_->list + l_->n;
    }
    std::size_t size() const noexcept
    {
        return l_->n;
    }
    const clave_participant &operator[](std::size_t i) const
    {
        return l_->list[i];
    }

  private:
    detail::handle<clave_participant_list, clave_participant_list_free> l_;
};

/* Of a lock; clave_async_latch_participants and clave_async_semaphore_participants for others. */
inline result<participant_list> participants(const client &c, const std::string &path, timeout t,
                                             clave_participants_fn *of = clave_async_participants)
{
    clave_participant_list *l = nullptr;
    clave_err err = clave_participants(c.get(), of, path.c_str(), t.ms(), &l);
    if (err != CLAVE_OK)
        return c.failed(err);
    return participant_list(l);
}

/* A range of clave_deadlock. */
class deadlock_list
{
  public:
    explicit deadlock_list(clave_deadlocks *d) : d_(d)
    {
    }
    const clave_deadlock *begin() const noexcept
    {
        return d_->list;
    }
    const clave_deadlock *end() const noexcept
    {
        return d_->list + d_->n;
    }
    std::size_t size() const noexcept
    {
        return d_->n;
    }

  private:
    detail::handle<clave_deadlocks, clave_deadlocks_free> d_;
};

/* Looks at these paths and everything below them. */
inline result<deadlock_list> find_deadlocks(const client &c, const std::vector<std::string> &roots,
                                            timeout t)
{
    std::vector<const char *> all;
    for (const std::string &r : roots)
        all.push_back(r.c_str());
    clave_deadlocks *d = nullptr;
    clave_err err = clave_deadlocks_find(c.get(), all.data(), all.size(), t.ms(), &d);
    if (err != CLAVE_OK)
        return c.failed(err);
    return deadlock_list(d);
}

/* A page for Prometheus, of all clients of the process. */
inline result<std::string> metrics(clave_metrics_format format = CLAVE_METRICS_TEXT)
{
    std::string page;
    clave_err err = clave_metrics_write(
        format,
        [](void *arg, const char *text, size_t n) noexcept {
            static_cast<std::string *>(arg)->append(text, n);
            return CLAVE_OK;
        },
        &page);
    if (err != CLAVE_OK)
        return failure{err};
    return page;
}
inline std::string metrics_content_type(clave_metrics_format format)
{
    return clave_metrics_content_type(format);
}
/* The format for a request with this Accept header; "": it has none. */
inline clave_metrics_format metrics_accepted(const std::string &accept)
{
    return clave_metrics_accepted(accept.empty() ? nullptr : accept.c_str());
}

} // namespace clave

#endif
