#pragma once

#include <string>
#include <string_view>

namespace nam::catalog {

/// Classifies the first bytes of a connection.
enum class Hello {
  kIncomplete,  // an incomplete TLS ClientHello
  kComplete,    // a ClientHello; `name` is the requested server, empty if none
  kForeign,     // no ClientHello, or its first record lacks the name
};

/// Extracts the server name (RFC 6066) from the first bytes of a TLS client. Accepts arbitrary bytes. `name`
/// points into them.
Hello ParseHello(std::string_view bytes, std::string_view* name);

}  // namespace nam::catalog
