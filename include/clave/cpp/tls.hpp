/* tls.hpp - certificates for hosts with "tls:": clave/tls.h. Put get() into
 * clave_client_options.tls; clients keep it. */
#ifndef CLAVE_CPP_TLS_HPP
#define CLAVE_CPP_TLS_HPP

#include "clave/cpp/result.hpp"
#include "clave/tls.h"

namespace clave
{

class tls
{
  public:
    static result<tls> make(const clave_tls_options &options)
    {
        char fault[512] = "";
        clave_tls *t = nullptr;
        clave_err err = clave_tls_new(&t, &options, fault, sizeof fault);
        if (err != CLAVE_OK)
            return failure{err, fault};
        return tls(t);
    }
    clave_tls *get() const noexcept
    {
        return t_.get();
    }

  private:
    explicit tls(clave_tls *t) : t_(t)
    {
    }
    detail::handle<clave_tls, clave_tls_free> t_;
};

} // namespace clave

#endif
