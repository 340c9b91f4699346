#pragma once

#include <span>
#include <string_view>

/// The fixed value sets of TPC-H, which SSB shares. All text lives forever, so batches refer to it without
/// copies.
namespace nam::dataset {

struct Nation {
  std::string_view name;
  std::string_view region;
};

std::span<const std::string_view> Regions();          // 5, in key order
std::span<const Nation> Nations();                    // 25, in key order
std::span<const std::string_view> MarketSegments();   // 5
std::span<const std::string_view> Colors();           // 92 words of part names; SSB's specification says 94
std::span<const std::string_view> PartTypes();        // 150
std::span<const std::string_view> Containers();       // 40
std::span<const std::string_view> OrderPriorities();  // 5
std::span<const std::string_view> ShipModes();        // 7

}  // namespace nam::dataset
