#include "catalog/grant_closer.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace nam::catalog {
namespace {

constexpr int64_t kPauseUs = 500;
constexpr int64_t kPauseMaxUs = 100'000;

}  // namespace

GrantCloser::~GrantCloser() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  stop_->Set();
  thread_.reset();
}

void GrantCloser::Wake() {
  const MutexLock lock(mutex_);
  woken_ = true;
  if (stopped_ || std::exchange(running_, true)) return;
  thread_.reset();  // has ended
  auto started = fabric_.TryStartThread("nam-close", [this] { Run(); });
  running_ = started.ok();  // otherwise the next call tries again, and the end of the lease closes them all
  thread_ = started.ok() ? *std::move(started) : nullptr;
}

void GrantCloser::Run() {
  for (int64_t pause_us = kPauseUs;; pause_us = std::min(2 * pause_us, kPauseMaxUs)) {
    if (TellSome()) pause_us = kPauseUs;
    {
      const MutexLock lock(mutex_);
      if (std::exchange(woken_, false)) {
        pause_us = kPauseUs;
      } else if (stopped_ || !grants_.closing()) {
        running_ = false;
        return;
      }
    }
    stop_->Wait(fabric_.clock().After(pause_us));
  }
}

bool GrantCloser::TellSome() {
  std::map<MemoryServerId, std::vector<fabric::Grants::Closed>> closed;
  for (fabric::Grants::Closed& one : grants_.Close()) closed[one.server].push_back(std::move(one));
  bool told = false;
  for (const auto& [server, grants] : closed) {
    if (!tell_(server, grants).ok()) continue;
    told = true;
    for (const fabric::Grants::Closed& one : grants) grants_.Forget(one);
  }
  return told;
}

}  // namespace nam::catalog
