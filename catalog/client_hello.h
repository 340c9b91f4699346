#pragma once

#include <string>
#include <string_view>

namespace nam::catalog {

/// What the first bytes of a connection are.
enum class Hello {
  kIncomplete,  // the beginning of a TLS ClientHello, as far as it goes
  kComplete,    // a ClientHello; `name` is the server that it asks for, empty if it names none
  kForeign,     // no ClientHello, or one whose name is not in its first record
};

/// Reads the server name (RFC 6066) out of the bytes that a TLS client sends first. Trusts nothing: bytes may
/// be any. `name` points into them.
Hello ParseHello(std::string_view bytes, std::string_view* name);

}  // namespace nam::catalog
