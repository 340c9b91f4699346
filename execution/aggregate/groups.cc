#include "execution/aggregate/groups.h"

#include <algorithm>

#include "base/status_macros.h"
#include "execution/aggregate/row_scratch.h"
#include "execution/expression/vector_column.h"
#include "execution/positions.h"
#include "types/hash.h"

namespace nam::execution {

absl::StatusOr<RowTable*> KeyRows::Table() {
  const std::lock_guard lock(mutex_);
  if (table_ == nullptr) {
    NAM_ASSIGN_OR_RETURN(table_, RowTable::Make(keys_.layout(), budget_, PagesMax(keys_.layout(), budget_)));
  }
  return table_.get();
}

Groups::Groups(const GroupKeys& keys, KeyRows& rows, MemoryBudget& budget, Range range)
    : keys_(keys),
      rows_(rows),
      range_(keys.form() == GroupForm::kDirect ? Range{range.first, std::min(range.count, keys.numbers())}
                                               : Range()),
      form_(keys.form()),
      frame_(keys.program().NewFrame()),
      indexes_(std::make_unique_for_overwrite<uint32_t[]>(kChunkRows)),
      direct_(budget),
      number_of_(budget),
      table_(budget),
      row_of_(budget),
      hash_of_(budget) {
  for (size_t i = 0; i < keys.size(); ++i) texts_ |= keys.key(i).physical == Physical::kText;
  if (form_ != GroupForm::kRows) numbers_ = std::make_unique_for_overwrite<uint64_t[]>(kChunkRows);
}

Groups::~Groups() = default;

uint32_t Groups::HashOf(uint64_t number) {
  return static_cast<uint32_t>(HashNumber(static_cast<int64_t>(number)));
}

absl::Status Groups::Assign(const Chunk& chunk, uint32_t* groups) {
  if (keys_.size() == 0 && size_ > 0) {
    std::fill_n(groups, chunk.selection().count, 0);
    return absl::OkStatus();
  }
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
        return absl::DataLossError("the key of a group is outside of the bounds that the plan states");
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
  const uint32_t* const indexes = IndexesOf(column, rows, indexes_.get());
  const uint64_t weight = key.weight;
  // In 64 bits without a sign: what wraps here wraps back.
  const uint64_t delta = static_cast<uint64_t>(meaning.base) - static_cast<uint64_t>(key.low) + key.nullable;
  const bool partners_missing = column.rows != nullptr && key.nullable;
  uint64_t* const numbers = numbers_.get();
  WithCodes(column.base, column.width, [&](const auto* codes) {
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
      for (uint32_t j = 0; j < rows.count; ++j) numbers[j] += weight * (codes[indexes[j]] + delta);
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
      // What is below the bound wraps, and is beyond the radix.
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
  return form_ == GroupForm::kDirect ? AssignDirect(numbers, count, groups)
                                     : AssignPacked(numbers, count, groups);
}

absl::Status Groups::AssignDirect(const uint64_t* numbers, uint32_t count, uint32_t* groups) {
  NAM_RETURN_IF_ERROR(direct_.Resize(range_.count));
  uint32_t* const direct = direct_.data();
  for (uint32_t j = 0; j < count; ++j) {
    uint32_t& group = direct[numbers[j] - range_.first];
    if (group == 0) {
      number_of_[size_] = numbers[j];
      group = ++size_;
    }
    groups[j] = group - 1;
  }
  return absl::OkStatus();
}

absl::Status Groups::AssignPacked(const uint64_t* numbers, uint32_t count, uint32_t* groups) {
  NAM_RETURN_IF_ERROR(table_.Reserve(count));
  uint32_t* const hashes = indexes_.get();
  for (uint32_t j = 0; j < count; ++j) hashes[j] = HashOf(numbers[j]);
  if (table_.far()) {
    for (uint32_t j = 0; j < count; ++j) table_.Prefetch(hashes[j]);
  }
  for (uint32_t j = 0; j < count; ++j) {
    uint64_t at = table_.First(hashes[j]);
    while (true) {
      if (table_.Empty(at)) {
        table_.Put(at, hashes[j], size_);
        number_of_[size_] = numbers[j];
        groups[j] = size_++;
        break;
      }
      const uint32_t group = table_.Group(at);
      if (table_.Hash(at) == hashes[j] && number_of_[group] == numbers[j]) {
        groups[j] = group;
        break;
      }
      at = table_.Next(at);
    }
  }
  return absl::OkStatus();
}

void Groups::Reset() {
  if (form_ == GroupForm::kDirect) {
    for (uint32_t group = 0; group < size_; ++group) direct_[number_of_[group] - range_.first] = 0;
  }
  table_.Reset();
  if (appender_.has_value()) appender_->Reuse(appender_->TakePages());
  size_ = 0;
}

absl::Status Groups::ReadKeys(const Chunk& chunk, Column* columns) {
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (keys_.key(i).slot) {
      columns[i] = chunk.column(*keys_.key(i).slot);
      continue;
    }
    const Vector* const values = keys_.program().Evaluate(i, frame_, chunk, chunk.selection());
    if (values == nullptr) return frame_.error();
    columns[i] = ColumnOf(*values);
  }
  return absl::OkStatus();
}

absl::Status Groups::Adopt(const Groups& other, std::span<const uint32_t> theirs, uint32_t* mine) {
  NAM_CHECK(form_ == other.form_ && theirs.size() <= kChunkRows);
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
