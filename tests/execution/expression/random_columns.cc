#include "tests/execution/expression/random_columns.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "storage/dictionary.h"

namespace nam::testing {

using execution::CodeMeaning;
using execution::Column;
using execution::kNullRow;
using execution::kPageHeaderBytes;
using execution::RowField;

std::shared_ptr<CodeMeaning> MeaningFor(const RandomSlot& slot, bool null_code, uint8_t width) {
  auto meaning = std::make_shared<CodeMeaning>();
  meaning->type = slot.slot.type;
  meaning->width = width;
  meaning->null_code = null_code;
  if (PhysicalOf(slot.slot.type) == Physical::kText) {
    std::vector<std::string_view> entries;
    for (const Value& value : slot.values) entries.push_back(value.text);
    meaning->dictionary = *storage::Dictionary::Decode(storage::Dictionary::Encode(entries));
    meaning->max = static_cast<int64_t>(entries.size()) - 1;
    std::string all;
    for (const std::string_view entry : entries) all.append(entry).push_back('\0');
    meaning->dictionary_id = std::hash<std::string>()(all) | 1;
  } else {
    const auto [least, greatest] =
        std::minmax_element(slot.values.begin(), slot.values.end(),
                            [](const Value& a, const Value& b) { return a.number < b.number; });
    meaning->min = static_cast<int64_t>(least->number);
    meaning->max = static_cast<int64_t>(greatest->number);
  }
  meaning->base = static_cast<int64_t>(static_cast<uint64_t>(meaning->min) - null_code);
  meaning->codes = static_cast<uint64_t>(meaning->max) - static_cast<uint64_t>(meaning->base) + 1;
  return meaning;
}

uint64_t CodeOf(const CodeMeaning& meaning, const Value& value) {
  if (value.null) return 0;
  const int64_t number = PhysicalOf(value.type) == Physical::kText
                             ? static_cast<int64_t>(*meaning.dictionary->Find(value.text))
                             : static_cast<int64_t>(value.number);
  return static_cast<uint64_t>(number) - static_cast<uint64_t>(meaning.base);
}

std::vector<uint32_t> RandomPositions(Random& random, uint32_t rows, int percent) {
  std::vector<uint32_t> positions;
  for (uint32_t i = 0; i < rows; ++i) {
    if (Chance(random, percent)) positions.push_back(i);
  }
  return positions;
}

namespace {

/// Whether 64 bits have a code for each number from the least to the greatest, and one for NULL.
bool HaveCodes(const std::vector<Value>& values) {
  const auto [least, greatest] = std::minmax_element(
      values.begin(), values.end(), [](const Value& a, const Value& b) { return a.number < b.number; });
  return least->number >= INT64_MIN && greatest->number <= INT64_MAX &&
         greatest->number - least->number < UINT64_MAX - 1;
}

}  // namespace

std::byte* RandomChunk::Bytes(size_t bytes) {
  return memory_.emplace_back(bytes + 16).data();
}

RandomChunk::RandomChunk(Random& random, const std::vector<RandomSlot>& slots, uint32_t rows)
    : chunk_(std::make_unique<execution::Chunk>(slots.size(), 3)), made_(slots.size()) {
  chunk_->SelectAll(rows);
  const uint32_t indexes = 1 + static_cast<uint32_t>(Below(random, Chance(random, 20) ? 2000 : 300));
  for (size_t set = 0; set < 3; ++set) {
    for (uint32_t i = 0; i < rows; ++i) {
      const bool none = set == 2 && Chance(random, 20);  // the third set is that of an outer join
      chunk_->row_set(set)[i] = none ? kNullRow : static_cast<uint32_t>(Below(random, indexes));
    }
  }
  for (size_t s = 0; s < slots.size(); ++s) {
    Column& column = chunk_->columns()[s];
    nulls_.push_back(Value::Null(slots[s].slot.type));
    const size_t set = Below(random, slots[s].slot.nullable ? 4 : 3);
    column.rows = set == 0 ? nullptr : chunk_->row_set(set - 1);
    Make(random, slots[s], column, made_[s], std::max(indexes, rows));
  }
}

void RandomChunk::Make(Random& random, const RandomSlot& slot, Column& column, Made& made, uint32_t indexes) {
  const int null_percent = slot.slot.nullable && Chance(random, 70) ? 20 : 0;
  for (uint32_t i = 0; i < indexes; ++i)
    made.stored.push_back(Chance(random, null_percent) ? Value::Null(slot.slot.type)
                                                       : OneOf(random, slot.values));
  column.physical = PhysicalOf(slot.slot.type);
  switch (Below(random, 4)) {
    case 0:
      if (HaveCodes(slot.values)) return MakeCodes(random, slot, column, made);
      return MakeField(random, slot, column, made);
    case 1:
      return MakeField(random, slot, column, made);
    case 2: {
      column.rows = nullptr;
      made.constant = true;
      made.stored.resize(1);
      MakeValues(random, slot, column, made);
      column.kind = Column::Kind::kConstant;
      return;
    }
    default:
      return MakeValues(random, slot, column, made);
  }
}

void RandomChunk::MakeCodes(Random& random, const RandomSlot& slot, Column& column, const Made& made) {
  const bool any_null =
      std::any_of(made.stored.begin(), made.stored.end(), [](const Value& v) { return v.null; });
  auto meaning = MeaningFor(slot, any_null || (slot.slot.nullable && Chance(random, 50)), 8);
  std::vector<uint8_t> widths;
  for (const uint8_t width : {1, 2, 4, 8}) {
    if (width == 8 || meaning->codes <= uint64_t{1} << (8 * width)) widths.push_back(width);
  }
  meaning->width = OneOf(random, widths);
  column.kind = Column::Kind::kCodes;
  column.width = meaning->width;
  column.meaning = meaning.get();
  std::byte* const codes = Bytes(made.stored.size() * meaning->width);
  for (size_t i = 0; i < made.stored.size(); ++i) {
    const uint64_t code = CodeOf(*meaning, made.stored[i]);
    std::memcpy(codes + i * meaning->width, &code, meaning->width);
  }
  column.base = codes;
  meanings_.push_back(std::move(meaning));
}

void RandomChunk::MakeValues(Random& random, const RandomSlot& slot, Column& column, const Made& made) {
  column.kind = Column::Kind::kValues;
  if (column.physical == Physical::kInt128 || column.physical == Physical::kInt64) {
    const bool wide = std::any_of(slot.values.begin(), slot.values.end(), [](const Value& v) {
      return v.number < INT64_MIN || v.number > INT64_MAX;
    });
    column.physical = wide || Chance(random, 50) ? Physical::kInt128 : Physical::kInt64;
  }
  column.width = execution::WidthOf(column.physical);
  std::byte* const values = Bytes(made.stored.size() * column.width);
  std::byte* const nulls = Bytes(made.stored.size());
  const bool in_bytes = column.physical == Physical::kTruth && Chance(random, 50);
  bool any = false;
  for (size_t i = 0; i < made.stored.size(); ++i) {
    const Value& value = made.stored[i];
    nulls[i] = static_cast<std::byte>(value.null);
    any |= value.null;
    std::byte* const at = values + i * column.width;
    if (column.physical == Physical::kText) {
      // The memory of a NULL holds an invalid address.
      const std::string_view text = value.null ? std::string_view(reinterpret_cast<const char*>(8), 77)
                                               : std::string_view(texts_.emplace_back(value.text));
      std::memcpy(at, &text, sizeof(text));
    } else {
      const __int128 number = !value.null ? value.number : in_bytes ? execution::kUnknown : 0;
      std::memcpy(at, &number, column.width);
    }
  }
  column.base = values;
  if (any && !in_bytes) column.nulls = reinterpret_cast<const uint8_t*>(nulls);
}

void RandomChunk::MakeField(Random& random, const RandomSlot& slot, Column& column, const Made& made) {
  RowField& field = fields_.emplace_back();
  field.type = slot.slot.type;
  field.physical = column.physical;
  field.page_shift = 14;
  const bool text = PhysicalOf(slot.slot.type) == Physical::kText;
  const bool fits = std::all_of(slot.values.begin(), slot.values.end(), [](const Value& value) {
    return value.number >= INT64_MIN / 2 && value.number <= INT64_MAX / 2;
  });
  const bool any_null =
      std::any_of(made.stored.begin(), made.stored.end(), [](const Value& v) { return v.null; });
  if (fits && Chance(random, 40)) {
    meanings_.push_back(MeaningFor(slot, any_null && Chance(random, 50), 8));
    field.meaning = meanings_.back().get();
    field.base = 77;  // not that of the meaning
    field.width = meanings_.back()->codes <= 256 ? 1 : meanings_.back()->codes <= 65536 ? 2 : 8;
    meanings_.back()->width = field.width;
  } else if (text) {
    field.width = 8;
  } else if (fits) {
    const auto codes = MeaningFor(slot, false, 8);
    field.base = codes->base;
    field.width = codes->codes <= 256 ? 1 : codes->codes <= 65536 ? 2 : codes->codes <= UINT32_MAX ? 4 : 8;
  } else {
    field.width = 16;
  }
  field.offset = static_cast<uint16_t>(Below(random, 5));
  field.null_byte = static_cast<uint16_t>(field.offset + field.width + Below(random, 3));
  if (any_null || Chance(random, 30)) field.null_mask = static_cast<uint8_t>(1 << Below(random, 8));
  field.stride = static_cast<uint16_t>(field.null_byte + 1);
  field.rows_shift = static_cast<uint8_t>(6 + Below(random, 2));

  const uint32_t a_page = uint32_t{1} << field.rows_shift;
  const size_t pages = made.stored.size() / a_page + 1;
  std::byte* const base = Bytes(pages << field.page_shift);
  std::vector<uint32_t> text_begin(pages, uint32_t{1} << field.page_shift);
  for (size_t i = 0; i < made.stored.size(); ++i) {
    const Value& value = made.stored[i];
    std::byte* const page = base + (i / a_page << field.page_shift);
    std::byte* const row = page + kPageHeaderBytes + i % a_page * field.stride;
    if (value.null) {
      row[field.null_byte] |= std::byte{field.null_mask};
    } else if (field.meaning != nullptr) {
      const uint64_t code = CodeOf(*field.meaning, value);
      std::memcpy(row + field.offset, &code, field.width);
    } else if (text) {
      uint32_t& begin = text_begin[i / a_page];
      begin -= static_cast<uint32_t>(value.text.size());
      std::memcpy(page + begin, value.text.data(), value.text.size());
      const uint32_t lies[2] = {value.text.empty() ? 0 : begin, static_cast<uint32_t>(value.text.size())};
      std::memcpy(row + field.offset, lies, sizeof(lies));
    } else {
      const __int128 number = field.width == 16 ? value.number : value.number - field.base;
      std::memcpy(row + field.offset, &number, field.width);
    }
  }
  column.kind = Column::Kind::kField;
  column.base = base;
  column.field = &field;
}

const Value& RandomChunk::At(uint32_t slot, uint32_t position) const {
  const Made& made = made_[slot];
  if (made.constant) return made.stored[0];
  const uint32_t index = chunk_->column(slot).IndexOf(position);
  return index == kNullRow ? nulls_[slot] : made.stored[index];
}

}  // namespace nam::testing
