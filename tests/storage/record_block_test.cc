#include "storage/record_block.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "storage/row_bytes.h"

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
    return ChooseVersion(before, VersionWords(words_), after, snapshot);
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
  EXPECT_EQ(Choose(locked, locked, 15).outcome, Outcome::kMoved) << "another client may be writing there";
  EXPECT_EQ(Choose(newest_, newest_.RolledBack(), 15).outcome, Outcome::kMoved)
      << "another client may have written";
}

TEST_F(ChooseVersionTest, ABlockThatChangedIsReadAgain) {
  EXPECT_EQ(Choose(newest_, RecordHeader::Unlocked(30), 20).outcome, Outcome::kMoved);
  EXPECT_EQ(Choose(RecordHeader::Unlocked(10), newest_, 10).outcome, Outcome::kMoved);
  EXPECT_EQ(Choose(RecordHeader(), RecordHeader(), 10).outcome, Outcome::kNone) << "free";
}

/// Without a lock a version above the header's was never committed.
TEST_F(ChooseVersionTest, AVersionAboveTheHeaderIsNotSeen) {
  const RecordHeader older = RecordHeader::Unlocked(10);
  EXPECT_EQ(Choose(older, older, 1'000).slot, 0u);
  EXPECT_EQ(Choose(older, older, 1'000).version.timestamp(), 10u);
}

/// A READ of the words may return older ones than the preceding READ of the header: then a version is
/// missing.
TEST_F(ChooseVersionTest, WordsWithoutTheNewestVersionAreReadAgain) {
  const RecordHeader newer = RecordHeader::Unlocked(30);
  for (const uint64_t snapshot : {9, 15, 25, 30, 40}) {
    EXPECT_EQ(Choose(newer, newer, snapshot).outcome, Outcome::kMoved) << snapshot;
  }
}

/// A version above a locked header's timestamp is its holder's, and counts only if the holder commits with
/// exactly that timestamp.
TEST_F(ChooseVersionTest, OnlyTheHolderOfALockTellsOfTheVersionUnderIt) {
  const RecordHeader locked = RecordHeader::Unlocked(10).LockedBy(3);
  const auto choose = [&](uint64_t snapshot, LockHolder holder, RecordHeader after) {
    return ChooseVersion(locked, VersionWords(words_), after, snapshot, holder);
  };
  EXPECT_EQ(choose(30, {}, locked).outcome, Outcome::kInDoubt);
  EXPECT_EQ(choose(30, {.client = 4, .committing = 20}, locked).outcome, Outcome::kInDoubt) << "of another";
  EXPECT_EQ(choose(19, {}, locked).version.timestamp(), 10u) << "the snapshot does not see it in any case";
  EXPECT_EQ(choose(20, {.client = 3, .committing = 20}, locked).version.timestamp(), 20u);
  EXPECT_EQ(choose(20, {.client = 3, .committing = 20}, RecordHeader::Unlocked(10).RolledBack()).outcome,
            Outcome::kMoved);
  for (const uint64_t committing : {0, 10, 19, 21}) {
    const VersionChoice choice = choose(30, {.client = 3, .committing = committing}, locked);
    EXPECT_EQ(choice.outcome, Outcome::kVersion) << committing;
    EXPECT_EQ(choice.version.timestamp(), 10u) << committing;
  }
}

/// A reclaimed block is emptied under a lock before it becomes free.
TEST(ChooseVersion, AnEmptyBlockThatIsLockedHasNoRow) {
  const std::array<uint64_t, 2> empty = {}, half = {Version(10, true)};
  const RecordHeader header = RecordHeader::Unlocked(20), locked = header.LockedBy(3);
  EXPECT_EQ(ChooseVersion(locked, VersionWords(empty), locked, 30).outcome, Outcome::kNone);
  EXPECT_EQ(ChooseVersion(locked, VersionWords(half), locked, 30).outcome, Outcome::kMoved);
  EXPECT_EQ(ChooseVersion(header, VersionWords(empty), header, 30).outcome, Outcome::kMoved)
      << "READ too early";
}

TEST(RecordGeometry, AVersionIsContiguousAndSlotsDoNotOverlap) {
  for (const uint32_t row_bytes : {1u, 7u, 8u, 60u, 1'024u, kRowBytesMax}) {
    for (const uint32_t versions : {1, 4, 16}) {
      const RecordGeometry geometry = RecordGeometry::Of(row_bytes, versions);
      uint32_t end = 8;
      for (uint32_t slot = 0; slot < geometry.slots; ++slot) {
        EXPECT_EQ(geometry.word_offset(slot), end);
        EXPECT_EQ(geometry.word_offset(slot) % 8, 0u);
        EXPECT_EQ(geometry.row_offset(slot), geometry.word_offset(slot) + 8);
        end = geometry.word_offset(slot) + (geometry.version_bytes() + 7) / 8 * 8;
      }
      EXPECT_GE(geometry.block_bytes(), end);
      EXPECT_LT(geometry.block_bytes(), end + 64);
      EXPECT_EQ(geometry.block_bytes() % 64, 0u);
    }
  }
}

TEST(VersionWords, AreFoundInACopyOfABlock) {
  const RecordGeometry geometry = RecordGeometry::Of(20, 3);
  std::vector<uint64_t> block(geometry.block_bytes() / 8, ~uint64_t{0});
  for (uint32_t slot = 0; slot < geometry.slots; ++slot) {
    block[geometry.word_offset(slot) / 8] = Version(10 + slot);
  }
  const VersionWords words(reinterpret_cast<const std::byte*>(block.data()), geometry);
  ASSERT_EQ(words.size(), 3u);
  for (uint32_t slot = 0; slot < words.size(); ++slot) EXPECT_EQ(words[slot].timestamp(), 10 + slot);
}

TEST(ChooseVersion, OneVersionAloneCanBeTheVictim) {
  const std::array<uint64_t, 1> words = {Version(20)};
  const RecordHeader newest = RecordHeader::Unlocked(20), locked = newest.LockedBy(3);
  EXPECT_EQ(ChooseVersion(newest, VersionWords(words), newest, 20).outcome, Outcome::kVersion);
  EXPECT_EQ(ChooseVersion(locked, VersionWords(words), locked, 20).outcome, Outcome::kMoved);
  EXPECT_EQ(ChooseVersion(newest, VersionWords(words), newest, 19).outcome, Outcome::kTooOld);
}

}  // namespace
}  // namespace nam::storage
