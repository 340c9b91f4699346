#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "execution/budget_array.h"
#include "execution/sort/ordered_rows.h"
#include "execution/sort/row_order.h"
#include "plan/window.h"
#include "types/type.h"

namespace nam::execution {

/// The shared input of a window's tasks: rows sorted by the keys of partitions, then by those of the window.
/// Immutable.
struct WindowRows {
  WindowRows(const OrderedRows& sorted, std::span<const OrderSlot> partition_keys,
             std::span<const OrderSlot> order_keys)
      : rows(sorted),
        partitions(sorted.table(), partition_keys),
        order(sorted.table(), order_keys),
        order_key(order_keys.empty() ? OrderSlot() : order_keys[0]) {}

  /// The place after the partition of this place. Found by doubling steps, so that it is cheap for small and
  /// large partitions.
  uint64_t PartitionEnd(uint64_t place) const;
  /// The first place from `place` on at which a partition begins.
  uint64_t PartitionFrom(uint64_t place) const;

  const OrderedRows& rows;
  const RowOrder partitions;
  const RowOrder order;
  const OrderSlot order_key;  // the first, if any
};

/// The rows of one partition, by their places in it, and its groups of peers. One task's, which reuses it.
class Partition {
 public:
  Partition(const WindowRows& window, MemoryBudget& budget);

  /// Takes the rows at places [first, first + size) of the order.
  absl::Status Begin(uint64_t first, uint32_t size);

  uint32_t size() const { return size_; }
  uint32_t row(uint32_t i) const { return window_.rows.row(first_ + i); }
  /// Peers have equal order keys; the groups are numbered from 0.
  uint32_t groups() const { return groups_; }
  uint32_t group_of(uint32_t i) const { return group_of_[i]; }
  uint32_t group_start(uint32_t group) const { return starts_[group]; }
  uint32_t group_end(uint32_t group) const { return group + 1 < groups_ ? starts_[group + 1] : size_; }

  const RowLayout& layout() const { return window_.rows.table().layout(); }
  const std::byte* bytes(uint32_t i) const { return window_.rows.table().row(row(i)); }
  const std::byte* page(uint32_t i) const {
    return window_.rows.table().page(row(i) >> layout().rows_shift());
  }
  bool IsNull(uint32_t i, uint32_t slot) const { return layout().IsNull(bytes(i), slot); }
  __int128 Number(uint32_t i, uint32_t slot) const { return layout().Number(bytes(i), slot); }
  std::string_view Text(uint32_t i, uint32_t slot) const { return layout().Text(page(i), bytes(i), slot); }
  const WindowRows& window() const { return window_; }

 private:
  const WindowRows& window_;
  uint64_t first_ = 0;
  uint32_t size_ = 0;
  uint32_t groups_ = 0;
  BudgetArray<uint32_t> group_of_;  // by row
  BudgetArray<uint32_t> starts_;    // by group
};

/// The frames of a partition's rows, in the rows' order. Neither end of a frame ever moves backwards, so
/// walking over all of them costs a step for each row, whatever the frame.
class FrameWalk {
 public:
  struct Places {
    uint32_t start = 0;
    uint32_t end = 0;  // not below start
    uint32_t size() const { return end - start; }
  };
  /// The rows of a frame without excluded ones: up to three runs in their order, any of which may be empty.
  /// Neither end of the first, second or third runs moves backwards.
  ///
  ///     frame of TIES   ├ before ┤ peers, i, peers ├ behind ┤     parts  before │ i │ behind
  using Parts = std::array<Places, 3>;
  FrameWalk(const Partition& partition, const plan::WindowFrame& frame);

  /// The frame of row i. Calls come in ascending order.
  Parts At(uint32_t i);
  /// Whether all parts but the first are always empty.
  bool in_one_part() const { return frame_.exclusion == plan::WindowFrame::Exclusion::kNone; }

 private:
  Places Bounds(uint32_t i);
  uint32_t StartOf(const plan::FrameBound& bound, uint32_t i, uint32_t& at);
  uint32_t EndOf(const plan::FrameBound& bound, uint32_t i, uint32_t& at);
  /// The first row with a key, from `at` on, that is not before the distance of the bound; `beyond`: that is
  /// after it.
  uint32_t Search(const plan::FrameBound& bound, uint32_t i, bool beyond, uint32_t& at) const;
  /// The row's key, so that keys never fall; for a date its first microsecond.
  __int128 KeyOf(uint32_t i) const;
  /// A key moved by a bound's distance. `upper`: it is compared as the end of a range of values.
  __int128 Moved(__int128 key, __int128 distance, bool down, bool upper) const;

  const Partition& partition_;
  const plan::WindowFrame frame_;
  const bool peers_;                        // bounds are of groups, not of rows
  TypeKind key_kind_ = TypeKind::kInteger;  // for RANGE with an offset
  uint32_t with_key_ = 0;                   // the rows that have a key, for RANGE with an offset
  uint32_t with_key_end_ = 0;
  uint32_t start_ = 0, end_ = 0;  // the positions of the searches
};

}  // namespace nam::execution
