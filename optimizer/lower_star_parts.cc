#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "optimizer/lower_star.h"
#include "optimizer/tree_lowering.h"

/// Stars with build sides that exceed a server's memory.
namespace nam::optimizer {

using plan::ColumnRef;
using plan::Expr;
using plan::Op;

namespace {

void AddColumnsOf(const Plan::Join& join, ColumnSet& columns) {
  AddColumns(join.probe_keys, columns);
  AddColumns(join.build_keys, columns);
  AddColumns(join.residuals, columns);
}

/// Tables by their new numbers.
void Rename(const std::vector<int>& number, std::vector<Expr>& exprs) {
  std::vector<Expr*> open;
  for (Expr& expr : exprs) open.push_back(&expr);
  while (!open.empty()) {
    Expr& expr = *open.back();
    open.pop_back();
    if (expr.op == Op::kColumn) expr.column.table = number[static_cast<size_t>(expr.column.table)];
    for (Expr& child : expr.children) open.push_back(&child);
  }
}

}  // namespace

ColumnSet NeededFrom(const Plan& star, size_t first) {
  ColumnSet columns(star.output.begin(), star.output.end());
  for (size_t j = first; j < star.joins.size(); ++j) AddColumnsOf(star.joins[j], columns);
  return columns;
}

absl::StatusOr<Flow> TreeLowering::LowerSubStar(const Plan& star, const TableRefs& tables,
                                                const std::vector<int>& some, size_t joins,
                                                const ColumnSet& wanted, std::vector<uint32_t>& number_of) {
  Plan sub;
  TableRefs of_sub;
  std::vector<int> number(tables.size(), -1);
  for (const int table : some) {
    const auto t = static_cast<size_t>(table);
    number[t] = static_cast<int>(of_sub.size());
    number_of[t] = static_cast<uint32_t>(builder_.tables().size() + of_sub.size());
    of_sub.push_back(tables[t]);
    sub.tables.push_back(star.tables[t]);
  }
  for (Plan::Table& table : sub.tables) Rename(number, table.filters);
  for (size_t j = 0; j < joins; ++j) {
    Plan::Join& join = sub.joins.emplace_back(star.joins[j]);
    for (std::vector<Expr>* exprs : {&join.probe_keys, &join.build_keys, &join.residuals})
      Rename(number, *exprs);
    join.table = number[static_cast<size_t>(join.table)];
  }
  for (const ColumnRef column : wanted) {
    const int table = number[static_cast<size_t>(column.table)];
    if (table >= 0) sub.output.push_back({table, column.column});
  }
  NAM_ASSIGN_OR_RETURN(Flow flow, LowerStar(sub, of_sub, builder_, builder_.AddStage({})));
  for (ColumnRef& column : flow.layout) column.table = some[static_cast<size_t>(column.table)];
  return flow;
}

absl::StatusOr<TreeLowering::StarChoices> TreeLowering::ChooseStarJoins(const Plan& star,
                                                                        const TableRefs& tables) const {
  StarChoices choices;
  for (size_t j = 0; j < star.joins.size(); ++j) {
    NAM_ASSIGN_OR_RETURN(const JoinChoice choice, Choose(star, tables, j));
    if (choice.algorithm != plan::JoinAlgorithm::kPipelined) {
      choices.first_by_parts = choice;
      break;
    }
    choices.pipelined.push_back(choice);
  }
  return choices;
}

absl::StatusOr<Flow> TreeLowering::LowerStarFrom(Plan star, const TableRefs& tables,
                                                 const StarChoices& choices,
                                                 std::vector<uint32_t>& number_of) {
  const size_t whole = choices.pipelined.size();
  // A star's pipelines begin with those of its build sides.
  for (size_t j = 0; j < whole; ++j) {
    JoinChoice choice = choices.pipelined[j];
    choice.build = builder_.pipelines() + static_cast<uint32_t>(j);
    builder_.Note(choice);
  }
  if (whole == star.joins.size()) {
    const auto first_table = static_cast<uint32_t>(builder_.tables().size());
    for (uint32_t t = 0; t < tables.size(); ++t) number_of[t] = first_table + t;
    return LowerStar(star, tables, builder_, builder_.AddStage({}));
  }
  std::vector<int> some{star.driving};
  for (size_t j = 0; j < whole; ++j) some.push_back(star.joins[j].table);
  NAM_ASSIGN_OR_RETURN(Flow flow,
                       LowerSubStar(star, tables, some, whole, NeededFrom(star, whole), number_of));
  for (size_t j = whole; j < star.joins.size(); ++j) {
    const Plan::Join& join = star.joins[j];
    NAM_ASSIGN_OR_RETURN(Flow built,
                         LowerSubStar(star, tables, {join.table}, 0, NeededFrom(star, j), number_of));
    JoinOf of{.left = join.probe_keys,
              .right = join.build_keys,
              .residuals = join.residuals,
              .behind = NeededFrom(star, j + 1),
              .rows = join.rows_after,
              .heaviest = HeaviestOf(join.probe_keys, tables)};
    if (j == whole) of.choice = choices.first_by_parts;
    AddColumns(join.residuals, of.behind);
    NAM_ASSIGN_OR_RETURN(flow, Join(std::move(of), std::move(flow), std::move(built)));
  }
  return flow;
}

}  // namespace nam::optimizer
