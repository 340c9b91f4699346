#include "partitioner/pieces.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <numeric>

namespace nam::partitioner {
namespace {

/// A table with `partitions` partitions by its only key, whose chains have full blocks except the last.
proto::Table Table(uint32_t partitions) {
  proto::Table table;
  table.add_partitioning()->set_parts(partitions);
  for (uint32_t p = 0; p < partitions; ++p) {
    proto::Chain& chain = *table.add_partitions();
    chain.set_block_rows(*rc::gen::inRange(1u, 100u));
    chain.set_blocks(*rc::gen::inRange(0u, 20u));
    if (chain.blocks() == 0) continue;
    const uint64_t last = *rc::gen::inRange(1u, chain.block_rows() + 1);
    chain.set_rows(uint64_t{chain.block_rows()} * (chain.blocks() - 1) + last);
  }
  return table;
}

RC_GTEST_PROP(PiecesProperty, HoldEveryBlockOnce, ()) {
  const proto::Table table = Table(*rc::gen::inRange(1u, 6u));
  std::vector<uint32_t> partitions(static_cast<size_t>(table.partitions_size()));
  std::iota(partitions.begin(), partitions.end(), 0u);
  const uint64_t rows_max = *rc::gen::inRange<uint64_t>(1, 500);
  const std::vector<Piece> pieces = PiecesOf(table, partitions, rows_max);
  std::vector<uint32_t> blocks(partitions.size());
  std::vector<uint64_t> rows(partitions.size());
  for (const Piece& piece : pieces) {
    RC_ASSERT(piece.blocks > 0u);
    RC_ASSERT(piece.first_block == blocks[piece.partition]);
    RC_ASSERT(piece.blocks == 1u ||
              RowsOf(table, piece) <
                  rows_max + table.partitions(static_cast<int>(piece.partition)).block_rows());
    blocks[piece.partition] += piece.blocks;
    rows[piece.partition] += RowsOf(table, piece);
  }
  std::vector<uint32_t> with_rows;
  for (const uint32_t p : partitions) {
    RC_ASSERT(blocks[p] == table.partitions(static_cast<int>(p)).blocks());
    RC_ASSERT(rows[p] == table.partitions(static_cast<int>(p)).rows());
    if (rows[p] > 0) with_rows.push_back(p);
  }
  RC_ASSERT(PartitionsOf(pieces) == with_rows);
}

TEST(PiecesTest, TheFirstRowsAreThoseOfOneChain) {
  proto::Table table;
  for (const uint32_t rows : {0u, 250u, 900u}) {
    proto::Chain& chain = *table.add_partitions();
    chain.set_rows(rows);
    chain.set_blocks((rows + 99) / 100);
  }
  EXPECT_EQ(FirstRowsOf(table, 1), (Piece{1, 0, 3}));
  EXPECT_EQ(FirstRowsOf(table, 250), (Piece{1, 0, 3}));
  EXPECT_EQ(FirstRowsOf(table, 251), std::nullopt) << "rows of the next chain are needed, too";
  EXPECT_EQ(FirstRowsOf(proto::Table(), 1), std::nullopt);
}

TEST(PiecesTest, NeedTheirPartitionOfABuildSideThatIsSplitAlike) {
  proto::Table driving, build;
  for (const uint32_t parts : {2u, 4u}) driving.add_partitioning()->set_parts(parts);
  for (int p = 0; p < 8; ++p) driving.add_partitions();
  for (int p = 0; p < 4; ++p) build.add_partitions();
  EXPECT_EQ(PartOf(driving, 7, 0), 1u);
  EXPECT_EQ(PartOf(driving, 6, 1), 2u);
  EXPECT_EQ(NeededPartitions(driving, build, 1, {1, 5, 6}), (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(NeededPartitions(driving, build, std::nullopt, {1}), (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(NeededPartitions(driving, build, std::nullopt, {}), std::vector<uint32_t>{});
}

}  // namespace
}  // namespace nam::partitioner
