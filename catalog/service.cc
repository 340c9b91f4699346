#include "catalog/service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "catalog/record_tables.h"

namespace nam::catalog {
namespace {

constexpr uint32_t kMemoryServerIdMax = 65'535;  // 16 bits of a remote pointer
constexpr size_t kMembersMax = 4'096;
constexpr size_t kLoadsMax = 4'096;
constexpr size_t kTablesMax = 65'536;
constexpr size_t kGroupsMax = 65'535;
constexpr uint32_t kGroupsOfOneCallMax = 1'024;
constexpr size_t kNameBytesMax = 128;
constexpr size_t kMemberTextBytesMax = 1'024;

uint32_t ServerOf(uint64_t remote_pointer) {
  return static_cast<uint32_t>(remote_pointer >> 48);
}

// Every memory server that the table's pointers or counts name.
std::set<uint32_t> ServersOf(const proto::Table& table) {
  std::set<uint32_t> servers;
  for (const proto::ServerUsage& usage : table.usage()) {
    if (usage.blocks() != 0 || usage.bytes() != 0) servers.insert(usage.server());
  }
  for (const proto::Chain& chain : table.partitions()) {
    for (const uint64_t pointer : chain.head()) servers.insert(ServerOf(pointer));
  }
  for (const proto::Column& column : table.columns()) {
    for (const uint64_t pointer : column.encoding().dictionary().segments())
      servers.insert(ServerOf(pointer));
  }
  servers.erase(0);  // null pointers
  return servers;
}

absl::Status CheckTableName(const std::string& name) {
  if (name.empty()) return absl::InvalidArgumentError("a table needs a name");
  if (name.size() > kNameBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a table's name has %d bytes, at most %d are allowed", name.size(), kNameBytesMax));
  }
  if (std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; })) {
    return absl::InvalidArgumentError("a table's name holds control characters");
  }
  return absl::OkStatus();
}

absl::Status CheckMember(const proto::Member& member) {
  if (member.role() != proto::ROLE_MEMORY && member.role() != proto::ROLE_COMPUTE &&
      member.role() != proto::ROLE_CLIENT) {
    return absl::InvalidArgumentError("a member is a memory server, a compute server or a client");
  }
  if (member.role() == proto::ROLE_MEMORY &&
      (member.control_address().empty() || member.fabric_address().empty())) {
    return absl::InvalidArgumentError("a memory server needs a control and a fabric address");
  }
  if (member.ByteSizeLong() > kMemberTextBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a member's addresses are longer than %d bytes", kMemberTextBytesMax));
  }
  return absl::OkStatus();
}

absl::Status NoTable(const std::string& name) {
  return absl::NotFoundError(absl::StrFormat("there is no table `%s`", name));
}

absl::Status TableExists(const std::string& name) {
  return absl::AlreadyExistsError(
      absl::StrFormat("table `%s` exists; drop it first, or ask to replace it", name));
}

constexpr int kStandstillPartOfLease =
    3;  // a third of a lease without a pulse, which comes ten times a lease

absl::Status LeaseOver(uint32_t id) {
  return absl::NotFoundError(
      absl::StrFormat("member %d is not known or its lease has ended; it must join again", id));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Service>> Service::Open(std::unique_ptr<Store> store, Clock& clock,
                                                       uint32_t lease_ms, const std::string& timestamps) {
  if (lease_ms < 100 || lease_ms > 3'600'000) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a lease of %d ms is not possible; choose from 100 ms to one hour", lease_ms));
  }
  if (timestamps != kDefaultTimestamps && timestamps != "bitvector") {
    return absl::InvalidArgumentError(
        absl::StrFormat("timestamps are leased or bitvector, not `%s`", timestamps));
  }
  NAM_ASSIGN_OR_RETURN(StoredState state, store->Load());
  return std::unique_ptr<Service>(
      new Service(std::move(store), clock, lease_ms, timestamps, std::move(state)));
}

Service::Service(std::unique_ptr<Store> store, Clock& clock, uint32_t lease_ms, const std::string& timestamps,
                 StoredState state)
    : store_(std::move(store)),
      clock_(clock),
      lease_ms_(lease_ms),
      timestamps_(timestamps),
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

bool Service::Living(const MemberState& member) const {
  return member.member.alive() && clock_.NowNs() < member.lease_end_ns;
}

const Service::MemberState* Service::FindLiving(uint32_t id) const {
  const auto found = members_.find(id);
  return found != members_.end() && Living(found->second) ? &found->second : nullptr;
}

bool Service::HoldsBlocks(uint32_t server, const std::string& besides_table) const {
  return std::any_of(tables_.begin(), tables_.end(), [&](const auto& entry) {
    return entry.first != besides_table && entry.second.servers.contains(server);
  });
}

// The end of a member, by its own word or by its lease.
void Service::Bury(const MemberState& member, Mutation& mutation) const {
  const uint32_t id = member.member.id();
  for (const auto& [allocation, load] : loads_) {
    if (load.owner.value() == id) mutation.delete_loads.push_back(allocation);
  }
  for (const auto& [group, owner] : groups_) {
    if (owner.value() == id) mutation.delete_groups.push_back(group);
  }
  for (const auto& [name, state] : tables_) {
    if (state.table->owner() == id) mutation.delete_tables.push_back(name);
  }
  if (HoldsBlocks(id, "")) {
    proto::Member dead = member.member;
    dead.set_alive(false);
    mutation.put_members.push_back(std::move(dead));
  } else {
    mutation.delete_members.push_back(id);
  }
}

// Dead memory servers are kept for the tables that lie there; `besides_table` is about to go.
void Service::ForgetDeadServers(const std::string& besides_table, Mutation& mutation) const {
  for (const auto& [id, state] : members_) {
    if (!state.member.alive() && !HoldsBlocks(id, besides_table)) mutation.delete_members.push_back(id);
  }
}

void Service::Pulse() {
  const std::lock_guard lock(mutex_);
  MakeUpForStandstill();
  pulse_ns_ = clock_.NowNs();
}

// Renewals may have waited unheard since the last pulse.
void Service::MakeUpForStandstill() {
  if (pulse_ns_ == 0) return;
  const int64_t now_ns = clock_.NowNs(), missing_ns = now_ns - pulse_ns_;
  if (missing_ns < int64_t{lease_ms_} * 1'000'000 / kStandstillPartOfLease) return;
  for (auto& [id, state] : members_) state.lease_end_ns += missing_ns;
  pulse_ns_ = now_ns;
}

// If the store cannot write now, the next call tries again; until then Living() keeps the dead out.
void Service::Expire() {
  MakeUpForStandstill();
  Mutation mutation = NewMutation();
  for (const auto& [id, state] : members_) {
    if (state.member.alive() && !Living(state)) Bury(state, mutation);
  }
  if (mutation.put_members.empty() && mutation.delete_members.empty()) return;
  Apply(mutation).IgnoreError();
}

absl::StatusOr<proto::Cluster> Service::GetCluster(const proto::GetClusterRequest&) {
  const std::lock_guard lock(mutex_);
  Expire();
  proto::Cluster cluster;
  cluster.set_name(identity_.name);
  cluster.set_fabric(identity_.fabric);
  cluster.set_version(version_);
  cluster.set_lease_ms(lease_ms_);
  cluster.set_timestamps(timestamps_);
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
  }
  return cluster;
}

absl::StatusOr<proto::JoinReply> Service::Join(const proto::JoinRequest& request) {
  NAM_RETURN_IF_ERROR(CheckMember(request.member()));
  const std::lock_guard lock(mutex_);
  Expire();
  if (members_.size() >= kMembersMax) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("the cluster is full: it has %d members", members_.size()));
  }
  const uint32_t id = next_member_;
  if (id == UINT32_MAX || (request.member().role() == proto::ROLE_MEMORY && id > kMemoryServerIdMax)) {
    return absl::ResourceExhaustedError(
        "this cluster has given out all ids for memory servers; start a new catalog store and load again");
  }
  Mutation mutation = NewMutation();
  mutation.next_member = id + 1;
  proto::Member member = request.member();
  member.set_id(id);
  member.set_alive(true);
  member.set_used_bytes(0);
  mutation.put_members.push_back(std::move(member));
  NAM_RETURN_IF_ERROR(Apply(mutation));
  proto::JoinReply reply;
  reply.set_id(id);
  reply.set_lease_ms(lease_ms_);
  return reply;
}

absl::StatusOr<proto::RenewReply> Service::Renew(const proto::RenewRequest& request) {
  const std::lock_guard lock(mutex_);
  Expire();
  if (FindLiving(request.id()) == nullptr) return LeaseOver(request.id());
  MemberState& state = members_.at(request.id());
  state.lease_end_ns = LeaseEndNs();
  state.member.set_used_bytes(request.used_bytes());
  proto::RenewReply reply;
  for (const uint64_t allocation : request.held()) {
    if (!loads_.contains(allocation) && !table_allocations_.contains(allocation))
      reply.add_release(allocation);
  }
  // Only what is durable: a lease whose end could not be written down begins anew if the catalog restarts.
  for (const uint32_t id : request.key_holders()) {
    const auto found = members_.find(id);
    const bool buried = found == members_.end() || !found->second.member.alive();
    if (id != 0 && id < next_member_ && buried) reply.add_over(id);
  }
  return reply;
}

absl::StatusOr<proto::LeaveReply> Service::Leave(const proto::LeaveRequest& request) {
  const std::lock_guard lock(mutex_);
  Expire();
  const MemberState* member = FindLiving(request.id());
  if (member == nullptr) return LeaseOver(request.id());
  Mutation mutation = NewMutation();
  Bury(*member, mutation);
  NAM_RETURN_IF_ERROR(Apply(mutation));
  return proto::LeaveReply();
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
    const auto found = tables_.find(request.name());
    if (found == tables_.end()) return NoTable(request.name());
    table = found->second.table;
  }
  proto::GetTableReply reply;
  if (request.known_version() == table->version()) {
    reply.set_unchanged(true);
  } else {
    *reply.mutable_table() = *table;
  }
  return reply;
}

absl::Status Service::CheckRoomForLoad() const {
  if (loads_.size() < kLoadsMax) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrFormat("%d loads are under way; wait for some", loads_.size()));
}

absl::StatusOr<proto::BeginLoadReply> Service::BeginLoad(const proto::BeginLoadRequest& request) {
  NAM_RETURN_IF_ERROR(CheckTableName(request.table()));
  const std::lock_guard lock(mutex_);
  Expire();
  if (FindLiving(request.member()) == nullptr) return LeaseOver(request.member());
  if (!request.replace() && tables_.contains(request.table())) return TableExists(request.table());
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
  NAM_RETURN_IF_ERROR(Apply(mutation));
  proto::BeginLoadReply reply;
  reply.set_allocation(allocation);
  return reply;
}

absl::Status Service::CheckServers(const proto::Table& table, const std::set<uint32_t>& servers) const {
  for (const uint32_t id : servers) {
    const MemberState* server = FindLiving(id);
    if (server == nullptr || server->member.role() != proto::ROLE_MEMORY) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "table `%s` has blocks on memory server %d, which is gone; load it again", table.name(), id));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<proto::CommitLoadReply> Service::CommitLoad(const proto::CommitLoadRequest& request) {
  const proto::Table& table = request.table();
  NAM_RETURN_IF_ERROR(CheckNewRecordTable(table));
  const std::lock_guard lock(mutex_);
  Expire();
  const auto existing = tables_.find(table.name());
  proto::CommitLoadReply reply;
  if (existing != tables_.end() && existing->second.table->allocation() == table.allocation()) {
    reply.set_version(existing->second.table->version());  // asked again because the answer was lost
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
  if (existing != tables_.end() && !load->second.replace) return TableExists(table.name());
  Mutation mutation = NewMutation();
  mutation.put_tables.push_back(table);
  mutation.put_tables.back().set_version(mutation.version);
  CountUsage(mutation.put_tables.back());
  NAM_RETURN_IF_ERROR(CheckServers(table, ServersOf(mutation.put_tables.back())));
  mutation.delete_loads.push_back(table.allocation());
  if (existing != tables_.end()) ForgetDeadServers(table.name(), mutation);
  NAM_RETURN_IF_ERROR(Apply(mutation));
  reply.set_version(mutation.version);
  return reply;
}

absl::StatusOr<proto::BeginExtendReply> Service::BeginExtend(const proto::BeginExtendRequest& request) {
  const std::lock_guard lock(mutex_);
  Expire();
  if (FindLiving(request.member()) == nullptr) return LeaseOver(request.member());
  const auto table = tables_.find(request.table());
  if (table == tables_.end()) return NoTable(request.table());
  if (!table->second.table->has_record()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("table `%s` is no record table: it is loaded as a whole", request.table()));
  }
  NAM_RETURN_IF_ERROR(CheckRoomForLoad());
  Mutation mutation = NewMutation();
  const uint64_t allocation = mutation.next_allocation++;
  mutation.put_loads.push_back({.allocation = AllocationId(allocation),
                                .owner = MemberId(request.member()),
                                .table = request.table(),
                                .extends = AllocationId(table->second.table->allocation())});
  NAM_RETURN_IF_ERROR(Apply(mutation));
  proto::BeginExtendReply reply;
  reply.set_allocation(allocation);
  return reply;
}

// The table as it is after the request. A table of the same name that came after a drop is another one.
absl::StatusOr<proto::Table> Service::Extended(const LoadRecord& load,
                                               const proto::CommitExtendRequest& request) const {
  const auto found = tables_.find(load.table);
  if (found == tables_.end() || found->second.table->allocation() != load.extends.value()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("table `%s` was dropped while it was extended", load.table));
  }
  proto::Table table = *found->second.table;
  proto::RecordPart* part = nullptr;
  if (request.has_new_part()) {
    NAM_RETURN_IF_ERROR(CheckNewPart(table, request.new_part()));
    part = table.mutable_record()->add_parts();
    *part = request.new_part();
  } else {
    part = FindPart(table, request.part());
  }
  if (part == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrFormat("table `%s` has no part `%s`", load.table, request.part()));
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

// Indexes are dropped by their names alone, so those are of the whole cluster.
absl::Status Service::CheckNewPart(const proto::Table& table, const proto::RecordPart& part) const {
  const std::string& name = part.name();
  if (name.empty() || !part.extents().empty()) {
    return absl::InvalidArgumentError(absl::StrFormat("`%s` is no part to be added", name));
  }
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
  if (request.extents().empty()) return absl::InvalidArgumentError("nothing to extend a table by");
  NAM_RETURN_IF_ERROR(CheckExtents(request.extents(), AllocationId(request.allocation())));
  const std::lock_guard lock(mutex_);
  Expire();
  proto::CommitExtendReply reply;
  if (table_allocations_.contains(request.allocation())) {  // asked again because the answer was lost
    reply.set_version(version_);
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
  NAM_RETURN_IF_ERROR(CheckServers(table, servers));
  Mutation mutation = NewMutation();
  table.set_version(mutation.version);
  mutation.put_tables.push_back(std::move(table));
  mutation.delete_loads.push_back(request.allocation());
  NAM_RETURN_IF_ERROR(Apply(mutation));
  reply.set_version(mutation.version);
  return reply;
}

absl::StatusOr<proto::ChangePartReply> Service::ChangePart(const proto::ChangePartRequest& request) {
  const std::lock_guard lock(mutex_);
  Expire();
  const auto found = tables_.find(request.table());
  if (found == tables_.end()) return NoTable(request.table());
  proto::Table table = *found->second.table;
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
      part->set_usable_from(request.usable_from());
      break;
    case proto::ChangePartRequest::kLeaving:
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
  return reply;
}

absl::StatusOr<proto::AbortLoadReply> Service::AbortLoad(const proto::AbortLoadRequest& request) {
  const std::lock_guard lock(mutex_);
  Expire();
  if (table_allocations_.contains(request.allocation())) {
    return absl::FailedPreconditionError(
        absl::StrFormat("load %d is committed; drop its table instead", request.allocation()));
  }
  if (request.allocation() == 0 || request.allocation() >= next_allocation_) {
    return absl::NotFoundError(absl::StrFormat("there never was a load %d", request.allocation()));
  }
  if (!loads_.contains(request.allocation())) return proto::AbortLoadReply();  // over already
  Mutation mutation = NewMutation();
  mutation.delete_loads.push_back(request.allocation());
  NAM_RETURN_IF_ERROR(Apply(mutation));
  return proto::AbortLoadReply();
}

absl::StatusOr<proto::DropTableReply> Service::DropTable(const proto::DropTableRequest& request) {
  const std::lock_guard lock(mutex_);
  Expire();
  if (!tables_.contains(request.name())) return NoTable(request.name());
  Mutation mutation = NewMutation();
  mutation.delete_tables.push_back(request.name());
  ForgetDeadServers(request.name(), mutation);
  NAM_RETURN_IF_ERROR(Apply(mutation));
  return proto::DropTableReply();
}

absl::StatusOr<proto::AllocateGroupsReply> Service::AllocateGroups(
    const proto::AllocateGroupsRequest& request) {
  if (request.count() == 0 || request.count() > kGroupsOfOneCallMax) {
    return absl::InvalidArgumentError(absl::StrFormat("%d multicast groups at once; ask for 1 to %d",
                                                      request.count(), kGroupsOfOneCallMax));
  }
  const std::lock_guard lock(mutex_);
  Expire();
  if (FindLiving(request.member()) == nullptr) return LeaseOver(request.member());
  if (groups_.size() + request.count() > kGroupsMax) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("%d multicast groups are in use; close some sessions", groups_.size()));
  }
  Mutation mutation = NewMutation();
  proto::AllocateGroupsReply reply;
  for (uint32_t group = 1; reply.groups_size() < static_cast<int>(request.count()); ++group) {
    if (groups_.contains(group)) continue;
    mutation.put_groups.push_back({group, MemberId(request.member())});
    reply.add_groups(group);
  }
  NAM_RETURN_IF_ERROR(Apply(mutation));
  return reply;
}

absl::StatusOr<proto::ReleaseGroupsReply> Service::ReleaseGroups(const proto::ReleaseGroupsRequest& request) {
  const std::lock_guard lock(mutex_);
  Expire();
  Mutation mutation = NewMutation();
  for (const uint32_t group : request.groups()) {
    const auto found = groups_.find(group);
    if (found == groups_.end()) continue;  // asked again because the answer was lost
    if (found->second.value() != request.member()) {
      return absl::FailedPreconditionError(
          absl::StrFormat("multicast group %d is not member %d's to release", group, request.member()));
    }
    mutation.delete_groups.push_back(group);
  }
  if (!mutation.delete_groups.empty()) NAM_RETURN_IF_ERROR(Apply(mutation));
  return proto::ReleaseGroupsReply();
}

}  // namespace nam::catalog
