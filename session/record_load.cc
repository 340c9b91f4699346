#include "session/record_load.h"

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/interruption.h"
#include "base/status_macros.h"
#include "base/system_names.h"
#include "proto/catalog.pb.h"
#include "session/record_engine.h"
#include "storage/checksum.h"
#include "txn/session.h"

namespace nam::session {
namespace {

/// While a catalog starts again.
constexpr int kUndoTries = 20;
constexpr int64_t kUndoPauseUs = 100'000;

/// The hidden table: has the shape of `table`, and no rows.
proto::Table HiddenTableFor(const proto::Table& table, std::string name) {
  proto::Table hidden;
  hidden.set_name(std::move(name));
  *hidden.mutable_columns() = table.columns();
  proto::RecordStorage& record = *hidden.mutable_record();
  record.set_row_bytes(table.record().row_bytes());
  record.set_key_bytes(table.record().key_bytes());
  record.set_versions(table.record().versions());
  *record.mutable_primary_key() = table.record().primary_key();
  *record.mutable_checks() = table.record().checks();
  return hidden;
}

/// The indexes to make with the hidden table, under names of its own: names of indexes are the cluster's.
absl::StatusOr<std::vector<proto::RecordPart>> IndexesFor(const proto::Table& table,
                                                          const std::string& hidden) {
  std::vector<proto::RecordPart> indexes;
  for (const proto::RecordPart& part : table.record().parts()) {
    if (part.kind() != proto::ORDERED_INDEX) continue;
    if (part.leaving() || part.usable_from() == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("index ", part.name(), " of ", table.name(), " is being made or dropped"));
    }
    proto::RecordPart& index = indexes.emplace_back(part);
    index.set_name(absl::StrCat(hidden, ".", part.name()));
    index.clear_extents();
    index.clear_usable_from();
  }
  return indexes;
}

/// A session's transactions, in which one table is another one. Only numbers are the table's own.
class LoadAccess final : public RecordAccess {
 public:
  LoadAccess(RecordAccess& access, const proto::Table& table, const proto::Table& hidden)
      : access_(access), table_(table), hidden_(hidden) {}

  absl::Status Begin() override { return access_.Begin(); }
  absl::Status Commit() override { return access_.Commit(); }
  void Abort() override { access_.Abort(); }
  absl::StatusOr<uint64_t> NewestCommit() override { return access_.NewestCommit(); }
  size_t Mark() const override { return access_.Mark(); }
  absl::Status RollBackTo(size_t mark) override { return access_.RollBackTo(mark); }
  absl::Status Lookup(const proto::Table& table, std::span<const std::string> keys,
                      const OnRow& on_row) override {
    return access_.Lookup(Of(table), keys, on_row);
  }
  absl::Status Scan(const proto::Table& table, const OnRow& on_row) override {
    return access_.Scan(Of(table), on_row);
  }
  /// The indexes of both tables are the same parts.
  absl::Status ScanIndex(const proto::Table& table, int index, const sql::KeyRange& range,
                         const OnRow& on_row) override {
    return access_.ScanIndex(Of(table), index, range, on_row);
  }
  absl::Status VisitWrites(const proto::Table& table, const OnWrite& on_write) override {
    return access_.VisitWrites(Of(table), on_write);
  }
  uint64_t snapshot() const override { return access_.snapshot(); }
  absl::Status MayWrite(size_t rows) const override { return access_.MayWrite(rows); }
  absl::Status Insert(const proto::Table& table, std::span<const std::string> rows, size_t* taken) override {
    return access_.Insert(Of(table), rows, taken);
  }
  absl::Status Update(const proto::Table& table, std::span<const std::string> rows) override {
    return access_.Update(Of(table), rows);
  }
  absl::Status Delete(const proto::Table& table, std::span<const std::string> keys) override {
    return access_.Delete(Of(table), keys);
  }
  absl::Status Lock(const proto::Table& table, std::span<const std::string> keys, bool waits) override {
    return access_.Lock(Of(table), keys, waits);
  }
  void SetLockTimeout(int64_t us) override { access_.SetLockTimeout(us); }
  void SetTransactionBytesMax(uint64_t bytes) override { access_.SetTransactionBytesMax(bytes); }
  absl::StatusOr<uint64_t> NextNumber(const proto::Table& table, int column) override {
    absl::StatusOr<uint64_t> number = access_.NextNumber(table, column);
    if (!absl::IsPermissionDenied(number.status())) return number;  // its memory is not the table's any more
    return txn::AbortStatus(txn::AbortReason::kWriteWrite,
                            absl::StrCat("table ", table.name(), " was dropped meanwhile"));
  }
  absl::Status CreateTable(const proto::Table& table, std::span<const proto::RecordPart> indexes) override {
    return access_.CreateTable(table, indexes);
  }
  absl::Status DropTable(const std::string& name, bool cascade) override {
    return access_.DropTable(name, cascade);
  }
  absl::Status CreateIndex(const proto::Table& table, const proto::RecordPart& index) override {
    return access_.CreateIndex(table, index);
  }
  absl::Status DropIndex(const std::string& name) override { return access_.DropIndex(name); }

 private:
  const proto::Table& Of(const proto::Table& table) const {
    return table.allocation() == table_.allocation() ? hidden_ : table;
  }

  RecordAccess& access_;
  const proto::Table& table_;
  const proto::Table& hidden_;
};

class HiddenLoad final : public RecordLoad {
 public:
  HiddenLoad(catalog::Attachment& attachment, std::unique_ptr<RecordAccess> access, const proto::Table& table,
             std::optional<RowsDigest> replaced)
      : attachment_(attachment),
        member_(attachment.member()),
        engine_(std::move(access)),
        table_(table),
        replaced_(replaced),
        load_access_(*engine_, table_, hidden_) {}

  ~HiddenLoad() override {
    if (filled_) return;
    const Interruption none(nullptr);  // also of a statement that was cancelled
    engine_->Abort();
    Clock& clock = attachment_.fabric().clock();
    for (int tries = 0; tries < kUndoTries && !Undo(); ++tries) clock.SleepUntil(clock.After(kUndoPauseUs));
  }

  absl::Status Make(uint64_t rows) {
    NAM_RETURN_IF_ERROR(CheckReplaced());
    static std::atomic<uint64_t> loads = 0;
    proto::Table hidden = HiddenTableFor(table_, absl::StrCat(kLoadTables, member_.value(), ".", ++loads));
    NAM_ASSIGN_OR_RETURN(const std::vector<proto::RecordPart> indexes, IndexesFor(table_, hidden.name()));
    hidden.set_rows(rows);
    hidden_ = hidden;  // from now on it may be there, even if an answer is lost
    NAM_RETURN_IF_ERROR(engine_->CreateTable(hidden, indexes));
    NAM_ASSIGN_OR_RETURN(const auto made, attachment_.catalog().GetTable(hidden_.name()));
    hidden_ = *made;
    return absl::OkStatus();
  }

  RecordAccess& access() override { return load_access_; }

  const proto::Table& stored() const override { return hidden_; }

  // Steps of FinishRecordLoads.
  absl::Status Close() { return Close(true); }
  absl::StatusOr<uint64_t> AwaitCommits() { return engine_->AwaitCommits(); }
  /// The table is closed, and no commit writes to it any more.
  absl::Status CheckClosed() {
    const absl::Status same = CheckReplaced();
    if (absl::IsFailedPrecondition(same)) {
      return txn::AbortStatus(txn::AbortReason::kWriteWrite,
                              absl::StrCat("others have written to table ", table_.name(), " meanwhile"));
    }
    NAM_RETURN_IF_ERROR(same);
    return HandOverNumbers();
  }
  proto::FillTable FillAt(uint64_t snapshot) const {
    proto::FillTable fill = Step();
    fill.set_fill(true);
    fill.set_loaded_at(snapshot);
    return fill;
  }
  void SetFilled() { filled_ = true; }

 private:
  /// Whether nothing of the load is left. What is left ends with the membership.
  bool Undo() {
    const absl::Status opened = Close(false);
    if (!opened.ok() && !absl::IsAborted(opened) && !absl::IsNotFound(opened)) return false;
    if (!hidden_.has_record()) return true;
    const absl::Status dropped = engine_->DropTable(hidden_.name());
    return dropped.ok() || absl::IsNotFound(dropped);
  }
  proto::FillTable Step() const {
    proto::FillTable fill;
    fill.set_table(table_.name());
    fill.set_allocation(table_.allocation());
    fill.set_member(member_.value());
    fill.set_load(hidden_.name());
    return fill;
  }
  absl::Status Close(bool close) {
    if (!close && !closed_) return absl::OkStatus();
    proto::ChangeCatalogRequest request;
    proto::FillTable& step = *request.mutable_fill()->add_steps();
    step = Step();
    step.set_close(close);
    const absl::Status changed = attachment_.catalog().ChangeCatalog(request).status();
    // A lost answer tells nothing.
    const bool refused = absl::IsAborted(changed) || absl::IsFailedPrecondition(changed);
    closed_ = close ? !refused : !refused && !changed.ok();
    return changed;
  }
  /// FAILED_PRECONDITION: the table has not the rows that the load replaces.
  absl::Status CheckReplaced() {
    if (!replaced_.has_value()) return absl::OkStatus();
    NAM_RETURN_IF_ERROR(engine_->Begin());
    RowsDigest digest;
    const absl::Status scanned =
        engine_->Scan(table_, [&](std::span<const std::byte> row) -> absl::StatusOr<bool> {
          if (Interruption::requested()) return absl::CancelledError("cancelled");
          digest.Add(row.first(table_.record().row_bytes()));
          return digest.rows <= replaced_->rows;
        });
    engine_->Abort();
    NAM_RETURN_IF_ERROR(scanned);
    return digest == *replaced_
               ? absl::OkStatus()
               : absl::FailedPreconditionError(absl::StrCat("table ", table_.name(), " has other rows"));
  }
  /// The hidden table goes on where the table's numbers are, which have been taken during the load.
  absl::Status HandOverNumbers() {
    for (int column = 0; column < table_.columns_size(); ++column) {
      if (table_.columns(column).numbering() == proto::NOT_NUMBERED) continue;
      NAM_ASSIGN_OR_RETURN(const uint64_t taken, SkipNumbers(attachment_, table_, column, 0));
      NAM_RETURN_IF_ERROR(SkipNumbers(attachment_, hidden_, column, taken).status());
    }
    return absl::OkStatus();
  }

  catalog::Attachment& attachment_;
  const MemberId member_;  // if it is over, so is the load
  const std::unique_ptr<RecordAccess> engine_;
  const proto::Table table_;
  const std::optional<RowsDigest> replaced_;
  proto::Table hidden_;
  LoadAccess load_access_;
  bool closed_ = false;
  bool filled_ = false;
};

}  // namespace

void RowsDigest::Add(std::span<const std::byte> row) {
  ++rows;
  sum += storage::Checksum(row);
}

absl::StatusOr<std::unique_ptr<RecordLoad>> BeginRecordLoad(catalog::Attachment& attachment,
                                                            std::unique_ptr<RecordAccess> access,
                                                            const proto::Table& table, uint64_t rows,
                                                            std::optional<RowsDigest> replaced) {
  auto load = std::make_unique<HiddenLoad>(attachment, std::move(access), table, replaced);
  NAM_RETURN_IF_ERROR(load->Make(rows));
  return load;
}

absl::Status FinishRecordLoads(catalog::Attachment& attachment,
                               std::span<const std::unique_ptr<RecordLoad>> loads) {
  if (loads.empty()) return absl::OkStatus();
  std::vector<HiddenLoad*> all;
  for (const std::unique_ptr<RecordLoad>& load : loads) all.push_back(static_cast<HiddenLoad*>(load.get()));
  const absl::StatusOr<uint64_t> snapshot = [&]() -> absl::StatusOr<uint64_t> {
    for (HiddenLoad* const load : all) NAM_RETURN_IF_ERROR(load->Close());
    NAM_ASSIGN_OR_RETURN(const uint64_t closed, all[0]->AwaitCommits());
    for (HiddenLoad* const load : all) NAM_RETURN_IF_ERROR(load->CheckClosed());
    return closed;
  }();
  if (absl::IsUnavailable(snapshot.status())) {
    return txn::AbortStatus(txn::AbortReason::kConnectionLost, std::string(snapshot.status().message()));
  }
  NAM_RETURN_IF_ERROR(snapshot.status());
  const Interruption none(nullptr);  // from here on the rows may be the tables'
  proto::ChangeCatalogRequest request;
  for (const HiddenLoad* const load : all) *request.mutable_fill()->add_steps() = load->FillAt(*snapshot);
  NAM_RETURN_IF_ERROR(attachment.catalog().ChangeCatalog(request).status());
  for (HiddenLoad* const load : all) load->SetFilled();
  return absl::OkStatus();
}

}  // namespace nam::session
