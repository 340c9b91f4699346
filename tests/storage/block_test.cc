#include "storage/block.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <string>

namespace nam::storage {
namespace {

void PutCode(std::byte* page, uint8_t width, uint32_t row, uint64_t code) {
  std::memcpy(page + size_t{row} * width, &code, width);
}

uint64_t GetCode(const std::byte* page, uint8_t width, uint32_t row) {
  uint64_t code = 0;
  std::memcpy(&code, page + size_t{row} * width, width);
  return code;
}

struct Sealed {
  BlockLayout layout;
  std::vector<std::byte> bytes;
  std::vector<std::vector<uint64_t>> codes;
};

Sealed MakeBlock(const std::vector<uint8_t>& widths, uint32_t block_rows, uint32_t rows,
                 std::span<const uint64_t> group, const std::function<uint64_t()>& next) {
  Sealed sealed{BlockLayout(widths, block_rows, 4), {}, {}};
  sealed.bytes.resize(sealed.layout.bytes());
  BlockWriter writer(sealed.layout, sealed.bytes.data());
  for (uint32_t c = 0; c < widths.size(); ++c) {
    auto& column = sealed.codes.emplace_back();
    for (uint32_t r = 0; r < rows; ++r) {
      const uint64_t mask = widths[c] == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * widths[c])) - 1;
      column.push_back(next() & mask);
      PutCode(writer.page(c), widths[c], r, column.back());
    }
  }
  writer.Seal(/*allocation=*/7, /*partition=*/3, /*index=*/5, rows, group);
  return sealed;
}

TEST(Block, HoldsWhatWasWritten) {
  EXPECT_TRUE(rc::check("block round trip", [] {
    const auto widths =
        *rc::gen::nonEmpty(rc::gen::container<std::vector<uint8_t>>(rc::gen::element<uint8_t>(1, 2, 4, 8)));
    const auto rows = *rc::gen::inRange<uint32_t>(1, 200);
    const auto spare = *rc::gen::inRange<uint32_t>(0, 10);
    const std::vector<uint64_t> group{11, 12, 13};
    uint64_t state = *rc::gen::arbitrary<uint64_t>();
    const Sealed sealed = MakeBlock(widths, rows + spare, rows, group,
                                    [&] { return state = state * 6364136223846793005u + 1; });
    const BlockView view(sealed.layout, sealed.bytes.data());
    RC_ASSERT(view.CheckPrefix(7, 3, 5, true).ok());
    RC_ASSERT(view.rows() == rows);
    RC_ASSERT(view.pointers().size() == 4u);
    RC_ASSERT(view.pointers()[2] == 13u && view.pointers()[3] == 0u);
    for (uint32_t c = 0; c < widths.size(); ++c) {
      RC_ASSERT(view.CheckPage(c).ok());
      for (uint32_t r = 0; r < rows; ++r)
        RC_ASSERT(GetCode(view.page(c), widths[c], r) == sealed.codes[c][r]);
      RC_ASSERT(view.zone(c).min == *std::min_element(sealed.codes[c].begin(), sealed.codes[c].end()));
      RC_ASSERT(view.zone(c).max == *std::max_element(sealed.codes[c].begin(), sealed.codes[c].end()));
    }
  }));
}

TEST(Block, EveryFlippedBitIsFound) {
  uint64_t n = 0;
  const Sealed sealed = MakeBlock({1, 4, 2}, 16, 16, {}, [&] { return ++n * 77; });
  for (size_t bit = 0; bit < sealed.bytes.size() * 8; ++bit) {
    std::vector<std::byte> damaged = sealed.bytes;
    damaged[bit / 8] ^= std::byte(1 << (bit % 8));
    const BlockView view(sealed.layout, damaged.data());
    bool intact = view.CheckPrefix(7, 3, 5, true).ok();
    for (uint32_t c = 0; intact && c < 3; ++c) intact = view.CheckPage(c).ok();
    EXPECT_FALSE(intact) << "bit " << bit;
  }
}

/// A block of a plain number, a plain text and a code; a text or number that is nothing is NULL.
struct PlainBlock {
  PlainBlock(const std::vector<std::optional<std::string>>& texts, uint32_t block_rows, uint32_t text_bytes)
      : layout(std::vector<uint8_t>{kPlainNumberBytes, 4, 2}, block_rows, 0,
               std::vector<uint32_t>{0, text_bytes, 0}) {
    bytes.resize(layout.bytes());
    BlockWriter writer(layout, bytes.data());
    uint32_t end = 0;
    for (uint32_t r = 0; r < texts.size(); ++r) {
      NumberPage::Write(static_cast<__int128>(r) << 100, !texts[r], r, writer.page(0));
      if (texts[r])
        std::memcpy(writer.page(1) + size_t{block_rows} * 4 + end, texts[r]->data(), texts[r]->size());
      end += texts[r] ? static_cast<uint32_t>(texts[r]->size()) : 0;
      PutCode(writer.page(1), 4, r, end | (texts[r] ? 0 : TextPage::kNull));
      PutCode(writer.page(2), 2, r, r);
    }
    writer.Seal(7, 3, 5, static_cast<uint32_t>(texts.size()), {});
  }
  BlockView view() const { return {layout, bytes.data()}; }

  BlockLayout layout;
  std::vector<std::byte> bytes;
};

TEST(Block, PlainTextsAreReadBack) {
  EXPECT_TRUE(rc::check("texts round trip", [] {
    std::vector<std::optional<std::string>> texts;
    const auto rows = *rc::gen::inRange<size_t>(1, 60);
    uint32_t text_bytes = 8;
    for (size_t r = 0; r < rows; ++r) {
      texts.push_back(*rc::gen::arbitrary<bool>() ? std::optional(*rc::gen::string<std::string>())
                                                  : std::nullopt);
      if (texts.back()) text_bytes += static_cast<uint32_t>(texts.back()->size());
    }
    const PlainBlock block(texts, static_cast<uint32_t>(rows) + 3, text_bytes);
    const BlockView view = block.view();
    RC_ASSERT(view.CheckPrefix(7, 3, 5, true).ok());
    const TextPage page = view.texts(1);
    std::vector<std::string> present;
    for (uint32_t r = 0; r < rows; ++r) {
      RC_ASSERT(page.IsNull(r) == !texts[r].has_value());
      RC_ASSERT(page[r] == texts[r].value_or(""));
      RC_ASSERT(NumberPage(view.page(0)).IsNull(r) == !texts[r].has_value());
      RC_ASSERT(NumberPage(view.page(0))[r] == (texts[r] ? static_cast<__int128>(r) << 100 : 0));
      if (texts[r]) present.push_back(*texts[r]);
    }
    for (uint32_t c = 0; c < 3; ++c) RC_ASSERT(view.CheckPage(c).ok());
    // Each text is within the zone, as far as it says.
    for (const std::string& text : present) {
      uint64_t prefix = 0;
      for (size_t i = 0; i < 8; ++i)
        prefix = prefix << 8 | (i < text.size() ? static_cast<unsigned char>(text[i]) : 0u);
      RC_ASSERT(view.zone(1).min <= prefix);
      RC_ASSERT(prefix <= view.zone(1).max);
    }
    RC_ASSERT((view.zone(1).min > view.zone(1).max) == present.empty());
    RC_ASSERT((view.zone(0).min > view.zone(0).max) == present.empty());
  }));
}

TEST(Block, EveryFlippedBitOfPlainPagesIsFound) {
  const PlainBlock whole({"some", std::nullopt, "", "texts"}, 4, 9);
  ASSERT_EQ(whole.layout.bytes() % 8, 0u);
  const size_t used = whole.layout.page_offset(1) + 4 * 4 + 9;  // the padding after it is unused
  const size_t numbers_end = whole.layout.page_offset(0) + 4 * size_t{kPlainNumberBytes};
  for (size_t bit = 0; bit < used * 8; ++bit) {
    if (bit / 8 >= numbers_end && bit / 8 < whole.layout.page_offset(1)) continue;  // padding
    PlainBlock damaged = whole;
    damaged.bytes[bit / 8] ^= std::byte(1 << (bit % 8));
    bool intact = damaged.view().CheckPrefix(7, 3, 5, true).ok();
    for (uint32_t c = 0; intact && c < 2; ++c) intact = damaged.view().CheckPage(c).ok();
    EXPECT_FALSE(intact) << "bit " << bit;
  }
}

TEST(Block, EndsThatLeadOutOfTheirPageAreDamage) {
  for (const uint32_t end : {10u, 1u << 30}) {
    PlainBlock block({"some", "texts"}, 2, 9);
    PutCode(block.bytes.data() + block.layout.page_offset(1), 4, 1, end);
    EXPECT_FALSE(block.view().CheckPage(1).ok()) << end;
  }
  PlainBlock block({"some", "texts"}, 2, 9);
  PutCode(block.bytes.data() + block.layout.page_offset(1), 4, 0, 9);
  BlockWriter(block.layout, block.bytes.data()).Seal(7, 3, 5, 2, {});
  EXPECT_TRUE(block.view().CheckPage(1).ok());
  PutCode(block.bytes.data() + block.layout.page_offset(1), 4, 1, 8);
  BlockWriter(block.layout, block.bytes.data()).Seal(7, 3, 5, 2, {});
  EXPECT_FALSE(block.view().CheckPage(1).ok()) << "ends descend";
}

/// Memory read in place may be reused meanwhile.
TEST(Block, TextsStayWithinTheirPage) {
  PlainBlock block({"some", "texts"}, 2, 9);
  std::byte* const ends = block.bytes.data() + block.layout.page_offset(1);
  const TextPage page = block.view().texts(1);
  const char* const begin = page[0].data();
  for (const uint32_t first : {0u, 4u, 9u, 17u, 1u << 30}) {
    for (const uint32_t second : {0u, 3u, 9u, 16u, 1u << 30}) {
      PutCode(ends, 4, 0, first);
      PutCode(ends, 4, 1, second);
      for (uint32_t r = 0; r < 2; ++r) {
        EXPECT_GE(page[r].data(), begin);
        EXPECT_LE(page[r].data() + page[r].size(), begin + block.layout.text_bytes(1));
      }
    }
  }
}

TEST(Block, AnotherBlockIsNotTakenForThisOne) {
  const Sealed sealed = MakeBlock({4}, 8, 8, {}, [] { return 1; });
  const BlockView view(sealed.layout, sealed.bytes.data());
  EXPECT_TRUE(view.CheckPrefix(7, 3, 5, false).ok());
  EXPECT_EQ(view.CheckPrefix(8, 3, 5, false).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(view.CheckPrefix(7, 4, 5, false).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(view.CheckPrefix(7, 3, 6, false).code(), absl::StatusCode::kDataLoss);
}

TEST(BlockLayout, FillsTheBlockAndNoMore) {
  EXPECT_TRUE(rc::check("rows that fit", [] {
    const auto widths =
        *rc::gen::nonEmpty(rc::gen::container<std::vector<uint8_t>>(rc::gen::element<uint8_t>(1, 2, 4, 8)));
    const auto bytes = *rc::gen::inRange<uint32_t>(kMinBlockBytes, 1 << 16);
    const auto slots = *rc::gen::inRange<uint32_t>(0, 64);
    const uint32_t rows = BlockLayout::RowsThatFit(widths, bytes, slots);
    if (rows > 0) RC_ASSERT(BlockLayout(widths, rows, slots).bytes() <= bytes);
    RC_ASSERT(BlockLayout(widths, rows + widths.size() * 8 + 1, slots).bytes() > bytes);
  }));
}

}  // namespace
}  // namespace nam::storage
