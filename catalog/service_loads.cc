#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/system_names.h"
#include "catalog/chain_groups.h"
#include "catalog/compacted_groups.h"
#include "catalog/record_tables.h"
#include "catalog/service.h"

namespace nam::catalog {
namespace {

constexpr size_t kLoadsMax = 4'096;

absl::Status TableExists(const std::string& name) {
  return absl::AlreadyExistsError(
      absl::StrFormat("table `%s` exists; drop it first, or ask to replace it", name));
}

}  // namespace

absl::Status Service::CheckRoomForLoad() const {
  if (loads_.size() < kLoadsMax) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrFormat("%d loads are under way; wait for some", loads_.size()));
}

/// Checks that the table's groups from `first` on are loads in progress of the same member, for the same
/// table.
absl::Status Service::CheckNewGroups(const LoadRecord& load, const proto::Table& table,
                                     uint32_t first) const {
  std::set<uint64_t> seen;
  std::optional<uint64_t> last;
  for (uint32_t g = first; g < GroupCount(table); ++g) {
    const uint64_t allocation = GroupAllocation(table, g);
    if (std::exchange(last, allocation) == allocation) continue;
    const auto of_group = loads_.find(allocation);
    if (of_group == loads_.end()) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "allocation %d is over: it was aborted, or its owner's lease has ended", allocation));
    }
    const LoadRecord& other = of_group->second;
    if (other.owner != load.owner || other.table != load.table || other.extends != load.extends ||
        !seen.insert(allocation).second) {
      return absl::InvalidArgumentError(
          absl::StrFormat("allocation %d is none beside allocation %d", allocation, load.allocation.value()));
    }
  }
  if (last == load.allocation.value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("the last group of table `%s` is of allocation %d, not %d", load.table,
                      last.value_or(0), load.allocation.value()));
}

std::vector<uint64_t> Service::LoadsInProgressOf(const proto::Table& table) const {
  std::vector<uint64_t> loads;
  for (const uint64_t allocation : AllocationsOf(table)) {
    if (loads_.contains(allocation)) loads.push_back(allocation);
  }
  return loads;
}

bool Service::LoadsInto(const std::string& table, uint32_t member) const {
  return std::any_of(loads_.begin(), loads_.end(), [&](const auto& entry) {
    return entry.second.table == table && entry.second.owner.value() == member;
  });
}

absl::StatusOr<proto::BeginLoadReply> Service::BeginLoad(const proto::BeginLoadRequest& request) {
  NAM_RETURN_IF_ERROR(CheckTableName(request.table()));
  NAM_RETURN_IF_ERROR(CheckNotSystem(
      request.table(), !request.replace() && IsOwnSystemName(request.table(), request.member())));
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(Enter(MarkOf(request)));
  NAM_RETURN_IF_ERROR(CheckLiving(request.member()));
  if (!LoadsInto(request.table(), request.member())) NAM_RETURN_IF_ERROR(CheckNotQuiet(request.table()));
  const auto existing = tables_.find(request.table());
  if (existing == tables_.end()) {
    NAM_RETURN_IF_ERROR(CheckSchema(request.table()));
  } else if (!request.replace() || existing->second.table->has_view()) {
    return TableExists(request.table());
  }
  NAM_RETURN_IF_ERROR(CheckRoomForLoad());
  if (tables_.size() >= kTablesMax) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("the cluster is full: it has %d tables", tables_.size()));
  }
  Mutation mutation = NewMutation();
  const uint64_t allocation = mutation.next_allocation++;
  mutation.put_loads.push_back({.allocation = AllocationId(allocation),
                                .owner = MemberId(request.member()),
                                .table = request.table(),
                                .replace = request.replace()});
  mutation.makes_room = request.empties() && existing != tables_.end();  // by its commit
  NAM_RETURN_IF_ERROR(Apply(mutation));
  proto::BeginLoadReply reply;
  reply.set_allocation(allocation);
  return reply;
}

absl::StatusOr<proto::CommitLoadReply> Service::CommitLoad(const proto::CommitLoadRequest& request) {
  const proto::Table& table = request.table();
  NAM_RETURN_IF_ERROR(CheckNewRecordTable(table));
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(Enter(MarkOf(request)));
  const auto existing = tables_.find(table.name());
  proto::CommitLoadReply reply;
  if (existing != tables_.end() && (existing->second.table->allocation() == table.allocation() ||
                                    CreationOf(*existing->second.table) == table.allocation())) {
    reply.set_version(existing->second.table->version());  // repeated because the answer was lost
    SetMark(reply, Mark());
    return reply;
  }
  const auto load = loads_.find(table.allocation());
  if (load == loads_.end() || FindLiving(load->second.owner.value()) == nullptr) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "load %d of table `%s` is over: it was aborted, or its owner's lease has ended; load it again",
        table.allocation(), table.name()));
  }
  if (load->second.table != table.name() || load->second.extends != AllocationId()) {
    return absl::InvalidArgumentError(absl::StrFormat("load %d was begun for table `%s`, not `%s`",
                                                      table.allocation(), load->second.table, table.name()));
  }
  if (table.retired_size() > 0) return absl::InvalidArgumentError("a new table has no retired groups");
  NAM_RETURN_IF_ERROR(CheckNewGroups(load->second, table, 0));
  const bool same = existing != tables_.end() && existing->second.table->allocation() == request.replaces();
  if (request.replaces() != 0 && !same) {
    return absl::AbortedError(
        absl::StrFormat("table `%s` was loaded again, or dropped, meanwhile", table.name()));
  }
  if (existing == tables_.end()) {
    NAM_RETURN_IF_ERROR(CheckSchema(table.name()));
  } else if (!load->second.replace || existing->second.table->has_view()) {
    return TableExists(table.name());
  } else {
    NAM_RETURN_IF_ERROR(CheckViewsKeep(*existing->second.table, table));
  }
  Mutation mutation = NewMutation();
  mutation.put_tables.push_back(table);
  mutation.put_tables.back().set_version(mutation.version);
  mutation.put_tables.back().set_creation(table.allocation());
  CountUsage(mutation.put_tables.back());
  NAM_RETURN_IF_ERROR(CheckServers(table, ServersOf(mutation.put_tables.back())));
  mutation.delete_loads = LoadsInProgressOf(table);
  if (existing != tables_.end()) {
    mutation.makes_room = ServersOf(mutation.put_tables.back()).empty();
    NAM_RETURN_IF_ERROR(CheckNotReferenced(*existing->second.table));
    RemoveReferences(*existing->second.table, mutation);
  }
  if (table.has_record()) NAM_RETURN_IF_ERROR(AddReferences(table.name(), mutation));
  NAM_RETURN_IF_ERROR(Apply(mutation));
  reply.set_version(mutation.version);
  SetMark(reply, Mark());
  return reply;
}

absl::StatusOr<proto::BeginExtendReply> Service::BeginExtend(const proto::BeginExtendRequest& request) {
  NAM_RETURN_IF_ERROR(CheckNotSystem(
      request.table(), /*may=*/request.table() == kTransactionsTable || IsLoadName(request.table())));
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(Enter(MarkOf(request)));
  NAM_RETURN_IF_ERROR(CheckLiving(request.member()));
  NAM_ASSIGN_OR_RETURN(const TableState* table, FindTable(request.table()));
  if (table->table->has_view() || table->table->schema())
    return absl::FailedPreconditionError(absl::StrFormat("`%s` is no table", request.table()));
  if (!table->table->has_record() && !LoadsInto(request.table(), request.member()))
    NAM_RETURN_IF_ERROR(CheckNotQuiet(request.table()));
  NAM_RETURN_IF_ERROR(CheckRoomForLoad());
  Mutation mutation = NewMutation();
  const uint64_t allocation = mutation.next_allocation++;
  mutation.put_loads.push_back({.allocation = AllocationId(allocation),
                                .owner = MemberId(request.member()),
                                .table = request.table(),
                                .extends = AllocationId(CreationOf(*table->table))});
  NAM_RETURN_IF_ERROR(Apply(mutation));
  proto::BeginExtendReply reply;
  reply.set_allocation(allocation);
  return reply;
}

/// Checks that the table is still the one that the groups were added to, unchanged except for the groups that
/// the last one replaces.
absl::Status Service::CheckAppended(const LoadRecord& load, const proto::Table& table,
                                    const proto::CommitExtendRequest& request) const {
  const proto::Table& appended = request.appended();
  if (table.version() != request.expected_version()) {
    return absl::AbortedError(
        absl::StrFormat("table `%s` was changed while it was appended to", table.name()));
  }
  NAM_ASSIGN_OR_RETURN(const std::vector<uint64_t> left, GroupsLeft(table, request));
  const auto kept = static_cast<uint32_t>(left.size()), count = GroupCount(appended);
  bool same = !table.has_record() && !appended.has_record() && appended.name() == table.name() &&
              count > kept && appended.allocation() == request.allocation() &&
              appended.partitions_size() == static_cast<int>(count * PartitionCount(table)) &&
              appended.columns_size() == table.columns_size() &&
              appended.partitioning_size() == table.partitioning_size() &&
              CreationOf(appended) == CreationOf(table);
  for (const proto::ChainGroup& group : appended.groups())
    same = same && group.columns_size() == table.columns_size();
  for (uint32_t g = 0; same && g < kept; ++g) same = GroupAllocation(appended, g) == left[g];
  if (same && !request.replaced().empty()) same = IsCompacted(table, appended);
  if (same) return CheckNewGroups(load, appended, kept);
  return absl::InvalidArgumentError(
      absl::StrFormat("an append to table `%s` must add groups and keep all others", table.name()));
}

// The table after the request. A table with the same name that was created after a drop is a different one.
absl::StatusOr<proto::Table> Service::Extended(const LoadRecord& load,
                                               const proto::CommitExtendRequest& request) const {
  const auto found = tables_.find(load.table);
  if (found == tables_.end() || CreationOf(*found->second.table) != load.extends.value()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("table `%s` was dropped while it was extended", load.table));
  }
  if (request.has_appended()) {
    NAM_RETURN_IF_ERROR(CheckAppended(load, *found->second.table, request));
    proto::Table appended = request.appended();
    *appended.mutable_retired() = found->second.table->retired();
    return appended;
  }
  proto::Table table = *found->second.table;
  if (!table.has_record())
    return absl::InvalidArgumentError(absl::StrFormat("table `%s` is no record table", load.table));
  proto::RecordPart* part = nullptr;
  if (request.has_new_part()) {
    NAM_RETURN_IF_ERROR(CheckNewPart(table, request.new_part()));
    part = table.mutable_record()->add_parts();
    *part = request.new_part();
    part->set_builder(load.owner.value());
  } else {
    part = FindPart(table, request.part());
  }
  if (part == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrFormat("table `%s` has no part `%s`", load.table, request.part()));
  }
  if (load.table == kTransactionsTable && part->kind() != proto::TRANSACTION_LOGS) {
    return absl::PermissionDeniedError(
        absl::StrFormat("only the logs of `%s` grow", std::string_view(kTransactionsTable)));
  }
  if (part->extents_size() != static_cast<int>(request.expected_extents())) {
    return absl::AbortedError(absl::StrFormat("part `%s` of table `%s` has %d extents by now, not %d",
                                              request.part(), load.table, part->extents_size(),
                                              request.expected_extents()));
  }
  part->mutable_extents()->MergeFrom(request.extents());
  CountUsage(table);
  return table;
}

// DROP INDEX names only the index, so index names are unique in the cluster.
absl::Status Service::CheckNewPart(const proto::Table& table, const proto::RecordPart& part) const {
  const std::string& name = part.name();
  if (name.empty() || !part.extents().empty()) {
    return absl::InvalidArgumentError(absl::StrFormat("`%s` cannot be added as a part", name));
  }
  NAM_RETURN_IF_ERROR(CheckNotSystem(name, IsLoadName(table.name())));
  bool taken = tables_.contains(name);
  for (const proto::RecordPart& other : table.record().parts()) taken = taken || other.name() == name;
  for (const auto& [other_name, other] : tables_) {
    for (const proto::RecordPart& index : other.table->record().parts())
      taken = taken || (index.kind() == proto::ORDERED_INDEX && index.name() == name);
  }
  if (!taken) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrFormat("`%s` is the name of a table or an index", name));
}

absl::StatusOr<proto::CommitExtendReply> Service::CommitExtend(const proto::CommitExtendRequest& request) {
  if (request.extents().empty() && !request.has_appended())
    return absl::InvalidArgumentError("the extension of a table has neither extents nor groups");
  NAM_RETURN_IF_ERROR(CheckExtents(request.extents(), AllocationId(request.allocation())));
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(Enter(MarkOf(request)));
  proto::CommitExtendReply reply;
  if (table_allocations_.contains(request.allocation())) {  // repeated because the answer was lost
    for (const auto& [name, state] : tables_) {
      if (AllocationsOf(*state.table).contains(request.allocation()))
        reply.set_version(state.table->version());
    }
    SetMark(reply, Mark());
    return reply;
  }
  const auto load = loads_.find(request.allocation());
  if (load == loads_.end() || FindLiving(load->second.owner.value()) == nullptr) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "allocation %d is over: it was aborted, or its owner's lease has ended", request.allocation()));
  }
  if (load->second.extends == AllocationId()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("allocation %d is a load, and extends no table", request.allocation()));
  }
  NAM_ASSIGN_OR_RETURN(proto::Table table, Extended(load->second, request));
  std::set<uint32_t> servers;
  for (const proto::RecordExtent& extent : request.extents()) servers.insert(extent.server());
  for (uint32_t g = 0; request.has_appended() && g < GroupCount(table); ++g) {
    if (loads_.contains(GroupAllocation(table, g))) servers.merge(GroupServers(table, g));
  }
  NAM_RETURN_IF_ERROR(CheckServers(table, servers));
  Mutation mutation = NewMutation();
  table.set_version(mutation.version);
  std::shared_ptr<const proto::Table> former;
  if (!request.replaced().empty()) {
    NAM_RETURN_IF_ERROR(Retire(request.replaced(), mutation.version, table));
    former = tables_.at(table.name()).table;
  }
  mutation.delete_loads = LoadsInProgressOf(table);
  mutation.put_tables.push_back(std::move(table));
  NAM_RETURN_IF_ERROR(Apply(mutation));
  if (former != nullptr) KeepFormer(std::move(former), mutation.version);
  reply.set_version(mutation.version);
  SetMark(reply, Mark());
  return reply;
}

absl::StatusOr<proto::ChangePartReply> Service::ChangePart(const proto::ChangePartRequest& request) {
  NAM_RETURN_IF_ERROR(CheckNotSystem(request.table(), IsLoadName(request.table())));
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(Enter(MarkOf(request)));
  NAM_ASSIGN_OR_RETURN(const TableState* found, FindTable(request.table()));
  proto::Table table = *found->table;
  auto& parts = *table.mutable_record()->mutable_parts();
  const auto part = std::find_if(parts.begin(), parts.end(), [&](const proto::RecordPart& candidate) {
    return candidate.name() == request.part() && candidate.kind() == proto::ORDERED_INDEX &&
           candidate.extents_size() > 0 && candidate.extents(0).allocation() == request.allocation();
  });
  if (part == parts.end()) {
    return absl::NotFoundError(
        absl::StrFormat("table `%s` has no index `%s`", request.table(), request.part()));
  }
  switch (request.change_case()) {
    case proto::ChangePartRequest::kUsableFrom:
      if (part->leaving()) {  // commits make no more entries in it
        return absl::AbortedError(
            absl::StrFormat("index `%s` was dropped while it was filled", request.part()));
      }
      part->set_usable_from(request.usable_from());
      part->clear_builder();
      break;
    case proto::ChangePartRequest::kLeaving:
      NAM_RETURN_IF_ERROR(CheckNoKeyNeeds(table, request.part()));
      part->set_leaving(request.leaving());
      break;
    case proto::ChangePartRequest::kRemove:
      parts.erase(part);
      CountUsage(table);
      break;
    default:
      return absl::InvalidArgumentError("nothing to change");
  }
  Mutation mutation = NewMutation();
  table.set_version(mutation.version);
  mutation.put_tables.push_back(std::move(table));
  NAM_RETURN_IF_ERROR(Apply(mutation));
  proto::ChangePartReply reply;
  reply.set_version(mutation.version);
  SetMark(reply, Mark());
  return reply;
}

absl::StatusOr<proto::AbortLoadReply> Service::AbortLoad(const proto::AbortLoadRequest& request) {
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(Enter(MarkOf(request)));
  if (table_allocations_.contains(request.allocation())) {
    return absl::FailedPreconditionError(
        absl::StrFormat("load %d is committed; drop its table instead", request.allocation()));
  }
  if (request.allocation() == 0 || request.allocation() >= next_allocation_) {
    return absl::NotFoundError(absl::StrFormat("there never was a load %d", request.allocation()));
  }
  if (!loads_.contains(request.allocation())) return proto::AbortLoadReply();  // already over
  Mutation mutation = NewMutation();
  mutation.delete_loads.push_back(request.allocation());
  mutation.makes_room = true;
  NAM_RETURN_IF_ERROR(Apply(mutation));
  return proto::AbortLoadReply();
}

}  // namespace nam::catalog
