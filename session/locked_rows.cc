#include "session/locked_rows.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace nam::session {

LockedRows::LockedRows(const std::vector<sql::RowLock>& locks, RowReceiver& receiver)
    : shown_(static_cast<size_t>(locks.at(0).first)), receiver_(receiver) {
  for (const sql::RowLock& lock : locks)
    tables_.push_back(
        {lock, partitioner::RecordLayout(*lock.table), partitioner::KeyColumnsOf(*lock.table), {}});
}

absl::Status LockedRows::Begin(const std::vector<ResultSet::Column>& columns) {
  return receiver_.Begin({columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(shown_)});
}

absl::Status LockedRows::Add(const ResultBatch& rows) {
  for (Table& table : tables_) {
    for (size_t row = 0; row < rows.rows(); ++row) {
      std::string key;
      auto column = static_cast<size_t>(table.lock.first);
      for (const uint32_t part : table.key_columns) table.layout.Append(part, rows.Boxed(column++, row), key);
      bytes_ += sizeof(key) + key.size();
      table.keys.push_back(std::move(key));
    }
  }
  return receiver_.Add(rows.First(shown_));
}

absl::Status LockedRows::Lock(RecordAccess& access) {
  for (Table& table : tables_) {
    std::sort(table.keys.begin(), table.keys.end());
    table.keys.erase(std::unique(table.keys.begin(), table.keys.end()), table.keys.end());
    NAM_RETURN_IF_ERROR(access.MayWrite(table.keys.size()));
    NAM_RETURN_IF_ERROR(access.Lock(*table.lock.table, table.keys, table.lock.waits));
  }
  return absl::OkStatus();
}

}  // namespace nam::session
