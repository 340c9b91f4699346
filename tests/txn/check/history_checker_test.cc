#include "txn/check/history_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/txn/check/histories.h"

namespace nam::txn {
namespace {

using ::testing::HasSubstr;

// Records of table 1; values are session.number.
constexpr uint64_t X = uint64_t{1} << 56 | 1, Y = uint64_t{1} << 56 | 2;
constexpr uint64_t Value(uint64_t session, uint64_t number) {
  return session << 40 | number;
}
constexpr uint64_t kX0 = Value(1, 1), kY0 = Value(1, 2), kX1 = Value(2, 1), kY1 = Value(2, 2),
                   kX2 = Value(3, 1), kY2 = Value(3, 2), kZ = Value(9, 9);

const TransactionRecord kLoad = Committed(0, 1, {Inserted(X, kX0), Inserted(Y, kY0)});

/// Both checks find the fault; that of the timestamps names the record and both transactions.
void ExpectBoth(AnomalyKind kind, const Sessions& sessions, const CheckOptions& options = {}) {
  for (const CheckReport& report : {ByTimestamps(sessions, options), ByDependencies(sessions, options)}) {
    EXPECT_TRUE(report.Has(kind)) << AnomalyName(kind) << " not found in:\n" << report.ToString();
  }
}
void ExpectByTimestamps(AnomalyKind kind, const Sessions& sessions, const CheckOptions& options = {}) {
  const CheckReport report = ByTimestamps(sessions, options);
  EXPECT_TRUE(report.Has(kind)) << AnomalyName(kind) << " not found in:\n" << report.ToString();
}
void ExpectAccepted(const Sessions& sessions, const CheckOptions& options = {}) {
  for (const CheckReport& report : {ByTimestamps(sessions, options), ByDependencies(sessions, options)}) {
    EXPECT_TRUE(report.ok()) << report.ToString();
  }
}

TEST(HistoryChecker, AcceptsNothingAndOneAfterTheOther) {
  ExpectAccepted({});
  ExpectAccepted({{}, {}});
  ExpectAccepted(
      {{kLoad, Committed(1, 2, {Saw(X, kX0), Updated(X, kX1)}), Committed(2, 0, {Saw(X, kX1), Saw(Y, kY0)}),
        Committed(2, 3, {Saw(X, kX1), Deleted(X)}), Committed(3, 0, {SawNothing(X)}),
        Committed(3, 4, {SawNothing(X), Inserted(X, kX2)}), Committed(4, 0, {Saw(X, kX2)})}});
}

TEST(HistoryChecker, AcceptsWriteSkew) {
  ExpectAccepted({{kLoad},
                  {Committed(1, 2, {Saw(X, kX0), Saw(Y, kY0), Updated(X, kX1)})},
                  {Committed(1, 3, {Saw(X, kX0), Saw(Y, kY0), Updated(Y, kY2)})}});
}

TEST(HistoryChecker, AcceptsOwnWritesAndConflictsThatAborted) {
  ExpectAccepted({{kLoad},
                  {Committed(1, 2, {Saw(X, kX0), Updated(X, kZ), Saw(X, kZ), Updated(X, kX1)})},
                  {Aborted(1, {Saw(X, kX0), Updated(X, kX2)}), Committed(2, 0, {Saw(X, kX1)})}});
}

TEST(HistoryChecker, DirtyRead) {
  ExpectByTimestamps(
      AnomalyKind::kDirtyRead,
      {{kLoad}, {Committed(1, 3, {Saw(X, kX0), Updated(X, kX1)})}, {Committed(2, 0, {Saw(X, kX1)})}});
  // The record does not exist, because of a delete that comes later.
  ExpectByTimestamps(AnomalyKind::kDirtyRead,
                     {{Committed(1, 0, {Saw(X, kX0)})},
                      {Committed(1, 3, {Saw(X, kX0), Deleted(X)})},
                      {Committed(2, 0, {SawNothing(X)})}},
                     {.loaded_until = 1});
}

TEST(HistoryChecker, AbortedRead) {
  ExpectBoth(AnomalyKind::kAbortedRead,
             {{kLoad}, {Aborted(1, {Saw(X, kX0), Updated(X, kX1)})}, {Committed(2, 0, {Saw(X, kX1)})}});
}

TEST(HistoryChecker, IntermediateRead) {
  ExpectBoth(AnomalyKind::kIntermediateRead,
             {{kLoad},
              {Committed(1, 2, {Saw(X, kX0), Updated(X, kZ), Updated(X, kX1)})},
              {Committed(2, 0, {Saw(X, kZ)})}});
}

TEST(HistoryChecker, TornValue) {
  ExpectBoth(AnomalyKind::kTornValue, {{kLoad}, {Committed(1, 0, {Saw(X, 0xdeadbeef)})}});
}

TEST(HistoryChecker, StaleRead) {
  ExpectByTimestamps(AnomalyKind::kStaleRead, {{kLoad},
                                               {Committed(1, 2, {Saw(X, kX0), Updated(X, kX1)})},
                                               {Committed(2, 0, {Saw(X, kX0), Saw(Y, kY0)})}});
}

TEST(HistoryChecker, FracturedRead) {
  const Sessions sessions = {{kLoad},
                             {Committed(1, 2, {Saw(X, kX0), Saw(Y, kY0), Updated(X, kX1), Updated(Y, kY1)})},
                             {Committed(2, 0, {Saw(X, kX1), Saw(Y, kY0)})}};
  ExpectBoth(AnomalyKind::kFracturedRead, sessions);
  const std::string text = ByTimestamps(sessions).ToString();
  EXPECT_THAT(text,
              HasSubstr("fractured read of 1/2:\n"
                        "  session 2, transaction 0: snapshot 2, committed: read 1/2 = 1.2, read 1/1 = 2.1\n"
                        "  session 1, transaction 0: snapshot 1, commit 2, committed: read 1/2 = 1.2, "));
}

TEST(HistoryChecker, LongFork) {
  const Sessions sessions = {{kLoad},
                             {Committed(1, 2, {Saw(X, kX0), Updated(X, kX1)})},
                             {Committed(1, 3, {Saw(Y, kY0), Updated(Y, kY2)})},
                             {Committed(2, 0, {Saw(X, kX1), Saw(Y, kY0)})},
                             {Committed(3, 0, {Saw(X, kX0), Saw(Y, kY2)})}};
  ExpectBoth(AnomalyKind::kLongFork, sessions);
  for (const CheckReport& report : {ByTimestamps(sessions), ByDependencies(sessions)}) {
    ASSERT_EQ(report.anomalies.size(), 1u);
    EXPECT_THAT(report.anomalies[0].transactions, ::testing::UnorderedElementsAre(1, 2, 3, 4));
  }
}

TEST(HistoryChecker, CircularInformation) {
  const CheckReport report = ByDependencies({{kLoad},
                                             {Committed(1, 2, {Saw(X, kX0), Saw(Y, kY2), Updated(X, kX1)})},
                                             {Committed(1, 3, {Saw(Y, kY0), Saw(X, kX1), Updated(Y, kY2)})}});
  EXPECT_TRUE(report.Has(AnomalyKind::kCircularInformation)) << report.ToString();
}

TEST(HistoryChecker, LostUpdate) {
  const Sessions sessions = {{kLoad},
                             {Committed(1, 2, {Saw(X, kX0), Updated(X, kX1)})},
                             {Committed(1, 3, {Saw(X, kX0), Updated(X, kX2)})}};
  ExpectBoth(AnomalyKind::kLostUpdate, sessions);
  const CheckReport report = ByTimestamps(sessions);
  ASSERT_EQ(report.anomalies.size(), 1u);
  EXPECT_EQ(report.anomalies[0].record, X);
  EXPECT_THAT(report.anomalies[0].transactions, ::testing::ElementsAre(2, 1));
}

TEST(HistoryChecker, LockIgnored) {
  const TransactionRecord locker =
      Committed(1, 3, {Saw(X, kX0), Locked(X, kX0), Saw(Y, kY0), Updated(Y, kY2)});
  // The change has an older timestamp than the lock's transaction, and a snapshot sees it alone.
  const Sessions between = {{kLoad},
                            {locker},
                            {Committed(1, 2, {Saw(X, kX0), Updated(X, kX1)})},
                            {Committed(2, 0, {Saw(X, kX1), Saw(Y, kY0)})}};
  ExpectBoth(AnomalyKind::kLockIgnored, between);
  ExpectAccepted(between, {.ordered_locks = false});
  ExpectByTimestamps(AnomalyKind::kLockIgnored,
                     {{kLoad}, {locker}, {Committed(1, 2, {Saw(X, kX0), Deleted(X)})}});
  // The change comes later, though its snapshot is older than the lock's transaction.
  ExpectAccepted(
      {{kLoad},
       {locker},
       {Committed(1, 4, {Saw(X, kX0), Updated(X, kX1)})},
       {Committed(3, 0, {Saw(X, kX0), Saw(Y, kY2)}), Committed(4, 0, {Saw(X, kX1), Saw(Y, kY2)})}});
  // It came before the snapshot, the lock's transaction changes the row itself, or it has not happened.
  ExpectAccepted(
      {{kLoad},
       {Committed(1, 2, {Saw(X, kX0), Updated(X, kX1)})},
       {Committed(2, 3, {Saw(X, kX1), Locked(X, kX1), Updated(X, kX2)})},
       {Aborted(1, {Saw(Y, kY0), Locked(Y, kY0)}), Committed(1, 4, {Saw(Y, kY0), Updated(Y, kY1)})}});
}

TEST(HistoryChecker, LostWrite) {
  ExpectByTimestamps(AnomalyKind::kLostWrite, {{kLoad},
                                               {Committed(1, 2, {Saw(X, kX0), Updated(X, kX1)})},
                                               {Committed(2, 0, {Saw(X, kX0)})},
                                               {Committed(3, 0, {Saw(X, kX0)})}});
  // No read finds the insert.
  ExpectByTimestamps(AnomalyKind::kLostWrite,
                     {{kLoad, Committed(1, 0, {SawNothing(77)})},
                      {Committed(1, 2, {Inserted(77, kZ)})},
                      {Committed(2, 0, {SawNothing(77)}), Committed(2, 0, {SawNothing(77)})}});
}

TEST(HistoryChecker, DuplicateKeyAndMissingRow) {
  ExpectBoth(AnomalyKind::kDuplicateKey,
             {{kLoad}, {Committed(1, 2, {Inserted(77, kX1)})}, {Committed(1, 3, {Inserted(77, kX2)})}});
  ExpectByTimestamps(AnomalyKind::kMissingRow, {{kLoad}, {Committed(1, 2, {Updated(77, kX1)})}});
  ExpectByTimestamps(AnomalyKind::kMissingRow, {{kLoad},
                                                {Committed(1, 2, {Saw(X, kX0), Deleted(X)})},
                                                {Committed(2, 3, {SawNothing(X), Updated(X, kX2)})}});
}

TEST(HistoryChecker, WrongTimestamps) {
  ExpectByTimestamps(AnomalyKind::kWrongTimestamp,
                     {{kLoad, Committed(2, 2, {Saw(X, kX0), Updated(X, kX1)})}});
  ExpectByTimestamps(AnomalyKind::kWrongTimestamp, {{kLoad},
                                                    {Committed(1, 2, {Saw(X, kX0), Updated(X, kX1)})},
                                                    {Committed(1, 2, {Saw(Y, kY0), Updated(Y, kY1)})}});
  ExpectByTimestamps(AnomalyKind::kWrongTimestamp,
                     {{kLoad, Committed(1, 0, {Saw(X, kX0), Updated(X, kX1)})}});
  // The row names one writer, and the engine names another.
  ExpectByTimestamps(AnomalyKind::kWrongTimestamp,
                     {{kLoad}, {Committed(5, 0, {{OperationKind::kRead, X, kX0, 4}})}});
}

TEST(HistoryChecker, SessionsGoForward) {
  const Sessions back = {{kLoad}, {Committed(4, 0, {}), Committed(3, 0, {})}};
  ExpectByTimestamps(AnomalyKind::kSessionWentBack, back);
  EXPECT_TRUE(ByTimestamps(back, {.monotonic_sessions = false}).ok());
  const Sessions commits_back = {{kLoad},
                                 {Committed(1, 5, {Inserted(7, kX1)}), Committed(1, 4, {Inserted(8, kX2)})}};
  ExpectByTimestamps(AnomalyKind::kSessionWentBack, commits_back);
}

TEST(HistoryChecker, OwnCommitsAreSeenWhereThatIsPromised) {
  const Sessions sessions = {
      {kLoad}, {Committed(1, 2, {Saw(X, kX0), Updated(X, kX1)}), Committed(1, 0, {Saw(X, kX0)})}};
  ExpectAccepted(sessions);
  ExpectByTimestamps(AnomalyKind::kOwnCommitNotSeen, sessions, {.read_own_commits = true});
  EXPECT_TRUE(ByDependencies(sessions, {.read_own_commits = true}).Has(AnomalyKind::kFracturedRead));
}

TEST(HistoryChecker, ValuesMustNameWrites) {
  EXPECT_TRUE(ByDependencies({{kLoad}, {Committed(1, 2, {Saw(X, kX0), Updated(X, kX0)})}})
                  .Has(AnomalyKind::kValueUsedTwice));
}

TEST(HistoryChecker, WhatSomebodySawHasBeenCommitted) {
  const TransactionRecord unknown = Unknown(1, {Saw(X, kX0), Saw(Y, kY0), Updated(X, kX1), Updated(Y, kY1)});
  ExpectAccepted({{kLoad}, {unknown}, {Committed(5, 0, {Saw(X, kX0), Saw(Y, kY0)})}});
  const Sessions seen = {
      {kLoad}, {unknown}, {Committed(4, 0, {Saw(X, kX0)}), Committed(5, 0, {Saw(X, kX1), Saw(Y, kY1)})}};
  ExpectAccepted(seen);
  EXPECT_EQ(ByTimestamps(seen).concluded, 1u);
  ExpectBoth(AnomalyKind::kFracturedRead,
             {{kLoad}, {unknown}, {Committed(5, 0, {Saw(X, kX1), Saw(Y, kY0)})}});
  // The commit was rolled forward for one reader, and back for the next.
  ExpectByTimestamps(AnomalyKind::kStaleRead,
                     {{kLoad}, {unknown}, {Committed(5, 0, {Saw(X, kX1)}), Committed(6, 0, {Saw(X, kX0)})}});
}

TEST(HistoryChecker, DeletesThatAreUnknownAreSeenByFindingNothing) {
  const TransactionRecord unknown = Unknown(1, {Saw(X, kX0), Saw(Y, kY0), Deleted(X), Updated(Y, kY1)});
  const Sessions seen = {
      {kLoad}, {unknown}, {Committed(4, 0, {SawNothing(X)}), Committed(5, 0, {Saw(Y, kY1)})}};
  ExpectAccepted(seen);
  EXPECT_EQ(ByTimestamps(seen).concluded, 1u);
  ExpectByTimestamps(
      AnomalyKind::kFracturedRead,
      {{kLoad}, {unknown}, {Committed(4, 0, {Saw(Y, kY1)}), Committed(5, 0, {Saw(X, kX0), Saw(Y, kY1)})}});
}

TEST(HistoryChecker, WhatWasLoadedBeforeTheHistory) {
  const CheckOptions loaded = {.loaded_until = 10};
  ExpectAccepted({{Committed(10, 11, {Saw(X, kX0), Updated(X, kX1)})}, {Committed(10, 0, {Saw(X, kX0)})}},
                 loaded);
  const Sessions differs = {{Committed(10, 0, {Saw(X, kX0)})}, {Committed(10, 0, {Saw(X, kZ)})}};
  ExpectBoth(AnomalyKind::kTornValue, differs, loaded);
  ExpectByTimestamps(AnomalyKind::kStaleRead,
                     {{Committed(10, 11, {Saw(X, kX0), Updated(X, kX1)})}, {Committed(12, 0, {Saw(X, kX0)})}},
                     loaded);
  ExpectByTimestamps(AnomalyKind::kDuplicateKey,
                     {{Committed(10, 0, {Saw(X, kX0)})}, {Committed(10, 11, {Inserted(X, kX1)})}}, loaded);
}

TEST(HistoryChecker, StopsAtAsManyAsAskedFor) {
  Sessions sessions = {{kLoad}, {}};
  for (uint64_t i = 0; i < 100; ++i) sessions[1].push_back(Committed(1, 0, {Saw(X, kZ + i)}));
  const CheckReport report = ByTimestamps(sessions, {.anomalies_max = 7});
  EXPECT_EQ(report.anomalies.size(), 7u);
  EXPECT_TRUE(report.more);
}

}  // namespace
}  // namespace nam::txn
