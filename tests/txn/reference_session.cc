#include "tests/txn/reference_session.h"

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace nam::txn {

class ReferenceSession final : public Session {
 public:
  explicit ReferenceSession(ReferenceDatabase& database) : database_(database) {}

  absl::StatusOr<TableHandle> OpenTable(const std::string& name) override {
    const MutexLock lock(database_.mutex_);
    for (uint32_t i = 0; i < database_.tables_.size(); ++i) {
      if (database_.tables_[i]->name == name) return TableHandle{i};
    }
    return absl::NotFoundError(name);
  }

  absl::Status Begin() override {
    const MutexLock lock(database_.mutex_);
    snapshot_ = database_.last_commit_;
    writes_.clear();
    undo_.clear();
    return absl::OkStatus();
  }

  absl::Status Read(std::span<Lookup> lookups) override {
    const MutexLock lock(database_.mutex_);
    for (Lookup& lookup : lookups) {
      const std::string* const row = Find(lookup.table, Text(lookup.key));
      lookup.found = row != nullptr;
      if (!lookup.found) continue;
      NAM_CHECK(row->size() == lookup.row.size());
      std::memcpy(lookup.row.data(), row->data(), row->size());
    }
    return absl::OkStatus();
  }

  absl::Status Write(std::span<const RowWrite> writes) override {
    const MutexLock lock(database_.mutex_);
    for (const RowWrite& write : writes) {
      const std::string key = KeyOf(write.table, write.row);
      const bool found = Find(write.table, key) != nullptr;
      const bool inserts = write.kind == RowWrite::Kind::kInsert;
      if (inserts && found) return AbortStatus(AbortReason::kUniqueKey, "insert");
      if (!inserts && !found) return absl::NotFoundError("a row that is not there");
      if (write.kind == RowWrite::Kind::kLock) return absl::UnimplementedError("it locks no rows");
      const bool deletes = write.kind == RowWrite::Kind::kDelete;
      Put(write.table, key, deletes ? std::nullopt : std::optional(Text(write.row)), inserts);
    }
    return absl::OkStatus();
  }

  size_t Mark() const override { return undo_.size(); }
  absl::Status RollBackTo(size_t mark) override {
    for (; undo_.size() > mark; undo_.pop_back()) {
      auto& [where, write] = undo_.back();
      writes_.erase(where);
      if (write.has_value()) writes_.emplace(std::move(where), *std::move(write));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> Commit() override {
    const MutexLock lock(database_.mutex_);
    if (writes_.empty()) return 0;
    if (!ReferenceDatabase::Due(database_.faults_.skip_validation, database_.validations_)) {
      const absl::Status valid = Validate();
      if (!valid.ok()) {
        if (ReferenceDatabase::Due(database_.faults_.keep_aborted, database_.aborts_)) Install(1);
        return valid;
      }
    }
    const bool loses = ReferenceDatabase::Due(database_.faults_.lose_write, database_.commits_);
    return Install(writes_.size() - (loses ? 1 : 0));
  }

  void Abort() override {}
  uint64_t snapshot() const override { return snapshot_; }

 private:
  struct Written {
    std::optional<std::string> row;
    bool insert;
  };

  static std::string Text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  ReferenceDatabase::Table& TableOf(TableHandle table) { return *database_.tables_.at(table.value); }
  std::string KeyOf(TableHandle table, std::span<const std::byte> row) {
    NAM_CHECK(row.size() == TableOf(table).row_bytes || row.size() == TableOf(table).key_bytes);
    return Text(row.first(TableOf(table).key_bytes));
  }

  const std::string* Find(TableHandle table, const std::string& key) {
    const auto write = writes_.find({table.value, key});
    if (write != writes_.end()) return write->second.row.has_value() ? &*write->second.row : nullptr;
    const auto record = TableOf(table).records.find(key);
    if (record == TableOf(table).records.end()) return nullptr;
    const bool newest = ReferenceDatabase::Due(database_.faults_.read_newest, database_.reads_);
    for (auto version = record->second.rbegin(); version != record->second.rend(); ++version) {
      if (version->commit > snapshot_ && !newest) continue;
      return version->row.has_value() ? &*version->row : nullptr;
    }
    return nullptr;
  }

  void Put(TableHandle table, std::string key, std::optional<std::string> row, bool insert) {
    const auto [write, added] = writes_.try_emplace({table.value, std::move(key)}, Written{{}, insert});
    undo_.emplace_back(write->first, added ? std::nullopt : std::optional(write->second));
    write->second.row = std::move(row);
  }

  absl::Status Validate() {
    for (const auto& [where, write] : writes_) {
      const auto& versions = database_.tables_[where.first]->records[where.second];
      if (versions.empty() || versions.back().commit <= snapshot_) continue;
      const bool duplicate = write.insert && versions.back().row.has_value();
      return AbortStatus(duplicate ? AbortReason::kUniqueKey : AbortReason::kWriteWrite, "commit");
    }
    return absl::OkStatus();
  }

  uint64_t Install(size_t writes) {
    const uint64_t commit = ++database_.last_commit_;
    for (auto& [where, write] : writes_) {
      if (writes-- == 0) break;
      database_.tables_[where.first]->records[where.second].push_back({commit, std::move(write.row)});
    }
    return commit;
  }

  ReferenceDatabase& database_;
  uint64_t snapshot_ = 0;
  using Place = std::pair<uint32_t, std::string>;
  std::map<Place, Written> writes_;
  std::vector<std::pair<Place, std::optional<Written>>> undo_;  // what each write has replaced
};

void ReferenceDatabase::CreateTable(const std::string& name, size_t key_bytes, size_t row_bytes) {
  const MutexLock lock(mutex_);
  tables_.push_back(std::make_unique<Table>(Table{name, key_bytes, row_bytes, {}}));
}

std::unique_ptr<Session> ReferenceDatabase::NewSession() {
  return std::make_unique<ReferenceSession>(*this);
}

}  // namespace nam::txn
