#include "computeserver/result_store.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/status_macros.h"

namespace nam::computeserver {
namespace {

constexpr uint64_t kSharedBytes = 4u << 20;
constexpr uint64_t kSmallBytes = 256u << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<ResultStore>> ResultStore::Create(fabric::Fabric& fabric, int64_t old_us) {
  std::unique_ptr<ResultStore> store(new ResultStore(fabric, old_us));
  NAM_ASSIGN_OR_RETURN(store->shared_, fabric.Allocate(kSharedBytes, {.access = fabric::Access::kRead}));
  return store;
}

void ResultStore::DropAbandoned(const std::function<absl::StatusOr<std::set<MemberId>>()>& living_clients) {
  const int64_t now_ns = fabric_.clock().NowNs();
  const auto old = [&](const auto& entry) { return entry.second.looked_at_ns < now_ns - old_ns_; };
  {
    const std::scoped_lock lock(mutex_);
    if (std::none_of(entries_.begin(), entries_.end(), old)) return;
  }
  const absl::StatusOr<std::set<MemberId>> living = living_clients();
  if (!living.ok()) return;
  const std::scoped_lock lock(mutex_);
  std::erase_if(entries_,
                [&](const auto& entry) { return old(entry) && !living->contains(entry.second.client); });
  for (auto& [attempt, entry] : entries_) {
    if (living->contains(entry.client)) entry.looked_at_ns = now_ns;
  }
}

std::optional<uint64_t> ResultStore::FindRoom(uint64_t bytes) const {
  std::vector<std::pair<uint64_t, uint64_t>> taken;  // by offset: begin, end
  for (const auto& [attempt, entry] : entries_) {
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
  std::scoped_lock lock(mutex_);
  Entry entry;
  entry.client = client;
  for (const std::span<const std::byte> page : pages) entry.bytes += page.size();
  entry.looked_at_ns = fabric_.clock().NowNs();
  const std::optional<uint64_t> room = entry.bytes <= kSmallBytes ? FindRoom(entry.bytes) : std::nullopt;
  if (room) {
    entry.offset = *room;
  } else {
    NAM_ASSIGN_OR_RETURN(
        entry.own, fabric_.Allocate(entry.bytes, {.access = fabric::Access::kRead, .huge_pages = false}));
  }
  fabric::MemoryRegion& region = entry.own ? *entry.own : *shared_;
  std::byte* to = region.data() + entry.offset;
  for (const std::span<const std::byte> page : pages) to = std::copy(page.begin(), page.end(), to);
  const Place place{region.rkey(), entry.offset};
  entries_.insert_or_assign(attempt, std::move(entry));
  return place;
}

void ResultStore::Release(uint64_t attempt) {
  std::scoped_lock lock(mutex_);
  entries_.erase(attempt);
}

}  // namespace nam::computeserver
