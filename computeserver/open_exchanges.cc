#include "computeserver/open_exchanges.h"

#include <utility>

namespace nam::computeserver {
namespace {

/// Other members' turns have come by then, or the session has given the stage up and could not say so.
constexpr int64_t kWaitNs = 120'000'000'000;

}  // namespace

bool OpenExchanges::Put(uint64_t attempt, MemberId client, Ends ends) {
  const MutexLock lock(mutex_);
  if (ended_) return false;
  Entry entry{std::move(ends), fabric_.clock().NowNs()};
  return entries_.try_emplace(Key(client, attempt), std::move(entry)).second;
}

std::optional<OpenExchanges::Ends> OpenExchanges::Take(uint64_t attempt, MemberId client) {
  const MutexLock lock(mutex_);
  auto entry = entries_.extract(Key(client, attempt));
  if (entry.empty()) return std::nullopt;
  return std::move(entry.mapped().ends);
}

std::set<MemberId> OpenExchanges::Clients() {
  const MutexLock lock(mutex_);
  std::set<MemberId> clients;
  for (const auto& [key, entry] : entries_) clients.insert(key.first);
  return clients;
}

void OpenExchanges::DropOf(MemberId client) {
  std::vector<Entry> dropped;  // destroyed without the lock
  const MutexLock lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (entry->first.first == client) dropped.push_back(std::move(entry->second));
    entry = entry->first.first == client ? entries_.erase(entry) : std::next(entry);
  }
}

void OpenExchanges::DropOld() {
  std::vector<Entry> dropped;
  const MutexLock lock(mutex_);
  const int64_t oldest_ns = fabric_.clock().NowNs() - kWaitNs;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const bool old = entry->second.since_ns < oldest_ns;
    if (old) dropped.push_back(std::move(entry->second));
    entry = old ? entries_.erase(entry) : std::next(entry);
  }
}

void OpenExchanges::End() {
  std::map<Key, Entry> dropped;
  const MutexLock lock(mutex_);
  ended_ = true;
  dropped.swap(entries_);
}

}  // namespace nam::computeserver
