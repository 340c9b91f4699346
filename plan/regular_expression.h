#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"

namespace nam::plan {

/// A regular expression of PostgreSQL's ~, translated for RE2, which takes linear time.
class RegularExpression {
 public:
  /// To test whether a text matches; to find the matching part; to divide a whole text into groups.
  enum class Purpose : uint8_t { kTest, kFind, kDivide };
  /// Bytes [begin, end) of a text that a match took, or one of its groups.
  struct Part {
    static constexpr size_t kNone = static_cast<size_t>(-1);
    size_t begin = kNone, end = kNone;
    bool found() const { return begin != kNone; }
    size_t size() const { return end - begin; }
  };

  /// 2201B if it is invalid; 0A000 for what RE2 lacks or would read differently: back references, looking
  /// ahead or behind, word ends (\y \m \M), collating elements; for kFind also *? and similar beside * or |.
  static absl::StatusOr<std::shared_ptr<const RegularExpression>> Compile(std::string_view pattern,
                                                                          bool ignore_case, int position,
                                                                          Purpose purpose);
  ~RegularExpression();

  /// Whether it matches a part of the text.
  bool Matches(std::string_view text) const;

  /// Finds the first match at or after byte `from`, of several the longest, as in POSIX (the shortest, if its
  /// quantifiers are those with ?); false without one. parts[0] becomes all of it, parts[n] its n-th group.
  /// If a match divides into groups in several ways, earlier quantifiers take what they can, and earlier
  /// branches of | come first. Not for Purpose::kTest; parts are at most 1 + groups().
  bool Find(std::string_view text, size_t from, std::span<Part> parts) const;
  size_t groups() const;

 private:
  struct Impl;
  explicit RegularExpression(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

/// A recent one of this thread, or a new one.
absl::StatusOr<std::shared_ptr<const RegularExpression>> CachedRegularExpression(
    std::string_view pattern, bool ignore_case, int position, RegularExpression::Purpose purpose);

}  // namespace nam::plan
