#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/memory.h"

namespace nam::fabric::shm {

/// The peers' queue pairs that can reach this process's regions. They outlive their connections here: a peer
/// that stalls inside a copy may continue it after its socket is gone. An initiator is forgotten when its
/// process has ended or reports that the queue pair is gone. Any thread.
class Initiators {
 public:
  /// Must be called before the peer, process `pid`, can execute over the channel. `side` is the peer's.
  void Add(std::shared_ptr<const Mapping> channel, int side, pid_t pid);
  /// True if a live peer is changing memory under `rkey`. After the key has left the region table, the first
  /// false is final.
  bool Executing(uint32_t rkey);
  /// The same for one peer's revoked side of a channel, under any key.
  bool Executing(pid_t pid, const ChannelSide& side);
  /// Sends SIGKILL to the peer if it is inside an operation and is not this process, and briefly waits for
  /// its end. Only where the kernel has pidfds, so that a reused pid is never hit.
  void Kill(pid_t pid, const ChannelSide& side);

 private:
  struct Initiator {
    std::shared_ptr<const Mapping> channel;
    const ChannelSide* side = nullptr;
  };
  struct Process {
    UniqueFd descriptor;  // a pidfd, where the kernel gives one
    std::vector<Initiator> initiators;
  };

  static bool Executes(const Process& process, uint32_t rkey);
  /// Runs the barriers of all joined processes, and one on this thread for peers that run their own.
  static void PassBarriers();
  static bool Lives(pid_t pid, const Process& process);
  /// nullptr if the process has been forgotten.
  const Process* ProcessOf(pid_t pid, const ChannelSide& side) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetTheGone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  std::map<pid_t, Process> processes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace nam::fabric::shm
