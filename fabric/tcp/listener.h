#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/unique_fd.h"
#include "fabric/fabric.h"
#include "fabric/tcp/core.h"
#include "fabric/tcp/doorbell.h"
#include "fabric/tcp/handshake.h"
#include "fabric/tcp/socket.h"

namespace nam::fabric::tcp {

/// Accepts and authenticates on a thread of its own, so that strangers cost the NIC threads nothing:
///
///     accepted ─▶ handshakes_ ─┬─ passive ─────────────▶ NIC thread
///                              ├─ paired, forward ─▶ unpaired_ ─┐
///                              └─ paired, reverse ──────────────┴─▶ waiting_ ─▶ Accept
///
/// Each stage is bounded, in number and in time. Strangers beyond the bound push out the oldest of
/// them: a real handshake is over long before its turn comes.
class TcpListener final : public Listener {
 public:
  static absl::StatusOr<std::unique_ptr<Listener>> Create(std::shared_ptr<Core> core,
                                                          const ListenOptions& options);
  ~TcpListener() override;

  std::string address() const override { return address_; }
  absl::StatusOr<std::unique_ptr<QueuePair>> Accept(CompletionQueue& completions,
                                                    const QueuePairOptions& options,
                                                    Deadline deadline) override;

 private:
  struct Unpaired {
    UniqueFd forward;
    int64_t deadline_ns = 0;
  };
  struct Waiting {
    UniqueFd forward;  // the peer's requests
    UniqueFd reverse;  // ours
  };

  TcpListener(std::shared_ptr<Core> core, bool passive, UniqueFd socket, std::string address);
  void Start();
  void Run();
  void AcceptSockets();
  void Advance(uint64_t id);
  void Admit(ServerHandshake& handshake);
  ServerVerdict Judge(const ClientHello& hello);
  /// Closes what took too long; when the next will have.
  int64_t Expire();
  size_t WaitingCount();

  const std::shared_ptr<Core> core_;
  const bool passive_;
  const UniqueFd socket_;
  const std::string address_;
  UniqueFd epoll_;
  Doorbell doorbell_;
  std::atomic<bool> stopping_{false};

  // Of the listener's thread.
  std::map<uint64_t, ServerHandshake> handshakes_;  // by arrival
  std::map<uint64_t, Unpaired> unpaired_;           // by token
  uint64_t next_handshake_ = 2;
  int64_t accept_again_ns_ = 0;  // not 0: out of descriptors until then

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Waiting> waiting_;  // under mutex_

  std::unique_ptr<Thread> thread_;  // last: it uses everything above
};

}  // namespace nam::fabric::tcp
