#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "bench/two_phase/transport.h"

namespace nam::bench::two_phase {

/// Uses SEND/RECEIVE queue pairs of a fabric. The stream of frames is cut into messages of at most
/// buffer_bytes. A SEND that finds no receive posted waits for one, so no side counts credits.
///
///     a connection's region:  receive_depth buffers │ send_depth buffers, a ring
class SendTransport final : public Transport {
 public:
  static absl::StatusOr<std::unique_ptr<Transport>> Open(fabric::Fabric& fabric,
                                                         const TransportOptions& options);
  ~SendTransport() override;

  absl::StatusOr<ConnectionId> Connect(const std::string& address, Deadline deadline) override;
  void Wake() override { completions_->Wake(); }

 private:
  struct Pair : Stream {
    std::unique_ptr<fabric::MemoryRegion> region;
    std::unique_ptr<fabric::QueuePair> queue_pair;
    uint64_t posted = 0;     // SENDs
    uint64_t completed = 0;  // completed ones; their buffers are free
    size_t frame_left = 0;   // without coalescing: the rest of the frame being sent
  };
  /// A message that has arrived, or the end of the connection, and the time to deliver it.
  struct Held {
    int64_t due_ns;
    ConnectionId connection;
    uint32_t buffer = 0;
    uint32_t bytes = 0;
    bool lost = false;
  };

  SendTransport(fabric::Fabric& fabric, const TransportOptions& options)
      : fabric_(fabric), options_(options) {}
  fabric::QueuePairOptions PairOptions() const;
  absl::StatusOr<ConnectionId> Attach(std::unique_ptr<fabric::QueuePair> queue_pair);
  fabric::LocalBuffer ReceiveBuffer(const Pair& pair, uint32_t buffer, uint32_t bytes) const;
  fabric::LocalBuffer SendBuffer(const Pair& pair, uint64_t number, uint32_t bytes) const;
  uint32_t NextMessageBytes(Pair& pair) const;
  void AcceptAll();
  void HandleCompletion(const fabric::Completion& completion);
  void LetIn(FrameSink& sink);
  bool Push(Stream& stream) override;
  void Await(FrameSink& sink, Deadline deadline) override;

  fabric::Fabric& fabric_;
  const TransportOptions options_;
  std::unique_ptr<fabric::CompletionQueue> completions_;
  std::unique_ptr<fabric::Listener> listener_;
  absl::flat_hash_map<uint64_t, ConnectionId> connections_;  // by queue pair
  std::deque<Held> held_;
  std::vector<fabric::WorkRequest> batch_;
  int64_t accept_ns_ = 0;  // when to accept connections again
};

}  // namespace nam::bench::two_phase
