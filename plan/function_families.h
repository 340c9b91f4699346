#pragma once

#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "plan/function.h"

/// The functions by what they are about; plan/function.cc calls them.
namespace nam::plan {

absl::StatusOr<Value> ApplyToText(const Expr& call, std::span<const Value> arguments);
absl::StatusOr<Value> ApplyToNumbers(const Expr& call, std::span<const Value> arguments);
absl::StatusOr<Value> ApplyToTimes(const Expr& call, std::span<const Value> arguments);

absl::StatusOr<Value> ApplyToBytes(const Expr& call, std::span<const Value> arguments);
absl::StatusOr<Value> ApplyToIntervals(const Expr& call, std::span<const Value> arguments);

/// By to_char's patterns.
absl::StatusOr<Value> FormatTime(const Expr& call, const Value& time, std::string_view pattern);
absl::StatusOr<Value> FormatInterval(const Expr& call, const Value& interval, std::string_view pattern);
absl::StatusOr<Value> FormatNumber(const Expr& call, const Value& number, std::string_view pattern);

}  // namespace nam::plan
