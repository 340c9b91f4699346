#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "sql/change_scope.h"
#include "sql/conflict_binder.h"
#include "sql/constraints.h"
#include "sql/record_binder.h"
#include "types/sql_error.h"

/// INSERT.
namespace nam::sql {
namespace {

using plan::Expr;
using plan::logical::Column;
using plan::logical::MakeColumn;
using plan::logical::MakeNode;
using plan::logical::NodePtr;
using plan::logical::Project;
using plan::logical::SetOperation;

absl::Status WrongNumberOfValues(size_t values, size_t columns, int position) {
  return UserError(sqlstate::kSyntaxError,
                   values > columns ? "INSERT has more expressions than target columns"
                                    : "INSERT has more target columns than expressions",
                   position, absl::StrCat(columns, " columns, ", values, " values"));
}

class InsertBinder {
 public:
  InsertBinder(const Node& node, TableSource& tables) : node_(node), source_(tables), context_(tables) {}

  absl::StatusOr<Statement> Bind() {
    NAM_RETURN_IF_ERROR(node_.Only(
        {"relation", "cols", "selectStmt", "override", "onConflictClause", "returningList", "withClause"}));
    const Node relation = node_.Field("relation");
    ChangeScope target(source_);
    const absl::Status found = target.BindFrom(relation, Node(), {}, "INSERT");
    if (node_.Has("withClause")) NAM_RETURN_IF_ERROR(with_.Bind(node_.Field("withClause")));
    NAM_RETURN_IF_ERROR(found);
    statement_.table = target.bound_table();
    NAM_RETURN_IF_ERROR(RefuseOfColumnar());
    NAM_RETURN_IF_ERROR(BindColumns());
    NAM_RETURN_IF_ERROR(BindValues());
    NAM_RETURN_IF_ERROR(LeaveOutNumbers());
    if (node_.Has("onConflictClause")) {
      NAM_ASSIGN_OR_RETURN(statement_.conflict, BindConflict(node_.Field("onConflictClause"), relation,
                                                             source_, defaults_, late_));
    }
    NAM_ASSIGN_OR_RETURN(statement_.returning,
                         target.BindReturning(node_.List("returningList"), std::nullopt));
    for (const absl::Status& later : {late_, context_.folding, target.folding()}) NAM_RETURN_IF_ERROR(later);
    for (int i = 0; i < table().columns_size(); ++i) {
      const auto given = std::find(statement_.columns.begin(), statement_.columns.end(), i);
      if (given == statement_.columns.end()) defaults_.insert(i);
    }
    NAM_ASSIGN_OR_RETURN(statement_.defaults, BindDefaults(table(), defaults_, node_.text().time()));
    if (any_asks_) NAM_RETURN_IF_ERROR(MakeSourceOfRows());
    NAM_ASSIGN_OR_RETURN(statement_.checks, BindChecks(statement_.table.table, node_.text().time()));
    return Statement(std::move(statement_));
  }

 private:
  const proto::Table& table() const { return *statement_.table.table; }

  absl::Status RefuseOfColumnar() const {
    if (IsRecordTable(table())) return absl::OkStatus();
    const bool conflict = node_.Has("onConflictClause");
    if (!conflict && !node_.Has("returningList")) return absl::OkStatus();
    const SqlText& text = node_.text();
    return Refusal(
        absl::StrCat(conflict ? "ON CONFLICT" : "RETURNING", " of a columnar table is not supported"),
        conflict ? text.Find({"on", "conflict"}) : text.Find({"returning"}),
        "CREATE TABLE … WITH (storage = record) makes a table that has it");
  }

  /// Binds the columns that get values, in their order.
  absl::Status BindColumns() {
    std::set<int> seen;
    for (const Node& target : node_.List("cols")) {
      NAM_RETURN_IF_ERROR(target.Only({"name"}));
      NAM_ASSIGN_OR_RETURN(const int column, TargetColumn(table(), target));
      if (!seen.insert(column).second) {
        return UserError(sqlstate::kDuplicateColumn,
                         absl::StrCat("column ", Quote(target.Text("name")), " specified more than once"),
                         target.position(), "name it once");
      }
      statement_.columns.push_back(column);
    }
    listed_ = !statement_.columns.empty();
    for (int i = 0; !listed_ && i < table().columns_size(); ++i) {
      if (!table().columns(i).hidden()) statement_.columns.push_back(i);
    }
    return absl::OkStatus();
  }

  absl::Status BindValues() {
    const Node select = node_.Field("selectStmt");
    if (!select) {  // DEFAULT VALUES
      statement_.columns.clear();
      statement_.rows.emplace_back();
      return absl::OkStatus();
    }
    const bool plain = select.Has("valuesLists") && !select.Has("sortClause") && !select.Has("limitCount") &&
                       !select.Has("limitOffset") && !select.Has("withClause");
    return plain ? BindRows(select) : BindSelect(select);
  }

  /// 42601 unless each column has a value; without a list there may be fewer.
  absl::Status FitColumns(size_t values, int position) {
    if (values > statement_.columns.size() || (listed_ && values < statement_.columns.size()))
      return WrongNumberOfValues(values, statement_.columns.size(), position);
    statement_.columns.resize(values);
    return absl::OkStatus();
  }

  absl::Status BindRows(const Node& select) {
    NAM_RETURN_IF_ERROR(select.Only({"valuesLists", "limitOption", "op"}));
    const LogicalSelect::Within within(values_, nothing_);
    const std::vector<Node> rows = select.List("valuesLists");
    const size_t width = rows.at(0).List("items").size();
    for (const Node& row : rows) {
      const std::vector<Node> items = row.List("items");
      NAM_ASSIGN_OR_RETURN(std::vector<ChangeValue> values, ValuesOf(items));
      if (items.size() != width) {
        return UserError(sqlstate::kSyntaxError, "VALUES lists must all be the same length",
                         items[0].position(),
                         absl::StrCat("the first has ", width, " values, this one ", items.size()));
      }
      if (statement_.rows.empty()) {
        const size_t wrong = items.size() > statement_.columns.size() ? statement_.columns.size() : 0;
        NAM_RETURN_IF_ERROR(FitColumns(width, items[wrong].position()));
      }
      NAM_RETURN_IF_ERROR(AddRow(items, std::move(values)));
    }
    return absl::OkStatus();
  }

  /// A row's values before conversion to their columns; nullopt for DEFAULT.
  absl::StatusOr<std::vector<ChangeValue>> ValuesOf(const std::vector<Node>& items) {
    std::vector<ChangeValue> values;
    for (const Node& item : items) {
      ChangeValue& value = values.emplace_back();
      if (item.Is("SetToDefault")) continue;
      value = RandomUuid(item.position());
      if (!CallsRandomUuid(item)) {
        NAM_ASSIGN_OR_RETURN(value, values_.BindUntyped(item, Clause::kValues));
      }
      any_asks_ = any_asks_ || values_.UsesSubquery(*value);
    }
    return values;
  }

  absl::Status AddRow(const std::vector<Node>& items, std::vector<ChangeValue> row) {
    for (size_t i = 0; i < items.size(); ++i) {
      const int column = statement_.columns[i];
      if (!row[i].has_value()) {
        defaults_.insert(column);
        continue;
      }
      late_.Update(MayBeGiven(column, items[i].position()));
      NAM_ASSIGN_OR_RETURN(row[i], AsColumn(values_.builder(), *std::move(row[i]), table().columns(column),
                                            items[i].position()));
    }
    statement_.rows.push_back(std::move(row));
    return absl::OkStatus();
  }

  absl::Status BindSelect(const Node& select) {
    values_.builder().UseParameters(node_.text().parameters());
    values_.builder().UseZone(node_.text().time().zone);
    NAM_ASSIGN_OR_RETURN(BoundTree tree, BindQuery(context_, {nullptr, &with_.tables()}, select));
    NAM_RETURN_IF_ERROR(FitColumns(tree.root->columns.size(), select.Leftmost()));
    Project project;
    std::vector<int> given;
    for (size_t i = 0; i < statement_.columns.size(); ++i) {
      const int column = statement_.columns[i];
      if (IgnoresValues(column)) continue;
      late_.Update(MayBeGiven(column, select.Leftmost()));
      Expr value = tree.literals[i].has_value() ? *tree.literals[i]
                                                : MakeColumn(tree.root->columns[i], select.Leftmost());
      NAM_ASSIGN_OR_RETURN(
          value, AsColumn(values_.builder(), std::move(value), table().columns(column), select.Leftmost()));
      project.outputs.push_back(std::move(value));
      given.push_back(column);
    }
    statement_.columns = std::move(given);
    SetSource(AddProject(std::move(project), std::move(tree.root)));
    return absl::OkStatus();
  }

  NodePtr AddProject(Project project, NodePtr input) {
    std::vector<Column> columns;
    const int relation = context_.AddRelation(nullptr);
    for (const Expr& output : project.outputs)
      columns.push_back({{relation, static_cast<int>(columns.size())}, "", output.type, true});
    return MakeNode(std::move(project), std::move(columns), std::move(input));
  }

  void SetSource(NodePtr root) {
    plan::logical::Query query;
    query.root = with_.Around(std::move(root));
    query.relations = static_cast<int>(context_.owners.size());
    query.ctes = context_.ctes;
    plan::logical::DeriveAllColumns(*query.root);
    statement_.source = std::make_shared<plan::logical::Query>(std::move(query));
  }

  /// Rows with subqueries: one query for each.
  absl::Status MakeSourceOfRows() {
    std::vector<NodePtr> inputs;
    for (std::vector<ChangeValue>& row : statement_.rows) {
      Project project;
      std::vector<const Expr*> users;
      for (size_t i = 0; i < row.size(); ++i) {
        const ChangeValue& otherwise = statement_.defaults[static_cast<size_t>(statement_.columns[i])];
        if (!row[i].has_value() && !otherwise.has_value()) {
          return Refusal("DEFAULT of a numbered column in some rows beside subqueries is not supported",
                         node_.Field("selectStmt").Leftmost(),
                         "insert these rows by a statement of their own");
        }
        project.outputs.push_back(row[i].has_value() ? std::move(*row[i]) : *otherwise);
        if (AsksRandomUuid(project.outputs.back())) {
          return Refusal("gen_random_uuid() in some rows beside subqueries is not supported",
                         node_.Field("selectStmt").Leftmost(),
                         "insert these rows by a statement of their own");
        }
      }
      for (const Expr& value : project.outputs) users.push_back(&value);
      NodePtr input = values_.Attach(plan::logical::MakeOneRow(), users);
      inputs.push_back(AddProject(std::move(project), std::move(input)));
    }
    statement_.rows.clear();
    NodePtr all = std::move(inputs[0]);
    if (inputs.size() > 1) {
      std::vector<Column> columns = all->columns;
      const int relation = context_.AddRelation(nullptr);
      for (size_t i = 0; i < columns.size(); ++i) {
        columns[i].ref.table = relation;
        for (const NodePtr& input : inputs) {
          if (input != nullptr) columns[i].type = CommonType(columns[i].type, input->columns[i].type);
        }
      }
      all = MakeNode(SetOperation{SetOperation::Kind::kUnion, true}, std::move(columns), std::move(all),
                     std::move(inputs[1]));
      for (size_t i = 2; i < inputs.size(); ++i) all->inputs.push_back(std::move(inputs[i]));
    }
    SetSource(std::move(all));
    return absl::OkStatus();
  }

  /// OVERRIDING USER VALUE.
  bool IgnoresValues(int column) const {
    return node_.Text("override") == "OVERRIDING_USER_VALUE" &&
           table().columns(column).numbering() != proto::NOT_NUMBERED;
  }

  absl::Status MayBeGiven(int column, int position) const {
    const proto::Column& to = table().columns(column);
    if (to.numbering() != proto::NUMBERED_ALWAYS || node_.Text("override") == "OVERRIDING_SYSTEM_VALUE" ||
        IgnoresValues(column))
      return absl::OkStatus();
    return UserError(sqlstate::kGeneratedAlways,
                     absl::StrCat("cannot insert a non-DEFAULT value into column ", Quote(to.name())),
                     position, "use OVERRIDING SYSTEM VALUE to override");
  }

  /// Columns that are numbered in every row get no values.
  absl::Status LeaveOutNumbers() {
    for (size_t i = statement_.columns.size(); i-- > 0 && !statement_.rows.empty();) {
      const int column = statement_.columns[i];
      if (table().columns(column).numbering() == proto::NOT_NUMBERED) continue;
      const bool given = std::any_of(statement_.rows.begin(), statement_.rows.end(),
                                     [&](const auto& row) { return row[i].has_value(); });
      if (given && !IgnoresValues(column)) continue;
      const auto at = static_cast<std::ptrdiff_t>(i);
      statement_.columns.erase(statement_.columns.begin() + at);
      for (std::vector<ChangeValue>& row : statement_.rows) row.erase(row.begin() + at);
    }
    return absl::OkStatus();
  }

  const Node& node_;
  TableSource& source_;
  LogicalContext context_;
  const FromScope nothing_;
  WithBinder with_{context_, Surroundings()};
  LogicalSelect values_{context_, {nullptr, &with_.tables()}};
  InsertStatement statement_;
  bool listed_ = false;    // the statement names columns
  bool any_asks_ = false;  // a row has a subquery
  std::set<int> defaults_;
  absl::Status late_;  // reported after errors of expressions, as in PostgreSQL
};

}  // namespace

absl::StatusOr<Statement> BindInsert(const Node& node, TableSource& tables) {
  return InsertBinder(node, tables).Bind();
}

}  // namespace nam::sql
