#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "partitioner/record_row.h"
#include "session/record_statements.h"
#include "txn/session.h"

namespace nam::session {

/// Record tables in this process, for one session: a transaction works on a copy. A test can have methods
/// fail, which ends the transaction.
class FakeRecordAccess final : public RecordAccess {
 public:
  using Rows = std::map<std::string, std::string>;  // by key

  absl::Status Begin() override {
    NAM_RETURN_IF_ERROR(begin_error);
    NAM_RETURN_IF_ERROR(Failure("Begin"));
    ++begun;
    open_ = true;
    now_ = committed_;
    undo_.clear();
    return absl::OkStatus();
  }
  absl::Status Commit() override {
    if (!open_) return absl::InternalError("no transaction");
    open_ = false;
    NAM_RETURN_IF_ERROR(Failure("Commit"));
    if (!commit_error.ok()) return std::exchange(commit_error, absl::OkStatus());
    committed_ = now_;
    return absl::OkStatus();
  }
  void Abort() override {
    ++aborted;
    open_ = false;
  }
  absl::StatusOr<uint64_t> NewestCommit() override { return 0; }
  size_t Mark() const override { return undo_.size(); }
  absl::Status RollBackTo(size_t mark) override {
    if (!open_) return absl::FailedPreconditionError("no transaction");
    for (; undo_.size() > mark; undo_.pop_back()) {
      Before& before = undo_.back();
      Rows& rows = now_[before.table];
      rows.erase(before.key);
      if (before.row.has_value()) rows.emplace(std::move(before.key), *std::move(before.row));
    }
    return absl::OkStatus();
  }
  absl::Status Lookup(const proto::Table& table, std::span<const std::string> keys,
                      const OnRow& on_row) override {
    NAM_RETURN_IF_ERROR(Failure("Lookup"));
    if (!open_) return absl::InternalError("no transaction");
    for (const std::string& key : keys) {
      ++rows_read;
      const auto found = now_[table.name()].find(key);
      if (found == now_[table.name()].end()) continue;
      const absl::StatusOr<bool> more = on_row(std::as_bytes(std::span(found->second)));
      if (!more.ok()) return more.status();
      if (!*more) break;
    }
    return absl::OkStatus();
  }
  absl::Status Scan(const proto::Table& table, const OnRow& on_row) override {
    NAM_RETURN_IF_ERROR(Failure("Scan"));
    if (!open_) return absl::InternalError("no transaction");
    for (const auto& [key, row] : now_[table.name()]) {
      ++rows_read;
      const absl::StatusOr<bool> more = on_row(std::as_bytes(std::span(row)));
      if (!more.ok()) return more.status();
      if (!*more) break;
    }
    return absl::OkStatus();
  }
  absl::Status ScanIndex(const proto::Table& table, int index, const sql::KeyRange& range,
                         const OnRow& on_row) override {
    NAM_RETURN_IF_ERROR(Failure("ScanIndex"));
    if (!open_) return absl::InternalError("no transaction");
    const partitioner::RecordLayout layout(table);
    const auto& part = table.record().parts(index);
    const std::vector<uint32_t> columns(part.columns().begin(), part.columns().end());
    std::multimap<std::string, std::string> entries;
    for (const auto& [key, row] : now_[table.name()]) {
      entries.emplace(layout.IndexKey(std::as_bytes(std::span(row)), columns), row);
    }
    for (auto at = entries.lower_bound(range.low);
         at != entries.end() && (range.high.empty() || at->first < range.high); ++at) {
      ++rows_read;
      const absl::StatusOr<bool> more = on_row(std::as_bytes(std::span(at->second)));
      if (!more.ok()) return more.status();
      if (!*more) break;
    }
    return absl::OkStatus();
  }
  absl::Status VisitWrites(const proto::Table& table, const OnWrite& on_write) override {
    NAM_RETURN_IF_ERROR(Failure("VisitWrites"));
    if (!open_) return absl::InternalError("no transaction");
    const Rows &before = committed_[table.name()], &now = now_[table.name()];
    for (const auto& [key, row] : now) {
      const auto old = before.find(key);
      if (old == before.end() || old->second != row) on_write(key, row);
    }
    for (const auto& [key, row] : before) {
      if (!now.contains(key)) on_write(key, "");
    }
    return absl::OkStatus();
  }
  absl::Status Insert(const proto::Table& table, std::span<const std::string> rows, size_t* taken) override {
    NAM_RETURN_IF_ERROR(Failure("Insert"));
    if (!open_) return absl::InternalError("no transaction");
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::string key = rows[i].substr(0, table.record().key_bytes());
      *taken = i;
      if (!insert_error.ok()) return insert_error;
      if (!now_[table.name()].emplace(key, rows[i]).second) return absl::AlreadyExistsError("key");
      undo_.push_back({table.name(), key, std::nullopt});
    }
    return absl::OkStatus();
  }
  absl::Status Update(const proto::Table& table, std::span<const std::string> rows) override {
    NAM_RETURN_IF_ERROR(Failure("Update"));
    for (const std::string& row : rows) {
      const auto found = now_[table.name()].find(row.substr(0, table.record().key_bytes()));
      if (!open_ || found == now_[table.name()].end()) return absl::NotFoundError("no such row");
      undo_.push_back({table.name(), found->first, found->second});
      found->second = row;
    }
    return absl::OkStatus();
  }
  absl::Status Delete(const proto::Table& table, std::span<const std::string> keys) override {
    NAM_RETURN_IF_ERROR(Failure("Delete"));
    for (const std::string& key : keys) {
      Rows& rows = now_[table.name()];
      const auto found = rows.find(key);
      if (!open_ || found == rows.end()) return absl::NotFoundError("no such row");
      undo_.push_back({table.name(), found->first, found->second});
      rows.erase(found);
    }
    return absl::OkStatus();
  }

  absl::Status Lock(const proto::Table& table, std::span<const std::string> keys, bool waits) override {
    NAM_RETURN_IF_ERROR(Failure("Lock"));
    for (const std::string& key : keys) {
      if (!open_ || !now_[table.name()].contains(key)) return absl::NotFoundError("no such row");
      locked.push_back(absl::StrCat(table.name(), waits ? " " : " nowait ",
                                    partitioner::RecordLayout(table)
                                        .Decode(std::as_bytes(std::span(now_[table.name()][key])))[0]
                                        .ToString()));
    }
    return absl::OkStatus();
  }
  void SetLockTimeout(int64_t) override {}
  void SetTransactionBytesMax(uint64_t) override {}

  absl::StatusOr<uint64_t> NextNumber(const proto::Table& table, int column) override {
    NAM_RETURN_IF_ERROR(Failure("NextNumber"));
    return numbers[table.name()][column]++;
  }

  absl::Status CreateTable(const proto::Table& table, std::span<const proto::RecordPart> indexes) override {
    NAM_RETURN_IF_ERROR(Failure("CreateTable"));
    if (!tables.emplace(table.name(), table).second) return absl::AlreadyExistsError(table.name());
    for (const proto::ForeignKey& key : table.record().foreign_keys()) {
      proto::ReferencingKey& reference = *tables[key.parent()].mutable_record()->add_referenced_by();
      reference.set_child(table.name());
      *reference.mutable_key() = key;
    }
    for (const proto::RecordPart& index : indexes) NAM_RETURN_IF_ERROR(CreateIndex(table, index));
    return absl::OkStatus();
  }
  absl::Status DropTable(const std::string& name, bool /*cascade*/) override {
    NAM_RETURN_IF_ERROR(Failure("DropTable"));
    return tables.erase(name) == 0 ? absl::NotFoundError(name) : absl::OkStatus();
  }
  absl::Status CreateIndex(const proto::Table& table, const proto::RecordPart& index) override {
    NAM_RETURN_IF_ERROR(Failure("CreateIndex"));
    for (const auto& [name, other] : tables) {
      for (const proto::RecordPart& part : other.record().parts()) {
        if (part.name() == index.name()) return absl::AlreadyExistsError(index.name());
      }
    }
    proto::RecordPart& part = *tables[table.name()].mutable_record()->add_parts();
    part = index;
    part.set_usable_from(usable_from);
    return absl::OkStatus();
  }
  absl::Status DropIndex(const std::string& name) override {
    NAM_RETURN_IF_ERROR(Failure("DropIndex"));
    for (auto& [table_name, table] : tables) {
      for (const std::string& constraint : table.record().unique_constraints()) {
        if (constraint == name) return absl::FailedPreconditionError("a constraint's");
      }
      auto& parts = *table.mutable_record()->mutable_parts();
      for (auto part = parts.begin(); part != parts.end(); ++part) {
        if (part->name() != name) continue;
        parts.erase(part);
        return absl::OkStatus();
      }
    }
    return absl::NotFoundError(name);
  }
  uint64_t snapshot() const override { return 10; }
  absl::Status MayWrite(size_t rows) const override {
    return rows <= 511 ? absl::OkStatus() : txn::TooLargeStatus("more than fits");
  }

  std::map<std::string, proto::Table> tables;
  std::map<std::string, std::map<int, uint64_t>> numbers;  // handed out, by table and column
  std::string failing;                                     // a method that returns `failure` and does nothing
  absl::Status failure;
  absl::Status begin_error;         // of every Begin
  absl::Status commit_error;        // of the next Commit
  absl::Status insert_error;        // of every Insert
  std::vector<std::string> locked;  // tables, and the first column of their rows
  int begun = 0;
  int aborted = 0;
  int rows_read = 0;
  uint64_t usable_from = 1;  // of the next index

 private:
  struct Before {
    std::string table, key;
    std::optional<std::string> row;  // nullopt: it did not exist
  };
  absl::Status Failure(const char* method) {
    if (failing != method) return absl::OkStatus();
    open_ = false;
    return failure;
  }

  bool open_ = false;
  std::map<std::string, Rows> committed_, now_;
  std::vector<Before> undo_;  // of the transaction's writes
};

}  // namespace nam::session
