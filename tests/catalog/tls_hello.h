#pragma once

#include <string>

namespace nam {

/// A number in network order.
inline std::string BigEndian(size_t number, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(number >> (8 * i)));
  return text;
}

/// The part, preceded by its length.
inline std::string Prefixed(const std::string& part, int bytes) {
  return BigEndian(part.size(), bytes) + part;
}

/// A ClientHello for the server `name`, after an extension of another kind. Sufficient for readers of the
/// name alone.
inline std::string TlsHello(const std::string& name) {
  const std::string server_name = Prefixed(BigEndian(0, 1) + Prefixed(name, 2), 2);
  const std::string extensions =
      BigEndian(23, 2) + Prefixed("", 2) + BigEndian(0, 2) + Prefixed(server_name, 2);
  const std::string hello = BigEndian(0x0303, 2) + std::string(32, 'r') + Prefixed("session", 1) +
                            Prefixed(BigEndian(0x1301, 2), 2) + Prefixed(std::string(1, '\0'), 1) +
                            Prefixed(extensions, 2);
  return BigEndian(0x160301, 3) + Prefixed(BigEndian(1, 1) + Prefixed(hello, 3), 2);
}

}  // namespace nam
