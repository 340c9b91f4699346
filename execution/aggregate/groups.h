#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "execution/aggregate/group_keys.h"
#include "execution/aggregate/group_table.h"
#include "execution/aggregate/hash_numbers.h"
#include "execution/budget_array.h"
#include "execution/rows/row_appender.h"

namespace nam::execution {

/// The table that holds the keys of all threads' groups, once one of them needs rows. Any thread.
class KeyRows {
 public:
  KeyRows(const GroupKeys& keys, MemoryBudget& budget) : keys_(keys), budget_(budget) {}
  absl::StatusOr<RowTable*> Table();

 private:
  const GroupKeys& keys_;
  MemoryBudget& budget_;
  Mutex mutex_;
  std::unique_ptr<RowTable> table_ ABSL_GUARDED_BY(mutex_);
};

/// Numbers groups in the order of their first appearance. One thread; others read it after its pipeline has
/// ended.
///
/// A value that the prepared numbers cannot express (a text of another dictionary, or of none) converts the
/// groups to rows, which keep their numbers.
class Groups {
 public:
  /// Limits direct numbers to [first, first + count).
  struct Range {
    uint64_t first = 0;
    uint64_t count = UINT64_MAX;
  };
  /// All outlive the groups.
  Groups(const GroupKeys& keys, KeyRows& rows, MemoryBudget& budget, Range range);
  Groups(const GroupKeys& keys, KeyRows& rows, MemoryBudget& budget) : Groups(keys, rows, budget, Range()) {}
  ~Groups();

  /// Sets groups[i] to the group of the i-th selected tuple. RESOURCE_EXHAUSTED, the keys' errors, or
  /// DATA_LOSS if a number is outside of the plan's bounds.
  absl::Status Assign(const Chunk& chunk, uint32_t* groups);
  /// Sets mine[i] to this set's number for the group theirs[i] of another, which has the same keys, rows and
  /// form. At most kChunkRows.
  absl::Status Adopt(const Groups& other, std::span<const uint32_t> theirs, uint32_t* mine);
  absl::Status ChangeToRows();
  /// Forgets all groups; form and memory stay. Invalidates what was read. With a range: changes the range.
  void Reset();
  void Reset(Range range);

  /// With a domain: as many as the range has numbers, some of them absent (SelectPresent).
  uint32_t size() const { return size_; }
  /// Selects the present ones of the groups first, first + 1, …, up to kChunkRows. Returns their number, and
  /// their positions from 0 on unless all are present.
  uint32_t SelectPresent(uint32_t first, uint32_t count, uint32_t* positions) const;
  /// The pages that hold keys as rows, with their texts.
  uint64_t row_bytes() const { return appender_.has_value() ? appender_->bytes() : 0; }
  GroupForm form() const { return form_; }
  /// The part of a group, of `parts`. Every set of the same form agrees.
  uint32_t PartOf(uint32_t group, uint32_t parts) const {
    switch (form_) {
      case GroupForm::kDirect:
        return static_cast<uint32_t>(static_cast<unsigned __int128>(number_of_[group]) * parts /
                                     keys_.numbers());
      case GroupForm::kPacked:
        return static_cast<uint32_t>(uint64_t{HashOfNumber(number_of_[group])} * parts >> 32);
      case GroupForm::kRows:
        return static_cast<uint32_t>(uint64_t{hash_of_[group]} * parts >> 32);
    }
    return 0;
  }

  /// Memory for the keys of some groups as columns.
  struct KeyColumns {
    std::unique_ptr<uint32_t[]> rows;
    struct Values {
      std::unique_ptr<std::byte[]> values;
      std::unique_ptr<uint8_t[]> nulls;
    };
    std::vector<Values> keys;
  };
  /// Sets columns[k] to key k of the given groups, at most kChunkRows. `memory` holds them.
  void Read(std::span<const uint32_t> groups, KeyColumns& memory, Column* columns) const;

 private:
  enum class Packed : uint8_t { kYes, kNo, kFailed, kOutOfBounds };

  Packed PackKeys(const Chunk& chunk);
  Packed PackKey(const Chunk& chunk, size_t i);
  /// Whether the numbers of key i have room for all values of the codes.
  bool Packs(const CodeMeaning& meaning, size_t i) const;
  Packed PackCodes(const Column& column, const CodeMeaning& meaning, size_t i, Selection rows);
  Packed PackFieldCodes(const Column& column, const CodeMeaning& meaning, size_t i, Selection rows);
  Packed PackValues(const Chunk& chunk, size_t i);
  absl::Status CheckNumbered(uint32_t more) const;
  absl::Status AssignNumbers(const uint64_t* numbers, uint32_t count, uint32_t* groups);
  template <typename NumberAt>
  absl::Status AssignDirect(NumberAt number_at, uint32_t count, uint32_t* groups);
  bool IsPlainCode(const Chunk& chunk) const;
  absl::Status AssignCodes(const Chunk& chunk, uint32_t* groups);
  absl::Status AssignPermuted(const Chunk& chunk, uint32_t* groups);
  absl::Status AssignPacked(const uint64_t* numbers, uint32_t count, uint32_t* groups);
  uint32_t FindOrPut(uint64_t number, uint32_t hash);

  struct RowScratch;
  absl::Status PrepareRows();
  absl::Status AssignRows(const Chunk& chunk, uint32_t* groups);
  bool HashKeys(const Program& program, Frame& frame, const Chunk& chunk);
  void FindOrAdd(uint32_t open, Selection rows, uint32_t* groups);
  void MatchKey(size_t i, Selection rows, const uint32_t* groups);
  bool SameRow(uint32_t a, uint32_t b) const;
  absl::Status AdoptRows(const Groups& other, std::span<const uint32_t> theirs, uint32_t* mine);
  void ReadPacked(std::span<const uint32_t> groups, size_t i, KeyColumns& memory, Column& column) const;

  const GroupKeys& keys_;
  KeyRows& rows_;
  Range Bounded(Range range) const;

  Range range_;
  GroupForm form_;
  uint32_t size_ = 0;
  bool many_new_ = false;  // the last tuples had many new groups
  Frame frame_;

  // Groups as numbers.
  std::unique_ptr<uint64_t[]> numbers_;  // by selected tuple
  std::unique_ptr<uint32_t[]> missing_;  // scratch
  std::unique_ptr<uint32_t[]> indexes_;  // scratch; with a domain, the numbers
  BudgetArray<uint32_t> direct_;         // number - range_.first → group + 1
  BudgetArray<uint64_t> number_of_;      // by group
  BudgetArray<uint8_t> present_;  // with a domain, whose groups are the range's numbers: 1 if it has come

  GroupTable table_;

  // Groups as rows.
  std::unique_ptr<RowScratch> scratch_;
  std::optional<RowAppender> appender_;
  RowTable* key_table_ = nullptr;
  bool texts_ = false;
  BudgetArray<uint32_t> row_of_;   // by group
  BudgetArray<uint32_t> hash_of_;  // by group
};

}  // namespace nam::execution
