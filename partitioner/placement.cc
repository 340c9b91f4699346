#include "partitioner/placement.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/interruption.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "catalog/server_ids.h"
#include "fabric/fabric.h"

namespace nam::partitioner {
namespace {

constexpr uint64_t kAlignBytes = 64;
uint64_t Aligned(uint64_t bytes) {
  return (bytes + kAlignBytes - 1) / kAlignBytes * kAlignBytes;
}

}  // namespace

// All servers at once: each should have its own disk.
absl::Status SealAll(catalog::Attachment& attachment, const std::vector<LoadedMemory>& memory,
                     const std::atomic<bool>* cancel) {
  std::map<MemoryServerId, std::vector<LoadedMemory>> by_member;
  for (const LoadedMemory& one : memory) by_member[one.member].push_back(one);
  Mutex mutex;
  absl::Status first_error;
  {
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    for (const auto& [member, of_member] : by_member) {
      const auto seal = [&, loads = &of_member] {
        const Interruption interruption(cancel);
        for (const LoadedMemory& load : *loads) {
          const absl::Status sealed = Interruption::requested()
                                          ? absl::CancelledError("cancelled")
                                          : attachment.Seal(load.member, load.allocation, load.bytes);
          if (sealed.ok()) continue;
          const MutexLock lock(mutex);
          first_error.Update(sealed);
          break;
        }
      };
      auto started = attachment.fabric().TryStartThread("nam-seal", seal);
      if (started.ok()) {
        threads.push_back(*std::move(started));
      } else {
        seal();
      }
    }
  }
  return first_error;
}

absl::Status Placement::AskServers(bool settle) {
  for (Server& server : servers_) {
    NAM_ASSIGN_OR_RETURN(const proto::ListRegionsReply usage, attachment_.MemoryUsage(server.member, settle));
    const uint64_t most = usage.memory_bytes() - std::min(usage.memory_bytes(), usage.scratch_bytes());
    const uint64_t used = usage.used_bytes() - std::min(usage.used_bytes(), usage.scratch_used_bytes());
    server.free_bytes = most - std::min(most, used);
    server.leaving_bytes = std::min(usage.leaving_bytes(), most - server.free_bytes);
  }
  return absl::OkStatus();
}

// Leaving memory counts as free: it will be when it is requested.
uint64_t Placement::FreeBytes() const {
  uint64_t bytes = 0;
  for (const Server& server : servers_) bytes += server.free_bytes + server.leaving_bytes;
  return bytes;
}

absl::Status Placement::Prepare(uint64_t bytes) {
  NAM_ASSIGN_OR_RETURN(std::vector<proto::Member> members, attachment_.Members(proto::ROLE_MEMORY));
  if (members.empty()) return absl::UnavailableError("the cluster has no living memory server");
  // Loads that begin at once see the same free bytes: each has another server first.
  std::rotate(members.begin(), members.begin() + static_cast<int64_t>(allocation_.value() % members.size()),
              members.end());
  servers_.clear();
  for (const proto::Member& member : members)
    servers_.push_back({catalog::MemberServerId(member), catalog::StorageServerId(member)});
  NAM_RETURN_IF_ERROR(AskServers(/*settle=*/false));
  // Servers may not have heard of dropped tables yet.
  if (bytes > FreeBytes()) NAM_RETURN_IF_ERROR(AskServers(/*settle=*/true));
  if (bytes > FreeBytes()) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "the memory servers are too small: the load needs about %.1f MiB, and together the %d "
        "have %.1f MiB free (start them with more --memory, or start more of them)",
        static_cast<double>(bytes) / (1 << 20), servers_.size(),
        static_cast<double>(FreeBytes()) / (1 << 20)));
  }
  std::stable_sort(servers_.begin(), servers_.end(),
                   [](const Server& a, const Server& b) { return a.free_bytes > b.free_bytes; });
  return absl::OkStatus();
}

std::optional<size_t> Placement::ServerFor(uint64_t bytes, size_t spread, bool leaving) const {
  const auto room = [leaving](const Server& server) {
    return server.free_bytes + (leaving ? server.leaving_bytes : 0);
  };
  std::optional<size_t> best;
  for (size_t s = 0; s < spread; ++s) {
    const uint64_t filled = servers_[s].dealt_bytes + bytes;
    if (filled > room(servers_[s])) continue;
    if (!best || static_cast<unsigned __int128>(filled) * room(servers_[*best]) <
                     static_cast<unsigned __int128>(servers_[*best].dealt_bytes + bytes) * room(servers_[s]))
      best = s;
  }
  return best;
}

absl::StatusOr<Placement::Dealt> Placement::Deal(std::span<const uint32_t> piece_bytes,
                                                 const std::vector<size_t>& pieces) {
  uint64_t all_bytes = 0;
  for (const uint32_t bytes : piece_bytes) all_bytes += bytes;
  size_t spread = std::clamp<uint64_t>((all_bytes + share_bytes_ - 1) / share_bytes_, 1, servers_.size());
  Dealt dealt(servers_.size());
  for (const size_t piece : pieces) {
    const uint64_t bytes = Aligned(piece_bytes[piece]);
    std::optional<size_t> server = ServerFor(bytes, spread, /*leaving=*/false);
    while (!server && spread < servers_.size()) server = ServerFor(bytes, ++spread, /*leaving=*/false);
    if (!server) server = ServerFor(bytes, spread, /*leaving=*/true);
    if (!server) {
      return absl::ResourceExhaustedError(absl::StrFormat(
          "no memory server has %d bytes free (start them with more --memory, or start more of them)",
          bytes));
    }
    servers_[*server].dealt_bytes += bytes;
    dealt[*server].push_back(piece);
  }
  return dealt;
}

absl::Status Placement::ReserveOn(size_t server, std::span<const uint32_t> piece_bytes,
                                  std::vector<size_t>& pieces, std::vector<Place>& places) {
  // A piece does not straddle extents, so the end of each may stay unused: requests more for the rest.
  while (!pieces.empty()) {
    uint64_t needed = 0;
    for (const size_t piece : pieces) needed += Aligned(piece_bytes[piece]);
    NAM_ASSIGN_OR_RETURN(const std::vector<catalog::GrantedExtent> extents,
                         attachment_.Allocate(servers_[server].member, allocation_, needed));
    size_t placed = 0;
    for (const catalog::GrantedExtent& extent : extents) {
      grant_ = extent.grant;
      uint64_t at = extent.offset;
      const uint64_t end = extent.offset + extent.bytes;
      while (placed < pieces.size() && at + piece_bytes[pieces[placed]] <= end) {
        places[pieces[placed]] = {server, at};
        at += Aligned(piece_bytes[pieces[placed++]]);
      }
    }
    if (placed == 0) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("memory server %d has no extent of %d bytes in one piece",
                          servers_[server].member.value(), piece_bytes[pieces[0]]));
    }
    pieces.erase(pieces.begin(), pieces.begin() + static_cast<int64_t>(placed));
  }
  return absl::OkStatus();
}

absl::Status Placement::Reserve(std::span<const uint32_t> piece_bytes) {
  NAM_CHECK(!servers_.empty(), "Prepare comes first");
  std::vector<Place> places(piece_bytes.size());
  std::vector<size_t> pieces(piece_bytes.size());
  std::iota(pieces.begin(), pieces.end(), 0);
  absl::Status full;
  // Every round but the last leaves out a server that is full by now.
  while (!pieces.empty()) {
    absl::StatusOr<Dealt> dealt = Deal(piece_bytes, pieces);
    if (!dealt.ok()) return full.ok() ? dealt.status() : full;
    pieces.clear();
    for (size_t s = 0; s < servers_.size(); ++s) {
      std::vector<size_t>& of_server = (*dealt)[s];
      const absl::Status reserved = ReserveOn(s, piece_bytes, of_server, places);
      if (reserved.ok()) continue;
      if (!absl::IsResourceExhausted(reserved)) return reserved;
      full = reserved;
      servers_[s].free_bytes = 0;
      servers_[s].leaving_bytes = 0;
      pieces.insert(pieces.end(), of_server.begin(), of_server.end());
    }
  }
  places_.insert(places_.end(), places.begin(), places.end());
  return absl::OkStatus();
}

storage::RemotePtr<void> Placement::Next(uint32_t bytes) {
  NAM_CHECK(!places_.empty(), "more pieces than were reserved");
  const Place place = places_.front();
  places_.pop_front();
  const MemoryServerId storage = servers_[place.server].storage;
  used_bytes_[storage] += bytes;
  return {storage, place.offset};
}

storage::RemotePtr<void> Placement::ToWrite(storage::RemotePtr<void> piece) const {
  const auto found = std::find_if(servers_.begin(), servers_.end(),
                                  [&](const Server& server) { return server.storage == piece.server(); });
  NAM_CHECK(found != servers_.end(), "no piece of this load");
  return {found->member, piece.offset()};
}

std::map<MemoryServerId, uint64_t> Placement::written_bytes() const {
  std::map<MemoryServerId, uint64_t> written;
  for (const Server& server : servers_) {
    const auto used = used_bytes_.find(server.storage);
    if (used != used_bytes_.end()) written[server.member] = used->second;
  }
  return written;
}

void Placement::ReleaseAll() {
  for (const Server& server : servers_) (void)attachment_.Release(server.member, allocation_);
}

}  // namespace nam::partitioner
