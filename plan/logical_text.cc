#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plan/aggregate_slots.h"
#include "plan/logical.h"

namespace nam::plan::logical {
namespace {

std::string Name(ColumnRef ref) {
  return absl::StrCat("#", ref.table, ".", ref.column);
}

std::string Shown(const Expr& expr) {
  return plan::ToString(expr, [](const Expr& e) { return Name(e.column); });
}

std::string List(const std::vector<Expr>& list) {
  return absl::StrJoin(list, ", ", [](std::string* out, const Expr& e) { absl::StrAppend(out, Shown(e)); });
}

std::string List(const std::vector<OrderKey>& keys) {
  return absl::StrJoin(keys, ", ", [](std::string* out, const OrderKey& key) {
    absl::StrAppend(out, Shown(key.expr), key.descending ? " desc" : "",
                    key.nulls_first == key.descending ? ""
                    : key.nulls_first                 ? " nulls first"
                                                      : " nulls last");
  });
}

std::string Shown(const AggregateCall& call) {
  std::string text = NameOf(call.function);
  const size_t arguments = ArgumentsOf(call.function);
  if (arguments > 0) absl::StrAppend(&text, "(", call.distinct ? "distinct " : "", Shown(call.argument));
  if (arguments > 1) absl::StrAppend(&text, ", ", Shown(call.second));
  if (arguments > 0) text += ")";
  if (call.filter.has_value()) absl::StrAppend(&text, " filter (", Shown(*call.filter), ")");
  return text;
}

std::string Shown(const FrameBound& bound) {
  switch (bound.kind) {
    case FrameBound::Kind::kUnboundedPreceding:
      return "unbounded preceding";
    case FrameBound::Kind::kPreceding:
      return bound.offset.ToString() + " preceding";
    case FrameBound::Kind::kCurrentRow:
      return "current row";
    case FrameBound::Kind::kFollowing:
      return bound.offset.ToString() + " following";
    case FrameBound::Kind::kUnboundedFollowing:
      return "unbounded following";
  }
  return "?";
}

std::string Shown(const WindowCall& call) {
  constexpr const char* kNames[] = {"",           "row_number", "rank",         "dense_rank",
                                    "ntile",      "lag",        "lead",         "first_value",
                                    "last_value", "nth_value",  "percent_rank", "cume_dist"};
  constexpr const char* kUnits[] = {"rows", "range", "groups"};
  constexpr const char* kExclusions[] = {"", " exclude current row", " exclude group", " exclude ties"};
  std::string text =
      call.function == WindowFunction::kAggregate
          ? Shown(call.aggregate)
          : absl::StrCat(kNames[static_cast<size_t>(call.function)], "(", List(call.arguments), ")");
  if (call.function == WindowFunction::kAggregate || call.function >= WindowFunction::kFirstValue) {
    absl::StrAppend(&text, " ", kUnits[static_cast<size_t>(call.frame.unit)], " ", Shown(call.frame.start),
                    " to ", Shown(call.frame.end), kExclusions[static_cast<size_t>(call.frame.exclusion)]);
  }
  return text;
}

class QueryPrinter {
 public:
  std::string Print(const Node& root) {
    Line(root, 0);
    return std::move(out_);
  }

 private:
  void Line(const Node& node, size_t indent) {
    absl::StrAppend(&out_, std::string(indent, ' '));
    std::visit([&](const auto& op) { Show(node, op); }, node.op);
    absl::StrAppend(&out_, "\n");
    for (const NodePtr& input : node.inputs) Line(*input, indent + 2);
  }

  void Outputs(const Node& node, size_t from, const std::vector<std::string>& values) {
    for (size_t i = 0; i < values.size(); ++i) {  // a broken tree may have fewer columns
      const size_t at = from + i;
      absl::StrAppend(&out_, i == 0 ? " " : ", ", at < node.columns.size() ? Name(node.columns[at].ref) : "?",
                      " = ", values[i]);
    }
  }

  void Show(const Node& node, const Scan& scan) {
    absl::StrAppend(&out_, "Scan ", scan.table->name(), " as #", scan.relation, ":");
    for (const Column& column : node.columns) absl::StrAppend(&out_, " ", column.ref.column);
  }
  void Show(const Node& node, const FileScan& scan) {
    absl::StrAppend(&out_, "FileScan ", scan.table->name(), " as #", scan.relation, ":");
    for (const Column& column : node.columns) absl::StrAppend(&out_, " ", column.ref.column);
  }
  void Show(const Node& node, const Values& values) {
    absl::StrAppend(&out_, "Values ", values.rows.size(), " rows");
    for (const Column& column : node.columns) absl::StrAppend(&out_, " ", Name(column.ref));
  }
  void Show(const Node&, const Filter& filter) { absl::StrAppend(&out_, "Filter ", List(filter.conditions)); }
  void Show(const Node& node, const Project& project) {
    std::vector<std::string> values;
    for (const Expr& output : project.outputs) values.push_back(Shown(output));
    absl::StrAppend(&out_, "Project");
    Outputs(node, 0, values);
  }
  void Show(const Node&, const Join& join) {
    constexpr const char* kKinds[] = {"inner",           "left", "right", "full", "semi", "anti",
                                      "null-aware anti", "mark", "single"};
    absl::StrAppend(&out_, "Join ", kKinds[static_cast<size_t>(join.kind)],
                    join.dependent ? " dependent" : "");
    if (join.kind == JoinKind::kMark) absl::StrAppend(&out_, " ", Name(join.mark));
    if (!join.conditions.empty()) absl::StrAppend(&out_, " on ", List(join.conditions));
    if (!join.compared.empty()) absl::StrAppend(&out_, " compared ", List(join.compared));
  }
  void Show(const Node& node, const Aggregate& aggregate) {
    absl::StrAppend(&out_, "Aggregate");
    std::vector<std::string> values;
    for (const Expr& key : aggregate.keys) values.push_back(Shown(key));
    for (const AggregateCall& call : aggregate.aggregates) values.push_back(Shown(call));
    for (const GroupingCall& call : aggregate.groupings)
      values.push_back(absl::StrCat("grouping(", absl::StrJoin(call.keys, ", "), ")"));
    Outputs(node, 0, values);
    for (const auto& set : aggregate.sets) absl::StrAppend(&out_, " {", absl::StrJoin(set, ", "), "}");
  }
  void Show(const Node& node, const Window& window) {
    absl::StrAppend(&out_, "Window");
    if (!window.partition.empty()) absl::StrAppend(&out_, " partition by ", List(window.partition));
    if (!window.order.empty()) absl::StrAppend(&out_, " order by ", List(window.order));
    std::vector<std::string> values;
    for (const WindowCall& call : window.calls) values.push_back(Shown(call));
    absl::StrAppend(&out_, ":");
    Outputs(node, node.columns.size() - values.size(), values);
  }
  void Show(const Node&, const Sort& sort) { absl::StrAppend(&out_, "Sort ", List(sort.keys)); }
  void Show(const Node&, const Limit& limit) {
    absl::StrAppend(&out_, "Limit ", limit.rows.has_value() ? absl::StrCat(*limit.rows) : "all");
    if (limit.offset != 0) absl::StrAppend(&out_, " offset ", limit.offset);
    if (!limit.ties.empty()) absl::StrAppend(&out_, " with ties ", List(limit.ties));
  }
  void Show(const Node& node, const Series& series) {
    absl::StrAppend(&out_, "Series");
    Outputs(node, node.columns.size() - 1,
            {absl::StrCat(Shown(series.first), " to ", Shown(series.last), " by ", Shown(series.step))});
  }
  void Show(const Node&, const Distinct& distinct) {
    absl::StrAppend(&out_, "Distinct");
    if (!distinct.on.empty()) absl::StrAppend(&out_, " on ", List(distinct.on));
    if (!distinct.order.empty()) absl::StrAppend(&out_, " order by ", List(distinct.order));
  }
  void Show(const Node& node, const SetOperation& operation) {
    constexpr const char* kKinds[] = {"Union", "Intersect", "Except"};
    absl::StrAppend(&out_, kKinds[static_cast<size_t>(operation.kind)], operation.all ? " all" : "");
    for (const Column& column : node.columns) absl::StrAppend(&out_, " ", Name(column.ref));
  }
  void Show(const Node&, const With& with) {
    absl::StrAppend(&out_, "With cte ", with.cte, with.name.empty() ? "" : " ", with.name);
  }
  void Show(const Node& node, const CteScan& scan) {
    absl::StrAppend(&out_, "CteScan cte ", scan.cte, ":");
    for (size_t i = 0; i < scan.fields.size(); ++i)
      absl::StrAppend(&out_, " ", Name(node.columns[i].ref), " = ", scan.fields[i]);
  }

  std::string out_;
};

}  // namespace

std::string ToString(const Node& root) {
  return QueryPrinter().Print(root);
}

}  // namespace nam::plan::logical
