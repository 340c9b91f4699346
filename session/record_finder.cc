#include "session/record_finder.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sql/constraints.h"

namespace nam::session {
namespace {

using partitioner::RecordLayout;
using plan::Expr;

bool InRanges(const std::vector<sql::KeyRange>& ranges, std::span<const std::byte> bytes) {
  const std::string_view key(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  // The last range that begins at or before the key.
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), key,
                                      [](std::string_view k, const sql::KeyRange& r) { return k < r.low; });
  if (after == ranges.begin()) return false;
  const sql::KeyRange& range = *std::prev(after);
  return range.high.empty() || key < range.high;
}

}  // namespace

absl::StatusOr<bool> HoldsAll(const std::vector<const Expr*>& conditions, const plan::Resolver& row) {
  for (const Expr* condition : conditions) {
    NAM_ASSIGN_OR_RETURN(const Value holds, plan::Evaluate(*condition, row));
    if (holds.null || holds.number == 0) return false;
  }
  return true;
}

absl::Status RecordFinder::Find(const proto::Table& table, const RecordLayout& layout,
                                const std::vector<Expr>& conjuncts, const OnFound& on_row) {
  const sql::AccessPath path =
      sql::ChooseAccessPath(table, layout, conjuncts, {.snapshot = access_.snapshot()});
  return Follow(table, layout, path, [&](std::span<const std::byte> bytes) -> absl::StatusOr<bool> {
    if (!layout.HasNumbers(bytes))
      return absl::DataLossError(absl::StrCat("table ", table.name(), " is damaged: a row holds no number"));
    std::vector<Value> row = layout.Decode(bytes);
    NAM_ASSIGN_OR_RETURN(const bool holds, HoldsAll(path.filter, sql::RowResolver(row)));
    return holds ? on_row(bytes, std::move(row)) : true;
  });
}

absl::Status RecordFinder::Follow(const proto::Table& table, const RecordLayout& layout,
                                  const sql::AccessPath& path, const RecordAccess::OnRow& on_row) {
  bool more = true;
  const RecordAccess::OnRow in_ranges = [&](std::span<const std::byte> bytes) -> absl::StatusOr<bool> {
    if (cancelled_) return absl::CancelledError("cancelled");
    if (path.scan() && !InRanges(path.ranges, bytes.first(layout.key_bytes()))) return true;
    NAM_ASSIGN_OR_RETURN(more, on_row(bytes));
    return more;
  };
  if (path.nothing()) return absl::OkStatus();
  if (!path.keys.empty()) return access_.Lookup(table, path.keys, in_ranges);
  if (path.scan()) return access_.Scan(table, in_ranges);
  for (const sql::KeyRange& range : path.ranges) {
    if (more) NAM_RETURN_IF_ERROR(access_.ScanIndex(table, path.index, range, in_ranges));
  }
  return absl::OkStatus();
}

}  // namespace nam::session
