#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "partitioner/record_row.h"
#include "plan/expression_tree.h"
#include "sql/column_type.h"
#include "sql/expression_binder.h"
#include "sql/from_binder.h"
#include "sql/record_binder.h"
#include "sql/system_names.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

using partitioner::RecordLayout;
using plan::Expr;

constexpr int kMostColumns = 1600;  // PostgreSQL's own bound
constexpr uint32_t kMostRowBytes = 64 << 10;
constexpr uint32_t kMostKeyBytes = 512;
// Without the bytes that tell NULL. A node of an ordered index holds several keys.
constexpr uint32_t kMostIndexKeyBytes = 256;
constexpr int kMostIndexColumns = 32;  // PostgreSQL's own bound
constexpr int64_t kMostVersions = 16;
constexpr int64_t kDefaultVersions = 1;

constexpr char kCharacterBytes[] = " bytes; each character of a text takes 4";
constexpr char kUniqueHint[] = "CREATE UNIQUE INDEX once the table is there";

/// A table's own scope, for CHECK.
Scope ScopeOf(const proto::Table& table) {
  Scope scope;
  scope.tables = {0};
  for (int i = 0; i < table.columns_size(); ++i) scope.columns.push_back({table.columns(i).name(), {0, i}});
  return scope;
}

int FindColumn(const proto::Table& table, const std::string& name) {
  for (int i = 0; i < table.columns_size(); ++i) {
    if (table.columns(i).name() == name) return i;
  }
  return -1;
}

absl::StatusOr<int> KeyColumn(const proto::Table& table, const std::string& name, int position) {
  const int column = FindColumn(table, name);
  if (column >= 0) return column;
  std::vector<std::string> names;
  for (const proto::Column& c : table.columns()) names.push_back(c.name());
  return UserError(sqlstate::kUndefinedColumn, absl::StrCat("column ", Quote(name), " does not exist"),
                   position, DidYouMean(name, names));
}

void ForgetPositions(Expr& expr) {
  expr.position = -1;
  for (Expr& child : expr.children) ForgetPositions(child);
}

class TableBinder {
 public:
  explicit TableBinder(const Node& node) : node_(node), text_(node.text()), table_(statement_.table) {}

  absl::StatusOr<Statement> Bind() {
    NAM_RETURN_IF_ERROR(RefuseClauses());
    NAM_RETURN_IF_ERROR(BindName());
    NAM_RETURN_IF_ERROR(BindOptions());
    for (const Node& element : node_.List("tableElts")) NAM_RETURN_IF_ERROR(BindElement(element));
    NAM_RETURN_IF_ERROR(BindKey());
    NAM_RETURN_IF_ERROR(BindCheckConstraints());
    NAM_RETURN_IF_ERROR(LayOut());
    return Statement(std::move(statement_));
  }

 private:
  struct Constraint {
    Node node;
    std::string column;  // whose constraint it is; empty: the table's
  };

  absl::Status RefuseClauses() {
    const Node relation = node_.Field("relation");
    const std::string persistence = relation.Text("relpersistence");
    if (persistence != "p") {
      return Refusal(persistence == "t" ? "TEMPORARY is not supported" : "UNLOGGED is not supported",
                     text_.Find({}, text_.Start() + 1), "leave it out");
    }
    struct {
      const char *field, *word, *name;
    } constexpr kRefused[] = {
        {"inhRelations", "inherits", "INHERITS"},  {"partbound", "partition", "PARTITION OF"},
        {"partspec", "partition", "PARTITION BY"}, {"ofTypename", "of", "CREATE TABLE … OF"},
        {"accessMethod", "using", "USING"},        {"tablespacename", "tablespace", "TABLESPACE"}};
    for (const auto& refused : kRefused) {
      if (!node_.Has(refused.field)) continue;
      return Refusal(absl::StrCat(refused.name, " is not supported"),
                     text_.Find({refused.word}, relation.position()), "leave it out");
    }
    if (node_.Text("oncommit") != "ONCOMMIT_NOOP") {
      return Refusal("ON COMMIT is not supported", text_.Find({"on", "commit"}), "leave it out");
    }
    return node_.Only({"relation", "tableElts", "options", "oncommit", "if_not_exists"});
  }

  absl::Status BindName() {
    const Node relation = node_.Field("relation");
    statement_.position = relation.position();
    statement_.if_not_exists = node_.Flag("if_not_exists");
    if (relation.Has("catalogname") ||
        (relation.Has("schemaname") && relation.Text("schemaname") != "public")) {
      return Refusal("schemas other than public are not supported", relation.position(),
                     "write the table's name alone");
    }
    NAM_RETURN_IF_ERROR(relation.Only({"schemaname", "relname", "inh", "relpersistence"}));
    table_.set_name(relation.Text("relname"));
    return CheckNotSystem(table_.name(), relation.position());
  }

  /// WITH (storage = record [, versions = n]).
  absl::Status BindOptions() {
    bool record = false;
    int64_t versions = kDefaultVersions;
    for (const Node& option : node_.List("options")) {
      NAM_RETURN_IF_ERROR(option.Only({"defname", "arg", "defaction"}));
      const std::string name = option.Text("defname");
      const Node value = option.Field("arg");
      if (name == "storage") {
        const std::vector<std::string> words = value.Names("names");
        const std::string word = words.empty() ? value.Text("sval") : words.back();
        if (word != "record") {
          return UserError(sqlstate::kBadParameter, absl::StrCat("storage ", Quote(word), " does not exist"),
                           option.position(), "write storage = record");
        }
        record = true;
      } else if (name == "versions") {
        versions = value.Is("Integer") ? value.Integer("ival") : 0;
        if (versions < 1 || versions > kMostVersions) {
          return UserError(sqlstate::kBadParameter,
                           absl::StrCat("versions must be a whole number from 1 to ", kMostVersions),
                           option.position(), "it is how many versions a record keeps for older snapshots");
        }
      } else {
        return Refusal(absl::StrCat("table option ", Quote(name), " is not supported"), option.position(),
                       "options are storage and versions");
      }
    }
    if (!record) {
      return Refusal("CREATE TABLE without WITH (storage = record) is not supported", text_.Start(),
                     "append WITH (storage = record); analytical tables are created by loading them");
    }
    table_.mutable_record()->set_versions(static_cast<uint32_t>(versions));
    return absl::OkStatus();
  }

  absl::Status BindElement(const Node& element) {
    if (element.Is("ColumnDef")) return BindColumn(element);
    if (element.Is("Constraint")) return AddConstraint({element, ""});
    return Refusal("LIKE is not supported", text_.FindBefore("like", element.Leftmost()), "list the columns");
  }

  absl::Status BindColumn(const Node& node) {
    const std::string name = node.Text("colname");
    if (node.Has("collClause")) {
      return Refusal("COLLATE is not supported", node.Field("collClause").position(),
                     "strings are compared by bytes");
    }
    NAM_RETURN_IF_ERROR(node.Only({"colname", "typeName", "is_local", "constraints"}));
    if (FindColumn(table_, name) >= 0) {
      return UserError(sqlstate::kDuplicateColumn, absl::StrCat("column ", Quote(name), " is there twice"),
                       node.position(), "give each column its own name");
    }
    if (table_.columns_size() >= kMostColumns) {
      return UserError(sqlstate::kLimitExceeded, "too many columns", node.position(),
                       absl::StrCat("at most ", kMostColumns));
    }
    proto::Column& column = *table_.add_columns();
    column.set_name(name);
    column.set_nullable(true);
    NAM_ASSIGN_OR_RETURN(*column.mutable_type(), ColumnTypeOfName(node.Field("typeName")));
    bool null = false;
    for (const Node& constraint : node.List("constraints")) {
      const std::string kind = constraint.Text("contype");
      if (kind == "CONSTR_NULL") null = true;
      if (kind == "CONSTR_NOTNULL") column.set_nullable(false);
      if (null && !column.nullable()) {
        return UserError(sqlstate::kSyntaxError,
                         absl::StrCat("column ", Quote(name), " is both NULL and NOT NULL"),
                         constraint.position(), "leave one out");
      }
      if (kind == "CONSTR_NULL" || kind == "CONSTR_NOTNULL") {
        NAM_RETURN_IF_ERROR(constraint.Only({"contype"}));
      } else {
        NAM_RETURN_IF_ERROR(AddConstraint({constraint, name}));
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddConstraint(Constraint constraint) {
    const Node& node = constraint.node;
    const std::string kind = node.Text("contype");
    if (kind == "CONSTR_PRIMARY") {
      NAM_RETURN_IF_ERROR(node.Only({"contype", "keys"}));
      if (key_.has_value()) {
        return UserError(sqlstate::kInvalidTableDefinition, "there are two primary keys", node.position(),
                         "a key of several columns is written PRIMARY KEY (a, b)");
      }
      key_ = std::move(constraint);
      return absl::OkStatus();
    }
    if (kind == "CONSTR_CHECK") {
      NAM_RETURN_IF_ERROR(node.Only({"contype", "conname", "raw_expr", "initially_valid"}));
      checks_.push_back(std::move(constraint));
      return absl::OkStatus();
    }
    struct {
      const char *kind, *name, *hint;
    } constexpr kRefused[] = {
        {"CONSTR_DEFAULT", "DEFAULT", "name the column in INSERT; one that is left out is NULL"},
        {"CONSTR_IDENTITY", "GENERATED AS IDENTITY", "give the key in INSERT"},
        {"CONSTR_GENERATED", "GENERATED", "compute it in the query"},
        {"CONSTR_UNIQUE", "UNIQUE", kUniqueHint},
        {"CONSTR_EXCLUSION", "EXCLUDE", "leave it out"},
        {"CONSTR_FOREIGN", "FOREIGN KEY", "check the other table in the same transaction"},
    };
    for (const auto& refused : kRefused) {
      if (kind == refused.kind) {
        return Refusal(absl::StrCat(refused.name, " is not supported"), node.position(), refused.hint);
      }
    }
    return Refusal("this constraint is not supported", node.position(), "leave it out");
  }

  absl::Status BindKey() {
    if (!key_.has_value()) {
      return Refusal("a record table without PRIMARY KEY is not supported", statement_.position,
                     "append PRIMARY KEY (columns)");
    }
    std::vector<std::string> names = key_->node.Names("keys");
    if (!key_->column.empty()) names = {key_->column};
    std::set<int> seen;
    for (const std::string& name : names) {
      NAM_ASSIGN_OR_RETURN(const int column, KeyColumn(table_, name, key_->node.position()));
      if (!seen.insert(column).second) {
        return UserError(sqlstate::kDuplicateColumn,
                         absl::StrCat("column ", Quote(name), " is twice in the primary key"),
                         key_->node.position(), "name it once");
      }
      table_.mutable_record()->add_primary_key(name);
      table_.mutable_columns(column)->set_nullable(false);
    }
    return absl::OkStatus();
  }

  /// As PostgreSQL names what has no name: table_column_check, table_check, with a number if taken.
  absl::StatusOr<std::string> CheckName(const Constraint& check) {
    const std::string given = check.node.Text("conname");
    const std::string base = !given.empty() ? given
                             : check.column.empty()
                                 ? absl::StrCat(table_.name(), "_check")
                                 : absl::StrCat(table_.name(), "_", check.column, "_check");
    std::string name = base;
    for (int n = 1; !check_names_.insert(name).second; ++n) {
      if (!given.empty()) {
        return UserError(sqlstate::kDuplicateObject,
                         absl::StrCat("constraint ", Quote(name), " is there twice"), check.node.position(),
                         "give each its own name");
      }
      name = absl::StrCat(base, n);
    }
    return name;
  }

  absl::Status BindCheckConstraints() {
    const std::vector<BoundTable> tables = {{table_.name(), std::make_shared<proto::Table>(table_)}};
    const Scope scope = ScopeOf(table_);
    for (const Constraint& check : checks_) {
      ExpressionBinder expressions(tables);
      NAM_ASSIGN_OR_RETURN(const Expr condition,
                           expressions.BindBoolean(check.node.Field("raw_expr"), scope, Clause::kCheck));
      proto::RecordCheck& out = *table_.mutable_record()->add_checks();
      NAM_ASSIGN_OR_RETURN(*out.mutable_name(), CheckName(check));
      out.set_expression(ToString(condition, [&](const Expr& e) {
        const std::string& name = table_.columns(e.column.column).name();
        return absl::StrCat("\"", absl::StrReplaceAll(name, {{"\"", "\"\""}}), "\"");
      }));
    }
    return absl::OkStatus();
  }

  absl::Status LayOut() {
    const RecordLayout layout(table_);
    if (layout.row_bytes() > kMostRowBytes || layout.key_bytes() > kMostKeyBytes) {
      const bool key = layout.key_bytes() > kMostKeyBytes;
      return UserError(sqlstate::kLimitExceeded,
                       absl::StrCat(key ? "the primary key" : "a row", " of ", Quote(table_.name()), " has ",
                                    key ? layout.key_bytes() : layout.row_bytes(), " bytes"),
                       statement_.position,
                       absl::StrCat("at most ", key ? kMostKeyBytes : kMostRowBytes, kCharacterBytes));
    }
    table_.mutable_record()->set_row_bytes(layout.row_bytes());
    table_.mutable_record()->set_key_bytes(layout.key_bytes());
    return absl::OkStatus();
  }

  const Node& node_;
  const SqlText& text_;
  CreateTableStatement statement_;
  proto::Table& table_;
  std::optional<Constraint> key_;
  std::vector<Constraint> checks_;
  std::set<std::string> check_names_;
};

absl::Status RefuseIndexClauses(const Node& node) {
  const SqlText& text = node.text();
  const int table = node.Field("relation").position();
  struct {
    const char *field, *word, *name, *hint;
  } constexpr kRefused[] = {
      {"concurrent", "concurrently", "CONCURRENTLY", "others may write meanwhile without it"},
      {"indexIncludingParams", "include", "INCLUDE", "leave it out"},
      {"nulls_not_distinct", "nulls", "NULLS NOT DISTINCT", "leave it out"},
      {"options", "with", "WITH", "an index has no options"},
      {"tableSpace", "tablespace", "TABLESPACE", "leave it out"},
      {"whereClause", "where", "a partial index", "index all rows"}};
  for (const auto& refused : kRefused) {
    if (!node.Has(refused.field)) continue;
    const int behind = text.Find({refused.word}, table);
    return Refusal(absl::StrCat(refused.name, " is not supported"),
                   behind >= 0 ? behind : text.Find({refused.word}), refused.hint);
  }
  if (node.Text("accessMethod") != "btree") {
    return Refusal(absl::StrCat("index method ", Quote(node.Text("accessMethod")), " is not supported"),
                   text.Find({"using"}, table), "an index is ordered: btree");
  }
  return node.Only({"idxname", "relation", "accessMethod", "indexParams", "unique", "if_not_exists"});
}

absl::StatusOr<uint32_t> IndexColumn(const Node& element, const proto::Table& table, int position) {
  if (element.Has("expr")) {
    return Refusal("an index over an expression is not supported", element.position(), "index columns");
  }
  if (element.Has("collation") || element.Has("opclass")) {
    return Refusal("COLLATE and operator classes of an index are not supported", position,
                   "strings are compared by bytes");
  }
  if (element.Text("ordering") == "SORTBY_DESC" || element.Text("nulls_ordering") == "SORTBY_NULLS_FIRST") {
    return Refusal("DESC and NULLS FIRST of an index are not supported", position,
                   "an index serves ascending orders alone, with NULLs last");
  }
  NAM_RETURN_IF_ERROR(element.Only({"name", "ordering", "nulls_ordering"}));
  NAM_ASSIGN_OR_RETURN(const int column, KeyColumn(table, element.Text("name"), position));
  return static_cast<uint32_t>(column);
}

absl::Status CheckIndexSize(const RecordLayout& layout, const proto::RecordPart& index, int position) {
  if (index.columns_size() > kMostIndexColumns) {
    return UserError(sqlstate::kLimitExceeded,
                     absl::StrCat("the index has ", index.columns_size(), " columns"), position,
                     absl::StrCat("at most ", kMostIndexColumns));
  }
  uint32_t bytes = 0;
  for (const uint32_t column : index.columns()) bytes += layout.bytes(column);
  if (bytes <= kMostIndexKeyBytes) return absl::OkStatus();
  return UserError(sqlstate::kLimitExceeded, absl::StrCat("a key of the index has ", bytes, " bytes"),
                   position, absl::StrCat("at most ", kMostIndexKeyBytes, kCharacterBytes));
}

}  // namespace

absl::StatusOr<Statement> BindCreateTable(const Node& node) {
  return TableBinder(node).Bind();
}

absl::StatusOr<Statement> BindCreateIndex(const Node& node, TableSource& tables) {
  NAM_RETURN_IF_ERROR(RefuseIndexClauses(node));
  BoundQuery query;
  ExpressionBinder expressions(query.tables);
  FromBinder from(query, tables, expressions);
  const Node relation = node.Field("relation");
  NAM_RETURN_IF_ERROR(CheckNotSystem(relation.Text("relname"), relation.position()));
  NAM_RETURN_IF_ERROR(from.BindTarget(relation).status());
  CreateIndexStatement statement;
  statement.table = query.tables[0].table;
  statement.if_not_exists = node.Flag("if_not_exists");
  statement.position = relation.position();
  const proto::Table& table = *statement.table;
  if (!IsRecordTable(table)) {
    return Refusal(absl::StrCat("an index on ", Quote(table.name()), " is not supported"),
                   relation.position(),
                   "it is an analytical table, which is partitioned by its join keys when loaded");
  }
  // The columns have no location: they stand behind the table's name.
  int position = node.text().Find({"("}, relation.position());
  std::vector<std::string> names;
  const RecordLayout layout(table);
  for (const Node& element : node.List("indexParams")) {
    if (element.Has("name"))
      position = std::max(position, node.text().Find({element.Text("name")}, position + 1));
    NAM_ASSIGN_OR_RETURN(const uint32_t column, IndexColumn(element, table, position));
    names.push_back(table.columns(static_cast<int>(column)).name());
    statement.index.add_columns(column);
  }
  layout.DescribeKey(statement.index);
  NAM_RETURN_IF_ERROR(CheckIndexSize(layout, statement.index, relation.position()));
  statement.index.set_kind(proto::ORDERED_INDEX);
  statement.index.set_unique(node.Flag("unique"));
  statement.named = node.Has("idxname");
  statement.index.set_name(statement.named
                               ? node.Text("idxname")
                               : absl::StrCat(table.name(), "_", absl::StrJoin(names, "_"), "_idx"));
  NAM_RETURN_IF_ERROR(CheckNotSystem(statement.index.name(), node.text().Find({"index"})));
  return Statement(std::move(statement));
}

absl::StatusOr<std::vector<BoundCheck>> BindChecks(const std::shared_ptr<const proto::Table>& table) {
  const std::vector<BoundTable> tables = {{table->name(), table}};
  const Scope scope = ScopeOf(*table);
  std::vector<BoundCheck> checks;
  for (const proto::RecordCheck& check : table->record().checks()) {
    NAM_ASSIGN_OR_RETURN(const ParsedStatement parsed,
                         ParsedStatement::Parse(absl::StrCat("SELECT ", check.expression())));
    const std::vector<Node> targets = parsed.root().List("targetList");
    if (targets.size() != 1) {
      return absl::DataLossError(
          absl::StrCat("check ", check.name(), " of ", table->name(), " is no condition"));
    }
    ExpressionBinder expressions(tables);
    NAM_ASSIGN_OR_RETURN(Expr condition,
                         expressions.BindBoolean(targets[0].Field("val"), scope, Clause::kCheck));
    ForgetPositions(condition);
    checks.push_back({check.name(), std::move(condition)});
  }
  return checks;
}

}  // namespace nam::sql
