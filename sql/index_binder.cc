#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/qualified_names.h"
#include "base/status_macros.h"
#include "partitioner/record_row.h"
#include "sql/index_columns.h"
#include "sql/logical_select.h"
#include "sql/record_binder.h"
#include "sql/relation_names.h"
#include "sql/system_names.h"
#include "types/sql_error.h"
#include "types/wire.h"

/// CREATE INDEX, and the indexes of constraints.
namespace nam::sql {
namespace {

// Without the bytes that mark NULL. A node of an ordered index holds several keys.
constexpr uint32_t kMostIndexKeyBytes = 1024;
constexpr int kMostIndexColumns = 32;  // PostgreSQL's own bound

absl::Status RefuseIndexClauses(const Node& node) {
  const SqlText& text = node.text();
  const int table = node.Field("relation").position();
  struct {
    const char *field, *word, *name, *hint;
  } constexpr kRefused[] = {
      {"concurrent", "concurrently", "CONCURRENTLY", "other sessions can write meanwhile without it"},
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
  NAM_ASSIGN_OR_RETURN(const int column, IndexedColumn(table, element.Text("name"), position));
  NAM_RETURN_IF_ERROR(CheckOrdered(table.columns(column), position));
  return static_cast<uint32_t>(column);
}

}  // namespace

bool HasColumnOf(const proto::Table& table, const std::string& name) {
  return std::any_of(table.columns().begin(), table.columns().end(),
                     [&](const proto::Column& column) { return column.name() == name; });
}

absl::StatusOr<int> IndexedColumn(const proto::Table& table, const std::string& name, int position) {
  std::vector<std::string> names;
  for (int i = 0; i < table.columns_size(); ++i) {
    if (table.columns(i).hidden()) continue;
    if (table.columns(i).name() == name) return i;
    names.push_back(table.columns(i).name());
  }
  return UserError(sqlstate::kUndefinedColumn, absl::StrCat("column ", Quote(name), " does not exist"),
                   position, DidYouMean(name, names));
}

absl::Status CheckOrdered(const proto::Column& column, int position) {
  const Type type = ColumnTypeOf(column.type());
  if (type.kind != TypeKind::kInterval) return absl::OkStatus();
  return Refusal(absl::StrCat("column ", Quote(column.name()), " of type ", TypeName(type),
                              " as a key is not supported"),
                 position, "one span of time has many forms: index a number of seconds, or a timestamp");
}

absl::Status DescribeIndex(const proto::Table& table, const std::string& name, bool unique, int position,
                           proto::RecordPart& index) {
  const partitioner::RecordLayout layout(table);
  index.set_name(name);
  index.set_kind(proto::ORDERED_INDEX);
  index.set_unique(unique);
  layout.DescribeKey(index);
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

absl::StatusOr<Statement> BindCreateIndex(const Node& node, TableSource& tables) {
  NAM_RETURN_IF_ERROR(RefuseIndexClauses(node));
  const Node relation = node.Field("relation");
  NAM_RETURN_IF_ERROR(CheckNotSystem(relation.Text("relname"), relation.position()));
  LogicalContext context(tables);
  LogicalSelect select(context, Surroundings());
  FromScope scope;
  NAM_RETURN_IF_ERROR(context.FindTable(relation).status());
  NAM_RETURN_IF_ERROR(BindFrom(select, {relation.OfKind("RangeVar")}, scope).status());
  CreateIndexStatement statement;
  statement.table = context.scanned[0];
  statement.if_not_exists = node.Flag("if_not_exists");
  statement.position = relation.position();
  const proto::Table& table = *statement.table;
  if (!IsRecordTable(table)) {
    return Refusal(absl::StrCat("an index on ", Quote(table.name()), " is not supported"),
                   relation.position(),
                   "it is a columnar table, which is partitioned by its join keys when loaded");
  }
  // The columns have no location: they follow the table's name.
  int position = node.text().Find({"("}, relation.position());
  std::vector<std::string> names;
  for (const Node& element : node.List("indexParams")) {
    if (element.Has("name"))
      position = std::max(position, node.text().Find({element.Text("name")}, position + 1));
    NAM_ASSIGN_OR_RETURN(const uint32_t column, IndexColumn(element, table, position));
    names.push_back(table.columns(static_cast<int>(column)).name());
    statement.index.add_columns(column);
  }
  statement.named = node.Has("idxname");
  if (statement.named) NAM_RETURN_IF_ERROR(CheckNewName(node.Text("idxname"), node.text().Find({"index"})));
  // An index is in its table's schema.
  const std::string name = statement.named
                               ? QualifiedName(SchemaOfName(table.name()), node.Text("idxname"))
                               : absl::StrCat(table.name(), "_", absl::StrJoin(names, "_"), "_idx");
  NAM_RETURN_IF_ERROR(DescribeIndex(table, name, node.Flag("unique"), relation.position(), statement.index));
  NAM_RETURN_IF_ERROR(CheckNotSystem(statement.index.name(), node.text().Find({"index"})));
  return Statement(std::move(statement));
}

}  // namespace nam::sql
