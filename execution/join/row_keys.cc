#include "execution/join/row_keys.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"
#include "plan/expression.h"
#include "types/hash.h"

namespace nam::execution {
namespace {

template <typename Field>
Field Load(const std::byte* from) {
  Field field;
  std::memcpy(&field, from, sizeof(field));
  return field;
}

/// Reads one width of field. Number is int64_t where the plan's bounds say that all numbers fit, else
/// __int128.
template <typename Field, typename Number>
struct NumberAt {
  size_t offset;
  Number base;

  Number operator()(const std::byte* row) const {
    if constexpr (sizeof(Field) == sizeof(Number) && sizeof(Number) == 8) {
      return static_cast<Number>(static_cast<uint64_t>(base) + Load<Field>(row + offset));
    } else {
      return base + static_cast<Number>(Load<Field>(row + offset));
    }
  }
};

/// The same for an entry: its canonical one.
template <typename Field>
struct EntryAt {
  size_t offset;
  int64_t base;
  const uint32_t* canonical;

  int64_t operator()(const std::byte* row) const {
    return canonical[static_cast<size_t>(base + static_cast<int64_t>(Load<Field>(row + offset)))];
  }
};

template <typename Field, typename Body>
decltype(auto) WithNumbersOf(const RowField& field, const RowKeys::Key& key, Body&& body) {
  const int64_t base = field.meaning != nullptr ? field.meaning->base : field.base;
  if (key.texts != nullptr && !key.texts->canonical().empty())
    return body(EntryAt<Field>{field.offset, base, key.texts->canonical().data()});
  if (field.meaning == nullptr && field.physical == Physical::kInt128)
    return body(NumberAt<Field, __int128>{field.offset, base});
  return body(NumberAt<Field, int64_t>{field.offset, base});
}

/// body(read) with a function object that reads the key's number from a row; a loop for each width.
template <typename Body>
decltype(auto) WithNumbers(const RowField& field, const RowKeys::Key& key, Body&& body) {
  switch (field.width) {
    case 1:
      return WithNumbersOf<uint8_t>(field, key, body);
    case 2:
      return WithNumbersOf<uint16_t>(field, key, body);
    case 4:
      return WithNumbersOf<uint32_t>(field, key, body);
    case 8:
      return WithNumbersOf<uint64_t>(field, key, body);
    default:
      NAM_CHECK(field.width == 16);
      return body(NumberAt<__int128, __int128>{field.offset, 0});
  }
}

void Mix(bool first, uint64_t& hash, uint64_t key) {
  hash = first ? key : CombineHashes(hash, key);
}

}  // namespace

RowKeys::RowKeys(const RowLayout& layout, std::vector<Key> keys) : layout_(layout), keys_(std::move(keys)) {
  NAM_CHECK(!keys_.empty() && keys_.size() <= layout.fields());
  for (size_t k = 0; k < keys_.size(); ++k) {
    const RowField& field = layout_.field(k);
    const bool entries = field.meaning != nullptr && field.meaning->dictionary != nullptr;
    NAM_CHECK(entries == (keys_[k].texts != nullptr));
    NAM_CHECK(!entries || keys_[k].texts->dictionary_id() == field.meaning->dictionary_id);
  }
}

RowKeys::Form RowKeys::form(size_t key) const {
  return layout_.field(key).physical == Physical::kText && keys_[key].texts == nullptr ? Form::kText
                                                                                       : Form::kNumber;
}

bool RowKeys::MarkNulls(const std::byte* page, uint32_t first, uint32_t count, uint8_t* nulls) const {
  std::fill_n(nulls, count, uint8_t{0});
  const std::byte* const rows = page + sizeof(PageHeader) + uint64_t{first} * layout_.stride();
  bool any = false;
  for (size_t k = 0; k < keys_.size(); ++k) {
    const RowField& field = layout_.field(k);
    if (!field.nullable()) continue;
    for (uint32_t i = 0; i < count; ++i) {
      const bool null = layout_.IsNull(rows + uint64_t{i} * layout_.stride(), k);
      nulls[i] |= static_cast<uint8_t>(null);
      any |= null;
    }
  }
  return any;
}

bool RowKeys::HashRows(const std::byte* page, uint32_t first, uint32_t count, uint64_t* hashes,
                       uint8_t* nulls) const {
  const bool any_null = MarkNulls(page, first, count, nulls);
  const std::byte* const rows = page + sizeof(PageHeader) + uint64_t{first} * layout_.stride();
  const size_t stride = layout_.stride();
  for (size_t k = 0; k < keys_.size(); ++k) {
    if (form(k) == Form::kText) {
      for (uint32_t i = 0; i < count; ++i) {
        if (nulls[i] != 0) continue;
        const std::string_view text = layout_.Text(page, rows + i * stride, k);
        Mix(k == 0, hashes[i], HashText(keys_[k].ignores_blanks ? plan::WithoutBlanks(text) : text));
      }
      continue;
    }
    WithNumbers(layout_.field(k), keys_[k], [&](const auto& number) {
      for (uint32_t i = 0; i < count; ++i) {
        if (nulls[i] == 0) Mix(k == 0, hashes[i], HashNumber(number(rows + i * stride)));
      }
    });
  }
  return any_null;
}

bool RowKeys::NumbersOf(const std::byte* page, uint32_t first, uint32_t count, int64_t* numbers,
                        uint8_t* nulls) const {
  NAM_CHECK(keys_.size() == 1 && form(0) == Form::kNumber);
  const bool any_null = MarkNulls(page, first, count, nulls);
  const std::byte* const rows = page + sizeof(PageHeader) + uint64_t{first} * layout_.stride();
  WithNumbers(layout_.field(0), keys_[0], [&](const auto& number) {
    for (uint32_t i = 0; i < count; ++i) {
      if (nulls[i] != 0) continue;
      const auto n = number(rows + uint64_t{i} * layout_.stride());
      if (n != static_cast<int64_t>(n)) nulls[i] = 2;
      numbers[i] = static_cast<int64_t>(n);
    }
  });
  return any_null;
}

void RowKeys::HashTuples(const ProbeKey* keys, const uint32_t* positions, uint32_t count,
                         uint64_t* hashes) const {
  for (size_t k = 0; k < keys_.size(); ++k) {
    const ProbeKey& key = keys[k];
    if (form(k) == Form::kText) {
      for (uint32_t i = 0; i < count; ++i) {
        const std::string_view text = key.text[positions[i]];
        Mix(k == 0, hashes[i], HashText(keys_[k].ignores_blanks ? plan::WithoutBlanks(text) : text));
      }
    } else if (key.wide != nullptr) {
      for (uint32_t i = 0; i < count; ++i) Mix(k == 0, hashes[i], HashNumber(key.wide[positions[i]]));
    } else {
      for (uint32_t i = 0; i < count; ++i) Mix(k == 0, hashes[i], HashNumber(key.narrow[positions[i]]));
    }
  }
}

uint32_t RowKeys::Equal(const RowTable& table, const ProbeKey* keys, const uint32_t* positions,
                        const uint32_t* rows, uint32_t count, uint32_t* kept_positions,
                        uint32_t* kept_rows) const {
  // Each key tests the survivors of the one before, in the same places.
  const auto keep = [&](auto&& equal) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t position = positions[i], row = rows[i];
      kept_positions[kept] = position;
      kept_rows[kept] = row;
      kept += equal(position, row);
    }
    positions = kept_positions;
    rows = kept_rows;
    count = kept;
  };
  for (size_t k = 0; k < keys_.size() && count > 0; ++k) {
    const ProbeKey& key = keys[k];
    if (form(k) == Form::kText) {
      const bool ignores_blanks = keys_[k].ignores_blanks;
      keep([&](uint32_t position, uint32_t row) {
        const std::string_view text =
            layout_.Text(table.page(row >> layout_.rows_shift()), table.row(row), k);
        return ignores_blanks ? plan::WithoutBlanks(text) == plan::WithoutBlanks(key.text[position])
                              : text == key.text[position];
      });
      continue;
    }
    WithNumbers(layout_.field(k), keys_[k], [&](const auto& number) {
      if (key.wide != nullptr) {
        keep([&](uint32_t position, uint32_t row) { return number(table.row(row)) == key.wide[position]; });
      } else {
        keep([&](uint32_t position, uint32_t row) { return number(table.row(row)) == key.narrow[position]; });
      }
    });
  }
  return count;
}

}  // namespace nam::execution
