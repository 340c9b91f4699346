#include "execution/rows/permute_keys.h"

#include <cstring>

// Compiled once for each kind of processor; the last part once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "execution/rows/permute_keys.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nam::execution::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
namespace hn = hwy::HWY_NAMESPACE;

/// Handles rows of 8 bytes with keys of 4, as lanes of 8 bytes. Returns the number of rows done.
uint32_t PermutePairs(plan::KeyDomain domain, uint32_t first, uint32_t offset, const PermutedBits& bits,
                      const std::byte* row, uint32_t rows, uint32_t* out) {
  const hn::ScalableTag<uint64_t> d;
  const hn::Repartition<uint32_t, decltype(d)> d32;
  const hn::Rebind<uint32_t, decltype(d)> half;
  const auto lanes = static_cast<uint32_t>(hn::Lanes(d));
  const auto* const words = reinterpret_cast<const uint64_t*>(row);
  const int to_key = static_cast<int>(8 * offset), fold = static_cast<int>(domain.bits / 2 + 1);
  const auto all = hn::Set(d32, static_cast<uint32_t>(domain.size() - 1));
  const auto wanted = hn::Set(d32, bits.mask);
  uint32_t i = 0;
  for (; i + lanes <= rows; i += lanes) {
    const auto key = hn::BitCast(d32, hn::ShiftRightSame(hn::LoadU(d, words + i), to_key));
    auto n = hn::And(hn::Add(key, hn::Set(d32, first)), all);
    n = hn::Xor(n, hn::ShiftRightSame(n, fold));
    n = hn::And(hn::Mul(n, hn::Set(d32, plan::KeyDomain::kFactor)), all);
    n = hn::And(hn::ShiftRightSame(n, static_cast<int>(bits.shift)), wanted);
    hn::StoreU(hn::TruncateTo(half, hn::BitCast(d, n)), half, out + i);
  }
  return i;
}
#else
uint32_t PermutePairs(plan::KeyDomain, uint32_t, uint32_t, const PermutedBits&, const std::byte*, uint32_t,
                      uint32_t*) {
  return 0;
}
#endif

template <typename Stored>
void PermuteRows(plan::KeyDomain domain, uint32_t first, const PermutedBits& bits, const std::byte* at,
                 uint32_t stride, uint32_t done, uint32_t rows, uint32_t* out) {
  for (uint32_t i = done; i < rows; ++i) {
    Stored stored;
    std::memcpy(&stored, at + size_t{i} * stride, sizeof(stored));
    out[i] = domain.Permute(first + static_cast<uint32_t>(stored)) >> bits.shift & bits.mask;
  }
}

void Permute(const plan::KeyDomain& domain, const RowField& key, const PermutedBits& bits,
             const std::byte* row, uint32_t rows, uint32_t* out) {
  const auto first = static_cast<uint32_t>(domain.NumberOf(key.base));
  const bool pairs = key.stride == 8 && key.width == 4;
  const uint32_t done = pairs ? PermutePairs(domain, first, key.offset, bits, row, rows, out) : 0;
  WithStored(key.width, [&](auto zero) {
    PermuteRows<decltype(zero)>(domain, first, bits, row + key.offset, key.stride, done, rows, out);
  });
}

}  // namespace nam::execution::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nam::execution {

HWY_EXPORT(Permute);

void PermuteKeys(const plan::KeyDomain& domain, const RowField& key, const PermutedBits& bits,
                 const std::byte* row, uint32_t rows, uint32_t* out) {
  HWY_DYNAMIC_DISPATCH(Permute)(domain, key, bits, row, rows, out);
}

}  // namespace nam::execution
#endif
