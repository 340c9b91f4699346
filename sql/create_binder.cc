#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/qualified_names.h"
#include "base/status_macros.h"
#include "partitioner/record_row.h"
#include "partitioner/row_bytes.h"
#include "plan/expression_tree.h"
#include "sql/column_type.h"
#include "sql/column_values.h"
#include "sql/expression_binder.h"
#include "sql/foreign_key_binder.h"
#include "sql/index_columns.h"
#include "sql/logical_scope.h"
#include "sql/record_binder.h"
#include "sql/relation_names.h"
#include "sql/storage_options.h"
#include "sql/system_names.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::sql {
namespace {

using partitioner::RecordLayout;
using plan::Expr;

constexpr int kMostColumns = 1600;  // PostgreSQL's own bound
constexpr uint32_t kMostKeyBytes = 1024;

/// A table's own columns, as relation 0.
class CheckScope final : public QueryScope {
 public:
  explicit CheckScope(const proto::Table& table) {
    FromRelation relation{.alias = BareName(table.name()), .table = table.name(), .columns = {}};
    for (int i = 0; i < table.columns_size(); ++i) {
      const proto::Column& column = table.columns(i);
      if (column.hidden()) continue;
      relation.columns.push_back({{0, i}, column.name(), ColumnTypeOf(column.type()), column.nullable()});
    }
    scope_.columns = relation.columns;
    scope_.relations.push_back(std::move(relation));
  }

  std::optional<absl::StatusOr<Expr>> BindInQuery(const Node& node, Clause, int) override {
    if (node.Is("SubLink"))
      return Refusal("cannot use subquery in check constraint", node.position(),
                     "a condition looks at its own row alone");
    if (!node.Is("ColumnRef")) return std::nullopt;
    const ScopeLevel level{.scope = &scope_};
    const auto column = ResolveColumn(level, node);
    if (!column.ok()) return column.status();
    return plan::logical::MakeColumn(*column, node.position());
  }

 private:
  FromScope scope_;
};

class TableBinder {
 public:
  TableBinder(const Node& node, TableSource& tables)
      : node_(node), text_(node.text()), tables_(tables), table_(statement_.table) {}

  absl::StatusOr<Statement> Bind() {
    NAM_RETURN_IF_ERROR(RefuseClauses());
    NAM_RETURN_IF_ERROR(BindName());
    NAM_RETURN_IF_ERROR(BindOptions());
    for (const Node& element : node_.List("tableElts")) NAM_RETURN_IF_ERROR(BindElement(element));
    if (columnar()) {
      NAM_RETURN_IF_ERROR(RefuseConstraints());
      NAM_RETURN_IF_ERROR(LayOutColumnar(options_, statement_.position, table_));
      return Statement(std::move(statement_));
    }
    NAM_RETURN_IF_ERROR(BindKey());
    NAM_RETURN_IF_ERROR(BindCheckConstraints());
    NAM_RETURN_IF_ERROR(LayOut());
    for (const Constraint& unique : uniques_) NAM_RETURN_IF_ERROR(BindUnique(unique));
    ForeignKeyBinder keys(statement_, tables_, unique_names_, check_names_);
    for (const Constraint& key : foreign_keys_) NAM_RETURN_IF_ERROR(keys.Bind(key.node, key.column));
    return Statement(std::move(statement_));
  }

 private:
  struct Constraint {
    Node node;
    std::string column;  // of a column constraint; empty: the table's
  };

  absl::Status RefuseClauses() {
    const Node relation = node_.Field("relation");
    NAM_RETURN_IF_ERROR(CheckIsPermanent(relation, "table", text_.Find({}, text_.Start() + 1)));
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
    NAM_RETURN_IF_ERROR(relation.Only({"catalogname", "schemaname", "relname", "inh", "relpersistence"}));
    NAM_ASSIGN_OR_RETURN(*table_.mutable_name(), NewRelationName(tables_, relation));
    return absl::OkStatus();
  }

  absl::Status BindOptions() {
    using Storage = StorageOptions::Storage;
    const NameSettings::Storage by_setting = tables_.settings().default_storage;
    const bool columns = by_setting == NameSettings::Storage::kColumnar;
    statement_.storage_by_default =
        node_.List("options").empty() && by_setting == NameSettings::Storage::kAuto;
    NAM_ASSIGN_OR_RETURN(options_, StorageOptions::From(node_.List("options"),
                                                        columns ? Storage::kColumnar : Storage::kRecord));
    if (!columnar()) table_.mutable_record()->set_versions(options_.versions);
    return absl::OkStatus();
  }
  bool columnar() const { return options_.storage == StorageOptions::Storage::kColumnar; }

  /// For a columnar table, after its columns.
  absl::Status RefuseConstraints() const {
    const Constraint* found = key_.has_value() ? &*key_ : nullptr;
    for (const auto* constraints : {&uniques_, &foreign_keys_, &checks_}) {
      if (found == nullptr && !constraints->empty()) found = &constraints->front();
    }
    if (found == nullptr) return absl::OkStatus();
    return Refusal("constraints of a columnar table other than NOT NULL are not supported",
                   found->node.position(), "WITH (storage = record) makes a table that has them");
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
    if (HasColumnOf(table_, name)) {
      return UserError(sqlstate::kDuplicateColumn,
                       absl::StrCat("column ", Quote(name), " specified more than once"), node.position(),
                       "give each column its own name");
    }
    if (table_.columns_size() >= kMostColumns) {
      return UserError(sqlstate::kLimitExceeded, "too many columns", node.position(),
                       absl::StrCat("at most ", kMostColumns));
    }
    NAM_RETURN_IF_ERROR(CheckColumnName(name, node.position()));
    proto::Column& column = *table_.add_columns();
    column.set_name(name);
    column.set_nullable(true);
    NAM_RETURN_IF_ERROR(BindType(node.Field("typeName"), column));
    const std::vector<Node> constraints = node.List("constraints");
    bool null = false;
    for (const Node& constraint : constraints) {
      const std::string kind = constraint.Text("contype");
      if (kind == "CONSTR_NULL") null = true;
      if (kind == "CONSTR_NOTNULL") column.set_nullable(false);
      if (kind == "CONSTR_NULL" || kind == "CONSTR_NOTNULL") {
        NAM_RETURN_IF_ERROR(constraint.Only({"contype"}));
      } else if (kind == "CONSTR_DEFAULT") {
        NAM_RETURN_IF_ERROR(AddDefault(constraint, constraints, column));
      } else if (kind == "CONSTR_IDENTITY") {
        NAM_RETURN_IF_ERROR(AddIdentity(constraint, column));
      } else {
        NAM_RETURN_IF_ERROR(AddConstraint({constraint, name}));
      }
      if (null && !column.nullable()) {
        return UserError(sqlstate::kSyntaxError,
                         absl::StrCat("conflicting NULL/NOT NULL declarations for column ", Quote(name),
                                      " of table ", Quote(table_.name())),
                         constraint.position(), "leave one out");
      }
    }
    return absl::OkStatus();
  }

  /// serial is a numbered integer.
  absl::Status BindType(const Node& type_name, proto::Column& column) {
    NAM_ASSIGN_OR_RETURN(const std::optional<proto::Type> serial, SerialTypeOfName(type_name));
    if (serial.has_value()) {
      *column.mutable_type() = *serial;
      Number(column, proto::NUMBERED_BY_DEFAULT);
      return absl::OkStatus();
    }
    NAM_ASSIGN_OR_RETURN(*column.mutable_type(), ColumnTypeOfName(type_name));
    return absl::OkStatus();
  }

  static void Number(proto::Column& column, proto::Numbering numbering) {
    column.set_numbering(numbering);
    column.set_first_number(1);
    column.set_number_step(1);
    column.set_nullable(false);
  }

  /// Kept as written, so that now() is the time of each INSERT, except constants: 'today' is today.
  absl::Status AddDefault(const Node& constraint, const std::vector<Node>& constraints,
                          proto::Column& column) {
    NAM_RETURN_IF_ERROR(constraint.Only({"contype", "raw_expr"}));
    NAM_RETURN_IF_ERROR(CheckOneDefault(column, constraint.position()));
    const int from = constraint.position() + static_cast<int>(std::string_view("default").size());
    int end = text_.EndOfItem(from);
    for (const Node& other : constraints) {
      if (other.position() >= from) end = std::min(end, other.position());
    }
    ExpressionBuilder::FixedTimes times;
    NAM_RETURN_IF_ERROR(BindDefault(constraint.Field("raw_expr"), column, &times).status());
    column.set_default_expression(text_.Excerpt(from, end, times));
    return absl::OkStatus();
  }

  absl::Status CheckOneDefault(const proto::Column& column, int position) const {
    const bool numbered = column.numbering() != proto::NOT_NUMBERED;
    if (!numbered && column.default_expression().empty()) return absl::OkStatus();
    return UserError(sqlstate::kSyntaxError,
                     absl::StrCat(numbered ? "both default and identity specified for column "
                                           : "multiple default values specified for column ",
                                  Quote(column.name()), " of table ", Quote(table_.name())),
                     position, "leave one out");
  }

  absl::Status AddIdentity(const Node& constraint, proto::Column& column) {
    NAM_RETURN_IF_ERROR(constraint.Only({"contype", "generated_when", "options"}));
    NAM_RETURN_IF_ERROR(CheckOneDefault(column, constraint.position()));
    if (ColumnTypeOf(column.type()).kind != TypeKind::kInteger) {
      return UserError(sqlstate::kBadParameter, "identity column type must be smallint, integer, or bigint",
                       constraint.position(), "write bigint");
    }
    Number(column,
           constraint.Text("generated_when") == "a" ? proto::NUMBERED_ALWAYS : proto::NUMBERED_BY_DEFAULT);
    bool starts = false;
    for (const Node& option : constraint.List("options")) {
      const std::string name = option.Text("defname");
      const int position = option.position();
      if (name != "start" && name != "increment") {
        return Refusal(absl::StrCat("sequence option ", Quote(name), " is not supported"), position,
                       "options are START WITH and INCREMENT BY");
      }
      NAM_ASSIGN_OR_RETURN(const int64_t number, NumberOf(option, name));
      starts = starts || name == "start";
      name == "start" ? column.set_first_number(number) : column.set_number_step(number);
    }
    if (column.number_step() == 0)
      return UserError(sqlstate::kBadParameter, "INCREMENT must not be zero", constraint.position());
    if (!starts && column.number_step() < 0) column.set_first_number(-1);
    return absl::OkStatus();
  }

  /// The number of a sequence's option: INCREMENT [BY] n, START [WITH] n.
  absl::StatusOr<int64_t> NumberOf(const Node& option, const std::string& name) const {
    const Node value = option.Field("arg");
    const int position = option.position();
    if (value.Is("Float")) {
      int64_t number = 0;
      if (absl::SimpleAtoi(value.Text("fval"), &number)) return number;
      return UserError(sqlstate::kNumberOutOfRange, "the number is out of range", position);
    }
    // The tree omits numbers that are not positive, so the text tells.
    int at = text_.Find({}, position + static_cast<int>(name.size()));
    for (const char* word : {"by", "with"}) {
      if (text_.Find({word}, at) == at) at = text_.Find({}, at + 1);
    }
    return text_.IntegerAt(at);
  }

  absl::Status AddConstraint(Constraint constraint) {
    const Node& node = constraint.node;
    const std::string kind = node.Text("contype");
    if (kind == "CONSTR_PRIMARY") {
      NAM_RETURN_IF_ERROR(node.Only({"contype", "keys", "conname"}));
      if (key_.has_value()) {
        return UserError(
            sqlstate::kInvalidTableDefinition,
            absl::StrCat("multiple primary keys for table ", Quote(table_.name()), " are not allowed"),
            node.position(), "a key of several columns is written PRIMARY KEY (a, b)");
      }
      key_ = std::move(constraint);
      return absl::OkStatus();
    }
    if (kind == "CONSTR_CHECK") {
      NAM_RETURN_IF_ERROR(node.Only({"contype", "conname", "raw_expr", "initially_valid"}));
      checks_.push_back(std::move(constraint));
      return absl::OkStatus();
    }
    if (kind == "CONSTR_UNIQUE") {
      NAM_RETURN_IF_ERROR(node.Only({"contype", "keys", "conname"}));
      uniques_.push_back(std::move(constraint));
      return absl::OkStatus();
    }
    if (kind == "CONSTR_FOREIGN") {
      foreign_keys_.push_back(std::move(constraint));
      return absl::OkStatus();
    }
    if (kind == "CONSTR_ATTR_NOT_DEFERRABLE" || kind == "CONSTR_ATTR_IMMEDIATE") return absl::OkStatus();
    struct {
      const char *kind, *name, *hint;
    } constexpr kRefused[] = {
        {"CONSTR_GENERATED", "GENERATED", "compute it in the query"},
        {"CONSTR_EXCLUSION", "EXCLUDE", "leave it out"},
        {"CONSTR_ATTR_DEFERRABLE", "DEFERRABLE", "constraints are checked at the end of each statement"},
        {"CONSTR_ATTR_DEFERRED", "INITIALLY DEFERRED",
         "constraints are checked at the end of each statement"},
    };
    for (const auto& refused : kRefused) {
      if (kind == refused.kind) {
        return Refusal(absl::StrCat(refused.name, " is not supported"), node.position(), refused.hint);
      }
    }
    return Refusal("this constraint is not supported", node.position(), "leave it out");
  }

  /// The columns of a key; `what` names it in messages.
  absl::StatusOr<std::vector<int>> KeyColumns(const Constraint& constraint, const char* what) {
    std::vector<std::string> names = constraint.node.Names("keys");
    if (!constraint.column.empty()) names = {constraint.column};
    std::vector<int> columns;
    for (const std::string& name : names) {
      NAM_ASSIGN_OR_RETURN(const int column, IndexedColumn(table_, name, constraint.node.position()));
      if (std::find(columns.begin(), columns.end(), column) != columns.end()) {
        return UserError(sqlstate::kDuplicateColumn,
                         absl::StrCat("column ", Quote(name), " appears twice in ", what, " constraint"),
                         constraint.node.position(), "name it once");
      }
      NAM_RETURN_IF_ERROR(CheckOrdered(table_.columns(column), constraint.node.position()));
      columns.push_back(column);
    }
    return columns;
  }

  absl::Status BindKey() {
    if (!key_.has_value()) {
      // A number that statements do not see distinguishes rows.
      proto::Column& column = *table_.add_columns();
      column.set_name(kRowIdColumn);
      *column.mutable_type() = ToProto(Type{.kind = TypeKind::kInteger, .precision = sizeof(int64_t)});
      Number(column, proto::NUMBERED_ALWAYS);
      column.set_hidden(true);
      table_.mutable_record()->add_primary_key(kRowIdColumn);
      return absl::OkStatus();
    }
    NAM_ASSIGN_OR_RETURN(const std::vector<int> columns, KeyColumns(*key_, "primary key"));
    for (const int column : columns) {
      table_.mutable_record()->add_primary_key(table_.columns(column).name());
      table_.mutable_columns(column)->set_nullable(false);
    }
    table_.mutable_record()->set_primary_key_name(key_->node.Text("conname"));
    return absl::OkStatus();
  }

  /// PostgreSQL's default name: table_columns_key, with a number if taken.
  absl::StatusOr<std::string> UniqueName(const Constraint& unique, const std::vector<int>& columns) {
    const std::string given = unique.node.Text("conname");
    std::string base = given;
    if (given.empty()) {
      base = BareName(table_.name());
      for (const int column : columns) absl::StrAppend(&base, "_", table_.columns(column).name());
      base += "_key";
    }
    std::string name = base;
    for (int n = 1; !unique_names_.insert(name).second; ++n) {
      if (!given.empty()) {
        return UserError(sqlstate::kDuplicateTable, absl::StrCat("relation ", Quote(name), " already exists"),
                         unique.node.position(), "give each constraint its own name");
      }
      name = absl::StrCat(base, n);
    }
    return name;
  }

  /// A unique index that is made with the table.
  absl::Status BindUnique(const Constraint& unique) {
    const int position = unique.node.position();
    NAM_ASSIGN_OR_RETURN(const std::vector<int> columns, KeyColumns(unique, "unique"));
    proto::RecordPart index;
    for (const int column : columns) index.add_columns(static_cast<uint32_t>(column));
    NAM_ASSIGN_OR_RETURN(const std::string name, UniqueName(unique, columns));
    NAM_RETURN_IF_ERROR(CheckNewName(name, position));
    // An index is in its table's schema.
    const std::string index_name = QualifiedName(SchemaOfName(table_.name()), name);
    NAM_RETURN_IF_ERROR(DescribeIndex(table_, index_name, /*unique=*/true, position, index));
    // Of two constraints on the same columns one is enough.
    const auto same = [&](const proto::RecordPart& other) {
      return std::equal(index.columns().begin(), index.columns().end(), other.columns().begin(),
                        other.columns().end());
    };
    if (std::any_of(statement_.indexes.begin(), statement_.indexes.end(), same)) return absl::OkStatus();
    table_.mutable_record()->add_unique_constraints(index_name);
    statement_.indexes.push_back(std::move(index));
    return absl::OkStatus();
  }

  /// PostgreSQL's default name: table_column_check, or table_check, with a number if taken. The column is the
  /// only one that the condition names.
  absl::StatusOr<std::string> CheckName(const Constraint& check, const Expr& condition) {
    const std::string given = check.node.Text("conname");
    const std::vector<plan::ColumnRef> columns = ColumnsOf(condition);
    const std::string base =
        !given.empty() ? given
        : columns.size() != 1
            ? absl::StrCat(BareName(table_.name()), "_check")
            : absl::StrCat(BareName(table_.name()), "_", table_.columns(columns[0].column).name(), "_check");
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

  /// Kept like DEFAULT's expressions: the session that changes a row gives now() and its zone.
  absl::Status BindCheckConstraints() {
    CheckScope scope(table_);
    for (const Constraint& check : checks_) {
      ExpressionBinder expressions(scope);
      ExpressionBuilder::FixedTimes times;
      expressions.builder().UseFixedTimes(&times);
      NAM_ASSIGN_OR_RETURN(const Expr condition,
                           expressions.BindBoolean(check.node.Field("raw_expr"), Clause::kCheck));
      proto::RecordCheck& out = *table_.mutable_record()->add_checks();
      NAM_ASSIGN_OR_RETURN(*out.mutable_name(), CheckName(check, condition));
      const int open = text_.Find({"("}, text_.Find({"check"}, check.node.position()));
      out.set_expression(text_.Excerpt(open + 1, text_.EndOfItem(open + 1), times));
    }
    return absl::OkStatus();
  }

  absl::Status LayOut() {
    const RecordLayout layout(table_);
    const uint64_t row_bytes = std::max<uint64_t>(layout.row_bytes(), partitioner::RowBytes(table_).most());
    if (row_bytes > partitioner::kRowBytesMax || layout.key_bytes() > kMostKeyBytes) {
      const bool key = layout.key_bytes() > kMostKeyBytes;
      return UserError(
          sqlstate::kLimitExceeded,
          absl::StrCat(key ? "the primary key" : "a row", " of ", Quote(table_.name()), " has ",
                       key ? layout.key_bytes() : row_bytes, " bytes"),
          statement_.position,
          absl::StrCat("at most ", key ? kMostKeyBytes : partitioner::kRowBytesMax, kCharacterBytes));
    }
    table_.mutable_record()->set_row_bytes(layout.row_bytes());
    table_.mutable_record()->set_key_bytes(layout.key_bytes());
    return absl::OkStatus();
  }

  const Node& node_;
  const SqlText& text_;
  TableSource& tables_;
  CreateTableStatement statement_;
  proto::Table& table_;
  StorageOptions options_;
  std::optional<Constraint> key_;
  std::vector<Constraint> checks_;
  std::vector<Constraint> uniques_;
  std::vector<Constraint> foreign_keys_;
  std::set<std::string> check_names_, unique_names_;
};

}  // namespace

absl::StatusOr<Statement> BindCreateTable(const Node& node, TableSource& tables) {
  return TableBinder(node, tables).Bind();
}

absl::StatusOr<std::vector<BoundCheck>> BindChecks(const std::shared_ptr<const proto::Table>& table,
                                                   const StatementTime& time) {
  CheckScope scope(*table);
  std::vector<BoundCheck> checks;
  for (const proto::RecordCheck& check : table->record().checks()) {
    NAM_ASSIGN_OR_RETURN(const ParsedStatement parsed,
                         ParsedStatement::Parse(absl::StrCat("SELECT ", check.expression()), time));
    const std::vector<Node> targets = parsed.root().List("targetList");
    if (targets.size() != 1) {
      return absl::DataLossError(
          absl::StrCat("check ", check.name(), " of ", table->name(), " is no condition"));
    }
    ExpressionBinder expressions(scope);
    NAM_ASSIGN_OR_RETURN(Expr condition, expressions.BindBoolean(targets[0].Field("val"), Clause::kCheck));
    plan::ForgetPositions(condition);
    checks.push_back({check.name(), std::move(condition)});
  }
  return checks;
}

}  // namespace nam::sql
