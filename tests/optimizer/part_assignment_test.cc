#include "optimizer/part_assignment.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>

namespace nam::optimizer {
namespace {

using partitioner::Piece;
using plan::JoinKind;

constexpr JoinKind kKinds[] = {JoinKind::kInner, JoinKind::kLeft,          JoinKind::kRight,
                               JoinKind::kFull,  JoinKind::kSemi,          JoinKind::kAnti,
                               JoinKind::kMark,  JoinKind::kNullAwareAnti, JoinKind::kSingle};

/// All parts but the first have equally many rows.
ClaimedParts PartsOf(uint32_t parts, PartRows first, PartRows others, std::optional<JoinKind> kind) {
  ClaimedParts made{.rows = std::vector<PartRows>(parts, others), .join = kind};
  made.rows[0] = first;
  return made;
}
uint64_t PiecesOfFirst(const ClaimedParts& parts, uint64_t threads) {
  const std::vector<Piece> pieces = PiecesOfParts(parts, threads);
  return static_cast<uint64_t>(
      std::count_if(pieces.begin(), pieces.end(), [](const Piece& piece) { return piece.partition == 0; }));
}

TEST(PiecesOfPartsTest, EvenPartsStayWhole) {
  for (const uint32_t parts : {8u, 16u, 128u, 1000u}) {
    const ClaimedParts even = PartsOf(parts, {100'000, 90'000}, {100'000, 100'000}, JoinKind::kInner);
    for (const uint64_t threads : {1, 2, 4, 8}) {
      for (const Piece& piece : PiecesOfParts(even, threads)) EXPECT_EQ(piece.blocks, 1u);
      EXPECT_EQ(PiecesOfParts(even, threads).size(), parts);
    }
  }
}

TEST(PiecesOfPartsTest, FewerPartsThanThreadsGiveWorkToAll) {
  const ClaimedParts few = PartsOf(2, {1'000'000, 0}, {1'000'000, 0}, JoinKind::kInner);
  EXPECT_EQ(PiecesOfParts(few, 16).size(), 32u);
  const ClaimedParts one = PartsOf(1, {1'000'000, 0}, {}, JoinKind::kLeft);
  EXPECT_EQ(PiecesOfParts(one, 16).size(), 32u);
}

/// One key has half of all rows.
TEST(PiecesOfPartsTest, AHeavyPartKeepsNoThreadLongerThanItsShare) {
  for (const uint64_t threads : {4, 8, 32}) {
    const ClaimedParts skewed = PartsOf(101, {1'000'000, 0}, {10'000, 0}, JoinKind::kInner);
    EXPECT_EQ(PiecesOfFirst(skewed, threads), threads);
    for (const Piece& piece : PiecesOfParts(skewed, threads))
      EXPECT_LE(RowsOf(skewed, piece), 2'000'000 / threads / 2 + 1);
  }
}

TEST(PiecesOfPartsTest, PartsBelowAPieceStayWholeHoweverLargeBesideOthers) {
  const ClaimedParts skewed = PartsOf(1'000, {10'000, 0}, {1'000, 0}, JoinKind::kInner);
  EXPECT_EQ(PiecesOfFirst(skewed, 8), 1u);
  EXPECT_EQ(PiecesOfFirst(skewed, 80), 2u);
}

/// Two rows of a table would be built many times without benefit.
TEST(PiecesOfPartsTest, FewRowsAreNotCut) {
  EXPECT_EQ(PiecesOfFirst(PartsOf(16, {900, 0}, {10, 10}, JoinKind::kInner), 32), 1u);
  EXPECT_EQ(PiecesOfFirst(PartsOf(16, {5'000, 0}, {10, 10}, JoinKind::kInner), 32), 4u);
}

TEST(PiecesOfPartsTest, TheSideThatIsSharedIsTheLargerOneOrNone) {
  const PartRows probed{1'000'000, 20'000}, built{20'000, 1'000'000}, few{1'000, 1'000};
  for (const JoinKind kind : kKinds) {
    const bool shares_built = kind == JoinKind::kInner || kind == JoinKind::kRight;
    const bool shares_probed = kind != JoinKind::kRight && kind != JoinKind::kFull;
    EXPECT_EQ(PiecesOfFirst(PartsOf(50, probed, few, kind), 8) > 1, shares_probed) << static_cast<int>(kind);
    EXPECT_EQ(PiecesOfFirst(PartsOf(50, built, few, kind), 8) > 1, shares_built) << static_cast<int>(kind);
  }
  EXPECT_EQ(PiecesOfFirst(PartsOf(50, probed, few, std::nullopt), 8), 1u) << "of no join";
}

ClaimedParts RandomParts() {
  ClaimedParts parts;
  parts.rows.resize(*rc::gen::inRange<size_t>(1, 200));
  const uint64_t exponent = *rc::gen::inRange<uint64_t>(0, 20);
  for (PartRows& rows : parts.rows) {
    rows.probed = *rc::gen::inRange<uint64_t>(0, 1'000) << (*rc::gen::inRange(0, 8) == 0 ? exponent : 0);
    rows.built = *rc::gen::inRange<uint64_t>(0, 1'000) << (*rc::gen::inRange(0, 20) == 0 ? exponent : 0);
  }
  if (*rc::gen::inRange(0, 10) > 0) parts.join = kKinds[*rc::gen::inRange<size_t>(0, std::size(kKinds))];
  return parts;
}

TEST(AssignPartsTest, EachPieceOfEachPartWithRowsIsOneServers) {
  EXPECT_TRUE(rc::check("complete, once", [] {
    const ClaimedParts parts = RandomParts();
    const int servers = *rc::gen::inRange(1, 6), threads = *rc::gen::inRange(1, 9);
    std::map<uint32_t, std::map<uint32_t, uint32_t>> seen;  // part, number: pieces of the part
    const Assignment assignment = AssignParts(parts, servers, threads);
    RC_ASSERT(assignment.servers.size() == static_cast<size_t>(servers));
    for (const Assignment::Share& share : assignment.servers) {
      uint64_t rows = 0;
      for (const Piece& piece : share.pieces) {
        RC_ASSERT(seen[piece.partition].emplace(piece.first_block, piece.blocks).second);
        rows += RowsOf(parts, piece);
      }
      RC_ASSERT(rows == share.rows);
    }
    uint64_t cut = 0;
    for (uint32_t part = 0; part < parts.rows.size(); ++part) {
      RC_ASSERT((parts.rows[part].all() > 0) == seen.contains(part));
      if (parts.rows[part].all() == 0) continue;
      uint32_t number = 0;
      for (const auto& [found, of] : seen[part]) {
        RC_ASSERT(found == number++);
        RC_ASSERT(of == seen[part].size());
      }
      cut += number > 1 ? number : 0;
    }
    RC_ASSERT(CutPartsOf(assignment.servers).pieces == cut);
  }));
}

/// Every row of the shared side in one piece, all of the other side in each.
TEST(AssignPartsTest, RowsOfPiecesAreThoseOfTheirTasks) {
  const ClaimedParts parts = PartsOf(1, {1'000, 10}, {}, JoinKind::kInner);
  EXPECT_EQ(RowsOf(parts, {0, 0, 1}), 1'010u);
  EXPECT_EQ(RowsOf(parts, {0, 0, 3}) + RowsOf(parts, {0, 1, 3}) + RowsOf(parts, {0, 2, 3}), 1'030u);
  EXPECT_EQ(RowsOf(PartsOf(1, {10, 1'000}, {}, JoinKind::kRight), {0, 1, 2}), 510u);
  EXPECT_EQ(RowsOf(PartsOf(1, {10, 1'000}, {}, std::nullopt), {0, 0, 1}), 1'010u);
}

/// Pieces that a thread claims at once are neighbours in its server's list.
TEST(AssignPartsTest, PiecesOfAPartLieFarFromEachOther) {
  const ClaimedParts skewed = PartsOf(400, {1'000'000, 0}, {2'507, 0}, JoinKind::kInner);
  const Assignment assignment = AssignParts(skewed, 4, 4);
  EXPECT_EQ(CutPartsOf(assignment.servers).parts, 1u);
  EXPECT_EQ(CutPartsOf(assignment.servers).pieces, 16u);
  for (const Assignment::Share& share : assignment.servers) {
    std::vector<size_t> places;
    for (size_t i = 0; i < share.pieces.size(); ++i) {
      if (share.pieces[i].partition == 0) places.push_back(i);
    }
    ASSERT_EQ(places.size(), 4u);
    EXPECT_EQ(places[0], 0u) << "a large piece that is begun last is waited for";
    for (size_t i = 1; i < places.size(); ++i) EXPECT_EQ(places[i] - places[i - 1], 8u);
  }
}

TEST(AssignPartsTest, LargePartsAreBegunFirst) {
  ClaimedParts parts = PartsOf(64, {1'000, 0}, {1'000, 0}, std::nullopt);
  parts.rows[40].probed = 3'000;
  parts.rows[50].probed = 5'000;
  const std::vector<Piece> pieces = AssignParts(parts, 1, 4).servers[0].pieces;
  EXPECT_EQ(pieces[0].partition, 50u);
  EXPECT_EQ(pieces[1].partition, 0u);
  EXPECT_EQ(pieces[8].partition, 40u);
  EXPECT_EQ(pieces.back().partition, 63u);
}

TEST(AssignPartsTest, AHeavyKeyIsAllServersWork) {
  const ClaimedParts skewed = PartsOf(128, {1'000'000, 100}, {7'800, 100}, JoinKind::kSemi);
  const Assignment assignment = AssignParts(skewed, 5, 2);
  uint64_t rows = 0;
  for (const Assignment::Share& share : assignment.servers) rows += share.rows;
  EXPECT_LE(assignment.LargestRows(), rows / 5 + rows / 50);
}

}  // namespace
}  // namespace nam::optimizer
