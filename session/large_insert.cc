#include "session/large_insert.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "session/foreign_keys.h"

namespace nam::session {
namespace {

/// Fewer rows are one transaction, beside which others may write to the table.
constexpr uint64_t kLoadRowsMin = 65'536;
/// A transaction of a quarter of what it may grow to is large.
constexpr uint64_t kTimesMin = 4;

}  // namespace

bool LargeInsert::MayLoad(const sql::InsertStatement& statement) {
  return !statement.conflict.has_value() && statement.returning.empty() && !HasReferences(statement.table);
}

bool LargeInsert::IsLarge(const RecordAccess& access, uint64_t rows) {
  return rows >= kLoadRowsMin || !access.MayWrite(kTimesMin * rows).ok();
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
  const proto::Table& table = *statement_.table.table;
  NAM_ASSIGN_OR_RETURN(const RecordChanges::NextRow next, source());
  ResultSet result;
  if (!access_.loads()) {
    NAM_ASSIGN_OR_RETURN(
        result, changes_.Insert(statement_, While(next, [this] { return !IsLarge(access_, rows_); })));
    if (ended_) return result;
  }
  const absl::Status begun = access_.BeginLoads(table, rows_);
  if (begun.ok()) {
    NAM_RETURN_IF_ERROR(access_.EndStatement());  // its query may have read a load
    NAM_RETURN_IF_ERROR(LoadRest(next, *access_.LoadOf(table)));
  } else if (absl::IsFailedPrecondition(begun)) {
    // The transaction may still be small enough.
    NAM_RETURN_IF_ERROR(changes_.Insert(statement_, While(next, [] { return true; })).status());
  } else {
    return begun;
  }
  result.command = absl::StrCat("INSERT 0 ", rows_);
  return result;
}

absl::Status LargeInsert::LoadRest(const RecordChanges::NextRow& next, RecordAccess& access) {
  RecordChanges changes(access, cancelled_);
  while (!ended_) {
    NAM_RETURN_IF_ERROR(access.Begin());
    const uint64_t until = rows_ + PortionRows(*statement_.table.table, access);
    NAM_RETURN_IF_ERROR(changes.Insert(statement_, While(next, [&] { return rows_ < until; })).status());
    NAM_RETURN_IF_ERROR(CommitPortion(access));
  }
  return absl::OkStatus();
}

}  // namespace nam::session
