#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/strong_id.h"
#include "fabric/fabric.h"

/// How clients, coordinator and participants exchange frames. Each of them is one thread with one Transport:
/// it waits in Receive, which first sends what has been appended since, so that all the frames for one peer
/// that a step made leave together.
///
///     Output(connection) ── append frames ──▶ Receive: send all, wait, OnFrame…, OnLost ──▶ append …
namespace nam::txn::two_phase {

/// Of one transport; never used again.
using ConnectionId = StrongId<struct ConnectionTag, uint64_t>;

class FrameSink {
 public:
  virtual ~FrameSink() = default;
  /// `frame` without its length. May append, and close connections.
  virtual void OnFrame(ConnectionId connection, std::span<const std::byte> frame) = 0;
  /// The peer is gone, or has sent what is no frame. Not after Close.
  virtual void OnLost(ConnectionId connection) = 0;
};

/// Used by one thread at a time, Wake by any.
class Transport {
 public:
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// What peers pass to Connect; empty if it does not listen.
  const std::string& address() const { return address_; }
  virtual absl::StatusOr<ConnectionId> Connect(const std::string& address, Deadline deadline) = 0;
  /// Where a frame is appended. What is for a connection that is gone goes nowhere.
  std::vector<std::byte>& Output(ConnectionId connection);
  void Close(ConnectionId connection);
  /// May return early, and with nothing.
  void Receive(FrameSink& sink, Deadline deadline);
  virtual void Wake() = 0;
  /// Handed over so far; any thread.
  uint64_t frames_received() const { return frames_received_.load(std::memory_order_relaxed); }

 protected:
  struct Stream {
    virtual ~Stream() = default;
    ConnectionId id;
    std::vector<std::byte> input;   // the beginning of a frame
    std::vector<std::byte> output;  // from `sent` on still to be sent
    size_t sent = 0;
    bool dirty = false;  // among dirty_
    bool lost = false;
    bool closed = false;
  };

  Transport() = default;
  /// Sends what can be sent now. False: the connection is lost.
  virtual bool Push(Stream& stream) = 0;
  /// Waits for whatever comes first, and takes it to Deliver and MarkLost.
  virtual void Await(FrameSink& sink, Deadline deadline) = 0;

  /// Hands over the frames that are whole.
  void Deliver(Stream& stream, std::span<const std::byte> arrived, FrameSink& sink);
  /// Told to the sink, and destroyed, at the end of Receive.
  void MarkLost(Stream& stream);
  ConnectionId Add(std::unique_ptr<Stream> stream);
  /// Null if it is gone.
  Stream* Find(ConnectionId connection);
  /// For destructors whose streams need members of theirs.
  void DestroyStreams() { streams_.clear(); }
  std::string address_;

 private:
  size_t DeliverWhole(Stream& stream, std::span<const std::byte> bytes, FrameSink& sink);
  void PushAll();
  void Bury(FrameSink& sink);

  absl::flat_hash_map<ConnectionId, std::unique_ptr<Stream>> streams_;
  std::vector<ConnectionId> dirty_;
  std::vector<ConnectionId> dead_;  // lost or closed; still among streams_
  std::vector<std::byte> nowhere_;
  uint64_t last_id_ = 0;
  std::atomic<uint64_t> frames_received_ = 0;
};

struct TransportOptions {
  enum class Kind : uint8_t {
    kSocket,  // TCP sockets of this host; not in `sim`
    kSend,    // SEND/RECEIVE queue pairs of the fabric
  } kind = Kind::kSend;
  /// Where it listens, at a port of its own choice. Empty: it does not.
  std::string host;
  int64_t peer_timeout_us = 3'000'000;

  // -- kSend. A connection takes (send_depth + receive_depth) × buffer_bytes at each of its ends.
  uint32_t connections_max = 256;
  uint32_t send_depth = 8;
  uint32_t receive_depth = 8;
  uint32_t buffer_bytes = 16 << 10;  // at most fabric::kMaxSendBytes
  /// Frames for one peer leave in one SEND if they fit. False: each in a SEND of its own, as in the paper.
  bool coalesce = true;
  /// Charged to the fabric's clock for every SEND and every receive, to model slower transports in `sim`.
  int64_t message_cpu_ns = 0;
  /// What arrives is held back for so long, for the same.
  int64_t extra_latency_ns = 0;
};

absl::StatusOr<std::unique_ptr<Transport>> OpenTransport(fabric::Fabric& fabric,
                                                         const TransportOptions& options);

}  // namespace nam::txn::two_phase
