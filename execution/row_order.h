#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "plan/aggregate.h"
#include "types/value.h"

namespace nam::execution {

/// Whether a row stands before another in an order. `a` and `b` are the values of the order's keys.
bool StandsBefore(const std::vector<plan::OrderKey>& order, std::span<const Value> a,
                  std::span<const Value> b);

/// What a value of a row that is kept takes in memory.
inline uint64_t BytesOf(const Value& value) {
  return sizeof(Value) + value.text.capacity();
}

/// With an order and a limit (-1: none), keeps only the first `limit` rows, now and then; `bytes` is what all
/// of them take. The order's values are the last columns of a row.
void PruneRows(const std::vector<plan::OrderKey>& order, int64_t limit, std::vector<std::vector<Value>>& rows,
               uint64_t& bytes);

/// RESOURCE_EXHAUSTED.
absl::Status ResultTooLarge(uint64_t bytes_max);

}  // namespace nam::execution
