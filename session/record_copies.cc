#include "session/record_copies.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "partitioner/loader.h"
#include "plan/aggregate.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::session {
namespace {

using plan::ColumnRef;
using plan::Expr;
using sql::BoundQuery;

constexpr size_t kBatchRows = 1'024;
constexpr uint64_t kTextBytes = 4;  // beside the text itself

/// By table and column.
std::vector<std::vector<bool>> NeededColumns(const BoundQuery& query) {
  std::vector<std::vector<bool>> needed;
  for (const sql::BoundTable& table : query.tables)
    needed.emplace_back(static_cast<size_t>(table.table->columns_size()), false);
  const auto need = [&](ColumnRef column) {
    needed[static_cast<size_t>(column.table)][static_cast<size_t>(column.column)] = true;
  };
  const auto need_all = [&](const Expr& expr) {
    for (const ColumnRef column : plan::ColumnsOf(expr)) need(column);
  };
  for (const sql::JoinEdge& edge : query.joins) {
    need(edge.left);
    need(edge.right);
  }
  for (const Expr& expr : query.conjuncts) need_all(expr);
  for (const Expr& expr : query.group_by) need_all(expr);
  for (const plan::Aggregate& aggregate : query.aggregates) need_all(aggregate.argument);
  for (const sql::OutputColumn& column : query.select) need_all(column.expr);
  for (const plan::OrderKey& key : query.order_by) need_all(key.expr);
  return needed;
}

/// Columns keep their places; those that are not needed are NULL.
partitioner::TableSchema SchemaOf(const proto::Table& table, std::string name,
                                  const std::vector<bool>& needed) {
  partitioner::TableSchema schema;
  schema.name = std::move(name);
  for (int c = 0; c < table.columns_size(); ++c) {
    const proto::Column& column = table.columns(c);
    if (needed[static_cast<size_t>(c)]) {
      schema.columns.push_back({column.name(), ColumnTypeOf(column.type()), column.nullable()});
    } else {
      schema.columns.push_back({column.name(), Type::Integer(), true});
    }
  }
  return schema;
}

/// Rows on their way into a copy.
class CopyWriter {
 public:
  CopyWriter(partitioner::TableLoader& loader, const partitioner::TableSchema& schema,
             const std::vector<bool>& needed)
      : loader_(loader), schema_(schema), needed_(needed), batch_(schema.columns.size()) {}

  /// The bytes that it takes.
  absl::StatusOr<uint64_t> Add(const std::vector<Value>& row) {
    uint64_t bytes = 0;
    for (size_t c = 0; c < row.size(); ++c) {
      auto& column = batch_.column(c);
      const bool null = !needed_[c] || row[c].null;
      if (schema_.columns[c].nullable) column.nulls.push_back(null);
      if (schema_.columns[c].type.kind == TypeKind::kString) {
        column.strings.push_back(null ? std::string_view() : batch_.Keep(row[c].text));
        bytes += column.strings.back().size() + kTextBytes;
        continue;
      }
      if (!null && (row[c].number > std::numeric_limits<int64_t>::max() ||
                    row[c].number < std::numeric_limits<int64_t>::min())) {
        return ToStatus(
            {.message = absl::StrCat("a number of column ", schema_.columns[c].name,
                                     " has more digits than a join can take: ", row[c].ToString()),
             .hint = "18 digits are fine",
             .sqlstate = "22003"});
      }
      column.numbers.push_back(null ? 0 : static_cast<int64_t>(row[c].number));
      bytes += needed_[c] ? sizeof(int64_t) : 0;
    }
    if (++rows_ % kBatchRows == 0) NAM_RETURN_IF_ERROR(Flush());
    return bytes;
  }

  absl::Status Flush() {
    if (rows_ == flushed_) return absl::OkStatus();
    batch_.set_rows(rows_ - flushed_);
    flushed_ = rows_;
    absl::Status status = loader_.Append(batch_);
    batch_.Clear();
    return status;
  }

 private:
  partitioner::TableLoader& loader_;
  const partitioner::TableSchema& schema_;
  const std::vector<bool>& needed_;
  partitioner::ColumnBatch batch_;
  size_t rows_ = 0;
  size_t flushed_ = 0;
};

}  // namespace

RecordCopies::~RecordCopies() {
  // What cannot be dropped goes with the lease.
  for (const std::string& name : made_) attachment_.catalog().DropTable(name).IgnoreError();
}

absl::Status RecordCopies::WithUsersNames(const absl::Status& error) const {
  const auto renamed = [&](const std::string& text) { return absl::StrReplaceAll(text, names_); };
  if (std::optional<SqlError> known = SqlErrorOf(error); known.has_value()) {
    known->message = renamed(known->message);
    known->hint = renamed(known->hint);
    return ToStatus(*known);
  }
  absl::Status status(error.code(), renamed(std::string(error.message())));
  error.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { status.SetPayload(type, payload); });
  return status;
}

absl::StatusOr<BoundQuery> RecordCopies::Make(const BoundQuery& query, RecordStatements& records) {
  BoundQuery left = query;
  std::erase_if(left.conjuncts, [&](const Expr& conjunct) {
    const std::optional<size_t> table = RecordStatements::OnlyTableOf(query, conjunct);
    return table.has_value() && sql::IsRecordTable(*query.tables[*table].table);
  });
  const std::vector<std::vector<bool>> needed = NeededColumns(left);
  for (size_t number = 0; number < query.tables.size(); ++number) {
    if (!sql::IsRecordTable(*query.tables[number].table)) continue;
    NAM_ASSIGN_OR_RETURN(left.tables[number].table, Copy(query, number, needed[number], records));
  }
  return left;
}

absl::StatusOr<std::shared_ptr<const proto::Table>> RecordCopies::Copy(const BoundQuery& query, size_t number,
                                                                       const std::vector<bool>& needed,
                                                                       RecordStatements& records) {
  const proto::Table& table = *query.tables[number].table;
  const partitioner::TableSchema schema =
      SchemaOf(table, absl::StrCat("nam.copy.", attachment_.member().value(), ".", id_, ".", number), needed);
  names_.emplace_back(schema.name, table.name());
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<partitioner::TableLoader> loader,
                       partitioner::BeginLoad(attachment_, schema, {.threads = 1, .temporary = true}));
  CopyWriter writer(*loader, schema, needed);
  NAM_RETURN_IF_ERROR(
      records.ReadFor(query, number, [&](const std::vector<Value>& row) -> absl::StatusOr<bool> {
        NAM_ASSIGN_OR_RETURN(const uint64_t bytes, writer.Add(row));
        bytes_ += bytes;
        if (bytes_ <= bytes_max_) return true;
        return ToStatus({.message = absl::StrCat("this join needs more than ", bytes_max_ >> 20,
                                                 " MiB of rows of record tables"),
                         .hint = absl::StrCat("add conditions on ", query.tables[number].alias,
                                              ", or SET nam.record_join_mib_max"),
                         .sqlstate = "54000"});
      }));
  NAM_RETURN_IF_ERROR(writer.Flush());
  NAM_RETURN_IF_ERROR(loader->Commit().status());
  made_.push_back(schema.name);
  // As the catalog has it by now.
  return attachment_.catalog().GetTable(schema.name);
}

}  // namespace nam::session
