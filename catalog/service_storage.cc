#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "catalog/chain_groups.h"
#include "catalog/record_tables.h"
#include "catalog/server_ids.h"
#include "catalog/service.h"

// Storage ids: the owners of sealed memory (docs/design/data-on-disk.md).
namespace nam::catalog {

bool Service::HasBlocksOf(const proto::Member& server, const TableState& table) {
  return table.servers.contains(server.id()) || table.servers.contains(StorageOf(server));
}

// Returns the newest: only the last member of a storage id knows where the directory is.
const Service::MemberState* Service::FindServing(uint32_t server) const {
  const MemberState* found = nullptr;
  for (const auto& [id, state] : members_) {
    if (GoesBy(state.member, server)) found = &state;
  }
  return found != nullptr && Living(*found) ? found : nullptr;
}

bool Service::AdoptedSince(const proto::Member& server, const Mutation& mutation) const {
  const auto later = [&](const proto::Member& other) {
    return other.role() == proto::ROLE_MEMORY && other.id() > server.id() &&
           StorageOf(other) == StorageOf(server);
  };
  return std::any_of(mutation.put_members.begin(), mutation.put_members.end(), later) ||
         std::any_of(members_.begin(), members_.end(),
                     [&](const auto& entry) { return later(entry.second.member); });
}

// For a dead server: true if tables have blocks there that a live one does not have.
bool Service::Remembered(const proto::Member& dead, const Mutation& mutation) const {
  if (dead.role() != proto::ROLE_MEMORY) return false;
  if (HoldsBlocks(dead.id(), mutation)) return true;
  return StorageOf(dead) != dead.id() && HoldsBlocks(StorageOf(dead), mutation) &&
         !AdoptedSince(dead, mutation);
}

// Ids of members and of storages come from one sequence, so no number is ever both. A store that has given a
// directory's number to a member is older than the directory. --accept-older-store does not help: remote
// pointers with this number would lead to both.
absl::Status Service::CheckIsStorage(const proto::Member& member) const {
  const auto named = members_.find(member.storage());
  if (named == members_.end()) return absl::OkStatus();
  const proto::Member& other = named->second.member;
  const bool memory = other.role() == proto::ROLE_MEMORY;
  if (memory ? StorageOf(other) == member.storage() : !other.alive()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "the catalog's store is older than the data directory `%s`: storage id %d is the id of %s; start the "
      "catalog on the newer store, or end that process, which gets another id when it starts again",
      member.data_directory(), member.storage(), NameOf(other)));
}

// A directory that knows more than the store is newer. With accept_older_store its ids are below the store's
// from now on.
absl::Status Service::CheckDirectory(const proto::Member& member) {
  const uint64_t newest =
      std::max(member.files().empty() ? 0 : *std::max_element(member.files().begin(), member.files().end()),
               std::accumulate(member.lost().begin(), member.lost().end(), uint64_t{0},
                               [](uint64_t most, const proto::LostAllocation& lost) {
                                 return std::max(most, lost.allocation());
                               }));
  NAM_RETURN_IF_ERROR(CheckIsStorage(member));
  if (member.storage() < next_member_ && newest < next_allocation_) return absl::OkStatus();
  if (!options_.accept_older_store) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the catalog's store is older than the data directory `%s`, which has storage id %d and allocations "
        "up to %d, "
        "of which the store knows nothing; start the catalog on the newer store, or, if that is lost, with "
        "--accept-older-store",
        member.data_directory(), member.storage(), newest));
  }
  Mutation mutation = NewMutation();
  mutation.next_member = std::max(mutation.next_member, member.storage() + 1);
  mutation.next_allocation = std::max(mutation.next_allocation, newest + 1);
  return Apply(std::move(mutation));
}

// One process of one host holds the lock on a directory: a member that is heard of after that is alive, and
// has a copy. One renewal may have been under way when its process ended, two were not. If the
// former member has another directory on the same host, and the catalog has heard of it, this one is refused
// at once.
absl::Status Service::BuryFormer(const proto::Member& member) {
  const MemberState* const former = FindServing(member.storage());
  if (former == nullptr) return absl::OkStatus();
  if (!Late(*former)) {
    Claim& claim = members_.at(former->member.id()).claim;
    if (claim.control_address != member.control_address())
      claim = {.control_address = member.control_address(), .renewals = former->renewals};
    const bool copied = member.host() == former->member.host() &&
                        member.data_directory() != former->member.data_directory() && former->renewals > 0;
    const std::string why = absl::StrFormat(
        "storage %d of the data directory `%s` is served by %s from `%s`, which renews its lease; of two "
        "copies of a data directory one is to be removed. If that server has just ended, start again when "
        "its lease is over",
        member.storage(), member.data_directory(), NameOf(former->member), former->member.data_directory());
    return copied || former->renewals >= claim.renewals + 2 ? absl::FailedPreconditionError(why)
                                                            : absl::UnavailableError(why);
  }
  return BuryNow(*former, absl::StrFormat("another process has locked its data directory `%s`",
                                          former->member.data_directory()));
}

// Finds blocks that the store expects in the directory, but that it does not have whole. Loads in progress
// had nothing there when the server started.
void Service::FindLost(const proto::Member& joining, proto::Member& member,
                       std::vector<std::string>& tables) const {
  const std::set<uint64_t> files(joining.files().begin(), joining.files().end());
  std::map<uint64_t, std::string> why;
  for (const proto::LostAllocation& damaged : joining.lost()) why[damaged.allocation()] = damaged.why();
  const auto add = [&](uint64_t allocation, std::string missing) {
    proto::LostAllocation& lost = *member.add_lost();
    lost.set_allocation(allocation);
    const auto damaged = why.find(allocation);
    lost.set_why(damaged == why.end() ? std::move(missing) : damaged->second);
  };
  for (const auto& [name, state] : tables_) {
    if (!state.servers.contains(member.storage())) continue;
    bool whole = true;
    for (const uint64_t allocation : AllocationsOn(*state.table, member.storage())) {
      if (files.contains(allocation)) continue;
      add(allocation,
          absl::StrFormat("`%s` has no file of allocation %d", member.data_directory(), allocation));
      whole = false;
    }
    if (!whole) tables.push_back(name);
  }
  for (const auto& [allocation, load] : loads_) {
    if (!files.contains(allocation)) add(allocation, "the memory server has started again during the load");
  }
}

absl::Status Service::CheckServers(const proto::Table& table, const std::set<uint32_t>& servers) const {
  for (const uint32_t id : servers) {
    const MemberState* const server = FindServing(id);
    if (server == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrFormat("table `%s` has blocks on memory server %d, which is gone; %s", table.name(), id,
                          table.has_record() ? "drop it" : "load it again"));
    }
    for (const proto::LostAllocation& lost : server->member.lost()) {
      if (!AllocationsOf(table).contains(lost.allocation())) continue;
      return absl::FailedPreconditionError(
          absl::StrFormat("table `%s` has lost blocks on memory server %d: %s; load it again", table.name(),
                          server->member.id(), lost.why()));
    }
  }
  return absl::OkStatus();
}

}  // namespace nam::catalog
