#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"

namespace nam::plan {

/// A regular expression as PostgreSQL's ~ takes it, translated for RE2, which takes linear time.
class RegularExpression {
 public:
  /// Whether a text matches; which part of it; how a whole text is divided into groups.
  enum class Purpose : uint8_t { kTest, kFind, kDivide };
  /// Bytes [begin, end) of a text that a match took, or one of its groups.
  struct Part {
    static constexpr size_t kNone = static_cast<size_t>(-1);
    size_t begin = kNone, end = kNone;
    bool found() const { return begin != kNone; }
    size_t size() const { return end - begin; }
  };

  /// 2201B if it is none; 0A000 for what RE2 lacks or would read otherwise: back references, looking ahead or
  /// behind, word ends (\y \m \M), collating elements; to find what it matches, *? and the like beside * or
  /// |.
  static absl::StatusOr<std::shared_ptr<const RegularExpression>> Compile(std::string_view pattern,
                                                                          bool ignore_case, int position,
                                                                          Purpose purpose);
  ~RegularExpression();

  /// Whether it matches a part of the text.
  bool Matches(std::string_view text) const;

  /// The first match at byte `from` or behind it, of these the longest, as POSIX has it (the shortest, if its
  /// quantifiers are those with ?); false without one. parts[0] becomes all of it, parts[n] its n-th group.
  /// Of several ways to divide a match into groups, earlier quantifiers take what they can, and earlier
  /// branches of | come first. Not of Purpose::kTest; parts are at most 1 + groups().
  bool Find(std::string_view text, size_t from, std::span<Part> parts) const;
  size_t groups() const;

 private:
  struct Impl;
  explicit RegularExpression(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

/// One that was compiled by this thread lately, or a new one.
absl::StatusOr<std::shared_ptr<const RegularExpression>> CachedRegularExpression(
    std::string_view pattern, bool ignore_case, int position, RegularExpression::Purpose purpose);

}  // namespace nam::plan
