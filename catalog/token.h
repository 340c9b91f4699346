#pragma once

#include <string>
#include <string_view>

namespace nam::catalog {

/// The metadata value of `nam-token` that goes with every gRPC call of the control plane: a keyed hash
/// of the secret, so that the secret itself never crosses the wire.
std::string ControlToken(const std::string& secret);
inline constexpr char kTokenKey[] = "nam-token";

/// What tells a member from others that know the secret: 128 random bits.
std::string MakeMemberProof();

/// Takes the same time wherever the two differ, so that a token cannot be guessed byte by byte.
bool SameToken(std::string_view a, std::string_view b);

}  // namespace nam::catalog
