#include "session/loading_access.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "txn/session.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

/// Each has a session of its own.
constexpr size_t kLoadsMax = 32;
constexpr uint64_t kPortionRowsMax = 8'192;
constexpr uint64_t kPortionBytes = 8 << 20;
/// A commit holds its claim while it makes entries of indexes.
constexpr uint64_t kPortionEntriesMax = 1'024;
/// A portion's share of what a transaction may grow to.
constexpr uint64_t kPortionsMin = 4;

}  // namespace

uint64_t PortionRows(const proto::Table& table, const RecordAccess& access) {
  const auto indexes =
      static_cast<uint64_t>(std::ranges::count(table.record().parts(), proto::ORDERED_INDEX,
                                               [](const proto::RecordPart& part) { return part.kind(); }));
  const uint64_t by_bytes = kPortionBytes / std::max<uint64_t>(1, table.record().row_bytes());
  const uint64_t by_entries = indexes == 0 ? kPortionRowsMax : kPortionEntriesMax / indexes;
  uint64_t rows = std::max<uint64_t>(1, std::min({kPortionRowsMax, by_bytes, by_entries}));
  while (rows > 1 && !access.MayWrite(kPortionsMin * rows).ok()) rows /= 2;
  return rows;
}

absl::Status CommitPortion(RecordAccess& access) {
  absl::Status committed = access.Commit();
  if (!absl::IsUnavailable(committed)) return committed;
  return txn::AbortStatus(txn::AbortReason::kConnectionLost, std::string(committed.message()));
}

LoadingAccess::Load* LoadingAccess::Find(const proto::Table& table) {
  const auto found = std::ranges::find_if(loads_, [&](const Load& load) {
    return load.table == table.allocation() || load.load->stored().allocation() == table.allocation();
  });
  return found == loads_.end() ? nullptr : &*found;
}

bool LoadingAccess::IsWritten(const proto::Table& table) const {
  return written_.contains(table.allocation());
}

RecordAccess* LoadingAccess::LoadOf(const proto::Table& table) {
  Load* const load = Find(table);
  return load == nullptr ? nullptr : &load->load->access();
}

absl::StatusOr<LoadingAccess::Load> LoadingAccess::Make(const proto::Table& table, uint64_t rows,
                                                        std::optional<RowsDigest> replaced) {
  if (!table.record().foreign_keys().empty() || !table.record().referenced_by().empty())
    return absl::FailedPreconditionError(absl::StrCat("table ", table.name(), " has foreign keys"));
  if (loads_.size() == kLoadsMax) {
    return UserError(sqlstate::kLimitExceeded,
                     absl::StrCat("a transaction loads at most ", kLoadsMax, " tables"), -1,
                     "COMMIT, and load the others in another transaction");
  }
  absl::StatusOr<std::unique_ptr<RecordLoad>> load = access_.BeginLoad(table, rows, replaced);
  if (absl::IsCancelled(load.status())) return load.status();
  if (!load.ok()) return absl::FailedPreconditionError(load.status().message());
  return Load{.table = table.allocation(), .replaced = replaced, .load = *std::move(load)};
}

/// The rows so far become the load's. They have passed all checks, and their keys differ.
absl::Status LoadingAccess::MoveRows(const proto::Table& table, RecordAccess& to) {
  std::vector<std::string> rows;
  NAM_RETURN_IF_ERROR(access_.VisitWrites(table, [&](std::string_view, std::string_view row) {
    if (!row.empty()) rows.emplace_back(row);
  }));
  for (std::span<const std::string> left = rows; !left.empty();) {
    NAM_RETURN_IF_ERROR(to.Begin());
    const auto portion = left.first(std::min<size_t>(PortionRows(table, to), left.size()));
    size_t taken = 0;
    NAM_RETURN_IF_ERROR(to.Insert(table, portion, &taken));
    NAM_RETURN_IF_ERROR(CommitPortion(to));
    left = left.subspan(portion.size());
  }
  return absl::OkStatus();
}

absl::Status LoadingAccess::BeginLoads(const proto::Table& table, uint64_t rows) {
  if (Find(table) != nullptr) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(std::vector<Load> made, MakeOfWritten(table.allocation(), rows));
  if (!IsWritten(table)) {
    NAM_ASSIGN_OR_RETURN(Load load, Make(table, rows, RowsDigest()));
    made.push_back(std::move(load));
  }
  return Become(std::move(made));
}

absl::Status LoadingAccess::Empty(const proto::Table& table, std::optional<RowsDigest> rows) {
  if (Load* const load = Find(table); load != nullptr) {
    load->load.reset();
    load->open = false;
    NAM_ASSIGN_OR_RETURN(load->load, access_.BeginLoad(table, 0, load->replaced));
    return absl::OkStatus();
  }
  NAM_ASSIGN_OR_RETURN(std::vector<Load> made, MakeOfWritten(0, 0));
  NAM_ASSIGN_OR_RETURN(Load emptied, Make(table, 0, rows));
  made.push_back(std::move(emptied));
  return Become(std::move(made));
}

absl::StatusOr<std::vector<LoadingAccess::Load>> LoadingAccess::MakeOfWritten(uint64_t growing,
                                                                              uint64_t rows) {
  if (rolled_back_) return absl::FailedPreconditionError("a part of the transaction was rolled back");
  std::vector<Load> made;
  for (const auto& [allocation, written] : written_) {
    if (written.table == nullptr) return absl::FailedPreconditionError("rows of other tables are locked");
    NAM_ASSIGN_OR_RETURN(Load load, Make(*written.table, allocation == growing ? rows : 0, written.replaced));
    made.push_back(std::move(load));
  }
  return made;
}

absl::Status LoadingAccess::Become(std::vector<Load> made) {
  for (Load& load : made) {
    const auto written = written_.find(load.table);
    if (written != written_.end()) NAM_RETURN_IF_ERROR(MoveRows(*written->second.table, load.load->access()));
  }
  if (!written_.empty()) NAM_RETURN_IF_ERROR(access_.RollBackTo(0));
  written_.clear();
  std::ranges::move(made, std::back_inserter(loads_));
  return absl::OkStatus();
}

absl::Status LoadingAccess::EndStatement() {
  for (Load& load : loads_) {
    if (!std::exchange(load.open, false)) continue;
    NAM_RETURN_IF_ERROR(CommitPortion(load.load->access()));
  }
  return absl::OkStatus();
}

absl::Status LoadingAccess::Begin() {
  loads_.clear();
  written_.clear();
  rolled_back_ = false;
  return access_.Begin();
}

absl::Status LoadingAccess::Commit() {
  written_.clear();
  if (loads_.empty()) return access_.Commit();
  absl::Status status = EndStatement();
  std::vector<std::unique_ptr<RecordLoad>> loads;
  for (Load& load : loads_) loads.push_back(std::move(load.load));
  loads_.clear();
  access_.Abort();  // it has no writes
  if (status.ok()) status = access_.FinishLoads(loads);
  return status;
}

void LoadingAccess::Abort() {
  written_.clear();
  loads_.clear();
  access_.Abort();
}

absl::Status LoadingAccess::RollBackTo(size_t mark) {
  if (!loads() && mark == 0) written_.clear();
  rolled_back_ = rolled_back_ || !written_.empty();
  if (!loads()) return access_.RollBackTo(mark);
  return absl::FailedPreconditionError("what the transaction has loaded cannot be rolled back in part");
}

absl::StatusOr<RecordAccess*> LoadingAccess::ToRead(const proto::Table& table) {
  Load* const load = Find(table);
  if (load == nullptr) return &access_;
  RecordAccess& access = load->load->access();
  if (!load->open) NAM_RETURN_IF_ERROR(access.Begin());
  load->open = true;
  return &access;
}

absl::StatusOr<RecordAccess*> LoadingAccess::ToWrite(const proto::Table& table) {
  if (!loads()) {
    if (written_.contains(table.allocation())) return &access_;
    const bool own = of_statement_ != nullptr && of_statement_->allocation() == table.allocation();
    written_[table.allocation()] = {own ? of_statement_ : nullptr, {}};
    return &access_;
  }
  const absl::Status loaded = BeginLoads(table, 0);
  if (absl::IsFailedPrecondition(loaded)) {
    return UserError(sqlstate::kNotSupported,
                     absl::StrCat("the transaction has loaded a table, and cannot change table ",
                                  Quote(table.name()), " as well"),
                     -1, "behind a large COPY it may only fill tables that are empty: COMMIT first");
  }
  NAM_RETURN_IF_ERROR(loaded);
  return ToRead(table);
}

absl::Status LoadingAccess::Lookup(const proto::Table& table, std::span<const std::string> keys,
                                   const OnRow& on_row) {
  NAM_ASSIGN_OR_RETURN(RecordAccess* const access, ToRead(table));
  return access->Lookup(table, keys, on_row);
}
absl::Status LoadingAccess::Scan(const proto::Table& table, const OnRow& on_row) {
  NAM_ASSIGN_OR_RETURN(RecordAccess* const access, ToRead(table));
  return access->Scan(table, on_row);
}
absl::Status LoadingAccess::ScanIndex(const proto::Table& table, int index, const sql::KeyRange& range,
                                      const OnRow& on_row) {
  NAM_ASSIGN_OR_RETURN(RecordAccess* const access, ToRead(table));
  return access->ScanIndex(table, index, range, on_row);
}
absl::Status LoadingAccess::VisitWrites(const proto::Table& table, const OnWrite& on_write) {
  NAM_ASSIGN_OR_RETURN(RecordAccess* const access, ToRead(table));
  return access->VisitWrites(table, on_write);
}
absl::StatusOr<RecordAccess::Stored> LoadingAccess::StoredAs(const proto::Table& table) {
  NAM_ASSIGN_OR_RETURN(RecordAccess* const access, ToRead(table));
  const Load* const load = Find(table);
  return Stored{load == nullptr ? &table : &load->load->stored(), access->snapshot()};
}

absl::Status LoadingAccess::Insert(const proto::Table& table, std::span<const std::string> rows,
                                   size_t* taken) {
  if (rows.empty()) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(RecordAccess* const access, ToWrite(table));
  return access->Insert(table, rows, taken);
}
absl::Status LoadingAccess::Update(const proto::Table& table, std::span<const std::string> rows) {
  if (rows.empty()) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(RecordAccess* const access, ToWrite(table));
  return access->Update(table, rows);
}
absl::Status LoadingAccess::Delete(const proto::Table& table, std::span<const std::string> keys) {
  if (keys.empty()) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(RecordAccess* const access, ToWrite(table));
  return access->Delete(table, keys);
}
absl::Status LoadingAccess::Lock(const proto::Table& table, std::span<const std::string> keys, bool waits) {
  if (keys.empty()) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(RecordAccess* const access, ToWrite(table));
  return access->Lock(table, keys, waits);
}

}  // namespace nam::session
