#include "partitioner/chain_plan.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_format.h"
#include "types/sql_error.h"

namespace nam::partitioner {
namespace {

/// Spare room of a page over its rows' average need, in sixteenths.
constexpr uint64_t kSpare = 1;

/// The sizes of one column's texts.
struct TextSizes {
  uint64_t total = 0;
  uint32_t longest = 0;
};

uint32_t AlignUp8(uint64_t n) {
  return static_cast<uint32_t>((n + 7) & ~uint64_t{7});
}

class Cutter {
 public:
  explicit Cutter(const ChainContents& contents) : contents_(contents), sizes_(contents.widths.size()) {
    for (size_t c = 0; c < sizes_.size(); ++c) {
      for (const uint32_t bytes : contents.text_bytes[c]) {
        sizes_[c].total += bytes;
        sizes_[c].longest = std::max(sizes_[c].longest, bytes);
      }
      any_text_ |= !contents.text_bytes[c].empty();
    }
  }

  /// The text room of pages for `block_rows` rows; empty without texts.
  std::vector<uint32_t> RoomFor(uint64_t block_rows) const {
    std::vector<uint32_t> room;
    if (!any_text_) return room;
    for (size_t c = 0; c < sizes_.size(); ++c) {
      const uint64_t average = sizes_[c].total * block_rows / contents_.rows;
      const uint64_t wanted = std::min(sizes_[c].total, average + average * kSpare / 16 + 8);
      room.push_back(contents_.text_bytes[c].empty()
                         ? 0
                         : std::max<uint32_t>(8, AlignUp8(std::max<uint64_t>(wanted, sizes_[c].longest))));
    }
    return room;
  }

  /// The most rows of a block within `block_bytes`; 0 if none fits.
  uint32_t MostRows(uint32_t block_bytes, uint32_t pointer_slots) const {
    const auto fits = [&](uint64_t rows) {
      // Page sizes that exceed 32 bits are far beyond any block.
      uint64_t bytes = 0;
      const std::vector<uint32_t> room = RoomFor(rows);
      for (const uint32_t text_bytes : room) bytes += text_bytes;
      for (const uint8_t width : contents_.widths) bytes += rows * width;
      if (bytes > block_bytes) return false;
      return storage::BlockLayout(contents_.widths, static_cast<uint32_t>(rows), pointer_slots, room)
                 .bytes() <= block_bytes;
    };
    uint64_t low = 0, high = std::min<uint64_t>(contents_.rows, block_bytes);
    while (low < high) {
      const uint64_t middle = (low + high + 1) / 2;
      if (fits(middle)) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return static_cast<uint32_t>(low);
  }

  /// The blocks' ends, for pages with `block_rows` rows and `room` for texts.
  std::vector<uint64_t> Cut(uint64_t block_rows, const std::vector<uint32_t>& room) const {
    std::vector<uint64_t> ends;
    if (room.empty()) {
      for (uint64_t end = block_rows; end < contents_.rows; end += block_rows) ends.push_back(end);
      ends.push_back(contents_.rows);
      return ends;
    }
    std::vector<uint64_t> used(room.size());
    uint64_t first = 0;
    for (uint64_t row = 0; row < contents_.rows; ++row) {
      bool full = row - first == block_rows;
      for (size_t c = 0; c < room.size(); ++c) full |= room[c] > 0 && used[c] + Bytes(c, row) > room[c];
      if (full) {
        ends.push_back(row);
        first = row;
        std::fill(used.begin(), used.end(), 0);
      }
      for (size_t c = 0; c < room.size(); ++c) used[c] += room[c] > 0 ? Bytes(c, row) : 0;
    }
    ends.push_back(contents_.rows);
    return ends;
  }

  /// Reduces pages to the need of the fullest block.
  void Shrink(ChainPlan& plan) const {
    uint64_t first = 0;
    plan.block_rows = 0;
    std::vector<uint64_t> most(plan.text_bytes.size());
    for (const uint64_t end : plan.ends) {
      plan.block_rows = std::max(plan.block_rows, static_cast<uint32_t>(end - first));
      for (size_t c = 0; c < most.size(); ++c) {
        if (plan.text_bytes[c] == 0) continue;
        const auto from = contents_.text_bytes[c].begin();
        most[c] = std::max(most[c], std::accumulate(from + static_cast<int64_t>(first),
                                                    from + static_cast<int64_t>(end), uint64_t{0}));
      }
      first = end;
    }
    for (size_t c = 0; c < most.size(); ++c) {
      if (plan.text_bytes[c] > 0) plan.text_bytes[c] = std::max<uint32_t>(8, AlignUp8(most[c]));
    }
  }

 private:
  uint32_t Bytes(size_t column, uint64_t row) const { return contents_.text_bytes[column][row]; }

  const ChainContents& contents_;
  std::vector<TextSizes> sizes_;
  bool any_text_ = false;
};

}  // namespace

absl::StatusOr<ChainPlan> PlanChain(const ChainContents& contents, uint32_t block_bytes,
                                    uint32_t pointer_group) {
  ChainPlan plan;
  if (contents.rows == 0) return plan;
  const Cutter cutter(contents);
  for (const uint32_t slots : {uint32_t{0}, pointer_group}) {
    uint32_t most_rows = cutter.MostRows(block_bytes, slots);
    // Blocks for long texts are twice as large as the longest row, so that they have few rows and little
    // room.
    for (uint32_t bytes = block_bytes; most_rows == 0 && bytes < storage::kMaxLongBlockBytes;) {
      bytes = std::min(2 * bytes, storage::kMaxLongBlockBytes);
      most_rows = cutter.MostRows(bytes, slots);
    }
    if (most_rows == 0) {
      return UserError(
          sqlstate::kLimitExceeded,
          absl::StrFormat("a row of %d columns is too big: a block takes up to %d bytes of texts",
                          contents.widths.size(), storage::kMaxLongBlockBytes),
          -1, "load such rows alone, or cut long texts into several rows");
    }
    plan.text_bytes = cutter.RoomFor(most_rows);
    plan.ends = cutter.Cut(most_rows, plan.text_bytes);
    // Equal blocks instead of full ones and a remainder, which wastes nothing in a short chain.
    plan.ends = cutter.Cut((contents.rows + plan.blocks() - 1) / plan.blocks(), plan.text_bytes);
    if (plan.blocks() <= pointer_group) break;
  }
  cutter.Shrink(plan);
  plan.pointer_slots = storage::PointerSlots(plan.blocks(), pointer_group);
  plan.block_bytes =
      storage::BlockLayout(contents.widths, plan.block_rows, plan.pointer_slots, plan.text_bytes).bytes();
  return plan;
}

}  // namespace nam::partitioner
