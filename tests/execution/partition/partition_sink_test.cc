#include "execution/partition/partition_sink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

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

}  // namespace
}  // namespace nam::execution
