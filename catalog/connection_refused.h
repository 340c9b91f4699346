#pragma once

#include <cstdint>
#include <string>

namespace nam::catalog {

/// Dials HOST:PORT by TCP: whether every address of the host answers that nobody listens. A process that is
/// stopped does not refuse: the kernel takes connections for it. A firewall that rejects looks like a
/// refusal.
bool ConnectionRefused(const std::string& address, int64_t timeout_us);

}  // namespace nam::catalog
