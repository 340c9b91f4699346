#pragma once

#include <string>

#include "fabric/net/handshake_wire.h"

namespace nam::fabric::net {

/// Fills `bytes` with unpredictable random bytes.
void FillRandom(std::span<uint8_t> bytes);

/// HMAC-SHA256. Each signed text begins with a distinct label, so no signature serves two purposes.
Mac Sign(const std::string& secret, const std::string& text);

Mac ProveClient(const std::string& secret, const ClientHello& hello, const ServerChallenge& challenge);
Mac ProveServer(const std::string& secret, const ClientHello& hello, const ServerChallenge& challenge,
                const ServerVerdict& verdict);
/// The challenge that the member named by A must answer.
MemberChallenge ChallengeMember(const std::string& secret, const ClientHello& hello,
                                const ServerChallenge& challenge);
/// Compares in constant time.
bool SameMac(const Mac& a, const Mac& b);

}  // namespace nam::fabric::net
