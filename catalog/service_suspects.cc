#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "catalog/server_ids.h"
#include "catalog/service.h"

// Memory servers whose leases have ended, and their burial (docs/design/catalog-and-leases.md).
namespace nam::catalog {

bool Service::Suspect(const MemberState& member) const {
  return member.member.role() == proto::ROLE_MEMORY && Living(member) &&
         clock_.NowNs() >= member.lease_end_ns;
}

// Half a lease or more without a renewal: at least one is missing.
bool Service::Late(const MemberState& member) const {
  return clock_.NowNs() >= member.lease_end_ns - LeaseNs() / 2;
}

std::vector<LostBlocks> Service::BlocksAt(const proto::Member& server) const {
  std::vector<LostBlocks> blocks;
  for (const auto& [name, state] : tables_) {
    if (!HasBlocksOf(server, state)) continue;
    LostBlocks& lost = blocks.emplace_back(LostBlocks{.table = name});
    for (const proto::ServerUsage& usage : state.table->usage()) {
      if (GoesBy(server, usage.server())) lost.blocks += usage.blocks(), lost.bytes += usage.bytes();
    }
  }
  return blocks;
}

size_t Service::CountLoadsOf(uint32_t member) const {
  size_t loads = 0;
  for (const auto& [allocation, load] : loads_) loads += load.owner.value() == member ? 1 : 0;
  return loads;
}

/// The log text of a membership's end, with its consequences.
std::string Service::EndText(const MemberState& member, const std::string& why) const {
  const uint32_t id = member.member.id();
  if (member.member.role() == proto::ROLE_MEMORY) {
    const std::vector<LostBlocks> lost = BlocksAt(member.member);
    if (const std::string& directory = member.member.data_directory(); !directory.empty()) {
      return absl::StrCat(NameOf(member.member), " is buried: ", why, "; ",
                          lost.empty() ? "no table waits for" : TextOf(lost) + " wait for",
                          " a memory server on its data directory `", directory,
                          "`, except record tables, which are lost");
    }
    return absl::StrCat(NameOf(member.member), " is buried: ", why, "; ",
                        lost.empty() ? "no table has lost anything" : "lost: " + TextOf(lost));
  }
  const size_t loads = CountLoadsOf(id);
  return absl::StrCat(NameOf(member.member), " is gone: ", why,
                      loads == 0 ? std::string() : absl::StrFormat("; %d of its loads are given up", loads));
}

void Service::NoteSuspicion(MemberState& member) {
  if (member.told_suspect || !Suspect(member)) return;
  member.told_suspect = true;
  const std::vector<LostBlocks> waits = BlocksAt(member.member);
  events_.Add(
      LogLevel::kWarning,
      absl::StrFormat(
          "%s is suspect: it has not renewed its lease for %.1f s; it keeps its place for %.1f s more%s",
          NameOf(member.member), lease_ms_ / 1e3, bury_after_ms_ / 1e3,
          waits.empty() ? std::string() : "; these wait for it: " + TextOf(waits)));
}

absl::Status Service::BuryNow(const MemberState& server, const std::string& why) {
  std::string end = EndText(server, why);
  Mutation mutation = NewMutation();
  EndMembership(server, mutation);
  NAM_RETURN_IF_ERROR(Apply(mutation));
  events_.Add(LogLevel::kWarning, std::move(end));
  return absl::OkStatus();
}

std::vector<Service::Overdue> Service::OverdueMemoryServers() {
  const MutexLock lock(mutex_);
  std::vector<Overdue> overdue;
  if (!CheckServing().ok()) return overdue;  // an older store must not bury a server
  Expire();
  for (const auto& [id, state] : members_) {
    if (Late(state) && Living(state) && state.member.role() == proto::ROLE_MEMORY)
      overdue.push_back({id, state.member.control_address(), state.lease_end_ns, state.connection});
  }
  return overdue;
}

// If the store cannot write now, the next check finds the server again.
void Service::ProcessEnded(const Overdue& server) {
  const MutexLock lock(mutex_);
  const auto found = members_.find(server.id);
  if (!CheckServing().ok() || found == members_.end() || !Living(found->second)) return;
  if (found->second.lease_end_ns != server.lease_end_ns) return;  // heard of meanwhile
  BuryNow(found->second, "its connection has ended and others are refused, so its process has ended")
      .IgnoreError();
}

// Only one process listens at an address. A live member is spared: two members may be misconfigured.
void Service::BuryAtAddress(const std::string& control_address) {
  for (const auto& [id, state] : members_) {
    const bool same =
        state.member.role() == proto::ROLE_MEMORY && state.member.control_address() == control_address;
    if (!same || !Late(state) || !Living(state)) continue;
    BuryNow(state, "another memory server listens at its address").IgnoreError();
    return;  // members_ has changed; the next check handles the next one
  }
}

absl::StatusOr<proto::BuryReply> Service::Bury(const proto::BuryRequest& request) {
  const MutexLock lock(mutex_);
  NAM_RETURN_IF_ERROR(Enter(MarkOf(request)));
  const auto found = members_.find(request.id());
  if (found == members_.end() || found->second.member.role() != proto::ROLE_MEMORY) {
    return absl::NotFoundError(absl::StrFormat("there is no memory server %d", request.id()));
  }
  const MemberState& server = found->second;
  if (!server.member.alive()) return proto::BuryReply();  // repeated because the answer was lost
  if (!Suspect(server)) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s is alive and renews its lease; stop its process instead", NameOf(server.member)));
  }
  NAM_RETURN_IF_ERROR(BuryNow(server, "an operator's word"));
  return proto::BuryReply();
}

std::vector<MemberEvent> Service::TakeEvents() {
  const MutexLock lock(mutex_);
  return events_.Take();
}

}  // namespace nam::catalog
