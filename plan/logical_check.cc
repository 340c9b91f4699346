#include <map>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "plan/logical.h"

namespace nam::plan::logical {
namespace {

class QueryChecker {
 public:
  QueryChecker(const Query& query, bool unnested) : query_(query), unnested_(unnested) {}

  absl::Status Check(const Node& node, const ColumnSet& outer) {
    NAM_RETURN_IF_ERROR(CheckShape(node));
    const auto* join = node.As<Join>();
    const bool dependent = join != nullptr && join->dependent;
    if (dependent && unnested_) return Broken(node, "a dependent join is left");
    ColumnSet visible = outer;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      ColumnSet around = outer;
      if (i == 1 && dependent) around.merge(ColumnsIn(node.input(0)));
      if (const auto* with = node.As<With>(); with != nullptr && i == 1)
        definitions_[with->cte] = node.input(0).columns;
      NAM_RETURN_IF_ERROR(Check(node.input(i), around));
      visible.merge(ColumnsIn(node.input(i)));
    }
    absl::Status status;
    ForExpressions(node, [&](const Expr& expr) {
      if (status.ok()) status = CheckExpr(node, expr, visible);
    });
    NAM_RETURN_IF_ERROR(status);
    return CheckColumns(node);
  }

 private:
  static absl::Status Broken(const Node& node, const std::string& what) {
    return absl::InternalError(absl::StrCat(what, " in\n", ToString(node)));
  }

  static absl::Status CheckShape(const Node& node) {
    size_t least = 1, most = 1;
    if (node.As<Scan>() != nullptr || node.As<FileScan>() != nullptr || node.As<Values>() != nullptr ||
        node.As<CteScan>() != nullptr) {
      least = most = 0;
    } else if (node.As<Join>() != nullptr || node.As<With>() != nullptr) {
      least = most = 2;
    } else if (const auto* operation = node.As<SetOperation>()) {
      least = 2;
      most = operation->kind == SetOperation::Kind::kUnion ? SIZE_MAX : 2;
    }
    if (node.inputs.size() < least || node.inputs.size() > most) return Broken(node, "a number of inputs");
    return absl::OkStatus();
  }

  absl::Status CheckExpr(const Node& node, const Expr& expr, const ColumnSet& visible) {
    if (expr.type.kind == TypeKind::kNull) return Broken(node, "an expression without a type");
    if (expr.op == Op::kColumn && visible.count(expr.column) == 0) {
      return Broken(node, absl::StrCat("unknown column #", expr.column.table, ".", expr.column.column));
    }
    for (const Expr& child : expr.children) NAM_RETURN_IF_ERROR(CheckExpr(node, child, visible));
    return absl::OkStatus();
  }

  absl::Status CheckColumns(const Node& node) {
    if (ColumnsIn(node).size() != node.columns.size()) return Broken(node, "two columns of one name");
    for (const Column& column : node.columns) {
      if (column.ref.table < 0 || column.ref.table >= query_.relations) {
        return Broken(node, "the number of a relation");
      }
    }
    const auto sized = [&](size_t columns) {
      return node.columns.size() == columns ? absl::OkStatus() : Broken(node, "the number of columns");
    };
    if (const auto* project = node.As<Project>()) return sized(project->outputs.size());
    if (const auto* aggregate = node.As<Aggregate>()) {
      return sized(aggregate->keys.size() + aggregate->aggregates.size() + aggregate->groupings.size());
    }
    if (const auto* values = node.As<Values>()) {
      for (const auto& row : values->rows) NAM_RETURN_IF_ERROR(sized(row.size()));
    }
    if (node.As<SetOperation>() != nullptr) return CheckSetOperation(node);
    if (const auto* scan = node.As<CteScan>()) return CheckCteScan(node, *scan);
    return CheckDerived(node);
  }

  static absl::Status CheckSetOperation(const Node& node) {
    for (const NodePtr& input : node.inputs) {
      if (input->columns.size() != node.columns.size()) return Broken(node, "the number of columns");
      for (size_t i = 0; i < node.columns.size(); ++i) {
        const Type &a = input->columns[i].type, &b = node.columns[i].type;
        if (a.kind != b.kind || a.scale != b.scale) return Broken(node, "types of one column");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckCteScan(const Node& node, const CteScan& scan) {
    const auto definition = definitions_.find(scan.cte);
    if (definition == definitions_.end()) return Broken(node, "no CTE of this number");
    if (node.columns.size() != scan.fields.size()) return Broken(node, "the number of columns");
    for (const uint32_t field : scan.fields) {
      if (field >= definition->second.size()) return Broken(node, "no such column of the CTE");
    }
    return absl::OkStatus();
  }

  /// Checks that columns follow from the inputs.
  static absl::Status CheckDerived(const Node& node) {
    if (node.inputs.empty()) return absl::OkStatus();
    Node again;
    again.op = node.op;
    again.columns = node.columns;
    for (const NodePtr& input : node.inputs) {
      again.inputs.push_back(std::make_unique<Node>());
      again.inputs.back()->columns = input->columns;
    }
    DeriveColumns(again);
    if (again.columns.size() != node.columns.size()) return Broken(node, "columns of the inputs");
    for (size_t i = 0; i < node.columns.size(); ++i) {
      if (again.columns[i].ref != node.columns[i].ref ||
          again.columns[i].nullable > node.columns[i].nullable) {
        return Broken(node, absl::StrCat("column ", i));
      }
    }
    return absl::OkStatus();
  }

  const Query& query_;
  const bool unnested_;
  std::map<int, std::vector<Column>> definitions_;  // CTEs visited so far
};

}  // namespace

absl::Status CheckTree(const Query& query, bool unnested) {
  return QueryChecker(query, unnested).Check(*query.root, {});
}

}  // namespace nam::plan::logical
