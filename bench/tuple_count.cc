#include "bench/tuple_count.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace nam::bench {
namespace {

constexpr uint64_t kKilo = 1 << 10;
constexpr uint64_t kMega = 1 << 20;

/// 0 if invalid or too large.
uint64_t ParseCount(std::string_view text, uint64_t most) {
  uint64_t unit = 1, count = 0;
  if (!text.empty()) {
    const char last = absl::ascii_toupper(static_cast<unsigned char>(text.back()));
    unit = last == 'M' ? kMega : last == 'K' ? kKilo : 1;
  }
  if (unit > 1) text.remove_suffix(1);
  const absl::string_view digits(text.data(), text.size());
  return absl::SimpleAtoi(digits, &count) && count <= most / unit ? count * unit : 0;
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> ParseCounts(const std::string& option,
                                                  const std::vector<std::string>& texts, uint64_t most) {
  std::vector<uint64_t> counts;
  for (const std::string& text : texts) {
    const uint64_t count = ParseCount(text, most);
    if (count == 0) {
      return absl::InvalidArgumentError(absl::StrCat(option, "=", text, ": a number from 1 to ",
                                                     CountLabel(most), ", as 16M, 64K or 1000"));
    }
    counts.push_back(count);
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
