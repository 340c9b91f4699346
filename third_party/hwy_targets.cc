#include <cpuid.h>

#include "hwy/targets.h"

/// Highway's choice of vectors at run time, of which its headers need these two functions. Debian has the
/// rest of them as a shared library alone, which measures a timer for two milliseconds when it is loaded.
namespace hwy {

#if HWY_ARCH_X86
namespace {

/// What __builtin_cpu_supports does not know in all compilers.
bool HasHalfFloats() {
  constexpr unsigned kHalfFloats = 1u << 29;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & kHalfFloats) != 0;
}
bool HasLeadingZeroCount() {
  constexpr unsigned kLeadingZeroCount = 1u << 5;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) != 0 && (c & kLeadingZeroCount) != 0;
}

int64_t Detect() {
  __builtin_cpu_init();
  const auto has = [](bool all, int64_t target) { return all ? target : 0; };
  const bool ssse3 = __builtin_cpu_supports("ssse3") != 0;
  const bool sse4 = ssse3 && __builtin_cpu_supports("sse4.1") != 0 && __builtin_cpu_supports("sse4.2") != 0 &&
                    __builtin_cpu_supports("aes") != 0 && __builtin_cpu_supports("pclmul") != 0;
  const bool avx2 = sse4 && __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                    __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0 &&
                    HasHalfFloats() && HasLeadingZeroCount();
  const bool avx3 = avx2 && __builtin_cpu_supports("avx512f") != 0 &&
                    __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
                    __builtin_cpu_supports("avx512bw") != 0;
  return has(avx3, HWY_AVX3) | has(avx2, HWY_AVX2) | has(sse4, HWY_SSE4) | has(ssse3, HWY_SSSE3) |
         HWY_STATIC_TARGET;
}

constinit ChosenTarget chosen;

}  // namespace

int64_t SupportedTargets() {
  static const int64_t targets = Detect();
  return targets;
}

ChosenTarget& GetChosenTarget() {
  return chosen;
}
#endif

}  // namespace hwy
