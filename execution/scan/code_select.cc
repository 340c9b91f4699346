#include "execution/scan/code_select.h"

#include <algorithm>

// Compiled once for each kind of processor; the last part once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "execution/scan/code_select.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nam::execution::HWY_NAMESPACE {

/// Consecutive rows, or the survivors of an earlier condition.
enum class From : bool { kRange, kRows };
enum class Kind : uint8_t { kRange, kPartBits, kTableBits };

template <From kFrom, typename Code>
uint32_t SelectOneByOne(const CodeTest& test, const Code* codes, uint32_t first, uint32_t i, uint32_t count,
                        uint32_t n, uint32_t* rows) {
  for (; i < count; ++i) {
    const uint32_t row = kFrom == From::kRange ? first + i : rows[i];
    const bool pass = test.Passes(codes[row]);
    rows[n] = row;
    n += pass;
  }
  return n;
}

// Without gathers and compressing stores one row at a time is as fast.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
namespace hn = hwy::HWY_NAMESPACE;
using Lanes32 = hn::ScalableTag<uint32_t>;
using Vector32 = hn::VFromD<Lanes32>;

template <typename Code>
HWY_INLINE Vector32 LoadCodes(const Code* codes) {
  const Lanes32 d;
  if constexpr (sizeof(Code) == 4) {
    return hn::LoadU(d, codes);
  } else {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<Code, Lanes32>(), codes));
  }
}

/// The aligned word that a code lies in, and from it the code: reads nothing beyond the page.
template <typename Code>
HWY_INLINE Vector32 GatherCodes(const Code* codes, Vector32 rows) {
  const Lanes32 d;
  const hn::RebindToSigned<Lanes32> di;
  const auto* const words = reinterpret_cast<const uint32_t*>(codes);
  constexpr int kPerWordBits = sizeof(Code) == 1 ? 2 : sizeof(Code) == 2 ? 1 : 0;
  if constexpr (kPerWordBits == 0) {
    return hn::GatherIndex(d, words, hn::BitCast(di, rows));
  } else {
    const auto word = hn::GatherIndex(d, words, hn::BitCast(di, hn::ShiftRight<kPerWordBits>(rows)));
    const auto within = hn::And(rows, hn::Set(d, (1u << kPerWordBits) - 1));
    const auto bits = hn::ShiftLeft<5 - kPerWordBits>(within);
    return hn::And(hn::Shr(word, bits), hn::Set(d, (1u << 8 * sizeof(Code)) - 1));
  }
}

template <From kFrom, Kind kKind, typename Code>
uint32_t SelectMany(const CodeTest& test, const Code* codes, uint32_t first, uint32_t count, uint32_t* rows) {
  const Lanes32 d;
  const hn::RebindToSigned<Lanes32> di;
  const auto lanes = static_cast<uint32_t>(hn::Lanes(d));
  const auto low = hn::Set(d, static_cast<uint32_t>(test.low));
  const auto spread = hn::Set(d, static_cast<uint32_t>(std::min(test.spread, UINT32_MAX - test.low)));
  const auto delta = hn::Set(d, static_cast<uint32_t>(test.delta));
  const auto in_part = hn::Set(d, (uint32_t{1} << test.shift) - 1);
  const auto part_size = hn::Set(d, test.part_size);
  const int shift = static_cast<int>(test.shift);
  uint32_t n = 0, i = 0;
  for (; i + lanes <= count; i += lanes) {
    Vector32 row, code;
    if constexpr (kFrom == From::kRange) {
      row = hn::Iota(d, first + i);
      code = LoadCodes(codes + first + i);
    } else {
      row = hn::LoadU(d, rows + i);
      code = GatherCodes(codes, row);
    }
    const auto above = hn::Sub(code, low);
    auto pass = hn::Eq(hn::Min(above, spread), above);  // unsigned: above ≤ spread
    if constexpr (kKind != Kind::kRange) {
      const auto k = hn::Add(code, delta);
      auto at = hn::ShiftRightSame(k, shift);
      if constexpr (kKind == Kind::kTableBits) at = hn::Add(at, hn::Mul(hn::And(k, in_part), part_size));
      at = hn::IfThenElseZero(pass, at);
      const auto word = hn::GatherIndex(d, test.bits, hn::BitCast(di, hn::ShiftRight<5>(at)));
      const auto bit = hn::Shl(hn::Set(d, 1), hn::And(at, hn::Set(d, 31)));
      pass = hn::And(pass, hn::TestBit(word, bit));
    }
    // Stores as many lanes as were read: n is at most i.
    hn::StoreU(hn::Compress(row, pass), d, rows + n);
    n += static_cast<uint32_t>(hn::CountTrue(d, pass));
  }
  return SelectOneByOne<kFrom>(test, codes, first, i, count, n, rows);
}

template <From kFrom, typename Code>
uint32_t SelectKind(const CodeTest& test, const Code* codes, uint32_t first, uint32_t count, uint32_t* rows) {
  // A bound outside the column's width would be truncated by the lanes and match wrong codes.
  if (test.low > UINT32_MAX) return 0;
  if (test.bits == nullptr) return SelectMany<kFrom, Kind::kRange>(test, codes, first, count, rows);
  if (test.part_size == 0) return SelectMany<kFrom, Kind::kPartBits>(test, codes, first, count, rows);
  return SelectMany<kFrom, Kind::kTableBits>(test, codes, first, count, rows);
}
#else
template <From kFrom, typename Code>
uint32_t SelectKind(const CodeTest& test, const Code* codes, uint32_t first, uint32_t count, uint32_t* rows) {
  return SelectOneByOne<kFrom>(test, codes, first, 0, count, 0, rows);
}
#endif

template <From kFrom>
uint32_t SelectWidth(const CodeTest& test, const CodePage& column, uint32_t first, uint32_t count,
                     uint32_t* rows) {
  switch (column.width) {
    case 1:
      return SelectKind<kFrom>(test, reinterpret_cast<const uint8_t*>(column.codes), first, count, rows);
    case 2:
      return SelectKind<kFrom>(test, reinterpret_cast<const uint16_t*>(column.codes), first, count, rows);
    case 4:
      return SelectKind<kFrom>(test, reinterpret_cast<const uint32_t*>(column.codes), first, count, rows);
    default:
      return SelectOneByOne<kFrom>(test, reinterpret_cast<const uint64_t*>(column.codes), first, 0, count, 0,
                                   rows);
  }
}

uint32_t SelectRange(const CodeTest& test, const CodePage& column, uint32_t first, uint32_t count,
                     uint32_t* rows) {
  return SelectWidth<From::kRange>(test, column, first, count, rows);
}
uint32_t SelectAgain(const CodeTest& test, const CodePage& column, uint32_t count, uint32_t* rows) {
  return SelectWidth<From::kRows>(test, column, 0, count, rows);
}

}  // namespace nam::execution::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nam::execution {

HWY_EXPORT(SelectRange);
HWY_EXPORT(SelectAgain);

uint32_t SelectCodes(const CodeTest& test, const CodePage& column, uint32_t first, uint32_t count,
                     uint32_t* rows) {
  return HWY_DYNAMIC_DISPATCH(SelectRange)(test, column, first, count, rows);
}
uint32_t SelectRows(const CodeTest& test, const CodePage& column, uint32_t count, uint32_t* rows) {
  return HWY_DYNAMIC_DISPATCH(SelectAgain)(test, column, count, rows);
}

}  // namespace nam::execution
#endif
