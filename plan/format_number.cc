#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "plan/function_families.h"
#include "types/decimal.h"
#include "types/sql_error.h"

/// to_char of numbers: PostgreSQL's pattern language, in the C locale.
namespace nam::plan {
namespace {

enum class PatternPart : uint8_t {
  kText,  // literal
  kNine,
  kZero,
  kPoint,  // . or D
  kComma,  // , or G
  kCurrency,
  kMinus,
  kPlus,
  kSign,
  kRoman,
  kRomanLower,
  kOrdinal,
  kOrdinalLower,
  kExponent,
  kNothing,  // FM, S, PR, V, B, …: they change other parts
};

struct PatternElement {
  PatternPart part;
  std::string text;  // kText: one character or one quoted text
};

/// The place of the sign of S.
enum class Locked : uint8_t { kNone, kBefore, kBehind };

struct Pattern {
  std::vector<PatternElement> elements;
  int before = 0, behind = 0;        // digits on both sides of the point
  int zero_start = 0, zero_end = 0;  // 1-based; 0: none
  int shift = 0;                     // V: digits after it
  int signs_before = 0;              // digits before S
  Locked locked = Locked::kNone;
  bool fill = true, zero = false, point = false, brackets = false, minus = false, plus = false, roman = false,
       shifts = false, exponent = false, locked_sign = false;
};

/// Reads a pattern from left to right.
class PatternReader {
 public:
  PatternReader(std::string_view text, int position) : left_(text), position_(position) {}

  absl::StatusOr<Pattern> Read() {
    while (!left_.empty()) {
      const std::string_view keyword = Keyword();
      if (keyword.empty()) {
        Text();
        continue;
      }
      left_.remove_prefix(keyword.size());
      NAM_RETURN_IF_ERROR(Add(keyword));
    }
    return std::move(out_);
  }

 private:
  absl::Status Bad(const char* what) const { return UserError(sqlstate::kSyntaxError, what, position_); }

  std::string_view Keyword() const {
    constexpr std::string_view kKeywords[] = {",",  ".",  "0",  "9",  "B",  "C",    "D",  "EEEE", "FM",
                                              "G",  "L",  "MI", "PL", "PR", "RN",   "SG", "SP",   "S",
                                              "TH", "V",  "b",  "c",  "d",  "eeee", "fm", "g",    "l",
                                              "mi", "pl", "pr", "rn", "sg", "sp",   "s",  "th",   "v"};
    for (const std::string_view keyword : kKeywords) {
      if (left_.starts_with(keyword)) return keyword;
    }
    return {};
  }

  void ConsumeCharacter(std::string* text) {
    const size_t bytes = CharacterBytes(left_, 0);
    text->append(left_.substr(0, bytes));
    left_.remove_prefix(bytes);
  }

  void Text() {
    std::string text;
    if (left_[0] == '"') {
      left_.remove_prefix(1);
      while (!left_.empty() && left_[0] != '"') {
        if (left_[0] == '\\' && left_.size() > 1) left_.remove_prefix(1);
        ConsumeCharacter(&text);
      }
      if (!left_.empty()) left_.remove_prefix(1);
    } else {
      if (left_.starts_with("\\\"")) left_.remove_prefix(1);
      ConsumeCharacter(&text);
    }
    out_.elements.push_back({PatternPart::kText, std::move(text)});
  }

  absl::Status Add(std::string_view keyword) {
    if (out_.exponent && absl::AsciiStrToUpper(std::string(keyword)) != "EEEE")
      return Bad("\"EEEE\" must be the last pattern used");
    const char c = absl::ascii_toupper(static_cast<unsigned char>(keyword[0]));
    if (keyword.size() > 1) return Word(absl::AsciiStrToUpper(std::string(keyword)), keyword[0]);
    switch (c) {
      case '9':
        return Nine();
      case '0':
        return Zero();
      case '.':
      case 'D':
        return Point();
      case ',':
      case 'G':
        return Put(PatternPart::kComma);
      case 'L':
        return Put(PatternPart::kCurrency);
      case 'S':
        return LockedSign();
      case 'V':
        if (out_.point) return Bad("cannot use \"V\" and decimal point together");
        out_.shifts = true;
        return Put(PatternPart::kNothing);
      default:
        return Put(PatternPart::kNothing);
    }
  }

  absl::Status Put(PatternPart part) {
    out_.elements.push_back({part, {}});
    return absl::OkStatus();
  }

  absl::Status Nine() {
    if (out_.brackets) return Bad("\"9\" must be ahead of \"PR\"");
    ++(out_.shifts ? out_.shift : out_.point ? out_.behind : out_.before);
    return Put(PatternPart::kNine);
  }

  absl::Status Zero() {
    if (out_.brackets) return Bad("\"0\" must be ahead of \"PR\"");
    if (!out_.zero && !out_.point) {
      out_.zero = true;
      out_.zero_start = out_.before + 1;
    }
    ++(out_.point ? out_.behind : out_.before);
    out_.zero_end = out_.before + out_.behind;
    return Put(PatternPart::kZero);
  }

  absl::Status Point() {
    if (out_.point) return Bad("multiple decimal points");
    if (out_.shifts) return Bad("cannot use \"V\" and decimal point together");
    out_.point = true;
    return Put(PatternPart::kPoint);
  }

  absl::Status LockedSign() {
    if (out_.locked_sign) return Bad("cannot use \"S\" twice");
    if (out_.plus || out_.minus || out_.brackets)
      return Bad("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together");
    if (!out_.point) {
      out_.locked = Locked::kBefore;
      out_.signs_before = out_.before;
    } else {
      out_.locked = Locked::kBehind;
    }
    out_.locked_sign = true;
    return Put(PatternPart::kNothing);
  }

  absl::Status Word(const std::string& word, char first) {
    const bool lower = absl::ascii_islower(static_cast<unsigned char>(first)) != 0;
    if (word == "FM") out_.fill = false;
    if (word == "RN") {
      out_.roman = true;
      return Put(lower ? PatternPart::kRomanLower : PatternPart::kRoman);
    }
    if (word == "TH") return Put(lower ? PatternPart::kOrdinalLower : PatternPart::kOrdinal);
    if (word == "MI" || word == "PL" || word == "SG") {
      if (out_.locked_sign) return Bad("cannot use \"S\" and \"MI\", \"PL\" or \"SG\" together");
      out_.minus = out_.minus || word != "PL";
      out_.plus = out_.plus || word != "MI";
      return Put(word == "MI" ? PatternPart::kMinus : word == "PL" ? PatternPart::kPlus : PatternPart::kSign);
    }
    if (word == "PR") {
      if (out_.locked_sign || out_.plus || out_.minus)
        return Bad("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together");
      out_.brackets = true;
    }
    if (word == "EEEE") {
      if (out_.exponent) return Bad("cannot use \"EEEE\" twice");
      if (!out_.fill || out_.locked_sign || out_.brackets || out_.minus || out_.plus || out_.roman ||
          out_.shifts) {
        return Bad("\"EEEE\" is incompatible with other formats");
      }
      out_.exponent = true;
      return Put(PatternPart::kExponent);
    }
    return Put(PatternPart::kNothing);
  }

  std::string_view left_;
  const int position_;
  Pattern out_;
};

/// A number to print: its digits, a point if the pattern has one, and its sign.
struct Digits {
  std::string text;
  bool negative = false;
};

/// Fills a pattern with digits, one place after the other, like PostgreSQL's NUM_processor.
class NumberPrinter {
 public:
  NumberPrinter(Pattern pattern, Digits digits, int blanks)
      : pattern_(std::move(pattern)),
        digits_(std::move(digits.text)),
        negative_(digits.negative),
        blanks_(blanks) {
    if (pattern_.zero_start > 0) --pattern_.zero_start;
    PlaceSign();
    places_ = pattern_.behind + pattern_.before - 1;
    if (!pattern_.fill && pattern_.point) FindRelevant();
    if (!sign_written_ && blanks_ == 0) ++places_;
  }

  std::string Print() {
    for (const PatternElement& element : pattern_.elements) PutElement(element);
    return std::move(out_);
  }

 private:
  static constexpr size_t kNone = std::string::npos;

  void PlaceSign() {
    if (pattern_.plus || pattern_.minus) {
      sign_written_ = pattern_.minus;
      return;
    }
    if (!negative_ && !pattern_.fill) pattern_.brackets = false;
    sign_written_ = !negative_ && !pattern_.fill && !pattern_.locked_sign;
    if (pattern_.locked == Locked::kBefore && pattern_.before == pattern_.signs_before)
      pattern_.locked = Locked::kBehind;
  }

  /// Finds the last digit that FM keeps.
  void FindRelevant() {
    const size_t point = digits_.find('.');
    if (point == kNone) return;
    last_relevant_ = std::max(point, digits_.find_last_not_of("0."));
    if (digits_.find_last_not_of("0.") == kNone) last_relevant_ = point;
    if (pattern_.zero_end <= blanks_) return;
    const auto last_zero =
        std::min<size_t>(digits_.size() - 1, static_cast<size_t>(pattern_.zero_end - blanks_));
    last_relevant_ = std::max(last_relevant_, last_zero);
  }
  bool EndsAtPoint() const { return last_relevant_ != kNone && At(last_relevant_) == '.'; }

  char At(size_t at) const { return at < digits_.size() ? digits_[at] : '\0'; }

  /// Whether this is a 0 before the point that the pattern does not request.
  bool IsLeadingZero() const { return !pattern_.zero && next_ == 0 && At(0) == '0' && pattern_.behind != 0; }

  void PutElement(const PatternElement& element) {
    switch (element.part) {
      case PatternPart::kText:
        out_ += element.text;
        return;
      case PatternPart::kNine:
      case PatternPart::kZero:
      case PatternPart::kPoint:
        return PutPlace(element.part);
      case PatternPart::kComma:
        if (inside_) {
          out_ += ',';
        } else if (pattern_.fill) {
          out_ += ' ';
        }
        return;
      case PatternPart::kCurrency:
        out_ += ' ';
        return;
      case PatternPart::kMinus:
        PutSign(negative_, '-');
        return;
      case PatternPart::kPlus:
        PutSign(!negative_, '+');
        return;
      case PatternPart::kSign:
        out_ += negative_ ? '-' : '+';
        return;
      case PatternPart::kOrdinal:
      case PatternPart::kOrdinalLower:
        return PutOrdinal(element.part == PatternPart::kOrdinal);
      default:
        return;
    }
  }

  void PutSign(bool there, char sign) {
    if (there) {
      out_ += sign;
    } else if (pattern_.fill) {
      out_ += ' ';
    }
  }

  void PutOrdinal(bool upper) {
    if (At(0) == '#' || negative_ || pattern_.point) return;
    const char last = digits_.empty() ? '0' : digits_.back();
    const bool teen = digits_.size() > 1 && digits_[digits_.size() - 2] == '1';
    const char* ordinal = teen || last == '0' || last > '3' ? "th"
                          : last == '1'                     ? "st"
                          : last == '2'                     ? "nd"
                                                            : "rd";
    out_ += upper ? absl::AsciiStrToUpper(ordinal) : ordinal;
  }

  void PutPlace(PatternPart part) {
    inside_ = false;
    if (!sign_written_ && (place_ >= blanks_ || (pattern_.zero && pattern_.zero_start == place_)) &&
        (!IsLeadingZero() || EndsAtPoint())) {
      PutLeadingSign();
    }
    if (place_ < blanks_ && (pattern_.zero_start > place_ || !pattern_.zero)) {
      if (pattern_.fill) out_ += ' ';
    } else if (place_ < blanks_ && pattern_.zero) {
      out_ += '0';
      inside_ = true;
    } else {
      PutDigit(part);
      if (next_ < digits_.size()) ++next_;
    }
    int end = places_ + (blanks_ != 0 ? 1 : 0) + (pattern_.point ? 1 : 0);
    if (last_relevant_ != kNone && last_relevant_ == next_) end = place_;
    if (place_ + 1 == end) PutClosingSign();
    ++place_;
  }

  void PutLeadingSign() {
    if (pattern_.locked_sign) {
      if (pattern_.locked != Locked::kBefore) return;
      out_ += negative_ ? '-' : '+';
    } else if (pattern_.brackets) {
      out_ += negative_ ? '<' : ' ';
    } else if (negative_) {
      out_ += '-';
    } else if (pattern_.fill) {
      out_ += ' ';
    }
    sign_written_ = true;
  }

  void PutClosingSign() {
    if (sign_written_ && pattern_.brackets) {
      out_ += negative_ ? '>' : ' ';
    } else if (pattern_.locked_sign && pattern_.locked == Locked::kBehind) {
      out_ += negative_ ? '-' : '+';
    }
  }

  void PutDigit(PatternPart part) {
    if (At(next_) == '.') {
      if (!EndsAtPoint() || !pattern_.fill) out_ += '.';
      return;
    }
    if (last_relevant_ != kNone && next_ > last_relevant_ && part != PatternPart::kZero) return;
    if (IsLeadingZero()) {
      if (pattern_.fill) {
        out_ += ' ';
      } else if (EndsAtPoint()) {
        out_ += '0';
      }
      return;
    }
    if (next_ < digits_.size()) out_ += digits_[next_];
    inside_ = true;
  }

  Pattern pattern_;
  const std::string digits_;
  const bool negative_;
  const int blanks_;  // places before the first digit
  int places_ = 0, place_ = 0;
  size_t next_ = 0;               // the next digit
  size_t last_relevant_ = kNone;  // digit or point
  bool sign_written_ = false;
  bool inside_ = false;  // the place before held a digit
  std::string out_;
};

std::string RomanOf(int64_t n) {
  constexpr int kMostRoman = 3999, kRomanWidth = 15;
  if (n < 1 || n > kMostRoman) return std::string(kRomanWidth, '#');
  constexpr std::pair<int, const char*> kNumerals[] = {
      {1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"},
      {40, "XL"},  {10, "X"},   {9, "IX"},  {5, "V"},    {4, "IV"},  {1, "I"}};
  std::string out;
  for (const auto& [value, numeral] : kNumerals) {
    for (; n >= value; n -= value) out += numeral;
  }
  return out;
}

std::string PrintRoman(const Pattern& pattern, int64_t n) {
  std::string out;
  for (const PatternElement& element : pattern.elements) {
    if (element.part == PatternPart::kText) out += element.text;
    if (element.part != PatternPart::kRoman && element.part != PatternPart::kRomanLower) continue;
    const std::string roman =
        element.part == PatternPart::kRoman ? RomanOf(n) : absl::AsciiStrToLower(RomanOf(n));
    out += pattern.fill ? absl::StrFormat("%15s", roman) : roman;
  }
  return out;
}

/// `d.ddde±xx` of a decimal, rounded half away from zero.
std::string Scientific(__int128 n, int scale, int decimals) {
  const bool negative = n < 0;
  std::string digits = Int128ToString(negative ? -n : n);
  int exponent = static_cast<int>(digits.size()) - 1 - scale;
  if (n == 0) exponent = 0;
  const size_t kept = static_cast<size_t>(decimals) + 1;
  if (digits.size() > kept) {
    const __int128 power = PowerOfTen(static_cast<int>(digits.size() - kept));
    const __int128 all = negative ? -n : n;
    const __int128 rounded = all / power + (all % power >= power - all % power ? 1 : 0);
    digits = Int128ToString(rounded);
    if (digits.size() > kept) {
      digits.pop_back();
      ++exponent;
    }
  }
  digits.resize(kept, '0');
  return absl::StrFormat("%s%c%s%se%c%02d", negative ? "-" : " ", digits[0], decimals > 0 ? "." : "",
                         digits.substr(1), exponent < 0 ? '-' : '+', std::abs(exponent));
}

absl::StatusOr<Value> FormatExact(const Expr& call, Pattern pattern, __int128 n, int scale) {
  if (pattern.roman) {
    const std::optional<__int128> whole = Rescale(n, scale, 0);
    if (!whole || !FitsInteger(*whole, 4)) return IntegerOutOfRange(4, call.position);
    return Value::String(PrintRoman(pattern, static_cast<int64_t>(*whole)));
  }
  if (pattern.exponent) return Value::String(Scientific(n, scale, pattern.behind));
  if (pattern.shifts) {
    if (pattern.shift > kMaxDecimalDigits) return NumberOutOfRange(call.position);
    const std::optional<__int128> shifted = MultiplyDecimals(n, PowerOfTen(pattern.shift));
    if (!shifted) return NumberOutOfRange(call.position);
    n = *shifted;
    pattern.before += pattern.shift;
  }
  // Decimals beyond those that the number has are zeros.
  const int kept = std::min(pattern.behind, scale);
  const std::optional<__int128> rounded = Rescale(n, scale, kept);
  if (!rounded) return NumberOutOfRange(call.position);
  Digits digits{Int128ToString(*rounded < 0 ? -*rounded : *rounded), *rounded < 0};
  if (digits.text.size() <= static_cast<size_t>(kept))
    digits.text.insert(0, kept + 1 - digits.text.size(), '0');
  const auto whole = static_cast<int>(digits.text.size()) - kept;
  if (pattern.behind > 0) {
    digits.text.insert(static_cast<size_t>(whole), 1, '.');
    digits.text.append(static_cast<size_t>(pattern.behind - kept), '0');
  }
  int blanks = 0;
  if (pattern.before > whole) {
    blanks = pattern.before - whole;
  } else if (whole > pattern.before) {
    digits.text = std::string(static_cast<size_t>(pattern.before + pattern.behind) + 1, '#');
    digits.text[static_cast<size_t>(pattern.before)] = '.';
  }
  return Value::String(NumberPrinter(std::move(pattern), std::move(digits), blanks).Print());
}

/// NaN and Infinity as they are printed everywhere.
std::string FixedText(double x, int decimals) {
  return std::isfinite(x) ? absl::StrFormat("%.*f", decimals, x) : RealText(x, /*real=*/false);
}

/// Numbers of 64 bits have 15 digits that mean something.
absl::StatusOr<Value> FormatReal(const Expr& call, Pattern pattern, double x) {
  constexpr int kMostDigits = 15;
  if (pattern.roman) {
    const double whole = std::rint(x);
    if (!(std::abs(whole) < 2147483648.0)) return IntegerOutOfRange(4, call.position);
    return Value::String(PrintRoman(pattern, static_cast<int64_t>(whole)));
  }
  if (pattern.exponent) {
    if (!std::isfinite(x)) {
      std::string filled(static_cast<size_t>(pattern.before + pattern.behind) + 6, '#');
      filled[0] = ' ';
      filled[static_cast<size_t>(pattern.before) + 1] = '.';
      return Value::String(filled);
    }
    std::string text = absl::StrFormat("%+.*e", pattern.behind, x);
    if (text[0] == '+') text[0] = ' ';
    return Value::String(text);
  }
  if (pattern.shifts) {
    x *= std::pow(10.0, pattern.shift);
    pattern.before += pattern.shift;
  }
  std::string text = FixedText(std::abs(x), 0);
  const auto length = static_cast<int>(text.size());
  if (length >= kMostDigits) {
    pattern.behind = 0;
  } else if (length + pattern.behind > kMostDigits) {
    pattern.behind = kMostDigits - length;
  }
  Digits digits{FixedText(x, pattern.behind)};
  digits.negative = digits.text[0] == '-';
  if (digits.negative) digits.text.erase(0, 1);
  const size_t point = digits.text.find('.');
  const auto whole = static_cast<int>(point == std::string::npos ? digits.text.size() : point);
  int blanks = 0;
  if (pattern.before > whole) {
    blanks = pattern.before - whole;
  } else if (whole > pattern.before) {
    digits.text = std::string(static_cast<size_t>(pattern.before + pattern.behind) + 1, '#');
    digits.text[static_cast<size_t>(pattern.before)] = '.';
  }
  return Value::String(NumberPrinter(std::move(pattern), std::move(digits), blanks).Print());
}

}  // namespace

absl::StatusOr<Value> FormatNumber(const Expr& call, const Value& number, std::string_view text) {
  // The places of a pattern are counted; a longer one than that is a mistake.
  constexpr size_t kLongestPatternBytes = 4096;
  if (text.size() > kLongestPatternBytes) {
    return UserError(sqlstate::kLimitExceeded, "the pattern of to_char is too long", call.position,
                     "it has at most 4096 bytes");
  }
  if (text.empty()) return Value::String("");
  NAM_ASSIGN_OR_RETURN(Pattern pattern, PatternReader(text, call.position).Read());
  if (number.type.real()) return FormatReal(call, std::move(pattern), number.real());
  if (number.type.kind == TypeKind::kNumeric) {
    const Numeric own = number.unpacked();
    return FormatExact(call, std::move(pattern), own.digits, own.scale);
  }
  return FormatExact(call, std::move(pattern), number.number, number.type.scale);
}

}  // namespace nam::plan
