// The input side of sums and averages.
#include <algorithm>
#include <cmath>

#include "base/status_macros.h"
#include "execution/aggregate/aggregate_state.h"
#include "execution/positions.h"
#include "execution/row_field.h"
#include "types/real.h"
#include "types/sql_error.h"
#include "types/value.h"

namespace nam::execution {
namespace {

uint64_t DistanceFromZero(int64_t number) {
  return number < 0 ? -static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
}

/// The largest distance of these numbers from 0; UINT64_MAX: unbounded.
uint64_t FurthestOf(const CodeMeaning& meaning) {
  return std::max(DistanceFromZero(meaning.min), DistanceFromZero(meaning.max));
}
uint64_t FurthestOf(const RowField& field) {
  if (field.width >= sizeof(uint64_t)) return UINT64_MAX;
  const uint64_t most = (uint64_t{1} << (8 * field.width)) - 1, base = DistanceFromZero(field.base);
  return base > UINT64_MAX - most ? UINT64_MAX : base + most;
}
uint64_t FurthestOf(const Vector& values, Selection rows) {
  uint64_t furthest = 0;
  ForEach(rows, [&](uint32_t p) {
    if (!values.null(p)) furthest = std::max(furthest, DistanceFromZero(values.narrow[p]));
  });
  return furthest;
}

}  // namespace

/// Calls body(seen), where seen(group) notes that a number has come for it.
template <typename Body>
void AggregateState::WithSeen(Body&& body) {
  if (counts()) {
    body([counts = counts_.data()](uint32_t group) { ++counts[group]; });
  } else {
    body([seen = seen_.data()](uint32_t group) { seen[group] = 1; });
  }
}

absl::StatusOr<bool> AggregateState::SumColumn(const Column& column, bool nullable, Selection rows,
                                               const uint32_t* groups, bool single) {
  if (single) {
    NAM_ASSIGN_OR_RETURN(const bool done, SumStored(column, nullable, rows));
    if (done) return true;
  }
  if (column.kind == Column::Kind::kCodes) {
    NAM_RETURN_IF_ERROR(SumCodes(column, nullable, rows, groups));
    return true;
  }
  const bool in_place = column.kind == Column::Kind::kField && column.rows == nullptr &&
                        column.field->width <= sizeof(uint64_t) && !column.field->nullable() &&
                        column.field->meaning == nullptr;
  if (in_place) NAM_RETURN_IF_ERROR(SumFields(column, rows, groups));
  return in_place;
}

absl::Status AggregateState::SumCodes(const Column& column, bool nullable, Selection rows,
                                      const uint32_t* groups) {
  const CodeMeaning& meaning = *column.meaning;
  const bool nulls = meaning.null_code || (column.rows != nullptr && nullable);
  const auto base = static_cast<uint64_t>(meaning.base);
  uint32_t scratch[kChunkRows];
  return sums_.Add(rows.count, FurthestOf(meaning), [&](auto* sums) {
    WithSeen([&](auto seen) {
      WithCodes(column.base, column.width, [&](const auto* codes) {
        if (!nulls) {
          WithIndexes(column, rows, scratch, [&](auto index_of) {
            for (uint32_t j = 0; j < rows.count; ++j) {
              sums[groups[j]] += static_cast<int64_t>(base + codes[index_of(j)]);
              seen(groups[j]);
            }
          });
          return;
        }
        const uint32_t* const indexes = IndexesOf(column, rows, scratch);
        for (uint32_t j = 0; j < rows.count; ++j) {
          if (indexes[j] == kNullRow || meaning.IsNull(codes[indexes[j]])) continue;
          sums[groups[j]] += meaning.Number(codes[indexes[j]]);
          seen(groups[j]);
        }
      });
    });
  });
}

absl::Status AggregateState::SumFields(const Column& column, Selection rows, const uint32_t* groups) {
  const RowField& field = *column.field;
  const auto base = static_cast<uint64_t>(field.base);
  uint32_t scratch[kChunkRows];
  return sums_.Add(rows.count, FurthestOf(field), [&](auto* sums) {
    WithSeen([&](auto seen) {
      WithStored(field.width, [&]<typename T>(T) {
        if constexpr (sizeof(T) <= sizeof(uint64_t)) {
          const StoredAt<T> stored(field, column.base);
          WithIndexes(column, rows, scratch, [&](auto index_of) {
            for (uint32_t j = 0; j < rows.count; ++j) {
              sums[groups[j]] += static_cast<int64_t>(base + stored(index_of(j)));
              seen(groups[j]);
            }
          });
        }
      });
    });
  });
}

/// Adds codes, or fields up to 4 bytes, none of which is NULL: a chunk's sum fits 64 bits, and each value is
/// its base plus what is stored. False: the column has another form.
absl::StatusOr<bool> AggregateState::SumStored(const Column& column, bool nullable, Selection rows) {
  if (nullable || column.width > sizeof(uint32_t)) return false;
  const bool codes = column.kind == Column::Kind::kCodes;
  if (!codes && column.kind != Column::Kind::kField) return false;
  if (codes ? column.meaning->null_code : column.field->nullable()) return false;
  uint64_t stored = 0;
  const uint32_t* const indexes = column.rows;
  const auto add = [&](auto read) {
    if (indexes == nullptr) {
      ForEach(rows, [&](uint32_t p) { stored += read(p); });
    } else {
      ForEach(rows, [&](uint32_t p) { stored += read(indexes[p]); });
    }
  };
  if (codes) {
    WithCodes(column.base, column.width,
              [&](const auto* at) { add([at](uint32_t index) -> uint64_t { return at[index]; }); });
  } else {
    WithStored(column.width, [&]<typename T>(T) {
      if constexpr (sizeof(T) <= sizeof(uint32_t)) add(StoredAt<T>(*column.field, column.base));
    });
  }
  const int64_t base = codes ? column.meaning->base : column.field->base;
  NAM_RETURN_IF_ERROR(sums_.AddOne(0, static_cast<__int128>(base) * rows.count + stored));
  if (counts()) {
    counts_[0] += rows.count;
  } else {
    seen_[0] |= rows.count > 0;
  }
  return true;
}

absl::Status AggregateState::SumSingle(const Vector& values, Selection rows) {
  __int128 sum = 0;
  int64_t count = 0;
  bool overflow = false;
  const auto add = [&](uint32_t at) {
    if (values.null(at)) return;
    overflow |= __builtin_add_overflow(sum, values.number(at), &sum);
    ++count;
  };
  if (values.nulls == nullptr && values.physical == Physical::kInt64) {
    ForEach(rows, [&](uint32_t at) { sum += values.narrow[at]; });
    count = rows.count;
  } else {
    ForEach(rows, add);
  }
  if (counts()) {
    counts_[0] += count;
  } else {
    seen_[0] |= count > 0;
  }
  return overflow ? SumOutOfRange() : sums_.AddOne(0, sum);
}

absl::Status AggregateState::Sum(const Vector& values, Selection rows, const uint32_t* groups) {
  const uint32_t* const positions = PositionsOf(rows);
  absl::Status status;
  const auto for_each = [&](auto&& add) {
    WithSeen([&](auto seen) {
      for (uint32_t j = 0; j < rows.count; ++j) {
        const uint32_t at = positions[j];
        if (values.null(at)) continue;
        add(groups[j], at);
        seen(groups[j]);
      }
    });
  };
  if (real()) {
    for_each([&](uint32_t group, uint32_t at) {
      RealSum sum = RealSum::Unpacked(real_sums_[group]);
      status.Update(sum.Add(FromOrderedBits(values.narrow[at])));
      real_sums_[group] = sum.Packed();
    });
    return status;
  }
  if (values.physical == Physical::kInt64) {
    return sums_.Add(rows.count, FurthestOf(values, rows), [&](auto* sums) {
      for_each([&](uint32_t group, uint32_t at) { sums[group] += values.narrow[at]; });
    });
  }
  for_each([&](uint32_t group, uint32_t at) { status.Update(sums_.AddOne(group, values.number(at))); });
  return status;
}

absl::Status AggregateState::AddSum(uint32_t group, __int128 sum) {
  if (!real()) return sums_.AddOne(group, sum);
  RealSum mine = RealSum::Unpacked(real_sums_[group]);
  const RealSum theirs = RealSum::Unpacked(sum);
  const absl::Status status = mine.Add(theirs.sum);
  if (std::isfinite(mine.sum)) mine.lost += theirs.lost;
  real_sums_[group] = mine.Packed();
  return status;
}

}  // namespace nam::execution
