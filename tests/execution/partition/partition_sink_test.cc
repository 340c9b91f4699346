#include "execution/partition/partition_sink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "execution/partition/part_directory.h"
#include "execution/partition/partition_source.h"
#include "execution/partition/parts.h"
#include "tests/execution/partition/scratch_cluster.h"

namespace nam::execution {
namespace {

TEST(PartitionSinkTest, EachRowComesOnceAndEqualKeysTogether) {
  for (const uint64_t seed : TestSeeds(20)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    RandomStream& random = driver.random();
    ScratchCluster cluster(driver, random.OneIn(4) ? fabric::Kind::kTcp : fabric::Kind::kShm);
    const plan::Schema schema = RandomSchema(1 + random.Below(6), random);
    std::vector<uint32_t> keys;
    for (uint32_t slot = 0; slot < schema.size(); ++slot) {
      if (random.OneIn(2)) keys.push_back(slot);
    }
    const uint32_t parts = 1 + static_cast<uint32_t>(random.Below(100));
    const auto layout = PartLayout(schema, parts);
    ASSERT_TRUE(layout.ok()) << layout.status();
    std::vector<Tuple> all;
    std::vector<proto::Directory> directories;
    for (uint64_t attempt = 1; attempt <= 1 + random.Below(3); ++attempt) {
      const std::unique_ptr<storage::ScratchSpace> space = cluster.NewSpace();
      // Two pages a task, one of them for staging, or enough for all parts.
      const int tasks = 1 + static_cast<int>(random.Below(3));
      const uint64_t staging_bytes = std::max(layout->page_bytes(), RowLayout::kSmallPageBytes);
      MemoryBudget few_pages(static_cast<uint64_t>(tasks) * (staging_bytes + layout->page_bytes()));
      auto sink =
          PartitionSink::Make({.rows = schema, .by = {keys, parts}, .attempt = attempt, .threads = tasks},
                              *space, random.OneIn(2) ? few_pages : driver.budget());
      ASSERT_TRUE(sink.ok()) << sink.status();
      const std::vector<Tuple> input =
          RandomTuples(schema, random.Below(4000), 1 + random.Below(500), random);
      const absl::Status status = cluster.RunInto(schema, input, **sink, tasks);
      ASSERT_TRUE(status.ok()) << status;
      directories.push_back((*sink)->output().directory().ToProto(attempt, 0));
      all.insert(all.end(), input.begin(), input.end());
    }
    std::vector<Tuple> read;
    std::set<Tuple> seen;  // keys of parts before
    for (uint32_t part = 0; part < parts; ++part) {
      PieceQueue queue({{part, 0, 1}});
      auto source = PartitionSource::Make(
          {.layout = *layout, .by = {keys, parts}, .directories = directories}, queue, driver.budget());
      ASSERT_TRUE(source.ok()) << source.status();
      const auto rows = cluster.ReadAll(**source, schema.size(), 1);
      ASSERT_TRUE(rows.ok()) << rows.status();
      EXPECT_EQ((*source)->totals().scan.rows_in, rows->size());
      std::set<Tuple> here;
      for (const Tuple& row : *rows) {
        Tuple key;
        for (const uint32_t slot : keys) key.push_back(row[slot]);
        here.insert(std::move(key));
      }
      for (const Tuple& key : here) EXPECT_TRUE(seen.insert(key).second) << "a key in two parts";
      read.insert(read.end(), rows->begin(), rows->end());
    }
    std::sort(read.begin(), read.end());
    std::sort(all.begin(), all.end());
    ExpectTuples(read, all);
  }
}

TEST(PartitionSinkTest, RowsThatFitNoPageComeBackWhole) {
  for (const uint64_t seed : TestSeeds(6)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    StepDriver driver(seed);
    ScratchCluster cluster(driver, seed % 2 == 0 ? fabric::Kind::kTcp : fabric::Kind::kShm);
    const plan::Schema schema = LongTupleSchema();
    constexpr uint32_t kParts = 5;
    const std::vector<uint32_t> keys = {seed % 3 == 0 ? 1u : 0u};  // a long text may be the key
    const auto layout = PartLayout(schema, kParts);
    ASSERT_TRUE(layout.ok()) << layout.status();
    std::vector<Tuple> rows = LongTuples(40, driver.random());
    const std::unique_ptr<storage::ScratchSpace> space = cluster.NewSpace();
    auto sink = PartitionSink::Make({.rows = schema, .by = {keys, kParts}, .attempt = 1, .threads = 2},
                                    *space, driver.budget());
    ASSERT_TRUE(sink.ok()) << sink.status();
    const absl::Status status = cluster.RunInto(schema, rows, **sink, 2);
    ASSERT_TRUE(status.ok()) << status;
    const std::vector<proto::Directory> directories = {(*sink)->output().directory().ToProto(1, 0)};
    std::vector<partitioner::Piece> pieces;
    for (uint32_t part = 0; part < kParts; ++part) pieces.push_back({part, 0, 1});
    PieceQueue queue(pieces);
    auto source = PartitionSource::Make({.layout = *layout, .by = {keys, kParts}, .directories = directories},
                                        queue, driver.budget());
    ASSERT_TRUE(source.ok()) << source.status();
    auto read = cluster.ReadAll(**source, schema.size(), 1);
    ASSERT_TRUE(read.ok()) << read.status();
    std::sort(rows.begin(), rows.end());
    std::sort(read->begin(), read->end());
    EXPECT_TRUE(*read == rows);
  }
}

/// The last row of such a page ends more than a cache line before the page does: its pages are packed
/// although they are full, and none of them may lie in the middle of a stretch.
TEST(PartitionSinkTest, FullPagesOfWideRowsComeBack) {
  StepDriver driver(21);
  ScratchCluster cluster(driver);
  const plan::Schema schema(13, plan::Slot{.type = Type::Integer(), .nullable = false});
  constexpr uint32_t kParts = 512;
  const auto layout = PartLayout(schema, kParts);
  ASSERT_TRUE(layout.ok()) << layout.status();
  ASSERT_LE(kPageHeaderBytes + layout->rows_max() * layout->stride() + 2 * 64, layout->page_bytes());
  ASSERT_GE(StretchBytes(*layout), 4 * layout->page_bytes());
  std::vector<Tuple> rows;
  for (uint32_t i = 0; i < 40 * layout->rows_max(); ++i) {
    Tuple row(schema.size(), Cell::Number(i));
    row[0] = Cell::Number(i % 3);
    rows.push_back(std::move(row));
  }
  const PartBy by{{0}, kParts};
  const std::unique_ptr<storage::ScratchSpace> space = cluster.NewSpace();
  auto sink = PartitionSink::Make({.rows = schema, .by = by, .attempt = 1}, *space, driver.budget());
  ASSERT_TRUE(sink.ok()) << sink.status();
  const absl::Status status = cluster.RunInto(schema, rows, **sink, 1);
  ASSERT_TRUE(status.ok()) << status;
  const std::vector<proto::Directory> directories = {(*sink)->output().directory().ToProto(1, 0)};
  std::vector<partitioner::Piece> pieces;
  for (uint32_t part = 0; part < kParts; ++part) pieces.push_back({part, 0, 1});
  PieceQueue queue(pieces);
  auto source = PartitionSource::Make({.layout = *layout, .by = by, .directories = directories}, queue,
                                      driver.budget());
  ASSERT_TRUE(source.ok()) << source.status();
  const auto read = cluster.ReadAll(**source, schema.size(), 1);
  ASSERT_TRUE(read.ok()) << read.status();
  std::sort(rows.begin(), rows.end());
  ExpectTuples(*read, rows);
}

TEST(PartitionSinkTest, PiecesOfNoPageAreDamage) {
  const plan::Schema schema = LongTupleSchema();
  const auto layout = PartLayout(schema, 1);
  ASSERT_TRUE(layout.ok()) << layout.status();
  const auto checked = [&](const std::vector<uint32_t>& bytes, const std::vector<uint32_t>& continuing) {
    proto::Directory directory;
    directory.set_attempt(1);
    proto::PartPages& part = *directory.add_parts();
    part.set_rows(1);
    for (const uint32_t of_page : bytes) {
      part.add_pages(storage::RemotePtr<void>(MemoryServerId(1), 4096).raw());
      part.add_bytes(of_page);
    }
    for (const uint32_t piece : continuing) part.add_continuing(piece);
    return CheckDirectory(directory, 1, *layout);
  };
  const uint32_t page = layout->page_bytes();
  EXPECT_TRUE(checked({page, page, 640, page, page, page}, {1, 4, 5}).ok());
  EXPECT_TRUE(absl::IsDataLoss(checked({page, 640}, {1}))) << "no size of a page";
  EXPECT_TRUE(absl::IsDataLoss(checked({page, 640, page, page}, {1, 3}))) << "nor the first one";
  EXPECT_TRUE(absl::IsDataLoss(checked({page, page}, {0}))) << "of no page";
  EXPECT_TRUE(absl::IsDataLoss(checked({page, page}, {2}))) << "that there is not";
  EXPECT_TRUE(absl::IsDataLoss(checked({page, page, page}, {2, 1})));
  const std::vector<uint32_t> many(RowLayout::kLongPageBytesMax / page + 1, page);
  std::vector<uint32_t> pieces;
  for (uint32_t i = 1; i < many.size(); ++i) pieces.push_back(i);
  EXPECT_TRUE(absl::IsDataLoss(checked(many, pieces))) << "more than any page has";
}

/// A READ of it would go past the memory that waits for it.
TEST(PartitionSinkTest, AStretchThatIsTooLongIsDamage) {
  const plan::Schema schema = {{.type = Type::Integer(), .nullable = false}};
  const auto layout = PartLayout(schema, 1);
  ASSERT_TRUE(layout.ok()) << layout.status();
  proto::Directory directory;
  directory.set_attempt(1);
  proto::PartPages& part = *directory.add_parts();
  part.set_rows(1);
  part.add_pages(storage::RemotePtr<void>(MemoryServerId(1), 4096).raw());
  part.add_bytes(StretchBytes(*layout));
  const auto checked = [&] {
    MemoryBudget budget(1 << 20);
    PieceQueue queue({{0, 0, 1}});
    const std::vector<proto::Directory> directories = {directory};
    return PartitionSource::Make({.layout = *layout, .by = {{0}, 1}, .directories = directories}, queue,
                                 budget)
        .status();
  };
  EXPECT_TRUE(checked().ok()) << checked();
  part.set_bytes(0, StretchBytes(*layout) + 64);
  EXPECT_TRUE(absl::IsDataLoss(checked())) << checked();
}

}  // namespace
}  // namespace nam::execution
