#include "execution/expression/code_condition.h"

#include <algorithm>
#include <bit>
#include <string>
#include <string_view>
#include <utility>

#include "execution/expression/vector.h"
#include "types/decimal.h"
#include "types/value.h"

namespace nam::execution {
namespace {

using plan::Expr;
using plan::Op;

struct Range {
  uint64_t low;
  uint64_t high;
};
/// Codes as ascending, disjoint, nonempty ranges.
using Ranges = std::vector<Range>;

Ranges Intersect(const Ranges& a, const Ranges& b) {
  Ranges out;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const uint64_t low = std::max(a[i].low, b[j].low), high = std::min(a[i].high, b[j].high);
    if (low <= high) out.push_back({low, high});
    a[i].high < b[j].high ? ++i : ++j;
  }
  return out;
}

/// Sorts ranges and joins adjacent ones.
Ranges Joined(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.low < b.low; });
  Ranges out;
  for (const Range& range : ranges) {
    if (out.empty() || (out.back().high != UINT64_MAX && range.low > out.back().high + 1)) {
      out.push_back(range);
    } else {
      out.back().high = std::max(out.back().high, range.high);
    }
  }
  return out;
}

Ranges Unite(Ranges a, const Ranges& b) {
  a.insert(a.end(), b.begin(), b.end());
  return Joined(std::move(a));
}

/// `a` without `b`.
Ranges Without(const Ranges& a, const Ranges& b) {
  Ranges rest;  // of all codes
  uint64_t low = 0;
  for (const Range& range : b) {
    if (range.low > low) rest.push_back({low, range.low - 1});
    if (range.high == UINT64_MAX) return Intersect(a, rest);
    low = range.high + 1;
  }
  rest.push_back({low, UINT64_MAX});
  return Intersect(a, rest);
}

/// The codes for which a condition is true, and those for which it is unknown.
struct Truths {
  Ranges yes;
  Ranges unknown;
};

Op Swapped(Op op) {
  switch (op) {
    case Op::kLess:
      return Op::kGreater;
    case Op::kLessEqual:
      return Op::kGreaterEqual;
    case Op::kGreater:
      return Op::kLess;
    case Op::kGreaterEqual:
      return Op::kLessEqual;
    default:
      return op;
  }
}

/// The least text greater than all that begin with `prefix`; nullopt if there is none.
std::optional<std::string> AfterPrefix(std::string prefix) {
  while (!prefix.empty() && static_cast<uint8_t>(prefix.back()) == 0xff) prefix.pop_back();
  if (prefix.empty()) return std::nullopt;
  prefix.back() = static_cast<char>(static_cast<uint8_t>(prefix.back()) + 1);
  return prefix;
}

/// Turns conditions into ranges of codes.
class RangeFinder {
 public:
  explicit RangeFinder(const CodeMeaning& meaning) : meaning_(meaning) {
    least_ = meaning.min;
    greatest_ = meaning.max;
    if (meaning.dictionary != nullptr)
      greatest_ = std::min<__int128>(greatest_, static_cast<__int128>(meaning.dictionary->size()) - 1);
    greatest_ = std::max(greatest_, least_ - 1);  // a column without values
    values_ = Numbers(least_, greatest_);
    if (meaning.null_code) nulls_ = {{0, 0}};
  }

  const Ranges& values() const { return values_; }
  const Ranges& nulls() const { return nulls_; }

  /// nullopt if it needs more than comparisons.
  std::optional<Truths> Find(const Expr& e) const {
    switch (e.op) {
      case Op::kLiteral:
        if (e.literal.null) return Truths{{}, Unite(values_, nulls_)};
        return Truths{e.literal.number != 0 ? Unite(values_, nulls_) : Ranges{}, {}};
      case Op::kAnd:
      case Op::kOr:
        return Junction(e);
      case Op::kNot: {
        std::optional<Truths> of = Find(e.children[0]);
        if (of) of->yes = Without(Without(Unite(values_, nulls_), of->yes), of->unknown);
        return of;
      }
      case Op::kIsNull:
        if (e.children[0].op != Op::kColumn) return std::nullopt;
        return Truths{nulls_, {}};
      case Op::kIn:
        return In(e);
      case Op::kLike:
        return Like(e);
      case Op::kColumn:
        return e.type.kind == TypeKind::kBool ? std::optional(Truths{Numbers(1, 1), nulls_}) : std::nullopt;
      default:
        break;
    }
    if (e.op < Op::kEqual || e.op > Op::kGreaterEqual) return std::nullopt;
    const Expr &a = e.children[0], &b = e.children[1];
    if (a.op == Op::kColumn && b.op == Op::kLiteral) return Comparison(e.op, a.type, b);
    if (a.op == Op::kLiteral && b.op == Op::kColumn) return Comparison(Swapped(e.op), b.type, a);
    return std::nullopt;
  }

 private:
  /// The codes of the numbers, or entries, low … high.
  Ranges Numbers(__int128 low, __int128 high) const {
    low = std::max(low, least_);
    high = std::min(high, greatest_);
    if (low > high) return {};
    const auto code = [this](__int128 n) {
      return static_cast<uint64_t>(n) - static_cast<uint64_t>(meaning_.base);
    };
    return {{code(low), code(high)}};
  }
  /// The codes that compare as `op` with the numbers first … last, taken as equal. Nothing is equal if first
  /// > last.
  Ranges Where(Op op, __int128 first, __int128 last) const {
    switch (op) {
      case Op::kEqual:
        return Numbers(first, last);
      case Op::kNotEqual:
        return Without(values_, Numbers(first, last));
      case Op::kLess:
        return Numbers(least_, first - 1);
      case Op::kLessEqual:
        return Numbers(least_, last);
      case Op::kGreater:
        return Numbers(last + 1, greatest_);
      default:
        return Numbers(first, greatest_);
    }
  }

  std::optional<Truths> Comparison(Op op, const Type& column, const Expr& literal) const {
    if (literal.literal.null) return Truths{{}, Unite(values_, nulls_)};
    if (PhysicalOf(column) == Physical::kText) {
      std::string_view text = literal.literal.text;
      if (plan::IgnoresBlanks(column, literal.type)) {
        // Entries of varchar(n) may end in blanks: equal ones are not adjacent.
        if (!plan::IsChar(column)) return std::nullopt;
        text = plan::WithoutBlanks(text);
      }
      const auto first = static_cast<__int128>(meaning_.dictionary->LowerBound(text));
      return Truths{Where(op, first, meaning_.dictionary->Find(text) ? first : first - 1), nulls_};
    }
    if (column.packed()) return std::nullopt;  // their bits are in no order
    // The numbers of the column's scale that equal the literal: one, or none between two.
    const __int128 n = literal.literal.number;
    const int digits = column.scale - literal.literal.type.scale;
    const __int128 power = PowerOfTen(std::abs(digits));
    __int128 first, last;
    if (digits < 0) {
      last = n / power - (n % power < 0);
      first = last + (n % power != 0);
    } else if (__builtin_mul_overflow(n, power, &first)) {
      first = n < 0 ? least_ - 1 : greatest_ + 1;
      last = first;
    } else {
      last = first;
    }
    // Distant numbers are clamped to one beyond the column's.
    first = std::clamp(first, least_ - 1, greatest_ + 2);
    last = std::clamp(last, least_ - 2, greatest_ + 1);
    return Truths{Where(op, first, last), nulls_};
  }

  std::optional<Truths> In(const Expr& e) const {
    if (e.children[0].op != Op::kColumn || e.children[0].type.packed()) return std::nullopt;
    Truths out;
    bool null = false;
    for (size_t i = 1; i < e.children.size(); ++i) {
      const Expr& item = e.children[i];
      if (item.op != Op::kLiteral) return std::nullopt;
      if (item.literal.null) {
        null = true;
        continue;
      }
      Ranges equal;
      if (PhysicalOf(e.children[0].type) == Physical::kText) {
        const std::optional<size_t> entry = meaning_.dictionary->Find(item.literal.text);
        if (entry) equal = Numbers(static_cast<__int128>(*entry), static_cast<__int128>(*entry));
      } else {
        equal = Comparison(Op::kEqual, e.children[0].type, item)->yes;
      }
      out.yes.insert(out.yes.end(), equal.begin(), equal.end());
    }
    out.yes = Joined(std::move(out.yes));
    out.unknown = null ? Without(Unite(values_, nulls_), out.yes) : nulls_;
    return out;
  }

  /// LIKE 'x' and LIKE 'x%'.
  std::optional<Truths> Like(const Expr& e) const {
    if (e.children[0].op != Op::kColumn) return std::nullopt;
    const Type& type = e.children[0].type;
    std::string prefix = e.literal.text;
    if (prefix.find_first_of("_\\") != std::string::npos) return std::nullopt;
    const size_t end = prefix.find('%');
    const bool whole = end == std::string::npos;
    if (!whole && prefix.find_first_not_of('%', end) != std::string::npos) return std::nullopt;
    if (!whole) prefix.resize(end);
    // LIKE sees the trailing blanks of a char(n).
    if (plan::IsChar(type) && (whole || prefix.ends_with(' '))) return std::nullopt;
    const storage::Dictionary& entries = *meaning_.dictionary;
    const auto first = static_cast<__int128>(entries.LowerBound(prefix));
    __int128 behind = first + entries.Find(prefix).has_value();
    if (!whole) {
      const std::optional<std::string> after = AfterPrefix(prefix);
      behind = static_cast<__int128>(after ? entries.LowerBound(*after) : entries.size());
    }
    return Truths{Numbers(first, behind - 1), nulls_};
  }

  std::optional<Truths> Junction(const Expr& e) const {
    std::optional<Truths> all = Find(e.children[0]);
    for (size_t i = 1; all && i < e.children.size(); ++i) {
      const std::optional<Truths> side = Find(e.children[i]);
      if (!side) return std::nullopt;
      const Ranges maybe_a = Unite(all->yes, all->unknown), maybe_b = Unite(side->yes, side->unknown);
      if (e.op == Op::kAnd) {
        all->yes = Intersect(all->yes, side->yes);
        all->unknown = Without(Intersect(maybe_a, maybe_b), all->yes);
      } else {
        all->yes = Unite(std::move(all->yes), side->yes);
        all->unknown = Without(Unite(maybe_a, maybe_b), all->yes);
      }
    }
    return all;
  }

  const CodeMeaning& meaning_;
  __int128 least_, greatest_;  // numbers or entries
  Ranges values_, nulls_;
};

/// The codes for which the condition is true, by evaluating it for each; nullopt if one evaluation fails.
std::optional<Ranges> EvaluateAll(const Expr& condition, const CodeMeaning& meaning,
                                  const RangeFinder& finder) {
  const bool text = PhysicalOf(meaning.type) == Physical::kText;
  if (meaning.codes == 0 || meaning.codes > (text ? kEagerTexts : kEagerNumbers)) return std::nullopt;
  Ranges yes;
  for (const Range& range : Unite(finder.nulls(), finder.values())) {
    for (uint64_t code = range.low; code <= range.high; ++code) {
      const auto value = plan::Evaluate(condition, [&](const Expr&) {
        Value of = Value::Null(meaning.type);
        of.null = meaning.IsNull(code);
        if (of.null) return of;
        if (text) {
          of.text = std::string(meaning.Text(code));
        } else {
          of.number = meaning.Number(code);
        }
        return of;
      });
      if (!value.ok()) return std::nullopt;
      if (!value->null && value->number != 0) yes.push_back({code, code});
    }
  }
  return Joined(std::move(yes));
}

}  // namespace

bool CodeCondition::MayPass(uint64_t min, uint64_t max) const {
  min = std::max(min, low);
  max = std::min(max, high);
  if (min > max) return false;
  if (range()) return true;
  const uint64_t first = min / 32, last = max / 32;
  for (uint64_t word = first; word <= last; ++word) {
    uint32_t of = bits[word];
    if (word == first) of &= ~uint32_t{0} << min % 32;
    if (word == last) of &= ~uint32_t{0} >> (31 - max % 32);
    if (of != 0) return true;
  }
  return false;
}

uint64_t CodeCondition::Passing() const {
  if (empty()) return 0;
  if (range()) return high - low == UINT64_MAX ? UINT64_MAX : high - low + 1;
  uint64_t n = 0;
  for (const uint32_t word : bits) n += static_cast<uint64_t>(std::popcount(word));
  return n;
}

std::optional<CodeCondition> CodesOf(const Expr& condition, const CodeMeaning& meaning) {
  if (meaning.plain || plan::ColumnsOf(condition).size() != 1) return std::nullopt;
  const RangeFinder finder(meaning);
  std::optional<Ranges> yes;
  if (std::optional<Truths> truths = finder.Find(condition)) yes = std::move(truths->yes);
  if (!yes) yes = EvaluateAll(condition, meaning, finder);
  if (!yes) return std::nullopt;
  CodeCondition out;
  if (yes->empty()) return out;
  out.low = yes->front().low;
  out.high = yes->back().high;
  if (yes->size() == 1) return out;
  if (out.high >= kSetCodes) return std::nullopt;
  out.bits.resize(out.high / 32 + 1);
  for (const Range& range : *yes) {
    for (uint64_t code = range.low; code <= range.high; ++code)
      out.bits[code / 32] |= uint32_t{1} << code % 32;
  }
  return out;
}

}  // namespace nam::execution
