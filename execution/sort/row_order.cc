#include "execution/sort/row_order.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "execution/positions.h"

namespace nam::execution {
namespace {

constexpr uint64_t kSign = uint64_t{1} << 63;

uint64_t PrefixOf(int64_t n) {
  return static_cast<uint64_t>(n) ^ kSign;
}
/// Numbers beyond 64 bits have the prefix of the nearest that fits.
uint64_t PrefixOf(__int128 n) {
  return PrefixOf(static_cast<int64_t>(std::clamp<__int128>(n, INT64_MIN, INT64_MAX)));
}
uint64_t PrefixOf(uint8_t truth) {
  return truth;
}
uint64_t PrefixOf(std::string_view text) {
  uint64_t prefix = 0;
  if (!text.empty()) std::memcpy(&prefix, text.data(), std::min(text.size(), sizeof(prefix)));
  return __builtin_bswap64(prefix);
}

template <typename T>
int Sign(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

}  // namespace

void RowOrder::PrefixesOf(const Vector& values, Selection rows, uint64_t* prefixes) const {
  const uint32_t* const positions = PositionsOf(rows);
  const OrderSlot& key = keys_.front();
  const uint64_t flip = key.descending ? UINT64_MAX : 0;
  const uint64_t null = key.nulls_first ? 0 : UINT64_MAX;
  const auto make = [&](const auto* of) {
    for (uint32_t j = 0; j < rows.count; ++j) {
      const uint32_t at = positions[j];
      prefixes[j] = values.null(at) ? null : PrefixOf(of[at]) ^ flip;
    }
  };
  switch (values.physical) {
    case Physical::kTruth:
      return make(values.truth);
    case Physical::kInt64:
      return make(values.narrow);
    case Physical::kInt128:
      return make(values.wide);
    default:
      NAM_CHECK(values.physical == Physical::kText);
      return make(values.text);
  }
}

int RowOrder::CompareRows(uint32_t a, uint32_t b) const {
  for (const OrderSlot& key : keys_) {
    const int compared = CompareKey(key, a, b);
    if (compared != 0) return compared;
  }
  return 0;
}

int RowOrder::CompareKey(const OrderSlot& key, uint32_t a, uint32_t b) const {
  const RowField& field = layout_.field(key.slot);
  const std::byte *const x = field.RowOf(base_, a), *const y = field.RowOf(base_, b);
  const bool x_null = field.IsNull(x), y_null = field.IsNull(y);
  if (x_null || y_null) return x_null == y_null ? 0 : x_null == key.nulls_first ? -1 : 1;
  int compared = 0;
  if (field.physical == Physical::kText) {
    compared = field.Text(field.PageOf(base_, a), x).compare(field.Text(field.PageOf(base_, b), y));
  } else {
    // Fields that are narrower than 16 bytes count from one base.
    compared = WithStored(field.width, [&](auto zero) {
      using Stored = decltype(zero);
      using Number = std::conditional_t<sizeof(Stored) == 16, __int128, Stored>;
      return Sign(static_cast<Number>(field.Stored<Stored>(x)), static_cast<Number>(field.Stored<Stored>(y)));
    });
  }
  return key.descending ? -compared : compared;
}

}  // namespace nam::execution
