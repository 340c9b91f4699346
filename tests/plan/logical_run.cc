#include "tests/plan/logical_run.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tests/plan/logical_run_window.h"
#include "types/decimal.h"
#include "types/interval.h"
#include "types/real.h"
#include "types/sql_error.h"

namespace nam::plan::logical::testing {
namespace {

int CompareValues(const Value& a, const Value& b) {
  if (a.null || b.null) return static_cast<int>(a.null) - static_cast<int>(b.null);
  return Compare(a, b);
}

struct Less {
  bool operator()(const Row& a, const Row& b) const { return Before(a, b); }
};

Row Joined(const Row& a, const Row& b) {
  Row row = a;
  row.insert(row.end(), b.begin(), b.end());
  return row;
}

Row NullRow(const std::vector<Column>& columns) {
  Row row;
  for (const Column& column : columns) row.push_back(Value::Null(column.type));
  return row;
}

class LogicalRunner {
 public:
  explicit LogicalRunner(const TableRows& tables) : tables_(tables) {}

  absl::StatusOr<Rows> Run(const Node& node, const Surroundings* outer) {
    NAM_ASSIGN_OR_RETURN(Rows rows, std::visit([&](const auto& op) { return Do(node, op, outer); }, node.op));
    for (const Row& row : rows) NAM_RETURN_IF_ERROR(CheckRow(node, row));
    return rows;
  }

 private:
  static absl::Status CheckRow(const Node& node, const Row& row) {
    if (row.size() != node.columns.size())
      return absl::InternalError(
          absl::StrCat("a row of another width than its columns in\n", ToString(node)));
    for (size_t i = 0; i < row.size(); ++i) {
      const Column& column = node.columns[i];
      const bool other = row[i].type.kind != column.type.kind || row[i].type.scale != column.type.scale;
      if (other || (row[i].null && !column.nullable)) {
        return absl::InternalError(
            absl::StrCat(other ? "another type" : "a NULL", " in column ", i, " of\n", ToString(node)));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Rows> Do(const Node& node, const Scan& scan, const Surroundings*) {
    Rows rows;
    for (const Row& stored : tables_.at(scan.table->name())) {
      Row row;
      for (const Column& column : node.columns) {
        row.push_back(stored.at(static_cast<size_t>(column.ref.column)));
        row.back().type = column.type;
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

  absl::StatusOr<Rows> Do(const Node& node, const FileScan& files, const Surroundings* outer) {
    return Do(node, Scan{files.relation, files.table}, outer);
  }

  absl::StatusOr<Rows> Do(const Node&, const Values& values, const Surroundings*) { return values.rows; }

  absl::StatusOr<Rows> Do(const Node& node, const Filter& filter, const Surroundings* outer) {
    NAM_ASSIGN_OR_RETURN(const Rows input, Run(node.input(), outer));
    Rows rows;
    for (const Row& row : input) {
      const Surroundings frame{&node.input().columns, &row, outer};
      NAM_ASSIGN_OR_RETURN(const bool keep, AllTrue(filter.conditions, frame));
      if (keep) rows.push_back(row);
    }
    return rows;
  }

  absl::StatusOr<Rows> Do(const Node& node, const Project& project, const Surroundings* outer) {
    NAM_ASSIGN_OR_RETURN(const Rows input, Run(node.input(), outer));
    Rows rows;
    for (const Row& row : input) {
      NAM_ASSIGN_OR_RETURN(Row projected, EvalAll(project.outputs, {&node.input().columns, &row, outer}));
      rows.push_back(std::move(projected));
    }
    return rows;
  }

  static absl::StatusOr<bool> AllTrue(const std::vector<Expr>& conditions, const Surroundings& frame) {
    for (const Expr& condition : conditions) {
      NAM_ASSIGN_OR_RETURN(const Value value, Eval(condition, frame));
      if (value.null || value.number == 0) return false;
    }
    return true;
  }

  static absl::StatusOr<Row> EvalAll(const std::vector<Expr>& list, const Surroundings& frame) {
    Row row;
    for (const Expr& expr : list) {
      NAM_ASSIGN_OR_RETURN(Value value, Eval(expr, frame));
      row.push_back(std::move(value));
    }
    return row;
  }

  /// Whether all of IN's comparisons are true, or none is false.
  struct Certainty {
    bool certain = true, possible = true;
  };
  static absl::StatusOr<Certainty> Compared(const std::vector<Expr>& compared, const Surroundings& frame) {
    Certainty certainty;
    for (const Expr& expr : compared) {
      NAM_ASSIGN_OR_RETURN(const Value value, Eval(expr, frame));
      if (value.null || value.number == 0) certainty.certain = false;
      if (!value.null && value.number == 0) certainty.possible = false;
    }
    return certainty;
  }

  absl::StatusOr<Rows> Do(const Node& node, const Join& join, const Surroundings* outer) {
    NAM_ASSIGN_OR_RETURN(const Rows left, Run(node.input(0), outer));
    Rows right;
    if (!join.dependent) {
      NAM_ASSIGN_OR_RETURN(right, Run(node.input(1), outer));
    }
    const auto& left_columns = node.input(0).columns;
    const auto& right_columns = node.input(1).columns;
    std::vector<bool> met(right.size(), false);
    Rows rows;
    for (const Row& l : left) {
      const Surroundings of_left{&left_columns, &l, outer};
      if (join.dependent) {
        NAM_ASSIGN_OR_RETURN(right, Run(node.input(1), &of_left));
        met.assign(right.size(), false);
      }
      size_t matches = 0;
      bool certain = false, possible = false;
      for (size_t i = 0; i < right.size(); ++i) {
        const Surroundings frame{&right_columns, &right[i], &of_left};
        NAM_ASSIGN_OR_RETURN(const bool match, AllTrue(join.conditions, frame));
        if (!match) continue;
        NAM_ASSIGN_OR_RETURN(const Certainty certainty, Compared(join.compared, frame));
        certain = certain || certainty.certain;
        possible = possible || certainty.possible;
        ++matches;
        met[i] = true;
        if (join.kind == JoinKind::kSingle && matches > 1)
          return UserError(sqlstate::kCardinalityViolation, "a scalar subquery has more than one row", -1);
        if (join.kind <= JoinKind::kFull || join.kind == JoinKind::kSingle)
          rows.push_back(Joined(l, right[i]));
      }
      const bool fills =
          join.kind == JoinKind::kLeft || join.kind == JoinKind::kFull || join.kind == JoinKind::kSingle;
      if (fills && matches == 0) rows.push_back(Joined(l, NullRow(right_columns)));
      const bool keeps = (join.kind == JoinKind::kSemi && matches > 0) ||
                         (join.kind == JoinKind::kAnti && matches == 0) ||
                         (join.kind == JoinKind::kNullAwareAnti && !certain && !possible);
      if (keeps) rows.push_back(l);
      if (join.kind == JoinKind::kMark) {
        rows.push_back(l);
        rows.back().push_back(certain || !possible ? Value::Bool(certain) : Value::Null(Type::Bool()));
      }
    }
    if (join.kind != JoinKind::kRight && join.kind != JoinKind::kFull) return rows;
    for (size_t i = 0; i < right.size(); ++i) {
      if (!met[i]) rows.push_back(Joined(NullRow(left_columns), right[i]));
    }
    return rows;
  }

  absl::StatusOr<Rows> Do(const Node& node, const Aggregate& aggregate, const Surroundings* outer) {
    NAM_ASSIGN_OR_RETURN(const Rows input, Run(node.input(), outer));
    std::vector<uint32_t> all;
    for (uint32_t i = 0; i < aggregate.keys.size(); ++i) all.push_back(i);
    std::vector<std::vector<uint32_t>> sets = aggregate.sets;
    if (sets.empty()) sets.push_back(all);
    Rows rows;
    for (const auto& set : sets) {
      std::map<Row, std::vector<const Row*>, Less> groups;
      if (set.empty())
        groups[NullRow({node.columns.begin(),
                        node.columns.begin() + static_cast<std::ptrdiff_t>(aggregate.keys.size())})];
      for (const Row& row : input) {
        const Surroundings frame{&node.input().columns, &row, outer};
        NAM_ASSIGN_OR_RETURN(Row keys, EvalAll(aggregate.keys, frame));
        for (const uint32_t key : all) {
          if (std::find(set.begin(), set.end(), key) == set.end()) keys[key] = Value::Null(keys[key].type);
        }
        groups[std::move(keys)].push_back(&row);
      }
      for (const auto& [keys, members] : groups) {
        Row row = keys;
        for (const AggregateCall& call : aggregate.aggregates) {
          NAM_ASSIGN_OR_RETURN(Value value, Fold(call, members, node.input().columns, outer));
          row.push_back(std::move(value));
        }
        for (const GroupingCall& call : aggregate.groupings) {
          int64_t bits = 0;
          for (const uint32_t key : call.keys)
            bits = bits * 2 + (std::find(set.begin(), set.end(), key) == set.end() ? 1 : 0);
          row.push_back(Value::Integer(bits));
        }
        rows.push_back(std::move(row));
      }
    }
    return rows;
  }

  absl::StatusOr<Rows> Do(const Node& node, const Window& window, const Surroundings* outer) {
    NAM_ASSIGN_OR_RETURN(const Rows input, Run(node.input(), outer));
    std::map<Row, Rows, Less> partitions;
    for (const Row& row : input) {
      NAM_ASSIGN_OR_RETURN(Row keys, EvalAll(window.partition, {&node.input().columns, &row, outer}));
      partitions[std::move(keys)].push_back(row);
    }
    Rows rows;
    for (auto& [keys, partition] : partitions) {
      NAM_ASSIGN_OR_RETURN(std::vector<Row> order,
                           Sorted(partition, window.order, node.input().columns, outer));
      WindowRunner runner(window, node.input().columns, partition, order, outer);
      NAM_ASSIGN_OR_RETURN(const Rows done, runner.Run());
      rows.insert(rows.end(), done.begin(), done.end());
    }
    return rows;
  }

  /// Sorts the rows; their keys in the same order.
  static absl::StatusOr<std::vector<Row>> Sorted(Rows& rows, const std::vector<OrderKey>& keys,
                                                 const std::vector<Column>& columns,
                                                 const Surroundings* outer) {
    std::vector<std::pair<Row, Row>> both;  // keys, row
    for (Row& row : rows) {
      Row values;
      for (const OrderKey& key : keys) {
        NAM_ASSIGN_OR_RETURN(Value value, Eval(key.expr, {&columns, &row, outer}));
        values.push_back(std::move(value));
      }
      both.emplace_back(std::move(values), row);
    }
    const auto before = [&](const auto& a, const auto& b) {
      for (size_t i = 0; i < keys.size(); ++i) {
        const Value &x = a.first[i], &y = b.first[i];
        if (x.null && y.null) continue;
        if (x.null || y.null) return x.null == keys[i].nulls_first;
        const int order = Compare(x, y);
        if (order != 0) return keys[i].descending ? order > 0 : order < 0;
      }
      return false;
    };
    std::stable_sort(both.begin(), both.end(), before);
    std::vector<Row> order;
    for (size_t i = 0; i < rows.size(); ++i) {
      order.push_back(std::move(both[i].first));
      rows[i] = std::move(both[i].second);
    }
    return order;
  }

  absl::StatusOr<Rows> Do(const Node& node, const Sort& sort, const Surroundings* outer) {
    NAM_ASSIGN_OR_RETURN(Rows rows, Run(node.input(), outer));
    NAM_RETURN_IF_ERROR(Sorted(rows, sort.keys, node.input().columns, outer).status());
    return rows;
  }

  absl::StatusOr<Rows> Do(const Node& node, const Limit& limit, const Surroundings* outer) {
    NAM_ASSIGN_OR_RETURN(const Rows rows, Run(node.input(), outer));
    const size_t first = std::min(rows.size(), static_cast<size_t>(limit.offset));
    const size_t most = limit.rows.has_value() ? static_cast<size_t>(*limit.rows) : rows.size();
    size_t count = std::min(rows.size() - first, most);
    if (!limit.ties.empty() && limit.rows.has_value() && count > 0) {
      const auto ties = [&](size_t i) {
        return EvalAll(limit.ties, {&node.input().columns, &rows[first + i], outer});
      };
      NAM_ASSIGN_OR_RETURN(const Row last, ties(count - 1));
      for (; first + count < rows.size(); ++count) {
        NAM_ASSIGN_OR_RETURN(const Row next, ties(count));
        if (Before(last, next) || Before(next, last)) break;
      }
    }
    return Rows(rows.begin() + static_cast<std::ptrdiff_t>(first),
                rows.begin() + static_cast<std::ptrdiff_t>(first + count));
  }

  absl::StatusOr<Rows> Do(const Node& node, const Series& series, const Surroundings* outer) {
    NAM_ASSIGN_OR_RETURN(const Rows input, Run(node.input(), outer));
    Rows rows;
    for (const Row& row : input) {
      const Surroundings frame{&node.input().columns, &row, outer};
      NAM_ASSIGN_OR_RETURN(const Row ends, EvalAll({series.first, series.last, series.step}, frame));
      if (ends[0].null || ends[1].null || ends[2].null) continue;
      const bool times = ends[2].type.kind == TypeKind::kInterval;
      const __int128 sign = times ? SpanOf(ends[2].interval()) : ends[2].number;
      if (sign == 0) return UserError(sqlstate::kBadParameter, "step size cannot equal zero", -1);
      for (Value next = ends[0]; sign < 0 ? next.number >= ends[1].number : next.number <= ends[1].number;) {
        rows.push_back(row);
        rows.back().push_back(next);
        if (times) {
          NAM_ASSIGN_OR_RETURN(next.number,
                               AddToTimestamp(static_cast<int64_t>(next.number), ends[2].interval(), 1));
        } else {
          next.number += ends[2].number;
        }
      }
    }
    return rows;
  }

  absl::StatusOr<Rows> Do(const Node& node, const Distinct& distinct, const Surroundings* outer) {
    NAM_ASSIGN_OR_RETURN(Rows input, Run(node.input(), outer));
    NAM_RETURN_IF_ERROR(Sorted(input, distinct.order, node.input().columns, outer).status());
    std::set<Row, Less> seen;
    Rows rows;
    for (const Row& row : input) {
      Row key = row;
      if (!distinct.on.empty()) {
        NAM_ASSIGN_OR_RETURN(key, EvalAll(distinct.on, {&node.input().columns, &row, outer}));
      }
      if (seen.insert(std::move(key)).second) rows.push_back(row);
    }
    return rows;
  }

  absl::StatusOr<Rows> Do(const Node& node, const SetOperation& operation, const Surroundings* outer) {
    std::map<Row, std::pair<size_t, size_t>, Less> counts;  // in the first input, in the others
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      NAM_ASSIGN_OR_RETURN(const Rows input, Run(node.input(i), outer));
      for (const Row& row : input) ++(i == 0 ? counts[row].first : counts[row].second);
    }
    Rows rows;
    for (const auto& [row, count] : counts) {
      const auto [a, b] = count;
      size_t times = operation.kind == SetOperation::Kind::kUnion       ? a + b
                     : operation.kind == SetOperation::Kind::kIntersect ? std::min(a, b)
                     : operation.all                                    ? a - std::min(a, b)
                     : b == 0                                           ? a
                                                                        : 0;
      if (!operation.all) times = std::min<size_t>(times, 1);
      for (size_t i = 0; i < times; ++i) rows.push_back(row);
    }
    return rows;
  }

  absl::StatusOr<Rows> Do(const Node& node, const With& with, const Surroundings* outer) {
    NAM_ASSIGN_OR_RETURN(Rows definition, Run(node.input(0), outer));
    std::swap(definition, ctes_[with.cte]);
    absl::StatusOr<Rows> rows = Run(node.input(1), outer);
    std::swap(definition, ctes_[with.cte]);
    return rows;
  }

  absl::StatusOr<Rows> Do(const Node&, const CteScan& scan, const Surroundings*) {
    Rows rows;
    for (const Row& stored : ctes_.at(scan.cte)) {
      Row row;
      for (const uint32_t field : scan.fields) row.push_back(stored.at(field));
      rows.push_back(std::move(row));
    }
    return rows;
  }

  const TableRows& tables_;
  std::map<int, Rows> ctes_;
};

}  // namespace

absl::StatusOr<Value> Eval(const Expr& expr, const Surroundings& frame) {
  bool unknown = false;
  NAM_ASSIGN_OR_RETURN(Value value, Evaluate(expr, [&](const Expr& e) {
                         for (const Surroundings* f = &frame; f != nullptr; f = f->outer) {
                           for (size_t i = 0; i < f->columns->size(); ++i) {
                             if ((*f->columns)[i].ref == e.column) return (*f->row)[i];
                           }
                         }
                         unknown = true;
                         return Value::Null(e.type);
                       }));
  if (unknown) return absl::InternalError("an expression names a column that is not there");
  if (value.type.kind != expr.type.kind && !value.null)
    return absl::InternalError("a value of another type than its expression");
  value.type = expr.type;
  return value;
}

absl::StatusOr<Value> Fold(const AggregateCall& call, const std::vector<const Row*>& rows,
                           const std::vector<Column>& columns, const Surroundings* outer) {
  int64_t count = 0;
  __int128 sum = 0;
  std::optional<Value> extreme;
  __int128 all = -1, any = 0, odd = 0;  // of bits
  std::string joined;
  double real_sum = 0;
  Numeric numeric_sum;
  std::set<Row, Less> seen;
  for (const Row* row : rows) {
    const Surroundings frame{&columns, row, outer};
    if (call.filter.has_value()) {
      NAM_ASSIGN_OR_RETURN(const Value counts, Eval(*call.filter, frame));
      if (counts.null || counts.number == 0) continue;
    }
    if (call.function == AggregateFunction::kCountRows) {
      ++count;
      continue;
    }
    NAM_ASSIGN_OR_RETURN(const Value value, Eval(call.argument, frame));
    if (value.null || (call.distinct && !seen.insert({value}).second)) continue;
    ++count;
    if (value.type.kind == TypeKind::kNumeric || call.long_sum) {
      const Numeric number = call.long_sum ? Numeric{value.number, value.type.scale} : value.unpacked();
      numeric_sum = AddNumerics(numeric_sum, number).value_or(numeric_sum);
    } else {
      sum += value.number;
    }
    if (value.type.real()) real_sum += FromOrderedBits(static_cast<int64_t>(value.number));
    all &= value.number;
    any |= value.number;
    odd ^= value.number;
    if (call.function == AggregateFunction::kStringAggregate) {
      NAM_ASSIGN_OR_RETURN(const Value before, Eval(call.second, frame));
      joined += (count == 1 || before.null ? "" : before.text) + value.text;
    }
    const bool least = call.function == AggregateFunction::kMin;
    if (!extreme.has_value() || (least ? Compare(value, *extreme) < 0 : Compare(value, *extreme) > 0))
      extreme = value;
  }
  switch (call.function) {
    case AggregateFunction::kCountRows:
    case AggregateFunction::kCount:
    case AggregateFunction::kCountDistinct:
      return Value::Integer(count);
    case AggregateFunction::kMin:
    case AggregateFunction::kMax: {
      Value value = extreme.value_or(Value::Null(call.type));
      value.type = call.type;
      return value;
    }
    case AggregateFunction::kSum:
    case AggregateFunction::kAverage:
      break;
    case AggregateFunction::kBoolAnd:
    case AggregateFunction::kBitAnd:
      return count == 0 ? Value::Null(call.type) : Value{call.type, false, all, {}};
    case AggregateFunction::kBoolOr:
    case AggregateFunction::kBitOr:
      return count == 0 ? Value::Null(call.type) : Value{call.type, false, any, {}};
    case AggregateFunction::kBitXor:
      return count == 0 ? Value::Null(call.type) : Value{call.type, false, odd, {}};
    case AggregateFunction::kStringAggregate:
      return count == 0 ? Value::Null(call.type) : Value{call.type, false, 0, joined};
    default:
      return absl::UnimplementedError("the reference has no sums of squares and products");
  }
  if (count == 0) return Value::Null(call.type);
  if (call.argument.type.kind == TypeKind::kNumeric || call.long_sum) {
    const bool average = call.function == AggregateFunction::kAverage;
    const auto result = average ? DivideNumerics(numeric_sum, {count, 0}) : numeric_sum;
    return result ? absl::StatusOr<Value>(Value::OfNumeric(*result)) : NumberOutOfRange(-1);
  }
  if (call.type.real()) {
    const bool average = call.function == AggregateFunction::kAverage;
    return Value{
        call.type, false, OrderedBits(average ? real_sum / static_cast<double>(count) : real_sum), {}};
  }
  Value result{call.type, false, sum, {}};
  if (call.function == AggregateFunction::kAverage) {
    NAM_ASSIGN_OR_RETURN(const Numeric average, DecimalAverage(sum, call.argument.type.scale, count));
    return Value::OfNumeric(average);
  }
  if (!FitsDecimal(result.number)) return SumOutOfRange();
  return result;
}

bool Before(const Row& a, const Row& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    const int order = CompareValues(a[i], b[i]);
    if (order != 0) return order < 0;
  }
  return false;
}

absl::StatusOr<Rows> Run(const Query& query, const TableRows& tables) {
  return LogicalRunner(tables).Run(*query.root, nullptr);
}

}  // namespace nam::plan::logical::testing
