#include "sql/foreign_key_binder.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/qualified_names.h"
#include "base/status_macros.h"
#include "partitioner/assigned_value.h"
#include "partitioner/record_row.h"
#include "sql/index_columns.h"
#include "sql/logical_query.h"
#include "sql/relation_names.h"
#include "sql/system_names.h"
#include "types/sql_error.h"

namespace nam::sql {
namespace {

/// Refuses PostgreSQL's options that record tables lack.
absl::Status RefuseOptions(const Node& node) {
  const SqlText& text = node.text();
  const auto at = [&](std::initializer_list<std::string_view> words) {
    const int found = text.Find(words, node.position());
    return found >= 0 ? found : node.position();
  };
  const std::string match = node.Text("fk_matchtype");
  if (match == "f" || match == "p") {
    return Refusal(match == "f" ? "MATCH FULL is not supported" : "MATCH PARTIAL is not supported",
                   at({"match"}), "a key with NULL in it references nothing: MATCH SIMPLE");
  }
  struct {
    const char *field, *event, *name;
  } constexpr kActions[] = {{"fk_del_action", "delete", "DELETE"}, {"fk_upd_action", "update", "UPDATE"}};
  for (const auto& action : kActions) {
    const std::string does = node.Text(action.field);
    const char* const name = does == "c"   ? "CASCADE"
                             : does == "n" ? "SET NULL"
                             : does == "d" ? "SET DEFAULT"
                                           : nullptr;
    if (name == nullptr) continue;
    return Refusal(absl::StrCat("ON ", action.name, " ", name, " is not supported"), at({"on", action.event}),
                   "change the rows that reference it in the same transaction");
  }
  if (node.Flag("deferrable") || node.Flag("initdeferred")) {
    return Refusal("DEFERRABLE is not supported", node.position(),
                   "foreign keys are checked at the end of each statement");
  }
  return node.Only({"contype", "conname", "pktable", "fk_attrs", "pk_attrs", "fk_matchtype", "fk_upd_action",
                    "fk_del_action", "initially_valid"});
}

absl::StatusOr<int> ReferencedColumn(const proto::Table& table, const std::string& name, int position) {
  std::vector<std::string> names;
  for (int i = 0; i < table.columns_size(); ++i) {
    if (table.columns(i).hidden()) continue;
    if (table.columns(i).name() == name) return i;
    names.push_back(table.columns(i).name());
  }
  return UserError(
      sqlstate::kUndefinedColumn,
      absl::StrCat("column ", Quote(name), " referenced in foreign key constraint does not exist"), position,
      DidYouMean(name, names));
}

template <typename Columns>
std::set<uint32_t> SetOf(const Columns& columns) {
  return {columns.begin(), columns.end()};
}

}  // namespace

absl::Status ForeignKeyBinder::Bind(const Node& constraint, const std::string& column) {
  NAM_RETURN_IF_ERROR(RefuseOptions(constraint));
  const int position = constraint.position();
  std::vector<std::string> names = constraint.Names("fk_attrs");
  if (!column.empty()) names = {column};
  std::vector<int> columns;
  for (const std::string& name : names) {
    NAM_ASSIGN_OR_RETURN(const int found, ReferencedColumn(table_, name, position));
    if (std::find(columns.begin(), columns.end(), found) != columns.end()) {
      return UserError(sqlstate::kDuplicateColumn,
                       absl::StrCat("column ", Quote(name), " appears twice in foreign key constraint"),
                       position, "name it once");
    }
    NAM_RETURN_IF_ERROR(CheckOrdered(table_.columns(found), position));
    columns.push_back(found);
  }
  NAM_ASSIGN_OR_RETURN(const std::shared_ptr<const proto::Table> parent, ParentOf(constraint));
  NAM_ASSIGN_OR_RETURN(const std::vector<int> parent_columns, ParentColumns(constraint, *parent));
  if (columns.size() != parent_columns.size()) {
    return UserError(sqlstate::kInvalidForeignKey,
                     "number of referencing and referenced columns for foreign key disagree", position,
                     absl::StrCat(columns.size(), " columns reference ", parent_columns.size()));
  }
  proto::ForeignKey key;
  proto::RecordPart lies;
  for (size_t i = 0; i < columns.size(); ++i) {
    key.add_columns(static_cast<uint32_t>(columns[i]));
    key.add_parent_columns(static_cast<uint32_t>(parent_columns[i]));
    lies.add_columns(static_cast<uint32_t>(parent_columns[i]));
  }
  key.set_parent(parent->name());
  key.set_parent_allocation(parent->allocation());
  NAM_RETURN_IF_ERROR(FindParentKey(*parent, position, key));
  NAM_ASSIGN_OR_RETURN(*key.mutable_name(), NameOf(constraint, columns));
  NAM_RETURN_IF_ERROR(CheckTypes(*parent, position, key));
  partitioner::RecordLayout(*parent).DescribeKey(lies);
  *key.mutable_parent_pieces() = lies.pieces();
  NAM_RETURN_IF_ERROR(AddIndex(position, key));
  *table_.mutable_record()->add_foreign_keys() = std::move(key);
  return absl::OkStatus();
}

/// The parent may be the table itself, as far as it is bound.
absl::StatusOr<std::shared_ptr<const proto::Table>> ForeignKeyBinder::ParentOf(const Node& constraint) {
  const Node relation = constraint.Field("pktable");
  const int position = relation.position();
  NAM_RETURN_IF_ERROR(relation.Only({"catalogname", "schemaname", "relname", "inh", "relpersistence"}));
  const std::string name = WrittenName(relation);
  NAM_RETURN_IF_ERROR(CheckNotSystem(relation.Text("relname"), position));
  NAM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                       CandidateNames(tables_.settings().search_path, relation));
  if (std::find(names.begin(), names.end(), table_.name()) != names.end()) {
    auto itself = std::make_shared<proto::Table>(table_);
    for (const proto::RecordPart& index : statement_.indexes) {
      *itself->mutable_record()->add_parts() = index;
      itself->mutable_record()->mutable_parts()->rbegin()->set_usable_from(1);  // by the first change
    }
    return itself;
  }
  LogicalContext context(tables_);
  NAM_ASSIGN_OR_RETURN(std::shared_ptr<const proto::Table> parent, context.FindTable(relation));
  if (IsRecordTable(*parent)) return parent;
  return Refusal(absl::StrCat("a foreign key to ", Quote(name), " is not supported"), position,
                 "it is a columnar table, which is loaded as a whole");
}

/// The named columns, or the primary key's.
absl::StatusOr<std::vector<int>> ForeignKeyBinder::ParentColumns(const Node& constraint,
                                                                 const proto::Table& parent) const {
  const int position = constraint.position();
  std::vector<int> columns;
  for (const std::string& name : constraint.Names("pk_attrs")) {
    NAM_ASSIGN_OR_RETURN(const int column, ReferencedColumn(parent, name, position));
    if (std::find(columns.begin(), columns.end(), column) != columns.end()) {
      return UserError(sqlstate::kInvalidForeignKey,
                       "foreign key referenced-columns list must not contain duplicates", position,
                       absl::StrCat("column ", Quote(name), " is there twice"));
    }
    columns.push_back(column);
  }
  if (!columns.empty()) return columns;
  if (HasRowIds(parent)) {
    return UserError(sqlstate::kUndefinedObject,
                     absl::StrCat("there is no primary key for referenced table ", Quote(parent.name())),
                     position, "name the columns of a unique constraint");
  }
  for (const uint32_t column : partitioner::KeyColumnsOf(parent)) columns.push_back(static_cast<int>(column));
  return columns;
}

/// 42830 unless the parent's columns are its primary key, or a unique index, in any order.
absl::Status ForeignKeyBinder::FindParentKey(const proto::Table& parent, int position,
                                             proto::ForeignKey& key) const {
  const std::set<uint32_t> wanted = SetOf(key.parent_columns());
  if (SetOf(partitioner::KeyColumnsOf(parent)) == wanted) return absl::OkStatus();
  for (const proto::RecordPart& part : parent.record().parts()) {
    const bool serves = part.kind() == proto::ORDERED_INDEX && part.unique() && !part.leaving() &&
                        part.usable_from() != 0 && SetOf(part.columns()) == wanted;
    if (!serves) continue;
    key.set_parent_index(part.name());
    return absl::OkStatus();
  }
  return UserError(sqlstate::kInvalidForeignKey,
                   absl::StrCat("there is no unique constraint matching given keys for referenced table ",
                                Quote(parent.name())),
                   position, "reference its primary key, or make the columns UNIQUE");
}

/// Keys are compared by their bytes.
absl::Status ForeignKeyBinder::CheckTypes(const proto::Table& parent, int position,
                                          const proto::ForeignKey& key) const {
  for (int i = 0; i < key.columns_size(); ++i) {
    const proto::Column& child = table_.columns(static_cast<int>(key.columns(i)));
    const proto::Column& referenced = parent.columns(static_cast<int>(key.parent_columns(i)));
    if (child.type().SerializeAsString() == referenced.type().SerializeAsString()) continue;
    return UserError(sqlstate::kTypeMismatch,
                     absl::StrCat("foreign key constraint ", Quote(key.name()), " cannot be implemented"),
                     position,
                     absl::StrCat("Key columns ", Quote(child.name()), " and ", Quote(referenced.name()),
                                  " are of different types: ", partitioner::ColumnTypeName(child.type()),
                                  " and ", partitioner::ColumnTypeName(referenced.type()), "."));
  }
  return absl::OkStatus();
}

/// PostgreSQL's default name: table_columns_fkey, with a number if taken.
absl::StatusOr<std::string> ForeignKeyBinder::NameOf(const Node& constraint,
                                                     const std::vector<int>& columns) {
  const std::string given = constraint.Text("conname");
  std::string base = given;
  if (given.empty()) {
    base = BareName(table_.name());
    for (const int column : columns) absl::StrAppend(&base, "_", table_.columns(column).name());
    base += "_fkey";
  }
  std::string name = base;
  for (int n = 1; index_names_.contains(name) || !constraint_names_.insert(name).second; ++n) {
    if (!given.empty()) {
      return UserError(
          sqlstate::kDuplicateObject,
          absl::StrCat("constraint ", Quote(name), " for relation ", Quote(table_.name()), " already exists"),
          constraint.position(), "give each constraint its own name");
    }
    name = absl::StrCat(base, n);
  }
  NAM_RETURN_IF_ERROR(CheckNewName(name, constraint.position()));
  return name;
}

/// Adds the index that finds the rows which reference a key: an existing one of the table, or one of the
/// constraint's name.
absl::Status ForeignKeyBinder::AddIndex(int position, proto::ForeignKey& key) {
  for (const proto::RecordPart& index : statement_.indexes) {
    const bool begins = index.columns_size() >= key.columns_size() &&
                        std::equal(key.columns().begin(), key.columns().end(), index.columns().begin());
    if (!begins) continue;
    key.set_index(index.name());
    return absl::OkStatus();
  }
  proto::RecordPart index;
  *index.mutable_columns() = key.columns();
  const std::string name = QualifiedName(SchemaOfName(table_.name()), key.name());
  NAM_RETURN_IF_ERROR(DescribeIndex(table_, name, /*unique=*/false, position, index));
  index_names_.insert(key.name());
  key.set_index(name);
  statement_.indexes.push_back(std::move(index));
  return absl::OkStatus();
}

absl::Status BindReferences(TableSource& tables, BoundTable& bound) {
  const proto::Table& table = *bound.table;
  const auto find = [&](const std::string& name,
                        uint64_t allocation) -> absl::StatusOr<std::shared_ptr<const proto::Table>> {
    if (name == table.name()) return bound.table;
    absl::StatusOr<std::shared_ptr<const proto::Table>> found = tables.Find(name);
    if (absl::IsNotFound(found.status())) return nullptr;
    if (found.ok() && (*found)->allocation() != allocation) return nullptr;
    return found;
  };
  for (const proto::ForeignKey& key : table.record().foreign_keys()) {
    NAM_ASSIGN_OR_RETURN(auto parent, find(key.parent(), key.parent_allocation()));
    if (parent == nullptr) {
      return UserError(sqlstate::kWrongState,
                       absl::StrCat("table ", Quote(key.parent()), ", which constraint ", Quote(key.name()),
                                    " references, is lost"),
                       -1, absl::StrCat("drop table ", Quote(table.name())));
    }
    bound.parents.push_back(std::move(parent));
  }
  for (const proto::ReferencingKey& reference : table.record().referenced_by()) {
    NAM_ASSIGN_OR_RETURN(auto child, find(reference.child(), reference.child_allocation()));
    bound.children.push_back(std::move(child));
  }
  return absl::OkStatus();
}

}  // namespace nam::sql
