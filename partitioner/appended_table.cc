#include "partitioner/appended_table.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "catalog/chain_groups.h"
#include "partitioner/column_statistics.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::partitioner {
namespace {

/// A chain of few blocks, in a table's description.
constexpr double kChainBytes = 32;
/// Appended rows count as bringing new values to a column if this share of their values differ.
constexpr double kMostlyNew = 0.5;

bool SameColumns(const proto::Table& a, const proto::Table& b) {
  if (a.columns_size() != b.columns_size() || a.partitioning_size() != b.partitioning_size()) return false;
  if (a.sort_column() != b.sort_column()) return false;
  for (int k = 0; k < a.partitioning_size(); ++k) {
    if (a.partitioning(k).SerializeAsString() != b.partitioning(k).SerializeAsString()) return false;
  }
  for (int c = 0; c < a.columns_size(); ++c) {
    const proto::Column &x = a.columns(c), &y = b.columns(c);
    if (x.name() != y.name() || x.nullable() != y.nullable() ||
        x.type().SerializeAsString() != y.type().SerializeAsString())
      return false;
  }
  return a.pointer_group() == b.pointer_group();
}

/// Numbers that are not encoded have no bounds; texts have those of a dictionary.
bool HasBounds(const proto::Column& column) {
  return !column.encoding().plain() && !column.encoding().has_dictionary();
}

void MergeCommon(const proto::Column& more, proto::Column& into) {
  std::map<std::pair<int64_t, std::string>, uint64_t> rows;
  for (const proto::Column* column : {&more, static_cast<const proto::Column*>(&into)}) {
    for (const proto::CommonValue& common : column->common())
      rows[{common.value(), common.text()}] += common.rows();
  }
  std::vector<std::pair<uint64_t, std::pair<int64_t, std::string>>> order;
  for (const auto& [value, count] : rows) order.emplace_back(count, value);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  into.clear_common();
  for (const auto& [count, value] : order) {
    if (into.common_size() == kCommonMost) break;
    proto::CommonValue& common = *into.add_common();
    common.set_value(value.first);
    common.set_text(value.second);
    common.set_rows(count);
  }
}

/// `rows_before` and `rows_more`: row counts of the two sides.
void MergeColumn(uint64_t rows_before, uint64_t rows_more, const proto::Column& more, proto::Column& into) {
  const uint64_t before = rows_before - into.nulls(), added = rows_more - more.nulls();
  const bool bounded = HasBounds(into) && HasBounds(more);
  const bool apart = bounded && (more.min() > into.max() || more.max() < into.min());
  if (added > 0) {
    const double new_share = static_cast<double>(more.distinct()) / static_cast<double>(added);
    const uint64_t sum = into.distinct() + more.distinct();
    const uint64_t distinct =
        apart || new_share > kMostlyNew ? sum : std::max(into.distinct(), more.distinct());
    into.set_unique(before == 0 ? more.unique() : into.unique() && more.unique() && apart);
    into.set_distinct(before == 0 ? more.distinct() : std::min(distinct, before + added));
    MergeCommon(more, into);
    if (added > before) {  // the larger side's ranges are more accurate
      *into.mutable_histogram() = more.histogram();
      *into.mutable_text_histogram() = more.text_histogram();
    }
  } else {
    into.set_unique(into.unique() && more.nulls() == 0);
  }
  into.set_nulls(into.nulls() + more.nulls());
  // Also for a side without values: CutBackTo derives the same bounds from the groups.
  if (!bounded) return;
  into.set_min(std::min(into.min(), more.min()));
  into.set_max(std::max(into.max(), more.max()));
}

absl::Status TooManyAppends(const proto::Table& table, std::string message) {
  return ToStatus(
      {.message = std::move(message),
       .hint = absl::StrFormat("VACUUM %s makes one group of them; SET nam.compaction = on merges them "
                               "in the background",
                               table.name()),
       .sqlstate = sqlstate::kLimitExceeded});
}

}  // namespace

void AddUsage(const google::protobuf::RepeatedPtrField<proto::ServerUsage>& usage, proto::Table& table) {
  for (const proto::ServerUsage& more : usage) {
    auto& servers = *table.mutable_usage();
    auto found = std::find_if(servers.begin(), servers.end(),
                              [&](const proto::ServerUsage& one) { return one.server() == more.server(); });
    proto::ServerUsage& into = found == servers.end() ? *table.add_usage() : *found;
    into.set_server(more.server());
    into.set_blocks(into.blocks() + more.blocks());
    into.set_bytes(into.bytes() + more.bytes());
  }
}

absl::Status CheckSameColumns(const proto::Table& table, const proto::Table& group) {
  if (SameColumns(table, group)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("table %s has other columns, or partitions, by now", table.name()));
}

absl::StatusOr<TableSchema> SchemaOf(const proto::Table& table) {
  TableSchema schema;
  schema.name = table.name();
  for (const proto::Column& column : table.columns()) {
    NAM_ASSIGN_OR_RETURN(const Type type, TypeOf(column.type()));
    schema.columns.push_back(
        {column.name(), type, column.nullable(), column.default_expression(), column.dropped()});
  }
  for (const proto::PartitionKey& key : table.partitioning())
    schema.partitioning.push_back({key.column(), key.parts()});
  schema.sort_column = table.sort_column();
  return schema;
}

absl::StatusOr<proto::Table> AppendedTable(const proto::Table& table, const proto::Table& group) {
  NAM_RETURN_IF_ERROR(CheckSameColumns(table, group));
  if (table.rows() == 0) {
    proto::Table out = group;
    out.set_creation(table.creation());
    return out;
  }
  const uint32_t groups = catalog::GroupCount(table);
  if (groups >= kGroupsMax) {
    return TooManyAppends(table,
                          absl::StrFormat("table \"%s\" was appended to %d times", table.name(), groups));
  }
  proto::Table out = table;
  if (out.groups().empty()) *out.add_groups() = catalog::DescribeGroup(table, 0);
  *out.add_groups() = catalog::DescribeGroup(group, 0);
  out.set_allocation(group.allocation());
  out.mutable_partitions()->MergeFrom(group.partitions());
  for (int c = 0; c < out.columns_size(); ++c)
    MergeColumn(table.rows(), group.rows(), group.columns(c), *out.mutable_columns(c));
  out.set_rows(table.rows() + group.rows());
  out.set_block_bytes(std::max(table.block_bytes(), group.block_bytes()));
  AddUsage(group.usage(), out);
  if (out.ByteSizeLong() > kDescriptionBytesMax) {
    return TooManyAppends(
        table, absl::StrFormat("the description of table \"%s\" has no room for %d groups of %d partitions",
                               table.name(), groups + 1, catalog::PartitionCount(table)));
  }
  return out;
}

bool HasRoomFor(const proto::Table& table, double groups) {
  const double bytes = static_cast<double>(table.ByteSizeLong()) +
                       groups * kChainBytes * static_cast<double>(catalog::PartitionCount(table));
  const uint32_t before = table.rows() == 0 ? 0 : catalog::GroupCount(table);
  return before + groups <= kGroupsMax && bytes <= kDescriptionBytesMax / 2.0;
}

}  // namespace nam::partitioner
