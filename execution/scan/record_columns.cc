#include "execution/scan/record_columns.h"

#include <cstring>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "base/status_macros.h"
#include "plan/slot_of.h"
#include "types/numeric.h"

namespace nam::execution {
namespace {

using partitioner::RecordLayout;
using partitioner::StoredNumber;
using partitioner::StoredWideNumber;

/// The stored form of the column: a decimal of up to 18 digits takes 8 bytes.
Physical PhysicalOfField(const RecordLayout::Field& field) {
  const Physical physical = PhysicalOf(field.type);
  return physical == Physical::kInt128 && field.bytes < 16 ? Physical::kInt64 : physical;
}

/// out[p] = read(row p's bytes of the column). Returns whether all are within the bounds, except NULLs, whose
/// bytes are zero.
template <typename Out, typename Read>
bool Fill(std::span<const std::byte* const> rows, Selection selection, uint32_t offset, const uint8_t* nulls,
          Out low, Out high, Out* out, Read read) {
  bool within = true;
  if (nulls == nullptr) {
    ForEach(selection, [&](uint32_t p) {
      const Out n = read(rows[p] + offset);
      within &= n >= low && n <= high;
      out[p] = n;
    });
  } else {
    ForEach(selection, [&](uint32_t p) {
      const Out n = read(rows[p] + offset);
      within &= (n >= low && n <= high) || nulls[p] != 0;
      out[p] = n;
    });
  }
  return within;
}

/// out[p] = the word of row p's number, 0 if it is NULL. Returns whether all are numbers.
bool DecodeNumerics(const RecordLayout::Field& field, const uint8_t* nulls,
                    std::span<const std::byte* const> rows, Selection selection, __int128* out) {
  bool numbers = true;
  ForEach(selection, [&](uint32_t p) {
    out[p] = 0;
    if (nulls != nullptr && nulls[p] != 0) return;
    const std::optional<Numeric> number = NumericOfKey(StoredWideNumber(rows[p] + field.offset),
                                                       std::to_integer<int>(rows[p][field.scale_offset]));
    numbers &= number.has_value();
    if (number.has_value()) out[p] = PackNumeric(*number);
  });
  return numbers;
}

}  // namespace

RecordColumns::RecordColumns(const RecordLayout& layout, std::span<const uint32_t> columns,
                             const plan::Schema& schema, MemoryBudget& budget) {
  for (size_t i = 0; i < columns.size(); ++i) {
    Slot slot{.field = layout.field(columns[i]),
              .values = BudgetArray<std::byte>(budget),
              .nulls = BudgetArray<uint8_t>(budget)};
    const plan::Bounds& bounds = schema[i].bounds;
    slot.column.physical = PhysicalOfField(slot.field);
    slot.column.width = WidthOf(slot.column.physical);
    const bool number = slot.column.physical == Physical::kInt64 || slot.column.physical == Physical::kInt128;
    // Floating point takes all 64 bits, a span of time and a uuid all 128; plans know no bounds for their
    // order.
    const bool bounded = number && plan::HasBounds(slot.field.type);
    if (bounded) NAM_CHECK(bounds.known, "what a column of records can hold is known");
    if (bounded && slot.column.physical == Physical::kInt64) {
      NAM_CHECK(bounds.narrow(), "a column of 64 bits");
      slot.low = static_cast<int64_t>(bounds.low);
      slot.high = static_cast<int64_t>(bounds.high);
    }
    constexpr __int128 kLeast = static_cast<__int128>(static_cast<unsigned __int128>(1) << 127);
    slot.wide_low = bounded ? bounds.low : kLeast;
    slot.wide_high = bounded ? bounds.high : ~kLeast;
    slots_.push_back(std::move(slot));
  }
}

absl::Status RecordColumns::Reserve() {
  for (Slot& slot : slots_) {
    NAM_RETURN_IF_ERROR(slot.values.Resize(uint64_t{kChunkRows} * slot.column.width));
    slot.column.base = slot.values.data();
    if (!slot.field.nullable() || slot.column.physical == Physical::kTruth) continue;
    NAM_RETURN_IF_ERROR(slot.nulls.Resize(kChunkRows));
    slot.column.nulls = slot.nulls.data();
  }
  return absl::OkStatus();
}

absl::Status RecordColumns::Decode(uint32_t number, std::span<const std::byte* const> rows,
                                   Selection selection) {
  Slot& slot = slots_[number];
  const RecordLayout::Field& field = slot.field;
  NAM_CHECK(rows.size() <= kChunkRows && slot.column.base != nullptr);
  if (slot.column.nulls != nullptr) {
    uint8_t* const nulls = slot.nulls.data();
    ForEach(selection, [&](uint32_t p) { nulls[p] = field.IsNull(rows[p]); });
  }
  if (slot.column.physical == Physical::kTruth) {
    auto* const out = reinterpret_cast<uint8_t*>(slot.values.data());
    const bool nullable = field.nullable();
    ForEach(selection, [&](uint32_t p) {
      const uint8_t truth = StoredNumber<uint8_t>(rows[p] + field.offset) != 0 ? kTrue : kFalse;
      out[p] = nullable && field.IsNull(rows[p]) ? kUnknown : truth;
    });
    return absl::OkStatus();
  }
  if (slot.column.physical == Physical::kText) {
    auto* const out = reinterpret_cast<std::string_view*>(slot.values.data());
    ForEach(selection, [&](uint32_t p) {
      out[p] = partitioner::StoredText(field.type.kind, rows[p] + field.offset, field.bytes);
    });
    return absl::OkStatus();
  }
  if (DecodeNumbers(slot, rows, selection)) return absl::OkStatus();
  return absl::DataLossError("a record holds a number that its column cannot hold");
}

bool RecordColumns::DecodeNumbers(Slot& slot, std::span<const std::byte* const> rows, Selection selection) {
  const uint8_t* const nulls = slot.column.nulls;
  const uint32_t offset = slot.field.offset;
  const auto narrow = [&](auto read) {
    auto* const out = reinterpret_cast<int64_t*>(slot.values.data());
    return Fill<int64_t>(rows, selection, offset, nulls, slot.low, slot.high, out, read);
  };
  switch (slot.field.bytes) {
    case 2:
      return narrow([](const std::byte* at) { return int64_t{StoredNumber<uint16_t>(at)}; });
    case 4:
      return narrow([](const std::byte* at) { return int64_t{StoredNumber<uint32_t>(at)}; });
    case 8:
      return narrow([](const std::byte* at) { return StoredNumber<uint64_t>(at); });
    case 16: {
      auto* const out = reinterpret_cast<__int128*>(slot.values.data());
      if (slot.field.type.kind == TypeKind::kNumeric)
        return DecodeNumerics(slot.field, nulls, rows, selection, out);
      return Fill<__int128>(rows, selection, offset, nulls, slot.wide_low, slot.wide_high, out,
                            StoredWideNumber);
    }
    default:
      NAM_CHECK(false, "numbers have 2, 4, 8 or 16 bytes");
      return false;
  }
}

}  // namespace nam::execution
