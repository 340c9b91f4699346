#include "dataset/tbl_line.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "base/utf8.h"
#include "types/date.h"
#include "types/value.h"

namespace nam::dataset {
namespace {

/// For messages: printable and short, whatever the input.
std::string Quoted(std::string_view field) {
  constexpr size_t kBytesMax = 40;
  const std::string start(field.substr(0, kBytesMax));
  return absl::StrFormat("\"%s\"%s", absl::CHexEscape(start), field.size() > kBytesMax ? " …" : "");
}

/// False if it is not an integer; sets `overflow` if it is one of more than 64 bits.
bool ParseInteger(std::string_view field, int64_t& value, bool& overflow) {
  constexpr size_t kSafeDigits = 18;
  const bool negative = !field.empty() && field[0] == '-';
  const std::string_view digits = field.substr(negative);
  if (digits.empty()) return false;
  uint64_t sum = 0;
  for (const char c : digits) {
    const auto digit = static_cast<unsigned char>(c - '0');
    if (digit > 9) return false;
    sum = sum * 10 + digit;
  }
  if (digits.size() <= kSafeDigits) {
    value = negative ? -static_cast<int64_t>(sum) : static_cast<int64_t>(sum);
    return true;
  }
  overflow = std::from_chars(field.data(), field.data() + field.size(), value).ec != std::errc();
  return true;
}

/// Some builds of dbgen write `1992-01-01` instead of the specification's 19920101.
bool ParseDashedDate(std::string_view field, int64_t& value) {
  if (field.size() != 10 || field[4] != '-' || field[7] != '-') return false;
  const absl::StatusOr<int64_t> days = ParseDate(field);
  if (!days.ok()) return false;
  const CivilDate date = CivilFromDays(*days);
  value = date.year * 10'000 + date.month * 100 + date.day;
  return true;
}

/// True for ASCII without NUL.
bool IsPlain(std::string_view text) {
  constexpr uint64_t kHighest = 0x8080808080808080, kOnes = 0x0101010101010101;
  uint64_t seen = 0;
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + i, sizeof word);
    seen |=
        word | (word - kOnes);  // the top bit marks a byte that is not ASCII, or that borrows: the first zero
  }
  for (; i < text.size(); ++i)
    seen |= static_cast<unsigned char>(text[i] - 1) | static_cast<unsigned char>(text[i]);
  return (seen & kHighest) == 0;
}

/// Parses `-12.3` as an integer of `scale` decimals. False if it is not such a number or has more decimals.
bool ParseDecimal(std::string_view field, int scale, int64_t& value, bool& overflow) {
  constexpr size_t kDigitsMax = 18;
  const bool negative = field.starts_with('-');
  field.remove_prefix(negative ? 1 : 0);
  const size_t point = std::min(field.find('.'), field.size());
  const std::string_view whole = field.substr(0, point);
  const std::string_view fraction = field.substr(std::min(point + 1, field.size()));
  if (whole.size() + fraction.size() == 0 || fraction.size() > static_cast<size_t>(scale)) return false;
  value = 0;
  const auto append = [&](std::string_view digits) {
    for (const char c : digits) {
      if (c < '0' || c > '9') return false;
      if (!overflow) value = value * 10 + (c - '0');
    }
    return true;
  };
  overflow = whole.size() + static_cast<size_t>(scale) > kDigitsMax;
  if (!append(whole) || !append(fraction)) return false;
  for (size_t i = fraction.size(); i < static_cast<size_t>(scale); ++i) append("0");
  if (negative) value = -value;
  return true;
}

/// Parses yyyy-mm-dd as days since 1970-01-01.
bool ParseDay(std::string_view field, int64_t& value) {
  if (field.size() != 10 || field[4] != '-' || field[7] != '-') return false;
  const absl::StatusOr<int64_t> days = ParseDate(field);
  if (days.ok()) value = *days;
  return days.ok();
}

const char* Noun(TypeKind kind) {
  return kind == TypeKind::kDecimal ? "a decimal" : kind == TypeKind::kDate ? "a date" : "an integer";
}

}  // namespace

TblLineParser::TblLineParser(const Table& table) {
  for (const partitioner::ColumnSchema& column : table.schema.columns) {
    const bool is_key =
        std::find(table.date_keys.begin(), table.date_keys.end(), column.name) != table.date_keys.end();
    const Kind kind = column.type.kind == TypeKind::kString    ? Kind::kText
                      : column.type.kind == TypeKind::kDecimal ? Kind::kDecimal
                      : column.type.kind == TypeKind::kDate    ? Kind::kDate
                      : is_key                                 ? Kind::kDateKey
                                                               : Kind::kInteger;
    columns_.push_back({column.name, kind, column.type.length, column.type.scale, Noun(column.type.kind)});
  }
}

std::string TblLineParser::ColumnText(size_t column) const {
  if (column >= columns_.size()) return absl::StrFormat("column %d", column + 1);
  return absl::StrFormat("column %d (%s)", column + 1, columns_[column].name);
}

std::optional<std::string> TblLineParser::Parse(std::string_view line,
                                                partitioner::ColumnBatch& batch) const {
  const char* at = line.data();
  const char* const end = at + line.size();
  for (size_t i = 0; i < columns_.size(); ++i) {
    const char* separator = at == end ? nullptr : static_cast<const char*>(std::memchr(at, '|', end - at));
    const bool last = i + 1 == columns_.size();
    if (separator == nullptr && !last) return WrongFieldCount(line);
    // `a|b|` is two fields and dbgen's closing separator, not three fields with an empty last one.
    if (last && (at == end || (separator != nullptr && separator + 1 != end))) return WrongFieldCount(line);
    const char* const field_end = separator == nullptr ? end : separator;
    const std::string_view field(at, field_end - at);
    if (auto reason = ParseField(columns_[i], field, batch.column(i))) {
      return absl::StrFormat("%s: %s", ColumnText(i), *reason);
    }
    at = separator == nullptr ? end : separator + 1;
  }
  batch.set_rows(batch.rows() + 1);
  return std::nullopt;
}

std::optional<std::string> TblLineParser::ParseText(const Column& column, std::string_view field,
                                                    partitioner::ColumnBatch::Column& out) {
  size_t characters = field.size();
  if (!IsPlain(field)) {
    if (int bad = 0; !IsCleanUtf8(field, &bad)) {
      const bool zero = field[static_cast<size_t>(bad)] == 0;
      return absl::StrFormat(zero ? "%s is not valid text: it has a zero byte" : "%s is not valid UTF-8",
                             Quoted(field));
    }
    characters = CountCharacters(field);
  }
  if (characters > column.length) {
    return absl::StrFormat("%s has %d characters, more than varchar(%d) holds", Quoted(field), characters,
                           column.length);
  }
  out.strings.push_back(field);
  return std::nullopt;
}

std::optional<std::string> TblLineParser::ParseField(const Column& column, std::string_view field,
                                                     partitioner::ColumnBatch::Column& out) const {
  if (column.kind == Kind::kText) return ParseText(column, field, out);
  int64_t value = 0;
  bool overflow = false;
  bool parsed = false;
  switch (column.kind) {
    case Kind::kDecimal:
      parsed = ParseDecimal(field, column.scale, value, overflow);
      break;
    case Kind::kDate:
      parsed = ParseDay(field, value);
      break;
    case Kind::kDateKey:
      parsed = ParseInteger(field, value, overflow) || ParseDashedDate(field, value);
      break;
    default:
      parsed = ParseInteger(field, value, overflow);
  }
  if (!parsed) {
    if (field.empty()) return absl::StrFormat("empty instead of %s", column.type);
    if (column.kind == Kind::kDecimal)
      return absl::StrFormat("%s is not a decimal with at most %d digits after the point", Quoted(field),
                             column.scale);
    return absl::StrFormat("%s is not %s", Quoted(field), column.type);
  }
  if (overflow) {
    if (column.kind == Kind::kDecimal) return absl::StrFormat("%s has more than 18 digits", Quoted(field));
    return absl::StrFormat("%s is out of range for a 64-bit integer", Quoted(field));
  }
  out.numbers.push_back(value);
  return std::nullopt;
}

std::string TblLineParser::WrongFieldCount(std::string_view line) const {
  if (line.empty()) return absl::StrFormat("%s: missing, the line is empty", ColumnText(0));
  const size_t fields = static_cast<size_t>(std::count(line.begin(), line.end(), '|')) + (line.back() != '|');
  const bool too_few = fields < columns_.size();
  return absl::StrFormat("%s: %s, the line has %d fields instead of %d",
                         ColumnText(too_few ? fields : columns_.size()), too_few ? "missing" : "unexpected",
                         fields, columns_.size());
}

}  // namespace nam::dataset
