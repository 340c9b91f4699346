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
namespace {

constexpr int kEndOfKilledMs = 1'000;

}  // namespace

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
    return Executes(entry.second, rkey) && Lives(entry.first, entry.second);
  });
}

void Initiators::Kill(uint32_t rkey) {
  const std::lock_guard lock(mutex_);
  for (const auto& [pid, process] : processes_) {
    const int descriptor = process.descriptor.get();
    if (pid == getpid() || !process.descriptor.valid() || !Executes(process, rkey)) continue;
    if (syscall(SYS_pidfd_send_signal, descriptor, SIGKILL, nullptr, 0) != 0) continue;
    pollfd ended{descriptor, POLLIN, 0};
    poll(&ended, 1, kEndOfKilledMs);
  }
}

bool Initiators::Executes(const Process& process, uint32_t rkey) {
  return std::any_of(process.initiators.begin(), process.initiators.end(),
                     [rkey](const Initiator& initiator) {
                       return initiator.side->executing.load(std::memory_order_acquire) == rkey;
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
