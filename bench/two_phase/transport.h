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

/// Exchanges frames between clients, coordinator and participants. Each of them is one thread with one
/// Transport: it waits in Receive, which first sends what has been appended since, so that one step's frames
/// for one peer leave together.
///
///     Output(connection) ── append frames ──▶ Receive: send all, wait, OnFrame…, OnLost ──▶ append …
namespace nam::bench::two_phase {

/// Unique within a transport; never reused.
using ConnectionId = StrongId<struct ConnectionTag, uint64_t>;

class FrameSink {
 public:
  virtual ~FrameSink() = default;
  /// `frame` excludes its length. May append, and close connections.
  virtual void OnFrame(ConnectionId connection, std::span<const std::byte> frame) = 0;
  /// The peer is gone, or has sent a malformed frame. Not called after Close.
  virtual void OnLost(ConnectionId connection) = 0;
};

/// Handles the frames of a server thread.
class Role : public FrameSink {
 public:
  /// Called after all frames that had arrived are handled.
  virtual void AfterBatch() {}
};

/// One thread at a time uses it; any thread may call Wake.
class Transport {
 public:
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// The address that peers pass to Connect; empty if it does not listen.
  const std::string& address() const { return address_; }
  virtual absl::StatusOr<ConnectionId> Connect(const std::string& address, Deadline deadline) = 0;
  /// The buffer to append a frame to. Frames for a lost connection are dropped.
  std::vector<std::byte>& Output(ConnectionId connection);
  void Close(ConnectionId connection);
  /// May return early, even without a frame.
  void Receive(FrameSink& sink, Deadline deadline);
  virtual void Wake() = 0;
  /// Frames handed over so far; any thread.
  uint64_t frames_received() const { return frames_received_.load(std::memory_order_relaxed); }

 protected:
  struct Stream {
    virtual ~Stream() = default;
    ConnectionId id;
    std::vector<std::byte> input;   // an incomplete frame
    std::vector<std::byte> output;  // unsent from `sent` on
    size_t sent = 0;
    bool dirty = false;  // in dirty_
    bool lost = false;
    bool closed = false;
  };

  Transport() = default;
  /// Sends what can be sent now. False: the connection is lost.
  virtual bool Push(Stream& stream) = 0;
  /// Waits for the first event, and passes it to Deliver and MarkLost.
  virtual void Await(FrameSink& sink, Deadline deadline) = 0;

  /// Hands over complete frames.
  void Deliver(Stream& stream, std::span<const std::byte> arrived, FrameSink& sink);
  /// The end of Receive tells the sink and destroys the stream.
  void MarkLost(Stream& stream);
  ConnectionId Add(std::unique_ptr<Stream> stream);
  /// Null if the stream is gone.
  Stream* Find(ConnectionId connection);
  /// For destructors of subclasses whose streams use their members.
  void DestroyStreams() { streams_.clear(); }
  std::string address_;

 private:
  size_t DeliverWhole(Stream& stream, std::span<const std::byte> bytes, FrameSink& sink);
  void PushAll();
  void DestroyDead(FrameSink& sink);

  absl::flat_hash_map<ConnectionId, std::unique_ptr<Stream>> streams_;
  std::vector<ConnectionId> dirty_;
  std::vector<ConnectionId> dead_;  // lost or closed; still in streams_
  std::vector<std::byte> nowhere_;
  uint64_t last_id_ = 0;
  std::atomic<uint64_t> frames_received_ = 0;
};

struct TransportOptions {
  enum class Kind : uint8_t {
    kSocket,  // TCP sockets of this host; not in `sim`
    kSend,    // SEND/RECEIVE queue pairs of the fabric
  } kind = Kind::kSend;
  /// The address to listen on, at a port of its own choice. Empty: it does not listen.
  std::string host;
  int64_t peer_timeout_us = 3'000'000;

  // -- kSend. A connection takes (send_depth + receive_depth) × buffer_bytes at each of its ends.
  uint32_t connections_max = 256;
  uint32_t send_depth = 8;
  uint32_t receive_depth = 8;
  uint32_t buffer_bytes = 16 << 10;  // at most fabric::kMaxSendBytes
  /// Frames for one peer share a SEND if they fit. False: each takes its own SEND, as in the paper.
  bool coalesce = true;
  /// Charged to the fabric's clock for every SEND and every receive, to model slower transports in `sim`.
  int64_t message_cpu_ns = 0;
  /// Delays every arrival, likewise.
  int64_t extra_latency_ns = 0;
};

absl::StatusOr<std::unique_ptr<Transport>> OpenTransport(fabric::Fabric& fabric,
                                                         const TransportOptions& options);

}  // namespace nam::bench::two_phase
