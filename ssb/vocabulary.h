#pragma once

#include <array>
#include <span>
#include <string_view>

/// The benchmark's closed value sets. All text lives forever, so batches refer to it without a copy.
namespace nam::ssb {

struct Nation {
  std::string_view name;
  std::string_view region;
};

inline constexpr int kCitiesPerNation = 10;

std::span<const std::string_view> Regions();  // 5
std::span<const Nation> Nations();            // 25
/// 250; those of nation n are [10 n, 10 n + 10): its name cut or padded to 9 characters, and a digit.
std::span<const std::string_view> Cities();
std::span<const std::string_view> MarketSegments();  // 5
std::span<const std::string_view> Manufacturers();   // 5: MFGR#1 … MFGR#5
std::span<const std::string_view> Categories();      // 25: five to a manufacturer, in its order
/// 1,000: forty to a category, in its order; numbers 1 … 40 are not padded (MFGR#111 … MFGR#5540).
std::span<const std::string_view> Brands();
std::span<const std::string_view> Colors();           // 92, the words of TPC-H; the specification says 94
std::span<const std::string_view> PartTypes();        // 150
std::span<const std::string_view> Containers();       // 40
std::span<const std::string_view> OrderPriorities();  // 5
std::span<const std::string_view> ShipModes();        // 7

}  // namespace nam::ssb
