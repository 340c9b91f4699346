#include "bench/tuple_count.h"

#include "absl/strings/str_cat.h"
#include "terminal/units.h"

namespace nam::bench {
namespace {

constexpr uint64_t kKilo = 1 << 10;
constexpr uint64_t kMega = 1 << 20;

}  // namespace

absl::StatusOr<std::vector<uint64_t>> ParseCounts(const std::string& option,
                                                  const std::vector<std::string>& texts, uint64_t most) {
  std::vector<uint64_t> counts;
  for (const std::string& text : texts) {
    const absl::StatusOr<uint64_t> count = ParseBytes(text);  // has the same K and M
    if (!count.ok() || *count == 0 || *count > most) {
      return absl::InvalidArgumentError(absl::StrCat(option, "=", text, ": a number from 1 to ",
                                                     CountLabel(most), ", as 16M, 64K or 1000"));
    }
    counts.push_back(*count);
  }
  if (counts.empty()) return absl::InvalidArgumentError(absl::StrCat(option, " names no number"));
  return counts;
}

std::string CountLabel(uint64_t count) {
  if (count >= kMega && count % kMega == 0) return absl::StrCat(count / kMega, "M");
  if (count >= kKilo && count % kKilo == 0) return absl::StrCat(count / kKilo, "K");
  return absl::StrCat(count);
}

}  // namespace nam::bench
