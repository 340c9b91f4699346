#include "catalog/service.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/system_names.h"
#include "catalog/chain_groups.h"
#include "catalog/fabric_constants.h"
#include "catalog/record_tables.h"

namespace nam::catalog {
namespace {

constexpr uint32_t kBuryAfterMsMax = 7 * 24 * 3'600'000;

}  // namespace

absl::StatusOr<std::unique_ptr<Service>> Service::Open(std::unique_ptr<Store> store, Clock& clock,
                                                       const ServiceOptions& options) {
  if (options.lease_ms < 100 || options.lease_ms > 3'600'000) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "a lease of %d ms is not possible; choose from 100 ms to one hour", options.lease_ms));
  }
  if (options.bury_after_ms > kBuryAfterMsMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a memory server cannot be suspect for %d ms; choose up to a week, 0 for none",
                        options.bury_after_ms));
  }
  if (options.timestamps != kDefaultTimestamps && options.timestamps != "bitvector") {
    return absl::InvalidArgumentError(
        absl::StrFormat("timestamps are leased or bitvector, not `%s`", options.timestamps));
  }
  NAM_ASSIGN_OR_RETURN(StoredState state, store->Load());
  if (options.check_identity) NAM_RETURN_IF_ERROR(options.check_identity(state.identity));
  const bool existing = !state.epochs.empty();
  if (options.accept_older_store && !existing) {
    return absl::FailedPreconditionError(
        "--accept-older-store is for a copy of the cluster's store, and this store is new; name the copy by "
        "--store");
  }
  std::unique_ptr<Service> service(new Service(std::move(store), clock, options, std::move(state)));
  NAM_RETURN_IF_ERROR(service->BeginEpoch());
  service->AwaitMembers(existing);
  return service;
}

Service::Service(std::unique_ptr<Store> store, Clock& clock, const ServiceOptions& options, StoredState state)
    : store_(std::move(store)),
      clock_(clock),
      options_(options),
      lease_ms_(options.lease_ms),
      bury_after_ms_(options.bury_after_ms),
      identity_(std::move(state.identity)),
      version_(state.version),
      plans_version_(state.version),
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
  all.put_epochs = std::move(state.epochs);
  all.put_constants = std::move(state.constants);
  all.put_saved_records = state.saved_records;
  Install(all);
}

Mutation Service::NewMutation() const {
  Mutation mutation;
  mutation.version = version_ + 1;
  mutation.next_member = next_member_;
  mutation.next_allocation = next_allocation_;
  return mutation;
}

absl::Status Service::Apply(Mutation mutation) {
  ForgetDeadServers(mutation);
  NAM_RETURN_IF_ERROR(store_->Apply(mutation));
  Install(mutation);
  return absl::OkStatus();
}

/// Clients come with every shell, and loads and scratch allocations with every query; none of them affects
/// plans.
bool Service::ChangesPlans(const Mutation& mutation) const {
  const auto serves = [](const proto::Member& member) { return member.role() != proto::ROLE_CLIENT; };
  return !mutation.put_tables.empty() || !mutation.delete_tables.empty() || !mutation.put_epochs.empty() ||
         !mutation.put_constants.empty() ||
         std::any_of(mutation.put_members.begin(), mutation.put_members.end(), serves) ||
         std::any_of(mutation.delete_members.begin(), mutation.delete_members.end(),
                     [&](uint32_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                       const auto found = members_.find(id);
                       return found != members_.end() && serves(found->second.member);
                     });
}

void Service::Install(const Mutation& mutation) {
  version_ = mutation.version;
  if (ChangesPlans(mutation)) plans_version_ = version_;
  next_member_ = mutation.next_member;
  next_allocation_ = mutation.next_allocation;
  for (const proto::Member& member : mutation.put_members) {
    members_[member.id()] = {member, member.alive() ? LeaseEndNs() : 0};
  }
  for (const LoadRecord& load : mutation.put_loads) loads_[load.allocation.value()] = load;
  for (const GroupRecord& group : mutation.put_groups) groups_[group.group] = group.owner;
  for (const std::string& name : mutation.delete_tables) {
    const auto found = tables_.find(name);
    if (found == tables_.end()) continue;
    for (const uint64_t allocation : AllocationsOf(*found->second.table))
      table_allocations_.erase(allocation);
    tables_.erase(found);
  }
  for (const proto::Table& table : mutation.put_tables) {
    TableState& state = tables_[table.name()];
    if (state.table != nullptr) {
      for (const uint64_t allocation : AllocationsOf(*state.table)) table_allocations_.erase(allocation);
    }
    if (state.table != nullptr && CreationOf(*state.table) != CreationOf(table)) state.formers.clear();
    state.table = std::make_shared<const proto::Table>(table);
    state.servers = ServersOf(table);
    table_allocations_.merge(AllocationsOf(table));
  }
  for (const uint64_t allocation : mutation.delete_loads) loads_.erase(allocation);
  for (const uint32_t group : mutation.delete_groups) groups_.erase(group);
  for (const uint32_t id : mutation.delete_members) members_.erase(id);
  for (const EpochRecord& epoch : mutation.put_epochs) epochs_[epoch.number] = epoch;
  for (const uint64_t number : mutation.delete_epochs) epochs_.erase(number);
  for (const proto::FabricConstants& constants : mutation.put_constants)
    constants_[constants.fabric()] = constants;
  saved_records_ = mutation.put_saved_records.value_or(saved_records_);
}

absl::StatusOr<const Service::TableState*> Service::FindTable(const std::string& name) const {
  const auto found = tables_.find(name);
  if (found == tables_.end()) return absl::NotFoundError(absl::StrFormat("there is no table `%s`", name));
  return &found->second;
}

absl::StatusOr<proto::Cluster> Service::GetCluster(const proto::GetClusterRequest& request) {
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(Enter(MarkOf(request)));
  proto::Cluster cluster;
  cluster.set_name(identity_.name);
  cluster.set_fabric(identity_.fabric);
  cluster.set_version(plans_version_);
  cluster.set_lease_ms(lease_ms_);
  cluster.set_bury_after_ms(bury_after_ms_);
  cluster.set_timestamps(options_.timestamps);
  cluster.set_encrypt(options_.encrypt);
  cluster.set_store(identity_.store);
  cluster.set_saved_records(saved_records_);
  SetMark(cluster, Mark());
  for (const auto& [name, state] : tables_) {
    const std::string& made_with = state.table->record().timestamps();
    if (!made_with.empty()) cluster.set_timestamps(made_with);
  }
  if (const auto found = constants_.find(identity_.fabric); found != constants_.end())
    *cluster.mutable_constants() = found->second;
  for (const auto& [id, state] : members_) {
    const bool living = Living(state);
    if (!living && !Remembered(state.member, Mutation())) continue;
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

absl::StatusOr<proto::CalibrateReply> Service::Calibrate(const proto::CalibrateRequest& request) {
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(Enter(MarkOf(request)));
  if (request.constants().fabric() != identity_.fabric) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the constants are not those of the cluster's fabric, which is %s", identity_.fabric));
  }
  // Written with this program's names, so that the store keeps nothing else of the request.
  NAM_ASSIGN_OR_RETURN(const FabricConstants constants, FromProto(request.constants()));
  Mutation mutation = NewMutation();
  mutation.put_constants.push_back(ToProto(identity_.fabric, constants));
  NAM_RETURN_IF_ERROR(Apply(std::move(mutation)));
  proto::CalibrateReply reply;
  reply.set_version(version_);
  return reply;
}

proto::Cluster Service::ClusterForLeases() const {
  proto::Cluster cluster;
  cluster.set_lease_ms(lease_ms_);
  return cluster;
}

absl::StatusOr<proto::ListTablesReply> Service::ListTables(const proto::ListTablesRequest& request) {
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(Enter(MarkOf(request)));
  proto::ListTablesReply reply;
  reply.set_version(version_);
  for (const auto& [name, state] : tables_) {
    proto::Table& table = *reply.add_tables();
    table = *state.table;
    table.clear_partitions();
    table.clear_retired();
    if (!table.has_record()) continue;
    for (proto::RecordPart& part : *table.mutable_record()->mutable_parts()) part.clear_extents();
  }
  return reply;
}

absl::StatusOr<proto::GetTableReply> Service::GetTable(const proto::GetTableRequest& request) {
  std::shared_ptr<const proto::Table> table;
  {
    const MutexLock lock(mutex_);
    NAM_RETURN_IF_ERROR(Enter(MarkOf(request)));
    NAM_ASSIGN_OR_RETURN(const TableState* found, FindTable(request.name()));
    table = FindVersion(*found, request.allocation());
  }
  proto::GetTableReply reply;
  if (request.known_version() == table->version()) {
    reply.set_unchanged(true);
  } else {
    *reply.mutable_table() = *table;
    reply.mutable_table()->clear_retired();
  }
  return reply;
}

absl::StatusOr<proto::GetTablesReply> Service::GetTables(const proto::GetTablesRequest& request) {
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(Enter(MarkOf(request)));
  proto::GetTablesReply reply;
  for (const proto::GetTableRequest& wanted : request.tables()) {
    proto::GetTableReply& answer = *reply.add_tables();
    const auto found = tables_.find(wanted.name());
    if (found == tables_.end()) continue;
    const std::shared_ptr<const proto::Table> table = FindVersion(found->second, wanted.allocation());
    if (wanted.known_version() == table->version()) {
      answer.set_unchanged(true);
      continue;
    }
    *answer.mutable_table() = *table;
    answer.mutable_table()->clear_retired();
  }
  return reply;
}

// While the transaction state can still come back, dropping it would lose committed data.
absl::Status Service::CheckStateLost() const {
  for (const uint32_t server : tables_.at(kTransactionsTable).servers) {
    const auto found = members_.find(server);
    if (found == members_.end() || !found->second.member.alive()) continue;
    return absl::FailedPreconditionError(absl::StrFormat(
        "the state of transactions lies on memory server %d, which is alive; nothing is to be reset",
        server));
  }
  return absl::OkStatus();
}

absl::StatusOr<proto::DropTableReply> Service::DropTable(const proto::DropTableRequest& request) {
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(Enter(MarkOf(request)));
  NAM_ASSIGN_OR_RETURN(const TableState* const found, FindTable(request.name()));
  // The transaction state may be dropped once it is lost.
  NAM_RETURN_IF_ERROR(CheckNotSystem(
      request.name(), /*may=*/request.name() == kTransactionsTable || IsLoadName(request.name())));
  NAM_RETURN_IF_ERROR(CheckNotQuiet(request.name()));
  Mutation mutation = NewMutation();
  mutation.makes_room = true;
  if (request.name() == kTransactionsTable) {
    // Without it, it is unknown which rows of record tables were committed: all record tables are dropped at
    // once.
    NAM_RETURN_IF_ERROR(CheckStateLost());
    for (const auto& [name, state] : tables_) {
      if (state.table->has_record()) mutation.delete_tables.push_back(name);
    }
  } else if (request.leaving()) {
    NAM_RETURN_IF_ERROR(CheckNotReferenced(*found->table));
    if (!request.cascade()) NAM_RETURN_IF_ERROR(CheckNoViewOn(*found->table));
    LeaveParents(request.name(), mutation);
  } else {
    NAM_RETURN_IF_ERROR(DropWithDependents(request.name(), request.cascade(), mutation));
  }
  proto::DropTableReply reply;
  for (const std::string& name : mutation.delete_tables) {
    if (name != request.name() && tables_.at(name).table->has_view()) reply.add_views(name);
  }
  NAM_RETURN_IF_ERROR(Apply(mutation));
  SetMark(reply, Mark());
  return reply;
}

}  // namespace nam::catalog
