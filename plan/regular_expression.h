#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"

namespace nam::plan {

/// A regular expression as PostgreSQL's ~ takes it, translated for RE2, which takes linear time.
class RegularExpression {
 public:
  /// 2201B if it is none; 0A000 for what RE2 lacks or would read otherwise: back references, looking ahead or
  /// behind, word ends (\y \m \M), collating elements.
  static absl::StatusOr<std::shared_ptr<const RegularExpression>> Compile(std::string_view pattern,
                                                                          bool ignore_case, int position);
  ~RegularExpression();

  /// Whether it matches a part of the text.
  bool Matches(std::string_view text) const;

 private:
  struct Impl;
  explicit RegularExpression(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

/// One that was compiled by this thread lately, or a new one.
absl::StatusOr<std::shared_ptr<const RegularExpression>> CachedRegularExpression(std::string_view pattern,
                                                                                 bool ignore_case,
                                                                                 int position);

}  // namespace nam::plan
