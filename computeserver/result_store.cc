#include "computeserver/result_store.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "base/status_macros.h"

namespace nam::computeserver {
namespace {

constexpr uint64_t kSharedBytes = 4u << 20;
constexpr uint64_t kSmallBytes = 256u << 10;
constexpr int64_t kKeepNs = 60'000'000'000;

}  // namespace

absl::StatusOr<std::unique_ptr<ResultStore>> ResultStore::Create(fabric::Fabric& fabric) {
  std::unique_ptr<ResultStore> store(new ResultStore(fabric));
  NAM_ASSIGN_OR_RETURN(store->shared_, fabric.Allocate(kSharedBytes, {.access = fabric::Access::kRead}));
  return store;
}

void ResultStore::DropExpired() {
  const int64_t now_ns = fabric_.clock().NowNs();
  std::erase_if(entries_, [&](const auto& entry) { return entry.second.expires_ns < now_ns; });
}

std::optional<uint64_t> ResultStore::FindRoom(uint64_t bytes) const {
  std::vector<std::pair<uint64_t, uint64_t>> taken;  // by offset: begin, end
  for (const auto& [query, entry] : entries_) {
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

absl::StatusOr<ResultStore::Place> ResultStore::Put(uint64_t query, const std::string& bytes) {
  std::scoped_lock lock(mutex_);
  DropExpired();
  Entry entry;
  entry.bytes = bytes.size();
  entry.expires_ns = fabric_.clock().NowNs() + kKeepNs;
  const std::optional<uint64_t> room = bytes.size() <= kSmallBytes ? FindRoom(bytes.size()) : std::nullopt;
  if (room) {
    entry.offset = *room;
  } else {
    NAM_ASSIGN_OR_RETURN(
        entry.own, fabric_.Allocate(bytes.size(), {.access = fabric::Access::kRead, .huge_pages = false}));
  }
  fabric::MemoryRegion& region = entry.own ? *entry.own : *shared_;
  std::memcpy(region.data() + entry.offset, bytes.data(), bytes.size());
  const Place place{region.rkey(), entry.offset};
  entries_.insert_or_assign(query, std::move(entry));
  return place;
}

void ResultStore::Release(uint64_t query) {
  std::scoped_lock lock(mutex_);
  entries_.erase(query);
}

}  // namespace nam::computeserver
