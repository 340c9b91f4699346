#pragma once

#include <array>
#include <span>
#include <string_view>

/// The benchmark's fixed value sets. All text lives forever, so batches refer to it without copies.
namespace nam::ssb {

inline constexpr int kCitiesPerNation = 10;

/// 250 cities; those of nation n are [10 n, 10 n + 10): its name cut or padded to 9 characters, and a digit.
std::span<const std::string_view> Cities();
std::span<const std::string_view> Manufacturers();  // 5: MFGR#1 … MFGR#5
std::span<const std::string_view> Categories();     // 25: five per manufacturer, in its order
/// 1,000: forty per category, in its order; numbers 1 … 40 are not padded (MFGR#111 … MFGR#5540).
std::span<const std::string_view> Brands();

}  // namespace nam::ssb
