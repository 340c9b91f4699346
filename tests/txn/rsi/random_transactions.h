#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "txn/check/history.h"
#include "txn/session.h"

namespace nam::txn {

/// A row that names the write that made it, in every word, so that a mixture of two rows is told from a whole
/// one.
struct NamedRow {
  uint64_t key = 0;
  uint64_t value = 0;
  uint64_t copies[14] = {};

  static NamedRow Of(uint64_t key, uint64_t value) {
    NamedRow row{key, value};
    for (uint64_t& copy : row.copies) copy = value;
    return row;
  }
  /// The value that a history records: one that was never written, if the row is torn.
  uint64_t Read() const {
    for (const uint64_t copy : copies) {
      if (copy != value) return ~(copy * 31 + value) | 1;
    }
    return value;
  }
};
static_assert(sizeof(NamedRow) == 128);

/// Random transactions over a few rows that are always contended.
struct RandomTransactions {
  uint64_t keys = 8;
  int deletes_percent = 10;

  /// Runs one; returns false when the session cannot be used any more.
  template <typename Random>
  bool Run(Session& session, TableHandle table, HistoryRecorder& recorder, Random& random) const {
    const bool at_once = random() % 2 == 0;
    if (!at_once) {
      if (!session.Begin().ok()) return false;
      recorder.Begin(session.snapshot());
    }
    const size_t count = 1 + random() % std::min<uint64_t>(4, keys);
    std::vector<uint64_t> wanted;
    while (wanted.size() < count) {
      const uint64_t key = random() % keys;
      if (std::find(wanted.begin(), wanted.end(), key) == wanted.end()) wanted.push_back(key);
    }
    std::vector<NamedRow> rows(count);
    std::vector<Lookup> lookups;
    for (size_t i = 0; i < count; ++i) {
      lookups.push_back(
          {table, std::as_bytes(std::span(&wanted[i], 1)), std::as_writable_bytes(std::span(&rows[i], 1))});
    }
    const absl::Status read = at_once ? session.BeginAndRead(lookups) : session.Read(lookups);
    if (at_once && read.ok()) recorder.Begin(session.snapshot());
    if (!read.ok()) {
      recorder.End(Outcome::kAborted, 0);
      return AbortReasonOf(read).has_value();
    }
    for (size_t i = 0; i < count; ++i) {
      recorder.Read(RecordId(0, wanted[i]), lookups[i].found ? rows[i].Read() : kNoValue);
    }
    for (size_t i = 0; i < count; ++i) {
      if (random() % 3 == 0) {
        // A lock on a row that was read changes nothing in a history.
        const bool locks = lookups[i].found && random() % 2 == 0;
        const absl::Status locked = locks ? session.Lock(table, lookups[i].key) : absl::OkStatus();
        if (locked.ok()) continue;
        recorder.End(Outcome::kAborted, 0);
        return AbortReasonOf(locked).has_value();
      }
      const uint64_t value = recorder.NextValue();
      OperationKind kind = OperationKind::kInsert;
      absl::Status status;
      const NamedRow row = NamedRow::Of(wanted[i], value);
      if (!lookups[i].found) {
        status = session.Insert(table, std::as_bytes(std::span(&row, 1)));
      } else if (static_cast<int>(random() % 100) < deletes_percent) {
        kind = OperationKind::kDelete;
        status = session.Delete(table, lookups[i].key);
      } else {
        kind = OperationKind::kUpdate;
        status = session.Update(table, std::as_bytes(std::span(&row, 1)));
      }
      if (!status.ok()) {
        recorder.End(Outcome::kAborted, 0);
        return AbortReasonOf(status).has_value();
      }
      recorder.Write(kind, RecordId(0, wanted[i]), kind == OperationKind::kDelete ? kNoValue : value);
    }
    recorder.Committing();
    const absl::StatusOr<uint64_t> committed = session.Commit();
    if (committed.ok()) {
      recorder.RecordOutcome(Outcome::kCommitted, *committed);
      return true;
    }
    if (!AbortReasonOf(committed.status()).has_value()) return false;  // the outcome is unknown
    recorder.RecordOutcome(Outcome::kAborted, 0);
    return true;
  }
};

}  // namespace nam::txn
