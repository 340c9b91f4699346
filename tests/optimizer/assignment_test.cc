#include "optimizer/assignment.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "plan/table_schema.h"

namespace nam::optimizer {
namespace {

using partitioner::PartitionsOf;
using partitioner::PartOf;
using partitioner::Piece;

uint64_t Largest(const std::vector<uint64_t>& costs, const std::vector<int>& part_of, int parts) {
  std::vector<uint64_t> sums(static_cast<size_t>(parts));
  for (size_t i = 0; i < costs.size(); ++i) sums[static_cast<size_t>(part_of[i])] += costs[i];
  return *std::max_element(sums.begin(), sums.end());
}

uint64_t Optimum(const std::vector<uint64_t>& costs, int parts) {
  std::vector<int> part_of(costs.size());
  uint64_t best = UINT64_MAX;
  while (true) {
    best = std::min(best, Largest(costs, part_of, parts));
    size_t i = 0;
    while (i < part_of.size() && ++part_of[i] == parts) part_of[i++] = 0;
    if (i == part_of.size()) return best;
  }
}

TEST(LargestDifferencing, IsCloseToTheOptimumOnSmallCases) {
  EXPECT_TRUE(rc::check("within 4/3 of the optimum", [] {
    const auto costs =
        *rc::gen::resize(8, rc::gen::container<std::vector<uint64_t>>(rc::gen::inRange<uint64_t>(0, 100)));
    const int parts = *rc::gen::inRange(1, 4);
    const std::vector<int> part_of = LargestDifferencing(costs, parts);
    RC_ASSERT(part_of.size() == costs.size());
    for (int p : part_of) RC_ASSERT(p >= 0 && p < parts);
    if (!costs.empty()) RC_ASSERT(Largest(costs, part_of, parts) * 3 <= Optimum(costs, parts) * 4);
  }));
}

TEST(LargestDifferencing, IsEvenUnderSkew) {
  std::vector<uint64_t> costs;
  for (int i = 1; i <= 512; ++i) costs.push_back(1'000'000 / static_cast<uint64_t>(i));  // Zipf
  const uint64_t total = std::accumulate(costs.begin(), costs.end(), uint64_t{0});
  for (int parts : {2, 3, 4}) {
    const uint64_t fair = std::max(total / static_cast<uint64_t>(parts), costs[0]);
    EXPECT_LE(Largest(costs, LargestDifferencing(costs, parts), parts), fair + fair / 20) << parts;
  }
}

/// f is split by x and y into 4 × 4; a and b by their keys into 4.
struct PartitionedStar {
  PartitionedStar() {
    f = Table("f", {"x", "y"}, {{"x", 4}, {"y", 4}}, 16);
    a = Table("a", {"k"}, {{"k", 4}}, 4);
    b = Table("b", {"k"}, {{"k", 2}}, 2);
    Claim();
    stage.builds = {Build(a, 0), Build(b, std::nullopt)};
  }
  void Claim() { stage.claimed = {.table = f, .columns = {0}}; }
  static StageTables::Build Build(std::shared_ptr<const proto::Table> table, std::optional<int> key) {
    StageTables::Build build;
    build.table = std::move(table);
    build.columns = {0};
    build.co_partitioned_key = key;
    return build;
  }
  static std::shared_ptr<proto::Table> Table(const std::string& name, const std::vector<std::string>& columns,
                                             const std::vector<std::pair<std::string, uint32_t>>& keys,
                                             int partitions) {
    auto table = std::make_shared<proto::Table>();
    table->set_name(name);
    for (const std::string& column : columns) {
      table->add_columns()->set_name(column);
      table->mutable_columns()->rbegin()->mutable_encoding()->set_width(4);
    }
    for (const auto& [column, parts] : keys) {
      auto* key = table->add_partitioning();
      key->set_column(column);
      key->set_parts(parts);
    }
    for (int p = 0; p < partitions; ++p) table->add_partitions()->set_rows(100);
    return table;
  }
  std::shared_ptr<proto::Table> f, a, b;
  StageTables stage;
};

TEST(Assignment, MatchesPartitionsWithTheSameFunctionOnly) {
  PartitionedStar star;
  const auto match = [&](const proto::Table& build, uint32_t column) {
    return plan::MatchingKey(build, 0, *star.f, column);
  };
  EXPECT_EQ(match(*star.a, 0), std::optional<int32_t>(0));
  EXPECT_EQ(match(*star.a, 1), std::optional<int32_t>(1));
  EXPECT_EQ(match(*star.b, 0), std::nullopt) << "2 parts against 4";
  star.a->mutable_partitioning(0)->set_function(proto::XXH3);
  EXPECT_EQ(match(*star.a, 0), std::nullopt) << "as many, but other keys";
  EXPECT_EQ(PartOf(*star.f, 7, 0), 1u);
  EXPECT_EQ(PartOf(*star.f, 7, 1), 3u);
  EXPECT_EQ(star.stage.NeededOf(star.stage.builds[0], {4, 5, 7}), std::vector<uint32_t>{1});
  EXPECT_EQ(star.stage.NeededOf(star.stage.builds[1], {4}), (std::vector<uint32_t>{0, 1}));
}

TEST(Assignment, CoversEveryPartitionOnceAndCountsReplication) {
  PartitionedStar star;
  star.f->mutable_partitions(0)->set_rows(0);
  for (int servers : {1, 2, 3, 4, 7, 20}) {
    const Assignment assignment = Assign(star.stage, servers);
    std::vector<int> seen(16);
    for (const auto& share : assignment.servers) {
      for (uint32_t p : PartitionsOf(share.pieces)) ++seen[p];
      EXPECT_EQ(share.driving_bytes, share.rows * 4);
      if (!share.pieces.empty()) {
        EXPECT_GE(share.build_bytes, 200u * 4 + 100u * 4);
      }
    }
    EXPECT_EQ(seen[0], 0) << "nothing to stream there";
    EXPECT_EQ(std::count(seen.begin() + 1, seen.end(), 1), 15) << servers;
  }
}

/// The star with this many rows in f's partitions, in blocks of ten.
PartitionedStar StarOf(const std::vector<uint64_t>& rows) {
  PartitionedStar star;
  star.f->clear_partitions();
  for (const uint64_t n : rows) {
    proto::Chain& chain = *star.f->add_partitions();
    chain.set_rows(n);
    chain.set_block_rows(10);
    chain.set_blocks(static_cast<uint32_t>((n + 9) / 10));
  }
  return star;
}

/// Every block once, and the shares' numbers are those of their pieces.
void ExpectWhole(const PartitionedStar& star, const Assignment& assignment) {
  std::map<std::pair<uint32_t, uint32_t>, int> seen;
  uint64_t all = 0, expected = 0;
  for (const auto& share : assignment.servers) {
    uint64_t rows = 0;
    EXPECT_TRUE(std::is_sorted(share.pieces.begin(), share.pieces.end()));
    for (const Piece& piece : share.pieces) {
      EXPECT_GT(piece.blocks, 0u);
      for (uint32_t b = 0; b < piece.blocks; ++b) ++seen[{piece.partition, piece.first_block + b}];
      rows += RowsOf(*star.f, piece);
    }
    EXPECT_EQ(share.rows, rows);
    EXPECT_EQ(share.driving_bytes, rows * 4);
    all += rows;
  }
  size_t blocks = 0;
  for (const proto::Chain& chain : star.f->partitions()) blocks += chain.blocks(), expected += chain.rows();
  EXPECT_EQ(seen.size(), blocks);
  for (const auto& [block, times] : seen) EXPECT_EQ(times, 1) << block.first << " " << block.second;
  EXPECT_EQ(all, expected);
}

/// The least possible maximum of a server's rows, over all ways to assign the blocks.
uint64_t OptimumOfBlocks(const PartitionedStar& star, int servers) {
  std::vector<Piece> blocks;
  for (int p = 0; p < star.f->partitions_size(); ++p) {
    for (uint32_t b = 0; b < star.f->partitions(p).blocks(); ++b)
      blocks.push_back({static_cast<uint32_t>(p), b, 1});
  }
  std::vector<int> server_of(blocks.size());
  uint64_t best = UINT64_MAX;
  while (true) {
    uint64_t largest = 0;
    for (int s = 0; s < servers; ++s) {
      std::vector<Piece> share;
      uint64_t bytes = 0;
      for (size_t i = 0; i < blocks.size(); ++i) {
        if (server_of[i] == s) share.push_back(blocks[i]);
      }
      for (const Piece& piece : share) bytes += RowsOf(*star.f, piece) * 4;
      for (const StageTables::Build& build : star.stage.builds) {
        for (const uint32_t p : star.stage.NeededOf(build, PartitionsOf(share)))
          bytes += build.table->partitions(static_cast<int>(p)).rows() * 4;
      }
      largest = std::max(largest, bytes);
    }
    best = std::min(best, largest);
    size_t i = 0;
    while (i < server_of.size() && ++server_of[i] == servers) server_of[i++] = 0;
    if (i == server_of.size()) return best;
  }
}

TEST(Assignment, IsCloseToTheOptimumOfBlocksOnSmallCases) {
  EXPECT_TRUE(rc::check("within a tenth without build sides, within a half with them", [] {
    // There are few blocks in all: the number of trials is exponential in them, with the servers as its base.
    std::vector<uint64_t> rows(16);
    for (int blocks_left = 8; blocks_left > 0;) {
      const auto blocks = *rc::gen::inRange(1, blocks_left + 1);
      rows[*rc::gen::inRange<size_t>(0, 16)] = static_cast<uint64_t>(blocks * 10 - *rc::gen::inRange(0, 10));
      blocks_left -= blocks;
    }
    PartitionedStar star = StarOf(rows);
    const int servers = *rc::gen::inRange(1, 4);
    const uint64_t build_rows = *rc::gen::element<uint64_t>(0, 1, 10, 100);
    for (proto::Table* build : {star.a.get(), star.b.get()}) {
      for (proto::Chain& chain : *build->mutable_partitions()) chain.set_rows(build_rows);
    }
    const Assignment assignment = Assign(star.stage, servers);
    ExpectWhole(star, assignment);
    const uint64_t optimum = OptimumOfBlocks(star, servers);
    if (build_rows == 0) {
      RC_ASSERT(assignment.LargestBytes() * 10 <= optimum * 11);
    } else {
      RC_ASSERT(assignment.LargestBytes() * 2 <= optimum * 3);
    }
  }));
}

TEST(Assignment, IsWithinFivePercentOfFairUnderSkew) {
  for (const double zipf : {0.5, 1.0, 1.5, 2.5}) {
    std::vector<uint64_t> rows;
    for (int i = 1; i <= 16; ++i) rows.push_back(static_cast<uint64_t>(1e6 / std::pow(i, zipf)));
    const uint64_t all = std::accumulate(rows.begin(), rows.end(), uint64_t{0});
    PartitionedStar star = StarOf(rows);
    for (const int servers : {2, 3, 4, 7, 16, 64}) {
      const Assignment assignment = Assign(star.stage, servers);
      ExpectWhole(star, assignment);
      const double fair = static_cast<double>(all) / servers;
      EXPECT_LE(static_cast<double>(assignment.LargestRows()), 1.05 * fair)
          << servers << " servers, Zipf " << zipf;
    }
  }
}

TEST(Assignment, ALargePartitionIsCutOnlyIfThatPaysForReplication) {
  // There is one partition, whose build sides are far smaller than what a cut saves, or far larger.
  std::vector<uint64_t> rows(16);
  rows[5] = 10'000;
  for (const uint64_t build_rows : {uint64_t{10}, uint64_t{10'000'000}}) {
    PartitionedStar star = StarOf(rows);
    for (proto::Chain& chain : *star.a->mutable_partitions()) chain.set_rows(build_rows);
    const Assignment assignment = Assign(star.stage, 4);
    ExpectWhole(star, assignment);
    const auto working = std::count_if(assignment.servers.begin(), assignment.servers.end(),
                                       [](const auto& share) { return share.rows > 0; });
    EXPECT_EQ(working, build_rows == 10 ? 4 : 1);
  }
}

TEST(Assignment, EvenPartitionsStayWhole) {
  PartitionedStar star = StarOf(std::vector<uint64_t>(16, 4'000));
  for (const int servers : {1, 2, 4, 8, 16}) {
    for (const auto& share : Assign(star.stage, servers).servers) {
      for (const Piece& piece : share.pieces) EXPECT_EQ(piece.blocks, 400u);
    }
  }
}

TEST(Assignment, ThreadsGetPiecesOfAPartitionThatIsLargeForThem) {
  std::vector<uint64_t> rows(16);
  rows[3] = 64 * 32'800;
  PartitionedStar star = StarOf(rows);
  for (const int threads : {1, 4}) {
    const Assignment assignment = Assign(star.stage, 1, threads);
    ExpectWhole(star, assignment);
    EXPECT_EQ(assignment.servers[0].pieces.size(), 16u * static_cast<unsigned>(threads));
  }
  star = StarOf(std::vector<uint64_t>(16, 1'000));
  const Assignment small = Assign(star.stage, 1, 4);
  for (const Piece& piece : small.servers[0].pieces)
    EXPECT_EQ(piece.blocks, 100u) << "small ones are not worth it";
}

TEST(Assignment, RunsSpareReplicationWhenPartitionsAreEqual) {
  PartitionedStar star;
  const Assignment assignment = Assign(star.stage, 2);
  for (const auto& share : assignment.servers) EXPECT_EQ(share.build_bytes, (2 * 100 + 200) * 4u);
}

TEST(Assignment, RunsGoByTheKeyOfTheLargestBuildSide) {
  PartitionedStar star;
  star.b = PartitionedStar::Table("b", {"k"}, {{"k", 4}}, 4);
  for (int p = 0; p < 4; ++p) star.b->mutable_partitions(p)->set_rows(1000);
  star.a->set_rows(400);
  star.b->set_rows(4000);
  star.stage.builds[1] = PartitionedStar::Build(star.b, 1);
  for (const auto& share : Assign(star.stage, 4).servers) EXPECT_EQ(share.build_bytes, (4 * 100 + 1000) * 4u);
  for (const auto& share : Assign(star.stage, 8).servers)
    EXPECT_EQ(share.build_bytes, (2 * 100 + 1000) * 4u) << "the other key divides what is left";
}

TEST(Assignment, RecordsAreSharedOutInRuns) {
  auto driving = std::make_shared<proto::Table>();
  driving->mutable_record()->set_row_bytes(40);
  auto build = std::make_shared<proto::Table>();
  build->add_columns()->mutable_encoding()->set_width(4);
  build->add_partitions()->set_rows(1'000);
  StageTables stage;
  stage.claimed = {.table = driving};
  stage.builds = {PartitionedStar::Build(build, std::nullopt)};
  const std::vector<partitioner::Piece> pieces = partitioner::RecordPieces(3, 10, 4, 100);
  for (const int servers : {1, 2, 4, 30}) {
    const Assignment assignment = AssignRecords(stage, pieces, servers);
    std::vector<partitioner::Piece> all;
    uint64_t rows = 0;
    for (const Assignment::Share& share : assignment.servers) {
      all.insert(all.end(), share.pieces.begin(), share.pieces.end());
      rows += share.rows;
      EXPECT_EQ(share.driving_bytes, 40 * share.rows);
      EXPECT_EQ(share.build_bytes, share.pieces.empty() ? 0u : 4'000u);
      EXPECT_LE(share.rows, 7'780u / static_cast<uint64_t>(servers) + 1'024) << servers;
    }
    EXPECT_EQ(all, pieces);
    EXPECT_EQ(rows, 3u * 10 * 256 + 100);
  }
}

}  // namespace
}  // namespace nam::optimizer
