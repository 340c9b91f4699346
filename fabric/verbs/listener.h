#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/unique_fd.h"
#include "fabric/fabric.h"
#include "fabric/tcp/handshake.h"
#include "fabric/verbs/core.h"
#include "fabric/verbs/wire.h"

namespace nam::fabric::verbs {

/// Accepts and authenticates connections on a thread of its own, and takes the peers' offers:
///
///     accepted ─▶ arrivals_ (handshake, then the Offer) ─┬─ passive ─▶ queue pair, control thread
///                                                        └─ else ────▶ waiting_ ─▶ Accept
///
/// Each stage is bounded, in number and in time. Strangers beyond the bound push out the oldest of them: a
/// real handshake is over long before its turn comes.
class VerbsListener final : public Listener {
 public:
  static absl::StatusOr<std::unique_ptr<Listener>> Create(std::shared_ptr<Core> core,
                                                          const ListenOptions& options);
  ~VerbsListener() override;

  std::string address() const override { return address_; }
  absl::StatusOr<std::unique_ptr<QueuePair>> Accept(CompletionQueue& completions,
                                                    const QueuePairOptions& options,
                                                    Deadline deadline) override;

 private:
  /// A connection that has not offered a queue pair yet.
  struct Arrival {
    Arrival(UniqueFd fd, int64_t deadline_ns) : handshake(std::move(fd), deadline_ns) {}
    tcp::ServerHandshake handshake;
    bool authenticated = false;
    std::array<std::byte, sizeof(Offer)> input;
    size_t input_bytes = 0;
  };
  struct Waiting {
    UniqueFd socket;
    Offer offer;
    std::string peer;
  };
  enum class Step { kAgain, kOver };

  VerbsListener(std::shared_ptr<Core> core, bool passive, UniqueFd socket, std::string address);
  void Run();
  void AcceptSockets();
  Step Advance(Arrival& arrival);
  Step ReceiveOffer(Arrival& arrival);
  void Admit(UniqueFd socket, const Offer& offer);
  /// Makes the queue pair and hands it to the control thread.
  absl::Status Serve(UniqueFd socket, const Offer& offer, const std::string& peer);
  /// Closes what took too long; when the next will have.
  int64_t Expire();
  void WatchSocket(bool on);
  absl::StatusOr<Waiting> TakeWaiting(Deadline deadline);

  const std::shared_ptr<Core> core_;
  const bool passive_;
  const UniqueFd socket_;
  const std::string address_;
  UniqueFd epoll_;
  UniqueFd stop_;

  // Of the listener's thread.
  std::map<uint64_t, Arrival> arrivals_;  // by arrival
  uint64_t next_arrival_ = 2;
  int64_t accept_again_ns_ = 0;  // not 0: out of descriptors until then

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Waiting> waiting_;  // under mutex_

  std::unique_ptr<Thread> thread_;  // last: it uses everything above
};

}  // namespace nam::fabric::verbs
