#pragma once

#include <gtest/gtest.h>

#include <utility>

#include "absl/status/statusor.h"

namespace nam::fabric {

/// Fails the test and returns an empty value when `result` is an error.
template <typename T>
T Take(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  ADD_FAILURE() << result.status().ToString();
  return T();
}

}  // namespace nam::fabric
