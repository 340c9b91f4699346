#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "catalog/certificates.h"
#include "catalog/record_tables.h"
#include "catalog/service.h"
#include "fabric/member.h"

namespace nam::catalog {
namespace {

constexpr uint32_t kMemoryServerIdMax = 65'535;  // 16 bits of a remote pointer
constexpr size_t kMembersMax = 4'096;
constexpr size_t kGroupsMax = 65'535;
constexpr uint32_t kGroupsOfOneCallMax = 1'024;
constexpr size_t kMemberTextBytesMax = 1'024;
/// A third of a lease without a pulse, which is due ten times per lease, is a standstill.
constexpr int kStandstillPartOfLease = 3;

absl::Status CheckMember(const proto::Member& member) {
  if (member.role() != proto::ROLE_MEMORY && member.role() != proto::ROLE_COMPUTE &&
      member.role() != proto::ROLE_CLIENT) {
    return absl::InvalidArgumentError("a member is a memory server, a compute server or a client");
  }
  if (member.role() == proto::ROLE_MEMORY &&
      (member.control_address().empty() || member.fabric_address().empty())) {
    return absl::InvalidArgumentError("a memory server needs a control and a fabric address");
  }
  const size_t text_bytes = member.host().size() + member.control_address().size() +
                            member.fabric_address().size() + member.data_directory().size();
  if (text_bytes > kMemberTextBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a member's addresses are longer than %d bytes", kMemberTextBytesMax));
  }
  const bool adopts = member.storage() != 0 || !member.files().empty() || !member.lost().empty();
  if (adopts && (member.role() != proto::ROLE_MEMORY || member.data_directory().empty()))
    return absl::InvalidArgumentError(
        "only memory servers with a data directory have a storage id of their own");
  return absl::OkStatus();
}

}  // namespace

bool Service::Living(const MemberState& member) const {
  const bool memory = member.member.role() == proto::ROLE_MEMORY;
  const int64_t grace_ns = memory ? int64_t{bury_after_ms_} * 1'000'000 : 0;
  return member.member.alive() && clock_.NowNs() < member.lease_end_ns + grace_ns;
}

const Service::MemberState* Service::FindLiving(uint32_t id) const {
  const auto found = members_.find(id);
  return found != members_.end() && Living(found->second) ? &found->second : nullptr;
}

absl::Status Service::CheckLiving(uint32_t id) const {
  if (FindLiving(id) != nullptr) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrFormat("member %d is not known or its lease has ended; it must join again", id));
}

// A process with another proof is no member. One in a store of an older release has none: it joins again.
absl::Status Service::CheckSelf(uint32_t id, const std::string& proof) const {
  NAM_RETURN_IF_ERROR(CheckLiving(id));
  const std::string& own = members_.at(id).member.proof();
  if (!own.empty() && SameProof(own, proof)) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrFormat("this process is not member %d, whose proof is another one; it must join again", id));
}

bool Service::HoldsBlocks(uint32_t server, const Mutation& mutation) const {
  const std::vector<std::string>& deleted = mutation.delete_tables;
  const std::vector<proto::Table>& put = mutation.put_tables;
  const auto holds = [&](const proto::Table& table) { return ServersOf(table).contains(server); };
  if (std::any_of(put.begin(), put.end(), holds)) return true;
  return std::any_of(tables_.begin(), tables_.end(), [&](const auto& entry) {
    const std::string& name = entry.first;
    const auto named = [&](const proto::Table& table) { return table.name() == name; };
    return entry.second.servers.contains(server) && std::none_of(put.begin(), put.end(), named) &&
           std::find(deleted.begin(), deleted.end(), name) == deleted.end();
  });
}

// By its own request, by its lease, or by burial.
void Service::EndMembership(const MemberState& member, Mutation& mutation) const {
  const uint32_t id = member.member.id();
  for (const auto& [allocation, load] : loads_) {
    if (load.owner.value() == id) mutation.delete_loads.push_back(allocation);
  }
  for (const auto& [group, owner] : groups_) {
    if (owner.value() == id) mutation.delete_groups.push_back(group);
  }
  EndFills(id, mutation);
  proto::Member dead = member.member;
  dead.set_alive(false);
  dead.clear_proof();
  mutation.put_members.push_back(std::move(dead));
  mutation.makes_room = true;
}

// Applies to every mutation: dead servers are kept only for tables with blocks there.
void Service::ForgetDeadServers(Mutation& mutation) const {
  std::erase_if(mutation.put_members, [&](const proto::Member& member) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const bool forgotten = !member.alive() && !Remembered(member, mutation);
    if (forgotten) mutation.delete_members.push_back(member.id());
    return forgotten;
  });
  for (const auto& [id, state] : members_) {
    if (!state.member.alive() && !Remembered(state.member, mutation)) mutation.delete_members.push_back(id);
  }
}

void Service::Pulse() {
  const MutexLock lock(mutex_);
  ExtendLeasesAfterStall();
  pulse_ns_ = clock_.NowNs();
}

// Renewals may have waited unheard since the last pulse.
void Service::ExtendLeasesAfterStall() {
  if (pulse_ns_ == 0) return;
  const int64_t now_ns = clock_.NowNs(), missing_ns = now_ns - pulse_ns_;
  if (missing_ns < int64_t{lease_ms_} * 1'000'000 / kStandstillPartOfLease) return;
  for (auto& [id, state] : members_) state.lease_end_ns += missing_ns;
  await_from_ns_ += missing_ns;
  await_until_ns_ += missing_ns;
  events_.Add(LogLevel::kWarning, absl::StrFormat("the catalog was stopped or too busy to hear renewals for "
                                                  "%.1f s: all leases are extended by that time",
                                                  static_cast<double>(missing_ns) / 1e9));
  pulse_ns_ = now_ns;
}

// If the store cannot write now, the next call retries; until then Living() excludes the dead.
void Service::Expire() {
  ExtendLeasesAfterStall();
  Mutation mutation = NewMutation();
  std::vector<std::string> ends;
  for (auto& [id, state] : members_) {
    NoteSuspicion(state);
    if (!state.member.alive() || Living(state)) continue;
    const int64_t silent_ns = clock_.NowNs() - state.lease_end_ns + LeaseNs();
    ends.push_back(EndText(state, absl::StrFormat("it has not renewed its lease for %.1f s",
                                                  static_cast<double>(silent_ns) / 1e9)));
    EndMembership(state, mutation);
  }
  if (ends.empty() || !Apply(mutation).ok()) return;
  for (std::string& end : ends) events_.Add(LogLevel::kWarning, std::move(end));
}

absl::StatusOr<proto::JoinReply> Service::Join(const proto::JoinRequest& request) {
  NAM_RETURN_IF_ERROR(CheckMember(request.member()));
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(Enter(MarkOf(request)));
  const bool memory = request.member().role() == proto::ROLE_MEMORY;
  if (request.member().role() == proto::ROLE_CLIENT) NAM_RETURN_IF_ERROR(CheckOpenToClients());
  if (memory) BuryAtAddress(request.member().control_address());
  if (memory && request.member().storage() != 0) {
    NAM_RETURN_IF_ERROR(CheckDirectory(request.member()));
    NAM_RETURN_IF_ERROR(BuryFormer(request.member()));
  }
  if (members_.size() >= kMembersMax) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("the cluster is full: it has %d members", members_.size()));
  }
  const uint32_t id = next_member_;
  const bool new_storage = !request.member().data_directory().empty() && request.member().storage() == 0;
  const uint32_t last_id = id + (new_storage ? 1 : 0);
  if (id >= UINT32_MAX - 1 || (memory && last_id > kMemoryServerIdMax)) {
    return absl::ResourceExhaustedError(
        "this cluster has given out all ids for memory servers; start a new catalog store and load again");
  }
  Mutation mutation = NewMutation();
  mutation.next_member = last_id + 1;
  proto::Member member = request.member();
  member.set_id(id);
  member.set_alive(true);
  member.set_used_bytes(0);
  member.set_proof(MakeMemberProof());
  member.clear_files();
  member.clear_lost();
  proto::JoinReply reply;
  if (memory) {
    if (member.storage() == 0) member.set_storage(last_id);
    std::vector<std::string> missing;
    if (request.member().storage() != 0) FindLost(request.member(), member, missing);
    reply.mutable_missing()->Assign(missing.begin(), missing.end());
    reply.set_storage(member.storage());
  }
  std::string joined = NameOf(member) + " joined";
  mutation.put_members.push_back(member);
  // A client may DROP. Without the memory servers there is nothing to drop, and no file is removed.
  mutation.makes_room = member.role() == proto::ROLE_CLIENT || memory;
  NAM_RETURN_IF_ERROR(Apply(mutation));
  events_.Add(LogLevel::kInfo, std::move(joined));
  reply.set_id(id);
  reply.set_lease_ms(lease_ms_);
  reply.set_proof(member.proof());
  SetMark(reply, Mark());
  return reply;
}

// A member in a store of an older release has no proof: it joins again.
bool Service::Proven(const proto::MemberClaim& claim) const {
  const MemberState* member = FindLiving(claim.member());
  if (member == nullptr || member->member.proof().empty()) return false;
  if (!SameProof(member->member.proof(), claim.proof())) return false;
  if (claim.load() == 0) return true;
  const auto load = loads_.find(claim.load());
  if (load == loads_.end() || load->second.owner.value() != claim.member()) return false;
  // Extensions of record tables are changed in place and not sealed.
  const auto table = tables_.find(load->second.table);
  return load->second.extends == AllocationId() ||
         (table != tables_.end() && !table->second.table->has_record());
}

// The memory server has shown its proof: other processes must not learn a member's key for that server.
void Service::AddKeys(const proto::RenewRequest& request, proto::RenewReply& reply) const {
  const MemberState& server = members_.at(request.id());
  if (server.member.role() != proto::ROLE_MEMORY) return;
  for (const uint32_t id : request.connecting()) {
    const MemberState* const member = FindLiving(id);
    if (member == nullptr || member->member.proof().empty()) continue;
    const fabric::MemberKey key =
        fabric::DeriveMemberKey(member->member.proof(), MemoryServerId(static_cast<uint16_t>(request.id())));
    proto::MemberKey& added = *reply.add_keys();
    added.set_member(id);
    added.set_key(key.data(), key.size());
  }
}

absl::StatusOr<proto::RenewReply> Service::Renew(const proto::RenewRequest& request,
                                                 const std::string& connection) {
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(EnterRenewal(request));
  const auto found = members_.find(request.id());
  if (found != members_.end() && found->second.member.role() == proto::ROLE_MEMORY &&
      found->second.member.alive() && !Living(found->second)) {
    // A restart would revoke the burial, but the server would already have dropped its data.
    return absl::UnavailableError(absl::StrFormat(
        "memory server %d is to be buried, but the catalog's store cannot be written", request.id()));
  }
  NAM_RETURN_IF_ERROR(CheckSelf(request.id(), request.proof()));
  MemberState& state = members_.at(request.id());
  state.lease_end_ns = LeaseEndNs();
  state.connection = connection;
  if (HeaderOf(request).held_is_all()) ++state.renewals;
  if (std::exchange(state.told_suspect, false))
    events_.Add(LogLevel::kInfo, NameOf(state.member) + " is back, with its data");
  state.member.set_used_bytes(request.used_bytes());
  state.reads_from = request.reads_from();
  HearFrom(request.id());
  NAM_RETURN_IF_ERROR(GiveUpLostTables(request));
  proto::RenewReply reply;
  if (const absl::Status serving = CheckServing(); !serving.ok()) {
    // A memory server that asks gets an error, because the catalog cannot answer yet.
    const bool asks = state.member.role() == proto::ROLE_MEMORY && !HeaderOf(request).held_is_all() &&
                      !(request.held().empty() && request.watched_members().empty() &&
                        request.claims().empty() && request.connecting().empty());
    return asks ? absl::StatusOr<proto::RenewReply>(serving) : reply;
  }
  SetMark(reply, Mark());
  ForgetRetiredGroups();
  for (const uint64_t allocation : request.held()) {
    if (!loads_.contains(allocation) && !table_allocations_.contains(allocation))
      reply.add_release(allocation);
  }
  // Only durable ends count: a lease whose end was not written begins anew if the catalog restarts.
  for (const uint32_t id : request.watched_members()) {
    const auto holder = members_.find(id);
    const bool buried = holder == members_.end() || !holder->second.member.alive();
    if (id != 0 && id < next_member_ && buried) reply.add_over(id);
  }
  for (const proto::MemberClaim& claim : request.claims()) {
    if (Proven(claim)) reply.add_proven(claim.member());
  }
  AddKeys(request, reply);
  return reply;
}

absl::StatusOr<proto::LeaveReply> Service::Leave(const proto::LeaveRequest& request) {
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(Enter(MarkOf(request)));
  NAM_RETURN_IF_ERROR(CheckSelf(request.id(), request.proof()));
  const MemberState& leaves = members_.at(request.id());
  std::string left = EndText(leaves, "it left");
  Mutation mutation = NewMutation();
  EndMembership(leaves, mutation);
  NAM_RETURN_IF_ERROR(Apply(mutation));
  events_.Add(LogLevel::kInfo, std::move(left));
  return proto::LeaveReply();
}

absl::StatusOr<proto::AllocateGroupsReply> Service::AllocateGroups(
    const proto::AllocateGroupsRequest& request) {
  if (request.count() == 0 || request.count() > kGroupsOfOneCallMax) {
    return absl::InvalidArgumentError(absl::StrFormat("%d multicast groups at once; ask for 1 to %d",
                                                      request.count(), kGroupsOfOneCallMax));
  }
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(Enter(MarkOf(request)));
  NAM_RETURN_IF_ERROR(CheckLiving(request.member()));
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
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(Enter(MarkOf(request)));
  Mutation mutation = NewMutation();
  for (const uint32_t group : request.groups()) {
    const auto found = groups_.find(group);
    if (found == groups_.end()) continue;  // repeated because the answer was lost
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
