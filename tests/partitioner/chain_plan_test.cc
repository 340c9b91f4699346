#include "partitioner/chain_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>

#include "storage/block.h"
#include "types/sql_error.h"

namespace nam::partitioner {
namespace {

/// Columns of codes, of numbers of 128 bits and of texts, some of which are much longer than others.
ChainContents Arbitrary() {
  ChainContents contents;
  contents.rows = *rc::gen::inRange<uint64_t>(1, 3000);
  const auto columns = *rc::gen::inRange<size_t>(1, 6);
  for (size_t c = 0; c < columns; ++c) {
    std::vector<uint32_t>& bytes = contents.text_bytes.emplace_back();
    if (*rc::gen::arbitrary<bool>()) {
      contents.widths.push_back(*rc::gen::element<uint8_t>(1, 2, 4, 8, 16));
      continue;
    }
    contents.widths.push_back(4);
    const auto usual = *rc::gen::inRange<uint32_t>(0, 60), rare = *rc::gen::inRange<uint32_t>(0, 900);
    uint64_t state = *rc::gen::arbitrary<uint64_t>();
    for (uint64_t row = 0; row < contents.rows; ++row) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      bytes.push_back((state >> 40) % 50 == 0 ? rare : static_cast<uint32_t>((state >> 33) % (usual + 1)));
    }
  }
  return contents;
}

uint64_t BytesOf(const ChainContents& contents, size_t column, uint64_t first, uint64_t end) {
  const auto from = contents.text_bytes[column].begin();
  return std::accumulate(from + static_cast<int64_t>(first), from + static_cast<int64_t>(end), uint64_t{0});
}

TEST(ChainPlan, EveryRowFitsItsBlock) {
  EXPECT_TRUE(rc::check("chains of texts", [] {
    const ChainContents contents = Arbitrary();
    const auto block_bytes = *rc::gen::inRange<uint32_t>(8 << 10, 64 << 10);
    const auto group = *rc::gen::inRange<uint32_t>(2, 32);
    const auto plan = PlanChain(contents, block_bytes, group);
    RC_ASSERT(plan.ok());
    RC_ASSERT(plan->rows() == contents.rows);
    RC_ASSERT(plan->pointer_slots == storage::PointerSlots(plan->blocks(), group));
    const storage::BlockLayout layout(contents.widths, plan->block_rows, plan->pointer_slots,
                                      plan->text_bytes);
    RC_ASSERT(layout.bytes() == plan->block_bytes);
    RC_ASSERT(plan->block_bytes <= block_bytes);
    uint64_t first = 0, text_bytes = 0;
    for (const uint64_t end : plan->ends) {
      RC_ASSERT(first < end);
      RC_ASSERT(end - first <= plan->block_rows);
      for (size_t c = 0; c < contents.widths.size(); ++c) {
        if (contents.text_bytes[c].empty()) continue;
        RC_ASSERT(layout.is_text(static_cast<uint32_t>(c)));
        RC_ASSERT(BytesOf(contents, c, first, end) <= layout.text_bytes(static_cast<uint32_t>(c)));
        text_bytes += BytesOf(contents, c, first, end);
      }
      first = end;
    }
    // Overhead: each block's prefix, each page's spare share, at most one longest text, and the rest of a
    // page when another one is full first.
    uint64_t needed = text_bytes;
    for (const uint8_t width : contents.widths) needed += contents.rows * width;
    RC_CLASSIFY(plan->blocks() > 3);
    if (plan->blocks() > 3 && contents.rows > 1000)
      RC_ASSERT(uint64_t{plan->blocks()} * plan->block_bytes < 4 * needed + uint64_t{plan->blocks()} * 2048);
  }));
}

TEST(ChainPlan, ChainsWithoutTextsHaveEqualBlocks) {
  const ChainContents contents{.rows = 1001, .widths = {4, 2}, .text_bytes = {{}, {}}};
  const auto plan = PlanChain(contents, 2048, 32);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->blocks(), 4u);
  EXPECT_EQ(plan->block_rows, 251u);
  EXPECT_EQ(plan->ends, (std::vector<uint64_t>{251, 502, 753, 1001}));
  EXPECT_TRUE(plan->text_bytes.empty());
}

TEST(ChainPlan, ARowThatFitsNoBlockMakesBlocksLarger) {
  ChainContents contents{.rows = 3, .widths = {4}, .text_bytes = {{1, 1500, 1}}};
  ASSERT_TRUE(PlanChain(contents, 2048, 32).ok());
  contents.text_bytes = {{1, 3000, 1}};
  const auto plan = PlanChain(contents, 2048, 32);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->blocks(), 1u);
  EXPECT_GT(plan->block_bytes, 3000u);
  EXPECT_LE(plan->block_bytes, 4096u);
  contents.text_bytes = {{1, storage::kMaxLongBlockBytes, 1}};
  const auto error = SqlErrorOf(PlanChain(contents, 2048, 32).status());
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->sqlstate, "54000");
}

/// Its page has the same size in every block, so each block has fewer rows.
TEST(ChainPlan, OneLongTextMakesNoBlockTooLarge) {
  ChainContents contents{.rows = 1000, .widths = {4}, .text_bytes = {std::vector<uint32_t>(1000, 10)}};
  contents.text_bytes[0][500] = 1800;
  const auto plan = PlanChain(contents, 2048, 32);
  ASSERT_TRUE(plan.ok());
  EXPECT_LE(plan->block_bytes, 2048u);
  EXPECT_GE(plan->text_bytes[0], 1800u);
}

TEST(ChainPlan, NoRowsNeedNoBlock) {
  const auto plan = PlanChain({.rows = 0, .widths = {4}, .text_bytes = {{}}}, 2048, 32);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->blocks(), 0u);
  EXPECT_EQ(plan->rows(), 0u);
}

}  // namespace
}  // namespace nam::partitioner
