#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "execution/aggregate/aggregate_plan.h"
#include "execution/aggregate/group_set.h"
#include "execution/rows/row_layout.h"
#include "tests/execution/aggregate/aggregation.h"

namespace nam::execution {
namespace {

constexpr int64_t kLow = 100, kHigh = 2999;
constexpr uint32_t kParts = 4, kPlaces = 1024;

/// Groups of dense keys, counted; a set takes them in part by part.
class DenseGroupsTest : public ::testing::TestWithParam<bool> {
 protected:
  DenseGroupsTest() {
    aggregation_.schema = {{Type::Integer(), false, {kLow, kHigh, true}}};
    aggregation_.keys = {SlotExpr(aggregation_.schema, 0)};
    aggregation_.aggregates = {MakeAggregate(plan::AggregateFunction::kCountRows, aggregation_.schema, 0)};
    plan_ = *AggregatePlan::Make({.group_by = aggregation_.keys,
                                  .aggregates = aggregation_.aggregates,
                                  .schema = aggregation_.schema,
                                  .input = AggregateInput::kGroups,
                                  .parts = kParts,
                                  .part_by_part = true});
    rows_ = std::make_unique<AggregateRows>(*plan_, budget_);
    set_ = std::make_unique<GroupSet>(*plan_, *rows_, budget_);
  }

  uint32_t PartOf(int64_t key) const {
    const plan::KeyDomain& domain = plan_->domain();
    return domain.Permute(domain.NumberOf(key)) / kPlaces;
  }
  std::vector<int64_t> KeysOf(uint32_t part) const {
    std::vector<int64_t> keys;
    for (int64_t key = kLow; key <= kHigh; ++key) {
      if (PartOf(key) == part) keys.push_back(key);
    }
    return keys;
  }
  void Begin(uint32_t part) { set_->Reset(Groups::Range{uint64_t{part} * kPlaces, kPlaces}); }

  /// Each key is a group of one row, passed as values or as consecutive rows.
  absl::Status Consume(std::span<const int64_t> keys) {
    const RowLayout& layout = plan_->partial_layout();
    const RowField& field = layout.field(0);
    std::vector<std::byte> page(layout.page_bytes());
    for (size_t i = 0; i < keys.size(); ++i) {
      const uint64_t stored = static_cast<uint64_t>(keys[i]) - static_cast<uint64_t>(field.base);
      std::memcpy(page.data() + kPageHeaderBytes + i * layout.stride() + field.offset, &stored, field.width);
    }
    static constexpr int64_t kOne = 1;
    Chunk chunk(2, 0);
    chunk.SelectAll(static_cast<uint32_t>(keys.size()));
    if (GetParam()) {
      chunk.columns()[0] = {
          .kind = Column::Kind::kField, .width = field.width, .base = page.data(), .field = &field};
    } else {
      chunk.columns()[0] = {.base = reinterpret_cast<const std::byte*>(keys.data())};
    }
    chunk.columns()[1] = {.kind = Column::Kind::kConstant, .base = reinterpret_cast<const std::byte*>(&kOne)};
    return set_->Consume(chunk);
  }
  /// The groups that exist, with their counts.
  std::vector<Tuple> Present() {
    std::vector<Tuple> groups;
    GroupSet::Memory memory;
    EXPECT_TRUE(set_->FinishDistinct(memory).ok());
    Chunk chunk(2, 0);
    uint32_t positions[kChunkRows];
    for (uint32_t first = 0; first < set_->size(); first += kChunkRows) {
      const uint32_t count = std::min(kChunkRows, set_->size() - first);
      const uint32_t kept = set_->SelectPresent(first, count, positions);
      EXPECT_TRUE(set_->ReadFinal(first, count, memory, chunk).ok());
      if (kept < count) chunk.Select(positions, kept);
      for (Tuple& group : TuplesOf(chunk, 2)) groups.push_back(std::move(group));
    }
    std::sort(groups.begin(), groups.end());
    return groups;
  }

  MemoryBudget budget_{1 << 20};
  Aggregation aggregation_;
  std::unique_ptr<const AggregatePlan> plan_;
  std::unique_ptr<AggregateRows> rows_;
  std::unique_ptr<GroupSet> set_;
};

TEST_P(DenseGroupsTest, OnlyThoseThatHaveComeAreThere) {
  for (uint32_t part = 0; part < kParts; ++part) {
    Begin(part);
    const std::vector<int64_t> keys = KeysOf(part);
    ASSERT_GT(keys.size(), 300U);
    std::vector<Tuple> expected;
    for (size_t i = 0; i < 300; ++i)
      expected.push_back({Cell::Number(keys[i]), Cell::Number(i < 200 ? 1 : 2)});
    ASSERT_TRUE(Consume(std::span(keys).first(300)).ok());
    ASSERT_TRUE(Consume(std::span(keys).subspan(200, 100)).ok());
    ExpectTuples(Present(), expected);
  }
}

TEST_P(DenseGroupsTest, KeysBeyondTheBoundsAreRefused) {
  // Such keys have a place: the range was rounded up.
  for (int64_t key = kHigh + 1; key < kHigh + 100; ++key) {
    Begin(PartOf(key));
    EXPECT_TRUE(absl::IsDataLoss(Consume({&key, 1}))) << key;
  }
  if (GetParam()) return;  // rows do not hold numbers below the least
  for (const int64_t key : {kLow - 1, int64_t{0}, int64_t{-1}, INT64_MIN}) {
    Begin(PartOf(key));
    EXPECT_TRUE(absl::IsDataLoss(Consume({&key, 1}))) << key;
  }
}

TEST_P(DenseGroupsTest, KeysOfAnotherPartAreRefused) {
  for (int64_t key = kLow; key < kLow + 100; ++key) {
    for (uint32_t part = 0; part < kParts; ++part) {
      Begin(part);
      EXPECT_EQ(Consume({&key, 1}).ok(), part == PartOf(key)) << key;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(InRows, DenseGroupsTest, ::testing::Bool());

}  // namespace
}  // namespace nam::execution
