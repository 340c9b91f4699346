#include "computeserver/result_store.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/status_macros.h"

namespace nam::computeserver {
namespace {

constexpr uint64_t kSharedBytes = 4u << 20;
constexpr uint64_t kSmallBytes = 256u << 10;
/// Windows of a result differ by some pages: one's region fits the next.
constexpr uint64_t kOwnStepBytes = 1u << 20;

void Copy(std::span<const std::span<const std::byte>> pages, std::byte* to) {
  for (const std::span<const std::byte> page : pages) to = std::copy(page.begin(), page.end(), to);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ResultStore>> ResultStore::Create(fabric::Fabric& fabric) {
  std::unique_ptr<ResultStore> store(new ResultStore(fabric));
  NAM_ASSIGN_OR_RETURN(store->shared_, fabric.Allocate(kSharedBytes, {.access = fabric::Access::kRead}));
  return store;
}

std::set<MemberId> ResultStore::Clients() {
  const MutexLock lock(mutex_);
  std::set<MemberId> clients;
  for (const auto& [key, entry] : entries_) clients.insert(key.first);
  return clients;
}

void ResultStore::DropOf(MemberId client) {
  const MutexLock lock(mutex_);
  std::erase_if(entries_, [&](const auto& entry) { return entry.first.first == client; });
}

std::optional<uint64_t> ResultStore::FindRoom(uint64_t bytes) const {
  std::vector<std::pair<uint64_t, uint64_t>> taken;  // by offset: begin, end
  for (const auto& [key, entry] : entries_) {
    if (!entry.own) taken.emplace_back(entry.offset, entry.offset + entry.bytes);
  }
  std::sort(taken.begin(), taken.end());
  uint64_t at = 0;
  for (const auto& [begin, end] : taken) {
    if (begin - at >= bytes) return at;
    at = (end + 63) / 64 * 64;
  }
  if (at + bytes <= shared_->bytes()) return at;
  return std::nullopt;
}

absl::StatusOr<ResultStore::Place> ResultStore::Put(uint64_t attempt, MemberId client,
                                                    std::span<const std::span<const std::byte>> pages) {
  const Key key{client, attempt};
  Entry entry;
  for (const std::span<const std::byte> page : pages) entry.bytes += page.size();
  {
    const MutexLock lock(mutex_);
    if (const auto former = entries_.find(key); former != entries_.end()) {
      entry.own = std::move(former->second.own);
      entries_.erase(former);
    }
    const std::optional<uint64_t> room = entry.bytes <= kSmallBytes ? FindRoom(entry.bytes) : std::nullopt;
    if (room) {
      entry.own.reset();
      entry.offset = *room;
      Copy(pages, shared_->data() + entry.offset);
      entries_.insert_or_assign(key, entry);
      return Place{shared_->rkey(), entry.offset};
    }
  }
  return PutInOwn(key, std::move(entry), pages);
}

/// Copies a large result without the lock.
absl::StatusOr<ResultStore::Place> ResultStore::PutInOwn(const Key& key, Entry entry,
                                                         std::span<const std::span<const std::byte>> pages) {
  if (entry.own == nullptr || entry.own->bytes() < entry.bytes) {
    entry.own.reset();
    const uint64_t bytes = (entry.bytes + kOwnStepBytes - 1) / kOwnStepBytes * kOwnStepBytes;
    NAM_ASSIGN_OR_RETURN(entry.own,
                         fabric_.Allocate(bytes, {.access = fabric::Access::kRead, .huge_pages = false}));
  }
  Copy(pages, entry.own->data());
  const Place place{entry.own->rkey(), 0};
  const MutexLock lock(mutex_);
  entries_.insert_or_assign(key, std::move(entry));
  return place;
}

void ResultStore::Release(uint64_t attempt, MemberId client) {
  const MutexLock lock(mutex_);
  entries_.erase({client, attempt});
}

}  // namespace nam::computeserver
