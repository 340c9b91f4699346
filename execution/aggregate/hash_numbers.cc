#include "execution/aggregate/hash_numbers.h"

// Compiled once for each kind of processor; the last part once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "execution/aggregate/hash_numbers.cc"
#include "hwy/foreach_target.h"  // before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nam::execution::HWY_NAMESPACE {

void Hash(const uint64_t* numbers, uint32_t count, uint32_t* hashes) {
  uint32_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<uint64_t> d;
  const hn::Repartition<uint32_t, decltype(d)> d32;
  const hn::Rebind<uint32_t, decltype(d)> half;
  const auto lanes = static_cast<uint32_t>(hn::Lanes(d));
  const auto times_low = hn::Set(d32, 0x9e3779b1), times_high = hn::Set(d32, 0x85ebca77);
  for (; i + lanes <= count; i += lanes) {
    const auto number = hn::LoadU(d, numbers + i);
    const auto low = hn::MulEven(hn::BitCast(d32, number), times_low);
    const auto high = hn::MulEven(hn::BitCast(d32, hn::ShiftRight<32>(number)), times_high);
    const auto mixed =
        hn::Xor(hn::Xor(low, hn::ShiftRight<32>(low)), hn::Xor(high, hn::ShiftRight<29>(high)));
    // The lower half of each lane.
    const auto lower = hn::And(mixed, hn::Set(d, UINT32_MAX));
    hn::StoreU(hn::TruncateTo(half, lower), half, hashes + i);
  }
#endif
  for (; i < count; ++i) hashes[i] = HashOfNumber(numbers[i]);
}

}  // namespace nam::execution::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nam::execution {

HWY_EXPORT(Hash);

void HashNumbers(const uint64_t* numbers, uint32_t count, uint32_t* hashes) {
  HWY_DYNAMIC_DISPATCH(Hash)(numbers, count, hashes);
}

}  // namespace nam::execution
#endif
