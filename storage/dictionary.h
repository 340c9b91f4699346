#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace nam::storage {

/// The distinct values of a string column in byte order. Entry numbers compare like the strings, so equality,
/// ranges and IN on strings are integer comparisons. Stored in memory servers as
///
///     0      8                     8 + 4·(entries + 1)
///     ├ count ┼ offset[0 … entries] ┼ bytes of all entries, one after the other ┤
///
/// cut into segments that the catalog points to. Immutable; any thread.
class Dictionary {
 public:
  /// Encodes `entries`, which are distinct and in byte order.
  static std::vector<std::byte> Encode(const std::vector<std::string_view>& entries);
  /// Takes the stored form; DATA_LOSS if it is invalid.
  static absl::StatusOr<std::shared_ptr<const Dictionary>> Decode(std::vector<std::byte> bytes);

  size_t size() const { return size_; }
  std::string_view operator[](size_t i) const {
    return {text_ + offsets_[i], static_cast<size_t>(offsets_[i + 1] - offsets_[i])};
  }
  /// The first entry not less than `text`; size() if none.
  size_t LowerBound(std::string_view text) const;
  std::optional<size_t> Find(std::string_view text) const;

 private:
  Dictionary() = default;
  std::vector<std::byte> bytes_;
  size_t size_ = 0;
  const uint32_t* offsets_ = nullptr;
  const char* text_ = nullptr;
};

}  // namespace nam::storage
