#pragma once

#include <string>
#include <string_view>

namespace nam::catalog {

/// What tells a member from others that know the secret: 128 random bits.
std::string MakeMemberProof();

/// Takes the same time wherever the two differ, so that a proof cannot be guessed byte by byte.
bool SameProof(std::string_view a, std::string_view b);

}  // namespace nam::catalog
