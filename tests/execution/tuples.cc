#include "tests/execution/tuples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ostream>
#include <set>

#include "types/value.h"

namespace nam::execution {
namespace {

bool IsText(const plan::Slot& slot) {
  return PhysicalOf(slot.type) == Physical::kText;
}

template <typename T>
void Store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(value));
}

/// The lowest `width` bytes.
void StoreLow(std::byte* at, unsigned __int128 value, uint8_t width) {
  std::memcpy(at, &value, width);
}

std::string RandomText(uint64_t number) {
  RandomStream random(number);
  std::string text;
  for (uint64_t left = random.Below(20); left > 0; --left) text += static_cast<char>('a' + random.Below(26));
  return text;
}

}  // namespace

void PrintTo(const Cell& cell, std::ostream* out) {
  if (cell.null) {
    *out << "NULL";
  } else if (cell.text.empty()) {
    *out << Int128ToString(cell.number);
  } else {
    *out << '"' << cell.text << '"';
  }
}

void ExpectTuples(const std::vector<Tuple>& actual, const std::vector<Tuple>& expected) {
  const size_t both = std::min(actual.size(), expected.size());
  for (size_t i = 0; i < both; ++i) {
    if (actual[i] == expected[i]) continue;
    ADD_FAILURE() << "tuple " << i << " is " << testing::PrintToString(actual[i]) << ", not "
                  << testing::PrintToString(expected[i]);
    return;
  }
  EXPECT_EQ(actual.size(), expected.size());
}

plan::Schema RandomSchema(size_t columns, RandomStream& random) {
  const __int128 wide = PowerOfTen(30);
  const plan::Slot all[] = {
      {Type::Bool(), true, {}},
      {Type::Integer(), true, {}},
      {Type::Integer(), true, {-3, 250, true}},
      {Type::Integer(), true, {1, 60'000, true}},
      {Type::Integer(), true, {-1'000'000, 1'000'000, true}},
      {Type::Integer(), true, {INT64_MIN, INT64_MAX, true}},
      {Type::Integer(), true, {INT64_MAX - 5, INT64_MAX, true}},
      {Type::Decimal(2), true, {0, 1'000'000'000'000, true}},
      {Type::Decimal(4), true, {-wide, wide, true}},
      {Type::Decimal(0), true, {}},
      {Type::Date(), true, {8035, 10'591, true}},
      {Type::Date(), true, {}},
      {Type::Timestamp(), true, {}},
      {Type::String(), true, {}},
      {Type::String(25), true, {}},
  };
  plan::Schema schema;
  for (uint64_t left = random.Below(columns + 1); left > 0; --left) {
    plan::Slot slot = all[random.Below(std::size(all))];
    slot.nullable = random.OneIn(2);
    schema.push_back(slot);
  }
  return schema;
}

Cell RandomCell(const plan::Slot& slot, uint64_t distinct, RandomStream& random) {
  if (slot.nullable && random.OneIn(6)) return {};
  const uint64_t number = random.Below(distinct);
  switch (PhysicalOf(slot.type)) {
    case Physical::kText:
      return Cell::Text(RandomText(number));
    case Physical::kTruth:
      return Cell::Number(static_cast<__int128>(number % 2));
    default:
      break;
  }
  if (!slot.bounds.known)
    return Cell::Number(static_cast<__int128>(number) - static_cast<__int128>(distinct / 2));
  const auto range = static_cast<unsigned __int128>(slot.bounds.high - slot.bounds.low);
  // Both ends of the range occur.
  if (number == 0) return Cell::Number(slot.bounds.high);
  return Cell::Number(slot.bounds.low +
                      static_cast<__int128>(range < distinct ? number % (range + 1) : number - 1));
}

std::vector<Tuple> RandomTuples(const plan::Schema& schema, size_t count, uint64_t distinct,
                                RandomStream& random) {
  std::vector<Tuple> tuples(count);
  for (Tuple& tuple : tuples) {
    for (const plan::Slot& slot : schema) tuple.push_back(RandomCell(slot, distinct, random));
  }
  return tuples;
}

Physical ArrayPhysical(const plan::Slot& slot) {
  const Physical widest = PhysicalOf(slot.type);
  return widest == Physical::kInt128 && slot.bounds.narrow() ? Physical::kInt64 : widest;
}

namespace {

Cell FromArray(Physical physical, const std::byte* at) {
  const auto load = [at]<typename T>(T value) {
    std::memcpy(&value, at, sizeof(value));
    return value;
  };
  switch (physical) {
    case Physical::kTruth: {
      const uint8_t truth = load(uint8_t{});
      return truth == kUnknown ? Cell{} : Cell::Number(truth);
    }
    case Physical::kInt64:
      return Cell::Number(load(int64_t{}));
    case Physical::kInt128:
      return Cell::Number(load(static_cast<__int128>(0)));
    case Physical::kText:
      return Cell::Text(std::string(load(std::string_view{})));
    default:
      break;
  }
  NAM_CHECK(false, "no values of this form");
  return {};
}

Cell FromCode(const CodeMeaning& meaning, uint64_t code) {
  if (meaning.IsNull(code)) return {};
  if (meaning.dictionary != nullptr) return Cell::Text(std::string(meaning.Text(code)));
  return Cell::Number(meaning.Number(code));
}

Cell FromField(const RowField& field, const std::byte* table, uint32_t number) {
  const std::byte* row = field.RowOf(table, number);
  if (field.IsNull(row)) return {};
  const auto stored = WithStored(field.width, [&](auto zero) {
    return static_cast<unsigned __int128>(field.Stored<decltype(zero)>(row));
  });
  if (field.meaning != nullptr) return FromCode(*field.meaning, static_cast<uint64_t>(stored));
  switch (field.physical) {
    case Physical::kText:
      return Cell::Text(std::string(field.Text(field.PageOf(table, number), row)));
    default:
      return Cell::Number(static_cast<__int128>(stored) + (field.width < 16 ? field.base : 0));
  }
}

}  // namespace

Cell CellOf(const Column& column, uint32_t position) {
  if (column.kind == Column::Kind::kConstant) {
    return column.nulls != nullptr && column.nulls[0] != 0 ? Cell{} : FromArray(column.physical, column.base);
  }
  const uint32_t index = column.IndexOf(position);
  if (column.rows != nullptr && index == kNullRow) return {};
  switch (column.kind) {
    case Column::Kind::kCodes:
      return FromCode(*column.meaning, CodeAt(column.base, column.width, index));
    case Column::Kind::kField:
      return FromField(*column.field, column.base, index);
    default:
      if (column.nulls != nullptr && column.nulls[index] != 0) return {};
      return FromArray(column.physical, column.base + size_t{index} * WidthOf(column.physical));
  }
}

std::vector<Tuple> TuplesOf(const Chunk& chunk, size_t columns) {
  std::vector<Tuple> tuples;
  ForEach(chunk.selection(), [&](uint32_t position) {
    Tuple& tuple = tuples.emplace_back();
    for (size_t i = 0; i < columns; ++i) tuple.push_back(CellOf(chunk.columns()[i], position));
  });
  return tuples;
}

struct ChunkMaker::Holder {
  std::vector<std::byte> bytes;
  std::vector<uint8_t> nulls;
  std::deque<std::string> texts;
  CodeMeaning meaning;
  RowField field;
};

void ChunkMaker::Fill(std::span<const Tuple> tuples, Chunk& chunk) {
  NAM_CHECK(tuples.size() <= kChunkRows);
  const auto count = static_cast<uint32_t>(tuples.size());
  const bool all = random_.OneIn(3);
  const auto size = all ? count : count + static_cast<uint32_t>(random_.Below(kChunkRows - count + 1));
  // `count` of `size` positions, ascending.
  positions_.clear();
  for (uint32_t i = 0; i < size; ++i) {
    if (random_.Below(size - i) < count - positions_.size()) positions_.push_back(i);
  }
  chunk.Reset(size, {size == count && random_.OneIn(2) ? nullptr : positions_.data(), count});
  holders_.clear();
  std::vector<Cell> cells(size);
  for (size_t slot = 0; slot < schema_.size(); ++slot) {
    for (Cell& cell : cells) cell = RandomCell(schema_[slot], 1000, random_);
    for (uint32_t i = 0; i < count; ++i) cells[positions_[i]] = tuples[i][slot];
    FillColumn(slot, cells, chunk);
  }
}

void ChunkMaker::FillColumn(size_t slot, const std::vector<Cell>& cells, Chunk& chunk) {
  Column& column = chunk.columns()[slot];
  Holder& holder = *holders_.emplace_back(std::make_shared<Holder>());
  column = Column{.physical = ArrayPhysical(schema_[slot])};
  const bool equal =
      !positions_.empty() && std::all_of(positions_.begin(), positions_.end(),
                                         [&](uint32_t p) { return cells[p] == cells[positions_[0]]; });
  if (equal && random_.OneIn(2)) {
    AsValues({cells[positions_[0]]}, column, holder);
    column.kind = Column::Kind::kConstant;
    return;
  }
  const auto kind = static_cast<Column::Kind>(random_.Below(3));
  // Stores the rows in any order, some twice as often as needed, behind row numbers; or unchanged.
  const bool by_rows = kind == Column::Kind::kField || random_.OneIn(2);
  const bool null_rows = by_rows && random_.OneIn(2);
  std::vector<Cell> stored = cells;
  if (by_rows) {
    const auto shift = static_cast<uint32_t>(random_.Below(cells.size() + 1));
    uint32_t* rows = chunk.row_set(slot);
    for (uint32_t p = 0; p < cells.size(); ++p) {
      rows[p] = (p + shift) % static_cast<uint32_t>(cells.size());
      stored[rows[p]] = cells[p];
      if (cells[p].null && null_rows) rows[p] = kNullRow;
    }
    column.rows = rows;
  }
  if (kind == Column::Kind::kCodes && AsCodes(schema_[slot], stored, column, holder, null_rows)) return;
  if (kind == Column::Kind::kField) return AsField(schema_[slot], stored, column, holder);
  AsValues(stored, column, holder);
}

/// False if the values have no codes.
bool ChunkMaker::AsCodes(const plan::Slot& slot, const std::vector<Cell>& stored, Column& column,
                         Holder& holder, bool null_rows) {
  const bool null_code =
      !null_rows &&
      (random_.OneIn(2) || std::any_of(stored.begin(), stored.end(), [](const Cell& c) { return c.null; }));
  CodeMeaning& meaning = holder.meaning;
  std::set<std::string> texts;
  __int128 low = 0, high = -1;
  if (IsText(slot)) {
    for (const Cell& cell : stored) {
      if (!cell.null) texts.insert(cell.text);
    }
    // Entries that no row has, so that equal codes of two chunks differ.
    for (uint64_t more = random_.Below(300); more > 0; --more) texts.insert(RandomText(random_.Next()));
    const std::vector<std::string_view> entries(texts.begin(), texts.end());
    auto dictionary = storage::Dictionary::Decode(storage::Dictionary::Encode(entries));
    NAM_CHECK(dictionary.ok());
    meaning.dictionary = *dictionary;
    // No two makers' dictionaries have the same id: tasks that share what is known of dictionaries have a
    // maker each.
    static std::atomic<uint64_t> last_dictionary = 0;
    meaning.dictionary_id = ++last_dictionary;
    high = static_cast<__int128>(entries.size()) - 1;
  } else {
    for (const Cell& cell : stored) {
      if (cell.null) continue;
      const bool first = low > high;
      low = first ? cell.number : std::min(low, cell.number);
      high = first ? cell.number : std::max(high, cell.number);
    }
  }
  if (null_code) --low;  // NULL's code
  if (low < INT64_MIN || high > INT64_MAX || high - low >= static_cast<__int128>(UINT64_MAX)) return false;
  const uint64_t codes = high < low ? 1 : static_cast<uint64_t>(high - low) + 1;
  meaning.type = slot.type;
  meaning.null_code = null_code;
  meaning.base = static_cast<int64_t>(low);
  meaning.codes = codes;
  meaning.min = static_cast<int64_t>(low) + (null_code ? 1 : 0);
  meaning.max = static_cast<int64_t>(high);
  uint8_t width = codes <= 1 << 8 ? 1 : codes <= 1 << 16 ? 2 : codes <= uint64_t{1} << 32 ? 4 : 8;
  while (width < 8 && random_.OneIn(4)) width = static_cast<uint8_t>(width * 2);
  meaning.width = width;
  holder.bytes.resize(stored.size() * width);
  for (size_t i = 0; i < stored.size(); ++i) {
    uint64_t code = 0;
    if (!stored[i].null) {
      const __int128 number =
          IsText(slot) ? static_cast<__int128>(*meaning.dictionary->Find(stored[i].text)) : stored[i].number;
      code = static_cast<uint64_t>(number - low);
    }
    StoreLow(holder.bytes.data() + i * width, code, width);
  }
  column.kind = Column::Kind::kCodes;
  column.width = width;
  column.base = holder.bytes.data();
  column.meaning = &meaning;
  return true;
}

void ChunkMaker::AsValues(const std::vector<Cell>& stored, Column& column, Holder& holder) {
  column.kind = Column::Kind::kValues;
  column.width = WidthOf(column.physical);
  holder.bytes.resize(stored.size() * column.width);
  holder.nulls.resize(stored.size());
  bool any_null = false;
  for (size_t i = 0; i < stored.size(); ++i) {
    const Cell& cell = stored[i];
    std::byte* at = holder.bytes.data() + i * column.width;
    any_null |= cell.null;
    holder.nulls[i] = cell.null;
    if (column.physical == Physical::kTruth) {
      Store(at, cell.null ? kUnknown : static_cast<uint8_t>(cell.number));
    } else if (column.physical == Physical::kText) {
      Store(at, std::string_view(holder.texts.emplace_back(cell.text)));
    } else {
      StoreLow(at, static_cast<unsigned __int128>(cell.null ? 77 : cell.number), column.width);
    }
  }
  column.base = holder.bytes.data();
  const bool tells = column.physical != Physical::kTruth && (any_null || random_.OneIn(2));
  column.nulls = tells ? holder.nulls.data() : nullptr;
}

/// Rows of this field and of a byte for its validity, in small pages.
void ChunkMaker::AsField(const plan::Slot& slot, const std::vector<Cell>& stored, Column& column,
                         Holder& holder) {
  constexpr uint8_t kPageShift = 12;
  RowField& field = holder.field;
  field.type = slot.type;
  field.physical = column.physical;
  field.width = column.physical == Physical::kText ? 8 : WidthOf(column.physical);
  field.offset = static_cast<uint16_t>(random_.Below(3));
  field.null_byte = static_cast<uint16_t>(field.offset + field.width);
  field.null_mask = slot.nullable ? static_cast<uint8_t>(1 << random_.Below(8)) : 0;
  field.stride = static_cast<uint16_t>(field.null_byte + 1);
  field.page_shift = kPageShift;
  field.rows_shift = 5;  // 32 rows and texts of at most 20 bytes each fit
  if (column.physical == Physical::kInt64)
    field.base = slot.bounds.known ? static_cast<int64_t>(slot.bounds.low) : 0;
  // Texts that are longer lie behind all pages, as far from their own as offsets reach.
  constexpr size_t kShortBytes = 20;
  uint64_t long_at = ((stored.size() >> field.rows_shift) + 1) << kPageShift, long_bytes = 0;
  for (const Cell& cell : stored) long_bytes += cell.text.size() > kShortBytes ? cell.text.size() : 0;
  holder.bytes.resize(long_at + long_bytes);
  uint32_t text_end = 1 << kPageShift;
  for (uint32_t i = 0; i < stored.size(); ++i) {
    if ((i & 31) == 0) text_end = 1 << kPageShift;
    std::byte* page = const_cast<std::byte*>(field.PageOf(holder.bytes.data(), i));
    std::byte* row = const_cast<std::byte*>(field.RowOf(holder.bytes.data(), i));
    const Cell& cell = stored[i];
    if (cell.null) {
      row[field.null_byte] = std::byte{field.null_mask};
    } else if (cell.text.size() > kShortBytes) {
      std::memcpy(holder.bytes.data() + long_at, cell.text.data(), cell.text.size());
      Store(row + field.offset, static_cast<uint32_t>(holder.bytes.data() + long_at - page));
      Store(row + field.offset + 4, static_cast<uint32_t>(cell.text.size()));
      long_at += cell.text.size();
    } else if (column.physical == Physical::kText) {
      text_end -= static_cast<uint32_t>(cell.text.size());
      NAM_CHECK(page + text_end >= row + field.stride, "texts are short");
      std::memcpy(page + text_end, cell.text.data(), cell.text.size());
      Store(row + field.offset, cell.text.empty() ? 0 : text_end);
      Store(row + field.offset + 4, static_cast<uint32_t>(cell.text.size()));
    } else {
      StoreLow(row + field.offset,
               static_cast<unsigned __int128>(cell.number) -
                   static_cast<unsigned __int128>(field.width < 16 ? field.base : 0),
               field.width);
    }
  }
  column.kind = Column::Kind::kField;
  column.width = field.width;
  column.base = holder.bytes.data();
  column.field = &field;
}

std::vector<uint64_t> TestSeeds(uint64_t count) {
  if (const char* seed = std::getenv("NAM_SEED")) return {std::strtoull(seed, nullptr, 10)};
  if (const char* seeds = std::getenv("NAM_SEEDS")) count = std::strtoull(seeds, nullptr, 10);
  std::vector<uint64_t> all(count);
  for (uint64_t i = 0; i < count; ++i) all[i] = i + 1;
  return all;
}

plan::Schema LongTupleSchema() {
  return {{Type::Integer(), false, {0, 49, true}}, {Type::String(), true, {}}, {Type::String(), false, {}}};
}

std::vector<Tuple> LongTuples(size_t rows, RandomStream& random) {
  const auto text = [&random] {
    constexpr uint64_t kPageBytes = 32 << 10;
    const uint64_t around = kPageBytes * (1 + random.Below(5)) - random.Below(90);
    const uint64_t bytes = random.OneIn(3)   ? around
                           : random.OneIn(3) ? random.Below(500'000)
                                             : random.Below(9);
    std::string made(bytes, 'a');
    if (bytes > 0) made.back() = static_cast<char>('a' + random.Below(26));
    return Cell::Text(std::move(made));
  };
  std::vector<Tuple> tuples;
  for (size_t i = 0; i < rows; ++i)
    tuples.push_back(
        {Cell::Number(static_cast<int64_t>(random.Below(50))), random.OneIn(4) ? Cell() : text(), text()});
  return tuples;
}

}  // namespace nam::execution
