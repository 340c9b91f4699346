#pragma once

#include <string>

#include "fabric/tcp/wire.h"

namespace nam::fabric::tcp {

/// Random bytes that a peer cannot predict.
void FillRandom(std::span<uint8_t> bytes);

/// HMAC-SHA256. What is signed begins with a label of its own, so that no signature serves two ends.
Mac Sign(const std::string& secret, const std::string& text);

Mac ProveClient(const std::string& secret, const ClientHello& hello, const ServerChallenge& challenge);
Mac ProveServer(const std::string& secret, const ClientHello& hello, const ServerChallenge& challenge,
                const ServerVerdict& verdict);
/// What the member that A names answers.
MemberChallenge ChallengeMember(const std::string& secret, const ClientHello& hello,
                                const ServerChallenge& challenge);
/// In constant time.
bool SameMac(const Mac& a, const Mac& b);

}  // namespace nam::fabric::tcp
