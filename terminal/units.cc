#include "terminal/units.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace nam {
namespace {

constexpr std::string_view kPrefixes = "kmgt";
constexpr int kDecimalsMax = 9;

absl::Status NotASize(std::string_view text) {
  return absl::InvalidArgumentError(absl::StrFormat(
      "\"%s\" is not a size: write a number of bytes, or one with KiB, MiB, GiB or TiB", text));
}

/// The power of 1024 of `unit` (lower case, without blanks), or -1.
int PowerOf(std::string_view unit) {
  if (unit.empty() || unit == "b") return 0;
  const size_t prefix = kPrefixes.find(unit[0]);
  if (prefix == std::string_view::npos) return -1;
  const std::string_view rest = unit.substr(1);
  return rest.empty() || rest == "ib" ? static_cast<int>(prefix) + 1 : -1;
}

}  // namespace

absl::StatusOr<uint64_t> ParseBytes(std::string_view text) {
  unsigned __int128 number = 0;
  unsigned __int128 divisor = 1;
  size_t digits = 0, i = 0;
  int decimals = -1;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && decimals < 0) {
      decimals = 0;
    } else if (c >= '0' && c <= '9') {
      if (++digits > 20) return NotASize(text);
      number = number * 10 + static_cast<unsigned>(c - '0');
      if (decimals >= 0) {
        if (++decimals > kDecimalsMax) return NotASize(text);
        divisor *= 10;
      }
    } else {
      break;
    }
  }
  if (digits == 0 || decimals == 0) return NotASize(text);
  std::string unit;
  while (i < text.size() && text[i] == ' ') ++i;
  for (; i < text.size(); ++i) {
    unit.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(text[i]))));
  }
  if (unit.size() == 2 && unit[1] == 'b' && PowerOf(unit.substr(0, 1)) > 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("\"%s\": sizes are powers of 1024, write %ciB", text, std::toupper(unit[0])));
  }
  const int power = PowerOf(unit);
  if (power < 0 || (power == 0 && decimals > 0)) return NotASize(text);
  const unsigned __int128 bytes = (number << (10 * power)) / divisor;
  if (bytes > std::numeric_limits<uint64_t>::max()) {
    return absl::OutOfRangeError(absl::StrFormat("\"%s\" is larger than 64 bits can say", text));
  }
  return static_cast<uint64_t>(bytes);
}

std::string FormatBytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  // A number that rounds up to the next unit uses that unit: 1 MiB, not 1024 KiB.
  while (unit < 6 && static_cast<double>(bytes) / static_cast<double>(1ULL << (10 * unit)) >= 1023.95) ++unit;
  const double value = static_cast<double>(bytes) / static_cast<double>(1ULL << (10 * unit));
  std::string text = absl::StrFormat("%.1f", value);
  if (text.size() > 2 && text.compare(text.size() - 2, 2, ".0") == 0) text.resize(text.size() - 2);
  return absl::StrCat(text, " ", kUnits[unit]);
}

std::string FormatCount(uint64_t count) {
  std::string text = absl::StrCat(count);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<size_t>(at), 1, ',');
  return text;
}

std::string CountOf(uint64_t count, std::string_view one) {
  return absl::StrCat(FormatCount(count), " ", std::string(one), count == 1 ? "" : "s");
}

std::string FormatDuration(int64_t seconds) {
  seconds = std::max<int64_t>(seconds, 0);
  const int64_t hours = seconds / 3600, minutes = seconds / 60 % 60;
  if (hours > 0) return absl::StrFormat("%d:%02d:%02d", hours, minutes, seconds % 60);
  return absl::StrFormat("%d:%02d", minutes, seconds % 60);
}

std::string FormatMilliseconds(double milliseconds) {
  return absl::StrFormat("%.3f", milliseconds);
}

double InThousandths(double number) {
  return std::round(number * 1000) / 1000;
}

}  // namespace nam
