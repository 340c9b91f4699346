#include "partitioner/compaction.h"

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "catalog/chain_groups.h"
#include "partitioner/appended_table.h"
#include "partitioner/group_reader.h"
#include "partitioner/loader.h"

namespace nam::partitioner {
namespace {

/// Sets the encodings and bounds of the first group, which may have changed.
void DescribeByFirstGroup(proto::Table& table) {
  for (int c = 0; c < table.columns_size(); ++c) {
    const proto::GroupColumn& first = table.groups(0).columns(c);
    proto::Column& column = *table.mutable_columns(c);
    *column.mutable_encoding() = first.encoding();
    column.set_min(first.min());
    column.set_max(first.max());
  }
  catalog::SetBounds(table);
}

void AddGroup(const proto::Table& from, uint32_t group, proto::Table& to) {
  const auto partitions = static_cast<int>(catalog::PartitionCount(from));
  *to.add_groups() = catalog::DescribeGroup(from, group);
  for (int p = 0; p < partitions; ++p)
    *to.add_partitions() = from.partitions(static_cast<int>(group) * partitions + p);
}

}  // namespace

absl::StatusOr<proto::Table> CompactedTable(const proto::Table& table, const proto::Table& group,
                                            const std::set<uint64_t>& replaced) {
  NAM_RETURN_IF_ERROR(CheckSameColumns(table, group));
  std::set<uint64_t> found;
  proto::Table out = table;
  out.clear_groups();
  out.clear_partitions();
  for (uint32_t g = 0; g < catalog::GroupCount(table); ++g) {
    const uint64_t allocation = catalog::GroupAllocation(table, g);
    if (replaced.contains(allocation)) {
      found.insert(allocation);
    } else {
      AddGroup(table, g, out);
    }
  }
  if (found.size() < replaced.size()) {
    return absl::AbortedError(absl::StrFormat(
        "groups of table `%s` were compacted meanwhile, or the table was replaced", table.name()));
  }
  const bool alone = out.groups().empty();
  AddGroup(group, 0, out);
  out.mutable_groups()->rbegin()->set_compacted(true);
  out.set_allocation(group.allocation());
  out.clear_usage();
  for (const proto::ChainGroup& one : out.groups()) AddUsage(one.usage(), out);
  if (alone) {
    *out.mutable_columns() = group.columns();
  } else {
    DescribeByFirstGroup(out);
  }
  return out;
}

absl::Status CompactGroups(catalog::Attachment& attachment, const proto::Table& table,
                           const std::vector<uint32_t>& groups, const CompactionOptions& options) {
  NAM_ASSIGN_OR_RETURN(const TableSchema schema, SchemaOf(table));
  LoadOptions load{.block_bytes = table.block_bytes(),
                   .pointer_group = table.pointer_group(),
                   .append = true,
                   .appends_to = catalog::CreationOf(table),
                   .threads = options.threads,
                   .cancel = options.cancel};
  for (const uint32_t group : groups) load.replaced_groups.insert(catalog::GroupAllocation(table, group));
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<TableLoader> loader, BeginLoad(attachment, schema, load));
  NAM_RETURN_IF_ERROR(ReadGroups(attachment, table,
                                 {.groups = groups, .threads = options.threads, .cancel = options.cancel},
                                 [&](const ColumnBatch& rows) { return loader->Append(rows); }));
  return loader->Commit().status();
}

}  // namespace nam::partitioner
