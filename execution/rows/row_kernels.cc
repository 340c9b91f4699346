#include "execution/rows/row_kernels.h"

#include <algorithm>
#include <cstring>

// Compiled once for each kind of processor; the last part once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "execution/rows/row_kernels.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

// The compiler vectorizes loops for the processor if the stride is known.
HWY_BEFORE_NAMESPACE();
namespace nam::execution::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::ScalableTag<uint32_t>;

/// The greatest of the even lanes, and of the odd ones.
HWY_INLINE Pair GreatestLanes(hn::VFromD<Lanes> greatest) {
  const Lanes d;
  HWY_ALIGN uint32_t lane[hn::MaxLanes(d)];
  hn::Store(greatest, d, lane);
  Pair pair;
  for (size_t j = 0; j < hn::Lanes(d); ++j) {
    uint32_t& of = j % 2 == 0 ? pair.low : pair.high;
    of = std::max(of, lane[j]);
  }
  return pair;
}

Pair GreatestOfPairsOf(const std::byte* first, uint32_t rows) {
  const Lanes d;
  const auto* const words = reinterpret_cast<const uint32_t*>(first);
  const size_t lanes = hn::Lanes(d), count = 2 * size_t{rows};
  auto greatest = hn::Zero(d);
  size_t i = 0;
  for (; lanes > 1 && i + lanes <= count; i += lanes) greatest = hn::Max(greatest, hn::LoadU(d, words + i));
  Pair pair = GreatestLanes(greatest);
  for (; i < count; i += 2) {
    pair.low = std::max(pair.low, words[i]);
    pair.high = std::max(pair.high, words[i + 1]);
  }
  return pair;
}

/// Interleaves lanes of two columns to pairs in the order of rows.
Pair StorePairsOf(const CodeRun& low, const CodeRun& high, uint32_t count, std::byte* rows) {
  const Lanes d;
  const auto lanes = static_cast<uint32_t>(hn::Lanes(d));
  const auto* const lows = reinterpret_cast<const uint32_t*>(low.codes);
  const auto* const highs = reinterpret_cast<const uint32_t*>(high.codes);
  auto* const out = reinterpret_cast<uint32_t*>(rows);
  const auto low_delta = static_cast<uint32_t>(low.delta), high_delta = static_cast<uint32_t>(high.delta);
  auto low_most = hn::Zero(d), high_most = hn::Zero(d);
  uint32_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto a = hn::LoadU(d, lows + i), b = hn::LoadU(d, highs + i);
    low_most = hn::Max(low_most, a);
    high_most = hn::Max(high_most, b);
    hn::StoreInterleaved2(hn::Add(a, hn::Set(d, low_delta)), hn::Add(b, hn::Set(d, high_delta)), d,
                          out + 2 * size_t{i});
  }
  const Pair of_lows = GreatestLanes(low_most), of_highs = GreatestLanes(high_most);
  Pair most{std::max(of_lows.low, of_lows.high), std::max(of_highs.low, of_highs.high)};
  for (; i < count; ++i) {
    most = {std::max(most.low, lows[i]), std::max(most.high, highs[i])};
    out[2 * size_t{i}] = lows[i] + low_delta;
    out[2 * size_t{i} + 1] = highs[i] + high_delta;
  }
  return most;
}

/// 0: the stride is known at run time.
template <uint32_t kStride, typename Stored>
uint64_t Greatest(const std::byte* at, uint32_t stride, uint32_t rows) {
  if constexpr (kStride > 0) stride = kStride;
  Stored greatest = 0;
  for (uint32_t i = 0; i < rows; ++i) {
    Stored stored;
    std::memcpy(&stored, at + size_t{i} * stride, sizeof(stored));
    greatest = std::max(greatest, stored);
  }
  return greatest;
}

template <uint32_t kStride, typename Code>
uint64_t Store(const std::byte* codes, uint32_t count, uint64_t delta, std::byte* at, uint32_t stride) {
  if constexpr (kStride > 0) stride = kStride;
  const auto add = static_cast<Code>(delta);
  Code greatest = 0;
  for (uint32_t i = 0; i < count; ++i) {
    Code code;
    std::memcpy(&code, codes + size_t{i} * sizeof(Code), sizeof(code));
    greatest = std::max(greatest, code);
    code = static_cast<Code>(code + add);
    std::memcpy(at + size_t{i} * stride, &code, sizeof(code));
  }
  return greatest;
}

/// Calls body.template operator()<stride, type>() with the strides of narrow rows.
template <typename Body>
uint64_t WithShape(uint32_t stride, uint8_t width, Body&& body) {
  const auto with_width = [&]<uint32_t kStride>() -> uint64_t {
    switch (width) {
      case 1:
        return body.template operator()<kStride, uint8_t>();
      case 2:
        return body.template operator()<kStride, uint16_t>();
      case 4:
        return body.template operator()<kStride, uint32_t>();
      default:
        return body.template operator()<kStride, uint64_t>();
    }
  };
  switch (stride) {
    case 8:
      return with_width.template operator()<8>();
    case 16:
      return with_width.template operator()<16>();
    default:
      return with_width.template operator()<0>();
  }
}

uint64_t GreatestOfShape(const std::byte* at, uint32_t stride, uint8_t width, uint32_t rows) {
  return WithShape(stride, width, [=]<uint32_t kStride, typename Stored>() {
    return Greatest<kStride, Stored>(at, stride, rows);
  });
}
uint64_t StoreShape(const CodeRun& run, uint8_t width, uint32_t count, std::byte* at, uint32_t stride) {
  return WithShape(stride, width, [=, &run]<uint32_t kStride, typename Code>() {
    return Store<kStride, Code>(run.codes, count, run.delta, at, stride);
  });
}

}  // namespace nam::execution::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nam::execution {

HWY_EXPORT(GreatestOfShape);
HWY_EXPORT(GreatestOfPairsOf);
HWY_EXPORT(StorePairsOf);
HWY_EXPORT(StoreShape);

uint64_t GreatestStored(const std::byte* at, uint32_t stride, uint8_t width, uint32_t rows) {
  return HWY_DYNAMIC_DISPATCH(GreatestOfShape)(at, stride, width, rows);
}
Pair GreatestOfPairs(const std::byte* first, uint32_t rows) {
  return HWY_DYNAMIC_DISPATCH(GreatestOfPairsOf)(first, rows);
}
uint64_t StoreCodes(const CodeRun& run, uint8_t width, uint32_t count, std::byte* at, uint32_t stride) {
  return HWY_DYNAMIC_DISPATCH(StoreShape)(run, width, count, at, stride);
}
Pair StorePairs(const CodeRun& low, const CodeRun& high, uint32_t count, std::byte* rows) {
  return HWY_DYNAMIC_DISPATCH(StorePairsOf)(low, high, count, rows);
}

}  // namespace nam::execution
#endif
