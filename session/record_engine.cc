#include "session/record_engine.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/interruption.h"
#include "base/status_macros.h"
#include "catalog/record_extents.h"
#include "session/record_load.h"
#include "sql/constraints.h"
#include "txn/cluster_tables.h"
#include "txn/column_numbers.h"
#include "txn/rsi/session.h"
#include "txn/table_extents.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

constexpr size_t kRowsAtOnce = 256;
/// Longer than a lease: an index whose creator was killed leaves meanwhile.
constexpr int64_t kIndexWaitUs = 30'000'000;
constexpr int64_t kIndexPauseUs = 100'000;

/// Shared by the sessions of a process.
struct SharedRecords {
  explicit SharedRecords(catalog::Attachment& attachment)
      : tables(attachment), numbers(attachment.fabric(), attachment) {}
  txn::ClusterTables tables;
  txn::ColumnNumbers numbers;
};

std::shared_ptr<SharedRecords> SharedOf(catalog::Attachment& attachment) {
  return attachment.shared().Get<SharedRecords>([&] { return std::make_shared<SharedRecords>(attachment); });
}

txn::ColumnNumbers::Table NumberedTable(catalog::Attachment& attachment, const proto::Table& table) {
  return {.allocation = AllocationId(table.allocation()),
          .extent_bytes = catalog::ExtentBytesOf(table.record(), proto::COLUMN_NUMBERS),
          .open = [&] { return txn::TableExtents::Open(attachment, table.name(), txn::kNumbersPart); }};
}

class RecordEngine final : public RecordAccess {
 public:
  explicit RecordEngine(catalog::Attachment& attachment)
      : attachment_(attachment), shared_(SharedOf(attachment)) {}

  absl::Status Begin() override {
    NAM_RETURN_IF_ERROR(OpenSession());
    return Lost(session_->Begin());
  }
  absl::Status Commit() override { return Lost(session_->Commit().status()); }
  void Abort() override {
    if (session_ != nullptr) session_->Abort();
  }
  absl::StatusOr<uint64_t> NewestCommit() override {
    NAM_RETURN_IF_ERROR(OpenSession());
    const absl::StatusOr<uint64_t> newest = session_->NewestCommit();
    NAM_RETURN_IF_ERROR(Lost(newest.status()));
    return newest;
  }
  size_t Mark() const override { return session_ == nullptr ? 0 : session_->Mark(); }
  absl::Status RollBackTo(size_t mark) override {
    if (session_ == nullptr) return absl::FailedPreconditionError("the transaction is over");
    return Lost(session_->RollBackTo(mark));
  }

  void BeginAnew() override {
    session_.reset();
    handles_.clear();
  }

  absl::Status Lookup(const proto::Table& table, std::span<const std::string> keys,
                      const OnRow& on_row) override {
    NAM_ASSIGN_OR_RETURN(const txn::TableHandle handle, HandleOf(table));
    const size_t row_bytes = table.record().row_bytes();
    std::vector<std::byte> rows(std::min(kRowsAtOnce, keys.size()) * row_bytes);
    for (size_t first = 0; first < keys.size(); first += kRowsAtOnce) {
      const auto some = keys.subspan(first, std::min(kRowsAtOnce, keys.size() - first));
      std::vector<txn::Lookup> lookups = LookupsOf(table, handle, some, rows);
      NAM_RETURN_IF_ERROR(Lost(session_->Read(lookups)));
      for (const txn::Lookup& lookup : lookups) {
        if (!lookup.found) continue;
        NAM_ASSIGN_OR_RETURN(const bool more, on_row(lookup.row));
        if (!more) return absl::OkStatus();
      }
    }
    return absl::OkStatus();
  }

  absl::Status Scan(const proto::Table& table, const OnRow& on_row) override {
    NAM_ASSIGN_OR_RETURN(const txn::TableHandle handle, HandleOf(table));
    absl::Status failed;
    NAM_RETURN_IF_ERROR(Lost(session_->Scan(handle, Visitor(on_row, failed))));
    return failed;
  }
  absl::Status ScanIndex(const proto::Table& table, int index, const sql::KeyRange& range,
                         const OnRow& on_row) override {
    NAM_ASSIGN_OR_RETURN(const txn::TableHandle handle, HandleOf(table));
    const AllocationId id(table.record().parts(index).extents(0).allocation());
    absl::Status failed;
    NAM_RETURN_IF_ERROR(Lost(
        session_->ScanIndex(handle, id, BytesOf(range.low), BytesOf(range.high), Visitor(on_row, failed))));
    return failed;
  }
  absl::Status VisitWrites(const proto::Table& table, const OnWrite& on_write) override {
    NAM_ASSIGN_OR_RETURN(const txn::TableHandle handle, HandleOf(table));
    const auto text = [](std::span<const std::byte> bytes) {
      return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    return Lost(session_->VisitWrites(handle, [&](auto key, auto row) {
      on_write(text(key), text(row));
      return true;
    }));
  }
  uint64_t snapshot() const override { return session_ == nullptr ? 0 : session_->snapshot(); }
  absl::Status MayWrite(size_t rows) const override {
    return session_ == nullptr ? absl::OkStatus() : session_->MayWrite(rows);
  }

  absl::Status Insert(const proto::Table& table, std::span<const std::string> rows, size_t* taken) override {
    std::vector<std::byte> found(std::min(kRowsAtOnce, rows.size()) * table.record().row_bytes());
    return InPortions(table, rows, [&](txn::TableHandle handle, size_t first, auto some) -> absl::Status {
      std::vector<txn::Lookup> lookups = LookupsOf(table, handle, some, found);
      NAM_RETURN_IF_ERROR(Lost(session_->Read(lookups)));
      const auto there = std::ranges::find_if(lookups, &txn::Lookup::found);
      if (there != lookups.end()) {
        *taken = first + static_cast<size_t>(there - lookups.begin());
        return txn::AbortStatus(txn::AbortReason::kUniqueKey, table.name());
      }
      return Write(txn::RowWrite::Kind::kInsert, handle, some);
    });
  }
  absl::Status Update(const proto::Table& table, std::span<const std::string> rows) override {
    return Change(table, rows, txn::RowWrite::Kind::kUpdate);
  }
  absl::Status Delete(const proto::Table& table, std::span<const std::string> keys) override {
    return Change(table, keys, txn::RowWrite::Kind::kDelete);
  }

  absl::Status Lock(const proto::Table& table, std::span<const std::string> keys, bool waits) override {
    if (!waits && session_ != nullptr) session_->SetLockTimeout(0);
    const absl::Status locked = Change(table, keys, txn::RowWrite::Kind::kLock);
    if (session_ != nullptr) session_->SetLockTimeout(lock_timeout_us_);
    return locked;
  }
  void SetLockTimeout(int64_t us) override {
    lock_timeout_us_ = us;
    if (session_ != nullptr) session_->SetLockTimeout(us);
  }
  void SetTransactionBytesMax(uint64_t bytes) override {
    transaction_bytes_max_ = bytes;
    if (session_ != nullptr) session_->SetTransactionBytesMax(bytes);
  }

  absl::StatusOr<uint64_t> NextNumber(const proto::Table& table, int column) override {
    return shared_->numbers.Next(NumberedTable(attachment_, table), static_cast<uint32_t>(column));
  }

  absl::Status CreateTable(const proto::Table& table, std::span<const proto::RecordPart> indexes) override {
    NAM_RETURN_IF_ERROR(CheckStateIsThere());
    if (!indexes.empty()) NAM_RETURN_IF_ERROR(OpenSession());
    const proto::RecordStorage& record = table.record();
    NAM_RETURN_IF_ERROR(
        txn::CreateTable(attachment_, {.name = table.name(),
                                       .row_bytes = record.row_bytes(),
                                       .key_bytes = record.key_bytes(),
                                       .versions = record.versions() == 0 ? 1 : record.versions(),
                                       .expected_rows = table.rows(),
                                       .table = table}));
    for (const proto::RecordPart& index : indexes) {
      const absl::Status made = Lost(txn::CreateIndex(attachment_, *session_, table.name(), index));
      if (made.ok()) continue;
      // Another session drops it, if this one is lost. The first error matters.
      DropTable(table.name(), /*cascade=*/false).IgnoreError();
      if (!absl::IsAlreadyExists(made)) return made;
      return UserError(sqlstate::kDuplicateTable,
                       absl::StrCat("relation ", Quote(index.name()), " already exists"), -1,
                       "give the constraint another name");
    }
    return absl::OkStatus();
  }
  absl::Status DropTable(const std::string& name, bool cascade) override {
    NAM_ASSIGN_OR_RETURN(const std::shared_ptr<const proto::Table> table,
                         attachment_.catalog().GetTable(name));
    for (const proto::ReferencingKey& reference : table->record().referenced_by()) {
      if (reference.child() != name) return sql::StillReferenced(name, reference);
    }
    if (table->record().foreign_keys().empty()) return attachment_.catalog().Drop(name, cascade).status();
    NAM_RETURN_IF_ERROR(OpenSession());
    return Lost(txn::DropTable(attachment_, *session_, name, cascade));
  }
  absl::Status CreateIndex(const proto::Table& table, const proto::RecordPart& index) override {
    NAM_RETURN_IF_ERROR(OpenSession());
    return Lost(txn::CreateIndex(attachment_, *session_, table.name(), index));
  }
  absl::Status AwaitIndex(const std::string& name) override {
    Clock& clock = attachment_.fabric().clock();
    const Deadline deadline = clock.After(kIndexWaitUs);
    while (true) {
      const absl::Status complete = txn::CheckIndexIsComplete(attachment_, name);
      if (!absl::IsUnavailable(complete)) return complete;
      if (Interruption::requested()) return absl::CancelledError("cancelled while it waited for an index");
      if (clock.Passed(deadline)) {
        return UserError(sqlstate::kWrongState,
                         absl::StrCat("index ", Quote(name), " is being filled by another session"), -1,
                         "run it again later; until then nothing is certain about the index");
      }
      clock.SleepUntil(clock.After(kIndexPauseUs));
    }
  }
  absl::Status DropIndex(const std::string& name) override {
    NAM_RETURN_IF_ERROR(OpenSession());
    return Lost(txn::DropIndex(attachment_, *session_, name));
  }

  absl::StatusOr<std::unique_ptr<RecordLoad>> BeginLoad(const proto::Table& table, uint64_t rows,
                                                        std::optional<RowsDigest> replaced) override {
    auto access = std::make_unique<RecordEngine>(attachment_);
    access->SetLockTimeout(lock_timeout_us_);
    access->SetTransactionBytesMax(transaction_bytes_max_);
    return BeginRecordLoad(attachment_, std::move(access), table, rows, replaced);
  }
  absl::Status FinishLoads(std::span<const std::unique_ptr<RecordLoad>> loads) override {
    return FinishRecordLoads(attachment_, loads);
  }
  absl::StatusOr<txn::VacuumCounts> Vacuum(const proto::Table& table) override {
    NAM_RETURN_IF_ERROR(OpenSession());
    const absl::StatusOr<txn::TableHandle> handle = OpenedHandle(table);
    NAM_RETURN_IF_ERROR(Lost(handle.status()));
    absl::StatusOr<txn::VacuumCounts> gone = session_->Vacuum(*handle);
    NAM_RETURN_IF_ERROR(Lost(gone.status()));
    return gone;
  }
  absl::StatusOr<uint64_t> AwaitCommits() override {
    NAM_RETURN_IF_ERROR(OpenSession());
    absl::StatusOr<uint64_t> snapshot = session_->AwaitCommits();
    Lost(snapshot.status()).IgnoreError();
    return snapshot;
  }

 private:
  absl::Status OpenSession() {
    if (session_ != nullptr) return absl::OkStatus();
    NAM_ASSIGN_OR_RETURN(session_, txn::OpenRsiSession(shared_->tables, {}));
    session_->SetLockTimeout(lock_timeout_us_);
    session_->SetTransactionBytesMax(transaction_bytes_max_);
    handles_.clear();
    return absl::OkStatus();
  }
  /// An error if the state of transactions is lost: a new table would take no row. Makes no state: the first
  /// transaction does.
  absl::Status CheckStateIsThere() {
    const absl::Status known = attachment_.catalog().GetTable(txn::kStateTable).status();
    if (absl::IsNotFound(known)) return absl::OkStatus();
    NAM_RETURN_IF_ERROR(known);
    absl::Status begun = Begin();
    // A session from before the loss only says that its connection is lost.
    if (session_ == nullptr) begun = Begin();
    Abort();
    return begun;
  }
  /// Errors of `on_row` go to `failed`.
  static txn::RowVisitor Visitor(const OnRow& on_row, absl::Status& failed) {
    return [&](std::span<const std::byte> row) {
      const absl::StatusOr<bool> more = on_row(row);
      failed = more.status();
      return more.ok() && *more;
    };
  }
  /// ABORTED: the table has other rows by now than the statement, or its snapshot, knows.
  absl::StatusOr<txn::TableHandle> HandleOf(const proto::Table& table) {
    if (table.record().loaded_at() > session_->snapshot()) {
      return txn::AbortStatus(txn::AbortReason::kSnapshotTooOld,
                              absl::StrCat("table ", table.name(), " was loaded after the snapshot"));
    }
    return OpenedHandle(table);
  }
  absl::StatusOr<txn::TableHandle> OpenedHandle(const proto::Table& table) {
    if (const auto found = handles_.find(table.allocation()); found != handles_.end()) return found->second;
    NAM_ASSIGN_OR_RETURN(const txn::TableHandle handle, session_->OpenTable(table.name()));
    const auto opened = shared_->tables.table_numbers().At(handle.value);
    if (!opened.has_value() || opened->allocation != AllocationId(table.allocation())) {
      return txn::AbortStatus(txn::AbortReason::kSnapshotTooOld,
                              absl::StrCat("table ", table.name(), " was loaded or dropped meanwhile"));
    }
    handles_[table.allocation()] = handle;
    return handle;
  }
  /// Look-ups of rows that begin with these keys, into `rows`.
  static std::vector<txn::Lookup> LookupsOf(const proto::Table& table, txn::TableHandle handle,
                                            std::span<const std::string> keys, std::span<std::byte> rows) {
    const size_t row_bytes = table.record().row_bytes();
    std::vector<txn::Lookup> lookups;
    for (size_t i = 0; i < keys.size(); ++i) {
      const std::span<const std::byte> key = BytesOf(keys[i]).first(table.record().key_bytes());
      lookups.push_back({handle, key, rows.subspan(i * row_bytes, row_bytes)});
    }
    return lookups;
  }
  /// Calls each(handle, number of the first, some of `changes`).
  template <typename Each>
  absl::Status InPortions(const proto::Table& table, std::span<const std::string> changes, const Each& each) {
    NAM_ASSIGN_OR_RETURN(const txn::TableHandle handle, HandleOf(table));
    for (size_t first = 0; first < changes.size(); first += kRowsAtOnce) {
      // Where memory is in place no call waits, so no other check happens.
      if (Interruption::requested()) return absl::CancelledError("cancelled");
      NAM_RETURN_IF_ERROR(
          each(handle, first, changes.subspan(first, std::min(kRowsAtOnce, changes.size() - first))));
    }
    return absl::OkStatus();
  }
  absl::Status Write(txn::RowWrite::Kind kind, txn::TableHandle handle,
                     std::span<const std::string> changes) {
    std::vector<txn::RowWrite> writes;
    for (const std::string& change : changes)
      writes.push_back({.kind = kind, .table = handle, .row = BytesOf(change)});
    return Lost(session_->Write(writes));
  }
  /// `changes` are rows, or keys.
  absl::Status Change(const proto::Table& table, std::span<const std::string> changes,
                      txn::RowWrite::Kind kind) {
    return InPortions(table, changes,
                      [&](txn::TableHandle handle, size_t, auto some) { return Write(kind, handle, some); });
  }
  /// The next Begin replaces an unusable session.
  absl::Status Lost(absl::Status status) {
    if (absl::IsUnavailable(status) || absl::IsInternal(status)) session_.reset();
    return status;
  }

  catalog::Attachment& attachment_;
  const std::shared_ptr<SharedRecords> shared_;
  std::unique_ptr<txn::Session> session_;
  int64_t lock_timeout_us_ = 0;
  uint64_t transaction_bytes_max_ = txn::RsiOptions().transaction_bytes_max;
  absl::flat_hash_map<uint64_t, txn::TableHandle> handles_;  // by allocation
};

}  // namespace

std::unique_ptr<RecordAccess> MakeRecordEngine(catalog::Attachment& attachment) {
  return std::make_unique<RecordEngine>(attachment);
}

absl::StatusOr<uint64_t> SkipNumbers(catalog::Attachment& attachment, const proto::Table& table, int column,
                                     uint64_t count) {
  return SharedOf(attachment)
      ->numbers.Skip(NumberedTable(attachment, table), static_cast<uint32_t>(column), count);
}

}  // namespace nam::session
