#include "execution/aggregate/groups.h"

#include <algorithm>

#include "base/status_macros.h"
#include "execution/aggregate/hash_numbers.h"
#include "execution/aggregate/row_scratch.h"
#include "execution/expression/vector_column.h"
#include "execution/positions.h"
#include "execution/rows/permute_keys.h"
#include "execution/rows/row_kernels.h"
#include "types/hash.h"

namespace nam::execution {

namespace {

absl::Status OutOfBounds() {
  return absl::DataLossError("the key of a group is outside of the bounds that the plan states");
}

}  // namespace

absl::StatusOr<RowTable*> KeyRows::Table() {
  const MutexLock lock(mutex_);
  if (table_ == nullptr) {
    NAM_ASSIGN_OR_RETURN(table_, RowTable::Make(keys_.layout(), budget_, PagesMax(keys_.layout(), budget_)));
  }
  return table_.get();
}

Groups::Groups(const GroupKeys& keys, KeyRows& rows, MemoryBudget& budget, Range range)
    : keys_(keys),
      rows_(rows),
      range_(Bounded(range)),
      form_(keys.form()),
      frame_(keys.program().NewFrame()),
      indexes_(std::make_unique_for_overwrite<uint32_t[]>(kChunkRows)),
      direct_(budget),
      number_of_(budget),
      present_(budget),
      table_(budget),
      row_of_(budget),
      hash_of_(budget) {
  for (size_t i = 0; i < keys.size(); ++i) texts_ |= keys.key(i).physical == Physical::kText;
  if (form_ != GroupForm::kRows) numbers_ = std::make_unique_for_overwrite<uint64_t[]>(kChunkRows);
  if (form_ == GroupForm::kPacked) missing_ = std::make_unique_for_overwrite<uint32_t[]>(kChunkRows);
}

Groups::~Groups() = default;

Groups::Range Groups::Bounded(Range range) const {
  return keys_.form() == GroupForm::kDirect ? Range{range.first, std::min(range.count, keys_.numbers())}
                                            : Range();
}

absl::Status Groups::Assign(const Chunk& chunk, uint32_t* groups) {
  if (keys_.size() == 0 && size_ > 0) {
    std::fill_n(groups, chunk.selection().count, 0);
    return absl::OkStatus();
  }
  if (keys_.domain().known()) return AssignPermuted(chunk, groups);
  if (form_ == GroupForm::kDirect && IsPlainCode(chunk)) return AssignCodes(chunk, groups);
  if (form_ != GroupForm::kRows) {
    switch (PackKeys(chunk)) {
      case Packed::kYes:
        return AssignNumbers(numbers_.get(), chunk.selection().count, groups);
      case Packed::kNo:
        NAM_RETURN_IF_ERROR(ChangeToRows());
        break;
      case Packed::kFailed:
        return frame_.error();
      case Packed::kOutOfBounds:
        return OutOfBounds();
    }
  }
  return AssignRows(chunk, groups);
}

Groups::Packed Groups::PackKeys(const Chunk& chunk) {
  std::fill_n(numbers_.get(), chunk.selection().count, 0);
  for (size_t i = 0; i < keys_.size(); ++i) {
    const Packed packed = PackKey(chunk, i);
    if (packed != Packed::kYes) return packed;
  }
  return Packed::kYes;
}

Groups::Packed Groups::PackKey(const Chunk& chunk, size_t i) {
  const GroupKeys::Key& key = keys_.key(i);
  if (key.slot) {
    const Column& column = chunk.column(*key.slot);
    if (column.kind == Column::Kind::kCodes) {
      return PackCodes(column, *column.meaning, i, chunk.selection());
    }
    if (column.kind == Column::Kind::kField && column.field->meaning != nullptr) {
      return PackFieldCodes(column, *column.field->meaning, i, chunk.selection());
    }
  }
  return key.physical == Physical::kText ? Packed::kNo : PackValues(chunk, i);
}

bool Groups::Packs(const CodeMeaning& meaning, size_t i) const {
  const GroupKeys::Key& key = keys_.key(i);
  if (meaning.null_code && !key.nullable) return false;
  if (key.physical == Physical::kText) return meaning.dictionary_id == key.meaning->dictionary_id;
  return meaning.min >= key.low && meaning.max - key.low + key.nullable < static_cast<__int128>(key.radix);
}

Groups::Packed Groups::PackCodes(const Column& column, const CodeMeaning& meaning, size_t i, Selection rows) {
  if (!Packs(meaning, i)) return Packed::kNo;
  const GroupKeys::Key& key = keys_.key(i);
  const uint64_t weight = key.weight;
  // Unsigned 64-bit arithmetic: what wraps here wraps back.
  const uint64_t delta = static_cast<uint64_t>(meaning.base) - static_cast<uint64_t>(key.low) + key.nullable;
  const bool partners_missing = column.rows != nullptr && key.nullable;
  uint64_t* const numbers = numbers_.get();
  WithCodes(column.base, column.width, [&](const auto* codes) {
    const uint32_t* const indexes =
        partners_missing || meaning.null_code ? IndexesOf(column, rows, indexes_.get()) : nullptr;
    if (partners_missing) {
      for (uint32_t j = 0; j < rows.count; ++j) {
        if (indexes[j] == kNullRow) continue;
        const uint64_t code = codes[indexes[j]];
        if (!meaning.IsNull(code)) numbers[j] += weight * (code + delta);
      }
    } else if (meaning.null_code && delta != 0) {
      for (uint32_t j = 0; j < rows.count; ++j) {
        const uint64_t code = codes[indexes[j]];
        numbers[j] += code == 0 ? 0 : weight * (code + delta);
      }
    } else {  // code 0 is digit 0, or it is no NULL
      WithIndexes(column, rows, indexes_.get(), [&](auto index_of) {
        if (weight == 1) {  // a 64-bit product is slow
          for (uint32_t j = 0; j < rows.count; ++j) numbers[j] += codes[index_of(j)] + delta;
        } else {
          for (uint32_t j = 0; j < rows.count; ++j) numbers[j] += weight * (codes[index_of(j)] + delta);
        }
      });
    }
  });
  return Packed::kYes;
}

Groups::Packed Groups::PackFieldCodes(const Column& column, const CodeMeaning& meaning, size_t i,
                                      Selection rows) {
  const GroupKeys::Key& key = keys_.key(i);
  if (!Packs(meaning, i) || (column.field->nullable() && !key.nullable)) return Packed::kNo;
  const uint32_t* const indexes = IndexesOf(column, rows, indexes_.get());
  const uint64_t weight = key.weight;
  const uint64_t delta = static_cast<uint64_t>(meaning.base) - static_cast<uint64_t>(key.low) + key.nullable;
  const RowField& field = *column.field;
  uint64_t* const numbers = numbers_.get();
  WithStored(field.width, [&](auto zero) {
    for (uint32_t j = 0; j < rows.count; ++j) {
      if (indexes[j] == kNullRow) continue;
      const std::byte* const row = field.RowOf(column.base, indexes[j]);
      if (field.IsNull(row)) continue;
      numbers[j] += weight * (static_cast<uint64_t>(field.Stored<decltype(zero)>(row)) + delta);
    }
  });
  return Packed::kYes;
}

Groups::Packed Groups::PackValues(const Chunk& chunk, size_t i) {
  const GroupKeys::Key& key = keys_.key(i);
  const Selection rows = chunk.selection();
  const Vector* const values = keys_.program().Evaluate(i, frame_, chunk, rows);
  if (values == nullptr) return Packed::kFailed;
  const uint32_t* const positions = PositionsOf(rows);
  const uint64_t low = static_cast<uint64_t>(key.low) - key.nullable;
  uint64_t* const numbers = numbers_.get();
  uint64_t greatest = 0;
  const auto pack = [&](const auto* of) {
    for (uint32_t j = 0; j < rows.count; ++j) {
      const uint32_t at = positions[j];
      if (values->null(at)) continue;
      // A value below the bound wraps, and exceeds the radix.
      const uint64_t digit = static_cast<uint64_t>(of[at]) - low;
      greatest = std::max(greatest, digit);
      numbers[j] += key.weight * digit;
    }
  };
  switch (values->physical) {
    case Physical::kTruth:
      pack(values->truth);
      break;
    case Physical::kInt64:
      pack(values->narrow);
      break;
    default:
      NAM_CHECK(values->physical == Physical::kInt128);
      for (uint32_t j = 0; j < rows.count; ++j) {
        const uint32_t at = positions[j];
        if (values->null(at)) continue;
        const __int128 digit = values->wide[at] - key.low + key.nullable;
        greatest = std::max(greatest, digit < 0 || digit > static_cast<__int128>(key.radix)
                                          ? key.radix
                                          : static_cast<uint64_t>(digit));
        numbers[j] += key.weight * static_cast<uint64_t>(digit);
      }
  }
  return greatest < key.radix ? Packed::kYes : Packed::kOutOfBounds;
}

/// Slots have 32 bits for a group.
absl::Status Groups::CheckNumbered(uint32_t more) const {
  if (uint64_t{size_} + more < UINT32_MAX) return absl::OkStatus();
  return absl::ResourceExhaustedError("a query has more than 4 billion groups on a server");
}

absl::Status Groups::AssignNumbers(const uint64_t* numbers, uint32_t count, uint32_t* groups) {
  NAM_RETURN_IF_ERROR(CheckNumbered(count));
  NAM_RETURN_IF_ERROR(number_of_.Grow(uint64_t{size_} + count));
  if (form_ == GroupForm::kPacked) return AssignPacked(numbers, count, groups);
  return AssignDirect([numbers](uint32_t j) { return numbers[j]; }, count, groups);
}

/// Where many groups are new, a branch on it would be unpredictable, so there is none.
template <typename NumberAt>
absl::Status Groups::AssignDirect(NumberAt number_at, uint32_t count, uint32_t* groups) {
  constexpr uint32_t kManyOf = 32;  // one in so many tuples
  NAM_RETURN_IF_ERROR(direct_.Resize(range_.count));
  uint32_t* const direct = direct_.data() - range_.first;
  uint64_t* const number_of = number_of_.data();
  uint32_t size = size_;
  if (many_new_) {
    for (uint32_t j = 0; j < count; ++j) {
      const uint64_t number = number_at(j);
      uint32_t group = direct[number];
      number_of[size] = number;
      const uint32_t is_new = group == 0;
      size += is_new;
      group = is_new != 0 ? size : group;
      direct[number] = group;
      groups[j] = group - 1;
    }
  } else {
    for (uint32_t j = 0; j < count; ++j) {
      const uint64_t number = number_at(j);
      uint32_t& group = direct[number];
      if (group == 0) [[unlikely]] {
        number_of[size] = number;
        group = ++size;
      }
      groups[j] = group - 1;
    }
  }
  many_new_ = size - size_ > count / kManyOf;
  size_ = size;
  return absl::OkStatus();
}

/// Whether the only key is a code that is never NULL.
bool Groups::IsPlainCode(const Chunk& chunk) const {
  const GroupKeys::Key& key = keys_.key(0);
  if (keys_.size() != 1 || !key.slot) return false;
  const Column& column = chunk.column(*key.slot);
  return column.kind == Column::Kind::kCodes && !column.meaning->null_code &&
         !(column.rows != nullptr && key.nullable) && Packs(*column.meaning, 0);
}

absl::Status Groups::AssignCodes(const Chunk& chunk, uint32_t* groups) {
  const GroupKeys::Key& key = keys_.key(0);
  const Column& column = chunk.column(*key.slot);
  const Selection rows = chunk.selection();
  const uint64_t delta =
      static_cast<uint64_t>(column.meaning->base) - static_cast<uint64_t>(key.low) + key.nullable;
  NAM_RETURN_IF_ERROR(CheckNumbered(rows.count));
  NAM_RETURN_IF_ERROR(number_of_.Grow(uint64_t{size_} + rows.count));
  return WithCodes(column.base, column.width, [&](const auto* codes) {
    return WithIndexes(column, rows, indexes_.get(), [&](auto index_of) {
      return AssignDirect([=](uint32_t j) { return codes[index_of(j)] + delta; }, rows.count, groups);
    });
  });
}

/// Only numbers of the range may come; other keys of the domain have other parts.
absl::Status Groups::AssignPermuted(const Chunk& chunk, uint32_t* groups) {
  const GroupKeys::Key& key = keys_.key(0);
  const plan::KeyDomain& domain = keys_.domain();
  const Selection rows = chunk.selection();
  NAM_RETURN_IF_ERROR(present_.Resize(range_.count));
  size_ = static_cast<uint32_t>(range_.count);
  const Column& column = chunk.column(*key.slot);
  uint32_t* const numbers = indexes_.get();
  const bool in_place = column.kind == Column::Kind::kField && column.rows == nullptr &&
                        rows.positions == nullptr && column.field->width <= sizeof(uint64_t);
  uint64_t greatest = 0;
  if (in_place) {
    const RowField& field = *column.field;
    const std::byte* const first = column.base + kPageHeaderBytes;
    PermuteKeys(domain, field, {}, first, rows.count, numbers);
    const uint64_t of_base = domain.NumberOf(field.base);
    const uint64_t stored = GreatestStored(first + field.offset, field.stride, field.width, rows.count);
    if (field.base < domain.low || stored > UINT64_MAX - of_base) return OutOfBounds();
    greatest = of_base + stored;
  } else {
    const Vector* const values = keys_.program().Evaluate(0, frame_, chunk, rows);
    if (values == nullptr) return frame_.error();
    const uint32_t* const positions = PositionsOf(rows);
    for (uint32_t j = 0; j < rows.count; ++j) {
      const uint64_t number = domain.NumberOf(values->narrow[positions[j]]);
      greatest = std::max(greatest, number);
      numbers[j] = domain.Permute(number);
    }
  }
  if (greatest >= key.radix) return OutOfBounds();
  uint8_t* const present = present_.data();
  const auto begin = static_cast<uint32_t>(range_.first);
  uint32_t furthest = 0;
  for (uint32_t j = 0; j < rows.count; ++j) {
    groups[j] = numbers[j] - begin;  // below the range: wraps
    furthest = std::max(furthest, groups[j]);
  }
  if (furthest >= size_) return OutOfBounds();
  for (uint32_t j = 0; j < rows.count; ++j) present[groups[j]] = 1;
  return absl::OkStatus();
}

uint32_t Groups::SelectPresent(uint32_t first, uint32_t count, uint32_t* positions) const {
  if (!keys_.domain().known()) return count;
  uint32_t kept = 0;
  for (uint32_t j = 0; j < count; ++j) {
    positions[kept] = j;
    kept += present_[first + j];
  }
  return kept;
}

absl::Status Groups::AssignPacked(const uint64_t* numbers, uint32_t count, uint32_t* groups) {
  NAM_RETURN_IF_ERROR(table_.Reserve(count));
  uint32_t* const hashes = indexes_.get();
  HashNumbers(numbers, count, hashes);
  if (table_.far()) {
    for (uint32_t j = 0; j < count; ++j) table_.Prefetch(hashes[j]);
  }
  // Most are where their search begins. The others are unpredictable: a second pass finds them.
  uint32_t* const missing = missing_.get();
  uint32_t left = 0;
  for (uint32_t j = 0; j < count; ++j) {
    const uint64_t at = table_.First(hashes[j]);
    const uint32_t group = table_.Empty(at) ? 0 : table_.Group(at);
    const bool found = !table_.Empty(at) & (number_of_[group] == numbers[j]);
    groups[j] = group;
    missing[left] = j;
    left += !found;
  }
  for (uint32_t i = 0; i < left; ++i) groups[missing[i]] = FindOrPut(numbers[missing[i]], hashes[missing[i]]);
  return absl::OkStatus();
}

uint32_t Groups::FindOrPut(uint64_t number, uint32_t hash) {
  for (uint64_t at = table_.First(hash);; at = table_.Next(at)) {
    if (table_.Empty(at)) {
      table_.Put(at, hash, size_);
      number_of_[size_] = number;
      return size_++;
    }
    const uint32_t group = table_.Group(at);
    if (table_.Hash(at) == hash && number_of_[group] == number) return group;
  }
}

void Groups::Reset(Range range) {
  Reset();
  range_ = Bounded(range);
}

void Groups::Reset() {
  if (keys_.domain().known()) {
    std::fill_n(present_.data(), size_, 0);
  } else if (form_ == GroupForm::kDirect) {
    for (uint32_t group = 0; group < size_; ++group) direct_[number_of_[group] - range_.first] = 0;
  }
  many_new_ = false;
  table_.Reset();
  if (appender_.has_value()) appender_->Reuse(appender_->TakePages());
  size_ = 0;
}

absl::Status Groups::Adopt(const Groups& other, std::span<const uint32_t> theirs, uint32_t* mine) {
  NAM_CHECK(form_ == other.form_ && theirs.size() <= kChunkRows && !keys_.domain().known());
  const auto count = static_cast<uint32_t>(theirs.size());
  if (form_ == GroupForm::kRows) return AdoptRows(other, theirs, mine);
  for (uint32_t j = 0; j < count; ++j) numbers_[j] = other.number_of_[theirs[j]];
  return AssignNumbers(numbers_.get(), count, mine);
}

void Groups::Read(std::span<const uint32_t> groups, KeyColumns& memory, Column* columns) const {
  memory.keys.resize(keys_.size());
  if (form_ != GroupForm::kRows) {
    for (size_t i = 0; i < keys_.size(); ++i) ReadPacked(groups, i, memory, columns[i]);
    return;
  }
  if (memory.rows == nullptr) memory.rows = std::make_unique_for_overwrite<uint32_t[]>(kChunkRows);
  for (size_t j = 0; j < groups.size(); ++j) memory.rows[j] = row_of_[groups[j]];
  for (size_t i = 0; i < keys_.size(); ++i) {
    columns[i] = key_table_->ColumnOf(i, memory.rows.get());
  }
}

void Groups::ReadPacked(std::span<const uint32_t> groups, size_t i, KeyColumns& memory,
                        Column& column) const {
  const GroupKeys::Key& key = keys_.key(i);
  KeyColumns::Values& into = memory.keys[i];
  if (into.values == nullptr) {
    into.values = std::make_unique_for_overwrite<std::byte[]>(kChunkRows * WidthOf(key.physical));
    into.nulls = std::make_unique_for_overwrite<uint8_t[]>(kChunkRows);
  }
  if (keys_.domain().known()) {
    const plan::KeyDomain& domain = keys_.domain();
    auto* const numbers = reinterpret_cast<int64_t*>(into.values.get());
    for (size_t j = 0; j < groups.size(); ++j)
      numbers[j] = domain.low + domain.Inverse(static_cast<uint32_t>(range_.first) + groups[j]);
    column = {.kind = Column::Kind::kValues, .physical = Physical::kInt64, .base = into.values.get()};
    return;
  }
  const auto read = [&](auto* values, auto&& value_of) {
    for (size_t j = 0; j < groups.size(); ++j) {
      const uint64_t digit = key.DigitOf(number_of_[groups[j]]);
      into.nulls[j] = key.nullable && digit == 0;
      values[j] = into.nulls[j] != 0 ? std::remove_pointer_t<decltype(values)>() : value_of(digit);
    }
  };
  std::byte* const values = into.values.get();
  switch (key.physical) {
    case Physical::kTruth:
      for (size_t j = 0; j < groups.size(); ++j) {
        const uint64_t digit = key.DigitOf(number_of_[groups[j]]);
        values[j] = static_cast<std::byte>(digit == 0 ? kUnknown : digit - 1);
      }
      break;
    case Physical::kText:
      read(reinterpret_cast<std::string_view*>(values),
           [&](uint64_t digit) { return (*key.meaning->dictionary)[digit - key.nullable]; });
      break;
    case Physical::kInt64:
      read(reinterpret_cast<int64_t*>(values), [&](uint64_t digit) {
        return static_cast<int64_t>(key.low + static_cast<__int128>(digit) - key.nullable);
      });
      break;
    default:
      read(reinterpret_cast<__int128*>(values),
           [&](uint64_t digit) { return key.low + static_cast<__int128>(digit) - key.nullable; });
  }
  column = {.kind = Column::Kind::kValues,
            .width = WidthOf(key.physical),
            .physical = key.physical,
            .base = values,
            .nulls = key.nullable && key.physical != Physical::kTruth ? into.nulls.get() : nullptr};
}

}  // namespace nam::execution
