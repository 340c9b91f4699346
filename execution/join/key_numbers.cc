#include "execution/join/key_numbers.h"

#include "base/check.h"

namespace nam::execution {

KeyNumbers::KeyNumbers(const Program& program, size_t output, const TextKeys* texts)
    : program_(program), output_(output), frame_(program.NewFrame()) {
  if (texts != nullptr) texts_.emplace(*texts);
  NAM_CHECK((program.physical(output) == Physical::kText) == (texts != nullptr));
}

std::optional<uint32_t> KeyNumbers::Evaluate(const Chunk& chunk, Selection rows, uint8_t* nulls) {
  null_count_ = 0;
  count_ = 0;
  const std::optional<uint32_t> slot = program_.slot_of(output_);
  if (slot.has_value() && chunk.column(*slot).kind == Column::Kind::kCodes) {
    const Column& column = chunk.column(*slot);
    FromCodes(column, rows, nulls);
    if (texts_.has_value()) ToBuildEntries(*column.meaning);
    return count_;
  }
  const Vector* vector = program_.Evaluate(output_, frame_, chunk, rows);
  if (vector == nullptr) return std::nullopt;
  FromVector(*vector, rows, nulls);
  return count_;
}

void KeyNumbers::FromCodes(const Column& column, Selection rows, uint8_t* nulls) {
  const CodeMeaning& meaning = *column.meaning;
  uint32_t n = 0;
  WithCodes(column.base, column.width, [&](const auto* codes) {
    ForEach(rows, [&](uint32_t position) {
      const uint32_t index = column.IndexOf(position);
      const uint64_t code = index == kNullRow ? 0 : codes[index];
      const bool null = index == kNullRow || meaning.IsNull(code);
      positions_[n] = position;
      numbers_[n] = meaning.Number(code);
      n += !null;
      if (nulls != nullptr) nulls[position] = null;
    });
  });
  count_ = n;
  null_count_ = rows.count - n;
}

void KeyNumbers::ToBuildEntries(const CodeMeaning& meaning) {
  const std::vector<uint32_t>& entries = texts_->Of(meaning);
  if (entries.empty()) return;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    const uint32_t entry = entries[static_cast<size_t>(numbers_[i])];
    positions_[kept] = positions_[i];
    numbers_[kept] = entry;
    kept += entry != TextKeys::kNoEntry;
  }
  count_ = kept;
}

void KeyNumbers::FromVector(const Vector& vector, Selection rows, uint8_t* nulls) {
  ForEach(rows, [&](uint32_t position) {
    const bool null = vector.null(position);
    if (nulls != nullptr) nulls[position] = null;
    null_count_ += null;
    if (null) return;
    if (texts_.has_value()) {
      const uint32_t entry = texts_->keys().EntryOf(vector.text[position]);
      if (entry == TextKeys::kNoEntry) return;
      numbers_[count_] = entry;
    } else {
      const __int128 number = vector.number(position);
      if (number != static_cast<int64_t>(number)) return;
      numbers_[count_] = static_cast<int64_t>(number);
    }
    positions_[count_++] = position;
  });
}

}  // namespace nam::execution
