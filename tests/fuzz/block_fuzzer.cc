// A block as a memory server sent it: a reader stays within a block that passes the checks.

#include <string>

#include "base/check.h"
#include "storage/block.h"
#include "tests/fuzz/fuzz.h"

namespace nam::fuzz {
namespace {

using namespace storage;

const std::vector<uint8_t> kWidths = {1, 4, 2, 8};
constexpr uint32_t kRows = 16;
constexpr uint32_t kPointerSlots = 4;
constexpr uint64_t kAllocation = 7;

uint64_t SumOfAll(const BlockLayout& layout, const BlockView& view) {
  uint64_t sum = 0;
  for (const uint64_t pointer : view.pointers()) sum += pointer;
  for (uint32_t c = 0; c < layout.columns(); ++c) {
    sum += view.zone(c).min + view.zone(c).max;
    if (!view.CheckPage(c).ok()) continue;
    const std::byte* page = view.page(c);
    for (size_t i = 0; i < size_t{view.rows()} * layout.width(c); ++i)
      sum += std::to_integer<uint8_t>(page[i]);
  }
  return sum;
}

}  // namespace

std::vector<std::string> Seeds() {
  const BlockLayout layout(kWidths, kRows, kPointerSlots);
  std::vector<std::string> seeds;
  for (const uint32_t rows : {1u, kRows}) {
    std::string block(layout.bytes(), '\0');
    BlockWriter writer(layout, reinterpret_cast<std::byte*>(block.data()));
    const std::vector<uint64_t> group = {11, 12};
    writer.Seal(kAllocation, 3, 5, rows, group);
    seeds.push_back("\1" + block);
    seeds.push_back(std::string(1, '\0') + block);
  }
  return seeds;
}

}  // namespace nam::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nam::fuzz;
  Input input(data, size);
  const bool verify = input.Byte() % 2 != 0;
  const BlockLayout layout(kWidths, kRows, kPointerSlots);
  std::vector<uint64_t> block((layout.bytes() + 7) / 8);  // aligned, as READ buffers are
  const auto bytes = input.Bytes(layout.bytes());
  if (!bytes.empty()) std::memcpy(block.data(), bytes.data(), bytes.size());
  const BlockView view(layout, reinterpret_cast<const std::byte*>(block.data()));
  if (!view.CheckPrefix(kAllocation, 3, 5, verify).ok()) return 0;
  NAM_CHECK(view.rows() >= 1 && view.rows() <= kRows && view.pointers().size() == kPointerSlots);
  NAM_CHECK(SumOfAll(layout, view) == SumOfAll(layout, view));
  return 0;
}
