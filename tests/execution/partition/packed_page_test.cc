#include "execution/partition/packed_page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "execution/rows/row_writer.h"
#include "execution/sort/rows_plan.h"
#include "tests/execution/tuples.h"

namespace nam::execution {
namespace {

constexpr uint64_t kAttempt = 77;

using Bytes = std::vector<std::byte>;

PageHeader& HeaderOf(Bytes& page) {
  return *reinterpret_cast<PageHeader*>(page.data());
}

/// Memory of a page that held something else.
Bytes AnyBytes(size_t bytes, RandomStream& random) {
  Bytes any(bytes);
  for (std::byte& b : any) b = static_cast<std::byte>(random.Below(256));
  return any;
}

/// A sealed page with the first of these rows that fit, or `most` of them.
Bytes PageOf(const RowsPlan& plan, const std::vector<Tuple>& rows, size_t most, RandomStream& random) {
  const RowLayout& layout = plan.layout();
  Bytes page = AnyBytes(layout.page_bytes(), random);
  layout.Clear(page.data());
  RowWriter writer(layout, plan.slots());
  writer.Open(page.data(), 0);
  Frame frame = plan.slots().NewFrame();
  ChunkMaker maker(plan.schema(), random);
  bool full = false;
  for (size_t first = 0; first < std::min(most, rows.size()) && !full;) {
    const size_t count = std::min<size_t>(std::min(most, rows.size()) - first, kChunkRows);
    const std::unique_ptr<Chunk> chunk = maker.NewChunk();
    maker.Fill({rows.data() + first, count}, *chunk);
    uint32_t done = 0;
    EXPECT_TRUE(writer.Append(frame, *chunk, chunk->selection(), done, nullptr)) << frame.error();
    full = done < count;
    first += done;
  }
  layout.Seal(page.data(), kAttempt);
  return page;
}

/// The bytes that matter: header and rows, then the texts.
Bytes Meant(const RowLayout& layout, Bytes& page) {
  const PageHeader header = HeaderOf(page);
  Bytes meant(page.begin(), page.begin() + kPageHeaderBytes + header.rows * layout.stride());
  meant.insert(meant.end(), page.begin() + header.text_begin, page.end());
  return meant;
}

TEST(PackedPageTest, APageComesBackWithRowsAndTexts) {
  int packed = 0, uncut = 0, cut = 0;
  for (const uint64_t seed : TestSeeds(150)) {
    SCOPED_TRACE("NAM_SEED=" + std::to_string(seed));
    RandomStream random(seed);
    plan::Schema schema = RandomSchema(1 + random.Below(6), random);
    if (random.OneIn(2)) schema.push_back({Type::String(), random.OneIn(2), {}});
    const auto plan = RowsPlan::Make(schema, RowLayout::kSmallPageBytes << random.Below(3)).value();
    const RowLayout& layout = plan->layout();
    const std::vector<Tuple> rows = RandomTuples(schema, 3000, 1 + random.Below(3000), random);
    const uint64_t most[] = {rows.size(), random.Below(rows.size()), random.Below(60), random.Below(500)};
    Bytes page = PageOf(*plan, rows, most[random.Below(std::size(most))], random);
    const Bytes whole = page, meant = Meant(layout, page);
    const bool texts = HeaderOf(page).text_begin < layout.page_bytes();

    const uint32_t bytes = PackPage(layout, page.data());
    ASSERT_EQ(bytes % 64, 0u);
    ASSERT_LE(bytes, layout.page_bytes());
    if (bytes == layout.page_bytes()) {
      EXPECT_EQ(page, whole);
      EXPECT_GT(meant.size(), texts ? layout.page_bytes() / 8 * 7 - 64 : layout.page_bytes() - 64);
    } else {
      EXPECT_EQ(bytes, (meant.size() + 63) / 64 * 64);
      EXPECT_LE(bytes, layout.page_bytes() / 8 * (texts ? 7 : 8)) << "texts were moved for little";
    }
    ++(bytes == layout.page_bytes() ? uncut : texts ? packed : cut);

    Bytes read = AnyBytes(layout.page_bytes(), random);
    std::copy_n(page.begin(), bytes, read.begin());
    const absl::Status status = UnpackPage(layout, read, bytes);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(Meant(layout, read), meant);
    const absl::Status check = layout.CheckPage(read, kAttempt);
    EXPECT_TRUE(check.ok()) << check;
  }
  if (TestSeeds(150).size() < 150) return;
  EXPECT_GT(packed, 20);
  EXPECT_GT(uncut, 5);
  EXPECT_GT(cut, 20);
}

/// A packed page whose header or size PackPage never leaves.
class DamagedPackedPageTest : public testing::Test {
 protected:
  DamagedPackedPageTest() {
    std::vector<Tuple> rows;
    for (int i = 0; i < 100; ++i) rows.push_back({Cell::Text(std::string(1 + i % 30, 'x')), Cell::Number(i)});
    page_ = PageOf(*plan_, rows, rows.size(), random_);
    bytes_ = PackPage(layout_, page_.data());
    EXPECT_LT(bytes_, layout_.page_bytes());
    EXPECT_EQ(layout_.stride(), 16u);
    Bytes good = page_;
    EXPECT_TRUE(UnpackPage(layout_, good, bytes_).ok());
    EXPECT_TRUE(layout_.CheckPage(good, kAttempt).ok());
  }

  using Damage = std::function<void(PageHeader&)>;
  /// The page is refused before a byte is moved.
  void ExpectRefused(size_t bytes, const Damage& damage) {
    Bytes page = page_;
    damage(HeaderOf(page));
    const Bytes before = page;
    EXPECT_TRUE(absl::IsDataLoss(UnpackPage(layout_, page, bytes)));
    EXPECT_TRUE(page == before);
  }

  RandomStream random_{3};
  const std::unique_ptr<const RowsPlan> plan_ =
      RowsPlan::Make(
          {{Type::String(), false, {}}, {Type::Integer(), false, {INT64_MIN + 1, INT64_MAX, true}}},
          RowLayout::kSmallPageBytes)
          .value();
  const RowLayout& layout_ = plan_->layout();
  Bytes page_;
  uint32_t bytes_ = 0;
};

TEST_F(DamagedPackedPageTest, OfAnotherSize) {
  for (const size_t bytes : {size_t{0}, size_t{32}, size_t{64}, size_t{bytes_} - 64, size_t{bytes_} - 1,
                             size_t{bytes_} + 1, size_t{bytes_} + 64, size_t{layout_.page_bytes()} - 64,
                             size_t{layout_.page_bytes()} + 64, SIZE_MAX - 63})
    ExpectRefused(bytes, [](PageHeader&) {});
}

TEST_F(DamagedPackedPageTest, WithOtherRows) {
  const uint32_t rows = HeaderOf(page_).rows;
  for (const uint32_t damaged :
       {0u, rows - 4, rows + 4, layout_.rows_max() + 1, UINT32_MAX, rows + (1u << 28) /* 2^32 bytes more */})
    ExpectRefused(bytes_, [&](PageHeader& header) { header.rows = damaged; });
}

TEST_F(DamagedPackedPageTest, WithOtherTexts) {
  const uint32_t page_bytes = layout_.page_bytes(), begin = HeaderOf(page_).text_begin;
  for (const uint32_t damaged : {0u, begin - 64, begin + 64, page_bytes, page_bytes + 64, UINT32_MAX})
    ExpectRefused(bytes_, [&](PageHeader& header) { header.text_begin = damaged; });
  // With sizes to fit.
  const uint32_t rows_bytes = kPageHeaderBytes + HeaderOf(page_).rows * layout_.stride();
  ExpectRefused((rows_bytes - 64 + 63) / 64 * 64,
                [&](PageHeader& header) { header.text_begin = page_bytes + 64; });
  ExpectRefused(page_bytes + (rows_bytes + 63) / 64 * 64, [](PageHeader& header) { header.text_begin = 0; });
}

TEST_F(DamagedPackedPageTest, WithRowsOverItsTexts) {
  const uint32_t rows = layout_.rows_max(), begin = layout_.page_bytes() / 2;
  const uint32_t bytes = kPageHeaderBytes + rows * layout_.stride() + layout_.page_bytes() - begin;
  ExpectRefused((bytes + 63) / 64 * 64, [&](PageHeader& header) {
    header.rows = rows;
    header.text_begin = begin;
  });
}

/// A size that is valid for some page is still wrong for this one.
TEST_F(DamagedPackedPageTest, WithOtherBytes) {
  for (int i = 0; i < 2000; ++i) {
    Bytes page = page_;
    const PageHeader header = HeaderOf(page);
    const size_t at = random_.Below(kPageHeaderBytes + header.rows * layout_.stride() + layout_.page_bytes() -
                                    header.text_begin);
    page[at] ^= static_cast<std::byte>(1 + random_.Below(255));
    absl::Status status = UnpackPage(layout_, page, bytes_);
    if (status.ok()) status = layout_.CheckPage(page, kAttempt);
    EXPECT_TRUE(absl::IsDataLoss(status)) << at;
  }
}

}  // namespace
}  // namespace nam::execution
