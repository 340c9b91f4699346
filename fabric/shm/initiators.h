#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/unique_fd.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/memory.h"

namespace nam::fabric::shm {

/// The queue pairs of peers that can reach into this process' regions. They outlive their connections
/// here: a peer that stands still in the middle of a copy goes on with it whatever became of its socket.
/// One is forgotten when its process has ended or says that the queue pair is gone. Any thread.
class Initiators {
 public:
  /// Called before the peer, process `pid`, can execute anything over the channel; `side` is the peer's.
  void Add(std::shared_ptr<const Mapping> channel, int side, pid_t pid);
  /// Whether a living peer is changing memory under `rkey`. Once the key was taken from the region table
  /// and the answer is no, it stays no.
  bool Executing(uint32_t rkey);
  /// The same for one peer's side of a channel, once that was revoked: whether the peer changes memory over
  /// it, under any key.
  bool Executing(pid_t pid, const ChannelSide& side);
  /// SIGKILL for the peer if it does and is not this process, and a moment's wait for its end. Only where the
  /// kernel has pidfds, so that it meets nobody else.
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
  /// Barriers of peers, and of this process for those that run their own because it cannot.
  static void PassBarriers();
  static bool Lives(pid_t pid, const Process& process);
  /// nullptr once the process is forgotten.
  const Process* ProcessOf(pid_t pid, const ChannelSide& side) const;
  void ForgetTheGone();

  std::mutex mutex_;
  std::map<pid_t, Process> processes_;
};

}  // namespace nam::fabric::shm
