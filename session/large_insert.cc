#include "session/large_insert.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "session/foreign_keys.h"
#include "session/record_finder.h"
#include "txn/session.h"

namespace nam::session {
namespace {

/// Fewer rows are one transaction, beside which others may write to the table.
constexpr uint64_t kLoadRowsMin = 65'536;
/// A transaction of a quarter of what it may grow to is large.
constexpr uint64_t kTimesMin = 4;
constexpr uint64_t kPortionRowsMax = 8'192;
constexpr uint64_t kPortionBytes = 8 << 20;
/// A commit holds its claim while it makes entries of indexes.
constexpr uint64_t kPortionEntriesMax = 1'024;

/// Of a transaction that has just begun.
uint64_t PortionRows(const proto::Table& table, const RecordAccess& access) {
  const auto indexes =
      static_cast<uint64_t>(std::ranges::count(table.record().parts(), proto::ORDERED_INDEX,
                                               [](const proto::RecordPart& part) { return part.kind(); }));
  const uint64_t by_bytes = kPortionBytes / std::max<uint64_t>(1, table.record().row_bytes());
  const uint64_t by_entries = indexes == 0 ? kPortionRowsMax : kPortionEntriesMax / indexes;
  uint64_t rows = std::max<uint64_t>(1, std::min({kPortionRowsMax, by_bytes, by_entries}));
  while (rows > 1 && !access.MayWrite(kTimesMin * rows).ok()) rows /= 2;
  return rows;
}

/// A lost connection leaves open whether a portion is in the load, which is given up in any case.
absl::Status CommitPortion(RecordAccess& access) {
  absl::Status committed = access.Commit();
  if (!absl::IsUnavailable(committed)) return committed;
  return txn::AbortStatus(txn::AbortReason::kConnectionLost, std::string(committed.message()));
}

}  // namespace

bool LargeInsert::MayLoad(const sql::InsertStatement& statement) {
  return !statement.conflict.has_value() && statement.returning.empty() && !HasReferences(statement.table);
}

bool LargeInsert::Large() const {
  return rows_ >= kLoadRowsMin || !access_.MayWrite(kTimesMin * rows_).ok();
}

RecordChanges::NextRow LargeInsert::While(const RecordChanges::NextRow& next,
                                          const std::function<bool()>& more) {
  return [this, next, more]() -> absl::StatusOr<std::optional<Row>> {
    if (!more()) return std::nullopt;
    absl::StatusOr<std::optional<Row>> row = next();
    ended_ = row.ok() && !row->has_value();
    if (row.ok() && row->has_value()) ++rows_;
    return row;
  };
}

absl::StatusOr<ResultSet> LargeInsert::Run(const RowSource& source) {
  NAM_ASSIGN_OR_RETURN(const RecordChanges::NextRow next, source());
  NAM_ASSIGN_OR_RETURN(ResultSet result,
                       changes_.Insert(statement_, While(next, [this] { return !Large(); })));
  if (ended_) return result;
  absl::StatusOr<std::unique_ptr<RecordLoad>> load = access_.BeginLoad(*statement_.table.table, rows_);
  if (absl::IsCancelled(load.status())) return load.status();
  if (load.ok()) {
    load_ = *std::move(load);
    NAM_RETURN_IF_ERROR(MoveRows());
    NAM_RETURN_IF_ERROR(LoadRest(next));
  } else {
    // The transaction may still be small enough.
    NAM_RETURN_IF_ERROR(changes_.Insert(statement_, While(next, [] { return true; })).status());
  }
  result.command = absl::StrCat("INSERT 0 ", rows_);
  return result;
}

/// The rows so far become the load's. They have passed all checks, and their keys differ.
absl::Status LargeInsert::MoveRows() {
  const proto::Table& table = *statement_.table.table;
  std::vector<std::string> rows;
  rows.reserve(rows_);
  NAM_RETURN_IF_ERROR(
      access_.VisitWrites(table, [&](std::string_view, std::string_view row) { rows.emplace_back(row); }));
  access_.Abort();
  RecordAccess& access = load_->access();
  for (std::span<const std::string> left = rows; !left.empty();) {
    NAM_RETURN_IF_ERROR(access.Begin());
    const auto portion = left.first(std::min<size_t>(PortionRows(table, access), left.size()));
    size_t taken = 0;
    NAM_RETURN_IF_ERROR(access.Insert(table, portion, &taken));
    NAM_RETURN_IF_ERROR(CommitPortion(access));
    left = left.subspan(portion.size());
  }
  return absl::OkStatus();
}

absl::Status LargeInsert::LoadRest(const RecordChanges::NextRow& next) {
  RecordAccess& access = load_->access();
  RecordFinder finder(access, cancelled_);
  RecordChanges changes(access, finder, cancelled_, nullptr);
  while (!ended_) {
    NAM_RETURN_IF_ERROR(access.Begin());
    const uint64_t until = rows_ + PortionRows(*statement_.table.table, access);
    NAM_RETURN_IF_ERROR(changes.Insert(statement_, While(next, [&] { return rows_ < until; })).status());
    NAM_RETURN_IF_ERROR(CommitPortion(access));
  }
  return absl::OkStatus();
}

absl::Status LargeInsert::Commit() {
  return load_ == nullptr ? access_.Commit() : load_->Finish();
}

}  // namespace nam::session
