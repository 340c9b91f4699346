#include "partitioner/compaction_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/random.h"

namespace nam::partitioner {
namespace {

/// A table of groups, without rows, that grows by appends and is compacted by the rule.
class Model {
 public:
  void Append(uint64_t rows) {
    groups_.push_back({rows, rows});
    rows_ += rows;
    for (auto merged = GroupsToMerge(groups_, 1); !merged.empty(); merged = GroupsToMerge(groups_, 1))
      Merge(merged);
    groups_max_ = std::max(groups_max_, groups_.size());
  }
  void Merge(const std::vector<uint32_t>& merged) {
    GroupSize sum;
    for (auto group = merged.rbegin(); group != merged.rend(); ++group) {
      sum.rows += groups_[*group].rows;
      sum.bytes += groups_[*group].bytes;
      groups_.erase(groups_.begin() + *group);
    }
    groups_.push_back(sum);
    written_again_ += sum.rows;
  }
  double written_again() const { return static_cast<double>(written_again_) / static_cast<double>(rows_); }
  double most_written_again() const {
    return std::log(static_cast<double>(rows_)) / std::log(static_cast<double>(kGrowth));
  }
  size_t groups_max() const { return groups_max_; }
  double most_groups() const {
    return kMergedGroupsMin + std::log(static_cast<double>(rows_)) / std::log(4.0 / 3);
  }

 private:
  std::vector<GroupSize> groups_;
  uint64_t rows_ = 0;
  uint64_t written_again_ = 0;
  size_t groups_max_ = 0;
};

TEST(CompactionRule, SmallGroupsAreMergedAndLargeOnesAreNot) {
  std::vector<GroupSize> groups(15, {1, 1});
  EXPECT_TRUE(GroupsToMerge(groups, 1).empty()) << "too few";
  groups.insert(groups.begin() + 3, {1'000'000, 1'000'000});
  EXPECT_TRUE(GroupsToMerge(groups, 1).empty()) << "a large group is not written again for 15 rows";
  groups.push_back({1, 1});
  const std::vector<uint32_t> merged = GroupsToMerge(groups, 1);
  EXPECT_EQ(merged.size(), 16u);
  EXPECT_EQ(std::count(merged.begin(), merged.end(), 3u), 0);
  EXPECT_TRUE(std::is_sorted(merged.begin(), merged.end()));
}

TEST(CompactionRule, WhatIsMergedFitsAServersMemory) {
  const std::vector<GroupSize> of_values(64, {kMergedValuesMax / 40, 1}),
      of_bytes(64, {1, kMergedBytesMax / 20});
  EXPECT_EQ(GroupsToMerge(of_values, 1).size(), 40u);
  EXPECT_EQ(GroupsToMerge(of_values, 2).size(), 20u);
  EXPECT_TRUE(GroupsToMerge(of_values, 4).empty());
  EXPECT_EQ(GroupsToMerge(of_bytes, 1).size(), 20u);
}

TEST(CompactionRule, ManyAppendsOfOneRowAreWrittenAgainAFewTimes) {
  Model model;
  for (int i = 0; i < 200'000; ++i) model.Append(1);
  EXPECT_LT(model.written_again(), model.most_written_again());
  EXPECT_LT(static_cast<double>(model.groups_max()), model.most_groups());
}

TEST(CompactionRule, AppendsOfAnySizesAreWrittenAgainAFewTimes) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    RandomStream random(seed);
    Model model;
    for (int i = 0; i < 3'000; ++i) model.Append(uint64_t{1} << random.Below(1 + seed % 14));
    EXPECT_LT(model.written_again(), model.most_written_again()) << seed;
    EXPECT_LT(static_cast<double>(model.groups_max()), model.most_groups()) << seed;
  }
}

/// What one process has written as several groups comes and goes as one.
TEST(CompactionRule, GroupsOfOneAllocationAreMergedTogether) {
  proto::Table table;
  table.add_columns();
  const auto add = [&](uint64_t allocation, uint64_t rows) {
    table.add_groups()->set_allocation(allocation);
    table.add_partitions()->set_rows(rows);
  };
  for (uint64_t allocation = 1; allocation <= 15; ++allocation) add(allocation, 10);
  add(16, 5);
  add(16, 5);
  std::vector<uint32_t> all(17);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(GroupsToMerge(table), all);
  add(17, 1);
  add(17, 1'000'000);
  EXPECT_EQ(GroupsToMerge(table), all) << "one of the two is large";
}

}  // namespace
}  // namespace nam::partitioner
