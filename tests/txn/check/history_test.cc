#include "txn/check/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/txn/check/histories.h"

namespace nam::txn {
namespace {

std::string NewPath(const std::string& name) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::filesystem::remove(path);
  return path;
}

std::vector<TransactionRecord> ReadAll(const SessionHistory& history) {
  HistoryReader reader(history);
  std::vector<TransactionRecord> all;
  for (TransactionRecord transaction; reader.Next(transaction);) all.push_back(transaction);
  return all;
}

Operation AnyOperation() {
  Operation operation;
  operation.kind = *rc::gen::element(OperationKind::kRead, OperationKind::kInsert, OperationKind::kUpdate,
                                     OperationKind::kDelete, OperationKind::kLock);
  operation.record = *rc::gen::arbitrary<uint64_t>();
  operation.value = *rc::gen::arbitrary<uint64_t>();
  if (operation.kind == OperationKind::kRead && *rc::gen::arbitrary<bool>()) {
    operation.version = *rc::gen::element<uint64_t>(0, 5, 1'000'000, ~uint64_t{1});
  }
  return operation;
}

TEST(History, GivesBackWhatWasRecorded) {
  EXPECT_TRUE(rc::check("round trip", [] {
    std::vector<TransactionRecord> recorded;
    const auto history = SessionHistory::InMemory();
    HistoryRecorder recorder(1, *history);
    const auto transactions = *rc::gen::inRange(0, 40);
    for (int i = 0; i < transactions; ++i) {
      TransactionRecord transaction;
      transaction.snapshot = *rc::gen::arbitrary<uint64_t>();
      transaction.commit = *rc::gen::arbitrary<uint64_t>();
      transaction.outcome = *rc::gen::element(Outcome::kUnknown, Outcome::kCommitted, Outcome::kAborted);
      const auto operations = *rc::gen::inRange(0, 20);
      for (int k = 0; k < operations; ++k) transaction.operations.push_back(AnyOperation());
      recorder.Record(transaction);
      recorded.push_back(transaction);
    }
    RC_ASSERT(ReadAll(*history) == recorded);
  }));
}

TEST(History, TransactionsLargerThanAChunkHaveRoom) {
  const auto history = SessionHistory::InMemory();
  HistoryRecorder recorder(1, *history);
  TransactionRecord large = Committed(1, 2, {});
  for (uint64_t i = 0; i < 300'000; ++i) large.operations.push_back(Inserted(RecordId(1, i * 977), i + 1));
  const TransactionRecord small = Committed(2, 3, {Saw(5, 6)});
  for (const auto& transaction : {small, large, small, large}) recorder.Record(transaction);
  EXPECT_GT(history->chunks().size(), 2u);
  EXPECT_EQ(ReadAll(*history), (std::vector{small, large, small, large}));
}

TEST(History, ACheckoutTakesAHundredBytes) {
  const auto history = SessionHistory::InMemory();
  HistoryRecorder recorder(7, *history);
  constexpr uint64_t kTransactions = 100'000;
  for (uint64_t t = 1; t <= kTransactions; ++t) {
    recorder.Begin(3 * t);
    const auto product = [&](uint64_t i) {
      return RecordId(1, (3 * t + i) * 0x9e3779b97f4a7c15 % 1'000'000);
    };
    for (uint64_t i = 0; i < 3; ++i) {
      recorder.Read(product(i), (t * 7919 + i) % 8 << 40 | t * 0x9e3779b97f4a7c15 % 1'000'000);
    }
    recorder.Write(OperationKind::kInsert, RecordId(2, uint64_t{7} << 40 | t), recorder.NextValue());
    for (uint64_t i = 0; i < 3; ++i) {
      recorder.Write(OperationKind::kInsert, RecordId(3, uint64_t{7} << 42 | 4 * t | i),
                     recorder.NextValue());
    }
    for (uint64_t i = 0; i < 3; ++i) recorder.Write(OperationKind::kUpdate, product(i), recorder.NextValue());
    recorder.Committing();
    recorder.RecordOutcome(Outcome::kCommitted, 3 * t + 2);
  }
  EXPECT_LT(history->bytes() / kTransactions, 100u);
}

TEST(History, WhatDoesNotEndIsUnknown) {
  const auto history = SessionHistory::InMemory();
  HistoryRecorder recorder(1, *history);
  recorder.Begin(3);
  recorder.Write(OperationKind::kInsert, 5, 6);  // left behind before its commit
  recorder.Begin(4);
  recorder.Write(OperationKind::kInsert, 7, 8);
  recorder.Committing();
  EXPECT_EQ(ReadAll(*history), (std::vector{Aborted(3, {Inserted(5, 6)}), Unknown(4, {Inserted(7, 8)})}));
  recorder.RecordOutcome(Outcome::kCommitted, 9);
  EXPECT_EQ(ReadAll(*history).back(), Committed(4, 9, {Inserted(7, 8)}));
}

/// A commit whose outcome stays open, and behind it a transaction that cannot begin.
TEST(History, WhatIsUnknownStaysSo) {
  const auto history = SessionHistory::InMemory();
  HistoryRecorder recorder(1, *history);
  recorder.Begin(3);
  recorder.Write(OperationKind::kInsert, 5, 6);
  recorder.Committing();
  recorder.End(Outcome::kAborted, 0);
  EXPECT_EQ(ReadAll(*history), (std::vector{Unknown(3, {Inserted(5, 6)})}));
}

TEST(History, AFileOutlivesItsProcess) {
  const std::string path = NewPath("killed.history");
  const pid_t child = ::fork();
  if (child == 0) {
    auto history = SessionHistory::InFile(path);
    HistoryRecorder recorder(1, **history);
    for (uint64_t i = 1; i <= 100'000; ++i) recorder.Record(Committed(i, i + 1, {Inserted(i, i)}));
    recorder.Begin(100'001);
    recorder.Write(OperationKind::kInsert, 1, 100'001);
    recorder.Committing();
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto history = SessionHistory::Load(path);
  ASSERT_TRUE(history.ok()) << history.status();
  const auto all = ReadAll(**history);
  ASSERT_EQ(all.size(), 100'001u);
  EXPECT_EQ(all[77'776], Committed(77'777, 77'778, {Inserted(77'777, 77'777)}));
  EXPECT_EQ(all.back(), Unknown(100'001, {Inserted(1, 100'001)}));
}

TEST(History, RefusesFilesThatAreNone) {
  EXPECT_EQ(SessionHistory::Load(NewPath("absent")).status().code(), absl::StatusCode::kNotFound);
  const std::string path = NewPath("text");
  std::ofstream(path) << "this is no history at all";
  EXPECT_EQ(SessionHistory::Load(path).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SessionHistory::Load(::testing::TempDir()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SessionHistory::InFile(path).status().code(), absl::StatusCode::kAlreadyExists);
}

/// A byte that differs, or bytes that are missing: every used byte counts, except outcomes and commits, which
/// are filled in later.
TEST(History, FilesThatAreDamagedSaySo) {
  const std::string path = NewPath("whole");
  {
    auto history = SessionHistory::InFile(path, 5);
    ASSERT_TRUE(history.ok());
    HistoryRecorder recorder(1, **history);
    for (uint64_t i = 6; i <= 8; ++i) recorder.Record(Committed(i, i + 1, {Inserted(i, i)}));
  }
  const auto loaded = SessionHistory::Load(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->loaded_until(), 5u);
  std::ifstream file(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  const auto code_of = [&](const std::string& bytes) {
    const std::string other = NewPath("other");
    std::ofstream(other, std::ios::binary) << bytes;
    return SessionHistory::Load(other).status().code();
  };
  EXPECT_EQ(code_of(whole), absl::StatusCode::kOk);
  EXPECT_EQ(code_of(whole.substr(0, whole.size() / 2)), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code_of(whole.substr(0, 20)), absl::StatusCode::kDataLoss);
  std::string changed = whole;
  changed[8] = 2;
  EXPECT_EQ(code_of(changed), absl::StatusCode::kInvalidArgument) << "of another format";
  constexpr size_t kTransaction = 32;  // the first, behind the chunk's header
  for (size_t at = kTransaction; at < kTransaction + 21; ++at) {
    if (at >= kTransaction + 8 && at < kTransaction + 16) continue;  // its commit timestamp
    changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    EXPECT_EQ(code_of(changed), absl::StatusCode::kDataLoss) << at;
  }
}

TEST(History, RecordsOfDifferentTablesDiffer) {
  EXPECT_NE(RecordId(1, 5), RecordId(2, 5));
  EXPECT_NE(RecordId(1, ~uint64_t{0}), RecordId(1, ~uint64_t{1}));
  const uint64_t key = 77;
  EXPECT_EQ(RecordId(1, std::as_bytes(std::span(&key, 1))), RecordId(1, key));
  const char text[] = "a composite key";
  EXPECT_NE(RecordId(1, std::as_bytes(std::span(text))), RecordId(2, std::as_bytes(std::span(text))));
}

}  // namespace
}  // namespace nam::txn
