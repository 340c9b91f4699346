#pragma once

#include <string>

#include "fabric/tcp/wire.h"

namespace nam::fabric::tcp {

/// Random bytes that a peer cannot predict.
void FillRandom(std::span<uint8_t> bytes);

Mac ProveClient(const std::string& secret, const ClientHello& hello, const ServerChallenge& challenge);
Mac ProveServer(const std::string& secret, const ClientHello& hello, const ServerChallenge& challenge,
                const ServerVerdict& verdict);
/// In constant time.
bool SameMac(const Mac& a, const Mac& b);

}  // namespace nam::fabric::tcp
