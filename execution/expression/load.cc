#include <algorithm>
#include <limits>
#include <string_view>
#include <type_traits>

#include "base/check.h"
#include "execution/expression/node.h"
#include "execution/row_field.h"
#include "types/date.h"

namespace nam::execution {
namespace {

/// For arrays without NULLs.
struct NeverNull {
  bool operator()(uint32_t) const { return false; }
};

/// out[p] = read(index of p), at the selected positions; nulls[p] = 1 where the index is kNullRow or
/// null(index). Without `nulls` nothing is NULL.
template <typename Out, typename Read, typename Null>
void Fill(const uint32_t* numbers, Selection rows, Out* out, uint8_t* nulls, Read read, Null null) {
  if (nulls == nullptr) {
    if (numbers == nullptr) {
      ForEach(rows, [=](uint32_t p) { out[p] = read(p); });
    } else {
      ForEach(rows, [=](uint32_t p) { out[p] = read(numbers[p]); });
    }
  } else if (numbers == nullptr) {
    ForEach(rows, [=](uint32_t p) {
      const bool is_null = null(p);
      nulls[p] = is_null;
      out[p] = is_null ? Out{} : read(p);
    });
  } else {
    ForEach(rows, [=](uint32_t p) {
      const uint32_t index = numbers[p];
      const bool is_null = index == kNullRow || null(index);
      nulls[p] = is_null;
      out[p] = is_null ? Out{} : read(index);
    });
  }
}

/// Calls `body` with a function from an index to the unsigned number stored there, and one that tells NULLs:
/// for columns of codes, and for fields of numbers up to 8 bytes.
template <typename Body>
void WithNumbers(const Column& column, Body&& body) {
  if (column.kind == Column::Kind::kCodes) {
    WithCodes(column.base, column.width, [&](const auto* codes) {
      const auto read = [codes](uint32_t index) { return codes[index]; };
      if (column.meaning->null_code) {
        body(read, [codes](uint32_t index) { return codes[index] == 0; });
      } else {
        body(read, NeverNull{});
      }
    });
    return;
  }
  const RowField& field = *column.field;
  NAM_CHECK(field.width <= 8, "a field of 16 bytes is no number of 64 bits");
  WithStored(field.width, [&, base = column.base]<typename T>(T) {
    if constexpr (sizeof(T) <= 8) {
      body(StoredAt<T>(field, base),
           [&field, base](uint32_t index) { return field.IsNull(field.RowOf(base, index)); });
    }
  });
}

/// Whether values at rest or in codes may be NULL.
bool StoresNulls(const Column& column) {
  if (column.kind == Column::Kind::kCodes) return column.meaning->null_code;
  return column.field->nullable();
}

/// Stored numbers: base + what is stored. The field of a code has the base of its meaning.
void LoadNumbers(const Column& column, Selection rows, int64_t* out, uint8_t* nulls) {
  const CodeMeaning* meaning = MeaningOf(column);
  const auto base = static_cast<uint64_t>(meaning != nullptr ? meaning->base : column.field->base);
  WithNumbers(column, [&](auto read, auto null) {
    Fill(
        column.rows, rows, out, nulls,
        [=](uint32_t index) { return static_cast<int64_t>(base + read(index)); }, null);
  });
}

void LoadTexts(const Column& column, Selection rows, std::string_view* out, uint8_t* nulls) {
  if (const CodeMeaning* meaning = MeaningOf(column); meaning != nullptr) {
    const storage::Dictionary& dictionary = *meaning->dictionary;
    const auto base = static_cast<uint64_t>(meaning->base);
    WithNumbers(column, [&](auto read, auto null) {
      Fill(
          column.rows, rows, out, nulls, [=, &dictionary](uint32_t i) { return dictionary[base + read(i)]; },
          null);
    });
    return;
  }
  const RowField& field = *column.field;
  const std::byte* const base = column.base;
  Fill(
      column.rows, rows, out, nulls,
      [&field, base](uint32_t index) {
        return field.Text(field.PageOf(base, index), field.RowOf(base, index));
      },
      [&field, base](uint32_t index) { return field.IsNull(field.RowOf(base, index)); });
}

/// Values of an array or of a constant.
template <typename Out, typename In>
void LoadValues(const Column& column, Selection rows, Out* out, uint8_t* nulls) {
  const auto* const values = reinterpret_cast<const In*>(column.base);
  if (column.kind == Column::Kind::kConstant) {
    const bool null = column.nulls != nullptr && column.nulls[0] != 0;
    const Out value = null ? Out{} : static_cast<Out>(values[0]);
    ForEach(rows, [=](uint32_t p) { out[p] = value; });
    if (nulls != nullptr) ForEach(rows, [=](uint32_t p) { nulls[p] = null; });
    return;
  }
  const auto read = [values](uint32_t index) { return static_cast<Out>(values[index]); };
  if (column.nulls == nullptr) {
    Fill(column.rows, rows, out, nulls, read, NeverNull{});
  } else {
    const uint8_t* const is_null = column.nulls;
    Fill(column.rows, rows, out, nulls, read, [is_null](uint32_t index) { return is_null[index] != 0; });
  }
}

class LoadBase : public Node {
 public:
  LoadBase(uint32_t slot, Physical physical, const plan::Bounds& bounds, bool nullable)
      : Node(physical, bounds), slot_(slot), nullable_(nullable) {}
  const uint32_t& slot() const { return slot_; }

 protected:
  /// Whether a column may have NULLs at the positions of a chunk.
  bool MayBeNull(const Column& column) const {
    if (nullable_ && column.rows != nullptr) return true;  // kNullRow
    return column.kind == Column::Kind::kValues || column.kind == Column::Kind::kConstant
               ? column.nulls != nullptr
               : StoresNulls(column);
  }
  /// An array of this node's form, aligned with the chunk, which needs no copy.
  bool AsItIs(const Column& column) const {
    return column.kind == Column::Kind::kValues && column.rows == nullptr && column.physical == physical();
  }
  const Vector* Borrow(Register& out, const Column& column) const {
    Vector& vector = Out(out);
    // No node writes to vectors that are passed on.
    vector.narrow = reinterpret_cast<int64_t*>(const_cast<std::byte*>(column.base));
    vector.nulls = const_cast<uint8_t*>(column.nulls);
    return &vector;
  }

 private:
  const uint32_t slot_;
  const bool nullable_;
};

class NumberLoad final : public LoadBase {
 public:
  using LoadBase::LoadBase;

  const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const override {
    const Column& column = chunk.column(slot());
    Register& out = At(frame);
    if (AsItIs(column)) return Borrow(out, column);
    Vector& vector = Out(out);
    vector.nulls = MayBeNull(column) ? out.nulls : nullptr;
    if (physical() == Physical::kInt64) {
      Read(column, rows, vector.narrow, vector.nulls);
    } else {
      Read(column, rows, vector.wide, vector.nulls);
    }
    return &vector;
  }

 private:
  template <typename Out>
  static void Read(const Column& column, Selection rows, Out* out, uint8_t* nulls) {
    if (column.kind == Column::Kind::kValues || column.kind == Column::Kind::kConstant) {
      if (column.physical == Physical::kInt64) return LoadValues<Out, int64_t>(column, rows, out, nulls);
      NAM_CHECK(column.physical == Physical::kInt128, "a column of numbers");
      return LoadValues<Out, __int128>(column, rows, out, nulls);
    }
    if (column.kind == Column::Kind::kField && column.field->width == 16) {
      const RowField& field = *column.field;
      const std::byte* const base = column.base;
      return Fill(
          column.rows, rows, out, nulls,
          [&field, base](uint32_t i) {
            return static_cast<Out>(field.Stored<__int128>(field.RowOf(base, i)));
          },
          [&field, base](uint32_t i) { return field.IsNull(field.RowOf(base, i)); });
    }
    if constexpr (std::is_same_v<Out, int64_t>) {
      LoadNumbers(column, rows, out, nulls);
    } else {
      int64_t narrow[kChunkRows];
      LoadNumbers(column, rows, narrow, nulls);
      ForEach(rows, [&](uint32_t p) { out[p] = narrow[p]; });
    }
  }
};

class TruthLoad final : public LoadBase {
 public:
  using LoadBase::LoadBase;
  Needs needs() const override { return {1, true}; }

  const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const override {
    const Column& column = chunk.column(slot());
    Register& out = At(frame);
    if (AsItIs(column) && column.nulls == nullptr) return Borrow(out, column);
    Vector& vector = Out(out);
    uint8_t* const nulls = MayBeNull(column) ? out.nulls : nullptr;
    if (column.kind == Column::Kind::kValues || column.kind == Column::Kind::kConstant) {
      NAM_CHECK(column.physical == Physical::kTruth, "a column of booleans");
      LoadValues<uint8_t, uint8_t>(column, rows, vector.truth, nulls);
    } else {
      int64_t numbers[kChunkRows];
      LoadNumbers(column, rows, numbers, nulls);
      ForEach(rows, [&](uint32_t p) { vector.truth[p] = static_cast<uint8_t>(numbers[p]); });
    }
    if (nulls != nullptr) {
      ForEach(rows, [&](uint32_t p) { vector.truth[p] = nulls[p] != 0 ? kUnknown : vector.truth[p]; });
    }
    return &vector;
  }
};

class TextLoad final : public LoadBase {
 public:
  using LoadBase::LoadBase;

  const Vector* Evaluate(Frame& frame, const Chunk& chunk, Selection rows) const override {
    const Column& column = chunk.column(slot());
    Register& out = At(frame);
    if (AsItIs(column)) return Borrow(out, column);
    Vector& vector = Out(out);
    vector.nulls = MayBeNull(column) ? out.nulls : nullptr;
    if (column.kind == Column::Kind::kValues || column.kind == Column::Kind::kConstant) {
      NAM_CHECK(column.physical == Physical::kText, "a column of texts");
      LoadValues<std::string_view, std::string_view>(column, rows, vector.text, vector.nulls);
    } else {
      LoadTexts(column, rows, vector.text, vector.nulls);
    }
    return &vector;
  }
};

class Literal final : public Node {
 public:
  Literal(const Value& value, Physical physical, const plan::Bounds& bounds)
      : Node(physical, bounds), value_(value) {}
  Needs needs() const override {
    return {.value_bytes = WidthOf(physical()), .nulls = physical() != Physical::kTruth, .own = true};
  }
  void Prepare(Register& out) const override {
    Vector& vector = Out(out);
    const bool null = value_.null;
    switch (physical()) {
      case Physical::kTruth:
        std::fill_n(vector.truth, kChunkRows, null ? kUnknown : value_.number != 0 ? kTrue : kFalse);
        return;
      case Physical::kInt64:
        std::fill_n(vector.narrow, kChunkRows, null ? 0 : static_cast<int64_t>(value_.number));
        break;
      case Physical::kInt128:
        std::fill_n(vector.wide, kChunkRows, null ? 0 : value_.number);
        break;
      default:
        std::fill_n(vector.text, kChunkRows, null ? std::string_view() : std::string_view(value_.text));
    }
    if (!null) return;
    std::fill_n(out.nulls, kChunkRows, uint8_t{1});
    vector.nulls = out.nulls;
  }
  const Vector* Evaluate(Frame& frame, const Chunk&, Selection) const override { return &At(frame).vector; }
  const Value* constant() const override { return &value_; }

 private:
  const Value value_;
};

}  // namespace

plan::Bounds BoundsOf(const plan::Slot& slot) {
  if (slot.bounds.known) return slot.bounds;
  const Type& type = slot.type;
  switch (type.kind) {
    case TypeKind::kDate:
      return {kLeastDay, kGreatestDay, true};
    case TypeKind::kTime:
      return {0, kMicrosecondsPerDay, true};
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampTz:
      return {__int128{kLeastDay} * kMicrosecondsPerDay, __int128{kGreatestDay + 1} * kMicrosecondsPerDay - 1,
              true};
    case TypeKind::kDouble:
    case TypeKind::kReal:
      return {INT64_MIN, INT64_MAX, true};
    case TypeKind::kInteger:
      if (type.precision == 0) return {};
      return {-(__int128{1} << (8 * type.precision - 1)), (__int128{1} << (8 * type.precision - 1)) - 1,
              true};
    case TypeKind::kDecimal:
      if (type.precision == 0) return {};
      return {1 - PowerOfTen(type.precision), PowerOfTen(type.precision) - 1, true};
    default:
      return {};
  }
}

NodePtr MakeLoad(uint32_t slot, const plan::Slot& type) {
  switch (PhysicalOf(type.type)) {
    case Physical::kTruth:
      return std::make_unique<TruthLoad>(slot, Physical::kTruth, plan::Bounds{}, type.nullable);
    case Physical::kText:
      return std::make_unique<TextLoad>(slot, Physical::kText, plan::Bounds{}, type.nullable);
    default: {
      const plan::Bounds bounds = BoundsOf(type);
      return std::make_unique<NumberLoad>(slot, NumberForm(bounds), bounds, type.nullable);
    }
  }
}

NodePtr MakeLiteral(const Value& value, const Type& type) {
  Physical physical = PhysicalOf(type);
  plan::Bounds bounds;
  if (physical == Physical::kInt64 || physical == Physical::kInt128) {
    const __int128 number = value.null ? 0 : value.number;
    bounds = {number, number, true};
    physical = NumberForm(bounds);
  }
  return std::make_unique<Literal>(value, physical, bounds);
}

const CodeMeaning* MeaningOf(const Column& column) {
  if (column.kind == Column::Kind::kCodes) return column.meaning;
  return column.kind == Column::Kind::kField ? column.field->meaning : nullptr;
}

void LoadCodes(const Column& column, uint32_t null_row, Selection rows, uint32_t* codes) {
  const uint32_t* const numbers = column.rows;
  const bool null_bits = column.kind == Column::Kind::kField && column.field->nullable();
  WithNumbers(column, [&](auto read, auto null) {
    if (numbers == nullptr && !null_bits) {
      ForEach(rows, [=](uint32_t p) { codes[p] = static_cast<uint32_t>(read(p)); });
    } else if (!null_bits) {
      ForEach(rows, [=](uint32_t p) {
        codes[p] = numbers[p] == kNullRow ? null_row : static_cast<uint32_t>(read(numbers[p]));
      });
    } else {
      ForEach(rows, [=](uint32_t p) {
        const uint32_t index = numbers == nullptr ? p : numbers[p];
        codes[p] = index == kNullRow || null(index) ? null_row : static_cast<uint32_t>(read(index));
      });
    }
  });
}

const uint32_t* TextSlotOf(const Node& node) {
  const auto* load = dynamic_cast<const TextLoad*>(&node);
  return load == nullptr ? nullptr : &load->slot();
}

bool LoadEntries(const Column& column, Selection rows, int64_t* entries, uint8_t* nulls) {
  const bool may_be_null = column.rows != nullptr || StoresNulls(column);
  LoadNumbers(column, rows, entries, may_be_null ? nulls : nullptr);
  return may_be_null;
}

}  // namespace nam::execution
