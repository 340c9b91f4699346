#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <random>

#include "tests/txn/check/histories.h"
#include "tests/txn/reference_session.h"
#include "txn/check/history_checker.h"

// Histories of a correct engine, interleaved as rapidcheck draws it (it prints its seed and the smallest
// case), are accepted; with one thing changed they are refused.
namespace nam::txn {
namespace {

struct Row {
  uint64_t key;
  uint64_t value;
};

std::span<const std::byte> RowBytes(const Row& row) {
  return std::as_bytes(std::span(&row, 1));
}
std::span<const std::byte> KeyBytes(const Row& row) {
  return RowBytes(row).first(8);
}

struct Mix {
  bool deletes = false;
  bool kills = false;  // clients are killed before they learn the outcome of a commit
};

/// A session that does one small step at a time.
class Client {
 public:
  Client(uint32_t number, ReferenceDatabase& database, const Mix& mix)
      : session_(database.NewSession()),
        history_(SessionHistory::InMemory()),
        recorder_(number, *history_),
        mix_(mix) {
    table_ = *session_->OpenTable("t");
  }

  /// Runs step by step: begin; read and perhaps change a row, three times; commit.
  void Step(uint64_t key, uint64_t choice) {
    if (step_ == 0) {
      RC_ASSERT(session_->Begin().ok());
      recorder_.Begin(session_->snapshot());
    } else if (step_ < 4) {
      if (!Touch(key, choice)) {
        recorder_.End(Outcome::kAborted, 0);
        step_ = 0;
        return;
      }
    } else {
      Commit(choice);
      step_ = 0;
      return;
    }
    ++step_;
  }
  std::unique_ptr<SessionHistory> TakeHistory() {
    if (step_ > 0) recorder_.End(Outcome::kAborted, 0);
    return std::move(history_);
  }

 private:
  bool Touch(uint64_t key, uint64_t choice) {
    Row row = {key, 0};
    Lookup lookup = {table_, KeyBytes(row), std::as_writable_bytes(std::span(&row, 1))};
    const Row asked = row;
    lookup.key = KeyBytes(asked);
    RC_ASSERT(session_->Read(std::span(&lookup, 1)).ok());
    recorder_.Read(RecordId(1, key), lookup.found ? row.value : kNoValue);
    if (choice % 4 == 0) return true;
    const bool remove = mix_.deletes && lookup.found && choice % 4 == 1 && choice % 8 < 4;
    const Row changed = {key, recorder_.NextValue()};
    recorder_.Write(!lookup.found ? OperationKind::kInsert
                    : remove      ? OperationKind::kDelete
                                  : OperationKind::kUpdate,
                    RecordId(1, key), remove ? kNoValue : changed.value);
    if (!lookup.found) return session_->Insert(table_, RowBytes(changed)).ok();
    return (remove ? session_->Delete(table_, KeyBytes(changed))
                   : session_->Update(table_, RowBytes(changed)))
        .ok();
  }

  void Commit(uint64_t choice) {
    if (choice % 8 == 7) {
      session_->Abort();
      recorder_.End(Outcome::kAborted, 0);
      return;
    }
    recorder_.Committing();
    const auto commit = session_->Commit();
    // Now and then the client is killed before it learns the outcome.
    if (choice % 8 == 6 && mix_.kills) return;
    recorder_.RecordOutcome(commit.ok() ? Outcome::kCommitted : Outcome::kAborted, commit.value_or(0));
  }

  std::unique_ptr<Session> session_;
  std::unique_ptr<SessionHistory> history_;
  HistoryRecorder recorder_;
  const Mix mix_;
  TableHandle table_;
  int step_ = 0;
};

Sessions AnyHistory(const ReferenceFaults& faults, uint64_t steps_max, const Mix& mix) {
  ReferenceDatabase database;
  database.CreateTable("t", 8, sizeof(Row));
  database.set_faults(faults);
  const auto clients = *rc::gen::inRange<uint64_t>(1, 6);
  const auto keys = *rc::gen::inRange<uint64_t>(1, 7);
  std::mt19937_64 random(*rc::gen::noShrink(rc::gen::inRange<uint64_t>(0, 1'000'000'000)));
  const auto steps = *rc::gen::inRange<uint64_t>(0, steps_max);
  std::vector<Client> all;
  for (uint32_t i = 0; i < clients; ++i) all.emplace_back(i, database, mix);
  for (uint64_t i = 0; i < steps; ++i) {
    const uint64_t draw = random();
    all[draw % clients].Step(draw / 16 % keys, draw >> 32);
  }
  std::vector<std::unique_ptr<SessionHistory>> histories;
  for (Client& client : all) histories.push_back(client.TakeHistory());
  return Histories(std::move(histories)).Decoded();
}

struct Place {
  size_t session, transaction, operation;
};

/// The reads of others' committed values.
std::vector<Place> ReadsOf(const Sessions& sessions, bool by_committed) {
  std::vector<Place> places;
  for (size_t s = 0; s < sessions.size(); ++s) {
    for (size_t t = 0; t < sessions[s].size(); ++t) {
      const TransactionRecord& transaction = sessions[s][t];
      if (by_committed && transaction.outcome != Outcome::kCommitted) continue;
      for (size_t o = 0; o < transaction.operations.size(); ++o) {
        const Operation& read = transaction.operations[o];
        if (read.kind != OperationKind::kRead || read.value == kNoValue) continue;
        const bool own = std::any_of(
            transaction.operations.begin(), transaction.operations.begin() + static_cast<ptrdiff_t>(o),
            [&](const Operation& earlier) {
              return earlier.kind != OperationKind::kRead && earlier.record == read.record;
            });
        if (!own) places.push_back({s, t, o});
      }
    }
  }
  return places;
}

TransactionRecord* WriterOf(Sessions& sessions, uint64_t value) {
  for (auto& transactions : sessions) {
    for (TransactionRecord& transaction : transactions) {
      for (const Operation& operation : transaction.operations) {
        if (operation.kind != OperationKind::kRead && operation.value == value) return &transaction;
      }
    }
  }
  return nullptr;
}

TEST(HistoryProperties, ASoundEngineIsAccepted) {
  EXPECT_TRUE(rc::check("accepted", [] {
    const Sessions sessions = AnyHistory({}, 400, {.deletes = true, .kills = true});
    for (const size_t memory_bytes : {size_t{1} << 20, size_t{256}}) {
      const CheckOptions options = {.memory_bytes = memory_bytes};
      const CheckReport timestamps = ByTimestamps(sessions, options);
      if (!timestamps.ok()) RC_FAIL(timestamps.ToString());
      const CheckReport dependencies = ByDependencies(sessions, options);
      if (!dependencies.ok()) RC_FAIL(dependencies.ToString());
    }
  }));
}

TEST(HistoryProperties, OneChangeIsRefused) {
  EXPECT_TRUE(rc::check("refused", [] {
    Sessions sessions = AnyHistory({}, 400, {.deletes = true});
    const auto reads = ReadsOf(sessions, false);
    RC_PRE(!reads.empty());
    const Place place = *rc::gen::elementOf(reads);
    TransactionRecord& reader = sessions[place.session][place.transaction];
    Operation& read = reader.operations[place.operation];
    TransactionRecord& writer = *WriterOf(sessions, read.value);
    RC_PRE(writer.outcome == Outcome::kCommitted);
    bool by_dependencies = true;
    switch (*rc::gen::inRange(0, 6)) {
      case 0:
        RC_TAG("torn");
        read.value ^= 0xff000;
        break;
      case 1:
        RC_TAG("aborted");
        writer.outcome = Outcome::kAborted;
        break;
      case 2:
        RC_TAG("snapshot after commit");
        writer.snapshot = writer.commit;
        by_dependencies = false;
        break;
      case 3:
        RC_TAG("committed after it was read");
        writer.commit = reader.snapshot + 1;
        by_dependencies = false;
        break;
      case 4:
        RC_TAG("nothing where there was something");
        read.value = kNoValue;
        by_dependencies = false;
        break;
      default: {
        RC_TAG("another's value of the record");
        std::vector<uint64_t> others;
        for (const auto& transactions : sessions) {
          for (const auto& transaction : transactions) {
            for (const auto& operation : transaction.operations) {
              const bool write =
                  operation.kind == OperationKind::kInsert || operation.kind == OperationKind::kUpdate;
              if (write && operation.record == read.record && operation.value != read.value &&
                  transaction.outcome == Outcome::kCommitted) {
                others.push_back(operation.value);
              }
            }
          }
        }
        RC_PRE(!others.empty());
        read.value = *rc::gen::elementOf(others);
        by_dependencies = false;
      }
    }
    const CheckReport report = ByTimestamps(sessions);
    RC_ASSERT(!report.ok());
    if (by_dependencies) RC_ASSERT(!ByDependencies(sessions).ok());
  }));
}

/// The definition itself, on small histories: with D the dependencies and A the anti-dependencies, D ; A? has
/// no cycle. As versions' order is taken from the commit timestamps, it shares nothing with the check.
bool IsSnapshotIsolation(const Sessions& sessions) {
  std::vector<const TransactionRecord*> all;
  for (const auto& transactions : sessions) {
    for (const auto& transaction : transactions) all.push_back(&transaction);
  }
  const size_t n = all.size();
  std::vector<std::vector<bool>> d(n, std::vector<bool>(n)), a = d;
  std::map<uint64_t, std::vector<std::pair<uint64_t, size_t>>> versions;  // by record: commit, writer
  const auto last_write = [&](size_t t, uint64_t record) {
    std::optional<uint64_t> value;
    for (const Operation& operation : all[t]->operations) {
      if (operation.kind != OperationKind::kRead && operation.record == record) value = operation.value;
    }
    return value;
  };
  for (size_t t = 0; t < n; ++t) {
    if (all[t]->outcome != Outcome::kCommitted) continue;
    for (const Operation& operation : all[t]->operations) {
      if (operation.kind != OperationKind::kRead) versions[operation.record].emplace_back(all[t]->commit, t);
    }
  }
  for (auto& [record, order] : versions) {
    std::sort(order.begin(), order.end());
    order.erase(std::unique(order.begin(), order.end()), order.end());
    for (size_t i = 0; i + 1 < order.size(); ++i) d[order[i].second][order[i + 1].second] = true;
  }
  for (size_t t = 0; t < n; ++t) {
    std::map<uint64_t, bool> wrote;
    for (const Operation& operation : all[t]->operations) {
      if (operation.kind != OperationKind::kRead) wrote[operation.record] = true;
      if (operation.kind != OperationKind::kRead || wrote[operation.record]) continue;
      const auto& order = versions[operation.record];
      size_t next = 0;
      if (operation.value != kNoValue) {
        while (next < order.size() && last_write(order[next].second, operation.record) != operation.value)
          ++next;
        if (next == order.size()) return false;
        if (order[next].second != t) d[order[next].second][t] = true;
        ++next;
      }
      if (next < order.size() && order[next].second != t) a[t][order[next].second] = true;
    }
  }
  auto reach = d;
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < n; ++k) {
      for (size_t j = 0; d[i][k] && j < n; ++j) {
        if (a[k][j]) reach[i][j] = true;
      }
    }
  }
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; reach[i][k] && j < n; ++j) {
        if (reach[k][j]) reach[i][j] = true;
      }
    }
  }
  for (size_t i = 0; i < n; ++i) {
    if (reach[i][i]) return false;
  }
  return true;
}

TEST(HistoryProperties, DependenciesDecideAsTheDefinitionDoes) {
  int refused = 0, accepted = 0;
  EXPECT_TRUE(rc::check("as defined", [&] {
    // Deletes leave open which absence a read saw, and unknown outcomes leave the writer open: this history
    // has neither.
    ReferenceFaults faults;
    faults.read_newest = *rc::gen::inRange<uint64_t>(2, 9);
    const Sessions sessions = AnyHistory(faults, 120, {});
    const bool expected = IsSnapshotIsolation(sessions);
    (expected ? accepted : refused)++;
    const CheckReport report = ByDependencies(sessions);
    if (report.ok() != expected) RC_FAIL(report.ToString());
  }));
  RecordProperty("refused", refused);
  RecordProperty("accepted", accepted);
}

}  // namespace
}  // namespace nam::txn
