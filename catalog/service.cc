#include "catalog/service.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "catalog/record_tables.h"

namespace nam::catalog {
namespace {

constexpr uint32_t kBuryAfterMsMax = 7 * 24 * 3'600'000;

}  // namespace

absl::StatusOr<std::unique_ptr<Service>> Service::Open(std::unique_ptr<Store> store, Clock& clock,
                                                       uint32_t lease_ms, const std::string& timestamps,
                                                       uint32_t bury_after_ms, bool encrypt) {
  if (lease_ms < 100 || lease_ms > 3'600'000) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a lease of %d ms is not possible; choose from 100 ms to one hour", lease_ms));
  }
  if (bury_after_ms > kBuryAfterMsMax) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "a memory server cannot be suspect for %d ms; choose up to a week, 0 for none", bury_after_ms));
  }
  if (timestamps != kDefaultTimestamps && timestamps != "bitvector") {
    return absl::InvalidArgumentError(
        absl::StrFormat("timestamps are leased or bitvector, not `%s`", timestamps));
  }
  NAM_ASSIGN_OR_RETURN(StoredState state, store->Load());
  return std::unique_ptr<Service>(
      new Service(std::move(store), clock, lease_ms, timestamps, bury_after_ms, encrypt, std::move(state)));
}

Service::Service(std::unique_ptr<Store> store, Clock& clock, uint32_t lease_ms, const std::string& timestamps,
                 uint32_t bury_after_ms, bool encrypt, StoredState state)
    : store_(std::move(store)),
      clock_(clock),
      lease_ms_(lease_ms),
      bury_after_ms_(bury_after_ms),
      timestamps_(timestamps),
      encrypt_(encrypt),
      identity_(std::move(state.identity)),
      version_(state.version),
      next_member_(state.next_member),
      next_allocation_(state.next_allocation) {
  Mutation all;
  all.version = state.version;
  all.next_member = state.next_member;
  all.next_allocation = state.next_allocation;
  all.put_members = std::move(state.members);
  all.put_loads = std::move(state.loads);
  all.put_groups = std::move(state.groups);
  all.put_tables = std::move(state.tables);
  Install(all);
}

Mutation Service::NewMutation() const {
  Mutation mutation;
  mutation.version = version_ + 1;
  mutation.next_member = next_member_;
  mutation.next_allocation = next_allocation_;
  return mutation;
}

absl::Status Service::Apply(const Mutation& mutation) {
  NAM_RETURN_IF_ERROR(store_->Apply(mutation));
  Install(mutation);
  return absl::OkStatus();
}

void Service::Install(const Mutation& mutation) {
  version_ = mutation.version;
  next_member_ = mutation.next_member;
  next_allocation_ = mutation.next_allocation;
  for (const proto::Member& member : mutation.put_members) {
    members_[member.id()] = {member, member.alive() ? LeaseEndNs() : 0};
  }
  for (const LoadRecord& load : mutation.put_loads) loads_[load.allocation.value()] = load;
  for (const GroupRecord& group : mutation.put_groups) groups_[group.group] = group.owner;
  for (const proto::Table& table : mutation.put_tables) {
    TableState& state = tables_[table.name()];
    if (state.table != nullptr) {
      for (const uint64_t allocation : AllocationsOf(*state.table)) table_allocations_.erase(allocation);
    }
    state = {std::make_shared<const proto::Table>(table), ServersOf(table)};
    table_allocations_.merge(AllocationsOf(table));
  }
  for (const uint64_t allocation : mutation.delete_loads) loads_.erase(allocation);
  for (const uint32_t group : mutation.delete_groups) groups_.erase(group);
  for (const std::string& name : mutation.delete_tables) {
    const auto found = tables_.find(name);
    if (found == tables_.end()) continue;
    for (const uint64_t allocation : AllocationsOf(*found->second.table))
      table_allocations_.erase(allocation);
    tables_.erase(found);
  }
  for (const uint32_t id : mutation.delete_members) members_.erase(id);
}

absl::StatusOr<const Service::TableState*> Service::FindTable(const std::string& name) const {
  const auto found = tables_.find(name);
  if (found == tables_.end()) return absl::NotFoundError(absl::StrFormat("there is no table `%s`", name));
  return &found->second;
}

absl::StatusOr<proto::Cluster> Service::GetCluster(const proto::GetClusterRequest&) {
  const std::lock_guard lock(mutex_);
  Expire();
  proto::Cluster cluster;
  cluster.set_name(identity_.name);
  cluster.set_fabric(identity_.fabric);
  cluster.set_version(version_);
  cluster.set_lease_ms(lease_ms_);
  cluster.set_bury_after_ms(bury_after_ms_);
  cluster.set_timestamps(timestamps_);
  cluster.set_encrypt(encrypt_);
  for (const auto& [name, state] : tables_) {
    const std::string& made_with = state.table->record().timestamps();
    if (!made_with.empty()) cluster.set_timestamps(made_with);
  }
  for (const auto& [id, state] : members_) {
    const bool living = Living(state);
    if (!living && !HoldsBlocks(id, "")) continue;
    proto::Member& member = *cluster.add_members();
    member = state.member;
    member.set_alive(living);
    member.clear_proof();
    if (!Suspect(state)) continue;
    member.set_suspect(true);
    member.set_silent_ms(
        static_cast<uint32_t>((clock_.NowNs() - state.lease_end_ns + LeaseNs()) / 1'000'000));
  }
  return cluster;
}

absl::StatusOr<proto::ListTablesReply> Service::ListTables(const proto::ListTablesRequest&) {
  const std::lock_guard lock(mutex_);
  Expire();
  proto::ListTablesReply reply;
  reply.set_version(version_);
  for (const auto& [name, state] : tables_) {
    if (state.table->owner() != 0) continue;
    proto::Table& table = *reply.add_tables();
    table = *state.table;
    table.clear_partitions();
    if (!table.has_record()) continue;
    for (proto::RecordPart& part : *table.mutable_record()->mutable_parts()) part.clear_extents();
  }
  return reply;
}

absl::StatusOr<proto::GetTableReply> Service::GetTable(const proto::GetTableRequest& request) {
  std::shared_ptr<const proto::Table> table;
  {
    const std::lock_guard lock(mutex_);
    Expire();
    NAM_ASSIGN_OR_RETURN(const TableState* found, FindTable(request.name()));
    table = found->table;
  }
  proto::GetTableReply reply;
  if (request.known_version() == table->version()) {
    reply.set_unchanged(true);
  } else {
    *reply.mutable_table() = *table;
  }
  return reply;
}

absl::StatusOr<proto::DropTableReply> Service::DropTable(const proto::DropTableRequest& request) {
  const std::lock_guard lock(mutex_);
  Expire();
  NAM_RETURN_IF_ERROR(FindTable(request.name()).status());
  Mutation mutation = NewMutation();
  mutation.delete_tables.push_back(request.name());
  ForgetDeadServers(request.name(), mutation);
  NAM_RETURN_IF_ERROR(Apply(mutation));
  return proto::DropTableReply();
}

}  // namespace nam::catalog
