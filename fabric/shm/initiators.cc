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

#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/process_barriers.h"
#include "fabric/shm/channel_end.h"

namespace nam::fabric::shm {
namespace {

constexpr int kEndOfKilledMs = 1'000;

bool Changes(const ChannelSide& side) {
  const uint32_t rkey = side.executing.load(std::memory_order_acquire);
  return rkey != 0 && rkey != kNoInitiator;
}

}  // namespace

void Initiators::Add(std::shared_ptr<const Mapping> channel, int side, pid_t pid) {
  const ChannelSide* shown = &ChannelIn(*channel).sides[static_cast<size_t>(side)];
  if (shown->executing.load(std::memory_order_acquire) == kNoInitiator) return;  // a passive listener's
  const MutexLock lock(mutex_);
  ForgetTheGone();
  const auto [entry, fresh] = processes_.try_emplace(pid);
  if (fresh) entry->second.descriptor.reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  entry->second.initiators.push_back({std::move(channel), shown});
}

void Initiators::PassBarriers() {
  RunBarriers();
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool Initiators::Executing(uint32_t rkey) {
  PassBarriers();
  const MutexLock lock(mutex_);
  return std::any_of(processes_.begin(), processes_.end(), [rkey](const auto& entry) {
    return Executes(entry.second, rkey) && Lives(entry.first, entry.second);
  });
}

bool Initiators::Executing(pid_t pid, const ChannelSide& side) {
  PassBarriers();
  const MutexLock lock(mutex_);
  if (!Changes(side)) return false;
  const Process* const process = ProcessOf(pid, side);
  return process != nullptr && Lives(pid, *process);
}

/// Another process may have the pid by now; it does not have the channel.
const Initiators::Process* Initiators::ProcessOf(pid_t pid, const ChannelSide& side) const {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return nullptr;
  const std::vector<Initiator>& initiators = found->second.initiators;
  const bool its_own = std::any_of(initiators.begin(), initiators.end(),
                                   [&](const Initiator& initiator) { return initiator.side == &side; });
  return its_own ? &found->second : nullptr;
}

void Initiators::Kill(pid_t pid, const ChannelSide& side) {
  const MutexLock lock(mutex_);
  const Process* const process = ProcessOf(pid, side);
  if (process == nullptr || pid == getpid() || !Changes(side)) return;
  const int descriptor = process->descriptor.get();
  if (descriptor < 0 || syscall(SYS_pidfd_send_signal, descriptor, SIGKILL, nullptr, 0) != 0) return;
  LogWarning(
      absl::StrFormat("process %d is killed: its membership is over, and it was stalled inside a write that "
                      "it might continue",
                      pid));
  pollfd ended{descriptor, POLLIN, 0};
  poll(&ended, 1, kEndOfKilledMs);
}

bool Initiators::Executes(const Process& process, uint32_t rkey) {
  return std::any_of(process.initiators.begin(), process.initiators.end(),
                     [rkey](const Initiator& initiator) {
                       return initiator.side->executing.load(std::memory_order_acquire) == rkey;
                     });
}

/// True if in doubt: a process of another PID namespace, a zombie, or a successor where there are no pidfds.
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
