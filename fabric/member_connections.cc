#include "fabric/member_connections.h"

#include <limits>

namespace nam::fabric {

bool MemberConnections::Place::Serve(const MemberKey& key, std::shared_ptr<ServedEnd> end,
                                     const std::function<void()>& begin) {
  const std::shared_ptr<MemberConnections> connections = connections_.lock();
  if (connections == nullptr) return false;
  const MutexLock lock(connections->mutex_);
  const auto found = connections->entries_.find(ticket_);
  if (found == connections->entries_.end()) return false;
  found->second.key = key;
  found->second.end = std::move(end);
  begin();
  return true;
}

void MemberConnections::Place::Leave() {
  const Ticket ticket = std::exchange(ticket_, {});
  const std::shared_ptr<MemberConnections> connections = connections_.lock();
  if (ticket.second == 0 || connections == nullptr) return;
  Entry gone;  // destroyed without the lock
  const MutexLock lock(connections->mutex_);
  const auto found = connections->entries_.find(ticket);
  if (found == connections->entries_.end()) return;
  gone = std::move(found->second);
  connections->entries_.erase(found);
}

MemberConnections::Place MemberConnections::Register(MemberId member) {
  const MutexLock lock(mutex_);
  const Ticket ticket(member, ++last_number_);
  entries_.try_emplace(ticket);
  return Place(weak_from_this(), ticket);
}

std::pair<MemberConnections::Entries::iterator, MemberConnections::Entries::iterator> MemberConnections::Of(
    MemberId member) {
  return {entries_.lower_bound({member, 0}),
          entries_.upper_bound({member, std::numeric_limits<uint64_t>::max()})};
}

std::optional<MemberKey> MemberConnections::KnownKey(MemberId member) {
  const MutexLock lock(mutex_);
  for (auto [entry, last] = Of(member); entry != last; ++entry) {
    if (entry->second.end != nullptr && !entry->second.stopped) return entry->second.key;
  }
  return std::nullopt;
}

bool MemberConnections::Fence(MemberId member, bool kill) {
  std::map<Ticket, std::shared_ptr<ServedEnd>> ends;
  {
    const MutexLock lock(mutex_);
    for (auto [entry, last] = Of(member); entry != last;) {
      if (entry->second.end == nullptr) {
        entry = entries_.erase(entry);
        continue;
      }
      entry->second.stopped = true;
      ends.emplace(entry->first, entry->second.end);
      ++entry;
    }
  }
  // Without the lock, because an end may wait for a thread that forgets connections.
  const size_t undrained = std::erase_if(ends, [&](const auto& end) { return !end.second->Stop(kill); });
  std::vector<Entry> forgotten;  // destroyed without the lock
  const MutexLock lock(mutex_);
  for (const auto& [ticket, end] : ends) {
    const auto found = entries_.find(ticket);
    if (found == entries_.end()) continue;
    forgotten.push_back(std::move(found->second));
    entries_.erase(found);
  }
  return undrained == 0;
}

std::vector<MemberId> MemberConnections::Members() {
  ForgetTheOver();
  std::vector<MemberId> members;
  const MutexLock lock(mutex_);
  for (const auto& [ticket, entry] : entries_) {
    if (members.empty() || members.back() != ticket.first) members.push_back(ticket.first);
  }
  return members;
}

void MemberConnections::ForgetTheOver() {
  std::vector<std::pair<Ticket, std::shared_ptr<ServedEnd>>> ends;
  {
    const MutexLock lock(mutex_);
    for (const auto& [ticket, entry] : entries_) {
      if (entry.end != nullptr) ends.emplace_back(ticket, entry.end);
    }
  }
  std::erase_if(ends, [](const auto& end) { return !end.second->Over(); });
  const MutexLock lock(mutex_);
  for (const auto& [ticket, end] : ends) entries_.erase(ticket);
}

}  // namespace nam::fabric
