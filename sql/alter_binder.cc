#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/qualified_names.h"
#include "base/status_macros.h"
#include "plan/expression_tree.h"
#include "plan/logical.h"
#include "sql/column_type.h"
#include "sql/column_values.h"
#include "sql/constraints.h"
#include "sql/logical_query.h"
#include "sql/record_binder.h"
#include "sql/relation_names.h"
#include "sql/system_names.h"
#include "types/sql_error.h"
#include "types/wire.h"

/// ALTER TABLE.
namespace nam::sql {
namespace {

namespace lg = plan::logical;

constexpr int kMostColumnsOfColumnar = 1'024;

int VisibleColumn(const proto::Table& table, const std::string& name) {
  for (int c = 0; c < table.columns_size(); ++c) {
    if (!table.columns(c).hidden() && table.columns(c).name() == name) return c;
  }
  return -1;
}

absl::Status NoSuchColumn(const proto::Table& table, const std::string& name, int position) {
  std::vector<std::string> names;
  for (const proto::Column& column : table.columns()) {
    if (!column.hidden()) names.push_back(column.name());
  }
  return UserError(
      sqlstate::kUndefinedColumn,
      absl::StrCat("column ", Quote(name), " of relation ", Quote(table.name()), " does not exist"), position,
      DidYouMean(name, names));
}

absl::Status DuplicateColumn(const proto::Table& table, const std::string& name, int position) {
  return UserError(
      sqlstate::kDuplicateColumn,
      absl::StrCat("column ", Quote(name), " of relation ", Quote(table.name()), " already exists"), position,
      "give it another name");
}

bool Mentions(const std::string& condition, const std::string& column) {
  const auto parsed = ParsedStatement::Parse(absl::StrCat("SELECT ", condition));
  if (!parsed.ok()) return true;
  const std::vector<std::string> names = ColumnWordsOf(parsed->root()).names;
  return std::find(names.begin(), names.end(), column) != names.end();
}

/// Finds the altered table or view.
class Altered {
 public:
  Altered(const Node& node, TableSource& tables) : node_(node), tables_(tables), context_(tables) {}

  /// False, with a notice, for IF EXISTS without the table.
  absl::StatusOr<bool> Find(const Node& relation, AlterTableStatement& out) {
    NAM_RETURN_IF_ERROR(CheckNotSystem(relation.Text("relname"), relation.position()));
    if (relation.Has("inh") && !relation.Flag("inh"))
      return Refusal("ONLY is not supported", relation.position(), "tables have no children here");
    out.position = relation.position();
    auto found = context_.FindRelation(relation);
    const std::optional<SqlError> error = SqlErrorOf(found.status());
    if (error.has_value() && error->sqlstate == sqlstate::kUndefinedTable && node_.Flag("missing_ok")) {
      out.notices.push_back(
          absl::StrCat("relation ", Quote(WrittenName(relation)), " does not exist, skipping"));
      return false;
    }
    NAM_ASSIGN_OR_RETURN(out.table, std::move(found));
    out.changed = *out.table;
    return true;
  }

  absl::Status MustBeTable(const AlterTableStatement& statement) const {
    if (!statement.table->has_view()) return absl::OkStatus();
    return UserError(sqlstate::kWrongObjectType, absl::StrCat(Quote(statement.table->name()), " is a view"),
                     statement.position, "CREATE OR REPLACE VIEW changes it");
  }

 private:
  const Node& node_;
  TableSource& tables_;
  LogicalContext context_;
};

class TableAlterer {
 public:
  TableAlterer(const Node& node, TableSource& tables)
      : node_(node), found_(node, tables), changed_(statement_.changed) {}

  absl::StatusOr<Statement> Bind() {
    NAM_RETURN_IF_ERROR(node_.Only({"relation", "cmds", "objtype", "missing_ok"}));
    statement_.command = "ALTER TABLE";
    NAM_ASSIGN_OR_RETURN(const bool there,
                         found_.Find(node_.Field("relation").OfKind("RangeVar"), statement_));
    if (!there) return Statement(std::move(statement_));
    NAM_RETURN_IF_ERROR(found_.MustBeTable(statement_));
    for (const Node& command : node_.List("cmds")) NAM_RETURN_IF_ERROR(BindCommand(command));
    if (!added_.empty()) MakeSource();
    return Statement(std::move(statement_));
  }

 private:
  bool record() const { return IsRecordTable(changed_); }

  absl::Status BindCommand(const Node& command) {
    const std::string type = command.Text("subtype");
    if (type == "AT_AddColumn") return Add(command);
    if (type == "AT_DropColumn") return Drop(command);
    return Refusal("this form of ALTER TABLE is not supported", statement_.position,
                   "forms are RENAME TO, RENAME COLUMN, ADD COLUMN, DROP COLUMN and SET SCHEMA");
  }

  absl::Status Add(const Node& command) {
    const Node definition = command.Field("def");
    const std::string name = definition.Text("colname");
    const int position = definition.position();
    NAM_RETURN_IF_ERROR(CheckColumnName(name, position));
    if (VisibleColumn(changed_, name) >= 0) {
      if (!command.Flag("missing_ok")) return DuplicateColumn(changed_, name, position);
      statement_.notices.push_back(absl::StrCat("column ", Quote(name), " of relation ",
                                                Quote(changed_.name()), " already exists, skipping"));
      return absl::OkStatus();
    }
    if (record()) {
      return Refusal("ADD COLUMN of a record table is not supported", position,
                     "its rows have no room for it: CREATE another TABLE, and INSERT INTO it … SELECT");
    }
    if (changed_.columns_size() >= kMostColumnsOfColumnar) {
      return UserError(sqlstate::kLimitExceeded, "too many columns", position,
                       absl::StrCat("at most ", kMostColumnsOfColumnar));
    }
    NAM_RETURN_IF_ERROR(definition.Only({"colname", "typeName", "is_local", "constraints"}));
    proto::Column& column = *changed_.add_columns();
    column.set_name(name);
    column.set_nullable(true);
    NAM_ASSIGN_OR_RETURN(*column.mutable_type(), ColumnTypeOfName(definition.Field("typeName")));
    Type type = TypeOfColumn(column);
    plan::Expr value = plan::MakeLiteral(Value::Null(type), -1);
    for (const Node& constraint : definition.List("constraints")) {
      const std::string kind = constraint.Text("contype");
      if (kind == "CONSTR_NOTNULL") {
        column.set_nullable(false);
      } else if (kind == "CONSTR_DEFAULT") {
        NAM_ASSIGN_OR_RETURN(value, BindAddedDefault(constraint, definition, column));
      } else if (kind != "CONSTR_NULL") {
        return Refusal("constraints of a columnar table other than NOT NULL are not supported",
                       constraint.position(), "WITH (storage = record) makes a table that has them");
      }
    }
    if (!column.nullable() && changed_.rows() > 0 && value.op == plan::Op::kLiteral && value.literal.null) {
      return UserError(sqlstate::kNotNullViolation,
                       absl::StrCat("column ", Quote(name), " of relation ", Quote(changed_.name()),
                                    " contains null values"),
                       position, "give it a DEFAULT");
    }
    added_.emplace(changed_.columns_size() - 1, std::move(value));
    return absl::OkStatus();
  }

  /// Kept as written, as in CREATE TABLE, for later rows.
  absl::StatusOr<plan::Expr> BindAddedDefault(const Node& constraint, const Node& definition,
                                              proto::Column& column) {
    const SqlText& text = node_.text();
    const int from = constraint.position() + static_cast<int>(std::string_view("default").size());
    int end = text.EndOfItem(from);
    for (const Node& other : definition.List("constraints")) {
      if (other.position() >= from) end = std::min(end, other.position());
    }
    NAM_ASSIGN_OR_RETURN(plan::Expr value, BindDefault(constraint.Field("raw_expr"), column, nullptr));
    column.set_default_expression(text.Excerpt(from, end, {}));
    const bool random = AsksRandomUuid(value);
    if (!random && ConstantDefault(column).ok()) return value;
    return Refusal("a DEFAULT of a columnar table that is no constant is not supported",
                   constraint.position(),
                   random ? "all rows would share one UUID: write it as a constant if they should"
                          : "write the value itself");
  }

  absl::Status Drop(const Node& command) {
    const std::string name = command.Text("name");
    const int position = node_.text().Find({"drop"}, statement_.position);
    const int c = VisibleColumn(changed_, name);
    if (c < 0) {
      if (!command.Flag("missing_ok")) return NoSuchColumn(changed_, name, position);
      statement_.notices.push_back(absl::StrCat("column ", Quote(name), " of relation ",
                                                Quote(changed_.name()), " does not exist, skipping"));
      return absl::OkStatus();
    }
    if (command.Text("behavior") == "DROP_CASCADE")
      return Refusal("DROP COLUMN … CASCADE is not supported", position, "drop what depends on it first");
    NAM_RETURN_IF_ERROR(CheckNotNeeded(c, position));
    proto::Column& column = *changed_.mutable_columns(c);
    if (added_.erase(c) > 0) {
      changed_.mutable_columns()->DeleteSubrange(c, 1);  // the same statement added it, as the last one
      return absl::OkStatus();
    }
    column.set_name(absl::StrCat(kDroppedPrefix, c + 1));
    column.set_hidden(true);
    column.set_dropped(true);
    column.set_numbering(proto::NOT_NUMBERED);
    column.clear_default_expression();
    if (!record()) {
      column.set_nullable(true);  // its codes are not read any more
      return absl::OkStatus();
    }
    // The bytes of existing rows stay, and new rows need some there.
    if (!column.nullable()) NAM_RETURN_IF_ERROR(GiveFiller(column, position));
    auto& checks = *changed_.mutable_record()->mutable_checks();
    checks.erase(
        std::remove_if(checks.begin(), checks.end(),
                       [&](const proto::RecordCheck& check) { return Mentions(check.expression(), name); }),
        checks.end());
    return absl::OkStatus();
  }

  static absl::Status GiveFiller(proto::Column& column, int position) {
    switch (ColumnTypeOf(column.type()).kind) {
      case TypeKind::kInteger:
      case TypeKind::kDecimal:
      case TypeKind::kNumeric:
      case TypeKind::kDouble:
        column.set_default_expression("0");
        return absl::OkStatus();
      case TypeKind::kBool:
        column.set_default_expression("false");
        return absl::OkStatus();
      case TypeKind::kString:
        column.set_default_expression("''");
        return absl::OkStatus();
      case TypeKind::kDate:
      case TypeKind::kTimestamp:
        column.set_default_expression("'2000-01-01'");
        return absl::OkStatus();
      default:
        return Refusal("DROP of a NOT NULL column of this type is not supported", position,
                       "CREATE another TABLE without it, and INSERT INTO it … SELECT");
    }
  }

  absl::Status CheckNotNeeded(int c, int position) const {
    const std::string& name = changed_.columns(c).name();
    const auto needs = [&](const std::string& what, const char* hint) {
      return UserError(sqlstate::kDependentObjects,
                       absl::StrCat("cannot drop column ", Quote(name), " of table ", Quote(changed_.name()),
                                    " because ", what, " depends on it"),
                       position, hint);
    };
    int visible = 0;
    for (const proto::Column& column : changed_.columns()) visible += column.hidden() ? 0 : 1;
    if (visible == 1) return Refusal("DROP of the last column is not supported", position, "DROP the TABLE");
    for (const proto::PartitionKey& key : changed_.partitioning()) {
      if (key.column() == name)
        return needs("the table's partitioning", "CREATE the TABLE anew, AS SELECT from it");
    }
    if (changed_.sort_column() == name)
      return needs("the order of the table's rows", "CREATE the TABLE anew, AS SELECT from it");
    const proto::RecordStorage& record = changed_.record();
    const auto& key = record.primary_key();
    if (std::find(key.begin(), key.end(), name) != key.end())
      return needs("the primary key", "CREATE another TABLE with another key, and INSERT INTO it … SELECT");
    const auto has = [&](const google::protobuf::RepeatedField<uint32_t>& columns) {
      return std::find(columns.begin(), columns.end(), static_cast<uint32_t>(c)) != columns.end();
    };
    for (const proto::ForeignKey& foreign : record.foreign_keys()) {
      if (has(foreign.columns()))
        return needs(absl::StrCat("constraint ", Quote(foreign.name())), "drop the table");
    }
    for (const proto::ReferencingKey& reference : record.referenced_by()) {
      if (!has(reference.key().parent_columns())) continue;
      return needs(
          absl::StrCat("constraint ", Quote(reference.key().name()), " on table ", Quote(reference.child())),
          "drop that table first");
    }
    for (const proto::RecordPart& part : record.parts()) {
      if (part.kind() == proto::ORDERED_INDEX && !part.leaving() && has(part.columns()))
        return needs(absl::StrCat("index ", Quote(part.name())), "DROP INDEX first");
    }
    return absl::OkStatus();
  }

  /// All rows, with the new columns' defaults and without dropped columns.
  void MakeSource() {
    const proto::Table& table = *statement_.table;
    std::vector<lg::Column> scanned, columns;
    for (int c = 0; c < table.columns_size(); ++c) {
      const proto::Column& column = table.columns(c);
      scanned.push_back({{0, c}, column.name(), ColumnTypeOf(column.type()), column.nullable()});
    }
    lg::Project project;
    google::protobuf::RepeatedPtrField<proto::Column> kept;
    for (int c = 0; c < changed_.columns_size(); ++c) {
      const proto::Column& column = changed_.columns(c);
      if (column.dropped()) continue;
      const auto added = added_.find(c);
      project.outputs.push_back(added == added_.end() ? lg::MakeColumn(scanned[static_cast<size_t>(c)])
                                                      : added->second);
      columns.push_back({{1, static_cast<int>(columns.size())},
                         column.name(),
                         project.outputs.back().type,
                         column.nullable()});
      *kept.Add() = column;
    }
    *changed_.mutable_columns() = std::move(kept);
    lg::Query query;
    query.root = lg::MakeNode(std::move(project), std::move(columns),
                              lg::MakeNode(lg::Scan{0, statement_.table}, std::move(scanned)));
    query.relations = 2;
    statement_.source = std::make_shared<lg::Query>(std::move(query));
  }

  const Node& node_;
  AlterTableStatement statement_;
  Altered found_;
  proto::Table& changed_;
  std::map<int, plan::Expr> added_;  // by place in changed_: the values of existing rows
};

/// The text of a check with the column's new name.
absl::StatusOr<std::string> RenameIn(const std::string& condition, const std::string& from,
                                     const std::string& to) {
  const std::string text = absl::StrCat("SELECT ", condition);
  NAM_ASSIGN_OR_RETURN(const ParsedStatement parsed, ParsedStatement::Parse(text));
  std::vector<int> places = ColumnPlacesOf(parsed.root(), from);
  std::sort(places.rbegin(), places.rend());
  std::string out = text;
  const ScanResult scan = Scan(text);
  const std::string quoted = absl::StrCat("\"", absl::StrReplaceAll(to, {{"\"", "\"\""}}), "\"");
  for (const int place : places) {
    // The column's name is the last of a dotted name.
    size_t t = 0;
    while (t < scan.tokens.size() && scan.tokens[t].start != place) ++t;
    while (t + 2 < scan.tokens.size() && scan.tokens[t + 1].kind == '.') t += 2;
    if (t >= scan.tokens.size()) return absl::InternalError("a column without a place");
    const auto start = static_cast<size_t>(scan.tokens[t].start),
               end = static_cast<size_t>(scan.tokens[t].end);
    out.replace(start, end - start, quoted);
  }
  return out.substr(std::string_view("SELECT ").size());
}

absl::Status RenameColumn(const Node& node, AlterTableStatement& statement) {
  const std::string from = node.Text("subname"), to = node.Text("newname");
  proto::Table& table = statement.changed;
  const int c = VisibleColumn(table, from);
  if (c < 0) return NoSuchColumn(table, from, statement.position);
  if (VisibleColumn(table, to) >= 0) return DuplicateColumn(table, to, statement.position);
  NAM_RETURN_IF_ERROR(CheckColumnName(to, statement.position));
  table.mutable_columns(c)->set_name(to);
  for (proto::PartitionKey& key : *table.mutable_partitioning()) {
    if (key.column() == from) key.set_column(to);
  }
  if (table.sort_column() == from) table.set_sort_column(to);
  if (!table.has_record()) return absl::OkStatus();
  for (std::string& key : *table.mutable_record()->mutable_primary_key()) {
    if (key == from) key = to;
  }
  for (proto::RecordCheck& check : *table.mutable_record()->mutable_checks()) {
    NAM_ASSIGN_OR_RETURN(*check.mutable_expression(), RenameIn(check.expression(), from, to));
  }
  return absl::OkStatus();
}

/// Clients of transactions know record tables by their names, for their whole lifetime.
absl::Status RefuseRecordTable(const AlterTableStatement& statement, const char* what) {
  if (!statement.table->has_record()) return absl::OkStatus();
  return Refusal(absl::StrCat(what, " of a record table is not supported"), statement.position,
                 "CREATE another TABLE, INSERT INTO it … SELECT, and DROP this one");
}

}  // namespace

absl::StatusOr<Statement> BindAlterTable(const Node& node, TableSource& tables) {
  if (node.Text("objtype") != "OBJECT_TABLE")
    return Refusal("ALTER of anything but tables is not supported", node.text().Start(), "write ALTER TABLE");
  return TableAlterer(node, tables).Bind();
}

absl::StatusOr<Statement> BindRename(const Node& node, TableSource& tables) {
  const std::string type = node.Text("renameType");
  const bool column = type == "OBJECT_COLUMN", view = type == "OBJECT_VIEW";
  if (!column && !view && type != "OBJECT_TABLE") {
    return Refusal("ALTER … RENAME of anything but tables, views and columns is not supported",
                   node.text().Start(), "DROP it, and CREATE it with another name");
  }
  AlterTableStatement statement;
  Altered altered(node, tables);
  statement.command = view ? "ALTER VIEW" : "ALTER TABLE";
  NAM_ASSIGN_OR_RETURN(const bool there, altered.Find(node.Field("relation").OfKind("RangeVar"), statement));
  if (!there) return Statement(std::move(statement));
  if (view && !statement.table->has_view())
    return UserError(sqlstate::kWrongObjectType,
                     absl::StrCat(Quote(statement.table->name()), " is not a view"), statement.position,
                     "write ALTER TABLE");
  if (column) {
    NAM_RETURN_IF_ERROR(altered.MustBeTable(statement));
    NAM_RETURN_IF_ERROR(RenameColumn(node, statement));
    return Statement(std::move(statement));
  }
  NAM_RETURN_IF_ERROR(RefuseRecordTable(statement, "RENAME"));
  NAM_RETURN_IF_ERROR(CheckNewName(node.Text("newname"), statement.position));
  statement.to = QualifiedName(SchemaOfName(statement.table->name()), node.Text("newname"));
  return Statement(std::move(statement));
}

absl::StatusOr<Statement> BindSetSchema(const Node& node, TableSource& tables) {
  const std::string type = node.Text("objectType");
  if (type != "OBJECT_TABLE" && type != "OBJECT_VIEW") {
    return Refusal("SET SCHEMA of anything but tables and views is not supported", node.text().Start(),
                   "write ALTER TABLE");
  }
  AlterTableStatement statement;
  Altered altered(node, tables);
  statement.command = type == "OBJECT_VIEW" ? "ALTER VIEW" : "ALTER TABLE";
  NAM_ASSIGN_OR_RETURN(const bool there, altered.Find(node.Field("relation").OfKind("RangeVar"), statement));
  if (!there) return Statement(std::move(statement));
  const std::string schema = node.Text("newschema");
  if (schema == SchemaOfName(statement.table->name())) {
    statement.table = nullptr;
    return Statement(std::move(statement));
  }
  NAM_RETURN_IF_ERROR(RefuseRecordTable(statement, "SET SCHEMA"));
  NAM_ASSIGN_OR_RETURN(const bool exists, SchemaExists(tables, schema));
  if (!exists) return NoSuchSchema(schema, statement.position);
  statement.to = QualifiedName(schema, BareName(statement.table->name()));
  NAM_RETURN_IF_ERROR(CheckNotSystem(statement.to, statement.position));
  return Statement(std::move(statement));
}

}  // namespace nam::sql
