#include "execution/rows/row_writer.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "execution/rows/row_kernels.h"
#include "types/sql_error.h"
#include "types/text_bytes.h"

namespace nam::execution {

namespace {

/// The destination of rows: the first row, and the positions of their tuples.
struct Target {
  std::byte* first;
  Selection rows;
};

PageHeader& MutableHeader(std::byte* page) {
  return *reinterpret_cast<PageHeader*>(page);
}

template <typename T>
void Store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(value));
}

/// Stores value(position) as a T in each row; 0, and the validity bit, where null(position). Both functions
/// must accept any position. False if a value was not `within`, or NULL where the field is never NULL: no
/// branch depends on it.
template <typename T, typename Value, typename Null, typename Within>
bool StoreValues(const RowField& field, const Target& target, Value value, Null null, Within within) {
  const uint32_t stride = field.stride, mask = field.null_mask;
  std::byte* at = target.first + field.offset;
  std::byte* null_at = target.first + field.null_byte;
  bool broken = false;
  ForEach(target.rows, [&](uint32_t position) {
    const bool is_null = null(position);
    const auto stored = is_null ? decltype(value(position)){} : value(position);
    broken |= !is_null & !within(stored);
    Store(at, static_cast<T>(stored));
    *null_at |= static_cast<std::byte>(is_null ? mask : 0);
    broken |= is_null & (mask == 0);
    at += stride;
    null_at += stride;
  });
  return !broken;
}

struct NeverNull {
  constexpr bool operator()(uint32_t) const { return false; }
};

template <typename T, typename Value, typename Within>
bool StoreValues(const RowField& field, const Target& target, Value value, NeverNull, Within within) {
  const uint32_t stride = field.stride;
  std::byte* at = target.first + field.offset;
  bool broken = false;
  ForEach(target.rows, [&](uint32_t position) {
    const auto stored = value(position);
    broken |= !within(stored);
    Store(at, static_cast<T>(stored));
    at += stride;
  });
  return !broken;
}

/// Stores 64-bit numbers as a field of up to 8 bytes.
template <typename Number, typename Null>
bool StoreNarrow(const RowField& field, const plan::Bounds& bounds, const Target& target, Number number,
                 Null null) {
  const auto base = static_cast<uint64_t>(field.base);
  const auto most = static_cast<uint64_t>(bounds.high - bounds.low);
  return WithStored(field.width, [&](auto zero) {
    return StoreValues<decltype(zero)>(
        field, target, [=](uint32_t p) { return static_cast<uint64_t>(number(p)) - base; }, null,
        [most](uint64_t stored) { return stored <= most; });
  });
}

/// Stores numbers as a field of 16 bytes.
template <typename Number, typename Null>
bool StoreWide(const RowField& field, const plan::Bounds& bounds, const Target& target, Number number,
               Null null) {
  return StoreValues<__int128>(
      field, target, [=](uint32_t p) { return static_cast<__int128>(number(p)); }, null,
      [&bounds](__int128 n) { return n >= bounds.low && n <= bounds.high; });
}

/// Stores 128-bit numbers as a field of up to 8 bytes, which their bounds allow.
template <typename Null>
bool StoreNarrowed(const RowField& field, const plan::Bounds& bounds, const Target& target,
                   const __int128* numbers, Null null) {
  const auto most = static_cast<unsigned __int128>(bounds.high - bounds.low);
  return WithStored(field.width, [&](auto zero) {
    return StoreValues<decltype(zero)>(
        field, target,
        [&field, numbers](uint32_t p) { return static_cast<unsigned __int128>(numbers[p] - field.base); },
        null, [most](unsigned __int128 stored) { return stored <= most; });
  });
}

template <typename Number, typename Null>
bool StoreNumbers(const RowField& field, const plan::Bounds& bounds, const Target& target, Number number,
                  Null null) {
  if (field.width == 16) return StoreWide(field, bounds, target, number, null);
  return StoreNarrow(field, bounds, target, number, null);
}

template <typename Null>
bool StoreVector(const RowField& field, const plan::Bounds& bounds, const Target& target,
                 const Vector& vector, Null null) {
  switch (vector.physical) {
    case Physical::kInt64:
      return StoreNumbers(
          field, bounds, target, [n = vector.narrow](uint32_t p) { return n[p]; }, null);
    case Physical::kInt128:
      if (field.width != 16) return StoreNarrowed(field, bounds, target, vector.wide, null);
      return StoreWide(
          field, bounds, target, [n = vector.wide](uint32_t p) { return n[p]; }, null);
    default:
      NAM_CHECK(false, "rows have no values of this form");
      return false;
  }
}

/// Calls `body` with a function that tells NULLs of this vector.
template <typename Body>
bool WithNulls(const Vector& vector, Body&& body) {
  if (vector.nulls == nullptr) return body(NeverNull{});
  return body([nulls = vector.nulls](uint32_t p) { return nulls[p] != 0; });
}

/// Calls `body` with a function from a position to its code in the column, and one that tells NULLs.
template <typename Body>
bool WithPositions(const Column& column, bool nullable, Body&& body) {
  return WithCodes(column.base, column.width, [&](const auto* codes) {
    const uint32_t* const rows = column.rows;
    const bool null_code = column.meaning->null_code;
    if (rows == nullptr) {
      const auto code = [codes](uint32_t p) { return codes[p]; };
      if (!null_code) return body(code, NeverNull{});
      return body(code, [codes](uint32_t p) { return codes[p] == 0; });
    }
    const auto code = [codes, rows](uint32_t p) { return codes[rows[p]]; };
    if (!null_code && !nullable) return body(code, NeverNull{});
    return body(code, [codes, rows, null_code](uint32_t p) {
      return rows[p] == kNullRow || (null_code && codes[rows[p]] == 0);
    });
  });
}

/// Fields as wide as a column's codes, made by adding a number to each.
struct Copying {
  CodeRun run;
  uint64_t most = 0;  // greatest code within the bounds
};
/// For codes without NULLs of consecutive rows; nullopt for other columns.
std::optional<Copying> CopyingOf(const RowField& field, const plan::Bounds& bounds, Selection rows,
                                 const Column* column) {
  if (column == nullptr || field.meaning != nullptr || column->rows != nullptr || rows.positions != nullptr ||
      column->meaning->null_code || column->width != field.width || column->meaning->base < field.base)
    return std::nullopt;
  const auto delta = static_cast<uint64_t>(column->meaning->base) - static_cast<uint64_t>(field.base);
  const auto most = static_cast<uint64_t>(bounds.high - bounds.low);
  if (delta > most) return std::nullopt;
  return Copying{{column->base, delta}, most - delta};
}

std::optional<bool> CopyCodes(const RowField& field, const plan::Bounds& bounds, const Target& target,
                              const Column& column) {
  const std::optional<Copying> copying = CopyingOf(field, bounds, target.rows, &column);
  if (!copying.has_value()) return std::nullopt;
  return StoreCodes(copying->run, field.width, target.rows.count, target.first + field.offset,
                    field.stride) <= copying->most;
}

/// Stores codes as numbers.
bool StoreNumbersOf(const RowField& field, const plan::Bounds& bounds, const Target& target,
                    const Column& column) {
  if (const std::optional<bool> copied = CopyCodes(field, bounds, target, column)) return *copied;
  const auto base = static_cast<uint64_t>(column.meaning->base);
  return WithPositions(column, field.nullable(), [&](auto code, auto null) {
    return StoreNumbers(
        field, bounds, target, [=](uint32_t p) { return static_cast<int64_t>(base + code(p)); }, null);
  });
}

/// Stores codes of the field's own meaning.
bool KeepCodes(const RowField& field, const Target& target, const Column& column) {
  const auto any = [](auto) { return true; };
  if (column.kind == Column::Kind::kCodes) {
    return WithPositions(column, field.nullable(), [&]<typename Code>(Code code, auto null) {
      return StoreValues<decltype(code(0))>(field, target, code, null, any);
    });
  }
  const RowField& from = *column.field;
  return WithStored(from.width, [&](auto zero) {
    using Stored = decltype(zero);
    return StoreValues<Stored>(
        field, target,
        [&](uint32_t p) { return from.Stored<Stored>(from.RowOf(column.base, column.IndexOf(p))); },
        [&](uint32_t p) {
          const uint32_t row = column.IndexOf(p);
          return row == kNullRow || from.IsNull(from.RowOf(column.base, row));
        },
        any);
  });
}

bool StoreTruth(const RowField& field, const Target& target, const uint8_t* truth) {
  return StoreValues<uint8_t>(
      field, target, [truth](uint32_t p) { return truth[p]; },
      [truth](uint32_t p) { return truth[p] == kUnknown; }, [](uint8_t stored) { return stored <= kTrue; });
}

/// Fills the free space from its end downwards.
template <typename Null>
bool StoreTexts(const RowField& field, const Target& target, std::byte* page, const std::string_view* texts,
                Null null) {
  uint32_t end = MutableHeader(page).text_begin;
  const bool stored = StoreValues<uint64_t>(
      field, target,
      [&](uint32_t p) -> uint64_t {
        const std::string_view text = texts[p];
        if (text.empty()) return 0;
        end -= static_cast<uint32_t>(text.size());
        std::memcpy(page + end, text.data(), text.size());
        return uint64_t{text.size()} << 32 | end;
      },
      null, [](uint64_t) { return true; });
  MutableHeader(page).text_begin = end;
  return stored;
}

}  // namespace

RowWriter::RowWriter(const RowLayout& layout, const Program& program)
    : layout_(layout),
      program_(program),
      next_page_bytes_(layout.page_bytes()),
      codes_(layout.fields()),
      vectors_(layout.fields()),
      positions_(kChunkRows),
      bytes_(kChunkRows) {
  NAM_CHECK(program.outputs() == layout.fields());
  for (size_t i = 0; i < layout.fields(); ++i) {
    const Physical from = program.physical(i), to = layout.field(i).physical;
    NAM_CHECK((from == Physical::kText) == (to == Physical::kText), "the layout is of another schema");
    slots_.push_back(program.slot_of(i));
    if (layout.field(i).physical == Physical::kText && layout.field(i).meaning == nullptr)
      texts_.push_back(i);
  }
}

void RowWriter::Open(std::byte* page, uint32_t first_row_number) {
  NAM_CHECK(MutableHeader(page).layout == layout_.digest(), "a page of another layout");
  page_ = page;
  first_row_number_ = first_row_number;
}

bool RowWriter::Append(Frame& frame, const Chunk& chunk, Selection rows, uint32_t& done, uint32_t* numbers) {
  PageHeader& header = MutableHeader(page_);
  const uint32_t stride = layout_.stride();
  const uint32_t end = kPageHeaderBytes + header.rows * stride;
  uint32_t room = (header.text_begin - end) / stride;
  if (header.bytes > layout_.page_bytes()) room = 1;  // RowsThatFit knows whether it is taken
  next_page_bytes_ = layout_.page_bytes();
  Selection next = Next(rows, done, room);
  if (next.count == 0) return true;
  if (!Evaluate(frame, chunk, next)) return false;
  if (!texts_.empty()) next.count = RowsThatFit(frame, next);
  if (next.count == 0) return frame.error().ok();
  std::byte* const first = page_ + end;
  if (const uint32_t null_bytes = layout_.null_bytes(); null_bytes > 0) {
    std::byte* at = first + layout_.nulls_offset();
    for (uint32_t i = 0; i < next.count; ++i, at += stride) std::memset(at, 0, null_bytes);
  }
  const bool pairs = WritePairs(first, next);
  for (size_t i = 0; i < layout_.fields() && !pairs; ++i) {
    if (WriteField(i, first, next)) continue;
    frame.Fail(absl::InternalError("a value is outside of the plan's bounds of its column"));
    return false;
  }
  if (numbers != nullptr) std::iota(numbers, numbers + next.count, first_row_number_ + header.rows);
  header.rows += next.count;
  done += next.count;
  return true;
}

Selection RowWriter::Next(Selection rows, uint32_t done, uint32_t most) {
  const uint32_t count = std::min(rows.count - done, most);
  if (rows.positions != nullptr) return {rows.positions + done, count};
  if (done == 0) return {nullptr, count};
  std::iota(positions_.begin(), positions_.begin() + count, done);
  return {positions_.data(), count};
}

bool RowWriter::Evaluate(Frame& frame, const Chunk& chunk, Selection rows) {
  for (size_t i = 0; i < layout_.fields(); ++i) {
    codes_[i] = CodesFor(i, chunk);
    if (codes_[i] != nullptr) continue;
    vectors_[i] = program_.Evaluate(i, frame, chunk, rows);
    if (vectors_[i] == nullptr) return false;
  }
  return true;
}

const Column* RowWriter::CodesFor(size_t field, const Chunk& chunk) const {
  const RowField& of = layout_.field(field);
  const Column* column = slots_[field].has_value() ? &chunk.column(*slots_[field]) : nullptr;
  if (of.meaning == nullptr) {
    const bool numbers =
        column != nullptr && column->kind == Column::Kind::kCodes && column->meaning->dictionary == nullptr;
    return numbers ? column : nullptr;
  }
  NAM_CHECK(
      column != nullptr && ((column->kind == Column::Kind::kCodes && column->meaning == of.meaning) ||
                            (column->kind == Column::Kind::kField && column->field->meaning == of.meaning)),
      "the field was made for another column's codes");
  return column;
}

uint32_t RowWriter::RowsThatFit(Frame& frame, Selection rows) {
  std::fill_n(bytes_.begin(), rows.count, uint64_t{layout_.stride()});
  for (const size_t field : texts_) {
    const Vector& texts = *vectors_[field];
    uint64_t* bytes = bytes_.data();
    ForEach(rows, [&](uint32_t p) { *bytes++ += texts.null(p) ? 0 : texts.text[p].size(); });
  }
  const PageHeader& header = MutableHeader(page_);
  uint64_t left = header.text_begin - (kPageHeaderBytes + header.rows * layout_.stride());
  if (header.rows > 0 && header.bytes > layout_.page_bytes()) left = 0;  // a long page has one row
  uint32_t count = 0;
  for (; count < rows.count && bytes_[count] <= left; ++count) left -= bytes_[count];
  if (count == 0 && bytes_[0] > layout_.page_bytes() - kPageHeaderBytes)
    WantLongPage(frame, rows[0], bytes_[0]);
  return count;
}

void RowWriter::WantLongPage(Frame& frame, uint32_t position, uint64_t bytes) {
  for (const size_t field : texts_) {
    const Vector& texts = *vectors_[field];
    const size_t size = texts.null(position) ? 0 : texts.text[position].size();
    if (size <= kTextBytesMax) continue;
    return frame.Fail(UserError(sqlstate::kLimitExceeded,
                                absl::StrCat("a text of ", size, " bytes is longer than ", kTextBytesMax), -1,
                                "cut it into several rows"));
  }
  const uint64_t page_bytes = layout_.PageBytesFor(bytes);
  if (page_bytes <= RowLayout::kLongPageBytesMax) {
    next_page_bytes_ = static_cast<uint32_t>(page_bytes);
    return;
  }
  frame.Fail(UserError(
      sqlstate::kLimitExceeded,
      absl::StrCat("a row of ", bytes, " bytes is longer than ", RowLayout::kLongPageBytesMax), -1,
      "joins, sorting and grouping keep rows whole, with their texts; select fewer or shorter ones"));
}

/// Copies rows of two numbers of 4 bytes. False: they have another form, or some are outside of the bounds.
bool RowWriter::WritePairs(std::byte* first, Selection rows) {
  constexpr uint8_t kWidth = sizeof(uint32_t);
  if (layout_.fields() != 2 || layout_.stride() != 2 * kWidth || layout_.field(0).width != kWidth ||
      layout_.field(1).width != kWidth)
    return false;
  const size_t low = layout_.field(0).offset == 0 ? 0 : 1;
  const auto copying = [&](size_t field) {
    return CopyingOf(layout_.field(field), layout_.bounds(field), rows, codes_[field]);
  };
  const std::optional<Copying> lows = copying(low), highs = copying(1 - low);
  if (!lows.has_value() || !highs.has_value()) return false;
  const Pair most = StorePairs(lows->run, highs->run, rows.count, first);
  return most.low <= lows->most && most.high <= highs->most;
}

bool RowWriter::WriteField(size_t field, std::byte* first, Selection rows) {
  const RowField& to = layout_.field(field);
  const Target target{first, rows};
  if (to.meaning != nullptr) return KeepCodes(to, target, *codes_[field]);
  if (codes_[field] != nullptr) return StoreNumbersOf(to, layout_.bounds(field), target, *codes_[field]);
  const Vector& vector = *vectors_[field];
  if (vector.physical == Physical::kTruth) return StoreTruth(to, target, vector.truth);
  return WithNulls(vector, [&](auto null) {
    if (to.physical == Physical::kText) return StoreTexts(to, target, page_, vector.text, null);
    return StoreVector(to, layout_.bounds(field), target, vector, null);
  });
}

}  // namespace nam::execution
