#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sql/declared_type.h"
#include "sql/logical_query.h"
#include "sql/record_binder.h"
#include "sql/relation_names.h"
#include "types/sql_error.h"
#include "types/wire.h"

/// CREATE VIEW, and views in queries. A view is kept as the text of its query with stars written out, so that
/// its meaning stays when its tables get columns.
namespace nam::sql {
namespace {

namespace lg = plan::logical;

/// Views read views: their relations multiply.
constexpr size_t kMostRelationsOfViews = 4'096;
constexpr int kMostNestedViews = 32;
constexpr size_t kMostQueryBytes = 256 << 10;

/// Positions in the view's text are not in the statement.
absl::Status AtRelation(const absl::Status& status, const proto::Table& view, int position) {
  std::optional<SqlError> error = SqlErrorOf(status);
  if (!error.has_value()) return status;
  error->position = position;
  error->message = absl::StrCat("view ", Quote(view.name()), ": ", error->message);
  return ToStatus(*error);
}

class ViewBinder {
 public:
  ViewBinder(const Node& node, TableSource& tables)
      : node_(node), relation_(node.Field("view").OfKind("RangeVar")), tables_(tables) {}

  absl::StatusOr<Statement> Bind() {
    NAM_RETURN_IF_ERROR(RefuseClauses());
    NAM_ASSIGN_OR_RETURN(*view_.mutable_name(), NewRelationName(tables_, relation_));
    LogicalContext context(tables_);
    context.stars = &stars_;
    NAM_ASSIGN_OR_RETURN(const BoundTree tree, BindQuery(context, {}, query_));
    NAM_RETURN_IF_ERROR(context.folding);
    NAM_RETURN_IF_ERROR(AddColumns(tree.root->columns));
    NAM_RETURN_IF_ERROR(Describe(context));
    NAM_RETURN_IF_ERROR(CheckReplaced());
    return Statement(std::move(statement_));
  }

 private:
  absl::Status RefuseClauses() {
    NAM_RETURN_IF_ERROR(CheckIsPermanent(relation_, "view", relation_.position()));
    if (node_.Has("withCheckOption") && node_.Text("withCheckOption") != "NO_CHECK_OPTION")
      return Refusal("WITH CHECK OPTION is not supported", node_.text().Start(), "views are only read");
    if (node_.Has("options"))
      return Refusal("options of a view are not supported", node_.text().Start(), "leave WITH (…) out");
    query_ = node_.Field("query");
    if (!query_.Is("SelectStmt"))
      return Refusal("a view of anything but a query is not supported", relation_.position(), "write SELECT");
    words_ = ColumnWordsOf(query_);
    if (words_.natural) {
      return Refusal("NATURAL JOIN in a view is not supported", relation_.position(),
                     "write USING with the columns, which stay the same when tables get others");
    }
    if (node_.text().parameters() != nullptr)
      return Refusal("a view cannot be prepared", relation_.position(), "write CREATE VIEW by itself");
    statement_.replace = node_.Flag("replace");
    statement_.position = relation_.position();
    return absl::OkStatus();
  }

  absl::Status AddColumns(const std::vector<lg::Column>& columns) {
    const std::vector<std::string> names = node_.Names("aliases");
    if (names.size() > columns.size())
      return UserError(sqlstate::kSyntaxError, "CREATE VIEW specifies more column names than columns",
                       relation_.position(), absl::StrCat("there are ", columns.size(), " columns"));
    std::set<std::string> seen;
    for (size_t i = 0; i < columns.size(); ++i) {
      proto::Column& column = *view_.add_columns();
      column.set_name(i < names.size() ? names[i] : columns[i].name);
      column.set_nullable(columns[i].nullable);
      *column.mutable_type() = CreatedColumn(lg::MakeColumn(columns[i]));
      if (seen.insert(column.name()).second) continue;
      return UserError(sqlstate::kDuplicateColumn,
                       absl::StrCat("column ", Quote(column.name()), " specified more than once"),
                       relation_.position(), "give each column its own name");
    }
    return absl::OkStatus();
  }

  /// The query's stored text, and the relations that it reads.
  absl::Status Describe(const LogicalContext& context) {
    proto::View& kept = *view_.mutable_view();
    std::string text = node_.text().text();
    const auto from = static_cast<size_t>(node_.text().Find({"as"}, relation_.position()) + 2);
    for (auto star = stars_.rbegin(); star != stars_.rend(); ++star) {
      const auto begin = static_cast<size_t>(star->first), end = static_cast<size_t>(star->second.end);
      text.replace(begin, end - begin, star->second.columns);
    }
    text.erase(0, from);
    const size_t last = text.find_last_not_of(" \t\r\n;");
    text.resize(last == std::string::npos ? 0 : last + 1);
    text.erase(0, text.find_first_not_of(" \t\r\n"));
    if (text.size() > kMostQueryBytes) {
      return UserError(sqlstate::kTooComplex, "the query of the view is too long", relation_.position(),
                       absl::StrCat("at most ", kMostQueryBytes >> 10, " KiB with its stars written out"));
    }
    NAM_ASSIGN_OR_RETURN(const ParsedStatement parsed, ParsedStatement::Parse(text, node_.text().time()));
    for (std::string& name : ColumnWordsOf(parsed.root()).names) kept.add_names(std::move(name));
    kept.set_query(std::move(text));
    for (const std::string& schema : tables_.settings().search_path) kept.add_search_path(schema);
    for (const auto& [name, table] : context.named) {
      kept.add_sources(name);
      proto::ViewSource& source = statement_.sources.emplace_back();
      source.set_name(name);
      source.set_creation(table->creation() == 0 ? table->allocation() : table->creation());
      for (const proto::Column& column : table->columns()) {
        if (!column.hidden()) source.add_columns(column.name());
      }
      if (name != view_.name()) continue;
      return UserError(sqlstate::kInvalidObjectDefinition,
                       absl::StrCat("view ", Quote(name), " would read itself"), relation_.position(),
                       "give it another name");
    }
    return absl::OkStatus();
  }

  /// As in PostgreSQL: columns may only be added at the end.
  absl::Status CheckReplaced() {
    if (!statement_.replace) return absl::OkStatus();
    const auto found = tables_.Find(view_.name());
    if (absl::IsNotFound(found.status())) return absl::OkStatus();
    NAM_RETURN_IF_ERROR(found.status());
    if (!(*found)->has_view())
      return UserError(sqlstate::kWrongObjectType, absl::StrCat(Quote(view_.name()), " is not a view"),
                       relation_.position(), "give the view another name");
    for (int i = 0; i < (*found)->columns_size(); ++i) {
      const proto::Column& before = (*found)->columns(i);
      const bool same = i < view_.columns_size() && view_.columns(i).name() == before.name() &&
                        view_.columns(i).type().SerializeAsString() == before.type().SerializeAsString();
      if (same) continue;
      return UserError(sqlstate::kInvalidTableDefinition,
                       absl::StrCat("cannot drop or change column ", Quote(before.name()), " of view ",
                                    Quote(view_.name())),
                       relation_.position(), "DROP VIEW first; columns may be added at the end");
    }
    return absl::OkStatus();
  }

  const Node& node_;
  const Node relation_;
  TableSource& tables_;
  Node query_;
  ColumnWords words_;
  CreateViewStatement statement_;
  proto::Table& view_ = statement_.view;
  std::map<int, WrittenStar> stars_;
};

}  // namespace

absl::StatusOr<Statement> BindCreateView(const Node& node, TableSource& tables) {
  return ViewBinder(node, tables).Bind();
}

absl::StatusOr<BoundTree> BindView(LogicalContext& context, const proto::Table& view, const Node& relation) {
  const int position = relation.position();
  if (context.views >= kMostNestedViews || context.owners.size() > kMostRelationsOfViews) {
    return UserError(sqlstate::kTooComplex,
                     absl::StrCat("view ", Quote(view.name()), " reads too many views"), position,
                     "make a table of one of them");
  }
  const auto bind = [&]() -> absl::StatusOr<BoundTree> {
    StatementTime time = relation.text().time();
    NAM_ASSIGN_OR_RETURN(ParsedStatement parsed,
                         ParsedStatement::Parse(view.view().query(), std::move(time)));
    context.view_texts.push_back(std::make_shared<ParsedStatement>(std::move(parsed)));
    const Node query = context.view_texts.back()->root();
    const std::vector<std::string> path(view.view().search_path().begin(), view.view().search_path().end());
    const std::vector<std::string>* const outer = std::exchange(context.search_path, &path);
    ++context.views;
    absl::StatusOr<BoundTree> tree = BindQuery(context, {}, query);
    --context.views;
    context.search_path = outer;
    return tree;
  };
  absl::StatusOr<BoundTree> tree = bind();
  if (!tree.ok()) return AtRelation(tree.status(), view, position);
  std::vector<lg::Column>& columns = tree->root->columns;
  bool same = columns.size() == static_cast<size_t>(view.columns_size());
  for (size_t i = 0; same && i < columns.size(); ++i) {
    same = CreatedColumn(lg::MakeColumn(columns[i])).SerializeAsString() ==
           view.columns(static_cast<int>(i)).type().SerializeAsString();
    columns[i].name = view.columns(static_cast<int>(i)).name();
  }
  if (!same) {
    return UserError(sqlstate::kWrongState,
                     absl::StrCat("the tables of view ", Quote(view.name()), " have changed"), position,
                     "DROP VIEW and CREATE it again");
  }
  // The view's expressions have no position in the statement.
  const auto forget = [&](plan::Expr& expr) {
    const auto each = [&](const auto& self, plan::Expr& one) -> void {
      one.position = -1;
      for (plan::Expr& child : one.children) self(self, child);
    };
    each(each, expr);
  };
  const auto walk = [&](const auto& self, lg::Node& at) -> void {
    lg::ForExpressions(at, forget);
    for (const lg::NodePtr& input : at.inputs) self(self, *input);
  };
  walk(walk, *tree->root);
  return tree;
}

}  // namespace nam::sql
