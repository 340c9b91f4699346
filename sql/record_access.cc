#include "sql/record_access.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "plan/expression_tree.h"
#include "plan/function.h"
#include "types/decimal.h"
#include "types/numeric.h"
#include "types/wire.h"

namespace nam::sql {
namespace {

using partitioner::KeyColumnsOf;
using partitioner::RecordLayout;
using partitioner::SuccessorOfPrefix;
using plan::Expr;
using plan::KeyedColumn;
using plan::Op;

constexpr size_t kLongestList = 1024;  // of an IN that is more than a filter

/// The conjuncts' restriction of one column's values, as an index's bytes: from low to high, both included,
/// and of these only `points` if there are any. All have the column's width.
struct Domain {
  std::string low;
  std::string high;
  std::optional<std::set<std::string>> points;
  std::vector<size_t> conjuncts;  // conjuncts that it covers

  bool empty() const { return low > high || (points.has_value() && points->empty()); }
  bool given() const { return points.has_value() || low == high; }
  /// The range that is left.
  const std::string& least() const { return points.has_value() ? *points->begin() : low; }
  const std::string& greatest() const { return points.has_value() ? *points->rbegin() : high; }

  void KeepPoints(std::set<std::string> kept) {
    if (points.has_value()) {
      std::erase_if(kept, [&](const std::string& point) { return !points->contains(point); });
    }
    points = std::move(kept);
    Trim();
  }
  void Trim() {
    if (points.has_value())
      std::erase_if(*points, [&](const std::string& point) { return point < low || point > high; });
  }
};

/// floor(n / 10^digits)
__int128 FloorShift(__int128 n, int digits) {
  const __int128 power = PowerOfTen(digits);
  return n / power - (n % power < 0);
}

/// The place of a constant among a column's values.
struct Cut {
  enum class Side : uint8_t { kBelowAll, kAboveAll, kAt, kBehind };
  Side side = Side::kAt;
  std::string bytes;  // kAt: the constant itself; kBehind: the largest value below it
};

class Domains {
 public:
  Domains(const proto::Table& table, const RecordLayout& layout) : layout_(layout) {
    for (int i = 0; i < table.columns_size(); ++i) {
      const auto c = static_cast<uint32_t>(i);
      types_.push_back(ColumnTypeOf(table.columns(i).type()));
      std::string prefix_low, prefix_high;
      if (layout.nullable(c)) {
        prefix_low.push_back(0);
        prefix_high.push_back(1);
      }
      domains_.push_back({prefix_low.append(layout.bytes(c), '\0'),
                          prefix_high.append(layout.bytes(c), '\xff'),
                          std::nullopt,
                          {}});
    }
  }

  /// False if the conjunct has no form in bytes.
  bool Take(const Expr& conjunct, size_t number) {
    if (!Apply(conjunct)) return false;
    domains_[column_].conjuncts.push_back(number);
    return true;
  }

  const Domain& operator[](uint32_t column) const { return domains_[column]; }
  bool AnyEmpty() const {
    return std::any_of(domains_.begin(), domains_.end(), [](const Domain& d) { return d.empty(); });
  }
  /// Whether it is less than all of the column's values.
  bool Restricted(uint32_t column) const { return !domains_[column].conjuncts.empty(); }

 private:
  bool Apply(const Expr& e) {
    switch (e.op) {
      case Op::kEqual:
      case Op::kLess:
      case Op::kLessEqual:
      case Op::kGreater:
      case Op::kGreaterEqual:
        return ApplyComparison(e);
      case Op::kIn:
        return ApplyIn(e);
      case Op::kIsNull:
        return ApplyNull(KeyedColumn(e.children[0]), true);
      case Op::kNot: {
        const Expr& test = e.children[0];
        return test.op == Op::kIsNull && ApplyNull(KeyedColumn(test.children[0]), false);
      }
      default:
        return false;
    }
  }

  bool ApplyComparison(const Expr& e) {
    const bool swapped = IsLiteral(e.children[0]);
    const Expr& side = e.children[swapped ? 1 : 0];
    const Expr& literal = e.children[swapped ? 0 : 1];
    const Expr* const column = KeyedColumn(side);
    if (column == nullptr || !IsLiteral(literal)) return false;
    Select(*column);
    if (literal.literal.null) {
      Clear();
      return true;
    }
    if (!BytesDecide(side.type, literal.type)) return false;
    Op op = e.op;
    if (swapped) {
      op = op == Op::kLess           ? Op::kGreater
           : op == Op::kLessEqual    ? Op::kGreaterEqual
           : op == Op::kGreater      ? Op::kLess
           : op == Op::kGreaterEqual ? Op::kLessEqual
                                     : op;
    }
    NotNull();
    Value constant = literal.literal;
    // A char(n) column holds no blanks at the end.
    if (plan::IgnoresBlanks(side.type, literal.type))
      constant.text.resize(plan::WithoutBlanks(constant.text).size());
    const Cut cut = CutAt(constant);
    if (op == Op::kEqual) {
      KeepPoint(cut);
    } else if (op == Op::kLess || op == Op::kLessEqual) {
      KeepBelow(cut, op == Op::kLessEqual);
    } else {
      KeepAbove(cut, op == Op::kGreaterEqual);
    }
    return true;
  }

  bool ApplyIn(const Expr& e) {
    const Expr* const column = KeyedColumn(e.children[0]);
    if (column == nullptr || e.children.size() > kLongestList) return false;
    // A list's strings are compared by their bytes.
    if (column->type.kind == TypeKind::kInterval) return false;
    Select(*column);
    std::set<std::string> points;
    for (size_t i = 1; i < e.children.size(); ++i) {
      if (!IsLiteral(e.children[i])) return false;
      if (e.children[i].literal.null) continue;
      if (!IsNumericOrKey(e.children[0].type, e.children[i].type)) return false;
      Cut cut = CutAt(e.children[i].literal);
      if (cut.side == Cut::Side::kAt) points.insert(std::move(cut.bytes));
    }
    NotNull();
    domain().KeepPoints(std::move(points));
    return true;
  }

  bool ApplyNull(const Expr* column, bool null) {
    if (column == nullptr) return false;
    Select(*column);
    if (!null) {
      NotNull();
    } else if (layout_.nullable(column_)) {
      // A NULL's bytes are zero.
      KeepFrom(std::string(1, 1).append(layout_.bytes(column_), '\0'));
      KeepUpTo(std::string(1, 1).append(layout_.bytes(column_), '\0'));
    } else {
      Clear();
    }
    return true;
  }

  void Select(const Expr& column) { column_ = static_cast<uint32_t>(column.column.column); }
  Domain& domain() { return domains_[column_]; }

  void Clear() { KeepPoint({Cut::Side::kAboveAll, {}}); }
  void NotNull() {
    if (layout_.nullable(column_)) KeepUpTo(std::string(1, '\0').append(layout_.bytes(column_), '\xff'));
  }
  void KeepFrom(std::string low) {
    domain().low = std::max(domain().low, std::move(low));
    domain().Trim();
  }
  void KeepUpTo(std::string high) {
    domain().high = std::min(domain().high, std::move(high));
    domain().Trim();
  }
  void KeepPoint(Cut cut) {
    std::set<std::string> points;
    if (cut.side == Cut::Side::kAt) points.insert(std::move(cut.bytes));
    domain().KeepPoints(std::move(points));
  }
  void KeepBelow(const Cut& cut, bool inclusive) {
    if (cut.side == Cut::Side::kAboveAll) return;
    if (cut.side == Cut::Side::kBelowAll) return Clear();
    if (cut.side == Cut::Side::kBehind || inclusive) return KeepUpTo(cut.bytes);
    std::optional<std::string> below = Predecessor(cut.bytes);
    below.has_value() ? KeepUpTo(*std::move(below)) : Clear();
  }
  void KeepAbove(const Cut& cut, bool inclusive) {
    if (cut.side == Cut::Side::kBelowAll) return;
    if (cut.side == Cut::Side::kAboveAll) return Clear();
    if (cut.side == Cut::Side::kAt && inclusive) return KeepFrom(cut.bytes);
    std::optional<std::string> above = Successor(cut.bytes);
    above.has_value() ? KeepFrom(*std::move(above)) : Clear();
  }

  /// The string of the same width right before or after; nullopt at the end.
  static std::optional<std::string> Predecessor(std::string bytes) {
    for (size_t i = bytes.size(); i-- > 0;) {
      bytes[i] = static_cast<char>(static_cast<uint8_t>(bytes[i]) - 1);
      if (bytes[i] != '\xff') return bytes;
    }
    return std::nullopt;
  }
  static std::optional<std::string> Successor(std::string bytes) {
    for (size_t i = bytes.size(); i-- > 0;) {
      bytes[i] = static_cast<char>(static_cast<uint8_t>(bytes[i]) + 1);
      if (bytes[i] != '\0') return bytes;
    }
    return std::nullopt;
  }

  /// False for a numeric beside a number that is none, and is no key either.
  static bool IsNumericOrKey(const Type& column, const Type& literal) {
    return (column.kind == TypeKind::kNumeric) == (literal.kind == TypeKind::kNumeric);
  }

  /// Whether equal values have equal bytes. One span of time has many forms, and a varchar that meets a
  /// char(n) has any number of blanks at its end.
  static bool BytesDecide(const Type& column, const Type& literal) {
    if (column.kind == TypeKind::kInterval || literal.kind == TypeKind::kInterval) return false;
    if (!IsNumericOrKey(column, literal)) return false;
    return plan::IsChar(column) || !plan::IgnoresBlanks(column, literal);
  }

  Cut CutAt(const Value& constant) const {
    if (types_[column_].kind == TypeKind::kNumeric) return CutAtNumeric(constant);
    // A uuid has more digits than any number, and no decimals.
    if (constant.type.kind == TypeKind::kUuid) return {Cut::Side::kAt, Stored(constant)};
    return PhysicalOf(constant.type) == Physical::kText ? CutAtText(constant) : CutAtNumber(constant);
  }

  /// The constant is a numeric, or the key of one.
  Cut CutAtNumeric(const Value& constant) const {
    const bool key = constant.type.kind != TypeKind::kNumeric;
    std::string bytes;
    if (layout_.nullable(column_)) bytes.push_back(0);
    partitioner::AppendNumericKey(key ? constant.number : NumericKey(constant.unpacked()), bytes);
    return {Cut::Side::kAt, std::move(bytes)};
  }

  Cut CutAtText(const Value& constant) const {
    const bool counted = constant.type.kind == TypeKind::kBytes;
    const uint32_t most = layout_.bytes(column_) - (counted ? partitioner::kLengthBytes : 0);
    if (constant.text.size() <= most) return {Cut::Side::kAt, Stored(constant)};
    Value cut = constant;
    cut.text.resize(most);
    return {Cut::Side::kBehind, Stored(cut)};
  }

  Cut CutAtNumber(const Value& constant) const {
    const int scale = types_[column_].scale;
    const int excess = constant.type.scale - scale;
    __int128 number;
    bool exact = true;
    if (excess > 0) {
      number = FloorShift(constant.number, excess);
      exact = number * PowerOfTen(excess) == constant.number;
    } else if (const auto scaled = Rescale(constant.number, constant.type.scale, scale); scaled.has_value()) {
      number = *scaled;
    } else {
      return {constant.number < 0 ? Cut::Side::kBelowAll : Cut::Side::kAboveAll, {}};
    }
    // 16 bytes hold more than any number has.
    const uint32_t bytes = layout_.bytes(column_);
    if (bytes < sizeof(number)) {
      const __int128 limit = __int128{1} << (8 * bytes - 1);
      if (number < -limit) return {Cut::Side::kBelowAll, {}};
      if (number >= limit) return {Cut::Side::kAboveAll, {}};
    }
    Value stored = constant;
    stored.number = number;
    return {exact ? Cut::Side::kAt : Cut::Side::kBehind, Stored(stored)};
  }

  std::string Stored(const Value& value) const {
    std::string bytes;
    if (layout_.nullable(column_)) bytes.push_back(0);
    layout_.Append(column_, value, bytes);
    return bytes;
  }

  const RecordLayout& layout_;
  std::vector<Type> types_;
  std::vector<Domain> domains_;
  uint32_t column_ = 0;  // the current conjunct's
};

/// How much of a key or an index the conditions cover.
struct Reach {
  int index = AccessPath::kPrimaryKey;
  std::vector<uint32_t> columns;
  size_t given = 0;    // given columns of the prefix
  bool range = false;  // the next column is restricted
  bool whole() const { return given == columns.size(); }
};

Reach ReachOf(int index, std::vector<uint32_t> columns, const Domains& domains, size_t most_points) {
  Reach reach{index, std::move(columns)};
  size_t points = 1;
  for (const uint32_t column : reach.columns) {
    const Domain& domain = domains[column];
    const size_t more = domain.points.has_value() ? domain.points->size() : 1;
    if (!domain.given() || points * more > most_points) break;
    points *= more;
    ++reach.given;
  }
  reach.range = !reach.whole() && domains.Restricted(reach.columns[reach.given]);
  return reach;
}

/// Whether rows come in the order of these columns; columns with a single value do not matter.
bool HasOrder(const Reach& reach, const Domains& domains, const std::vector<uint32_t>& order) {
  if (order.empty()) return false;
  const auto single = [&](uint32_t column) {
    const Domain& domain = domains[column];
    return domain.points.has_value() ? domain.points->size() == 1 : domain.low == domain.high;
  };
  size_t next = 0;
  for (const uint32_t column : reach.columns) {
    while (next < order.size() && single(order[next])) ++next;
    if (next == order.size()) break;
    if (column == order[next]) {
      ++next;
    } else if (!single(column)) {
      return false;
    }
  }
  while (next < order.size() && single(order[next])) ++next;
  return next == order.size();
}

Reach BestReach(const proto::Table& table, const Domains& domains, const AccessWishes& wishes) {
  Reach best = ReachOf(AccessPath::kPrimaryKey, KeyColumnsOf(table), domains, wishes.most_points);
  if (best.whole()) return best;
  const auto rank = [&](const Reach& reach) {
    return std::tuple(reach.given, reach.range, HasOrder(reach, domains, wishes.order));
  };
  std::tuple<size_t, bool, bool> most;  // without any: scanning the whole table is better
  for (int i = 0; i < table.record().parts_size(); ++i) {
    const proto::RecordPart& part = table.record().parts(i);
    if (part.kind() != proto::ORDERED_INDEX || part.columns().empty() || part.leaving()) continue;
    if (part.usable_from() == 0 || part.usable_from() > wishes.snapshot) continue;
    Reach reach = ReachOf(i, {part.columns().begin(), part.columns().end()}, domains, wishes.most_points);
    if (rank(reach) <= most) continue;
    most = rank(reach);
    best = std::move(reach);
  }
  return best;
}

/// All combinations of the given columns' values.
std::vector<std::string> Prefixes(const Reach& reach, const Domains& domains) {
  std::vector<std::string> prefixes = {""};
  for (size_t i = 0; i < reach.given; ++i) {
    const Domain& domain = domains[reach.columns[i]];
    const std::set<std::string> points =
        domain.points.has_value() ? *domain.points : std::set<std::string>{domain.low};
    std::vector<std::string> longer;
    for (const std::string& prefix : prefixes) {
      for (const std::string& point : points) longer.push_back(prefix + point);
    }
    prefixes = std::move(longer);
  }
  return prefixes;
}

}  // namespace

AccessPath ChooseAccessPath(const proto::Table& table, const RecordLayout& layout,
                            const std::vector<Expr>& conjuncts, const AccessWishes& wishes) {
  Domains domains(table, layout);
  AccessPath path;
  std::vector<bool> taken(conjuncts.size(), false);
  for (size_t i = 0; i < conjuncts.size(); ++i) {
    if (IsBoolLiteral(conjuncts[i], false)) return path;
    domains.Take(conjuncts[i], i);
  }
  if (domains.AnyEmpty()) return path;

  const Reach best = BestReach(table, domains, wishes);
  std::vector<std::string> prefixes = Prefixes(best, domains);
  path.index = best.index;
  path.ordered = best.index != AccessPath::kPrimaryKey && HasOrder(best, domains, wishes.order);
  if (best.index == AccessPath::kPrimaryKey && best.whole()) {
    path.keys = std::move(prefixes);
  } else {
    for (std::string& prefix : prefixes) {
      if (best.range) {
        const Domain& last = domains[best.columns[best.given]];
        path.ranges.push_back({prefix + last.least(), SuccessorOfPrefix(prefix + last.greatest())});
      } else {
        path.ranges.push_back({prefix, SuccessorOfPrefix(prefix)});
      }
    }
  }
  for (size_t i = 0; i < best.given + best.range; ++i) {
    const Domain& domain = domains[best.columns[i]];
    if (i == best.given && domain.points.has_value()) break;  // its range covers its points
    for (const size_t conjunct : domain.conjuncts) taken[conjunct] = true;
  }
  for (size_t i = 0; i < conjuncts.size(); ++i) {
    if (!taken[i]) path.filter.push_back(&conjuncts[i]);
  }
  return path;
}

std::string Describe(const proto::Table& table, const AccessPath& path) {
  const auto counted = [](size_t n, const char* what) {
    return absl::StrCat(n, " ", what, n == 1 ? "" : "s");
  };
  if (path.nothing()) return "no row can meet the conditions";
  if (!path.keys.empty()) {
    return absl::StrCat("by key (", absl::StrJoin(table.record().primary_key(), ", "), "), ",
                        counted(path.keys.size(), "row"), " at most");
  }
  if (path.scan()) {
    const bool all = path.ranges.size() == 1 && path.ranges[0] == KeyRange{};
    return all ? "scan of all rows" : "scan of all rows for a range of the key";
  }
  const proto::RecordPart& index = table.record().parts(path.index);
  std::vector<std::string> columns;
  for (const uint32_t c : index.columns()) columns.push_back(table.columns(static_cast<int>(c)).name());
  const bool all = path.ranges.size() == 1 && path.ranges[0] == KeyRange{};
  return absl::StrCat("by index ", index.name(), " (", absl::StrJoin(columns, ", "), "), ",
                      all ? "all of it" : counted(path.ranges.size(), "range"),
                      path.ordered ? ", in its order" : "");
}

}  // namespace nam::sql
