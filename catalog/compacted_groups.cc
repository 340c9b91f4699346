#include "catalog/compacted_groups.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "catalog/chain_groups.h"

namespace nam::catalog {
namespace {

/// Per table, while statements may read them.
constexpr int kRetiredMax = 8'192;

uint64_t RowsOf(const proto::Table& table) {
  uint64_t rows = 0;
  for (const proto::Chain& chain : table.partitions()) rows += chain.rows();
  return rows;
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> GroupsLeft(const proto::Table& table,
                                                 const proto::CommitExtendRequest& request) {
  const std::set<uint64_t> replaced(request.replaced().begin(), request.replaced().end());
  std::set<uint64_t> found;
  std::vector<uint64_t> left;
  // An empty table keeps nothing.
  for (uint32_t g = 0; table.rows() > 0 && g < GroupCount(table); ++g) {
    const uint64_t allocation = GroupAllocation(table, g);
    if (replaced.contains(allocation)) {
      found.insert(allocation);
    } else {
      left.push_back(allocation);
    }
  }
  if (found.size() == replaced.size()) return left;
  return absl::AbortedError(absl::StrFormat(
      "groups of table `%s` were compacted meanwhile, or the table was replaced", table.name()));
}

bool IsCompacted(const proto::Table& table, const proto::Table& compacted) {
  return !compacted.groups().empty() && compacted.groups(compacted.groups_size() - 1).compacted() &&
         compacted.rows() == table.rows() && RowsOf(compacted) == RowsOf(table);
}

absl::Status Retire(const google::protobuf::RepeatedField<uint64_t>& allocations, uint64_t version,
                    proto::Table& table) {
  int retired = allocations.size();
  for (const proto::RetiredGroups& earlier : table.retired()) retired += earlier.allocations_size();
  if (retired > kRetiredMax) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "statements that run still read %d former groups of table `%s`", retired, table.name()));
  }
  proto::RetiredGroups& groups = *table.add_retired();
  groups.set_version(version);
  *groups.mutable_allocations() = allocations;
  return absl::OkStatus();
}

std::vector<uint64_t> ForgetRetired(uint64_t version, proto::Table& table) {
  std::vector<uint64_t> forgotten;
  auto& retired = *table.mutable_retired();
  const auto is_read = [&](const proto::RetiredGroups& groups) { return groups.version() > version; };
  const auto first = std::stable_partition(retired.begin(), retired.end(), is_read);
  for (auto groups = first; groups != retired.end(); ++groups)
    forgotten.insert(forgotten.end(), groups->allocations().begin(), groups->allocations().end());
  retired.erase(first, retired.end());
  return forgotten;
}

}  // namespace nam::catalog
