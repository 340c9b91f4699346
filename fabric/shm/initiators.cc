#include "fabric/shm/initiators.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <iterator>
#include <utility>

#include "fabric/shm/barrier.h"
#include "fabric/shm/channel_end.h"

namespace nam::fabric::shm {

void Initiators::Add(std::shared_ptr<const Mapping> channel, int side, pid_t pid) {
  const ChannelSide* shown = &ChannelIn(*channel).sides[static_cast<size_t>(side)];
  if (shown->executing.load(std::memory_order_acquire) == kNoInitiator) return;  // a passive listener's
  const std::lock_guard lock(mutex_);
  ForgetTheGone();
  const auto [entry, fresh] = processes_.try_emplace(pid);
  if (fresh) entry->second.descriptor.reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  entry->second.initiators.push_back({std::move(channel), shown});
}

bool Initiators::Executing(uint32_t rkey) {
  RunBarriers();
  // For peers that run their own barriers, because this process cannot.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::lock_guard lock(mutex_);
  return std::any_of(processes_.begin(), processes_.end(), [rkey](const auto& entry) {
    const auto& [pid, process] = entry;
    return std::any_of(process.initiators.begin(), process.initiators.end(),
                       [rkey](const Initiator& initiator) {
                         return initiator.side->executing.load(std::memory_order_acquire) == rkey;
                       }) &&
           Lives(pid, process);
  });
}

/// In doubt it does: a process of another PID namespace, a zombie or a successor where there are no pidfds.
bool Initiators::Lives(pid_t pid, const Process& process) {
  if (!process.descriptor.valid()) return kill(pid, 0) == 0 || errno != ESRCH;
  pollfd ended{process.descriptor.get(), POLLIN, 0};
  return poll(&ended, 1, 0) != 1;
}

void Initiators::ForgetTheGone() {
  for (auto entry = processes_.begin(); entry != processes_.end();) {
    auto& [pid, process] = *entry;
    std::erase_if(process.initiators, [](const Initiator& initiator) {
      return initiator.side->executing.load(std::memory_order_acquire) == kNoInitiator;
    });
    const bool gone = process.initiators.empty() || !Lives(pid, process);
    entry = gone ? processes_.erase(entry) : std::next(entry);
  }
}

}  // namespace nam::fabric::shm
