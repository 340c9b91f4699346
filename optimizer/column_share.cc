#include "optimizer/column_share.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "types/wire.h"

namespace nam::optimizer {
namespace {

bool IsText(const proto::Column& column) {
  return PhysicalOf(ColumnTypeOf(column.type())) == Physical::kText;
}

/// A number of rows as a share of the column's.
double Share(uint64_t some, uint64_t rows) {
  return rows == 0 ? 0 : std::min(1.0, static_cast<double>(some) / static_cast<double>(rows));
}

/// The share of rows whose value is neither NULL nor common.
double ShareOfOthers(const proto::Column& column, uint64_t rows) {
  uint64_t common = column.nulls();
  for (const proto::CommonValue& value : column.common()) common += value.rows();
  return 1 - Share(common, rows);
}

/// A number in the column's unit: decimals are stored without their point.
double InUnits(const proto::Column& column, const Value& value) {
  return static_cast<double>(value.number) *
         std::pow(10.0, ColumnTypeOf(column.type()).scale - value.type.scale);
}

/// The share of values, evenly spread or by histogram, below `x`.
double FractionBelow(const proto::Column& column, double x) {
  const auto& bounds = column.histogram();
  if (bounds.empty()) {
    const auto low = static_cast<double>(column.min()), high = static_cast<double>(column.max());
    return high < low ? 0.5 : std::clamp((x - low) / (high - low + 1), 0.0, 1.0);
  }
  const auto above = std::upper_bound(bounds.begin(), bounds.end(), x,
                                      [](double a, int64_t b) { return a < static_cast<double>(b); });
  if (above == bounds.begin()) return 0;
  if (above == bounds.end()) return 1;
  const auto low = static_cast<double>(*(above - 1)), high = static_cast<double>(*above);
  return (static_cast<double>(above - bounds.begin() - 1) + (x - low) / (high - low)) / (bounds.size() - 1);
}

/// The bytes that the characters of some texts come from.
struct Alphabet {
  uint8_t low = 0xFF;
  uint8_t high = 0;

  void Add(uint8_t first, uint8_t last) {
    low = std::min(low, first);
    high = std::max(high, last);
  }
  /// A text with one digit or letter may have the others, too.
  void AddAll(std::string_view text) {
    for (const char c : text) {
      const auto byte = static_cast<uint8_t>(c);
      Add(byte, byte);
      if (byte >= '0' && byte <= '9') Add('0', '9');
      if (byte >= 'A' && byte <= 'Z') Add('A', 'Z');
      if (byte >= 'a' && byte <= 'z') Add('a', 'z');
    }
  }
  /// The text as digits behind a point, 0 … 1. An end is less than any byte.
  double Fraction(std::string_view text) const {
    const double base = high - low + 2;
    double fraction = 0, digit = 1;
    for (const char c : text.substr(0, 12))
      fraction += (digit /= base) * (std::clamp(static_cast<uint8_t>(c), low, high) - low + 1);
    return fraction;
  }
};

/// The position of a text between two others: by their bytes after the common prefix.
double Between(std::string_view low, std::string_view high, std::string_view text) {
  const size_t most = std::min({low.size(), high.size(), text.size()});
  size_t common = 0;
  while (common < most && low[common] == high[common]) ++common;
  Alphabet alphabet;
  for (std::string_view* of : {&low, &high, &text}) {
    of->remove_prefix(common);
    alphabet.AddAll(*of);
  }
  const double from = alphabet.Fraction(low), to = alphabet.Fraction(high);
  return to <= from ? 0.5 : std::clamp((alphabet.Fraction(text) - from) / (to - from), 0.0, 1.0);
}

/// The same for texts.
double FractionBelow(const proto::Column& column, std::string_view text) {
  const auto& bounds = column.text_histogram();
  const auto above = std::upper_bound(bounds.begin(), bounds.end(), text,
                                      [](std::string_view a, const std::string& b) { return a < b; });
  if (above == bounds.begin()) return 0;
  if (above == bounds.end()) return 1;
  return (static_cast<double>(above - bounds.begin() - 1) + Between(*(above - 1), *above, text)) /
         (bounds.size() - 1);
}

/// The least text greater than all with the prefix; nullopt if there is none.
std::optional<std::string> Behind(std::string_view prefix) {
  std::string text(prefix);
  while (!text.empty() && static_cast<uint8_t>(text.back()) == 0xFF) text.pop_back();
  if (text.empty()) return std::nullopt;
  ++text.back();
  return text;
}

}  // namespace

double ShareNotNull(const proto::Column& column, uint64_t rows) {
  return rows == 0 ? 1 : 1 - Share(column.nulls(), rows);
}

double ShareOf(const proto::Column& column, uint64_t rows, const Value& value) {
  const bool text = IsText(column);
  const double number = text ? 0 : InUnits(column, value);
  for (const proto::CommonValue& common : column.common()) {
    if (text ? common.text() == value.text : static_cast<double>(common.value()) == number)
      return Share(common.rows(), rows);
  }
  if (!text && (number < static_cast<double>(column.min()) || number > static_cast<double>(column.max())))
    return 0;
  const auto others = static_cast<double>(column.distinct()) - static_cast<double>(column.common_size());
  return ShareOfOthers(column, rows) / std::max(others, 1.0);
}

std::optional<double> ShareBelow(const proto::Column& column, uint64_t rows, const Value& value,
                                 bool also_it) {
  const bool text = IsText(column);
  if (text ? column.text_histogram().empty() : value.type.real()) return std::nullopt;
  // Stored numbers are whole.
  const double number = text ? 0 : InUnits(column, value) + (also_it ? 1 : 0);
  double share = ShareOfOthers(column, rows) *
                 (text ? FractionBelow(column, value.text) : FractionBelow(column, number));
  for (const proto::CommonValue& common : column.common()) {
    const bool below = text ? common.text() < value.text || (also_it && common.text() == value.text)
                            : static_cast<double>(common.value()) < number;
    if (below) share += Share(common.rows(), rows);
  }
  return std::min(share, 1.0);
}

std::optional<double> ShareWithPrefix(const proto::Column& column, uint64_t rows, std::string_view prefix) {
  const auto below = ShareBelow(column, rows, Value::String(std::string(prefix)), false);
  if (!below.has_value()) return std::nullopt;
  const std::optional<std::string> behind = Behind(prefix);
  const double up_to = behind.has_value() ? *ShareBelow(column, rows, Value::String(*behind), false)
                                          : ShareNotNull(column, rows);
  return std::max(0.0, up_to - *below);
}

}  // namespace nam::optimizer
