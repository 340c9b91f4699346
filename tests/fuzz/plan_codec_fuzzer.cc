// A plan as a coordinator sent it: refused, or one that is sent on unchanged.

#include <string>

#include "base/check.h"
#include "optimizer/plan.h"
#include "tests/fuzz/fuzz.h"

namespace nam::fuzz {
namespace {

plan::Expr Column(int table, int column) {
  plan::Expr expr;
  expr.op = plan::Op::kColumn;
  expr.type = Type::Integer();
  expr.column = {table, column};
  return expr;
}

plan::Expr Operator(plan::Op op, Type type, std::vector<plan::Expr> children) {
  plan::Expr expr;
  expr.op = op;
  expr.type = type;
  expr.children = std::move(children);
  return expr;
}

plan::Expr Number(int64_t number) {
  plan::Expr expr;
  expr.type = Type::Integer();
  expr.literal = Value::Integer(number);
  return expr;
}

}  // namespace

std::vector<std::string> Seeds() {
  optimizer::Plan plan;
  plan.tables = {{.name = "f", .allocation = 3, .columns = {0, 2}},
                 {.name = "d", .allocation = 4, .columns = {1}}};
  plan.tables[0].filters = {Operator(plan::Op::kLess, Type::Bool(), {Column(0, 2), Number(25)}),
                            Operator(plan::Op::kIn, Type::Bool(), {Column(0, 0), Number(1), Number(2)})};
  plan.joins.push_back({.table = 1, .probe_key = Column(0, 0), .build_key = Column(1, 1)});
  optimizer::Plan rows = plan;
  rows.output = {Column(0, 2)};
  rows.order = {{Column(0, 2), true, false}};
  rows.row_limit = 10;
  plan.aggregated = true;
  plan.group_by = {Column(1, 1)};
  plan.aggregates = {{plan::AggregateFunction::kSum, Column(0, 2), Type::Integer()}};
  return {optimizer::ToProto(plan).SerializeAsString(), optimizer::ToProto(rows).SerializeAsString()};
}

}  // namespace nam::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nam;
  proto::Plan plan;
  if (!plan.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto decoded = optimizer::FromProto(plan);
  if (!decoded.ok()) return 0;
  const proto::Plan sent_on = optimizer::ToProto(*decoded);
  const auto again = optimizer::FromProto(sent_on);
  NAM_CHECK(again.ok(), "what was decoded can be sent on");
  NAM_CHECK(optimizer::ToProto(*again).SerializeAsString() == sent_on.SerializeAsString());
  return 0;
}
