/* openapi_and_page_api.h - what is the same for everybody: /v1/openapi.json, and the files of the
 * page below /ui/. */
#ifndef CLAVE_WEB_API_OPENAPI_AND_PAGE_API_H
#define CLAVE_WEB_API_OPENAPI_AND_PAGE_API_H

#include "web/http/exchange.h"

web_handler clave__web_get_openapi, clave__web_get_page, clave__web_get_to_page;

/* The files of the page, src/page, compressed, for struct web_options. Made by
 * cmake/page_assets.cmake. */
extern const struct web_asset clave__page_assets[];
extern const size_t clave__page_nassets;

#endif
