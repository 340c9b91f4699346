#include "storage/record_block.h"

#include <gtest/gtest.h>

#include <array>

namespace nam::storage {
namespace {

using Outcome = VersionChoice::Outcome;

uint64_t Version(uint64_t timestamp, bool first = false) {
  return VersionWord::Of(timestamp, false, first).word();
}

/// Slot 0 has version 10, slot 1 version 20.
class ChooseVersionTest : public ::testing::Test {
 protected:
  VersionChoice Choose(RecordHeader before, RecordHeader after, uint64_t snapshot) const {
    return ChooseVersion(before, words_, after, snapshot);
  }
  const std::array<uint64_t, 2> words_ = {Version(10, true), Version(20)};
  const RecordHeader newest_ = RecordHeader::Unlocked(20);
};

TEST_F(ChooseVersionTest, TheNewestThatTheSnapshotSees) {
  for (const uint64_t snapshot : {20, 21, 1'000}) {
    const VersionChoice choice = Choose(newest_, newest_, snapshot);
    EXPECT_EQ(choice.outcome, Outcome::kVersion);
    EXPECT_EQ(choice.slot, 1u) << snapshot;
    EXPECT_EQ(choice.version.timestamp(), 20u);
  }
  for (const uint64_t snapshot : {10, 19}) EXPECT_EQ(Choose(newest_, newest_, snapshot).slot, 0u) << snapshot;
  EXPECT_EQ(Choose(newest_, newest_, 9).outcome, Outcome::kNone) << "before it was inserted";
}

TEST_F(ChooseVersionTest, ALockMakesOnlyTheVictimDoubtful) {
  const RecordHeader locked = newest_.LockedBy(3);
  EXPECT_EQ(Choose(locked, locked, 30).slot, 1u);
  EXPECT_EQ(Choose(locked, locked, 30).outcome, Outcome::kVersion);
  EXPECT_EQ(Choose(locked, locked, 15).outcome, Outcome::kMoved) << "somebody may be writing there";
  EXPECT_EQ(Choose(newest_, newest_.RolledBack(), 15).outcome, Outcome::kMoved)
      << "somebody may have written";
}

TEST_F(ChooseVersionTest, ABlockThatChangedIsReadAgain) {
  EXPECT_EQ(Choose(newest_, RecordHeader::Unlocked(30), 20).outcome, Outcome::kMoved);
  EXPECT_EQ(Choose(RecordHeader::Unlocked(10), newest_, 10).outcome, Outcome::kMoved);
  EXPECT_EQ(Choose(RecordHeader(), RecordHeader(), 10).outcome, Outcome::kNone) << "free";
}

/// What a client that died in its commit has left in the victim counts for nobody.
TEST_F(ChooseVersionTest, AVersionAboveTheHeaderIsNotSeen) {
  const RecordHeader older = RecordHeader::Unlocked(10);
  EXPECT_EQ(Choose(older, older, 1'000).slot, 0u);
  EXPECT_EQ(Choose(older, older, 1'000).version.timestamp(), 10u);
}

TEST(ChooseVersion, OneVersionAloneCanBeTheVictim) {
  const std::array<uint64_t, 1> words = {Version(20)};
  const RecordHeader newest = RecordHeader::Unlocked(20), locked = newest.LockedBy(3);
  EXPECT_EQ(ChooseVersion(newest, words, newest, 20).outcome, Outcome::kVersion);
  EXPECT_EQ(ChooseVersion(locked, words, locked, 20).outcome, Outcome::kMoved);
  EXPECT_EQ(ChooseVersion(newest, words, newest, 19).outcome, Outcome::kTooOld);
}

}  // namespace
}  // namespace nam::storage
