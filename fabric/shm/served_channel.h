#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "fabric/member_connections.h"
#include "fabric/shm/channel_end.h"
#include "fabric/shm/initiators.h"
#include "fabric/shm/layout.h"

namespace nam::fabric::shm {

/// A member's connection to a passive listener. The peer accesses the memory itself, so the word `revoked` of
/// its channel stops it (layout.h). Any thread.
class ServedChannel final : public ServedEnd {
 public:
  /// `hang_up` ends the socket, so that the peer notices. `initiators` must outlive this object.
  ServedChannel(std::shared_ptr<const Mapping> channel, pid_t pid, Initiators& initiators,
                std::function<void()> hang_up)
      : channel_(std::move(channel)),
        side_(ChannelIn(*channel_).sides[0]),
        pid_(pid),
        initiators_(initiators),
        hang_up_(std::move(hang_up)) {}

  bool Stop(bool kill) override {
    side_.revoked.store(1, std::memory_order_seq_cst);
    hang_up_();
    if (!initiators_.Executing(pid_, side_)) return true;
    if (!kill) return false;
    initiators_.Kill(pid_, side_);
    return !initiators_.Executing(pid_, side_);
  }
  bool Over() override { return lost_ && !initiators_.Executing(pid_, side_); }

  /// The socket is gone. A stalled peer may still continue its operation, so the connection is forgotten only
  /// once it is Over.
  void OnLost() {
    side_.revoked.store(1, std::memory_order_seq_cst);
    lost_ = true;
  }

 private:
  const std::shared_ptr<const Mapping> channel_;
  ChannelSide& side_;
  const pid_t pid_;
  Initiators& initiators_;
  const std::function<void()> hang_up_;
  std::atomic<bool> lost_{false};
};

}  // namespace nam::fabric::shm
