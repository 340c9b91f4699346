#include "execution/row_order.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace nam::execution {

bool StandsBefore(const std::vector<plan::OrderKey>& order, std::span<const Value> a,
                  std::span<const Value> b) {
  for (size_t k = 0; k < order.size(); ++k) {
    const Value &x = a[k], &y = b[k];
    if (x.null || y.null) {
      if (x.null != y.null) return x.null == order[k].nulls_first;
      continue;
    }
    const int compared = Compare(x, y);
    if (compared != 0) return (compared < 0) != order[k].descending;
  }
  return false;
}

void PruneRows(const std::vector<plan::OrderKey>& order, int64_t limit, std::vector<std::vector<Value>>& rows,
               uint64_t& bytes) {
  constexpr size_t kFewRows = 4096;
  if (order.empty() || limit < 0 || rows.size() <= kFewRows) return;
  if (rows.size() / 2 <= static_cast<uint64_t>(limit)) return;
  const auto keys = [&](const std::vector<Value>& row) { return std::span(row).last(order.size()); };
  std::nth_element(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(limit), rows.end(),
                   [&](const auto& a, const auto& b) { return StandsBefore(order, keys(a), keys(b)); });
  rows.resize(static_cast<size_t>(limit));
  bytes = 0;
  for (const std::vector<Value>& row : rows) {
    for (const Value& value : row) bytes += BytesOf(value);
  }
}

absl::Status ResultTooLarge(uint64_t bytes_max) {
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the result is larger than %d MiB: add a LIMIT or a filter, or raise nam.result_mib_max",
      bytes_max >> 20));
}

}  // namespace nam::execution
