#include "fabric/verbs/registry.h"

#include "absl/status/status.h"
#include "base/check.h"
#include "fabric/threads.h"

namespace nam::fabric::verbs {
namespace {

constexpr uint32_t kFirstKeyMax = 1u << 28;
constexpr uint32_t kKeyMax = 1u << 31;

}  // namespace

std::atomic<uint32_t> Registry::next_key_{0};

Registry::Registry() {
  // Starts at random, so that a dead process's keys are unknown to its successor.
  uint32_t unset = 0;
  next_key_.compare_exchange_strong(unset, 1 + static_cast<uint32_t>(RandomBits() % kFirstKeyMax));
}

absl::StatusOr<uint32_t> Registry::Register(const Entry& entry) {
  const uint32_t key = next_key_.fetch_add(1);
  if (key >= kKeyMax) {
    next_key_.store(kKeyMax);
    return absl::ResourceExhaustedError(
        "this process has used up its keys to memory regions: restart it, and allocate larger regions");
  }
  const MutexLock lock(mutex_);
  entries_.emplace(key, entry);
  return key;
}

void Registry::Retire(uint32_t key) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  NAM_CHECK(found != entries_.end(), "region retired twice");
  retired_.push_back(found->second.nic_rkey);
  retired_set_.insert(found->second.nic_rkey);
  if (retired_.size() > kRetiredMax) {
    retired_set_.erase(retired_set_.find(retired_.front()));
    retired_.pop_front();
  }
  entries_.erase(found);
  epoch_.fetch_add(1, std::memory_order_release);
}

std::optional<Registry::Entry> Registry::Find(uint32_t key) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

bool Registry::RecentlyRetired(uint32_t nic_rkey) const {
  const MutexLock lock(mutex_);
  return retired_set_.contains(nic_rkey);
}

bool Contains(const Registry::Entry& entry, const LocalBuffer& buffer) {
  const auto begin = reinterpret_cast<uintptr_t>(buffer.data);
  const auto base = reinterpret_cast<uintptr_t>(entry.data);
  return begin >= base && begin - base <= entry.bytes && buffer.bytes <= entry.bytes - (begin - base);
}

}  // namespace nam::fabric::verbs
