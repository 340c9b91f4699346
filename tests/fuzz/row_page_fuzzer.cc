// Pages of rows as another server sent them, or as they lie in scratch memory: the first byte picks their
// plan. All values of a page that passes the check are read.

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "execution/partition/packed_page.h"
#include "execution/rows/row_layout.h"
#include "tests/fuzz/fuzz.h"

namespace nam::fuzz {
namespace {

using execution::kPageHeaderBytes;
using execution::PackPage;
using execution::PageHeader;
using execution::RowLayout;
using execution::UnpackPage;

constexpr uint32_t kPageBytes = RowLayout::kSmallPageBytes;
constexpr uint64_t kAttempt = 9;

/// Numbers of every width, texts, doubles, with NULLs and without, and no columns at all.
const std::vector<RowLayout>& Layouts() {
  static const auto* layouts = [] {
    const plan::Slot numbers[] = {{Type::Bool(), true, {}},
                                  {Type::Integer(), false, {-3, 200, true}},
                                  {Type::Integer(), true, {0, 50'000, true}},
                                  {Type::Date(), true, {}},
                                  {Type::Timestamp(), false, {}},
                                  {Type::Decimal(2), true, {}}};
    const plan::Slot text = {Type::String(), true, {}}, real = {{.kind = TypeKind::kDouble}, true, {}};
    auto* all = new std::vector<RowLayout>;
    for (const plan::Schema& schema :
         {plan::Schema{}, plan::Schema{numbers[1]}, plan::Schema(std::begin(numbers), std::end(numbers)),
          plan::Schema{text, numbers[2], real},
          plan::Schema{{Type::String(), false, {}}, text, numbers[5]}}) {
      auto layout = RowLayout::Of(schema, kPageBytes);
      NAM_CHECK(layout.ok());
      all->push_back(*std::move(layout));
    }
    return all;
  }();
  return *layouts;
}

/// Bits that say how a page comes.
constexpr uint8_t kSealed = 1;  // its sum is right
constexpr uint8_t kPacked = 2;  // as much of it as the input has, in lines of 64 bytes

/// An input holds rows and texts, not the thousands of bytes between them: plan, how it comes, the header,
/// u16 bytes behind the header, those bytes, and the last bytes of the page.
std::string InputOf(uint8_t plan, const std::byte* page, uint16_t front, uint16_t back) {
  std::string input(1, static_cast<char>(plan));
  input += static_cast<char>(kSealed);
  input.append(reinterpret_cast<const char*>(page), kPageHeaderBytes);
  Append(input, front);
  input.append(reinterpret_cast<const char*>(page) + kPageHeaderBytes, front);
  input.append(reinterpret_cast<const char*>(page) + kPageBytes - back, back);
  return input;
}

/// Reads every value as readers behind the check do.
uint64_t ReadAll(const RowLayout& layout, const std::byte* page, uint32_t rows) {
  uint64_t sum = 0;
  for (uint32_t r = 0; r < rows; ++r) {
    const std::byte* row = page + kPageHeaderBytes + size_t{r} * layout.stride();
    for (size_t i = 0; i < layout.fields(); ++i) {
      if (layout.field(i).physical == Physical::kText) {
        for (const char c : layout.Text(page, row, i)) sum += static_cast<uint8_t>(c);
      } else if (!layout.IsNull(row, i)) {
        const __int128 number = layout.Number(row, i);
        NAM_CHECK(number >= layout.bounds(i).low && number <= layout.bounds(i).high);
        sum += static_cast<uint64_t>(number);
      }
    }
  }
  return sum;
}

}  // namespace

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (uint8_t plan = 0; plan < Layouts().size(); ++plan) {
    const RowLayout& layout = Layouts()[plan];
    const auto page = std::make_unique<std::byte[]>(kPageBytes);
    layout.Clear(page.get());
    auto& header = *reinterpret_cast<PageHeader*>(page.get());
    header.attempt = kAttempt;
    header.rows = 3;
    const uint32_t text = kPageBytes - 8;
    header.text_begin = text;
    std::memcpy(page.get() + text, "MFGR#12b", 8);
    for (uint32_t r = 0; r < 3; ++r) {
      std::byte* row = page.get() + kPageHeaderBytes + r * layout.stride();
      for (size_t i = 0; i < layout.fields(); ++i) {
        const auto& field = layout.field(i);
        if (r == 1 && field.nullable()) {
          row[field.null_byte] |= static_cast<std::byte>(field.null_mask);
        } else if (field.physical == Physical::kText) {
          const uint32_t place[] = {text + r, 5};
          std::memcpy(row + field.offset, place, sizeof(place));
        } else {
          row[field.offset] = std::byte{1};
        }
      }
    }
    layout.Seal(page.get(), kAttempt);
    NAM_CHECK(layout.CheckPage({page.get(), kPageBytes}, kAttempt).ok());
    seeds.push_back(InputOf(plan, page.get(), static_cast<uint16_t>(3 * layout.stride()), 8));
    const uint32_t bytes = PackPage(layout, page.get());
    std::string packed = {static_cast<char>(plan), static_cast<char>(kSealed | kPacked)};
    packed.append(reinterpret_cast<const char*>(page.get()), bytes);
    seeds.push_back(std::move(packed));
  }
  return seeds;
}

}  // namespace nam::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nam::fuzz;
  Input input(data, size);
  const RowLayout& layout = Layouts()[input.Byte() % Layouts().size()];
  const uint8_t how = input.Byte();
  // The memory is separate, so that a sanitizer sees the first byte read beside it.
  const auto page = std::make_unique<std::byte[]>(kPageBytes);
  const auto put = [&](size_t at, std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(page.get() + at, bytes.data(), bytes.size());
  };
  if ((how & kPacked) != 0) {
    const auto bytes = input.Bytes(kPageBytes);
    put(0, bytes);
    if (!UnpackPage(layout, {page.get(), kPageBytes}, (bytes.size() + 63) / 64 * 64).ok()) return 0;
  } else {
    put(0, input.Bytes(kPageHeaderBytes));
    const size_t front = std::min<size_t>(input.Consume<uint16_t>(), kPageBytes - kPageHeaderBytes);
    put(kPageHeaderBytes, input.Bytes(front));
    const auto back = input.Bytes(kPageBytes - kPageHeaderBytes);
    put(kPageBytes - back.size(), back);
  }
  PageHeader header;
  std::memcpy(&header, page.get(), sizeof(header));
  // A peer's page has the right sum, whatever else is wrong with it; it is computed where the counts allow
  // it.
  const bool sums =
      header.rows <= layout.rows_max() && header.text_begin <= kPageBytes && header.bytes == kPageBytes;
  if ((how & kSealed) != 0 && sums) layout.Seal(page.get(), header.attempt);
  if (!layout.CheckPage({page.get(), kPageBytes}, kAttempt).ok()) return 0;
  [[maybe_unused]] const volatile uint64_t sum = ReadAll(layout, page.get(), header.rows);
  return 0;
}
